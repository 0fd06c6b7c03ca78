"""The output of a mechanism: noisy grid points, computed from exact totals without overflow or rounding, and interval ends
that are exact lattice points or decimals rounded outward to the meaningful digits (T-INTERVAL).
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import Number, positive
from recordwise.noise.lattice import LatticeLaw
from recordwise.noise.randomness import BitSource, Secure

IntArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[Any]]
"""Whole numbers: int64, or Python integers in an object array where 64 bits could overflow."""

SAFE = 2**61
"""Two numbers below it add up to less than 2**62, so that a noise quantile (below 2**62) can be added within 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noisy:
    """Noisy answers as whole multiples of ``grid``, in the measure's units or on the scale of a transform."""

    points: IntArray
    grid: Fraction
    step: Fraction
    """The measure's step, which determined the grid."""
    private: bool
    """False if a seeded generator drew the noise: suitable for tests and simulation, never for publication."""

    def values(self) -> FloatArray:
        """The answers as floats."""
        return to_floats(self.points, self.grid)


def whole_totals(totals: Any) -> IntArray:
    """Exact totals in lattice steps, as whole numbers; anything else is refused."""
    array = np.asarray(totals)
    if array.size == 0:
        return np.zeros(array.shape, np.int64)
    if array.dtype.kind == "i" or (array.dtype.kind == "u" and array.max() < SAFE):
        return array.astype(np.int64, copy=False)
    if array.dtype.kind == "f" and not isinstance(totals, np.ndarray):
        # numpy converts a list with both -1 and 2**63 to floats.
        array = np.array(totals, dtype=object)
    if array.dtype.kind in "uO" and all(
        isinstance(total, (int, np.integer)) and not isinstance(total, bool) for total in array.flat
    ):
        return integers([int(total) for total in array.flat], array.shape)
    raise ParameterError(
        parameter="totals", problem="must be whole numbers of lattice steps", advice="Never pass float sums."
    )


def integers(numbers: list[int], shape: tuple[int, ...]) -> IntArray:
    """Whole numbers as an array: 64-bit if all are below 2**62, otherwise Python integers."""
    fits = all(-2 * SAFE < number < 2 * SAFE for number in numbers)
    return np.array(numbers, dtype=np.int64 if fits else object).reshape(shape)


def times(points: IntArray, factor: int) -> IntArray:
    """Whole numbers times a whole number; Python integers where 64 bits could overflow."""
    if points.dtype != object and max(largest(points), 1) * factor < SAFE:
        return np.asarray(points * np.int64(factor))
    return integers([int(point) * factor for point in points.flat], points.shape)


def noised(points: IntArray, law: LatticeLaw, source: BitSource) -> IntArray:
    """Exact points plus noise, neither wrapped nor clipped.

    The sums are Python integers if one needs more than 62 bits; that depends on the noisy sums alone, so it reveals nothing more.
    """
    drawn, flat = law.draw(points.size, source), points.ravel()
    if flat.dtype != object and not drawn.extremes and max(largest(flat), largest(drawn.values)) < SAFE:
        # In place: fresh memory would cost as much as the noise.
        return np.add(flat, drawn.values, out=drawn.values).reshape(points.shape)
    noise = drawn.values.tolist()
    for place, value in drawn.extremes.items():
        noise[place] = value
    return integers([int(point) + z for point, z in zip(flat, noise)], points.shape)


def largest(points: IntArray) -> int:
    """The largest absolute value; 0 for an empty array."""
    return max(abs(int(points.max())), abs(int(points.min()))) if points.size else 0


def to_floats(points: IntArray, grid: Fraction) -> FloatArray:
    """Multiples of the grid as floats; dividing by a whole number last keeps 0.1 steps at their shortest decimals."""
    found: FloatArray = points.astype(np.float64)
    found *= float(grid.numerator)
    found /= float(grid.denominator)
    return found


def read_step(step: Number) -> Fraction:
    """A measure's step, of a size that floats can represent with a margin."""
    exact = positive(step, parameter="step")
    if not LARGEST_STEP >= exact >= 1 / LARGEST_STEP or exact.denominator > LARGEST_STEP:
        raise ParameterError(parameter="step", problem="must lie between 1e-100 and 1e100, with as short a denominator")
    return exact


def read_confidence(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ParameterError(parameter="confidence", problem="must lie between 0 and 1")
    return float(confidence)


LARGEST_STEP = Fraction(10) ** 100
ROUNDINGS = 2.0**-50
"""Relative slack for the four roundings between whole numbers and the end of an interval."""


def source_of(rng: BitSource | None) -> BitSource:
    """The generator given, or the secure one."""
    return Secure() if rng is None else rng


EXACT = 2.0**53
"""Whole numbers below it are exact floats, and their quotients are rounded correctly."""
POWERS = 10.0 ** np.arange(-40, 309)
FIRST = -40
MOST_DECIMALS = 22
"""Powers of ten up to this one are exact floats."""
DIGITS = 2
"""A unit of the last digit is at most this many powers of ten below the effect of one scale of noise."""
ExponentArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


def lattice_ends(points: IntArray, half_width: int, grid: Fraction) -> tuple[FloatArray, FloatArray]:
    """Both ends as the floats nearest to their lattice points, rounded outward if the points are too large to be exact floats."""
    return _lattice_end(points - half_width, grid, -ROUNDINGS), _lattice_end(points + half_width, grid, ROUNDINGS)


def _lattice_end(points: IntArray, grid: Fraction, outward: float) -> FloatArray:
    value = to_floats(points, grid)
    if largest(points) * grid.numerator < EXACT and grid.denominator < EXACT:
        return value
    exact = np.abs(points.astype(np.float64)) * float(grid.numerator) < EXACT
    return np.where(exact & (grid.denominator < EXACT), value, value + outward * np.abs(value))


def last_digits(worth: Callable[[FloatArray], FloatArray]) -> ExponentArray:
    """For ends in each decade, the power of ten of the last digit, from the effect of one scale of noise at the decade's start.

    A decade's unit divides its first number, so rounding never reverses the order of two ends.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        wanted = np.floor(np.log10(worth(np.concatenate([[0.0], POWERS])))) - DIGITS
    exponents = np.nan_to_num(wanted, nan=FIRST, neginf=FIRST, posinf=len(POWERS)).astype(np.int64)
    decades = np.arange(FIRST, FIRST + len(POWERS))
    return np.asarray(np.minimum(exponents[1:], np.maximum(decades, exponents[0])))


def rounded(ends: FloatArray, exponents: ExponentArray, *, up: bool) -> FloatArray:
    """Nonnegative ends, rounded down or up at the last digit of their decade."""
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
