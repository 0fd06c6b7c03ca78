"""A ``Store`` in two places: records on the executors, cells in a DuckDB connection on the driver."""

from typing import Any

import pyarrow as pa
from sqlglot import exp

from recordwise.engines.duckdb.connection import Connection
from recordwise.engines.duckdb.engine import DuckDBStore
from recordwise.engines.spark.dialect import spark_sql
from recordwise.engines.spark.quiet import quietly
from recordwise.engines.spark.sources import in_spark
from recordwise.engines.spark.split_sums import halved, joined, summed
from recordwise.errors import EngineError

MOST_BROADCAST = 1_000_000
"""A lent table of up to this many rows is broadcast to every executor; a larger one is joined with a shuffle."""


class SparkStore:
    """Statements over records run in Spark and return aggregates; roll-ups and public keys stay on the driver unless a statement
    over records needs them."""

    def __init__(self, session: Any, cells: Connection) -> None:
        self.session = session
        self._cells = DuckDBStore(cells)
        self._lent: dict[str, pa.Table] = {}
        self._kept: dict[str, Any] = {}

    def of_records(self, tree: exp.Expr) -> pa.Table:
        try:
            with quietly(self.session):
                self._ship(tree)
                return joined(self.session.sql(spark_sql(halved(tree))).toArrow(), summed(tree))
        except Exception as error:
            raise failure(error) from None

    def of_cells(self, tree: exp.Expr) -> pa.Table:
        return self._cells.of_cells(tree)

    def keep_cells(self, name: str, tree: exp.Expr) -> None:
        self.lend(name, self.of_records(tree))

    def keep_pairs(self, name: str, tree: exp.Expr) -> None:
        """Persist the pairs, because every level of a code counts firms from them."""
        try:
            with quietly(self.session):
                self._ship(tree)
                pairs = self.session.sql(spark_sql(tree)).persist()
                pairs.createOrReplaceTempView(name)
        except Exception as error:
            raise failure(error) from None
        self._kept[name] = pairs

    def lend(self, name: str, table: pa.Table) -> None:
        self._cells.lend(name, table)
        self._lent[name] = table
        self.session.catalog.dropTempView(name)

    def _ship(self, tree: exp.Expr) -> None:
        """Make the lent tables that a statement over records reads into Spark views."""
        for name in {table.name for table in tree.find_all(exp.Table)} & self._lent.keys():
            table = self._lent[name]
            frame = in_spark(self.session, table)
            small = table.num_rows <= MOST_BROADCAST
            (frame.hint("broadcast") if small else frame).createOrReplaceTempView(name)

    def drop(self, *names: str) -> None:
        for name in names:
            self._lent.pop(name, None)
            if name in self._kept:
                self._kept.pop(name).unpersist()
            self.session.catalog.dropTempView(name)
        self._cells.drop(*names)


def failure(error: Exception) -> EngineError:
    """An error without Spark's text, which can quote a record: neither keep nor chain it; raise this ``from None``.

    Spark's error class, such as ARITHMETIC_OVERFLOW, names a condition and not a value.
    """
    return EngineError(engine="spark", kind=type(error).__name__)
