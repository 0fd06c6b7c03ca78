"""The bands of a table's cells by public size (T-SIZE).

In the columns that records hold. A cell of a coarser level of a hierarchy is a set of finest codes
(T-HIERARCHY), so a table of bands lists every code below it: what is charged and stored never names a level.
To draw their noise, the cells are located by the first of their codes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.errors import KeysError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import float_upper
from recordwise.plan.arrays import array_of, null_as, numpy_of
from recordwise.plan.expressions import ALL_OTHER, DatePart, Field, Group, Prefix
from recordwise.plan.keys.cells import encode_column, plain_column, row_codes
from recordwise.plan.schema import Schema
from recordwise.policy.bands import BandTable, IntArray
from recordwise.policy.columns import ConditionColumn, literal

if TYPE_CHECKING:
    from recordwise.plan.keys.keys import Keys

Names: TypeAlias = tuple[str | None, ...]
"""The names of a statistic, by which its sizes are found."""
Edges: TypeAlias = Callable[[float], tuple[Fraction, ...]]
"""The edges of bands, given the largest size."""


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of the cells of a table."""

    name: str
    level: str | None = None
    """The level of a hierarchy that it holds, the finest or a coarser one."""
    hierarchy: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class RecordCells:
    """The cells of a table by record columns, one row per code."""

    names: tuple[str, ...]
    """For each column the first column of the cells that it stands for."""
    columns: tuple[pa.Array, ...]
    rows: IntArray
    """The cell of each row, ascending."""

    def first(self, count: int) -> tuple[pa.Array, ...]:
        """Return ``count`` cells by their first codes, NULL without any."""
        at = np.searchsorted(self.rows, np.arange(count))
        known = at < len(self.rows)
        known[known] &= self.rows[at[known]] == np.flatnonzero(known)
        places = array_of(np.where(known, at, 0), ~known)
        return tuple(column.take(places) for column in self.columns)


def sizes_at(keys: "Keys", groups: tuple[Group, ...], schema: Schema, names: Names) -> FloatArray | None:
    """Return the sizes of a table's cells, in their order.

    None if no size has one of these names. The size of a cell of a coarser level, or of a grand total, is the sum
    of the sizes of the cells listed in it.
    """
    given = None if keys.sizes is None else keys.sizes.of(*names)
    if given is None or not groups:
        return None if given is None else np.array([given.sum()])
    place = np.unique(row_codes(keys.rows.columns_at(groups, schema))[0], return_inverse=True)[1]
    return np.asarray(np.bincount(place, weights=given), np.float64)


def cell_bands(keys: "Keys", groups: tuple[Group, ...], schema: Schema, names: Names, edges: Edges) -> BandTable | None:
    """Return the cells' bands by a statistic's sizes; None if unknown."""
    given = None if keys.sizes is None else keys.sizes.of(*names)
    if keys.sizes is None or given is None:
        return None
    made = (groups, schema.hierarchies, id(given), edges(float(np.inf))[0])
    if made not in keys.made_bands:
        sizes = sizes_at(keys, groups, schema, names)
        assert sizes is not None
        table = _make_band_table(keys, groups, schema, sizes, edges(float(sizes.max())))
        keys.made_bands[made] = keys.sizes.raised.get(table.digest, table)
    return keys.made_bands[made]


def _make_band_table(
    keys: "Keys", groups: tuple[Group, ...], schema: Schema, sizes: FloatArray, edges: tuple[Fraction, ...]
) -> BandTable:
    bands = np.maximum(np.searchsorted([float_upper(each) for each in edges], sizes, side="right") - 1, 0)
    cells = keys.cells(groups, schema) if groups else pa.table({})
    held = record_cells(cells, key_columns(groups, schema), codes_of(schema))
    if not held.columns:
        # All records are in the only cell, or in none: there is nothing to look up.
        return BandTable((), (edges[int(bands[0])],), (), np.zeros(1, np.int64), np.zeros(1, np.int64))
    by_name = {group.name: _condition_column(group, schema) for group in groups}
    coded = [encode_column(pa.chunked_array([column])) for column in held.columns]
    values = [(each.dictionary.to_pylist(), numpy_of(each.indices)) for each in coded]
    coarse = any(
        group.expression.name in schema.coarser_names() for group in groups if isinstance(group.expression, Field)
    )
    level = [group.name for group in groups] if coarse else []
    return BandTable.of([by_name[name] for name in held.names], edges, values, bands[held.rows], level)


