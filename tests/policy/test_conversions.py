"""A loss in other currencies: the published numbers, the direction of rounding, and what is refused."""

import math
from random import Random

import mpmath
import numpy as np
import pytest
from flint import arb

from divergences import ROUNDING, zcdp
from recordwise.errors import ParameterError
from recordwise.exact.functions import log, x
from recordwise.exact.numbers import working_precision
from recordwise.policy import (
    additive,
    constant,
    delta_at,
    discrete_laplace_zcdp,
    epsilon,
    expected_log_odds,
    gaussian_sum,
    gaussian_transform,
    gdp_epsilon,
    log_odds_tail,
    meaning,
    power_gaussian,
    power_zcdp,
    pure_to_zcdp,
    rho_for_epsilon,
    split,
)
from recordwise.policy.meaning import _epsilon_at, _epsilon_float, _least, gdp_delta, gdp_epsilon_of

mpmath.mp.dps = 60
DELTA = 1e-5


@pytest.mark.theorem("T-EPSILON")
@pytest.mark.parametrize("rho, zcdp, gdp", [(0.1, 1.914, 1.760), (1, 7.077, 6.573), (5, 19.05, 17.86)])
def test_epsilon_of_a_loss_is_the_published_number(rho: float, zcdp: float, gdp: float) -> None:
    assert epsilon(rho, DELTA) == pytest.approx(zcdp, rel=3e-4)
    assert gdp_epsilon_of(rho, DELTA) == pytest.approx(gdp, rel=3e-4)


def conversion(rho: float, delta: float, order: mpmath.mpf) -> mpmath.mpf:
    """epsilon at one order of the conversion of Canonne, Kamath and Steinke."""
    return order * rho + (
        mpmath.log(1 / mpmath.mpf(delta)) + (order - 1) * mpmath.log(1 - 1 / order) - mpmath.log(order)
    ) / (order - 1)


@pytest.mark.theorem("T-EPSILON")
@pytest.mark.costly
def test_epsilon_is_the_smallest_over_all_orders_and_never_below_it() -> None:
    rng = Random(1)
    for _ in range(60):
        rho, delta = 10 ** rng.uniform(-6, 3), 10 ** rng.uniform(-12, -1)
        coarse = min(range(-50, 90), key=lambda t: conversion(rho, delta, 1 + mpmath.mpf(10) ** (mpmath.mpf(t) / 10)))
        fine = (1 + mpmath.mpf(10) ** (mpmath.mpf(coarse) / 10 + mpmath.mpf(t) / 1000) for t in range(-100, 101))
        best = min(conversion(rho, delta, order) for order in fine)
        found = epsilon(rho, delta)
        assert found <= max(best, 0) * (1 + mpmath.mpf("1e-9")) + mpmath.mpf("1e-12")
        assert found >= best * (1 - mpmath.mpf("1e-4"))


def test_rho_for_epsilon_and_delta_at_invert_epsilon_on_the_safe_side() -> None:
    rng = Random(2)
    for _ in range(20):
        rho, delta = 10 ** rng.uniform(-4, 2), 10 ** rng.uniform(-12, -2)
        back = rho_for_epsilon(epsilon(rho, delta), delta)
        assert epsilon(back, delta) <= epsilon(rho, delta)
        assert back == pytest.approx(rho, rel=1e-6)
        assert delta_at(rho, epsilon(rho, delta)) == pytest.approx(delta, rel=1e-5)


def test_epsilon_grows_with_the_loss_and_falls_with_delta() -> None:
    grid = [10 ** (i / 10 - 5) for i in range(80)]
    values = [epsilon(rho, DELTA) for rho in grid]
    assert values == sorted(values)
    shares = [epsilon(1.0, 10.0**-k) for k in range(1, 15)]
    assert shares == sorted(shares)
    assert epsilon(0, DELTA) == 0
    assert epsilon(math.inf, DELTA) == math.inf


