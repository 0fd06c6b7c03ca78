"""Audit releases: compare published files with the losses that they state.

An audit goes from records to files, from files to samples, and from samples to a lower bound that is compared with the policy.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.audit.bound import Evidence, Features, is_answer, learn_witness, loss_lower, sequences_repeat
from recordwise.audit.subjects import CELL, DERIVED, FIRM, FORM, KIND, SECOND, VALUE, Record, Subject
from recordwise.errors import own_argument_errors, own_errors_of
from recordwise.exact.arithmetic import FloatArray
from recordwise.policy.json import PolicyFile
from recordwise.policy.policy import Policy
from recordwise.release.files import load_release
from recordwise.session import Session

# Neighboring tables side by side, as a reader of the published files sees them. Every cell acts as a table by itself,
# and half of the cells of a comparison contain the record.


WIDTH = 7
"""Digits of a cell's number in its code; a letter follows, so that the number can be a level of its own."""
STRAYS = 5
DIGITS = 6
"""Digits after the decimal point, if the measure has a step below 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The contents of each cell; the first group lacks the record."""

    subject: Subject
    cells: int
    """The number in each group."""

    @property
    def groups(self) -> tuple[str | None, ...]:
        return (None, *self.subject.records)

    @property
    def count(self) -> int:
        return self.cells * len(self.groups)

    def codes(self) -> list[str]:
        """The codes of all public cells, sorted."""
        return [code(number) for number in range(self.count)]

    def write(self, path: Path) -> None:
        """Write the records to a Parquet file."""
        import pyarrow.parquet

        pyarrow.parquet.write_table(self.table(), path)

    def table(self) -> pa.Table:
        """Return the records in their rows, some in unpublished cells."""
        blocks = [self._block(record, self._cells_of(place)) for place, record in self._records_by_group()]
        if self.subject.lists_every_cell:
            giant = list(self.subject.records.values())[-1]
            blocks.append(self._block(giant, [code(10**WIDTH - 1 - stray) for stray in range(STRAYS)]))
        rows = pa.concat_tables(blocks)
        numbers = pa.array(range(rows.num_rows), pa.int64())
        records = rows.append_column("id", numbers).append_column(FIRM, numbers)
        nothing = pa.repeat(pa.scalar(0, rows.schema.field(SECOND).type), rows.num_rows)
        further = records.set_column(records.column_names.index(SECOND), SECOND, nothing)
        return pa.concat_tables([records, *[further] * (self.subject.rows - 1)])

    def _records_by_group(self) -> list[tuple[int, Record]]:
        """The group of cells that each record is in."""
        beside = [(place, other) for place in range(len(self.groups)) for other in self.subject.others]
        return beside + list(enumerate(self.subject.records.values(), start=1))

    def _cells_of(self, group: int) -> list[str]:
        return [code(number) for number in range(group, self.count, len(self.groups))]

    def _block(self, record: Record, cells: list[str]) -> pa.Table:
        """The same record in each of several cells."""
        amount = record[VALUE]
        kind = pa.int64() if self.subject.step == 1 else pa.decimal128(30, DIGITS)
        stored = int(amount) if self.subject.step == 1 else Decimal(int(amount * 10**DIGITS)).scaleb(-DIGITS)
        constants = {
            KIND: pa.scalar(str(record[KIND])),
            VALUE: pa.scalar(stored, kind),
            SECOND: pa.scalar(record[SECOND]),
        }
        return pa.table({CELL: cells} | {name: pa.repeat(value, len(cells)) for name, value in constants.items()})


def code(number: int) -> str:
    return f"{number:0{WIDTH}d}A"


BITS = 53


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublishedCells:
    """The features of every cell, the stated policy, and row defects."""

    features: dict[str, FloatArray]
    policy: Policy
    problems: tuple[str, ...]


def read_published_cells(folder: Path, layout: Layout) -> PublishedCells:
    """Read back a release's files, with tables from Parquet."""
    import pyarrow.parquet

    features: dict[str, FloatArray] = {}
    problems: list[str] = []
    for path in sorted(folder.glob("*.parquet")):
        table = pyarrow.parquet.read_table(path, partitioning=None)
        cells = pc.utf8_slice_codeunits(table.column(0), 0, WIDTH).cast(pa.int64()).to_numpy()
        problems += [f"{path.stem}: {problem}" for problem in row_problems(cells, layout)]
        known = (cells >= 0) & (cells < layout.count)
        for name, numbers in features_of(table.drop_columns([table.column_names[0]])).items():
            full = np.full(layout.count, np.nan)
            full[cells[known]] = numbers[known]
            features[f"{path.stem}.{name}"] = full
        if known.sum() < layout.count:
            features[f"{path.stem} is there"] = np.where(np.isin(np.arange(layout.count), cells), 0.0, np.nan)
    policy = PolicyFile.load(folder / "policy.json").policy()
    return PublishedCells(features=features, policy=policy, problems=tuple(dict.fromkeys(problems)))


