"""Sorting and telling rows apart by whole numbers: a column by the rank of its value, all columns as digits of one number."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

IntArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """A column as the ranks of its rows among its different values, which are sorted, NULL last."""

    values: pa.Array
    ranks: IntArray

    def at(self, rows: IntArray) -> pa.Array:
        return self.values.take(pa.array(self.ranks[rows]))


def encoded(column: pa.ChunkedArray) -> pa.Array:
    """A column as a dictionary of its different values, NULL among them; a dictionary given by somebody else is not trusted."""
    plain = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_dictionary(plain.type):
        plain = plain.dictionary_decode()
    return plain if pa.types.is_null(plain.type) else plain.dictionary_encode(null_encoding="encode")


def ranked(values: pa.Array, places: IntArray) -> Ranked:
    """The column whose rows hold ``values[places]``; values may repeat."""
    different = values.dictionary_encode(null_encoding="encode")
    order = pc.sort_indices(different.dictionary).to_numpy()
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return Ranked(different.dictionary.take(pa.array(order)), rank[different.indices.to_numpy()][places])


def sorted_distinct(columns: Sequence[Ranked]) -> IntArray:
    """The rows to take so that every different row stands once, in ascending order."""
    rows = len(columns[0].ranks)
    code, size = np.zeros(rows, dtype=np.int64), 1
    for column in columns:
        count = len(column.values)
        if size * count >= 2**63:
            # The different rows so far are at most as many as rows, so the next product fits.
            code, size = np.unique(code, return_inverse=True)[1].astype(np.int64), rows
        code, size = code * count + column.ranks, size * count
    return np.unique(code, return_index=True)[1]
