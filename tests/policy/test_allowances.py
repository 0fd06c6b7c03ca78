"""What is stated beyond the exact number, for the rounding of floats: as much as is said, and in the safe direction."""

import math
from fractions import Fraction
from importlib import import_module
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from recordwise.policy import constant, gaussian_sum, loss_law
from recordwise.policy.firms import FirmPart, FirmPolicy, any_of
from recordwise.policy.loss_law import PrivacyLoss, Shift
from recordwise.policy.series import Step

meaning: Any = import_module("recordwise.policy.meaning")
"""The module; a function of the room has its name."""
F = Fraction


def beyond(stated: float, exact: Any) -> float:
    """How much a stated number exceeds the exact one, relatively."""
    return float(mp.mpf(stated) / exact - 1)


def phi(z: Any) -> Any:
    return mp.erfc(-z / mp.sqrt(2)) / 2


@pytest.fixture(autouse=True)
def precise() -> Any:
    with mp.workdps(40):
        yield


@pytest.mark.parametrize(
    "sigma, steps, smooth", [(33.0, 20, 0.0), (40.7, 3, 0.31), (1234.5, 777, 0.02), (55.5, 1, 7.0)]
)
def test_distances_and_losses_of_fine_noise_are_a_billionth_above(sigma: float, steps: int, smooth: float) -> None:
    made = PrivacyLoss.of([Shift(sigma, steps, 3)], smooth=smooth, smooth_numbers=1)
    rho = 3 * mp.mpf(steps) ** 2 / (2 * mp.mpf(sigma) ** 2)
    square = 2 * mp.mpf(smooth) + 2 * rho / (1 - mp.mpf("0.5") / mp.mpf(sigma) ** 2)
    assert beyond(made.mu, mp.sqrt(square)) == pytest.approx(1e-9, rel=1e-3)
    assert beyond(made.rho, mp.mpf(smooth) + rho) == pytest.approx(1e-9, rel=1e-3)
    ripple = 2 * mp.exp(-(mp.pi**2)) * mp.mpf("1.001")
    assert beyond(made.factor, (1 + ripple) ** 4) == pytest.approx(0, abs=1e-13)
    mu = mp.mpf(made.mu)
    for epsilon in (0.0, 0.5, 1.5):
        delta = phi(mu / 2 - epsilon / mu) - mp.exp(epsilon) * phi(-mu / 2 - epsilon / mu)
        if delta > 1e-4:
            assert beyond(float(made.delta_at(epsilon)[0]), delta * (1 + ripple) ** 4) == pytest.approx(1e-9, rel=0.05)


def test_what_was_lost_is_added_to_every_delta() -> None:
    """Two losses whose distribution is known, and no fine noise: normals a billionth apart."""
    made = PrivacyLoss(
        losses=np.array([0.0, 2.0]), masses=np.array([0.75, 0.25]), mu=0.0, factor=1.25, slack=0.0625, rho=9.0
    )
    exact = 0.25 * (1 - mp.exp(-1)) * mp.mpf("1.25")
    found = mp.mpf(float(made.delta_at(1.0)[0])) - mp.mpf("0.0625")
    assert beyond(float(found), exact) == pytest.approx(1e-9, rel=0.05)
    assert made.delta_at([-50.0, 40.0]).tolist() == [1.0, 0.0625]


@pytest.mark.parametrize("width", [0.01, 0.2, 1.5])
def test_less_than_the_share_of_the_lower_neighbor_stays_there(width: float) -> None:
    """By a billionth of it, so that no rounding moves mass down."""
    losses = np.array([0.3, 0.77, -1.9])
    for loss in losses.tolist():
        start, masses = loss_law.on_grid(np.array([loss]), np.ones(1), width)
        rest = mp.mpf(loss) - start * mp.mpf(width)
        share = mp.expm1(mp.mpf(width) - rest) / mp.expm1(mp.mpf(width))
        assert beyond(float(masses[0]), share) == pytest.approx(-1e-9, rel=0.01)
        assert masses.sum() == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("mass, times", [(1e-20, 1), (1.0, 1000), (1.0, 4093), (1.0, 10**6)])
def test_what_the_law_of_each_number_lacks_is_lost_from_their_sum(mass: float, times: int) -> None:
    """1e-30 for each: most of what one small mass loses, and some last digits of what many numbers do."""
    _, masses, lost = loss_law.convolved([(0, np.array([mass]), times)], 0.1)
    rounding = 8 * (times + 2) * 2 * 2.0**-53 * math.sqrt(2) * mass
    assert masses.tolist() == [mass]
    assert lost == rounding + times * 1e-30
    assert lost - rounding == pytest.approx(times * 1e-30, rel=0.3, abs=0)


