"""The interface to wherever an engine keeps records and cells, used by the passes that all engines share."""

from typing import Protocol

import pyarrow as pa
from sqlglot import exp


class Store(Protocol):
    """Trees in, Arrow out. DuckDB keeps everything in one place; Spark keeps records on executors and cells on the driver."""

    def of_records(self, tree: exp.Expr) -> pa.Table:
        """Run a query that reads the records."""

    def of_cells(self, tree: exp.Expr) -> pa.Table:
        """Run a query that reads only stored cells and lent tables."""

    def keep_cells(self, name: str, tree: exp.Expr) -> None:
        """Run a query that reads the records once, and keep its rows, one per finest cell, as a working table."""

    def keep_pairs(self, name: str, tree: exp.Expr) -> None:
        """Keep the pairs of cell and firm, which may be as many as the records, near the records."""

    def lend(self, name: str, table: pa.Table) -> None:
        """Make a table of this process readable under a name, replacing any earlier one of that name."""

    def drop(self, *names: str) -> None:
        """Drop whatever was kept or lent under these names."""
