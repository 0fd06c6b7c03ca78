"""Dates are grouped and filtered by their parts, the same on both engines, however they are stored."""

import datetime
from collections import Counter
from datetime import date

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import recordwise as rw
from build import employers
from engines.plain_mechanism import Plain
from recordwise.engines import DuckDB
from recordwise.errors import DataError, PlanError, SourceError, SqlError
from recordwise.plan import Column, DatePart, Plan, Schema
from recordwise.plan.cost import plan_policy
from recordwise.plan.query import query
from recordwise.plan.sql.parse import parse_sql
from recordwise.policy.columns import PARTS, part_of

M = Plain()
SCHEMA = Schema.of(
    unit="id", measures={"emp": 1}, columns={"opened": Column(name="opened", type="date", null="category")}
)
DAYS = [
    *(
        date(year, month, day)
        for year in range(2003, 2012)
        for month, day in ((1, 1), (1, 3), (6, 30), (12, 29), (12, 31))
    ),
    date(1, 1, 1),
    date(9999, 12, 31),
    date(1969, 12, 31),
    None,
]
NOON = [None if day is None else datetime.datetime.combine(day, datetime.time(23, 59, 59)) for day in DAYS]


def table(opened, **columns):
    return pa.table({"id": range(len(DAYS)), "emp": range(len(DAYS)), "opened": opened} | columns)


def totals(opens, source, schema, *queries):
    with opens(source, schema) as engine:
        found = engine.totals(Plan(schema=schema, queries=queries))
    return [[column.tolist() for column in each.exact.reveal().totals.values()] for each in found]


def counted(part):
    return Counter(None if day is None else int(part_of(day, part)) for day in DAYS)


STORED = {
    "days": pa.array(DAYS, pa.date32()),
    "seconds": pa.array(NOON, pa.timestamp("s")),
    "microseconds": pa.array(NOON, pa.timestamp("us")),
    "text": pa.array([None if day is None else day.isoformat() for day in DAYS]),
    "times as text": pa.array([None if each is None else each.isoformat() for each in NOON]),
}


@pytest.mark.theorem("T-DATES")
@pytest.mark.parametrize("stored", STORED)
def test_records_are_counted_by_every_part_of_a_date_however_it_is_stored(opens, stored):
    asked, wanted = [], []
    for part in PARTS:
        expected = counted(part)
        values = [*sorted(value for value in expected if value is not None), 0, None]
        keys = {f"opened_{part}": [*sorted(values[:-1]), None]}
        asked.append(query().group_by(DatePart("opened", part), keys=keys).count(M))
        wanted.append([[expected[value] for value in keys[f"opened_{part}"]]])
    assert totals(opens, table(STORED[stored]), SCHEMA, *asked) == wanted


def test_conditions_on_parts_select_the_records_that_python_selects(opens):
    known = [day for day in DAYS if day is not None]
    cases = {
        "EXTRACT(YEAR FROM opened) = 2005": lambda day: day.year == 2005,
        "EXTRACT(WEEK FROM opened) >= 52 AND EXTRACT(MONTH FROM opened) = 1": lambda day: (
            day.isocalendar()[1] >= 52 and day.month == 1
        ),
        "EXTRACT(ISOYEAR FROM opened) IN (2004, 2008)": lambda day: day.isocalendar()[0] in (2004, 2008),
        "NOT EXTRACT(QUARTER FROM opened) BETWEEN 2 AND 4": lambda day: day.month <= 3,
        "EXTRACT(YEAR FROM opened) < 2004.5": lambda day: day.year <= 2004,
    }
    queries = [query().where(text).count(M) for text in cases] + [query().where("opened IS NULL").count(M)]
    found = totals(opens, table(STORED["days"]), SCHEMA, *queries)
    assert found == [[[sum(map(test, known))]] for test in cases.values()] + [[[1]]]
    for text, test in cases.items():
        policy = plan_policy(Plan(schema=SCHEMA, queries=(query().where(text).count(rw.Gaussian(rho=1)),)))
        assert [policy.loss({"opened": day}) > 0 for day in known] == list(map(test, known))


def test_sql_text_and_the_builder_are_the_same_query():
    keys = {"opened_year": [2004, 2005], "opened_week": [1, 53]}
    both = "EXTRACT(YEAR FROM opened), EXTRACT(WEEK FROM opened)"
    text = f"SELECT {both}, COUNT(*) FROM t GROUP BY {both}"
    read = parse_sql(text, mechanisms={"*": M}, keys=rw.Keys.of(keys))
    assert read == query().group_by(rw.year("opened"), rw.week("opened"), keys=rw.Keys.of(keys)).count(M)
    named = parse_sql("SELECT EXTRACT(QUARTER FROM opened) AS q, COUNT(*) FROM t GROUP BY q", mechanisms={"*": M})
    assert named.groups[0].expression == rw.quarter("opened")
    assert [each("d").part for each in (rw.year, rw.quarter, rw.month, rw.week, rw.isoyear)] == list(PARTS)


@pytest.mark.parametrize(
    "text", ["EXTRACT(DAY FROM opened) = 1", "EXTRACT(YEAR FROM LEFT(opened, 4)) = 1", "EXTRACT(EPOCH FROM opened) > 0"]
)
def test_other_parts_are_refused_by_name(text):
    with pytest.raises(SqlError, match="EXTRACT"):
        query().where(text)


