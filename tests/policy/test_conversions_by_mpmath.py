"""Conversions of losses, powers of tests and laws of losses against mpmath, sums over every outcome, and their limits."""

import math
from fractions import Fraction
from importlib import import_module
from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.stats import norm

from recordwise.errors import ParameterError, UnknownFormError
from recordwise.policy import constant, gaussian_sum, loss_law
from recordwise.policy import groups as of_groups
from recordwise.policy.loss_law import LatticePart, LatticePolicy, MeaningTable, PrivacyLoss, Shift

F = Fraction
meaning: Any = import_module("recordwise.policy.meaning")
"""The module; a function of the room has its name."""


def epsilon_at(rho: float, delta: float, order: Any) -> Any:
    """Canonne, Kamath and Steinke's conversion at an order."""
    return order * rho + mpmath.log1p(-1 / order) - (mpmath.log(delta) + mpmath.log(order)) / (order - 1)


@pytest.mark.parametrize("rho, delta", [(0.01, 1e-5), (0.3, 0.01), (2.5, 1e-9), (40.0, 0.4)])
def test_epsilon_is_the_least_over_orders_by_mpmath(rho: float, delta: float) -> None:
    orders = [1 + mpmath.mpf(10) ** (mpmath.mpf(k) / 400) for k in range(-1200, 1200, 2)]
    least = min(epsilon_at(rho, delta, order) for order in orders)
    found = meaning.epsilon(rho, delta)
    assert found == pytest.approx(float(least), rel=2e-4)
    back = meaning.delta_at(rho, found)
    assert back == pytest.approx(delta, rel=1e-5)
    assert meaning.rho_for_epsilon(found, delta) == pytest.approx(rho, rel=1e-9)


def test_conversions_where_there_is_nothing_or_no_limit() -> None:
    assert meaning.epsilon(0, 0.1) == 0.0
    assert meaning.epsilon(math.inf, 0.1) == math.inf
    assert meaning.epsilon(1e-9, 0.9) == 0.0
    assert (meaning.delta_at(0, 0.5), meaning.delta_at(math.inf, 0.5), meaning.delta_at(900.0, 0.0)) == (0.0, 1.0, 1.0)
    assert (meaning.gdp_epsilon_of(0, 0.1), meaning.gdp_epsilon_of(math.inf, 0.1)) == (0, math.inf)
    assert meaning.log_odds_tail(0, 0) == 1.0
    assert meaning.log_odds_tail(0, 0.1) == 0.0
    assert meaning.log_odds_tail(0.5, 0.5) == 1.0
    assert meaning.log_odds_tail(0.5, 2.0) == pytest.approx(math.exp(-(1.5**2) / 2))
    assert meaning.check_loss(2**60 + 1) > 2**60
    assert meaning.check_loss(0) == 0.0


@pytest.mark.parametrize("mu, target", [(0.3, 0.1), (1.0, 1.0), (2.5, 0.0), (0.5, 4.0)])
def test_the_delta_of_two_normals_is_that_of_scipy(mu: float, target: float) -> None:
    exact = norm.cdf(mu / 2 - target / mu) - math.exp(target) * norm.cdf(-mu / 2 - target / mu)
    assert meaning.gdp_delta(mu, target) == pytest.approx(exact, rel=1e-6)
    assert meaning.gdp_epsilon_of(mu**2 / 2, exact) == pytest.approx(target, abs=1e-6)
    mixed = loss_law.mixed_delta(np.array([target]), np.array([mu]), np.array([0.0, 0.2]), np.array([0.75, 0.25]))
    moved = target - 0.2
    other = norm.cdf(mu / 2 - moved / mu) - math.exp(moved) * norm.cdf(-mu / 2 - moved / mu)
    assert mixed[0] == pytest.approx(0.75 * exact + 0.25 * other, rel=1e-9)


