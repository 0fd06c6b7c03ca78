"""CONFIDENTIAL counts of records in the published cells of a plan.

A list of keys that misses its records publishes noise, at full cost. A release learns only whether too many
records are outside (docs/limits.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from recordwise.errors import OutsideError, ParameterError
from recordwise.exact.numbers import Number, rational
from recordwise.plan.arrays import numpy_of
from recordwise.plan.describe import table_name
from recordwise.plan.expressions import ALL_OTHER, Level, Predicate
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.plan.results import FoundTotals, TableTotals
from recordwise.plan.statistics import CountUnits

ACCEPT = "accept"
USUAL_SHARE = Fraction(1, 100)
COUNTED = CountUnits()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Coverage:
    """CONFIDENTIAL: a table's records, those in public cells, and empty cells.

    A record in the published rest of a coarser table is in no cell of a finer one, on purpose: it counts as
    inside.
    """

    name: str
    table: PlannedTable
    records: int
    inside: int
    in_rests: int
    """Those in an "all other" cell, of this table or of a coarser one (T-REST)."""
    cells: int
    empty: int

    @property
    def outside(self) -> int:
        return self.records - self.inside

    def __repr__(self) -> str:
        return "<Coverage: CONFIDENTIAL>"


def read_outside(given: Number | str | None) -> Fraction | None:
    """Return the share of records that may be outside; None for any."""
    if given is None or given == ACCEPT:
        return None
    share = rational(given, parameter="max_outside")
    if not 0 <= share < 1:
        raise ParameterError(
            parameter="max_outside",
            problem="must be a share of the records below 1, or 'accept'",
            advice="0.01 is one in a hundred.",
        )
    return share


def public_tables(plan: Plan) -> tuple[PlannedTable, ...]:
    """The tables whose cells are listed."""
    return tuple(table for table in plan.tables() if table.shape.groups and plan.selection(table) is None)


def covered_tables(plan: Plan) -> tuple[PlannedTable, ...]:
    """Return tables that count records by public cell, then by condition."""
    public = public_tables(plan)
    asked = [_with_count(table) if table in public else table for table in plan.tables()]
    wholes: dict[Predicate | None, PlannedTable] = {}
    for table in public:
        whole = Level((), Fraction(1))
        wholes.setdefault(
            table.condition, replace(table, level=-1 - len(wholes), shape=whole, totals=(COUNTED,), bins=(), rest=None)
        )
    return (*asked, *wholes.values())


def _with_count(table: PlannedTable) -> PlannedTable:
    return replace(table, totals=tuple(dict.fromkeys((*table.totals, COUNTED))))


Found = tuple[TableTotals | FoundTotals, ...]


def without_counts(plan: Plan, found: Found) -> Found:
    """What the plan itself asked for."""
    held = {_table_id(each.table): each for each in found}
    return tuple(replace(held[_table_id(table)], table=table) for table in plan.tables())


def coverage(plan: Plan, found: Found) -> tuple[Coverage, ...]:
    """CONFIDENTIAL: what the counts of ``covered_tables`` say."""
    records = {each.table.condition: int(_counts(each).sum()) for each in found if each.table.level < 0}
    public = {_table_id(table) for table in public_tables(plan)}
    held = {_table_id(each.table): each for each in found if _table_id(each.table) in public}
    return tuple(_coverage(plan, each, held, records[each.table.condition]) for each in held.values())


def _table_id(table: PlannedTable) -> tuple[int, int]:
    return table.query, table.level


Held = Mapping[tuple[int, int], TableTotals | FoundTotals]


def _coverage(plan: Plan, found: TableTotals | FoundTotals, held: Held, records: int) -> Coverage:
    counts, above = _counts(found), _in_coarser_rests(found, held)
    return Coverage(
        name=table_name(plan, found.table),
        table=found.table,
        records=records,
        inside=int(counts.sum()) + above,
        in_rests=_in_own_rests(found) + above,
        cells=len(counts),
        empty=int((counts == 0).sum()),
    )


def _in_own_rests(found: TableTotals | FoundTotals) -> int:
    """The records in the "all other" cells of a table."""
    if found.table.rest is None:
        return 0
    assert isinstance(found, TableTotals)
    return int(_counts(found)[numpy_of(found.cells.column(ALL_OTHER))].sum())


def _in_coarser_rests(found: TableTotals | FoundTotals, held: Held) -> int:
    """Return the number of records in the rests of coarser tables (T-REST)."""
    own = found.table
    above = [each for each in held.values() if each.table.query == own.query and each.table.shape == own.rest]
    return sum(_in_own_rests(each) + _in_coarser_rests(each, held) for each in above)


def _counts(found: TableTotals | FoundTotals) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return found.exact.reveal().totals[COUNTED]


def too_many_outside(found: tuple[Coverage, ...], share: Fraction) -> bool:
    """Whether a table misses more than the share of its records."""
    return any(each.outside > share * each.records for each in found)


def check_coverage(found: tuple[Coverage, ...], share: Fraction) -> None:
    """Refuse to publish if too many records are outside.

    The error does not say which table or by how much: that is confidential.
    """
    if too_many_outside(found, share):
        raise OutsideError(share=float(share))
