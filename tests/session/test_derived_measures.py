"""Derived measures and combinations: what they cost, what they publish, how they are written (T-JOINT)."""

import json
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
import quickjs
from scipy.stats import binom
from typer.testing import CliRunner

import recordwise as rw
from build import employers
from divergences import ROUNDING, log_pmf, zcdp
from recordwise.cli import app
from recordwise.errors import BudgetError, PlanError, PlanFileError, SqlError
from recordwise.mechanisms import fat_tailed
from recordwise.mechanisms import gaussian as gaussian_noise
from recordwise.mechanisms import transformed as transforming
from recordwise.mechanisms.base import noised
from recordwise.noise import DiscreteGaussian, Seeded
from recordwise.plan import Keys, Measure, Plan, Schema, parse_sql
from recordwise.plan.expressions import linear_text
from recordwise.plan.file.write import plan_text
from recordwise.plan.sql.grammar import parse_linear
from recordwise.plan.statistics.base import gaussian_reach
from recordwise.planning import compare
from recordwise.policy import Measure as PolicyMeasure
from recordwise.policy import constant, gaussian_sum

MEASURES = {"emp": 1, "payann": "0.5", "rest": Measure.of("rest", derive="payann - 45 * emp")}
SCHEMA = Schema.of(unit="id", measures=MEASURES, columns={"county": "text"})
EMP, PAY = PolicyMeasure("emp"), PolicyMeasure("payann", Fraction(1, 2))
REST = PolicyMeasure.linear("rest", {PAY: Fraction(1), EMP: Fraction(-45)})
OTHERS = {"id": [1, 2, 3], "county": ["a", "a", "b"], "emp": [5, 80, 3], "payann": [300.5, 3000.0, 135.0]}
RECORD = {"id": 9, "county": "a", "emp": 4, "payann": 186.5}
NOISES = [rw.Gaussian(sigma=6), rw.UnitSplit(at=10, rho="0.4"), rw.GeneralizedGaussian(shape="0.5", scale=8)]


def opened(rows, **how):
    return employers(pa.table(rows), "county", measures=MEASURES, **how)


def by_county():
    return rw.query().group_by("county", keys=Keys.of({"county": ["a", "b"]}))


def seen(asked, record):
    """What a release with or without the record hands to the sampler, and its policy."""
    rows = {name: [*values, *([record[name]] if record else [])] for name, values in OTHERS.items()}
    found = []

    def spy(points, law, source):
        found.append((np.asarray(points, np.int64), law))
        return noised(points, law, source)

    patched = [patch.object(module, "noised", spy) for module in (gaussian_noise, fat_tailed, transforming)]
    with opened(rows) as session, patched[0], patched[1], patched[2]:
        return found, session.run(asked, rng=Seeded(3)).policy


def drawn_loss(asked, record):
    """The loss of the record by the laws of all cells that it moves, drawn independently."""
    (there, policy), (gone, _) = seen(asked, record), seen(asked, None)
    total = 0.0
    for (points, law), (before, _) in zip(there, gone):
        for shift in np.ravel(points - before)[np.ravel(points != before)]:
            reach = int(12 * law.variance**0.5 + abs(shift)) if np.isfinite(law.variance) else 50_000
            window = np.arange(-min(reach, 50_000), min(reach, 50_000) + 1)
            total += zcdp(log_pmf(law, window - shift), log_pmf(law, window))
    return total, policy


@pytest.mark.theorem("T-JOINT")
@pytest.mark.parametrize("mechanism", NOISES, ids=str)
@pytest.mark.parametrize("emp, payann", [(4, 186.5), (4, 180.0), (4, 0.0), (0, 7.5)])
@pytest.mark.costly
@pytest.mark.sampled
def test_a_sum_of_a_derived_measure_costs_the_loss_at_its_absolute_value(mechanism, emp, payann):
    asked = by_county().sum("emp", rw.Gaussian(sigma=10)).sum("rest", mechanism).combine("rest + 45 * emp", alias="pay")
    record = RECORD | {"emp": emp, "payann": payann}
    truth, policy = drawn_loss(asked, record)
    claimed = policy.loss({"emp": emp, "payann": payann})
    assert truth <= claimed * ROUNDING
    assert claimed == mechanism.policy(REST).loss(record) + rw.Gaussian(sigma=10).policy("emp").loss(record) or (
        claimed == pytest.approx(truth, rel=0.05)
    )


