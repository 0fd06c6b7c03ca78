"""Where random bits come from: the one file that touches the operating system's entropy or ``numpy.random``."""

import os
from typing import Protocol, TypeAlias

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from recordwise.errors import ParameterError

WordArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.uint64]]
KEY_BYTES = 32
REQUEST_BYTES = 1 << 30
"""The most one key is used for: far below where a permutation is told from a function (docs/theory/noise.md, A-RNG)."""
_BLANK = bytes(1 << 19)


class BitSource(Protocol):
    """Independent uniform bits. Only those of ``Secure`` are taken for secret (``is_private``)."""

    def fill(self, words: WordArray) -> None:
        """Overwrite a contiguous array with uniform 64-bit words that were never handed out before."""


class Secure:
    """AES-256 in counter mode, keyed afresh from the operating system at every request (A-RNG).

    It remembers nothing between requests, so a fork, a process pool or a restored snapshot cannot repeat a word.
    """

    __slots__ = ()

    def fill(self, words: WordArray) -> None:
        target = words.view(np.uint8).data
        for begin in range(0, len(target), REQUEST_BYTES):
            _keystream(target[begin : begin + REQUEST_BYTES])


def is_private(source: BitSource) -> bool:
    """Whether what is drawn from it may be called private. No source can say so of itself, nor can a subclass of ours."""
    return type(source) is Secure


def _keystream(target: memoryview) -> None:
    cipher = Cipher(algorithms.AES(os.urandom(KEY_BYTES)), modes.CTR(bytes(16))).encryptor()
    for begin in range(0, len(target), len(_BLANK)):
        part = target[begin : begin + len(_BLANK)]
        cipher.update_into(memoryview(_BLANK)[: len(part)], part)


class Seeded:
    """A repeatable source for tests and simulation. Whoever knows the seed can take the noise off again."""

    __slots__ = ("_stream",)

    def __init__(self, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise ParameterError(parameter="seed", problem="must be an integer that is not negative")
        self._stream = np.random.Philox(seed)

    def fill(self, words: WordArray) -> None:
        words[...] = self._stream.random_raw(words.size)
