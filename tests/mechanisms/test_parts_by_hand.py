"""Parts of mechanisms by hand, by sums over every outcome and by quadrature, and at their limits."""

import math
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy import integrate, stats

import recordwise as rw
from recordwise.errors import ParameterError
from recordwise.exact.functions import log, x
from recordwise.mechanisms import accuracy, base, calibration, combined, inverses, key_selection, quantile
from recordwise.mechanisms.combined import Carried, Refined, carried_from
from recordwise.mechanisms.key_selection import SelectionLaw
from recordwise.mechanisms.quantile import Grid, TreeQuantile
from recordwise.noise import DiscreteGaussian, Seeded

F = Fraction


# Whole numbers, and ends of intervals.


def test_totals_are_whole_numbers_of_any_size() -> None:
    small = base.whole_totals([1, -2])
    assert (small.dtype, small.tolist()) == (np.int64, [1, -2])
    assert base.whole_totals([]).dtype == np.int64
    assert base.whole_totals([-1, 2**63]).tolist() == [-1, 2**63]
    assert base.whole_totals(np.array([5, 2**61 - 1], np.uint64)).dtype == np.int64
    assert base.whole_totals(np.array([5, 2**63], np.uint64)).tolist() == [5, 2**63]
    assert base.whole_totals([[1, 2], [3, 4]]).shape == (2, 2)
    for bad in ([1.0], np.array([1.0]), [True], ["1"], [None], np.array([2.5], object), np.array([True])):
        with pytest.raises(ParameterError, match="totals"):
            base.whole_totals(bad)
    assert base.integers([2**62 - 1, -(2**62) + 1], (2,)).dtype == np.int64
    assert base.integers([2**62], (1,)).dtype == object
    assert base.integers([-(2**62)], (1,)).dtype == object
    assert base.times(np.array([3, -4]), 5).tolist() == [15, -20]
    assert base.times(np.array([2**40]), 2**21 - 1).dtype == np.int64
    assert base.times(np.array([2**40]), 2**21).tolist() == [2**61]
    assert base.times(np.array([2**60]), 2**10).tolist() == [2**70]
    assert [base.largest(np.array(each)) for each in ([3, -7], [7, -3], [-5], [])] == [7, 7, 5, 0]
    assert base.to_floats(np.array([3, 21]), F(1, 10)).tolist() == [0.3, 2.1]
    assert base.to_floats(np.array([3, 21]), F(7)).tolist() == [21, 147]


def test_ends_on_a_lattice_are_its_points_and_outward_where_floats_are_too_short() -> None:
    low, high = base.lattice_ends(np.array([3, 40]), 5, F(1, 10))
    assert (low.tolist(), high.tolist()) == ([-0.2, 3.5], [0.8, 4.5])
    big = 2**53 // 3
    low, high = base.lattice_ends(np.array([big, 7]), 2, F(3))
    assert (low[1], high[1]) == (15, 27)
    assert low[0] == 3 * (big - 2)
    assert F(high[0]) > 3 * (big + 2)
    low, high = base.lattice_ends(np.array([-big, 7]), 2, F(3))
    assert F(low[0]) < -3 * (big + 2)
    low, high = base.lattice_ends(np.array([7]), 2, F(1, 2**53))
    assert F(low[0]) < F(5, 2**53)
    assert F(high[0]) > F(9, 2**53)


def test_ends_are_rounded_outward_at_the_last_digit_of_their_decade() -> None:
    exponents = base.last_digits(lambda total: 3.0 + total / 10)
    # One scale of noise is worth 3 at 0: the last digit is that of hundredths, then two below a tenth of the number.
    decade = {10.0**power: int(exponents[power + 40]) for power in range(-2, 6)}
    assert decade == {0.01: -2, 0.1: -2, 1.0: -2, 10.0: -2, 100.0: -1, 1000.0: 0, 10000.0: 1, 100000.0: 2}
    ends = np.array([0.0, 0.126, 1.0, 123.456, 12345.6, 1e300])
    assert base.rounded(ends, exponents, up=False).tolist()[:5] == [0, 0.12, 1.0, 123.4, 12340]
    assert base.rounded(ends, exponents, up=True).tolist()[:5] == [0, 0.13, 1.0, 123.5, 12350]
    coarse = base.last_digits(lambda total: 5000.0 + 0 * total)
    assert int(coarse[40]) == 1
    assert base.rounded(np.array([3.0, 17.0]), coarse, up=True).tolist() == [10, 20]
    assert base.clean_difference(np.array([0.3, 5.0, math.inf]), np.array([0.1, 7.5, 1.0])).tolist() == [
        0.2,
        -2.5,
        math.inf,
    ]
    assert base.clean_difference(np.array([1e300]), np.array([1.0])).tolist() == [1e300]


