"""Quantiles of each cell: a noisy tree of counts over a public grid, made consistent and inverted. The grid is fixed before any
record is read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import floor
from typing import Any, ClassVar, Literal

import numpy as np

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import Number, ball, midpoint, nonnegative, positive, sqrt_upper, working_precision
from recordwise.exact.text import formula_text
from recordwise.mechanisms.described import Answers, Described, Parameter
from recordwise.mechanisms.quantile_nodes import (
    Levels,
    consistent_leaves,
    exact_levels,
    excess_variance,
    isotonic_root,
    reaches,
)
from recordwise.noise.laws import DiscreteGaussian
from recordwise.noise.randomness import BitSource, Secure, is_private
from recordwise.policy.constructors import constant
from recordwise.policy.measure import Measure
from recordwise.policy.policy import Policy

MOST_BITS = 12
PRECISION = 192
NARROWEST = Fraction(1, 10**6)
"""The smallest width of a grid relative to its upper end; below it a float cannot identify the nearby point (T-BIN)."""

IntArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Grid:
    """2**bits points from ``low`` to ``high``, evenly spaced (``linear``) or in equal ratios (``log``).

    A record belongs to the first point at or above its value; a value beyond ``high`` belongs to the last point.
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
        """Equal ratios: the same relative accuracy for small and large values. For skewed data.

        Args:
            low: The first point, in the measure's units, above 0.
            high: The last point.
            bits: The grid has 2**bits points.

        Returns:
            The grid.
        """
        return cls(spacing="log", low=positive(low, parameter="low"), high=positive(high, parameter="high"), bits=bits)

    @classmethod
    def linear(cls, low: Number, high: Number, *, bits: int = 10) -> "Grid":
        """Equal distances.

        Args:
            low: The first point, in the measure's units.
            high: The last point.
            bits: The grid has 2**bits points.

        Returns:
            The grid.
        """
        return cls(
            spacing="linear", low=nonnegative(low, parameter="low"), high=positive(high, parameter="high"), bits=bits
        )

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> "Grid":
        """Read back what ``parameter_json`` wrote.

        Args:
            form: The spacing, the two ends as text, and the bits.

        Returns:
            The same grid.
        """
        return cls(
            spacing=form["spacing"], low=Fraction(form["low"]), high=Fraction(form["high"]), bits=int(form["bits"])
        )

    def __repr__(self) -> str:
        return f"Grid.{self.spacing}({formula_text(self.low)}, {formula_text(self.high)}, bits={self.bits})"

    @property
    def size(self) -> int:
        """The number of points."""
        return 1 << self.bits

    def steps(self, step: Fraction) -> tuple[int, ...]:
        """The points in whole steps of a measure, rounded down: a lattice value is below a point iff it is below that.

        Args:
            step: The step of the measure's lattice, in its own units.

        Returns:
            The points, ascending.
        """
        return _steps(self, step)

    def bins(self, values: IntArray, step: Fraction) -> IntArray:
        """The point each value (in steps) belongs to.

        Args:
            values: Values, in whole steps.
            step: The step of the measure's lattice, in its own units.

        Returns:
            The place of each value's point on the grid.
        """
        inner = np.array(self.steps(step)[:-1], dtype=np.int64)
        return np.searchsorted(inner, values, side="left").astype(np.int64)


