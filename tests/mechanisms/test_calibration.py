"""Every mechanism can be set by its parameter, by a variance, by the loss of a reference record, and by a relative error."""

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

import recordwise as rw
from mechanisms.mechanism_catalogue import CENT, GROUPED, JOINT
from recordwise.errors import ParameterError
from recordwise.exact.functions import log, x
from recordwise.mechanisms.calibration import solve
from recordwise.mechanisms.fat_tailed import Additive, FatTailedNoise
from recordwise.mechanisms.transforms import Transform
from recordwise.noise import DiscreteGaussian, Seeded
from recordwise.policy import Measure

SQRT = (x**0.5, x**2)


def every(**goal: Any) -> dict[str, Any]:
    """All mechanisms set by one goal, which those with a noise of the same size everywhere meet at any total."""
    user = (x / 5) ** 0.5 + log(x / 10 + 1)
    made = {
        "generalized gaussian": rw.GeneralizedGaussian(shape=0.5, **goal),
        "generalized gaussian on integers": rw.GeneralizedGaussian(shape=0.5, lattice=1, **goal),
        "polylog": rw.Polylog(power=2, rate=1, offset=math.e, **goal),
        "additive": rw.mechanisms.Additive(user, **goal),
        "root": rw.RootTransform(degree=3, offset=1, **goal),
        "root laplace": rw.RootTransform(degree=2, offset=1, noise="laplace", **goal),
        "log": rw.LogTransform(offset=10, **goal),
        "log laplace": rw.LogTransform(offset=10, noise="laplace", **goal),
        "signed log": rw.LogTransform(offset=10, signed=True, **goal),
        "user": rw.mechanisms.Transform(*SQRT, offset=1, **goal),
        "user laplace": rw.mechanisms.Transform(x**0.4, x**2.5, offset=50, noise="laplace", **goal),
        "gaussian": rw.Gaussian(**goal),
    }
    if "rho" not in goal:
        made |= {"clamped": rw.Clamped(to=20, **goal), "unit split": rw.UnitSplit(at=20, **goal)}
    return made


def test_a_variance_is_met_and_not_exceeded() -> None:
    for name, mechanism in every(variance=30, at_total=100).items():
        total = np.array([100.0, 0.0]) if name == "signed log" else np.array(100.0)
        found = float(mechanism.variance(total))
        # Fine lattices of different phase agree to a few parts in a million; the Gaussian sigma is rounded up at its 17th digit.
        fine = isinstance(mechanism, FatTailedNoise) and mechanism.coarseness is None
        assert found == pytest.approx(30, rel=1e-5 if fine else 1e-9), name


@pytest.mark.costly
def test_the_loss_of_the_reference_record_is_met_and_not_exceeded() -> None:
    for name, mechanism in every(rho=5, at=60).items():
        measure = Measure(name="emp", step=Fraction(1), signed=name == "signed log")
        loss = mechanism.policy(measure).loss({"emp": 60})
        assert loss <= 5, name
        assert loss > 4.99, name


def test_a_finer_step_than_the_reference_record_never_raises_a_transforms_loss() -> None:
    for mechanism in (rw.RootTransform(degree=3, offset=1, rho=0.5, at=60), rw.LogTransform(offset=10, rho=0.5, at=60)):
        assert mechanism.policy(Measure(name="pay", step=CENT)).loss({"pay": 60}) <= 0.5


@pytest.mark.costly
def test_a_relative_error_holds_with_its_probability() -> None:
    """200,000 simulated cells; the share within the error is binomial, so 6.2 of its standard errors are a false alarm of 1e-9.
    A confidence off by one percentage point is 15 of them."""
    draws, confidence = 200_000, 0.9
    spread = 6.2 * math.sqrt(confidence * (1 - confidence) / draws)
    for name, mechanism in every(relative_error=0.2, at_total=1000, confidence=confidence).items():
        totals = np.full(draws, 1000)
        noisy = mechanism.release(
            np.stack([totals, np.zeros_like(totals)]) if name == "signed log" else totals, rng=Seeded(4)
        )
        value = mechanism.estimate(noisy).value
        within = float(np.mean(np.abs(value - 1000) <= 200))
        if name == "signed log":
            assert within < confidence, "the empty negative part adds noise of its own"
        else:
            assert confidence - spread <= within <= confidence + spread + 0.001, name


