"""DuckDB: one exact pass over the records, in bounded memory, locked to the files it was given.

A source is bound to a connection as the view ``source``, which reads metadata and no record; cells are kept in the same connection.
"""

from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot import exp

from recordwise.engines.compile.records import (
    HELD,
    MOST_DIGITS,
    SOURCE,
    Stored,
    checks,
    records_tree,
    type_problem,
    validation_tree,
)
from recordwise.engines.duckdb.connection import Connection, failure
from recordwise.engines.duckdb.unique_ids import repeated_ids
from recordwise.engines.engine import Engine
from recordwise.engines.sources.copy import COPIED, copy_records, forget_copy
from recordwise.engines.sources.postgres import postgres_columns
from recordwise.engines.sources.sas import sas_columns
from recordwise.engines.sources.untyped import open_typed
from recordwise.engines.totals import Passes
from recordwise.errors import DataError, RecordError, RecordwiseError, SourceError
from recordwise.plan.schema import Schema
from recordwise.plan.sources import CsvFiles, Frame, ParquetFiles, Postgres, Relation, SasFiles, Source, open_source

_INTEGERS = {"tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger"}
_KINDS: dict[str, Stored] = {
    **{name: Stored("integer") for name in _INTEGERS},
    "ubigint": Stored("wide"),
    "hugeint": Stored("wide"),
    "float": Stored("float"),
    "double": Stored("float"),
    "varchar": Stored("text"),
    "boolean": Stored("boolean"),
}


def bind(connection: Connection, source: Source, schema: Schema) -> dict[str, Stored]:
    """Make the view and check that every declared column is there."""
    stored = _described(connection, source, schema)
    missing = [name for name in schema.names() if name not in stored]
    if missing:
        raise SourceError(source="the source", problem=f"it has no column {', '.join(missing)}")
    return stored


def _described(connection: Connection, source: Source, schema: Schema) -> dict[str, Stored]:
    if isinstance(source, Postgres):
        return postgres_columns(source, schema)
    if isinstance(source, SasFiles):
        return sas_columns(source, schema)
    try:
        types = _bind(connection.duckdb, source, schema)
    except RecordwiseError:
        raise
    except Exception as error:
        raise failure(error) from None
    return {name: _stored(kind) for name, kind in types.items()}


def _bind(
    connection: duckdb.DuckDBPyConnection, source: ParquetFiles | CsvFiles | Frame | Relation, schema: Schema
) -> dict[str, Any]:
    if isinstance(source, ParquetFiles):
        relation = connection.read_parquet([str(path) for path in source.paths])
        relation.create_view(SOURCE)
    elif isinstance(source, CsvFiles):
        relation = _csv(connection, source)
        relation.create_view(SOURCE)
    elif isinstance(source, Frame):
        # Names that differ by case only are one to DuckDB, so both come along and the table is refused.
        wanted = {name.casefold() for name in schema.names()}
        declared = [name for name in source.table.column_names if name.casefold() in wanted]
        if not declared:
            return {}
        connection.register(SOURCE, _owned(_without_dictionaries(source.table.select(declared))))
        relation = connection.table(SOURCE)
    else:
        return dict(zip(source.relation.columns, source.relation.types))
    return dict(zip(relation.columns, relation.types))


def _csv(connection: duckdb.DuckDBPyConnection, source: CsvFiles) -> duckdb.DuckDBPyRelation:
    """Nothing is guessed: all fields are text under the names of the header, an empty field is NULL."""
    return connection.read_csv(
        [str(path) for path in source.paths],  # type: ignore[arg-type]
        header=True,
        delimiter=source.delimiter,
        quotechar='"',
        escapechar='"',
        columns=dict.fromkeys(source.header(), "VARCHAR"),
        auto_detect=False,
        null_padding=False,
    )


def _without_dictionaries(table: pa.Table) -> pa.Table:
    """Dictionary columns arrive as ENUMs, whose order is not that of their text."""
    fields = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def _owned(table: pa.Table) -> pa.Table:
    """The same rows in memory of our own: Arrow borrows that of numpy and pandas, and its owner can still write to it.

    Joining an array with an empty one copies it.
    """
    columns = {
        name: pa.chunked_array([pa.concat_arrays([chunk, chunk.slice(0, 0)]) for chunk in column.chunks], column.type)
        for name, column in zip(table.column_names, table.columns)
    }
    return pa.table(columns)


def _stored(kind: Any) -> Stored:
    name = str(kind.id)
    if name == "decimal":
        width, scale = (int(value) for _, value in kind.children)
        return Stored("decimal", scale) if width + scale <= MOST_DIGITS else Stored("other")
    return _KINDS.get(name, Stored("other"))


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


DEFAULT_MEMORY = "700MB"


class DuckDB(Engine):
    """A table of records behind DuckDB. Opening reads no record; the first thing that needs records validates them all."""

    dialect = "duckdb"

    def __init__(
        self, source: Any, schema: Schema, *, memory_limit: str = DEFAULT_MEMORY, threads: int | None = None
    ) -> None:
        self._source = open_typed(source, schema, open_source)
        read = self._source.paths if isinstance(self._source, ParquetFiles | CsvFiles) else ()
        self._connection = Connection(files=read, memory_limit=memory_limit, threads=threads)
        watched = self._source.paths if isinstance(self._source, SasFiles) else read
        super().__init__(Passes(DuckDBStore(self._connection), schema), files=watched)
        self._prepared = False
        try:
            self._stored = self._bound()
        except BaseException:
            self._release()
            raise

    def _bound(self) -> dict[str, Stored]:
        """How each column is stored, if its role can use it."""
        stored = bind(self._connection, self._source, self.schema)
        roles = [(measure.name, "measure") for measure in self.schema.measures]
        for name, role in roles + [(each.name, str(each.type)) for each in self.schema.columns]:
            problem = type_problem(name, role, stored[name])
            if problem is not None:
                raise problem
        return stored

    def _check_records(self) -> None:
        self._prepare()
        found = list(checks(self.schema, self._stored))
        (counts,) = self._connection.fetch(validation_tree(found)).to_pylist()
        problems = [
            RecordError(column=check.column, problem=check.problem, count=counts[f"c{number}"])
            for number, check in enumerate(found)
            if counts[f"c{number}"]
        ]
        unit = self._stored[self.schema.unit]
        # The first check counts the ids that are NULL.
        repeated = repeated_ids(self._connection, self.schema, unit, records=counts[HELD], unknown=counts["c0"])
        if repeated:
            repeats = "repeats an id that must be unique"
            problems.append(RecordError(column=self.schema.unit, problem=repeats, count=repeated))
        if problems:
            self._forget()
            raise DataError(problems=tuple(problems))

    def _prepare(self) -> None:
        """The view every query reads; records that are elsewhere are copied first, once."""
        if not self._prepared:
            if isinstance(self._source, COPIED):
                copy_records(self._connection, self._source, self.schema, self._stored)
            self._connection.run(records_tree(self.schema, self._stored))
        self._prepared = True

    def _forget(self) -> None:
        """A copy that was refused goes away: once its rows are corrected they come over anew."""
        if isinstance(self._source, COPIED):
            forget_copy(self._connection)
            self._prepared = False

    def _release(self) -> None:
        """Close the connection and remove what it spilled."""
        self._connection.close()