def test_differences_of_decimals_are_decimals() -> None:
    numbers = ("0.1", "-0.7", "1.1", "-12345.6", "1000.1", "-987654321.3", "0.0003", "-5")
    for left in numbers:
        for right in numbers:
            found = base.clean_difference(np.array([float(left)]), np.array([float(right)]))
            assert float(found[0]) == float(Decimal(left) - Decimal(right))


def test_steps_and_confidences_are_within_their_limits() -> None:
    assert base.read_confidence(0.5) == 0.5
    for bad in (0.0, 1.0, -0.1, 1.5):
        with pytest.raises(ParameterError):
            base.read_confidence(bad)
    with pytest.raises(ParameterError, match="sigm"):
        rw.Gaussian(sigm=3)  # type: ignore[call-arg]


def test_cells_are_filled_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "BLOCK", 4)
    points = np.arange(10).reshape(2, 5)
    first, second = base.filled(points, 2, lambda part: (part * 2.0, part + 1.0))
    assert first.tolist() == (points * 2.0).tolist()
    assert second.tolist() == (points + 1.0).tolist()


# Calibration.


@pytest.mark.parametrize("wanted", [0.003, 1.0, 7.7, 5000.0])
def test_a_solution_is_on_the_safe_side_and_twelve_digits_close(wanted: float) -> None:
    rising = calibration.solve(lambda parameter: float(parameter) ** 3, wanted, rising=True)
    falling = calibration.solve(lambda parameter: 1 / float(parameter) ** 2, wanted, rising=False)
    assert float(rising) ** 3 <= wanted
    assert float(rising) == pytest.approx(wanted ** (1 / 3), rel=5e-12)
    assert 1 / float(falling) ** 2 <= wanted
    assert float(falling) == pytest.approx(wanted**-0.5, rel=5e-12)


def test_goals_that_nothing_reaches_are_refused() -> None:
    for bad, rising in ((lambda _: 0.0, True), (lambda _: 2.0, True), (lambda _: 2.0, False)):
        with pytest.raises(ParameterError, match="no solution"):
            calibration.solve(bad, 1.0, rising=rising)
    assert calibration._bracket(lambda parameter: parameter > 20) == (16.0, 256.0)
    assert calibration._bracket(lambda parameter: parameter > F(1, 20)) == (1 / 256, 1 / 16)


def test_goals_of_gaussian_noise_by_hand() -> None:
    assert calibration.gaussian_variance({"variance": "2.5"}) == F(5, 2)
    assert calibration.plain_step(F(1000)) == 1
    assert calibration.plain_step(F("12.50")) == F(1, 10)
    assert calibration.plain_step(F(1, 3)) == F(1, 3)
    sigma = calibration.lattice_sigma(12, 0.9)
    for factor, met in ((1, True), (F(1_000_001, 1_000_000), False)):
        assert (2 * float(DiscreteGaussian(sigma * factor).sf_upper(13)) <= 0.1) == met
    goals = {"relative_error": "0.05", "at_total": 250, "confidence": 0.9}
    assert calibration.gaussian_variance(goals) == sigma**2
    halves = calibration.gaussian_variance(goals | {"step": "1/2"})
    assert halves == (calibration.lattice_sigma(25, 0.9) / 2) ** 2
    assert calibration.relative_goal({"at_total": 7}) == (7, 0.95)
    assert calibration.loss_for(F(4), "0.3", {}) == F(3, 10)
    assert calibration.loss_for(F(4), None, {"variance": 2}) == 4
    for bad in ({}, {"rho": 1, "sigma": 1}, {"sigma": 1, "at": 1}, {"variance": 1, "confidence": 0.5}):
        with pytest.raises(ParameterError):
            calibration.only_goal({"rho": None, "sigma": None, "variance": None} | bad)
    assert calibration.only_goal({"rho": 1, "at": 2, "sigma": None}) == "rho"
    for missing in ({"relative_error": 1}, {"at_total": None}):
        with pytest.raises(ParameterError, match="at_total"):
            calibration.relative_goal(missing)


# Inverses, by quadrature.


INVERSES: dict[str, tuple[Any, Any]] = {
    "square": (inverses.PolynomialInverse((0.0, 0.0, 1.0)), lambda v: v**2),
    "mixed": (inverses.PolynomialInverse((0.5, 2.0, 0.25, 1.5)), lambda v: 0.5 + 2 * v + v**2 / 4 + 1.5 * v**3),
    "fifth": (inverses.PolynomialInverse((0.0, 0.0, 0.0, 0.0, 0.0, 1.0)), lambda v: v**5),
    "exponential": (inverses.ExponentialInverse(), np.exp),
}
NODES, WEIGHTS = hermegauss(80)


