"""The table of a law, and exact draws from it (T-EXACT).

Fixed-width attempts in bulk, and arbitrary precision for the few that remain undecided. The numpy version
works in 64-bit integers. It is the reference for the compiled kernel and is used if there is none.
"""

import math
import sys
import threading
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from flint import arb, fmpq
from numpy.typing import NDArray

from recordwise.errors import ParameterError, own_errors_of
from recordwise.exact.arithmetic import BallArithmetic, BallColumns
from recordwise.exact.functions import Function
from recordwise.exact.numbers import arb_float_lower, ball, bits_in_force, working_precision
from recordwise.noise.probabilities import Weights, tail_sum
from recordwise.noise.randomness import BitSource, LazyUniform, WordArray

# The certified table from which a law is drawn.


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


# The draws.


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
    kept = np.less(a, _taken(picks.accept, pick, room.word), out=room.accepted)
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
    accepted: NDArray[np.bool_]

    @classmethod
    def of(cls, size: int) -> "_Room":
        kinds = {
            "low": np.uint32,
            "bound": np.uint32,
            "slot": np.int64,
            "pick": np.int64,
            "offset": np.int64,
            "accepted": np.bool_,
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
    """Room of the thread's own, for at least this many attempts."""
    held: _Room | None = _own.__dict__.pop("room", None)
    return held if held is not None and len(held.low) >= size else _Room.of(size)


def _taken(values: NDArray[Any], indices: IntArray, out: NDArray[Any]) -> NDArray[Any]:
    """Return the values at indices known to exist."""
    return np.take(values, indices, out=out, mode="clip")


def _pick(picks: _Picks, a: WordArray, room: _Room) -> IntArray:
    """Return each attempt's slot, plus 1024 for the other row."""
    np.copyto(room.low, a, casting="unsafe")
    np.bitwise_and(room.low, np.uint32(SLOT_MASK), out=room.slot)
    np.greater_equal(room.low, _taken(picks.bounds, room.slot, room.bound), out=room.accepted)
    np.copyto(room.pick, room.accepted)
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


@own_errors_of
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
    """At least this many words of the thread's own."""
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
