"""Column types: a threshold for a group that its column cannot contain is refused, and neither what a release says about a table
nor whether the table is accepted depends on how the values happen to be stored."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recordwise.audit.audit import Finding, Runs
from recordwise.errors import RecordwiseError
from recordwise.mechanisms.unit_split import UnitSplit
from recordwise.plan.query import Query, query
from recordwise.plan.schema import Column
from recordwise.policy.conditions import ConditionColumn as Named
from recordwise.policy.constructors import By, by
from recordwise.session import Session

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
    return [*found, *(_neighbours(folder, how, columns) for columns in (COLUMNS, None))]


def _neighbours(folder: Path, how: Runs, columns: Mapping[str, Column] | None) -> Finding:
    asked = query().group_by("size", keys=[7, 44]).sum("value", UnitSplit(at=20, rho="0.001"))
    way = "declared" if columns else "undeclared"
    told = {
        _told(rows, asked, folder / f"{way}{number}", how, columns) for number, rows in enumerate(NEIGHBOURS.values())
    }
    problems = () if len(told) == 1 else ("what is said about the table depends on the records",)
    return Finding.without_numbers(f"neighbours with {way} columns", samples=len(NEIGHBOURS), problems=problems)


def _told(
    rows: Mapping[str, list[Any]], asked: Query, place: Path, how: Runs, columns: Mapping[str, Column] | None
) -> str | None:
    """What a release says about its table; None where it was refused."""
    stated: dict[str, Any] = {"tuned_on": "synthetic", "ledger": place.with_suffix(".ledger"), "dataset": "types"}
    how_opened: dict[str, Any] = {"engine": how.engine, "spark": how.spark, "columns": columns}
    try:
        with Session(rows, unit="id", measures={"value": 1}, **stated, **how_opened) as session:
            release = session.run(asked)
    except RecordwiseError:
        return None
    names = [(table.name, table.data.column_names) for table in release.tables]
    return json.dumps([names, release.description], sort_keys=True, default=str)