def test_the_default_level_is_95_percent() -> None:
    assert rw.Gaussian(relative_error=0.1, at_total=100) == rw.Gaussian(
        relative_error=0.1, at_total=100, confidence=0.95
    )


LATTICE_GOALS: list[tuple[Any, Any, float, Any, int]] = [
    # error, total, confidence, step, and how many lattice steps that allows
    ("0.05", 100, 0.95, None, 5),
    ("0.059", 100, 0.95, None, 5),
    ("0.05", 10, 0.9, None, 0),
    ("0.3", 5, 0.8, None, 1),
    ("0.05", "99.5", 0.95, None, 49),
    ("0.05", 100, 0.95, "0.01", 500),
    ("0.1", 1000, 0.9, None, 100),
]


@pytest.mark.parametrize("error, total, confidence, step, most", LATTICE_GOALS)
@pytest.mark.parametrize("make", [rw.Gaussian, partial(rw.Clamped, to=20), partial(rw.UnitSplit, at=20)])
def test_a_relative_error_is_met_on_the_lattice_and_no_better_than_asked(
    make: Any, error: Any, total: Any, confidence: float, step: Any, most: int
) -> None:
    """By the law that is drawn: a normal quantile would miss 5.9 % of 100 (0.938 for 0.95) and give 5 % of 100 with 0.969."""
    sigma = make(relative_error=error, at_total=total, confidence=confidence, step=step).noise_sigma
    lattice = Fraction(str(step)) if step else Fraction(1, 10) if total == "99.5" else Fraction(1)
    inside, wider = (1 - 2 * float(DiscreteGaussian(s / lattice).sf(most + 1)) for s in (sigma, sigma * 1001 / 1000))
    assert inside >= confidence - 1e-12
    assert wider < confidence


def test_gaussian_noise_is_set_exactly_by_its_variance() -> None:
    assert rw.Gaussian(variance=900).noise_sigma == 30
    assert rw.Clamped(to=20, variance=100).rho == 2
    assert rw.UnitSplit(at=20, variance=100).rho == 2
    assert rw.UnitSplit(at=20, rho=2).noise_sigma == 10


def test_a_variance_at_total_zero_is_a_goal_of_a_transform() -> None:
    mechanism = rw.RootTransform(degree=4, offset=1, variance=2, at_total=0)
    assert float(mechanism.variance(0.0)) == pytest.approx(2, rel=1e-9)


def test_shares_of_gaussian_losses_add_up_to_the_whole() -> None:
    measure = "emp"
    for mechanism in (
        rw.Gaussian(sigma=7),
        rw.Gaussian(rho=0.3, at=4),
        rw.Clamped(to=5, rho=1),
        rw.UnitSplit(at=5, rho=1),
    ):
        parts = [mechanism.shared(share).policy(measure).loss({"emp": 9}) for share in (Fraction(1, 3), Fraction(2, 3))]
        whole = mechanism.policy(measure).loss({"emp": 9})
        assert sum(parts) <= whole * (1 + 1e-15)
        assert sum(parts) == pytest.approx(whole, rel=1e-12)
    assert JOINT.shared("1/2").rho == JOINT.rho / 2
    assert GROUPED.shared("1/2").at == GROUPED.at
    for share in (0, -1, 2):
        with pytest.raises(ParameterError, match="share"):
            rw.Gaussian(sigma=7).shared(share)


