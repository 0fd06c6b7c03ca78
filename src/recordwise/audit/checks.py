"""Checks that pass or fail: series, lists, sources, inputs, labels and threads."""

import json
import math
import shutil
import struct
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from recordwise.audit.audit import Finding, Runs
from recordwise.errors import AlreadyReleasedError, LedgerError, ParameterError, RecordwiseError, TuningError
from recordwise.exact.arithmetic import FloatArray
from recordwise.ledger.entries import periods_of
from recordwise.mechanisms.base import Mechanism
from recordwise.mechanisms.gaussian import Gaussian, UnitSplit
from recordwise.mechanisms.sized import Sized
from recordwise.noise import sampler
from recordwise.noise.laws import DiscreteLaplace
from recordwise.noise.randomness import Secure, Seeded, random_words
from recordwise.noise.sampler import Side, table_for
from recordwise.plan.keys.keys import FromRelease, Keys
from recordwise.plan.query import Query, query
from recordwise.plan.schema import Column
from recordwise.plan.sources import read_code_file
from recordwise.policy import series as histories
from recordwise.policy.columns import ConditionColumn as Named
from recordwise.policy.constructors import By, by, constant, gaussian_sum
from recordwise.policy.json import PolicyFile
from recordwise.policy.policy import Policy
from recordwise.policy.series import Series, Step
from recordwise.release.files import load_release
from recordwise.release.formats import known_formats
from recordwise.release.formats.registry import privacy_labels
from recordwise.release.published import Published
from recordwise.release.tables import PRIVATE
from recordwise.session import Session

# Attacks on a series of two periods: what its ledger says of histories, releases resumed or retried, second budgets.


SIGMAS = {"2025": 3, "2026": 30}
"""The noise of each period; they differ, so that a loss charged to another period's record is not the right one."""
HISTORIES = ({"2025": 40, "2026": 3}, {"2025": 3, "2026": 40}, {"2025": 7}, {"2026": 7})
"""Units that shrink, grow, leave and enter: their values by period."""
SPELLINGS = ("2026/", "2O26", "\uff12\uff10\uff12\uff16", "2026Q1")
"""A period that was charged, in other letters or as a part of it: none of them is a new period."""
PERIOD_CELLS = 50
ROUNDING = 1e-9


def audit_two_periods(folder: Path, how: Runs) -> Finding:
    """Check that the ledger covers two periods, one resumed and retried."""
    problems: list[str] = []
    for period in SIGMAS:
        problems += _publish_period(folder, period, how)
    with _period_session(folder, "2026", how) as session:
        events = session.history()
    charges = [event for event in events if event.kind == "charged"]
    problems += ["a retry paid twice"] if len(charges) > len(SIGMAS) else []
    policies = {each.name: each.spent for each in periods_of(events)}
    for history in HISTORIES:
        records = {period: {"value": value} for period, value in history.items()}
        said = sum(histories.history_losses(policies, records).values())
        lost = sum(value**2 / (2 * SIGMAS[period] ** 2) for period, value in history.items())
        problems += ["a history lost more than the ledger says"] if said < lost * (1 - ROUNDING) else []
    problems += _second_budgets(folder, how)
    return Finding.without_numbers(
        "a series of two periods", samples=len(HISTORIES), problems=tuple(dict.fromkeys(problems))
    )


def _publish_period(folder: Path, period: str, how: Runs) -> list[str]:
    """Publish one period as an unattended process does."""
    asked = _period_query(SIGMAS[period])
    with _period_session(folder, period, how) as session:
        drawn = session.run(asked, refuse_repeat=True, keep=True)
    with _period_session(folder, period, how) as session:
        resumed = session.unfinished.resume(asked)
    for again in (asked, asked.named("answers", title="A corrected title")):
        with _period_session(folder, period, how) as session, suppress(AlreadyReleasedError):
            session.run(again, refuse_repeat=True, keep=True)
    same = resumed is not None and resumed.table.equals(drawn.table)
    spread = float(np.std(drawn.table.column("answer").to_numpy()))
    # Of 50 empty cells: the chance that a sound sampler is below half its sigma is below 1e-9 (chi-square).
    narrow = spread < SIGMAS[period] / 2
    return ([] if same else ["a resumed release was drawn again"]) + (["less noise than stated"] if narrow else [])