@pytest.mark.theorem("T-EPSILON")
def test_the_gdp_number_solves_its_equation_from_above() -> None:
    for rho in (0.01, 0.5, 3.0):
        mu, eps = mpmath.sqrt(2 * mpmath.mpf(rho)), mpmath.mpf(gdp_epsilon_of(rho, DELTA))
        delta = mpmath.ncdf(mu / 2 - eps / mu) - mpmath.exp(eps) * mpmath.ncdf(-mu / 2 - eps / mu)
        assert delta <= DELTA
        assert delta >= mpmath.mpf(DELTA) * (1 - mpmath.mpf("1e-9"))


@pytest.mark.theorem("T-EPSILON")
@pytest.mark.costly
def test_the_gdp_number_is_not_one_float_too_small_where_that_float_breaks_the_bound() -> None:
    def delta_of(rho: float, eps: float) -> mpmath.mpf:
        mu, exact = mpmath.sqrt(2 * mpmath.mpf(rho)), mpmath.mpf(eps)
        return mpmath.ncdf(mu / 2 - exact / mu) - mpmath.exp(exact) * mpmath.ncdf(-mu / 2 - exact / mu)

    tight = 0
    with mpmath.workdps(60):
        for rho in (place / 64 for place in range(1, 201)):
            found = gdp_epsilon_of(rho, DELTA)
            assert delta_of(rho, found) <= DELTA
            tight += delta_of(rho, math.nextafter(found, 0)) > DELTA
    # Otherwise a number one float lower would have passed as well.
    assert tight > 0


def test_the_gdp_number_is_refused_for_lattices_of_few_steps() -> None:
    coarse = gaussian_transform("emp", log(x + 1), sigma=1, grid="1/999")
    fine = gaussian_transform("emp", log(x + 1), sigma=1, grid="1/1000")
    assert gdp_epsilon(fine, {"emp": 10}, DELTA) < epsilon(fine.loss({"emp": 10}), DELTA)
    for policy in (coarse, fine + coarse, constant(1), split(1, {"emp": 5}), gaussian_sum("emp", sigma=0.7)):
        with pytest.raises(ParameterError, match="GDP"):
            gdp_epsilon(policy, {"emp": 10}, DELTA)


@pytest.mark.theorem("T-EPSILON")
def test_lattice_noise_of_few_steps_is_worse_than_gaussian_dp() -> None:
    """sigma = 0.7 steps, shift 1: the exact hockey stick needs epsilon 6.956 where GDP says 6.652."""
    sigma = 0.7
    rho = 1 / (2 * sigma**2)
    weights = {z: mpmath.exp(-(mpmath.mpf(z) ** 2) / (2 * sigma**2)) for z in range(-60, 61)}
    total = sum(weights.values())

    def delta(eps: float) -> mpmath.mpf:
        terms = (weights.get(z - 1, mpmath.mpf(0)) - mpmath.exp(eps) * weights[z] for z in range(-60, 61))
        return sum(max(term, mpmath.mpf(0)) for term in terms) / total

    low, high = 0.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if delta(middle) > DELTA else (low, middle)
    assert high == pytest.approx(6.956, abs=2e-3)
    assert gdp_epsilon_of(rho, DELTA) == pytest.approx(6.652, abs=2e-3)
    assert epsilon(rho, DELTA) >= high


@pytest.mark.theorem("T-PURE")
def test_pure_to_zcdp_is_the_worst_case_of_randomised_response() -> None:
    """Randomized response attains eps*tanh(eps/2) in the limit of order 1, and no order exceeds it."""
    for eps in (0.1, 1.0, 3.0):
        yes = mpmath.exp(eps) / (1 + mpmath.exp(eps))
        bound = mpmath.mpf(pure_to_zcdp(eps))
        for order in [1 + mpmath.mpf(10) ** k for k in range(-6, 4)]:
            divergence = mpmath.log(yes**order * (1 - yes) ** (1 - order) + (1 - yes) ** order * yes ** (1 - order)) / (
                order - 1
            )
            assert divergence <= order * bound
        assert eps * (2 * yes - 1) == pytest.approx(float(bound), rel=1e-12)


