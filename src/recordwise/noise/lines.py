"""What settles an attempt inside a block in integers: lines below and above the acceptance probability, times 2**32."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from flint import arb

from recordwise.noise.design import Block

UNIFORM_BITS = 32
ONE = 1 << UNIFORM_BITS
Acceptance: TypeAlias = Callable[[int], arb]
"""2**32 times the acceptance probability at an offset: not increasing, and convex or concave over the block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """At a share s of the block the acceptance lies between ``lower - lower_fall * s`` and ``upper - upper_fall * s``."""

    quick: int
    """Not above the acceptance anywhere in the block."""
    lower: int
    lower_fall: int
    upper: int
    upper_fall: int


OPEN = Lines(quick=0, lower=0, lower_fall=0, upper=ONE, upper_fall=0)
"""Settles nothing: every attempt goes to arbitrary precision."""
REFUSED = Lines(quick=0, lower=0, lower_fall=0, upper=0, upper_fall=0)
"""Refuses every attempt."""


def lines_for(acceptance: Acceptance, block: Block, *, convex: bool) -> Lines:
    """The chord of the block and the line through its two middle points; convexity puts one above, one below (T-LINES)."""
    start, end, size = acceptance(block.start), acceptance(block.last), 1 << block.shift
    quick = min(floor(end), ONE - 1)
    if size == 1:
        return Lines(quick=quick, lower=quick, lower_fall=0, upper=ceiling(start), upper_fall=0)
    half = size // 2 - 1
    middle, after = acceptance(block.start + half), acceptance(block.start + half + 1)
    chord = (start, (start - end) * size / (size - 1))
    secant = (middle + (middle - after) * half, (middle - after) * size)
    below, above = (secant, chord) if convex else (chord, secant)
    lower, lower_fall = floor(below[0]) - 2, ceiling(below[1])
    if lower_fall >= ONE:
        lower, lower_fall = quick, 0
    upper, upper_fall = ceiling(above[0]), max(0, min(floor(above[1]), ONE - 1))
    return Lines(quick=quick, lower=lower, lower_fall=lower_fall, upper=upper, upper_fall=upper_fall)


def floor(value: arb) -> int:
    """An integer certified not above the value, the largest if the ball is narrow."""
    return int(value.lower().floor().unique_fmpz())


def ceiling(value: arb) -> int:
    """An integer certified not below the value, the smallest if the ball is narrow."""
    return int(value.upper().ceil().unique_fmpz())
