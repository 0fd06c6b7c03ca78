"""One set of operations for several number systems.

A formula written once against ``Arithmetic`` runs on numpy columns, on Arb balls, and (in
``recordwise.policy``) as SQL and JavaScript. It has only operations that are accurate in every system, so
that a formula cannot lose digits in one and keep them in another.
"""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Protocol, TypeAlias, TypeVar

import numpy as np
from flint import arb

from recordwise.exact.numbers import ball, bits_in_force, float_lower, float_upper, working_precision

T = TypeVar("T")
FloatArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
BallArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.object_]]


class Arithmetic(Protocol[T]):
    """The operations of a number system.

    Every argument of a function is at least 0.
    """

    def constant(self, value: arb) -> T:
        """A real constant, given as a ball much narrower than a float."""

    def add(self, left: T, right: T) -> T: ...
    def multiply(self, left: T, right: T) -> T: ...
    def divide(self, left: T, right: T) -> T: ...
    def maximum(self, left: T, right: T) -> T: ...
    def minimum(self, left: T, right: T) -> T:
        """Return the smaller value, or ``left`` where it is NaN.

        ``right`` must be a number wherever ``left`` is.
        """

    def power(self, base: T, exponent: Fraction) -> T:
        """``base ** exponent`` with a positive exponent."""

    def power_less_one(self, value: T, exponent: Fraction) -> T:
        """Return ``(1 + value) ** exponent - 1`` without cancellation.

        For a positive exponent and small values.
        """

    def log1p(self, value: T) -> T: ...
    def tanh(self, value: T) -> T: ...
    def exp_remainder(self, value: T) -> T:
        """``exp(-value) - 1 + value``: about value**2/2, without cancellation."""

    def if_positive(self, test: T, then: T) -> T:
        """``then`` where ``test`` is above 0, else 0."""


