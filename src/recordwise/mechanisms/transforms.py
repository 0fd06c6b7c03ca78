"""Noise on the root, logarithm or custom function of a total."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Unpack

import numpy as np
from flint import arb

from recordwise.errors import ParameterError, own_argument_errors
from recordwise.exact.arithmetic import BallArithmetic, FloatArray
from recordwise.exact.functions import LARGEST_POWER, Function, log, x
from recordwise.exact.numbers import Number, ball, nonnegative, positive, power_upper, rational, working_precision
from recordwise.mechanisms.accuracy import ValueLaw
from recordwise.mechanisms.base import TRANSFORM_NOISE, Parameter, TransformGoals
from recordwise.mechanisms.inverses import (
    ExponentialInverse,
    FunctionInverse,
    Inverse,
    PolynomialInverse,
    check_smooth,
    inverse_of,
)
from recordwise.mechanisms.transformed import TransformedNoise

# RootTransform: the loss of a very large record grows like a root, and the error grows with the total.


MOST_WHOLE = 16
"""Beyond it the curve is practically a logarithm, and its estimator loses digits."""


@dataclass(frozen=True, slots=True, init=False, repr=False)
class RootTransform(TransformedNoise):
    """Release (total + offset)**(1/degree) with Gaussian (``sigma``) or Laplace (``laplace_scale``) noise.

    The degree is a whole number or, with Laplace noise and an offset, any rational number: ``degree="5/2"``.

    Theorem T-TRANSFORM (docs/theory/policy.md): with contributions x >= 0 the loss is ((x+offset)**(1/degree) -
    offset**(1/degree))**2/(2 sigma**2), plus the grid step of T-GRID.

    Args:
        degree: Degree of the root.
        offset: Added to the total, in the measure's units.
        sigma: Standard deviation of Gaussian noise, on the transformed scale.
        laplace_scale: Scale of Laplace noise, on the transformed scale.
        signed: Whether contributions may be negative.
        goals: A goal: ``variance`` at ``at_total``, ``rho`` of a record of size ``at``, or ``relative_error`` at ``at_total``
            with ``confidence``; ``noise`` is the law that meets it, Gaussian unless given.
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("degree", "degree of the root", needed=True),
        Parameter("offset", "added to the total, in the measure's units"),
        *TRANSFORM_NOISE,
    )
    words: ClassVar[str] = "noise on a root scale"

    degree: int | Fraction
    offset: Fraction
    """Larger values give less loss for every record and more error on small totals."""
    sigma: Fraction | None
    laplace_scale: Fraction | None
    signed: bool

    @own_argument_errors
    def __init__(
        self,
        *,
        degree: Number,
        offset: Number = 0,
        sigma: Number | None = None,
        laplace_scale: Number | None = None,
        signed: bool = False,
        **goals: Unpack[TransformGoals],
    ) -> None:
        object.__setattr__(self, "degree", _degree(degree))
        object.__setattr__(self, "offset", nonnegative(offset, parameter="offset"))
        object.__setattr__(self, "signed", signed)
        self.set_noise(
            lambda **chosen: RootTransform(degree=self.degree, offset=offset, signed=signed, **chosen),
            sigma,
            laplace_scale,
            **goals,
        )
        if isinstance(self.degree, Fraction):
            check_smooth(self.function, self.laplace_scale)

    @classmethod
    def audit_examples(cls) -> dict[str, "RootTransform"]:
        return {
            "square root": cls(degree=2, offset=10, sigma=2),
            "fourth root, laplace": cls(degree=4, offset=10, laplace_scale="0.2"),
        }

    @classmethod
    def planning_families(cls, *, offset: Number) -> dict[str, "RootTransform"]:
        return {
            "square root": cls(degree=2, offset=offset, sigma=1),
            "fourth root": cls(degree=4, offset=offset, sigma=1),
        }

    def with_noise(self, *, sigma: Fraction | None = None, laplace_scale: Fraction | None = None) -> "RootTransform":
        return RootTransform(
            degree=self.degree, offset=self.offset, sigma=sigma, laplace_scale=laplace_scale, signed=self.signed
        )

    def value_law(self) -> ValueLaw | None:
        return ValueLaw.of_root(self, self.degree)

    def resized(self, size: Fraction) -> "RootTransform":
        """Return the transform with its offset as a share of ``size``.

        Noise is a share of the root of ``size``, rounded up.
        """
        noise = {"sigma": self.sigma, "laplace_scale": self.laplace_scale}
        root = power_upper(size, 1 / Fraction(self.degree))
        given = {name: each * root for name, each in noise.items() if each is not None}
        return self.with_offset(self.offset * size).with_noise(**given)

    def with_offset(self, offset: Fraction) -> "RootTransform":
        """The same root and noise at another offset."""
        return RootTransform(
            degree=self.degree,
            offset=offset,
            sigma=self.sigma,
            laplace_scale=self.laplace_scale,
            signed=self.signed,
        )

    @property
    def function(self) -> Function:
        return _root_of(self.offset, self.degree)

    def bend(self, least: FloatArray) -> FloatArray | None:
        """(degree - 1)/f."""
        with np.errstate(divide="ignore"):
            return np.asarray(float(self.degree - 1) / least)

    @property
    def inverse(self) -> Inverse:
        if isinstance(self.degree, Fraction):
            return FunctionInverse(x**self.degree)
        return PolynomialInverse((0.0,) * self.degree + (1.0,))


