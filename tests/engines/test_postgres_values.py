"""A table of a real PostgreSQL server gives the totals and the refusals that the same records give anywhere else."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import recordwise as rw
from build import CODES, COUNTIES, records
from engines.copied_sources import problems, revealed
from recordwise.engines import DuckDB
from recordwise.engines.compile.records import BEYOND, FAULTS, INFINITE, NAN, NEGATIVE, OFF
from recordwise.engines.sources.postgres import postgres_batches, postgres_columns
from recordwise.errors import SourceError
from recordwise.plan import Column, Measure, Plan, Schema
from recordwise.plan.sources import Postgres

SCHEMA = Schema.of(unit="id", firm="firm", measures={"emp": 1, "pay": 1}, columns={"county": "text", "naics": "text"})


def plan() -> Plan:
    asked = rw.query().where("emp >= 2").group_by("county", keys=rw.Keys.product(county=COUNTIES, naics=CODES))
    asked = asked.levels(rw.prefix("naics", 2), rw.prefix("naics", 3)).count(rw.Gaussian(rho=1))
    asked = asked.sum("emp", rw.Gaussian(sigma=1)).sum("pay", rw.Gaussian(sigma=1))
    return Plan(schema=SCHEMA, queries=(asked.count_distinct("firm", rw.Gaussian(rho=1)),))


def codes(server, table, schema):
    """The steps or faults the server computes for the measures, by id."""
    source = Postgres(server.uri(), table=table)
    parts = pa.concat_tables(postgres_batches(source, schema, postgres_columns(source, schema)))
    return parts.sort_by("id").to_pydict()


def test_a_server_table_gives_the_totals_of_the_same_records_in_memory(server):
    table = records(3000)
    server.ingest("plain", table)
    assert revealed(Postgres(server.uri(), table="plain"), plan()) == revealed(table, plan())


def test_every_way_to_store_a_number_or_a_text_gives_the_same_totals(server):
    table = records(2000)
    server.ingest("narrow", table)
    server.run(
        "CREATE TYPE area AS ENUM ('01', '02', '03')",
        "CREATE DOMAIN code AS varchar(6)",
        """CREATE TABLE agency.wide AS SELECT id::numeric(20, 2) AS id, firm::text::varchar(9) AS firm, county::area AS county,
           naics::code AS naics, emp::numeric AS emp, pay::float8 AS pay FROM narrow""",
        """CREATE VIEW agency.odd AS SELECT ('00000000-0000-0000-0000-' || lpad(id::text, 12, '0'))::uuid AS id, firm::int4,
           county::char(7) AS county, naics::name AS naics, emp::real AS emp, pay::int4 AS pay FROM narrow""",
    )
    expected = revealed(table, plan())
    assert revealed(Postgres(server.uri(), table="agency.wide"), plan()) == expected
    assert revealed(Postgres(server.uri(), table="agency.odd"), plan()) == expected


def test_truth_values_whole_numbers_and_null_as_a_category_come_over(server):
    schema = Schema.of(
        unit="id",
        measures={},
        columns={"b": "boolean", "n": Column(name="n", type="integer", null="category"), "t": "integer"},
    )
    table = pa.table({"id": [1, 2, 3, 4], "b": [True, False, True, True], "n": [7, None, 7, None], "t": list("1223")})
    server.ingest("kinds", table)
    keys = rw.Keys.product(b=[True, False], n=[7, None], t=[1, 2, 3])
    asked = Plan(schema=schema, queries=(rw.query().group_by("b", "n", "t", keys=keys).count(rw.Gaussian(rho=1)),))
    found = revealed(Postgres(server.uri(), table="kinds"), asked)
    assert found == revealed(table, asked)
    assert sum(found[0][0]) == 4


def test_a_table_without_records_has_totals_of_zero(server):
    server.ingest("empty", records(6).slice(0, 0))
    found = revealed(Postgres(server.uri(), table="empty"), plan())
    assert {value for table in found for column in table for value in column} == {0}


AWKWARD = [
    0.0,
    -0.0,
    1.0,
    0.5,
    0.1,
    0.07,
    2.1,
    1.05,
    1 / 3,
    2 / 3,
    2.5,
    7.0,
    5e-324,
    1e-300,
    1e-19,
    1e-18,
    2.0**50,
    2.0**53,
]
AWKWARD += [
    2.0**53 + 2,
    1e15 + 0.3,
    1e22,
    1e300,
    1.7976931348623157e308,
    -1e-320,
    -3.0,
    math.nan,
    math.inf,
    -math.inf,
    None,
]
AWKWARD += [math.nextafter(each, up) for each in (0.1, 0.07, 2.1, 1 / 3, 1.0, 2.0**50) for up in (0.0, math.inf)]
STEPS = [
    "1",
    "0.01",
    "0.1",
    "1/3",
    "0.25",
    "2.5",
    "1/7",
    "3",
    "1/9007199254740992",
    "9007199254740991/9007199254740992",
]


@pytest.mark.theorem("T-LATTICE")
@pytest.mark.parametrize(
    "kind, step", [*(("float8", step) for step in STEPS), *(("float4", step) for step in ("1", "0.1", "0.25"))]
)
def test_the_server_finds_the_steps_and_the_faults_of_floats_that_we_find(server, kind, step):
    values = [None if each is None else each for each in AWKWARD]
    if kind == "float4":
        values = [
            None if each is None or (abs(each) > 1e38 and math.isfinite(each)) else float(np.float32(each))
            for each in values
        ]
    generator = np.random.default_rng(7)
    values += (
        [float(each * Fraction(step)) for each in generator.integers(0, 2**40, 100).tolist()]
        if kind == "float8"
        else []
    )
    schema = Schema.of(unit="id", measures={"x": Measure.of("x", step=step, bound=min(10**9, 2**53 * Fraction(step)))})
    array = pa.array(values, pa.float64() if kind == "float8" else pa.float32())
    table = pa.table({"id": pa.array(range(len(values))), "x": array})
    name = f"floats_{kind}_{STEPS.index(step)}"
    server.ingest(name, table)
    ours, text = problems(table, schema)
    theirs, their_text = problems(Postgres(server.uri(), table=name), schema)
    assert theirs == ours
    assert their_text == text
    assert len(ours) >= 5
    found = codes(server, name, schema)["x"]
    exact = Fraction(step)
    assert all(float(code * exact) == value for code, value in zip(found, values) if code is not None and code >= 0)


NUMERICS = [
    "0",
    "1",
    "0.01",
    "0.010",
    "0.07",
    "2.1",
    "1.005",
    "0.3333333333",
    "99999999.99",
    "100000000",
    "100000000.01",
    "-0.01",
]
NUMERICS += [
    "NaN",
    "Infinity",
    "-Infinity",
    "1e1000",
    "-1e1000",
    "1e131000",
    "1e-1000",
    "12345678901234567890",
    "33.5",
    "4e-16000",
]


def expected_code(text: str, measure: Measure) -> int:
    """By definition, in exact fractions."""
    if text == "NaN":
        return FAULTS[NAN]
    if "Infinity" in text:
        return FAULTS[INFINITE]
    value = Fraction(Decimal(text)) / measure.step
    if value < 0:
        return FAULTS[NEGATIVE]
    if value > measure.bound_steps:
        return FAULTS[BEYOND]
    return int(value) if value.denominator == 1 else FAULTS[OFF]


@pytest.mark.parametrize("step", STEPS[:6])
def test_decimals_of_any_length_become_exact_steps_or_their_fault(server, step):
    measure = Measure.of("x", step=step, bound=10**8)
    schema = Schema.of(unit="id", measures={"x": measure})
    name = f"numerics_{STEPS.index(step)}"
    listed = ", ".join(f"({number}, '{text}'::numeric)" for number, text in enumerate(NUMERICS))
    server.run(f"CREATE TABLE {name} (id int, x numeric)", f"INSERT INTO {name} VALUES {listed}, (99, NULL)")
    assert codes(server, name, schema)["x"] == [*(expected_code(text, measure) for text in NUMERICS), None]
    counted, _ = problems(Postgres(server.uri(), table=name), schema)
    assert counted[("x", "is NULL")] == 1
    assert counted[("x", INFINITE)] == 2
    assert counted[("x", NAN)] == 1


@pytest.mark.parametrize("step", ["1", "0.05", "2", "5/3"])
@pytest.mark.parametrize("kind", [pa.int16(), pa.int32(), pa.int64()])
def test_integers_are_counted_as_in_memory(server, step, kind):
    values = [0, 1, 2, 5, 10, -1, 32767, None] + ([2**62, -(2**63), 2**63 - 1] if kind == pa.int64() else [])
    schema = Schema.of(unit="id", measures={"x": Measure.of("x", step=step, bound=20_000)})
    table = pa.table({"id": pa.array(range(len(values))), "x": pa.array(values, kind)})
    name = f"integers_{kind}_{step.replace('/', '_').replace('.', '_')}"
    server.ingest(name, table)
    assert problems(Postgres(server.uri(), table=name), schema) == problems(table, schema)


def test_ids_that_are_equal_numbers_are_equal_however_they_are_written(server):
    server.run("CREATE TABLE twice (id numeric)", "INSERT INTO twice VALUES (1.0), (1.00), (2), (NULL)")
    found, _ = problems(Postgres(server.uri(), table="twice"), Schema.of(unit="id"))
    assert found == {("id", "repeats an id that must be unique"): 1, ("id", "is NULL"): 1}


@pytest.mark.parametrize(
    "kind, role, problem",
    [
        ("text", "measure", "declared as measure but stored as text"),
        ("date", "text", "declared as text but stored as date"),
        ("numeric", "integer", "declared as integer but stored as other"),
        ("int4", "text", "declared as text but stored as integer"),
        ("json", "id", "which cannot be an id"),
        ("float8", "id", "which cannot be an id"),
        ("pair", "text", "stored as other"),
    ],
)
def test_a_column_stored_in_a_way_its_role_cannot_use_is_refused_at_opening(server, kind, role, problem):
    name = f"refused_{kind}_{role}"
    server.run(
        "DROP TYPE IF EXISTS pair CASCADE", "CREATE TYPE pair AS (a int)", f"CREATE TABLE {name} (id int, x {kind})"
    )
    schema = Schema.of(
        unit="x" if role == "id" else "id",
        measures={"x": 1} if role == "measure" else {},
        columns={"x": role} if role in ("text", "integer") else {},
    )
    with pytest.raises(SourceError, match=problem):
        DuckDB(Postgres(server.uri(), table=name), schema)


def test_a_missing_column_and_a_missing_table_are_told_at_opening(server):
    server.run("CREATE TABLE short (id int)")
    with pytest.raises(SourceError, match="no column county"):
        DuckDB(Postgres(server.uri(), table="short"), Schema.of(unit="id", columns={"county": "text"}))
    for name in ("nowhere", "agency.nowhere", "no_schema.short", "Short"):
        with pytest.raises(SourceError, match="no such table"):
            DuckDB(Postgres(server.uri(), table=name), Schema.of(unit="id"))


def test_text_comes_over_in_its_own_letters_whatever_the_encoding_of_the_database(server):
    server.run(
        "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0",
        "CREATE DATABASE bare ENCODING 'SQL_ASCII' TEMPLATE template0",
    )
    statements = ("CREATE TABLE t (id int, county text)", "INSERT INTO t VALUES (1, U&'K\\00f6ln')")
    schema = Schema.of(unit="id", columns={"county": "text"})
    server.run(*statements, database="latin")
    keys = rw.Keys.of({"county": ["Köln"]})
    asked = Plan(schema=schema, queries=(rw.query().group_by("county", keys=keys).count(rw.Gaussian(rho=1)),))
    assert revealed(Postgres(server.uri(database="latin"), table="t"), asked) == [[[1]]]
    server.run("CREATE TABLE t (id int, county text)", database="bare")
    with pytest.raises(SourceError, match="SQL_ASCII"):
        DuckDB(Postgres(server.uri(database="bare"), table="t"), schema)
