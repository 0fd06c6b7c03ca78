"""Epsilon and power from the law of lattice noise: held against its own hockey-stick divergence, and beside another library."""

import math
from fractions import Fraction

import numpy as np
import pytest

from recordwise.errors import ParameterError, UnknownFormError
from recordwise.policy import among, constant, epsilon, gaussian_sum, meaning, power_zcdp
from recordwise.policy.loss_law import (
    BORROWED,
    FINE,
    LOST,
    REACH,
    RIPPLE,
    LatticePart,
    LatticePolicy,
    PrivacyLoss,
    Shift,
    coarse_loss,
)
from recordwise.policy.meaning import gdp_epsilon_of

EPSILONS = np.linspace(0, 8, 33)
PLANS = [
    [Shift(0.7, 1)],
    [Shift(1.0, 2)],
    [Shift(2.5, 1), Shift(1.2, 1)],
    [Shift(4.0, 3), Shift(3.0, 2)],
    [Shift(33.0, 20), Shift(1.5, 1)],
    [Shift(40.0, 15), Shift(35.0, 30)],
]


def weights(sigma, reach):
    """The mass function of discrete Gaussian noise by its definition."""
    points = np.arange(-reach, reach + 1)
    mass = np.exp(-(points**2) / (2 * sigma**2))
    return mass / mass.sum()


def joint_laws(shifts):
    """What is published with and without the record, on a window: every combination of two numbers at most."""
    with_record, without = np.ones(1), np.ones(1)
    for shift in shifts:
        reach = int(14 * shift.sigma) + shift.steps
        mass = weights(shift.sigma, reach)
        moved = np.roll(np.concatenate([mass, np.zeros(shift.steps)]), shift.steps)
        still = np.concatenate([mass, np.zeros(shift.steps)])
        with_record, without = np.outer(with_record, moved).ravel(), np.outer(without, still).ravel()
    return with_record, without


def true_delta(shifts, target):
    p, q = joint_laws(shifts)
    return max(float(np.maximum(one - math.exp(target) * other, 0).sum()) for one, other in ((p, q), (q, p)))


def true_power(shifts, level):
    """By the lemma of Neyman and Pearson, with a randomized last step."""
    p, q = joint_laws(shifts)
    with np.errstate(divide="ignore"):
        order = np.argsort(-np.where(q > 0, p / np.where(q > 0, q, 1), np.inf))
    risen = np.cumsum(q[order])
    return float(np.interp(level, np.concatenate([[0.0], risen]), np.concatenate([[0.0], np.cumsum(p[order])])))


@pytest.mark.theorem("T-LOSS-LAW")
@pytest.mark.parametrize("shifts", PLANS)
@pytest.mark.costly
@pytest.mark.sampled
def test_delta_is_never_below_the_truth_and_hardly_above_it(shifts) -> None:
    found = PrivacyLoss.of(shifts)
    for target, delta in zip(EPSILONS, found.delta_at(EPSILONS)):
        truth = true_delta(shifts, target)
        assert delta >= truth * (1 - 1e-12)
        assert delta <= true_delta(shifts, target - 0.03) * (1 + 1e-3) + 1e-10
    for level in (0.01, 0.05, 0.3):
        truth = true_power(shifts, level)
        assert truth * (1 - 1e-12) <= found.power(level) <= min(1.0, truth * 1.005 + 1e-9)


@pytest.mark.theorem("T-LOSS-LAW")
def test_formulas_that_are_too_small_on_a_lattice_are_rejected() -> None:
    """The continuous formula, and losses rounded down to a grid."""
    coarse = [Shift(0.7, 1)]
    continuous = gdp_epsilon_of(coarse[0].rho, 1e-5)
    assert true_delta(coarse, continuous) > 1.5e-5
    assert PrivacyLoss.of(coarse).epsilon(1e-5) == pytest.approx(6.956, abs=1e-3)
    # Losses rounded down to a grid, which their mean does not notice.
    grid = 0.5
    p, q = joint_laws(coarse)
    seen = (p > 0) & (q > 0)
    rounded = np.floor(np.log(p[seen] / q[seen]) / grid) * grid
    too_small = float((p[seen] * np.maximum(0, 1 - np.exp(6.5 - rounded))).sum())
    assert too_small < 0.99 * true_delta(coarse, 6.5)
    # The power of a test: the zCDP bound is never below, and noise of few steps can be below the Gaussian number.
    assert true_power(coarse, 0.05) <= PrivacyLoss.of(coarse).power(0.05) <= power_zcdp(coarse[0].rho, 0.05)