def mean(function: Any, mu: float, sigma: float) -> float:
    """Under normal noise."""
    return float((function(mu + sigma * NODES) * WEIGHTS).sum() / math.sqrt(2 * math.pi))


@pytest.mark.parametrize("name", INVERSES)
@pytest.mark.parametrize("mu, sigma", [(0.8, 0.3), (2.1, 0.7)])
def test_gaussian_estimators_are_unbiased_and_have_the_variance_that_they_say(
    name: str, mu: float, sigma: float
) -> None:
    inverse, phi = INVERSES[name]
    assert mean(lambda v: inverse.gaussian_mean(v, sigma), mu, sigma) == pytest.approx(float(phi(mu)))
    spread = mean(lambda v: (inverse.gaussian_mean(v, sigma) - phi(mu)) ** 2, mu, sigma)
    assert float(inverse.gaussian_variance(np.array([mu]), sigma)[0]) == pytest.approx(spread)
    assert mean(lambda v: inverse.gaussian_variance_unbiased(v, sigma), mu, sigma) == pytest.approx(spread)
    if name == "exponential":
        assert mean(lambda v: inverse.gaussian_deviation(v, sigma), mu, sigma) == pytest.approx(math.sqrt(spread))
    assert inverse.monotone(np.array([mu]))[0] == pytest.approx(float(phi(mu)))
    for h in (0.5, 0.01):
        value, slope, second = (float(part[0]) for part in inverse.stencil(np.array([mu]), h))
        assert value == pytest.approx(float(phi(mu)))
        assert slope == pytest.approx(float(phi(mu + 1e-6) - phi(mu - 1e-6)) / 2e-6, rel=1e-6)
        assert second == pytest.approx(float(phi(mu + h) - 2 * phi(mu) + phi(mu - h)) / h**2, rel=1e-7)
        assert inverse.rise(mu, h) == pytest.approx(float(phi(mu + h) - phi(mu)) / h, rel=1e-9)


def laplace_integral(function: Any, mu: float, scale: float, cut: float) -> float:
    """E function(mu + Laplace noise), below the cut and above it apart."""
    density = lambda v: function(v) * math.exp(-abs(v - mu) / scale) / (2 * scale)  # noqa: E731
    ends = (mu - 60 * scale, min(cut, mu), max(cut, min(mu, cut)), mu, mu + 60 * scale)
    points = sorted({each for each in ends if mu - 60 * scale <= each})
    return sum(integrate.quad(density, a, b, limit=200)[0] for a, b in pairwise(points))


@pytest.mark.parametrize("name", [*INVERSES, "function"])
@pytest.mark.parametrize("mu", [0.9, 1.6])
def test_laplace_variances_are_those_of_quadrature(name: str, mu: float) -> None:
    function = (x + 2) ** "5/2"
    inverse, phi = INVERSES.get(name, (inverses.FunctionInverse(function), lambda v: (v + 2) ** 2.5))
    zero, scale = 0.7, 0.12
    step = 1e-4

    def estimate(v: float) -> float:
        if v <= zero:
            return float(phi(zero)) - scale * float(phi(zero + step) - phi(zero - step)) / (2 * step)
        return float(phi(v)) - scale**2 * float(phi(v + step) - 2 * phi(v) + phi(v - step)) / step**2

    spread = laplace_integral(lambda v: (estimate(v) - float(phi(mu))) ** 2, mu, scale, zero)
    assert laplace_integral(estimate, mu, scale, zero) == pytest.approx(float(phi(mu)), rel=1e-6)
    found = inverse.laplace_variance(np.array([mu]), zero, scale)
    assert float(found[0]) == pytest.approx(spread, rel=1e-5)
    many = inverse.laplace_variance(np.linspace(0.7, 1.9, 400), zero, scale)
    again = inverse.laplace_variance(np.linspace(0.7, 1.9, 400)[[0, 77, 399]], zero, scale)
    np.testing.assert_allclose(many[[0, 77, 399]], again, rtol=3e-7)


@pytest.mark.parametrize("name", INVERSES)
def test_laplace_estimates_on_a_grid_are_unbiased_for_every_exact_point(name: str) -> None:
    inverse, phi = INVERSES[name]
    h, scale, zero = 0.0625, 0.2, 0.625
    grid = np.arange(-400, 401)
    law = np.exp(-np.abs(grid) * h / scale)
    law /= law.sum()
    for exact in (0, 1, 9):
        mu = zero + exact * h
        value, spread = inverses.laplace_mean(inverse, mu + grid * h, zero=zero, h=h, scale=scale)
        assert float((law * value).sum()) == pytest.approx(float(phi(mu)), rel=1e-9)
        assert spread[400] > 0