@pytest.mark.parametrize("rho, alarm", [(0.02, 0.05), (0.4, 0.01), (1.5, 0.3)])
def test_powers_of_tests_are_those_of_their_formulas(rho: float, alarm: float) -> None:
    assert meaning.power_gaussian(rho, alarm) == pytest.approx(norm.cdf(norm.ppf(alarm) + math.sqrt(2 * rho)), abs=2e-9)
    assert meaning.power_gaussian(rho) == meaning.power_gaussian(rho, 0.05)
    orders = np.concatenate([1 + np.geomspace(1e-4, 1e4, 4000)])

    def allowed(power: float) -> bool:
        for p, q in ((power, alarm), (alarm, power)):
            logs = np.logaddexp(
                orders * math.log(p) + (1 - orders) * math.log(q),
                orders * math.log1p(-p) + (1 - orders) * math.log1p(-q),
            )
            if np.any(logs / (orders - 1) > orders * rho * (1 + 1e-12)):
                return False
        return True

    found = meaning.power_zcdp(rho, alarm)
    assert not allowed(found + 1e-7)
    assert allowed(found - 1e-4)
    assert meaning.power_zcdp(rho) == meaning.power_zcdp(rho, 0.05)
    for pure in (0.1, 2.0, 6.0):
        exact = min(1.0, alarm * math.exp(pure), 1 - math.exp(-pure) * (1 - alarm))
        assert meaning.power_pure(pure, alarm) == pytest.approx(exact, abs=2e-9)
    assert meaning.power_pure(0.3) == meaning.power_pure(0.3, 0.05)
    for delta in (0.01, 0.2):
        inside = alarm / (1 - delta)
        expected = delta + (1 - delta) * meaning.power_zcdp(rho, inside)
        assert meaning.power_beside_delta(rho, delta, false_alarm=alarm) == pytest.approx(min(1, expected))
    assert meaning.power_beside_delta(rho, 1 - alarm, false_alarm=alarm) == 1.0
    assert meaning.power_beside_delta(rho, 1.0) == 1.0
    assert meaning.power_beside_delta(rho, 0.1) == meaning.power_beside_delta(rho, 0.1, false_alarm=0.05)


def test_a_loss_is_stated_in_several_ways_and_the_smaller_one_counts() -> None:
    told = meaning.meaning(0.1)
    assert (told.rho, told.delta, told.false_alarm, told.pure) == (0.1, 1e-5, 0.05, None)
    assert (told.epsilon, told.power) == (meaning.epsilon(0.1, 1e-5), meaning.power_zcdp(0.1, 0.05))
    small, large = (meaning.meaning(0.1, delta=0.01, false_alarm=0.2, pure=pure) for pure in (0.25, 90.0))
    assert (small.epsilon, small.power) == (0.25, meaning.power_pure(0.25, 0.2))
    assert (large.epsilon, large.power) == (meaning.epsilon(0.1, 0.01), meaning.power_zcdp(0.1, 0.2))
    likely = 0.1 + 2 * math.sqrt(0.1 * math.log(20))
    assert meaning.likely_log_odds(0.1) == pytest.approx(likely)
    assert [meaning.likely_log_odds(0.1, pure) for pure in (0.5, 9.0)] == pytest.approx([0.5, likely])
    limits = (0.0999, 0.1, 0.2499, 0.25, 0.5999, 0.6, 0.9499, 0.95, 1.0)
    words = [meaning.presence_words(power) for power in limits]
    assert [words.index(each) for each in words] == [0, 1, 1, 3, 3, 5, 5, 7, 7]
    assert "at most 13.4% (without the publication: 5%)" in told.sentence()


