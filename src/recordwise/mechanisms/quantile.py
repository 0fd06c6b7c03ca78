"""Quantiles of each cell, from a noisy tree of counts.

The tree counts records over a public grid; it is made consistent and inverted. The grid is fixed before any record is read.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import floor
from statistics import NormalDist
from typing import Any, ClassVar, Literal

import numpy as np

from recordwise.errors import ParameterError, own_errors_of
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import Number, ball, midpoint, nonnegative, positive, sqrt_upper, working_precision
from recordwise.exact.text import formula_text
from recordwise.mechanisms.base import Answers, Mechanism, Parameter
from recordwise.noise.laws import DiscreteGaussian
from recordwise.noise.randomness import BitSource, Secure, is_private
from recordwise.policy.columns import Measure
from recordwise.policy.constructors import constant
from recordwise.policy.policy import Policy

# The nodes of the tree: counts made consistent by least squares in two passes, the remaining variance (T-QUANTILE),
# and exact bounds on sums of noisy nodes from the characteristic function of the lattice noise (T-REACH).


Levels = Sequence[np.ndarray[tuple[int, ...], np.dtype[np.int64]]]
"""Levels 1..L of the trees of many cells: level l has shape (cells, 2**l)."""


def exact_levels(leaves: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Levels:
    """Return the counts of every node except the root."""
    levels = [leaves]
    while levels[0].shape[1] > 2:
        finer = levels[0]
        levels.insert(0, finer[:, 0::2] + finer[:, 1::2])
    return levels


def consistent_leaves(noisy: Levels) -> FloatArray:
    """Return the least-squares leaves of equal-variance noisy nodes."""
    merged = [np.asarray(noisy[-1], np.float64)]
    for height, level in enumerate(reversed(noisy[:-1]), start=2):
        below = merged[0][:, 0::2] + merged[0][:, 1::2]
        # Weights inverse to the variances: 1 for a node's own count, 2**(h-1)/(2**(h-1) - 1) for its children's merged sum.
        own = 2.0 ** (height - 1) / (2.0**height - 1)
        merged.insert(0, own * level.astype(np.float64) + (1 - own) * below)
    settled = merged[0]
    for finer in merged[1:]:
        spread = (settled - (finer[:, 0::2] + finer[:, 1::2])) / 2
        settled = finer + np.repeat(spread, 2, axis=1)
    return settled


def excess_variance(bits: int, p: float) -> FloatArray:
    """Return the variance of (records up to i) - p * (all).

    For every point i, in units of the noise variance. In the Haar basis the normal equations of the tree are
    diagonal: a wavelet over 2**k leaves has eigenvalue 2**k - 1, and so has the constant over all leaves.
    """
    size = 2**bits
    upto = np.arange(1, size + 1, dtype=np.float64)
    total: FloatArray = (upto - p * size) ** 2 / (size * (size - 1.0))
    for exponent in range(1, bits + 1):
        width = 2.0**exponent
        inside = np.mod(upto, width)
        total += np.minimum(inside, width - inside) ** 2 / (width * (width - 1.0))
    return total


def isotonic_root(values: FloatArray) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Return where the isotonic curve of each row turns nonnegative (T-ISOTONE).

    The first such position, or the last position; the sum of everything before it is smallest there.
    """
    before = np.cumsum(values[:, :-1], axis=1)
    return np.where(before.min(axis=1) < 0, np.argmin(before, axis=1) + 1, 0).astype(np.int64)


PERIOD = 20.0
"""The period of the Fourier series, in standard deviations; the probability beyond half of it is below exp(-49)."""
BLUR = 0.01
"""Standard deviation of the Gaussian that smooths the law, in standard deviations of the sum."""
ORDERS = np.arange(1, int(6 * PERIOD / (2 * np.pi * BLUR)) + 1)
"""The orders of the series; beyond them the smoothing Gaussian's own characteristic function is below exp(-18)."""
NOTHING = -30.0
"""The logarithm of a characteristic function that counts as 0."""
SMALLEST_TAIL = 1e-9
"""Below this the series is no better than its rounding, and the sub-Gaussian reach is used."""
SMALLEST_SIGMA = 1
"""Below this, at a rho of more than bits/2, the series converges slowly, and the sub-Gaussian reach is used."""
PLACES = 200
ROWS_AT_ONCE = 128


