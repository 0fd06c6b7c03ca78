"""The nesting of a query's tables, and their remainders.

Which cell of a coarser table contains a cell of a finer one. Public keys need not list every cell, so a
coarser total may include records of no published finer cell: each published coarser cell gets one unpublished
cell for that remainder, unless the keys are declared complete or the remainder is itself published. A record
in an unlisted pair of listed codes is in the remainders of two tables that cross (``fitted_cells``). All of
this is read from the release's description, so it also works on saved files.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.plan.arrays import array_of, null_as, numpy_of, texts_of
from recordwise.plan.expressions import ALL_OTHER, Field, Prefix
from recordwise.plan.keys.bands import KeyColumn, bands_of_cells
from recordwise.plan.keys.cells import encode_column
from recordwise.policy.bands import BandTable
from recordwise.policy.columns import ConditionColumn, literal, plain_value
from recordwise.postprocess import rounding
from recordwise.postprocess.linear import AnswerTree, Crossing, tree_of
from recordwise.postprocess.solvers.crossed import grid_workload
from recordwise.postprocess.solvers.trees import joint_labels
from recordwise.postprocess.top_down import Forest, Grid
from recordwise.postprocess.workload import Workload
from recordwise.release.published import (
    CodeLists,
    Groups,
    Published,
    PublishedGroup,
    PublishedQuery,
    PublishedStatistic,
    PublishedTable,
)
from recordwise.release.release import Release
from recordwise.release.tables import ReleasedTable

if TYPE_CHECKING:
    from recordwise.mechanisms.sized import ByGroup
    from recordwise.noise.stated import StatedGroups

IntArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
BoolArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
SEPARATOR = "\x1f"
OUTSIDE = -1
NO_LISTS = CodeLists()


def source_of(group: PublishedGroup, finer: Groups) -> PublishedGroup | None:
    """Return the finer column that determines a group, or None."""
    return next((each for each in finer if each.determines(group)), None)


def nests(coarser: Groups, finer: Groups) -> bool:
    """Return whether every finer cell lies in one coarser cell."""
    return all(source_of(group, finer) is not None for group in coarser)


def finest_of(shapes: Sequence[Groups]) -> int | None:
    """The table in which all are nested; None if there is none."""
    order = sorted(range(len(shapes)), key=lambda at: len(shapes[at]), reverse=True)
    return next((at for at in order if all(nests(other, shapes[at]) for other in shapes)), None)


def parents(
    coarser: ReleasedTable, coarser_by: Groups, finer: ReleasedTable, finer_by: Groups, lists: CodeLists = NO_LISTS
) -> IntArray:
    """Return each finer row's coarser row, or ``OUTSIDE`` if unpublished."""
    if not coarser_by:
        return np.zeros(finer.data.num_rows, dtype=np.int64)
    derived = []
    for group in coarser_by:
        source = source_of(group, finer_by)
        assert source is not None
        derived.append(_coarser_values(group, source, finer.data.column(source.name), lists))
    # No finer cell lies in an "all other" cell, whose key may look like that of a listed one.
    listed = np.flatnonzero(~rest_rows(coarser))
    own = [coarser.data.column(group.name).take(array_of(listed)) for group in coarser_by]
    found = np.asarray(null_as(pc.index_in(_cell_texts(derived), value_set=_cell_texts(own)), OUTSIDE), np.int64)
    return np.where(found == OUTSIDE, OUTSIDE, listed[found] if len(listed) else OUTSIDE)


def _coarser_values(group: PublishedGroup, source: PublishedGroup, column: pa.ChunkedArray, lists: CodeLists) -> Any:
    """The values of a group, from the column that determines it."""
    if isinstance(group.expression, Prefix):
        return pc.utf8_slice_codeunits(column, 0, group.expression.length)
    return column if group.hierarchy is None or source == group else lists.above(group, str(source.level), column)