@pytest.mark.theorem("T-PURE")
@pytest.mark.parametrize("eps", [0.05, 0.7, 2.0, 6.0])
@pytest.mark.costly
def test_no_law_of_that_pure_loss_has_a_larger_zcdp_loss(eps: float) -> None:
    """Random laws on six points, and two that put all log-ratios at the ends; five per cent less would be exceeded."""
    rng = np.random.default_rng(5)
    bound, worst = pure_to_zcdp(eps), 0.0
    for case in range(400):
        q = rng.dirichlet(np.full(6, rng.choice([0.3, 1.0, 20.0])))
        ratio = eps * (rng.uniform(-1, 1, 6) if case % 2 else rng.choice([-1.0, 1.0], 6))
        p = q * np.exp(ratio / 2)
        log_p, log_q = np.log(p / p.sum()), np.log(q)
        # Normalizing moves all log-ratios alike; what they then are at most is the pure loss of this pair.
        pure = float(np.max(np.abs(log_p - log_q)))
        worst = max(worst, zcdp(log_p, log_q) / bound)
        assert zcdp(log_p, log_q) <= pure_to_zcdp(pure) * ROUNDING + 1e-12
        assert pure <= eps * ROUNDING
    ends = np.array([eps, 0.0]) - np.logaddexp(eps, 0.0)
    assert zcdp(ends, ends[::-1]) > 0.95 * bound
    assert worst < 1


@pytest.mark.theorem("T-LAPLACE")
@pytest.mark.parametrize("scale, shift", [(1, 1), (5, 3), (0.5, 2), (100, 250)])
@pytest.mark.costly
def test_lattice_laplace_noise_has_exactly_the_stated_zcdp_loss(scale: float, shift: int) -> None:
    """No order exceeds the formula, and order 1 (the mean log-ratio) attains it."""
    step = 1 / mpmath.mpf(scale)
    reach = int(60 * scale) + shift + 10
    pmf = {z: mpmath.exp(-abs(z) * step) * mpmath.tanh(step / 2) for z in range(-reach, reach + shift + 1)}
    bound = mpmath.mpf(discrete_laplace_zcdp(scale, shift))
    kl = sum(pmf[z] * step * (abs(z - shift) - abs(z)) for z in range(-reach, reach + 1))
    assert kl == pytest.approx(float(bound), rel=1e-9)
    for order in (mpmath.mpf("1.01"), mpmath.mpf(2), mpmath.mpf(7)):
        terms = (pmf[z] * mpmath.exp((order - 1) * step * (abs(z - shift) - abs(z))) for z in range(-reach, reach + 1))
        assert mpmath.log(sum(terms)) / (order - 1) <= order * bound


def test_the_additive_policy_says_pure_and_zcdp_where_it_can() -> None:
    policy = additive("emp", log(x + 3))
    assert policy.epsilon_pure({"emp": 9}) == pytest.approx(math.log(4), rel=1e-12)
    assert (policy * 2).epsilon_pure({"emp": 9}) == pytest.approx(2 * math.log(4), rel=1e-12)
    for mixed in (policy + constant(1), policy * "1/2", gaussian_sum("emp", sigma=1)):
        with pytest.raises(ParameterError, match="epsilon"):
            mixed.epsilon_pure({"emp": 9})


@pytest.mark.theorem("T-MEANING")
@pytest.mark.parametrize(
    "rho, gaussian, zcdp",
    [(0.01, 0.066, 0.070), (0.1, 0.116, 0.134), (0.5, 0.260, 0.336), (1, 0.409, 0.543), (5, 0.935, 0.996)],
)
def test_the_power_of_the_best_test_is_the_published_number(rho: float, gaussian: float, zcdp: float) -> None:
    assert power_gaussian(rho) == pytest.approx(gaussian, abs=6e-4)
    assert power_zcdp(rho) == pytest.approx(zcdp, abs=6e-4)


