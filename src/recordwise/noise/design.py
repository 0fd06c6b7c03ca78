"""Where to cut a law into blocks. Nothing here is certified: a poor cut costs speed, never exactness (T-EXACT)."""

import math
from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
from flint import arb

from recordwise.arithmetic import BallArithmetic
from recordwise.exact import working_precision
from recordwise.functions import Function
from recordwise.noise.sums import Weights

MOST_BLOCKS = 1000
LONGEST = 1 << 61
LONGEST_SHIFT = 60
"""No block, and no offset inside a table, reaches 2**62."""
COARSEST = 0.5
GRID_POINTS = 400
TAIL_SHARE = 2.0**-33
"""What may lie beyond the last block: less than one unit of the table's weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Offsets ``start .. start + 2**shift - 1`` from the first magnitude of a table."""

    start: int
    shift: int

    @property
    def last(self) -> int:
        return self.start + (1 << self.shift) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Profile:
    """The growth of the exponent on a coarse grid of offsets: what the cut is planned on."""

    offsets: list[int]
    growth: list[float]

    def at(self, offset: int) -> float:
        """By linear interpolation, and constant beyond the grid."""
        place = min(bisect_right(self.offsets, offset), len(self.offsets) - 1)
        left, right = self.offsets[place - 1], self.offsets[place]
        share = min(1.0, (offset - left) / (right - left))
        return self.growth[place - 1] + share * (self.growth[place] - self.growth[place - 1])


def cut(exponent: Function, *, first: int, inflection: int) -> list[Block]:
    """Blocks of offsets from ``first``, each on one side of ``inflection``, over which the exponent grows little."""
    end = _end(exponent, first)
    if end <= MOST_BLOCKS:
        return [Block(start=k, shift=0) for k in range(end)]
    profile = _profile(exponent, first, end)
    low, high = 1e-6, 1.0
    while high > 1.02 * low:
        middle = (low * high) ** 0.5
        low, high = (
            (low, middle) if len(_greedy(profile, middle, inflection - first)) <= MOST_BLOCKS else (middle, high)
        )
    return _greedy(profile, high, inflection - first)


def _end(exponent: Function, first: int) -> int:
    """An offset beyond which little enough lies, about the smallest."""
    weights = Weights(exponent, reference=first)
    low, high, mass = 0, 1, 1.0
    while high < LONGEST and not weights.beyond_upper(first + high) <= TAIL_SHARE * mass:
        low, high = high, 2 * high
        mass = max(mass, float((weights.at(first + high) * high).mid()))
    while high - low > 1 and high > 1.05 * low:
        middle = (low + high) // 2
        if weights.beyond_upper(first + middle) <= TAIL_SHARE * mass:
            high = middle
        else:
            low = middle
    return high


def _profile(exponent: Function, first: int, end: int) -> _Profile:
    offsets = sorted({0, *(int(t) for t in np.geomspace(1, end, GRID_POINTS))})
    base = exponent.value(BallArithmetic(), arb(first))
    growth = [float((exponent.value(BallArithmetic(), arb(first + t)) - base).mid()) for t in offsets]
    return _Profile(offsets=offsets, growth=growth)


def _greedy(profile: _Profile, tolerance: float, inflection: int) -> list[Block]:
    """Blocks from offset 0 on; the first is offset 0 alone, because zero has no sign.

    The growth allowed in a block rises as exp(f/3) where weights get rare: that spends the fewest open decisions on a given
    number of blocks, because those go with the square of the growth.
    """
    blocks, position, end, shift = [Block(start=0, shift=0)], 1, profile.offsets[-1], 0
    while position < end and len(blocks) <= MOST_BLOCKS:
        here = profile.at(position)
        allowed = here + min(COARSEST, tolerance * math.exp(here / 3))
        shift = min(shift + 1, LONGEST_SHIFT)
        if position <= inflection:
            shift = min(shift, (inflection - position + 1).bit_length() - 1)
        while shift > 0 and profile.at(position + (1 << shift) - 1) > allowed:
            shift -= 1
        blocks.append(Block(start=position, shift=shift))
        position = blocks[-1].last + 1
    return blocks


def precision_for(exponent: Function, first: int) -> int:
    """Enough bits that differences of the exponent near ``first`` come out well below a unit of the table."""
    with working_precision(64):
        size = exponent.value(BallArithmetic(), arb(first)).abs_upper()
        return 160 + max(0, int(arb(size).max(arb(1)).log_base(2).upper().ceil().unique_fmpz()))