def both_stages(first: PublishedCells, second: PublishedCells) -> PublishedCells:
    """Return what a reader of two releases sees, and what both cost."""
    features = {f"first {name}": numbers for name, numbers in first.features.items()} | second.features
    problems = (*first.problems, *second.problems)
    return PublishedCells(features=features, policy=first.policy + second.policy, problems=problems)


def row_problems(cells: np.ndarray[Any, np.dtype[np.int64]], layout: Layout) -> list[str]:
    """Rows that reveal something by their presence, absence or order."""
    problems = []
    if np.any((cells < 0) | (cells >= layout.count)):
        problems.append("publishes a cell that is not among the public keys")
    if len(np.unique(cells)) < len(cells):
        problems.append("publishes a cell twice")
    if np.any(np.diff(cells) < 0):
        problems.append("its rows are not in the order of their keys")
    if layout.subject.lists_every_cell and len(np.setdiff1d(np.arange(layout.count), cells)):
        problems.append("leaves a public cell out")
    return problems


def features_of(table: pa.Table) -> dict[str, FloatArray]:
    """Every published number, its lowest bit, and the differences between variables."""
    found: dict[str, FloatArray] = {}
    for name in table.column_names:
        column = table.column(name)
        numbers = np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), np.float64)
        # CSV does not distinguish whole floats from integers, so the feature covers both.
        found |= {name: numbers, f"lowest bit of {name}": lowest_bit(numbers)}
    variables = [name for name in table.column_names if f"{name}_sd" in table.column_names]
    for place, first in enumerate(variables):
        for second in variables[place + 1 :]:
            found[f"{first} - {second}"] = found[first] - found[second]
    return {name: numbers for name, numbers in found.items() if tells(numbers)}


def tells(numbers: FloatArray) -> bool:
    """Whether a feature differs between cells."""
    return bool(len(numbers)) and not bool(np.all(numbers == numbers[0]))


def lowest_bit(numbers: FloatArray) -> FloatArray:
    """Return the exponent of a float's last nonzero bit (Mironov 2012)."""
    fraction, exponent = np.frexp(np.where(np.isfinite(numbers) & (numbers != 0), numbers, 1.0))
    whole = np.abs(fraction * 2.0**BITS).astype(np.int64)
    trailing = np.log2((whole & -whole).astype(np.float64))
    place = exponent - BITS + trailing
    return np.where(numbers == 0, 2.0 * BITS, np.where(np.isfinite(numbers), place, np.nan))


# The audit itself: samples of both groups of cells, a lower bound on the loss, and the verdict.


FALSE_ALARM = 1e-9
"""False-alarm rate of a whole audit."""
MOST_CHECKS = 10_000
"""The most bounds and comparisons in one audit; each gets an equal share of the false-alarm rate."""
LOG_ALARMS = math.log(MOST_CHECKS / FALSE_ALARM)
CELLS = 50_000
"""Cells in each group; a record is compared in twice as many."""
LEARNING = 3
"""How many of ten samples train the witness; the others are the evidence."""
MOST_LESSONS = 30_000
KEPT, BROKEN = "kept", "BROKEN"


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A record's stated loss and a lower bound on its observed loss."""

    subject: str
    keys: str
    engine: str
    record: str
    policy: float
    delta: float
    bound: float
    samples: int
    problems: tuple[str, ...] = ()
    """Other defects: rows that depend on records, repeated noise, a ledger that disagrees with the files."""

    @classmethod
    def without_numbers(cls, subject: str, *, samples: int, problems: tuple[str, ...]) -> "Finding":
        """The finding of a check that either passes or fails.

        Args:
            subject: What was checked.
            samples: How many times.
            problems: What was found.

        Returns:
            The finding.
        """
        nothing = {"policy": math.nan, "delta": math.nan, "bound": math.nan}
        return cls(
            subject=subject, keys="-", engine="duckdb", record="-", samples=samples, problems=problems, **nothing
        )

    @property
    def broken(self) -> bool:
        """Whether the policy is exceeded, or a check failed."""
        return bool(self.problems) or self.bound > self.policy

    @property
    def verdict(self) -> str:
        """The finding in a word or two."""
        return BROKEN if self.broken else KEPT


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """The number, size and engine of an audit's releases."""

    engine: str = "duckdb"
    spark: Any = None
    """A SparkSession or a master, for the Spark engine."""
    cells: int = CELLS
    runs: int = 1


@own_argument_errors
def audit(subject: Subject, how: Runs, *, tell: Callable[[str], object] = lambda _: None) -> list[Finding]:
    """Publish the subject's query on neighboring tables and compare, by record.

    Args:
        subject: The query, its keys and the records to compare.
        how: The engine, and the number of cells and runs.
        tell: Called with a line of progress before each run.

    Returns:
        One finding for each record of the subject.
    """
    layout = Layout(subject=subject, cells=how.cells)
    with TemporaryDirectory(prefix="recordwise-audit-") as place:
        folder = Path(place)
        layout.write(folder / "records.parquet")
        seen = []
        for run in range(how.runs):
            tell(f"{subject.name}, {subject.keys} keys, run {run + 1} of {how.runs}")
            seen.append(publish(layout, folder, how, run))
    problems = tuple(dict.fromkeys([*(each for one in seen for each in one.problems), *stale(layout, seen)]))
    return [finding(layout, seen, name, how, problems) for name in subject.records]


