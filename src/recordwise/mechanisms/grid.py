"""Rounds f(total + offset) to the nearest point of a dyadic grid. Float64 decides only where it is certain; roots of a weighted
total are decided in integers, without arbitrary precision.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import floor, lcm
from typing import Any

import numpy as np
from flint import arb, fmpz

from recordwise.exact.arithmetic import BallArithmetic, FloatArray, NumpyArithmetic
from recordwise.exact.functions import Function, Power, Sum, Variable
from recordwise.exact.numbers import ball, midpoint, working_precision
from recordwise.mechanisms.base import BLOCK
from recordwise.mechanisms.noisy import SAFE, IntArray, integers


@dataclass(frozen=True, slots=True)
class Root:
    """(weight * total + shift) ** (1/degree)."""

    weight: Fraction
    shift: Fraction
    degree: int

    def nearest(self, totals: Iterable[int], step: Fraction, grid: Fraction) -> list[int]:
        """floor(r + 1/2) for r = root/grid of each total, because n - 1/2 <= r exactly where (2n - 1)**degree <= (2r)**degree."""
        unit = (2 / grid) ** self.degree
        slope, start = self.weight * step * unit, self.shift * unit
        below = lcm(slope.denominator, start.denominator)
        a, b = int(slope * below), int(start * below)
        powers = ((a * total + b) // below for total in totals)
        if self.degree == 1:
            return [(power + 1) // 2 for power in powers]
        return [(int(fmpz(power).root(self.degree)) + 1) // 2 for power in powers]


def root_of(function: Function) -> Root | None:
    """The function as a root of an affine map of x, if it has that form."""
    base, degree = function, 1
    if isinstance(function, Power) and function.exponent.numerator == 1:
        base, degree = function.base, function.exponent.denominator
    match base:
        case Variable():
            return Root(Fraction(1), Fraction(0), degree)
        case Sum(((weight, Variable()),), shift):
            return Root(weight, shift, degree)
        case _:
            return None


NUMPY = NumpyArithmetic()
BALLS = BallArithmetic()
FINE_NOISE = 2**20
"""Grid steps per sigma or Laplace scale."""
FINE_DATA = 4096
"""Grid steps in the transform's rise over the first data step."""
FLOAT_ERROR = 2.0**-42
"""The relative error allowed for f in float64 (T-OUTWARD)."""
PRECISIONS = (128, 256, 512, 1024, 4096)


def grid_step(function: Function, step: Fraction, noise: Fraction) -> Fraction:
    """The largest power of two that is small compared with both the noise and the data (T-GRID)."""
    with working_precision(PRECISIONS[0]):
        rise = midpoint(function.increase(BALLS, ball(step)).lower())
    limit = min(noise / FINE_NOISE, rise / FINE_DATA)
    exponent = limit.numerator.bit_length() - limit.denominator.bit_length()
    power = Fraction(2) ** exponent
    return power if power <= limit else power / 2


def to_grid(function: Function, totals: IntArray, step: Fraction, grid: Fraction) -> IntArray:
    """The grid point nearest to f(total), for nonnegative totals in data steps."""
    flat = totals.ravel()
    points = np.empty(flat.size, np.int64)
    certain = np.empty(flat.size, np.bool_)
    start = abs(float(function.at_zero()))
    for begin in range(0, flat.size, BLOCK):
        part = slice(begin, begin + BLOCK)
        points[part], certain[part] = _in_floats(function, flat[part], step, grid, start)
    places = np.flatnonzero(~certain)
    if places.size:
        exact = nearest_points(function, flat[places].tolist(), step, grid)
        points = points if max(exact) < SAFE else points.astype(object)
        points[places] = integers(exact, (len(exact),))
    return points.reshape(totals.shape)


def _in_floats(
    function: Function, totals: IntArray, step: Fraction, grid: Fraction, start: float
) -> tuple[FloatArray, IntArray]:
    """The nearest points, and which are certain: rounding is relative to |f - f(0)| + |f(0)|, which is at most |f| + 2 |f(0)|."""
    scaled = function.value(NUMPY, totals.astype(np.float64) * float(step)) / float(grid)
    nearest = np.rint(scaled)
    doubt = (np.abs(scaled) + 2 * start / float(grid)) * FLOAT_ERROR
    # A point beyond 2**42 is uncertain by more than half a step, so whatever is certain fits into 64 bits.
    certain = np.abs(scaled - nearest) + doubt < 0.5
    return np.where(certain, nearest, 0.0), certain


def nearest_points(function: Function, totals: list[int], step: Fraction, grid: Fraction) -> list[int]:
    """The nearest grid point of each total in data steps, without floats; ties are rounded up."""
    root = root_of(function)
    if root is not None:
        return root.nearest(totals, step, grid)
    return [_nearest_by_balls(function, total * step, grid) for total in totals]


def nearest_point(function: Function, total: Fraction, grid: Fraction) -> int:
    """The nearest grid point of one total in the measure's units."""
    return nearest_points(function, [total.numerator], Fraction(1, total.denominator), grid)[0]


def _nearest_by_balls(function: Function, total: Fraction, grid: Fraction) -> int:
    for precision in PRECISIONS:
        with working_precision(precision):
            shifted = function.value(BALLS, ball(total)) / ball(grid) + arb(0.5)
            low, high = floor(midpoint(shifted.lower())), floor(midpoint(shifted.upper()))
            if low == high:
                return low
    # Only an exact tie is still undecided at thousands of bits; both neighbors are then at distance grid/2.
    return high


def grid_values(points: Any, grid: Fraction) -> FloatArray:
    """Grid points as floats: exact up to 2**53, because the grid is a power of two."""
    return np.asarray(points, np.float64) * float(grid)
