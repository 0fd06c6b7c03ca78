"""Estimators of every mechanism: unbiased, of the stated variance, median-unbiased; exactly from the probabilities where they can
be written down, by simulation on the lattices that are really drawn on."""

import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from numpy.typing import NDArray

import recordwise as rw
from mechanisms.drawn_laws import coarse_grid, laid, moved, pmf
from mechanisms.mechanism_catalogue import EVERY, FAT_TAILED, GAUSSIAN, ONE_SIDED, SIGNED, TOTALS, TRANSFORMS, Entry
from recordwise.mechanisms import Mechanism
from recordwise.mechanisms.inverses import FunctionInverse
from recordwise.noise import Seeded

FALSE_ALARM = 1e-9
THRESHOLD = NormalDist().inv_cdf(1 - FALSE_ALARM / 2)
"""Standard errors of the mean; for the skewest estimator here the normal law understates the alarm rate by a factor below 3."""
PLANTED = 0.03
"""The bias, in standard errors of one cell, that must be rejected."""
DRAWS = math.ceil(((2 * THRESHOLD + 1) / PLANTED) ** 2)
"""So many that the planted bias is rejected with probability 1 - 1e-9 as well."""
COARSE = [(7, 3), (64, 16)]
"""Grid steps a noise scale and a data step, where all probabilities fit into memory."""


@pytest.mark.parametrize("entry", EVERY, ids=str)
def test_every_mechanism_satisfies_the_protocol(entry: Entry) -> None:
    assert isinstance(entry.mechanism, Mechanism)


def exact_totals(entry: Entry, total: int, copies: int) -> NDArray[np.int64]:
    """Totals in data steps; a signed sum has two rows."""
    column = np.full(copies, total)
    return np.stack([column, np.full(copies, 3)]) if entry.measure.signed else column


def amount(entry: Entry, total: int) -> float:
    return float((total - 3 if entry.measure.signed else total) * entry.step)


def standardised_bias(entry: Entry, total: int, planted: float) -> float:
    """(mean of ``value`` - exact total)/(its standard error), over many independent releases."""
    noisy = entry.mechanism.release(exact_totals(entry, total, DRAWS), step=entry.step, rng=Seeded(total + 1))
    value = entry.mechanism.estimate(noisy).value
    parts = np.array([total, 3]) if entry.measure.signed else np.array(total)
    variance = float(entry.mechanism.variance(parts * float(entry.step), step=entry.step))
    error = math.sqrt(variance / DRAWS)
    return float((np.mean(value) + planted * math.sqrt(variance) - amount(entry, total)) / error)


@pytest.mark.parametrize("total", TOTALS)
@pytest.mark.parametrize("entry", EVERY, ids=str)
@pytest.mark.costly
@pytest.mark.sampled
def test_the_value_is_unbiased_by_simulation(entry: Entry, total: int) -> None:
    """False alarm 1e-9 a case; a bias of 3 % of a standard error is rejected with probability 1 - 1e-9."""
    assert abs(standardised_bias(entry, total, planted=0.0)) < THRESHOLD


@pytest.mark.parametrize("entry", EVERY, ids=str)
@pytest.mark.costly
def test_a_planted_bias_of_three_percent_of_a_standard_error_is_rejected(entry: Entry) -> None:
    assert abs(standardised_bias(entry, 10, planted=PLANTED)) > THRESHOLD


def expectation(entry: Entry, total: int) -> tuple[float, float, float, float]:
    """Mean and variance of ``value``, mean of ``variance_unbiased``, and phi(grid point) - offset, from all probabilities."""
    noisy, law = laid(entry.mechanism, [total], entry.step)
    noise, chance = pmf(law)
    found = entry.mechanism.estimate(moved(noisy, noise))
    mean = float(np.sum(chance * found.value))
    spread = float(np.sum(chance * (found.value - mean) ** 2))
    center = entry.mechanism.estimate(noisy).median_unbiased[0]
    return mean, spread, float(np.sum(chance * found.variance_unbiased)), float(center)


@pytest.mark.parametrize("noise, data", COARSE)
@pytest.mark.parametrize("entry", TRANSFORMS, ids=str)
@pytest.mark.theorem("T-HERMITE")
@pytest.mark.theorem("T-LAPLACE-MEAN")
@pytest.mark.costly
def test_transforms_are_unbiased_on_any_grid(entry: Entry, noise: int, data: int) -> None:
    """Unbiased for what the grid point stands for: to rounding, or to (grid/noise)**2 for an inverse without closed form."""
    smooth = isinstance(entry.mechanism.inverse, FunctionInverse)
    with coarse_grid(noise, data):
        for total in (0, 1, 2, 10, 1000):
            mean, spread, _, center = expectation(entry, total)
            assert mean == pytest.approx(center, abs=(1e-2 / noise**2 if smooth else 1e-11) * math.sqrt(spread))