@pytest.mark.parametrize(
    "ask",
    [
        lambda: meaning.epsilon(-1, 0.1),
        lambda: meaning.epsilon(True, 0.1),
        lambda: meaning.epsilon("1", 0.1),
        lambda: meaning.epsilon(math.nan, 0.1),
        lambda: meaning.epsilon(1, 0),
        lambda: meaning.epsilon(1, 1),
        lambda: meaning.epsilon(1, True),
        lambda: meaning.delta_at(1, -1),
        lambda: meaning.rho_for_epsilon(-1, 0.1),
        lambda: meaning.discrete_laplace_zcdp(0, 1),
        lambda: meaning.discrete_laplace_zcdp(1, -1),
        lambda: meaning.discrete_laplace_zcdp(1, True),
        lambda: meaning.log_odds_tail(1, -1),
        lambda: meaning.power_pure(-1, 0.1),
        lambda: meaning.gdp_epsilon(constant(1), {}, 0.1),
        lambda: of_groups.group_loss([0.1], bound="best"),
        lambda: of_groups.group_pair([(0.1, 1.1)]),
        lambda: of_groups.group_pair([(0.1, -0.1)]),
        lambda: of_groups.group_pair([(0.1, True)]),
        lambda: of_groups.replacement_loss(constant(1), {"a": [1, 2]}, {"a": 1}),
        lambda: of_groups.replacement_loss(constant(1), {"a": 1}, {"a": [1, 2]}),
    ],
)
def test_what_is_no_loss_or_no_share_is_refused(ask: Any) -> None:
    with pytest.raises(ParameterError):
        ask()


# Groups.


@pytest.mark.parametrize("losses", [[0.2], [0.1, 0.4], [0.5, 0.02, 0.3], [0.0, 0.3]])
def test_joint_losses_are_those_of_their_formulas(losses: list[float]) -> None:
    roots = sum(math.sqrt(each) for each in losses) ** 2
    simple = len(losses) * sum(losses)
    falling = sorted((each for each in losses if each > 0), reverse=True)
    grid = np.exp(np.linspace(-4, 4, 20001))
    advanced = min(sum((1 + k) ** (j + 1) * each for j, each in enumerate(falling)) / k for k in grid)
    assert of_groups.group_loss(losses) == pytest.approx(roots)
    assert of_groups.group_loss(losses, bound="simple") == pytest.approx(simple)
    if len(falling) > 1:
        assert of_groups.group_loss(losses, bound="advanced") == pytest.approx(advanced, rel=1e-6)
    else:
        assert of_groups.group_loss(losses, bound="advanced") == pytest.approx(sum(losses))
    assert of_groups.group_epsilon(losses) == pytest.approx(sum(losses))
    assert of_groups.group_loss_by_cell([1, 3], lambda shift: shift**2 / 8) == pytest.approx(10 / 8)
    pair = of_groups.replacement_loss(gaussian_sum("emp", sigma=2), {"emp": 2}, {"emp": 6})
    assert pair == pytest.approx((math.sqrt(4 / 8) + math.sqrt(36 / 8)) ** 2)


def test_pairs_of_groups_by_hand() -> None:
    alone = of_groups.group_pair([(0.3, 1e-3)])
    assert (alone.rho, alone.delta) == pytest.approx((0.3, 1e-3))
    together = of_groups.group_pair([(0.0, 0.01), (0.0, 0.02)])
    assert (together.rho, together.delta) == pytest.approx((0.0, 0.03))
    none = of_groups.group_pair([])
    assert (none.rho, none.delta) == (0.0, 0.0)
    assert of_groups.group_pair([(math.inf, 0.1), (1.0, 0.1)]).delta == 1.0
    found = of_groups.group_pair([(0.2, 1e-4), (0.5, 1e-6)]).delta
    grid = np.linspace(0, 14, 4000)

    def mass(near: tuple[float, float], far: tuple[float, float]) -> float:
        return min(near[1] + math.exp(e) * far[1] + meaning.delta_at(near[0], float(e)) for e in grid[::40])

    one, two = (0.2, 1e-4), (0.5, 1e-6)
    assert found <= max(mass(one, two), mass(two, one)) * (1 + 1e-6)
    assert found >= max(1e-4 + 1e-6, 0.7 * max(mass(one, two), mass(two, one)))
    share, power = 0.03, of_groups.GroupPair(rho=0.4, delta=1e-3).power(0.03)
    best = min(share * math.exp(e) + 1e-3 + meaning.delta_at(0.4, e) for e in np.linspace(0, -math.log(share), 201))
    assert power == pytest.approx(best, rel=1e-9)


