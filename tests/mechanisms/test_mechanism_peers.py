"""Draws and laws against others: scipy, closed forms, and tmlt.core (``make test-peers``)."""

import importlib.util
import math
import os
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import recordwise as rw
from mechanisms.drawn_laws import laid
from recordwise.exact.numbers import working_precision
from recordwise.noise import Seeded

DRAWS = 1_000_000
FALSE_ALARM = 1e-9
THRESHOLD = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * DRAWS))
"""Dvoretzky-Kiefer-Wolfowitz, 0.0033. A scale 5 % off moves every law here by 0.007 or more, so it is rejected almost surely."""


def distance(sample: np.ndarray, cdf: Any, lattice: float) -> float:
    """The largest gap between the empirical distribution, spread over the lattice cells, and a continuous one."""
    sorted_sample = np.sort(sample) + lattice / 2
    return float(np.max(np.abs(np.arange(1, len(sample) + 1) / len(sample) - cdf(sorted_sample))))


def lattice_atom(mechanism: Any) -> float:
    """The largest probability of one lattice point: ties make the empirical distribution jump by as much."""
    return float(laid(mechanism, [0])[1].pmf(0))


def noise_of(mechanism: Any) -> tuple[np.ndarray, float]:
    noisy = mechanism.release(np.zeros(DRAWS, np.int64), rng=Seeded(11))
    return noisy.values(), float(noisy.grid)


@pytest.mark.parametrize("shape", ["1/2", "1/3", "1"])
@pytest.mark.costly
def test_generalized_gaussian_draws_follow_scipys_law_in_the_fine_lattice_limit(shape: str) -> None:
    mechanism = rw.GeneralizedGaussian(shape=shape, scale=7, lattice=Fraction(1, 2**17))
    sample, lattice = noise_of(mechanism)
    slack = THRESHOLD + 2 * lattice_atom(mechanism)
    for factor, fits in ((1.0, True), (1.05, False)):
        law = stats.gennorm(float(Fraction(shape)), scale=7 * factor)
        assert (distance(sample, law.cdf, lattice) <= slack) == fits


def test_polylog_draws_follow_the_closed_form_in_the_fine_lattice_limit() -> None:
    """At power 2, ln(|z|/scale + offset) is a normal variable with mean and variance 1/(2 rate), cut off below ln(offset)."""
    mechanism = rw.Polylog(power=2, rate=1, offset=4, scale=3, lattice=Fraction(1, 2**14))
    sample, lattice = noise_of(mechanism)
    slack = THRESHOLD + 2 * lattice_atom(mechanism)
    for factor, fits in ((1.0, True), (1.05, False)):
        assert (distance(sample, lambda z, scale=3 * factor: polylog_cdf(z / scale), lattice) <= slack) == fits


def polylog_cdf(z: np.ndarray, rate: float = 1.0, offset: float = 4.0) -> np.ndarray:
    normal = stats.norm(1 / (2 * rate), math.sqrt(1 / (2 * rate)))
    tail = normal.sf(np.log(np.abs(z) + offset)) / normal.sf(math.log(offset)) / 2
    return np.where(z < 0, tail, 1 - tail)


def test_the_closed_form_and_the_lattice_law_meet_the_published_vectors() -> None:
    """Continuous distribution function at d=1, o=4, s=1 in points 2 and 3."""
    vectors = {2: 0.8387905082947511, 3: 0.9027118911646812}
    fine = Fraction(1, 2**22)
    law = rw.Polylog(power=2, rate=1, offset=4, scale=1, lattice=fine).law_on(fine)
    for point, printed in vectors.items():
        assert float(polylog_cdf(np.array(float(point)))) == pytest.approx(printed, abs=1e-15)
        half_atom = float(law.pmf(int(point / fine))) / 2
        assert float(law.cdf(int(point / fine))) - half_atom == pytest.approx(printed, abs=1e-12)


@pytest.mark.parametrize(
    "parameters, printed",
    [
        ({"rate": 1, "offset": math.e}, 6.8173),
        ({"rate": 1, "offset": 4}, 8.5157),
        ({"rate": 2, "offset": math.e}, 1.15776),
    ],
)
def test_polylog_variances_are_the_published_ones(parameters: dict[str, float], printed: float) -> None:
    mechanism = rw.Polylog(power=2, scale=1, **parameters)
    assert float(mechanism.variance(0)) == pytest.approx(printed, rel=1e-5)