@lru_cache(maxsize=256)
def _root_of(offset: Fraction, degree: int | Fraction) -> Function:
    return (x + offset) ** (1 / Fraction(degree))


@lru_cache(maxsize=256)
def _log_of(offset: Fraction) -> Function:
    return log(x + offset)


def _degree(given: Number) -> int | Fraction:
    degree = rational(given, parameter="degree")
    whole = degree.denominator == 1
    if not 1 <= degree <= (MOST_WHOLE if whole else LARGEST_POWER):
        raise ParameterError(
            parameter="degree",
            problem=f"must be a whole number from 1 to {MOST_WHOLE}, or lie between 1 and {LARGEST_POWER}",
        )
    return int(degree) if whole else degree


# LogTransform: the same relative error at every size, and a loss that grows with the squared logarithm.


@dataclass(frozen=True, slots=True, init=False, repr=False)
class LogTransform(TransformedNoise):
    """Release ln(total + offset) with Gaussian (``sigma``) or Laplace (``laplace_scale``) noise.

    Theorem T-TRANSFORM (docs/theory/policy.md): with contributions x >= 0 the loss is ln(1 + x/offset)**2/(2 sigma**2), plus
    the grid step of T-GRID. Laplace noise needs a scale below 1 to be unbiased, below 1/2 to have a variance.
    A change of a value by a share p costs at most ln(1 + p)**2/(2 sigma**2) at every size (T-P-RULE, docs/theory/transform.md).

    Args:
        offset: Added to the total, in the measure's units.
        sigma: Standard deviation of Gaussian noise, on the transformed scale.
        laplace_scale: Scale of Laplace noise, on the transformed scale.
        signed: Whether contributions may be negative.
        goals: A goal: ``variance`` at ``at_total``, ``rho`` of a record of size ``at``, or ``relative_error`` at ``at_total``
            with ``confidence``; ``noise`` is the law that meets it, Gaussian unless given.
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("offset", "added to the total, in the measure's units", needed=True),
        *TRANSFORM_NOISE,
    )
    words: ClassVar[str] = "noise on a logarithmic scale"
    logarithmic: ClassVar[bool] = True

    offset: Fraction
    """Larger values give less loss for large records and more error on small totals."""
    sigma: Fraction | None
    """Noise on the log scale; about the relative error of a large total."""
    laplace_scale: Fraction | None
    signed: bool

    @own_argument_errors
    def __init__(
        self,
        *,
        offset: Number,
        sigma: Number | None = None,
        laplace_scale: Number | None = None,
        signed: bool = False,
        **goals: Unpack[TransformGoals],
    ) -> None:
        object.__setattr__(self, "offset", positive(offset, parameter="offset"))
        object.__setattr__(self, "signed", signed)
        self.set_noise(
            lambda **chosen: LogTransform(offset=offset, signed=signed, **chosen), sigma, laplace_scale, **goals
        )
        if self.laplace_scale is not None and self.laplace_scale >= 1:
            raise ParameterError(
                parameter="laplace_scale", problem="must be below 1; otherwise the exponential of the noise has no mean"
            )

    @classmethod
    def audit_examples(cls) -> dict[str, "LogTransform"]:
        return {
            "logarithm": cls(offset=100, sigma="0.3"),
            "logarithm, laplace": cls(offset=100, laplace_scale="0.3"),
            "signed logarithm": cls(offset=100, sigma="0.3", signed=True),
        }

    @classmethod
    def planning_families(cls, *, offset: Number) -> dict[str, "LogTransform"]:
        return {
            "logarithm": cls(offset=offset, sigma=1),
            "logarithm, Laplace": cls(offset=offset, laplace_scale="0.25"),
        }

    def with_noise(self, *, sigma: Fraction | None = None, laplace_scale: Fraction | None = None) -> "LogTransform":
        return LogTransform(offset=self.offset, sigma=sigma, laplace_scale=laplace_scale, signed=self.signed)

    def value_law(self) -> ValueLaw:
        return ValueLaw.of_log(self)

    def resized(self, size: Fraction) -> "LogTransform":
        """Return the transform with its offset as a share of ``size``.

        Noise on the scale of logarithms is relative already.
        """
        return self.with_offset(self.offset * size)

    def with_offset(self, offset: Fraction) -> "LogTransform":
        """The same noise at another offset."""
        return LogTransform(offset=offset, sigma=self.sigma, laplace_scale=self.laplace_scale, signed=self.signed)

    @property
    def function(self) -> Function:
        return _log_of(self.offset)

    def bend(self, least: FloatArray) -> FloatArray | None:
        """1 everywhere: f'' is -f'**2."""
        return np.ones(least.shape)

    @property
    def inverse(self) -> Inverse:
        return ExponentialInverse()


