"""The slowly scaling mechanisms again: a short run of each experiment always, a longer one among the slow tests."""

import math

import numpy as np
import pytest

from experiments.slow_cdf import run as slow_cdf
from experiments.slow_cdf.claims import crossing
from experiments.slow_cdf.errors import standardized_bias
from experiments.slow_cdf.losses import Distribution
from experiments.slow_mechanisms import MEASURE, entries, entry
from experiments.slow_table import claims as table_claims
from experiments.slow_table import run as slow_table
from experiments.slow_table.catalogue import catalogue
from experiments.slow_table.measuring import FALSE_ALARM, LIMIT, TOTALS, Line, line_of
from experiments.slow_table.reference import matches
from recordwise.noise import Seeded


def quiet(_):
    pass


def test_the_six_are_two_of_each_of_three_orders():
    six = [each for each in entries() if not each.ours]
    assert len(six) == 6
    for order in ("square", "square root", "squared logarithm"):
        assert sorted(each.kind for each in six if each.order == order) == ["additive", "transformation"]


def test_every_mechanism_has_variance_two_at_a_total_of_two():
    """Calibration meets a variance to a few parts in a million and is never above it by more."""
    for each in catalogue():
        assert math.isclose(float(each.mechanism.variance(2.0)), 2.0, rel_tol=1e-4), each.key


@pytest.mark.costly
def test_a_short_run_of_the_loss_distributions_agrees_with_every_claim(monkeypatch, tmp_path):
    """On the generator's establishments, so that the numbers do not depend on files that may be absent."""
    monkeypatch.setenv("RECORDWISE_DATA", str(tmp_path))
    done = slow_cdf.reproduce(runs=2, seed=3, tell=quiet, limit=40_000)
    assert "generator" in done.data
    assert {claim.statement: claim.why for claim in done.claims if claim.agrees is not True} == {}
    assert done.numbers["establishments"] == 40_000
    assert len(done.tables["losses"]) == 11
    assert [picture.name for picture in done.pictures] == ["cdf", "tails", "additions", "realized"]


def test_a_distribution_reads_quantiles_and_tails_off_its_steps():
    found = Distribution(entry("gaussian"), np.array([0.0, 1.0, 4.0]), np.array([0.5, 0.75, 1.0]))
    assert [found.quantile(p) for p in (0.2, 0.5, 0.6, 0.75, 1.0)] == [0, 0, 1, 1, 4]
    assert [found.above(loss) for loss in (0.0, 0.5, 1.0, 5.0)] == [0.5, 0.5, 0.25, 0.0]


def test_curves_that_cross_once_are_told_from_those_that_do_not():
    def made(*losses):
        return Distribution(entry("gaussian"), np.array(losses), np.array([0.5, 0.75, 1.0]))

    quick, slow = made(0.1, 5.0, 100.0), made(2.0, 3.0, 4.0)
    assert crossing(quick, slow) == (2.0, True)
    assert crossing(slow, quick)[1] is False
    assert crossing(quick, made(0.01, 0.02, 0.03))[1] is False


def test_a_bias_of_a_hundredth_of_the_spread_would_be_found():
    """101,285 cells and 20 runs: 2 million errors, so that a hundredth of the standard deviation is 14 standard errors."""
    rng = np.random.default_rng(1)
    off = rng.normal(scale=3.0, size=(20, 101_285))
    spread = np.full(101_285, 9.0)
    assert abs(standardized_bias(off, spread)) < 6.1
    assert abs(standardized_bias(off + 0.03, spread)) > 6.1


def test_a_short_run_of_the_table_agrees_with_every_claim():
    done = slow_table.reproduce(runs=2_000, seed=3, tell=quiet)
    assert {claim.statement: claim.why for claim in done.claims if claim.agrees is not True} == {}
    assert len(done.tables["errors"]) == 12 * len(TOTALS)


def test_a_printed_number_is_matched_by_what_rounds_to_it_only():
    assert matches(2.7849, "2.78")
    assert not matches(2.7861, "2.78")
    assert matches(250_000.0, "2.5e5")
    assert not matches(2.56e5, "2.5e5")


def test_a_biased_estimate_and_a_short_interval_are_reported_as_such():
    """The same claims with a mechanism whose errors are shifted by a tenth, or whose intervals cover 94 %."""
    good = line_of(entry("gaussian"), 10, 100_000, Seeded(1))
    assert abs(good.bias_distance) < LIMIT
    assert good.coverage_chance > FALSE_ALARM
    shifted = {**{name: getattr(good, name) for name in Line.__slots__}, "bias_distance": 0.1 / math.sqrt(2) * 316}
    assert table_claims.unbiased([Line(**shifted)]).agrees is False
    from scipy import stats

    short = {**shifted, "coverage": 0.94, "coverage_chance": float(stats.binom.cdf(94_000, 100_000, 0.95))}
    assert table_claims.coverage([Line(**short)]).agrees is False


def test_a_policy_two_percent_off_is_reported_as_another_number():
    found = {each.key: each for each in catalogue()}
    assert table_claims.digits(found).agrees is True
    from dataclasses import replace
    from fractions import Fraction

    wrong = found | {"log": replace(found["log"], policy=found["log"].policy * Fraction(102, 100))}
    assert table_claims.digits(wrong).agrees is False
    assert float(wrong["log"].policy.loss({MEASURE: 10})) > float(found["log"].policy.loss({MEASURE: 10}))


@pytest.mark.slow
@pytest.mark.parametrize(("experiment", "runs"), [(slow_cdf, 5), (slow_table, 50_000)])
def test_the_whole_experiment_agrees_with_every_claim(experiment, runs):
    done = experiment.reproduce(runs=runs, seed=20211, tell=quiet)
    assert {claim.statement: claim.why for claim in done.claims if claim.agrees is not True} == {}