def _second_budgets(folder: Path, how: Runs) -> list[str]:
    """Check that a spent budget stays spent."""
    with _period_session(folder, None, how, ledger="spent.ledger", budget=constant(1)) as session:
        session.run(query().count(Gaussian(rho=1)))
    problems = []
    for name, period in [("spent", "2026"), *(("two-periods", spelling) for spelling in SPELLINGS)]:
        with suppress(LedgerError, ParameterError), _period_session(folder, period, how, ledger=f"{name}.ledger"):
            problems.append("a period has a second budget")
    return problems


def _period_query(sigma: int) -> Query:
    keys = {"cell": [str(number) for number in range(PERIOD_CELLS)]}
    return query().group_by("cell", keys=keys).sum("value", Gaussian(sigma=sigma), alias="answer")


def _period_session(
    folder: Path, period: str | None, how: Runs, *, ledger: str = "two-periods.ledger", **more: Any
) -> Session:
    records = pa.table({"id": [1], "cell": ["elsewhere"], "value": [5]})
    stated: dict[str, Any] = {"tuned_on": "synthetic", "max_outside": "accept", "ledger": folder / ledger}
    stated |= {"engine": how.engine, "spark": how.spark, **more}
    stated["series"] = None if period is None else Series(name="two periods", period=period)
    return Session(records, unit="id", measures={"value": 1}, columns={"cell": "text"}, **stated)


# A release and its refinement: averages have the error that is stated, and other records are refused.


STAGE_SIGMAS = (30, 10)
STAGE_CELLS = 400


def audit_two_stages(folder: Path, how: Runs) -> Finding:
    """Check that a refinement is of the same records, as accurate as planned and paid once."""
    problems: list[str] = []
    first, second = (_stage_query(sigma) for sigma in STAGE_SIGMAS)
    with _stage_session(folder, 5, how) as session:
        session.run(first, keep=True).save(folder / "first")
        earlier = load_release(folder / "first")
        refined = session.run(second, refine=earlier, fixed_in_advance=True, refuse_repeat=True)
        spent = float(session.spent().loss({"value": 30}))
        again = is_refused(lambda: session.run(second, refine=earlier, fixed_in_advance=True, refuse_repeat=True))
    problems += [] if again else ["a retry paid twice"]
    problems += ["both stages cost more than one release"] if spent > 4.5 else []
    answers = refined.table.column("answer").to_numpy()
    # Empty cells: the sum of 400 squares is off by a half with a chance below 1e-9 (chi-square).
    ratio = float(np.mean((answers / STAGE_SIGMAS[1]) ** 2))
    problems += [] if 1 / 2 < ratio < 3 / 2 else ["errors unlike those of the plan"]
    with _stage_session(folder, 6, how) as session:
        if not is_refused(lambda: session.run(second, refine=earlier, fixed_in_advance=True)):
            problems.append("answers about other records were averaged")
    return Finding.without_numbers("two stages", samples=STAGE_CELLS, problems=tuple(problems))


# A series with carried noise and a correction: errors and their changes are those of the plan, every cell of a revised table
# gets fresh noise, fractions say nothing about the last total, and who moves pays more than who stays.


CARRIED = Fraction(4, 5)
CARRIED_SIGMA = 10


def audit_carried(folder: Path, how: Runs) -> Finding:
    """Check two periods with carried noise and a correction."""
    problems: list[str] = []
    asked = _stage_query(CARRIED_SIGMA)
    with _carried_session(folder, "2020", 0, 5, how) as session:
        first = load_release(session.run(asked).save(folder / "carried2020"))
    with _carried_session(folder, "2021", 0, 7, how) as session:
        if not is_refused(lambda: session.run(asked, carry=first, old_records=_stage_records(6))):
            problems.append("answers about other records were carried on")
            return Finding.without_numbers("carried noise", samples=STAGE_CELLS, problems=tuple(problems))
        done = session.run(asked, carry=first, old_records=_stage_records(5))
        second = load_release(done.save(folder / "carried2021"))
        if not is_refused(lambda: session.run(asked, carry=first, old_records=_stage_records(5))):
            problems.append("noise was carried twice, and leaving paid once")
    with _carried_session(folder, "2021", 1, 7, how) as session:
        third = session.run(_stage_query(2 * CARRIED_SIGMA), revise=second, old_records=_stage_records(7))
        charges = [each.body for each in session.history() if each.kind == "charged"]
    # The first cell has a total of 5, then of 7; all others are empty.
    answers = [each.table.column("answer").to_numpy().astype(np.float64)[1:] for each in (first, second, third)]
    problems += [*_carried_errors(*answers), *_carried_losses(charges)]
    return Finding.without_numbers("carried noise", samples=STAGE_CELLS, problems=tuple(problems))


