"""Decisions between a uniform real number, of which any number of bits can be asked for, and a real known by enclosures."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from flint import arb, fmpz

from recordwise.exact import working_precision
from recordwise.noise.bits import BitSource, WordArray

Enclosure: TypeAlias = Callable[[], arb]
"""Evaluates a real number at the precision in force; the ball surely holds it and shrinks to it as the precision grows."""
WORD_BITS = 64
FIRST_PRECISION = 64


class LazyUniform:
    """A uniform real in [0, 1) of which the leading bits are known and the others are drawn when they are needed."""

    __slots__ = ("_bits", "_count", "_source")

    def __init__(self, source: BitSource, *, bits: int = 0, count: int = 0) -> None:
        self._source, self._bits, self._count = source, bits, count

    @property
    def low(self) -> arb:
        return dyadic(self._bits, self._count)

    @property
    def high(self) -> arb:
        return dyadic(self._bits + 1, self._count)

    def extend(self) -> None:
        self._bits = self._bits << WORD_BITS | one_word(self._source)
        self._count += WORD_BITS

    def below(self, enclosure: Enclosure) -> bool:
        """Whether the uniform lies below the real: true with exactly that probability (T-LAZY, docs/theory/noise.md)."""
        precision = max(FIRST_PRECISION, self._count + WORD_BITS)
        while True:
            with working_precision(precision):
                bound = enclosure()
                if self.high <= bound:
                    return True
                if self.low >= bound:
                    return False
            self.extend()
            precision *= 2


def dyadic(numerator: int, exponent: int) -> arb:
    """``numerator / 2**exponent`` without rounding, whatever the precision."""
    return arb((fmpz(numerator), fmpz(-exponent)))


def words(source: BitSource, count: int) -> WordArray:
    """That many fresh words."""
    fresh = np.empty(count, dtype=np.uint64)
    source.fill(fresh)
    return fresh


def one_word(source: BitSource) -> int:
    return int(words(source, 1)[0])


def uniform_below(source: BitSource, power: int) -> int:
    """A uniform integer in [0, 2**power)."""
    count = -(-power // WORD_BITS)
    joined = int.from_bytes(words(source, count).tobytes(), "little") if count else 0
    return joined >> (WORD_BITS * count - power)
