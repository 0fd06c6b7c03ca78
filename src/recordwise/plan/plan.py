"""A plan: queries bound to a schema. It is checked as a whole before any record is read."""

from dataclasses import dataclass

import pyarrow as pa

from recordwise.errors import KeysError, PlanError
from recordwise.plan.checking import query_problems
from recordwise.plan.keys import Keys
from recordwise.plan.levels import Level
from recordwise.plan.predicates import Predicate
from recordwise.plan.quantile import Quantile
from recordwise.plan.query import Query
from recordwise.plan.schema import Schema
from recordwise.plan.selection import SelectFrom, SelectKeys
from recordwise.plan.totals import CountBins, Total


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTable:
    """One table an engine fills: a level of a query."""

    query: int
    level: int
    shape: Level
    condition: Predicate | None
    totals: tuple[Total, ...]
    bins: tuple[CountBins, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What will be asked of one table of records. Public: it holds no value of any record."""

    schema: Schema
    queries: tuple[Query, ...]

    def __post_init__(self) -> None:
        problems = [] if self.queries else ["there is no query"]
        for number, query in enumerate(self.queries, 1):
            prefix = f"query {number}: " if len(self.queries) > 1 else ""
            problems += [prefix + problem for problem in query_problems(query, self.schema)]
        if problems:
            raise PlanError(problems=tuple(problems))
        for query in self.queries:
            for level in query.tables():
                keys = query.keys_of(level)
                if isinstance(keys, Keys):
                    keys.check(level.groups, self.schema)

    def _repr_html_(self) -> str:
        from recordwise.plan.notebook import plan_html

        return plan_html(self)

    def tables(self) -> tuple[PlannedTable, ...]:
        """Every table of every query, in order."""
        return tuple(
            PlannedTable(
                query=number,
                level=at,
                shape=shape,
                condition=query.condition,
                totals=self._totals(query, shape),
                bins=self._bins(query),
            )
            for number, query in enumerate(self.queries)
            for at, shape in enumerate(query.tables())
        )

    def _totals(self, query: Query, shape: Level) -> tuple[Total, ...]:
        """Each total once: a count asked for by two statistics, or by a selection too, is counted once."""
        wanted = [total for statistic in query.draws() for total in statistic.totals(self.schema)]
        selection = query.selection_of(shape)
        return tuple(dict.fromkeys([*wanted, *([selection.total()] if selection else [])]))

    def _bins(self, query: Query) -> tuple[CountBins, ...]:
        return tuple(dict.fromkeys(each.bins() for each in query.draws() if isinstance(each, Quantile)))

    def selection(self, table: PlannedTable) -> SelectKeys | SelectFrom | None:
        """The selection that finds the keys of a table; None where they are public."""
        return self.queries[table.query].selection_of(table.shape)

    def cells(self, table: PlannedTable) -> pa.Table:
        """The public cells of a table, cast, distinct and sorted; one row without columns' values for a grand total."""
        groups = table.shape.groups
        if not groups:
            return pa.table({})
        keys = self.queries[table.query].keys_of(table.shape)
        if not isinstance(keys, Keys):
            raise KeysError(column=" x ".join(table.shape.names()), problem="has no public keys")
        return keys.cells(groups, self.schema)
