"""Exact numbers as a reader sees them in a formula."""

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from recordwise.exact.numbers import float_upper

MOST_DIGITS = 30
SHORT = Context(prec=12, rounding=ROUND_CEILING)


def latex_number(value: Fraction) -> str:
    """A fraction as LaTeX: a decimal where it is a short one, a fraction bar where that is short, else twelve digits (up)."""
    for digits in range(10):
        scaled = value * 10**digits
        if scaled.denominator == 1 and scaled.numerator.bit_length() < 3 * MOST_DIGITS:
            whole, part = divmod(abs(scaled.numerator), 10**digits)
            sign = "-" if value < 0 else ""
            return f"{sign}{whole}" + (f".{part:0{digits}d}" if digits else "")
    if max(abs(value.numerator), value.denominator) < 10**6:
        return rf"\frac{{{value.numerator}}}{{{value.denominator}}}"
    mantissa, _, exponent = f"{SHORT.create_decimal(Decimal(float_upper(value))):g}".partition("e")
    return mantissa if not exponent else rf"{mantissa}\cdot 10^{{{int(exponent)}}}"


def latex_factor(value: Fraction) -> str:
    """A fraction in front of a term; nothing for 1."""
    return "" if value == 1 else latex_number(value) + r"\,"
