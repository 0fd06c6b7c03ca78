"""Rehearse a release: from records to files, with a ledger thrown away.

The records are generated or given. The plan's source is not opened, and nothing is spent. Its ledger is touched only to note a
look, where confidential records are given. The folder is labeled NOT PRIVATE in every file, and its names say that it is a
rehearsal; one that was made from confidential records is its owner's only.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from recordwise.errors import OutputError, ParameterError, RecordwiseError
from recordwise.exact.text import brief_text, digits_text, share_text
from recordwise.exact.text import figure as number_text
from recordwise.mechanisms.combined import Carried
from recordwise.mechanisms.gaussian import Gaussian
from recordwise.noise.randomness import Secure, Seeded
from recordwise.plan.file.read import BasicOutputs, PlanFile, load_plan
from recordwise.plan.publication import StatusRules
from recordwise.plan.query import Query
from recordwise.plan.schema import NO_LOOK
from recordwise.plan.sources import DUCKDB
from recordwise.plan.statistics import Drawable
from recordwise.planning.losses import SizeClass, TenYears, losses_by_size
from recordwise.planning.result import Result, Rows, html_table, outside_releases
from recordwise.planning.scope import read_origin
from recordwise.planning.simulate.generate import usual_rows, write_records
from recordwise.policy.series import CARRY, REVISE
from recordwise.progress import reported, steps, tell
from recordwise.release.content import planned_content
from recordwise.release.dictionary import has_status, statuses
from recordwise.release.formats.registry import formats_named, require_storable
from recordwise.release.release import Release
from recordwise.session import Session
from recordwise.session.carried import CarriedStage
from recordwise.session.checks import Coverage, with_sizes
from recordwise.session.owner import enter_look
from recordwise.session.session import planned_stage

# A session on generated or given records in place of a plan's own, with a temporary ledger. The plan's source is not
# opened. Its ledger is not touched either, unless the given records are confidential: then it notes the look.


TITLE = "REHEARSAL, not a release"


@contextmanager
def on_other_records(
    file: PlanFile,
    *,
    records: str | Path | None = None,
    rows: int | None = None,
    seed: int = 0,
    data: str = "confidential",
    command: str = "rehearse",
    revision: int = 0,
) -> Iterator[tuple[PlanFile, Session]]:
    """Open a session on generated records, or on other ones.

    Args:
        file: The plan.
        records: A file of records; generated unless given.
        rows: How many records to generate; by default ten for each cell of the largest table, from 10,000 to a million.
        seed: The seed of generated records.
        data: What given records are. Unless they are declared "public" or "synthetic", the plan's ledger notes the look before one
            is read, whatever file they are in.
        command: What the look is called in the ledger.
        revision: That of the series.

    Yields:
        The plan with its new source, and the session.

    Raises:
        ParameterError: Both records and a number of rows are given.
    """
    if records is not None and rows is not None:
        raise ParameterError(parameter="rows", problem="is for generated records", advice="Leave it out.")
    origin, sized = read_origin(data), replace(file, plan=with_sizes(file.plan))
    with tempfile.TemporaryDirectory(prefix="recordwise-rehearsal-") as made:
        source = Path(made) / "records.parquet" if records is None else Path(records)
        if records is None:
            write_records(sized, source, usual_rows(sized.plan) if rows is None else rows, seed=seed)
        changed = _in_rehearsal(sized, source, Path(made) / "rehearsal.ledger", revision)
        with Session.from_plan(changed) as session:
            # Opened for names and types alone: what cannot be opened was not looked at.
            if records is not None and origin not in NO_LOOK:
                enter_look(file, command)
            yield changed, session


def _in_rehearsal(file: PlanFile, source: Path, ledger: Path, revision: int) -> PlanFile:
    """Return the plan with another source, ledger and names."""
    words, publication = file.words, file.words.publication
    titled = replace(publication, title=f"{TITLE}: {publication.title or file.dataset}")
    return replace(
        file,
        source=(str(source),),
        ledger=ledger,
        dataset=f"{TITLE}: {file.dataset}",
        series=None if file.series is None else replace(file.series, revision=revision),
        max_outside=None,
        engine=DUCKDB,
        spark=None,
        words=replace(words, publication=titled),
        hidden={},
    )


# The rehearsal, and what it found.


STAGES = 6
MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsedColumn:
    """One variable's number of cells and share of each status."""

    table: str
    variable: str
    cells: int
    statuses: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Rehearsal(Result):
    """What a release of a plan would take and look like."""

    folder: Path
    release: Release
    """NOT PRIVATE: what was drawn."""
    records: int
    source_rows: int
    """The rows of the source; more than the records where a unit has several."""
    given: bool
    """Whether the records were given; otherwise they were generated."""
    data: str
    """What the records are: "confidential" or "past" unless they were generated or declared."""
    seconds: dict[str, float]
    """How long each step took."""
    peak_memory: int | None
    """The most memory that this process has used so far, in bytes; None where the system does not say."""
    files: dict[str, int]
    """The size of each file, in bytes."""
    columns: tuple[RehearsedColumn, ...]
    losses: tuple[SizeClass, ...]
    coverage: tuple[Coverage, ...]
    problems: tuple[str, ...]
    before: Release | None = None
    """NOT PRIVATE: the rehearsed release whose noise is carried on or corrected, on the same records."""

    @property
    def privacy_label(self) -> str:
        """The label in every file."""
        return self.release.privacy_label

    def notes(self) -> tuple[str, ...]:
        """Return what a release would do otherwise."""
        return self.problems

    def _numbers(self) -> dict[str, Any]:
        return {
            "folder": str(self.folder),
            "records": self.records,
            "rows": self.source_rows,
            "generated": not self.given,
            "data": self.data,
            "seconds": self.seconds,
            "peak_memory": self.peak_memory,
            "files": self.files,
            "statuses": [
                {"table": each.table, "variable": each.variable, "cells": each.cells, "share": each.statuses}
                for each in self.columns
            ],
            "losses": [each.to_json() for each in self.losses],
            "outside": {each.name: each.outside for each in self.coverage},
            "empty_cells": {each.name: each.empty for each in self.coverage},
            "notes": list(self.problems),
        }

    def summary(self) -> str:
        """What was rehearsed, and how long it took."""
        kind = "given" if self.given else "generated"
        rows = "" if self.source_rows == self.records else f" in {self.source_rows:,} rows"
        total = number_text(sum(self.seconds.values()))
        memory = (
            "" if self.peak_memory is None else f"; at most {_megabytes(self.peak_memory)} of memory in this process"
        )
        return f"{self.records:,} {kind} record{'s' * (self.records != 1)}{rows}, {total} seconds{memory}."

    def rows(self) -> Rows:
        """Headers and rows: the share of the cells with each status, by table and variable."""
        names = list(dict.fromkeys(name for each in self.columns for name in each.statuses))
        return ["table", "variable", "cells", *names], [
            [each.table, each.variable, f"{each.cells:,}", *(share_text(each.statuses[name], 1) for name in names)]
            for each in self.columns
        ]

    def loss_rows(self) -> Rows:
        """Headers and rows: the losses of the records by their size."""
        headers = ["records by size", "records", "median loss", "p99 loss", "maximum loss"]
        return headers, [
            [each.name, f"{each.records:,}", *(number_text(loss) for loss in (each.median, each.p99, each.maximum))]
            for each in self.losses
        ]

    def file_rows(self) -> Rows:
        """Headers and rows: the files and their sizes."""
        return ["file", "size"], [[name, _megabytes(size)] for name, size in self.files.items()]

    def time_rows(self) -> Rows:
        """Headers and rows: how long each step took."""
        return ["step", "seconds"], [[name, number_text(each)] for name, each in self.seconds.items()]

    def _about(self) -> str:
        return f"of {self.records:,} record{'s' * (self.records != 1)} in {self.folder}"

    def _title(self) -> str:
        return "Share of the cells by status"

    def _repr_html_(self) -> str:
        return Result._repr_html_(self) + html_table(
            "Losses by size", self.loss_rows(), privacy_label=self.privacy_label
        )


