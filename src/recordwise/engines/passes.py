"""From a plan to exact totals, the same way in every engine: fill the finest cells in one pass, roll them up, meet the keys."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

import numpy as np
import pyarrow as pa
from sqlglot import exp

from recordwise.engines.results import FoundTotals, TableTotals
from recordwise.engines.rolling import MOST_CELLS, CodedCells
from recordwise.engines.store import Store
from recordwise.engines.wide import scatter, words
from recordwise.errors import PlanError
from recordwise.plan.bases import Base, bases_of
from recordwise.plan.beside import beside_tree
from recordwise.plan.bin_trees import bins_tree, grid_table
from recordwise.plan.found_cells import found_cells_tree, typed_cells
from recordwise.plan.lowering import (
    POSITION,
    Names,
    additive_columns,
    additive_tree,
    cells_tree,
    firm_counts_tree,
    firms_tree,
    total_name,
)
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.plan.predicates import Predicate
from recordwise.plan.schema import Schema
from recordwise.plan.split_rows import pieces_count_tree, split_rows_tree
from recordwise.plan.splitting import Splitting
from recordwise.plan.summaries import firm_histogram_tree, histogram_tree
from recordwise.plan.totals import CountBins
from recordwise.sensitive import Sensitive

_NUMBERS = count()


def own_name(stem: str) -> str:
    """A working name that no other pass has, so that no two could mistake each other's tables even if they met."""
    return f"{stem}{next(_NUMBERS)}"


@dataclass(frozen=True, slots=True)
class Passes:
    """The statements of plans and summaries, run on a store of validated records."""

    store: Store
    schema: Schema

    def totals(self, plan: Plan) -> tuple[TableTotals | FoundTotals, ...]:
        found: dict[tuple[int, int], TableTotals | FoundTotals] = {}
        for base in bases_of(plan.tables()):
            with self.filled(base) as names:
                coded = self._coded(base, names)
                for table in base.tables:
                    found[table.query, table.level] = self._table(plan, base, table, names, coded)
        return tuple(found[table.query, table.level] for table in plan.tables())

    def split_table(self, splitting: Splitting, condition: Predicate | None, at_most: int) -> Sensitive[pa.Table]:
        (pieces,) = self.store.of_records(pieces_count_tree(splitting, condition, self.schema)).to_pylist()
        if (pieces["rows"] or 0) > at_most:
            raise PlanError(problems=(f"the split table would have more than {at_most:,} rows; raise the thresholds",))
        return Sensitive(self.store.of_records(split_rows_tree(splitting, condition, self.schema)))

    def summarise(self, value: exp.Expr, edges: Sequence[float], condition: Predicate | None) -> Sensitive[pa.Table]:
        return Sensitive(self.store.of_records(histogram_tree(value, edges, self.schema, condition)))

    def summarise_firms(self, value: exp.Expr, edges: Sequence[float], bound: str) -> Sensitive[pa.Table]:
        return Sensitive(self.store.of_records(firm_histogram_tree(value, edges, self.schema, bound=bound)))

    def summarise_beside_totals(
        self, plan: Plan, table: PlannedTable, value: exp.Expr, edges: Sequence[float]
    ) -> Sensitive[pa.Table]:
        (base,) = bases_of((table,))
        with self.filled(base) as names:
            self.lend_keys(names.keys, table, plan.cells(table))
            tree = beside_tree(value, edges, base, table, names, names.keys, self.schema)
            return Sensitive(self.store.of_records(tree))

    @contextmanager
    def filled(self, base: Base) -> Iterator[Names]:
        """The passes of a base in working tables, which go away again whatever happens."""
        names = Names(own_name("cells"), tuple(own_name("firms") for _ in base.firm_conditions()), own_name("keys"))
        try:
            cells = cells_tree(base, self.schema)
            if cells is not None:
                self.store.keep_cells(names.cells, cells)
            for name, condition in zip(names.firms, base.firm_conditions()):
                self.store.keep_pairs(name, firms_tree(base, condition, self.schema))
            yield names
        finally:
            self.store.drop(names.cells, *names.firms, names.keys)

    def lend_keys(self, name: str, table: PlannedTable, cells: pa.Table) -> int:
        """Make the public cells a table of the store; how many there are."""
        held: int = cells.num_rows if table.shape.groups else 1
        columns = [*(f"k{i}" for i in range(cells.num_columns)), POSITION]
        self.store.lend(name, pa.table([*cells.columns, pa.array(np.arange(held))], columns))
        return held

    def _coded(self, base: Base, names: Names) -> CodedCells | None:
        """The finest cells brought here to be rolled up, if they are not too many."""
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
        """Totals at the public keys, or at every cell that holds records where keys are selected."""
        selection = plan.selection(table)
        if selection is None:
            return self._totals_at(plan.cells(table), base, table, names, coded)
        found = self.store.of_cells(found_cells_tree(base, table, names, selection.total()))
        cells = typed_cells(found, table, self.schema)
        exact = self._totals_at(cells, base, table, names, coded)
        return FoundTotals(table=table, cells=Sensitive(cells), totals=exact.totals, bins=exact.bins)

    def _totals_at(
        self, cells: pa.Table, base: Base, table: PlannedTable, names: Names, coded: CodedCells | None
    ) -> TableTotals:
        held = self.lend_keys(names.keys, table, cells)
        rolled = None if coded is None else coded.totals(table, cells, additive_columns(base, table))
        columns: dict[str, pa.Array] = dict(rolled or {})
        for rows in self._counted(base, table, names, sums=rolled is None):
            at = rows.column(POSITION).to_numpy()
            for name in rows.column_names:
                if name != POSITION:
                    columns[name] = scatter(at, words(rows.column(name)), held)
        ordered = {name: columns[name] for name in (total_name(table, total) for total in table.totals)}
        bins = tuple(self._bins(table, each, names) for each in table.bins)
        return TableTotals(table=table, cells=cells, totals=Sensitive(pa.table(ordered)), bins=bins)

    def _counted(self, base: Base, table: PlannedTable, names: Names, *, sums: bool) -> Iterator[pa.Table]:
        """Rows of the numbers of firms, and of the sums too unless they are known."""
        additive = additive_tree(base, table, names, names.keys) if sums else None
        if additive is not None:
            yield self.store.of_cells(additive)
        firms = firm_counts_tree(base, table, names, names.keys)
        if firms is not None:
            yield self.store.of_records(firms)

    def _bins(self, table: PlannedTable, bins: CountBins, names: Names) -> Sensitive[pa.Table]:
        """The records at each point of a grid, cell by cell."""
        measure, grid = self.schema.measure(bins.measure), own_name("grid")
        assert measure is not None
        try:
            self.store.lend(grid, grid_table(bins.grid, measure.step))
            return Sensitive(self.store.of_records(bins_tree(table, bins, self.schema, grid=grid, keys=names.keys)))
        finally:
            self.store.drop(grid)