def _carried_errors(before: FloatArray, now: FloatArray, corrected: FloatArray) -> list[str]:
    """Compare the noise of empty cells with what a plan states."""
    expected = {
        "levels": (np.concatenate([before, now]), CARRIED_SIGMA**2),
        "changes": (now - before, 2 * CARRIED_SIGMA**2 * float(1 - CARRIED)),
        "corrections": (corrected - now, 3 * CARRIED_SIGMA**2),
    }
    # The sum of 400 squares is off by 0.4 with a chance below 1e-7 (chi-square).
    wrong = any(abs(float(np.mean(noise**2)) / variance - 1) > 0.4 for noise, variance in expected.values())
    problems = ["errors unlike those of the plan"] if wrong else []
    if np.mean(corrected == now) > 0.2:
        problems.append("cells were published again without fresh noise")
    # Fifths of noise have all remainders; a lattice that is too coarse leaves the one that the last total has.
    if len(set(np.rint(5 * (now - float(CARRIED) * before)) % 5)) < 5:
        problems.append("the last total shows in fractions")
    return problems


def _carried_losses(charges: list[Any]) -> list[str]:
    """Compare what units of each kind are said to lose with the loss of their shifts."""
    steps = [Step.from_json(each["step"]) for each in charges]
    here, there = {"value": 30, "cell": "1"}, {"value": 30, "cell": "2"}
    fresh, left = 30**2 / (2 * CARRIED_SIGMA**2), 1 - float(CARRIED) ** 2
    known = {
        "a mover was charged as one that stays": (steps[1].loss(here, there), fresh * (1 + float(CARRIED) ** 2) / left),
        "one that stays was charged wrongly": (steps[1].loss(here, here), fresh * float(1 - CARRIED) ** 2 / left),
        "a correction was charged by the net change over cells": (steps[2].loss(here, there), fresh * 2 / 3),
        "a record that did not change was charged": (steps[2].loss(here, here), 0.0),
    }
    wrong = [name for name, (found, true) in known.items() if not math.isclose(found, true, rel_tol=1e-3, abs_tol=1e-9)]
    paid = sum(float(Policy.from_json(each["policy"]).loss({"value": 30})) for each in charges[:2])
    return wrong + (["a mover lost more than was charged"] if fresh + steps[1].loss(here, there) > paid else [])


def _stage_records(value: int) -> pa.Table:
    """Return cells that are empty but for one."""
    return pa.table({"id": [1], "cell": ["0"], "value": [value]})


def _carried_session(folder: Path, period: str, revision: int, value: int, how: Runs) -> Session:
    """Return a session of a series whose noise is carried on."""
    most = constant(1) + gaussian_sum("value", sigma=1)
    series = Series(name="carried", period=period, revision=revision, every_period=most, carry=CARRIED, staying=most)
    stated: dict[str, Any] = {"tuned_on": "synthetic", "ledger": folder / "carried.ledger", "series": series}
    stated |= {"engine": how.engine, "spark": how.spark, "dataset": "carried"}
    return Session(_stage_records(value), unit="id", measures={"value": 1}, columns={"cell": "text"}, **stated)


def _stage_query(sigma: int) -> Query:
    keys = {"cell": [str(number) for number in range(STAGE_CELLS)]}
    return query().group_by("cell", keys=keys).sum("value", Gaussian(sigma=sigma), alias="answer")


