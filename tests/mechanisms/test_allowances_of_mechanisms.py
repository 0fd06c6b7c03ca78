"""What losses and ends of mechanisms state beyond the exact number, for the rounding of floats."""

import math
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import recordwise as rw
from recordwise.exact.functions import log, x
from recordwise.mechanisms import transformed
from recordwise.mechanisms.combined import Carried, Refined, _outward_ends, averaged_reach, carried_from
from recordwise.mechanisms.inference import ValueNumber, joint_loss
from recordwise.policy import Measure

F = Fraction


@pytest.mark.parametrize("shift", [1, 7, 1234])
def test_losses_of_two_draws_are_a_billionth_above_their_sum(shift: int) -> None:
    made = Refined(before=rw.Gaussian(sigma=3), more=rw.Gaussian(sigma="0.7"))
    exact = mp.mpf(shift) ** 2 * (1 / mp.mpf(18) + 1 / mp.mpf("0.98"))
    for found in (made.loss_at_shift(shift), made.realized_loss(10, shift)):
        assert float(mp.mpf(found) / exact - 1) == pytest.approx(1e-9, rel=1e-3)


@pytest.mark.parametrize("reach", [12.3456, 0.004, 98765.0])
def test_ends_of_averages_have_four_digits_of_their_reach_and_are_outside(reach: float) -> None:
    """In fractions: outward, and by less than a unit of the last digit and the rounding of large values."""
    values = np.array([0.0, 10.123456789, -7654.321, 0.1 + 0.2, 3e9 + 0.123])
    unit = Fraction(10) ** (math.floor(math.log10(reach)) - 3)
    for value, low, high in zip(values, *_outward_ends(values, reach)):
        least, most = F(value) - F(reach), F(value) + F(reach)
        allowed = F(abs(value) + reach) / 2**50
        assert F(low) + allowed / 2 <= least <= F(low) + unit * F(1001, 1000) + 2 * allowed
        assert F(high) - unit * F(1001, 1000) - 2 * allowed <= most <= F(high) - allowed / 2


def test_ends_that_are_decimals_already_are_moved_by_a_unit() -> None:
    """An end on a unit could be inside by a rounding, so it is moved."""
    low, high = _outward_ends(np.array([5.0]), 1.0)
    assert (low.tolist(), high.tolist()) == ([3.999], [6.001])


@pytest.mark.parametrize("function", [log(1 + x), (x + 3) ** F(1, 3), x ** F(1, 2)], ids=str)
def test_a_point_is_certain_only_where_no_allowed_error_could_move_it(function: Any) -> None:
    """Errors of 2^-42 of the size of f and of where it starts; grids so fine that some points are certain and some are not."""
    totals = np.arange(1, 400, dtype=np.int64) ** 3
    step, start = F(1, 10), abs(float(function.at_zero()))
    for bits in (30, 36, 38, 40, 44):
        grid = F(1, 2**bits)
        points, certain = transformed._in_floats(function, totals, step, grid, start)
        scaled = np.asarray(function.value(transformed.NUMPY, totals * 0.1)) * 2.0**bits
        off = np.abs(scaled - np.rint(scaled))
        doubt = (np.abs(scaled) + 2 * start * 2.0**bits) * 2.0**-42
        assert not certain[off + 0.999 * doubt >= 0.5].any()
        assert certain[off + 1.001 * doubt < 0.4999].all()
        assert points[certain].tolist() == np.rint(scaled)[certain].tolist()
        assert not points[~certain].any()


def test_pairs_of_laws_behind_values_are_a_billionth_above() -> None:
    emp = Measure("emp")
    numbers = [ValueNumber(part=part, measure=emp, lattice=F(1, 4), sigma=F(40 + part)) for part in (0, 1)]
    gaps = (3.0, 5.1)
    made = joint_loss(list(zip(numbers, gaps)))
    with mp.workdps(40):
        steps, sigmas = (12, 21), (mp.mpf(160), mp.mpf(164))
        squares = [(mp.mpf(each) / sigma) ** 2 for each, sigma in zip(steps, sigmas)]
        mu = mp.sqrt(mp.fsum(each / (1 - mp.mpf("0.5") / sigma**2) for each, sigma in zip(squares, sigmas)))
        assert float(mp.mpf(made.mu) / mu - 1) == pytest.approx(1e-9, rel=1e-3)
        assert float(mp.mpf(made.rho) / (mp.fsum(squares) / 2) - 1) == pytest.approx(1e-9, rel=1e-3)
        assert made.factor == pytest.approx(float((1 + 2 * mp.exp(-(mp.pi**2)) * mp.mpf("1.001")) ** 2), rel=1e-13)
    assert made.slack == 0.0
    nothing = joint_loss([(numbers[0], 0.0)])
    assert (nothing.mu, nothing.rho, nothing.factor) == (0.0, 0.0, 1.0)


@pytest.mark.parametrize("gap, steps", [(3.0, 12), (3.0 + 1e-9, 13), (3.0 * (1 + 1e-13), 12), (0.1, 1)])
def test_a_gap_is_a_whole_number_of_steps_rounded_up_but_for_rounding(gap: float, steps: int) -> None:
    number = ValueNumber(part=0, measure=Measure("emp"), lattice=F(1, 4), sigma=F(40))
    assert joint_loss([(number, gap)]).rho == pytest.approx(steps**2 / (2 * 160**2), rel=2e-9)


@pytest.mark.theorem("T-SERIES")
@pytest.mark.parametrize("carry", ["1/2", "9/10"])
def test_leaving_costs_a_millionth_more_than_the_noise_of_the_next_period_needs(carry: str) -> None:
    """Noise of equal variance can then be carried although sigmas are rounded; less noise cannot."""
    c = F(carry)
    first = carried_from(None, rw.Gaussian(sigma=10), carry=c, leave=c)
    assert first.going == F(1_000_001, 1_000_000) * c**2 / (100 * (1 - c**2))
    assert F(first.paid().noise_sigma) ** -2 >= F(1, 100) + first.going
    second = carried_from(first, rw.Gaussian(sigma=10), carry=c, leave=c)
    assert isinstance(second, Carried)
    assert second.keeps_variance
    drawn = second.more.noise_sigma
    assert drawn is not None
    # What leaving costs in the draw is at most what was paid for it.
    assert c**2 / drawn**2 <= first.going
    assert c**2 / drawn**2 >= first.going * F(99, 100)
    with pytest.raises(rw.errors.ParameterError, match="sigma of at least"):
        carried_from(first, rw.Gaussian(sigma="9.99"), carry=c, leave=c)
    wide = carried_from(first, rw.Gaussian(sigma=11), carry=c, leave=c)
    assert not wide.keeps_variance


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("draws", [((2.0, 1.0),), ((3.0, 0.5), (2.0, 0.5)), ((0.7, 0.3), (1.9, 0.7))], ids=str)
def test_the_reach_of_an_average_covers_and_hardly_more(draws: Any, confidence: float) -> None:
    """Every combination of draws, added up."""
    values, chances = np.zeros(1), np.ones(1)
    for sigma, weight in draws:
        points = np.arange(-40, 41)
        mass = np.exp(-((points / sigma) ** 2) / 2)
        values = np.add.outer(values, points * weight).ravel()
        chances = np.multiply.outer(chances, mass / mass.sum()).ravel()
    reach = averaged_reach(draws, confidence)
    spread = math.sqrt(sum((sigma * weight) ** 2 for sigma, weight in draws))
    assert chances[np.abs(values) <= reach].sum() >= confidence
    assert chances[np.abs(values) <= reach - 0.02 * spread - 1e-9].sum() < confidence
