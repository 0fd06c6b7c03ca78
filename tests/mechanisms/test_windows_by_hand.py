"""What is learned about a value, against the best test between any two values, outcome by outcome."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from recordwise.errors import ParameterError, UnknownFormError
from recordwise.exact.functions import log, x
from recordwise.mechanisms import certified_loss as of
from recordwise.mechanisms import inference
from recordwise.mechanisms.inference import Reaches, ValueNumber, ValuePolicy, ValueWindow, is_hidden, joint_loss
from recordwise.noise import DiscreteLaplace, GeneralizedGaussian
from recordwise.policy import Measure, among
from recordwise.policy.conditions import EVERY
from recordwise.policy.evaluate.evaluator import BALLS

F = Fraction
EMP, HALF = Measure("emp"), Measure("pay", F(1, 2), signed=True)


def number(**how: Any) -> ValueNumber:
    given: dict[str, Any] = {"part": 0, "measure": EMP, "lattice": F(1)}
    return ValueNumber(**(given | how))


PLAIN = number(sigma=F(4))


def power(steps: int, weight: Any, alarm: float, reach: int = 30) -> float:
    """Of the best test between noise and noise that is moved, outcome by outcome."""
    at = np.arange(-reach, reach + steps + 1)
    one, other = weight(np.abs(at - steps)), weight(np.abs(at))
    one, other = one / one.sum(), other / other.sum()
    order = np.argsort(-one / other, kind="stable")
    left, found = alarm, 0.0
    for place in order:
        share = min(1.0, left / other[place])
        found += share * one[place]
        left -= share * other[place]
        if left <= 0:
            break
    return found


@pytest.mark.parametrize("confidence", [0.7, 0.9, 0.95])
@pytest.mark.parametrize(
    "how, weight",
    [
        ({"sigma": F(4)}, lambda at: np.exp(-(at**2) / 32)),
        ({"sigma": F(9, 10)}, lambda at: np.exp(-(at**2) / 1.62)),
        ({"exponent": x / 3}, lambda at: np.exp(-at / 3)),
        ({"exponent": x * 2}, lambda at: np.exp(-2 * at)),
    ],
    ids=["gaussian", "narrow", "laplace", "narrow laplace"],
)
def test_the_reach_is_the_largest_move_that_is_missed_half_the_time(how: Any, weight: Any, confidence: float) -> None:
    found = number(**how).reach(confidence)
    steps = int(found)
    assert found == steps + 0.5
    assert power(steps, weight, 1 - confidence) <= 0.5 + 1e-9
    assert power(steps + 1, weight, 1 - confidence) > 0.5
    finer = {name: each / 2 if name == "sigma" else each.after(2 * x) for name, each in how.items()}
    assert number(**finer, lattice=F(1, 2)).reach(confidence) == found / 2


def test_gaps_between_values_by_hand() -> None:
    def gap(made: ValueNumber, one: float, other: float) -> float:
        from flint import arb

        return float(made.gap(BALLS, arb(one), arb(other)).mid())

    assert (gap(PLAIN, 3, 8), gap(PLAIN, 8, 3), gap(PLAIN, 3, 3)) == (5, 5, 0)
    clamped = number(sigma=F(4), clamp=F(6))
    assert (gap(clamped, 3, 8), gap(clamped, 7, 8), gap(clamped, 2, 5)) == (3, 0, 3)
    bent = number(sigma=F(4), lattice=F(1, 8), transform=log(x + 2))
    assert gap(bent, 0, 2) == pytest.approx(math.log(2) + 0.125)
    assert gap(bent, 5, 1) == pytest.approx(math.log(7 / 3) + 0.125)
    assert gap(bent, 5, 5) == 0


def test_weights_and_scales_of_numbers() -> None:
    assert PLAIN.weight() == pytest.approx(1 / (16 - 0.5), rel=1e-9)
    assert PLAIN.weight() >= 1 / (16 - 0.5)
    assert number(sigma=F(2), lattice=F(1, 2)).weight() == pytest.approx(1 / (4 - 0.5 / 4), rel=1e-9)
    assert number(sigma=F(1)).weight() == 0.0
    assert number(sigma=F(101, 100)).weight() > 0
    assert number(exponent=x).weight() == 0.0
    assert [number(sigma=F(each)).is_fine() for each in (31, 32)] == [False, True]
    assert not number(exponent=x).is_fine()
    assert number(sigma=F(16), lattice=F(1, 2)).is_fine()
    assert PLAIN.scale == ("emp", None, None)
    assert isinstance(number(exponent=x / 3).law(), DiscreteLaplace)
    assert number(exponent=x / 3, lattice=F(1, 2)).law() == DiscreteLaplace(6)
    assert float(inference._sigma(F(1, 32))) == 4
    assert 0 <= 1 / (2 * F(1, 3)) - inference._sigma(F(1, 3)) ** 2 < F(1, 10**30)


def test_numbers_are_saved_and_bad_ones_refused() -> None:
    several = [
        PLAIN,
        number(sigma=F(4), clamp=F(6), condition=among("kind", ["a"])),
        number(exponent=x / 3, lattice=F(1, 4), measure=HALF, part=7),
        number(sigma=F(1, 3), transform=log(x + 2)),
    ]
    made = ValuePolicy(numbers=tuple(several), bounds={"emp": F(100), "pay": F(7, 2)})
    assert ValuePolicy.from_json(made.to_json()) == made
    form = PLAIN.to_json()
    assert set(form) == {"part", "measure", "grid", "sigma"}
    for bad in (
        {**form, "grid": "0"},
        {**form, "grid": "-1"},
        {**form, "exponent": "x"},
        {name: each for name, each in form.items() if name != "sigma"},
        {name: each for name, each in form.items() if name != "part"},
    ):
        with pytest.raises(UnknownFormError):
            ValuePolicy.from_json({"numbers": [bad], "bounds": {}})


def test_windows_end_where_the_best_test_is_better_than_even() -> None:
    own = ValuePolicy(numbers=(PLAIN,), bounds={"emp": F(1000)})
    steps = int(PLAIN.reach(0.95))
    found = own.window({"emp": 500}, "emp")
    assert (found.low, found.high, found.reach, found.confidence) == (500 - steps, 500 + steps, steps, 0.95)
    assert own.window({"emp": 2}, "emp").low == 0
    assert own.window({"emp": 2}, "emp").reach is None
    assert own.window({"emp": 999}, "emp").high is None
    within = own.window({"emp": 500}, "emp", prior=("498.5", 501))
    assert (within.low, within.high, within.least) == (499, 501, 499)
    assert not within.is_open()
    wide = ValuePolicy(numbers=(number(sigma=F(9000)),), bounds={"emp": F(1000)}).window({"emp": 500}, "emp")
    assert wide.is_open()
    assert (wide.low, wide.high, wide.reach) == (0, None, None)
    halves = ValuePolicy(numbers=(number(measure=HALF, lattice=F(1, 2), sigma=F(4)),), bounds={"pay": F(1000)})
    told = halves.window({"pay": -3}, "pay")
    assert (told.step, told.least, told.value) == (F(1, 2), -1000, -3)
    assert told.low < -3 < told.high  # type: ignore[operator]
    none = ValuePolicy(numbers=(number(sigma=F(4), condition=among("kind", ["a"])),), bounds={"emp": F(1000)})
    assert none.window({"emp": 500, "kind": "b"}, "emp").is_open()
    assert none.window({"emp": 500, "kind": "a"}, "emp").reach == steps


@pytest.mark.parametrize(
    "ask",
    [
        {"record": {"emp": 5}, "name": "emp", "confidence": 0.5},
        {"record": {"emp": 5}, "name": "pay"},
        {"record": {"emp": 5}, "name": 3},
        {"record": {"emp": [5, 6]}, "name": "emp"},
        {"record": {"emp": 1001}, "name": "emp"},
        {"record": {"emp": 5}, "name": "emp", "prior": (6, 9)},
        {"record": {"emp": 5}, "name": "emp", "prior": (1, 4)},
        {"record": {"emp": 5}, "name": "emp", "prior": (1,)},
        {"record": {"emp": 5}, "name": "emp", "prior": "19"},
    ],
    ids=str,
)
def test_windows_that_cannot_be_are_refused(ask: dict[str, Any]) -> None:
    own = ValuePolicy(numbers=(PLAIN,), bounds={"emp": F(1000)})
    assert own.window({"emp": 1000}, "emp", confidence=0.51).value == 1000
    with pytest.raises(ParameterError):
        own.window(**ask)
    with pytest.raises(ParameterError):
        own.loss({"emp": 1, "pay": 2}, {"emp": 1, "pay": 3})


def test_a_window_is_stated_where_it_is_centered() -> None:
    def reach(low: int, high: int | None) -> Any:
        return ValueWindow(
            measure="m",
            value=F(10),
            low=F(low),
            high=None if high is None else F(high),
            step=F(2),
            least=F(0),
            confidence=0.9,
        ).reach

    assert (reach(4, 16), reach(4, 18), reach(2, 16), reach(4, 19), reach(4, None)) == (6, 8, 8, None, None)


def test_losses_of_several_numbers_are_those_of_every_outcome() -> None:
    other = number(exponent=x / 3)
    found = joint_loss([(PLAIN, 2.0), (other, 3.0)])
    at = np.arange(-60, 64)
    gauss = [np.exp(-((at - moved) ** 2) / 32) for moved in (2, 0)]
    laplace = [np.exp(-np.abs(at - moved) / 3) for moved in (3, 0)]
    one, two = (np.outer(g / g.sum(), p / p.sum()).ravel() for g, p in zip(gauss, laplace))
    for epsilon in (0.0, 0.5, 1.2):
        exact = float(np.maximum(one - math.exp(epsilon) * two, 0).sum())
        assert exact - 1e-9 <= float(found.delta_at(epsilon)[0]) <= exact + 3e-3
    assert found.rho == pytest.approx(4 / 32 + math.tanh(0.5), rel=1e-6)
    assert joint_loss([(PLAIN, 0.0)]).rho == 0.0
    assert joint_loss([(PLAIN, 10.0**9)]).rho == math.inf
    assert joint_loss([(number(sigma=F(40)), 3.0), (number(sigma=F(40)), 4.0)]).mu ** 2 == pytest.approx(
        25 / 1599.5, rel=1e-6
    )
    halves = number(sigma=F(4), lattice=F(1, 2))
    assert joint_loss([(halves, 2.2)]).rho == pytest.approx(2.5**2 / 32, rel=1e-6)
    assert joint_loss([(halves, 2.0)]).rho == pytest.approx(2.0**2 / 32, rel=1e-6)


def test_fat_losses_bound_masses_and_log_ratios_block_by_block() -> None:
    made = number(exponent=(x / 8) ** "1/2")
    losses, masses = inference._fat_losses(made, 5)
    at = np.arange(-3000, 3001)
    weights = np.exp(-np.sqrt(np.abs(at) / 8))
    law = GeneralizedGaussian(8, "1/2")
    center = float(law.pmf(0))
    ratio = np.sqrt(np.abs(at - 5) / 8) - np.sqrt(np.abs(at) / 8)
    for level in (-0.5, 0.0, 0.3):
        exact = float((center * weights)[ratio > level].sum())
        assert exact - 1e-6 <= float(masses[losses >= level].sum()) <= exact + 0.35
    assert float(masses.sum()) == pytest.approx(1, abs=2e-3)
    assert float(losses.max()) == pytest.approx(math.sqrt(5 / 8))
    assert masses[-2:].tolist() == [1e-9, 1e-9]


def test_which_rule_decides_about_gaps() -> None:
    reaches = Reaches(single=(5.0, 7.0, 9.0), joint={(0, 1): 4.0}, squares=10.0)
    assert is_hidden((), [], [], reaches) is True
    assert [is_hidden((1,), [gap], [1.0], reaches) for gap in (7.0, 7.1)] == [True, False]
    assert [is_hidden((0, 1), [gap, 0.0], [1.0, 1.0], reaches) for gap in (4.0, 4.1)] == [True, False]
    assert [is_hidden((0, 2), [1.0, gap], [1.0, 1.0], reaches) for gap in (3.0, 3.1)] == [True, False]
    assert is_hidden((0, 2), [1.0, 2.0], [1.0, 0.0], reaches) is None


def test_which_numbers_change_together() -> None:
    conditional = among("kind", ["a"])
    numbers = (
        number(part=0, sigma=F(4)),
        number(part=1, sigma=F(5)),
        number(part=2, sigma=F(6), condition=conditional),
    )
    assert inference._combinations(numbers) == [(0, 1, 2), (0, 1)]
    split = (number(part=0, sigma=F(4)), number(part=0, sigma=F(5)), number(part=1, sigma=F(6)))
    assert inference._combinations(split) == [(0, 2), (1, 2)]
    fine = tuple(number(part=part, sigma=F(40)) for part in (0, 1))
    assert inference._combinations(fine) == []
    apart = (number(part=0, sigma=F(4)), number(part=1, sigma=F(4), clamp=F(9)))
    assert inference._combinations(apart) == []
    many = tuple(number(part=part, sigma=F(4), condition=conditional) for part in range(7))
    assert inference._combinations(many) == []
    assert len(inference._combinations(many[:6])) == 2**6 - 1 - 6
    assert PLAIN.condition == EVERY


def test_the_furthest_number_before_a_condition_fails() -> None:
    for most in (0, 1, 5, 10**6):
        for last in (0, 1, 4, 77, most):
            if last <= most:
                assert inference.furthest(lambda each, last=last: each <= last, most) == last  # type: ignore[misc]


def test_joint_reaches_are_where_the_joint_test_turns() -> None:
    for pair in ((PLAIN, number(part=1, sigma=F(3))), (PLAIN, number(part=1, exponent=x / 3))):
        found = inference.joint_reach(pair, 0.9)
        steps = int(found)
        assert found == steps + 0.5
        assert inference.is_missed([(each, float(steps)) for each in pair], 0.9)
        assert not inference.is_missed([(each, float(steps + 1)) for each in pair], 0.9)


# Certified losses.


LAW = GeneralizedGaussian(8, "1/2")


def exact_loss(shift: int) -> float:
    """The largest divergence over its order, on a grid of orders."""
    at = np.arange(-8000, 8001)
    logs, moved = -np.sqrt(np.abs(at) / 8), -np.sqrt(np.abs(at - shift) / 8)
    total = logsumexp(logs)
    orders = 1 + np.geomspace(1e-3, 1e3, 90)
    return max(float(logsumexp(a * logs + (1 - a) * moved) - total) / (a - 1) / a for a in orders)


@pytest.mark.parametrize("shift", [1, 3, 40])
def test_certified_losses_are_above_the_loss_and_within_a_fifth_of_a_percent(shift: int) -> None:
    nodes = of.Nodes.of(LAW, LAW.exponent)
    exact = exact_loss(shift)
    found = of.certified_loss(nodes, LAW.exponent, shift)
    assert exact <= found <= exact * 1.003
    assert of.certified_loss(nodes, LAW.exponent, 0) == 0.0


def test_nodes_hold_all_mass_and_more() -> None:
    nodes = of.Nodes.of(LAW, LAW.exponent)
    assert nodes.points[:61].tolist() == list(range(61))
    law = np.array([float(LAW.pmf(int(each))) for each in range(60)])
    np.testing.assert_allclose(nodes.mass[:60], law, rtol=1e-9)
    assert np.all(nodes.mass[:60] >= law)
    np.testing.assert_allclose(nodes.later[:59], 0, atol=1e-15)
    place = int(np.searchsorted(nodes.points, 200))
    low, high = (int(each) for each in nodes.points[place : place + 2])
    exact = sum(float(LAW.pmf(each)) for each in range(low, high))
    first = sum((each - low) / (high - low) * float(LAW.pmf(each)) for each in range(low, high))
    assert exact <= nodes.mass[place] <= exact * 1.01
    assert first <= nodes.later[place] <= first * 1.02
    assert float(nodes.mass[-1]) == pytest.approx(float(LAW.sf(int(nodes.points[-1]))), rel=1e-9)
    assert -math.log(float(of._weight(LAW.exponent, np.array([nodes.points[-1]]))[0])) == pytest.approx(45, rel=0.02)


def test_knots_lie_on_the_staircase_or_barely_above() -> None:
    counts = [1, 2, 3, 5, 9, 17, 40]
    losses = [0.001, 0.004, 0.009, 0.025, 0.08, 0.2, 0.7]
    knots = list(of._knots(counts, losses, 1))
    points = np.array([float(count) for count, _ in knots])
    levels = np.array([float(level) for _, level in knots])
    assert knots[0][0] == 1
    assert knots[-1][0] == 40
    before = 0
    for count, loss in zip(counts, losses):
        for step in range(before + 1, count + 1):
            assert np.interp(step, points, levels) >= loss
        assert np.interp(before + 1, points, levels) <= loss * (1 + 0.003) * (1 + 1e-5) or before == 0
        before = count
    assert of._short(0.0123456789, up=True) == F(123457, 10**7)
    assert of._short(0.0123456789, up=False) == F(123456, 10**7)
    assert of._short(0.0, up=True) == 0
    assert of._short(1.0, up=True) == 1


def test_counts_to_certify_grow_by_what_the_loss_may_grow() -> None:
    noise = of.Noise(exponent=LAW.exponent, step=1, accurate_from=1)
    first = next(of._batches([], [], noise))
    assert first[:5] == [1, 2, 3, 4, 5]
    assert len(first) == 48
    counts, losses = list(range(1000, 1049)), [(each / 1000) ** 2 for each in range(1000, 1049)]
    later = next(of._batches(counts, losses, noise))
    assert later[0] == int(1048 * (1 + 0.005 / 2))
    assert later[1] == int(later[0] * (1 + 0.005 / 2))
    coarse = next(of._batches(counts, losses, of.Noise(exponent=LAW.exponent, step=1, accurate_from=2097)))
    assert coarse[0] == int(1048 * (1 + 0.05 / 2))
    fine = next(of._batches(counts, losses, of.Noise(exponent=LAW.exponent, step=1, accurate_from=2096)))
    assert fine[0] == later[0]
    last = next(of._batches([2**62 - 1], [1.0], noise))
    assert last == [2**62]
    assert list(of._batches([2**62], [1.0], noise)) == []


def test_certificates_are_sealed_and_kept() -> None:
    noise = of.Noise(exponent=LAW.exponent, step=2, accurate_from=3)
    assert noise.parameters() == of.Noise(exponent=LAW.exponent, step=2, accurate_from=3).parameters()
    made = of.Certificate(parameters="p", knots=((1, F(1, 2)),), less=F(1, 3)).seal()
    assert made.digest == made.expected_digest()
    for other in ({"parameters": "q"}, {"knots": ((1, F(1, 4)),)}, {"less": F(1, 4)}):
        given: dict[str, Any] = {"parameters": "p", "knots": ((1, F(1, 2)),), "less": F(1, 3)} | other
        assert of.Certificate(**given).expected_digest() != made.digest


def test_bends_bound_what_is_not_convex() -> None:
    assert not of.Bends.of(LAW.exponent).upto.any()
    bent = 2 * log(x / 5 + 3) ** 2
    convex = (x, x ** "1/2", log(x + 1), x + log(x + 1))
    assert [of._slope_is_convex(each) for each in (*convex, bent, x**2)] == [True] * 4 + [False] * 2
    third = lambda v: (  # noqa: E731
        lambda f: -(f(v + 1.5) - 3 * f(v + 0.5) + 3 * f(v - 0.5) - f(v - 1.5))
    )(lambda t: 2 * math.log(t / 5 + 3) ** 2)
    for low, high in ((20.0, 22.0), (60.0, 66.0)):
        found = of._bend(bent, low, high)
        exact = max(0.0, *(third(each) for each in np.linspace(low, high, 9)))
        assert exact * 0.99 - 1e-9 <= found <= exact + 3e-4
    made = of.Bends.of(bent)
    none = np.array([10.0])
    assert made.within(np.array([2.0**81]), np.array([2.0**82]), none)[0] == math.inf
