"""Exact draws from a table (T-EXACT).

Fixed-width attempts in bulk, and arbitrary precision for the few that remain undecided. The numpy version
works in 64-bit integers. It is the reference for the compiled kernel and is used if there is none.
"""

import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from flint import arb
from numpy.typing import NDArray

from recordwise.exact.numbers import ball, bits_in_force
from recordwise.noise.probabilities import tail_sum
from recordwise.noise.randomness import BitSource, LazyUniform, WordArray
from recordwise.noise.table import COIN_BITS, SLOT_BITS, UNIFORM_BITS, IntArray, Table, table_for

SLOT_MASK = (1 << SLOT_BITS) - 1
COIN_MASK = (1 << COIN_BITS) - 1
LOW_HALF = np.uint64((1 << 32) - 1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Picks:
    """The columns of a table that attempts read.

    One array each: first for the slots' own rows, then for the other rows they name.
    """

    bounds: WordArray
    """Per slot ``threshold << 10``: the low half of a first word is below it exactly if its coin is below the threshold."""
    rows: WordArray
    accept: WordArray
    """``accept << 32``: a first word is below it exactly if its uniform is below what the row accepts at once."""
    starts: IntArray
    down: WordArray
    """By how many bits the second word without its sign is shifted down to an offset in the block."""


@lru_cache(maxsize=256)
def _picks(table: Table) -> _Picks:
    slot_mask = np.uint64(SLOT_MASK)
    rows = np.concatenate([np.arange(len(table.slots), dtype=np.uint64), table.slots & slot_mask])
    quick = table.quick[rows]
    return _Picks(
        bounds=(table.slots & ~slot_mask).astype(np.uint32),
        rows=rows,
        accept=quick & ~LOW_HALF,
        starts=table.starts[rows],
        down=np.uint64(63) - (quick & np.uint64(63)),
    )


def attempt(table: Table, words: WordArray, out: IntArray) -> tuple[int, IntArray]:
    """Use two words per attempt and write accepted offsets.

    Signed, to ``out`` until it is full. Returns how many were written and, for each that is still undecided,
    the pair (attempt, position in ``out``).
    """
    picks, whole = _picks(table), _lent_room(len(words) // 2)
    room = whole.first(len(words) // 2)
    a, b = room.a, room.b
    # Every statement below is twice as fast on words that stand side by side.
    np.copyto(a, words[0::2])
    np.copyto(b, words[1::2])
    pick = _pick(picks, a, room)
    kept = np.less(a, _taken(picks.accept, pick, room.word), out=room.kept)
    slow = np.flatnonzero(~kept)
    taken, open_ = _by_lines(table, picks.rows[pick[slow]], a[slow], b[slow])
    kept[slow] = taken
    accepted = _signed_offsets(picks, pick, b, room, signed=table.side.signed)[kept][: len(out)]
    out[: len(accepted)] = accepted
    undecided, refused = slow[open_], slow[~taken]
    positions = undecided - np.searchsorted(refused, undecided)
    written = positions < len(accepted)
    _own.room = whole
    return len(accepted), np.stack([undecided[written], positions[written]], axis=1)


@dataclass(slots=True, kw_only=True)
class _Room:
    """Reusable arrays for the attempts of a thread."""

    a: WordArray
    b: WordArray
    low: NDArray[np.uint32]
    bound: NDArray[np.uint32]
    slot: IntArray
    pick: IntArray
    offset: IntArray
    word: WordArray
    shift: WordArray
    kept: NDArray[np.bool_]

    @classmethod
    def of(cls, size: int) -> "_Room":
        kinds = {
            "low": np.uint32,
            "bound": np.uint32,
            "slot": np.int64,
            "pick": np.int64,
            "offset": np.int64,
            "kept": np.bool_,
        }
        return cls(**{each.name: np.empty(size, dtype=kinds.get(each.name, np.uint64)) for each in fields(cls)})

    def first(self, size: int) -> "_Room":
        return (
            self
            if len(self.low) == size
            else _Room(**{each.name: getattr(self, each.name)[:size] for each in fields(self)})
        )


_own = threading.local()
"""Memory of each thread. Whoever takes some takes it away, in one step, and brings it back when done: what draws in between, as
a signal handler or a finalizer may, finds nothing and gets fresh memory."""


def _lent_room(size: int) -> _Room:
    """Room of the thread's own, for at least so many attempts."""
    held: _Room | None = _own.__dict__.pop("room", None)
    return held if held is not None and len(held.low) >= size else _Room.of(size)


def _taken(values: NDArray[Any], places: IntArray, out: NDArray[Any]) -> NDArray[Any]:
    """Return the values at indices known to exist."""
    return np.take(values, places, out=out, mode="clip")


def _pick(picks: _Picks, a: WordArray, room: _Room) -> IntArray:
    """Return each attempt's slot, plus 1024 for the other row."""
    np.copyto(room.low, a, casting="unsafe")
    np.bitwise_and(room.low, np.uint32(SLOT_MASK), out=room.slot)
    np.greater_equal(room.low, _taken(picks.bounds, room.slot, room.bound), out=room.kept)
    np.copyto(room.pick, room.kept)
    np.left_shift(room.pick, SLOT_BITS, out=room.pick)
    np.add(room.pick, room.slot, out=room.pick)
    return room.pick


def _signed_offsets(picks: _Picks, pick: IntArray, b: WordArray, room: _Room, *, signed: bool) -> IntArray:
    inside = np.right_shift(b, np.uint64(1), out=room.word)
    inside >>= _taken(picks.down, pick, room.shift)
    offset: IntArray = _taken(picks.starts, pick, room.offset)
    offset += inside.view(np.int64)
    if signed:
        negative = np.bitwise_and(b, np.uint64(1), out=room.word).view(np.int64)
        np.negative(negative, out=negative)
        offset ^= negative
        offset -= negative
    return offset


def pick_row(table: Table, a: int) -> int:
    """Return the row chosen by an attempt's slot and coin."""
    slot = a & SLOT_MASK
    entry = int(table.slots[slot])
    coin = a >> SLOT_BITS & COIN_MASK
    return slot if coin < entry >> SLOT_BITS else entry & SLOT_MASK


def _by_lines(table: Table, row: WordArray, a: WordArray, b: WordArray) -> tuple[IntArray, IntArray]:
    """Whether each attempt is kept, and whether that is still open."""
    uniform, shift = (a >> np.uint64(32)).astype(np.int64), table.quick[row] & np.uint64(63)
    cut = np.uint64(32) - np.minimum(shift, np.uint64(32))
    place = ((b >> np.uint64(32)) >> cut) << cut
    lower, lower_fall, upper, upper_fall = table.lines[row].T
    below = lower - ((lower_fall.astype(np.uint64) * place) >> np.uint64(32)).astype(np.int64)
    above = upper - ((upper_fall.astype(np.uint64) * place) >> np.uint64(32)).astype(np.int64)
    return uniform < np.maximum(below, above), (uniform >= below) & (uniform < above)


Attempt: TypeAlias = Callable[[Table, WordArray, IntArray], tuple[int, IntArray]]
CHUNK = 1 << 15
"""Attempts per request for random words: half a megabyte, small enough to stay in the cache."""
WORTH_COMPILING = 2_000_000
"""Loading LLVM takes about twice as long as this many draws with numpy, and is done once in a process."""
_asked = Counter[str]()
"""How many draws this process was asked for so far."""
INT64_END = 1 << 63


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Draws:
    """Independent draws, those beyond 64 bits in ``extremes`` by position.

    ``values`` has 0 there.
    """

    values: IntArray
    extremes: dict[int, int]


def attempt_for(size: int) -> Attempt:
    """Return the compiled attempts if loaded or worth loading.

    That is, once many draws were made; both kinds make the same draws from the same words.
    """
    _asked["draws"] += size
    if _asked["draws"] < WORTH_COMPILING and "recordwise.noise.kernel" not in sys.modules:
        return attempt
    try:
        from recordwise.noise import kernel as compiled
    except ImportError:
        return attempt
    return compiled.attempt


def draw(table: Table, size: int, source: BitSource) -> Draws:
    """Draw ``size`` offsets from the table's first magnitude."""
    values = np.empty(size, dtype=np.int64)
    extremes: dict[int, int] = {}
    words = _lent_words(2 * _attempts_for(size))
    attempt, done = attempt_for(size), 0
    while done < size:
        fresh = words[: 2 * _attempts_for(size - done)]
        source.fill(fresh)
        count, undecided = attempt(table, fresh, values[done:])
        if len(undecided):
            count, large = _settle(table, fresh, values[done : done + count], undecided, source)
            extremes |= {done + place: value for place, value in large.items()}
        done += count
    _own.words = words
    return Draws(values=values, extremes=extremes)


def _lent_words(count: int) -> WordArray:
    """At least so many words of the thread's own."""
    held: WordArray | None = _own.__dict__.pop("words", None)
    return held if held is not None and len(held) >= count else np.empty(count, dtype=np.uint64)


def _attempts_for(size: int) -> int:
    """Return a few more attempts than draws, as some are rejected."""
    return min(CHUNK, size + size // 16 + 16)


def _settle(
    table: Table, words: WordArray, values: IntArray, undecided: IntArray, source: BitSource
) -> tuple[int, dict[int, int]]:
    """Decide the open attempts and close gaps of rejected ones.

    So that order reveals nothing about values.
    """
    rejected: list[int] = []
    large: dict[int, int] = {}
    for attempt, place in undecided.tolist():
        value = decide(table, words[2 * attempt : 2 * attempt + 2], int(values[place]), source)
        if value is None:
            rejected.append(place)
        elif abs(value) < INT64_END:
            values[place] = value
        else:
            values[place] = 0
            large[place - len(rejected)] = value
    for number, (gap, after) in enumerate(zip(rejected, [*rejected[1:], len(values)])):
        values[gap - number : after - number - 1] = values[gap + 1 : after]
    return len(values) - len(rejected), large


def decide(table: Table, pair: WordArray, offset: int, source: BitSource) -> int | None:
    """Return one attempt's signed offset, or None if rejected.

    In arbitrary precision.
    """
    a, b = pair.tolist()
    row = pick_row(table, a)
    uniform = LazyUniform(source, bits=a >> UNIFORM_BITS, count=UNIFORM_BITS)
    if row != table.tail_row:
        return offset if uniform.below(lambda: table.acceptance(row, abs(offset))) else None
    if not uniform.below(lambda: tail_share(table)):
        return None
    beyond = tail_table(table)
    magnitude = single(beyond, source) + beyond.side.first - table.side.first
    return -magnitude if table.side.signed and b & 1 else magnitude


def single(table: Table, source: BitSource) -> int:
    """One draw, of any size."""
    drawn = draw(table, 1, source)
    return drawn.extremes.get(0, int(drawn.values[0]))


def tail_table(table: Table) -> Table:
    """Return the law beyond the last block, magnitudes only."""
    return table_for(replace(table.side, first=table.tail_start, signed=False))


def tail_share(table: Table) -> arb:
    """Return the tail's exact mass over its row's weight."""
    side, start = table.side, table.tail_start
    beyond = side.relative(start) * tail_sum(side.exponent, start, bits=bits_in_force())
    return ball(table.scale * side.copies(start) / table.weights[table.tail_row]) * beyond