BAD_GOALS: list[tuple[Any, dict[str, Any], str]] = [
    (rw.Gaussian, {}, "got none"),
    (rw.Gaussian, {"rho": 1, "sigma": 1}, "got rho and sigma"),
    (rw.Gaussian, {"sigma": 1, "at": 5}, "at goes with rho"),
    (rw.Gaussian, {"relative_error": 0.1}, "at_total is required"),
    (rw.Gaussian, {"variance": 4, "confidence": 0.9}, "confidence goes with relative_error"),
    (rw.Gaussian, {"relative_error": 0.1, "at_total": 10, "confidence": 1.5}, "confidence must lie"),
    (rw.Gaussian, {"variance": 4, "step": 1}, "step goes with relative_error"),
    (rw.Gaussian, {"relative_error": 0.1, "at_total": 10, "step": 0}, "step must be above 0"),
    (rw.GeneralizedGaussian, {"shape": 0.5}, "got none"),
    (rw.GeneralizedGaussian, {"shape": 0.5, "rho": 1}, "at is required"),
    (rw.GeneralizedGaussian, {"shape": 0.5, "scale": 1, "at": 3}, "at goes with rho"),
    (rw.LogTransform, {"offset": 1, "variance": 2}, "at_total is required"),
    (rw.LogTransform, {"offset": 1, "sigma": 1, "laplace_scale": 1}, "mutually exclusive"),
    (rw.LogTransform, {"offset": 1, "sigma": 1, "noise": "laplace"}, "mutually exclusive"),
    (rw.LogTransform, {"offset": 1, "noise": "cauchy", "rho": 1, "at": 5}, "noise must be one of"),
    (rw.LogTransform, {"offset": 1, "sigma": 1, "variance": 2, "at_total": 1}, "got sigma and variance"),
    (rw.LogTransform, {"offset": 1, "rho": "1e-9", "at": 1000, "noise": "laplace"}, "below 1"),
    (rw.UnitSplit, {"at": {"emp": 5, "pay": 6}, "variance": 3}, "one variance does not fit all"),
]


@pytest.mark.parametrize("mechanism, arguments, problem", BAD_GOALS)
def test_goals_that_make_no_sense_are_refused(mechanism: Any, arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(ParameterError, match=problem):
        mechanism(**arguments)


@pytest.mark.parametrize(
    "mechanism, arguments",
    [
        (rw.Gaussian, {}),
        (rw.Clamped, {"to": 5}),
        (rw.UnitSplit, {"at": 5}),
        (rw.LogTransform, {"offset": 5}),
        (rw.RootTransform, {"degree": 2}),
        (Transform, {"f": x**0.5, "inverse": x**2}),
        (rw.GeneralizedGaussian, {"shape": 1}),
        (rw.Polylog, {"power": 2, "rate": 1, "offset": 3}),
        (Additive, {"f": x**0.5}),
    ],
)
def test_a_misspelled_goal_is_refused_by_its_name(mechanism: Any, arguments: dict[str, Any]) -> None:
    for more in ({}, {"variance": 2}):
        with pytest.raises(TypeError, match="varience"):
            mechanism(**arguments, **more, varience=2)


def test_the_solver_keeps_its_promise_on_either_side() -> None:
    rising = solve(lambda p: float(p) ** 2, 2.0, rising=True)
    falling = solve(lambda p: 1 / float(p), 3.0, rising=False)
    assert float(rising) ** 2 <= 2 < (float(rising) * (1 + 3e-12)) ** 2
    assert 1 / float(falling) <= 3 < 1 / (float(falling) * (1 - 3e-12))


def test_a_goal_no_noise_can_meet_is_refused() -> None:
    with pytest.raises(ParameterError, match="no solution"):
        solve(lambda p: 5.0, 1.0, rising=True)
    with pytest.raises(ParameterError, match="no solution"):
        solve(lambda p: 5.0, 1.0, rising=False)


@pytest.mark.parametrize("step", ["1", "0.01", "1/3", "5"])
def test_a_goal_that_is_met_to_the_last_digit_is_met_whatever_the_rounding_of_its_product(step: str) -> None:
    """29 % of 100 is 28.999999999999996 in floats; the 95 % quantile of noise is a whole number of steps."""
    size = Fraction(step)
    for mechanism in (rw.Gaussian(sigma=15 * size), rw.Gaussian(sigma=size / 2)):
        totals = np.array([0.0, 50.0, 1e6])
        quantile = mechanism.error_quantiles(totals, confidence=0.95, step=size)
        steps = quantile / float(size)
        assert steps == pytest.approx(np.rint(steps))
        for factor, met in ((1 - 1e-12, True), (1.0, True), (1 - 1e-6, False), (1.5, True), (0.5, False)):
            assert mechanism.meets(totals, quantile * factor, confidence=0.95, step=size).tolist() == [met] * 3


@pytest.mark.parametrize(("kept", "possible"), [(100, True), (97, True), (103, True), (94, False), (106, False)])
def test_clamping_that_alone_misses_the_goal_in_either_direction_leaves_no_noise(kept: float, possible: bool) -> None:
    found = rw.Clamped(to=10, rho=1).most_noise(100, 5, confidence=0.95, kept=kept)
    assert (found is not None) is possible