def test_a_smooth_function_is_estimated_without_bias_under_laplace_noise() -> None:
    zero, scale = 0.5, 0.2
    estimate = lambda v: float(inverses.laplace_unbiased(lambda m: m**3 + m, np.array([v]), zero=zero, scale=scale)[0])  # noqa: E731
    for mu in (0.9, 2.0):
        assert laplace_integral(estimate, mu, scale, zero) == pytest.approx(mu**3 + mu, rel=2e-3)
    with np.errstate(divide="ignore"):
        assert inverses.laplace_unbiased(lambda m: m / 0.0, np.array([1.0]), zero=zero, scale=scale)[0] == math.inf


def test_polynomials_are_read_off_expressions() -> None:
    assert inverses.polynomial_coefficients((2 * x + 3) ** 2 + x / 2) == [9, F(25, 2), 4]
    assert inverses.polynomial_coefficients(x**3 + 1) == [1, 0, 0, 1]
    assert inverses.polynomial_coefficients(log(x + 1)) is None
    assert inverses.polynomial_coefficients((x + 1) ** "1/2") is None
    assert inverses.polynomial_coefficients(x + log(x + 1)) is None
    assert inverses.polynomial_coefficients(log(x + 1) ** 2) is None
    assert isinstance(inverses.inverse_of(x**2), inverses.PolynomialInverse)
    assert isinstance(inverses.inverse_of(x ** "5/2"), inverses.FunctionInverse)
    for coefficients in ((1.0, 0.0, 3.0), (0.0, 2.0, 0.0, 5.0), (1.0, 2.0, 3.0), (4.0,), (0.0, 0.0)):
        points = np.array([-1.5, 0.0, 2.0])
        expected = sum(c * points**k for k, c in enumerate(coefficients))
        np.testing.assert_allclose(inverses.horner(coefficients, points), expected)
    function = 2 * log((x / 3 + 2) ** "3/2" + 1) ** "1/2" + x / 5
    at = np.array([0.7, 3.0])
    jet = inverses.jet(function, at)
    value = lambda v: 2 * np.log((v / 3 + 2) ** 1.5 + 1) ** 0.5 + v / 5  # noqa: E731
    np.testing.assert_allclose(jet[0], value(at))
    np.testing.assert_allclose(jet[1], (value(at + 1e-5) - value(at - 1e-5)) / 2e-5, rtol=1e-8)
    np.testing.assert_allclose(jet[2], (value(at + 1e-3) - 2 * value(at) + value(at - 1e-3)) / 1e-6, rtol=1e-5)
    np.testing.assert_allclose(inverses.slope(function, at), jet[1])
    assert inverses.slope(x ** "1/2", np.array([0.0]))[0] == math.inf


# Accuracy.


def test_laws_of_estimates_are_those_of_many_noises() -> None:
    noise = NormalDist()
    z = np.array([noise.inv_cdf((k + 0.5) / 20000) for k in range(20000)])
    u = (np.arange(20000) + 0.5) / 20000
    laplace = np.where(u < 0.5, np.log(2 * u), -np.log(2 - 2 * u))
    made = [
        (rw.RootTransform(degree=degree, offset=3, **how), sample)
        for degree in (1, 2, 3, 4)
        for how, sample in (({"sigma": "0.6"}, z), ({"laplace_scale": "0.3"}, laplace))
    ]
    made += [(rw.LogTransform(offset=3, sigma="0.4"), z), (rw.LogTransform(offset=3, laplace_scale="0.2"), laplace)]
    for mechanism, sample in made:
        law = mechanism.value_law()
        assert law is not None
        for total in (0.0, 6.0):
            values = mechanism.values_under(total, sample)
            for share in (0.1, 0.5, 0.9):
                at = float(np.quantile(values, share)) + 1e-5
                found = float(law.cdf(np.array([total]), np.array([at]))[0])
                assert found == pytest.approx(np.mean(values <= at), abs=2e-3)
            reach = float(np.quantile(np.abs(values - total), 0.8)) + 1e-5
            inside = np.mean(np.abs(values - total) <= reach)
            assert float(law.within(np.array([total]), np.array([reach]))[0]) == pytest.approx(inside, abs=2e-3)
    assert rw.RootTransform(degree=5, offset=3, sigma="0.2").value_law() is None