# Laws of losses.


def pair_of(shifts: list[Shift], reach: int = 60) -> list[tuple[float, float]]:
    """Every outcome of the numbers together: its chance with the record, and without it."""
    found = [(1.0, 1.0)]
    for shift in shifts:
        at = np.arange(-reach, reach + shift.steps + 1)
        with_, without = (np.exp(-((at - moved) ** 2) / (2 * shift.sigma**2)) for moved in (shift.steps, 0))
        own = list(zip(with_ / with_.sum(), without / without.sum()))
        for _ in range(shift.times):
            found = [(p * a, q * b) for (p, q), (a, b) in product(found, own)]
    return found


@pytest.mark.parametrize("shifts", [[Shift(0.7, 1)], [Shift(0.8, 2), Shift(1.4, 1)], [Shift(1.2, 1, 2)]], ids=str)
def test_deltas_and_powers_are_those_of_every_outcome(shifts: list[Shift]) -> None:
    outcomes = pair_of(shifts, 14)
    made = PrivacyLoss.of(shifts)
    for epsilon in (-0.5, 0.0, 0.7, 2.0):
        exact = sum(max(p - math.exp(epsilon) * q, 0.0) for p, q in outcomes)
        found = float(made.delta_at(epsilon)[0])
        assert exact <= found <= exact + 4e-4
    for alarm in (0.02, 0.2):
        left, power = alarm, 0.0
        for p, q in sorted(outcomes, key=lambda each: -each[0] / max(each[1], 1e-300)):
            power += p * min(1.0, left / q) if q > 0 else p
            left -= min(left, q)
        assert power <= made.power(alarm) <= power + 2e-3
        rounded = loss_law.best_power(made.losses, made.masses, alarm) * made.factor + made.slack
        assert made.power(alarm) == pytest.approx(
            min(meaning.power_zcdp(made.rho, alarm), rounded * (1 + 1e-9)), rel=1e-13
        )
    assert made.rho == pytest.approx(sum(each.times * each.steps**2 / (2 * each.sigma**2) for each in shifts))
    assert made.power() == made.power(0.05)
    assert made.mu == 0
    assert made.factor == 1.0


def test_fine_numbers_are_replaced_by_normals_of_half_a_step_less_variance() -> None:
    shifts = [Shift(40.0, 30, 3), Shift(32.0, 8), Shift(50.0, 0)]
    made = PrivacyLoss.of(shifts, smooth=0.05, smooth_numbers=2)
    square = 0.1 + 3 * 900 / (1600 - 0.5) + 64 / (1024 - 0.5)
    assert made.mu**2 == pytest.approx(square, rel=1e-8)
    assert made.factor == pytest.approx((1 + loss_law.RIPPLE) ** 6, rel=1e-12)
    assert pytest.approx(2.002 * math.exp(-(math.pi**2)), rel=1e-3) == loss_law.RIPPLE
    assert (made.losses.tolist(), made.masses.tolist(), made.slack) == ([0.0], [1.0], 0.0)
    assert made.rho == pytest.approx(0.05 + 3 * 900 / 3200 + 64 / 2048, rel=1e-8)
    mu, epsilon = made.mu, 0.8
    exact = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    assert float(made.delta_at(epsilon)[0]) == pytest.approx(exact * made.factor, rel=1e-7)
    assert made.power(0.1) == pytest.approx(norm.cdf(norm.ppf(0.1) + mu) * made.factor, rel=1e-3)
    below = PrivacyLoss.of([Shift(31.99, 30)])
    assert below.mu == 0
    assert len(below.losses) > 1


def test_a_test_rejects_where_the_loss_is_largest_and_by_chance_at_one_loss() -> None:
    losses, masses = np.array([0.0, math.log(4), -math.log(2)]), np.array([0.3, 0.4, 0.3])
    for alarm, power in ((0.05, 0.2), (0.1, 0.4), (0.25, 0.55), (0.4, 0.7), (0.7, 0.85), (1.0, 1.0)):
        assert loss_law.best_power(losses, masses, alarm) == pytest.approx(power)
    assert loss_law.best_power(np.array([3.0]), np.array([0.5]), 0.9) == 1.0


