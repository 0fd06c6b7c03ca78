"""The interface between a session and its engine.

``DuckDB`` and ``Spark`` bind and check records; the rest is shared here. An engine also records what
identifies the validated files, so that it can refuse files that changed since.
"""

import os
import stat
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from recordwise.engines.compile.records import (
    BROKEN,
    DIFFERS,
    SOURCE,
    Check,
    StorageType,
    broken_tree,
    differing_tree,
    same_names,
    type_problem,
    validation_tree,
)
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
from recordwise.errors import EngineError, ExtraError, PlanError, RecordError, RecordwiseError, SourceError, near_name
from recordwise.plan.arrays import array_of, numpy_of
from recordwise.plan.describe import schema_of, used_schema
from recordwise.plan.expressions import Group, Level, Predicate, listed_cells, rest_keys
from recordwise.plan.keys.cells import arrow_type, cell_type, encode_column
from recordwise.plan.plan import (
    POSITION,
    FoundTotals,
    Plan,
    PlannedTable,
    Sensitive,
    TableTotals,
    bin_counts,
    integer_bits,
    integers,
    scatter,
    total_name,
)
from recordwise.plan.schema import COLLAPSE_RULES, Schema
from recordwise.plan.sources import (
    NO_HEADER,
    STAT_ENDINGS,
    Database,
    Postgres,
    StatFiles,
    folder_files,
    look_like_values,
)
from recordwise.plan.statistics import BinCounts, CountBins, ExactTable
from recordwise.plan.statistics.totals import IntArray, Splitting

if TYPE_CHECKING:
    from recordwise.engines.owner import OwnerPasses


# The passes that all engines share, and the interface to wherever an engine stores records and cells: exact totals in one pass for
# the finest cells, then roll-ups.


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
        from recordwise.engines.compile.owner import histogram_tree

        with self.lend_bands([value]):
            return Sensitive(self.store.of_records(histogram_tree(value, edges, self.schema, condition)))

    def summarize_firms(self, value: exp.Expr, edges: Sequence[float], bound: str) -> Sensitive[pa.Table]:
        from recordwise.engines.compile.owner import firm_histogram_tree

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
        from recordwise.engines.compile.owner import lent_bands
        from recordwise.policy.evaluate.sql import bands_in

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


# The engine.


Mark = tuple[int, int, int]


def file_marks(paths: Iterable[Path]) -> tuple[Mark, ...]:
    """Return number, size and change time of each file.

    The change time, unlike the modification time, cannot be set back. For a folder: the names of its files,
    which have marks too.
    """
    try:
        return tuple(_mark(path) for path in paths)
    except OSError:
        raise SourceError(source="the source", problem="a file of it can no longer be read") from None


def _mark(path: Path) -> Mark:
    found = os.stat(path)
    if stat.S_ISDIR(found.st_mode):
        names = folder_files(path)
        return found.st_ino, len(names), hash(names)
    return found.st_ino, found.st_size, found.st_ctime_ns


def watched_files(source: Any) -> tuple[Path, ...]:
    """Return the files that must not change after validation."""
    if isinstance(source, Database):
        return (Path(source.path),)
    paths: tuple[Path, ...] = getattr(source, "paths", ())
    folder = getattr(source, "folder", None)
    return paths if folder is None else (folder, *paths)


MOST_PIECES = 100_000_000


