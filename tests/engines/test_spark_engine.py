"""What is Spark's own: where records may come from, what is refused, what is never said, and sums out of halves."""

import stat
import sys

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordwise as rw
from build import employers, exact_totals, keys, question, records
from engines.plain_mechanism import Plain
from recordwise.engines import Spark
from recordwise.engines.spark.session import check_java, java_version, pyspark_sql, require_ansi
from recordwise.engines.spark.store import BITS, HIGH, LOW, join_halves
from recordwise.errors import (
    DataError,
    EngineError,
    ExtraError,
    MissingPartError,
    ParameterError,
    RecordwiseError,
    SourceError,
)
from recordwise.noise import Seeded
from recordwise.plan import Field, Keys, Plan, Schema
from recordwise.plan.expressions import Compare
from recordwise.plan.query import query
from recordwise.plan.sources import ANSI, SparkMaster

pytestmark = pytest.mark.usefixtures("spark_as_installed")

SCHEMA = Schema.of(unit="id", measures={"emp": 1}, columns={"county": "text"})
SMALL = pa.table({"id": [1, 2, 3], "emp": [5, 6, 7], "county": ["01", "02", "01"]})
COUNTIES = Keys.of({"county": ["01", "02", "03"]})
PLAN = Plan(schema=SCHEMA, queries=(query().group_by("county", keys=COUNTIES).sum("emp", Plain()),))


def sums(engine):
    (answer,) = engine.totals(PLAN)
    return exact_totals(answer)[0]


@given(st.lists(st.integers(-(2**94), 2**94), max_size=8))
def test_halves_joined_are_the_numbers_they_were_cut_from(numbers):
    high, low = [number >> BITS for number in numbers], [number & (2**BITS - 1) for number in numbers]
    more = 5 * 2**40
    fitting = [(h, rest + more, n + more) for h, rest, n in zip(high, low, numbers) if -(2**63) <= h < 2**63]
    table = pa.table(
        {
            "x" + HIGH: pa.array([h for h, _, _ in fitting], pa.int64()),
            "x" + LOW: pa.array([rest for _, rest, _ in fitting], pa.int64()),
            "y" + HIGH: pa.array(["kept"] * len(fitting)),
        }
    )
    found = join_halves(table, ["x"])
    assert [int(value) for value in found["x"].to_pylist()] == [n for _, _, n in fitting]
    assert found.column_names == ["y" + HIGH, "x"]


def test_a_dataframe_and_a_table_by_name_are_sources_and_the_session_keeps_its_settings(spark_session):
    frame = spark_session.createDataFrame(SMALL)
    before = {name: spark_session.conf.get(name) for name in ("spark.sql.caseSensitive", "spark.sql.session.timeZone")}
    with Spark(frame, SCHEMA) as engine:
        assert sums(engine) == [12, 6, 0]
    frame.createOrReplaceTempView("named")
    with Spark("named", SCHEMA, spark=spark_session) as engine:
        assert sums(engine) == [12, 6, 0]
    assert {name: spark_session.conf.get(name) for name in before} == before
    assert spark_session.catalog.listTables("global_temp") == spark_session.catalog.listTables()


def test_a_session_infers_the_columns_of_a_dataframe(spark_session):
    with employers(spark_session.createDataFrame(records(60)), engine="spark") as opened:
        assert {column.name: column.type for column in opened.schema.columns} == {
            "firm": "integer",
            "county": "text",
            "naics": "text",
            "pay": "integer",
        }


def test_only_cells_travel(spark_session, monkeypatch):
    seen = []
    with employers(
        records(400), firm="firm", measures={"emp": 1, "pay": 1}, engine="spark", spark=spark_session
    ) as opened:
        store, fetch = opened._engine._store, opened._engine._store.of_records
        monkeypatch.setattr(store, "of_records", lambda tree: seen.append(fetch(tree)) or seen[-1])
        asked = question().count_distinct("firm", rw.Gaussian(rho=1))
        opened.run(asked, rng=Seeded(1))
    assert len(seen) == 2 + 1 + 2
    assert max(table.num_rows for table in seen) <= keys().table.num_rows < 400


def test_a_key_that_looks_like_a_variable_or_an_escape_is_text(spark_session):
    odd = ["${spark.app.name}", "a\\nb", "`x`", "'; DROP TABLE t", "ä\u2028"]
    table = pa.table({"id": range(5), "emp": [1, 2, 4, 8, 16], "county": odd})
    asked = [query().where(Compare(Field("county"), "=", each)).sum("emp", Plain()) for each in odd]
    with Spark(table, SCHEMA, spark=spark_session) as engine:
        found = engine.totals(Plan(schema=SCHEMA, queries=tuple(asked)))
    assert [exact_totals(each)[0] for each in found] == [[1], [2], [4], [8], [16]]


