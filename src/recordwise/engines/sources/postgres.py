"""PostgreSQL tables through ADBC.

The catalog is read when a table is opened, and every record once, in one snapshot, when first needed. An
error text from the server or its driver can quote a record or an address, so errors use our words only.

The query selects only the declared columns, with every measure converted on the server to a whole number of
steps. A value that is not a whole number of steps within the bound becomes one of the negative codes of
``FAULTS``, so that the checks count the same problems for every source. CASE tests each value before
computing with it, so the server's arithmetic cannot fail.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlglot import exp

from recordwise.engines.compile.expressions import column, constant
from recordwise.engines.compile.records import BEYOND, FAULTS, INFINITE, NAN, NEGATIVE, OFF, StorageType, largest_steps
from recordwise.engines.engine import check_present, load_optional
from recordwise.errors import ServerError, SourceError
from recordwise.plan.schema import Measure, Schema
from recordwise.plan.sources import Postgres

INTEGERS = ("int2", "int4", "int8")
FLOATS = ("float4", "float8")
TEXTS = ("text", "varchar", "bpchar", "name", "enum")
WRITTEN_IDS = ("uuid", "date", "timestamp")
"""Ids that are compared by the text the server writes for them, which is unique for each value."""
TINY = exp.Literal.number("8.673617379884035e-19")
"""2^-60: less than half of the smallest possible step, so the nearest whole number of steps is 0 (T-LATTICE)."""


def storage_types(schema: Schema, types: dict[str, str]) -> dict[str, StorageType]:
    """How the copy will store each declared column that the table has."""
    found = {name: _column_storage(types[name]) for name in schema.column_names() if name in types}
    for measure in schema.record_measures():
        if measure.name in types:
            found[measure.name] = _measure_storage(measure.name, types[measure.name])
    for identifier in schema.id_columns():
        if identifier in types:
            _id_tree(identifier, types[identifier])
            found.setdefault(identifier, StorageType("other"))
    return found


def _measure_storage(name: str, kind: str) -> StorageType:
    if kind in (*INTEGERS, *FLOATS, "numeric"):
        return StorageType("steps")
    raise SourceError(
        source=f"column '{name}'",
        problem=f"it is declared as measure but stored as {kind}",
        advice="Use a view that casts it to numeric.",
    )


def _column_storage(kind: str) -> StorageType:
    if kind in INTEGERS:
        return StorageType("integer")
    if kind in TEXTS:
        return StorageType("text")
    if kind in ("date", "timestamp"):
        return StorageType("date")
    if kind == "timestamptz":
        return StorageType("zoned")
    return StorageType("boolean") if kind == "bool" else StorageType("other")


def select_tree(schema: Schema, types: dict[str, str], table: tuple[str, ...]) -> exp.Expr:
    """SELECT ids, steps and conditional columns FROM the table."""
    trees = {name: _id_tree(name, types[name]) for name in schema.id_columns()}
    for measure in schema.record_measures():
        trees[measure.name] = _steps_tree(measure, types[measure.name])
    for name in schema.column_names():
        # A cast to text drops the blanks that pad a CHAR and converts an ENUM to its label.
        trees[name] = cast(column(name), "TEXT") if types[name] in TEXTS else column(name)
    select = exp.select(*(exp.alias_(tree, exp.to_identifier(name, quoted=True)) for name, tree in trees.items()))
    return select.from_(exp.table_(table[1], db=table[0], quoted=True))


def _id_tree(name: str, kind: str) -> exp.Expr:
    """Convert an id, preserving equality as on the server."""
    if kind in INTEGERS or kind == "bool":
        return column(name)
    if kind == "numeric":
        # 1.0 and 1.00 are the same number.
        return cast(exp.func("TRIM_SCALE", column(name)), "TEXT")
    if kind in (*TEXTS, *WRITTEN_IDS):
        return cast(column(name), "TEXT")
    raise SourceError(
        source=f"column '{name}'",
        problem=f"it is stored as {kind}, which cannot be an id",
        advice="Use a view that casts it to text or to a whole number.",
    )


def _steps_tree(measure: Measure, kind: str) -> exp.Expr:
    if kind in FLOATS:
        return _float_steps(measure, cast(column(measure.name), "DOUBLE"))
    return _exact_steps(measure, column(measure.name), numeric=kind == "numeric")


def _exact_steps(measure: Measure, raw: exp.Expr, *, numeric: bool) -> exp.Expr:
    """Convert whole numbers and decimals to steps.

    In the server's exact decimal arithmetic: value * q / p for the step p/q.
    """
    step, steps = measure.step, measure.bound_steps
    limit = step * steps
    ceiling = constant(-(-limit.numerator // limit.denominator))
    if not numeric and step == 1:
        return _case(raw, _range_tests(measure, raw, ceiling), raw)
    up = exp.Mul(this=cast(raw, "DECIMAL"), expression=cast(constant(step.denominator), "DECIMAL"))
    rest = exp.Mod(this=exp.Paren(this=up), expression=cast(constant(step.numerator), "DECIMAL"))
    tests = [
        # A value far beyond the bound is detected before it is multiplied.
        *([(exp.EQ(this=raw, expression=_special("NaN", "DECIMAL")), NAN)] if numeric else []),
        *([(_written(raw, "Infinity", "-Infinity"), INFINITE)] if numeric else []),
        *_range_tests(measure, raw, ceiling),
        *_range_tests(measure, up, constant(steps * step.numerator)),
        (exp.NEQ(this=rest, expression=constant(0)), OFF),
    ]
    whole = exp.Anonymous(this="DIV", expressions=[up.copy(), cast(constant(step.numerator), "DECIMAL")])
    return _case(raw, tests, whole)


def _float_steps(measure: Measure, raw: exp.Expr) -> exp.Expr:
    """Convert floats to steps by T-LATTICE.

    In the server's double-precision arithmetic, which follows IEEE 754 as ours does.
    """
    step = measure.step
    limit = largest_steps(measure, StorageType("float")) * step
    scaled = exp.Div(
        this=exp.Paren(this=exp.Mul(this=raw, expression=_double(step.denominator))), expression=_double(step.numerator)
    )
    # PostgreSQL raises an error for a quotient that underflows.
    steps = exp.Case(
        ifs=[exp.If(this=exp.LT(this=exp.Abs(this=raw.copy()), expression=TINY.copy()), true=_double(0))],
        default=exp.func("ROUND", scaled),
    )
    whole = exp.Mul(this=steps, expression=_double(step.numerator))
    nearest = exp.Div(this=exp.Paren(this=whole), expression=_double(step.denominator))
    beyond = exp.Div(this=_double(limit.numerator), expression=_double(limit.denominator))
    tests = [
        (exp.EQ(this=raw, expression=_special("NaN", "DOUBLE")), NAN),
        (exp.In(this=raw, expressions=[_special("Infinity", "DOUBLE"), _special("-Infinity", "DOUBLE")]), INFINITE),
        *_range_tests(measure, raw, exp.Paren(this=beyond)),
        (exp.NEQ(this=nearest, expression=raw), OFF),
    ]
    return _case(raw, tests, steps)


def _case(raw: exp.Expr, tests: list[tuple[exp.Expr, str]], value: exp.Expr) -> exp.Expr:
    """Return NULL, the first true test's code, or the value.

    All in 64 bits. Each branch is cast by itself: one branch of doubles makes the whole CASE double, which
    would round all codes to one number.
    """
    unknown = exp.If(this=exp.Is(this=raw.copy(), expression=exp.null()), true=exp.null())
    faults = [exp.If(this=test.copy(), true=cast(constant(FAULTS[fault]), "BIGINT")) for test, fault in tests]
    return exp.Case(ifs=[unknown, *faults], default=cast(value, "BIGINT"))


def _range_tests(measure: Measure, raw: exp.Expr, limit: exp.Expr) -> list[tuple[exp.Expr, str]]:
    """Return tests for values that are negative or beyond a limit."""
    above = exp.GT(this=raw.copy(), expression=limit.copy())
    if not measure.signed:
        return [(_negative(raw), NEGATIVE), (above, BEYOND)]
    return [(above, BEYOND), (exp.LT(this=raw.copy(), expression=exp.Neg(this=exp.Paren(this=limit.copy()))), BEYOND)]


def _negative(raw: exp.Expr) -> exp.Expr:
    return exp.LT(this=raw.copy(), expression=constant(0))


def _written(raw: exp.Expr, *texts: str) -> exp.Expr:
    """Compare a huge value as text.

    Older servers have no infinite decimals and cannot parse the word.
    """
    words = exp.In(this=cast(raw.copy(), "TEXT"), expressions=[exp.Literal.string(text) for text in texts])
    huge = exp.or_(_negative(raw), exp.GT(this=raw.copy(), expression=exp.Literal.number("1" + 40 * "0")))
    return exp.and_(huge, words)


def _special(word: str, kind: str) -> exp.Expr:
    return cast(exp.Literal.string(word), kind)


def _double(value: int) -> exp.Expr:
    return cast(constant(value), "DOUBLE")


def cast(tree: exp.Expr, to: str) -> exp.Expr:
    return exp.Cast(this=tree.copy(), to=exp.DataType.build(to))


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


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why no connection was made."""

    problem: str
    unreachable: bool = False
    """Whether no server answered, which says nothing about the plan."""


