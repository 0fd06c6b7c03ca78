"""Exact fractions and outward-rounded floats.

How a parameter becomes a ``Fraction``, and how a ``Fraction`` becomes a float that is certainly not below
(``_upper``) or not above (``_lower``) it.
"""

import math
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from numbers import Rational, Real
from typing import TypeAlias

from flint import arb, ctx, fmpq

from recordwise.errors import ParameterError, value_text

Number: TypeAlias = int | float | str | Decimal | Fraction
"""What a user may write for an exact parameter; a float is read by its shortest decimal, so 0.1 is 1/10."""


LONGEST_NUMBER = 4000
LONGEST_SAVED = 1_000_000
LARGEST_EXPONENT = 1000
MOST_DECIMAL_BITS = 6_000
"""Longer whole numbers are saved in hexadecimal: Python refuses to print them in decimal and is slow to read them."""


def rational(value: Number, *, parameter: str) -> Fraction:
    """Read a parameter exactly; refuse anything that is not a finite number."""
    if isinstance(value, bool) or not isinstance(value, (Rational, Real, Decimal, str)):
        raise ParameterError(parameter=parameter, problem=f"must be a number, not {type(value).__name__}")
    try:
        if isinstance(value, Rational):
            # numpy integers would stay inside the fraction and overflow there.
            return Fraction(int(value.numerator), int(value.denominator))
        return read_fraction(str(value))
    except (ValueError, OverflowError, ZeroDivisionError):
        raise ParameterError(parameter=parameter, problem=f"must be a finite number, not {value_text(value)}") from None


@lru_cache(maxsize=4096)
def read_fraction(text: str) -> Fraction:
    """Read a fraction from text.

    Raise ValueError for anything else, including exponents or lengths that would exhaust memory.
    """
    if saved := re.fullmatch(r"(-?)0x([0-9a-f]+)/0x([0-9a-f]+)", text[: LONGEST_SAVED + 1]):
        size = Fraction(int(saved[2], 16), int(saved[3], 16))
        return -size if saved[1] else size
    exponent = re.search(r"[eE]([+-]?[\d_]+)\s*$", text[-LONGEST_NUMBER:])
    if len(text) > LONGEST_NUMBER or (exponent and abs(int(exponent[1])) > LARGEST_EXPONENT):
        raise ValueError("number too long")
    if "_" in text or not text.isascii():
        # Python accepts both as digits; a person may not, or may read a different number.
        raise ValueError("not plain digits")
    return Fraction(text)


def positive(value: Number, *, parameter: str) -> Fraction:
    """Read a parameter that must be above zero."""
    number = rational(value, parameter=parameter)
    if number <= 0:
        raise ParameterError(parameter=parameter, problem=f"must be above 0, not {value_text(value)}")
    return number


def nonnegative(value: Number, *, parameter: str) -> Fraction:
    """Read a parameter that must be nonnegative."""
    number = rational(value, parameter=parameter)
    if number < 0:
        raise ParameterError(parameter=parameter, problem=f"must not be negative; got {value_text(value)}")
    return number


LARGEST_BITS = 200
LARGEST = Fraction(2) ** LARGEST_BITS
"""Parameters of a policy are 0 or between 1/LARGEST and LARGEST in size, so that products of a few stay within float64."""


def moderate(value: Fraction, *, parameter: str) -> Fraction:
    """Return the parameter, or refuse one beyond the range of float64."""
    bits = value.numerator.bit_length() - value.denominator.bit_length()
    if value and abs(bits) >= LARGEST_BITS and not 1 / LARGEST <= abs(value) <= LARGEST:
        raise ParameterError(parameter=parameter, problem="must be 0 or between 2^-200 and 2^200 in size")
    return value


def float_upper(value: Fraction) -> float:
    """The smallest float at or above ``value``."""
    try:
        near = float(value)
    except OverflowError:
        return math.inf if value > 0 else -sys.float_info.max
    return near if math.isinf(near) or Fraction(near) >= value else math.nextafter(near, math.inf)


def float_lower(value: Fraction) -> float:
    """The largest float at or below ``value``."""
    return -float_upper(-value)


@lru_cache(maxsize=4096)
def fraction_text(value: Fraction) -> str:
    """Return the text of a fraction that ``read_fraction`` reads exactly."""
    if max(value.numerator.bit_length(), value.denominator.bit_length()) <= MOST_DECIMAL_BITS:
        return str(value)
    return f"{value.numerator:#x}/{value.denominator:#x}"


