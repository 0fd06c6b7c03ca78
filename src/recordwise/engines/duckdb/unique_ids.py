"""Checks exactly that ids are unique, where it can without a table of groups.

Whole numbers that are close together are counted by bits (``bits_tree``). Any other id has a 64-bit number that equal ids share
(``fingerprints_tree``). If all the numbers differ, so do the ids. If two are equal, either an id is repeated or two hashes
collided, and the engine counts the ids themselves (T-UNIQUE).

Whether many 64-bit numbers all differ is decided by sorting the leading half of each number's product with an odd constant, in two
threads, which is much faster than sorting the numbers. Where two halves are equal the numbers themselves are compared, so an
unlucky constant costs time but never changes the result.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from sqlglot import exp

from recordwise.engines.compile.ids import (
    DIFFERENT,
    HELD,
    KNOWN,
    LEAST,
    MOST,
    bits_tree,
    different_tree,
    fingerprints_tree,
    span_tree,
)
from recordwise.engines.compile.records import SOURCE, Stored
from recordwise.engines.duckdb.connection import Connection
from recordwise.plan.schema import Schema

Numbers = np.ndarray[tuple[int, ...], np.dtype[np.uint64]]
SPREAD = np.uint64(0x9E3779B97F4A7C15)
Halves = np.ndarray[tuple[int, ...], np.dtype[np.uint32]]
HALF = np.uint64(32)
TOP = np.uint32(1 << 31)
BLOCK = 1 << 18
CLASSES, CLASS = 1 << 20, np.uint32(12)
"""Halves are grouped into classes by their leading bits; only classes with two equal halves are examined further."""


def all_different(numbers: Numbers) -> bool:
    halves = np.empty(numbers.size, dtype=np.uint32)

    def multiply(part: slice) -> None:
        halves[part] = (numbers[part] * SPREAD) >> HALF

    with ThreadPoolExecutor(2) as pool:
        for _ in pool.map(multiply, _blocks(numbers.size)):
            pass
        met = np.concatenate(list(pool.map(lambda upper: _repeated(halves, upper=upper), (True, False))))
    if not met.size:
        return True
    suspected = np.zeros(CLASSES, dtype=np.bool_)
    suspected[met >> CLASS] = True
    close = np.concatenate([numbers[part][suspected[halves[part] >> CLASS]] for part in _blocks(numbers.size)])
    return bool(np.unique(close).size == close.size)


def _repeated(halves: Halves, *, upper: bool) -> Halves:
    """The values that the upper or the lower ones of the halves have more than once."""
    part: Halves = halves[halves >= TOP] if upper else halves[halves < TOP]
    part.sort()
    again: Halves = part[1:][part[1:] == part[:-1]]
    return again


def _blocks(size: int) -> Iterator[slice]:
    """Blocks small enough that intermediate results stay in the processor cache."""
    return (slice(start, start + BLOCK) for start in range(0, size, BLOCK))


MOST_HELD = 12_000_000
"""With more ids than this, the numbers and two copies of their halves would take more than 192 MB."""
MOST_APART = 16
"""Whole numbers are counted by bits where at most this many numbers lie between two of them, on average."""


def repeated_ids(connection: Connection, schema: Schema, stored: Stored, *, table: str = SOURCE) -> int:
    """How many ids are not new. Ids that are NULL are none of them."""
    if stored.kind == "integer" and _close(connection, schema, table):
        return _repeats(connection, bits_tree(schema, table))
    numbers = connection.fetch_numbers(fingerprints_tree(schema, stored, table), at_most=MOST_HELD)
    if numbers is not None and all_different(numbers):
        return 0
    return _repeats(connection, different_tree(schema, table))


def _close(connection: Connection, schema: Schema, table: str) -> bool:
    """Whether the ids lie close together. A file that misstates its own least and largest value costs time, not exactness."""
    (span,) = connection.fetch(span_tree(schema, table)).to_pylist()
    return span[LEAST] is not None and span[MOST] - span[LEAST] <= MOST_APART * span[HELD]


def _repeats(connection: Connection, tree: exp.Expr) -> int:
    (found,) = connection.fetch(tree).to_pylist()
    return int(found[KNOWN]) - int(found[DIFFERENT])
