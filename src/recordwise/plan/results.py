"""Engine results: public cells and boxed exact integers.

The integers are aligned with the cells, and only the session opens the box. DuckDB and Spark return sums of
128 bits as Arrow decimals, which become integers here without a detour through floats.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa

from recordwise.plan.arrays import numpy_of, single_array
from recordwise.plan.plan import PlannedTable
from recordwise.plan.statistics import BinCounts, ExactTable, Total
from recordwise.plan.statistics.totals import IntArray

T = TypeVar("T")

POSITION = "position"
"""The row of a cell in the sorted public keys."""
BIN, HELD = "bin", "held"
"""A point of a quantile's grid, and the number of records there."""


def total_name(table: PlannedTable, total: Total) -> str:
    """The name of a total's column in an engine's result."""
    return f"total{table.totals.index(total)}"


class Sensitive(Generic[T]):
    """A confidential value that only the session unwraps.

    It prints nothing and cannot be pickled, compared or hashed.
    """

    __slots__ = ("_value",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: T) -> None:
        self._value = value

    def reveal(self) -> T:
        """The exact value. Call this only where noise is added immediately afterward."""
        return self._value

    def __repr__(self) -> str:
        return "<Sensitive>"

    def __eq__(self, other: object) -> bool:
        raise TypeError("a sensitive value cannot be compared")

    def __reduce__(self) -> str:
        raise TypeError("a sensitive value cannot be pickled")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableTotals:
    """One table of a plan: public cells and their exact integers."""

    table: PlannedTable
    cells: pa.Table
    exact: Sensitive[ExactTable]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTotals:
    """One table with selected keys; even which cells exist is confidential."""

    table: PlannedTable
    cells: Sensitive[pa.Table]
    exact: Sensitive[ExactTable]


Words = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
"""Shape (n, 2): the low and the high 64 bits of each number, two's complement."""

WIDE = pa.decimal128(38, 0)


def integer_bits(column: pa.ChunkedArray) -> Words:
    """The bits of a column of integers; NULL counts as 0."""
    array = single_array(column)
    if array.null_count:
        array = array.fill_null(0)
    if array.type != WIDE:
        narrow = numpy_of(array.cast(pa.int64()))
        return np.stack([narrow, narrow >> 63], axis=1)
    bits = np.frombuffer(array.buffers()[1], dtype=np.int64, count=2 * (len(array) + array.offset))
    return bits.reshape(-1, 2)[array.offset :]


def scatter(positions: IntArray, values: IntArray, cells: int) -> IntArray:
    """Return totals at their positions among public cells, 0 elsewhere."""
    full = np.zeros(cells, dtype=values.dtype)
    full[positions] = values
    return full


def integers(column: pa.ChunkedArray | pa.Array) -> IntArray:
    """Return totals as int64 or Python integers, never floats."""
    bits = integer_bits(column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column]))
    low, high = bits[:, 0], bits[:, 1]
    if np.array_equal(high, low >> 63):
        return low.copy()
    exact: IntArray = high.astype(object) * 2**64 + low.view(np.uint64).astype(object)
    return exact


def bin_counts(found: pa.Table) -> BinCounts:
    """Rows (position, bin, held) as numbers, in the order of the cells."""
    rows = found.sort_by(POSITION)
    position, point, held = (np.asarray(numpy_of(rows.column(name)), np.int64) for name in (POSITION, BIN, HELD))
    return BinCounts(position=position, point=point, held=held)
