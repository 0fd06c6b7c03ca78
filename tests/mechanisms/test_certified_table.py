"""The knots that a fat-tailed policy is made of: never below the staircase of certified losses, and cached without trust."""

import dataclasses
import math
from fractions import Fraction
from random import Random

import mpmath
import numpy as np
import pytest

import recordwise as rw
from recordwise.exact.arithmetic import NumpyArithmetic
from recordwise.exact.functions import Function, log, x
from recordwise.mechanisms import certified_loss as certificates
from recordwise.mechanisms.certified_loss import (
    BEFORE,
    COARSE,
    KEPT,
    ROOM,
    TILTS,
    Bends,
    Nodes,
    Noise,
    _holds_beyond,
    _knots,
    _negative_side,
    _rise,
    _side,
    certificate,
    certified_loss,
    certified_losses,
    less_beyond,
)
from recordwise.mechanisms.fat_tailed import shift_loss
from recordwise.noise import GeneralizedGaussian, Polylog
from recordwise.policy.evaluate.evaluator import line_value
from reference_loss import function as formula

HALF = Fraction(1, 2)


def staircase(rng: Random) -> tuple[list[int], list[float]]:
    """Numbers of steps with losses that never fall, some of them jumping."""
    counts, losses = [1], [rng.random() * 1e-6]
    while counts[-1] < 10**6:
        counts.append(max(counts[-1] + 1, int(counts[-1] * rng.choice([1.002, 1.005, 1.03]))))
        losses.append(losses[-1] * rng.choice([1.0, 1.001, 1.004, 1.004, 1.2]))
    return counts, losses


@pytest.mark.theorem("T-KNOTS")
def test_lines_are_never_below_a_staircase_and_hardly_above_its_steps() -> None:
    rng = Random(1)
    for accurate_from in (1, 1, 100):
        counts, losses = staircase(rng)
        knots = tuple((Fraction(count), level) for count, level in _knots(counts, losses, accurate_from))
        assert [count for count, _ in knots] == sorted({count for count, _ in knots})
        assert len(knots) < len(counts)
        for before, count, loss in zip([0, *counts], counts, losses):
            for steps in (before + 1, count):
                assert line_value(Fraction(steps), knots) >= Fraction(loss)
            room = 1 + ROOM * (COARSE if BEFORE * (before + 1) < accurate_from else 1)
            assert line_value(Fraction(before + 1), knots) <= Fraction(loss * room * (1 + 1e-5))


@pytest.mark.theorem("T-KNOTS")
def test_a_policy_covers_the_certified_loss_of_every_number_of_steps_it_is_made_of() -> None:
    mechanism = rw.Polylog(power=2, rate=1, offset=3, scale=40, lattice=1)
    policy, nodes = mechanism.policy("emp"), Nodes.of(mechanism.law_on(Fraction(1)), mechanism.function)
    sizes = [*range(1, 120), *(int(size) for size in np.geomspace(120, 10**6, 60))]
    certified = [certified_loss(nodes, mechanism.function, size) for size in sizes]
    charged = policy.loss({"emp": np.array(sizes)})
    assert np.all(charged >= np.array(certified) * (1 - 1e-3))
    assert np.all(charged <= np.array(certified) * 1.01)


@pytest.mark.theorem("T-KNOTS")
@pytest.mark.parametrize("shape, scale", [("1/4", 10**4), ("1/2", 123_456), ("3/4", 10**5)])
@pytest.mark.costly
def test_a_policy_is_within_one_percent_of_the_loss_from_a_thousandth_of_the_scale_on(shape: str, scale: int) -> None:
    """At that very record and just above it, where wide stretches used to end: 1.04 times the loss was charged there."""
    mechanism = rw.GeneralizedGaussian(shape=shape, scale=scale)
    policy, first = mechanism.policy("emp"), math.ceil(scale / 1000)
    sizes = sorted({int(first * 1.004**power) for power in range(24)})
    for size in sizes:
        exact = shift_loss(mechanism, Fraction(1), size)
        assert exact * (1 - 1e-3) <= policy.loss({"emp": size}) <= exact * 1.0087