@pytest.mark.theorem("T-JOINT")
def test_a_policy_of_another_form_is_caught():
    """The planted formulas: the loss of the pay alone, and of the rest without its coefficient."""
    asked = by_county().sum("rest", NOISES[0])
    record = RECORD | {"emp": 4, "payann": 0.0}
    truth, _ = drawn_loss(asked, record)
    for wrong in (PAY, PolicyMeasure.linear("rest", {PAY: Fraction(1), EMP: Fraction(-44)})):
        assert truth > NOISES[0].policy(wrong).loss(record) * ROUNDING


@pytest.mark.theorem("T-JOINT")
def test_two_gaussian_sums_cost_the_squares_of_both_forms():
    asked = by_county().sum("emp", rw.Gaussian(sigma=10)).sum("rest", rw.Gaussian(sigma=20))
    with opened(OTHERS) as session:
        policy = session.policy_of(asked)
    assert policy == gaussian_sum(EMP, sigma=10) + gaussian_sum(REST, sigma=20)
    exact = Fraction(30**2, 200) + Fraction((1400 - 45 * 30) ** 2, 800)
    assert policy.loss({"emp": 30, "payann": 1400}) == float(exact)
    assert [measure.name for measure in policy.inputs()] == ["emp", "payann"]
    assert policy == type(policy).from_json(json.loads(json.dumps(policy.to_json())))


CELLS = 3000


def combined(mechanisms, form, *, cells=CELLS, **how):
    """All cells alike, emp 30 and payann 1400.5: the combination and its parts, drawn with a fixed seed."""
    names = [f"c{i}" for i in range(cells)]
    table = pa.table({"id": range(cells), "county": names, "emp": [30] * cells, "payann": [1400.5] * cells})
    asked = rw.query().group_by("county", keys={"county": names})
    for name, mechanism in mechanisms.items():
        asked = asked.count(mechanism) if name == "count" else asked.sum(name, mechanism)
    with opened(table) as session:
        return session.run(asked.combine(form, alias="made"), rng=Seeded(7), **how).table


FORMS = {
    "joint": ({"emp": rw.Gaussian(sigma=2), "rest": rw.Gaussian(sigma=40)}, "rest + 45 * emp", 1400.5),
    "small": ({"emp": rw.Gaussian(sigma="0.6"), "count": rw.Gaussian(sigma="0.5")}, "emp - 3 * count", 27),
    "three": (
        {"emp": rw.Gaussian(sigma=1), "rest": rw.Gaussian(sigma=1), "count": rw.Gaussian(sigma=1)},
        "rest / 2 - emp + 4 * count",
        -0.75,
    ),
    "fat": (
        {"emp": rw.GeneralizedGaussian(shape="0.5", scale=1), "rest": rw.Gaussian(sigma=9)},
        "rest + 2 * emp",
        110.5,
    ),
    "log": ({"emp": rw.LogTransform(offset=10, sigma="0.2"), "count": rw.Gaussian(sigma=3)}, "emp + count", 31),
    "alone": ({"emp": rw.Gaussian(sigma="0.7")}, "-2 * emp", -60),
}


@pytest.mark.theorem("T-JOINT")
@pytest.mark.parametrize("name", FORMS)
def test_the_interval_of_a_combination_covers_over_all_cells_and_its_value_and_deviation_are_right(name):
    """3,000 cells at .95 against Binomial(3000, .05) at 1e-9; the mean within six standard errors. The seed is fixed."""
    mechanisms, form, truth = FORMS[name]
    found = combined(mechanisms, form)
    value, error, low, high = (np.array(found.column(f"made{end}"), float) for end in ("", "_sd", "_low", "_high"))
    assert binom.sf(int(np.sum((low > truth) | (high < truth))) - 1, CELLS, 0.05) > 1e-9
    assert abs(value.mean() - truth) < 6 * value.std() / CELLS**0.5
    if name != "log":
        assert np.mean(error) == pytest.approx(value.std(), rel=0.2 if name == "fat" else 0.07)
    assert np.all(low <= value)
    assert np.all(value <= high)


