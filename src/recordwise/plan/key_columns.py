"""The columns of keys: casts to a declared type that can be undone, and rows told apart and sorted by whole numbers.

A column is held as the ranks of its values, and all columns of a row are the digits of one number.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.errors import KeysError
from recordwise.plan.arrays import array_of, numpy_of, whole
from recordwise.plan.fields import Case, DatePart, Expression, Field
from recordwise.plan.schema import Schema


def cell_type(expression: Expression, schema: Schema) -> tuple[str, bool]:
    """The declared type of a group's values and whether NULL is one of them."""
    if isinstance(expression, Case):
        return ("text" if isinstance(expression.default, str) else "integer"), False
    name = expression.name if isinstance(expression, Field) else expression.column
    column = schema.column(name)
    if column is None:
        raise KeysError(column=f"'{name}'", problem="is not a conditional column of the schema")
    kind = "integer" if isinstance(expression, DatePart) else column.type
    return kind, column.null == "category" and name not in schema.coarser_names()


def cast_keys(name: str, values: pa.Array, kind: str, nullable: bool) -> pa.Array:
    """The values in the declared type; NULL only if it is a category; every cast must round-trip (T-KEYS)."""
    plain = _plain(values)
    if plain.null_count and not nullable:
        raise KeysError(
            column=f"'{name}'",
            problem="contains NULL",
            advice="Declare null='category' or remove the NULLs.",
        )
    if pa.types.is_null(plain.type):
        return plain.cast(arrow_type(kind))
    cast = _cast(name, plain, kind)
    back = _cast_back(cast, plain.type)
    if back is None or not pc.all(pc.equal(back, plain), min_count=0).as_py():
        raise _no_round_trip(name, kind)
    return cast


def arrow_type(kind: str) -> pa.DataType:
    """How values of a declared type are held."""
    return {"text": pa.string(), "integer": pa.int64(), "boolean": pa.bool_(), "date": pa.date32()}[kind]


def _plain(values: pa.Array) -> pa.Array:
    narrow = pa.types.is_large_string(values.type) or pa.types.is_string_view(values.type)
    return values.cast(pa.string()) if narrow else values


def _cast(name: str, values: pa.Array, kind: str) -> pa.Array:
    given = values.type
    allowed = {
        "text": pa.types.is_string(given),
        "integer": pa.types.is_integer(given) or pa.types.is_floating(given) or pa.types.is_string(given),
        "boolean": pa.types.is_boolean(given),
    }[kind]
    if not allowed:
        raise KeysError(
            column=f"'{name}'", problem=f"has {given} keys for a column of type {kind}", advice=_advice(kind, given)
        )
    try:
        return values.cast(arrow_type(kind), safe=True)
    except pa.ArrowInvalid:
        raise _no_round_trip(name, kind) from None


def _advice(kind: str, given: pa.DataType) -> str:
    """1001 is a number, '01001' a code: written as a number it would match no record."""
    return (
        "Write codes as text, with their leading zeros: '01001'."
        if kind == "text" and pa.types.is_integer(given)
        else ""
    )


def _cast_back(cast: pa.Array, given: pa.DataType) -> pa.Array | None:
    try:
        return cast.cast(given, safe=True)
    except pa.ArrowInvalid:
        return None


def _no_round_trip(name: str, kind: str) -> KeysError:
    return KeysError(
        column=f"'{name}'",
        problem=f"has keys that do not survive a cast to {kind} and back",
        advice="Write the keys exactly as the column's declared type holds them.",
    )


IntArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """A column as the ranks of its rows among its distinct values, which are sorted with NULL last."""

    values: pa.Array
    ranks: IntArray

    def at(self, rows: IntArray) -> pa.Array:
        return self.values.take(array_of(self.ranks[rows]))


def plain_column(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array of its values."""
    plain = whole(column)
    return plain.dictionary_decode() if pa.types.is_dictionary(plain.type) else plain


def encoded(column: pa.ChunkedArray) -> pa.Array:
    """A column as a dictionary of its different values, NULL among them; a dictionary that was given is not trusted."""
    plain = plain_column(column)
    return plain if pa.types.is_null(plain.type) else plain.dictionary_encode(null_encoding="encode")


def ranked(values: pa.Array, places: IntArray) -> Ranked:
    """The column whose rows hold ``values[places]``; values may repeat."""
    different = values.dictionary_encode(null_encoding="encode")
    order = numpy_of(pc.sort_indices(different.dictionary))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return Ranked(different.dictionary.take(array_of(order)), rank[numpy_of(different.indices)][places])


MOST_GAPS = 8
"""Rows are sorted by a look-up table where there are at most this many possible ones for each."""


def sorted_distinct(columns: Sequence[Ranked]) -> IntArray:
    """The rows to take so that every distinct row appears once, in ascending order."""
    rows = len(columns[0].ranks)
    code, size = row_codes(columns)
    if size > MOST_GAPS * rows:
        return np.unique(code, return_index=True)[1]
    # Few of the possible rows are missing: a look-up table of all of them is faster than sorting.
    place = np.full(size, -1, dtype=np.int64)
    place[code] = np.arange(rows)
    return place[place >= 0]


def row_codes(columns: Sequence[Ranked]) -> tuple[IntArray, int]:
    """A number for each row, in the order of the rows, and how many numbers there can be."""
    rows = len(columns[0].ranks)
    code, size = np.zeros(rows, dtype=np.int64), 1
    for column in columns:
        count = len(column.values)
        if size * count >= 2**63:
            # The distinct rows so far are at most as many as the rows, so the next product fits.
            code, size = np.unique(code, return_inverse=True)[1].astype(np.int64), rows
        code, size = code * count + column.ranks, size * count
    return code, size


MOST_CELLS = 20_000_000


def check_size(rows: int) -> None:
    """Refuse an empty list of cells, and one of more cells than a query may publish."""
    if rows == 0:
        raise KeysError(column="the list", problem="is empty")
    if rows > MOST_CELLS:
        raise KeysError(
            column="the list",
            problem=f"has {rows:,} cells, more than the {MOST_CELLS:,} one query may publish",
            advice="Use coarser levels, fewer columns, or Keys.select_from for a sparse domain.",
        )


def check_key_type(name: str, kind: pa.DataType) -> None:
    """A key is text, a number, a truth value or NULL; whether it fits its column is checked once the schema is known."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if not (text or number or pa.types.is_boolean(kind) or pa.types.is_null(kind)):
        raise KeysError(column=f"'{name}'", problem=f"has {kind} values, which cannot be keys")
