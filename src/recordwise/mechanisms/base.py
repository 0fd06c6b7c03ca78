"""The ``Mechanism`` protocol, the estimates it returns, and the defaults for mechanisms without an optional method.

There is no common base class; one contract suite (tests/mechanisms) runs every mechanism.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from recordwise.errors import PlanError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import Number
from recordwise.mechanisms.noisy import IntArray, Noisy, clean_difference
from recordwise.noise.randomness import BitSource
from recordwise.policy.constructors import By, constant
from recordwise.policy.measure import Measure
from recordwise.policy.policy import Policy

BLOCK = 1 << 14
"""Few enough cells that every intermediate column stays in the processor's cache."""
Fields: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]
"""value, median_unbiased, standard_error, variance_unbiased, low, high."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """What is published about each total, computed from the noisy answer alone."""

    value: FloatArray
    """Mean-unbiased."""
    median_unbiased: FloatArray
    """As often above the exact total as below; for a signed sum, the difference of two such values, which may not be."""
    standard_error: FloatArray
    """The standard error of ``value`` due to noise; infinite if the noise has no variance."""
    variance_unbiased: FloatArray
    """An unbiased estimate of the variance, sometimes negative; use this one to add up over cells."""
    low: FloatArray
    high: FloatArray
    """A noise interval: it contains the exact total with at least the stated ``confidence``."""
    confidence: float


def by_blocks(points: IntArray, confidence: float, fields: Callable[[IntArray], Fields]) -> Estimates:
    """Estimates of every cell, in the shape of the noisy points."""
    value, median, error, spread, low, high = filled(points, 6, fields)
    return Estimates(
        value=value,
        median_unbiased=median,
        standard_error=error,
        variance_unbiased=spread,
        low=low,
        high=high,
        confidence=confidence,
    )


def filled(points: IntArray, count: int, fields: Callable[[IntArray], Sequence[FloatArray]]) -> list[FloatArray]:
    """So many numbers for every cell, in the shape of the noisy points; computed in blocks that stay in the processor cache."""
    flat = points.ravel()
    found = np.empty((count, flat.size))
    for start in range(0, flat.size, BLOCK):
        part = slice(start, start + BLOCK)
        # Noise so large that its exponential overflows a float is reported as infinite.
        with np.errstate(over="ignore"):
            for row, column in zip(found, fields(flat[part])):
                row[part] = column
    return [row.reshape(points.shape) for row in found]


def difference(positive: Estimates, negative: Estimates, *, confidence: float) -> Estimates:
    """Positive part minus negative part; each interval holds at a confidence that allows half of the misses."""
    return Estimates(
        value=positive.value - negative.value,
        median_unbiased=positive.median_unbiased - negative.median_unbiased,
        standard_error=np.hypot(positive.standard_error, negative.standard_error),
        variance_unbiased=positive.variance_unbiased + negative.variance_unbiased,
        low=clean_difference(positive.low, negative.high),
        high=clean_difference(positive.high, negative.low),
        confidence=confidence,
    )


@runtime_checkable
class Mechanism(Protocol):
    """Parameters, policy, release, estimate. It reads no table and spends no budget; all numbers are in the measure's units.

    A mechanism may offer more; the functions below give the default where it does not:

    - ``shared(share)``: the same mechanism at a share of its loss, for queries with levels (`shared`);
    - ``resized(size)``: the mechanism whose parameters are those of this one, which are then shares, times a size (`resized`);
    - ``policy_of_count()``: the policy where every record contributes 1 (`count_policy`);
    - ``threshold(measure)`` and ``resolved(at)``: the splitting threshold, which may differ by group (`threshold_of`);
    - ``signed``: whether it takes a positive and a negative part of each total (`has_two_parts`);
    - ``to``: the bound to which contributions are clamped before they are summed (`clamping_bound`);
    - ``noise_sigma``: the sigma of Gaussian noise on the data's own lattice (`gaussian_sigma`);
    - ``noise_scale``: the scale of noise drawn on a transformed scale (`transformed_scale`); with it ``variance_varies`` and
      ``with_noise_scale(scale)``, by which fits weight each answer by the variance at its fitted total;
    - ``realized_sql(measure, total, step=, dialect=)``: the SQL of the loss a record really incurred. Without it the loss of the
      policy is reported.
    - ``loss_of_sum``: whether the policy, at the sum of several contributions to a cell, bounds what they lose together
      (`loss_of_sum`); of a sum that is ``signed``, of its positive and its negative part;
    - ``noise_steps(step)``: the sigma of discrete Gaussian noise in steps of the lattice it is drawn on; a loss P is then a shift
      of at most sqrt(2 P) sigma (`noise_steps`);
    - ``error_quantiles``, ``smooth_error_quantiles``, ``meets``, ``most_noise``, ``recalibrated`` and, where an offset is to be
      chosen, ``with_offset``: what planning asks. ``GaussianNoise``, ``FatTailedNoise`` and ``TransformedNoise`` have them.
    """

    def policy(self, measure: Measure | str, *, tight: bool = True) -> Policy:
        """The public loss of a record: the tight one, or with ``tight=False`` the one printed in the papers.

        Args:
            measure: The measure that is summed.
            tight: Whether the tight policy is meant; otherwise the one printed in the papers.

        Returns:
            The policy.
        """

    def release(self, totals: Any, *, step: Number = 1, rng: BitSource | None = None) -> Noisy:
        """Add noise to exact totals, given as whole numbers of lattice steps.

        Args:
            totals: The exact totals.
            step: The step of the measure's lattice, in its own units.
            rng: A source of random bits; the secure source unless given.

        Returns:
            The noisy totals.
        """

    def estimate(self, noisy: Noisy, *, confidence: float = 0.95) -> Estimates:
        """Unbiased values, standard errors and noise intervals, from the noisy answers alone.

        Args:
            noisy: What ``release`` returned.
            confidence: The confidence of the intervals.

        Returns:
            The estimates of every cell.
        """

    def loss_at_shift(self, shift: Number, *, step: Number = 1) -> float:
        """The largest loss when a cell's total changes by ``shift``, rounded up.

        Args:
            shift: The change, in the measure's units.
            step: The step of the measure's lattice, in its own units.

        Returns:
            The loss.
        """

    def realized_loss(self, total_without: Number, contribution: Number, *, step: Number = 1) -> float:
        """The loss of a contribution to a cell of known total, rounded up. Confidential, always.

        Args:
            total_without: The exact total of the cell without the record.
            contribution: What the record contributes.
            step: The step of the measure's lattice, in its own units.

        Returns:
            The loss.
        """

    def variance(self, total: Any, *, step: Number = 1) -> FloatArray:
        """The variance of ``value`` at an exact total.

        Args:
            total: An exact total, in the measure's units.
            step: The step of the measure's lattice, in its own units.

        Returns:
            The variance, in squared units of the measure.
        """

    def bias(self, total: Any, *, step: Number = 1) -> FloatArray:
        """The bias of ``value`` at an exact total.

        Args:
            total: An exact total, in the measure's units.
            step: The step of the measure's lattice, in its own units.

        Returns:
            The bias, in the measure's units.
        """


def has_policy(mechanism: object) -> bool:
    """Whether a mechanism has a policy; a plan needs nothing else until noise is drawn."""
    return callable(getattr(mechanism, "policy", None))


def shared(mechanism: Any, share: Fraction) -> Any:
    """The mechanism for a level with a share of the budget; its own policy is charged, including any rounding."""
    if share == 1:
        return mechanism
    if not hasattr(mechanism, "shared"):
        raise PlanError(
            problems=(f"{type(mechanism).__name__} cannot be shared among levels; give each level its own query",)
        )
    return mechanism.shared(share)


def is_sized(mechanism: Any) -> bool:
    """Whether its noise follows the public sizes of cells: ``at_size(size)`` and ``edges(largest)`` say how (T-SIZE)."""
    return hasattr(mechanism, "at_size")


def inside(mechanism: Any) -> tuple[Any, ...]:
    """The mechanisms that draw: those of a sized one, or the mechanism itself."""
    return tuple(mechanism.inside()) if is_sized(mechanism) else (mechanism,)


def resized(mechanism: Any, size: Fraction) -> Any:
    """The mechanism whose parameters are those of the given one, which are shares, times a size."""
    if not hasattr(mechanism, "resized"):
        raise PlanError(problems=(f"{type(mechanism).__name__} cannot be in shares of a size",))
    return mechanism.resized(size)


def threshold_of(mechanism: Any, measure: Measure) -> Fraction | By | None:
    """The splitting threshold of a measure, if the mechanism has one."""
    return mechanism.threshold(measure) if hasattr(mechanism, "threshold") else None


def count_policy(mechanism: Any) -> Policy:
    """The loss if every record contributes 1: as the mechanism states it, or its policy at a contribution of 1."""
    if hasattr(mechanism, "policy_of_count"):
        return mechanism.policy_of_count()  # type: ignore[no-any-return]
    unit = Measure("count")
    policy: Policy = mechanism.policy(unit)
    return constant(Fraction(policy.loss({unit.name: 1})), near_gaussian=policy.near_gaussian)


def clamping_bound(mechanism: Any) -> Fraction | None:
    """The bound to which contributions are clamped before they are summed, if the mechanism has one."""
    return getattr(mechanism, "to", None)


def loss_of_sum(mechanism: Any) -> bool:
    """Whether the policy at the sum of several contributions bounds what they lose together in one cell (T-CELLS)."""
    return bool(getattr(mechanism, "loss_of_sum", False))


def noise_steps(mechanism: Any, step: Fraction) -> Fraction | None:
    """The sigma of discrete Gaussian noise in lattice steps, if that is what the mechanism draws (T-LOSS-LAW)."""
    own = getattr(mechanism, "noise_steps", None)
    return None if own is None else own(step)


def has_two_parts(mechanism: Any) -> bool:
    """Whether ``release`` takes two rows of totals: the sum of the values above 0, and of those below 0 without their sign."""
    return bool(getattr(mechanism, "signed", False))


def summed_as(mechanism: Any) -> tuple[bool, Fraction | None]:
    """How an engine adds up what the mechanism releases: whether in two parts, and the bound to which contributions are clamped."""
    return has_two_parts(mechanism), clamping_bound(mechanism)


def totals_for(mechanism: Any, totals: Any) -> FloatArray:
    """Totals as ``variance`` takes them: where it takes two parts, with nothing in the negative one."""
    given = np.asarray(totals, np.float64)
    return np.stack([given, np.zeros_like(given)]) if has_two_parts(mechanism) else given


def gaussian_sigma(mechanism: Any) -> Fraction | None:
    """The sigma of Gaussian noise on the data's own lattice, if that is what the mechanism draws."""
    return getattr(mechanism, "noise_sigma", None)


def transformed_scale(mechanism: Any) -> Fraction | None:
    """The scale of noise drawn on a transformed scale, which is published with the noisy points; None for other mechanisms."""
    return getattr(mechanism, "noise_scale", None)
