"""Ends of intervals: exact lattice points, or decimals rounded outward to the digits that mean something (T-INTERVAL)."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from recordwise.arithmetic import FloatArray
from recordwise.mechanisms.noisy import ROUNDINGS, IntArray, to_floats

EXACT = 2.0**53
"""Whole numbers below it are floats, and so are the nearest floats of their quotients."""
POWERS = 10.0 ** np.arange(-40, 309)
FIRST = -40
MOST_DECIMALS = 22
"""Powers of ten up to this one are floats."""
DIGITS = 2
"""A unit of the last digit is at most this many powers of ten below what one scale of noise is worth."""
ExponentArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


def lattice_ends(points: IntArray, half_width: int, grid: Fraction) -> tuple[FloatArray, FloatArray]:
    """Both ends as the floats nearest to their lattice points; rounded outward where the points are too large to be floats."""
    return _lattice_end(points - half_width, grid, -ROUNDINGS), _lattice_end(points + half_width, grid, ROUNDINGS)


def _lattice_end(points: IntArray, grid: Fraction, outward: float) -> FloatArray:
    value = to_floats(points, grid)
    exact = np.abs(points.astype(np.float64)) * float(grid.numerator) < EXACT
    return np.where(exact & (grid.denominator < EXACT), value, value + outward * np.abs(value))


def last_digits(worth: Callable[[FloatArray], FloatArray]) -> ExponentArray:
    """For ends in each decade, the power of ten of the last digit, from what one scale of noise is worth at its first number.

    A decade's unit divides its first number, so that rounding never reverses the order of two ends.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        wanted = np.floor(np.log10(worth(np.concatenate([[0.0], POWERS])))) - DIGITS
    exponents = np.nan_to_num(wanted, nan=FIRST, neginf=FIRST, posinf=len(POWERS)).astype(np.int64)
    decades = np.arange(FIRST, FIRST + len(POWERS))
    return np.asarray(np.minimum(exponents[1:], np.maximum(decades, exponents[0])))


def rounded(ends: FloatArray, exponents: ExponentArray, *, up: bool) -> FloatArray:
    """Ends that are not negative at the last digit of their decade, down or up."""
    decade = np.maximum(np.searchsorted(POWERS, ends, side="right") - 1, 0)
    last = exponents[decade]
    above, below = 10.0 ** np.maximum(last, 0), 10.0 ** np.clip(-last, 0, MOST_DECIMALS)
    whole = (np.ceil if up else np.floor)(ends / above * below)
    fits = (last >= -MOST_DECIMALS) & (whole < EXACT)
    return np.where(fits, whole / below * above, ends)


def clean_difference(left: FloatArray, right: FloatArray) -> FloatArray:
    """left - right without the digits that floats add to the difference of two decimals."""
    larger = np.maximum(np.maximum(np.abs(left), np.abs(right)), POWERS[0])
    decimals = 14 - np.floor(np.log10(larger)).clip(-200, 300)
    difference, unit = left - right, 10.0 ** np.clip(decimals, 0, MOST_DECIMALS)
    return np.where(np.isfinite(difference), np.rint(difference * unit) / unit, difference)