@reported
def rehearse(
    plan: PlanFile | str | Path,
    *,
    out: str | Path,
    records: str | Path | None = None,
    rows: int | None = None,
    seed: int | None = None,
    parameters: Mapping[str, str | int] | None = None,
    data: str = "confidential",
) -> Rehearsal:
    """Release a plan in rehearsal.

    With generated records, a separate ledger and noise that is not private. The plan's source is not opened,
    and nothing is spent; its ledger only notes a look at confidential records. Generated records have the
    columns of the plan's schema; the values of their columns are from the plan's public lists, so that
    published cells fill, and their measures are skewed.

    Args:
        plan: The plan, or its file.
        out: A new folder for the files of the rehearsal.
        records: A file of records to use instead, such as those of last year. The rehearsed tables are then about real records,
            and labeled NOT PRIVATE: they must be kept as the records are. Unless ``data`` declares them, this is a look at
            confidential records, which the plan's ledger notes first, and only the owner of the folder can read it.
        rows: How many records to generate; by default ten for each cell of the largest table, from 10,000 to a million.
        seed: The seed of records and noise. Without it generated records are those of seed 0, and the noise on given records
            is drawn from a seed that is not kept.
        parameters: The values of ``${name}`` in the file.
        data: What given records are: "public", "synthetic", "past" or "confidential".

    Returns:
        Times, sizes, statuses and losses, and the folder.

    Raises:
        OutputError: The folder exists, or is for confidential records and lies in that of a release.
        BudgetError: The plan's budget does not cover one release.
        ParameterError: An argument is not valid.

    Example:
        >>> import recordwise as rw
        >>> made = rw.planning.rehearse("plan.toml", out="rehearsal", rows=50_000)  # doctest: +SKIP
        >>> made.release.private  # doctest: +SKIP
        False
    """
    file, folder = plan if isinstance(plan, PlanFile) else load_plan(plan, parameters=dict(parameters or {})), Path(out)
    if folder.exists():
        raise OutputError(folder=str(folder), problem="already exists", advice="Choose a new folder.")
    if records is not None and read_origin(data) not in NO_LOOK:
        outside_releases(folder)
    stage = None if _is_too_early(file) else planned_stage(replace(file, plan=with_sizes(file.plan)))
    file = file if stage is None or isinstance(stage, CarriedStage) else replace(file, plan=stage.plan)
    require_storable(planned_content(file.plan, dataset=file.dataset, words=file.words), formats_named(file.formats))
    clock = Clock(steps(STAGES))
    with ExitStack() as stack:
        with clock("generating records" if records is None else "opening records"):
            revision = int(isinstance(stage, CarriedStage) and stage.following.kind == REVISE)
            other = on_other_records(file, records=records, rows=rows, seed=seed or 0, data=data, revision=revision)
            changed, session = stack.enter_context(other)
        origin, noise = "synthetic" if records is None else data, _noise(seed, given=records is not None)
        follows = _followed(changed, stage, noise)
        return _rehearsed(changed, session, folder, clock, noise, records is not None, origin, follows)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Follows:
    """The rehearsal of the release whose noise is carried on or corrected, and how the next one follows it."""

    release: Release
    terms: dict[str, Any]
    """Arguments of ``Session.run``."""
    ratio: float
    """The standard deviation of a change, as a part of that of a level."""