def complete_rows(
    coarser: ReleasedTable, coarser_by: Groups, finer: ReleasedTable, finer_by: Groups, lists: CodeLists
) -> BoolArray:
    """Return the cells that a finer table lists completely.

    It lists everything that a public list of codes has below them: no record of theirs can be elsewhere, since a
    record whose code is not listed is in no cell of any level (T-HIERARCHY).
    """
    wanted = np.ones(coarser.data.num_rows)
    for own in finer_by:
        above = [group for group in coarser_by if source_of(group, [own]) is not None]
        if own in above:
            continue
        if len(above) != 1 or above[0].hierarchy is None:
            return np.zeros(len(wanted), dtype=bool)
        column = coarser.data.column(above[0].name)
        wanted *= lists.count_below(above[0], str(own.level), column)
    up = parents(coarser, coarser_by, finer, finer_by, lists)
    listed = np.bincount(up[up != OUTSIDE], minlength=len(wanted))
    return np.asarray((listed == wanted) & ~rest_rows(coarser), bool)


def rest_rows(table: ReleasedTable) -> BoolArray:
    """Which rows are the published rest of a coarser cell."""
    if ALL_OTHER not in table.keys:
        return np.zeros(table.data.num_rows, dtype=bool)
    return np.asarray(numpy_of(table.data.column(ALL_OTHER)), bool)


def _cell_texts(columns: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    """Return one text per cell, with a special text for NULL."""
    # Arrow looks for pandas to turn a text into a value of its own.
    nothing, between = texts_of(["\x00", SEPARATOR])
    texts = [pc.fill_null(pc.cast(column, pa.string()), nothing) for column in columns]
    return texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, between)


@dataclass(frozen=True, kw_only=True, eq=False)
class Nesting:
    """The tables of one query, finest first, and its cells.

    Those of the finest table, the "all other" cells of the others, and the unpublished remainders.
    """

    tables: tuple[ReleasedTable, ...]
    cells: "Cells"
    query: PublishedQuery
    published: Published
    bands: Mapping[str, BandTable]

    @cached_property
    def rows(self) -> Any:
        """Every published cell as a sum of cells, table by table."""
        found = self.cells.rows(
            self.tables, {name: table.by for name, table in self.described.items()}, self.published.lists
        )
        # The texts of keys by which cells were matched are gone; fits need the memory.
        pa.default_memory_pool().release_unused()
        return found

    @property
    def statistics(self) -> tuple[PublishedStatistic, ...]:
        """The statistics of the query."""
        return self.query.statistics

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The number of cells of each table."""
        return {table.name: table.data.num_rows for table in self.tables}

    @cached_property
    def described(self) -> dict[str, PublishedTable]:
        """The tables by name, as release.json describes them."""
        return {table.name: table for table in self.query.tables}

    @property
    def finest_count(self) -> int:
        """The number of cells that belong to the finest table."""
        return int(self.tables[0].data.num_rows)

    @cached_property
    def signed(self) -> frozenset[str]:
        """The measures that may be negative."""
        return frozenset(name for name, each in self.published.measures.items() if each.signed)

    @property
    def undetermined(self) -> bool:
        """Whether cells are as many as answers, leaving linear fits unchanged."""
        return bool(self.rows.shape[0] == self.rows.shape[1])

    @cached_property
    def tree(self) -> AnswerTree | None:
        """The answers as a tree; None if tables cross."""
        return tree_of(self.rows)

    @cached_property
    def crossing(self) -> Crossing:
        """The answers as tables that cross."""
        by = {name: table.by for name, table in self.described.items()}
        return Crossing.of(self.rows, list(self.sizes.values()), cell_axes(self.tables, by, self.published.lists))

    @cached_property
    def workload(self) -> Workload:
        """The answers with a cell, whose system all statistics share."""
        grid = None if self.crossed is None else grid_workload(*self.crossed)
        if grid is not None:
            return grid
        asked = np.diff(self.rows.indptr) > 0
        sizes = zip(self.sizes, self.by_table(asked))
        groups = {name: int(np.sum(part)) for name, part in sizes if np.any(part)}
        return Workload.matrix(sparse.csr_array(self.rows[asked]), groups)

    @cached_property
    def crossed(self) -> tuple[tuple[int, int], dict[str, IntArray]] | None:
        """The grid of two fully crossed codes and every cell's answer by table, or None."""
        keys, tables = self.tables[0].keys, len(self.tables)
        if len(keys) != 2 or self.remainders or ALL_OTHER in keys:
            return None
        first, second = (numpy_of(encode_column(self.tables[0].data.column(name)).indices) for name in keys)
        shape = (int(first.max()) + 1, int(second.max()) + 1)
        by_cell = sparse.csc_array(self.rows)
        ordered = shape[0] * shape[1] == self.finest_count and np.array_equal(
            first * shape[1] + second, np.arange(self.finest_count)
        )
        if not ordered or np.any(np.diff(by_cell.indptr) != tables):
            return None
        by_cell.sort_indices()
        starts = np.cumsum([0, *self.sizes.values()])[:-1]
        labels = by_cell.indices.reshape(self.finest_count, tables).astype(np.int64) - starts
        return shape, dict(zip(self.sizes, np.ascontiguousarray(labels.T)))

    @cached_property
    def descent(self) -> Forest | Grid | None:
        """Return how totals are handed down to the cells, or None."""
        if self.tree is None and self.crossed is not None:
            shape, labels = self.crossed
            return Grid.of(shape, list(labels.values()))
        return Forest.of(sparse.csr_array(self.rows[np.diff(self.rows.indptr) > 0]))

    @property
    def remainders(self) -> bool:
        """Whether coarser cells may hold records of no finest cell."""
        return sum(len(own) for _, own in self.cells.owners) > self.finest_count

    def column(self, statistic: PublishedStatistic, end: str) -> FloatArray:
        """A published column of a statistic, table by table; NaN for NULL."""
        parts = [table.data.column(f"{statistic.in_table(table.name).name}{end}") for table in self.tables]
        return np.concatenate([numpy_of(part).astype(np.float64) for part in parts])

    def by_size(self, name: str) -> Iterator[tuple[IntArray, Fraction, Fraction]]:
        """Yield a sized statistic's answers by table and band, with sizes."""
        start, lists = 0, self.published.lists
        for table in self.tables:
            count, described = self.sizes[table.name], self.described[table.name]
            sized, bands = described.sized[name], np.asarray(np.zeros(count), np.int64)
            if sized.digest in self.bands:
                columns = _key_columns(described.by, lists)
                bands = bands_of_cells(self.bands[sized.digest], columns, lists.tables(), table.data, count)
            for band, edge in enumerate(sized.edges):
                rows = np.flatnonzero(bands == band) + start
                if len(rows):
                    yield rows, described.share, edge
            start += count

    def by_group(self, grouped: "ByGroup | StatedGroups") -> "Iterator[tuple[IntArray, Any]]":
        """Yield the answers of the noise of each group, table by table, with the table's share (T-GROUPED)."""
        inside: tuple[Any, ...] = grouped.inside()
        start = 0
        wanted = PublishedGroup(name=grouped.by, expression=_expression(ConditionColumn(grouped.by, grouped.length)))
        for table in self.tables:
            count, described = self.sizes[table.name], self.described[table.name]
            place = np.full(count, len(inside) - 1)
            column = _group_column(wanted, described.by, table, self.published.lists)
            if column is not None:
                known = {plain_value(literal(group)): at for at, group in enumerate(grouped.groups)}
                place = np.array([known.get(value, len(inside) - 1) for value in column.to_pylist()], dtype=np.int64)
            for at, own in enumerate(inside):
                if len(rows := np.flatnonzero(place == at)):
                    yield rows + start, own.at_share(described.share)
            start += count

    def by_table(self, answers: Any) -> list[Any]:
        """A number for each answer, divided by table."""
        return list(np.split(answers, np.cumsum(list(self.sizes.values()))[:-1]))


