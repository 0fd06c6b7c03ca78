"""Random bits and exact comparisons with uniform reals.

The only module that uses the operating system's entropy or ``numpy.random``. A uniform real, whose bits are
drawn as needed, is compared exactly with a real number known by enclosures.
"""

import os
from collections.abc import Callable
from typing import Protocol, TypeAlias

import numpy as np
from flint import arb, fmpz

from recordwise.errors import ParameterError, own_argument_errors, own_errors_of
from recordwise.exact.numbers import working_precision

WordArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.uint64]]
KEY_BYTES = 32
REQUEST_BYTES = 1 << 30
"""The most output taken from one key, far below where a permutation can be told from a function (docs/theory/noise.md, A-RNG)."""
_BLANK = bytes(1 << 19)


class BitSource(Protocol):
    """Independent uniform bits. Only those of ``Secure`` count as secret (``is_private``)."""

    def fill(self, words: WordArray) -> None:
        """Fill a contiguous array with uniform words never returned before.

        64-bit words.

        Args:
            words: The array to fill, of 64-bit words.
        """


class Secure:
    """AES-256 in counter mode with fresh keys (A-RNG).

    A new key from the operating system for every request. It keeps no state between requests, so a fork, a
    process pool or a restored snapshot cannot repeat a word.
    """

    __slots__ = ()

    def fill(self, words: WordArray) -> None:
        """Overwrite an array with fresh words, keyed from the operating system.

        Args:
            words: The array to fill, of 64-bit words.
        """
        target = words.view(np.uint8).data
        for begin in range(0, len(target), REQUEST_BYTES):
            _keystream(target[begin : begin + REQUEST_BYTES])


@own_argument_errors
def is_private(source: BitSource) -> bool:
    """Return whether draws from the source may be called private.

    No source can declare this of itself, nor can a subclass of ours.

    Args:
        source: A source of random bits.

    Returns:
        True for ``Secure`` itself alone.
    """
    return type(source) is Secure


def bit_source(rng: BitSource | None) -> BitSource:
    """Return the source, or the secure one for None.

    Anything that is not a source of bits is refused before any spending.
    """
    if rng is not None and not callable(getattr(rng, "fill", None)):
        raise ParameterError(
            parameter="rng",
            problem=f"is a {type(rng).__name__}, not a source of bits",
            advice="Use noise.Seeded(seed).",
        )
    return Secure() if rng is None else rng


def _keystream(target: memoryview) -> None:
    # Who only reads a release draws nothing.
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    cipher = Cipher(algorithms.AES(os.urandom(KEY_BYTES)), modes.CTR(bytes(16))).encryptor()
    for begin in range(0, len(target), len(_BLANK)):
        part = target[begin : begin + len(_BLANK)]
        cipher.update_into(memoryview(_BLANK)[: len(part)], part)


@own_errors_of
class Seeded:
    """A repeatable source for tests and simulation.

    Anyone who knows the seed can remove the noise.
    """

    __slots__ = ("_stream",)

    def __init__(self, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise ParameterError(parameter="seed", problem="must be a nonnegative integer")
        self._stream = np.random.Philox(seed)

    def fill(self, words: WordArray) -> None:
        """Overwrite an array with the next words of the seeded stream.

        Args:
            words: The array to fill, of 64-bit words.
        """
        words[...] = self._stream.random_raw(words.size)


Enclosure: TypeAlias = Callable[[], arb]
"""Evaluates a real number at the precision in force; the ball contains it and shrinks to it as the precision grows."""
WORD_BITS = 64
FIRST_PRECISION = 64


class LazyUniform:
    """A uniform real in [0, 1) with bits drawn when needed."""

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
        self._bits = self._bits << WORD_BITS | random_word(self._source)
        self._count += WORD_BITS

    def below(self, enclosure: Enclosure) -> bool:
        """Return whether the uniform is below a real number (T-LAZY).

        True with exactly that probability; see docs/theory/noise.md.
        """
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


def random_words(source: BitSource, count: int) -> WordArray:
    """The given number of fresh words."""
    fresh = np.empty(count, dtype=np.uint64)
    source.fill(fresh)
    return fresh


def random_word(source: BitSource) -> int:
    return int(random_words(source, 1)[0])


def uniform_below(source: BitSource, power: int) -> int:
    """A uniform integer in [0, 2**power)."""
    count = -(-power // WORD_BITS)
    joined = int.from_bytes(random_words(source, count).tobytes(), "little") if count else 0
    return joined >> (WORD_BITS * count - power)