def test_laws_on_a_grid_keep_the_mass_of_both_sides_and_add_up() -> None:
    losses, weights = np.array([-0.23, 0.1, 0.57]), np.array([0.2, 0.5, 0.3])
    start, masses = loss_law.on_grid(losses, weights, 0.25)
    points = (start + np.arange(len(masses))) * 0.25
    assert start == -1
    assert masses.sum() == pytest.approx(1, abs=1e-8)
    assert (masses * np.exp(-points)).sum() == pytest.approx((weights * np.exp(-losses)).sum(), rel=1e-7)
    assert set(points[masses > 1e-12]) == {-0.25, 0.0, 0.25, 0.5, 0.75}
    other = np.array([0.6, 0.4])
    found, together, lost = loss_law.convolved([(start, masses, 2), (3, other, 1)], 0.25)
    exact = np.convolve(np.convolve(masses, masses), other)
    at = np.rint(found / 0.25).astype(int) - (2 * start + 3)
    np.testing.assert_allclose(together, exact[at], atol=1e-13)
    assert 0 < lost < 1e-12
    noise, chances = loss_law.shift_losses(1.5, 2)
    assert len(noise) == 2 * 19 + 1
    assert noise[19] == pytest.approx(4 / 4.5)
    assert noise[20] - noise[19] == pytest.approx(2 / 2.25)
    assert chances[20] / chances[19] == pytest.approx(math.exp(-1 / 4.5))


SUM = gaussian_sum("emp", sigma=8)


def test_parts_of_a_lattice_by_hand() -> None:
    part = LatticePart(sigma=F(8), policy=SUM, times=3)
    assert part.shift(25 / 128) == Shift(8.0, 5, 3)
    assert part.shift(25 / 128 * 1.0001) == Shift(8.0, 6, 3)
    assert part.weight() == F(128, 127)
    assert part.weights() == pytest.approx(128 / 127)
    assert part.smooth() == SUM * (3 * F(128, 127))
    wide = [LatticePart(sigma=sigma, policy=SUM) for sigma in (F(319, 10), F(32))]
    varied = LatticePart(sigma=F(8), policy=SUM, varies=True)
    assert [each.is_smoothed() for each in (part, *wide, varied)] == [False, False, True, True]
    fixed = [LatticePart(sigma=F(8), policy=each).is_fixed() for each in (SUM, constant(1), constant(1) + SUM)]
    assert fixed == [False, True, False]
    whole = LatticePolicy(parts=(part, LatticePart(sigma=F(40), policy=SUM, times=2)))
    assert whole.policy() == SUM * 5
    loss = whole.loss({"emp": 5})
    assert loss.factor == pytest.approx((1 + loss_law.RIPPLE) ** 2, rel=1e-12)
    assert loss.mu**2 == pytest.approx(2 * 2 * 25 / 128 / (1 - 0.5 / 1600), rel=1e-7)
    told = whole.meaning({"emp": 5})
    assert (told.delta, told.false_alarm, told.rho) == (1e-5, 0.05, pytest.approx(5 * 25 / 128))
    assert (told.epsilon, told.power) == (loss.epsilon(1e-5), loss.power(0.05))
    with pytest.raises(ParameterError):
        whole.loss({"emp": [5, 6]})
    with pytest.raises(ParameterError, match="sigmas"):
        LatticePart(sigma=F(8), policy=SUM, sigmas=(F(8),))


def row(sigma: Any = "8", times: Any = 1, varies: Any = False, policy: Any = SUM) -> list[Any]:
    return [sigma, times, varies, policy.to_json()]


