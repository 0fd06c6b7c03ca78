"""Exact and outward-rounded numbers: how a parameter becomes a ``Fraction`` and how a ``Fraction`` becomes a float that is
surely not below (``_upper``) or not above (``_lower``) it."""

import math
import re
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real
from typing import TypeAlias

from flint import arb, ctx, fmpq

from recordwise.errors import ParameterError

Number: TypeAlias = int | float | str | Decimal | Fraction
"""What a user may write for an exact parameter; a float is read by its shortest decimal, so 0.1 is 1/10."""


LONGEST_NUMBER = 4000
LARGEST_EXPONENT = 1000


def rational(value: Number, *, parameter: str) -> Fraction:
    """Read a parameter exactly; refuse what is not a finite number."""
    if isinstance(value, bool) or not isinstance(value, (Rational, Real, Decimal, str)):
        raise ParameterError(parameter=parameter, problem=f"must be a number, not {type(value).__name__}")
    try:
        return Fraction(value) if isinstance(value, Rational) else read_fraction(str(value))
    except (ValueError, OverflowError, ZeroDivisionError):
        raise ParameterError(parameter=parameter, problem=f"must be a finite number, not {value!r}") from None


def read_fraction(text: str) -> Fraction:
    """A fraction from text; a ValueError where it is none, or where its exponent or length would only burn memory."""
    exponent = re.search(r"[eE]([+-]?\d+)$", text)
    if len(text) > LONGEST_NUMBER or (exponent and abs(int(exponent[1])) > LARGEST_EXPONENT):
        raise ValueError("number too long")
    return Fraction(text)


def positive(value: Number, *, parameter: str) -> Fraction:
    """Read a parameter that must be above zero."""
    number = rational(value, parameter=parameter)
    if number <= 0:
        raise ParameterError(parameter=parameter, problem=f"must be above 0, not {value}")
    return number


def nonnegative(value: Number, *, parameter: str) -> Fraction:
    """Read a parameter that must not be negative."""
    number = rational(value, parameter=parameter)
    if number < 0:
        raise ParameterError(parameter=parameter, problem=f"must not be negative, not {value}")
    return number


def float_upper(value: Fraction) -> float:
    """The smallest float that is not below ``value``."""
    try:
        near = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    return near if math.isinf(near) or Fraction(near) >= value else math.nextafter(near, math.inf)


def float_lower(value: Fraction) -> float:
    """The largest float that is not above ``value``."""
    return -float_upper(-value)


def fraction_text(value: Fraction) -> str:
    """The text a fraction is saved as; ``Fraction(text)`` reads it back exactly."""
    return str(value)


def ball(value: Fraction | int) -> arb:
    """The fraction as an Arb ball at the precision in force."""
    value = Fraction(value)
    return arb(fmpq(value.numerator, value.denominator))


def midpoint(value: arb) -> Fraction:
    """The midpoint of a ball, exactly."""
    mantissa, exponent = value.mid().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def arb_float_upper(value: arb) -> float:
    """A float that is not below any point of the ball."""
    return _directed(value.upper(), math.inf)


def arb_float_lower(value: arb) -> float:
    """A float that is not above any point of the ball."""
    return _directed(value.lower(), -math.inf)


def _directed(bound: arb, towards: float) -> float:
    near = float(bound.mid())
    if math.isinf(near) or math.isnan(near):
        return near if math.isinf(near) else towards
    off = bool(arb(near) < bound) if towards > 0 else bool(arb(near) > bound)
    return math.nextafter(near, towards) if off else near


def sqrt_upper(value: Fraction, *, digits: int = 17) -> Fraction:
    """A rational not below the square root, with at most ``digits`` significant decimal digits; exact roots stay exact."""
    root = Fraction(math.isqrt(value.numerator), math.isqrt(value.denominator))
    if root * root == value:
        return root
    precision = ctx.prec
    try:
        ctx.prec = 256
        magnitude = math.floor(float(ball(value).sqrt().log_base(10).mid())) + 1
    finally:
        ctx.prec = precision
    unit = Fraction(10) ** (magnitude - digits)
    scaled = value / unit**2
    return (math.isqrt(math.floor(scaled)) + 1) * unit
