"""Parts of dates mean the same in Python, numpy, DuckDB, Spark and JavaScript, above all around New Year."""

import datetime
import json
from datetime import date
from fractions import Fraction
from random import Random

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import quickjs

from recordwise.engines.spark.session import strict
from recordwise.engines.spark.store import spark_sql
from recordwise.errors import ParameterError, RecordError
from recordwise.policy import ConditionColumn, Null, Policy, among, columns, compare, constant, gaussian_sum
from recordwise.policy.columns import PARTS, part_of, parts_of_days, representatives
from recordwise.policy.firms import CellKey

EPOCH = date(1970, 1, 1).toordinal()
FIRST, LAST = date(1, 1, 1).toordinal() - EPOCH, date(9999, 12, 31).toordinal() - EPOCH
ALL = np.arange(FIRST, LAST + 1)
EDGES = [
    date(y, m, d)
    for y in (1, 99, 1900, 1969, 1970, *range(1998, 2030), 9999)
    for m, d in ((1, 1), (1, 3), (12, 29), (12, 31), (2, 28), (3, 1))
]


def at(part, values, name="day"):
    return among(ConditionColumn(name, part=part), values)


def weighted(*conditions) -> Policy:
    """A policy whose loss tells which of the conditions hold."""
    return sum((constant(2**number).where(each) for number, each in enumerate(conditions)), Policy())


POLICIES = [
    weighted(
        *(at("week", [week]) for week in (1, 2, 51, 52, 53)),
        *(at("isoyear", [year]) for year in (1999, 2004, 2009, 2020)),
    ),
    weighted(
        *(at("quarter", [each]) for each in (1, 4)),
        *(at("month", [each]) for each in (1, 2, 12)),
        compare(ConditionColumn("day", part="year"), "<", 2000),
        compare(ConditionColumn("day", part="isoyear"), ">=", 2000),
        compare(ConditionColumn("day", part="week"), ">", "52.5"),
        Null(ConditionColumn("day")),
        ~at("year", [2015, 2016]),
    ),
]


def whole(losses) -> list[int]:
    """Losses of a table are rounded outward; these are whole numbers."""
    assert np.all(np.abs(losses - np.rint(losses)) < 1e-9)
    return np.rint(losses).astype(int).tolist()


@pytest.mark.theorem("T-DATES")
@pytest.mark.costly
def test_numpy_and_duckdb_agree_on_every_day_from_year_1_to_9999() -> None:
    ours = parts_of_days(ALL)
    words = ", ".join(f"EXTRACT({part} FROM day) AS {part}" for part in PARTS)
    days = pa.table({"day": pa.array(ALL.astype(np.int32)).cast(pa.date32())})
    theirs = duckdb.connect().register("days", days).sql(f"SELECT {words} FROM days").fetchnumpy()
    for part, (least, most) in PARTS.items():
        assert np.array_equal(ours[part], theirs[part]), part
        assert (ours[part].min(), ours[part].max()) == (least, most)


def test_python_agrees_with_numpy_on_every_day_of_eighty_years_and_at_the_ends() -> None:
    days = [*range(date(1960, 1, 1).toordinal(), date(2041, 1, 1).toordinal()), *(day.toordinal() for day in EDGES)]
    ours = parts_of_days(np.array(days) - EPOCH)
    for part in PARTS:
        assert [part_of(date.fromordinal(day), part) for day in days] == ours[part].tolist()


@pytest.fixture(scope="module")
def table() -> pa.Table:
    drawn = np.random.default_rng(3).integers(FIRST, LAST + 1, 500)
    days = [*EDGES, *(date.fromordinal(int(day) + EPOCH) for day in drawn), None]
    return pa.table({"day": pa.array(days, pa.date32())})


@pytest.mark.parametrize("policy", POLICIES)
def test_one_record_a_table_and_duckdb_give_the_same_losses(policy, table) -> None:
    single = [policy.loss({"day": day}) for day in table["day"].to_pylist()]
    assert len(set(single)) > 8
    assert whole(policy.loss(table)) == single
    found = duckdb.connect().register("records", table).sql(f"SELECT {policy.to_sql('duckdb')} AS loss FROM records")
    assert found.fetchnumpy()["loss"].tolist() == single


@pytest.mark.parametrize("policy", POLICIES)
def test_javascript_gives_the_same_losses(policy, table) -> None:
    days = table["day"].to_pylist()
    context = quickjs.Context()
    written = json.dumps([{"day": None if day is None else day.isoformat()} for day in days])
    context.eval(f"var loss = {policy.to_javascript()}; var records = {written}")
    found = json.loads(context.eval("JSON.stringify(records.map(r => loss(r).rho))"))
    assert found == [policy.loss({"day": day}) for day in days]


@pytest.mark.parametrize(
    "text", ["2024-02-30", "2024-13-01", "0000-01-01", "24-01-01", "2024-1-1", "01/02/2024", "2024-01-01Z", "", "x"]
)
def test_what_is_no_date_has_no_loss_anywhere(text) -> None:
    policy = weighted(at("year", [2024]))
    with pytest.raises(RecordError, match="dates without a time zone"):
        policy.loss({"day": text})
    with pytest.raises(RecordError) as refusal:
        policy.loss({"day": np.array([text, "2024-01-01"], dtype=object)})
    assert not text or text == "x" or text not in str(refusal.value)
    context = quickjs.Context()
    context.eval(f"var loss = {policy.to_javascript()}")
    with pytest.raises(quickjs.JSException, match="no date"):
        context.eval(f"loss({{day: {json.dumps(text)}}})")


