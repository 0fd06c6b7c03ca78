"""128-bit totals between DuckDB, Arrow and numpy without a detour through Python objects or floats."""

import numpy as np
import pyarrow as pa

Words = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
"""Shape (n, 2): the low and the high 64 bits of each number, two's complement."""

WIDE = pa.decimal128(38, 0)


def words(column: pa.ChunkedArray) -> Words:
    """The bits of a column of integers; NULL counts as 0."""
    array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if array.null_count:
        array = array.fill_null(0)
    if array.type != WIDE:
        narrow = array.cast(pa.int64()).to_numpy(zero_copy_only=False)
        return np.stack([narrow, narrow >> 63], axis=1)
    bits = np.frombuffer(array.buffers()[1], dtype=np.int64, count=2 * (len(array) + array.offset))
    return bits.reshape(-1, 2)[array.offset :]


def scatter(positions: np.ndarray[tuple[int, ...], np.dtype[np.int64]], values: Words, cells: int) -> pa.Array:
    """Totals at their positions among the public cells, 0 elsewhere: a cell without records looks like any other."""
    full = np.zeros((cells, 2), dtype=np.int64)
    full[positions] = values
    return pa.Array.from_buffers(WIDE, cells, [None, pa.py_buffer(full)])


def integers(column: pa.ChunkedArray | pa.Array) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Totals as int64, or as Python integers (dtype object) where one of them needs more bits. Never a float."""
    bits = words(column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column]))
    low, high = bits[:, 0], bits[:, 1]
    if np.array_equal(high, low >> 63):
        return low.copy()
    exact: np.ndarray[tuple[int, ...], np.dtype[np.int64]] = high.astype(object) * 2**64 + low.view(np.uint64).astype(
        object
    )
    return exact
