"""PostgreSQL without a server: what is asked of one, how its types are held, and what its errors become."""

from contextlib import contextmanager
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from engines.refused import refusal
from recordwise.engines.compile.expressions import column
from recordwise.engines.compile.records import BEYOND, FAULTS, INFINITE, NAN, NEGATIVE, OFF, StorageType
from recordwise.engines.sources import postgres
from recordwise.errors import ServerError
from recordwise.plan import Measure, Schema
from recordwise.plan.sources import Postgres

SOURCE = Postgres("postgresql://me:s3cret@host/db", table="t")
SCHEMA = Schema.of(unit="id", firm="firm", measures={"emp": 1}, columns={"town": "text"})
TYPES = {"id": "int8", "firm": "uuid", "emp": "numeric", "town": "bpchar", "other": "json"}


# Types.


@pytest.mark.parametrize(
    ("types", "kind"),
    [
        (("int2", "int4", "int8"), "integer"),
        (("text", "varchar", "bpchar", "name", "enum"), "text"),
        (("date", "timestamp"), "date"),
        (("timestamptz",), "zoned"),
        (("bool",), "boolean"),
        (("numeric", "float4", "float8", "json", "a type of its own"), "other"),
    ],
)
def test_each_type_of_a_server_is_held_in_one_way(types: tuple[str, ...], kind: str) -> None:
    assert {postgres._column_storage(each).kind for each in types} == {kind}


def test_measures_are_numbers_and_come_as_steps() -> None:
    for kind in ("int2", "int4", "int8", "float4", "float8", "numeric"):
        assert postgres._measure_storage("emp", kind) == StorageType("steps")
    for kind in ("text", "money", "bool", "date"):
        told = refusal(postgres._measure_storage, "emp", kind)
        assert (told.source, told.problem) == ("column 'emp'", f"it is declared as measure but stored as {kind}")


def test_ids_keep_what_the_server_finds_equal() -> None:
    for kind in ("int2", "int8", "bool"):
        assert postgres._id_tree("id", kind).sql("postgres") == '"id"'
    for kind in ("text", "enum", "uuid", "date", "timestamp"):
        assert postgres._id_tree("id", kind).sql("postgres") == 'CAST("id" AS TEXT)'
    assert postgres._id_tree("id", "numeric").sql("postgres") == 'CAST(TRIM_SCALE("id") AS TEXT)'
    for kind in ("float8", "timestamptz", "bytea"):
        assert f"stored as {kind}, which cannot be an id" in refusal(postgres._id_tree, "id", kind).problem


def test_only_declared_columns_are_held_and_asked_for() -> None:
    held = postgres.storage_types(SCHEMA, TYPES)
    assert held == {
        "town": StorageType("text"),
        "emp": StorageType("steps"),
        "id": StorageType("other"),
        "firm": StorageType("other"),
    }
    assert postgres.storage_types(SCHEMA, {"id": "int8"}) == {"id": StorageType("other")}
    asked = postgres.select_tree(SCHEMA, TYPES, ("public", "T 1")).sql("postgres")
    assert asked.startswith('SELECT "id" AS "id", CAST("firm" AS TEXT) AS "firm", CASE WHEN "emp" IS NULL THEN NULL')
    assert asked.endswith('CAST("town" AS TEXT) AS "town" FROM "public"."T 1"')
    whole = Schema.of(unit=["id", "size"], columns={"size": "integer"})
    asked = postgres.select_tree(whole, {"id": "int8", "size": "int4"}, ("s", "t")).sql("postgres")
    assert asked == 'SELECT "id" AS "id", "size" AS "size" FROM "s"."t"'
    assert postgres.storage_types(whole, {"id": "int8", "size": "int4"})["size"] == StorageType("integer")


# Steps: what is asked of a server, asked of DuckDB, whose whole numbers and floats are the same.


def evaluated(tree: Any, values: list[Any], kind: pa.DataType) -> list[Any]:
    with duckdb.connect() as made:
        made.register("given", pa.table({"emp": pa.array(values, kind)}))
        made.execute("CREATE MACRO DIV(a, b) AS (a - a % b) / b")
        return [row[0] for row in made.sql(f"SELECT {tree.sql('duckdb')} FROM given").fetchall()]


def faulty(found: list[Any]) -> list[Any]:
    words = {code: name for name, code in FAULTS.items()}
    return [words.get(each, each) for each in found]