class Engine(ABC):
    """A table of records.

    Opening it reads no record; the first operation on records validates them all. Records are read only as they
    were validated: the files must not change between validation and the end of a pass. Threads that share an
    engine take turns.
    """

    dialect: ClassVar[str]
    """The SQL dialect in which ``value`` of a summary must be written."""

    def __init__(self, passes: Passes, *, files: Sequence[Path]) -> None:
        self.schema: Schema = passes.schema
        self._passes = passes
        self._files = tuple(files)
        self._validated: tuple[Mark, ...] | None = None
        self._checked: frozenset[str] = frozenset()
        self._turn = threading.RLock()

    @abstractmethod
    def _check_records(self, schema: Schema) -> None:
        """Raise ``DataError`` if a record breaks this part of the schema.

        With counts and column names.
        """

    @abstractmethod
    def _release(self) -> None:
        """Close everything that was opened."""

    def close(self) -> None:
        """Close everything that was opened, after any pass that is in progress."""
        with self._turn:
            self._release()

    def validate(self, names: Iterable[str] | None = None) -> None:
        """Raise ``DataError`` if a record breaks the schema.

        With counts and column names; reads every record once. Ids are always checked; of measures and columns those
        in ``names``, or all. A table that is refused counts as not validated, whatever it was before.
        """
        with self._turn, self._masking_errors():
            wanted = self._checked.union(self.schema.declared_names() if names is None else names)
            self._validated, before = None, file_marks(self._files)
            self._check_records(schema_of(self.schema, set(wanted)))
            self._validated, self._checked = before, wanted

    def totals(
        self, plan: Plan, *, names: Iterable[str] | None = None, tables: tuple[PlannedTable, ...] | None = None
    ) -> tuple[TableTotals | FoundTotals, ...]:
        """Return the exact totals of every table of a plan.

        In the plan's order, or of ``tables`` with its keys. Measures and columns that the plan does not use are not
        validated, unless they are in ``names``.
        """
        used = (*used_schema(plan).declared_names(), *(names or ()))
        with self._reading(plan.schema, used) as passes:
            return passes.totals(plan, tables)

    def split_table(
        self, splitting: Splitting, *, condition: Predicate | None = None, at_most: int = MOST_PIECES
    ) -> Sensitive[pa.Table]:
        """The unit-split rows themselves, measures in steps, for an external mechanism.

        These ARE records: with Spark they travel to the driver, and no other result does.
        """
        with self._reading(self.schema) as passes:
            return passes.split_table(splitting, condition, at_most)

    def summarize(
        self, value: exp.Expr, edges: Sequence[float], *, condition: Predicate | None = None
    ) -> Sensitive[pa.Table]:
        """Return a histogram of a number computed from each record.

        Bin i counts edges[i-1] < value <= edges[i]. For the owner only.
        """
        with self._reading(self.schema) as passes:
            return passes.summarize(value, edges, condition)

    def summarize_firms(self, value: exp.Expr, edges: Sequence[float], *, bound: str = "tight") -> Sensitive[pa.Table]:
        """Return a histogram of the joint loss of each firm.

        From the losses of its units. For the owner only.
        """
        with self._reading(self.schema) as passes:
            return passes.summarize_firms(value, edges, bound)

    def owner_passes(self) -> "OwnerPasses":
        """The passes that answer the owner's questions while planning."""
        from recordwise.engines.owner import OwnerPasses

        return OwnerPasses(partial(self._reading, self.schema))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _reading(self, schema: Schema, names: Iterable[str] | None = None) -> Iterator[Passes]:
        """Run one exclusive pass over validated, unchanged records."""
        with self._turn, self._masking_errors():
            self._ready(schema, names)
            yield self._passes
            self._check_unchanged()

    @contextmanager
    def _masking_errors(self) -> Iterator[None]:
        """Hide exceptions that may quote records, except their type."""
        try:
            yield
        except RecordwiseError:
            raise
        except Exception as error:
            raise EngineError(engine=self.dialect, kind=type(error).__name__) from None

    def _ready(self, schema: Schema, names: Iterable[str] | None = None) -> None:
        if schema != self.schema:
            raise PlanError(problems=("the plan was made for a different schema",))
        wanted = frozenset(schema.declared_names() if names is None else names)
        if self._validated is None or not wanted <= self._checked:
            self.validate(wanted)
        self._check_unchanged()

    def _check_unchanged(self) -> None:
        if self._validated != file_marks(self._files):
            raise SourceError(source="the source", problem="its files have changed since they were validated")


# What validation counted, as problems with the names of columns and without a value; the same words on every engine.


MOST_NAMED = 40
NOT_SHOWN = "The first line must hold the names of the columns. It may be a record, so it is not shown."
REPEATS = "repeats an id that must be unique"


def check_present(wanted: Iterable[str], present: Sequence[str], *, source: str = "the source") -> None:
    """Refuse a source without a declared column, listing its columns."""
    missing = [name for name in wanted if name not in present]
    if not missing:
        return
    if look_like_values(present):
        raise SourceError(source=source, problem=f"it has no column {', '.join(missing)}", advice=NO_HEADER)
    near = near_name(missing[0], present)
    more = "" if len(present) <= MOST_NAMED else f" and {len(present) - MOST_NAMED} more"
    listed = ", ".join(present[:MOST_NAMED]) + more if present else "none"
    raise SourceError(
        source=source,
        problem=f"it has no column {', '.join(missing)}{near}",
        advice=f"Its columns: {listed}.",
    )


def check_header(wanted: Iterable[str], first_line: Sequence[str]) -> None:
    """Refuse CSV without a declared column.

    Its first line is shown only if it holds half of the declared names; otherwise it may be a record.
    """
    declared = list(wanted)
    missing = [name for name in declared if name not in first_line]
    folded = {name.casefold() for name in first_line}
    if 2 * sum(name.casefold() in folded for name in declared) >= len(declared):
        check_present(declared, first_line)
    elif missing:
        raise SourceError(
            source="the source", problem=f"its first line has no column {', '.join(missing)}", advice=NOT_SHOWN
        )


