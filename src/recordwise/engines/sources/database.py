"""A table in a DuckDB or SQLite file.

Opened read-only: its columns when it is named, its records once, in one transaction. In SQLite each value
has a type, the column has none. So values are copied as text, numbers in digits that give the same number
back, and are read by the declared types like those of a CSV file.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from recordwise.engines.compile.records import StorageType
from recordwise.engines.duckdb.connection import TRUSTING
from recordwise.engines.engine import check_present
from recordwise.engines.sources.files import plain_table
from recordwise.errors import DataError, RecordError, RecordwiseError, SourceError
from recordwise.plan.schema import Schema
from recordwise.plan.sources import Database

BATCH_ROWS = 100_000
SQLITE, DUCKDB = b"SQLite format 3\x00", b"DUCK"
NO_TABLE = "there is no such table or view in it"
NO_TEXT = "holds numbers or bytes where it should hold text"
NO_ID = "holds floats or bytes where it should hold ids"
MIXED_IDS = "holds whole numbers in some rows and text in others, which may be one id in two spellings,"
FAILED = "it cannot be read: it is damaged, in use by a program that writes to it, or of a version that is not known"


def database_head(source: Database, schema: Schema) -> pa.Table | dict[str, StorageType]:
    """How the declared columns are stored, without a record."""
    if _is_sqlite(Path(source.path)):
        with _sqlite(source) as connection:
            _sqlite_names(connection, source, schema)
        return {name: StorageType("text", untyped=True) for name in schema.names()}
    with _duckdb(source) as relation:
        return plain_table(_select_columns(relation, schema).limit(0).to_arrow_table())


def table_types(source: Database) -> dict[str, pa.DataType]:
    """Return every column's type without reading a record.

    NULL in SQLite, whose columns have no type.
    """
    if _is_sqlite(Path(source.path)):
        with _sqlite(source) as connection:
            return dict.fromkeys(_sqlite_columns(connection, source), pa.null())
    with _duckdb(source) as relation:
        found = relation.limit(0).to_arrow_table().schema
        return dict(zip(found.names, found.types))


def database_batches(source: Database, schema: Schema, _: dict[str, StorageType]) -> Iterator[pa.Table]:
    """The records, in batches of one statement."""
    if _is_sqlite(Path(source.path)):
        yield from _sqlite_batches(source, schema)
        return
    with _duckdb(source) as relation:
        reader = _select_columns(relation, schema).to_arrow_reader(BATCH_ROWS)
        yield plain_table(reader.schema.empty_table())
        for batch in reader:
            yield plain_table(pa.Table.from_batches([batch]))


def _is_sqlite(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            start = file.read(16)
    except OSError:
        raise _refusal("it cannot be read") from None
    if start == SQLITE:
        return True
    if start[8:12] != DUCKDB:
        raise _refusal("it is no database of DuckDB or SQLite")
    return False


def _refusal(problem: str, advice: str = "") -> SourceError:
    return SourceError(source="the database file", problem=problem, advice=advice)


def _quoted_name(source: Database) -> str:
    return ".".join('"' + name.replace('"', '""') + '"' for name in source.names())


@contextmanager
def _duckdb(source: Database) -> Iterator[duckdb.DuckDBPyRelation]:
    """Open a DuckDB table, hiding errors that can quote records."""
    settings: dict[str, str | bool | int | float | list[str]] = {
        "enable_external_access": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "disabled_optimizers": TRUSTING,
    }
    try:
        with duckdb.connect(str(source.path), read_only=True, config=settings) as connection:
            yield connection.sql(f"SELECT * FROM {_quoted_name(source)}")
    except RecordwiseError:
        raise
    except duckdb.CatalogException:
        raise _refusal(NO_TABLE) from None
    except duckdb.Error:
        raise _refusal(FAILED) from None


def _select_columns(relation: duckdb.DuckDBPyRelation, schema: Schema) -> duckdb.DuckDBPyRelation:
    check_present(schema.names(), relation.columns)
    return relation.select(*(duckdb.ColumnExpression(name) for name in schema.names()))


@contextmanager
def _sqlite(source: Database) -> Iterator[sqlite3.Connection]:
    address = Path(source.path).as_uri() + "?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True, isolation_level=None)) as connection:
            connection.execute("PRAGMA query_only = ON")
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("BEGIN")
            yield connection
    except sqlite3.Error:
        raise _refusal(FAILED) from None


def _sqlite_names(connection: sqlite3.Connection, source: Database, schema: Schema) -> None:
    check_present(schema.names(), _sqlite_columns(connection, source))


def _sqlite_columns(connection: sqlite3.Connection, source: Database) -> list[str]:
    *schemas, table = source.names()
    found = [row[0] for row in connection.execute("SELECT name FROM pragma_table_xinfo(?)", (table,))]
    if not found or schemas not in ([], ["main"]):
        raise _refusal(NO_TABLE)
    return found


def _sqlite_batches(source: Database, schema: Schema) -> Iterator[pa.Table]:
    names = list(schema.names())
    with _sqlite(source) as connection:
        _sqlite_names(connection, source, schema)
        _check_kinds(connection, source, schema)
        written = ", ".join(_text_expression(name, schema) for name in names)
        cursor = connection.execute(f"SELECT {written} FROM {_quoted_name(source)}")
        yield pa.schema([(name, pa.string()) for name in names]).empty_table()
        while rows := cursor.fetchmany(BATCH_ROWS):
            yield pa.table({name: _texts(name, values) for name, values in zip(names, zip(*rows))})


def _texts(name: str, values: Any) -> pa.Array:
    try:
        return pa.array(values, pa.string())
    except (pa.ArrowException, UnicodeError, TypeError):
        raise DataError(problems=(RecordError(column=name, problem="holds values that are no text"),)) from None


def _text_expression(name: str, schema: Schema) -> str:
    """Return a value as text.

    Seventeen digits give a float back; a whole float is a whole number where the column holds integers.
    """
    column = '"' + name.replace('"', '""') + '"'
    declared = schema.column(name)
    whole = f"WHEN typeof({column}) = 'real' AND {column} = CAST({column} AS INTEGER) THEN CAST(CAST({column} AS INTEGER) AS TEXT)"
    integer = whole if declared is not None and declared.type == "integer" else ""
    return (
        f"CASE {integer} WHEN typeof({column}) = 'real' THEN printf('%!.17g', {column}) ELSE CAST({column} AS TEXT) END"
    )


def _check_kinds(connection: sqlite3.Connection, source: Database, schema: Schema) -> None:
    """Refuse bytes and mixtures of numbers and texts.

    '01' and 1 are different codes, 1 and 1.0 one id.
    """
    problems = []
    for name in schema.names():
        column, declared = '"' + name.replace('"', '""') + '"', schema.column(name)
        measure = schema.measure(name)
        counts = dict.fromkeys(("integer", "real", "text", "blob"), 0)
        statement = f"SELECT typeof({column}), COUNT(*) FROM {_quoted_name(source)} GROUP BY 1"
        counts |= dict(connection.execute(statement).fetchall())
        if declared is None and measure is None:
            kind, count = _id_problem(counts)
        elif (declared is not None and declared.type in ("text", "date")) or (measure and measure.number):
            kind, count = NO_TEXT, counts["integer"] + counts["real"] + counts["blob"]
        else:
            kind, count = "holds bytes", counts["blob"]
        if count:
            problems.append(RecordError(column=name, problem=kind, count=count))
    if problems:
        raise DataError(problems=tuple(problems))


def _id_problem(counts: dict[str, int]) -> tuple[str, int]:
    """Return the problem of ids of mixed types."""
    if counts["blob"] or counts["real"]:
        return NO_ID, counts["blob"] + counts["real"]
    return MIXED_IDS, min(counts["integer"], counts["text"])