def test_ends_of_a_sum_below_its_rounding_are_moved_up_or_lost() -> None:
    """Below what the transforms of four points round; the larger ends beside them stay."""
    small = 4e-15
    losses, masses, lost = loss_law.convolved([(3, np.array([small, 0.5, 0.5, small]), 1)], 0.25)
    rounding = 8 * (1 + 2) * 3 * 2.0**-53 * math.sqrt(4) * math.sqrt(0.5)
    assert small < rounding < 3 * small
    assert losses.tolist() == [1.0, 1.25]
    assert masses == pytest.approx([0.5 + small, 0.5], abs=2e-16)
    assert lost == pytest.approx(rounding + small, rel=0.01, abs=0)
    losses, masses, lost = loss_law.convolved([(3, np.array([4 * small, 0.5, 0.5, 4 * small]), 1)], 0.25)
    assert losses.tolist() == [0.75, 1.0, 1.25, 1.5]
    assert masses == pytest.approx([4 * small, 0.5, 0.5, 4 * small], abs=2e-16)
    assert lost == pytest.approx(rounding, rel=0.01, abs=0)


@pytest.mark.parametrize("rho, gain", [(0.1, 0.4), (2.0, 9.0), (0.01, 0.5)])
def test_the_tail_of_log_odds_is_a_billionth_above(rho: float, gain: float) -> None:
    exact = mp.exp(-((mp.mpf(gain) - mp.mpf(rho)) ** 2) / (4 * mp.mpf(rho)))
    assert beyond(meaning.log_odds_tail(rho, gain), exact) == pytest.approx(1e-9, rel=1e-3)


@pytest.mark.parametrize("alarm", [0.003, 0.05, 0.4])
def test_powers_are_a_billionth_above_and_at_most_1(alarm: float) -> None:
    for rho in (0.001, 0.2, 1.1):
        found = meaning.power_gaussian(rho, alarm)
        point = mp.findroot(lambda z: phi(z) - mp.mpf(alarm), -1 if alarm > 0.01 else -3)
        assert float(mp.mpf(found) - phi(point + mp.sqrt(2 * mp.mpf(rho)))) == pytest.approx(1e-9, rel=1e-3)
    assert meaning.power_gaussian(900.0, alarm) == 1.0
    for pure in (0.01, 0.5, 3.0, -math.log(alarm) + 0.9, -math.log(alarm) + 1.1, 9.0):
        exact = min(mp.mpf(alarm) * mp.exp(mp.mpf(pure)), 1 - mp.exp(-mp.mpf(pure)) * (1 - mp.mpf(alarm)))
        assert float(mp.mpf(meaning.power_pure(pure, alarm)) - exact) == pytest.approx(1e-9, rel=1e-3)
    assert meaning.power_pure(800.0, alarm) == 1.0


@pytest.mark.parametrize("rho, alarm", [(0.02, 0.05), (0.6, 0.001)])
def test_the_power_of_a_loss_is_a_billionth_above_what_orders_allow(rho: float, alarm: float) -> None:
    orders = np.asarray(meaning.ORDERS)

    def allowed(power: float) -> bool:
        for p, q in ((power, alarm), (alarm, power)):
            logs = np.logaddexp(
                orders * math.log(p) + (1 - orders) * math.log(q),
                orders * math.log1p(-p) + (1 - orders) * math.log1p(-q),
            )
            if np.any(logs / (orders - 1) > orders * rho):
                return False
        return True

    found = meaning.power_zcdp(rho, alarm)
    assert not allowed(found - 0.9e-9)
    assert allowed(found - 1.1e-9)


@pytest.mark.parametrize("emp", [1, 17, 12345])
def test_losses_of_firms_and_of_steps_are_a_little_above(emp: int) -> None:
    """By 1e-12 of it; single losses are rounded up by less than 1e-15."""
    sums = (FirmPart(policy=gaussian_sum("emp", sigma=sigma)) for sigma in ("3", "0.7", "11"))
    parts = (*sums, FirmPart(policy=constant("1/7")))
    exact = mp.mpf(emp) ** 2 * (1 / mp.mpf(18) + 1 / mp.mpf("0.98") + 1 / mp.mpf(242)) + 1 / mp.mpf(7)
    noise = FirmPolicy(parts=parts)
    assert beyond(noise.loss({"emp": [emp]}).rho, exact) == pytest.approx(1e-12, rel=1e-2, abs=0)
    step = Step(kind="start", noise=noise)
    assert beyond(step.loss({"emp": emp}), exact) == pytest.approx(1e-12, rel=1e-2, abs=0)
    third = Step(kind="carry", noise=noise, carry=F(1, 3))
    assert beyond(third.unchanged({"emp": emp}), exact * 4 / 9) == pytest.approx(1e-12, rel=1e-2, abs=0)


def test_the_chance_that_any_of_several_happens() -> None:
    """No more than their sum; else by 1e-12 above the exact one."""
    chances = [0.01, 0.2, 0.37]
    exact = 1 - mp.fprod(1 - mp.mpf(each) for each in chances)
    assert beyond(any_of(np.array(chances)), exact) == pytest.approx(1e-12, rel=1e-2, abs=0)
    assert any_of(np.array([1e-30])) == 1e-30
    assert any_of(np.array([0.5, 1.0])) == 1.0
    assert any_of(np.array([0.5, 1.5])) == 1.0
    assert any_of(np.zeros(0)) == 0.0
