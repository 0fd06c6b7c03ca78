"""Exact numbers as a reader sees them in a formula."""

from fractions import Fraction

from recordwise.exact import float_upper

MOST_LATEX_DIGITS = 30


def latex_number(value: Fraction) -> str:
    """A fraction as LaTeX: a short decimal where it is one, a fraction bar otherwise; a very long one is rounded up."""
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > 3 * MOST_LATEX_DIGITS:
        mantissa, _, exponent = repr(float_upper(value)).partition("e")
        return mantissa + (rf"\cdot 10^{{{int(exponent)}}}" if exponent else "")
    for digits in range(10):
        scaled = value * 10**digits
        if scaled.denominator == 1:
            whole, part = divmod(abs(scaled.numerator), 10**digits)
            sign = "-" if value < 0 else ""
            return f"{sign}{whole}" + (f".{part:0{digits}d}" if digits else "")
    return rf"\frac{{{value.numerator}}}{{{value.denominator}}}"


def latex_factor(value: Fraction) -> str:
    """A fraction in front of a term; nothing for 1."""
    return "" if value == 1 else latex_number(value) + r"\,"