def test_reaches_are_the_smallest_for_each_total() -> None:
    totals = np.array([1.0, 30.0, 700.0])
    found = accuracy.smallest(lambda reach: np.minimum(reach / totals, 1.0), 0.3, np.array([5.0, 5.0, 5.0]))
    np.testing.assert_allclose(found, 0.3 * totals, rtol=2e-12)
    assert np.all(found / totals >= 0.3)
    assert accuracy.short(F(1, 3), up=False) == F(333333, 10**6)
    assert accuracy.short(F(1, 3), up=True) == F(333334, 10**6)
    law = DiscreteGaussian("1.7")
    points = np.array([-40.0, -3.0, 0.0, 2.0, 40.0])
    np.testing.assert_allclose(accuracy.lattice_cdf(points, 1.7), law.cdf(points.astype(int).tolist()), atol=1e-12)
    np.testing.assert_allclose(accuracy.lattice_cdf(points, 1000.5), stats.norm.cdf((points + 0.5) / 1000.5), rtol=1e-9)
    np.testing.assert_allclose(accuracy.lattice_cdf(points, 1000.0), stats.norm.cdf((points + 0.5) / 1000.0), atol=1e-6)


def test_many_totals_are_interpolated_and_few_are_not() -> None:
    asked: list[int] = []

    def solved(points: Any) -> Any:
        asked.append(len(points))
        return np.sqrt(points + 1)

    few = np.repeat(np.arange(1024.0), 9)
    np.testing.assert_array_equal(accuracy.over_totals(solved, few), np.sqrt(few + 1))
    many = np.arange(1025.0)
    np.testing.assert_allclose(accuracy.over_totals(solved, many), np.sqrt(many + 1), rtol=1e-4)
    late = np.concatenate([np.zeros(8192), np.arange(1025.0)])
    np.testing.assert_allclose(accuracy.over_totals(solved, late), np.sqrt(late + 1), rtol=1e-4)
    assert asked == [1024, 1025, 1025]


def test_error_and_chance_of_clamped_sums_by_adding_up() -> None:
    made, step = rw.Clamped(to=20, rho="0.5"), "1/2"
    at = np.arange(-2000, 2001) / 2
    law = np.exp(-(at**2) / (2 * float(made.noise_sigma) ** 2))
    law /= law.sum()
    totals, kept = np.array([90.0, 50.0, 300.0]), np.array([80.0, 50.0, 140.5])
    reach = np.array([25.0, 10.25, 170.0])
    chances = [float(law[np.abs(at - (total - k)) <= r].sum()) for total, k, r in zip(totals, kept, reach)]
    np.testing.assert_allclose(made.chances(totals, reach, step=step, kept=kept), chances, atol=1e-9)
    errors = [float((law * np.abs(at - (total - k))).sum()) for total, k in zip(totals, kept)]
    np.testing.assert_allclose(made.mean_errors(totals, step=step, kept=kept), errors, rtol=1e-9)
    wide = rw.Clamped(to=20_000, rho="0.01")
    bias, sigma = 30_000.0, float(wide.noise_sigma)
    expected = sigma * math.sqrt(2 / math.pi) * math.exp(-((bias / sigma) ** 2) / 2) + bias * (
        1 - 2 * stats.norm.cdf(-bias / sigma)
    )
    np.testing.assert_allclose(wide.mean_errors(np.array([bias]), kept=np.zeros(1)), expected, rtol=1e-6)
    met = made.meets(totals, reach, confidence=chances[0], step=step, kept=kept)
    assert met.tolist() == [each >= chances[0] - 1e-9 for each in chances]
    assert made.most_noise(90.0, 9.75, confidence=0.9, step=step, kept=80.0) is None
    assert made.most_noise(90.0, 10.25, confidence=0.3, step=step, kept=80.0) is not None
    assert [made.realized_loss(7, each) for each in (10, 20, 30, -30)] == pytest.approx([0.125, 0.5, 0.5, 0.5])


# Answers of several draws.