NO_ENTRY = Refusal("it refused the user or the password")
NO_SERVER = Refusal("no server answers there", unreachable=True)
REFUSALS = {
    "password": NO_ENTRY,
    "authentication": NO_ENTRY,
    "pg_hba": NO_ENTRY,
    "database": Refusal("there is no such database"),
    "role": NO_ENTRY,
    "refused": NO_SERVER,
    "No such file": NO_SERVER,
    "could not translate host": Refusal("there is no such host", unreachable=True),
}
"""What a word in the driver's text means."""
NO_ANSWER = Refusal("the server could not be reached", unreachable=True)


def postgres_columns(source: Postgres, schema: Schema) -> dict[str, StorageType]:
    """Return the declared columns' storage by the catalog, reading no record."""
    with _snapshot(source) as cursor, _masking_errors(source, cursor):
        _, types = _describe_table(source, cursor)
        check_present(schema.names(), list(types))
        return storage_types(schema, types)


def postgres_batches(source: Postgres, schema: Schema, stored: dict[str, StorageType]) -> Iterator[pa.Table]:
    """Yield the records in parts of bounded size.

    From one statement and so one snapshot, if the table's columns are unchanged.
    """
    with _snapshot(source) as cursor, _masking_errors(source, cursor):
        table, types = _describe_table(source, cursor)
        if storage_types(schema, types) != stored:
            raise SourceError(source=source.table, problem="its columns changed since it was opened")
        cursor.adbc_statement.set_options(**dict([BATCH_HINT]))
        cursor.execute(select_tree(schema, types, table).sql(dialect="postgres"))
        reader = cursor.fetch_record_batch()
        yield reader.schema.empty_table()
        yield from (pa.Table.from_batches([batch]) for batch in reader)
        # If the stream ended because the connection was lost, this fails.
        cursor.execute("SELECT 1")
        cursor.fetchall()


