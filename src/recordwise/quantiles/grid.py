"""Public grids: the points a quantile can be, fixed before any record is read."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import floor
from typing import Literal

import numpy as np

from recordwise.errors import ParameterError
from recordwise.exact import Number, ball, midpoint, nonnegative, positive, working_precision

MOST_BITS = 12
PRECISION = 192
NARROWEST = Fraction(1, 10**6)
"""The least width of a grid relative to its upper end: below it a float cannot tell which point is near (T-BIN)."""

IntArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """2**bits points from ``low`` to ``high``, evenly spaced (``linear``) or in equal ratios (``log``).

    A record belongs to the first point that is not below its value; a value beyond ``high`` belongs to the last point.
    """

    spacing: Literal["linear", "log"]
    low: Fraction
    high: Fraction
    bits: int

    def __post_init__(self) -> None:
        if self.spacing not in ("linear", "log"):
            raise ParameterError(parameter="spacing", problem="must be linear or log")
        if isinstance(self.bits, bool) or not isinstance(self.bits, int) or not 1 <= self.bits <= MOST_BITS:
            raise ParameterError(parameter="bits", problem=f"must be a whole number from 1 to {MOST_BITS}")
        if self.high <= self.low:
            raise ParameterError(parameter="high", problem="must be above low")
        if self.high - self.low < NARROWEST * self.high:
            raise ParameterError(parameter="high", problem="is too close to low for a grid")

    @classmethod
    def log(cls, low: Number, high: Number, *, bits: int = 10) -> "Grid":
        """Equal ratios: the same relative accuracy for small and large values. For skewed data."""
        return cls(spacing="log", low=positive(low, parameter="low"), high=positive(high, parameter="high"), bits=bits)

    @classmethod
    def linear(cls, low: Number, high: Number, *, bits: int = 10) -> "Grid":
        """Equal distances."""
        return cls(
            spacing="linear", low=nonnegative(low, parameter="low"), high=positive(high, parameter="high"), bits=bits
        )

    @property
    def size(self) -> int:
        return 1 << self.bits

    def steps(self, step: Fraction) -> tuple[int, ...]:
        """The points in whole steps of a measure, rounded down: a lattice value is below a point iff it is below that."""
        return _steps(self, step)

    def bins(self, values: IntArray, step: Fraction) -> IntArray:
        """The point each value (in steps) belongs to."""
        inner = np.array(self.steps(step)[:-1], dtype=np.int64)
        return np.searchsorted(inner, values, side="left").astype(np.int64)


@lru_cache(maxsize=64)
def _steps(grid: Grid, step: Fraction) -> tuple[int, ...]:
    """Certified floors, so that the same grid is the same points on every machine."""
    last = grid.size - 1
    if grid.spacing == "linear":
        width = grid.high - grid.low
        return tuple(floor((grid.low + width * Fraction(i, last)) / step) for i in range(grid.size))
    inner = [_log_point(grid, Fraction(i, last), step) for i in range(1, last)]
    return (floor(grid.low / step), *inner, floor(grid.high / step))


def _log_point(grid: Grid, share: Fraction, step: Fraction) -> int:
    for precision in (PRECISION, 4 * PRECISION):
        with working_precision(precision):
            point = ball(grid.low / step) * (ball(grid.high / grid.low).log() * ball(share)).exp()
            lower, upper = floor(midpoint(point.lower())), floor(midpoint(point.upper()))
            if lower == upper:
                return lower
    # Still open at 768 bits: the point is a whole number of steps, and that number belongs to it.
    return upper
