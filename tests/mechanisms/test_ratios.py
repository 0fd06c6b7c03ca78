"""Intervals of ratios, by exact sums over the lattice laws of both noises: every cell has one, and every cell counts."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from recordwise.noise import DiscreteGaussian
from recordwise.plan.statistics.base import Side, gaussian_reach, ratio_interval

STEP = Fraction(1)
SIGMAS = [0.2, 0.5, 0.8, 1.0, 1.25, 2.0, 3.16, 10.0]
LEVELS = [0.5, 0.9, 0.95, 0.999]


def masses(sigma):
    reach = int(9 * sigma) + 3
    points = np.arange(-reach, reach + 1)
    weights = np.exp(-(points.astype(float) ** 2) / (2 * sigma**2))
    return points, weights / weights.sum()


def holding(sigmas, confidence, reach, angles):
    """The smallest P(|X - r Y| <= hypot(reach(X), r reach(Y))) over ratios r, X and Y lattice noise."""
    (one, chance_one), (other, chance_other) = masses(sigmas[0]), masses(sigmas[1])
    far = [reach(Fraction(sigma).limit_denominator(100), STEP, confidence=confidence) for sigma in sigmas]
    upto = np.concatenate([[0.0], np.cumsum(chance_one)])
    found = []
    for angle in np.linspace(0, np.pi / 2, angles, endpoint=False):
        center, half = far[0] * np.tan(angle) * other / far[1], far[0] / np.cos(angle)
        first, last = np.ceil(center - half - 1e-9), np.floor(center + half + 1e-9)
        ends = [np.clip(each - one[0], 0, len(one)).astype(int) for each in (first, last + 1)]
        found.append(np.sum(chance_other * np.maximum(upto[ends[1]] - upto[ends[0]], 0)))
    return min(found)


@pytest.mark.theorem("T-RATIO")
@pytest.mark.parametrize("confidence", LEVELS)
def test_two_gaussian_noises_stay_within_the_root_of_their_squared_reaches(confidence):
    """Whatever the ratio: summed over both laws, at 90 ratios and every pair of sigmas."""
    worst = min(holding((a, b), confidence, gaussian_reach, 90) for a in SIGMAS for b in SIGMAS)
    assert worst >= confidence


@pytest.mark.theorem("T-RATIO")
def test_without_the_half_step_they_do_not():
    plain = lambda sigma, step, confidence: gaussian_reach(sigma, Fraction(0), confidence=confidence)  # noqa: E731
    assert holding((1.0, 1.0), 0.95, plain, 90) < 0.9
    assert holding((0.5, 0.5), 0.95, plain, 90) < 0.8


def sides(noisy, sigma, confidence):
    half = DiscreteGaussian(sigma).quantile((3 + confidence) / 4)
    reach = np.full(len(noisy), gaussian_reach(sigma, STEP, confidence=confidence))
    return Side(value=noisy, low=noisy - half, high=noisy + half, reach=reach)


def coverage(total, size, sigmas, confidence=0.95, bend=lambda side: side):
    """P(the interval holds total/size), summed over the laws of both noises."""
    (one, chance_one), (other, chance_other) = masses(float(sigmas[0])), masses(float(sigmas[1]))
    top, bottom = (each.ravel() for each in np.meshgrid(total + one, size + other, indexing="ij"))
    parts = sides(top.astype(float), sigmas[0], confidence), sides(bottom.astype(float), sigmas[1], confidence)
    low, high = ratio_interval(*map(bend, parts), least=1.0)
    assert np.all(np.isfinite(low) & np.isfinite(high) & (low <= high))
    held = (low <= total / size) & (total / size <= high)
    return float(np.outer(chance_one, chance_other).ravel()[held].sum())


NOISES = [
    (Fraction(30), Fraction(3)),
    (Fraction(5), Fraction(1)),
    (Fraction(2), Fraction(8)),
    (Fraction(1), Fraction(1, 2)),
]


@pytest.mark.theorem("T-RATIO")
@pytest.mark.parametrize("sigmas", NOISES, ids=str)
@pytest.mark.costly
def test_over_all_cells_the_interval_covers_where_the_two_kinds_meet_too(sigmas):
    """Sizes run through the place where the noisy denominator decides which kind it is."""
    for size in (1, 2, 3, 5, 8, 12, 14, 16, 20, 30, 60):
        for mean in (-4, 0, 1, 10, 300):
            assert 0.95 <= coverage(mean * size, size, sigmas) <= 1


@pytest.mark.theorem("T-RATIO")
def test_large_cells_are_covered_at_the_level_and_not_much_more():
    for mean in (0, 1, 10, 300):
        assert 0.95 <= coverage(mean * 100, 100, (Fraction(30), Fraction(10, 3))) <= 0.97


@pytest.mark.theorem("T-RATIO")
def test_intervals_that_are_too_narrow_are_caught():
    def narrow(side):
        return Side(value=side.value, low=side.value - 1, high=side.value + 1, reach=side.reach * 0.9)

    for mean, size in ((10, 2), (10, 60)):
        assert coverage(mean * size, size, NOISES[0], bend=narrow) < 0.95


def side(*numbers):
    """value, low, high and, for Gaussian noise, reach."""
    padded = (*numbers, np.nan)[:4]
    return Side(**{name: np.array([float(each)]) for name, each in zip(("value", "low", "high", "reach"), padded)})


@pytest.mark.parametrize(
    ("top", "bottom", "expected"),
    [
        (side(8, 6, 10), side(3, 2, 4), (1.5, 5)),
        (side(8, -6, 10), side(3, 2, 4), (-3, 5)),
        (side(-8, -10, -6), side(3, 2, 4), (-5, -1.5)),
        (side(8, 6, 10), side(0, -5, 4), (1.5, 10)),
        (side(8, 6, 10), side(-20, -25, -15), (6, 10)),
        (side(0, 0, 0), side(3, 2, 4), (0, 0)),
    ],
)
def test_the_corners_of_two_intervals_with_a_denominator_of_one_step_at_least(top, bottom, expected):
    low, high = ratio_interval(top, bottom, least=1.0)
    assert low[0] <= expected[0] <= low[0] + 0.011 * (expected[1] - expected[0])
    assert high[0] - 0.011 * (expected[1] - expected[0]) <= expected[1] <= high[0]


def test_fieller_s_set_serves_only_gaussian_noise_and_large_denominators():
    """{r : |100 - 50 r| <= 5 hypot(1, r)} has the ends 1.79... and 2.23...; a denominator of 10 = 2 * 5 is too small for it."""
    exact = np.roots([50**2 - 25, -2 * 100 * 50, 100**2 - 25])
    low, high = ratio_interval(side(100, 0, 200, 5), side(50, 1, 99, 5), least=1.0)
    assert np.allclose([low[0], high[0]], sorted(exact), atol=0.005)
    for top, bottom in [
        ((100, 0, 200, 5), (10, 1, 99, 5)),
        ((100, 0, 200), (50, 1, 99, 5)),
        ((100, 0, 200, 5), (50, 1, 99)),
    ]:
        low, high = ratio_interval(side(*top), side(*bottom), least=1.0)
        assert (low[0], high[0]) == pytest.approx((0, 200), abs=2)


def test_ends_are_short_decimals_never_inside_the_exact_ones():
    values = np.linspace(0.1, 9e9, 1000)
    top = Side(value=values, low=values * 0.9, high=values * 1.1, reach=np.full(1000, np.nan))
    three = np.full(1000, 3.0)
    bottom = Side(value=three, low=three - 1, high=three + 1, reach=np.full(1000, np.nan))
    low, high = ratio_interval(top, bottom, least=1.0)
    assert np.all((low <= values * 0.9 / 4) & (high >= values * 1.1 / 2))
    digits = [len(Decimal(repr(each)).normalize().as_tuple().digits) for each in [*low.tolist(), *high.tolist()]]
    assert max(digits) <= 4
