"""Attempts in 64-bit integers with numpy: the reference for, and the stand-in of, the compiled kernel."""

import numpy as np

from recordwise.noise.bits import WordArray
from recordwise.noise.table import IntArray, Table

SLOT_MASK = np.uint64(1023)
COIN_MASK = np.uint64((1 << 22) - 1)


def attempt(table: Table, words: WordArray, out: IntArray) -> tuple[int, IntArray]:
    """Use two words per attempt; write the kept offsets with their signs to ``out`` until it is full.

    Returns how many were written and, for each of them that is still undecided, the pair (attempt, place in ``out``).
    """
    a, b = words[0::2], words[1::2]
    row = pick_row(table, a)
    quick = table.quick[row]
    shift = quick & np.uint64(63)
    offset = table.starts[row] + ((b >> np.uint64(1)) >> (np.uint64(63) - shift)).astype(np.int64)
    uniform = a >> np.uint64(32)
    kept, open_ = uniform < quick >> np.uint64(32), np.zeros(len(a), dtype=np.bool_)
    slow = np.flatnonzero(~kept)
    kept[slow], open_[slow] = _by_lines(table, row[slow], shift[slow], b[slow], uniform[slow].astype(np.int64))
    places = np.flatnonzero(kept)[: len(out)]
    negative = -(b[places] & np.uint64(table.side.signed)).astype(np.int64)
    out[: len(places)] = (offset[places] ^ negative) - negative
    undecided = np.flatnonzero(open_[places])
    return len(places), np.stack([places[undecided], undecided], axis=1)


def pick_row(table: Table, a: WordArray) -> WordArray:
    """The row chosen by the slot and the coin in the first word of an attempt."""
    slot = a & SLOT_MASK
    entry = table.slots[slot]
    coin = (a >> np.uint64(10)) & COIN_MASK
    return np.where(coin < entry >> np.uint64(10), slot, entry & SLOT_MASK)


def _by_lines(
    table: Table, row: WordArray, shift: WordArray, b: WordArray, uniform: IntArray
) -> tuple[IntArray, IntArray]:
    cut = np.uint64(32) - np.minimum(shift, np.uint64(32))
    place = ((b >> np.uint64(32)) >> cut) << cut
    lower, lower_fall, upper, upper_fall = table.lines[row].T
    below = lower - ((lower_fall.astype(np.uint64) * place) >> np.uint64(32)).astype(np.int64)
    above = upper - ((upper_fall.astype(np.uint64) * place) >> np.uint64(32)).astype(np.int64)
    return uniform < np.maximum(below, above), (uniform >= below) & (uniform < above)