@pytest.mark.theorem("T-KNOTS")
def test_shifts_certified_together_are_certified_as_alone() -> None:
    law = GeneralizedGaussian(30, HALF)
    nodes = Nodes.of(law, law.exponent)
    shifts = [1, 2, 3, 50, 51, 1000, 10**6]
    together = certified_losses(nodes, law.exponent, shifts)
    for shift, loss in zip(shifts, together.tolist()):
        assert loss == pytest.approx(certified_loss(nodes, law.exponent, shift), rel=1e-3)


def beyond_terms(exponent: Function, shift: int, tilt: float) -> float:
    """-(1/t) ln E exp(t (L - eps)) at a shift by adding up integers: what a constant beyond it may not exceed at that order."""
    k = np.arange(-400_000, 400_000 + shift)
    rise = lambda t: exponent.increase(NumpyArithmetic(), np.asarray(t, np.float64))  # noqa: E731
    weights = np.exp(-rise(np.abs(k)))
    moved = rise(np.abs(k - shift)) - rise(np.abs(k)) - rise(np.array([shift]))
    return -math.log(float(np.sum(weights * np.exp(tilt * moved)) / np.sum(weights))) / tilt


@pytest.mark.theorem("T-BEYOND")
@pytest.mark.parametrize("law", [GeneralizedGaussian(10, HALF), Polylog(10, 5, 2, 1)], ids=str)
def test_what_is_taken_off_beyond_a_shift_is_saved_at_every_shift_from_there_on(law: rw.noise.LatticeLaw) -> None:
    nodes = Nodes.of(law, law.exponent, ratio=1.004)
    first = 2000
    less = less_beyond(nodes, law.exponent, first)
    assert less is not None
    assert less > 0.9
    for shift in (first, 3 * first, 50 * first):
        saved = beyond_terms(law.exponent, shift, 1e-3)
        assert less <= saved * (1 + 1e-9)
    assert less > 0.99 * saved


@pytest.mark.theorem("T-BEYOND")
def test_near_the_noise_nothing_is_taken_off() -> None:
    law = GeneralizedGaussian(1000, HALF)
    assert less_beyond(Nodes.of(law, law.exponent, ratio=1.004), law.exponent, 100) is None


@pytest.mark.theorem("T-BEYOND")
def test_a_constant_is_taken_off_only_if_no_order_needs_more_than_what_is_left() -> None:
    """Constants of the orders as the statement has them, falling from the first on; its inequalities for all orders by hand."""
    rng, answers = np.random.default_rng(5), []
    for _ in range(400):
        saved = rng.uniform(0.1, 3) - np.cumsum(rng.exponential(rng.choice([1e-4, 1e-2, 1.0]), len(TILTS)))
        epsilon = float(rng.choice([0.5, 3.0, 12.0]))
        needed = [(epsilon - later) / (1 + tilt) for tilt, later in zip(TILTS, saved[1:])] + [epsilon / (1 + TILTS[-1])]
        answers.append((bool(saved[0] > 0), _holds_beyond(saved, epsilon)))
        if answers[-1][1]:
            assert max(needed) <= (epsilon - saved[0]) * (1 + 1e-12)
            assert epsilon / 2 >= saved[0] > 0
    assert answers.count((True, True)) > 20
    assert answers.count((True, False)) > 20


@pytest.mark.theorem("T-CERTIFIED")
@pytest.mark.parametrize(
    "exponent", [log(x / 40 + 3) ** 2, (x / 40) ** Fraction(9, 10), log(x / 300 + 8) ** 3 / 2], ids=str
)
def test_the_bend_of_an_exponent_is_bounded_from_above(exponent: Function) -> None:
    """-f''' at 40 digits, by differences, in the cells where it is positive and next to them."""
    bends = Bends.of(exponent)
    with mpmath.workdps(40):
        for low, largest in list(zip(bends.edges.tolist(), bends.largest.tolist()))[:90]:
            for place in (low, low * 1.03, low * 1.08):
                third = mpmath.diff(lambda t: value(exponent, t), mpmath.mpf(place), 3)
                assert -third <= largest * (1 + 1e-9)


