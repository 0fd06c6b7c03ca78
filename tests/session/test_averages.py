"""Averages: two parts, both paid for once, and an interval that holds."""

from statistics import NormalDist

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

import build
import recordwise as rw
from recordwise.errors import ParameterError, PlanError
from recordwise.mechanisms import Gaussian, GeneralizedGaussian, LogTransform, RootTransform, UnitSplit
from recordwise.noise import Seeded
from recordwise.plan import Keys, Plan, Schema, SumAndCount, parse_sql
from recordwise.plan.cost import plan_policy
from recordwise.plan.query import query
from recordwise.plan.statistics.base import Drawable

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
    with build.session(table, firm=None) as session:
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


def test_the_parts_of_an_average_are_drawn_once(monkeypatch):
    drawn, draw = [], Drawable.draw
    monkeypatch.setattr(
        Drawable, "draw", lambda self, *how, **more: (drawn.append(self.alias), draw(self, *how, **more))[1]
    )
    table = pa.table({"id": range(6), "emp": [7] * 6, "pay": [9] * 6, "county": ["A", "B"] * 3})
    with build.session(table, firm=None) as session:
        session.run(by_county().count(COUNT).avg("emp", sum=SUM), rng=Seeded(3))
    assert sorted(drawn) == ["avg_emp_sum", "count"]


@pytest.mark.theorem("T-AVG")
@pytest.mark.parametrize("size", [6, 600])
def test_where_noise_is_not_gaussian_the_ends_are_those_of_parts_that_miss_half_as_often(size):
    """The same noise read at 97.5 % gives the ends whose quotients are the interval of 95 %."""
    table = pa.table({"id": range(size), "emp": [7] * size, "pay": [9] * size, "county": ["A", "B"] * (size // 2)})
    asked = by_county().count(COUNT).avg("emp", sum=GeneralizedGaussian(shape="0.5", scale=5))
    rows = {}
    for confidence in (0.95, 0.975):
        with build.session(table, firm=None) as session:
            rows[confidence] = session.run(asked, rng=Seeded(3), confidence=confidence).table.to_pylist()
    for row, parts in zip(rows[0.95], rows[0.975]):
        smallest, largest = max(parts["count_low"], 1), max(parts["count_high"], 1)
        low, high = parts["avg_emp_sum_low"], parts["avg_emp_sum_high"]
        exact = low / (largest if low >= 0 else smallest), high / (smallest if high >= 0 else largest)
        width = exact[1] - exact[0]
        assert exact[0] - width / 50 < row["avg_emp_low"] <= exact[0]
        assert exact[1] <= row["avg_emp_high"] < exact[1] + width / 50


def published(cells, size, amounts, **asked):
    """One record of each amount in every cell, all cells alike; the averages of one release, with the release's seed fixed."""
    names = np.char.add("c", np.arange(cells).astype(str))
    table = pa.table(
        {
            "id": np.arange(cells * size),
            "emp": np.tile(np.asarray(amounts, np.int64), cells),
            "pay": np.zeros(cells * size, np.int64),
            "county": np.repeat(names, size),
        }
    )
    with build.session(table, firm=None) as session:
        asked_of_all = query().group_by("county", keys=Keys.of({"county": names.tolist()})).avg("emp", **asked)
        return session.run(asked_of_all, rng=Seeded(cells)).table


def missed(table, truth):
    low, high = (np.array(table.column(f"avg_emp_{end}").to_pylist(), float) for end in ("low", "high"))
    assert np.all(np.isfinite(low) & np.isfinite(high)), "every cell has an interval"
    return int(np.sum((low > truth) | (high < truth)))


@pytest.mark.theorem("T-AVG")
@pytest.mark.parametrize(
    "how",
    [
        {"sum": SUM},
        {"sum": LogTransform(offset=10, sigma="0.2")},
        {"sum": RootTransform(degree=2, laplace_scale="0.5")},
        {"sum": GeneralizedGaussian(shape="0.5", scale=5)},
    ],
    ids=str,
)
@pytest.mark.parametrize("amounts", [[0], [90], [3, 200, 1]], ids=str)
@pytest.mark.costly
@pytest.mark.sampled
def test_the_interval_of_an_average_covers_over_all_cells(how, amounts):
    """6,000 cells of one to three records at .95, against Binomial(6000, .05) at 1e-9: what misses .08 or more is caught with
    certainty, as the old interval was, which covered .79 of the cells of one record under log noise."""
    table = published(6000, len(amounts), amounts, count=COUNT, **how)
    assert binom.sf(missed(table, sum(amounts) / len(amounts)) - 1, 6000, 0.05) > 1e-9


def test_where_the_noisy_count_is_not_positive_there_is_no_value_and_no_error_but_an_interval():
    rows = published(400, 1, [50], sum=SUM, count=COUNT).to_pylist()
    nothing = [row for row in rows if row["avg_emp_count"] <= 0]
    assert 80 < len(nothing) < 200
    for row in rows:
        known = row["avg_emp_count"] > 0
        assert (
            (row["avg_emp"] is not None) == (row["avg_emp_sd"] is not None) == (row["avg_emp_cv"] is not None) == known
        )
        assert row["avg_emp_low"] < row["avg_emp_high"]


def test_the_error_of_an_average_is_that_of_its_parts_to_first_order():
    (row,) = published(1, 200, [40] * 200, sum=SUM, count=COUNT).to_pylist()
    expected = np.hypot(row["avg_emp_sum_sd"], row["avg_emp"] * row["avg_emp_count_sd"]) / row["avg_emp_count"]
    assert row["avg_emp_sd"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
def test_the_interval_of_a_large_cell_is_as_wide_as_the_level_asks_and_no_wider(confidence):
    """4,000 records: Fieller's set is the normal interval of the ratio there, wider by a tenth at a next confidence up."""
    table = pa.table({"id": range(8000), "emp": [30] * 8000, "pay": [0] * 8000, "county": ["A", "B"] * 4000})
    fine = Gaussian(sigma=200)
    with build.session(table, firm=None) as session:
        asked = by_county().avg("emp", sum=fine, count=Gaussian(sigma=100))
        rows = session.run(asked, rng=Seeded(3), confidence=confidence).table.to_pylist()
    for row in rows:
        wide = (row["avg_emp_high"] - row["avg_emp_low"]) / row["avg_emp_sd"]
        assert wide == pytest.approx(2 * NormalDist().inv_cdf((1 + confidence) / 2), rel=0.02)


def test_each_group_s_own_noise_makes_its_interval():
    """Thresholds by county: the average of a county with a tenth of the noise has an interval a tenth as wide."""
    table = pa.table({"id": range(8000), "emp": [0] * 8000, "pay": [0] * 8000, "county": ["A", "B"] * 4000})
    by = UnitSplit(at=rw.by("county", {"A": 1000, "B": 100}), rho="0.1")
    with build.session(table, firm=None) as session:
        one, other = session.run(by_county().avg("emp", sum=by, count=COUNT), rng=Seeded(3)).table.to_pylist()
    widths = [row["avg_emp_high"] - row["avg_emp_low"] for row in (one, other)]
    assert widths[0] / widths[1] == pytest.approx(10, rel=0.02)


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