def test_refined_answers_are_weighted_by_their_precisions() -> None:
    made = Refined(before=rw.Gaussian(sigma=3), more=rw.Gaussian(sigma=6))
    assert (made.precision, made.weight) == (F(5, 36), F(4, 5))
    assert float(made.noise_sigma or 0) == pytest.approx(6 / math.sqrt(5))
    assert float(made.variance(0.0)) == pytest.approx(
        0.64 * DiscreteGaussian(3).variance + 0.04 * DiscreteGaussian(6).variance
    )
    first, second = (rw.Gaussian(sigma=sigma).release([10, 20], step=2, rng=Seeded(4)) for sigma in (3, 6))
    drawn = made.combine(first.values(), second)
    np.testing.assert_allclose(drawn.values(), 0.8 * first.values() + 0.2 * second.values())
    assert made.loss_at_shift(4) == pytest.approx(16 / 18 + 16 / 72)
    assert made.realized_loss(9, 4) == pytest.approx(16 / 18 + 16 / 72)
    assert made.policy("emp") == rw.Gaussian(sigma=3).policy("emp") + rw.Gaussian(sigma=6).policy("emp")
    shared = made.shared(F(1, 4))
    assert (shared.before, shared.more) == (rw.Gaussian(sigma=6), rw.Gaussian(sigma=12))
    mixed = Refined(before=rw.Clamped(to=9, rho=1), more=rw.Gaussian(sigma=6))
    assert (made.loss_of_sum, mixed.loss_of_sum) == (True, False)


@pytest.mark.parametrize("draws", [((3.0, 0.8), (6.0, 0.2)), ((0.6, 0.5), (0.9, 0.5)), ((2.0, 1.0),)])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
def test_the_reach_of_an_average_covers_and_is_close(draws: Any, confidence: float) -> None:
    found = combined.averaged_reach(draws, confidence)
    law: dict[float, float] = {0.0: 1.0}
    for sigma, weight in draws:
        points = np.arange(-math.ceil(9 * sigma), math.ceil(9 * sigma) + 1)
        mass = np.exp(-((points / sigma) ** 2) / 2)
        mass /= mass.sum()
        sums: dict[float, float] = {}
        for at, chance in law.items():
            for point, own in zip(points.tolist(), mass.tolist()):
                key = round(at + weight * point, 9)
                sums[key] = sums.get(key, 0.0) + chance * own
        law = sums
    spread = math.sqrt(sum((sigma * weight) ** 2 for sigma, weight in draws))
    assert sum(chance for at, chance in law.items() if abs(at) <= found + 1e-9) >= confidence
    assert sum(chance for at, chance in law.items() if abs(at) <= found - (1 + len(draws)) * spread / 1000) < confidence


def test_reaches_of_wide_averages_and_their_rounded_ends() -> None:
    assert combined.averaged_reach(((1001.0, 0.5), (10.0, 0.5)), 0.9) == pytest.approx(
        NormalDist().inv_cdf(0.95) * math.sqrt(500.5**2 + 25) + 0.5
    )
    low, high = combined._outward_ends(np.array([10.123456, -4.0]), 12.3456)
    assert (low.tolist(), high.tolist()) == ([-2.23, -16.35], [22.47, 8.35])
    low, high = combined._outward_ends(np.array([12345678.0]), 4567890.0)
    assert (low.tolist(), high.tolist()) == ([7777000], [16914000])


def test_carried_noise_by_hand() -> None:
    first = carried_from(None, rw.Gaussian(sigma=5), carry=F(0), leave=F(3, 5))
    assert (first.carry, first.leave, first.before, first.noise_variance) == (0, F(3, 5), None, 25)
    going = F(1_000_001, 1_000_000) * F(9, 25) / (25 * F(16, 25))
    assert first.going == going
    assert float(first.paid().noise_sigma) == pytest.approx(1 / math.sqrt(1 / 25 + float(going)))
    second = carried_from(first, rw.Gaussian(sigma=5), carry=F(3, 5), leave=F(3, 5))
    assert second.more.noise_sigma is not None
    assert float(second.more.noise_sigma) == pytest.approx(4, rel=1e-5)
    assert second.keeps_variance
    assert float(second.noise_variance) == pytest.approx(25, rel=1e-5)
    assert second.draws()[0] == (5, F(3, 5), 1)
    assert second.draws()[1][1:] == (1, 5)
    assert not first.keeps_variance
    revised = carried_from(second, rw.Gaussian(sigma=6), carry=F(1), leave=F(3, 5))
    assert revised.more.noise_sigma is not None
    assert float(revised.more.noise_sigma) ** 2 == pytest.approx(11, rel=1e-4)
    third = carried_from(revised, rw.Gaussian(sigma=6), carry=F(3, 5), leave=F(0))
    assert third.going == 0
    assert third.paid().noise_sigma <= third.more.noise_sigma  # type: ignore[operator]
    for before, after, carry in (
        (first, rw.Gaussian(sigma=4), F(3, 5)),
        (first, rw.Gaussian(sigma=5), F(1, 2)),
        (rw.Gaussian(sigma=5), rw.Gaussian(sigma=5), F(3, 5)),
        (second, rw.Gaussian(sigma=5), F(1)),
        (rw.Clamped(to=5, rho=1), rw.Gaussian(sigma=5), F(1)),
        (first, rw.Clamped(to=5, rho=1), F(3, 5)),
    ):
        with pytest.raises(ParameterError):
            carried_from(before, after, carry=carry, leave=F(0))
    assert carried_from(
        Refined(before=rw.Gaussian(sigma=5), more=rw.Gaussian(sigma=5)), rw.Gaussian(sigma=5), carry=F(1), leave=F(0)
    )


