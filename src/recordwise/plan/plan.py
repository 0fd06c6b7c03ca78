"""A plan: queries bound to a schema. It is checked as a whole before any record is read."""

from dataclasses import dataclass

import pyarrow as pa

from recordwise.errors import KeysError, PlanError
from recordwise.plan.checking import query_problems
from recordwise.plan.levels import Level
from recordwise.plan.predicates import Predicate
from recordwise.plan.query import Query
from recordwise.plan.schema import Schema
from recordwise.plan.totals import Total


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTable:
    """One table an engine fills: a level of a query."""

    query: int
    level: int
    shape: Level
    condition: Predicate | None
    totals: tuple[Total, ...]


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

    def tables(self) -> tuple[PlannedTable, ...]:
        """Every table of every query, in order."""
        return tuple(
            PlannedTable(query=number, level=at, shape=shape, condition=query.condition, totals=self._totals(query))
            for number, query in enumerate(self.queries)
            for at, shape in enumerate(query.tables())
        )

    def _totals(self, query: Query) -> tuple[Total, ...]:
        """Each total once: a count asked for by two statistics is counted once."""
        wanted = [total for statistic in query.statistics for total in statistic.totals(self.schema)]
        return tuple(dict.fromkeys(wanted))

    def cells(self, table: PlannedTable) -> pa.Table:
        """The public cells of a table, cast, distinct and sorted; one row without columns' values for a grand total."""
        groups = table.shape.groups
        if not groups:
            return pa.table({})
        keys = next((each for each in self.queries[table.query].key_lists if each.covers(groups)), None)
        if keys is None:
            raise KeysError(column=" x ".join(table.shape.names()), problem="has no public keys")
        return keys.cells(groups, self.schema)
