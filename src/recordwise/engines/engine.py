"""What a session asks of an engine. Two classes answer it, ``DuckDB`` and ``Spark``, and one test suite runs on both."""

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from recordwise.engines.owner_passes import OwnerPasses
from recordwise.engines.results import FoundTotals, TableTotals
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.plan.predicates import Predicate
from recordwise.plan.schema import Schema
from recordwise.plan.splitting import Splitting
from recordwise.sensitive import Sensitive

MOST_PIECES = 100_000_000


class Engine(Protocol):
    """A table of records. Opening reads no record; the first thing that needs records validates them all."""

    schema: Schema
    dialect: str
    """The SQL in which ``value`` of a summary must be written."""

    def validate(self) -> None:
        """Read every record once; raise ``DataError`` with counts and column names if one breaks the schema."""

    def totals(self, plan: Plan) -> tuple[TableTotals | FoundTotals, ...]:
        """The exact totals of every table of a plan, in the plan's order."""

    def split_table(
        self, splitting: Splitting, *, condition: Predicate | None = None, at_most: int = MOST_PIECES
    ) -> Sensitive[pa.Table]:
        """The unit-split rows themselves, measures in steps, for a foreign mechanism: the one answer that is records."""

    def summarise(
        self, value: exp.Expr, edges: Sequence[float], *, condition: Predicate | None = None
    ) -> Sensitive[pa.Table]:
        """A histogram of a number of each record: bin i counts edges[i-1] < value <= edges[i]. For the owner only."""

    def summarise_firms(self, value: exp.Expr, edges: Sequence[float], *, bound: str = "tight") -> Sensitive[pa.Table]:
        """A histogram of the joint loss of each firm, from the losses of its units. For the owner only."""

    def summarise_beside_totals(
        self, plan: Plan, table: PlannedTable, value: exp.Expr, edges: Sequence[float]
    ) -> Sensitive[pa.Table]:
        """A histogram over the records of a table's public cells, of a value that may use its cell's ``total0``, ``total1``..."""

    def owner_passes(self) -> OwnerPasses:
        """What the owner looks at while planning, over records that are validated."""

    def close(self) -> None:
        """Let go of everything that was opened."""