def _expression(column: ConditionColumn) -> Field | Prefix:
    return Field(column.name) if column.length is None else Prefix(column.name, column.length)


def _group_column(wanted: PublishedGroup, by: Groups, table: ReleasedTable, lists: CodeLists) -> Any:
    """Return the group of each cell of a table; None where a cell may hold several."""
    level = next((each for each in by if each.level == wanted.level is not None), None)
    if level is not None:
        return table.data.column(level.name)
    for own in by:
        listed = lists.lists.get(lists.hierarchy_of(own) or "")
        if listed is not None and wanted.level in listed.levels and own.level is not None:
            coarse = PublishedGroup(name=wanted.name, expression=wanted.expression, hierarchy=listed.name)
            below = listed.table().select([own.level, str(wanted.level)]).group_by([own.level, str(wanted.level)])
            if below.aggregate([]).num_rows == len(listed.level(own.level).unique()):
                return lists.above(coarse, own.level, table.data.column(own.name))
    source = source_of(wanted, by)
    return None if source is None else _coarser_values(wanted, source, table.data.column(source.name), lists)


def nesting_of(release: Release, query: PublishedQuery, *, complete: bool) -> Nesting:
    """The tables of a described query and their cells."""
    by = {table.name: table.by for table in query.tables}
    if any(table.selected for table in query.tables):
        raise ParameterError(
            parameter="release", problem="has privately selected keys, so its tables have no fixed cells to fit"
        )
    tables = sorted(
        (t for t in release.tables if t.name in by), key=lambda t: (len(by[t.name]), t.data.num_rows), reverse=True
    )
    at = finest_of([by[table.name] for table in tables])
    if at is None:
        names = ", ".join(table.name for table in tables)
        raise ParameterError(
            parameter="release",
            problem=f"has no table in which all of these are nested: {names}",
            advice="Tables of one query are fitted together. Next time publish one by all of their columns too, or ask for them in "
            "separate queries.",
        )
    ordered = (tables[at], *(table for table in tables if table is not tables[at]))
    known, lists = complete or any(table.rest for table in query.tables), release.published.lists
    cells = fitted_cells(ordered, by, complete=known, lists=lists)
    return Nesting(
        tables=ordered,
        cells=cells,
        query=query,
        published=release.published,
        bands=release.policy.bands(),
    )


