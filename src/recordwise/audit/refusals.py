"""Inputs that must be refused with nothing published, because a record would count twice or lose more than its policy states; and
releases that may be published only with a label."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from recordwise.audit.audit import Finding, Runs
from recordwise.audit.marks import audit_marks
from recordwise.audit.types import audit_types
from recordwise.errors import RecordwiseError
from recordwise.mechanisms.gaussian import Gaussian
from recordwise.plan.keys import Keys
from recordwise.plan.query import query
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
    return found + audit_types(folder, how) + audit_marks(folder, how)


def refused(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except RecordwiseError:
        return True
    return False


def _publish(path: Path, keys: list[Any], how: Runs) -> object:
    asked = query().group_by("cell", keys=Keys.of({"cell": keys})).sum("value", Gaussian(sigma=3))
    roles: dict[str, Any] = {"unit": "id", "measures": {"value": 1}, "columns": {"cell": "integer"}}
    stated: dict[str, Any] = {"tuned_on": "synthetic", "ledger": path.with_suffix(".ledger")}
    with Session(path, engine=how.engine, spark=how.spark, **roles, **stated) as session:
        return session.run(asked)