def test_the_deviation_and_value_of_a_combination_are_those_of_its_parts():
    rows = combined(FORMS["joint"][0], "rest + 45 * emp", cells=3).to_pylist()
    for row in rows:
        assert row["made"] == row["sum_rest"] + 45 * row["sum_emp"]
        assert row["made_sd"] == pytest.approx(np.hypot(40, 45 * 2), rel=1e-9)
    whole = combined({"emp": rw.Gaussian(sigma=3), "count": rw.Gaussian(sigma=1)}, "2 * emp - count", cells=3)
    assert pa.types.is_integer(whole.schema.field("made").type)


def test_intervals_that_are_added_share_the_chance_to_miss():
    """Each of two misses half as often as their sum may; all Gaussian noises together count once."""
    alike = {"cells": 5, "confidence": 0.9}
    for name, added in (("log", ("sum_emp", "count")), ("fat", ("sum_rest", "sum_emp", "sum_emp"))):
        mechanisms, form, _ = FORMS[name]
        found = combined(mechanisms, form, **alike).to_pydict()
        parts = combined(mechanisms, form, **(alike | {"confidence": 0.95})).to_pydict()
        low, high = (np.sum([parts[each + end] for each in added], axis=0) for end in ("_low", "_high"))
        # Ends are rounded outward to a few digits.
        assert np.all(np.abs(found["made_low"] - low) <= 0.02 * (high - low))
        assert np.all(np.abs(found["made_high"] - high) <= 0.02 * (high - low))


def three_noises(shares, sigmas, confidence, reach):
    """P(|sum of shares times lattice noises| <= root of the sum of squared reaches), from the convolution of the laws."""
    chances, points = np.ones(1), np.zeros(1)
    for share, sigma in zip(shares, sigmas):
        own = np.arange(-int(9 * sigma) - 3, int(9 * sigma) + 4)
        weights = np.exp(-(own.astype(float) ** 2) / (2 * float(sigma) ** 2))
        points = (points[:, None] + share * own[None, :]).ravel()
        chances = np.outer(chances, weights / weights.sum()).ravel()
    far = [reach(Fraction(sigma).limit_denominator(100), Fraction(1), confidence=confidence) for sigma in sigmas]
    half = np.sqrt(np.sum((np.asarray(shares) * far) ** 2))
    return chances[np.abs(points) <= half + 1e-9].sum()


@pytest.mark.theorem("T-JOINT")
def test_three_gaussian_noises_stay_within_the_root_of_their_squared_reaches():
    chance = np.random.default_rng(5)
    for _ in range(150):
        shares, sigmas = chance.choice([1, 2, 3, 7, 0.5, 1.37], 3), chance.choice([0.3, 0.5, 0.8, 1.25, 2.0], 3)
        for confidence in (0.5, 0.9, 0.95, 0.99):
            assert three_noises(shares, sigmas, confidence, gaussian_reach) >= confidence
    plain = lambda sigma, step, confidence: gaussian_reach(sigma, Fraction(0), confidence=confidence)  # noqa: E731
    assert three_noises([1, 1, 1], [0.5, 0.5, 0.5], 0.95, plain) < 0.95
    assert DiscreteGaussian(Fraction(1, 2)).variance < 0.25