class NumpyArithmetic:
    """float64 columns, each operation accurate to a few last-place units.

    Round the final result outward to get a bound.
    """

    def constant(self, value: arb) -> FloatArray:
        return np.float64(float(value))  # type: ignore[return-value]

    def add(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return left + right

    def multiply(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return left * right

    def divide(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return left / right

    def maximum(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return np.maximum(left, right)

    def minimum(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return np.minimum(left, right)

    def power(self, base: FloatArray, exponent: Fraction) -> FloatArray:
        if exponent == 1:
            return base
        if exponent == 2:
            return base * base
        if exponent == Fraction(1, 2):
            return np.sqrt(base)
        if exponent == Fraction(1, 3):
            return np.cbrt(base)
        if exponent == Fraction(1, 4):
            return np.sqrt(np.sqrt(base))
        low, high = float_lower(exponent), float_upper(exponent)
        # An exponent that is not a float is rounded to the side that does not lower the result (T-OUTWARD).
        return np.power(base, high if low == high else np.where(base < 1.0, low, high))

    def power_less_one(self, value: FloatArray, exponent: Fraction) -> FloatArray:
        if exponent.numerator == 1 and exponent.denominator in (2, 4, 8):
            return _root_less_one(value, exponent.denominator)
        small = np.expm1(np.minimum(float(exponent) * np.log1p(value), 1.0))
        # expm1 would multiply the error of a large logarithm by its size; the plain power does not.
        return np.where(small < LARGE_POWER, small, np.power(1.0 + value, float_upper(exponent)) - 1.0)

    def log1p(self, value: FloatArray) -> FloatArray:
        return np.log1p(value)

    def tanh(self, value: FloatArray) -> FloatArray:
        return np.tanh(value)

    def exp_remainder(self, value: FloatArray) -> FloatArray:
        series = np.ones_like(value)
        small = np.minimum(value, 1.0)
        for k in range(REMAINDER_TERMS, 2, -1):
            series = 1.0 - small / k * series
        return np.where(value < 1.0, small * small * 0.5 * series, value + np.expm1(-value))

    def if_positive(self, test: FloatArray, then: FloatArray) -> FloatArray:
        return np.where(test > 0, then, 0.0)


def _root_less_one(value: FloatArray, degree: int) -> FloatArray:
    """Return (1 + v)**(1/degree) - 1 by repeated halving.

    (1 + v)**(1/2) - 1 is v / ((1 + v)**(1/2) + 1), applied once for each halving of the exponent.
    """
    root = 1.0 + value
    while degree > 1:
        root = np.sqrt(root)
        value = value / (root + 1.0)
        degree //= 2
    return value


LARGE_POWER = 1.7
"""Just below e - 1, the value at which the exponent times the logarithm reaches 1."""
REMAINDER_TERMS = 20
"""Terms of the alternating series of exp(-y) - 1 + y on [0, 1): the next one is below 1e-19 of the sum."""


class BallArithmetic:
    """Arb balls that certainly contain the exact value."""

    def constant(self, value: arb) -> arb:
        return value

    def add(self, left: arb, right: arb) -> arb:
        return left + right

    def multiply(self, left: arb, right: arb) -> arb:
        return left * right

    def divide(self, left: arb, right: arb) -> arb:
        return left / right

    def maximum(self, left: arb, right: arb) -> arb:
        return left.max(right)

    def minimum(self, left: arb, right: arb) -> arb:
        return left.min(right)

    def power(self, base: arb, exponent: Fraction) -> arb:
        raised = ball(exponent)
        return self._monotone(base, lambda point: point**raised if point > 0 else arb(0))

    def power_less_one(self, value: arb, exponent: Fraction) -> arb:
        factor = ball(exponent)
        return self._monotone(value, lambda point: (factor * point.log1p()).expm1())

    def log1p(self, value: arb) -> arb:
        return self._monotone(value, arb.log1p)

    def tanh(self, value: arb) -> arb:
        return self._monotone(value, arb.tanh)

    def exp_remainder(self, value: arb) -> arb:
        # The two terms cancel to about point**2/2; more digits cost less than a better formula.
        with working_precision(4 * bits_in_force()):
            return self._monotone(value, lambda point: (-point).expm1() + point)

    def if_positive(self, test: arb, then: arb) -> arb:
        if test > 0:
            return then
        return then.union(arb(0)) if not test <= 0 else arb(0)

    def _monotone(self, value: arb, function: "MonotoneFunction") -> arb:
        return monotone(value, function)


def monotone(value: arb, function: "MonotoneFunction") -> arb:
    """Return the image of a ball under a nondecreasing function."""
    if value.is_exact():
        return function(value)
    lower, upper = value.lower(), value.upper()
    return function(lower if lower > 0 else arb(0)).union(function(upper if upper > 0 else arb(0)))


class MonotoneFunction(Protocol):
    def __call__(self, point: arb, /) -> arb: ...


class BallColumns(BallArithmetic):
    """Columns of Arb balls, with the formula read once for all."""

    def column(self, points: Iterable[int]) -> BallArray:
        """The points as a column."""
        return np.array([arb(point) for point in points], dtype=object)

    def _monotone(self, value: BallArray, function: MonotoneFunction) -> BallArray:
        return np.array([monotone(point, function) for point in value], dtype=object)


MIDDLE = 4.0
_POLYNOMIAL = (
    -1.079336221646305e-09,
    2.771765878121836e-10,
    1.3344674722556804e-08,
    -9.88807095933514e-09,
    -1.0281058779246353e-07,
    1.7861186480145473e-07,
    5.843431027905309e-07,
    -2.3580652317600983e-06,
    -4.530952141329555e-07,
    2.2101820848456458e-05,
    -5.6882027172431306e-05,
    -3.5119923754361267e-05,
    0.0007640070504872951,
    -0.0032962566557219594,
    0.009547689352096477,
    -0.02175136715616413,
    0.04135644848548611,
    -0.06760672891410097,
    0.09665108778313643,
    -0.12206859113511097,
    0.13699945762506147,
)
"""Of degree 20 in t = (x - 4)/(x + 4): erfc(x) exp(x^2) (x + 4)/8 for x >= 0, by its Chebyshev series, to a relative 1e-14."""


def normal_cdf(z: FloatArray) -> FloatArray:
    """The distribution function of the standard normal law, to a relative 1e-12.

    Importing scipy.special takes longer than a million of these.
    """
    share = 2 * MIDDLE / (np.abs(z) * math.sqrt(0.5) + MIDDLE)
    place = 1 - share
    found = np.full_like(place, _POLYNOMIAL[0])
    for coefficient in _POLYNOMIAL[1:]:
        found *= place
        found += coefficient
    found *= share
    with np.errstate(under="ignore"):
        found *= np.exp(-0.5 * np.square(z)) / 2
    return np.asarray(np.where(z > 0, 1 - found, found))


N = TypeVar("N", float, Fraction)


def largest_allowed(
    allowed: Callable[[N], bool],
    low: N,
    high: N,
    *,
    rounded: Callable[[float], N],
    rounds: int = 100,
    close: float = 1.0,
) -> N:
    """Bisect geometrically between an allowed number and one that is not.

    Whatever is below an allowed number must be allowed too. The search ends after some rounds, when the two are within a
    factor ``close``, or when no rounded number is left between them.
    """
    for _ in range(rounds):
        middle = rounded(math.sqrt(float(low) * float(high)))
        if not low < middle < high or high / low <= close:
            break
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return low