def _stage_session(folder: Path, value: int, how: Runs) -> Session:
    """Return a session on those cells."""
    stated: dict[str, Any] = {"tuned_on": "synthetic", "ledger": folder / "two-stages.ledger"}
    stated |= {"engine": how.engine, "spark": how.spark}
    return Session(
        _stage_records(value), unit="id", measures={"value": 1}, columns={"cell": "text"}, dataset="stages", **stated
    )


# Attacks with tables of our own releases, offered as public lists of sizes: all are refused, and so is a release of
# another ledger as an earlier one. Noise scaled by a table that is not private would reveal its totals within a
# factor of 2; noise scaled by a table that this ledger was not charged for would promise a budget that does not cover
# it (T-SIZE).


CELLS = {"cell": [1, 2]}
SIZE, SOURCE = "value", "public: somebody"
SIZED_RECORDS = {"id": [1, 2, 3], "cell": [1, 1, 2], "value": [1, 2, 3]}


def audit_lists(folder: Path, how: Runs) -> list[Finding]:
    """Check that published files, copies and folders are refused as sizes.

    Of a table published privately and from a seed.
    """
    places = {"private": folder / "listed", "NOT PRIVATE": folder / "seeded"}
    for kind, place in places.items():
        rng = None if kind == "private" else Seeded(1)
        with _sized_session(folder / "listed.ledger", how) as session:
            session.run(_sized_query(Keys.of(CELLS), Gaussian(sigma=3)), rng=rng).save(place)
    tried: dict[str, Callable[[], Keys]] = {}
    for kind, place in places.items():
        copy = folder / f"{place.name}.parquet"
        shutil.copy(place / "cell.parquet", copy)
        offered = {"file": copy, "file in its folder": place / "cell.csv"}
        tried |= {f"a {kind} {name} as sizes": _from_file(path) for name, path in offered.items()}
        tried[f"a {kind} table as sizes"] = _from_table(copy)
        tried[f"a {kind} release of another ledger as sizes"] = _from_release(place)
    return [
        Finding.without_numbers(f"refusal of {name}", samples=1, problems=_problems(given, folder, number, how))
        for number, (name, given) in enumerate(tried.items())
    ]


def _from_file(path: Path) -> Callable[[], Keys]:
    def given() -> Keys:
        # CSV files are read as text, and so are their numbers.
        table = read_code_file(path)
        listed: dict[str, list[Any]] = {"cell": [int(each) for each in table["cell"].to_pylist()]}
        listed |= {SIZE: [float(each) for each in table[SIZE].to_pylist()]}
        return Keys.of(listed, size=SIZE, sized_on=SOURCE)

    return given


def _from_table(path: Path) -> Callable[[], Keys]:
    return lambda: Keys.of(pyarrow.parquet.read_table(path).select(["cell", SIZE]), size=SIZE, sized_on=SOURCE)


def _from_release(folder: Path) -> Callable[[], Keys]:
    return lambda: Keys.of(CELLS, size=FromRelease(release=str(folder), column=SIZE))


def _problems(given: Callable[[], Keys], folder: Path, number: int, how: Runs) -> tuple[str, ...]:
    try:
        with _sized_session(folder / f"sized{number}.ledger", how) as session:
            session.run(_sized_query(given(), Sized(Gaussian(sigma=3), floor=1)))
    except RecordwiseError:
        return ()
    return ("was taken as a public list",)


def _sized_query(keys: Keys, mechanism: Mechanism) -> Query:
    return query().group_by("cell", keys=keys).sum("value", mechanism, alias=SIZE)


def _sized_session(ledger: Path, how: Runs) -> Session:
    roles: dict[str, Any] = {"unit": "id", "measures": {"value": 1}, "columns": {"cell": "integer"}}
    # Wide enough for every release here, so that nothing but the list can be refused.
    stated: dict[str, Any] = {"tuned_on": "public", "budget": gaussian_sum("value", sigma="0.1"), "dataset": "listed"}
    return Session(SIZED_RECORDS, ledger=ledger, engine=how.engine, spark=how.spark, **roles, **stated)


# Attacks with sources that an engine could read in two ways: parts of different types, contradicting folders, false
# statistics.