def _key_columns(by: Groups, lists: CodeLists) -> list[KeyColumn]:
    """The columns of a table, with the hierarchy levels they hold."""
    found = [(group, lists.hierarchy_of(group)) for group in by]
    return [KeyColumn(group.name, None if name is None else group.level, name) for group, name in found]


# What published cells are sums of.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """The cells of a fit: those of the finest table, then what only every other table has.

    That are "all other" cells if remainders are known, and a remainder for each cell otherwise.
    """

    owners: tuple[tuple[ReleasedTable, IntArray], ...]
    """The table and the rows of each cell."""
    within: Mapping[str, frozenset[str]]
    """The tables whose cells and remainders lie in the cells of each table."""
    shared: bool
    """Whether a record may be in the remainders of two tables that cross."""

    def rows(self, tables: Sequence[ReleasedTable], by: Mapping[str, Groups], lists: CodeLists) -> Any:
        """Return the incidence of published cells and these cells."""
        grid = [
            [
                _block(table, owner, own, by, lists, inside=owner.name in self.within[table.name])
                for owner, own in self.owners
            ]
            for table in tables
        ]
        return sparse.csr_array(sparse.block_array(grid, format="csr"))


def fitted_cells(
    tables: Sequence[ReleasedTable], by: Mapping[str, Groups], *, complete: bool, lists: CodeLists = NO_LISTS
) -> Cells:
    """Return the cells that the published ones are sums of (T-OPEN).

    Where every record in cells of two tables that cross is also in a listed cell of their common refinement, all
    remainders are disjoint, and a table's cells include those of every finer table. Otherwise they would count some
    records twice, so that they include those of one chain of finer tables only.
    """
    within = {
        table.name: frozenset(
            other.name
            for other in tables
            if other is not table and nests(by[table.name], by[other.name]) and by[table.name] != by[other.name]
        )
        for table in tables
    }
    owners = _owners(tables, by, within, complete=complete, lists=lists)
    pairs = combinations(owners[1:], 2)
    shared = not complete and any(_overlap(one, other, tables, by, lists) for one, other in pairs)
    if shared:
        within = _chains(tables, by, lists)
        owners = _owners(tables, by, within, complete=complete, lists=lists)
    return Cells(owners=owners, within=within, shared=shared)


def _owners(
    tables: Sequence[ReleasedTable],
    by: Mapping[str, Groups],
    within: Mapping[str, frozenset[str]],
    *,
    complete: bool,
    lists: CodeLists,
) -> tuple[tuple[ReleasedTable, IntArray], ...]:
    finest, *others = tables
    owners = [(finest, np.arange(finest.data.num_rows))]
    for table in others:
        known = ~rest_rows(table) if complete else _tiled_cells(table, tables, by, within[table.name], lists)
        own = np.flatnonzero(~known)
        owners += [(table, own)] if len(own) else []
    return tuple(owners)


def _overlap(
    one: tuple[ReleasedTable, IntArray],
    other: tuple[ReleasedTable, IntArray],
    tables: Sequence[ReleasedTable],
    by: Mapping[str, Groups],
    lists: CodeLists,
) -> bool:
    """Return whether a record may be in the remainders of both tables."""
    (first, mine), (second, theirs) = one, other
    if nests(by[first.name], by[second.name]) or nests(by[second.name], by[first.name]):
        return False
    together = (*by[first.name], *by[second.name])
    meet = next((t for t in tables if nests(together, by[t.name]) and nests(by[t.name], together)), None)
    listed = 0
    if meet is not None:
        ups = [parents(t, by[t.name], meet, by[meet.name], lists) for t in (first, second)]
        listed = int(np.sum(np.isin(ups[0], mine) & np.isin(ups[1], theirs)))
    return listed < _possible_pairs(one, other, by, lists)


def _possible_pairs(
    one: tuple[ReleasedTable, IntArray],
    other: tuple[ReleasedTable, IntArray],
    by: Mapping[str, Groups],
    lists: CodeLists,
) -> int:
    """Return how many pairs of cells do not contradict each other in a common column."""
    (first, mine), (second, theirs) = one, other
    columns: list[list[Any]] = [[], []]
    for own, their in product(by[first.name], by[second.name]):
        coarser = their if own.determines(their) else own
        if not (own.determines(their) or their.determines(own)):
            continue
        for found, group, table in zip(columns, (own, their), (first, second)):
            found.append(_coarser_values(coarser, group, table.data.column(group.name), lists))
    if not columns[0]:
        return len(mine) * len(theirs)
    texts = [_cell_texts(found).take(array_of(rows)) for found, rows in zip(columns, (mine, theirs))]
    codes = numpy_of(encode_column(pa.chunked_array([*texts[0].chunks, *texts[1].chunks])).indices).astype(np.int64)
    counts = [np.bincount(part, minlength=int(codes.max()) + 1) for part in np.split(codes, [len(mine)])]
    return int(counts[0] @ counts[1])


def _chains(tables: Sequence[ReleasedTable], by: Mapping[str, Groups], lists: CodeLists) -> dict[str, frozenset[str]]:
    """Return for each table one chain of finer tables, that which makes up most of its cells completely."""
    named, place = {table.name: table for table in tables}, {table.name: at for at, table in enumerate(tables)}
    finest = tables[0].name

    def finer(name: str, than: str) -> bool:
        # Of two tables of which each determines the other, the earlier one counts as the finer.
        both = nests(by[name], by[than])
        return name != than and nests(by[than], by[name]) and (not both or place[name] < place[than])

    below = {name: [other for other in named if finer(other, name)] for name in named}
    found: dict[str, frozenset[str]] = {finest: frozenset()}
    for name in sorted(set(named) - {finest}, key=lambda each: (len(below[each]), place[each])):
        made_up = {other: complete_rows(named[name], by[name], named[other], by[other], lists) for other in below[name]}
        chains = [found[other] | {other} for other in below[name]]
        found[name] = max(
            chains, key=lambda chain: (int(np.sum(np.any([made_up[other] for other in chain], axis=0))), len(chain))
        )
    return found


def key_values(
    table: ReleasedTable,
    tables: Sequence[ReleasedTable],
    by: Mapping[str, Groups],
    group: PublishedGroup,
    lists: CodeLists,
) -> Any:
    """Return a group's value in each row of a table; NULL where the table does not tell it."""
    own = by[table.name]
    source = source_of(group, own)
    if source is None:
        return None
    column = table.data.column(source.name)
    if group not in own:
        return _coarser_values(group, source, column, lists)
    above = [each for each in tables if nests(by[each.name], own) and not nests(own, by[each.name])]
    rests = rest_rows(table)
    if not np.any(rests) or any(group in by[each.name] for each in above):
        return column
    # A published rest has the key of its coarser cell, and is in no listed cell of this group.
    return pc.if_else(array_of(rests), pa.scalar(None, column.type), column)


