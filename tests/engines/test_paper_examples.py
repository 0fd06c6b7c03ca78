"""The splitting paper's way from a table over its split rows to queries, with exact answers and the policies to the digit.

The rows are a small table of our own in the shape of the paper's Tables 1 and 2; the rewriting of queries is its Table 3, with the
count term that an average needs (docs/theory/splitting.md). Answers are exact here: noise is not drawn.
"""

import duckdb
import pyarrow as pa
import pytest

from recordwise.engines import integers
from recordwise.mechanisms import Gaussian, UnitSplit
from recordwise.plan import Keys, Plan, Schema, Splitting, parse_sql, query
from recordwise.plan.cost import cell_mechanisms, plan_policy, plan_warnings
from recordwise.policy import by

TABLE = pa.table(
    {
        "id": [1, 2, 3, 4],
        "county": ["A", "A", "B", "B"],
        "industry": ["Mining", "Retail", "Retail", "Mining"],
        "emp": [12, 3, 7, 40],
        "payroll": [500, 90, 210, 2600],
    }
)
SCHEMA = Schema.of(unit="id", measures={"emp": 1, "payroll": 1}, columns={"county": "text", "industry": "text"})
COUNTIES, INDUSTRIES = Keys.of({"county": ["A", "B", "C"]}), Keys.of({"industry": ["Mining", "Retail"]})


@pytest.fixture
def engine(opens):
    with opens(TABLE, SCHEMA) as opened:
        yield opened


def answers(engine, plan):
    found = []
    for table in engine.totals(plan):
        revealed = table.totals.reveal()
        found.append([integers(column).tolist() for column in revealed.columns])
    return found


@pytest.mark.theorem("T-SPLIT")
def test_tables_1_and_2_a_table_and_its_split_rows(engine):
    rows = engine.split_table(Splitting.of({"emp": 5, "payroll": 250})).reveal()
    first = [row for row in rows.to_pylist() if row["id"] == 1]
    assert [(row["piece"], row["emp"], row["payroll"], row["industry"]) for row in first] == [
        (1, 5, 250, "Mining"),
        (2, 5, 250, "Mining"),
        (3, 2, 0, "Mining"),
    ]
    assert {i: rows["id"].to_pylist().count(i) for i in (1, 2, 3, 4)} == {1: 3, 2: 1, 3: 2, 4: 11}


@pytest.mark.theorem("T-SPLIT")
def test_table_3_queries_on_split_rows_equal_queries_on_the_records(engine):
    rows = engine.split_table(Splitting.of({"emp": 5, "payroll": 250})).reveal()
    connection = duckdb.connect()
    connection.register("split_rows", rows)
    rewritten = connection.sql(
        "SELECT count(DISTINCT id), sum(emp), sum(payroll) FROM split_rows GROUP BY county ORDER BY county"
    ).fetchall()
    asked = parse_sql(
        "SELECT county, COUNT(*), SUM(emp), SUM(payroll) FROM t GROUP BY county",
        mechanisms={"*": Gaussian(rho=1), "emp": UnitSplit(at=5, rho=1), "payroll": UnitSplit(at=250, rho=1)},
        keys=COUNTIES,
    )
    ((counts, jobs, pay),) = answers(engine, Plan(schema=SCHEMA, queries=(asked,)))
    assert list(zip(counts, jobs, pay))[:2] == rewritten == [(2, 15, 590), (2, 47, 2810)]
    assert (counts[2], jobs[2], pay[2]) == (0, 0, 0)
    connection.close()


def test_example_2_one_joint_splitting_for_two_sums(engine):
    """Printed: rho pieces^2 for each sum, pieces the most any measure needs. Tight: what each sum's own noise is worth."""
    joint = {"emp": 5, "payroll": 250}
    asked = (
        query()
        .group_by("county", keys=COUNTIES)
        .sum("emp", UnitSplit(at=joint, rho="0.1"))
        .sum("payroll", UnitSplit(at=joint, rho="0.2"))
    )
    plan = Plan(schema=SCHEMA, queries=(asked,))
    record = {"emp": 12, "payroll": 500, "county": "A"}
    assert plan_policy(plan, tight=False).loss(record) == pytest.approx(0.3 * 3**2, rel=1e-12)
    assert plan_policy(plan).loss(record) == pytest.approx(0.1 * (12 / 5) ** 2 + 0.2 * 2**2, rel=1e-9)
    assert answers(engine, plan) == [[[15, 47, 0], [590, 2810, 0]]]


def test_example_3_thresholds_by_industry_where_the_cell_tells_the_industry(engine):
    at = by("industry", {"Mining": 20, "Retail": 5}, default=10)
    asked = (
        query()
        .group_by("industry", keys=INDUSTRIES)
        .sum("emp", UnitSplit(at=at, rho="0.1"))
        .count(Gaussian(rho="0.05"))
    )
    plan = Plan(schema=SCHEMA, queries=(asked,))
    mine, shop = {"emp": 40, "industry": "Mining"}, {"emp": 7, "industry": "Retail"}
    assert plan_policy(plan, tight=False).loss(mine) == pytest.approx(0.1 * 2**2 + 0.05, rel=1e-9)
    assert plan_policy(plan, tight=False).loss(shop) == pytest.approx(0.1 * 2**2 + 0.05, rel=1e-9)
    assert plan_policy(plan).loss(shop) == pytest.approx(0.1 * (7 / 5) ** 2 + 0.05, rel=1e-9)
    assert plan_warnings(plan) == ()
    (table,) = plan.tables()
    runs = cell_mechanisms(plan, table, asked.statistics[0], plan.cells(table))
    assert {float(run.mechanism.at): run.run.rows.tolist() for run in runs} == {20.0: [0], 5.0: [1]}
    assert answers(engine, plan) == [[[52, 10], [2, 2]]]


@pytest.mark.theorem("T-CELL")
def test_example_3_where_a_county_mixes_industries(engine):
    at = by("industry", {"Mining": 20, "Retail": 5}, default=10)
    plan = Plan(
        schema=SCHEMA, queries=(query().group_by("county", keys=COUNTIES).sum("emp", UnitSplit(at=at, rho="0.1")),)
    )
    shop = {"emp": 7, "industry": "Retail", "county": "B"}
    assert plan_policy(plan).loss(shop) == pytest.approx(0.1 * (7 / 20) ** 2, rel=1e-9)
    assert plan_policy(plan, tight=False).loss(shop) == pytest.approx(0.1 * 2**2, rel=1e-12)
    assert len(plan_warnings(plan)) == 1
