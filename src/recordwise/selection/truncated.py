"""What is said of a count that selected its own key: the noise is known to have passed a threshold (T-TRUNCATED)."""

import math
from collections.abc import Callable, Iterator

import numpy as np

from recordwise.arithmetic import FloatArray
from recordwise.selection.empty_cells import IntArray
from recordwise.selection.law import SelectionLaw

Test = Callable[[IntArray], np.ndarray[tuple[int, ...], np.dtype[np.bool_]]]
"""Of counts, vectorised."""
FLOAT_SLACK = 1e-9
"""Relative; towards the wider interval."""
TAIL = 9.0
"""Standard deviations after which a tail of the noise is no larger than rounding."""


def truncated_intervals(law: SelectionLaw, noisy: IntArray, *, level: float, least: int) -> tuple[IntArray, IntArray]:
    """Whole numbers low, high with P(low <= count <= high | the key was kept) >= level, for every count from ``least`` on."""
    noisy = np.asarray(noisy, np.int64)
    half = int(law.noise.quantile((1 + level) / 2))
    far = half + 2 + math.ceil(TAIL * float(law.sigma))
    # Far above the threshold truncation moves the lower end by at most one step, and the upper end is safe as it is.
    low, high = noisy - half - 1, noisy + half
    near = noisy - law.threshold <= far
    if near.any():
        values, back = np.unique(noisy[near], return_inverse=True)
        lows, highs = _inverted(law, values, (1 - level) / 2, least, half)
        low[near], high[near] = lows[back], highs[back]
    return np.maximum(low, least), np.maximum(high, least)


def truncated_deviations(law: SelectionLaw, noisy: IntArray, *, least: int) -> FloatArray:
    """The standard deviation of the noisy count given that it passed, at the count whose median it is, ``least`` or more."""
    noisy = np.asarray(noisy, np.int64)
    found = np.full(noisy.shape, math.sqrt(law.noise.variance))
    near = noisy - law.threshold <= 2 * math.ceil(TAIL * float(law.sigma))
    if near.any():
        values, back = np.unique(noisy[near], return_inverse=True)
        first = np.full(len(values), least)
        counts = _smallest(lambda counts: _at_least(law, values, counts) >= 0.5, first, values)
        found[near] = _deviations(law, counts)[back]
    return found


def _inverted(law: SelectionLaw, values: IntArray, alpha: float, least: int, half: int) -> tuple[IntArray, IntArray]:
    """Counts that neither of two one-sided tests rejects, by bisection: both p-values are monotone in the count (T-TRUNCATED)."""
    first, limit = np.full(len(values), least), alpha / (1 + FLOAT_SLACK)
    lows = _smallest(lambda counts: _at_least(law, values, counts) > limit, first, values)
    beyond = _smallest(lambda counts: 1 - _at_least(law, values + 1, counts) <= limit, first, values + half + 1)
    return lows, beyond - 1


def _smallest(holds: Test, first: IntArray, last: IntArray) -> IntArray:
    """The smallest count for which a monotone test holds, at most ``last``."""
    low, high = first.copy(), np.maximum(last, first)
    while np.any(low < high):
        middle = (low + high) // 2
        true = holds(middle)
        low, high = np.where(true, low, middle + 1), np.where(true, middle, high)
        low = np.minimum(low, high)
    return high


def _at_least(law: SelectionLaw, values: IntArray, counts: IntArray) -> FloatArray:
    """P(N >= value | N >= threshold) where the count is known: a ratio of two lattice tails."""
    reach = int(np.max(values) - law.threshold) + math.ceil(TAIL * float(law.sigma))
    pairs = zip(values - law.threshold, _weights(law, counts, reach))
    return np.array([weights[above:].sum() / weights.sum() for above, weights in pairs])


def _deviations(law: SelectionLaw, counts: IntArray) -> FloatArray:
    """The standard deviation of N given N >= threshold, where the count is known."""
    found = []
    for weights in _weights(law, counts, 2 * math.ceil(TAIL * float(law.sigma))):
        offsets = np.arange(len(weights))
        mean = np.average(offsets, weights=weights)
        found.append(math.sqrt(np.average((offsets - mean) ** 2, weights=weights)))
    return np.array(found)


def _weights(law: SelectionLaw, counts: IntArray, reach: int) -> Iterator[FloatArray]:
    """For each count the weights of N = threshold, threshold + 1, ..., relative to the largest."""
    gap = (law.threshold - counts).astype(np.float64)
    offsets = np.arange(reach + int(max(0.0, -np.min(gap))) + 1, dtype=np.float64)
    for distance in gap:
        exponents = -(offsets * (offsets + 2 * distance)) / (2 * float(law.sigma) ** 2)
        yield np.exp(exponents - exponents.max())
