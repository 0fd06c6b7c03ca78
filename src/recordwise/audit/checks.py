"""Checks that either pass or fail: inputs that must be refused, column types, privacy labels, threads that share a session, draws
within a draw."""

import json
import math
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from recordwise.audit.audit import Finding, Runs
from recordwise.audit.sources import audit_sources
from recordwise.errors import RecordwiseError, TuningError
from recordwise.mechanisms.gaussian import Gaussian
from recordwise.mechanisms.unit_split import UnitSplit
from recordwise.noise import sampler
from recordwise.noise.laws import DiscreteLaplace
from recordwise.noise.randomness import Secure, Seeded, words
from recordwise.noise.table import Side, table_for
from recordwise.plan.keys import Keys
from recordwise.plan.query import Query, query
from recordwise.plan.schema import Column
from recordwise.policy.conditions import ConditionColumn as Named
from recordwise.policy.constructors import By, by, constant
from recordwise.release.formats import known_formats
from recordwise.release.formats.registry import privacy_labels
from recordwise.release.tables import PRIVATE
from recordwise.session import Session

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
    """Try each of them."""
    found = []
    tried = {name: (columns, [1, 2]) for name, columns in BAD_RECORDS.items()}
    tried |= {name: (plain(), keys) for name, keys in BAD_KEYS.items()}
    for number, (name, (columns, keys)) in enumerate(tried.items()):
        path = folder / f"refused{number}.parquet"
        pyarrow.parquet.write_table(pa.table(columns), path)
        accepted = not refused(lambda path=path, keys=keys: _publish(path, keys, how))  # type: ignore[misc]
        problems = ("was accepted",) if accepted else ()
        found.append(Finding.without_numbers(f"refusal of {name}", samples=1, problems=problems))
    return found + audit_types(folder, how) + audit_marks(folder, how) + audit_sources(folder, how)


