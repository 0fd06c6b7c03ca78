"""Which tables can be rolled up from which finest cells: the fewer passes over the records, the better."""

from dataclasses import dataclass

from recordwise.plan.fields import LONGEST_PREFIX, Expression, Prefix, finer
from recordwise.plan.plan import PlannedTable
from recordwise.plan.predicates import Predicate
from recordwise.plan.totals import AdditiveTotal, CountFirms


@dataclass(frozen=True, slots=True)
class Base:
    """Finest cells of one pass over the records, and the tables that roll up from ALL of them (T-ROLLUP)."""

    expressions: tuple[Expression, ...]
    tables: tuple[PlannedTable, ...]

    def additive(self) -> tuple[tuple[AdditiveTotal, Predicate | None], ...]:
        """The sums the pass must make, each under the condition of its query."""
        wanted = [
            (total, table.condition)
            for table in self.tables
            for total in table.totals
            if not isinstance(total, CountFirms)
        ]
        return tuple(dict.fromkeys(wanted))

    def firm_conditions(self) -> tuple[Predicate | None, ...]:
        """The conditions under which firms are counted: these need the pairs of cell and firm."""
        counted = [table.condition for table in self.tables if CountFirms() in table.totals]
        return tuple(dict.fromkeys(counted))


def bases_of(tables: tuple[PlannedTable, ...]) -> tuple[Base, ...]:
    """Group tables under the finest of them, greedily from fine to coarse."""
    members: dict[tuple[Expression, ...], list[PlannedTable]] = {}
    for table in sorted(tables, key=_fineness, reverse=True):
        wanted = tuple(dict.fromkeys(group.expression for group in table.shape.groups))
        home = next((base for base in members if _derivable(wanted, base)), wanted)
        members.setdefault(home, []).append(table)
    return tuple(Base(expressions, tuple(group)) for expressions, group in members.items())


def _fineness(table: PlannedTable) -> tuple[int, int]:
    lengths = [
        group.expression.length if isinstance(group.expression, Prefix) else LONGEST_PREFIX + 1
        for group in table.shape.groups
    ]
    return len(lengths), sum(lengths)


def _derivable(wanted: tuple[Expression, ...], base: tuple[Expression, ...]) -> bool:
    return all(any(finer(candidate, each) for candidate in base) for each in wanted)
