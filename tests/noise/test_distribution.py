"""The draws against the stated law. False alarm 1e-9 a check; the same checks reject a law whose variance is 3 % off."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from noise.statistics import distance, dkw_threshold, places, shares_up_to, tail_alarm
from recordwise.exact.numbers import working_precision
from recordwise.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    GeneralizedGaussian,
    LatticeLaw,
    Polylog,
    Seeded,
    binomial_exact,
)
from recordwise.noise.laws import Passing, frame

SIZE = 12_000_000
"""A scale 1.5 % off moves the flattest of these distribution functions by 0.002, twice the threshold at this size."""

PAIRS = [
    (DiscreteGaussian(1), lambda v: DiscreteGaussian.for_variance(v)),
    (DiscreteGaussian(50), lambda v: DiscreteGaussian.for_variance(v)),
    (DiscreteGaussian(10**12), lambda v: DiscreteGaussian.for_variance(v)),
    (DiscreteLaplace(1), lambda v: DiscreteLaplace.for_variance(v)),
    (DiscreteLaplace(50), lambda v: DiscreteLaplace.for_variance(v)),
    (DiscreteLaplace(10**12), lambda v: DiscreteLaplace.for_variance(v)),
    (GeneralizedGaussian(1, 0.5), lambda v: GeneralizedGaussian.for_variance(v, shape=0.5)),
    (GeneralizedGaussian(50, 0.5), lambda v: GeneralizedGaussian.for_variance(v, shape=0.5)),
    (GeneralizedGaussian(10**12, 0.5), lambda v: GeneralizedGaussian.for_variance(v, shape=0.5)),
    (Polylog(1, 1, 4, 2), lambda v: Polylog.for_variance(v, rate=1, offset=4, power=2)),
    (Polylog(50, 1, 4, 2), lambda v: Polylog.for_variance(v, rate=1, offset=4, power=2)),
    (Polylog(10**6, 1, 4, 2), lambda v: Polylog.for_variance(v, rate=1, offset=4, power=2)),
]


@pytest.mark.theorem("T-EXACT")
@pytest.mark.parametrize("law, with_variance", PAIRS, ids=[str(law) for law, _ in PAIRS])
@pytest.mark.costly
@pytest.mark.sampled
def test_secure_draws_have_the_stated_law_and_not_one_with_a_variance_three_percent_off(law, with_variance):
    sample = law.sample(SIZE)
    points = places(sample)
    shares = shares_up_to(sample, points)
    assert distance(shares, points, law.cdf) < dkw_threshold(SIZE)
    for factor in (0.97, 1.03):
        wrong = with_variance(law.variance * factor)
        assert distance(shares, points, wrong.cdf) > dkw_threshold(SIZE)
    check_both_far_tails(law, sample)


def check_both_far_tails(law: LatticeLaw, sample) -> None:
    """About 1200 draws beyond the one in ten thousand; a tail half as heavy again, or two thirds as heavy, is rejected."""
    reach = -law.quantile("1e-4")
    tail = law.sf(reach)
    for hits in (np.count_nonzero(sample >= reach), np.count_nonzero(sample <= -reach)):
        assert not tail_alarm(hits, SIZE, tail)
        assert tail_alarm(hits, SIZE, tail * 1.5)
        assert tail_alarm(hits, SIZE, tail / 1.5)


ABOVE = [
    (DiscreteGaussian(50), 0, DiscreteGaussian("50.75")),
    (DiscreteGaussian(50), -30, DiscreteGaussian("50.75")),
    (DiscreteGaussian(50), 20, DiscreteGaussian("50.75")),
    (DiscreteGaussian(50), 2000, DiscreteGaussian("50.75")),
    (DiscreteGaussian(10**12), 3 * 10**13, DiscreteGaussian("1.015e12")),
    (DiscreteLaplace(50), 10**6, DiscreteLaplace("50.75")),
    (GeneralizedGaussian(50, 0.5), 10**9, GeneralizedGaussian("50.75", 0.5)),
    (Polylog(50, 5, 1, 1), 10**15, Polylog(50, "5.08", 1, 1)),
]


def conditional(law: LatticeLaw, threshold: int):
    """k -> P(Z <= k given Z >= threshold)."""
    return lambda k: -np.expm1(law.log_sf(k + 1) - law.log_sf(threshold))


@pytest.mark.theorem("T-EXACT")
@pytest.mark.parametrize("law, threshold, wrong", ABOVE, ids=[f"{law} from {threshold}" for law, threshold, _ in ABOVE])
@pytest.mark.costly
@pytest.mark.sampled
def test_draws_above_a_threshold_have_the_conditional_law_at_any_depth_and_not_a_near_one(law, threshold, wrong):
    sample = law.sample_above(threshold, SIZE)
    points = places(sample)
    shares = shares_up_to(sample, points)
    assert sample.min() >= threshold
    assert distance(shares, points, conditional(law, threshold)) < dkw_threshold(SIZE)
    assert distance(shares, points, conditional(wrong, threshold)) > dkw_threshold(SIZE)


BINOMIALS = [(1, 0), (7, 20), (1000, 60), (10**6, 150), (10**12, 300), (10**12, -10), (10**18, 0)]
MANY = 10**15
"""From here on scipy's binomial loses its digits and the normal law is within 1e-7 (Berry-Esseen)."""