@pytest.mark.parametrize("entry", TRANSFORMS, ids=str)
@pytest.mark.theorem("T-HERMITE")
@pytest.mark.theorem("T-LAPLACE-MEAN")
@pytest.mark.costly
def test_the_unbiased_variance_of_a_transform_is_unbiased(entry: Entry) -> None:
    with coarse_grid(64, 16):
        for total in (0, 1, 2, 10, 1000):
            _, spread, claimed, _ = expectation(entry, total)
            assert claimed == pytest.approx(spread, rel=2e-4 if entry.laplace else 1e-9)


@pytest.mark.parametrize("entry", TRANSFORMS, ids=str)
@pytest.mark.theorem("T-HERMITE")
@pytest.mark.theorem("T-LAPLACE-MEAN")
@pytest.mark.costly
@pytest.mark.sampled
def test_the_variance_formula_of_a_transform_is_that_of_its_probabilities(entry: Entry) -> None:
    """Gaussian: equal to rounding. Laplace: the formula is the fine-grid limit, approached at the rate of the grid at worst."""
    for noise in (256, 2048) if entry.laplace else (64,):
        with coarse_grid(noise, noise):
            for total in (0, 1, 2, 10, 1000):
                _, spread, _, center = expectation(entry, total)
                formula = float(entry.mechanism.variance(max(center, 0.0), step=entry.step))
                assert formula == pytest.approx(spread, rel=2 / noise if entry.laplace else 1e-9)


@pytest.mark.parametrize("entry", GAUSSIAN + FAT_TAILED, ids=str)
@pytest.mark.costly
@pytest.mark.sampled
def test_the_variance_of_a_sum_is_that_of_its_probabilities(entry: Entry) -> None:
    noisy, law = laid(entry.mechanism, [5], entry.step)
    noise, chance = pmf(law, depth=46 if entry.name == "pareto" else 60)
    spread = float(np.sum(chance * (noise.astype(float) * float(noisy.grid)) ** 2))
    found = entry.mechanism.estimate(moved(noisy, np.array([0, 3])))
    assert float(entry.mechanism.variance(5, step=entry.step)) == pytest.approx(spread, rel=1e-6)
    assert found.standard_error == pytest.approx(math.sqrt(spread), rel=1e-6)
    assert found.variance_unbiased == pytest.approx(spread, rel=1e-6)


@pytest.mark.parametrize("entry", ONE_SIDED, ids=str)
def test_no_noise_gives_the_exact_total_as_the_median(entry: Entry) -> None:
    """With a symmetric law and a nondecreasing estimator, the estimate at zero noise is a median; it is the total, rounded to the
    grid at most."""
    totals = [*TOTALS, 12345]
    noisy, _ = laid(entry.mechanism, totals, entry.step)
    median = entry.mechanism.estimate(noisy).median_unbiased
    exact = np.array([float(total * entry.step) for total in totals])
    beside = [entry.mechanism.estimate(moved(noisy, side)).median_unbiased for side in (-1, 1)]
    assert np.all((beside[0] <= median) & (median <= beside[1]))
    rounding = np.maximum(median - beside[0], beside[1] - median) if entry.transforms else 0.0
    assert np.all(np.abs(median - exact) <= 0.5001 * rounding + 1e-12 * exact)


@pytest.mark.parametrize("entry", ONE_SIDED, ids=str)
@pytest.mark.costly
@pytest.mark.sampled
def test_the_median_estimate_is_as_often_above_as_below(entry: Entry) -> None:
    """From the probabilities: at most half of the mass lies strictly on either side."""
    with coarse_grid(64, 16):
        for total in (0, 1, 10, 1000):
            noisy, law = laid(entry.mechanism, [total], entry.step)
            noise, chance = pmf(law)
            estimate = entry.mechanism.estimate(moved(noisy, noise)).median_unbiased
            center = entry.mechanism.estimate(noisy).median_unbiased[0]
            assert np.all(np.diff(estimate) >= 0)
            assert np.sum(chance[estimate < center]) < 0.5
            assert np.sum(chance[estimate > center]) < 0.5


@pytest.mark.parametrize("entry", TRANSFORMS, ids=str)
def test_the_grid_bias_is_a_millionth_of_a_standard_error(entry: Entry) -> None:
    totals = np.array(TOTALS) * float(entry.step)
    bias = entry.mechanism.bias(totals, step=entry.step)
    error = np.sqrt(entry.mechanism.variance(totals, step=entry.step))
    noisy, _ = laid(entry.mechanism, TOTALS, entry.step)
    laid_on = entry.mechanism.estimate(noisy).median_unbiased
    rounding = 1e-15 * (totals + float(entry.mechanism.offset))
    assert np.all(np.abs(bias) <= 2.0**-20 * error + rounding)
    assert np.all(np.abs(bias - (laid_on - totals)) <= 4 * rounding)


