"""The empty cells of a public domain that pass a selection, drawn without visiting the others (T-EMPTY)."""

from dataclasses import dataclass

import numpy as np

from recordwise.errors import ParameterError
from recordwise.noise import BitSource, binomial_exact
from recordwise.noise.lazy import words
from recordwise.selection.law import SelectionLaw

IntArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
LARGEST_DOMAIN = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyCells:
    """Empty cells that passed, by their increasing positions in the domain, and their noisy counts."""

    positions: IntArray
    noisy: IntArray


def passing_empty_cells(size: int, occupied: IntArray, law: SelectionLaw, rng: BitSource) -> EmptyCells:
    """What noise on every empty cell of a domain would have kept: how many, where, and with which values.

    ``occupied`` lists the positions of the cells that hold records, increasing.
    """
    empty = size - len(occupied)
    passing = binomial_exact(empty, law.noise, law.threshold, rng)
    ranks = distinct_below(empty, passing, rng)
    # The r-th empty cell stands behind r empty ones and behind every occupied one with at most r empty ones before it.
    before = occupied - np.arange(len(occupied))
    positions = ranks + np.searchsorted(before, ranks, side="right")
    return EmptyCells(positions=positions, noisy=law.noise.sample_above(law.threshold, passing, rng))


def distinct_below(bound: int, count: int, rng: BitSource) -> IntArray:
    """``count`` different integers from 0 to ``bound`` - 1, increasing; every set is equally likely (T-EMPTY)."""
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
    """At most ``size`` independent uniform integers below ``bound``: words cut to the bits needed, too large ones dropped."""
    bits = max((bound - 1).bit_length(), 1)
    drawn = (words(rng, size) >> np.uint64(64 - bits)).astype(np.int64)
    return drawn[drawn < bound]