def _is_too_early(file: PlanFile) -> bool:
    """Return whether the release that is followed is not there yet."""
    folder = None if file.stage is None else file.stage.carry or file.stage.revise
    return folder is not None and not folder.exists()


def _followed(file: PlanFile, stage: Any, noise: Seeded) -> _Follows | None:
    """Draw the earlier release of a plan that follows one, on the same records: its cells, with noise of its variance.

    The errors of both have the joint law of the real ones, whatever records are (T-SERIES, T-REVISE).
    """
    if not isinstance(stage, CarriedStage) or stage.before is None or stage.following.release is None:
        return None
    assert file.series is not None
    own = stage.following.release.published.series
    series = replace(file.series, period=own.period, revision=0)
    queries = [_with_noise_before(query) for query in stage.before.queries]
    earlier = replace(file, plan=replace(stage.before, queries=tuple(queries)), series=series, stage=None)
    with Session.from_plan(earlier) as session:
        drawn = session.run(*queries, rng=noise, confidence=file.confidence)
    kind = stage.following.kind
    terms: dict[str, Any] = {kind: drawn, "old_records": file.source}
    terms |= {"crosswalk": stage.following.crosswalk} if kind == CARRY else {}
    carried = [each.mechanism for query in stage.plan.queries for each in query.draws()]
    ratio = max(each.change_part for each in carried if isinstance(each, Carried))
    return _Follows(release=drawn, terms=terms, ratio=ratio)


def _with_noise_before(query: Query) -> Query:
    """Return a query with one draw of the earlier answers' variance."""

    def chosen(statistic: Drawable) -> Gaussian:
        own = statistic.mechanism
        assert isinstance(own, Carried)
        assert own.before is not None
        return Gaussian(sigma=own.before.noise_sigma)

    drawn = query.draws()
    return replace(query, statistics=tuple(each.with_mechanisms(chosen, drawn) for each in query.statistics))


def _noise(seed: int | None, *, given: bool) -> Seeded:
    """Return noise that is never called private.

    On user-supplied records, from a seed that nobody knows unless one is stated.
    """
    if seed is not None or not given:
        return Seeded(seed or 0)
    import numpy as np

    words = np.zeros(2, np.uint64)
    Secure().fill(words)
    return Seeded(int(words[0]) << 64 | int(words[1]))


