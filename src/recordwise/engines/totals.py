"""The exact totals of a plan, computed alike in every engine.

One pass for the finest cells, then roll-ups to the keys. In memory, a roll-up reads the text of the finest
cells once and then works on whole numbers (T-ROLLUP): each group column becomes codes of its distinct
values. What a level makes of a column (a prefix, for example) and its position among the keys are computed
for the distinct values only; a cell's position among the keys then takes a few look-ups.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from recordwise.engines.compile.owner import firm_histogram_tree, histogram_tree, lent_bands
from recordwise.engines.compile.totals import (
    Base,
    Names,
    additive_columns,
    additive_tree,
    bases_of,
    bins_tree,
    cells_tree,
    firm_counts_tree,
    firms_tree,
    found_cells_tree,
    grid_table,
    pieces_count_tree,
    rests_name,
    rollup_source,
    split_rows_tree,
    typed_cells,
)
from recordwise.errors import PlanError
from recordwise.plan.arrays import array_of, numpy_of
from recordwise.plan.expressions import Group, Level, Predicate, listed_cells, rest_keys
from recordwise.plan.keys.cells import arrow_type, cell_type, encode_column
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.plan.results import (
    POSITION,
    FoundTotals,
    Sensitive,
    TableTotals,
    bin_counts,
    integer_bits,
    integers,
    scatter,
    total_name,
)
from recordwise.plan.schema import Schema
from recordwise.plan.statistics import BinCounts, CountBins, ExactTable
from recordwise.plan.statistics.totals import IntArray, Splitting
from recordwise.policy.evaluate.sql import bands_in

# The interface to wherever an engine keeps records and cells, used by the passes that all engines share.


class Store(Protocol):
    """The interface of stores: trees in, Arrow out.

    DuckDB has everything in one place; Spark has records on executors and cells on the driver.
    """

    def of_records(self, tree: exp.Expr) -> pa.Table:
        """Run a query that reads the records."""

    def of_cells(self, tree: exp.Expr) -> pa.Table:
        """Run a query that reads only stored cells and lent tables."""

    def store_cells(self, name: str, tree: exp.Expr) -> None:
        """Store the finest cells of one pass as a working table."""

    def store_pairs(self, name: str, tree: exp.Expr) -> None:
        """Store the pairs of cell and firm near the records."""

    def lend(self, name: str, table: pa.Table) -> None:
        """Make a table readable under a name, replacing earlier ones."""

    def drop(self, *names: str) -> None:
        """Drop whatever was kept or lent under these names."""


MOST_CELLS = 1_000_000
"""With more finest cells than this (about 100 MB), they are rolled up in the engine instead of in memory."""
NOWHERE = array_of(np.array([-1], np.int32))[0]
MOST_PLACES = 1 << 23
"""The largest number of combinations of key values that a look-up table may hold."""
MOST_TOTAL = float(2**62)


@dataclass(frozen=True, slots=True, eq=False)
class CodedCells:
    """The finest cells of a base, coded.

    Each column as distinct values and one code per cell, and the sums as 64-bit numbers.
    """

    base: Base
    cells: int
    values: tuple[pa.Array, ...]
    codes: tuple[IntArray, ...]
    sums: Mapping[str, IntArray]

    @classmethod
    def of(cls, cells: pa.Table, base: Base, schema: Schema) -> "CodedCells | None":
        """Code the cells, or return None if a grand total overflows."""
        sums = {}
        for name in cells.column_names[len(base.expressions) :]:
            bits = integer_bits(cells.column(name))
            narrow = np.array_equal(bits[:, 1], bits[:, 0] >> 63)
            if not narrow or np.abs(bits[:, 0].astype(np.float64)).sum() > MOST_TOTAL:
                return None
            sums[name] = np.ascontiguousarray(bits[:, 0])
        types = [arrow_type(cell_type(expression, schema)[0]) for expression in base.expressions]
        with ThreadPoolExecutor() as pool:
            columns = list(pool.map(lambda column, kind: encode_column(column.cast(kind)), cells.columns, types))
        values, codes = tuple(column.dictionary for column in columns), tuple(_codes(column) for column in columns)
        return cls(base, cells.num_rows, values, codes, sums)

    def totals(self, table: PlannedTable, keys: pa.Table, sources: Mapping[str, str]) -> dict[str, IntArray] | None:
        """Return the totals at the public cells.

        0 where there are no records; None where the look-up table would be too large.
        """
        count = keys.num_rows if table.shape.groups else 1
        listed = keys if table.rest is None else listed_cells(keys)
        places = self._key_rows(table.shape, listed)
        if table.rest is not None and places is not None:
            above, first = self._key_rows(table.rest, rest_keys(keys, table.shape, table.rest)), listed.num_rows
            places = None if above is None else np.where((places < 0) & (above >= 0), first + above, places)
        if places is None:
            return None
        inside = np.flatnonzero(places >= 0)
        at, columns = places[inside], {}
        for name, source in sources.items():
            columns[name] = np.zeros(count, dtype=np.int64)
            np.add.at(columns[name], at, self.sums[source][inside])
        return columns

    def _key_rows(self, level: Level, keys: pa.Table) -> IntArray | None:
        """Return each finest cell's row among the keys, or -1."""
        if not level.groups:
            return np.zeros(self.cells, dtype=np.int64)
        ours, theirs, size = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), 1
        known = np.ones(1, dtype=bool)
        with ThreadPoolExecutor() as pool:
            columns = list(pool.map(self._ranks, level.groups, keys.columns))
        for listed, ranks in columns:
            size *= len(listed.dictionary)
            if size > MOST_PLACES:
                return None
            ours, known = ours * len(listed.dictionary) + ranks, known & (ranks >= 0)
            theirs = theirs * len(listed.dictionary) + _codes(listed)
        places = np.full(size + 1, -1, dtype=np.int32)
        places[theirs] = np.arange(keys.num_rows)
        return places[np.where(known, ours, size)].astype(np.int64)

    def _ranks(self, group: Group, column: pa.ChunkedArray) -> tuple[pa.DictionaryArray, IntArray]:
        """Return a key column's distinct values and each cell's index."""
        listed = encode_column(column)
        number, length = rollup_source(self.base, group.expression)
        values = self.values[number]
        values = values if length is None else pc.utf8_slice_codeunits(values, 0, length)
        rank = np.from_dlpack(pc.index_in(values, value_set=listed.dictionary).fill_null(NOWHERE))
        return listed, rank[self.codes[number]].astype(np.int64)


