"""DuckDB: one exact pass over the records, in bounded memory, locked to the files it was given."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from recordwise.engines.binding import bind
from recordwise.engines.connection import Connection
from recordwise.engines.copying import COPIED, copy_records
from recordwise.engines.results import FoundTotals, TableTotals
from recordwise.engines.sources import CsvFiles, ParquetFiles, SasFiles, open_source
from recordwise.engines.wide import scatter, words
from recordwise.errors import DataError, PlanError, RecordError, SourceError
from recordwise.plan.bases import Base, bases_of
from recordwise.plan.beside import beside_tree
from recordwise.plan.bin_trees import bins_tree, grid_table
from recordwise.plan.found_cells import found_cells_tree, typed_cells
from recordwise.plan.lowering import POSITION, Names, cells_tree, firms_tree, total_name, totals_trees
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.plan.predicates import Predicate
from recordwise.plan.records import Stored, checks, records_tree, type_problem, validation_tree
from recordwise.plan.schema import Schema
from recordwise.plan.split_rows import pieces_count_tree, split_rows_tree
from recordwise.plan.splitting import Splitting
from recordwise.plan.summaries import firm_histogram_tree, histogram_tree
from recordwise.plan.totals import CountBins
from recordwise.sensitive import Sensitive

DEFAULT_MEMORY = "700MB"
MOST_PIECES = 100_000_000
KEYS = "public_keys"
GRID = "public_grid"


class DuckDB:
    """A table of records behind DuckDB. Opening reads no record; the first thing that needs records validates them all."""

    def __init__(
        self, source: Any, schema: Schema, *, memory_limit: str = DEFAULT_MEMORY, threads: int | None = None
    ) -> None:
        self.schema = schema
        self._source = open_source(source)
        files = self._source.paths if isinstance(self._source, ParquetFiles | CsvFiles) else ()
        self._files: tuple[Path, ...] = self._source.paths if isinstance(self._source, SasFiles) else files
        self._connection = Connection(files=files, memory_limit=memory_limit, threads=threads)
        self._validated: tuple[tuple[int, int, int], ...] | None = None
        self._prepared = False
        try:
            self._stored = self._bound()
        except BaseException:
            self.close()
            raise

    def _bound(self) -> dict[str, Stored]:
        """How each column is stored, if its role can use it."""
        stored = bind(self._connection, self._source, self.schema)
        roles = [(measure.name, "measure") for measure in self.schema.measures]
        for name, role in roles + [(each.name, str(each.type)) for each in self.schema.columns]:
            problem = type_problem(name, role, stored[name])
            if problem is not None:
                raise problem
        return stored

    def validate(self) -> None:
        """Read every record once; raise ``DataError`` with counts and column names if one breaks the schema."""
        before = self._fingerprint()
        self._prepare()
        found = list(checks(self.schema, self._stored))
        counts = self._connection.fetch(validation_tree(found, self.schema)).to_pylist()[0]
        problems = [
            RecordError(column=check.column, problem=check.problem, count=counts[f"c{number}"])
            for number, check in enumerate(found)
            if counts[f"c{number}"]
        ]
        if counts["repeated"]:
            repeated = "repeats an id that must be unique"
            problems.append(RecordError(column=self.schema.unit, problem=repeated, count=counts["repeated"]))
        if problems:
            raise DataError(problems=tuple(problems))
        self._validated = before

    def _prepare(self) -> None:
        """The view every query reads; records that are elsewhere are copied first, once."""
        if not self._prepared:
            if isinstance(self._source, COPIED):
                copy_records(self._connection, self._source, self.schema, self._stored)
            self._connection.run(records_tree(self.schema, self._stored))
        self._prepared = True

    def totals(self, plan: Plan) -> tuple[TableTotals | FoundTotals, ...]:
        """The exact totals of every table of a plan, in the plan's order."""
        self._ready(plan.schema)
        found: dict[tuple[int, int], TableTotals | FoundTotals] = {}
        for number, base in enumerate(bases_of(plan.tables())):
            names = self._fill(base, number)
            for table in base.tables:
                found[table.query, table.level] = self._table(plan, base, table, names)
            self._clear(names)
        self._check_unchanged()
        return tuple(found[table.query, table.level] for table in plan.tables())

    def split_table(
        self, splitting: Splitting, *, condition: Predicate | None = None, at_most: int = MOST_PIECES
    ) -> Sensitive[pa.Table]:
        """The unit-split rows themselves, measures in steps, for a foreign mechanism."""
        self._ready(self.schema)
        rows = self._connection.fetch(pieces_count_tree(splitting, condition, self.schema)).to_pylist()[0]["rows"]
        if (rows or 0) > at_most:
            raise PlanError(problems=(f"the split table would have more than {at_most:,} rows; raise the thresholds",))
        return Sensitive(self._connection.fetch(split_rows_tree(splitting, condition, self.schema)))

    def summarise(
        self, value: exp.Expr, edges: Sequence[float], *, condition: Predicate | None = None
    ) -> Sensitive[pa.Table]:
        """A histogram of a number of each record: bin i counts edges[i-1] < value <= edges[i]. For the owner only."""
        self._ready(self.schema)
        return Sensitive(self._connection.fetch(histogram_tree(value, edges, self.schema, condition)))

    def summarise_firms(self, value: exp.Expr, edges: Sequence[float], *, bound: str = "tight") -> Sensitive[pa.Table]:
        """A histogram of the joint loss of each firm, from the losses of its units. For the owner only."""
        self._ready(self.schema)
        return Sensitive(self._connection.fetch(firm_histogram_tree(value, edges, self.schema, bound=bound)))

    def summarise_beside_totals(
        self, plan: Plan, table: PlannedTable, value: exp.Expr, edges: Sequence[float]
    ) -> Sensitive[pa.Table]:
        """A histogram over the records of a table's public cells, of a value that may use its cell's ``total0``, ``total1``...

        For realised losses: (change of the answer)^2/(2 sigma^2), say. For the owner only.
        """
        self._ready(plan.schema)
        (base,) = bases_of((table,))
        names = self._fill(base, 0)
        self._register_keys(table, plan.cells(table))
        found = self._connection.fetch(beside_tree(value, edges, base, table, names, KEYS, self.schema))
        self._clear(names)
        return Sensitive(found)

    def close(self) -> None:
        """Close the connection and remove what it spilled."""
        self._connection.close()

    def __enter__(self) -> "DuckDB":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ready(self, schema: Schema) -> None:
        """Records are read only as validated: same schema, same files."""
        if schema != self.schema:
            raise PlanError(problems=("the plan was made for another schema",))
        if self._validated is None:
            self.validate()
        self._check_unchanged()

    def _check_unchanged(self) -> None:
        if self._validated != self._fingerprint():
            raise SourceError(source="the source", problem="its files changed since they were validated")

    def _fingerprint(self) -> tuple[tuple[int, int, int], ...]:
        status = [os.stat(path) for path in self._files]
        return tuple((each.st_ino, each.st_size, each.st_mtime_ns) for each in status)

    def _fill(self, base: Base, number: int) -> Names:
        """Run the passes of a base into temporary tables."""
        names = Names(f"cells{number}", tuple(f"firms{number}_{i}" for i in range(len(base.firm_conditions()))))
        cells = cells_tree(base, self.schema)
        if cells is not None:
            self._connection.run(_temporary_table(names.cells, cells))
        for name, condition in zip(names.firms, base.firm_conditions()):
            self._connection.run(_temporary_table(name, firms_tree(base, condition, self.schema)))
        return names

    def _clear(self, names: Names) -> None:
        for name in (names.cells, *names.firms):
            self._connection.run(exp.Drop(tables=[exp.to_table(name)], kind="TABLE", exists=True))
        self._connection.duckdb.unregister(KEYS)

    def _register_keys(self, table: PlannedTable, cells: pa.Table) -> int:
        """Make the public cells a table of the connection; how many there are."""
        count: int = cells.num_rows if table.shape.groups else 1
        names = [*(f"k{i}" for i in range(cells.num_columns)), POSITION]
        self._connection.duckdb.register(KEYS, pa.table([*cells.columns, pa.array(np.arange(count))], names))
        return count

    def _table(self, plan: Plan, base: Base, table: PlannedTable, names: Names) -> TableTotals | FoundTotals:
        """Totals at the public keys, or at every cell that holds records where keys are selected."""
        selection = plan.selection(table)
        if selection is None:
            return self._totals_at(plan.cells(table), base, table, names)
        found = self._connection.fetch(found_cells_tree(base, table, names, selection.total()))
        cells = typed_cells(found, table, self.schema)
        exact = self._totals_at(cells, base, table, names)
        return FoundTotals(table=table, cells=Sensitive(cells), totals=exact.totals, bins=exact.bins)

    def _totals_at(self, cells: pa.Table, base: Base, table: PlannedTable, names: Names) -> TableTotals:
        count = self._register_keys(table, cells)
        columns: dict[str, pa.Array] = {}
        for tree in totals_trees(base, table, names, KEYS):
            rows = self._connection.fetch(tree)
            at = rows.column(POSITION).to_numpy()
            for name in rows.column_names:
                if name != POSITION:
                    columns[name] = scatter(at, words(rows.column(name)), count)
        ordered = {name: columns[name] for name in (total_name(table, total) for total in table.totals)}
        bins = tuple(self._bins(table, each) for each in table.bins)
        return TableTotals(table=table, cells=cells, totals=Sensitive(pa.table(ordered)), bins=bins)

    def _bins(self, table: PlannedTable, bins: CountBins) -> Sensitive[pa.Table]:
        """The records at each point of a grid, cell by cell."""
        measure = self.schema.measure(bins.measure)
        assert measure is not None
        self._connection.duckdb.register(GRID, grid_table(bins.grid, measure.step))
        rows = self._connection.fetch(bins_tree(table, bins, self.schema, grid=GRID, keys=KEYS))
        self._connection.duckdb.unregister(GRID)
        return Sensitive(rows)


def _temporary_table(name: str, select: exp.Expr) -> exp.Expr:
    temporary = exp.Properties(expressions=[exp.TemporaryProperty()])
    return exp.Create(this=exp.to_table(name), kind="TABLE", expression=select, properties=temporary)
