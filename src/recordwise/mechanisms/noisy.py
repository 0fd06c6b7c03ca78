"""What a mechanism hands out: noisy points of a grid, and estimates made from them alone."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from recordwise.arithmetic import FloatArray
from recordwise.errors import ParameterError
from recordwise.exact import Number, positive
from recordwise.noise import BitSource, LatticeLaw

IntArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[Any]]
"""Whole numbers: int64, or Python integers in an object array where 64 bits could wrap."""

SAFE = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Noisy:
    """Noisy answers as whole multiples of ``grid``, in the measure's units or on the scale of a transform."""

    points: IntArray
    grid: Fraction
    step: Fraction
    """The measure's step, which chose the grid."""
    private: bool
    """False where a seeded generator made them: good for tests and simulation, never for publication."""

    def values(self) -> FloatArray:
        """The answers as floats."""
        return to_floats(self.points, self.grid)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """What is said about each total, from the noisy answer alone."""

    value: FloatArray
    """Mean-unbiased."""
    median_unbiased: FloatArray
    standard_error: FloatArray
    """Of ``value``, due to noise; infinite where the noise has no variance."""
    variance_unbiased: FloatArray
    """An unbiased estimate of the variance, negative at times; the one to add up over cells."""
    low: FloatArray
    high: FloatArray
    """A noise interval: it holds the exact total with at least ``level``."""
    level: float


def whole_totals(totals: Any) -> IntArray:
    """Exact totals in lattice steps, as whole numbers; refused where they are anything else."""
    array = np.asarray(totals)
    if array.dtype.kind in "iu":
        return (
            array.astype(np.int64)
            if array.dtype.kind == "i" or array.size == 0 or array.max() < SAFE
            else array.astype(object)
        )
    if array.dtype == object and all(isinstance(total, (int, np.integer)) for total in array.flat):
        return array
    raise ParameterError(
        parameter="totals", problem="must be whole numbers of lattice steps", advice="Never pass float sums."
    )


def times(points: IntArray, factor: int) -> IntArray:
    """Whole numbers times a whole number; Python integers where 64 bits could wrap."""
    if points.dtype != object and largest(points) * factor < SAFE:
        return np.asarray(points * np.int64(factor))
    return np.asarray(points.astype(object) * factor)


def noised(points: IntArray, law: LatticeLaw, source: BitSource) -> IntArray:
    """Exact points plus noise; only the sum is ever clipped to 64 bits."""
    return law.add_to(points.ravel(), source).reshape(points.shape)


def largest(points: IntArray) -> int:
    return max(abs(int(points.max())), abs(int(points.min()))) if points.size else 0


def to_floats(points: IntArray, grid: Fraction) -> FloatArray:
    """Multiples of the grid as floats; dividing by a whole number last keeps 0.1 steps at their shortest decimals."""
    return points.astype(np.float64) * float(grid.numerator) / float(grid.denominator)


def read_step(step: Number) -> Fraction:
    return positive(step, parameter="step")


def read_level(level: float) -> float:
    if not 0 < level < 1:
        raise ParameterError(parameter="level", problem="must lie between 0 and 1")
    return float(level)


def outward(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """An interval whose ends are floats not inside it."""
    return np.nextafter(low, -np.inf), np.nextafter(high, np.inf)