def catalog(source: Postgres) -> dict[str, str]:
    """Return every column's kind from the catalog, reading no record."""
    with _snapshot(source) as cursor, _masking_errors(source, cursor):
        _, types = _describe_table(source, cursor)
    return {
        name: "number" if kind in (*FLOATS, "numeric") else _column_storage(kind).kind for name, kind in types.items()
    }


def numbers_of(source: Postgres, names: list[str]) -> Iterator[pa.Table]:
    """Yield the values of number columns as floats."""
    with _snapshot(source) as cursor, _masking_errors(source, cursor):
        (schema, table), _ = _describe_table(source, cursor)
        floats = (exp.alias_(cast(column(name), "DOUBLE"), exp.to_identifier(name, quoted=True)) for name in names)
        cursor.execute(exp.select(*floats).from_(exp.table_(table, db=schema, quoted=True)).sql(dialect="postgres"))
        reader = cursor.fetch_record_batch()
        yield reader.schema.empty_table()
        yield from (pa.Table.from_batches([batch]) for batch in reader)


@contextmanager
def _snapshot(source: Postgres) -> Iterator[Any]:
    """Open a read-only transaction on one state of the database."""
    driver = load_optional(DRIVER, extra="postgres")
    try:
        connection = driver.connect(source.uri)
    except Exception as error:
        refusal, name = _refusal(str(error)), f"PostgreSQL table '{source.table}'"
        raise SourceError(source=name, problem=refusal.problem, unreachable=refusal.unreachable) from None
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
def _masking_errors(source: Postgres, cursor: Any) -> Iterator[None]:
    """Replace the driver's exceptions with ours."""
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


def _refusal(text: str) -> Refusal:
    return next((ours for theirs, ours in REFUSALS.items() if theirs in text), NO_ANSWER)


def _describe_table(source: Postgres, cursor: Any) -> tuple[tuple[str, str], dict[str, str]]:
    """Return a table's schema and name, and its column types."""
    cursor.execute(SETTINGS)
    if cursor.fetchone()[0] == "SQL_ASCII":
        raise SourceError(
            source=source.table, problem="its database encoding is SQL_ASCII, so the encoding of its text is unknown"
        )
    quoted = ".".join('"' + name.replace('"', '""') + '"' for name in source.names())
    cursor.execute(FOUND, parameters=[quoted])
    found = cursor.fetchone()
    if found is None:
        raise SourceError(
            source=f"PostgreSQL table '{source.table}'",
            problem="there is no such table or view",
            advice="Names are case-sensitive; a name without a schema is looked up in the user's search path.",
        )
    cursor.execute(TYPES, parameters=[quoted])
    return (found[0], found[1]), dict(cursor.fetchall())