FIRST: dict[str, pa.Array] = {"id": pa.array([1, 2]), "cell": pa.array(["a", "b"]), "value": pa.array([7, 8])}
SECOND: dict[str, pa.Array] = FIRST | {"id": pa.array([3, 4])}
BAD_PARTS: dict[str, dict[str, pa.Array]] = {
    "ids in a second type": SECOND | {"id": pa.array(["1", "4"])},
    "values with a fraction in a second part": SECOND | {"value": pa.array([1.6, 2.0])},
    "values as text in a second part": SECOND | {"value": pa.array(["1_000", "0x10"])},
    "no values in a second part": {name: column for name, column in SECOND.items() if name != "value"},
    "a column in two cases in a second part": SECOND | {"VALUE": SECOND["value"]},
}
HELD, STATED = 70_007, 5


def audit_sources(folder: Path, how: Runs) -> list[Finding]:
    """Check that false file statistics leave published numbers unchanged.

    Opens each kind of source.
    """
    found = []
    _write(FIRST, folder / "good" / "a.parquet")
    _write(SECOND, folder / "good" / "b.parquet")
    _publish_sums(folder / "good", how)
    for number, (name, second) in enumerate(BAD_PARTS.items()):
        place = folder / f"parts{number}"
        _write(FIRST, place / "a.parquet")
        _write(second, place / "b.parquet")
        found.append(_refusal(name, place, how))
    place = folder / "named"
    _write(FIRST, place / "cell=z" / "p.parquet")
    found.append(_refusal("a folder that contradicts its files", place, how))
    return [*found, _statistics(folder / "stated", how)]


def _write(columns: dict[str, pa.Array], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pa.table(columns), path, compression="none", use_dictionary=False)


def _refusal(name: str, source: Path, how: Runs) -> Finding:
    try:
        _publish_sums(source, how)
    except RecordwiseError:
        return Finding.without_numbers(f"refusal of {name}", samples=1, problems=())
    return Finding.without_numbers(f"refusal of {name}", samples=1, problems=("was accepted",))


def _statistics(folder: Path, how: Runs) -> Finding:
    """Compare what is published with true and with false file statistics."""
    columns = FIRST | {"cell": pa.array(["b", "b"]), "value": pa.array([HELD, HELD])}
    true, false = folder / "true.parquet", folder / "false.parquet"
    _write(columns, true)
    _write(columns, false)
    _falsify(false)
    same = _publish_sums(true, how) == _publish_sums(false, how)
    problems = () if same else ("statistics in a file decide what is counted",)
    return Finding.without_numbers("false statistics in a file", samples=2, problems=problems)


def _falsify(path: Path) -> None:
    """Write false minima and maxima into the file's footer."""
    written = path.read_bytes()
    (length,) = struct.unpack("<I", written[-8:-4])
    footer = written[-8 - length : -8].replace(struct.pack("<q", HELD), struct.pack("<q", STATED))
    path.write_bytes(written[: -8 - length] + footer.replace(b"\x01b", b"\x01a") + written[-8:])


def _publish_sums(source: Path, how: Runs) -> list[dict[str, list[Any]]]:
    """Publish sums under three kinds of selection, with repeated noise.

    By a condition on the cell, by one on the value, and by a group. Each is a separate pass: conditions of
    queries in one pass are decided by its results, not by the file.
    """
    mechanism = Gaussian(sigma=3)
    asked = [query().where(f"cell = '{cell}'").sum("value", mechanism) for cell in "ab"]
    asked += [query().where(f"value < {STATED + 1}").count(mechanism)]
    asked += [query().group_by("cell", keys=["a", "b"]).count(mechanism)]
    roles: dict[str, Any] = {"unit": "id", "measures": {"value": 1}, "columns": {"cell": "text"}}
    stated: dict[str, Any] = {"tuned_on": "synthetic", "ledger": source.with_suffix(".ledger"), "max_outside": "accept"}
    with Session(source, engine=how.engine, spark=how.spark, **roles, **stated) as session:
        return [session.run(each, rng=Seeded(1)).table.to_pydict() for each in asked]


# Inputs that must be refused, column types, privacy labels, threads that share a session, draws within a draw.


Columns = dict[str, list[Any]]