def test_a_budget_in_derived_measures_is_proved_or_refuted_with_a_record():
    policy = gaussian_sum(EMP, sigma=10) + gaussian_sum(REST, sigma=20)
    assert policy.dominates(policy)
    assert (policy * 2).dominates(policy)
    verdict = policy.dominates(policy + gaussian_sum(REST, sigma=100))
    assert verdict.answer == "no"
    assert set(verdict.witness) <= {"emp", "payann"}
    more = policy + gaussian_sum(REST, sigma=100)
    assert more.loss(verdict.witness | {"emp": verdict.witness.get("emp", 0)}) > policy.loss(verdict.witness)
    plain = constant(1) + gaussian_sum(EMP, sigma=1) + gaussian_sum(PAY, sigma=1)
    unsettled = plain.dominates(gaussian_sum(REST, sigma=1000))
    assert unsettled.answer in ("undecided", "no")
    if unsettled.answer == "undecided":
        assert "derived" in unsettled.reason or "certificate" in unsettled.reason


def test_a_ledger_with_a_budget_in_derived_measures_charges_and_refuses(tmp_path):
    budget = gaussian_sum(EMP, sigma=10) + gaussian_sum(REST, sigma=20)
    asked = by_county().sum("emp", rw.Gaussian(sigma=10)).sum("rest", rw.Gaussian(sigma=20))
    with opened(OTHERS, budget=budget, ledger=tmp_path / "ledger") as session:
        session.run(asked.combine("rest + 45 * emp", alias="payann"), rng=Seeded(1))
        with pytest.raises(BudgetError) as caught:
            session.run(by_county().sum("rest", rw.Gaussian(sigma=20)), rng=Seeded(1))
    assert "emp" in str(caught.value) or "payann" in str(caught.value)
    assert "rest =" not in str(caught.value)


@pytest.mark.costly
def test_the_page_the_command_and_planning_look_a_derived_measure_up_in_what_records_hold(tmp_path):
    asked = by_county().sum("emp", rw.Gaussian(sigma=10)).sum("rest", rw.Gaussian(sigma=20))
    with opened(OTHERS) as session:
        release = session.run(asked, rng=Seeded(1))
        found = compare(session, {"g": rw.Gaussian(sigma=20)}, measure="rest", query=by_county(), data="synthetic")
    assert sorted(found.totals) == [0.0, 524.5]
    assert found["g"].losses.rho.maximum == pytest.approx(600.0**2 / 800, rel=1e-12)
    release.save(tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text().replace(" ", "")
    assert '"name":"payann","label"' in page
    assert '"name":"rest","label"' not in page
    context = quickjs.Context()
    for record in ({"emp": 30, "payann": 1400.5}, {"emp": 0, "payann": 0}, {"emp": 10**6, "payann": 45 * 10**6 + 0.5}):
        loss = context.eval(f"({release.policy.to_javascript()})({json.dumps(record)}).rho")
        assert loss == pytest.approx(release.policy.loss(record), rel=1e-12)
    words = ["loss", str(tmp_path / "out" / "policy.json"), "emp=30", "payann=1400.5", "--json"]
    shown = CliRunner().invoke(app, words)
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.output.splitlines()[-1])["loss"] == release.policy.loss({"emp": 30, "payann": "1400.5"})
    assert (
        json.loads((tmp_path / "out" / "release.json").read_text())["schema"]["measures"][-1]["derive"]
        == "payann - 45 * emp"
    )


PLAN = """
dataset = "d"
ledger = "d.ledger"
source = "none.parquet"
tuned_on = "synthetic"
[schema]
unit = "id"
measures.emp = 1
measures.payann = 0.5
measures.rest = { derive = "payann - 45 * emp" }
[[queries]]
count = { kind = "Gaussian", rho = 0.1 }
sum.emp = { kind = "Gaussian", sigma = 10 }
sum.rest = { kind = "Gaussian", sigma = 20 }
ratio.pay = { of = "payann", to = "emp" }
combine.payann = "rest + 45 * emp"
"""