@lru_cache(maxsize=64)
def _steps(grid: Grid, step: Fraction) -> tuple[int, ...]:
    """Certified floors, so that a grid has the same points on every machine."""
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
    # Still undecided at 768 bits: the point is a whole number of steps, and that number belongs to it.
    return upper


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyTrees:
    """The leaves of many cells, noisy and consistent."""

    leaves: FloatArray
    private: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileEstimates:
    """Positions on the grid, one per cell; ``low`` is the point below the lowest possible one, -1 if there is none."""

    value: IntArray
    low: IntArray
    high: IntArray
    spread_low: IntArray
    spread_high: IntArray
    """The same inversion at one standard deviation."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TreeQuantile(Described):
    """Counts of the records up to each point of a public grid, from noise on every node of a binary tree.

    Theorem T-QUANTILE (docs/theory/quantiles.md): a record is counted once on each of the levels 1..bits, whatever its value, so
    the release costs every record bits/(2 sigma**2) = rho. It runs on whole records: splitting them would change the quantile.

    Args:
        grid: Public points of which one is published, in the measure's units.
        rho: Loss of every record.
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("grid", "public points of which one is published, in the measure's units", read="grid", needed=True),
        Parameter("rho", "loss of every record", "noise", needed=True),
    )
    words: ClassVar[str] = "Gaussian noise on counts along a public grid"
    answers: ClassVar[Answers] = "quantiles"

    grid: Grid
    rho: Number

    def __post_init__(self) -> None:
        if not isinstance(self.grid, Grid):
            raise ParameterError(
                parameter="grid", problem="must be a Grid", advice="Write Grid.log(low, high, bits=10)."
            )
        object.__setattr__(self, "rho", positive(self.rho, parameter="rho"))

    @property
    def noise_sigma(self) -> Fraction:
        """The sigma of the noise on each node of the tree."""
        return sqrt_upper(Fraction(self.grid.bits) / (2 * Fraction(self.rho)))

    def shared(self, share: Fraction) -> "TreeQuantile":
        """The same at a share of the budget."""
        return replace(self, rho=Fraction(self.rho) * share)

    def policy_of_count(self) -> Policy:
        """The same loss for every record."""
        return constant(self.grid.bits / (2 * self.noise_sigma**2))

    def policy(self, measure: Measure | str, *, tight: bool = True) -> Policy:
        """Constant: the value of a record does not change its cost."""
        return self.policy_of_count()

    def release(self, leaves: IntArray, *, rng: BitSource | None = None) -> NoisyTrees:
        """Add noise to every node of the trees whose leaves are given, shape (cells, grid points), and make them consistent."""
        source = rng or Secure()
        noise = DiscreteGaussian(self.noise_sigma)
        noisy: Levels = [noise.add_to(level.ravel(), source).reshape(level.shape) for level in exact_levels(leaves)]
        return NoisyTrees(leaves=consistent_leaves(noisy), private=is_private(source))

    def estimate(self, noisy: NoisyTrees, *, p: float, confidence: float = 0.95) -> QuantileEstimates:
        """The point where the noisy curve crosses a share p of the records, about as often too high as too low (T-ISOTONE), and an
        interval that contains the quantile with at least ``confidence`` (T-INVERT). A larger p never gives a smaller point."""
        upto = np.cumsum(noisy.leaves, axis=1)
        value = isotonic_root(upto - p * np.maximum(upto[:, -1:], 0.0))
        excess = upto - p * upto[:, -1:]
        low, high = _inverted(excess, reaches(self.grid.bits, p, self.noise_sigma, confidence))
        deviation = float(self.noise_sigma) * np.sqrt(excess_variance(self.grid.bits, p))
        spread_low, spread_high = _inverted(excess, deviation)
        return QuantileEstimates(
            value=value,
            low=np.minimum(low, value - 1),
            high=np.maximum(high, value),
            spread_low=np.minimum(spread_low, value - 1),
            spread_high=np.maximum(spread_high, value),
        )


def _inverted(excess: FloatArray, reach: FloatArray) -> tuple[IntArray, IntArray]:
    """The point before the first possible quantile, and the last possible quantile."""
    points = excess.shape[1]
    surely_below = (excess - reach < 0)[:, ::-1]
    last_below = points - 1 - np.argmax(surely_below, axis=1)
    after = np.where(surely_below.any(axis=1), last_below + 1, 0)
    return _first(excess + reach >= 0) - 1, np.minimum(after, points - 1).astype(np.int64)


def _first(holds: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> IntArray:
    """The first column where a condition holds; the last column if it holds nowhere."""
    return np.where(holds.any(axis=1), np.argmax(holds, axis=1), holds.shape[1] - 1).astype(np.int64)