def _rehearsed(
    file: PlanFile,
    session: Session,
    folder: Path,
    clock: "Clock",
    noise: Seeded,
    given: bool,
    data: str,
    follows: _Follows | None = None,
) -> Rehearsal:
    queries, notes = file.plan.queries, list(_notes(file, follows))
    with clock("reading records and drawing noise"):
        terms = {} if follows is None else follows.terms
        done = session.run(*queries, rng=noise, confidence=file.confidence, progress=tell, **terms)
    if file.basic is not None:
        with clock("fitting basic tables"):
            done, problems = _with_basic(done, file.basic)
            notes += problems
    about = {"records": "given" if given else "generated", "private": False, "ledger": "thrown away"}
    about |= {"data": data} if given else {}
    done = replace(done, published=done.published.with_rehearsal(about))
    content = done.content()
    formats = tuple(each.name for each in formats_named(file.formats) if each.problem(content) is None)
    notes += [
        f"the format {name} has no place for the label NOT PRIVATE and is left out"
        for name in file.formats
        if name not in formats
    ]
    with clock("counting losses and cells"):
        # A look at the records was noted in the plan's ledger before one was read; this ledger is thrown away.
        view = session.owner.view(data="synthetic")
        losses = losses_by_size(view, done.policy, file.plan.schema)
        covered = session.owner.preflight(*queries)
    # The folder comes last: until then, an interrupt leaves nothing behind.
    with clock("writing files"):
        done.save(folder, formats=formats, owner_only=data not in NO_LOOK)
    rules = StatusRules() if file.basic is None else file.basic.rules
    counted = sum(each.records for each in losses)
    return Rehearsal(
        folder=folder,
        release=done,
        records=counted,
        source_rows=_rows(Path(file.source[0])) or counted,  # type: ignore[index]
        given=given,
        data=data,
        seconds=clock.seconds,
        peak_memory=peak_memory(),
        files={path.name: path.stat().st_size for path in sorted(folder.iterdir())},
        columns=tuple(_columns(done, rules)),
        losses=losses,
        coverage=covered,
        problems=tuple(notes),
        before=None if follows is None else follows.release,
    )


def _with_basic(done: Release, asked: BasicOutputs) -> tuple[Release, list[str]]:
    """Return the release with its basic tables, or why not."""
    try:
        return done.basic(fit=asked.fit, complete=asked.complete, units=asked.units, rules=asked.rules), []
    except RecordwiseError as error:
        return done, [f"{error} The release would be saved without basic tables."]


def _notes(file: PlanFile, follows: _Follows | None) -> Iterator[str]:
    if file.earlier:
        yield "the page shows no earlier periods: they are real, and these numbers are not"
    if file.stage is not None and file.stage.refine is not None:
        yield "answers are averages of a first draw and a further one, as the release makes them; losses are those of both"
    elif file.stage is not None and file.stage.tier_of is not None:
        yield "answers have noise on top of noise, as a tier of the finer release has; losses are those of the tier alone"
    elif follows is not None:
        yield (
            "the release before was rehearsed too, on the same records, and its noise is carried on as the real one's will be: a "
            f"change between both has {digits_text(follows.ratio, 2)} of the standard deviation of a level"
        )
    elif file.stage is not None:
        yield "the release before is not there yet: answers are drawn afresh, with the noise that is left"
    years = TenYears.of(file)
    if years is not None:
        yield from (*years.notes(), years.by_kind())
    if file.budget is not None:
        yield "the budget was taken as if nothing had been spent; what the plan's ledger says about it was not read"


def _columns(release: Release, rules: StatusRules) -> Iterator[RehearsedColumn]:
    for table in release.tables:
        signed = release.published.signed_variables(table.name)
        for name in table.variables:
            if has_status(table, name):
                found = statuses(table, name, rules, signed=name in signed).value_counts()
                counts = {str(each["values"]): int(each["counts"].as_py()) for each in found}
                shares = {status: counts.get(status, 0) / max(table.data.num_rows, 1) for status in rules.names()}
                yield RehearsedColumn(table=table.name, variable=name, cells=table.data.num_rows, statuses=shares)


def _rows(source: Path) -> int | None:
    import pyarrow.parquet as pq

    return int(pq.ParquetFile(source).metadata.num_rows) if source.suffix == ".parquet" and source.is_file() else None


class Clock:
    """The seconds of each step, by its name."""

    def __init__(self, step: Callable[[str], object]) -> None:
        self._step = step
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, doing: str) -> Iterator[None]:
        self._step(doing)
        start = time.perf_counter()
        yield
        self.seconds[doing] = round(time.perf_counter() - start, 3)


def peak_memory() -> int | None:
    """Return the process's peak memory in bytes, or None if unknown."""
    import sys

    try:
        import resource
    except ImportError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(most if sys.platform == "darwin" else most * 1024)


def _megabytes(size: int) -> str:
    return f"{brief_text(size / MEGABYTE)} MB" if size >= MEGABYTE / 10 else f"{brief_text(size / 1_000)} kB"