def test_a_plan_file_derives_combines_and_divides(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    (asked,) = rw.load_plan(path).plan.queries
    built = (
        rw.query().count(rw.Gaussian(rho="0.1")).sum("emp", rw.Gaussian(sigma=10)).sum("rest", rw.Gaussian(sigma=20))
    )
    assert asked == built.combine("rest + 45 * emp", alias="payann").ratio("payann", "emp", alias="pay")
    assert rw.load_plan(path).plan.schema.measure("rest").step == Fraction(1, 2)


@pytest.mark.parametrize(
    "old, new, message",
    [
        ('"payann - 45 * emp"', '"payann - 45 * emp + 3"', "constant"),
        ('"payann - 45 * emp"', '"payann * emp"', "not linear"),
        ('"payann - 45 * emp"', '"payann - 45 * staff"', "'staff'"),
        ('"payann - 45 * emp"', '"payann; DROP"', "cannot parse"),
        ('derive = "payann - 45 * emp"', 'derive = "payann - emp", step = 2', "step"),
        ('"rest + 45 * emp"', '"rest + 45 * payqtr1"', "'payqtr1'"),
        ('"rest + 45 * emp"', '"rest + 45 * emp - sum_emp"', "twice"),
        ('to = "emp"', 'to = "rest"', "may be negative"),
        ('to = "emp"', 'by = "emp"', "to"),
    ],
)
def test_what_is_wrong_with_a_form_is_told_at_its_line(tmp_path, old, new, message):
    path = tmp_path / "plan.toml"
    assert PLAN.count(old) >= 1
    path.write_text(PLAN.replace(old, new))
    with pytest.raises(PlanFileError, match=message):
        rw.load_plan(path)


def test_forms_are_written_as_they_are_read():
    for text in ("payann - 45 * emp", "-1/3 * emp + 2 * payann", "emp", '"a b" + 0.25 * "Pay"'):
        assert parse_linear(linear_text(parse_linear(text))) == parse_linear(text)
    assert parse_linear("2 * (emp + payann / 4) - emp") == (("emp", Fraction(1)), ("payann", Fraction(1, 2)))
    for text in (
        "emp / payann",
        "emp * emp",
        "1",
        "emp - emp",
        "emp + 'x'",
        "SUM(emp)",
        "emp, payann",
        "",
        "emp; payann",
    ):
        with pytest.raises(SqlError):
            parse_linear(text)


def test_sql_text_combines_sums_that_it_selects():
    text = "SELECT county, SUM(rest), SUM(emp) AS emp, SUM(rest) + 45 * SUM(emp) AS payann FROM t GROUP BY county"
    mechanisms = {"rest": rw.Gaussian(sigma=20), "emp": rw.Gaussian(sigma=10)}
    read = parse_sql(text, mechanisms=mechanisms, keys=Keys.of({"county": ["a", "b"]}))
    built = by_county().sum("rest", mechanisms["rest"]).sum("emp", mechanisms["emp"], alias="emp")
    assert read == built.combine("rest + 45 * emp", alias="payann")
    for wrong, message in (
        (text.replace(" AS payann", ""), "without a name"),
        (text.replace("45 * SUM(emp)", "45 * AVG(emp)"), "AVG"),
        (text.replace("45 * SUM(emp)", "SUM(rest) * SUM(emp)"), "not linear"),
        (text.replace("45 * SUM(emp)", "45 * emp"), "COLUMN"),
    ):
        with pytest.raises(SqlError, match=message):
            parse_sql(wrong, mechanisms=mechanisms, keys=Keys.of({"county": ["a", "b"]}))
    lone = parse_sql("SELECT SUM(emp), 2 * SUM(payann) AS p FROM t", mechanisms={"emp": rw.Gaussian(sigma=1)})
    with pytest.raises(PlanError, match="ask for its sum in the same query"):
        Plan(schema=SCHEMA, queries=(lone,))


def test_forms_and_ratios_are_written_into_a_plan_file_and_read_back(tmp_path):
    asked = rw.query().sum("rest", rw.Gaussian(sigma=20)).sum("emp", rw.Gaussian(sigma=10))
    asked = asked.combine("rest + 45/7 * emp", alias="payann").ratio("payann", "emp", alias="pay")
    given = {"dataset": "d", "source": "t.parquet", "ledger": "d.ledger", "tuned_on": "synthetic", "comment": "made up"}
    read = rw.load_plan(plan_text([asked], SCHEMA, **given).save(tmp_path / "plan.toml")).plan
    assert read.queries == (asked,)
    assert read.schema == SCHEMA
