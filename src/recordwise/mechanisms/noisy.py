"""What a mechanism hands out: noisy points of a grid, from exact totals that neither wrap nor round."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from recordwise.arithmetic import FloatArray
from recordwise.errors import ParameterError
from recordwise.exact import Number, positive
from recordwise.noise import BitSource, LatticeLaw, Secure

IntArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[Any]]
"""Whole numbers: int64, or Python integers in an object array where 64 bits could wrap."""

SAFE = 2**61
"""Two numbers below it add up to less than 2**62, and a noise quantile (below 2**62) on top still fits 64 bits."""


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


def whole_totals(totals: Any) -> IntArray:
    """Exact totals in lattice steps, as whole numbers; refused where they are anything else."""
    array = np.asarray(totals)
    if array.size == 0:
        return np.zeros(array.shape, np.int64)
    if array.dtype.kind == "i" or (array.dtype.kind == "u" and array.max() < SAFE):
        return array.astype(np.int64, copy=False)
    if array.dtype.kind == "f" and not isinstance(totals, np.ndarray):
        # numpy makes floats of a list that holds both -1 and 2**63.
        array = np.array(totals, dtype=object)
    if array.dtype.kind in "uO" and all(
        isinstance(total, (int, np.integer)) and not isinstance(total, bool) for total in array.flat
    ):
        return integers([int(total) for total in array.flat], array.shape)
    raise ParameterError(
        parameter="totals", problem="must be whole numbers of lattice steps", advice="Never pass float sums."
    )


def integers(numbers: list[int], shape: tuple[int, ...]) -> IntArray:
    """Whole numbers as an array: 64-bit where all stay below 2**62, Python integers otherwise."""
    fits = all(-2 * SAFE < number < 2 * SAFE for number in numbers)
    return np.array(numbers, dtype=np.int64 if fits else object).reshape(shape)


def times(points: IntArray, factor: int) -> IntArray:
    """Whole numbers times a whole number; Python integers where 64 bits could wrap."""
    if points.dtype != object and max(largest(points), 1) * factor < SAFE:
        return np.asarray(points * np.int64(factor))
    return integers([int(point) * factor for point in points.flat], points.shape)


def noised(points: IntArray, law: LatticeLaw, source: BitSource) -> IntArray:
    """Exact points plus noise, neither wrapped nor clipped.

    The sums are Python integers where one needs more than 62 bits: that depends on the noisy sums alone, so it tells nothing more.
    """
    drawn, flat = law.draw(points.size, source), points.ravel()
    if flat.dtype != object and not drawn.extremes and max(largest(flat), largest(drawn.values)) < SAFE:
        return np.asarray(flat + drawn.values).reshape(points.shape)
    noise = drawn.values.tolist()
    for place, value in drawn.extremes.items():
        noise[place] = value
    return integers([int(point) + z for point, z in zip(flat, noise)], points.shape)


def largest(points: IntArray) -> int:
    """The largest absolute value; 0 of nothing."""
    return max(abs(int(points.max())), abs(int(points.min()))) if points.size else 0


def to_floats(points: IntArray, grid: Fraction) -> FloatArray:
    """Multiples of the grid as floats; dividing by a whole number last keeps 0.1 steps at their shortest decimals."""
    return points.astype(np.float64) * float(grid.numerator) / float(grid.denominator)


def read_step(step: Number) -> Fraction:
    """A measure's step, of a size that floats hold with room to spare."""
    exact = positive(step, parameter="step")
    if not LARGEST_STEP >= exact >= 1 / LARGEST_STEP or exact.denominator > LARGEST_STEP:
        raise ParameterError(parameter="step", problem="must lie between 1e-100 and 1e100, with as short a denominator")
    return exact


def read_level(level: float) -> float:
    if not 0 < level < 1:
        raise ParameterError(parameter="level", problem="must lie between 0 and 1")
    return float(level)


LARGEST_STEP = Fraction(10) ** 100
ROUNDINGS = 2.0**-50
"""Relative slack for the four roundings between whole numbers and the end of an interval."""


def source_of(rng: BitSource | None) -> BitSource:
    """The generator given, or the secure one."""
    return Secure() if rng is None else rng
