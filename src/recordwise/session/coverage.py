"""How many records the published cells of a plan hold. A list of keys that misses its records publishes noise, at full cost.

The numbers are CONFIDENTIAL. A release learns from them only whether too many records are outside (docs/limits.md).
"""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from recordwise.errors import OutsideError, ParameterError
from recordwise.exact.numbers import Number, rational
from recordwise.plan.describe import table_name
from recordwise.plan.fields import Level
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.plan.predicates import Predicate
from recordwise.plan.results import FoundTotals, TableTotals
from recordwise.plan.statistics import CountUnits

ACCEPT = "accept"
USUAL_SHARE = Fraction(1, 100)
COUNTED = CountUnits()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Coverage:
    """CONFIDENTIAL: the records that a table is about, those in its public cells, and how many of the cells hold none."""

    name: str
    table: PlannedTable
    records: int
    inside: int
    cells: int
    empty: int

    @property
    def outside(self) -> int:
        return self.records - self.inside

    def __repr__(self) -> str:
        return "<Coverage: CONFIDENTIAL>"


def read_outside(given: Number | str | None) -> Fraction | None:
    """The share of records that may be outside; None where any share is accepted."""
    if given is None or given == ACCEPT:
        return None
    share = rational(given, parameter="outside")
    if not 0 <= share < 1:
        raise ParameterError(
            parameter="outside",
            problem="must be a share of the records below 1, or 'accept'",
            advice="0.01 is one in a hundred.",
        )
    return share


def public_tables(plan: Plan) -> tuple[PlannedTable, ...]:
    """The tables whose cells are listed."""
    return tuple(table for table in plan.tables() if table.shape.groups and plan.selection(table) is None)


def covered_tables(plan: Plan) -> tuple[PlannedTable, ...]:
    """The tables of a plan with a count of records in each public cell, and behind them one count for each condition."""
    public = public_tables(plan)
    asked = [_counted(table) if table in public else table for table in plan.tables()]
    wholes: dict[Predicate | None, PlannedTable] = {}
    for table in public:
        whole = Level((), Fraction(1))
        wholes.setdefault(
            table.condition, replace(table, level=-1 - len(wholes), shape=whole, totals=(COUNTED,), bins=(), rest=None)
        )
    return (*asked, *wholes.values())


def _counted(table: PlannedTable) -> PlannedTable:
    return replace(table, totals=tuple(dict.fromkeys((*table.totals, COUNTED))))


Found = tuple[TableTotals | FoundTotals, ...]


def without_counts(plan: Plan, found: Found) -> Found:
    """What the plan itself asked for."""
    return tuple(replace(each, table=table) for each, table in zip(found, plan.tables()))


def coverage(plan: Plan, found: Found) -> tuple[Coverage, ...]:
    """CONFIDENTIAL: what the counts of ``covered_tables`` say."""
    asked, wholes = found[: len(plan.tables())], found[len(plan.tables()) :]
    records = {each.table.condition: int(_counts(each).sum()) for each in wholes}
    public = {(table.query, table.level) for table in public_tables(plan)}
    covered = []
    for each in asked:
        if (each.table.query, each.table.level) in public:
            counts = _counts(each)
            covered.append(
                Coverage(
                    name=table_name(plan, each.table),
                    table=each.table,
                    records=records[each.table.condition],
                    inside=int(counts.sum()),
                    cells=len(counts),
                    empty=int((counts == 0).sum()),
                )
            )
    return tuple(covered)


def _counts(found: TableTotals | FoundTotals) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return found.exact.reveal().totals[COUNTED]


def too_many_outside(found: tuple[Coverage, ...], share: Fraction) -> bool:
    """Whether a table misses more than the share of its records."""
    return any(each.outside > share * each.records for each in found)


def check_coverage(found: tuple[Coverage, ...], share: Fraction) -> None:
    """Refuse to publish; which table it is and by how much is for the owner to ask."""
    if too_many_outside(found, share):
        raise OutsideError(share=float(share))
