"""PostgreSQL through ADBC: the catalogue when a table is opened; every record once, in one snapshot, when it is first read.

The text of an error of the server or its driver can quote a record or an address, so only words of our own are told.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow as pa

from recordwise.engines.extras import load_part
from recordwise.engines.postgres_columns import select_tree, stored_as
from recordwise.engines.sources import Postgres
from recordwise.errors import ServerError, SourceError
from recordwise.plan.records import Stored
from recordwise.plan.schema import Schema

DRIVER = "adbc_driver_postgresql.dbapi"
BATCH_HINT = ("adbc.postgresql.batch_size_hint_bytes", str(8 * 2**20))
SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
SETTINGS = """SELECT current_setting('server_encoding'), set_config('client_encoding', 'UTF8', true),
    set_config('DateStyle', 'ISO, YMD', true)"""
FOUND = """SELECT n.nspname::text, c.relname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n
    ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1) AND c.relkind IN ('r', 'v', 'm', 'p', 'f')"""
TYPES = """SELECT a.attname::text, CASE WHEN b.typtype = 'e' THEN 'enum' WHEN s.nspname = 'pg_catalog' THEN b.typname::text
    ELSE 'a type of its own' END
    FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
    JOIN pg_catalog.pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
    JOIN pg_catalog.pg_namespace s ON s.oid = b.typnamespace
    WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped"""
NO_DATABASE, NO_ENTRY = "there is no such database", "it refused the user or the password"
REFUSALS = {
    "password": NO_ENTRY,
    "authentication": NO_ENTRY,
    "pg_hba": NO_ENTRY,
    "database": NO_DATABASE,
    "role": NO_ENTRY,
    "refused": "no server answers there",
    "No such file": "no server answers there",
    "could not translate host": "there is no such host",
}
"""What a word in the driver's text means, in ours."""


def postgres_columns(source: Postgres, schema: Schema) -> dict[str, Stored]:
    """How the declared columns will be stored; asks the catalogue, reads no record."""
    with _snapshot(source) as cursor, _told(source, cursor):
        _, types = _described(source, cursor)
        return stored_as(schema, types)


def postgres_parts(source: Postgres, schema: Schema, stored: dict[str, Stored]) -> Iterator[pa.Table]:
    """The records, in parts of bounded size: one statement, so one snapshot, of a table that has the columns it was opened with."""
    with _snapshot(source) as cursor, _told(source, cursor):
        table, types = _described(source, cursor)
        if stored_as(schema, types) != stored:
            raise SourceError(source=source.table, problem="its columns changed since it was opened")
        cursor.adbc_statement.set_options(**dict([BATCH_HINT]))
        cursor.execute(select_tree(schema, types, table).sql(dialect="postgres"))
        reader = cursor.fetch_record_batch()
        yield reader.schema.empty_table()
        yield from (pa.Table.from_batches([batch]) for batch in reader)
        # A stream that ended because the connection did would fail here.
        cursor.execute("SELECT 1")
        cursor.fetchall()


@contextmanager
def _snapshot(source: Postgres) -> Iterator[Any]:
    """A read-only transaction that sees one state of the database; nothing is left behind."""
    driver = load_part(DRIVER, extra="postgres")
    try:
        connection = driver.connect(source.uri)
    except Exception as error:
        raise SourceError(source=f"PostgreSQL table '{source.table}'", problem=_refusal(str(error))) from None
    try:
        cursor = connection.cursor()
        try:
            yield cursor
        finally:
            with suppress(Exception):
                cursor.close()
    finally:
        with suppress(Exception):
            connection.close()


@contextmanager
def _told(source: Postgres, cursor: Any) -> Iterator[None]:
    """Whatever the driver raises, in our words: whether the connection still lives decides which."""
    try:
        cursor.execute(SNAPSHOT)
        yield
    except (SourceError, ServerError):
        raise
    except Exception:
        raise ServerError(server=f"PostgreSQL table '{source.table}'", problem=_state(cursor)) from None


def _state(cursor: Any) -> str:
    try:
        cursor.connection.rollback()
        cursor.execute("SELECT 1")
        cursor.fetchall()
    except Exception:
        return "the connection was lost while it was read"
    return "the server refused or could not finish the statement"


def _refusal(text: str) -> str:
    return next((ours for theirs, ours in REFUSALS.items() if theirs in text), "the server could not be reached")


def _described(source: Postgres, cursor: Any) -> tuple[tuple[str, str], dict[str, str]]:
    """Schema and name of the table, and the type of each column."""
    cursor.execute(SETTINGS)
    if cursor.fetchone()[0] == "SQL_ASCII":
        raise SourceError(source=source.table, problem="its database has the encoding SQL_ASCII, so its text has none")
    quoted = ".".join('"' + name.replace('"', '""') + '"' for name in source.names())
    cursor.execute(FOUND, parameters=[quoted])
    found = cursor.fetchone()
    if found is None:
        raise SourceError(
            source=f"PostgreSQL table '{source.table}'",
            problem="there is no such table or view",
            advice="Names are taken letter by letter; without a schema the search path of the user decides.",
        )
    cursor.execute(TYPES, parameters=[quoted])
    return (found[0], found[1]), dict(cursor.fetchall())
