"""Copies of records stored elsewhere.

Made once, in batches, in a table of our connection; a large table spills to its folder. Validation and
every total read that copy, so they all see the same records whatever happens at the source, and the source
is not queried again.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot import exp

from recordwise.engines.compile.expressions import RECORDS
from recordwise.engines.compile.records import COLLAPSED, SOURCE, StorageType
from recordwise.engines.duckdb.connection import Connection, failure
from recordwise.engines.engine import check_present
from recordwise.engines.sources.files import arrow_batches, arrow_head, text_batches, text_columns
from recordwise.plan.schema import Schema
from recordwise.plan.sources import (
    UTF8,
    ArrowFiles,
    CsvFiles,
    Database,
    Frame,
    ParquetFiles,
    Postgres,
    Relation,
    StatFiles,
)

BATCH_ROWS = 100_000
INCOMING = "incoming"


@dataclass(frozen=True, slots=True)
class CopyMethod:
    """How records of one kind of source come over."""

    columns: Callable[[Any, Schema], dict[str, StorageType] | pa.Table]
    """How the declared columns are stored, or a table of them without a row; reads no record."""
    parts: Callable[[Any, Schema, dict[str, StorageType]], Iterator[pa.Table]]
    """The records in parts of bounded size, of which the first may be empty."""


def _relation_head(source: Relation, schema: Schema) -> pa.Table:
    check_present(schema.names(), source.relation.columns)
    return _select_columns(source, schema).limit(0).to_arrow_table()


def _relation_batches(source: Relation, schema: Schema, _: dict[str, StorageType]) -> Iterator[pa.Table]:
    reader = _select_columns(source, schema).to_arrow_reader(BATCH_ROWS)
    yield reader.schema.empty_table()
    yield from (pa.Table.from_batches([batch]) for batch in reader)


def _select_columns(source: Relation, schema: Schema) -> Any:
    return source.relation.select(*(duckdb.ColumnExpression(name) for name in schema.names()))


def method_of(kind: type) -> CopyMethod:
    """Import and return what copies a kind of source."""
    if kind is Relation:
        return CopyMethod(_relation_head, _relation_batches)
    if kind is ArrowFiles:
        return CopyMethod(arrow_head, arrow_batches)
    if kind is CsvFiles:
        return CopyMethod(text_columns, text_batches)
    if kind is Postgres:
        from recordwise.engines.sources.postgres import postgres_batches, postgres_columns

        return CopyMethod(postgres_columns, postgres_batches)
    if kind is StatFiles:
        from recordwise.engines.sources.stat import stat_batches, stat_columns

        return CopyMethod(stat_columns, stat_batches)
    assert kind is Database
    from recordwise.engines.sources.database import database_batches, database_head

    return CopyMethod(database_head, database_batches)


def copy_method(source: Any) -> CopyMethod | None:
    """Return how a source is copied, None if read in place."""
    utf8 = isinstance(source, CsvFiles) and source.encoding == UTF8
    return None if utf8 or isinstance(source, (Frame, ParquetFiles)) else method_of(type(source))


def copy_records(connection: Connection, source: Any, schema: Schema, stored: dict[str, StorageType]) -> None:
    """Make the table ``source``; if that fails, none of it stays."""
    how = copy_method(source)
    assert how is not None
    try:
        fill(connection.duckdb, how.parts(source, schema, stored))
    except duckdb.Error as error:
        forget_copy(connection)
        raise failure(error) from None
    except BaseException:
        forget_copy(connection)
        raise


def fill(connection: duckdb.DuckDBPyConnection, parts: Iterator[pa.Table]) -> None:
    """Insert the parts.

    The first may be empty, so that a table without records still has its columns.
    """
    made = False
    for part in parts:
        connection.register(INCOMING, part)
        incoming = connection.table(INCOMING)
        incoming.insert_into(SOURCE) if made else incoming.create(SOURCE)
        connection.unregister(INCOMING)
        made = True


def forget_copy(connection: Connection) -> None:
    """Drop the copy, complete or partial, and its view."""
    connection.duckdb.unregister(INCOMING)
    for name, kind in ((RECORDS, "VIEW"), (COLLAPSED, "TABLE"), (SOURCE, "TABLE")):
        connection.run(exp.Drop(tables=[exp.to_table(name)], kind=kind, exists=True))