_NUMBERS = count()


def unique_name(stem: str) -> str:
    """Return a working name that no other pass uses."""
    return f"{stem}{next(_NUMBERS)}"


def _codes(column: pa.DictionaryArray) -> Any:
    """Return each row's index in the dictionary, which includes NULL."""
    return np.from_dlpack(column.indices)


@dataclass(frozen=True, slots=True)
class Passes:
    """The statements of plans and summaries over validated records."""

    store: Store
    schema: Schema

    def totals(
        self, plan: Plan, tables: tuple[PlannedTable, ...] | None = None
    ) -> tuple[TableTotals | FoundTotals, ...]:
        """The totals of the plan's tables, or of ``tables`` in their place."""
        asked = plan.tables() if tables is None else tables
        found: dict[tuple[int, int], TableTotals | FoundTotals] = {}
        for base in bases_of(asked, self.schema):
            with self.working_tables(base) as names:
                coded = self._fetch_cells(base, names)
                for table in base.tables:
                    found[table.query, table.level] = self._table(plan, base, table, names, coded)
        return tuple(found[table.query, table.level] for table in asked)

    def split_table(self, splitting: Splitting, condition: Predicate | None, at_most: int) -> Sensitive[pa.Table]:
        (pieces,) = self.store.of_records(pieces_count_tree(splitting, condition, self.schema)).to_pylist()
        if (pieces["rows"] or 0) > at_most:
            raise PlanError(problems=(f"the split table would have more than {at_most:,} rows; raise the thresholds",))
        return Sensitive(self.store.of_records(split_rows_tree(splitting, condition, self.schema)))

    def summarize(self, value: exp.Expr, edges: Sequence[float], condition: Predicate | None) -> Sensitive[pa.Table]:
        with self.lend_bands([value]):
            return Sensitive(self.store.of_records(histogram_tree(value, edges, self.schema, condition)))

    def summarize_firms(self, value: exp.Expr, edges: Sequence[float], bound: str) -> Sensitive[pa.Table]:
        with self.lend_bands([value]):
            return Sensitive(self.store.of_records(firm_histogram_tree(value, edges, self.schema, bound=bound)))

    @contextmanager
    def working_tables(self, base: Base) -> Iterator[Names]:
        """Yield working tables with the results of a base's passes."""
        names = Names(
            unique_name("cells"), tuple(unique_name("firms") for _ in base.firm_conditions()), unique_name("keys")
        )
        try:
            cells = cells_tree(base, self.schema)
            if cells is not None:
                self.store.store_cells(names.cells, cells)
            for name, condition in zip(names.firms, base.firm_conditions()):
                self.store.store_pairs(name, firms_tree(base, condition, self.schema))
            yield names
        finally:
            self.store.drop(names.cells, *names.firms, names.keys, rests_name(names.keys))

    @contextmanager
    def lend_bands(self, values: Sequence[exp.Expr]) -> Iterator[None]:
        """Lend the band tables of expressions to the store."""
        lent = {name: rows for table in bands_in(values) for name, rows in lent_bands(table).items()}
        try:
            for name, rows in lent.items():
                self.store.lend(name, rows)
            yield
        finally:
            self.store.drop(*lent)

    def lend_keys(self, name: str, table: PlannedTable, cells: pa.Table) -> int:
        """Lend the public cells to the store and return their number."""
        held: int = cells.num_rows if table.shape.groups else 1
        listed = cells if table.rest is None else listed_cells(cells)
        first = listed.num_rows if table.shape.groups else 1
        self._lend(name, "k", listed, np.arange(first))
        if table.rest is not None:
            self._lend(rests_name(name), "p", rest_keys(cells, table.shape, table.rest), np.arange(first, held))
        return held

    def _lend(self, name: str, letter: str, keys: pa.Table, positions: IntArray) -> None:
        columns = [*(f"{letter}{i}" for i in range(keys.num_columns)), POSITION]
        held = pa.Array.from_buffers(pa.int64(), len(positions), [None, pa.py_buffer(positions)])
        self.store.lend(name, pa.table([*keys.columns, held], columns))

    def _fetch_cells(self, base: Base, names: Names) -> CodedCells | None:
        """Fetch the finest cells for in-memory roll-ups, unless too many."""
        if not base.additive():
            return None
        counted = exp.select(exp.alias_(exp.Count(this=exp.Star()), "cells")).from_(names.cells)
        (found,) = self.store.of_cells(counted).to_pylist()
        if found["cells"] > MOST_CELLS:
            return None
        return CodedCells.of(self.store.of_cells(exp.select("*").from_(names.cells)), base, self.schema)

    def _table(
        self, plan: Plan, base: Base, table: PlannedTable, names: Names, coded: CodedCells | None
    ) -> TableTotals | FoundTotals:
        """Return totals at the public keys.

        Or at every cell that holds records if keys are selected.
        """
        selection = plan.selection(table)
        if selection is None:
            return self._totals_at(plan.cells(table), base, table, names, coded)
        found = self.store.of_cells(found_cells_tree(base, table, names, selection.total()))
        cells = typed_cells(found, table, self.schema)
        exact = self._totals_at(cells, base, table, names, coded)
        return FoundTotals(table=table, cells=Sensitive(cells), exact=exact.exact)

    def _totals_at(
        self, cells: pa.Table, base: Base, table: PlannedTable, names: Names, coded: CodedCells | None
    ) -> TableTotals:
        held = self.lend_keys(names.keys, table, cells)
        rolled = None if coded is None else coded.totals(table, cells, additive_columns(base, table))
        columns: dict[str, IntArray] = dict(rolled or {})
        for rows in self._rows_with_counts(base, table, names, sums=rolled is None):
            at = numpy_of(rows.column(POSITION))
            for name in rows.column_names:
                if name != POSITION:
                    columns[name] = scatter(at, integers(rows.column(name)), held)
        exact = ExactTable(
            cells=held,
            totals={total: columns[total_name(table, total)] for total in table.totals},
            bins={each: self._bins(table, each, names) for each in table.bins},
        )
        return TableTotals(table=table, cells=cells, exact=Sensitive(exact))

    def _rows_with_counts(self, base: Base, table: PlannedTable, names: Names, *, sums: bool) -> Iterator[pa.Table]:
        """Yield rows of firm counts, and of sums if needed."""
        additive = additive_tree(base, table, names, names.keys) if sums else None
        if additive is not None:
            yield self.store.of_cells(additive)
        firms = firm_counts_tree(base, table, names, names.keys)
        if firms is not None:
            yield self.store.of_records(firms)

    def _bins(self, table: PlannedTable, bins: CountBins, names: Names) -> BinCounts:
        """The records at each point of a grid, cell by cell."""
        measure, grid = self.schema.measure(bins.measure), unique_name("grid")
        assert measure is not None
        try:
            self.store.lend(grid, grid_table(bins, measure.step))
            return bin_counts(self.store.of_records(bins_tree(table, bins, self.schema, grid=grid, keys=names.keys)))
        finally:
            self.store.drop(grid)