def cell_axes(
    tables: Sequence[ReleasedTable], by: Mapping[str, Groups], lists: CodeLists = NO_LISTS
) -> list[list[IntArray]]:
    """Return each table's codes of its cells, by finest column."""
    finest = tables[0]
    own = by[finest.name]
    axes: list[list[IntArray]] = [[] for _ in own]
    for table in tables:
        codes: list[list[IntArray]] = [[] for _ in own]
        for group in by[table.name]:
            source = source_of(group, own)
            assert source is not None
            values = _coarser_values(group, source, finest.data.column(source.name), lists)
            codes[own.index(source)].append(numpy_of(encode_column(values).indices).astype(np.int64))
        for axis, parts in zip(axes, codes):
            axis.append(joint_labels(parts, finest.data.num_rows)[0])
    return axes


def _tiled_cells(
    table: ReleasedTable,
    tables: Sequence[ReleasedTable],
    by: Mapping[str, Groups],
    within: frozenset[str],
    lists: CodeLists,
) -> BoolArray:
    """Return the cells that a finer table's cells make up completely."""
    found, after = np.zeros(table.data.num_rows, dtype=bool), False
    for other in tables:
        after = after or other is table
        if other is table or not (other.name in within or by[other.name] == by[table.name]):
            continue
        # Of two tables of which each determines the other, only the later one may lean on the other.
        if not (after and nests(by[other.name], by[table.name])):
            found |= complete_rows(table, by[table.name], other, by[other.name], lists)
    return found