def test_what_follows_an_answer_keeps_a_part_of_its_noise() -> None:
    own = Carried(more=rw.Gaussian(sigma=4), before=Carried(more=rw.Gaussian(sigma=5)), carry="3/5")
    earlier, old, now = np.array([13.5, 41.0]), [12, 40], [20, 30]
    made = own.following(earlier, old)
    noisy = made.release(now, step="1/2", rng=Seeded(3))
    alone = rw.Gaussian(sigma=4).release([5 * 20 - 3 * 12, 5 * 30 - 3 * 40], step="1/10", rng=Seeded(3))
    np.testing.assert_allclose(noisy.values(), 0.6 * earlier + alone.values())
    assert (noisy.grid, noisy.step) == (F(1, 2), F(1, 2))
    assert own.following(None) == rw.Gaussian(sigma=own.noise_sigma)
    assert own.noise_variance == 25
    assert own.started(1) == (5, 1, 1)
    assert own.started(0) == (5, F(3, 5), 1)
    spread = float(own.variance(0.0, step="1/2"))
    assert spread == pytest.approx(0.36 * 25 + 16, rel=1e-6)
    # The change has the fresh noise and two fifths of the earlier one.
    reach = own.change_reach("1/2", 0.9)
    assert reach == pytest.approx(NormalDist().inv_cdf(0.95) * math.sqrt(16 + 0.16 * 25), rel=0.02)


# Selection.


def test_selected_counts_by_adding_up() -> None:
    law = SelectionLaw(sigma=F(3, 2), threshold=12)
    at = np.arange(-200, 400)
    for count in (1, 5, 12, 30):
        mass = np.exp(-((at - count) ** 2) / (2 * 1.5**2))
        mass /= mass.sum()
        assert law.keep_probability(count) == pytest.approx(float(mass[at >= 12].sum()), rel=1e-9)
        kept = np.where(at >= 12, mass, 0)
        kept /= kept.sum()
        for value in (12, 14, 33):
            found = key_selection._at_least(law, np.array([value]), np.array([count]))
            assert float(found[0]) == pytest.approx(float(kept[at >= value].sum()), rel=1e-7)
        average = float((kept * at).sum())
        deviation = math.sqrt(float((kept * (at - average) ** 2).sum()))
        assert float(key_selection._deviations(law, np.array([count]))[0]) == pytest.approx(deviation, rel=1e-7)
    told = law.group_loss([1, 0, 3])
    assert told.rho == pytest.approx(10 / 4.5)
    hidden = [1 - law.keep_probability(count) for count in (1, 3)]
    assert told.delta == pytest.approx(1 - hidden[0] * hidden[1], rel=1e-9)
    assert law.group_loss([]).delta == 0
    assert law.group_loss([500]).delta == 1
    made = SelectionLaw.for_delta(rho="2/9", delta="1e-3")
    assert made.sigma == F(3, 2)
    tail = made.noise.sf_upper(made.threshold - 1)
    assert tail <= 1e-3 < made.noise.sf_upper(made.threshold - 2)
    deltas = dict(made.deltas())
    assert deltas[1] == F(float(tail))
    assert list(deltas)[:3] == [1, 2, 3]
    assert 1 - float(deltas[max(deltas)]) <= 1e-6


def test_distinct_numbers_and_empty_cells() -> None:
    for bound, count in ((10, 0), (10, 10), (10, 4), (10, 6), (1, 1), (1000, 3)):
        found = key_selection.distinct_below(bound, count, Seeded(5))
        assert len(set(found.tolist())) == count
        assert sorted(found.tolist()) == found.tolist()
        assert all(0 <= each < bound for each in found.tolist())
    seen = {tuple(key_selection.distinct_below(4, 2, Seeded(seed)).tolist()) for seed in range(200)}
    assert len(seen) == 6
    with pytest.raises(ParameterError):
        key_selection.distinct_below(4, -1, Seeded(1))
    law = SelectionLaw(sigma=F(5), threshold=3)
    occupied = np.array([1, 2, 7])
    empty = key_selection.passing_empty_cells(60, occupied, law, Seeded(8))
    assert len(empty.positions) == len(empty.noisy) > 5
    assert not set(empty.positions.tolist()) & {1, 2, 7}
    assert int(empty.noisy.min()) >= 3
    assert int(empty.positions.max()) < 60
    everything = key_selection.passing_empty_cells(
        6, np.array([0, 3]), SelectionLaw(sigma=F(1), threshold=-50), Seeded(1)
    )
    assert everything.positions.tolist() == [1, 2, 4, 5]


