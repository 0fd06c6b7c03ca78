"""A quantile of each cell: noisy tree of counts, consistent, inverted."""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from recordwise.arithmetic import FloatArray
from recordwise.errors import ParameterError
from recordwise.exact import Number, positive, sqrt_upper
from recordwise.noise import BitSource, DiscreteGaussian, Secure, is_private
from recordwise.policy import Measure, Policy, constant
from recordwise.quantiles.grid import Grid, IntArray
from recordwise.quantiles.least_squares import Levels, consistent_leaves, exact_levels, excess_variance, isotonic_root
from recordwise.quantiles.node_sums import reaches


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyTrees:
    """The leaves of many cells, noisy and consistent."""

    leaves: FloatArray
    private: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileEstimates:
    """Positions on the grid, one for each cell; ``low`` is the point below the lowest that is possible, -1 for none."""

    value: IntArray
    low: IntArray
    high: IntArray
    spread_low: IntArray
    spread_high: IntArray
    """The same inversion at one standard deviation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeQuantile:
    """Counts of the records up to each point of a public grid, from noise on every node of a binary tree.

    Theorem T-QUANTILE (docs/theory/quantiles.md): a record is counted once on each of the levels 1..bits, whatever its value, so
    the release costs every record bits/(2 sigma**2) = rho. It runs on whole records: splitting them would change the quantile.
    """

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
        return sqrt_upper(Fraction(self.grid.bits) / (2 * Fraction(self.rho)))

    def shared(self, share: Fraction) -> "TreeQuantile":
        """The same at a share of the budget."""
        return replace(self, rho=Fraction(self.rho) * share)

    def policy_of_count(self) -> Policy:
        """The same loss for every record."""
        return constant(self.grid.bits / (2 * self.noise_sigma**2))

    def policy(self, measure: Measure | str, *, tight: bool = True) -> Policy:
        """Constant: where a record stands on the grid does not change what it costs."""
        return self.policy_of_count()

    def release(self, leaves: IntArray, *, rng: BitSource | None = None) -> NoisyTrees:
        """Add noise to every node of the trees whose leaves are given, shape (cells, grid points), and make them consistent."""
        source = rng or Secure()
        noise = DiscreteGaussian(self.noise_sigma)
        noisy: Levels = [noise.add_to(level.ravel(), source).reshape(level.shape) for level in exact_levels(leaves)]
        return NoisyTrees(leaves=consistent_leaves(noisy), private=is_private(source))

    def estimate(self, noisy: NoisyTrees, *, p: float, level: float = 0.95) -> QuantileEstimates:
        """The point where the noisy curve passes a share p of the records, about as often too high as too low (T-ISOTONE), and an
        interval that holds the quantile with at least ``level`` (T-INVERT). A larger p never gets a smaller point."""
        upto = np.cumsum(noisy.leaves, axis=1)
        value = isotonic_root(upto - p * np.maximum(upto[:, -1:], 0.0))
        excess = upto - p * upto[:, -1:]
        low, high = _inverted(excess, reaches(self.grid.bits, p, self.noise_sigma, level))
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
    """The point before the first that could be the quantile, and the last that could be."""
    points = excess.shape[1]
    surely_below = (excess - reach < 0)[:, ::-1]
    last_below = points - 1 - np.argmax(surely_below, axis=1)
    after = np.where(surely_below.any(axis=1), last_below + 1, 0)
    return _first(excess + reach >= 0) - 1, np.minimum(after, points - 1).astype(np.int64)


def _first(holds: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> IntArray:
    """The first column where something holds; the last where it holds nowhere."""
    return np.where(holds.any(axis=1), np.argmax(holds, axis=1), holds.shape[1] - 1).astype(np.int64)
