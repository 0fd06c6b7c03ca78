"""Whether ids are unique, exactly and without a table of groups: numbers that differ prove that what they were computed from
differs.

Each id has a 64-bit number that equal ids share (``fingerprints_tree``). If all numbers are different, so are the ids. If two are
equal, ids may be repeated or a hash may have met another by chance, and the engine counts them itself (T-UNIQUE).

The leading half of a product with an odd constant is sorted instead of the numbers, which is much faster. Where two halves meet,
the numbers themselves are compared; an unlucky constant costs time, not truth.
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
"""Halves fall into classes by their leading bits; only classes in which two halves meet are looked at closely."""


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
    """Small enough for what is computed on the way to stay in the cache of the processor."""
    return (slice(start, start + BLOCK) for start in range(0, size, BLOCK))


FEWEST, MOST = 200_000, 12_000_000
"""Below, a count is as fast; above, the numbers and two copies of their halves would take more than 192 MB."""


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