def publish(layout: Layout, folder: Path, how: Runs, run: int) -> PublishedCells:
    """Make one release, from record file to output files, and read it."""
    subject, out = layout.subject, folder / f"release{run}"
    with Session(
        folder / "records.parquet",
        unit="id",
        firm=FIRM,
        measures={VALUE: subject.measure(), SECOND: 1, FORM: DERIVED},
        columns={CELL: "text", KIND: "text"},
        collapse=subject.collapse(),
        engine=how.engine,
        spark=how.spark,
        ledger=folder / f"audit{run}.ledger",
        tuned_on="synthetic",
        max_outside="accept",
    ) as session:
        keys = subject.keys_of(layout.codes())
        first = None
        if subject.first is not None:
            first = load_release(session.run(subject.first(keys)).save(folder / f"first{run}"))
        stage: dict[str, Any] = {"tier_of": first} if subject.tier else {"refine": first}
        release = session.run(subject.ask(keys), **stage, fixed_in_advance=True)
        release.save(out)
        published = read_published_cells(out, layout)
        if first is not None and not subject.tier:
            published = both_stages(read_published_cells(folder / f"first{run}", layout), published)
        # A tier is charged nothing, for the finer release paid for all that is made from it.
        charged = first.policy if subject.tier and first is not None else published.policy
        damage = () if session.spent() == charged else ("the policy charged to the ledger is not the published one",)
    return PublishedCells(features=published.features, policy=published.policy, problems=(*published.problems, *damage))


def finding(layout: Layout, seen: Sequence[PublishedCells], name: str, how: Runs, problems: tuple[str, ...]) -> Finding:
    """The bound for one record, over all runs."""
    record = layout.subject.records[name]
    promised = max(float(each.policy.loss(_with_cell(record))) for each in seen)
    delta = max(float(each.policy.delta(_with_cell(record))) for each in seen)
    place = layout.groups.index(name)
    present, absent = (sample_of(layout, seen, at) for at in (place, 0))
    return Finding(
        subject=layout.subject.name,
        keys=layout.subject.keys,
        engine=how.engine,
        record=name,
        policy=promised,
        delta=delta,
        bound=bound_on_loss(present, absent, delta=delta),
        samples=2 * how.cells * how.runs,
        problems=problems,
    )


def _with_cell(record: Record) -> dict[str, Any]:
    return {**record, CELL: "0000000A"}


def sample_of(layout: Layout, seen: Sequence[PublishedCells], group: int) -> Features:
    """The samples of one group of cells, from all runs."""
    names = [name for name in seen[0].features if all(name in each.features for each in seen)]
    return {name: np.concatenate([each.features[name][group :: len(layout.groups)] for each in seen]) for name in names}


@own_argument_errors
def bound_on_loss(present: Features, absent: Features, *, delta: float = 0.0) -> float:
    """Return a lower bound on the loss (T-AUDIT).

    At this check's share of the audit's false-alarm rate.

    Args:
        present: A statistic of the releases with the record.
        absent: The same statistic without it.
        delta: The delta of the policy, if it has one.

    Returns:
        A number that the true loss exceeds, but for the stated false-alarm rate.
    """
    if delta >= 1 or not present:
        return 0.0
    count = len(next(iter(present.values())))
    teaches = (np.arange(count) % 10 < LEARNING) & (np.arange(count) < MOST_LESSONS * 10 // LEARNING)
    (present_then, absent_then), evidence = (
        [{name: numbers[chosen] for name, numbers in each.items()} for each in (present, absent)]
        for chosen in (teaches, ~teaches)
    )
    asked = Evidence(pairs=int(np.sum(~teaches)), delta=delta, log_alarms=LOG_ALARMS)
    witness, stake = learn_witness(present_then, absent_then, asked)
    first, second = evidence[::-1] if witness.reverse else evidence
    return loss_lower(witness.evaluate(first), witness.evaluate(second), stake)


def stale(layout: Layout, seen: Sequence[PublishedCells]) -> list[str]:
    """Repeated noise, within one release or between two."""
    samples = [sample_of(layout, [each], 0) for each in seen]
    problems = []
    for name in (each for each in samples[0] if is_answer(each)):
        columns = [each[name] for each in samples if name in each]
        if any(sequences_repeat(column, column, log_alarms=LOG_ALARMS) for column in columns):
            problems.append(f"{name}: noise repeats within a release")
        if any(sequences_repeat(columns[0], other, log_alarms=LOG_ALARMS) for other in columns[1:]):
            problems.append(f"{name}: noise repeats in another release")
    return problems