def test_a_failure_tells_its_kind_and_nothing_is_printed(spark_session, capfd):
    text = spark_session.createDataFrame(pa.table({"id": [1], "emp": ["record of Jane"], "county": ["01"]}))
    cast = text.selectExpr("id", "CAST(emp AS BIGINT) AS emp", "county")
    with Spark(cast, SCHEMA) as engine, pytest.raises(EngineError) as caught:
        engine.validate()
    shown = str(caught.value) + repr(caught.value.__cause__) + "".join(capfd.readouterr())
    assert "Jane" not in shown
    assert caught.value.__suppress_context__
    assert caught.value.kind == "NumberFormatException"


def test_what_could_wrap_change_or_merge_records_is_refused(spark_session):
    frame = spark_session.createDataFrame(SMALL)
    with pytest.raises(SourceError, match="not deterministic"):
        Spark(frame.selectExpr("id", "CAST(rand() * 9 AS BIGINT) AS emp", "county"), SCHEMA)
    with pytest.raises(SourceError, match="collation"):
        Spark(frame.selectExpr("id", "emp", "county COLLATE UTF8_LCASE AS county"), SCHEMA)
    with pytest.raises(ParameterError, match="cannot be off"):
        SparkMaster(url="local[1]", options={ANSI: "false"})
    lax = spark_session.newSession()
    lax.conf.set(ANSI, "false")
    with pytest.raises(SourceError, match="wraps around"):
        require_ansi(lax)


@pytest.mark.parametrize(
    "how, problem",
    [
        ({"spark": 7}, "is a int"),
        ({"spark": "spark://elsewhere:7077"}, "another master"),
    ],
)
def test_a_session_that_cannot_be_had_is_refused(spark_session, how, problem):
    with pytest.raises(ParameterError, match=problem):
        Spark(SMALL, SCHEMA, **how)


def test_a_session_that_is_active_is_found_and_without_one_spark_must_be_given(spark_session, monkeypatch):
    with Spark(SMALL, SCHEMA) as engine:
        engine.validate()
    assert spark_session.sql("SELECT 1").collect()[0][0] == 1
    monkeypatch.setattr("recordwise.engines.spark.engine.active_session", lambda: None)
    with pytest.raises(ParameterError, match="is missing, and no Spark session is active"):
        Spark(SMALL, SCHEMA)


def test_spark_is_not_given_to_another_engine():
    with pytest.raises(ParameterError, match="does not apply to the engine"):
        rw.Session(SMALL, unit="id", measures={"emp": 1}, spark="local[2]")


def test_bad_records_of_a_dataframe_are_counted_as_in_duckdb(spark_session):
    frame = spark_session.createDataFrame(
        pa.table({"id": [1, 1, None], "emp": [-5, 3, None], "county": ["a", "b", None]})
    )
    with Spark(frame, SCHEMA) as engine, pytest.raises(DataError) as caught:
        engine.validate()
    assert {(each.column, each.problem): each.count for each in caught.value.problems} == {
        ("id", "is NULL"): 1,
        ("id", "repeats an id that must be unique"): 1,
        ("emp", "is NULL"): 1,
        ("emp", "is negative"): 1,
        ("county", "is NULL"): 1,
    }


def java_saying(tmp_path, monkeypatch, text):
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{text}' >&2\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    return str(program)


@pytest.mark.parametrize(
    "text, version",
    [('openjdk version "17.0.15" 2025', 17), ('java version "1.8.0_402"', 8), ('openjdk version "21" 2023', 21)],
)
@pytest.mark.process
def test_the_version_of_java_is_read(tmp_path, monkeypatch, text, version):
    assert java_version(java_saying(tmp_path, monkeypatch, text)) == version


@pytest.mark.process
def test_a_java_that_is_missing_or_too_old_is_told_before_anything_starts(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(MissingPartError, match=r"needs Java 17 or newer; found no working Java.*JAVA_HOME"):
        check_java()
    java_saying(tmp_path, monkeypatch, 'openjdk version "11.0.2"')
    with pytest.raises(MissingPartError, match="found Java 11"):
        check_java()


def test_a_missing_pyspark_is_told_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(ExtraError, match=r"pip install 'recordwise\[spark\]'") as caught:
        pyspark_sql()
    assert isinstance(caught.value, RecordwiseError)
