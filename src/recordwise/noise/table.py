"""The certified table from which a law is drawn.

Integer weights of blocks under an envelope, an alias table that picks a block with exactly its probability,
and lines below and above the acceptance probability that settle most attempts in integers.

Everything that exactness depends on is certified here with Arb (T-EXACT, docs/theory/noise.md). The
division into blocks is not: a poor one costs speed, never exactness.
"""

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from flint import arb, fmpq

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import BallArithmetic, BallColumns
from recordwise.exact.functions import Function
from recordwise.exact.numbers import arb_float_lower, ball, bits_in_force, working_precision
from recordwise.noise.probabilities import Weights
from recordwise.noise.randomness import WordArray

SLOT_BITS = 10
COIN_BITS = 22
SLOTS = 1 << SLOT_BITS
CAPACITY = 1 << COIN_BITS
TOTAL = SLOTS * CAPACITY


def alias_slots(weights: list[int]) -> WordArray:
    """Return one alias word per slot, ``threshold << 10 | other`` (T-ALIAS).

    The slot's own row applies below the threshold, the other row from it on. A slot that contains only its own
    row names itself as the other, so that no threshold has to be the full 2**22.
    """
    if len(weights) != SLOTS or sum(weights) != TOTAL or min(weights) < 0:
        raise ValueError("alias weights must be 1024 integers that add up to 2**32")
    left = list(weights)
    small = [row for row in range(SLOTS) if left[row] < CAPACITY]
    large = [row for row in range(SLOTS) if left[row] > CAPACITY]
    threshold, other = [0] * SLOTS, list(range(SLOTS))
    while small:
        row, donor = small.pop(), large[-1]
        threshold[row], other[row] = left[row], donor
        left[donor] -= CAPACITY - left[row]
        if left[donor] <= CAPACITY:
            large.pop()
            if left[donor] < CAPACITY:
                small.append(donor)
    return np.array([t << SLOT_BITS | o for t, o in zip(threshold, other)], dtype=np.uint32).astype(np.uint64)


MOST_BLOCKS = 1000
LONGEST = 1 << 61
LONGEST_SHIFT = 60
"""No block, and no offset inside a table, reaches 2**62."""
COARSEST = 0.5
USUAL = (0.004, 0.005)
GRID_POINTS = 400
TAIL_SHARE = 2.0**-33
"""The largest mass beyond the last block: less than one unit of the table's weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block of 2**shift offsets from a table's first magnitude."""

    start: int
    shift: int

    @property
    def last(self) -> int:
        return self.start + (1 << self.shift) - 1

    @property
    def middle(self) -> int:
        """The last offset of the first half."""
        return self.last - (1 << self.shift >> 1)


class _Profile:
    """The growth of the exponent on a coarse grid of offsets."""

    def __init__(self, offsets: list[int], growth: list[float]) -> None:
        self.end = offsets[-1]
        self._offsets, self._growth = offsets, growth
        self._widths = [right - left for left, right in pairwise(offsets)]
        self._rises = [right - left for left, right in pairwise(growth)]
        self._most = growth[-2] + self._rises[-1]

    def at(self, offset: int) -> float:
        """By linear interpolation, constant beyond the grid."""
        if offset >= self.end:
            return self._most
        left = bisect_right(self._offsets, offset) - 1
        return self._growth[left] + (offset - self._offsets[left]) / self._widths[left] * self._rises[left]


def cut_blocks(exponent: Function, *, first: int, inflection: int) -> list[Block]:
    """Return blocks with little growth, each on one side of ``inflection``."""
    end = _end(exponent, first)
    if end <= MOST_BLOCKS:
        return [Block(start=k, shift=0) for k in range(end)]
    profile = _profile(exponent, first, end)

    @cache
    def blocks(tolerance: float) -> list[tuple[int, int]]:
        return _greedy(profile, tolerance, inflection - first)

    # Most laws need a growth between these two, which settles half the steps of the search before it takes them.
    fits = min((each for each in USUAL if len(blocks(each)) <= MOST_BLOCKS), default=1.0)
    short = max((each for each in USUAL if len(blocks(each)) > MOST_BLOCKS), default=0.0)
    low, high = 1e-6, 1.0
    while high > 1.02 * low:
        middle = (low * high) ** 0.5
        enough = middle >= fits or (middle > short and len(blocks(middle)) <= MOST_BLOCKS)
        low, high = (low, middle) if enough else (middle, high)
    return [Block(start=start, shift=shift) for start, shift in blocks(high)]


