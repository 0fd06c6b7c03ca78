"""Rolling up in memory: the text of the finest cells is looked at once, then every level is found by whole numbers (T-ROLLUP).

Each group column becomes codes of its different values. What a level makes of a column, a prefix say, and where its keys have
it, is found for the different values only; a cell's place among the keys then takes a few look-ups.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.engines.wide import WIDE, words
from recordwise.plan.bases import Base
from recordwise.plan.casting import arrow_type
from recordwise.plan.keys import cell_type
from recordwise.plan.lowering import rolled_from
from recordwise.plan.plan import PlannedTable
from recordwise.plan.ranking import encoded
from recordwise.plan.schema import Schema

IntArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
MOST_CELLS = 1_000_000
"""More finest cells than this, about 100 MB of them, stay where they are and are rolled up there."""
MOST_PLACES = 1 << 23
"""The most combinations of values of a table's keys that a look-up table may hold."""
MOST_TOTAL = float(2**62)


@dataclass(frozen=True, slots=True, eq=False)
class CodedCells:
    """The finest cells of a base: for each column its different values and a code a cell; the sums as 64-bit numbers."""

    base: Base
    cells: int
    values: tuple[pa.Array, ...]
    codes: tuple[IntArray, ...]
    sums: Mapping[str, IntArray]

    @classmethod
    def of(cls, cells: pa.Table, base: Base, schema: Schema) -> "CodedCells | None":
        """None where a grand total would not fit: then nothing here may add up."""
        sums = {}
        for name in cells.column_names[len(base.expressions) :]:
            bits = words(cells.column(name))
            if bits[:, 1].any() or (bits[:, 0] < 0).any() or bits[:, 0].astype(np.float64).sum() > MOST_TOTAL:
                return None
            sums[name] = np.ascontiguousarray(bits[:, 0])
        values, codes = [], []
        for number, expression in enumerate(base.expressions):
            column = encoded(cells.column(number).cast(arrow_type(cell_type(expression, schema)[0])))
            values.append(column.dictionary)
            codes.append(column.indices.to_numpy())
        return cls(base, cells.num_rows, tuple(values), tuple(codes), sums)

    def totals(self, table: PlannedTable, keys: pa.Table, sources: Mapping[str, str]) -> dict[str, pa.Array] | None:
        """The totals at the public cells, 0 where there are no records; None where the look-up table would be too large."""
        count = keys.num_rows if table.shape.groups else 1
        places = self._places(table, keys) if table.shape.groups else np.zeros(self.cells, dtype=np.int64)
        if places is None:
            return None
        inside = places >= 0
        columns = {}
        for name, source in sources.items():
            full = np.zeros((count, 2), dtype=np.int64)
            np.add.at(full[:, 0], places[inside], self.sums[source][inside])
            columns[name] = pa.Array.from_buffers(WIDE, count, [None, pa.py_buffer(full)])
        return columns

    def _places(self, table: PlannedTable, keys: pa.Table) -> IntArray | None:
        """The row of each finest cell among the keys, -1 where they do not list it."""
        ours, theirs, size = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), 1
        known = np.ones(1, dtype=bool)
        for group, column in zip(table.shape.groups, keys.columns):
            listed = encoded(column)
            number, length = rolled_from(self.base, group.expression)
            values = self.values[number]
            values = values if length is None else pc.utf8_slice_codeunits(values, 0, length)
            rank = pc.index_in(values, value_set=listed.dictionary).fill_null(-1).to_numpy()
            ranks = rank[self.codes[number]].astype(np.int64)
            size *= len(listed.dictionary)
            if size > MOST_PLACES:
                return None
            ours, known = ours * len(listed.dictionary) + ranks, known & (ranks >= 0)
            theirs = theirs * len(listed.dictionary) + listed.indices.to_numpy()
        places = np.full(size + 1, -1, dtype=np.int32)
        places[theirs] = np.arange(keys.num_rows)
        return places[np.where(known, ours, size)].astype(np.int64)