@pytest.mark.theorem("T-MEANING")
def test_no_gaussian_test_beats_the_bound_for_any_mechanism() -> None:
    for rho in [10 ** (k / 4 - 3) for k in range(28)]:
        for level in (1e-6, 0.01, 0.05, 0.5, 0.99):
            assert power_zcdp(rho, level) >= power_gaussian(rho, level) - 1e-8


@pytest.mark.theorem("T-MEANING")
def test_the_log_odds_of_gaussian_noise_stay_within_their_bounds() -> None:
    """For Gaussian noise the gain is normal with mean rho and variance 2 rho."""
    for rho in (0.01, 0.4, 3.0):
        assert expected_log_odds(rho) == rho
        for gain in (rho + 0.1, 2 * rho + 1, 5 * rho + 3):
            truth = float(mpmath.ncdf(-(gain - rho) / mpmath.sqrt(2 * rho)))
            assert truth <= log_odds_tail(rho, gain) <= 1
    assert log_odds_tail(1.0, 0.5) == 1.0
    assert log_odds_tail(0.0, 0.5) == 0.0


def test_extreme_losses_have_a_meaning() -> None:
    for rho in (0.0, 1e-300, 1e-9, 1e3, 1e12, math.inf):
        told = meaning(rho)
        assert told.epsilon >= 0
        assert 0.05 <= told.power <= 1
        assert "%" in told.sentence()
        assert "loss" in told._repr_html_()


@pytest.mark.parametrize("bad", [-1.0, math.nan, True, "1", None])
def test_what_is_no_loss_is_refused_everywhere(bad: float) -> None:
    calls = [epsilon, rho_for_epsilon, lambda r, d: gdp_epsilon_of(r, d), lambda r, _: pure_to_zcdp(r), delta_at]
    calls += [
        lambda r, _: power_zcdp(r),
        lambda r, _: power_gaussian(r),
        lambda r, _: expected_log_odds(r),
        log_odds_tail,
    ]
    for call in calls:
        with pytest.raises(ParameterError):
            call(bad, 0.1)


@pytest.mark.parametrize("bad", [0, 1, -0.1, math.nan, 2, True, "x"])
def test_what_is_no_share_is_refused(bad: float) -> None:
    for call in (epsilon, rho_for_epsilon, gdp_epsilon_of, power_zcdp, power_gaussian):
        with pytest.raises(ParameterError):
            call(1.0, bad)


def test_discrete_laplace_refuses_a_shift_that_is_no_whole_number() -> None:
    for shift in (-1, 1.5, True):
        with pytest.raises(ParameterError, match="shift"):
            discrete_laplace_zcdp(1, shift)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="scale"):
        discrete_laplace_zcdp(0, 1)


@pytest.mark.parametrize("rho", [0.001, 0.03, 0.1, 0.5, 1.7, 4.0, 30.0])
@pytest.mark.parametrize("delta", [1e-10, 1e-6, 0.01])
def test_the_gdp_number_is_the_first_float_at_which_delta_is_kept(rho: float, delta: float) -> None:
    mu, found = math.sqrt(2 * rho) * (1 + 2**-52), gdp_epsilon_of(rho, delta)
    assert gdp_delta(mu, found) <= delta < gdp_delta(mu, math.nextafter(found, 0.0))


@pytest.mark.parametrize("rho", [0.001, 0.03, 0.1, 0.5, 1.7, 4.0, 30.0])
@pytest.mark.parametrize("delta", [1e-10, 1e-6, 0.01])
def test_epsilon_is_not_below_the_exact_bound_at_the_order_it_was_found_with(rho: float, delta: float) -> None:
    best = _least(lambda t: _epsilon_float(rho, delta, math.exp(t)))
    with working_precision(400):
        exact = _epsilon_at(arb(rho), arb(delta), arb(math.exp(best)))
        assert exact <= arb(epsilon(rho, delta)) <= exact * (1 + arb(2) ** -50)


def test_an_infinite_loss_keeps_no_delta_and_no_loss_keeps_any() -> None:
    assert delta_at(math.inf, 5.0) == 1.0
    assert delta_at(0.0, 5.0) == 0.0
