"""Averages: two parts, both paid for once, and an interval that holds."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

import recordwise as rw
from recordwise.drawn import Drawn, average
from recordwise.errors import ParameterError, PlanError
from recordwise.mechanisms import Gaussian, UnitSplit
from recordwise.noise import Seeded
from recordwise.plan import Keys, Plan, Schema, SumAndCount, parse_sql, query
from recordwise.plan.analysis import plan_policy

SCHEMA = Schema.of(unit="id", measures={"emp": 1, "pay": 1}, columns={"county": "text"})
COUNTIES = Keys.of({"county": ["A", "B"]})
SUM, COUNT = UnitSplit(at=50, rho="0.1"), Gaussian(rho="0.05")


def policy(asked, **how):
    return plan_policy(Plan(schema=SCHEMA, queries=(asked,)), **how)


def by_county():
    return query().group_by("county", keys=COUNTIES)


@pytest.mark.theorem("T-AVG")
def test_an_average_costs_its_sum_and_its_count():
    """The paper prints the first term only."""
    record = {"emp": 120}
    asked = by_county().avg("emp", sum=SUM, count=COUNT)
    assert policy(asked) == policy(by_county().sum("emp", SUM).count(COUNT))
    assert policy(asked).loss(record) == pytest.approx(0.1 * (120 / 50) ** 2 + 0.05, rel=1e-9)
    assert policy(asked, tight=False).loss(record) == pytest.approx(0.1 * 9 + 0.05, rel=1e-9)


@pytest.mark.theorem("T-AVG")
def test_parts_the_query_has_already_are_used_again_at_no_cost():
    plain = by_county().count(COUNT).sum("emp", SUM)
    assert policy(plain.avg("emp", sum=SUM)) == policy(plain)
    assert policy(plain.avg("emp", sum=SUM, count=COUNT)) == policy(plain)
    other = Gaussian(rho="0.2")
    assert policy(plain.avg("emp", sum=SUM, count=other)) == policy(plain.count(other, alias="again"))
    both = by_county().avg("emp", sum=SUM, count=COUNT).avg("pay", sum=SUM, count=COUNT)
    assert policy(both) == policy(by_county().sum("emp", SUM).sum("pay", SUM).count(COUNT))


def test_an_average_without_a_count_or_of_something_else_is_refused():
    with pytest.raises(PlanError, match="needs a count"):
        policy(by_county().avg("emp", sum=SUM))
    with pytest.raises(PlanError, match="not a measure"):
        policy(by_county().avg("county", sum=SUM, count=COUNT))
    with pytest.raises(ParameterError, match="policy"):
        by_county().avg("emp", sum=3, count=COUNT)
    with pytest.raises(PlanError, match="used twice"):
        policy(by_county().avg("emp", sum=SUM, count=COUNT).count(COUNT, alias="avg_emp"))


def test_the_published_average_is_the_ratio_of_the_published_parts_and_is_flagged():
    table = pa.table({"id": range(600), "emp": [7] * 600, "pay": [9] * 600, "county": ["A", "B"] * 300})
    with rw.Session(table, unit="id", measures={"emp": 1, "pay": 1}) as session:
        asked = by_county().count(COUNT).avg("emp", sum=SUM).avg("pay", sum=SUM, count=Gaussian(rho=1), alias="mean")
        release = session.run(asked, rng=Seeded(1))
    rows = release.table.to_pylist()
    for row in rows:
        assert row["avg_emp"] == pytest.approx(row["avg_emp_sum"] / row["count"], rel=1e-15)
        assert row["mean"] == pytest.approx(row["mean_sum"] / row["mean_count"], rel=1e-15)
        assert row["avg_emp_low"] < row["avg_emp"] < row["avg_emp_high"]
    flags = release.to_json()["flags"]["county"]
    assert set(flags) == {"avg_emp", "mean"}
    assert all("not unbiased" in flag for flag in flags.values())
    assert release.table.schema.field("avg_emp").metadata[b"recordwise_flag"].startswith(b"not unbiased")
    (described,) = release.to_json()["plan"]
    assert [each.get("unbiased") for each in described["statistics"]] == [None, False, False]


def averages(total, size, cells, part_level, seed):
    totals, counts = np.full(cells, total), np.full(cells, size)
    rng = Seeded(seed)
    noisy_sum, noisy_count = SUM.release(totals, rng=rng), COUNT.release(counts, rng=rng)
    parts = (SUM.estimate(noisy_sum, level=part_level), COUNT.estimate(noisy_count, level=part_level))
    fields = ("value", "standard_error", "low", "high")
    drawn = [Drawn(alias="part", **{name: getattr(part, name) for name in fields}) for part in parts]
    return average("a", *drawn)


@pytest.mark.theorem("T-AVG")
@pytest.mark.parametrize(("total", "size"), [(0, 25), (900, 30), (50_000, 400)])
def test_the_interval_of_an_average_holds_with_at_least_its_level(total, size):
    """20,000 cells at level 0.9 against Binomial(20000, 0.1). Parts at level 0.6, which cover together about 0.72 in the middle
    case, are found out with certainty."""
    found = averages(total, size, 20_000, 0.95, seed=size)
    misses = np.sum(~((found.low <= total / size) & (total / size <= found.high)))
    assert binom.sf(misses - 1, 20_000, 0.1) > 1e-9


@pytest.mark.theorem("T-AVG")
def test_an_interval_from_parts_that_are_too_narrow_is_caught():
    found = averages(50_000, 400, 20_000, 0.3, seed=3)
    misses = np.sum(~((found.low <= 125) & (found.high >= 125)))
    assert binom.sf(misses - 1, 20_000, 0.1) < 1e-9


def test_where_the_count_may_be_nothing_there_is_no_interval_and_a_negative_sum_widens_it_the_right_way():
    found = averages(0, 3, 2000, 0.975, seed=5)
    low, high = (found.columns()[f"a_{end}"].to_pylist() for end in ("low", "high"))
    assert low.count(None) == high.count(None) > 1700
    some = averages(0, 40, 5000, 0.975, seed=6)
    known = ~np.isnan(some.low)
    assert np.all(some.low[known] <= some.value[known])
    assert np.all(some.value[known] <= some.high[known])
    assert np.any(some.low[known] < 0)


def test_sql_averages_read_as_the_builder_s():
    text = "SELECT county, COUNT(*), AVG(emp) FROM t GROUP BY county"
    read = parse_sql(text, mechanisms={"*": COUNT, "emp": SUM}, keys=COUNTIES)
    assert read == by_county().count(COUNT).avg("emp", sum=SUM)
    own = parse_sql(
        "SELECT county, AVG(emp) AS mean FROM t GROUP BY county",
        mechanisms={"mean": SumAndCount(sum=SUM, count=COUNT)},
        keys=COUNTIES,
    )
    assert own == by_county().avg("emp", sum=SUM, count=COUNT, alias="mean")
