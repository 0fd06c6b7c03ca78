"""The DuckDB engine: one exact pass over the records.

In bounded memory, on a connection locked to the files it was opened for. Binding a source creates the view
``source`` and finds out how each column is stored; it reads metadata and no record.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot import exp

from recordwise.engines.compile.expressions import RECORDS
from recordwise.engines.compile.records import (
    BROKEN,
    COLLAPSED,
    MOST_DIGITS,
    SOURCE,
    Check,
    StorageType,
    any_aside_tree,
    broken_tree,
    checks,
    code_lists,
    collapse_checks,
    collapsed_records_tree,
    collapsed_tree,
    id_storage,
    id_table,
    records_tree,
    same_names,
    span_columns,
)
from recordwise.engines.duckdb.connection import Connection, failure, repeated_ids
from recordwise.engines.engine import (
    Engine,
    Passes,
    broken_rows,
    check_header,
    check_present,
    check_types,
    differing_units,
    repeats,
    watched_files,
)
from recordwise.engines.sources.copy import copy_method, copy_records, forget_copy
from recordwise.engines.sources.files import (
    check_parquet,
    check_quotes,
    named_by_folders,
    open_typed,
    plain_table,
    torn_line_error,
    unique_names,
)
from recordwise.errors import DataError, EngineError, RecordError, RecordwiseError
from recordwise.plan.schema import Schema
from recordwise.plan.sources import CsvFiles, Frame, ParquetFiles, Source, open_source

_INTEGERS = {"tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger"}
_KINDS: dict[str, StorageType] = {
    **{name: StorageType("integer") for name in _INTEGERS},
    "ubigint": StorageType("wide"),
    "hugeint": StorageType("wide"),
    "float": StorageType("float"),
    "double": StorageType("float"),
    "varchar": StorageType("text"),
    "boolean": StorageType("boolean"),
    **{name: StorageType("date") for name in ("date", "timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns")},
    "timestamp with time zone": StorageType("zoned"),
}


def bind(connection: Connection, source: Source, schema: Schema) -> dict[str, StorageType]:
    """Create the view and check that every declared column exists."""
    how = copy_method(source)
    try:
        found = _bind(connection.duckdb, source, schema) if how is None else how.columns(source, schema)
        stored = found if isinstance(found, dict) else _types(connection.duckdb.from_arrow(found))
    except RecordwiseError:
        raise
    except Exception as error:
        raise failure(error) from None
    # Of two names that differ by case only, DuckDB gives one another name.
    check_present(schema.names(), list(stored))
    return stored


def _bind(connection: duckdb.DuckDBPyConnection, source: Source, schema: Schema) -> dict[str, StorageType]:
    if isinstance(source, Frame):
        check_present(schema.names(), source.table.column_names)
        unique_names(schema.names(), source.table.column_names, "the table")
        declared = [name for name in source.table.column_names if name in schema.names()]
        connection.register(SOURCE, _deep_copy(plain_table(source.table.select(declared))))
        return _types(connection.table(SOURCE))
    if isinstance(source, CsvFiles):
        header = source.header(schema.names())
        check_header(schema.names(), header)
        relation, comma = _csv(connection, source, header), source.decimal == ","
    else:
        assert isinstance(source, ParquetFiles)
        check_parquet(source, schema)
        relation, comma = _parquet(connection, source, schema), False
    relation.create_view(SOURCE)
    check_present(schema.names(), relation.columns)
    untyped = isinstance(source, CsvFiles)
    return {name: replace(stored, comma=comma, untyped=untyped) for name, stored in _types(relation).items()}


def _types(relation: duckdb.DuckDBPyRelation) -> dict[str, StorageType]:
    return {name: _storage_type(kind) for name, kind in zip(relation.columns, relation.types)}


def _parquet(connection: duckdb.DuckDBPyConnection, source: ParquetFiles, schema: Schema) -> duckdb.DuckDBPyRelation:
    """Open Parquet files without guessing.

    Values in folder names are text, and only if they are declared.
    """
    files = exp.Array(expressions=[exp.Literal.string(str(path)) for path in source.paths]).sql(dialect="duckdb")
    named = "true" if named_by_folders(source, schema) else "false"
    return connection.sql(
        f"SELECT * FROM read_parquet({files}, hive_partitioning = {named}, hive_types_autocast = false)"
    )


def _csv(connection: duckdb.DuckDBPyConnection, source: CsvFiles, header: Sequence[str]) -> duckdb.DuckDBPyRelation:
    """Read CSV without guessing.

    All fields are text under the names of the header, and an empty field is NULL.
    """
    return connection.read_csv(
        [str(path) for path in source.paths],  # type: ignore[arg-type]
        header=True,
        delimiter=source.delimiter,
        quotechar='"',
        escapechar='"',
        columns=dict.fromkeys(header, "VARCHAR"),
        auto_detect=False,
        null_padding=False,
    )


def _deep_copy(table: pa.Table) -> pa.Table:
    """Copy rows into memory that no one else can write.

    Arrow borrows memory from numpy and pandas. Concatenating an array with an empty one copies it.
    """
    columns = {
        name: pa.chunked_array([pa.concat_arrays([chunk, chunk.slice(0, 0)]) for chunk in column.chunks], column.type)
        for name, column in zip(table.column_names, table.columns)
    }
    return pa.table(columns)


def _storage_type(kind: Any) -> StorageType:
    name = str(kind.id)
    if name == "decimal":
        width, scale = (int(value) for _, value in kind.children)
        return StorageType("decimal", scale) if width + scale <= MOST_DIGITS else StorageType("other")
    return _KINDS.get(name, StorageType("other"))


@dataclass(frozen=True, slots=True)
class DuckDBStore:
    """A ``Store`` in one DuckDB connection."""

    connection: Connection

    def of_records(self, tree: exp.Expr) -> pa.Table:
        return self.connection.fetch(tree)

    def of_cells(self, tree: exp.Expr) -> pa.Table:
        return self.connection.fetch(tree)

    def store_cells(self, name: str, tree: exp.Expr) -> None:
        temporary = exp.Properties(expressions=[exp.TemporaryProperty()])
        self.connection.run(exp.Create(this=exp.to_table(name), kind="TABLE", expression=tree, properties=temporary))

    def store_pairs(self, name: str, tree: exp.Expr) -> None:
        self.store_cells(name, tree)

    def lend(self, name: str, table: pa.Table) -> None:
        self.connection.duckdb.register(name, table)

    def drop(self, *names: str) -> None:
        for name in names:
            self.connection.duckdb.unregister(name)
            self.connection.run(exp.Drop(tables=[exp.to_table(name)], kind="TABLE", exists=True))


DEFAULT_MEMORY = "700MB"


class DuckDB(Engine):
    """A table of records read by DuckDB.

    Opening it reads no record; the first operation on records validates them all.
    """

    dialect = "duckdb"

    def __init__(
        self, source: Any, schema: Schema, *, memory_limit: str = DEFAULT_MEMORY, threads: int | None = None
    ) -> None:
        self._source = open_typed(source, schema, open_source)
        watched = watched_files(self._source)
        read = watched if copy_method(self._source) is None else ()
        self._connection = Connection(files=read, memory_limit=memory_limit, threads=threads)
        super().__init__(Passes(DuckDBStore(self._connection), schema), files=watched)
        self._prepared = False
        try:
            self._stored = self._bind_columns()
        except BaseException:
            self._release()
            raise

    def _bind_columns(self) -> dict[str, StorageType]:
        """Return how each column is stored, refusing unusable types."""
        stored = bind(self._connection, self._source, self.schema)
        check_types(self.schema, stored)
        return stored

    def unread(self) -> tuple[str, ...]:
        """Return the declared numbers, dates and truth values stored as text."""
        typed = {each.name for each in self.schema.columns if each.type != "text"} | set(self.schema.measure_names())
        return tuple(name for name in self.schema.names() if name in typed and self._stored[name].kind == "text")

    def _check_records(self, schema: Schema) -> None:
        if isinstance(self._source, CsvFiles):
            check_quotes(self._source)
        try:
            self._check_rows(schema)
        except EngineError:
            if isinstance(self._source, CsvFiles):
                raise torn_line_error(self._source) from None
            raise

    def _check_rows(self, schema: Schema) -> None:
        self._prepare()
        found = list(checks(schema, self._stored))
        if schema.collapse is None:
            unit = id_storage(schema, self._stored)
            others = span_columns(schema) if unit.kind == "integer" else []
            (seen,) = self._connection.fetch(broken_tree(found, others=others)).to_pylist()
            problems = broken_rows(self._connection.fetch, found, met=seen[BROKEN])
            repeated = self._count_repeated(id_table(schema), seen)
            problems += repeats(schema, repeated)
        else:
            problems = self._collapse(schema, found)
        if problems:
            self._forget()
            raise DataError(problems=tuple(problems))

    def _count_repeated(self, table: str, span: Mapping[str, int] | None = None) -> int:
        unit = id_storage(self.schema, self._stored)
        return repeated_ids(self._connection, self.schema, unit, table=table, span=span)

    def _collapse(self, schema: Schema, found: list[Check]) -> list[RecordError]:
        """Collapse the rows of each unit into one record.

        Stored for every later pass; returns what is wrong with rows or records. The pass that joins rows also
        detects broken ones. What it made of broken rows is never read, and if it fails on one, the rows are counted
        by themselves.
        """
        for name, kind in ((RECORDS, "VIEW"), (COLLAPSED, "TABLE")):
            self._connection.run(exp.Drop(tables=[exp.to_table(name)], kind=kind, exists=True))
        try:
            self._passes.store.store_cells(COLLAPSED, collapsed_tree(schema, self._stored, found))
            (met,) = self._connection.fetch(any_aside_tree(schema)).to_pylist() if found else ({BROKEN: 0},)
        except EngineError:
            problems = broken_rows(self._connection.fetch, found)
            if problems:
                return problems
            raise
        if met[BROKEN]:
            return broken_rows(self._connection.fetch, found)
        problems = broken_rows(self._connection.fetch, list(collapse_checks(schema)), COLLAPSED, counted="unit")
        if same_names(schema) and self._count_repeated(COLLAPSED):
            problems += differing_units(self._passes.store.of_records, schema)
        if not problems:
            self._connection.run(collapsed_records_tree(schema))
        return problems

    def _prepare(self) -> None:
        """Create the view every query reads, after copying remote records."""
        if not self._prepared:
            if copy_method(self._source):
                copy_records(self._connection, self._source, self.schema, self._stored)
            for name, codes in code_lists(self.schema):
                self._connection.duckdb.register(name, codes)
            if self.schema.collapse is None:
                self._connection.run(records_tree(self.schema, self._stored))
        self._prepared = True

    def _forget(self) -> None:
        """Drop a refused copy, so that corrected rows are copied again."""
        if copy_method(self._source):
            forget_copy(self._connection)
            self._prepared = False

    def _release(self) -> None:
        """Close the connection and remove everything it spilled to disk."""
        self._connection.close()
