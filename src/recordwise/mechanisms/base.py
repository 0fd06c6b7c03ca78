"""What every mechanism offers. There is no base class; one contract suite runs them all.

What is said about each total, made from the noisy answers a block of cells at a time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import Number
from recordwise.mechanisms.noisy import IntArray, Noisy, clean_difference
from recordwise.noise.randomness import BitSource
from recordwise.policy.measure import Measure
from recordwise.policy.policy import Policy

BLOCK = 1 << 14
"""Few enough cells that every intermediate column stays in the processor's cache."""
Fields: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]
"""value, median_unbiased, standard_error, variance_unbiased, low, high."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """What is said about each total, from the noisy answer alone."""

    value: FloatArray
    """Mean-unbiased."""
    median_unbiased: FloatArray
    """As often above the exact total as below; of a signed sum, the difference of two such values, which need not be one."""
    standard_error: FloatArray
    """Of ``value``, due to noise; infinite where the noise has no variance."""
    variance_unbiased: FloatArray
    """An unbiased estimate of the variance, negative at times; the one to add up over cells."""
    low: FloatArray
    high: FloatArray
    """A noise interval: it holds the exact total with at least ``level``."""
    level: float


def by_blocks(points: IntArray, level: float, fields: Callable[[IntArray], Fields]) -> Estimates:
    """Estimates of every cell, in the shape of the noisy points."""
    flat = points.ravel()
    found = np.empty((6, flat.size))
    for start in range(0, flat.size, BLOCK):
        part = slice(start, start + BLOCK)
        # Noise so large that its exponential leaves the floats is reported as infinite.
        with np.errstate(over="ignore"):
            for row, column in zip(found, fields(flat[part])):
                row[part] = column
    value, median, error, spread, low, high = (row.reshape(points.shape) for row in found)
    return Estimates(
        value=value,
        median_unbiased=median,
        standard_error=error,
        variance_unbiased=spread,
        low=low,
        high=high,
        level=level,
    )


def difference(positive: Estimates, negative: Estimates, *, level: float) -> Estimates:
    """Positive part minus negative part; each interval holds at a level that leaves half of the misses to each."""
    return Estimates(
        value=positive.value - negative.value,
        median_unbiased=positive.median_unbiased - negative.median_unbiased,
        standard_error=np.hypot(positive.standard_error, negative.standard_error),
        variance_unbiased=positive.variance_unbiased + negative.variance_unbiased,
        low=clean_difference(positive.low, negative.high),
        high=clean_difference(positive.high, negative.low),
        level=level,
    )


@runtime_checkable
class Mechanism(Protocol):
    """Parameters, policy, release, estimate. It reads no table and spends no budget; all numbers are in the measure's units."""

    def policy(self, measure: Measure | str, *, tight: bool = True) -> Policy:
        """The public loss of a record: the tight one, or with ``tight=False`` the one printed in the papers."""

    def release(self, totals: Any, *, step: Number = 1, rng: BitSource | None = None) -> Noisy:
        """Add noise to exact totals, given as whole numbers of lattice steps."""

    def estimate(self, noisy: Noisy, *, level: float = 0.95) -> Estimates:
        """Unbiased values, standard errors and noise intervals, from the noisy answers alone."""

    def loss_at_shift(self, shift: Number, *, step: Number = 1) -> float:
        """The largest loss when a cell's total changes by ``shift``, rounded up."""

    def realised_loss(self, total_without: Number, contribution: Number, *, step: Number = 1) -> float:
        """The loss of a contribution to a cell of known total, rounded up. Confidential, always."""

    def variance(self, total: Any, *, step: Number = 1) -> FloatArray:
        """The variance of ``value`` at an exact total."""

    def bias(self, total: Any, *, step: Number = 1) -> FloatArray:
        """The bias of ``value`` at an exact total."""
