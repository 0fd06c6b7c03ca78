"""Whether many 64-bit numbers are all different, compiled. Importing this file imports numba; the machine code is cached on disk.

Numbers are mixed by a function that can be undone, so that they are equal exactly if their mixtures are, and dealt out by the
leading bits, so that equal ones meet in the same part; a part and a small open table fit the cache of the processor.
"""

import numpy as np
from numba import njit, uint64

Numbers = np.ndarray[tuple[int], np.dtype[np.uint64]]
FIRST, SECOND = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
PART = 8192
"""Numbers to a part, about."""


@njit(cache=True, nogil=True)
def mix(number):  # type: ignore[no-untyped-def]
    """Two products with odd constants between shifts: each step can be undone, and every bit of the number reaches every bit."""
    number = (number ^ (number >> uint64(33))) * FIRST
    number = (number ^ (number >> uint64(33))) * SECOND
    return number ^ (number >> uint64(33))


@njit(cache=True, nogil=True)
def _deal(numbers, shift, ends, dealt):  # type: ignore[no-untyped-def]
    """Fill ``dealt`` with mixtures part by part; ``ends[p]`` becomes where part p ends."""
    for i in range(numbers.size):
        ends[mix(numbers[i]) >> shift] += 1
    start = 0
    for p in range(ends.size):
        count = ends[p]
        ends[p] = start
        start += count
    for i in range(numbers.size):
        mixed = mix(numbers[i])
        p = mixed >> shift
        dealt[ends[p]] = mixed
        ends[p] += 1


@njit(cache=True, nogil=True)
def _different(part, table):  # type: ignore[no-untyped-def]
    """Whether the numbers of a part differ. An empty place of the table holds 0, so 0 itself is counted."""
    size = 2
    while size < 2 * part.size:
        size *= 2
    table[:size] = uint64(0)
    zeros = 0
    for i in range(part.size):
        number = part[i]
        if number == uint64(0):
            zeros += 1
            continue
        place = number & uint64(size - 1)
        while table[place] != uint64(0):
            if table[place] == number:
                return False
            place = (place + uint64(1)) & uint64(size - 1)
        table[place] = number
    return zeros < 2


@njit(cache=True, nogil=True)
def _parts_differ(dealt, ends, table):  # type: ignore[no-untyped-def]
    start = 0
    for p in range(ends.size):
        if not _different(dealt[start : ends[p]], table):
            return False
        start = ends[p]
    return True


def all_different(numbers: Numbers) -> bool:
    """Exact, for any numbers: an uneven deal costs time, not truth."""
    bits = max(1, (numbers.size // PART).bit_length())
    ends, dealt = np.zeros(2**bits, dtype=np.int64), np.empty_like(numbers)
    _deal(numbers, np.uint64(64 - bits), ends, dealt)
    largest = int(np.diff(ends, prepend=0).max())
    table = np.empty(max(2, 1 << (2 * largest).bit_length()), dtype=np.uint64)
    return bool(_parts_differ(dealt, ends, table))
