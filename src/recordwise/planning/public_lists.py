"""What is publicly known about the columns of records: the cells of a plan, code lists, prefixes of codes and parts of dates.

Records that are to fall into published cells are drawn from these lists, one list after another, each given the columns that are
known already: a county from the keys, then a date among the days of the year that the keys name.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.exact.arithmetic import FloatArray
from recordwise.plan.cell_bands import sizes_at
from recordwise.plan.fields import Case, DatePart, Expression, Field, Level, Prefix
from recordwise.plan.hierarchies import Hierarchy
from recordwise.plan.key_columns import encoded
from recordwise.plan.key_selection import SelectFrom
from recordwise.plan.keys import Keys
from recordwise.plan.plan import Plan
from recordwise.plan.query import Query
from recordwise.plan.statistics.totals import IntArray
from recordwise.policy.dates import PARTS, parts_of_days
from recordwise.synthetic.figures import uniforms

MOST_DRAWN = 200_000
"""At most this many cells of a public domain are considered; it may have 2^62."""
SPREAD = 0.7
"""Cells whose size is not known are as different as ranks to this power."""
FIRST_YEAR, LAST_YEAR = 2015, 2024
LONGEST_SPAN = 120
WEIGHTS, PLACES = 9_001, 9_002
"""Streams of random numbers that no column uses."""


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """A column: its different values, and the place of each row's value among them."""

    values: pa.Array
    codes: IntArray

    @classmethod
    def of(cls, column: Any) -> "Coded":
        """A column of any length, NULL among its values."""
        made = encoded(column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column]))
        return cls(made.dictionary, np.asarray(made.indices.to_numpy(), np.int64))

    def taken(self, rows: IntArray) -> "Coded":
        return Coded(self.values, self.codes[rows])

    def column(self) -> pa.Array:
        return self.values.take(pa.array(self.codes))


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """A public list: a row for each combination that can occur, and how often it does."""

    columns: dict[Expression, Coded]
    weights: FloatArray

    def touches(self, known: dict[Expression, Coded]) -> bool:
        """Whether some of its columns are known and others are not."""
        return any(each in known for each in self.columns) and any(each not in known for each in self.columns)

    def drawn(self, known: dict[Expression, Coded], chance: FloatArray) -> dict[Expression, Coded]:
        """The columns that are not known yet, from rows that agree with what is known; from any row where none agrees."""
        wanted = [each for each in self.columns if each not in known]
        if not wanted:
            return {}
        total = np.cumsum(self.weights)
        rows = np.searchsorted(total, chance * total[-1]).clip(max=len(total) - 1)
        given = [each for each in self.columns if each in known]
        if given:
            rows = self._given(known, given, chance, rows)
        return {each: self.columns[each].taken(rows) for each in wanted}

    def _given(
        self, known: dict[Expression, Coded], given: Sequence[Expression], chance: FloatArray, otherwise: IntArray
    ) -> IntArray:
        ours, theirs = np.zeros(len(self.weights), np.int64), np.zeros(len(chance), np.int64)
        matching = np.ones(len(chance), np.bool_)
        for each in given:
            own, other = self.columns[each], known[each]
            place = pc.index_in(other.values.cast(own.values.type), value_set=own.values).fill_null(-1)
            found = np.asarray(place.to_numpy(zero_copy_only=False), np.int64)[other.codes]
            matching &= found >= 0
            ours, theirs = ours * len(own.values) + own.codes, theirs * len(own.values) + np.maximum(found, 0)
        order = np.argsort(ours, kind="stable")
        total = np.concatenate([[0.0], np.cumsum(self.weights[order])])
        low, high = (np.searchsorted(ours[order], theirs, side=side) for side in ("left", "right"))
        target = total[low] + chance * (total[high] - total[low])
        rows = np.clip(np.searchsorted(total, target, side="right") - 1, low, np.maximum(high - 1, low))
        return np.where(matching & (high > low), order[np.minimum(rows, len(order) - 1)], otherwise)