def _block(
    table: ReleasedTable,
    owner: ReleasedTable,
    own: IntArray,
    by: Mapping[str, Groups],
    lists: CodeLists,
    *,
    inside: bool,
) -> Any:
    """Which rows of ``table`` contain the cells ``own`` of ``owner``."""
    shape = (table.data.num_rows, len(own))
    if owner is table:
        return sparse.csr_array((np.ones(len(own)), (own, np.arange(len(own)))), shape=shape)
    if not inside:
        return sparse.csr_array(shape)
    up = parents(table, by[table.name], owner, by[owner.name], lists)[own]
    held = np.flatnonzero(up != OUTSIDE)
    return sparse.csr_array((np.ones(len(held)), (up[held], held)), shape=shape)


def rounding_nesting(nesting: Nesting) -> rounding.Nesting:
    """Return how tables nest, for controlled rounding."""
    tables, lists, within = nesting.tables, nesting.published.lists, nesting.cells.within
    by = {name: table.by for name, table in nesting.described.items()}
    above: dict[int, dict[int, Any]] = {}
    for k, finer in enumerate(tables):
        above[k] = {
            j: parents(coarser, by[coarser.name], finer, by[finer.name], lists)
            for j, coarser in enumerate(tables)
            if j != k
            and nests(by[coarser.name], by[finer.name])
            and (k < j or not nests(by[finer.name], by[coarser.name]))
            and not (nesting.cells.shared and finer.name not in within[coarser.name])
        }
    return rounding.Nesting(sizes=tuple(table.data.num_rows for table in tables), above=above)


# Rules of the form "this one never exceeds that one", resolved in a release. A name is a published column
# (``sum_payqtr1``) or a measure with one sum (``payqtr1``). The prefix ``q2:`` restricts it to the second query, as
# in the names of its tables; without it a rule applies to every query that has both variables.


Rules = dict[str, str]
"""The smaller and the larger variable of each rule of one query, by column."""


def read_rules(at_most: Mapping[str, str], plan: Sequence[PublishedQuery]) -> list[Rules]:
    """Return each query's rules; raise unless all fit and form chains."""
    found: list[Rules] = [{} for _ in plan]
    for smaller, larger in at_most.items():
        only = {number for name in (smaller, larger) if (number := _query(name)) is not None}
        fitting = [
            (rules, names)
            for number, (query, rules) in enumerate(zip(plan, found), 1)
            if only <= {number} and None not in (names := [_column(name, query) for name in (smaller, larger)])
        ]
        if not fitting:
            known = " ".join(f"q{number}: {', '.join(_columns(query))}." for number, query in enumerate(plan, 1))
            problem = f"{smaller}={larger} does not name two counts or sums of one query"
            raise ParameterError(parameter="at_most", problem=problem, advice=f"Available are {known}")
        for rules, (lower, upper) in fitting:
            _add(rules, str(lower), str(upper))
    return found


def chain_to(
    largest: PublishedStatistic, statistics: Sequence[PublishedStatistic], rules: Rules
) -> list[PublishedStatistic]:
    """A variable and those below it, smallest first."""
    below = [each for each in statistics if rules.get(each.name) == largest.name]
    return [*chain_to(below[0], statistics, rules), largest] if below else [largest]


def _add(rules: Rules, lower: str, upper: str) -> None:
    """Add a rule, if all rules still form chains."""
    if upper in rules.values() or lower in rules:
        raise ParameterError(
            parameter="at_most",
            problem=f"has two rules with '{upper if upper in rules.values() else lower}' on the same side",
            advice="Give a chain: the first is at most the second, the second is at most the third.",
        )
    if lower in _above(rules, upper):
        raise ParameterError(parameter="at_most", problem=f"is circular at '{lower}'")
    rules[lower] = upper