@lru_cache(maxsize=64)
def reaches(bits: int, p: float, sigma: Fraction, confidence: float) -> FloatArray:
    """Return an upper error bound for every point i.

    c with P(error of (records up to i) - p (all records) > c) <= (1 - confidence)/2.
    """
    deviation = float(sigma) * np.sqrt(excess_variance(bits, p))
    alpha = (1 - confidence) / 2
    most = np.sqrt(-2 * np.log(alpha))
    if alpha < SMALLEST_TAIL or sigma < SMALLEST_SIGMA:
        return np.asarray(most * deviation)
    places = np.linspace(most / 2, most, PLACES)
    # One percent of the allowed misses is reserved for the smoothing.
    enough = _tails(bits, p, float(sigma), deviation, places) <= 0.99 * alpha
    found = places[np.argmax(enough, axis=1)] - BLUR * NormalDist().inv_cdf(0.01 * alpha)
    return np.asarray(deviation * np.where(enough.any(axis=1), np.minimum(found, most), most))


def node_weights(bits: int, p: float) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield node weights and their multiplicities for every point i.

    Weights in (records up to i) - p (all records); large nodes first. A node's weight is its number of leaves
    times the value of G^-1 c there (T-QUANTILE), which wavelets inside it do not change.
    """
    size = 1 << bits
    upto = np.arange(1, size + 1)
    value: FloatArray = np.asarray((upto - p * size) / (size * (size - 1.0)), np.float64)
    going: FloatArray = np.ones(size)
    for width in (1 << k for k in range(bits, 0, -1)):
        half, inside = width // 2, upto % width
        turn = np.minimum(inside, width - inside) / (width * (width - 1.0))
        left = inside < half
        value, beside = value + np.where(left, turn, -turn), value + np.where(left, -turn, turn)
        # Where the boundary runs between the two halves, or next to both, neither is divided further.
        ends: FloatArray = going * ((inside == half) | (inside == 0))
        yield half * value, going
        yield half * beside, going
        for leaves in (half >> j for j in range(1, half.bit_length())):
            yield leaves * beside, going * (half / leaves)
            yield leaves * value, ends * (half / leaves)
        going = going - ends


def _tails(bits: int, p: float, sigma: float, deviation: FloatArray, multiples: FloatArray) -> FloatArray:
    """P(smoothed error > place * deviation), a row for each point."""
    waves = np.sin(2 * np.pi / PERIOD * np.outer(ORDERS, multiples)) / (np.pi * ORDERS[:, None])
    weights = list(node_weights(bits, p))
    found = np.empty((len(deviation), len(multiples)))
    for start in range(0, len(deviation), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        here = [(weight[part], number[part]) for weight, number in weights]
        found[part] = 0.5 - multiples / PERIOD - _characteristic_function(here, sigma, deviation[part]) @ waves
    return found


def _characteristic_function(
    weights: list[tuple[FloatArray, FloatArray]], sigma: float, deviation: FloatArray
) -> FloatArray:
    """Return the characteristic function of the smoothed error.

    At the frequencies of the series; values near 0 are dropped early.
    """
    place = np.arange(len(deviation) * len(ORDERS))
    row, order = np.divmod(place, len(ORDERS))
    scaled = 2 * np.pi / PERIOD * ORDERS[order]
    frequency, total = scaled / deviation[row], -((BLUR * scaled) ** 2) / 2
    for weight, number in weights:
        if not (number[row] > 0).any():
            continue
        total = total + number[row] * log_characteristic(sigma, weight[row] * frequency)
        kept = total > NOTHING
        if kept.mean() < 0.9:
            place, row, frequency, total = place[kept], row[kept], frequency[kept], total[kept]
    found = np.zeros(len(deviation) * len(ORDERS))
    found[place] = np.exp(total)
    return found.reshape(len(deviation), -1)


def log_characteristic(sigma: float, u: FloatArray) -> FloatArray:
    """Return ln E cos(uZ) of a discrete Gaussian Z.

    Sigma is 1 or more: a sum of bells around the multiples of a turn.
    """
    off = np.abs(u - 2 * np.pi * np.rint(u / (2 * np.pi)))
    total = -((sigma * off) ** 2) / 2
    # Only near a half turn does a second bell matter.
    rate = 2 * np.pi * sigma**2
    near = off > np.pi + NOTHING / rate
    total[near] += np.log1p(np.exp(-rate * (np.pi - off[near])) + np.exp(-rate * (np.pi + off[near])))
    return np.asarray(total - np.log1p(2 * np.exp(-rate * np.pi)))


# The public grid, and the mechanism.


MOST_BITS = 12
PRECISION = 192
NARROWEST = Fraction(1, 10**6)
"""The smallest width of a grid relative to its upper end; below it a float cannot identify the nearby point (T-BIN)."""

IntArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Grid:
    """A public grid of 2**bits points from ``low`` to ``high``.

    Evenly spaced (``linear``) or in equal ratios (``log``). A record belongs to the first point at or above its
    value; a value beyond ``high`` belongs to the last point.
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
        """Return a grid of equal ratios, for skewed data.

        The same relative accuracy for small and large values.

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
        """Return the points in a measure's whole steps, rounded down.

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
    """Return certified floors, the same on every machine."""
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
    """Positions on the grid, one per cell.

    ``low`` is the point below the lowest possible one, -1 if there is none.
    """

    value: IntArray
    low: IntArray
    high: IntArray
    spread_low: IntArray
    spread_high: IntArray
    """The same inversion at one standard deviation."""


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TreeQuantile(Mechanism):
    """Noisy counts of records up to each point of a grid.

    From noise on every node of a binary tree. Theorem T-QUANTILE (docs/theory/statistics.md): a record is
    counted once on each of the levels 1..bits, whatever its value, so the release costs every record bits/(2
    sigma**2) = rho. It runs on whole records: splitting them would change the quantile.

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

    def release(  # type: ignore[override]
        self, leaves: IntArray, *, rng: BitSource | None = None
    ) -> NoisyTrees:
        """Add noise to every tree node and make the trees consistent.

        ``leaves`` has shape (cells, grid points).
        """
        source = rng or Secure()
        noise = DiscreteGaussian(self.noise_sigma)
        noisy: Levels = [noise.add_to(level.ravel(), source).reshape(level.shape) for level in exact_levels(leaves)]
        return NoisyTrees(leaves=consistent_leaves(noisy), private=is_private(source))

    def estimate(  # type: ignore[override]
        self, noisy: NoisyTrees, *, p: float, confidence: float = 0.95
    ) -> QuantileEstimates:
        """Return the point and interval of a quantile p.

        The point where the noisy curve crosses a share p of the records is about as often too high as too low
        (T-ISOTONE); the interval contains the quantile with at least ``confidence`` (T-INVERT). A larger p never
        gives a smaller point.
        """
        upto = np.cumsum(noisy.leaves, axis=1)
        value = isotonic_root(upto - p * np.maximum(upto[:, -1:], 0.0))
        excess = upto - p * upto[:, -1:]
        low, high = _quantile_range(excess, reaches(self.grid.bits, p, self.noise_sigma, confidence))
        deviation = float(self.noise_sigma) * np.sqrt(excess_variance(self.grid.bits, p))
        spread_low, spread_high = _quantile_range(excess, deviation)
        return QuantileEstimates(
            value=value,
            low=np.minimum(low, value - 1),
            high=np.maximum(high, value),
            spread_low=np.minimum(spread_low, value - 1),
            spread_high=np.maximum(spread_high, value),
        )


def _quantile_range(excess: FloatArray, reach: FloatArray) -> tuple[IntArray, IntArray]:
    """The point before the first possible quantile, and the last possible quantile."""
    points = excess.shape[1]
    surely_below = (excess - reach < 0)[:, ::-1]
    last_below = points - 1 - np.argmax(surely_below, axis=1)
    after = np.where(surely_below.any(axis=1), last_below + 1, 0)
    return _first(excess + reach >= 0) - 1, np.minimum(after, points - 1).astype(np.int64)


def _first(holds: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> IntArray:
    """Return the first column where a condition holds, else the last."""
    return np.where(holds.any(axis=1), np.argmax(holds, axis=1), holds.shape[1] - 1).astype(np.int64)