@pytest.mark.theorem("T-CERTIFIED")
@pytest.mark.parametrize("shift", [1, 50, 3000])
def test_a_certified_loss_allows_for_an_exponent_that_bends_the_other_way(shift: int) -> None:
    """Between nodes that are far apart the log-ratio of a squared logarithm rises above its chord, as that of a root never does."""
    law = Polylog(400, 1, "2.72", 2)
    nodes = Nodes.of(law, law.exponent, ratio=2.5)
    n = np.array([float(shift)])
    _, loss = _side(nodes, 0, *_negative_side(nodes, law.exponent, n))
    k = np.arange(nodes.points[-1])
    true = _rise(law.exponent, k, k + shift)
    on_chords = np.interp(k, nodes.points, loss[0])
    assert np.all(on_chords >= true * (1 - 1e-9))
    plain = np.interp(k, nodes.points, _rise(law.exponent, nodes.points, nodes.points + shift))
    assert np.any(plain < true * (1 - 1e-6))


def value(function: Function, t: mpmath.mpf) -> mpmath.mpf:
    return formula(function.to_json(), t)


def noise() -> Noise:
    return Noise(exponent=(x / 7) ** HALF, step=1, accurate_from=1)


def law() -> GeneralizedGaussian:
    return GeneralizedGaussian(7, HALF)


@pytest.mark.theorem("T-KNOTS")
def test_a_certificate_is_kept_by_its_exact_parameters() -> None:
    made = certificate(noise(), law)
    assert certificate(noise(), law) is made
    other = Noise(exponent=(x / Fraction("7.0000001")) ** HALF, step=1, accurate_from=1)
    assert certificate(other, lambda: GeneralizedGaussian("7.0000001", HALF)) is not made


@pytest.mark.theorem("T-KNOTS")
@pytest.mark.parametrize("change", ["a loss", "the constant", "the parameters", "everything of another noise"])
def test_a_certificate_that_was_tampered_with_is_made_again(change: str) -> None:
    made = certificate(noise(), law)
    lowered = tuple((count, level / 2) for count, level in made.knots)
    wider = Noise(exponent=(x / 70) ** HALF, step=1, accurate_from=1)
    changed = {
        "a loss": dataclasses.replace(made, knots=lowered),
        "the constant": dataclasses.replace(made, less=made.less * 2),
        "the parameters": dataclasses.replace(made, parameters=wider.parameters()),
        "everything of another noise": certificate(wider, lambda: GeneralizedGaussian(70, HALF)),
    }[change]
    KEPT[noise().parameters()] = changed
    assert certificate(noise(), law) == made


@pytest.mark.costly
def test_old_certificates_make_room_for_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "MOST_KEPT", 2)
    for scale in (3, 4, 5):
        certificate(Noise(exponent=(x / scale) ** HALF, step=5, accurate_from=1), lambda: law())
    assert len(KEPT) == 2


@pytest.mark.parametrize("goal", [{"rho": "0.1", "at": 50}, {"rho": 2, "at": 1000}])
@pytest.mark.parametrize("make", [{"shape": HALF}, {"shape": "0.3"}])
@pytest.mark.costly
@pytest.mark.sampled
def test_a_scale_found_for_a_loss_keeps_it_in_the_policy(make: dict[str, object], goal: dict[str, object]) -> None:
    mechanism = rw.GeneralizedGaussian(**make, **goal)  # type: ignore[arg-type]
    charged = mechanism.policy("emp").loss({"emp": goal["at"]})
    wanted = float(Fraction(str(goal["rho"])))
    assert 0.98 * wanted < charged <= wanted
