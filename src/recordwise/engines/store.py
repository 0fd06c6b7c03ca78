"""What the shared passes ask of the place, or the two places, where an engine keeps records and cells."""

from typing import Protocol

import pyarrow as pa
from sqlglot import exp


class Store(Protocol):
    """Trees in, Arrow out. DuckDB keeps everything in one place; Spark keeps records on its executors and cells on the driver."""

    def of_records(self, tree: exp.Expr) -> pa.Table:
        """Run a query that reads the records."""

    def of_cells(self, tree: exp.Expr) -> pa.Table:
        """Run a query that reads kept cells and lent tables only."""

    def keep_cells(self, name: str, tree: exp.Expr) -> None:
        """Run a query that reads the records once and keep its rows, one for each finest cell, as a working table."""

    def keep_pairs(self, name: str, tree: exp.Expr) -> None:
        """Keep the pairs of cell and firm, of which there may be as many as records, near the records."""

    def lend(self, name: str, table: pa.Table) -> None:
        """Make a table from here readable under a name; one lent under that name before is replaced."""

    def drop(self, *names: str) -> None:
        """Forget what was kept or lent under these names, if anything was."""
