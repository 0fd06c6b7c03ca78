"""A missing value of a measure is refused, or counts as 0; what nothing uses is not looked at."""

import math

import pyarrow as pa
import pytest

from build import employers
from engines.plain_mechanism import Plain
from recordwise.errors import DataError, LedgerError, ParameterError
from recordwise.mechanisms import Gaussian
from recordwise.plan import Column, Measure, Plan, Schema
from recordwise.plan.query import query

M = Plain()
ZERO = Schema.of(
    unit="id",
    measures={"emp": Measure.of("emp", null="zero"), "pay": Measure.of("pay", step="0.01")},
    columns={"county": "text", "size": "integer"},
)
ROWS = {
    "id": [1, 2, 3],
    "emp": pa.array([5, None, 7], pa.int64()),
    "pay": [0.25, 1.5, 2.0],
    "county": ["a", "a", "b"],
    "size": [1, 2, 3],
}


def totals(opens, table, schema, *queries):
    with opens(table, schema) as engine:
        found = engine.totals(Plan(schema=schema, queries=queries))
    return [[column.tolist() for column in each.exact.reveal().totals.values()] for each in found]


@pytest.mark.parametrize(
    "emp",
    [
        pa.array([5, None, 7], pa.int64()),
        pa.array([5.0, None, 7.0]),
        pa.array(["5", None, "7"]),
        pa.array(["5", None, "7"]).cast(pa.decimal128(10, 2)),
    ],
    ids=["integer", "float", "text", "decimal"],
)
def test_a_missing_value_counts_as_zero_however_it_is_stored(opens, emp):
    asked = query().sum("emp", M).count(M)
    above = query().where("emp >= 0").count(M)
    unknown = query().where("emp IS NULL").count(M)
    found = totals(opens, pa.table(ROWS | {"emp": emp}), ZERO, asked, above, unknown)
    assert found == [[[12], [3]], [[3]], [[0]]]


@pytest.mark.parametrize(
    "emp, problem",
    [
        ([5.5, None, 7.0], "is off the lattice of step 1"),
        ([math.nan, None, 7.0], "is not a number (NaN)"),
        ([-1.0, None, 7.0], "is negative"),
    ],
)
def test_what_is_wrong_is_refused_as_before_where_missing_values_are_zero(opens, emp, problem):
    with opens(pa.table(ROWS | {"emp": emp}), ZERO) as engine, pytest.raises(DataError) as refusal:
        engine.validate()
    assert [(each.column, each.problem, each.count) for each in refusal.value.problems] == [("emp", problem, 1)]


def test_missing_values_are_refused_unless_the_schema_says_otherwise(opens):
    schema = Schema.of(unit="id", measures={"emp": 1})
    with opens(pa.table(ROWS), schema) as engine, pytest.raises(DataError, match="'emp' is NULL in 1 row"):
        engine.validate()


BROKEN = pa.table(ROWS | {"pay": [0.255, -1.0, math.nan], "county": [None, "a", "b"]})


def test_measures_and_columns_that_no_query_uses_are_not_validated(opens):
    assert totals(opens, BROKEN, ZERO, query().sum("emp", M)) == [[[12]]]
    assert totals(opens, BROKEN, ZERO, query().where("size > 1").sum("emp", M)) == [[[7]]]


@pytest.mark.parametrize(
    "asked, column",
    [
        (query().sum("pay", M), "pay"),
        (query().where("pay > 1").count(M), "pay"),
        (query().group_by("county", keys=["a", "b"]).count(M), "county"),
        (query().where("county = 'a'").count(M), "county"),
    ],
)
def test_what_a_query_uses_is_validated_even_after_a_plan_that_did_not(opens, asked, column):
    with opens(BROKEN, ZERO) as engine:
        engine.totals(Plan(schema=ZERO, queries=(query().sum("emp", M),)))
        with pytest.raises(DataError) as refusal:
            engine.totals(Plan(schema=ZERO, queries=(asked,)))
        assert {each.column for each in refusal.value.problems} == {column}
        # The refusal does not make the rest of the table unreadable.
        engine.totals(Plan(schema=ZERO, queries=(query().sum("emp", M),)))
        with pytest.raises(DataError, match="county"):
            engine.validate()


def test_ids_are_validated_whatever_is_asked(opens):
    with opens(pa.table(ROWS | {"id": [1, 1, None]}), ZERO) as engine, pytest.raises(DataError) as refusal:
        engine.totals(Plan(schema=ZERO, queries=(query().sum("emp", M),)))
    assert {each.column for each in refusal.value.problems} == {"id"}


def opened(tmp_path, table, **options):
    given = {"measures": {each.name: each for each in ZERO.measures}, "columns": {"county": "text", "size": "integer"}}
    return employers(table, **(given | {"ledger": tmp_path / "l"} | options))


def test_what_only_the_budget_looks_at_is_validated_too(tmp_path):
    import recordwise as rw

    ours = query().count(Gaussian(rho="0.1"))
    budget = rw.policy.constant(1).where(rw.policy.among("county", ["a"])) + rw.policy.constant(1)
    with opened(tmp_path, BROKEN, budget=budget) as session, pytest.raises(DataError, match="county"):
        session.run(ours)
    with opened(tmp_path, BROKEN, ledger=tmp_path / "other") as session:
        assert session.run(ours).tables[0].data.num_rows == 1


def test_a_ledger_keeps_the_meaning_of_a_missing_value(tmp_path):
    with opened(tmp_path, pa.table(ROWS)) as session:
        session.run(query().sum("emp", Gaussian(sigma=10)))
    refusing = {"emp": Measure.of("emp"), "pay": Measure.of("pay", step="0.01")}
    with (
        pytest.raises(LedgerError, match="emp had a different meaning"),
        opened(tmp_path, pa.table(ROWS), measures=refusing) as session,
    ):
        session.run(query().sum("emp", Gaussian(sigma=10)))


def test_another_rule_for_missing_values_is_refused():
    with pytest.raises(ParameterError, match="must be refuse or zero"):
        Measure.of("emp", null="mean")


INTEGERS = Schema.of(unit="id", columns={"size": Column(name="size", type="integer", null="category")})


def test_whole_numbers_stored_as_floats_are_read_as_integers(opens):
    table = pa.table({"id": [1, 2, 3, 4], "size": [1.0, -2.0, 2.0**52, None]})
    asked = query().group_by("size", keys={"size": [1, -2, 2**52, None, 3]}).count(M)
    # Keys are sorted, NULL last.
    assert totals(opens, table, INTEGERS, asked) == [[[1, 1, 0, 1, 1]]]


@pytest.mark.parametrize("bad", [1.5, math.nan, math.inf, 2.0**63, -(2.0**64), 5e-324])
def test_floats_that_are_no_whole_number_of_64_bits_are_counted(opens, bad):
    table = pa.table({"id": [1, 2], "size": [1.0, bad]})
    with opens(table, INTEGERS) as engine, pytest.raises(DataError) as refusal:
        engine.validate()
    assert [(each.problem, each.count) for each in refusal.value.problems] == [("cannot be read as integer", 1)]


def test_text_stays_strict(opens):
    table = pa.table({"id": [1, 2], "size": ["1", "1.0"]})
    with opens(table, INTEGERS) as engine, pytest.raises(DataError, match="cannot be read as integer"):
        engine.validate()
