"""Records that are elsewhere come over once, in batches, into a table of our own connection; a large one spills to its folder.

Validation and every total then read that one copy: they see the same records, whatever happens at the source meanwhile, and a
source is never asked again.
"""

from collections.abc import Iterator

import duckdb
import pyarrow as pa
from sqlglot import exp

from recordwise.engines.compile.expressions import RECORDS
from recordwise.engines.compile.records import SOURCE, Stored
from recordwise.engines.duckdb.connection import Connection, failure
from recordwise.engines.sources.postgres import postgres_parts
from recordwise.engines.sources.sas import sas_parts
from recordwise.plan.schema import Schema
from recordwise.plan.sources import Postgres, Relation, SasFiles

COPIED = (Relation, Postgres, SasFiles)
BATCH_ROWS = 100_000
INCOMING = "incoming"


def copy_records(
    connection: Connection, source: Relation | Postgres | SasFiles, schema: Schema, stored: dict[str, Stored]
) -> None:
    """Make the table ``source``; if that fails, none of it stays."""
    try:
        if isinstance(source, Relation):
            _stream(connection.duckdb, source, schema)
        else:
            _fill(connection.duckdb, _parts(source, schema, stored))
    except duckdb.Error as error:
        forget_copy(connection)
        raise failure(error) from None
    except BaseException:
        forget_copy(connection)
        raise


def _stream(connection: duckdb.DuckDBPyConnection, source: Relation, schema: Schema) -> None:
    chosen = source.relation.select(*(duckdb.ColumnExpression(name) for name in schema.names()))
    connection.register(INCOMING, chosen.to_arrow_reader(BATCH_ROWS))
    connection.table(INCOMING).create(SOURCE)
    connection.unregister(INCOMING)


def _parts(source: Postgres | SasFiles, schema: Schema, stored: dict[str, Stored]) -> Iterator[pa.Table]:
    if isinstance(source, Postgres):
        return postgres_parts(source, schema, stored)
    return sas_parts(source, schema, stored)


def _fill(connection: duckdb.DuckDBPyConnection, parts: Iterator[pa.Table]) -> None:
    """The first part may be empty, so that a table without records has its columns."""
    made = False
    for part in parts:
        connection.register(INCOMING, part)
        incoming = connection.table(INCOMING)
        incoming.insert_into(SOURCE) if made else incoming.create(SOURCE)
        connection.unregister(INCOMING)
        made = True


def forget_copy(connection: Connection) -> None:
    """Drop what was copied, all or part of it, and the view of it."""
    connection.duckdb.unregister(INCOMING)
    for name, kind in ((RECORDS, "VIEW"), (SOURCE, "TABLE")):
        connection.run(exp.Drop(tables=[exp.to_table(name)], kind=kind, exists=True))