@pytest.mark.parametrize(
    ("step", "signed", "values", "wanted"),
    [
        (1, False, [0, 7, 10, 11, -1, None], [0, 7, 10, BEYOND, NEGATIVE, None]),
        (1, True, [-10, -11, 10, 11, 0], [-10, BEYOND, 10, BEYOND, 0]),
        (5, False, [0, 5, 10, 7, 15, -5], [0, 1, 2, OFF, BEYOND, NEGATIVE]),
        (5, True, [-10, -5, -7, -15, 10], [-2, -1, OFF, BEYOND, 2]),
        ("0.5", False, [0, 3, 10, 11], [0, 6, 20, BEYOND]),
        ("2.5", False, [0, 5, 10, 3, 11], [0, 2, 4, OFF, BEYOND]),
    ],
)
def test_whole_numbers_become_steps_or_codes_of_faults(
    step: Any, signed: bool, values: list[Any], wanted: list[Any]
) -> None:
    measure = Measure.of("emp", step=step, signed=signed, bound=10)
    assert faulty(evaluated(postgres._steps_tree(measure, "int8"), values, pa.int64())) == wanted


@pytest.mark.parametrize(
    ("step", "signed", "values", "wanted"),
    [
        (1, False, [0.0, 10.0, 10.5, 11.0, 2.5, -1.0, None], [0, 10, BEYOND, BEYOND, OFF, NEGATIVE, None]),
        ("0.1", False, [0.3, 0.1 + 0.2, 10.0, 1e-19], [3, OFF, 100, OFF]),
        ("0.1", True, [-0.3, -10.0, -10.1, 10.1], [-3, -100, BEYOND, BEYOND]),
        ("2.5", True, [-7.5, 5.0, 1.0], [-3, 2, OFF]),
        (1, False, [float("nan"), float("inf"), -float("inf")], [NAN, INFINITE, INFINITE]),
    ],
)
def test_floats_become_steps_or_codes_of_faults(step: Any, signed: bool, values: list[Any], wanted: list[Any]) -> None:
    measure = Measure.of("emp", step=step, signed=signed, bound=10)
    assert faulty(evaluated(postgres._steps_tree(measure, "float8"), values, pa.float64())) == wanted


def test_decimals_are_compared_with_a_bound_before_they_are_multiplied() -> None:
    """The bound of 10/3 in steps of 1/3 is below 4, the first whole number that is surely beyond it."""
    measure = Measure.of("emp", step=Fraction(1, 3), bound=Fraction(10, 3))
    asked = postgres._exact_steps(measure, column("emp"), numeric=True).sql("postgres")
    order = ["IS NULL", "'NaN'", "'Infinity'", '"emp" > 4 ', " > 10 ", " % "]
    places = [asked.index(word) for word in order]
    assert places == sorted(places)
    whole = postgres._exact_steps(measure, column("emp"), numeric=False).sql("postgres")
    assert "NaN" not in whole
    assert "Infinity" not in whole
    assert "1" + 40 * "0" in asked
    plain = postgres._exact_steps(Measure.of("emp", bound=5), column("emp"), numeric=True).sql("postgres")
    assert "NaN" in plain


def test_codes_of_faults_are_below_every_number_of_steps() -> None:
    assert list(FAULTS) == [NAN, INFINITE, NEGATIVE, BEYOND, OFF]
    assert sorted(FAULTS.values(), reverse=True) == list(FAULTS.values())
    assert len(set(FAULTS.values())) == 5
    assert max(FAULTS.values()) == -(2**62) - 1
    assert float(postgres.TINY.name) == 2.0**-60


# Connections.


class Cursor:
    """A server that answers from a list, by a word of what is asked."""

    def __init__(self, answers: dict[str, Any], batches: list[pa.RecordBatch] | None = None) -> None:
        self.answers, self.batches = answers, batches or []
        self.asked: list[str] = []
        self.options: dict[str, str] = {}
        self.adbc_statement = SimpleNamespace(set_options=lambda **given: self.options.update(given))
        self.connection = SimpleNamespace(rollback=lambda: self.asked.append("ROLLBACK"))
        self._found: Any = None

    def execute(self, text: str, parameters: Any = None) -> None:
        self.asked.append(text if parameters is None else f"{text} {parameters}")
        found: Any = next((answer for word, answer in self.answers.items() if word in text), [])
        if isinstance(found, Exception):
            raise found
        self._found = list(found)

    def fetchone(self) -> Any:
        return self._found[0] if self._found else None

    def fetchall(self) -> Any:
        return self._found

    def fetch_record_batch(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self.batches[0].schema, self.batches)


GOOD = {
    "server_encoding": [("UTF8",)],
    "pg_class": [("public", "t")],
    "pg_attribute": list(TYPES.items()),
}
BATCH = pa.record_batch({"id": [1, 2]})


def serving(monkeypatch: pytest.MonkeyPatch, cursor: Cursor) -> Cursor:
    @contextmanager
    def snapshot(source: Postgres) -> Any:
        yield cursor

    monkeypatch.setattr(postgres, "_snapshot", snapshot)
    return cursor