def _above(rules: Rules, name: str) -> Iterator[str]:
    yield name
    while name in rules:
        name = rules[name]
        yield name


def _query(name: str) -> int | None:
    found = re.match(r"q([1-9]\d*):", name)
    return int(found[1]) if found else None


def _column(name: str, query: PublishedQuery) -> str | None:
    """Return the query's column that a name means, or None."""
    plain = re.sub(r"^q[1-9]\d*:", "", name)
    if plain in _columns(query):
        return plain
    sums = [each.name for each in query.statistics if each.rules.fitted and each.of == plain]
    if len(sums) > 1:
        raise ParameterError(
            parameter="at_most",
            problem=f"names '{plain}', which has several sums: {', '.join(sums)}",
            advice="Name one of these columns.",
        )
    return sums[0] if sums else None


def _columns(query: PublishedQuery) -> list[str]:
    return [each.name for each in query.statistics if each.rules.fitted]


# Which queries of a release are fitted together: those that ask for the same sums or counts of the same records
# (T-FITVAR). A joint query has the tables of all of them.


Variable = tuple[str, str]
"""The kind of a statistic and what it is of."""


def joint_queries(
    plan: Sequence[PublishedQuery], *, at_most: Mapping[str, str], zero_counts: bool
) -> list[PublishedQuery]:
    """The queries of a release, those about the same numbers joined.

    A query with rules between its variables stays alone, since another may not have all of them.
    """
    ruled = [zero_counts or bool(rules) for rules in read_rules(at_most, plan)]
    variables: dict[Variable, list[list[int]]] = {}
    for number, query in enumerate(plan):
        for variable in _variables(query):
            clusters = variables.setdefault(variable, [])
            free = [each for each in clusters if not any(ruled[one] for one in (*each, number))]
            home = next((each for each in free if _may_join(plan, each, number, variable)), None)
            if home is None:
                clusters.append([number])
            else:
                home.append(number)
    together: dict[tuple[int, ...], list[Variable]] = {}
    for variable, clusters in variables.items():
        for each in clusters:
            together.setdefault(tuple(each), []).append(variable)
    fitted = [_join_queries(plan, numbers, chosen) for numbers, chosen in together.items()]
    return sorted(fitted, key=lambda query: query.numbers)


def _variables(query: PublishedQuery) -> Iterator[Variable]:
    yield from dict.fromkeys(_variable(each) for each in query.statistics)


def _variable(statistic: PublishedStatistic) -> Variable:
    return statistic.kind, statistic.of or ""


def _may_join(plan: Sequence[PublishedQuery], cluster: Sequence[int], number: int, variable: Variable) -> bool:
    """Return whether a query can join others about the same records."""
    queries = [plan[each] for each in (*cluster, number)]
    if any(query.where != queries[0].where or any(table.selected for table in query.tables) for query in queries):
        return False
    asked = [[each for each in query.statistics if _variable(each) == variable] for query in queries]
    if any(len(some) != 1 or not some[0].rules.fitted for some in asked):
        return False
    shapes = [table.by for query in queries for table in query.tables]
    several = any(shape in shapes[at + 1 :] for at, shape in enumerate(shapes))
    rests = any(table.rest for query in queries for table in query.tables)
    return not several and not rests and finest_of(shapes) is not None


def _join_queries(
    plan: Sequence[PublishedQuery], numbers: tuple[int, ...], chosen: Sequence[Variable]
) -> PublishedQuery:
    queries = [plan[number] for number in numbers]
    kept = [each for each in queries[0].statistics if _variable(each) in chosen]
    return PublishedQuery(
        where=queries[0].where,
        tables=tuple(table for query in queries for table in query.tables),
        numbers=tuple(number + 1 for number in numbers),
        statistics=tuple(kept if len(queries) == 1 else (_with_queries(each, queries) for each in kept)),
    )


def _with_queries(statistic: PublishedStatistic, queries: Sequence[PublishedQuery]) -> PublishedStatistic:
    asked = [next(each for each in query.statistics if _variable(each) == _variable(statistic)) for query in queries]
    own = {table.name: each for query, each in zip(queries, asked) for table in query.tables}
    return replace(statistic, own=own, names=tuple(each.name for each in asked))