def key_columns(groups: Sequence[Group], schema: Schema) -> list[KeyColumn]:
    """Return a table's key columns, with the hierarchy levels they hold."""
    found = []
    for group in groups:
        level = group.expression.name if isinstance(group.expression, Field) else None
        hierarchy = None if level is None else schema.hierarchy(level)
        found.append(KeyColumn(group.name, *((None, None) if hierarchy is None else (level, hierarchy.name))))
    return found


def codes_of(schema: Schema) -> dict[str, pa.Table]:
    """Return the code lists by hierarchy; the last column is finest."""
    return {each.name: each.codes for each in schema.hierarchies}


def record_cells(cells: pa.Table, columns: Sequence[KeyColumn], codes: Mapping[str, pa.Table]) -> RecordCells:
    """The cells of a table by the columns that records hold.

    A level that is the same for all codes, such as a total, is left out: a record whose code is not listed is in no cell of it.
    """
    rows: IntArray = np.arange(cells.num_rows)
    found: dict[str, pa.Array] = {}
    done: set[str] = set()
    for column in columns:
        own = plain_column(cells.column(column.name))
        if column.hierarchy is None or not _is_coarse(column.hierarchy, columns, codes):
            found[column.name] = own.take(array_of(rows))
        elif column.hierarchy not in done:
            done.add(column.hierarchy)
            listed = codes[column.hierarchy]
            levels = {
                each.level: cells.column(each.name)
                for each in columns
                if each.level and each.hierarchy == column.hierarchy
            }
            theirs, ours = _combine_levels(listed, levels)
            if len(np.unique(theirs)) == 1:
                continue
            order = np.argsort(theirs, kind="stable")
            first, last = (np.searchsorted(theirs[order], ours[rows], side=side) for side in ("left", "right"))
            count = last - first
            within = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
            repeated = np.repeat(np.arange(len(rows)), count)
            rows = rows[repeated]
            found = {name: each.take(array_of(repeated)) for name, each in found.items()}
            own_codes = plain_column(listed.column(listed.column_names[-1]))
            found[column.name] = own_codes.take(array_of(order[np.repeat(first, count) + within]))
    return RecordCells(tuple(found), tuple(found.values()), rows)


def _is_coarse(hierarchy: str, columns: Sequence[KeyColumn], codes: Mapping[str, pa.Table]) -> bool:
    """Return whether a table has a level that records lack."""
    finest = codes[hierarchy].column_names[-1]
    return any(each.hierarchy == hierarchy and each.level != finest for each in columns)


def _combine_levels(listed: pa.Table, levels: Mapping[str, pa.ChunkedArray]) -> tuple[IntArray, IntArray]:
    """Return numbers for level combinations, by code and cell; -1 unlisted."""
    theirs, ours = np.zeros(listed.num_rows, np.int64), np.zeros(0, np.int64)
    for level, column in levels.items():
        coded = encode_column(listed.column(level))
        own = null_as(pc.index_in(plain_column(column), value_set=coded.dictionary), -1).astype(np.int64)
        before = ours if len(ours) else np.zeros(len(own), np.int64)
        known = (own >= 0) & (before >= 0)
        ours = np.where(known, before * len(coded.dictionary) + own, -1)
        theirs = theirs * len(coded.dictionary) + numpy_of(coded.indices)
    return theirs, ours


def _condition_column(group: Group, schema: Schema) -> ConditionColumn:
    """What a policy sees of a group."""
    value = group.expression
    if isinstance(value, Prefix):
        return ConditionColumn(value.column, value.length)
    if isinstance(value, DatePart):
        return ConditionColumn(value.column, part=value.part)
    if not isinstance(value, Field):
        raise KeysError(
            column=f"'{group.name}'", problem="is a CASE, by which cells have no size", advice="Group by columns."
        )
    hierarchy = schema.hierarchy(value.name)
    return ConditionColumn(value.name if hierarchy is None else hierarchy.finest)


def bands_of_cells(
    bands: BandTable, columns: Sequence[KeyColumn], codes: Mapping[str, pa.Table], cells: pa.Table, count: int
) -> IntArray:
    """Return each public cell's band, by the table's bands."""
    if not bands.columns:
        return np.zeros(count, np.int64)
    numbers = []
    for at, column in enumerate(record_cells(cells, columns, codes).first(count)):
        coded = encode_column(pa.chunked_array([column]))
        values = [None if value is None else literal(value) for value in coded.dictionary.to_pylist()]
        numbers.append(bands.value_numbers(at, values)[numpy_of(coded.indices)])
    of_cell = bands.bands_at(numbers)
    if ALL_OTHER in cells.column_names:
        # A rest has the key of its coarser cell, which may be listed; its records are in no listed cell, and so in the lowest band.
        of_cell = np.where(numpy_of(cells.column(ALL_OTHER)), 0, of_cell)
    return of_cell
