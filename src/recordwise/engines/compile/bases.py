"""Which tables of a plan share one pass over the records: those that roll up from the same finest cells (T-ROLLUP)."""

from dataclasses import dataclass

from recordwise.plan.fields import LONGEST_PREFIX, Expression, Field, Prefix, finer
from recordwise.plan.plan import PlannedTable
from recordwise.plan.predicates import Predicate
from recordwise.plan.schema import Schema
from recordwise.plan.statistics import AdditiveTotal, CountFirms


@dataclass(frozen=True, slots=True)
class Base:
    """The finest cells of one pass over the records, and the tables that roll up from ALL of them (T-ROLLUP)."""

    expressions: tuple[Expression, ...]
    tables: tuple[PlannedTable, ...]
    own: int
    """How many of the expressions tell the cells apart; the others are coarser levels that those determine."""

    def additive(self) -> tuple[tuple[AdditiveTotal, Predicate | None], ...]:
        """The sums the pass must compute, each under the condition of its query."""
        wanted = [
            (total, table.condition)
            for table in self.tables
            for total in table.totals
            if not isinstance(total, CountFirms)
        ]
        return tuple(dict.fromkeys(wanted))

    def firm_conditions(self) -> tuple[Predicate | None, ...]:
        """The conditions under which firms are counted; these need the pairs of cell and firm."""
        counted = [table.condition for table in self.tables if CountFirms() in table.totals]
        return tuple(dict.fromkeys(counted))


def bases_of(tables: tuple[PlannedTable, ...], schema: Schema) -> tuple[Base, ...]:
    """Group tables under the finest of them, greedily from fine to coarse."""
    members: dict[tuple[Expression, ...], list[PlannedTable]] = {}
    levels: dict[tuple[Expression, ...], dict[Expression, None]] = {}
    for table in sorted(tables, key=lambda table: _fineness(table, schema), reverse=True):
        wanted = tuple(dict.fromkeys(group.expression for group in table.shape.groups))
        home = next((base for base in members if _derivable(wanted, base, schema)), wanted)
        members.setdefault(home, []).append(table)
        if schema.hierarchies:
            added = (each for each in wanted if not any(finer(candidate, each) for candidate in home))
            levels.setdefault(home, {}).update(dict.fromkeys(added))
    return tuple(Base((*own, *levels.get(own, ())), tuple(group), len(own)) for own, group in members.items())


def _fineness(table: PlannedTable, schema: Schema) -> tuple[int, int]:
    lengths = [
        group.expression.length if isinstance(group.expression, Prefix) else LONGEST_PREFIX + 1
        for group in table.shape.groups
    ]
    return len(lengths), sum(lengths) - sum(_height(group.expression, schema) for group in table.shape.groups)


def _height(expression: Expression, schema: Schema) -> int:
    """How far a level is above the finest of its hierarchy; 0 for anything else."""
    found = schema.hierarchy(expression.name) if schema.hierarchies and isinstance(expression, Field) else None
    return 0 if found is None else len(found.levels) - 1 - found.levels.index(expression.name)  # type: ignore[union-attr]


def _derivable(wanted: tuple[Expression, ...], base: tuple[Expression, ...], schema: Schema) -> bool:
    return all(any(finer(own, each) or _above(own, each, schema) for own in base) for each in wanted)


def _above(fine: Expression, coarse: Expression, schema: Schema) -> bool:
    """Whether a level is determined by another column of its hierarchy: cells of that one can then carry it."""
    if not schema.hierarchies or not isinstance(fine, Field) or not isinstance(coarse, Field):
        return False
    found = schema.hierarchy(coarse.name)
    return found is not None and fine.name in found.levels and found.determines(fine.name, coarse.name)
