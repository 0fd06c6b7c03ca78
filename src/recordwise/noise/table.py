"""The table a law is drawn from: integer weights of blocks under an envelope, and lines that settle most decisions.

All that exactness rests on is certified here with Arb; T-EXACT in docs/theory/noise.md states what and proves it.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from flint import arb

from recordwise.errors import ParameterError
from recordwise.exact import arb_float_lower, ball, working_precision
from recordwise.functions import Function
from recordwise.noise.alias import SLOTS, TOTAL, alias_slots
from recordwise.noise.bits import WordArray
from recordwise.noise.design import Block, cut, precision_for
from recordwise.noise.lines import ONE, OPEN, REFUSED, UNIFORM_BITS, Lines, ceiling, lines_for
from recordwise.noise.sums import Weights

IntArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Which part of a law a table holds: magnitudes from ``first`` on, of either sign or without one."""

    exponent: Function
    inflection: int
    """The weights are a concave function of the magnitude up to here and a convex one beyond."""
    first: int = 0
    signed: bool = True

    def __post_init__(self) -> None:
        if self.signed and self.first != 0:
            raise ValueError("a table with both signs starts at 0")

    def copies(self, start: int) -> int:
        """How many signed values a block of offsets from ``start`` on stands for at each magnitude; 0 has no sign."""
        return 2 if self.signed and start > 0 else 1

    def relative(self, magnitude: int) -> arb:
        """exp(f(first) - f(magnitude)), at the precision in force."""
        return Weights(self.exponent, reference=self.first).at(magnitude)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """Rows are the blocks, then the tail, then refusal; a row is picked with probability ``weights[row] / 2**32``."""

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
        """The first magnitude that no block holds."""
        return self.side.first + self.blocks[-1].last + 1

    def acceptance(self, row: int, offset: int) -> arb:
        """The probability with which an attempt at this offset is kept: exp(-f) over the envelope, at the precision in force."""
        block = self.blocks[row]
        share = self.scale * (self.side.copies(block.start) << block.shift) / self.weights[row]
        return ball(share) * self.side.relative(self.side.first + offset)


@lru_cache(maxsize=256)
def table_for(side: Side) -> Table:
    """The table of one part of a law."""
    with working_precision(precision_for(side.exponent, side.first)):
        return certified(side, cut(side.exponent, first=side.first, inflection=side.inflection))


def certified(side: Side, blocks: list[Block]) -> Table:
    """The table on a given cut; exact on any cut, fast on a good one. Works at the precision in force."""
    relative = Weights(side.exponent, reference=side.first)
    scale, weights = _envelope(side, blocks, relative)
    lines = [_lines(side, block, relative, scale, weight) for block, weight in zip(blocks, weights)]
    return assemble(side, blocks, scale, weights, lines)


def _envelope(side: Side, blocks: list[Block], relative: Weights) -> tuple[Fraction, list[int]]:
    """Integer weights of all rows, each not below the exact mass of its row times the scale, together 2**32."""
    masses = [relative.at(side.first + b.start) * (side.copies(b.start) << b.shift) for b in blocks]
    end = blocks[-1].last + 1
    masses.append(side.copies(end) * relative.beyond_upper(side.first + end))
    total = sum(masses, arb(0))
    if not total.is_finite():
        raise ParameterError(parameter="law", problem="has a tail that is not certified finite")
    scale = Fraction(arb_float_lower((TOTAL - len(masses) - 1) / total))
    weights = [ceiling(ball(scale) * mass) for mass in masses]
    return scale, [*weights, TOTAL - sum(weights)]


def _lines(side: Side, block: Block, relative: Weights, scale: Fraction, weight: int) -> Lines:
    height = ball(scale * (side.copies(block.start) << block.shift) * ONE / weight)
    convex = side.first + block.start > side.inflection
    return lines_for(lambda offset: height * relative.at(side.first + offset), block, convex=convex)


def assemble(side: Side, blocks: list[Block], scale: Fraction, weights: list[int], lines: list[Lines]) -> Table:
    """Lay the rows out for the kernels: all arrays have one entry per slot, unused rows refuse and are never picked."""
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
