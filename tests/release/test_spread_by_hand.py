"""Noise of fitted answers by hand: laws by part, sums of Laplace and normal errors, intervals of totals, numbers of draws."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from scipy import integrate, optimize, stats

import recordwise as rw
from recordwise.errors import ParameterError
from recordwise.noise import Seeded
from recordwise.noise.laws import GeneralizedGaussian, discrete_gaussian
from recordwise.noise.stated import FINE
from recordwise.release.spread import (
    CLOSE,
    DRAWS,
    FEWER_DRAWS,
    LARGE,
    MOST_VALUES,
    NORMAL,
    NORMAL_STEPS,
    FixedNoise,
    JoinedNoise,
    MovedSums,
    Shape,
    SummedErrors,
    Surprise,
    VaryingNoise,
    _crossing,
    _fixed_noise,
    _standard,
    chunks,
    draws_for,
    in_common,
    public_seed,
    sum_reaches,
    total_intervals,
)

Z = NormalDist().inv_cdf(0.975)
RAW = np.array([4.0, 9.0, 16.0])
FIXED = FixedNoise(RAW, ((slice(0, 2), NORMAL), (slice(2, 3), discrete_gaussian(Fraction(2)))), known=True, normal=True)
LOG, ROOT = rw.LogTransform(offset=50, sigma="0.2"), rw.RootTransform(degree=2, offset=4, sigma="0.5")


def varying(*mechanisms: Any) -> VaryingNoise:
    return VaryingNoise(RAW, tuple((np.array([at]), each) for at, each in enumerate(mechanisms)), Fraction(1))


# The noise of answers.


def test_noise_of_one_law_has_the_variance_that_was_published_whatever_the_totals() -> None:
    assert FIXED.variance(None) is RAW
    assert FIXED.variance(np.zeros(3)) is RAW
    assert FIXED.variance_at(np.array([2, 0]), np.zeros(2)).tolist() == [16.0, 4.0]
    shape = FIXED.shape(0.95)
    assert (shape.offset.tolist(), shape.log.tolist(), shape.reach) == ([0.0] * 3, [False] * 3, pytest.approx(Z))
    assert replace(FIXED, normal=False).shape(0.95).reach == math.inf
    assert FIXED.shape(0.8).reach == pytest.approx(NormalDist().inv_cdf(0.9))


def test_draws_of_one_law_are_scaled_to_the_variance_of_each_answer() -> None:
    """20,000 draws: a variance is off by 5 % with a probability below 1e-6."""
    found = FIXED.errors(np.zeros(3), 20_000, Seeded(3))
    assert found.shape == (20_000, 3)
    np.testing.assert_allclose(found.var(axis=0), RAW, rtol=0.05)
    # The third is on a lattice of half its standard deviation.
    steps = found[:, 2] / (4 / math.sqrt(discrete_gaussian(Fraction(2)).variance))
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-9)


def test_the_variance_of_a_transform_follows_the_total_of_each_answer() -> None:
    noise = varying(LOG, ROOT, LOG)
    totals = np.array([100.0, 400.0, -5.0])
    expected = [float(m.variance(np.array([t]))[0]) for m, t in zip((LOG, ROOT, LOG), (100.0, 400.0, 0.0))]
    assert noise.variance(totals).tolist() == expected
    assert noise.variance(None) is RAW
    assert noise.variance(np.stack([totals, totals])).tolist() == [expected, expected]
    assert noise.variance_at(np.array([1, 2, 0, 1]), np.array([400.0, -5.0, 100.0, 400.0])).tolist() == [
        expected[1],
        expected[2],
        expected[0],
        expected[1],
    ]
    alone = VaryingNoise(RAW, ((np.arange(3), LOG),), Fraction(1))
    assert alone.variance_at(np.array([2]), np.array([-5.0])).tolist() == [expected[2]]


def test_the_shape_of_a_transform_has_its_offset_its_logarithm_and_the_wider_of_both_reaches() -> None:
    laplace = rw.LogTransform(offset=7, laplace_scale="0.1")
    shape = varying(LOG, ROOT, laplace).shape(0.95)
    assert shape.offset.tolist() == [50.0, 4.0, 7.0]
    assert shape.log.tolist() == [True, False, True]
    # Laplace noise is beyond ln(20) scales once in twenty times, and a scale is its sd over root 2.
    assert shape.reach == pytest.approx(math.log(20) / math.sqrt(2))
    assert varying(LOG, ROOT, LOG).shape(0.95).reach == pytest.approx(Z)
    assert varying(rw.Gaussian(sigma=3), LOG, LOG).shape(0.95).reach == math.inf


def test_errors_of_a_transform_are_drawn_at_the_nearest_step_of_each_total() -> None:
    noise = VaryingNoise(RAW[:2], ((np.array([0, 1]), rw.LogTransform(offset=100, sigma="0.0001")),), Fraction(1, 2))
    found = noise.errors(np.array([700.2, -3.0]), 50, Seeded(1))
    assert found.shape == (50, 2)
    assert np.abs(found[:, 0]).max() < 0.5
    assert np.abs(found[:, 1]).max() < 0.1


def test_joined_noise_asks_each_part_about_its_own_answers() -> None:
    part = VaryingNoise(np.array([1.0, 2.0]), ((np.array([0, 1]), LOG),), Fraction(1))
    other = replace(FIXED, step=0.5)
    noise = JoinedNoise(((np.array([4, 1]), part), (np.array([0, 2, 3]), other)))
    assert noise.variance(None).tolist() == [4.0, 2.0, 9.0, 16.0, 1.0]
    totals = np.array([0.0, 100.0, 0.0, 0.0, 400.0])
    logs = LOG.variance(np.array([100.0, 400.0])).tolist()
    assert noise.variance(totals).tolist() == [4.0, logs[0], 9.0, 16.0, logs[1]]
    asked = np.array([4, 3, 1, 0])
    assert noise.variance_at(asked, totals[asked]).tolist() == [logs[1], 16.0, logs[0], 4.0]
    shape = noise.shape(0.9)
    assert shape.offset.tolist() == [0.0, 50.0, 0.0, 0.0, 50.0]
    assert shape.log.tolist() == [False, True, False, False, True]
    assert shape.reach == pytest.approx(NormalDist().inv_cdf(0.95))
    assert (noise.normal, noise.known, noise.varies, noise.step) == (False, True, True, 0.5)
    fixed = JoinedNoise(((np.arange(3), FIXED), (np.arange(3, 6), replace(FIXED, known=False))))
    assert (fixed.normal, fixed.known, fixed.varies) == (True, False, False)
    assert noise.errors(totals, 7, Seeded(2)).shape == (7, 5)


def test_noise_that_is_0_leaves_nothing_to_fit_and_narrow_noise_is_drawn_and_not_normal() -> None:
    served = [(slice(0, 3), rw.Gaussian(sigma=3))]
    with pytest.raises(ParameterError, match="so small that they are exact"):
        _fixed_noise(np.array([1.0, 0.0, 1.0]), served, Fraction(1))
    assert _fixed_noise(np.array([0.25, 1.0, 1.0]), served, Fraction(1)).normal
    assert not _fixed_noise(np.array([0.2499, 1.0, 1.0]), served, Fraction(1)).normal
    assert _fixed_noise(np.array([1.0, 1.0, 1.0]), served, Fraction(2)).normal
    assert not _fixed_noise(np.array([0.99, 1.0, 1.0]), served, Fraction(2)).normal
    found = _fixed_noise(RAW, served, Fraction(1, 2))
    assert (found.known, found.step, found.laplace, found.varies) == (True, 0.5, False, False)
    laplace = _fixed_noise(RAW, [(slice(0, 3), rw.GeneralizedGaussian(shape=1, scale=3))], Fraction(1))
    assert (laplace.known, laplace.normal, laplace.laplace) == (True, False, True)
    mixed = [(slice(0, 1), rw.GeneralizedGaussian(shape=1, scale=3)), (slice(1, 3), rw.Gaussian(sigma=3))]
    assert (_fixed_noise(RAW, mixed, Fraction(1)).normal, _fixed_noise(RAW, mixed, Fraction(1)).laplace) == (
        False,
        False,
    )


def test_fine_laws_that_differ_in_scale_only_are_drawn_as_one() -> None:
    wide, wider = discrete_gaussian(Fraction(NORMAL_STEPS)), discrete_gaussian(Fraction(5000))
    coarse = discrete_gaussian(Fraction(NORMAL_STEPS - 1))
    assert _standard(wide) is NORMAL
    assert _standard(wider) is NORMAL
    assert _standard(coarse) is coarse
    fine = GeneralizedGaussian(scale=2 * FINE, shape=1)
    assert _standard(fine) == GeneralizedGaussian(scale=FINE, shape=1)
    few = GeneralizedGaussian(scale=FINE / 2, shape=1)
    assert _standard(few) is few
    noise = FixedNoise(RAW, ((np.array([2]), wider), (np.array([1]), coarse), (np.array([0]), wide)), known=True)
    found = [(rows.tolist(), law is NORMAL) for rows, law in in_common(noise).laws]  # type: ignore[union-attr]
    assert found == [([2, 0], True), ([1], False)]
    moved = varying(LOG)
    assert in_common(moved) is moved
    joined = in_common(JoinedNoise(((np.arange(3), noise),)))
    assert len(joined.parts[0][1].laws) == 2  # type: ignore[union-attr]


def test_a_public_seed_depends_on_the_release_and_on_every_purpose() -> None:
    seeds = [
        public_seed("a"),
        public_seed("b"),
        public_seed("a", "x"),
        public_seed("a", "x", "y"),
        public_seed("a", "x"),
    ]
    drawn = [bytes(np.asarray(NORMAL.draw(8, seed).values)) for seed in seeds]
    assert len(set(drawn)) == 4
    assert drawn[2] == drawn[4]


# Sums of Laplace and normal errors.


def beyond(shares: list[float], smooth: float, reach: float) -> float:
    """P(|sum| > reach), by integrating the characteristic function."""

    def phi(t: float) -> float:
        return math.exp(-smooth * t * t / 2) / math.prod(1 + share * t * t / 2 for share in shares)

    value, _ = integrate.quad(lambda t: phi(t) * (math.sin(reach * t) / t if t else reach), 0, 200, limit=2000)
    return 1 - 2 / math.pi * value


def exact_quantile(shares: list[float], smooth: float, level: float) -> float:
    return float(optimize.brentq(lambda reach: beyond(shares, smooth, reach) - (1 - level), 0.1, 12))


def test_one_laplace_error_one_normal_error_and_their_sums_have_their_own_quantiles() -> None:
    levels = (0.5, 0.9, 0.95)
    shares = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 0.0], [0.3, 0.2]])
    found = sum_reaches(shares, np.array([0.0, 0.0, 1.0, 0.5]), levels)
    for level, own in zip(levels, found):
        expected = [
            -math.log(1 - level) / math.sqrt(2),
            exact_quantile([0.5, 0.5], 0.0, level),
            NormalDist().inv_cdf((1 + level) / 2),
            exact_quantile([0.3, 0.2], 0.5, level),
        ]
        np.testing.assert_allclose(own, expected, rtol=2e-4)


def test_the_smallest_of_many_errors_are_as_many_equal_ones() -> None:
    """Sixty-four are taken one by one; of the last two, which are equal, nothing is lost."""
    shares = [0.3] + [0.01] * 63 + [0.035, 0.035]
    for order in (shares, shares[::-1]):
        (found,) = sum_reaches(np.array([order]), np.zeros(1), [0.95])
        assert found[0] == pytest.approx(exact_quantile(shares, 0.0, 0.95), rel=2e-4)
    small = [0.02] * 48 + [0.002] * 20
    (found,) = sum_reaches(np.array([small]), np.zeros(1), [0.99])
    assert found[0] == pytest.approx(exact_quantile(small, 0.0, 0.99), rel=2e-4)


def test_weighted_sums_stay_within_the_root_of_their_variance_and_half_a_step_of_each_kind() -> None:
    fine = GeneralizedGaussian(scale=4 * FINE, shape=1)
    scale = float(4 * FINE)
    raw = np.array([9.0, 4.0, 4.0])
    noise = FixedNoise(raw, ((slice(0, 2), NORMAL), (slice(2, 3), fine)), known=True, step=0.5)
    errors = SummedErrors.of(noise)
    assert errors is not None
    assert errors.laplace.tolist() == [False, False, True]
    # Half a step of a Laplace law of this many steps: its scale is the root of half its variance.
    assert errors.halves.tolist() == pytest.approx([0.25, 0.25, math.sqrt(2) / (2 * scale)])
    weights = np.array([[1.0, 0.0, 0.0], [-2.0, 1.0, 0.0], [0.0, 0.0, -3.0], [1.0, 1.0, 1.0]])
    (found,) = errors.reaches(weights, [0.95])
    laplace = -math.log(0.05) / math.sqrt(2)
    expected = [
        3 * Z + 0.25,
        math.sqrt(40) * Z + 0.5,
        6 * laplace + 3 * math.sqrt(2) / (2 * scale),
        math.sqrt(17) * exact_quantile([4 / 17], 13 / 17, 0.95) + 0.25 + math.sqrt(2) / (2 * scale),
    ]
    np.testing.assert_allclose(found, expected, rtol=3e-4)


def test_sums_of_other_laws_are_not_known() -> None:
    fine = GeneralizedGaussian(scale=FINE, shape=1)
    known = FixedNoise(RAW, ((slice(0, 3), fine),), known=True)
    assert SummedErrors.of(known) is not None
    assert SummedErrors.of(replace(known, known=False)) is None
    for law in (GeneralizedGaussian(scale=FINE, shape=Fraction(1, 2)), GeneralizedGaussian(scale=FINE - 1, shape=1)):
        assert SummedErrors.of(FixedNoise(RAW, ((slice(0, 3), law),), known=True)) is None
    for raw, told in ((0.25, True), (0.2499, False)):
        narrow = FixedNoise(np.array([raw]), ((slice(0, 1), NORMAL),), known=True, step=1.0)
        assert (SummedErrors.of(narrow) is not None) == told
    assert SummedErrors.of(varying(LOG)) is None
    one = VaryingNoise(np.ones(1), ((np.array([0]), LOG),), Fraction(1))
    joined = JoinedNoise(((np.array([1, 2, 3]), known), (np.array([0]), one)))
    assert SummedErrors.of(joined) is None
    normal = FixedNoise(np.array([25.0]), ((slice(0, 1), NORMAL),), known=True)
    both = SummedErrors.of(JoinedNoise(((np.array([3, 1, 2]), known), (np.array([0]), normal))))
    assert both is not None
    assert both.laplace.tolist() == [False, True, True, True]
    assert both.raw.tolist() == [25.0, 9.0, 16.0, 4.0]


# Intervals of totals under which a fit is not surprising.


@dataclass(frozen=True)
class Steady:
    """Variances that do not move with the total, or grow with it."""

    value: Any
    fitted: Any
    rate: float = 0.0

    def at(self, totals: Any) -> Any:
        return self.fitted + self.rate * totals**2


def shape_of(count: int, *, log: bool = False, offset: float = 0.0, reach: float = Z) -> Shape:
    return Shape(np.full(count, offset), np.full(count, log), reach)


def ends(moved: Any, shape: Shape, low: Any = -1e6, high: Any = 1e6) -> tuple[list[float], list[float]]:
    count = len(moved.value)
    found = total_intervals(moved, shape, np.full(count, low), np.full(count, high))
    return found[0].tolist(), found[1].tolist()


def test_with_a_steady_variance_the_interval_is_the_normal_one_cut_at_0() -> None:
    moved = Steady(np.array([100.0, 1000.0]), np.array([16.0, 25.0]))
    low, high = ends(moved, shape_of(2))
    assert low == pytest.approx([100 - 4 * Z, 1000 - 5 * Z], rel=1e-8)
    assert high == pytest.approx([100 + 4 * Z, 1000 + 5 * Z], rel=1e-8)
    for totals in (low, high):
        assert np.abs(np.abs(np.array(totals) - moved.value) / np.sqrt(moved.fitted) - Z).max() < 1e-6


def test_with_a_variance_that_grows_the_ends_are_where_the_surprise_is_the_reach() -> None:
    """(v - t)^2 = z^2 (s^2 + r t^2) is a quadratic."""
    rate, value, fitted = 0.01, 100.0, 4.0
    low, high = ends(Steady(np.array([value]), np.array([fitted]), rate), shape_of(1))
    roots = np.sort(np.roots([1 - Z**2 * rate, -2 * value, value**2 - Z**2 * fitted]).real)
    assert [low[0], high[0]] == pytest.approx(roots.tolist(), rel=1e-7)


def test_on_the_scale_of_logarithms_the_surprise_is_lognormal() -> None:
    value, offset, fitted = 500.0, 50.0, 400.0
    surprise = Surprise(moved=Steady(np.array([value]), np.array([fitted])), shape=shape_of(1, log=True, offset=offset))  # type: ignore[arg-type]
    for total in (0.0, 400.0, 700.0):
        squared = math.log(1 + fitted / (total + offset) ** 2)
        expected = math.log((value + offset) / (total + offset)) / math.sqrt(squared) + math.sqrt(squared) / 2
        assert surprise(np.array([total]))[0] == pytest.approx(expected)
        assert surprise.relative(np.array([total]))[0] == pytest.approx(20 / (total + offset))
    mixed = Surprise(
        moved=Steady(np.array([500.0, 500.0]), np.array([400.0, 400.0])),  # type: ignore[arg-type]
        shape=Shape(np.array([50.0, 0.0]), np.array([True, False]), Z),
    )
    assert mixed(np.array([400.0, 400.0]))[1] == pytest.approx(5.0)
    below = Surprise(moved=Steady(np.array([-60.0]), np.array([400.0])), shape=shape_of(1, log=True, offset=offset))  # type: ignore[arg-type]
    assert below(np.array([10.0]))[0] == -math.inf


def test_where_the_relative_error_is_large_the_interval_holds_or_is_that_of_the_answer() -> None:
    """The relative error at the lower end is .3 of 100 at an sd of 18.89, and that at the fit .5 at 50."""
    narrow, middle, edge, wide = 18.8, 19.0, 49.9, 50.1
    moved = Steady(np.full(4, 100.0), np.array([narrow, middle, edge, wide]) ** 2)
    assert narrow / (100 - Z * narrow) < 0.3 < middle / (100 - Z * middle)
    low, high = ends(moved, shape_of(4), low=-7.0, high=777.0)
    assert low == pytest.approx([100 - Z * narrow, -7.0, -7.0, -7.0])
    assert high == pytest.approx([100 + Z * narrow, 777.0, 777.0, 777.0])
    half = Steady(np.array([100.0]), np.array([2500.0]))
    assert ends(half, shape_of(1), low=99.0, high=101.0)[0] == pytest.approx([100 - 50 * Z], abs=1e-6)
    low, high = ends(moved, shape_of(4), low=99.0, high=101.0)
    assert low == pytest.approx([100 - Z * narrow, 100 - Z * middle, 100 - Z * edge, 99.0], abs=1e-6)
    assert high == pytest.approx([100 + Z * narrow, 100 + Z * middle, 100 + Z * edge, 101.0], abs=1e-6)


def test_without_a_reach_the_ends_are_those_of_the_answers_made_to_hold_the_fit() -> None:
    moved = Steady(np.array([10.0, 10.0, 10.0]), np.ones(3))
    shape = shape_of(3, reach=math.inf)
    found = total_intervals(moved, shape, np.array([1.0, 12.0, 3.0]), np.array([20.0, 15.0, math.inf]))  # type: ignore[arg-type]
    assert found[0].tolist() == [1.0, 10.0, 3.0]
    assert found[1][:2].tolist() == [20.0, 15.0]
    assert np.isnan(found[1][2])


def test_a_crossing_is_bracketed_to_a_billionth_is_0_where_the_level_is_never_exceeded_and_open_where_it_always_is() -> (
    None
):
    targets = np.array([3.0, 1e6, 0.25])
    left, right = _crossing(lambda totals: targets - totals, 0.0, np.array([1.0, 1.0, 100.0]))
    assert np.all((left <= targets) & (targets <= right))
    assert np.all(right - left <= CLOSE * right * 1.0001)
    left, right = _crossing(lambda totals: targets - totals, 2.0, np.ones(3))
    assert right == pytest.approx([1.0, 1e6 - 2.0, 0.0], rel=1e-8)
    left, right = _crossing(lambda totals: np.exp(-totals) + 1.0, 0.5, np.ones(1))
    assert right[0] == math.inf
    steep = _crossing(lambda totals: np.where(totals < 7.0, 1.0, -1e9), 0.0, np.ones(1))
    assert steep[0][0] == pytest.approx(7.0, rel=1e-8)
    assert steep[1][0] == pytest.approx(7.0, rel=1e-8)


def test_weighted_sums_move_each_total_by_its_covariance_and_leave_out_what_has_next_to_no_weight() -> None:
    weights, used = np.array([[1.0, 2.0, 1e-9], [0.0, -1.0, 1.0]]), np.array([4.0, 9.0, 1.0])
    totals, value = np.array([10.0, 20.0, 30.0]), np.array([50.0, 10.0])
    moved = MovedSums.of(weights, used, value=value, totals=totals, variances=lambda answers, at: at + answers)
    np.testing.assert_allclose(moved.fitted, [40.0 + 1e-18, 10.0])
    assert (moved.place.tolist(), moved.answer.tolist()) == ([0, 0, 1, 1], [0, 1, 1, 2])
    np.testing.assert_allclose(moved.rate, [4 / 40, 18 / 40, -9 / 10, 1 / 10])
    np.testing.assert_allclose(moved.rest, [0.0, 0.0], atol=1e-12)
    asked = np.array([90.0, 0.0])
    # Totals move to 10 + 4, 20 + 18 for the first sum, and 20 + 9, 30 - 1 for the second.
    expected = [14.0 + 4 * (38.0 + 1), (29.0 + 1) + (29.0 + 2)]
    np.testing.assert_allclose(moved.at(asked), expected)
    # None is taken below 0.
    down = moved.at(np.array([-1000.0, 10.0]))
    np.testing.assert_allclose(down, [0.0 + 4 * (0 + 1), (20 + 1) + (30 + 2)])


def test_answers_with_little_weight_add_their_variance_as_it_is() -> None:
    weights, used = np.array([[1.0, 1.0, 1.0]]), np.array([1.0, 1e-13, 1e-11])
    moved = MovedSums.of(
        weights, used, value=np.zeros(1), totals=np.zeros(3), variances=lambda answers, at: np.zeros(len(at))
    )
    assert moved.answer.tolist() == [0, 2]
    assert moved.rest[0] == pytest.approx(1e-13, rel=0.01)
    assert moved.at(np.zeros(1))[0] == pytest.approx(1e-13, rel=0.01)
    nothing = MovedSums.of(
        np.ones((1, 1)), np.ones(1), value=np.zeros(1), totals=np.zeros(1), variances=lambda a, t: 0 * t
    )
    assert nothing.at(np.zeros(1))[0] == np.finfo(float).tiny


# How often noise is drawn.


def test_noise_is_drawn_often_enough_for_the_rank_of_a_confidence_and_less_often_for_many_answers() -> None:
    assert draws_for(LARGE, 0.95, None) == DRAWS == 400
    assert draws_for(LARGE + 1, 0.95, None) == FEWER_DRAWS == 40
    # Twice .99/.01 is 198, and two more.
    assert draws_for(LARGE + 1, 0.99, None) == 200
    assert draws_for(5, 0.95, 19) == 19
    with pytest.raises(ParameterError, match="at least 19"):
        draws_for(5, 0.95, 18)


def test_draws_are_made_in_chunks_of_four_million_numbers() -> None:
    assert MOST_VALUES == 4_000_000
    assert list(chunks(10, 1_000_000)) == [4, 4, 2]
    assert list(chunks(8, 1_000_000)) == [4, 4]
    assert list(chunks(3, 10_000_000)) == [1, 1, 1]
    assert list(chunks(5, 0)) == [5]
    assert list(chunks(0, 10)) == []


def test_the_quantile_by_characteristic_function_agrees_with_a_law_that_is_known() -> None:
    """The sum of two equal Laplace errors has the survival (1 + x/2b) exp(-x/b); a check of the reference above."""
    b = 0.5
    reach = float(optimize.brentq(lambda x: (1 + x / (2 * b)) * math.exp(-x / b) - 0.05, 0.1, 10))
    assert exact_quantile([0.5, 0.5], 0.0, 0.95) == pytest.approx(reach, rel=1e-5)
    assert stats.norm.ppf(0.975) == pytest.approx(exact_quantile([], 1.0, 0.95), rel=1e-6)
