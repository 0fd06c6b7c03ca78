"""Laying f(total + offset) on a dyadic grid: always the nearest grid point, decided in float64 only where that is certain."""

from fractions import Fraction
from math import floor, frexp
from typing import Any

import numpy as np
from flint import arb, ctx

from recordwise.arithmetic import BallArithmetic, FloatArray, NumpyArithmetic
from recordwise.exact import ball, midpoint
from recordwise.functions import Function
from recordwise.mechanisms.noisy import IntArray

NUMPY = NumpyArithmetic()
BALLS = BallArithmetic()
FINE_NOISE = 2**20
"""Grid steps in one sigma or Laplace scale."""
FINE_DATA = 4096
"""Grid steps in the transform's rise over the first data step."""
FLOAT_ERROR = 2.0**-42
"""Relative error allowed to f in float64 (T-OUTWARD)."""


def grid_step(function: Function, step: Fraction, noise: Fraction) -> Fraction:
    """The largest power of two that is fine against both the noise and the data (T-GRID)."""
    rise = function.increase(BALLS, ball(step)).lower()
    limit = min(float(noise) / FINE_NOISE, float(rise) / FINE_DATA)
    _, exponent = frexp(limit * (1 - 2.0**-50))
    return Fraction(2) ** (exponent - 1)


def to_grid(function: Function, totals: IntArray, step: Fraction, grid: Fraction) -> IntArray:
    """The grid point nearest to f(total), for totals in data steps that are not negative."""
    amounts = totals.astype(np.float64) * float(step)
    scaled = function.value(NUMPY, amounts) / float(grid)
    size = (abs(float(function.at_zero().mid())) + function.increase(NUMPY, amounts)) / float(grid)
    nearest = np.rint(scaled)
    certain = np.abs(np.abs(scaled - nearest) - 0.5) > size * FLOAT_ERROR
    points: IntArray = np.where(certain, nearest, 0.0).astype(np.int64)
    for place in np.flatnonzero(~certain):
        points.flat[place] = nearest_point(function, int(totals.flat[place]) * step, grid)
    return points


def nearest_point(function: Function, total: Fraction, grid: Fraction) -> int:
    """The nearest grid point in arbitrary precision; a value exactly between two goes up."""
    for precision in (128, 256, 512, 1024):
        with ctx.workprec(precision):
            shifted = function.value(BALLS, ball(total)) / ball(grid) + arb(0.5)
            low, high = floor(midpoint(shifted.lower())), floor(midpoint(shifted.upper()))
            if low == high:
                return low
    # Only an exact tie stays open at a thousand bits; both neighbours are then at distance grid/2.
    return high


def grid_values(points: Any, grid: Fraction) -> FloatArray:
    """Grid points as floats: exact, because the grid is a power of two."""
    return np.asarray(points, np.float64) * float(grid)