def plan_lists(plan: Plan, seed: int) -> Iterator[Listed]:
    """The public cells of every table, those with the most columns and rows first."""
    found = []
    for query in plan.queries:
        for level in query.tables():
            listed = _cells(plan, query, level, seed)
            if listed is not None:
                found.append(listed)
    yield from sorted(found, key=lambda each: (-len(each.columns), -len(each.weights)))


def _cells(plan: Plan, query: Query, level: Level, seed: int) -> Listed | None:
    keys, groups = query.keys_of(level), level.groups
    if isinstance(keys, Keys):
        cells = keys.cells(groups, plan.schema)
        sizes = None if keys.sizes is None else sizes_at(keys, groups, plan.schema, ("count", *keys.sizes.columns))
    elif isinstance(keys, SelectFrom):
        domain, sizes = keys.domain.bound(groups, plan.schema), None
        places = np.arange(domain.size) if domain.size <= MOST_DRAWN else _some_places(domain.size, seed)
        cells = domain.keys(places)
    else:
        return None
    columns: dict[Expression, Coded] = {
        group.expression: Coded.of(cells.column(group.name))
        for group in groups
        if not isinstance(group.expression, Case)
    }
    return Listed(columns, _weights(cells.num_rows, sizes, seed)) if columns else None


def _some_places(size: int, seed: int) -> IntArray:
    return np.unique((uniforms(seed, PLACES, 0, MOST_DRAWN) * size).astype(np.int64))


def _weights(rows: int, sizes: FloatArray | None, seed: int) -> FloatArray:
    """In proportion to public sizes, or else a few large cells and many small ones."""
    if sizes is not None and sizes.sum() > 0:
        return sizes
    rank = np.argsort(np.argsort(uniforms(seed, WEIGHTS, 0, rows)))
    return np.asarray((rank + 1.0) ** -SPREAD)


def code_list(hierarchy: Hierarchy) -> Listed:
    """The codes of a hierarchy with their levels."""
    columns: dict[Expression, Coded] = {
        Field(level): Coded.of(hierarchy.codes.column(level)) for level in hierarchy.levels
    }
    return Listed(columns, np.ones(hierarchy.codes.num_rows))


def prefix_list(column: str, prefixes: Sequence[Prefix], lists: Sequence[Listed]) -> Listed:
    """The codes of a text column with their prefixes; a prefix that no listed code has stands for a code itself."""
    whole = [each.columns[Field(column)].values for each in lists if Field(column) in each.columns]
    known = pa.concat_arrays([pa.array([], pa.string()), *(each.cast(pa.string()) for each in whole)]).unique()
    for prefix in sorted(prefixes, key=lambda each: -each.length):
        asked = [each.columns[prefix].values for each in lists if prefix in each.columns]
        starts = pc.utf8_slice_codeunits(known, 0, prefix.length)
        for values in asked:
            missing = values.filter(pc.invert(pc.is_in(values, value_set=starts)))
            known = pa.concat_arrays([known, missing]).unique()
    columns: dict[Expression, Coded] = {Field(column): Coded.of(known)}
    columns |= {each: Coded.of(pc.utf8_slice_codeunits(known, 0, each.length)) for each in prefixes}
    return Listed(columns, np.ones(len(known)))


def day_list(column: str, parts: Sequence[DatePart], lists: Sequence[Listed]) -> Listed:
    """The days of the years that the keys name, with the parts of dates that are grouped by."""
    named = [
        int(year)
        for part in parts
        for each in lists
        if part in each.columns and part.part in ("year", "isoyear")
        for year in each.columns[part].values.to_pylist()
        if year is not None and PARTS["year"][0] <= year < PARTS["year"][1]
    ]
    first, last = (min(named), max(named)) if named else (FIRST_YEAR, LAST_YEAR)
    first = max(first, last - LONGEST_SPAN)
    ends = np.array([f"{first:04d}-01-01", f"{last + 1:04d}-01-01"], "datetime64[D]").astype(np.int64)
    days = np.arange(*ends)
    split = parts_of_days(days)
    columns: dict[Expression, Coded] = {Field(column): Coded.of(pa.array(days.astype(np.int32), pa.date32()))}
    columns |= {part: Coded.of(pa.array(split[part.part])) for part in parts}
    return Listed(columns, np.ones(len(days)))