def test_saved_parts_are_read_and_bad_ones_refused() -> None:
    whole = LatticePolicy(
        parts=(LatticePart(sigma=F(8), policy=SUM, times=3), LatticePart(sigma=F(9), policy=SUM, varies=True))
    )
    assert LatticePolicy.from_json(whole.to_json()) == whole
    for good in (row("1/2"), row("1.01", varies=True), row(times=1)):
        assert len(LatticePolicy.from_json([good]).parts) == 1
    for bad in (row("0"), row("-1"), row("1", varies=True), row(times=0), row()[:3], [*row(), "x"], 7):
        with pytest.raises(UnknownFormError):
            LatticePolicy.from_json([bad])


@pytest.mark.costly
def test_a_table_of_meanings_starts_at_nothing_and_goes_up_by_two_percent() -> None:
    part = LatticePart(sigma=F(50), policy=gaussian_sum("emp", sigma=50), times=3)
    made = LatticePolicy(parts=(part, LatticePart(sigma=F(3), policy=constant(F(1, 18))))).table()
    assert isinstance(made, MeaningTable)
    mu = np.sqrt(2 * made.rho)
    assert (mu[0], mu[1]) == (0.0, pytest.approx(0.02))
    np.testing.assert_allclose(mu[2:] / mu[1:-1], 1.02)
    assert mu[-1] < 12 <= mu[-1] * 1.02**2
    assert made.weights == (pytest.approx(2500 / 2499.5), 0.0)
    for place in (0, 1, 150):
        loss = PrivacyLoss.of([Shift(3.0, 1)], smooth=float(made.rho[place]), smooth_numbers=4)
        epsilon, power = made.at(float(made.rho[place]))
        assert loss.epsilon(1e-5) <= epsilon * (1 + 1e-6) <= 1.03 * loss.epsilon(1e-5) + 1e-6
        assert loss.power() <= power * (1 + 1e-6) <= 1.03 * loss.power()
        assert made.at(float(made.rho[place]) * (1 + 1e-9) + 1e-9) == made.at(float(made.rho[place + 1]))
    assert made.at(float(made.rho[-1]) * 1.001) == (math.inf, 1.0)
    coarse = LatticePart(sigma=F(1), policy=gaussian_sum("emp", sigma=1))
    assert LatticePolicy(parts=(coarse,)).table() is None
    assert (
        LatticePolicy(parts=(LatticePart(sigma=F(101, 100), policy=gaussian_sum("emp", sigma="1.01")),)).table()
        is not None
    )
    assert LatticePolicy(parts=(LatticePart(sigma=F(1), policy=constant(F(1, 2))),)).table() is not None


@pytest.mark.parametrize("base", [(), (Shift(3.0, 1),), (Shift(1.2, 1, 3), Shift(40.0, 5))], ids=len)
def test_entries_of_a_table_of_meanings_are_the_least_that_hold(base: tuple[Shift, ...]) -> None:
    """A search that ends early, on the wrong side or at another number of false alarms is off by more."""
    rho, epsilon, power = loss_law._table(base, 2)
    losses, masses, slack = loss_law.coarse_loss(base, loss_law.TABLE_POINTS)
    mu = np.sqrt(2 * rho) * (1 + loss_law.RELATIVE)

    def delta(tried: Any) -> Any:
        return loss_law.mixed_delta(tried, mu, losses, masses) * (1 + loss_law.RIPPLE) ** 2 + slack

    assert np.all(delta(epsilon) <= loss_law.TABLE_DELTA)
    below = epsilon * (1 - 1e-5) - 1e-5
    assert np.all(delta(below)[below > 0] > loss_law.TABLE_DELTA)
    grid = np.linspace(-3, 3, 601) * (1 + mu)[:, None] + mu[:, None] ** 2 / 2
    bounds = np.array([0.05 * np.exp(np.minimum(each, 700)) + delta(each) for each in grid.T])
    least = np.minimum(bounds.min(axis=0), 1)
    assert np.all(power <= least * (1 + 2e-3))
    # On so fine a grid nothing can be found that is much smaller.
    assert np.all(power >= least * (1 - 0.01))
