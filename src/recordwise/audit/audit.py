"""Runs an audit: from records to files, from files to samples, from samples to a lower bound that is compared with the policy."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from recordwise.audit.bound import Evidence, Features, is_answer, learned, loss_lower, repeated
from recordwise.audit.published import Layout, Published, read_published
from recordwise.audit.subjects import CELL, DERIVED, FIRM, FORM, KIND, SECOND, VALUE, Record, Subject
from recordwise.session import Session

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One comparison: the loss that the files state for a record, and a lower bound on the loss observed."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """How many releases an audit makes, how large they are, and on which engine."""

    engine: str = "duckdb"
    spark: Any = None
    """A SparkSession or a master, for the Spark engine."""
    cells: int = CELLS
    runs: int = 1


def audit(subject: Subject, how: Runs, *, tell: Callable[[str], object] = lambda _: None) -> list[Finding]:
    """Publish the subject's query on neighboring tables and compare the results, record by record.

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


def publish(layout: Layout, folder: Path, how: Runs, run: int) -> Published:
    """One whole release, from a file of records to output files, read back from Parquet: every other format rounds its numbers."""
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
        outside="accept",
    ) as session:
        release = session.run(subject.ask(subject.keys_of(layout.codes())))
        release.save(out)
        published = read_published(out, layout)
        damage = (
            ()
            if session.spent() == published.policy
            else ("the policy charged to the ledger is not the published one",)
        )
    return Published(features=published.features, policy=published.policy, problems=(*published.problems, *damage))


def finding(layout: Layout, seen: Sequence[Published], name: str, how: Runs, problems: tuple[str, ...]) -> Finding:
    """The bound for one record, over all runs."""
    record = layout.subject.records[name]
    promised = max(float(each.policy.loss(_evaluated(record))) for each in seen)
    delta = max(float(each.policy.delta(_evaluated(record))) for each in seen)
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


def _evaluated(record: Record) -> dict[str, Any]:
    return {**record, CELL: "0000000A"}


def sample_of(layout: Layout, seen: Sequence[Published], place: int) -> Features:
    """The samples of one group of cells, from all runs."""
    names = [name for name in seen[0].features if all(name in each.features for each in seen)]
    return {name: np.concatenate([each.features[name][place :: len(layout.groups)] for each in seen]) for name in names}


def bound_on_loss(present: Features, absent: Features, *, delta: float = 0.0) -> float:
    """A lower bound on the loss, at this check's share of the audit's false-alarm rate (T-AUDIT).

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
    witness, stake = learned(present_then, absent_then, asked)
    first, second = evidence[::-1] if witness.reverse else evidence
    return loss_lower(witness.at(first), witness.at(second), stake)


def stale(layout: Layout, seen: Sequence[Published]) -> list[str]:
    """Repeated noise, within one release or between two."""
    samples = [sample_of(layout, [each], 0) for each in seen]
    problems = []
    for name in (each for each in samples[0] if is_answer(each)):
        columns = [each[name] for each in samples if name in each]
        if any(repeated(column, column, log_alarms=LOG_ALARMS) for column in columns):
            problems.append(f"{name}: noise repeats within a release")
        if any(repeated(columns[0], other, log_alarms=LOG_ALARMS) for other in columns[1:]):
            problems.append(f"{name}: noise repeats in another release")
    return problems
