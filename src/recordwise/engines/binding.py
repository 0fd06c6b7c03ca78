"""Binding a source to a connection: the view ``source``, and how each column is stored. Reads metadata, no record."""

from typing import Any

import duckdb
import pyarrow as pa

from recordwise.engines.connection import Connection, failure
from recordwise.engines.postgres import postgres_columns
from recordwise.engines.sas import sas_columns
from recordwise.engines.sources import CsvFiles, Frame, ParquetFiles, Postgres, Relation, SasFiles, Source
from recordwise.errors import RecordwiseError, SourceError
from recordwise.plan.records import MOST_DIGITS, SOURCE, Stored
from recordwise.plan.schema import Schema

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
