"""The attempts of ``sampler.py``, compiled. Importing this file imports numba; the machine code is cached on disk."""

import numpy as np
from numba import int64, njit, uint64

from recordwise.noise.randomness import WordArray
from recordwise.noise.table import IntArray, Table


@njit(cache=True, nogil=True)
def _attempts(words, slots, starts, quick, lines, signed, out, undecided):  # type: ignore[no-untyped-def]
    written = 0
    found = 0
    room = out.size
    for i in range(words.size // 2):
        if written == room:
            break
        a = words[2 * i]
        b = words[2 * i + 1]
        slot = a & uint64(1023)
        entry = slots[slot]
        coin = (a >> uint64(10)) & uint64(0x3FFFFF)
        row = slot if coin < (entry >> uint64(10)) else entry & uint64(1023)
        settled = quick[row]
        shift = settled & uint64(63)
        offset = starts[row] + int64((b >> uint64(1)) >> (uint64(63) - shift))
        negative = -int64(b & signed)
        out[written] = (offset ^ negative) - negative
        uniform = a >> uint64(32)
        if uniform < (settled >> uint64(32)):
            written += 1
            continue
        cut = uint64(32) - min(shift, uint64(32))
        place = ((b >> uint64(32)) >> cut) << cut
        below = lines[row, 0] - int64((uint64(lines[row, 1]) * place) >> uint64(32))
        above = lines[row, 2] - int64((uint64(lines[row, 3]) * place) >> uint64(32))
        if int64(uniform) < below:
            written += 1
        elif int64(uniform) < above:
            undecided[found, 0] = i
            undecided[found, 1] = written
            found += 1
            written += 1
    return written, found


def attempt(table: Table, words: WordArray, out: IntArray) -> tuple[int, IntArray]:
    """The same as ``recordwise.noise.sampler.attempt``, statement by statement."""
    undecided = np.empty((words.size // 2, 2), dtype=np.int64)
    written, found = _attempts(
        words, table.slots, table.starts, table.quick, table.lines, np.uint64(table.side.signed), out, undecided
    )
    return written, undecided[:found]
