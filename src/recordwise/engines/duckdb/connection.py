"""A DuckDB connection limited to its files, with uninformative errors."""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from sqlglot import exp

from recordwise.engines.compile.records import (
    DIFFERENT,
    KNOWN,
    SOURCE,
    StorageType,
    bits_tree,
    close,
    different_tree,
    fingerprints_tree,
    span_tree,
)
from recordwise.errors import EngineError
from recordwise.plan.arrays import numpy_of
from recordwise.plan.schema import Schema
from recordwise.plan.statistics.totals import IntArray

BATCH_ROWS = 500_000
TRUSTING = "statistics_propagation,filter_pushdown,join_filter_pushdown,row_group_pruner"
"""What decides conditions, groups and least values, or leaves records out, by what a file states about them: the least and the
largest value of a Parquet column, how many are missing, a Bloom filter. A file can state anything, and NaN is in none of it."""


class Connection:
    """Runs SQL trees. Every failure becomes an ``EngineError`` without the engine's text."""

    def __init__(self, *, files: Sequence[Path], memory_limit: str, threads: int | None) -> None:
        # Spilled pages hold records, so they go to a private directory that is removed with the connection.
        self._spill = tempfile.TemporaryDirectory(prefix="recordwise-")
        settings: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": memory_limit,
            "threads": threads or os.cpu_count() or 1,
            "temp_directory": self._spill.name,
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,
            "default_collation": "",
            "disabled_optimizers": TRUSTING,
        }
        try:
            with ThreadPoolExecutor(1) as pool:
                # DuckDB opens without the interpreter, which meanwhile loads what writes statements.
                opening = pool.submit(duckdb.connect, ":memory:", config=settings)
                exp.null().sql(dialect="duckdb")
                self.duckdb = opening.result()
            self._lock(files)
        except BaseException as error:
            self._spill.cleanup()
            if not isinstance(error, duckdb.Error):
                raise
            raise failure(error) from None

    def _lock(self, files: Sequence[Path]) -> None:
        self._draw_no_bar()
        allowed = exp.Array(expressions=[exp.Literal.string(str(path)) for path in files])
        for name, value in (
            ("allowed_paths", allowed),
            ("enable_external_access", exp.false()),
            ("lock_configuration", exp.true()),
        ):
            self._set(name, value)

    def _draw_no_bar(self) -> None:
        """Turn off DuckDB's progress bar.

        It would draw one on standard output wherever Python runs no file. In Jupyter without ipywidgets DuckDB
        cannot draw one, and refuses to turn it off.
        """
        with suppress(duckdb.InvalidInputException):
            self._set("enable_progress_bar", exp.false())

    def _set(self, name: str, value: exp.Expr) -> None:
        item = exp.SetItem(this=exp.EQ(this=exp.to_identifier(name), expression=value))
        self.duckdb.execute(exp.Set(expressions=[item]).sql(dialect="duckdb"))

    def run(self, tree: exp.Expr) -> None:
        """Run a statement that returns nothing."""
        try:
            self.duckdb.execute(tree.sql(dialect="duckdb", copy=False))
        except duckdb.Error as error:
            raise failure(error) from None

    def fetch(self, tree: exp.Expr) -> pa.Table:
        """Run a query and return its rows as Arrow."""
        try:
            return self.duckdb.sql(tree.sql(dialect="duckdb", copy=False)).to_arrow_table()
        except duckdb.Error as error:
            raise failure(error) from None

    def fetch_numbers(self, tree: exp.Expr, *, at_most: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]] | None:
        """Return a column of numbers, or None beyond ``at_most``.

        64-bit, without NULLs, read in batches.
        """
        # Memory that was not written yet takes no room, and each batch leaves its own for the next.
        held, taken = np.empty(at_most, dtype=np.uint64), 0
        try:
            for batch in self.duckdb.sql(tree.sql(dialect="duckdb", copy=False)).to_arrow_reader(BATCH_ROWS):
                first, taken = taken, taken + batch.num_rows
                if taken > at_most:
                    return None
                held[first:taken] = numpy_of(batch.column(0)).view(np.uint64)
                del batch
        except duckdb.Error as error:
            raise failure(error) from None
        return held[:taken]

    def close(self) -> None:
        """Close the connection and delete everything it holds, including spilled pages."""
        self.duckdb.close()
        self._spill.cleanup()
        # Results came as Arrow memory, which its pool would keep for the next ones.
        pa.default_memory_pool().release_unused()


