"""Between numpy and Arrow, as ``pa.array`` and ``to_numpy`` do it.

Both of them import pandas wherever it is installed, to ask whether they were given something of it: a third of a second of every
process that has no use for it otherwise.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from recordwise.errors import KeysError

MOST_LETTERS = 2**31 - 1
"""What one column of text can hold, in bytes."""
_WHOLE = {
    getattr(pa, f"{sign}int{bits}")(): np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)
}
_DTYPES = {**_WHOLE, pa.float32(): np.dtype(np.float32), pa.float64(): np.dtype(np.float64)}


def array_of(values: Any, missing: Any = None) -> pa.Array:
    """A numpy array as a column that shares its memory.

    Args:
        values: One-dimensional: numbers or truth values.
        missing: Where the column is NULL, as truth values; None for nowhere.

    Example:
        >>> array_of(np.array([4, 20]), np.array([False, True])).to_pylist()
        [4, None]
    """
    if values.dtype.kind not in "iufb" or not values.dtype.isnative:
        return pa.array(values, mask=missing)
    valid = None if missing is None or not missing.any() else _bits(~missing)
    held = _bits(values) if values.dtype.kind == "b" else pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [valid, held])


def _bits(values: Any) -> pa.Buffer:
    return pa.py_buffer(np.packbits(values, bitorder="little"))


def texts_of(values: Sequence[str | None]) -> pa.Array:
    """A list of texts as a column, with NULL for None.

    Example:
        >>> texts_of(["001", None, "Añasco"]).to_pylist()
        ['001', None, 'Añasco']
    """
    letters = [b"" if value is None else value.encode() for value in values]
    ends = np.cumsum([0, *map(len, letters)])
    if ends[-1] > MOST_LETTERS:
        return pa.array(values, pa.string())
    held = pa.py_buffer(b"".join(letters))
    told = None if None not in values else _bits(np.array([value is not None for value in values]))
    return pa.StringArray.from_buffers(len(letters), pa.py_buffer(ends.astype(np.int32)), held, told)


def array_from_list(values: Sequence[Any], *, nan_is_null: bool = False) -> pa.Array:
    """Return a list as a column of the type Arrow infers.

    Args:
        values: The values.
        nan_is_null: Whether NaN stands for a missing value.

    Example:
        >>> array_from_list([1.5, float("nan")], nan_is_null=True).to_pylist()
        [1.5, None]
    """
    kinds = set(map(type, values))
    if kinds == {str}:
        return texts_of(values)
    if kinds == {int} and min(values) >= -(2**63) and max(values) < 2**63:
        return array_of(np.array(values, dtype=np.int64))
    if kinds == {float}:
        numbers = np.array(values)
        missing = np.isnan(numbers) & nan_is_null
        if not missing.all():
            return array_of(numbers, missing)
    return pa.array(values, from_pandas=nan_is_null)


def as_array(name: str, values: Iterable[Any]) -> pa.Array:
    """Return key values as one Arrow column; refuse mixed types and strings."""
    if isinstance(values, str | bytes):
        raise KeysError(column=f"'{name}'", problem=f"is a {type(values).__name__}, not a list of keys")
    try:
        array = pa.array(values) if hasattr(values, "__arrow_array__") else array_from_list(list(values))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError):
        raise KeysError(column=f"'{name}'", problem="mixes types or has values that cannot be keys") from None
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def numpy_of(column: pa.Array | pa.ChunkedArray) -> Any:
    """Return a column as numpy, without copying if possible.

    Among numbers NULL is NaN.

    Example:
        >>> numpy_of(pa.array([4, None])).tolist()
        [4.0, nan]
    """
    array = single_array(column) if isinstance(column, pa.ChunkedArray) else column
    dtype = _DTYPES.get(array.type)
    if dtype is None:
        plain = pa.types.is_boolean(array.type) and not array.null_count
        return _unpack_bits(array, 1) if plain else array.to_numpy(zero_copy_only=False)
    if not len(array):
        return np.empty(0, dtype)
    values = _buffer_numbers(array)
    if not array.null_count:
        return values
    return np.where(_unpack_bits(array, 0), values, np.array(np.nan, dtype if dtype.kind == "f" else np.float64))


def null_as(column: pa.Array | pa.ChunkedArray, value: int) -> Any:
    """Return a numeric column as numpy, with ``value`` for NULL.

    The array has the column's type.

    Example:
        >>> null_as(pa.array([4, None]), -1).tolist()
        [4, -1]
    """
    array = single_array(column) if isinstance(column, pa.ChunkedArray) else column
    if not array.null_count:
        return numpy_of(array)
    return np.where(_unpack_bits(array, 0), _buffer_numbers(array), _DTYPES[array.type].type(value))


def _buffer_numbers(array: pa.Array) -> Any:
    """Return the numbers in a nonempty array's memory, arbitrary where NULL."""
    dtype = _DTYPES[array.type]
    return np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * dtype.itemsize)