@pytest.mark.parametrize(
    "asked, problem",
    [
        (query().group_by("opened", keys=["2004-01-01"]), "'opened' is a date: group by its year"),
        (query().where("opened = '2004-01-01'"), "'opened' is a date: compare its year"),
        (query().where("opened > 5"), "'opened' is a date: compare its year"),
        (query().where("EXTRACT(YEAR FROM opened) = '2004'"), "not of type integer"),
        (query().where("LEFT(opened, 4) = '2004'"), "needs a column of type text"),
        (query().where("EXTRACT(YEAR FROM emp) = 2004"), "the year of 'emp' needs a column of type date"),
        (query().group_by(rw.year("emp"), keys=[2004]), "'emp' is a group but not a conditional column"),
        (query().group_by(rw.year("county"), keys=[2004]), "the year of 'county' needs a column of type date"),
    ],
)
def test_a_date_is_used_by_its_parts_and_a_part_is_of_a_date(asked, problem):
    schema = Schema.of(unit="id", measures={"emp": 1}, columns={"opened": "date", "county": "text"})
    with pytest.raises(PlanError, match=problem):
        Plan(schema=schema, queries=(asked.count(M),))


def test_thresholds_by_a_part_of_a_date_are_refused():
    at = rw.by(rw.policy.ConditionColumn("opened", part="year"), {2004: 5}, default=10)
    with pytest.raises(PlanError, match="thresholds by dates"):
        plan_policy(Plan(schema=SCHEMA, queries=(query().sum("emp", rw.UnitSplit(at=at, rho=1)),)))


@pytest.mark.parametrize(
    "text",
    ["2024-02-30", "31.12.2024", "2024-12-31Z", "2024-12-31 10:00+02:00", "20241231", "0000-01-01", " 2024-12-31"],
)
def test_texts_that_are_no_date_are_counted_and_not_shown(opens, text):
    source = pa.table({"id": [1, 2], "emp": [1, 1], "opened": [text, "2024-12-31"]})
    with opens(source, SCHEMA) as engine, pytest.raises(DataError) as refusal:
        engine.validate()
    assert [(each.problem, each.count) for each in refusal.value.problems] == [("cannot be read as date", 1)]
    assert text not in str(refusal.value)


def test_a_time_with_a_zone_is_refused_when_the_table_is_opened(opens):
    zoned = pa.array([datetime.datetime(2024, 1, 1)], pa.timestamp("us", tz="Europe/Berlin"))
    with pytest.raises(SourceError, match="time with a time zone"):
        opens(pa.table({"id": [1], "emp": [1], "opened": zoned}), SCHEMA)


def test_dates_outside_the_calendar_are_refused(tmp_path):
    for text in ("infinity", "-infinity", "44-03-15 (BC)", "10000-01-01"):
        duckdb.sql(f"COPY (SELECT 1 AS id, 1 AS emp, '{text}'::DATE AS opened) TO '{tmp_path / 't.parquet'}'")
        with DuckDB(tmp_path / "t.parquet", SCHEMA) as engine, pytest.raises(DataError, match="cannot be read as date"):
            engine.validate()


def test_a_missing_date_is_refused_unless_it_is_a_category(opens):
    schema = Schema.of(unit="id", columns={"opened": "date"})
    with opens(table(STORED["days"]), schema) as engine, pytest.raises(DataError, match="'opened' is NULL in 1 row"):
        engine.validate()


def test_dates_in_files_and_frames_of_pandas(opens, tmp_path):
    asked = query().group_by(rw.year("opened"), keys=[2005]).count(M)
    wanted = [[[counted("year")[2005]]]]
    pq.write_table(table(STORED["microseconds"]), tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("id,emp,opened\n" + "".join(f"{n},1,{day or ''}\n" for n, day in enumerate(DAYS)))
    frame = pd.DataFrame({"id": range(len(DAYS)), "emp": 1, "opened": np.array(NOON, dtype="datetime64[us]")})
    for source in (tmp_path / "t.parquet", tmp_path / "t.csv", frame):
        assert totals(opens, source, SCHEMA, asked) == wanted


@pytest.mark.filterwarnings("ignore::recordwise.errors.UnkeptLedgerWarning")
@pytest.mark.costly
def test_a_release_by_quarter_has_a_page_that_asks_for_the_date(opens, tmp_path):
    frame = table(STORED["days"])
    with employers(frame, **opens.session_options()) as session:
        assert session.schema.column("opened").type == "date"
        asked = rw.query().where("EXTRACT(YEAR FROM opened) = 2005 AND EXTRACT(MONTH FROM opened) = 12")
        with pytest.raises(DataError, match="is NULL"):
            session.run(asked.sum("emp", rw.UnitSplit(at=5, rho=1)))
    with employers(frame, columns={"opened": SCHEMA.columns[0]}, **opens.session_options()) as session:
        keys = rw.Keys.product(opened_year=[2005, 2006], opened_quarter=[1, 2, 3, 4])
        grouped = asked.group_by(rw.year("opened"), rw.quarter("opened"), keys=keys)
        release = session.run(grouped.sum("emp", rw.UnitSplit(at=5, rho=1)), rng=rw.noise.Seeded(1))
        release.save(tmp_path / "r")
        summary = session.owner.loss_summary(release.policy)
    assert summary.counts.sum() == len(DAYS)
    assert release.tables[0].data.column_names[:2] == ["opened_year", "opened_quarter"]
    page = (tmp_path / "r" / "report.html").read_text()
    assert "a date, as 2024-12-31" in page
    assert '"opened":"2005-12-' in page
    assert rw.read(tmp_path / "r").policy == release.policy