def plain() -> Columns:
    return {"id": [1, 2, 3], "cell": [1, 1, 2], "value": [1.0, 2.0, 3.0]}


BAD_RECORDS: dict[str, Columns] = {
    "an id that is there twice": plain() | {"id": [1, 1, 3]},
    "a negative value": plain() | {"value": [-1.0, 2.0, 3.0]},
    "a value that is not a number": plain() | {"value": [float("nan"), 2.0, 3.0]},
    "an infinite value": plain() | {"value": [float("inf"), 2.0, 3.0]},
    "a value between two steps": plain() | {"value": [0.5, 2.0, 3.0]},
    "a value beyond its bound": plain() | {"value": [2.0**60, 2.0, 3.0]},
    "no value": plain() | {"value": [None, 2.0, 3.0]},
}
BAD_KEYS: dict[str, list[Any]] = {
    "a key that is there twice": [1, 2, 2],
    "keys that are the same number": ["1", "01", "2"],
    "a key that is none": [1, 2, None],
}


def audit_refusals(folder: Path, how: Runs) -> list[Finding]:
    """Try all that must be refused or labeled."""
    return [found for check in REFUSALS for found in check(folder, how)]


def audit_inputs(folder: Path, how: Runs) -> list[Finding]:
    """Try each bad table and list of keys."""
    found = []
    tried = {name: (columns, [1, 2]) for name, columns in BAD_RECORDS.items()}
    tried |= {name: (plain(), keys) for name, keys in BAD_KEYS.items()}
    for number, (name, (columns, keys)) in enumerate(tried.items()):
        path = folder / f"refused{number}.parquet"
        pyarrow.parquet.write_table(pa.table(columns), path)
        accepted = not is_refused(lambda path=path, keys=keys: _publish(path, keys, how))  # type: ignore[misc]
        problems = ("was accepted",) if accepted else ()
        found.append(Finding.without_numbers(f"refusal of {name}", samples=1, problems=problems))
    return found


