"""A profit or another signed measure from the schema to the page."""

import json
import tomllib
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom
from typer.testing import CliRunner

import recordwise as rw
from build import employers
from recordwise.cli import app
from recordwise.errors import DataError, ParameterError
from recordwise.noise import Seeded
from recordwise.plan import Measure
from recordwise.planning import Goal, compare, recommend

PROFIT = Measure.of("profit", bound=10**9, signed=True)
CELLS = 3000
VALUES = [-700, 40, 3]


def table(cells=CELLS, values=VALUES):
    names = np.char.add("c", np.arange(cells).astype(str))
    return pa.table(
        {
            "id": np.arange(cells * len(values)),
            "county": np.repeat(names, len(values)),
            "profit": np.tile(np.asarray(values, np.int64), cells),
        }
    )


def released(*asked, cells=CELLS, values=VALUES, **how):
    """The statistics by county, drawn with a fixed seed."""
    question = rw.query().group_by("county", keys={"county": [f"c{i}" for i in range(cells)]})
    for each in asked:
        question = question.ask(each) if not callable(each) else each(question)
    with employers(table(cells, values), "county", measures={"profit": PROFIT}) as session:
        return session.run(question, rng=Seeded(cells), **how)


MECHANISMS = {
    "Gaussian": rw.Gaussian(sigma=50),
    "UnitSplit": rw.UnitSplit(at=100, rho="0.1"),
    "GeneralizedGaussian": rw.GeneralizedGaussian(shape="0.5", scale=20),
    "LogTransform": rw.LogTransform(offset=100, sigma="0.2", signed=True),
    "RootTransform": rw.RootTransform(degree=2, offset=1, laplace_scale="0.5", signed=True),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_intervals_of_a_signed_sum_cover_and_its_value_is_unbiased(name):
    """3,000 cells at .95 against Binomial(3000, .05) at 1e-9; the mean within six standard errors, which is missed by chance less
    than once in 1e8 runs. The seed is fixed."""
    found = released(lambda q: q.sum("profit", MECHANISMS[name], alias="p")).table
    value, low, high = (np.array(found.column(f"p{end}"), float) for end in ("", "_low", "_high"))
    truth = sum(VALUES)
    assert binom.sf(int(np.sum((low > truth) | (high < truth))) - 1, CELLS, 0.05) > 1e-9
    assert abs(value.mean() - truth) < 6 * value.std() / CELLS**0.5


def test_a_transform_publishes_both_parts_and_their_difference():
    mechanism = MECHANISMS["LogTransform"]
    found = released(lambda q: q.sum("profit", mechanism, alias="p"), cells=50).table
    assert {"p_noisy_positive", "p_noisy_negative", "p_sigma", "p_variance"} <= set(found.column_names)
    assert "p_noisy" not in found.column_names
    one_sided = rw.LogTransform(offset=100, sigma="0.2")
    grid = one_sided.grid(1)
    halves = [np.rint(np.array(found.column(f"p_noisy_{part}")) / float(grid)) for part in ("positive", "negative")]
    noisy = [rw.mechanisms.Noisy(points=h.astype(np.int64), grid=grid, step=Fraction(1), private=False) for h in halves]
    above, below = (one_sided.estimate(each).value for each in noisy)
    assert np.allclose(np.array(found.column("p")), above - below, rtol=1e-9)
    # The two parts are about 43 and 700, never one for the other.
    assert 20 < np.median(above) < 80 < 500 < np.median(below) < 900


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_record_of_either_sign_loses_what_one_of_the_other_does(name):
    policy = MECHANISMS[name].policy(rw.policy.Measure("profit", Fraction(1), True))
    for size in (1, 40, 700):
        assert policy.loss({"profit": -size}) == policy.loss({"profit": size}) > 0
    assert policy.loss({"profit": [-7, 7]}) == pytest.approx([policy.loss({"profit": 7})] * 2, rel=1e-11)


def test_a_transform_must_say_that_it_takes_two_parts():
    with pytest.raises(ParameterError, match="Use signed=True"):
        released(lambda q: q.sum("profit", rw.LogTransform(offset=10, sigma=1)), cells=1)


def test_negative_values_of_other_measures_are_still_refused_without_quoting_one():
    found = table(2)
    with (
        employers(found, "county", measures={"profit": 1}, tuned_on="public") as session,
        pytest.raises(DataError) as caught,
    ):
        session.run(rw.query().sum("profit", rw.Gaussian(sigma=5)))
    assert "is negative" in str(caught.value)
    assert "700" not in str(caught.value)


def test_averages_ratios_and_clamped_sums_of_signed_measures():
    count = rw.Gaussian(sigma=1)
    question = [
        lambda q: q.count(count),
        lambda q: q.avg("profit", sum=rw.Gaussian(sigma=20)),
        lambda q: q.sum("profit", rw.Clamped(to=100, rho=1), alias="cut"),
    ]
    found = released(*question, cells=500).table
    low, high = (np.array(found.column(f"avg_profit{end}"), float) for end in ("_low", "_high"))
    assert np.mean((low <= -219) & (high >= -219)) > 0.9
    assert abs(np.mean(np.array(found.column("cut"))) - (-100 + 43)) < 20


def test_fits_of_signed_sums_are_not_pushed_to_0():
    release = released(lambda q: q.count(rw.Gaussian(sigma=1)).sum("profit", rw.Gaussian(sigma=5)), cells=20)
    fitted = release.consistent(method="nnls").table
    assert np.array(fitted.column("sum_profit_fit")).max() < -500
    assert np.array(fitted.column("count_fit")).min() >= 0


@pytest.mark.costly
def test_the_page_and_the_command_take_a_minus(tmp_path):
    release = released(lambda q: q.sum("profit", rw.Gaussian(sigma=50)), cells=3)
    release.save(tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text().replace(" ", "")
    assert '"name":"profit"' in page
    assert '"signed":true' in page
    assert {"name": "profit", "step": "1", "bound": "1000000000", "signed": True} in json.loads(
        (tmp_path / "out" / "release.json").read_text()
    )["schema"]["measures"]
    arguments = ["loss", str(tmp_path / "out" / "policy.json"), "profit=-100", "--json"]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.output.splitlines()[-1])["loss"] == 2.0


def test_planning_weighs_errors_against_the_size_of_a_total():
    question = rw.query().group_by("county", keys={"county": [f"c{i}" for i in range(40)]})
    with employers(table(40), "county", measures={"profit": PROFIT}) as session:
        found = compare(
            session,
            {"plain": rw.Gaussian(sigma=50), "cut": rw.Clamped(to=100, variance=2500)},
            measure="profit",
            query=question,
            data="synthetic",
        )
    assert found.totals.tolist() == [657.0] * 40
    assert found["plain"].errors == pytest.approx(np.full(40, 98.0), abs=1)
    # 600 are cut off whatever the noise.
    assert (found["cut"].errors > 600).all()
    assert found["plain"].losses.rho.maximum == pytest.approx(700**2 / 5000)


@pytest.mark.parametrize(
    "mechanism",
    [
        rw.LogTransform(offset=100, sigma="0.2", signed=True),
        rw.RootTransform(degree=2, offset=1, laplace_scale="0.5", signed=True),
    ],
    ids=["log", "root"],
)
@pytest.mark.costly
def test_planning_knows_the_error_of_a_transform_from_both_parts(mechanism):
    """Gains of 600 and losses of 500 leave 100, and the noise of both. 4,000 draws, seeded, at .95: between .93 and .97 they are
    within the planned error at a false alarm below 1e-7, and half the planned error would hold far fewer."""
    cells, asked = 4000, rw.query().group_by("county", keys={"county": [f"c{i}" for i in range(4000)]})
    with employers(table(cells, [600, -500]), "county", measures={"profit": PROFIT}) as session:
        found = compare(session, {"it": mechanism}, measure="profit", query=asked, data="synthetic")
        drawn = session.run(asked.sum("profit", mechanism), rng=Seeded(9)).table
        goal = Goal(measure="profit", query=asked, within="0.5", share="0.9")
        fitted = recommend(session, goal, candidates={"it": mechanism}, keep_offsets=True, data="synthetic")[
            "it"
        ].calibrated[0]
        met = session.run(asked.sum("profit", fitted.mechanism), rng=Seeded(10)).table
    (planned,) = set(found["it"].errors)
    off = np.abs(np.array(drawn.column("sum_profit"), float) - 100)
    assert 0.93 < np.mean(off <= planned) < 0.97
    assert np.mean(off <= planned / 2) < 0.85
    reached = np.mean(np.abs(np.array(met.column("sum_profit"), float) - 100) <= 50)
    assert 0.93 < reached < 0.97


PLAN = """
dataset = "d"
ledger = "d.ledger"
source = "none.parquet"
tuned_on = "synthetic"
[schema]
unit = "id"
measures.profit = { step = 1, signed = true, bound = 1_000_000_000 }
[[queries]]
sum.profit = { kind = "Gaussian", sigma = 50 }
"""


def test_a_plan_file_declares_the_sign(tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN)
    measure = rw.load_plan(tmp_path / "plan.toml").plan.schema.measure("profit")
    assert measure == PROFIT
    assert tomllib.loads(PLAN)["schema"]["measures"]["profit"]["signed"] is True
    (tmp_path / "plan.toml").write_text(PLAN.replace("signed = true", 'signed = "yes"'))
    with pytest.raises(rw.errors.PlanFileError, match="signed"):
        rw.load_plan(tmp_path / "plan.toml")


def test_the_command_checks_a_plan_with_a_signed_transform(tmp_path):
    signed = 'sum.profit = { kind = "LogTransform", offset = 100, sigma = 0.5, signed = true }'
    (tmp_path / "plan.toml").write_text(PLAN.replace('sum.profit = { kind = "Gaussian", sigma = 50 }', signed))
    shown = CliRunner().invoke(app, ["check", str(tmp_path / "plan.toml"), "--no-source"])
    assert shown.exit_code == 0, shown.output
    assert "|profit|" in shown.output