def test_spark_gives_the_same_losses(table, spark_session) -> None:
    ours = strict(spark_session)
    ours.createDataFrame(table).createOrReplaceTempView("records")
    for policy in POLICIES:
        from sqlglot import parse_one

        text = f"SELECT {policy.to_sql('spark')} AS loss FROM records"
        found = ours.sql(spark_sql(parse_one(text, read="spark"))).toArrow()
        assert found["loss"].to_pylist() == whole(policy.loss(table))
        assert ours.sql(text).toArrow()["loss"].to_pylist() == whole(policy.loss(table))


def test_every_way_to_hold_a_date_gives_the_same_loss() -> None:
    policy = POLICIES[0]
    days = [date(2004, 12, 31), date(2009, 1, 1), date(1969, 12, 31), date(2021, 1, 3)]
    noon = [datetime.datetime.combine(day, datetime.time(12, 30)) for day in days]
    wanted = [policy.loss({"day": day}) for day in days]
    ways = {
        "dates": days,
        "times": noon,
        "texts": [day.isoformat() for day in days],
        "times as text": [each.isoformat(sep=" ") for each in noon],
        "numpy days": np.array(days, dtype="datetime64[D]"),
        "numpy nanoseconds": np.array(noon, dtype="datetime64[ns]"),
        "arrow seconds": pa.array(noon, pa.timestamp("s")),
        "arrow nanoseconds": pa.array(noon, pa.timestamp("ns")),
        "arrow date64": pa.array(days, pa.date64()),
        "pandas": pd.Series(noon),
        "polars": pl.Series(noon),
        "polars days": pl.Series(days),
    }
    for name, column in ways.items():
        assert whole(policy.loss({"day": column})) == wanted, name
    assert policy.loss({"day": noon[1]}) == policy.loss({"day": np.datetime64(noon[1])}) == wanted[1]


def test_a_time_with_a_zone_is_refused_and_not_quoted() -> None:
    zoned = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    for column in (zoned, [zoned], pa.array([zoned]), pd.Series([zoned])):
        with pytest.raises(RecordError, match="time zone") as refusal:
            POLICIES[0].loss({"day": column})
        assert "2024" not in str(refusal.value)


def vectors(tests, days):
    """The answers to all tests that some day gives, each as the bits of a number."""
    parts, answers = parts_of_days(days), np.zeros(len(days), dtype=np.int64)
    for part, value in tests:
        answers = 4 * answers + 2 * (parts[part] < int(value)) + (parts[part] == int(value))
    return set(np.unique(answers).tolist())


def random_tests(rng: Random) -> list[tuple[str, Fraction]]:
    years = [rng.choice([1, 2, 40, 1899, 1900, 1987, 2004, 2005, 2024, 9998, 9999]) for _ in range(2)]
    found = [(rng.choice(["year", "isoyear"]), Fraction(year)) for year in years[: rng.randint(0, 2)]]
    found += [("week", Fraction(rng.choice([1, 2, 52, 53]))), ("month", Fraction(rng.choice([1, 2, 3, 12])))]
    return found + [("quarter", Fraction(rng.randint(1, 4)))] * rng.randint(0, 1)


def as_days(found) -> np.ndarray:
    return np.array([day.toordinal() - EPOCH for day in found])


@pytest.mark.theorem("T-DATES")
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.costly
@pytest.mark.sampled
def test_the_representatives_answer_as_all_days_of_the_calendar_do(seed) -> None:
    tests = random_tests(Random(seed))
    assert vectors(tests, as_days(representatives(tests))) == vectors(tests, ALL)


def test_too_few_years_would_miss_answers(monkeypatch) -> None:
    monkeypatch.setattr(columns, "CYCLE", 1)
    tests = [("year", Fraction(2005)), ("week", Fraction(53)), ("month", Fraction(1))]
    assert vectors(tests, as_days(representatives(tests))) < vectors(tests, ALL)


def test_a_budget_is_held_against_dates_that_exist() -> None:
    january = gaussian_sum("pay", sigma=10).where(at("month", [1]))
    always = gaussian_sum("pay", sigma=10)
    assert always.dominates(january)
    verdict = january.dominates(always)
    assert not verdict
    assert verdict.witness["day"] is None or verdict.witness["day"].month != 1
    assert always.loss(verdict.witness) > january.loss(verdict.witness)
    # Week 53 never lies in June, and December has no days of quarter 1.
    assert constant(0).dominates(constant(1).where(at("week", [53]) & at("month", [6])))
    assert constant(0).dominates(constant(1).where(at("quarter", [1]) & at("month", [12])))
    assert not constant(0).dominates(constant(1).where(at("week", [53]) & at("month", [1])))
    # The first days of 2005 belong to a week of 2004, and no later ones do.
    early = constant(1).where(at("year", [2005]) & at("isoyear", [2004]))
    assert not constant(0).dominates(early)
    assert constant(1).where(at("month", [1]) & at("week", [53])).dominates(early)


def test_policies_with_dates_are_saved_and_read_back() -> None:
    for policy in POLICIES:
        assert Policy.from_json(json.loads(json.dumps(policy.to_json()))) == policy
    assert "ISO week of 'day'" in POLICIES[0].in_words()
    assert "quarter" in POLICIES[1].to_latex()


@pytest.mark.parametrize("given", [{"part": "day"}, {"part": "YEAR"}, {"part": "year", "length": 2}])
def test_a_part_that_dates_do_not_have_is_refused(given) -> None:
    with pytest.raises(ParameterError):
        ConditionColumn("day", **given)


def test_a_cell_by_one_part_of_a_date_says_nothing_about_another() -> None:
    by_year = CellKey(column=ConditionColumn("opened", part="year"))
    assert by_year.determines(ConditionColumn("opened", part="year"))
    assert not by_year.determines(ConditionColumn("opened", part="month"))
    assert not by_year.determines(ConditionColumn("opened"))
