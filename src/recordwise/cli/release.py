"""``recordwise release PLAN --out DIR``: publishes a plan, once."""

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recordwise.cli.failing import (
    BUDGET_REFUSED,
    AsJson,
    Debug,
    ask_first,
    ends_well,
    for_plan,
    reporting,
    require_terminal,
    say,
)
from recordwise.cli.options import Set, load_with_parameters, set_words
from recordwise.errors import OutputError, ParameterError, RecordwiseError

if TYPE_CHECKING:
    from recordwise.plan.file.read import PlanFile
    from recordwise.plan.plan import Plan
    from recordwise.release.release import Release
    from recordwise.release.tables import Accuracy
    from recordwise.session.session import Unfinished


STEPS = 6


@ends_well
def release(
    plan: Annotated[Path, typer.Argument(help="The plan, a TOML file.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="A new folder for the files.", show_default=False)],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Finish the release if it was charged and drawn before; otherwise make it.")
    ] = False,
    refine: Annotated[
        Path | None,
        typer.Option(
            "--refine", help="The folder of a release to refine: only the difference is paid.", show_default=False
        ),
    ] = None,
    carry: Annotated[
        Path | None,
        typer.Option("--carry", help="The folder of the period before, whose noise is carried on.", show_default=False),
    ] = None,
    revise: Annotated[
        Path | None,
        typer.Option("--revise", help="The folder of a release whose records were corrected.", show_default=False),
    ] = None,
    tier_of: Annotated[
        Path | None,
        typer.Option(
            "--tier-of",
            help="The folder of a finer release, from which a public tier is made: nothing is charged.",
            show_default=False,
        ),
    ] = None,
    old_records: Annotated[
        Path | None,
        typer.Option("--old-records", help="What that release was made from, as it was.", show_default=False),
    ] = None,
    crosswalk: Annotated[
        list[str] | None,
        typer.Option(
            "--crosswalk",
            metavar="COLUMN=FILE",
            help="With --carry, codes that changed: a public CSV file with the columns before and now.",
            show_default=False,
        ),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Make the release although it was charged before, and pay again.")
    ] = False,
    given: Set = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Run a plan: charge the ledger, draw noise, write the files.

    A charge is never refunded, and none is made twice by mistake.
    """
    import json

    from recordwise.errors import ParameterError
    from recordwise.release.content import planned_content
    from recordwise.release.files import load_release
    from recordwise.release.formats.registry import formats_named, require_storable

    if resume and again:
        raise ParameterError(
            parameter="--resume", problem="draws nothing and --again draws a new release", advice="Give one of them."
        )
    folders = {"refine": refine, "carry": carry, "revise": revise, "tier_of": tier_of}
    file = with_stage(load_with_parameters(plan, given, old_records=old_records), old_records, **folders)
    file = with_crosswalk(file, crosswalk or [])
    before = [load_release(folder) for folder in file.earlier]
    # The page shows the change since the period whose noise is carried on.
    carried = stage_releases(file).get("carry")
    before += [carried] if carried is not None and carried.digest not in {each.digest for each in before} else []
    require_storable(planned_content(file.plan, dataset=file.dataset, words=file.words), formats_named(file.formats))
    done = resume_and_save(file, out, before) if resume else None
    if done is None:
        check_folder(out)
        check_room(file.plan, out, formats=len(file.formats))
        if not yes:
            confirm(file)
        done = publish_and_save(file, out, before, quiet=as_json, again=again)
    with reporting(f"The release in {out} is complete and charged."):
        if as_json:
            typer.echo(json.dumps(release_json(done, out)))
        else:
            show(file, done, out)


def with_stage(file: "PlanFile", old_records: Path | None, **folders: Path | None) -> "PlanFile":
    """Return the plan as one that refines, carries on, revises or is made from the release in a folder."""
    from dataclasses import asdict, replace

    from recordwise.plan.file.read import STAGES, PlannedStage
    from recordwise.plan.sources import Csv

    named: dict[str, Any] = {name: folder for name, folder in folders.items() if folder is not None}
    if not named and old_records is None:
        return file
    if not named and (file.stage is None or file.stage.old_records is None):
        raise ParameterError(
            parameter="--old-records",
            problem="is for --carry and --revise",
            advice="Nothing was spent. Name the folder of the earlier release, too.",
        )
    known = {} if file.stage is None else {name: getattr(file.stage, name) for name in STAGES}
    same = [name for name, folder in named.items() if known.get(name) and known[name].resolve() == folder.resolve()]
    if len(named) > 1 or (named and any(known.values()) and not same):
        raise ParameterError(
            parameter=f"--{next(iter(named)).replace('_', '-')}",
            problem="and [stage] of the plan name different folders"
            if len(named) == 1
            else "is given with another stage",
            advice="Give one of them.",
        )
    stage = file.stage or PlannedStage(**named)
    if old_records is not None:
        own, path = file.source, str(old_records)
        stage = replace(stage, old_records=Csv(path, **asdict(own.options)) if isinstance(own, Csv) else (path,))
    return replace(file, stage=stage)


def with_crosswalk(file: "PlanFile", given: Sequence[str]) -> "PlanFile":
    """Return the plan with pairs of codes from files, by column."""
    from dataclasses import replace

    from recordwise.plan.file.read import read_pairs

    if not given:
        return file
    if file.stage is None or file.stage.carry is None:
        raise ParameterError(parameter="--crosswalk", problem="is for --carry", advice="Give both, or neither.")
    pairs = {}
    for each in given:
        column, sign, name = each.partition("=")
        if not (column and sign and name):
            raise ParameterError(parameter="--crosswalk", problem="is not of the form COLUMN=FILE")
        pairs[column] = read_pairs(Path(name))
    return replace(file, stage=replace(file.stage, crosswalk=pairs))


def stage_releases(file: "PlanFile") -> dict[str, Any]:
    """Return the release that a plan refines, carries on, revises or is made from, by that word."""
    from recordwise.plan.file.read import STAGES
    from recordwise.release.files import load_release

    folders = {} if file.stage is None else {name: getattr(file.stage, name) for name in STAGES}
    return {name: load_release(folder) for name, folder in folders.items() if folder is not None}


def check_folder(out: Path, *, state: str = "Nothing was spent.") -> None:
    """Refuse a folder that cannot be written, before anything is spent."""
    from recordwise.errors import OutputError
    from recordwise.release.staging import try_folder

    if os.path.lexists(out):
        raise OutputError(folder=str(out), problem="already exists", advice=f"{state} Choose a new folder.")
    try:
        try_folder(out)
    except OSError as error:
        raise OutputError(folder=str(out), problem=f"cannot be written ({error.strerror})", advice=state) from None


UNSPENT = "Nothing was spent."


def confirm(file: "PlanFile") -> None:
    """Show the cost where the question is asked, on standard error; refuse without a terminal."""
    from recordwise.cli import screen
    from recordwise.cli.check import show_losses
    from recordwise.planning.check import check

    require_terminal(UNSPENT)
    found = check(file, source=False)
    if found.refusal is not None:
        say(f"recordwise: {for_plan(str(found.refusal), file.path, set_words(file))}")
        raise typer.Exit(BUDGET_REFUSED)
    with redirect_stdout(sys.stderr):
        show_losses(found)
        for warning in found.warnings:
            screen.note(warning)
    ask_first(f"Charge this to {file.ledger.name} and publish? This cannot be undone.", UNSPENT)


def publish_and_save(
    file: "PlanFile", out: Path, before: Sequence["Release"], *, quiet: bool, again: bool
) -> "Release":
    """Draw and save the release, recoverable until its folder is complete."""
    from recordwise.cli import screen
    from recordwise.session import Session

    queries, stage, left = file.plan.queries, stage_releases(file), Left()
    with left.told(out), screen.progress(STEPS, quiet=quiet) as tell, Session.from_plan(file) as session:
        left.unfinished = session.unfinished
        done = session.run(
            *queries,
            confidence=file.confidence,
            progress=tell,
            refuse_repeat=not again,
            keep=True,
            fixed_in_advance=file.stage is not None and file.stage.fixed_in_advance,
            old_records=None if file.stage is None else file.stage.old_records,
            crosswalk=None if file.stage is None else file.stage.crosswalk,
            **stage,
        )
        if file.basic is not None:
            tell("making basic tables")
            done = with_basic(done, file)
        tell("writing files")
        waiting = session.unfinished.waiting(*queries, **stage)
        done = save_release(with_history(done, before), file, out, recoverable=waiting)
        left.complete = True
        session.unfinished.finish(*queries, **stage)
    return done


@dataclass
class Left:
    """What an interrupt leaves of a release that is being made."""

    unfinished: "Unfinished | None" = None
    complete: bool = False

    @contextmanager
    def told(self, out: Path) -> Iterator[None]:
        """Let an interrupt say whether the folder is complete, or which drawn tables it left."""
        try:
            yield
        except KeyboardInterrupt:
            told = [f"The release is complete in {out}."] if self.complete else []
            kept = None if self.unfinished is None else self.unfinished.kept
            if kept is not None:
                told.append(f"The release was drawn and is kept in {kept.name}: finish it with --resume.")
            raise KeyboardInterrupt(*told) from None


def resume_and_save(file: "PlanFile", out: Path, before: Sequence["Release"]) -> "Release | None":
    """Save the release drawn before; None if never charged."""
    from recordwise.release.files import load_release
    from recordwise.session import Session

    queries, stage = file.plan.queries, stage_releases(file)
    with Session.from_plan(file) as session:
        done = session.unfinished.resume(*queries, **stage)
        if done is None:
            return None
        if is_complete(out, done):
            done = load_release(out)
        else:
            check_folder(out, state="The release is kept next to the ledger.")
            done = save_release(
                with_history(with_basic(done, file), before),
                file,
                out,
                recoverable=session.unfinished.waiting(*queries, **stage),
            )
        session.unfinished.finish(*queries, **stage)
    return done


def is_complete(out: Path, done: "Release") -> bool:
    """Return whether the folder already holds this release."""
    from recordwise.errors import SourceError
    from recordwise.release.files import load_release

    try:
        found = load_release(out)
    except SourceError:
        return False
    return (found.digest, found.head) == (done.digest, done.head)


def release_json(done: "Release", out: Path) -> dict[str, Any]:
    from recordwise.release.tables import accuracy

    basic = {name: {"accuracy": _accuracy_json(each)} for name, each in _basic_accuracy(done).items()}
    return {
        "folder": str(out),
        "privacy_label": "private" if done.private else "NOT PRIVATE",
        "digest": done.digest,
        "ledger": {"length": done.head.length, "digest": done.head.digest},
        "tables": {
            table.name: {
                "cells": table.data.num_rows,
                "accuracy": _accuracy_json(accuracy(table)),
            }
            for table in done.tables
        },
        **({"basic_tables": basic} if basic else {}),
    }


def _basic_accuracy(done: "Release") -> "dict[str, dict[str, Accuracy]]":
    if not done.basic_tables:
        return {}
    from recordwise.release.basic import basic_accuracy

    return basic_accuracy(done)


def _accuracy_json(found: "dict[str, Accuracy]") -> dict[str, Any]:
    return {name: each.to_json() for name, each in found.items()}


BASIC_ERRORS = (
    "These are the errors of the basic tables, whose values combine all levels; release.json has those of the research "
    "tables, each as it was drawn."
)


def show(file: "PlanFile", done: "Release", out: Path) -> None:
    from recordwise.cli import screen
    from recordwise.exact.text import figure, share_text
    from recordwise.release.tables import accuracy

    screen.heading(f"Published in {out}")
    shown, rows = _basic_accuracy(done) or {table.name: accuracy(table) for table in done.tables}, []
    for table in done.basic_tables or done.tables:
        for name, found in shown[table.name].items():
            below = found.share_below
            share = "none" if below is None else f"{share_text(below)}"
            numbers = [figure(found.median_sd), figure(found.median_cv), share]
            rows.append([f"{table.name}.parquet", f"{table.data.num_rows:,}", name, *numbers])
    screen.table(["file", "cells", "variable", "median sd", "median cv", "cells with cv below 0.1"], rows)
    if done.basic_tables:
        screen.paragraph(BASIC_ERRORS)
    if done.published.refinement is not None:
        screen.paragraph(
            f"Answers are averages with those of charge {done.published.refinement.charge}; only the difference was charged."
        )
    if done.published.tier_of is not None:
        screen.paragraph(
            f"A tier of charge {done.published.tier_of[1]}: noise was added to its answers once, and nothing was charged. "
            "Its losses are those of readers who do not see that release."
        )
    if done.published.step is not None:
        screen.paragraph(SAID[done.published.step.kind])
    if done.published.promise:
        screen.paragraph(f"Promise over time: {done.published.promise}.")
    screen.paragraph(
        f"Recorded in {file.ledger}, entry {done.head.length}. report.html is for readers, policy.json for `recordwise loss`."
    )


SAID = {
    "start": "Noise will be carried on: what is charged is for this release, and for leaving its tables in the next period.",
    "carry": "Noise is carried on from the period before: a change between both is more accurate than either.",
    "revise": "Records were corrected: a unit that did not change paid nothing, one that did paid for its change.",
}
"""What the kind of a step means to who released it."""


# Saves a release elsewhere if it cannot be saved as requested, because the budget is already spent, and reports
# where.


BYTES_A_VALUE = 40
"""The size of a number in Parquet and CSV together, generously estimated."""
COLUMNS_A_VARIABLE = 6
SMALLEST = 1_000_000
MEGABYTE = 1_000_000
KEPT = (
    "The charge stands, and what was drawn is kept next to the ledger: run the same command with --resume and a folder that can be "
    "written. That costs nothing."
)


def check_room(plan: "Plan", out: Path, *, formats: int = 2) -> None:
    """Refuse a too small disk before spending; selected keys not counted."""
    import shutil

    from recordwise.exact.text import whole_text

    # The tables also wait next to the ledger, usually on the same disk, until their folder is complete.
    needed = SMALLEST + expected_bytes(plan) * (max(2, formats) + 1) // 2
    free = shutil.disk_usage(out.parent).free
    if free < needed:
        raise OutputError(
            folder=str(out),
            problem=f"needs about {whole_text(needed / MEGABYTE)} MB, and only {whole_text(free / MEGABYTE)} MB are free",
            advice="Nothing was spent. Free some space or name a folder on another disk.",
        )


def expected_bytes(plan: "Plan") -> int:
    """The approximate size of a plan's public cells in bytes."""
    total = 0
    for table in plan.tables():
        if plan.selection(table) is None and table.shape.groups:
            variables = len(plan.queries[table.query].statistics)
            columns = len(table.shape.groups) + COLUMNS_A_VARIABLE * variables
            total += plan.cells(table).num_rows * columns * BYTES_A_VALUE
    return total


def writable(done: "Release", formats: tuple[str, ...]) -> tuple[str, ...]:
    """Return the formats that can hold the release and its keys."""
    from recordwise.release.formats.registry import formats_named, require_storable

    content, kept = done.content(), []
    for each in formats_named(formats):
        try:
            require_storable(content, (each,))
            kept.append(each.name)
        except ParameterError as error:
            say(f"recordwise: {error} The release is saved without it.")
    return tuple(kept)


def with_basic(done: "Release", file: "PlanFile") -> "Release":
    """Add the basic tables that the plan requests, if possible."""
    if file.basic is None:
        return done
    asked = file.basic
    try:
        return done.basic(fit=asked.fit, complete=asked.complete, units=asked.units, rules=asked.rules)
    except RecordwiseError as error:
        say(f"recordwise: {error} The release is saved without basic tables.")
        return done


def with_history(done: "Release", before: Sequence["Release"]) -> "Release":
    """Add earlier periods' cells to the release's page, if possible."""
    try:
        return done.with_history(*before)
    except RecordwiseError as error:
        say(f"recordwise: {error} The page is saved without earlier periods.")
        return done


def save_release(done: "Release", file: "PlanFile", out: Path, *, recoverable: bool) -> "Release":
    """Save the release as requested.

    If that fails, what was drawn is ``recoverable`` next to the ledger, or else saved there or in the temporary folder;
    the error says so.
    """
    formats = writable(done, file.formats)
    try:
        done.save(out, formats=formats)
        return done
    except OutputError as error:
        if recoverable:
            raise OutputError(folder=error.folder, problem=error.problem, advice=KEPT) from None
        for place in (file.ledger.resolve().parent, Path(tempfile.gettempdir())):
            folder = _unused_name(place / f"{out.name}-rescued")
            try:
                done.save(folder, formats=formats)
            except OutputError:
                continue
            raise OutputError(
                folder=error.folder,
                problem=error.problem,
                advice=f"The charge stands, and the complete release was saved in {folder} instead. Move it from there.",
            ) from None
        raise OutputError(
            folder=error.folder,
            problem=error.problem,
            advice="The charge stands and the release is lost: the ledger's folder and the temporary folder also failed.",
        ) from None


def _unused_name(folder: Path) -> Path:
    """A name that is not in use."""
    number, found = 1, folder
    while found.exists():
        number += 1
        found = folder.with_name(f"{folder.name}-{number}")
    return found
