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
from recordwise.engines.compile.records import COLLAPSED, SOURCE, Stored
from recordwise.engines.duckdb.connection import Connection, failure
from recordwise.engines.engine import check_present
from recordwise.engines.sources.database import database_head, database_parts
from recordwise.engines.sources.files import arrow_head, arrow_parts, text_columns, text_parts
from recordwise.engines.sources.postgres import postgres_columns, postgres_parts
from recordwise.engines.sources.stat import stat_columns, stat_parts
from recordwise.plan.schema import Schema
from recordwise.plan.sources import UTF8, ArrowFiles, CsvFiles, Database, Postgres, Relation, StatFiles

BATCH_ROWS = 100_000
INCOMING = "incoming"


@dataclass(frozen=True, slots=True)
class Copied:
    """How records of one kind of source come over."""

    columns: Callable[[Any, Schema], dict[str, Stored] | pa.Table]
    """How the declared columns are stored, or a table of them without a row; reads no record."""
    parts: Callable[[Any, Schema, dict[str, Stored]], Iterator[pa.Table]]
    """The records in parts of bounded size, of which the first may be empty."""


def _relation_head(source: Relation, schema: Schema) -> pa.Table:
    check_present(schema.names(), source.relation.columns)
    return _chosen(source, schema).limit(0).to_arrow_table()


def _relation_parts(source: Relation, schema: Schema, _: dict[str, Stored]) -> Iterator[pa.Table]:
    reader = _chosen(source, schema).to_arrow_reader(BATCH_ROWS)
    yield reader.schema.empty_table()
    yield from (pa.Table.from_batches([batch]) for batch in reader)


def _chosen(source: Relation, schema: Schema) -> Any:
    return source.relation.select(*(duckdb.ColumnExpression(name) for name in schema.names()))


KINDS: dict[type, Copied] = {
    Relation: Copied(_relation_head, _relation_parts),
    Postgres: Copied(postgres_columns, postgres_parts),
    StatFiles: Copied(stat_columns, stat_parts),
    ArrowFiles: Copied(arrow_head, arrow_parts),
    Database: Copied(database_head, database_parts),
    CsvFiles: Copied(text_columns, text_parts),
}


def copied(source: Any) -> Copied | None:
    """Return how a source is copied, None if read in place."""
    in_place = isinstance(source, CsvFiles) and source.encoding == UTF8
    return None if in_place else KINDS.get(type(source))


def copy_records(connection: Connection, source: Any, schema: Schema, stored: dict[str, Stored]) -> None:
    """Make the table ``source``; if that fails, none of it stays."""
    how = copied(source)
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