# Quantiles.


def test_trees_are_solved_as_least_squares_solves_them() -> None:
    rng = np.random.default_rng(3)
    leaves = rng.integers(0, 9, (2, 8))
    levels = quantile.exact_levels(leaves)
    assert [each.shape for each in levels] == [(2, 2), (2, 4), (2, 8)]
    assert levels[0].tolist() == [[row[:4].sum(), row[4:].sum()] for row in leaves]
    noisy = [each + rng.integers(-3, 4, each.shape) for each in levels]
    rows = [np.kron(np.eye(8 // width), np.ones(width)) for width in (4, 2, 1)]
    design = np.concatenate(rows)
    for cell in range(2):
        answers = np.concatenate([each[cell] for each in noisy])
        expected = np.linalg.lstsq(design, answers, rcond=None)[0]
        np.testing.assert_allclose(quantile.consistent_leaves(noisy)[cell], expected)
    covariance = np.linalg.inv(design.T @ design)
    for p in (0.3, 0.5):
        for upto in range(8):
            form = (np.arange(8) <= upto) - p
            assert quantile.excess_variance(3, p)[upto] == pytest.approx(form @ covariance @ form)
    made = TreeQuantile(grid=Grid.linear(0, 7, bits=3), rho="0.1")
    assert made.noise_sigma**2 >= 15
    assert float(made.noise_sigma) == pytest.approx(math.sqrt(15))
    assert made.shared(F(1, 2)).rho == F(1, 20)
    assert float(made.policy("emp").loss({"emp": 3})) == pytest.approx(0.1)
    values = np.array([[-1.0, 2.0, -3.0, 5.0], [1.0, 1.0, 1.0, 1.0], [-1.0, -1.0, -1.0, -1.0]])
    assert quantile.isotonic_root(values).tolist() == [3, 0, 3]
    excess = np.array([[-5.0, -1.0, 1.0, 6.0], [3.0, 4.0, 5.0, 6.0], [-6.0, -5.0, -4.0, -3.0]])
    low, high = quantile._quantile_range(excess, np.full(4, 2.0))
    assert (low.tolist(), high.tolist()) == ([0, -1, 2], [3, 0, 3])


@pytest.mark.parametrize(
    "make",
    [
        lambda: Grid.log(0, 5),
        lambda: Grid.linear(-1, 5),
        lambda: Grid.linear(5, 5),
        lambda: Grid.linear(6, 5),
        lambda: Grid.linear(10**6 - 1, 10**6 - 1 + F(1, 2)),
        lambda: Grid(spacing="even", low=F(1), high=F(2), bits=3),  # type: ignore[arg-type]
        lambda: Grid.linear(1, 5, bits=True),
        lambda: TreeQuantile(grid="x", rho=1),  # type: ignore[arg-type]
        lambda: TreeQuantile(grid=Grid.linear(1, 5), rho=0),
    ],
)
def test_grids_that_make_no_sense_are_refused(make: Any) -> None:
    with pytest.raises(ParameterError):
        make()


def test_points_of_grids_by_hand() -> None:
    assert Grid.linear(0, 10).bits == Grid.log(1, 10).bits == 10
    assert Grid.linear(3, 10, bits=3).steps(F(1)) == tuple(range(3, 11))
    assert Grid.linear(3, 10, bits=2).steps(F(1, 2)) == (6, 10, 15, 20)
    assert Grid.log(1, 1000, bits=2).steps(F(1)) == (1, 10, 100, 1000)
    assert Grid.log(1, 1000, bits=2).steps(F(1, 2)) == (2, 20, 200, 2000)
    assert Grid.log(2, 300, bits=2).steps(F(1)) == (
        2,
        math.floor(2 * 150 ** (1 / 3)),
        math.floor(2 * 150 ** (2 / 3)),
        300,
    )
    assert Grid.linear(3, 10, bits=2).bins(np.array([0, 6, 7, 10, 11, 99]), F(1, 2)).tolist() == [0, 0, 1, 1, 2, 3]
    assert Grid.linear(10**6 - 1, 10**6).size == 1024
    assert Grid.from_json({"spacing": "log", "low": "1/2", "high": "9", "bits": 4}) == Grid.log("0.5", 9, bits=4)
