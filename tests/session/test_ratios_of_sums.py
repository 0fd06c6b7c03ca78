"""Ratios of two sums of a query: free of further cost, with an interval in every cell (T-RATIO)."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

import recordwise as rw
from build import employers
from recordwise.errors import PlanError, SqlError
from recordwise.noise import Seeded
from recordwise.plan import Keys, Measure, Plan, Schema, parse_sql
from recordwise.plan.cost import plan_policy

MEASURES = {
    "emp": 1,
    "payann": "0.5",
    "rest": Measure.of("rest", derive="payann - 45 * emp"),
    "net": Measure.of("net", signed=True),
}
SCHEMA = Schema.of(unit="id", measures=MEASURES, columns={"county": "text"})
EMP, PAY = rw.Gaussian(sigma=2), rw.Gaussian(sigma=60)
COUNTIES = Keys.of({"county": ["a", "b"]})
CELLS = 4000


def by_county():
    return rw.query().group_by("county", keys=COUNTIES).sum("payann", PAY).sum("emp", EMP)


def plan(asked):
    return Plan(schema=SCHEMA, queries=(asked,))


@pytest.mark.theorem("T-RATIO")
def test_a_ratio_costs_nothing_beside_its_sums():
    assert plan_policy(plan(by_county().ratio("payann", "emp"))) == plan_policy(plan(by_county()))
    assert plan(by_county().ratio("payann", "emp")).queries[0].statistics[-1].alias == "payann_per_emp"


@pytest.mark.parametrize(
    "asked, message",
    [
        (lambda q: q.ratio("payann", "staff"), "'staff': ask for its sum"),
        (lambda q: q.ratio("payann", "county", alias="x"), "'county'"),
        (lambda q: q.sum("emp", PAY, alias="other").ratio("payann", "emp"), "any of 'sum_emp', 'other'"),
        (lambda q: q.sum("net", PAY).ratio("payann", "net"), "may be negative"),
        (lambda q: q.sum("rest", PAY).ratio("emp", "rest"), "may be negative"),
        (lambda q: q.ratio("emp", "payann - 45 * emp", alias="x"), "may be negative"),
        (lambda q: q.ratio("payann", "emp").ratio("payann", "emp"), "used twice"),
        (lambda q: q.ratio("payann", "pay", alias="x").combine("2 * payann", alias="pay"), "'pay': ask for its sum"),
    ],
)
def test_what_cannot_be_divided_is_refused_before_anything_is_spent(asked, message):
    with pytest.raises(PlanError, match=message):
        plan(asked(by_county()))


def test_a_ratio_of_linear_forms_needs_a_name_and_linear_text():
    with pytest.raises(rw.errors.ParameterError, match="alias"):
        by_county().ratio("payann - emp", "emp")
    with pytest.raises(SqlError, match="not linear"):
        by_county().ratio("payann * emp", "emp", alias="x")


def test_sql_text_divides_sums_that_it_selects():
    text = "SELECT county, SUM(payann), SUM(emp), (SUM(payann) / SUM(emp)) AS pay FROM t GROUP BY county"
    read = parse_sql(text, mechanisms={"payann": PAY, "emp": EMP}, keys=COUNTIES)
    assert read == by_county().ratio("payann", "emp", alias="pay")
    counted = "SELECT COUNT(*) AS n, SUM(emp), (SUM(emp) - 2 * COUNT(*)) / COUNT(*) AS more FROM t"
    read = parse_sql(counted, mechanisms={"*": EMP, "emp": EMP})
    assert read == rw.query().count(EMP, alias="n").sum("emp", EMP).ratio("emp - 2 * count", "count", alias="more")
    with pytest.raises(SqlError, match="without a name"):
        parse_sql(text.replace(" AS pay", ""), mechanisms={"payann": PAY, "emp": EMP}, keys=COUNTIES)


def test_a_name_that_can_mean_two_statistics_is_refused():
    """COUNT(*) AS emp must not be divided by where SUM(emp) is meant."""
    text = "SELECT COUNT(*) AS emp, SUM(emp) AS s, SUM(payann) AS p, SUM(payann) / SUM(emp) AS pay FROM t"
    read = parse_sql(text, mechanisms={"emp": EMP, "s": EMP, "p": PAY})
    with pytest.raises(PlanError, match="can be any of"):
        plan(read)


def released(values, mechanisms, asked, confidence=0.95):
    """All cells alike, one record each, drawn with a fixed seed."""
    names = [f"c{i}" for i in range(CELLS)]
    columns = {"emp": [0], "payann": [0.0], "net": [0]} | {name: [value] for name, value in values.items()}
    table = pa.table({"id": range(CELLS), "county": names} | {name: value * CELLS for name, value in columns.items()})
    question = rw.query().group_by("county", keys={"county": names})
    for name, mechanism in mechanisms.items():
        question = question.sum(name, mechanism)
    with employers(table, "county", measures=MEASURES) as session:
        return session.run(asked(question), rng=Seeded(11), confidence=confidence).table


def plain(question):
    return question.ratio("payann", "emp", alias="pay")


def joint(question):
    return question.combine("rest + 45 * emp", alias="total").ratio("total", "emp", alias="pay")


CASES = {
    "large": ({"payann": PAY, "emp": EMP}, plain),
    "coarse": ({"payann": rw.Gaussian(sigma="0.5"), "emp": rw.Gaussian(sigma="0.6")}, plain),
    "joint": ({"rest": rw.Gaussian(sigma=40), "emp": EMP}, joint),
    "log": ({"payann": rw.LogTransform(offset=100, sigma="0.2"), "emp": EMP}, plain),
    "fat": ({"payann": PAY, "emp": rw.GeneralizedGaussian(shape="0.5", scale=1)}, plain),
}


@pytest.mark.theorem("T-RATIO")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("emp, payann", [(1, 52.5), (6, 270.0), (30, 1400.5), (400, 20_000.0)])
@pytest.mark.costly
@pytest.mark.sampled
def test_the_interval_of_a_ratio_covers_over_all_cells(name, emp, payann):
    """4,000 cells at .95, those with a denominator near 0 too, against Binomial(4000, .05) at 1e-9. The seed is fixed."""
    mechanisms, asked = CASES[name]
    found = released({"emp": emp, "payann": payann}, mechanisms, asked)
    low, high = (np.array(found.column(f"pay_{end}"), float) for end in ("low", "high"))
    assert np.all(np.isfinite(low) & np.isfinite(high))
    missed = int(np.sum((low > payann / emp) | (high < payann / emp)))
    assert binom.sf(missed - 1, CELLS, 0.05) > 1e-9


@pytest.mark.theorem("T-RATIO")
def test_what_numerator_and_denominator_share_makes_the_interval_shorter_and_no_less_sure():
    """rest + 45 emp over emp has the noise of rest over emp: ignoring the common part would make it many times as wide."""
    found = released({"emp": 400, "payann": 20_000.0}, *CASES["joint"])
    low, high, error, value = (np.array(found.column(f"pay{end}"), float) for end in ("_low", "_high", "_sd", ""))
    assert error.mean() == pytest.approx(value.std(), rel=0.07)
    width = np.mean(high - low)
    apart = 2 * 1.96 * np.sqrt((40**2 + (45 * 2) ** 2) + 50**2 * 2**2) / 400
    assert width == pytest.approx(2 * 1.96 * np.sqrt(40**2 + 5**2 * 2**2) / 400, rel=0.05)
    assert width < apart / 3
    inside = np.mean((low <= 50) & (high >= 50))
    assert 0.93 < inside < 0.97


def test_the_average_of_a_measure_is_its_ratio_to_the_count():
    names = ["a", "b"]
    table = pa.table(
        {"id": range(200), "county": names * 100, "emp": [7] * 200, "payann": [50.0] * 200, "net": [1] * 200}
    )
    with employers(table, "county", measures=MEASURES) as session:
        asked = rw.query().group_by("county", keys=COUNTIES).count(rw.Gaussian(sigma=3)).sum("emp", PAY)
        found = session.run(asked.avg("emp", sum=PAY).ratio("emp", "count", alias="r"), rng=Seeded(1)).table
    for end in ("", "_sd", "_cv", "_low", "_high"):
        assert found.column(f"avg_emp{end}") == found.column(f"r{end}")
    assert found.schema.field("r").metadata[b"recordwise_flag"].startswith(b"not unbiased")


def test_the_description_of_a_release_says_what_was_divided_and_combined():
    asked = joint(rw.query().sum("rest", PAY).sum("emp", EMP))
    described = [each.description() for each in asked.statistics[-2:]]
    assert described[0]["combines"] == "rest + 45 * emp"
    assert (described[1]["of"], described[1]["to"], described[1]["unbiased"]) == ("rest + 45 * emp", "emp", False)
    assert Fraction(45) in dict(asked.statistics[-1].top).values()