def test_pareto_noise_has_its_textbook_law_and_variance() -> None:
    """At power 1: density (d-1)/(2S) (1+|z|/S)**-d, variance 2 S**2/((d-2)(d-3))."""
    mechanism = rw.Polylog(power=1, rate=6, offset=2, scale=3, lattice=Fraction(1, 2**12))
    assert float(mechanism.variance(0)) == pytest.approx(2 * 36 / (4 * 3), rel=1e-5)
    sample, lattice = noise_of(mechanism)
    slack = THRESHOLD + 2 * lattice_atom(mechanism)
    for factor, fits in ((1.0, True), (1.05, False)):
        law = stats.lomax(5, scale=6 * factor)
        assert (distance(np.abs(sample), law.cdf, lattice) <= slack) == fits


def peer() -> Any:
    """tmlt.core's module of per-record mechanisms; its absence is said aloud, because it leaves an independent check undone."""
    try:
        found = importlib.util.find_spec("tmlt.core.utils.prdp")
    except ModuleNotFoundError:
        found = None
    if found is None and os.environ.get("RECORDWISE_REQUIRE_ALL"):
        pytest.fail("tmlt.core is not installed, and RECORDWISE_REQUIRE_ALL is set; run make test-peers")
    if found is None:
        pytest.skip("tmlt.core is not installed: draws are NOT compared with an independent implementation here")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("tmlt.core.utils.prdp")


CHANCES = [0.001, 0.05, 0.3, 0.49, 0.51, 0.8, 0.975, 0.9999]


@pytest.mark.slow
def test_fat_tailed_quantiles_are_those_of_tmlt_core() -> None:
    from flint import arb

    prdp = peer()
    fine = Fraction(1, 2**20)
    laws = [
        (
            rw.GeneralizedGaussian(shape="1/2", scale=2, lattice=fine),
            lambda p: prdp.square_root_gaussian_inverse_cdf(arb(p), arb(2)),
        ),
        (
            rw.Polylog(power=2, rate=1, offset=4, scale=3, lattice=fine),
            lambda p: prdp.exponential_polylogarithmic_inverse_cdf(arb(p), arb(1), arb(4), arb(3)),
        ),
    ]
    with working_precision(160):
        for mechanism, inverse_cdf in laws:
            law = mechanism.law_on(fine)
            for chance in CHANCES:
                ours, theirs = float(law.quantile(chance) * fine), float(inverse_cdf(chance))
                assert ours == pytest.approx(theirs, rel=1e-5, abs=3 * float(fine))


@pytest.mark.slow
def test_transformed_draws_follow_those_of_tmlt_core() -> None:
    """Two samples; Kolmogorov-Smirnov at false alarm 1e-9 for 4,000 of theirs, which take milliseconds each."""
    prdp = peer()
    size = 4000
    limit = math.sqrt(math.log(2 / FALSE_ALARM) / 2 * (1 / size + 1 / DRAWS))
    pairs = [
        (rw.RootTransform(degree=2, offset=3, sigma="0.5"), prdp.square_root_transformation_mechanism, (3.0, 0.5)),
        (rw.RootTransform(degree=4, offset=3, sigma="0.2"), prdp.fourth_root_transformation_mechanism, (3.0, 0.2)),
        (rw.LogTransform(offset=3, sigma="0.4"), prdp.log_transformation_mechanism, (3.0, 0.4)),
    ]
    for mechanism, draw, (offset, sigma) in pairs:
        noisy = mechanism.release(np.full(DRAWS, 40), rng=Seeded(3))
        ours = mechanism.estimate(noisy).median_unbiased
        theirs = np.array([draw(40.0, offset, sigma) for _ in range(size)])
        assert stats.ks_2samp(ours, theirs, method="asymp").statistic < limit
        wrong = np.array([draw(40.0, offset, 1.5 * sigma) for _ in range(size)])
        assert stats.ks_2samp(ours, wrong, method="asymp").statistic > limit
