"""Checks exactly, without a table of groups, that ids are unique.

Each id has a 64-bit number that equal ids share (``fingerprints_tree``). If all the numbers differ, so do the ids. If two are
equal, either an id is repeated or two hashes collided, and the engine counts the ids itself (T-UNIQUE).

Whether many 64-bit numbers all differ is decided by sorting the leading half of each number's product with an odd constant, which
is much faster than sorting the numbers. Where two halves are equal the numbers themselves are compared, so an unlucky constant
costs time but never changes the result.
"""

from collections.abc import Iterator

import numpy as np

from recordwise.engines.compile.records import REPEATED, SOURCE, Stored, fingerprints_tree, repeated_tree
from recordwise.engines.duckdb.connection import Connection
from recordwise.plan.schema import Schema

Numbers = np.ndarray[tuple[int, ...], np.dtype[np.uint64]]
SPREAD = np.uint64(0x9E3779B97F4A7C15)
HALF = np.uint64(32)
BLOCK = 1 << 18
CLASSES, CLASS = 1 << 20, np.uint32(12)
"""Halves are grouped into classes by their leading bits; only classes with two equal halves are examined further."""


def all_different(numbers: Numbers) -> bool:
    halves = np.empty(numbers.size, dtype=np.uint32)
    for part in _blocks(numbers.size):
        halves[part] = (numbers[part] * SPREAD) >> HALF
    ordered = np.sort(halves)
    met = ordered[1:][ordered[1:] == ordered[:-1]]
    if not met.size:
        return True
    suspected = np.zeros(CLASSES, dtype=np.bool_)
    suspected[met >> CLASS] = True
    close = np.concatenate([numbers[part][suspected[halves[part] >> CLASS]] for part in _blocks(numbers.size)])
    return bool(np.unique(close).size == close.size)


def _blocks(size: int) -> Iterator[slice]:
    """Blocks small enough that intermediate results stay in the processor cache."""
    return (slice(start, start + BLOCK) for start in range(0, size, BLOCK))


FEWEST, MOST = 200_000, 12_000_000
"""Below this range a count is as fast; above it, the numbers and two copies of their halves would take more than 192 MB."""


def repeated_ids(
    connection: Connection, schema: Schema, stored: Stored, *, records: int, unknown: int, table: str = SOURCE
) -> int:
    """How many ids are not new; ``unknown`` ids are NULL and none of them."""
    if not unknown and FEWEST <= records <= MOST and _proved_different(connection, schema, stored, records, table):
        return 0
    (found,) = connection.fetch(repeated_tree(schema, table)).to_pylist()
    return int(found[REPEATED])


def _proved_different(connection: Connection, schema: Schema, stored: Stored, records: int, table: str) -> bool:
    numbers = connection.fetch_numbers(fingerprints_tree(schema, stored, table), rows=records)
    return numbers is not None and all_different(numbers)