@pytest.mark.parametrize("entry", TRANSFORMS, ids=str)
def test_standard_errors_are_positive_and_grow_with_the_noisy_point(entry: Entry) -> None:
    noisy, law = laid(entry.mechanism, [0, 5, 1000], entry.step)
    noise = np.linspace(-1, 1, 41)[:, None] * law.quantile(0.999999)
    found = entry.mechanism.estimate(moved(noisy, noise.astype(np.int64))).standard_error
    assert np.all(found > 0)
    # Under Laplace noise the estimate steps down where the point of total 0 is passed.
    above = found[noise.ravel() > 0]
    assert np.all(np.diff(above, axis=0) >= -1e-9 * above[:-1])


def mean_deviation(entry: Entry, total: int) -> float:
    """E[standard_error] over the standard deviation of ``value``, both added up from the probabilities."""
    noisy, law = laid(entry.mechanism, [total], entry.step)
    noise, chance = pmf(law)
    found = entry.mechanism.estimate(moved(noisy, noise))
    spread = np.sum(chance * found.value**2) - np.sum(chance * found.value) ** 2
    return float(np.sum(chance * found.standard_error) / math.sqrt(spread))


SMALL = (0, 1, 2, 10, 1000)


@pytest.mark.parametrize("entry", [e for e in TRANSFORMS if e.laplace or "log" in e.name], ids=str)
@pytest.mark.theorem("T-DEVIATION")
@pytest.mark.costly
@pytest.mark.sampled
def test_the_standard_error_is_unbiased_for_logarithms_and_under_laplace_noise(entry: Entry) -> None:
    """Under Laplace noise the formula is the fine-grid limit; at total 0 a share of the cells falls on the grid point itself."""
    fine = 1024 if entry.laplace else 64
    with coarse_grid(fine, fine):
        for total in SMALL:
            assert mean_deviation(entry, total) == pytest.approx(1, rel=2 / fine if entry.laplace else 1e-9), total


@pytest.mark.parametrize("entry", [e for e in TRANSFORMS if not e.laplace and "log" not in e.name], ids=str)
@pytest.mark.theorem("T-DEVIATION")
def test_the_standard_error_of_a_root_is_off_by_what_the_page_says(entry: Entry) -> None:
    with coarse_grid(64, 16):
        for total in SMALL:
            assert 0.95 < mean_deviation(entry, total) < 1.39, total
        assert mean_deviation(entry, 10**6) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("sigma", ["0.5", "1"])
@pytest.mark.theorem("T-DEVIATION")
def test_the_standard_error_of_a_logarithm_has_no_factor_left(sigma: str) -> None:
    """Reading the deviation off the noisy point itself is too large by exp(sigma**2/2): 1.13 at 0.5 and 1.65 at 1."""
    entry = Entry("log", rw.LogTransform(offset=10, sigma=sigma))
    with coarse_grid(64, 16):
        assert [mean_deviation(entry, total) for total in SMALL] == pytest.approx([1] * len(SMALL), rel=1e-9)


@pytest.mark.parametrize("entry", SIGNED, ids=str)
def test_a_signed_sum_is_the_difference_of_two_unsigned_ones(entry: Entry) -> None:
    plain = type(entry.mechanism)(
        **{
            name: getattr(entry.mechanism, name)
            for name in ("degree", "offset", "sigma", "laplace_scale")
            if hasattr(entry.mechanism, name)
        }
    )
    totals = np.array([[0, 5, 900], [7, 5, 0]])
    noisy = entry.mechanism.release(totals, rng=Seeded(5))
    twin = plain.release(totals, rng=Seeded(5))
    assert np.array_equal(noisy.points, twin.points)
    both, parts = entry.mechanism.estimate(noisy), plain.estimate(twin, confidence=0.975)
    assert np.array_equal(both.value, parts.value[0] - parts.value[1])
    assert both.low == pytest.approx(parts.low[0] - parts.high[1], rel=1e-13)
    assert both.high == pytest.approx(parts.high[0] - parts.low[1], rel=1e-13)
    assert max(len(repr(end)) for end in (*both.low.tolist(), *both.high.tolist())) < 10
    assert both.variance_unbiased == pytest.approx(parts.variance_unbiased.sum(axis=0))
    spread = plain.variance(totals)
    assert entry.mechanism.variance(totals) == pytest.approx(spread.sum(axis=0))
    signed = rw.policy.Measure("emp", Fraction(1), True)
    assert entry.mechanism.policy(signed).loss({"emp": -30}) == plain.policy("emp").loss({"emp": 30})