def repeats(schema: Schema, count: int) -> list[RecordError]:
    """Return the problem of ids that repeat, with the ways out by the schema's own columns."""
    if not count:
        return []
    others = [name for name in schema.column_names() if name not in schema.unit_columns]
    held = [measure.name for measure in schema.record_measures()]
    rules = [*(f'{name} = "sum"' for name in held), *(f'{name} = "same"' for name in others)]
    other = next(iter(others), "ANOTHER")
    pair = ", ".join(f'"{name}"' for name in (*schema.unit_columns, other))
    advice = (
        f"If a unit has several rows, make them one record: collapse = {{ {', '.join(rules)} }}. If its rows are different units, "
        f"name the columns that tell them apart: unit = [{pair}]; then only each combination is protected, not {schema.unit_text}."
    )
    return [RecordError(column=schema.unit_text, problem=REPEATS, count=count, advice=advice)]


def check_types(schema: Schema, stored: Mapping[str, StorageType]) -> None:
    """Refuse all columns stored in ways their roles cannot use."""
    roles = [(measure.name, "measure") for measure in schema.record_measures()]
    roles += [(column.name, str(column.type)) for column in schema.columns]
    found = [problem for name, role in roles if (problem := type_problem(name, role, stored[name])) is not None]
    if len(found) == 1:
        raise found[0]
    if found:
        told = "; ".join(f"{each.source}: {each.problem}" for each in found)
        advice = " ".join(dict.fromkeys(each.advice for each in found if each.advice))
        raise SourceError(source="the source", problem=told, advice=advice)


def broken_rows(
    fetch: Callable[[exp.Expr], pa.Table],
    found: list[Check],
    table: str = SOURCE,
    *,
    counted: str = "row",
    met: int | None = None,
) -> list[RecordError]:
    """Return a problem for each check that rows meet.

    With the number of rows or units. One count for all checks comes first, unless it is known: most tables have
    nothing else to count.
    """
    if not found:
        return []
    if met is None:
        (counts,) = fetch(broken_tree(found, table)).to_pylist()
        met = counts[BROKEN]
    if not met:
        return []
    (counts,) = fetch(validation_tree(found, table)).to_pylist()
    return [
        RecordError(
            column=check.column,
            problem=check.problem,
            count=counts[f"c{number}"],
            counted=counted,
            code=check.code,
            advice=check.advice,
        )
        for number, check in enumerate(found)
        if counts[f"c{number}"]
    ]


def differing_units(fetch: Callable[[exp.Expr], pa.Table], schema: Schema) -> list[RecordError]:
    """Return the columns in which rows of a unit wrongly differ."""
    names = same_names(schema)
    (counts,) = fetch(differing_tree(schema, names)).to_pylist()
    return [
        RecordError(
            column=name,
            problem=DIFFERS,
            count=counts[f"d{number}"],
            counted="unit",
            advice=_differing_advice(schema, name),
        )
        for number, name in enumerate(names)
        if counts[f"d{number}"]
    ]


def _differing_advice(schema: Schema, name: str) -> str:
    """Say what to do about a column that differs within a unit."""
    column = schema.column(name)
    others = [rule for rule in COLLAPSE_RULES.get(column.type if column else "", ()) if rule != "same"]
    rule = f"give it another rule, {name} = {' or '.join(map(repr, others))} under collapse; " if others else ""
    pair = ", ".join(f'"{each}"' for each in (*schema.unit_columns, name))
    return (
        f"Ways out for {name}: {rule}leave it out of the schema; or make it part of the id, unit = [{pair}]: then only each "
        f"combination is protected, not {schema.unit_text}."
    )


# Optional dependencies: which source needs which, whether it is installed, and the command that installs it.


MODULES = {"postgres": "adbc_driver_postgresql", "stat": "pyreadstat", "spark": "pyspark"}
NEEDS = {"postgres": "a PostgreSQL source", "stat": "a source of SAS, Stata or SPSS", "spark": "engine 'spark'"}


def load_optional(module: str, *, extra: str) -> Any:
    """Import an optional module when it is first needed."""
    try:
        return import_module(module)
    except ImportError:
        raise ExtraError(what=NEEDS[extra], extra=extra) from None


def missing_extra(given: Any, *, of_engine: str | None = None) -> ExtraError | None:
    """Return the missing extra of an engine or source, or None."""
    extra = of_engine or _extra_of(given)
    if extra is None or find_spec(MODULES[extra]) is not None:
        return None
    return ExtraError(what=NEEDS[extra], extra=extra)


def _extra_of(given: Any) -> str | None:
    if isinstance(given, Postgres):
        return "postgres"
    named = given if isinstance(given, list | tuple) else [given]
    stat = isinstance(given, StatFiles) or any(str(each).lower().endswith(STAT_ENDINGS) for each in named)
    return "stat" if stat else None
