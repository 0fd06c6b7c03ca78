"""Policies against true losses computed by other code: never below, at most 1 % above; wrong policies are found out."""

from collections.abc import Callable

import numpy as np
import pytest

from experiments.charges import truth
from experiments.charges.catalogue import MOST, Subject, external, subjects

MOST_ABOVE = 1.01
NUMERICAL = 1e-7
"""What the true loss may be off by, relatively: the sums by which it is computed agree with closed forms to more digits."""
FEW = {each.name: each for each in subjects(4)}
QUICK = [
    "count, `Gaussian`",
    "sum, `Gaussian`",
    "`Clamped`",
    "`TreeQuantile`",
    "`Keys.select`, rho",
    "`Keys.select`, delta",
    "`GeneralizedGaussian`, shape 0.3",
    "`LogTransform`, Laplace",
]
REST = [name for name in FEW if name not in QUICK]


def kept(subject: Subject, factor: float = 1.0) -> tuple[bool, bool]:
    """Whether ``factor`` times the policy is never below the true loss, and never more than 1 % above it."""
    ratios = [factor * subject.charged(size) / subject.lost(size) for size in subject.sizes]
    return min(ratios) >= 1 - NUMERICAL, max(ratios) <= MOST_ABOVE


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in REST)])
@pytest.mark.costly
@pytest.mark.sampled
def test_no_policy_is_below_the_true_loss_or_more_than_one_percent_above_it(name: str) -> None:
    assert kept(FEW[name]) == (True, True)


@pytest.mark.parametrize("name", ["`Clamped`", "Laplace, scale 3 on whole numbers"])
@pytest.mark.costly
def test_a_policy_that_is_one_percent_too_small_or_too_large_is_found_out(name: str) -> None:
    assert not kept(FEW[name], 0.99)[0]
    assert not kept(FEW[name], 1.011)[1]


def gaussian_at_order_one(sigma: float, shift: int) -> float:
    return shift**2 / (2 * sigma**2)


@pytest.mark.parametrize("sigma", [0.7, 3.0, 900.0])
@pytest.mark.parametrize("shift", [1, 10, 10**6])
def test_the_true_loss_of_gaussian_noise_is_its_closed_form(sigma: float, shift: int) -> None:
    assert truth.gaussian(sigma, shift) == pytest.approx(gaussian_at_order_one(sigma, shift), rel=NUMERICAL)


def laplace_exactly(scale: float, shift: int) -> float:
    epsilon, step = shift / scale, 1 / scale
    return epsilon + step / np.sinh(step) * np.expm1(-epsilon)


@pytest.mark.parametrize("scale", [3.0, 1000.0])
@pytest.mark.parametrize("shift", [1, 100, 20_000, MOST])
@pytest.mark.costly
def test_the_true_loss_of_laplace_noise_is_its_closed_form(scale: float, shift: int) -> None:
    assert truth.fat_tailed(lambda t: t / scale, shift) == pytest.approx(laplace_exactly(scale, shift), rel=2e-6)


WRONG: dict[str, Callable[[Subject], Callable[[int], float]]] = {
    "order 1 alone": lambda subject: lambda size: lost_at_order_one(size),
    "the pure loss": lambda subject: lambda size: (size / 1000) ** 0.5,
    "as if the scale were 2 % larger": lambda subject: (
        lambda size: truth.fat_tailed(lambda t: (t / 1020.0) ** 0.5, size)
    ),
}


def lost_at_order_one(size: int) -> float:
    """The limit of the divergence at order 1, which is far below the loss of a small record."""
    t = np.arange(-3_000_000, 3_000_001, dtype=np.float64)
    here, there = np.sqrt(np.abs(t) / 1000), np.sqrt(np.abs(t - size) / 1000)
    weights = np.exp(-here)
    return float(np.sum(weights * (there - here)) / np.sum(weights))


@pytest.mark.parametrize("wrong", list(WRONG))
@pytest.mark.costly
def test_wrong_losses_of_square_root_noise_are_found_out(wrong: str) -> None:
    right = FEW["`GeneralizedGaussian`, shape 0.5"]
    sizes = [1, 100]
    planted = Subject(right.name, WRONG[wrong](right), right.lost, sizes)
    assert kept(Subject(right.name, right.charged, right.lost, sizes)) == (True, True)
    assert kept(planted) != (True, True)


@pytest.mark.costly
def test_the_charge_of_a_pure_external_mechanism_is_never_below_the_loss_of_laplace_noise() -> None:
    assert kept(external(4))[0]
    assert not kept(external(4), 0.7)[0]