# Transform: noise on the scale of a custom concave function.


BALLS = BallArithmetic()
PROBES = tuple(Fraction(10) ** k for k in range(-2, 13))


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Transform(TransformedNoise):
    """Release f(total + offset) for an increasing concave f with its inverse, both expressions of ``recordwise.exact.functions``.

    f's concavity is certified by rules (T-CONCAVE); the inverse is checked against f in arbitrary precision. An inverse that is no
    polynomial has an unbiased estimator under Laplace noise only.

    Args:
        f: The transform: an increasing concave function.
        inverse: The inverse of f.
        offset: Added to the total, in the measure's units.
        sigma: Standard deviation of Gaussian noise, on the transformed scale.
        laplace_scale: Scale of Laplace noise, on the transformed scale.
        signed: Whether contributions may be negative.
        goals: A goal: ``variance`` at ``at_total``, ``rho`` of a record of size ``at``, or ``relative_error`` at ``at_total``
            with ``confidence``; ``noise`` is the law that meets it, Gaussian unless given.
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("f", "the transform: an increasing concave function", read="function", needed=True),
        Parameter("inverse", "the inverse of f", read="function", needed=True, field="f_inverse"),
        Parameter("offset", "added to the total, in the measure's units"),
        *TRANSFORM_NOISE,
    )
    words: ClassVar[str] = "noise on a custom scale"
    variance_varies: ClassVar[bool] = False

    f: Function
    f_inverse: Function
    offset: Fraction
    sigma: Fraction | None
    laplace_scale: Fraction | None
    signed: bool

    @own_argument_errors
    def __init__(
        self,
        f: Function,
        inverse: Function,
        *,
        offset: Number = 0,
        sigma: Number | None = None,
        laplace_scale: Number | None = None,
        signed: bool = False,
        **goals: Unpack[TransformGoals],
    ) -> None:
        for name, given in (("f", f), ("inverse", inverse)):
            if not isinstance(given, Function):
                raise ParameterError(
                    parameter=name,
                    problem="must be an expression of recordwise.exact.functions, so that it can be published",
                )
        f.concave()
        _check_inverse(f, inverse)
        for name, value in (("f", f), ("f_inverse", inverse), ("signed", signed)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "offset", nonnegative(offset, parameter="offset"))
        self.set_noise(
            lambda **chosen: Transform(f, inverse, offset=offset, signed=signed, **chosen),
            sigma,
            laplace_scale,
            **goals,
        )
        if isinstance(self.inverse, FunctionInverse):
            check_smooth(self.function, self.laplace_scale)

    @classmethod
    def audit_examples(cls) -> dict[str, "Transform"]:
        return {"transform of one's own": cls(2 * x**0.5, (x / 2) ** 2, offset=40, sigma=4)}

    def with_noise(self, *, sigma: Fraction | None = None, laplace_scale: Fraction | None = None) -> "Transform":
        return Transform(
            self.f,
            self.f_inverse,
            offset=self.offset,
            sigma=sigma,
            laplace_scale=laplace_scale,
            signed=self.signed,
        )

    @property
    def function(self) -> Function:
        return self.f.after(x + self.offset)

    @property
    def inverse(self) -> Inverse:
        return inverse_of(self.f_inverse)


def _check_inverse(f: Function, inverse: Function) -> None:
    with working_precision(256):
        for probe in PROBES:
            point = ball(probe)
            back = inverse.value(BALLS, f.value(BALLS, point))
            if not abs(back / point - 1) < arb(2) ** -100:
                raise ParameterError(parameter="inverse", problem="does not undo f: inverse(f(x)) is not x")
