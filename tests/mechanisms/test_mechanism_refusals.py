"""What is refused, each with its reason; and that no refusal quotes a total."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import recordwise as rw
from mechanisms.drawn_laws import laid
from recordwise.errors import ParameterError, RangeError
from recordwise.exact.functions import log, x
from recordwise.mechanisms.quantile import Grid
from recordwise.noise import Seeded
from recordwise.policy import Measure

LOG = rw.LogTransform(offset=1, sigma=1)

ANY_TREE: Any = rw.TreeQuantile
ANY_GRID: Any = Grid
POINTS = Grid.log(1, 100, bits=3)

AT_CONSTRUCTION: list[tuple[Any, str]] = [
    (lambda: ANY_TREE(grid=POINTS, rhoo=1), "'rhoo' is no argument of TreeQuantile: did you mean 'rho'"),
    (lambda: ANY_TREE(grid=POINTS), "TreeQuantile needs rho"),
    (lambda: ANY_GRID.log(1, 100, bit=3), "'bit' is no argument of Grid.log: did you mean 'bits'"),
    (lambda: rw.Polylog(power=2, rate=1, offset="1.2", scale=1), "is not concave"),
    (lambda: rw.Polylog(power=2, rate=1, offset="2.718", scale=1), r"needs u\(0\) >= e\^1"),
    (lambda: rw.Polylog(power=1, rate=2, offset=1, scale=1), "no mean"),
    (lambda: rw.Polylog(power=1, rate=3, offset=1, variance=2), "to have a variance"),
    (lambda: rw.Polylog(power="0.5", rate=3, offset=1, scale=2), "power must be at least 1"),
    (lambda: rw.Polylog(power=1, rate=4, offset="0.5", scale=2), "offset must be at least 1"),
    (lambda: rw.Polylog(power=9, rate=1, offset=3000, scale=10), "power must be at most 8"),
    (lambda: rw.Polylog(power=1000, rate=1, offset=3, scale=10), "power must be at most 8"),
    (lambda: rw.GeneralizedGaussian(shape=0.5, rho=1, at=1e300), "record is too large beside the noise"),
    (lambda: rw.Polylog(power=2, rate=1, offset=3, rho="1e300", at=1), "record is too large beside the noise"),
    (lambda: rw.LogTransform(offset=0, sigma=1), "offset must be above 0"),
    (lambda: rw.LogTransform(offset=-1, sigma=1), "offset must be above 0"),
    (lambda: rw.LogTransform(offset=1, laplace_scale=1), "below 1; otherwise the exponential of the noise has no mean"),
    (lambda: rw.LogTransform(offset=1, sigma=0), "sigma must be above 0"),
    (lambda: rw.RootTransform(degree=17, sigma=1), "degree must be a whole number from 1 to 16"),
    (lambda: rw.RootTransform(degree="1/2", sigma=1), "degree must be a whole number from 1 to 16"),
    (lambda: rw.RootTransform(degree="17/2", offset=1, laplace_scale=1), "or lie between 1 and 8"),
    (lambda: rw.RootTransform(degree=True, sigma=1), "degree must be a number"),
    (
        lambda: rw.RootTransform(degree="5/2", offset=1, sigma=1),
        "no unbiased estimator is known for it under Gaussian noise",
    ),
    (lambda: rw.RootTransform(degree="5/2", laplace_scale=1), "offset is too small for this inverse"),
    (lambda: rw.RootTransform(degree=2, offset=-1, sigma=1), "offset must not be negative"),
    (lambda: rw.Clamped(to=0, rho=1), "to must be above 0"),
    (lambda: rw.Clamped(to=-5, rho=1), "to must be above 0"),
    (lambda: rw.UnitSplit(at=0, rho=1), "at must be above 0"),
    (lambda: rw.UnitSplit(at={}, rho=1), "must name at least one measure"),
    (lambda: rw.GeneralizedGaussian(shape="1.5", scale=1), "not concave"),
    (lambda: rw.mechanisms.Additive((x / 5) ** 2), "not certified concave"),
    (lambda: rw.mechanisms.Additive(log(x + "1.2") ** 2), "not concave"),
    (lambda: rw.mechanisms.Additive(math.sqrt), "expression of recordwise.exact.functions"),
    (lambda: rw.mechanisms.Transform(x**2, x**0.5, sigma=1), "not certified concave"),
    (lambda: rw.mechanisms.Transform(x**0.5, x**3, sigma=1), "does not undo f"),
    (
        lambda: rw.mechanisms.Transform(x**0.4, x**2.5, offset=10, sigma=1),
        "no unbiased estimator is known for it under Gaussian noise",
    ),
    (lambda: rw.mechanisms.Transform(x**0.75, x ** Fraction(4, 3), laplace_scale=1), "offset is too small"),
    (lambda: rw.mechanisms.Transform(math.sqrt, x**2, sigma=1), "expression of recordwise.exact.functions"),
]


@pytest.mark.parametrize("build, reason", AT_CONSTRUCTION)
def test_bad_parameters_are_refused_when_the_mechanism_is_built(build: Any, reason: str) -> None:
    with pytest.raises(ParameterError, match=reason):
        build()


AT_USE: list[tuple[Any, str]] = [
    (lambda: LOG.release([3, -123456789]), "must not be negative for a transform"),
    (lambda: rw.LogTransform(offset=1, sigma=1, signed=True).release([1, 2, 123456789]), "two rows"),
    (lambda: LOG.release([1.5, 123456789.0]), "whole numbers of lattice steps"),
    (lambda: rw.Gaussian(sigma=1).release(np.array([True, False])), "whole numbers of lattice steps"),
    (lambda: rw.Gaussian(sigma=1).release(["123456789"]), "whole numbers of lattice steps"),
    (lambda: rw.Gaussian(sigma=1).release([1, 123456789], step=0), "step must be above 0"),
    (lambda: rw.Gaussian(sigma=1).release([1, 123456789], step="1e-200"), "step must lie between"),
    (lambda: LOG.estimate(LOG.release([1]), confidence=1), "confidence must lie between 0 and 1"),
    (lambda: LOG.policy(Measure(name="profit", signed=True)), "signed does not fit"),
    (lambda: rw.LogTransform(offset=1, sigma=1, signed=True).policy("emp"), "signed does not fit"),
    (lambda: rw.Gaussian(rho=1).policy("emp"), "is for counts"),
    (lambda: rw.Clamped(to="1.5", rho=1).policy("emp"), "multiple of the step"),
    (lambda: rw.UnitSplit(at="1.5", rho=1).policy("emp"), "multiple of the step"),
    (lambda: rw.UnitSplit(at={"emp": 5}, rho=1).policy("pay"), "has no threshold for 'pay'"),
    (lambda: rw.UnitSplit(at={"emp": 5}, rho=1).release([123456789]), "differs by group or measure"),
    (lambda: rw.GeneralizedGaussian(shape=0.5, scale=1, lattice="0.3").release([123456789]), "must divide"),
    (lambda: LOG.shared(2), "share must be at most 1"),
]


@pytest.mark.parametrize("use, reason", AT_USE)
def test_bad_use_is_refused_without_quoting_a_total(use: Any, reason: str) -> None:
    with pytest.raises(ParameterError, match=reason) as caught:
        use()
    assert "123456789" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_noise_that_leaves_64_bits_too_often_is_refused() -> None:
    with pytest.raises(RangeError, match="exceeds 2\\^62 steps"):
        rw.Polylog(power=1, rate="2.5", offset=1, scale=5).release([1])


@pytest.mark.parametrize(
    "mechanism",
    [
        rw.Polylog(power=1, rate="2.5", offset=1, scale=5),
        rw.GeneralizedGaussian(shape=0.5, scale="1e16"),
        rw.Gaussian(sigma="1e18"),
        rw.Clamped(to=1, rho="1e-38"),
        rw.UnitSplit(at=1, rho="1e-38"),
        rw.LogTransform(offset="1e15", sigma="0.1"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("tight", [True, False])
def test_noise_that_cannot_be_drawn_is_refused_with_its_policy_before_anything_is_spent(
    mechanism: Any, tight: bool
) -> None:
    with pytest.raises(RangeError):
        mechanism.policy("emp", tight=tight)


def test_noise_too_large_for_floats_is_reported_as_infinite() -> None:
    mechanism = rw.LogTransform(offset=1, sigma=30)
    found = mechanism.estimate(laid(mechanism, [5])[0])
    assert np.isfinite(found.standard_error[0])
    assert np.isfinite(found.value[0])
    assert np.isinf(mechanism.variance(5.0))


def test_a_variance_is_not_given_for_a_negative_total() -> None:
    with pytest.raises(ParameterError, match="total must not be negative"):
        LOG.variance(-1.0)


def test_math_e_as_an_offset_means_the_limit_itself() -> None:
    """The float nearest to e is a hair below it; whoever writes it means e."""
    mechanism = rw.Polylog(power=2, rate=1, offset=math.e, scale=1)
    assert Fraction(math.e) < mechanism.offset < Fraction(math.e) + Fraction(1, 10**15)
    with pytest.raises(ParameterError, match="not concave"):
        rw.Polylog(power=2, rate=1, offset="2.718281828459045", scale=1)


def test_noise_without_a_variance_is_marked_by_an_infinite_standard_error() -> None:
    """Pareto-type noise up to rate 3, and the exponential of Laplace noise from scale 1/2 on."""
    pareto = rw.Polylog(power=1, rate="2.95", offset=1, scale=1)
    found = pareto.estimate(laid(pareto, [5])[0])
    assert np.all(np.isinf(found.standard_error))
    assert np.isinf(pareto.variance(5.0))
    for scale, infinite in (("0.49", False), ("0.5", True), ("0.9", True)):
        mechanism = rw.LogTransform(offset=1, laplace_scale=scale)
        error = mechanism.estimate(laid(mechanism, [5])[0]).standard_error
        assert bool(np.isinf(error[0])) == infinite


def test_a_seeded_release_says_that_it_is_not_private() -> None:
    for mechanism in (rw.Gaussian(sigma=1), LOG, rw.GeneralizedGaussian(shape=0.5, scale=1)):
        assert mechanism.release([1, 2]).private
        assert not mechanism.release([1, 2], rng=Seeded(1)).private


def test_a_source_that_looks_empty_is_still_the_source_that_was_given() -> None:
    class Empty(Seeded):
        def __len__(self) -> int:
            return 0

    assert not rw.Gaussian(sigma=1).release([1, 2], rng=Empty(3)).private