def test_the_catalog_says_what_a_table_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    cursor = serving(monkeypatch, Cursor(GOOD))
    assert postgres.postgres_columns(SOURCE, SCHEMA) == postgres.storage_types(SCHEMA, TYPES)
    assert cursor.asked[0] == postgres.SNAPSHOT
    assert cursor.asked[2].endswith("['\"t\"']")
    assert "no column size" in refusal(postgres.postgres_columns, SOURCE, Schema.of(unit="size")).problem
    assert postgres.catalog(SOURCE) == {
        "id": "integer",
        "firm": "other",
        "emp": "number",
        "town": "text",
        "other": "other",
    }


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ({"server_encoding": [("SQL_ASCII",)]}, "encoding of its text is unknown"),
        ({"pg_class": []}, "there is no such table or view"),
    ],
)
def test_a_table_without_an_encoding_or_that_is_not_there_is_refused(
    monkeypatch: pytest.MonkeyPatch, answers: dict[str, Any], told: str
) -> None:
    serving(monkeypatch, Cursor(GOOD | answers))
    assert told in refusal(postgres.postgres_columns, SOURCE, SCHEMA).problem


def test_records_come_in_batches_from_one_statement_and_the_connection_is_asked_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stored = postgres.storage_types(SCHEMA, TYPES)
    cursor = serving(monkeypatch, Cursor(GOOD, [BATCH, BATCH]))
    parts = list(postgres.postgres_batches(SOURCE, SCHEMA, stored))
    assert [part.num_rows for part in parts] == [0, 2, 2]
    assert cursor.options == {"adbc.postgresql.batch_size_hint_bytes": "8388608"}
    assert cursor.asked[-1] == "SELECT 1"
    changed = stored | {"town": StorageType("date")}
    assert "its columns changed" in refusal(lambda: list(postgres.postgres_batches(SOURCE, SCHEMA, changed))).problem
    serving(monkeypatch, Cursor(GOOD | {"SELECT 1": OSError("SECRET")}, [BATCH]))
    with pytest.raises(ServerError, match="connection was lost") as lost:
        list(postgres.postgres_batches(SOURCE, SCHEMA, stored))
    assert "SECRET" not in str(lost.value)


def test_a_statement_that_fails_on_a_living_connection_is_the_server_s(monkeypatch: pytest.MonkeyPatch) -> None:
    cursor = serving(monkeypatch, Cursor(GOOD | {"pg_attribute": OSError("SECRET")}))
    with pytest.raises(ServerError, match="refused or could not finish the statement"):
        postgres.postgres_columns(SOURCE, SCHEMA)
    assert cursor.asked[-2:] == ["ROLLBACK", "SELECT 1"]


def test_numbers_are_looked_at_as_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    cursor = serving(monkeypatch, Cursor(GOOD, [BATCH]))
    assert [part.num_rows for part in postgres.numbers_of(SOURCE, ["emp", "a b"])] == [0, 2]
    wanted = (
        'SELECT CAST("emp" AS DOUBLE PRECISION) AS "emp", CAST("a b" AS DOUBLE PRECISION) AS "a b" FROM "public"."t"'
    )
    assert cursor.asked[-1] == wanted


@pytest.mark.parametrize(
    ("text", "problem", "unreachable"),
    [
        ('FATAL: password authentication failed for user "me"', "refused the user or the password", False),
        ("no pg_hba.conf entry for host", "refused the user or the password", False),
        ('FATAL: role "me" is not permitted', "refused the user or the password", False),
        ('FATAL: database "db" does not exist', "there is no such database", False),
        ("Connection refused", "no server answers there", True),
        ("No such file or directory", "no server answers there", True),
        ("could not translate host name", "there is no such host", True),
        ("timeout expired", "the server could not be reached", True),
    ],
)
def test_why_no_connection_was_made_is_told_in_our_words(
    monkeypatch: pytest.MonkeyPatch, text: str, problem: str, unreachable: bool
) -> None:
    def connect(uri: str) -> None:
        raise OSError(f"{text} {uri}")

    monkeypatch.setattr(postgres, "load_optional", lambda module, extra: SimpleNamespace(connect=connect))
    told = refusal(postgres.postgres_columns, SOURCE, SCHEMA)
    assert problem in told.problem
    assert told.unreachable == unreachable
    assert "s3cret" not in str(told)


def test_a_connection_is_closed_after_a_pass_and_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []
    cursor = Cursor(GOOD)
    cursor.close = lambda: closed.append("cursor")  # type: ignore[attr-defined]
    made = SimpleNamespace(cursor=lambda: cursor, close=lambda: closed.append("connection"))
    driver = SimpleNamespace(connect=lambda uri: made)
    monkeypatch.setattr(postgres, "load_optional", lambda module, extra: driver)
    postgres.postgres_columns(SOURCE, SCHEMA)
    assert closed == ["cursor", "connection"]
    refusal(postgres.postgres_columns, SOURCE, Schema.of(unit="nothing"))
    assert closed == ["cursor", "connection"] * 2