DEFAULT_BITS = 53
_TURN = threading.RLock()
_OWN = threading.local()


def bits_in_force() -> int:
    """Return this thread's precision, whatever other threads set."""
    return getattr(_OWN, "bits", DEFAULT_BITS)


@contextmanager
def working_precision(bits: int | None = None) -> Iterator[None]:
    """Set Arb's precision inside the block, or keep the current one.

    Its precision belongs to the process, so one thread computes while others wait.
    """
    before = bits_in_force()
    with _TURN, ctx.workprec(bits or before):
        _OWN.bits = bits or before
        try:
            yield
        finally:
            _OWN.bits = before


@contextmanager
def working_length(terms: int) -> Iterator[None]:
    """Set the number of power series terms inside the block."""
    with _TURN:
        before, ctx.cap = ctx.cap, terms
        try:
            yield
        finally:
            ctx.cap = before


def ball(value: Fraction | int) -> arb:
    """The fraction as an Arb ball at the precision in force."""
    exact = value if type(value) is Fraction else Fraction(value)
    return arb(fmpq(exact.numerator, exact.denominator))


def constant_ball(value: Fraction) -> arb:
    """Return a constant's ball at the precision in force."""
    return _constant_ball(value, bits_in_force())


@lru_cache(maxsize=4096)
def _constant_ball(value: Fraction, bits: int) -> arb:
    """Return a cached ball of a constant."""
    with working_precision(bits):
        return ball(value)


def midpoint(value: arb) -> Fraction:
    """The midpoint of a ball, exactly."""
    mantissa, exponent = value.mid().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def arb_float_upper(value: arb) -> float:
    """A float at or above every point of the ball."""
    return _round_toward(value.upper(), math.inf)


def arb_float_lower(value: arb) -> float:
    """A float at or below every point of the ball."""
    return _round_toward(value.lower(), -math.inf)


def _round_toward(bound: arb, toward: float) -> float:
    """Return the float next to an exact end, toward ``toward``.

    A NaN end carries no information and gives ``toward``.
    """
    if not bound.is_finite():
        return float(bound) if bound.is_exact() and not bound.is_nan() else toward
    mantissa, exponent = (int(part) for part in bound.man_exp())
    size = mantissa.bit_length() + exponent
    if not LEAST_FLOAT_BITS < size < MOST_FLOAT_BITS:
        # Beyond every float: a substitute of the same sign rounds in the same way, without writing out a number of that size.
        mantissa, exponent = (mantissa > 0) - (mantissa < 0), max(LEAST_FLOAT_BITS, min(size, MOST_FLOAT_BITS))
    value = mantissa * Fraction(2) ** exponent
    return float_upper(value) if toward > 0 else float_lower(value)


LEAST_FLOAT_BITS = -1200
MOST_FLOAT_BITS = 1100
SHORT_DIGITS = 14
"""Of a parameter that was computed: two more than solvers settle."""


def decimal(value: float, *, up: bool = False) -> Fraction:
    """Return a short decimal below a float, with ``up`` above it."""
    rounding = "ROUND_CEILING" if up else "ROUND_FLOOR"
    return Fraction(Context(prec=SHORT_DIGITS, rounding=rounding).create_decimal(Decimal(value)))


def power_upper(base: Fraction, exponent: Fraction) -> Fraction:
    """Return base**exponent.

    Exact for a whole exponent, otherwise rounded up.
    """
    if exponent.denominator == 1:
        return base**exponent.numerator
    with working_precision(128):
        return decimal(arb_float_upper(ball(base) ** ball(exponent)), up=True)


@lru_cache(maxsize=1024)
def sqrt_upper(value: Fraction, *, digits: int = 17) -> Fraction:
    """Return a rational at or above the square root.

    With at most ``digits`` significant decimal digits; exact roots stay exact.
    """
    root = Fraction(math.isqrt(value.numerator), math.isqrt(value.denominator))
    if root * root == value:
        return root
    with working_precision(256):
        magnitude = math.floor(float(ball(value).sqrt().log_base(10).mid())) + 1
    unit = Fraction(10) ** (magnitude - digits)
    scaled = value / unit**2
    return (math.isqrt(math.floor(scaled)) + 1) * unit
