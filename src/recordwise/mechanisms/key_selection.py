"""Private key selection by a threshold on noisy counts (T-SELECT).

A key is published if its number of pieces plus discrete Gaussian noise reaches the threshold. Empty cells
of a public domain that reach it are drawn without visiting the others (T-EMPTY). The intervals of a
published count take into account that the count is known to have reached the threshold (T-TRUNCATED).
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import (
    Number,
    arb_float_upper,
    float_upper,
    positive,
    rational,
    sqrt_upper,
    working_precision,
)
from recordwise.noise.laws import DiscreteGaussian, binomial_exact
from recordwise.noise.probabilities import tail
from recordwise.noise.randomness import BitSource, random_words

MOST_STEPS = 256
EXACT_STEPS = 64
"""The first entries of the table of deltas, which are not rounded up to a larger number of pieces."""
NEARLY_SURE = Fraction(1, 10**6)
"""The table of deltas ends where a key is missed with less than this probability; beyond it, delta is 1."""
PRECISION = 192

Steps = tuple[tuple[int, Fraction], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLoss:
    """The joint loss of several records from a selection, rounded up."""

    rho: float
    delta: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionLaw:
    """The selection of keys with pieces + Z >= threshold (T-SELECT).

    Z is discrete Gaussian; see docs/theory/selection.md.
    """

    sigma: Fraction
    threshold: int

    @classmethod
    def for_delta(cls, *, rho: Number, delta: Number) -> "SelectionLaw":
        """Return the law with the smallest threshold for ``delta``.

        One piece has loss ``rho`` and, alone, reaches the threshold with probability at most ``delta``.
        """
        sigma, chance = selection_sigma(rho), rational(delta, parameter="delta")
        if not 0 < chance < 1:
            raise ParameterError(parameter="delta", problem=f"must lie between 0 and 1, not {delta}")
        return _for_delta(sigma, chance)

    @property
    def noise(self) -> DiscreteGaussian:
        return DiscreteGaussian(self.sigma)

    def keep_probability(self, pieces: int) -> float:
        """The probability that a key with this many pieces is published."""
        return float(self.noise.sf(self.threshold - pieces))

    def deltas(self) -> Steps:
        """Return delta by number of pieces, rounded up.

        From the lattice tail; between two entries the larger one applies.
        """
        return _deltas(self)

    def group_loss(self, pieces: Iterable[int]) -> GroupLoss:
        """Return the joint loss from pieces per key (T-SELECT-GROUP).

        No bound from each record's rho and delta would be valid, so a group's loss must be computed this way.
        """
        counts = [int(each) for each in pieces]
        if any(count < 0 for count in counts):
            raise ParameterError(parameter="pieces", problem="must not be negative")
        rho = Fraction(sum(count**2 for count in counts)) / (2 * self.sigma**2)
        exponent = self.noise.exponent
        with working_precision(PRECISION):
            hidden = arb(1)
            for count in counts:
                hidden *= tail(exponent, 1 - (self.threshold - count), bits=PRECISION) if count else arb(1)
            delta = arb_float_upper(1 - hidden)
        return GroupLoss(rho=float_upper(rho), delta=min(max(delta, 0.0), 1.0))


def selection_sigma(rho: Number) -> Fraction:
    """The noise at which one piece costs ``rho``."""
    return sqrt_upper(1 / (2 * positive(rho, parameter="rho")))


@lru_cache(maxsize=256)
def _for_delta(sigma: Fraction, delta: Fraction) -> SelectionLaw:
    # quantile is the smallest k with P(Z >= k + 1) <= delta, and a lone piece needs Z >= threshold - 1.
    return SelectionLaw(sigma=sigma, threshold=DiscreteGaussian(sigma).quantile(1 - delta) + 2)


@lru_cache(maxsize=256)
def _deltas(law: SelectionLaw) -> Steps:
    noise = law.noise
    last = max(law.threshold + noise.quantile(1 - NEARLY_SURE), 1)
    spaced = np.ceil(np.linspace(1, last, MOST_STEPS - EXACT_STEPS)).astype(np.int64)
    counts = sorted({*range(1, min(last, EXACT_STEPS) + 1), *spaced.tolist()})
    tails = np.minimum(noise.sf_upper([law.threshold - m for m in counts]), 1.0)
    # Rounding up separately could put two neighbors that are one unit apart in the wrong order.
    return tuple((m, Fraction(float(chance))) for m, chance in zip(counts, np.maximum.accumulate(tails)))


IntArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
LARGEST_DOMAIN = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyCells:
    """Empty cells that reached the threshold, with their noisy counts."""

    positions: IntArray
    noisy: IntArray


def passing_empty_cells(size: int, occupied: IntArray, law: SelectionLaw, rng: BitSource) -> EmptyCells:
    """Draw the empty cells of a domain that reach the threshold.

    As noise on every empty cell would: their number, positions and values. ``occupied`` lists the positions of
    the cells that contain records, in increasing order.
    """
    empty = size - len(occupied)
    passing = binomial_exact(empty, law.noise, law.threshold, rng)
    ranks = distinct_below(empty, passing, rng)
    # The r-th empty cell comes after r empty ones and after every occupied one with at most r empty ones before it.
    before = occupied - np.arange(len(occupied))
    positions = ranks + np.searchsorted(before, ranks, side="right")
    return EmptyCells(positions=positions, noisy=law.noise.sample_above(law.threshold, passing, rng))


def distinct_below(bound: int, count: int, rng: BitSource) -> IntArray:
    """Draw ``count`` distinct integers below ``bound``, increasing.

    Every set is equally likely (T-EMPTY).
    """
    if not 0 <= count <= bound <= LARGEST_DOMAIN:
        raise ParameterError(parameter="count", problem="must not exceed the number of integers, at most 2^62")
    if 2 * count > bound:
        left_out = np.ones(bound, dtype=np.bool_)
        left_out[distinct_below(bound, bound - count, rng)] = False
        return np.flatnonzero(left_out)
    found = np.empty(0, dtype=np.int64)
    while len(found) < count:
        found = np.unique(np.concatenate([found, _uniform(bound, count - len(found), rng)]))
    return found


def _uniform(bound: int, size: int, rng: BitSource) -> IntArray:
    """Draw at most ``size`` independent uniform integers below ``bound``."""
    bits = max((bound - 1).bit_length(), 1)
    drawn = (random_words(rng, size) >> np.uint64(64 - bits)).astype(np.int64)
    return drawn[drawn < bound]


Test = Callable[[IntArray], np.ndarray[tuple[int, ...], np.dtype[np.bool_]]]
"""A vectorized test of counts."""
FLOAT_SLACK = 1e-9
"""Relative slack, toward the wider interval."""
TAIL = 9.0
"""Standard deviations beyond which a tail of the noise is no larger than rounding."""


def truncated_intervals(
    law: SelectionLaw, noisy: IntArray, *, confidence: float, least: int
) -> tuple[IntArray, IntArray]:
    """Return confidence intervals of counts, given that keys were kept.

    Whole numbers low, high with P(low <= count <= high | the key was kept) >= confidence, for every count from
    ``least`` on.
    """
    noisy = np.asarray(noisy, np.int64)
    half = int(law.noise.quantile((1 + confidence) / 2))
    far = half + 2 + math.ceil(TAIL * float(law.sigma))
    # Far above the threshold the upper end is already safe, and truncation moves the lower end by one step or not at all.
    low, high = noisy - half - _extra_steps(law, half, (1 - confidence) / 2), noisy + half
    near = noisy - law.threshold <= far
    if near.any():
        values, back = np.unique(noisy[near], return_inverse=True)
        lows, highs = _invert_tests(law, values, (1 - confidence) / 2, least, half)
        low[near], high[near] = lows[back], highs[back]
    return np.maximum(low, least), np.maximum(high, least)


def _extra_steps(law: SelectionLaw, half: int, alpha: float) -> int:
    """Return the steps by which truncation widens far intervals.

    It may move a lower end far above the threshold; by none where a tail is smaller than it need be.
    """
    beyond, cut = (float(law.noise.sf_upper(each)) for each in (half + 1, math.ceil(TAIL * float(law.sigma))))
    return 0 if beyond <= alpha * (1 - cut) / (1 + FLOAT_SLACK) else 1


def truncated_deviations(law: SelectionLaw, noisy: IntArray, *, least: int) -> FloatArray:
    """Return standard deviations of noisy counts, conditional on being kept.

    At the count whose median it is, ``least`` or more.
    """
    noisy = np.asarray(noisy, np.int64)
    found = np.full(noisy.shape, math.sqrt(law.noise.variance))
    near = noisy - law.threshold <= 2 * math.ceil(TAIL * float(law.sigma))
    if near.any():
        values, back = np.unique(noisy[near], return_inverse=True)
        first = np.full(len(values), least)
        counts = _smallest(lambda counts: _at_least(law, values, counts) >= 0.5, first, values)
        found[near] = _deviations(law, counts)[back]
    return found


def _invert_tests(
    law: SelectionLaw, values: IntArray, alpha: float, least: int, half: int
) -> tuple[IntArray, IntArray]:
    """Return counts that neither one-sided test rejects.

    By bisection: both p-values are monotone in the count (T-TRUNCATED).
    """
    first, limit = np.full(len(values), least), alpha / (1 + FLOAT_SLACK)
    lows = _smallest(lambda counts: _at_least(law, values, counts) > limit, first, values)
    beyond = _smallest(lambda counts: 1 - _at_least(law, values + 1, counts) <= limit, first, values + half + 1)
    return lows, beyond - 1


def _smallest(holds: Test, first: IntArray, last: IntArray) -> IntArray:
    """The smallest count, at most ``last``, for which a monotone test holds."""
    low, high = first.copy(), np.maximum(last, first)
    while np.any(low < high):
        middle = (low + high) // 2
        true = holds(middle)
        low, high = np.where(true, low, middle + 1), np.where(true, middle, high)
        low = np.minimum(low, high)
    return high


def _at_least(law: SelectionLaw, values: IntArray, counts: IntArray) -> FloatArray:
    """Return P(N >= value | N >= threshold) for a known count."""
    reach = int(np.max(values) - law.threshold) + math.ceil(TAIL * float(law.sigma))
    pairs = zip(values - law.threshold, _weights(law, counts, reach))
    return np.array([weights[above:].sum() / weights.sum() for above, weights in pairs])


def _deviations(law: SelectionLaw, counts: IntArray) -> FloatArray:
    """Return the standard deviation of N given N >= threshold."""
    found = []
    for weights in _weights(law, counts, 2 * math.ceil(TAIL * float(law.sigma))):
        offsets = np.arange(len(weights))
        mean = np.average(offsets, weights=weights)
        found.append(math.sqrt(np.average((offsets - mean) ** 2, weights=weights)))
    return np.array(found)


def _weights(law: SelectionLaw, counts: IntArray, reach: int) -> Iterator[FloatArray]:
    """Yield the weights of N from the threshold on.

    For each count, relative to the largest.
    """
    gap = (law.threshold - counts).astype(np.float64)
    offsets = np.arange(reach + int(max(0.0, -np.min(gap))) + 1, dtype=np.float64)
    for distance in gap:
        exponents = -(offsets * (offsets + 2 * distance)) / (2 * float(law.sigma) ** 2)
        yield np.exp(exponents - exponents.max())