def is_refused(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except RecordwiseError:
        return True
    return False


def _publish(path: Path, keys: list[Any], how: Runs) -> object:
    asked = query().group_by("cell", keys=Keys.of({"cell": keys})).sum("value", Gaussian(sigma=3))
    roles: dict[str, Any] = {"unit": "id", "measures": {"value": 1}, "columns": {"cell": "integer"}}
    stated: dict[str, Any] = {"tuned_on": "synthetic", "ledger": path.with_suffix(".ledger"), "max_outside": "accept"}
    with Session(path, engine=how.engine, spark=how.spark, **roles, **stated) as session:
        return session.run(asked)


COLUMNS = {
    "open": Column(name="open", type="boolean"),
    "size": Column(name="size", type="integer", null="category"),
}
ROWS: dict[str, list[Any]] = {"id": [1, 2, 3], "value": [1000, 2, 3], "open": [True, False, True], "size": [44, 7, 7]}
BAD_THRESHOLDS: dict[str, By] = {
    "a threshold for 1 in a column of truth values": by("open", {1: 20, 0: 20}, default=1000),
    "a threshold for a text in a column of numbers": by("size", {"44": 20}, default=1000),
    "a threshold by a prefix of a number": by(Named("size", 1), {4: 20}, default=1000),
    "a threshold by a column that is not there": by("kind", {"a": 20}, default=1000),
}
NEIGHBOURS: dict[str, dict[str, list[Any]]] = {
    "as it is": ROWS,
    "with a missing value": {name: [*each, {"id": 4, "size": math.nan}.get(name, 1)] for name, each in ROWS.items()}
    | {"open": [True, False, True, True]},
    "with missing values only": {"id": [4], "value": [1], "open": [True], "size": [None]},
    "without a record": {name: [] for name in ROWS},
}
"""Tables that differ by added or removed records."""


def audit_types(folder: Path, how: Runs) -> list[Finding]:
    """Try every threshold, and run the same query on neighboring tables."""
    found: list[Finding] = []
    for name, at in BAD_THRESHOLDS.items():
        asked = query().group_by("open", keys=[True, False]).sum("value", UnitSplit(at=at, rho="0.001"))
        accepted = _release_text(ROWS, asked, folder / f"types{len(found)}", how, COLUMNS) is not None
        problems = ("was accepted",) if accepted else ()
        found.append(Finding.without_numbers(f"refusal of {name}", samples=1, problems=problems))
    return [*found, *(_neighbors(folder, how, columns) for columns in (COLUMNS, None))]


def _neighbors(folder: Path, how: Runs, columns: Mapping[str, Column] | None) -> Finding:
    asked = query().group_by("size", keys=[7, 44]).sum("value", UnitSplit(at=20, rho="0.001"))
    way = "declared" if columns else "undeclared"
    told = {
        _release_text(rows, asked, folder / f"{way}{number}", how, columns)
        for number, rows in enumerate(NEIGHBOURS.values())
    }
    problems = () if len(told) == 1 else ("the description of the table depends on the records",)
    return Finding.without_numbers(f"neighbors with {way} columns", samples=len(NEIGHBOURS), problems=problems)


def _release_text(
    rows: Mapping[str, list[Any]], published: Query, path: Path, how: Runs, columns: Mapping[str, Column] | None
) -> str | None:
    """What a release says about its table; None if it was refused."""
    stated: dict[str, Any] = {"tuned_on": "synthetic", "ledger": path.with_suffix(".ledger"), "dataset": "types"}
    stated |= {"max_outside": "accept"}
    how_opened: dict[str, Any] = {"engine": how.engine, "spark": how.spark, "columns": columns}
    try:
        with Session(rows, unit="id", measures={"value": 1}, **stated, **how_opened) as session:
            release = session.run(published)
    except RecordwiseError:
        return None
    names = [(table.name, table.data.column_names) for table in release.tables]
    return json.dumps([names, dict(release.published.form)], sort_keys=True, default=str)


class ImpostorSource(Secure):
    """A custom bit source that poses as the secure one."""

    private = True

    def fill(self, words: Any) -> None:
        Seeded(1).fill(words)


SOURCES: dict[str, Callable[[], Any]] = {
    "noise from a seeded generator": lambda: Seeded(1),
    "noise from a source of one's own": ImpostorSource,
}
LOOKS: dict[str, Callable[[Session], object]] = {
    "the owner's view": lambda session: session.owner.view(),
    "a summary of losses": lambda session: session.owner.loss_summary(constant(1)),
    "a count of records and cells": lambda session: session.owner.preflight(_sum_query()),
    "the cells that no key names": lambda session: session.owner.unmatched(_sum_query()),
    "the past": lambda session: session.owner.view(data="past"),
}


def audit_marks(folder: Path, how: Runs) -> list[Finding]:
    """Publish with noise that is not secret, and after a look."""
    path = folder / "marked.parquet"
    pyarrow.parquet.write_table(pa.table({"id": [1, 2, 3], "value": [1, 2, 3]}), path)
    found = {}
    for number, (name, source) in enumerate(SOURCES.items()):
        with _open_session(path, folder / f"marked{number}.ledger", how) as session:
            out = session.run(_sum_query(), rng=source()).save(folder / f"marked{number}")
            found[f"privacy label of {name}"] = _label_problems(out, session)
    for number, (name, look) in enumerate(LOOKS.items()):
        found[f"privacy label of {name}"] = _untold(path, folder / f"looked{number}.ledger", look, how)
    return [Finding.without_numbers(name, samples=1, problems=problems) for name, problems in found.items()]


REFUSALS = (audit_inputs, audit_types, audit_marks, audit_lists, audit_sources)
"""What ``audit_refusals`` tries, one after the other."""


def _sum_query() -> Any:
    return query().sum("value", Gaussian(sigma=3))


def _open_session(path: Path, ledger: Path, how: Runs) -> Session:
    roles: dict[str, Any] = {"unit": "id", "measures": {"value": 1}, "columns": {}}
    return Session(path, ledger=ledger, tuned_on="public", engine=how.engine, spark=how.spark, **roles)


def _label_problems(out: Path, session: Session) -> tuple[str, ...]:
    """Files and ledger must state what the noise was."""
    read = Published.load(out / "release.json"), PolicyFile.load(out / "policy.json")
    labels = {each.privacy_label for each in read}
    labels |= {*privacy_labels(out, known_formats().values()).values(), session.history()[-1].body["mark"]}
    return ("calls itself private",) if PRIVATE in labels else ()


def _untold(path: Path, ledger: Path, look: Callable[[Session], object], how: Runs) -> tuple[str, ...]:
    """Check that no session publishes after a look without a reason."""
    problems = []
    with _open_session(path, ledger, how) as session:
        look(session)
        problems += ["calls itself untuned after a look"] if _is_published(session) else []
    with _open_session(path, ledger, how) as later:
        problems += ["calls itself untuned after a look in another session"] if _is_published(later) else []
        later.tuning_reason = "an audit"
        looks = later.run(_sum_query()).published.looks or {}
        problems += ["states another number of looks than there were"] if list(looks.values()) != [1] else []
    return tuple(problems)


def _is_published(session: Session) -> bool:
    try:
        session.run(_sum_query())
    except TuningError:
        return False
    return True


THREADS = 4
QUESTIONS = 3
"""Queries per thread, one after the other."""
RECORDS = 10
APART = 10**6
"""Values of different kinds differ by at least this many standard deviations of the noise, so an answer shows whose it is."""


def audit_threads(folder: Path, how: Runs) -> Finding:
    """Check that no thread receives another thread's answer."""
    path = folder / "threads.parquet"
    kinds = [kind for kind in range(THREADS) for _ in range(RECORDS)]
    values = [APART * 2**kind for kind in kinds]
    pyarrow.parquet.write_table(pa.table({"id": range(len(kinds)), "kind": kinds, "value": values}), path)
    with Session(
        path,
        unit="id",
        measures={"value": 1},
        columns={"kind": "integer"},
        tuned_on="synthetic",
        engine=how.engine,
        spark=how.spark,
        ledger=folder / "threads.ledger",
    ) as session:
        session.validate()
        with ThreadPoolExecutor(THREADS) as pool:
            right = list(pool.map(lambda kind: _right(session, kind), range(THREADS)))
    problems = () if all(right) else ("a thread received the answer to another thread's query",)
    return Finding.without_numbers("threads that share a session", samples=THREADS * QUESTIONS, problems=problems)


def _right(session: Session, kind: int) -> bool:
    asked = query().where(f"kind = {kind}").sum("value", Gaussian(sigma=1), alias="answer")
    wanted, answers = RECORDS * APART * 2**kind, []
    for _ in range(QUESTIONS):
        try:
            (table,) = session.run(asked).tables
        except RecordwiseError:
            continue
        answers.append(table.data.column("answer")[0].as_py())
    return all(abs(answer - wanted) < APART / 2 for answer in answers)


ATTEMPTS = 500


def audit_reentry() -> Finding:
    """Check that draws inside a draw, as by signals, leave it unchanged."""
    law = DiscreteLaplace(20)
    table = table_for(Side(exponent=law.exponent, inflection=0))

    def attempts() -> list[int]:
        """Return the attempts without machine code, which reuse memory."""
        out = np.zeros(ATTEMPTS, dtype=np.int64)
        sampler.attempt(table, random_words(Seeded(1), 2 * ATTEMPTS), out)
        return list(map(int, out))

    def sample() -> list[int]:
        return list(map(int, law.sample(ATTEMPTS, Seeded(1))))

    def another() -> None:
        sampler.attempt(table, random_words(Seeded(2), 2 * ATTEMPTS), np.zeros(ATTEMPTS, dtype=np.int64))
        law.sample(ATTEMPTS, Seeded(2))

    changed = any(_run_interrupted(drawn, another) != drawn() for drawn in (attempts, sample))
    problems = ("a draw within a draw changed its noise",) if changed else ()
    return Finding.without_numbers("draws within a draw", samples=2 * ATTEMPTS, problems=problems)


def _run_interrupted(drawn: Callable[[], list[int]], act: Callable[[], None]) -> list[int]:
    def trace(frame: Any, event: str, _: object) -> Any:
        if event == "line":
            act()
        return trace if frame.f_globals["__name__"].startswith("recordwise.noise.") else None

    drawn()
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return drawn()
    finally:
        sys.settrace(before)
