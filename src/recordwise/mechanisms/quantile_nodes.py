"""Counts of a binary tree made consistent by least squares in two passes, the remaining variance (T-QUANTILE), and exact bounds
on sums of noisy nodes from the characteristic function of the lattice noise (T-REACH).
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from recordwise.exact.arithmetic import FloatArray

Levels = Sequence[np.ndarray[tuple[int, ...], np.dtype[np.int64]]]
"""Levels 1..L of the trees of many cells: level l has shape (cells, 2**l)."""


def exact_levels(leaves: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Levels:
    """The counts of every node except the root, from those of the leaves."""
    levels = [leaves]
    while levels[0].shape[1] > 2:
        finer = levels[0]
        levels.insert(0, finer[:, 0::2] + finer[:, 1::2])
    return levels


def consistent_leaves(noisy: Levels) -> FloatArray:
    """The least-squares leaves, given that all nodes were counted with the same variance."""
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
    """The first position at which the nondecreasing curve nearest to each row is nonnegative, or the last position (T-ISOTONE):
    the sum of everything before it is smallest there."""
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
    """c for every point i, with P(error of (records up to i) - p (all records) > c) <= (1 - confidence)/2."""
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
    """Weights of nodes in (records up to i) - p (all records), and how many nodes have them, for every i; large nodes first.

    A node's weight is its number of leaves times the value of G^-1 c there (T-QUANTILE), which wavelets inside it do not change.
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
        # Where the boundary runs between the two halves, or beside both, neither is divided further.
        ends: FloatArray = going * ((inside == half) | (inside == 0))
        yield half * value, going
        yield half * beside, going
        for leaves in (half >> j for j in range(1, half.bit_length())):
            yield leaves * beside, going * (half / leaves)
            yield leaves * value, ends * (half / leaves)
        going = going - ends


def _tails(bits: int, p: float, sigma: float, deviation: FloatArray, places: FloatArray) -> FloatArray:
    """P(smoothed error > place * deviation), a row for each point."""
    waves = np.sin(2 * np.pi / PERIOD * np.outer(ORDERS, places)) / (np.pi * ORDERS[:, None])
    weights = list(node_weights(bits, p))
    found = np.empty((len(deviation), len(places)))
    for start in range(0, len(deviation), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        here = [(weight[part], number[part]) for weight, number in weights]
        found[part] = 0.5 - places / PERIOD - _transformed(here, sigma, deviation[part]) @ waves
    return found


def _transformed(weights: list[tuple[FloatArray, FloatArray]], sigma: float, deviation: FloatArray) -> FloatArray:
    """The characteristic function of the smoothed error at the frequencies of the series; values near 0 are dropped early."""
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
    """ln E cos(uZ) of a discrete Gaussian Z with sigma of 1 or more: a sum of bells around the multiples of a turn."""
    off = np.abs(u - 2 * np.pi * np.rint(u / (2 * np.pi)))
    total = -((sigma * off) ** 2) / 2
    # Only near a half turn does a second bell matter.
    rate = 2 * np.pi * sigma**2
    near = off > np.pi + NOTHING / rate
    total[near] += np.log1p(np.exp(-rate * (np.pi - off[near])) + np.exp(-rate * (np.pi + off[near])))
    return np.asarray(total - np.log1p(2 * np.exp(-rate * np.pi)))
