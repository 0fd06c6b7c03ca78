"""Intervals for a count that selected its own key: the noise is known to have passed a threshold (T-TRUNCATED)."""

import math
from collections.abc import Callable

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
    """P(N >= value | N >= threshold) where the count is known: a ratio of two lattice tails, relative to the first weight."""
    twice = 2 * float(law.sigma) ** 2
    gap = (law.threshold - counts).astype(np.float64)
    reach = int(np.max(values) - law.threshold) + math.ceil(TAIL * float(law.sigma)) + int(max(0.0, -np.min(gap)))
    offsets = np.arange(reach + 1, dtype=np.float64)
    found = np.empty(len(values))
    for row, (value, distance) in enumerate(zip(values, gap)):
        exponents = -(offsets * (offsets + 2 * distance)) / twice
        weights = np.exp(exponents - exponents.max())
        found[row] = weights[value - law.threshold :].sum() / weights.sum()
    return found