def refused(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except RecordwiseError:
        return True
    return False


def _publish(path: Path, keys: list[Any], how: Runs) -> object:
    asked = query().group_by("cell", keys=Keys.of({"cell": keys})).sum("value", Gaussian(sigma=3))
    roles: dict[str, Any] = {"unit": "id", "measures": {"value": 1}, "columns": {"cell": "integer"}}
    stated: dict[str, Any] = {"tuned_on": "synthetic", "ledger": path.with_suffix(".ledger"), "outside": "accept"}
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
        accepted = _told(ROWS, asked, folder / f"types{len(found)}", how, COLUMNS) is not None
        problems = ("was accepted",) if accepted else ()
        found.append(Finding.without_numbers(f"refusal of {name}", samples=1, problems=problems))
    return [*found, *(_neighbors(folder, how, columns) for columns in (COLUMNS, None))]


def _neighbors(folder: Path, how: Runs, columns: Mapping[str, Column] | None) -> Finding:
    asked = query().group_by("size", keys=[7, 44]).sum("value", UnitSplit(at=20, rho="0.001"))
    way = "declared" if columns else "undeclared"
    told = {
        _told(rows, asked, folder / f"{way}{number}", how, columns) for number, rows in enumerate(NEIGHBOURS.values())
    }
    problems = () if len(told) == 1 else ("the description of the table depends on the records",)
    return Finding.without_numbers(f"neighbors with {way} columns", samples=len(NEIGHBOURS), problems=problems)


def _told(
    rows: Mapping[str, list[Any]], asked: Query, place: Path, how: Runs, columns: Mapping[str, Column] | None
) -> str | None:
    """What a release says about its table; None if it was refused."""
    stated: dict[str, Any] = {"tuned_on": "synthetic", "ledger": place.with_suffix(".ledger"), "dataset": "types"}
    stated |= {"outside": "accept"}
    how_opened: dict[str, Any] = {"engine": how.engine, "spark": how.spark, "columns": columns}
    try:
        with Session(rows, unit="id", measures={"value": 1}, **stated, **how_opened) as session:
            release = session.run(asked)
    except RecordwiseError:
        return None
    names = [(table.name, table.data.column_names) for table in release.tables]
    return json.dumps([names, release.description], sort_keys=True, default=str)


class Inherited(Secure):
    """A custom bit source that poses as the secure one."""

    private = True

    def fill(self, words: Any) -> None:
        Seeded(1).fill(words)


SOURCES: dict[str, Callable[[], Any]] = {
    "noise from a seeded generator": lambda: Seeded(1),
    "noise from a source of one's own": Inherited,
}
LOOKS: dict[str, Callable[[Session], object]] = {
    "the owner's view": lambda session: session.owner.view(),
    "a summary of losses": lambda session: session.owner.loss_summary(constant(1)),
}


def audit_marks(folder: Path, how: Runs) -> list[Finding]:
    """Publish with noise that is not secret, and after the owner looked at the records."""
    path = folder / "marked.parquet"
    pyarrow.parquet.write_table(pa.table({"id": [1, 2, 3], "value": [1, 2, 3]}), path)
    found = {}
    for number, (name, source) in enumerate(SOURCES.items()):
        with _opened(path, folder / f"marked{number}.ledger", how) as session:
            out = session.run(_asked(), rng=source()).save(folder / f"marked{number}")
            found[f"privacy label of {name}"] = _called_private(out, session)
    for number, (name, look) in enumerate(LOOKS.items()):
        found[f"privacy label of {name}"] = _untold(path, folder / f"looked{number}.ledger", look, how)
    return [Finding.without_numbers(name, samples=1, problems=problems) for name, problems in found.items()]


def _asked() -> Any:
    return query().sum("value", Gaussian(sigma=3))


def _opened(path: Path, ledger: Path, how: Runs) -> Session:
    roles: dict[str, Any] = {"unit": "id", "measures": {"value": 1}, "columns": {}}
    return Session(path, ledger=ledger, tuned_on="public", engine=how.engine, spark=how.spark, **roles)


def _called_private(out: Path, session: Session) -> tuple[str, ...]:
    """Files and ledger must state what the noise was."""
    told = {json.loads((out / name).read_text(encoding="utf-8"))["mark"] for name in ("release.json", "policy.json")}
    told |= {*privacy_labels(out, known_formats().values()).values(), session.history()[-1].body["mark"]}
    return ("calls itself private",) if PRIVATE in told else ()


def _untold(path: Path, ledger: Path, look: Callable[[Session], object], how: Runs) -> tuple[str, ...]:
    """Neither the session that looked nor a later one on its ledger may publish without stating the reason."""
    problems = []
    with _opened(path, ledger, how) as session:
        look(session)
        problems += ["calls itself untuned after a look"] if _published(session) else []
    with _opened(path, ledger, how) as later:
        problems += ["calls itself untuned after a look in another session"] if _published(later) else []
    return tuple(problems)


def _published(session: Session) -> bool:
    try:
        session.run(_asked())
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
    """Each thread queries records of one kind; a refused query yields no answer."""
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
    """Draw between any two lines of a draw, as a signal handler or a finalizer may: the draw must remain what it was."""
    law = DiscreteLaplace(20)
    table = table_for(Side(exponent=law.exponent, inflection=0))

    def attempts() -> list[int]:
        """The attempts without machine code, which are the ones that keep memory for the next."""
        out = np.zeros(ATTEMPTS, dtype=np.int64)
        sampler.attempt(table, words(Seeded(1), 2 * ATTEMPTS), out)
        return list(map(int, out))

    def sample() -> list[int]:
        return list(map(int, law.sample(ATTEMPTS, Seeded(1))))

    def another() -> None:
        sampler.attempt(table, words(Seeded(2), 2 * ATTEMPTS), np.zeros(ATTEMPTS, dtype=np.int64))
        law.sample(ATTEMPTS, Seeded(2))

    changed = any(_interrupted(drawn, another) != drawn() for drawn in (attempts, sample))
    problems = ("a draw within a draw changed its noise",) if changed else ()
    return Finding.without_numbers("draws within a draw", samples=2 * ATTEMPTS, problems=problems)


def _interrupted(drawn: Callable[[], list[int]], act: Callable[[], None]) -> list[int]:
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
