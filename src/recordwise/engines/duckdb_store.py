"""Records and cells in one DuckDB connection."""

from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from recordwise.engines.connection import Connection


@dataclass(frozen=True, slots=True)
class DuckDBStore:
    """A ``Store`` of one place: cells are temporary tables beside the view of the records."""

    connection: Connection

    def of_records(self, tree: exp.Expr) -> pa.Table:
        return self.connection.fetch(tree)

    def of_cells(self, tree: exp.Expr) -> pa.Table:
        return self.connection.fetch(tree)

    def keep_cells(self, name: str, tree: exp.Expr) -> None:
        temporary = exp.Properties(expressions=[exp.TemporaryProperty()])
        self.connection.run(exp.Create(this=exp.to_table(name), kind="TABLE", expression=tree, properties=temporary))

    def keep_pairs(self, name: str, tree: exp.Expr) -> None:
        self.keep_cells(name, tree)

    def lend(self, name: str, table: pa.Table) -> None:
        self.connection.duckdb.register(name, table)

    def drop(self, *names: str) -> None:
        for name in names:
            self.connection.duckdb.unregister(name)
            self.connection.run(exp.Drop(tables=[exp.to_table(name)], kind="TABLE", exists=True))