def single_array(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array, copied only if chunked.

    Example:
        >>> single_array(pa.chunked_array([[4], [20]])).to_pylist()
        [4, 20]
    """
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)


def _unpack_bits(array: pa.Array, buffer: int) -> Any:
    """One of the bitmaps of an array as truth values."""
    if not len(array):
        return np.empty(0, np.bool_)
    packed = np.frombuffer(array.buffers()[buffer], np.uint8)
    return np.unpackbits(packed, count=array.offset + len(array), bitorder="little")[array.offset :].view(np.bool_)


def row_numbers(*tables: pa.Table, by: Sequence[str]) -> list[Any]:
    """Return a number for each row of each table, equal for rows with the same values.

    NULL equals NULL, unlike in a join of Arrow, which would leave such rows out.

    Args:
        tables: The tables; columns of one name have one type.
        by: The columns that tell rows apart.

    Example:
        >>> one, other = pa.table({"county": ["001", None]}), pa.table({"county": [None, "003"]})
        >>> [each.tolist() for each in row_numbers(one, other, by=["county"])]
        [[0, 1], [1, 2]]
    """
    place = np.zeros(sum(each.num_rows for each in tables), np.int64)
    for name in by:
        column = pa.chunked_array([_plain(each.column(name)) for each in tables])
        codes = column.combine_chunks().dictionary_encode(null_encoding="encode")
        joint = place * max(1, len(codes.dictionary)) + np.asarray(numpy_of(codes.indices), np.int64)
        # Numbered again after each column, so that numbers stay below the square of the rows.
        place = np.unique(joint, return_inverse=True)[1]
    return np.split(place, np.cumsum([each.num_rows for each in tables])[:-1])


def distinct(table: pa.Table, by: Sequence[str] | None = None) -> pa.Table:
    """Return the first row of each combination of values, in their order.

    Args:
        table: The rows.
        by: The columns that tell rows apart; all of them by default.

    Example:
        >>> distinct(pa.table({"state": ["34", "34", "36"], "code": [1, 1, 2]})).to_pydict()
        {'state': ['34', '36'], 'code': [1, 2]}
    """
    (place,) = row_numbers(table, by=table.column_names if by is None else by)
    return table.take(array_of(np.sort(np.unique(place, return_index=True)[1])))


def table_digest(table: pa.Table) -> str:
    """Return a digest of values, whatever the columns' names and encoding."""
    plain = [_plain(table.column(place)) for place in range(table.num_columns)]
    listed = pa.table(plain, names=[str(place) for place in range(len(plain))]).combine_chunks()
    made = hashlib.sha256(f"{listed.num_rows}:{[str(each) for each in listed.schema.types]}".encode())
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, listed.schema) as writer:
        writer.write_table(listed)
    made.update(memoryview(sink.getvalue()))
    return made.hexdigest()


def _plain(column: pa.ChunkedArray) -> Any:
    values = column.combine_chunks()
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