def binomial_cdf(n: int, p: float):
    if n < MANY:
        return lambda k: stats.binom.cdf(k, n, p)
    return lambda k: stats.norm.cdf((k - n * p) / np.sqrt(n * p * (1 - p)))


@pytest.mark.theorem("T-BINOMIAL")
@pytest.mark.parametrize("n, threshold", BINOMIALS)
@pytest.mark.costly
@pytest.mark.sampled
def test_the_number_that_pass_is_binomial_and_not_one_with_a_mean_half_a_deviation_off(n: int, threshold: int):
    """Half a deviation moves the distribution function by at least 0.19, and a thousand draws see 0.1 at a false alarm of 1e-9.

    The remaining 0.09 are lost in the noise with probability 2 exp(-2 * 1000 * 0.09**2) = 2e-7.
    """
    size, law, source = 1000, DiscreteGaussian(50), Seeded(n + threshold + 10**6)
    counts = np.array([binomial_exact(n, law, threshold, source) for _ in range(size)], dtype=np.int64)
    p = law.sf(threshold)
    points = np.unique(counts) if n < 10 else places(counts)
    shares = shares_up_to(counts, points)
    assert distance(shares, points, binomial_cdf(n, p)) < dkw_threshold(size)
    wrong = p + 0.5 * np.sqrt(p * (1 - p) / n) * (-1 if p > 0.5 else 1)
    assert distance(shares, points, binomial_cdf(n, wrong)) > dkw_threshold(size)


@pytest.mark.theorem("T-BINOMIAL")
@pytest.mark.costly
def test_no_count_passes_the_envelope_even_where_the_mean_is_a_hair_below_a_whole_number():
    """There the center that is taken is not the most likely count, but the one after it."""
    law, threshold = DiscreteGaussian(3), 4
    numbers = np.arange(10**5, 4 * 10**6)
    n = int(numbers[np.argmax((numbers + 1) * law.sf(threshold) % 1.0 > 1 - 2.0**-21)])
    passing = Passing(law=law, threshold=threshold, n=n)
    center, shift = frame(passing)
    with working_precision(passing.first_precision):
        assert passing._log_ratio(center - 1, center) > 0
    for block in range(4):
        for count in (center + (block << shift), center - 1 - (block << shift)):
            assert passing.acceptance(count, center, block) <= 1


@pytest.mark.theorem("T-BINOMIAL")
@pytest.mark.parametrize("n", [1, 2, 3, 7, 12, 40, 1000, 10**6])
@pytest.mark.parametrize("mean", ["1/2", "3/4", "1", "3/2", "2", "5/2", "3", "4", "5", "6"])
def test_no_count_passes_the_envelope_where_few_are_expected(mean: str, n: int):
    """An acceptance above 1 is cut off, and the count is drawn too rarely."""
    law, wanted = DiscreteGaussian(50), float(Fraction(mean)) / n
    threshold = max(1, int(law.quantile(1 - wanted))) if wanted < 0.5 else 1
    passing = Passing(law=law, threshold=threshold, n=n)
    center, shift = frame(passing)
    for count in range(min(n, 120) + 1):
        distance = count - center if count >= center else center - 1 - count
        assert passing.acceptance(count, center, distance >> shift) <= 1
