"""Validation reads once, counts what breaks the schema, names columns and never shows a value."""

import math
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build import exact_totals
from engines.plain_mechanism import Plain
from recordwise.engines import DuckDB
from recordwise.engines.compile.records import StorageType, largest_steps
from recordwise.errors import DataError, EngineError, PlanError, SourceError
from recordwise.plan import Column, Measure, Plan, Schema
from recordwise.plan.query import query

M = Plain()


def found(opens, table, schema):
    with opens(table, schema) as engine:
        try:
            engine.validate()
        except DataError as error:
            return {(problem.column, problem.problem): problem.count for problem in error.problems}, str(error)
    return {}, ""


SCHEMA = Schema.of(
    unit="id",
    measures={"emp": 1, "pay": Measure.of("pay", step="0.01", bound=1000)},
    columns={"county": "text", "kind": Column(name="kind", null="category")},
    firm="firm",
)
GOOD = {
    "id": [1, 2],
    "emp": [1.0, 2.0],
    "pay": [0.07, 2.1],
    "county": ["a", "b"],
    "kind": ["k", None],
    "firm": ["f", "f"],
}


def broken(**columns):
    return pa.table(GOOD | columns)


def test_a_good_table_passes(opens):
    assert found(opens, broken(), SCHEMA) == ({}, "")


@pytest.mark.parametrize(
    "columns, problem, count",
    [
        ({"emp": [None, 7.0]}, ("emp", "is NULL"), 1),
        ({"emp": [math.nan, math.nan]}, ("emp", "is not a number (NaN)"), 2),
        ({"emp": [math.inf, 1.0]}, ("emp", "is infinite"), 1),
        ({"emp": [1.5, 1.0]}, ("emp", "is off the lattice of step 1"), 1),
        ({"pay": [0.075, 2.1]}, ("pay", "is off the lattice of step 1/100"), 1),
        ({"pay": [-0.01, -3.0]}, ("pay", "is negative"), 2),
        ({"pay": [1000.01, 1000.0]}, ("pay", "is beyond its public bound"), 1),
        ({"emp": [2.0**53 + 2, 2.0**53]}, ("emp", "is beyond its public bound"), 1),
        ({"id": [5, 5]}, ("id", "repeats an id that must be unique"), 1),
        ({"id": [5, None]}, ("id", "is NULL"), 1),
        ({"firm": ["f", None]}, ("firm", "is NULL"), 1),
        ({"county": [None, "b"]}, ("county", "is NULL"), 1),
    ],
)
@pytest.mark.costly
def test_each_kind_of_bad_record_is_counted_under_its_column(opens, columns, problem, count):
    problems, _ = found(opens, broken(**columns), SCHEMA)
    assert problems == {problem: count}