def _end(exponent: Function, first: int) -> int:
    """An offset, approximately the smallest, beyond which little enough mass lies."""
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
    offsets, columns = sorted({0, *(int(t) for t in np.geomspace(1, end, GRID_POINTS))}), BallColumns()
    values = exponent.value(columns, columns.column(first + t for t in offsets))
    return _Profile(offsets, [float(rise.mid()) for rise in values - values[0]])


def _greedy(profile: _Profile, tolerance: float, inflection: int) -> list[tuple[int, int]]:
    """Return start and shift of blocks from offset 0 on.

    The first is offset 0 alone, because zero has no sign. The growth allowed in a block rises as exp(f/3) where
    weights get rare. For a fixed number of blocks this minimizes the number of open decisions, which grows with
    the square of the growth.
    """
    blocks, position, shift, growth_at = [(0, 0)], 1, 0, profile.at
    while position < profile.end and len(blocks) <= MOST_BLOCKS:
        here = growth_at(position)
        growth = tolerance * math.exp(here / 3)
        allowed = here + (growth if growth < COARSEST else COARSEST)
        if shift < LONGEST_SHIFT:
            shift += 1
        if position <= inflection:
            shift = min(shift, (inflection - position + 1).bit_length() - 1)
        while shift > 0 and growth_at(position + (1 << shift) - 1) > allowed:
            shift -= 1
        blocks.append((position, shift))
        position += 1 << shift
    return blocks


def precision_for(exponent: Function, first: int) -> int:
    """Return enough bits for differences of the exponent near ``first``."""
    with working_precision(64):
        size = exponent.value(BallArithmetic(), arb(first)).abs_upper()
        return 160 + max(0, int(arb(size).max(arb(1)).log_base(2).upper().ceil().unique_fmpz()))


UNIFORM_BITS = 32
ONE = 1 << UNIFORM_BITS
Acceptance: TypeAlias = Callable[[int], arb]
"""2**32 times the acceptance probability at an offset: nonincreasing, and convex or concave over the block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Lines that enclose the acceptance over a block.

    At a fraction s of the block it lies between ``lower - lower_fall * s`` and ``upper - upper_fall * s``.
    """

    quick: int
    """Not above the acceptance anywhere in the block."""
    lower: int
    lower_fall: int
    upper: int
    upper_fall: int


OPEN = Lines(quick=0, lower=0, lower_fall=0, upper=ONE, upper_fall=0)
"""Settles nothing: every attempt goes to arbitrary precision."""
REFUSED = Lines(quick=0, lower=0, lower_fall=0, upper=0, upper_fall=0)
"""Rejects every attempt."""


def lines_for(acceptance: Acceptance, block: Block, *, convex: bool) -> Lines:
    """Return lines below and above the acceptance (T-LINES).

    The chord of the block and the line through its two middle points; by convexity one is above, one below.
    """
    start, end, size = acceptance(block.start), acceptance(block.last), 1 << block.shift
    quick = min(floor(end), ONE - 1)
    if size == 1:
        return Lines(quick=quick, lower=quick, lower_fall=0, upper=ceiling(start), upper_fall=0)
    half = size // 2 - 1
    middle, after = acceptance(block.middle), acceptance(block.middle + 1)
    chord = (start, (start - end) * size / (size - 1))
    secant = (middle + (middle - after) * half, (middle - after) * size)
    below, above = (secant, chord) if convex else (chord, secant)
    lower, lower_fall = floor(below[0]) - 2, ceiling(below[1])
    if lower_fall >= ONE:
        lower, lower_fall = quick, 0
    upper, upper_fall = ceiling(above[0]), max(0, min(floor(above[1]), ONE - 1))
    return Lines(quick=quick, lower=lower, lower_fall=lower_fall, upper=upper, upper_fall=upper_fall)


def floor(value: arb) -> int:
    """Return an integer certified not above the value."""
    below = value.floor().unique_fmpz()
    return int(value.lower().floor().unique_fmpz() if below is None else below)


def ceiling(value: arb) -> int:
    """Return an integer certified not below the value."""
    above = value.ceil().unique_fmpz()
    return int(value.upper().ceil().unique_fmpz() if above is None else above)


IntArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The part of a law that a table covers."""

    exponent: Function
    inflection: int
    """The weights are a concave function of the magnitude up to here and a convex one beyond."""
    first: int = 0
    signed: bool = True

    def __post_init__(self) -> None:
        if self.signed and self.first != 0:
            raise ValueError("a table with both signs starts at 0")

    def copies(self, start: int) -> int:
        """Return how many signed values each magnitude represents."""
        return 2 if self.signed and start > 0 else 1

    def relative(self, magnitude: int) -> arb:
        """exp(f(first) - f(magnitude)), at the precision in force."""
        return Weights(self.exponent, reference=self.first).at(magnitude)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """The blocks, the tail and rejection as rows.

    A row is picked with probability ``weights[row] / 2**32``.
    """

    side: Side
    blocks: tuple[Block, ...]
    scale: Fraction
    """A relative weight of one in units of 2**-32."""
    weights: tuple[int, ...]
    slots: WordArray
    starts: IntArray
    quick: WordArray
    """Per row ``accept << 32 | shift``: a uniform below ``accept`` is accepted anywhere in the block."""
    lines: IntArray
    """Per row lower, its fall, upper, its fall."""

    @property
    def tail_row(self) -> int:
        return len(self.blocks)

    @property
    def tail_start(self) -> int:
        """The first magnitude that is in no block."""
        return self.side.first + self.blocks[-1].last + 1

    def acceptance(self, row: int, offset: int) -> arb:
        """Return the probability that an attempt at this offset is accepted.

        exp(-f) over the envelope, at the precision in force.
        """
        share, relative = _envelope_of(self, row, bits_in_force())
        return share * relative.at(self.side.first + offset)


@lru_cache(maxsize=1 << 14)
def _envelope_of(table: Table, row: int, bits: int) -> tuple[arb, Weights]:
    """Return a magnitude's weight over its row's envelope, and all weights."""
    block = table.blocks[row]
    share = table.scale * (table.side.copies(block.start) << block.shift) / table.weights[row]
    return ball(share), Weights(table.side.exponent, reference=table.side.first)


@lru_cache(maxsize=256)
def table_for(side: Side) -> Table:
    """The table of one part of a law."""
    with working_precision(precision_for(side.exponent, side.first)):
        return certify_table(side, cut_blocks(side.exponent, first=side.first, inflection=side.inflection))


def certify_table(side: Side, blocks: list[Block]) -> Table:
    """Return an exact table for any blocks, fast for good ones."""
    relative = Weights(side.exponent, reference=side.first)
    # The points of a small block coincide, and the first is that of its envelope.
    points = {
        side.first + offset for block in blocks for offset in (block.start, block.middle, block.middle + 1, block.last)
    }
    weight_at = dict(zip(points, relative.at_each(points))).__getitem__
    scale, weights = _envelope(side, blocks, relative, weight_at)
    lines = [_lines(side, block, weight_at, scale, weight) for block, weight in zip(blocks, weights)]
    return assemble(side, blocks, scale, weights, lines)


def _envelope(side: Side, blocks: list[Block], relative: Weights, weight_at: Acceptance) -> tuple[Fraction, list[int]]:
    """Return integer weights of all rows, together 2**32.

    Each is not below the exact mass of its row times the scale.
    """
    masses = [weight_at(side.first + b.start) * (side.copies(b.start) << b.shift) for b in blocks]
    end = blocks[-1].last + 1
    masses.append(side.copies(end) * relative.beyond_upper(side.first + end))
    total = sum(masses, arb(0))
    if not total.is_finite():
        raise ParameterError(parameter="law", problem="has a tail that is not certified finite")
    scale = Fraction(arb_float_lower((TOTAL - len(masses) - 1) / total))
    unit = ball(scale)
    weights = [ceiling(unit * mass) for mass in masses]
    return scale, [*weights, TOTAL - sum(weights)]


def _lines(side: Side, block: Block, weight_at: Acceptance, scale: Fraction, weight: int) -> Lines:
    height = arb(fmpq(scale.numerator * (side.copies(block.start) << block.shift) * ONE, scale.denominator * weight))
    convex = side.first + block.start > side.inflection
    return lines_for(lambda offset: height * weight_at(side.first + offset), block, convex=convex)


def assemble(side: Side, blocks: list[Block], scale: Fraction, weights: list[int], lines: list[Lines]) -> Table:
    """Arrange the rows for the kernels, one entry per slot.

    Unused rows reject and are never picked.
    """
    padding = SLOTS - len(blocks)
    rows = [*lines, OPEN] + [REFUSED] * (padding - 1)
    shifts = [block.shift for block in blocks] + [0] * padding
    return Table(
        side=side,
        blocks=tuple(blocks),
        scale=scale,
        weights=tuple(weights),
        slots=alias_slots(weights + [0] * (SLOTS - len(weights))),
        starts=np.array([block.start for block in blocks] + [0] * padding, dtype=np.int64),
        quick=np.array([row.quick << UNIFORM_BITS | shift for row, shift in zip(rows, shifts)], dtype=np.uint64),
        lines=np.array([(row.lower, row.lower_fall, row.upper, row.upper_fall) for row in rows], dtype=np.int64),
    )