@pytest.mark.theorem("T-LOSS-LAW")
def test_lattice_noise_is_drawn_from_continuous_noise_that_lacks_the_borrowed_variance() -> None:
    """The kernel of the proof, summed: it gives the mass function, and its normalizer ripples by no more than stated."""
    sigma, fine = 3.0, np.linspace(-60, 60, 240_001)
    lacking = sigma**2 - BORROWED
    lattice = np.arange(-75, 76)
    theta = np.exp(-((lattice[:, None] - np.linspace(0, 1, 101)) ** 2) / (2 * BORROWED)).sum(axis=0)
    theta /= math.sqrt(2 * math.pi * BORROWED)
    assert np.abs(theta - 1).max() <= RIPPLE
    assert np.abs(theta - 1).max() > 0.99 * RIPPLE
    for point in (0, 2, 9):
        joint = np.exp(-(fine**2) / (2 * lacking) - (point - fine) ** 2 / (2 * BORROWED))
        ratio = joint.sum() / np.exp(-(fine**2) / (2 * lacking) - fine**2 / (2 * BORROWED)).sum()
        assert ratio == pytest.approx(math.exp(-(point**2) / (2 * sigma**2)), rel=1e-9)


def library_epsilons(shifts, delta):
    """Optimistic and pessimistic, from another library's privacy-loss distributions of discrete Gaussian noise."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    found = []
    for pessimistic in (False, True):
        total = None
        for shift in shifts:
            one = pld.from_discrete_gaussian_mechanism(
                shift.sigma,
                sensitivity=shift.steps,
                value_discretization_interval=1e-4,
                pessimistic_estimate=pessimistic,
            )
            one = one if shift.times == 1 else one.self_compose(shift.times)
            total = one if total is None else total.compose(one)
        found.append(total.get_epsilon_for_delta(delta))
    return found


def random_plan(rng):
    """One to four statistics: sigmas from half a step to a thousand, losses from a thousandth to five."""
    shifts = []
    for _ in range(rng.integers(1, 5)):
        sigma = 10 ** rng.uniform(-0.3, 2.5)
        steps = max(1, round(sigma * math.sqrt(2 * 10 ** rng.uniform(-2.5, 0.3))))
        shifts.append(Shift(float(sigma), int(steps)))
    return shifts


def check_plans(count, seed):
    rng = np.random.default_rng(seed)
    above = []
    for _ in range(count):
        shifts, delta = random_plan(rng), 10 ** rng.uniform(-8, -3)
        optimistic, pessimistic = library_epsilons(shifts, delta)
        found = PrivacyLoss.of(shifts).epsilon(delta)
        assert found >= optimistic
        assert found <= 1.01 * pessimistic
        above.append(found / pessimistic)
    return above


@pytest.mark.theorem("T-LOSS-LAW")
@pytest.mark.costly
def test_epsilon_lies_between_the_two_estimates_of_another_library() -> None:
    check_plans(4, seed=1)


@pytest.mark.slow
@pytest.mark.theorem("T-LOSS-LAW")
def test_epsilon_of_two_hundred_random_plans_beside_another_library() -> None:
    assert len(check_plans(200, seed=2)) == 200


def mixed():
    return LatticePolicy(
        parts=(
            LatticePart(sigma=Fraction(100), policy=gaussian_sum("emp", sigma=100)),
            LatticePart(sigma=Fraction(9), policy=gaussian_sum("emp", sigma=9).where(among("naics", ["21"]))),
            LatticePart(sigma=Fraction(2), policy=constant("1/8")),
            LatticePart(sigma=Fraction(3), policy=constant("1/18"), times=10),
        )
    )


@pytest.mark.theorem("T-LOSS-LAW")
def test_a_record_is_moved_by_whole_steps_of_each_lattice() -> None:
    policy, record = mixed(), {"emp": 7, "naics": "21"}
    found = policy.loss(record)
    same = PrivacyLoss.of([Shift(100.0, 7), Shift(9.0, 7), Shift(2.0, 1), Shift(3.0, 1, 10)])
    assert found.epsilon(1e-5) == pytest.approx(same.epsilon(1e-5), rel=1e-7)
    told = policy.meaning(record)
    assert told.rho == pytest.approx(49 / 20000 + 49 / 162 + 1 / 8 + 10 / 18)
    assert told.epsilon < meaning(told.rho).epsilon
    assert told.power < meaning(told.rho).power
    assert policy.policy().loss(record) == told.rho
    assert LatticePolicy.from_json(policy.to_json()) == policy
    for wrong in (3, [["1", 1]], [["0", 1, False, constant(1).to_json()]], [["1", 1, True, constant(1).to_json()]]):
        with pytest.raises(UnknownFormError):
            LatticePolicy.from_json(wrong)
    with pytest.raises(ParameterError, match="record"):
        policy.loss({"emp": [1, 2], "naics": ["21", "11"]})


@pytest.mark.theorem("T-LOSS-LAW")
def test_noise_that_differs_by_group_is_replaced_by_continuous_noise_that_reveals_no_less() -> None:
    """At equal loss, noise of few steps may reveal less than noise of more steps: the smallest sigma alone would be wrong."""
    rho, level = 1 / (2 * 1.2**2), 0.05
    coarse, finer = [Shift(1.2, 1)], [Shift(12.0, 10)]
    assert PrivacyLoss.of(coarse).power(level) < true_power(finer, level) * 0.98
    varied = LatticePolicy(parts=(LatticePart(sigma=Fraction("1.2"), policy=constant(rho), varies=True),)).loss({})
    for shifts in (coarse, finer):
        assert true_power(shifts, level) <= varied.power(level)
        for target in EPSILONS:
            assert true_delta(shifts, target) <= float(varied.delta_at(target)[0]) * (1 + 1e-9)


@pytest.mark.theorem("T-LOSS-LAW")
@pytest.mark.costly
def test_the_table_of_a_page_is_never_below_and_at_most_three_percent_above() -> None:
    fine = LatticePolicy(parts=tuple(part for part in mixed().parts if part.sigma != 9))
    table = fine.table()
    assert table is not None
    for emp in (0, 1, 3, 20, 45, 300, 1000):
        told = fine.meaning({"emp": emp})
        shown, power = table.at(float(table.smooth.loss({"emp": emp})))
        assert told.epsilon <= shown <= 1.03 * told.epsilon
        assert told.power <= power <= 1.03 * told.power
    # With a sum whose noise has nine steps it is further above, and never below.
    table = mixed().table()
    assert table is not None
    for emp in (0, 1, 3, 20):
        record = {"emp": emp, "naics": "21"}
        told = mixed().meaning(record)
        shown, _ = table.at(float(table.smooth.loss(record)))
        assert told.epsilon <= shown <= 1.04 * told.epsilon
    assert table.at(1e6) == (math.inf, 1.0)
    assert (
        LatticePolicy(parts=(LatticePart(sigma=Fraction(1, 2), policy=gaussian_sum("emp", sigma=1)),)).table() is None
    )


def test_nothing_is_lost_by_no_shift_and_the_zcdp_number_is_never_exceeded() -> None:
    nothing = PrivacyLoss.of([Shift(5.0, 0)])
    assert (nothing.epsilon(1e-5), nothing.rho) == (0.0, 0.0)
    huge = PrivacyLoss.of([Shift(1.0, 1000)])
    assert huge.epsilon(1e-5) == epsilon(huge.rho, 1e-5)
    rng = np.random.default_rng(3)
    for _ in range(20):
        loss = PrivacyLoss.of(random_plan(rng))
        assert loss.epsilon(1e-6) <= epsilon(loss.rho, 1e-6)
    for sigma in (FINE - 1e-9, float(FINE)):
        # Where coarse noise becomes fine the number hardly moves.
        assert PrivacyLoss.of([Shift(sigma, 20)]).epsilon(1e-5) == pytest.approx(
            PrivacyLoss.of([Shift(float(FINE), 20)]).epsilon(1e-5), rel=1e-3
        )


@pytest.mark.theorem("T-LOSS-LAW")
@pytest.mark.parametrize("points", [40, 120])
@pytest.mark.parametrize(
    "shifts",
    [
        (Shift(0.2, 1),),
        (Shift(0.25, 1),),
        (Shift(0.7, 3),),
        (Shift(0.5, 1, 40),),
        (Shift(3.0, 2), Shift(0.9, 1, 3)),
        (Shift(31.0, 1),),
        (Shift(31.9, 25, 2), Shift(1.1, 4)),
        (Shift(2.0, 1, 1000),),
    ],
    ids=str,
)
def test_what_is_cut_off_and_rounded_is_added_to_delta(shifts: tuple[Shift, ...], points: int) -> None:
    """Exact sums of the floats: no mass is missing, at both ends next to none is moved, and a tail left out is below LOST."""
    losses, masses, slack = coarse_loss(shifts, points)
    assert (masses >= 0).all()
    assert (np.diff(losses) > 0).all()
    assert sum(map(Fraction, masses.tolist()), Fraction(slack)) >= 1
    assert 0 < slack < 1e-7
    numbers = sum(shift.times for shift in shifts)
    assert slack > numbers * LOST
    for shift in shifts:
        first = math.ceil(REACH * shift.sigma)
        tail = 2 * sum(math.exp(-(k**2) / (2 * shift.sigma**2)) for k in range(first, first + int(9 * shift.sigma) + 9))
        assert tail / max(1.0, shift.sigma * math.sqrt(2 * math.pi)) < LOST
    # The mean of the loss is rho, and each number is moved up by less than a point of the grid.
    rho, mean = sum(shift.rho for shift in shifts), float(losses @ masses)
    assert rho * (1 - 1e-6) <= mean <= rho * (1 + 1e-6) + numbers * (losses[1] - losses[0])