def failure(error: Exception) -> EngineError:
    """Return an error without the engine's text.

    That can quote a record: neither keep nor chain it; raise this ``from None``.
    """
    return EngineError(engine="duckdb", kind=type(error).__name__)


# Checks exactly that ids are unique, where it can without a table of groups. Whole numbers that are close together
# are counted by bits (``bits_tree``). Any other id has a 64-bit number that equal ids share (``fingerprints_tree``).
# If all the numbers differ, so do the ids. If two are equal, either an id is repeated or two hashes collided, and the
# engine counts the ids themselves (T-UNIQUE). Whether many 64-bit numbers all differ is decided without sorting them.
# Each number has a place, the leading bits of its product with an odd constant, and each place keeps one of the
# numbers that have it. A number that is not kept is compared with the one that is; those that differ go on to another
# round with another constant. An unlucky constant costs time, never exactness.


Numbers = np.ndarray[tuple[int, ...], np.dtype[np.uint64]]
Indices = np.ndarray[tuple[int, ...], np.dtype[np.uint32]]
SPREADS = tuple(map(np.uint64, (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)))
"""Odd constants, one for each round; what is left after the last is sorted."""
MOST_BITS = 24
"""Each round has at most this many places, as a power of two: 64 MB."""
BLOCK = 1 << 18


def all_different(numbers: Numbers) -> bool:
    """Whether no two of at most 2^32 numbers are equal."""
    # Every round writes the places that it reads, so that one memory serves all.
    places, left = np.empty(1 << _place_bits(numbers), dtype=np.uint32), numbers
    with ThreadPoolExecutor(2) as pool:
        for spread in SPREADS:
            found = _remaining_numbers(left, spread, places, pool)
            if found is None:
                return False
            left = found
    ordered = np.sort(left)
    return not np.any(ordered[1:] == ordered[:-1])


def _place_bits(numbers: Numbers) -> int:
    """How many leading bits tell the places of a round apart."""
    return min(numbers.size.bit_length() + 1, MOST_BITS)


def _remaining_numbers(
    numbers: Numbers, spread: np.uint64, places: Indices, pool: ThreadPoolExecutor
) -> Numbers | None:
    """Return the numbers without a slot, or None on a duplicate."""
    shift, keeper = np.uint64(64 - _place_bits(numbers)), places[: 1 << _place_bits(numbers)]

    def slots(part: slice) -> IntArray:
        product = numbers[part] * spread
        product >>= shift
        return product.view(np.int64)

    def keep(part: slice) -> None:
        keeper[slots(part)] = _indices(part)

    def left(part: slice) -> Numbers | None:
        # Every slot is a place: looking up without a test of bounds is faster.
        kept = np.take(keeper, slots(part), mode="clip")
        other = np.flatnonzero(kept != _indices(part))
        found = numbers[part][other]
        return None if np.any(numbers[kept[other]] == found) else found

    for _ in pool.map(keep, _blocks(numbers.size)):
        pass
    found = list(pool.map(left, _blocks(numbers.size)))
    known = [each for each in found if each is not None]
    return np.concatenate([numbers[:0], *known]) if len(known) == len(found) else None


def _indices(part: slice) -> Indices:
    return np.arange(part.start, part.stop, dtype=np.uint32)


def _blocks(size: int) -> Iterator[slice]:
    """Blocks small enough that intermediate results stay in the processor cache."""
    return (slice(start, min(start + BLOCK, size)) for start in range(0, size, BLOCK))


MOST_HELD = 12_000_000
"""With more ids than this, the numbers, those left over and the places would take more than 200 MB."""


def repeated_ids(
    connection: Connection,
    schema: Schema,
    stored: StorageType,
    *,
    table: str = SOURCE,
    span: Mapping[str, int] | None = None,
) -> int:
    """Count the repeated ids, ignoring NULL; their ``span`` may be known."""
    if stored.kind == "integer" and close(span or _span(connection, schema, table)):
        return _repeats(connection, bits_tree(schema, table))
    numbers = connection.fetch_numbers(fingerprints_tree(schema, stored, table), at_most=MOST_HELD)
    if numbers is not None and all_different(numbers):
        return 0
    return _repeats(connection, different_tree(schema, table))


def _span(connection: Connection, schema: Schema, table: str) -> Mapping[str, int]:
    (span,) = connection.fetch(span_tree(schema, table)).to_pylist()
    return dict(span)


def _repeats(connection: Connection, tree: exp.Expr) -> int:
    (found,) = connection.fetch(tree).to_pylist()
    return int(found[KNOWN]) - int(found[DIFFERENT])
