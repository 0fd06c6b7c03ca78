"""Counts of a binary tree made consistent: least squares in two passes, and the variance it leaves (T-QUANTILE)."""

from collections.abc import Sequence

import numpy as np

from recordwise.arithmetic import FloatArray

Levels = Sequence[np.ndarray[tuple[int, ...], np.dtype[np.int64]]]
"""Levels 1..L of the trees of many cells: level l has shape (cells, 2**l)."""


def exact_levels(leaves: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Levels:
    """The counts of every node from those of the leaves, the root left out."""
    levels = [leaves]
    while levels[0].shape[1] > 2:
        finer = levels[0]
        levels.insert(0, finer[:, 0::2] + finer[:, 1::2])
    return levels


def consistent_leaves(noisy: Levels) -> FloatArray:
    """The least-squares leaves, all nodes having been counted with the same variance."""
    merged = [np.asarray(noisy[-1], np.float64)]
    for height, level in enumerate(reversed(noisy[:-1]), start=2):
        below = merged[0][:, 0::2] + merged[0][:, 1::2]
        # Weights inverse to the variances: 1 of a node's own count, 2**(h-1)/(2**(h-1) - 1) of its children's merged sum.
        own = 2.0 ** (height - 1) / (2.0**height - 1)
        merged.insert(0, own * level.astype(np.float64) + (1 - own) * below)
    settled = merged[0]
    for finer in merged[1:]:
        spread = (settled - (finer[:, 0::2] + finer[:, 1::2])) / 2
        settled = finer + np.repeat(spread, 2, axis=1)
    return settled


def excess_variance(bits: int, p: float) -> FloatArray:
    """The variance of (records up to point i) - p * (all records), for every i, in units of the noise variance.

    In the Haar basis the normal equations of the tree are diagonal: a wavelet over 2**k leaves has eigenvalue 2**k - 1, and so has
    the constant over all leaves.
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
    """The first place where the nondecreasing curve nearest to each row is not negative, or the last place (T-ISOTONE): there the
    sum of all that comes before is smallest."""
    before = np.cumsum(values[:, :-1], axis=1)
    return np.where(before.min(axis=1) < 0, np.argmin(before, axis=1) + 1, 0).astype(np.int64)