@pytest.mark.theorem("T-LATTICE")
@pytest.mark.parametrize(
    "kind, step, most",
    [
        ("float", "1", 2**53),
        ("number", "1", 2**53),
        ("text", "1", 2**53 - 1),
        ("float", "3", 2**53 // 3),
        ("text", "3", (2**53 - 1) // 3),
        ("float", "0.5", 2**50),
        ("text", "0.5", 2**50),
        ("float", "1000/3", 2**53 // 1000),
        ("integer", "1", 2**60),
        ("decimal", "1", 2**60),
    ],
)
def test_a_float_may_have_as_many_steps_as_it_tells_apart_whatever_the_public_bound(kind, step, most):
    measure = Measure.of("emp", step=Fraction(step), bound=2**60 * Fraction(step))
    assert largest_steps(measure, StorageType(kind)) == most
    assert largest_steps(Measure.of("emp", step=Fraction(step), bound=7 * Fraction(step)), StorageType(kind)) == 7


WIDE = Schema.of(unit="id", measures={"emp": Measure.of("emp", bound=2**60)})


@pytest.mark.parametrize(
    "good, bad", [([2.0**53], [2.0**53 + 2]), ([str(2**53 - 1)], [str(2**53)]), ([2**60], [2**60 + 1])]
)
def test_the_last_value_that_can_be_told_apart_is_taken_and_the_next_is_not(opens, good, bad):
    assert found(opens, pa.table({"id": [1], "emp": good}), WIDE) == ({}, "")
    problems, _ = found(opens, pa.table({"id": [1], "emp": bad}), WIDE)
    assert problems == {("emp", "is beyond its public bound"): 1}


def test_all_problems_come_at_once_and_no_value_is_shown(opens):
    table = broken(emp=[-77.0, 99.25], pay=[123456.0, math.nan], county=["secret", None], id=[31337, 31337])
    problems, message = found(opens, table, SCHEMA)
    assert len(problems) == 6
    for value in ("77", "99.25", "123456", "secret", "31337"):
        assert value not in message


def test_a_float_on_the_lattice_is_the_one_nearest_to_its_point(opens):
    steps = np.arange(0, 100_000)
    table = pa.table({"id": steps, "pay": steps / 100})
    schema = Schema.of(unit="id", measures={"pay": "0.01"})
    with opens(table, schema) as engine:
        (answer,) = engine.totals(Plan(schema=schema, queries=(query().sum("pay", M),)))
    assert exact_totals(answer)[0] == [int(steps.sum())]


@pytest.mark.theorem("T-LATTICE")
@pytest.mark.costly
def test_floats_give_back_the_steps_they_were_made_of_and_their_neighbors_are_refused(opens):
    @settings(max_examples=opens.examples(25), deadline=None)
    @given(
        st.lists(st.integers(0, 2**50), min_size=1, max_size=60),
        st.sampled_from(["0.01", "0.1", "1/3", "0.25", "2.5", "1/7", "3"]),
    )
    def check(drawn, step):
        exact = Fraction(step)
        limit = min(2**50, 2**53 // exact.numerator)
        steps = [min(each, limit) for each in drawn] + [limit, limit - 1, 1, 0]
        values = [float(each * exact) for each in steps]
        schema = Schema.of(unit="id", measures={"x": Measure.of("x", step=step)})
        with opens(pa.table({"id": range(len(values)), "x": values}), schema, threads=1) as engine:
            (answer,) = engine.totals(Plan(schema=schema, queries=(query().sum("x", M),)))
            assert exact_totals(answer)[0] == [sum(steps)]
        nudged = [math.nextafter(value, math.inf) for value in values]
        problems, _ = found(opens, pa.table({"id": range(len(nudged)), "x": nudged}), schema)
        assert sum(problems.values()) == len(nudged)

    check()


@pytest.mark.parametrize(
    "array, bad",
    [
        (pa.array(["12.25", "0.10"]).cast(pa.decimal128(10, 2)), 1),
        (pa.array([10, 5], pa.int8()), 0),
        (pa.array([10, 2**63], pa.uint64()), 1),
        (pa.array([10.5, 0.25], pa.float32()), 1),
    ],
)
def test_measures_are_read_from_every_way_numbers_are_stored(opens, array, bad):
    schema = Schema.of(unit="id", measures={"x": "0.05" if pa.types.is_decimal(array.type) else "0.5"})
    problems, _ = found(opens, pa.table({"id": [1, 2], "x": array}), schema)
    assert sum(problems.values()) == (0 if pa.types.is_decimal(array.type) else bad)


@pytest.mark.parametrize(
    "step, largest, beyond",
    [
        (1, 2.0**53, 2.0**53 + 2),
        (3, 3.0 * (2**53 // 3), 3.0 * (2**53 // 3 + 2)),
        ("0.5", 2.0**49, 2.0**49 + 0.5),
    ],
)
def test_floats_are_taken_as_far_as_each_is_the_only_one_near_its_lattice_point(step, largest, beyond):
    schema = Schema.of(unit="id", measures={"x": Measure.of("x", step=step, bound=2**60)})
    with DuckDB(pa.table({"id": [1], "x": [largest]}), schema) as engine:
        engine.validate()
    with DuckDB(pa.table({"id": [1], "x": [beyond]}), schema) as engine, pytest.raises(DataError, match="beyond"):
        engine.validate()


def test_a_text_that_would_be_read_as_two_to_the_53_is_refused(tmp_path):
    schema = Schema.of(unit="id", measures={"x": Measure.of("x", bound=2**60)})
    for text, good in ((2**53 - 1, True), (2**53, False), (2**53 + 1, False)):
        (tmp_path / "t.csv").write_text(f"id,x\n1,{text}\n")
        with DuckDB(tmp_path / "t.csv", schema) as engine:
            if good:
                engine.validate()
            else:
                with pytest.raises(DataError, match="beyond"):
                    engine.validate()


def test_decimals_become_the_steps_their_digits_say():
    schema = Schema.of(unit="id", measures={"x": "0.05"})
    amounts = pa.array(["12.25", "0.10"]).cast(pa.decimal128(10, 2))
    with DuckDB(pa.table({"id": [1, 2], "x": amounts}), schema) as engine:
        (answer,) = engine.totals(Plan(schema=schema, queries=(query().sum("x", M),)))
    assert exact_totals(answer)[0] == [245 + 2]


def test_opening_reads_no_record(opens, tmp_path):
    """A Parquet file whose data pages are destroyed still opens; the damage shows when records are read."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"id": range(1000), "emp": range(1000)}), path, compression="none", use_dictionary=False)
    raw = bytearray(path.read_bytes())
    raw[4:3000] = b"\xff" * 2996
    path.write_bytes(raw)
    with opens(str(path), Schema.of(unit="id", measures={"emp": 1})) as engine, pytest.raises(EngineError) as caught:
        engine.validate()
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert "withheld" in str(caught.value)


def test_records_that_were_refused_and_then_corrected_at_their_source_are_read_anew():
    """A relation is copied once; a copy that was refused must not be judged again."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT * FROM (VALUES (1, 5), (2, -1)) AS rows(id, emp)")
    with DuckDB(connection.table("t"), Schema.of(unit="id", measures={"emp": 1})) as engine:
        with pytest.raises(DataError, match="negative"):
            engine.validate()
        connection.execute("UPDATE t SET emp = 1 WHERE emp < 0")
        engine.validate()
    connection.close()


def test_a_file_that_changes_after_validation_is_refused(opens, tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"id": [1], "emp": [1]}), path)
    schema = Schema.of(unit="id", measures={"emp": 1})
    with opens(str(path), schema) as engine:
        engine.validate()
        pq.write_table(pa.table({"id": [1, 1], "emp": [-5, 9]}), path)
        with pytest.raises(SourceError, match="changed"):
            engine.totals(Plan(schema=schema, queries=(query().count(M),)))


SMALL = {"id": [1, 2, 3], "emp": [5, 6, 7], "county": ["01", "02", "01"]}
SMALL_SCHEMA = Schema.of(unit="id", measures={"emp": 1}, columns={"county": "text"})


def sources(tmp_path):
    import duckdb

    table = pa.table(SMALL)
    pq.write_table(table.slice(0, 2), tmp_path / "a1.parquet")
    pq.write_table(table.slice(2), tmp_path / "a2.parquet")
    (tmp_path / "t.csv").write_text("id,emp,county,other\n1,5,01,x\n2,6,02,\n3,7,01,y\n")
    (tmp_path / "t.tsv").write_text('id\temp\tcounty\n1\t5\t"01"\n2\t6\t02\n3\t7\t01\n')
    theirs = duckdb.connect()
    yield "glob", str(tmp_path / "a*.parquet")
    yield "list", [tmp_path / "a1.parquet", tmp_path / "a2.parquet"]
    yield "csv", tmp_path / "t.csv"
    yield "tsv", str(tmp_path / "t.tsv")
    yield "arrow", table
    yield "dictionary", table.set_column(2, "county", table["county"].dictionary_encode())
    yield "pandas", pd.DataFrame(SMALL)
    yield "polars", pl.DataFrame(SMALL)
    yield "relation", theirs.from_arrow(table)


@pytest.mark.costly
def test_every_source_gives_the_same_totals(opens, tmp_path):
    from recordwise.plan import Keys

    asked = query().group_by("county", keys=Keys.of({"county": ["02", "01", "03"]})).sum("emp", M).count(M)
    plan = Plan(schema=SMALL_SCHEMA, queries=(asked,))
    for name, source in sources(tmp_path):
        if (opens.name, name) == ("spark", "relation"):
            continue  # A relation of DuckDB lives in one process.
        with opens(source, SMALL_SCHEMA) as engine:
            (answer,) = engine.totals(plan)
        assert answer.cells["county"].to_pylist() == ["01", "02", "03"], name
        assert exact_totals(answer) == [[12, 6, 0], [2, 1, 0]], name


def test_csv_fields_that_are_no_numbers_are_counted_not_shown(opens, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,emp,county\n1,5,a\n2,hidden,b\n3,,c\n4,1e400,c\n")
    problems, message = found(opens, str(path), SMALL_SCHEMA)
    assert problems[("emp", "cannot be read as a number")] + problems.get(("emp", "is infinite"), 0) == 2
    assert problems[("emp", "is NULL")] == 1
    assert "hidden" not in message


TEXTS = [
    "5",
    " 5 ",
    "+5",
    "5.0",
    "05",
    ".5e1",
    "50e-1",
    "5d",
    "5f",
    "5L",
    "0x5",
    "0b101",
    "1_0",
    "5,0",
    "\t5",
    "5 5",
    "٥",
    "5e",
    "--5",
]
NUMBERS, INTEGERS = TEXTS[:7], ["5", " 5 ", "+5", "05"]
TRUTHS = ["true", "T", "yes", "y", "1", "False", "n", "0"]


def test_a_text_is_a_number_by_one_strict_rule(opens, tmp_path):
    words = [*TRUTHS, " true ", "on", "2", "wahr", *["true"] * 7]
    lines = [f'{i},"{text}","{text}",{word}' for i, (text, word) in enumerate(zip(TEXTS, words))]
    (tmp_path / "t.csv").write_text("id,x,code,open\n" + "\n".join(lines) + "\n")
    schema = Schema.of(unit="id", measures={"x": "0.5"}, columns={"code": "integer", "open": "boolean"})
    problems, _ = found(opens, tmp_path / "t.csv", schema)
    assert problems == {
        ("x", "cannot be read as a number"): len(TEXTS) - len(NUMBERS),
        ("code", "cannot be read as integer"): len(TEXTS) - len(INTEGERS),
        ("open", "cannot be read as boolean"): 4,
    }


@pytest.mark.parametrize(
    "table, problem",
    [
        ({"id": [1], "emp": [1]}, "no column county"),
        ({"id": [1], "emp": ["1"], "county": [1]}, "declared as text but stored as integer"),
        ({"id": [1], "emp": [True], "county": ["a"]}, "declared as measure but stored as boolean"),
        ({"id": [1], "EMP": [1], "emp": [2], "county": ["a"]}, "no column emp"),
    ],
)
def test_a_table_that_does_not_fit_the_schema_is_refused_at_opening(opens, table, problem):
    with pytest.raises(SourceError, match=problem):
        opens(pa.table(table), SMALL_SCHEMA)


def test_a_missing_file_is_refused(opens):
    with pytest.raises(SourceError, match="no such file"):
        opens("nowhere/*.parquet", SMALL_SCHEMA)


def test_a_plan_for_another_schema_is_refused(opens):
    other = Schema.of(unit="id", measures={"emp": 2}, columns={"county": "text"})
    with opens(pa.table(SMALL), SMALL_SCHEMA) as engine, pytest.raises(PlanError, match="a different schema"):
        engine.totals(Plan(schema=other, queries=(query().count(M),)))
