"""Queries bound to a schema and checked before any record is read.

All problems are collected, so that a plan can be corrected at once.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.errors import KeysError, PlanError, near_name
from recordwise.plan.arrays import array_of, numpy_of, single_array
from recordwise.plan.expressions import (
    ALL_OTHER,
    Case,
    Compare,
    DatePart,
    Field,
    Group,
    In,
    IsNull,
    Level,
    Literal,
    Predicate,
    Prefix,
    chain_problems,
    leaves,
    operand_name,
    with_rests,
)
from recordwise.plan.keys.cells import Cells, Rows, cast_keys, check_cell_count
from recordwise.plan.keys.hierarchies import Hierarchy
from recordwise.plan.keys.keys import Keys, Selection
from recordwise.plan.query import Query
from recordwise.plan.schema import DERIVED, Schema, derived_problem, fits, is_value, kind_of, part_problems
from recordwise.plan.statistics import BinCounts, CountBins, Drawable, ExactTable, Total
from recordwise.plan.statistics.base import MEDIAN, OTHER
from recordwise.plan.statistics.totals import IntArray
from recordwise.policy.columns import literal, plain_value
from recordwise.policy.constructors import By

if TYPE_CHECKING:
    from recordwise.mechanisms.inference import ValuePolicy
    from recordwise.plan.cost import Part


# Public keys made of others: products of lists, and the coarser levels of the codes in a list.


def cross_keys(lists: Sequence[Keys]) -> Keys:
    """Every combination of the rows of several lists."""
    if not lists:
        raise KeysError(column="the product", problem="has no list")
    names = [name for each in lists for name in each.table.column_names]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise KeysError(column=f"'{twice}'", problem="is a column of two lists of the product")
    columns: dict[str, pa.Array] = {}
    repeat, tile = math.prod(each.table.num_rows for each in lists), 1
    check_cell_count(repeat)
    for each in lists:
        rows = each.table.num_rows
        repeat //= rows
        places = array_of(np.tile(np.repeat(np.arange(rows), repeat), tile))
        columns |= {name: each.table.column(name).chunk(0).take(places) for name in each.table.column_names}
        tile *= rows
    return Keys(Rows.of(pa.table(columns)))


def query_with_levels(query: Query, schema: Schema) -> Query:
    """The query, its public keys with the coarser levels of their codes."""
    if not schema.hierarchies:
        return query
    wanted = {name for level in query.tables() for name in level.names()}
    return replace(query, key_lists=tuple(_complete_keys(each, schema, wanted) for each in query.key_lists))


def _complete_keys(keys: Keys, schema: Schema, wanted: Collection[str]) -> Keys:
    """Return the keys with wanted levels; refuse a code not listed."""
    if keys.selection is not None:
        return keys
    table = keys.table
    for hierarchy in schema.hierarchies:
        table = _with_levels(table, hierarchy, schema, wanted)
    return keys if table is keys.table else replace(keys, domain=Rows.of(table))


def _with_levels(table: pa.Table, hierarchy: Hierarchy, schema: Schema, wanted: Collection[str]) -> pa.Table:
    for level in (each for each in reversed(hierarchy.levels) if each in table.column_names):
        own = table.column(level).chunk(0)
        coded = own if pa.types.is_dictionary(own.type) else own.dictionary_encode()
        values = _listed_values(coded.dictionary, hierarchy, level, schema)
        for coarse in hierarchy.levels:
            if coarse == level or not hierarchy.determines(level, coarse):
                continue
            found = _coarser_codes(values, hierarchy, level, coarse).take(coded.indices)
            if coarse not in table.column_names:
                table = table.append_column(coarse, found) if coarse in wanted else table
            elif not _same(table.column(coarse).chunk(0), found):
                raise KeysError(
                    column=f"'{coarse}'", problem=f"differs from that of '{level}' in the hierarchy '{hierarchy.name}'"
                )
    return table


def _listed_values(given: pa.Array, hierarchy: Hierarchy, level: str, schema: Schema) -> pa.Array:
    """Return a level's distinct codes, typed and listed (T-HIERARCHY)."""
    column = schema.column(level)
    values = cast_keys(level, given, hierarchy.type_of(level), column is not None and column.null == "category")
    known = pc.is_in(values, value_set=hierarchy.codes.column(level).combine_chunks())
    unknown = values.filter(pc.or_kleene(pc.invert(known), values.is_null()))
    if len(unknown):
        raise KeysError(
            column=f"'{level}'",
            problem=f"lists {len(unknown):,} code{'s' * (len(unknown) > 1)} that the hierarchy '{hierarchy.name}' does not have, "
            f"such as {'NULL' if unknown[0].as_py() is None else repr(unknown[0].as_py())}",
            advice="A record with such a code is in no cell of any level.",
        )
    return values


def _coarser_codes(values: pa.Array, hierarchy: Hierarchy, level: str, coarse: str) -> pa.Array:
    fine, above = hierarchy.above(level, coarse)
    return above.take(pc.index_in(values, value_set=fine))


def _same(given: pa.Array, found: pa.Array) -> bool:
    plain = given.dictionary_decode() if pa.types.is_dictionary(given.type) else given
    return bool(plain.type == found.type and plain.equals(found))


# The column names of a published table, known before it is made: keys, variables with their suffixes, and fitted
# columns.


ENDINGS = (
    *("", "_sd", "_cv", "_low", "_high"),
    *("_noisy", "_noisy_positive", "_noisy_negative", "_sigma", "_variance"),
    *("_fit", "_fit_sd", "_fit_low", "_fit_high", "_best", "_best_sd", "_best_low", "_best_high", "_status"),
)
"""What may be published next to a variable. Not every variable has all of them, but the next mechanism might."""


def published_names(level: Level, query: Query) -> Iterator[tuple[str, str]]:
    """Yield a table's columns, each with its key or variable."""
    yield from ((name, name) for name in level.names())
    if query.all_other is not None:
        yield ALL_OTHER, ALL_OTHER
    selection = query.selection_of(level)
    asked = [*query.statistics, *(each for each in query.draws() if each not in query.statistics)]
    for alias in [each.alias for each in asked] + ([selection.alias] if selection else []):
        yield from ((alias + ending, alias) for ending in ENDINGS)
        if alias in query.median:
            yield alias + MEDIAN, alias


def name_problems(level: Level, query: Query) -> Iterator[str]:
    """Yield columns that would appear twice, ignoring case."""
    owners: dict[str, list[str]] = {}
    for name, owner in published_names(level, query):
        owners.setdefault(name.casefold(), []).append(owner)
    clashes = {tuple(both): name for name, both in reversed(owners.items()) if len(both) > 1}
    yield from (_problem(name, both) for both, name in reversed(clashes.items()))


def _problem(name: str, owners: tuple[str, ...]) -> str:
    if len({owner.casefold() for owner in owners}) == 1:
        return f"the name '{owners[-1]}' is used twice in one table"
    listed = " and ".join(f"'{owner}'" for owner in dict.fromkeys(owners))
    return f"the column '{name}' would be published twice in one table: {listed} need different names"


# The plan, and the checks of its queries.


OF_A_DATE = "year, quarter, month, week or isoyear"


@dataclass(frozen=True, slots=True)
class QueryProblem:
    """A problem of a query, and the part that has it."""

    text: str
    """A sentence without a final period."""
    about: int | str | None = None
    """The position of a statistic, or another part as plan files name it; None for the query as a whole."""


def query_problems(query: Query, schema: Schema) -> list[QueryProblem]:
    """Return all problems of a query, each once."""
    found = [*_part_problems(query, schema), *map(QueryProblem, _rest_problems(query, schema))]
    sized = [each for each in query.draws() if each.mechanism.is_sized]
    for level in query.tables():
        found += _level_problems(level, query, sized)
        found += map(QueryProblem, _selection_problems(level, query, schema))
    of_parts = {each.text: each for each in found if each.about is not None}
    return list(({each.text: each for each in found} | of_parts).values())


def _part_problems(query: Query, schema: Schema) -> Iterator[QueryProblem]:
    if not query.statistics:
        yield QueryProblem("a query asks for no statistic", "statistics")
    for at, statistic in enumerate(query.statistics):
        texts = [*statistic.problems(schema), *statistic.missing(query.draws(), schema)]
        yield from (QueryProblem(text, at) for text in texts)
    yield from (QueryProblem(text, "median") for text in _median_problems(query))
    if query.condition is not None:
        yield from (QueryProblem(text, "where") for text in predicate_problems(query.condition, schema))
    chosen = {choice.group for axis in query.axes for choice in axis}
    for group in {group.name: group for level in query.tables() for group in level.groups}.values():
        about = "levels" if group in chosen else "group_by"
        yield from (QueryProblem(text, about) for text in group_problems(group, schema))


def _median_problems(query: Query) -> Iterator[str]:
    """Yield names that have no median-unbiased estimate."""
    known = {each.alias: each for each in query.draws() if each.contribution != OTHER}
    for name in query.median:
        if name not in known:
            yield f"median names '{name}', which is no count or sum of the query{near_name(name, known)}"
        elif known[name].mechanism.signed:
            yield f"median names '{name}', whose positive and negative part have noise of their own"


NO_LIST = "no list is given; give keys from a public source, or have them selected privately"


def _level_problems(level: Level, query: Query, sized: list[Drawable]) -> Iterator[QueryProblem]:
    yield from map(QueryProblem, name_problems(level, query))
    if level.groups and not any(keys.covers(level.groups) for keys in query.key_lists):
        listed = "; ".join(", ".join(keys.column_names()) for keys in query.key_lists)
        told = f"the list has {listed}" if listed else NO_LIST
        yield QueryProblem(f"no public keys for {' x '.join(level.names())}: {told}", "keys")
        return
    for statistic in sized:
        if query.sized_keys(level, size_names(statistic)) is None:
            yield QueryProblem(
                f"the noise of '{statistic.alias}' is sized, but the keys of {' x '.join(level.names()) or 'the grand total'} "
                "give no size for it; use Keys.of(frame, size=..., sized_on=...)"
            )


def size_names(statistic: Drawable) -> tuple[str | None, ...]:
    """The names under which the sizes of a statistic may be given."""
    return (statistic.alias, statistic.planned_as, statistic.of, statistic.word)


def _rest_problems(query: Query, schema: Schema) -> Iterator[str]:
    """A rest is that of public keys, and below one coarser cell."""
    if query.all_other is None:
        return
    yield from chain_problems(query.tables())
    levels = [name for level in query.tables() for name in level.names() if name in schema.coarser_names()]
    if levels:
        yield f"all_other = 'publish' is for codes and their prefixes, and '{levels[0]}' is a level of a hierarchy"
    if any(query.selection_of(level) for level in query.tables()):
        yield "all_other = 'publish' needs public keys, and some keys are selected from the data"


def _selection_problems(level: Level, query: Query, schema: Schema) -> Iterator[str]:
    """Yield parameters not defined for every cell that may be selected."""
    keys, selection = query.keys_of(level), query.selection_of(level)
    if keys is None or selection is None:
        return
    if not any(group_problems(group, schema) for group in level.groups):
        cells = None if keys.domain is None else keys.domain.bound(level.groups, schema).size
        yield from selection.problems(schema, cells)
    for name in set(level.names()) & set(schema.coarser_names()) if keys.domain is None else ():
        yield f"the keys of '{name}' are selected, but all its values are in a public hierarchy; use those or select_from"
    for statistic in query.draws():
        at = statistic.mechanism.at
        thresholds = list(at.values()) if isinstance(at, Mapping) else [at]
        for threshold in thresholds:
            if isinstance(threshold, By) and threshold.default is None:
                yield f"the thresholds of '{statistic.alias}' need a default, because the keys are selected"


def group_problems(group: Group, schema: Schema) -> list[str]:
    """The problems of a group: its name, its column, its labels."""
    value, problems = group.expression, []
    own = value.name if isinstance(value, Field) else None
    taken = {*schema.id_columns(), *schema.measure_names(), *schema.column_names(), *schema.coarser_names()}
    if isinstance(value, Prefix | DatePart):
        own = value.column
    if group.name in taken and group.name != own:
        problems.append(f"the group '{group.name}' has the name of another column")
    if isinstance(value, Case):
        return problems + _case_problems(group.name, value, schema)
    column = schema.column(value.name if isinstance(value, Field) else value.column)
    if column is None:
        near = near_name(str(own), (*schema.column_names(), *schema.coarser_names()))
        why = near if schema.measure(str(own)) is None and near else " (to group by a measure, use a CASE)"
        problems.append(f"'{own}' is a group but not a conditional column{why}")
    elif isinstance(value, Prefix) and column.type != "text":
        problems.append(f"a prefix of '{own}' needs a column of type text")
    elif isinstance(value, DatePart):
        problems += part_problems(value.column, value.part, column.type)
    elif column.type == "date":
        problems.append(f"'{own}' is a date: group by its {OF_A_DATE}")
    return problems


def _case_problems(name: str, case: Case, schema: Schema) -> list[str]:
    problems = [problem for predicate, _ in case.branches for problem in predicate_problems(predicate, schema)]
    if not any(all(is_value(label, kind) for label in case.labels()) for kind in ("text", "integer")):
        problems.append(f"the labels of '{name}' must be all text or all 64-bit whole numbers")
    return problems


def predicate_problems(predicate: Predicate, schema: Schema) -> list[str]:
    """Unknown columns and constants of the wrong type."""
    return [problem for leaf in leaves(predicate) for problem in _leaf_problems(leaf, schema)]


def _leaf_problems(leaf: Compare | In | IsNull, schema: Schema) -> Iterator[str]:
    name = operand_name(leaf.operand)
    kind = kind_of(name, schema)
    if kind is None:
        near = near_name(name, schema.declared_names())
        yield f"'{name}' is used in a condition but is neither a conditional column nor a measure{near}"
    elif kind == DERIVED:
        yield derived_problem(name)
    elif isinstance(leaf.operand, Prefix) and kind != "text":
        yield f"a prefix of '{name}' needs a column of type text"
    elif isinstance(leaf.operand, DatePart) and kind != "date":
        yield from part_problems(name, leaf.operand.part, kind)
    elif kind == "date" and isinstance(leaf.operand, Field) and not isinstance(leaf, IsNull):
        yield f"'{name}' is a date: compare its {OF_A_DATE}"
    elif not isinstance(leaf, IsNull):
        kind = "integer" if kind == "date" else kind
        literals = leaf.literals if isinstance(leaf, In) else (leaf.literal,)
        if any(not fits(each, kind) for each in literals):
            yield f"'{name}' is compared with a constant that is not of type {kind}"
        elif isinstance(leaf.operand, Field):
            yield from _unknown_values(name, leaf, literals, schema)
        if kind == "boolean" and isinstance(leaf, Compare) and leaf.operator not in ("=", "<>"):
            yield f"'{name}' is boolean and cannot be ordered"


def _unknown_values(name: str, leaf: Compare | In, literals: Iterable[Literal], schema: Schema) -> Iterator[str]:
    """Yield values that a coarser level's public list lacks."""
    hierarchy = schema.hierarchy(name) if name in schema.coarser_names() else None
    if hierarchy is None or getattr(leaf, "operator", "=") not in ("=", "<>"):
        return
    known = set(map(literal, hierarchy.above(name, name)[0].to_pylist()))
    for unknown in (each for each in literals if each not in known):
        yield f"'{name}' is compared with {plain_value(unknown)!r}, which the hierarchy '{hierarchy.name}' does not have"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTable:
    """One table for an engine to compute: a level of a query."""

    query: int
    level: int
    shape: Level
    condition: Predicate | None
    totals: tuple[Total, ...]
    bins: tuple[CountBins, ...] = ()
    rest: Level | None = None
    """The coarser table of which the rests are published; None without them."""

    def joined_by(self) -> tuple[Group, ...]:
        """Return groups whose different values imply different cells (T-REST)."""
        return self.shape.groups if self.rest is None else self.rest.groups


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The queries of one table of records; it contains no record's value."""

    schema: Schema
    queries: tuple[Query, ...]
    _cells: dict[tuple[int, Level], pa.Table] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The public cells of tables by query and level, made when first asked for; a release asks for them several times."""

    _tables: list[PlannedTable] = field(default_factory=list, init=False, repr=False, compare=False)
    """The tables, made when first asked for."""

    _parts: list["Part"] = field(default_factory=list, init=False, repr=False, compare=False)
    """The parts, made when first asked for."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "queries", tuple(query_with_levels(query, self.schema) for query in self.queries))
        problems = [] if self.queries else ["the plan has no query"]
        for number, query in enumerate(self.queries, 1):
            prefix = f"query {number}: " if len(self.queries) > 1 else ""
            problems += [prefix + each.text for each in query_problems(query, self.schema)]
        names = [query.name.casefold() for query in self.queries if query.name]
        problems += [f"two queries have the name '{name}'" for name in dict.fromkeys(names) if names.count(name) > 1]
        if problems:
            raise PlanError(problems=tuple(problems))
        for query in self.queries:
            for level in query.tables():
                keys = query.keys_of(level)
                if keys is not None and keys.selection is None:
                    keys.rows.check(level.groups, self.schema)

    def _repr_html_(self) -> str:
        from recordwise.plan.describe import plan_html

        return plan_html(self)

    def tables(self) -> tuple[PlannedTable, ...]:
        """Every table of every query, in order."""
        return tuple(self._tables or self._make_tables())

    def _make_tables(self) -> list[PlannedTable]:
        # Set in one step: threads that share a plan find all tables or none.
        self._tables[:] = [
            PlannedTable(
                query=number,
                level=at,
                shape=shape,
                condition=query.condition,
                totals=self._totals(query, shape),
                bins=self._bins(query),
                rest=query.rest_of(shape),
            )
            for number, query in enumerate(self.queries)
            for at, shape in enumerate(query.tables())
        ]
        return self._tables

    def parts(self, table: PlannedTable | None = None) -> tuple["Part", ...]:
        """Return the parts of all tables in order, or those of one."""
        if not self._parts:
            from recordwise.plan.cost import plan_parts

            self._parts[:] = plan_parts(self)
        if table is None:
            return tuple(self._parts)
        place = table.query, table.level
        return tuple(part for part in self._parts if (part.table.query, part.table.level) == place)

    def values(self) -> "ValuePolicy | None":
        """Return the laws of all numbers that depend on measures (T-INFER).

        ``plan.values().window(record, "emp")`` is how closely an attacker who knows everything else can tell a value,
        ``.loss(record, other).power()`` the power of the best test between two. None where another value may mean another cell.
        """
        from recordwise.plan.cost import value_policy

        return value_policy(self)

    def drawn(self, table: PlannedTable | None = None) -> tuple[tuple["Part", Drawable], ...]:
        """Return the parts that are statistics, of all tables or of one."""
        return tuple((part, part.statistic) for part in self.parts(table) if part.statistic is not None)

    def _totals(self, query: Query, shape: Level) -> tuple[Total, ...]:
        """Return each total once, even if several statistics need it."""
        wanted = [total for statistic in query.draws() for total in statistic.totals(self.schema)]
        selection = query.selection_of(shape)
        return tuple(dict.fromkeys([*wanted, *([selection.total()] if selection else [])]))

    def _bins(self, query: Query) -> tuple[CountBins, ...]:
        return tuple(dict.fromkeys(bins for each in query.draws() for bins in each.bins()))

    def selection(self, table: PlannedTable) -> Selection | None:
        """Return a table's key selection; None for public keys."""
        return self.queries[table.query].selection_of(table.shape)

    def domain(self, table: PlannedTable) -> Cells | None:
        """The public cells that the keys of a table are among; None for any that occur."""
        keys = self.queries[table.query].keys_of(table.shape)
        return None if keys is None else keys.domain

    def cells(self, table: PlannedTable) -> pa.Table:
        """Return the public cells of a table, cast, distinct and sorted.

        A grand total has one row without key values. Published rests come last, marked by an extra column.
        """
        listed = self._public_cells(table.query, table.shape)
        if table.rest is None:
            return listed
        return with_rests(listed, table.shape, table.rest, self._public_cells(table.query, table.rest))

    def _public_cells(self, query: int, level: Level) -> pa.Table:
        if not level.groups:
            return pa.table({})
        keys = self.queries[query].keys_of(level)
        if keys is None or keys.selection is not None:
            raise KeysError(column=" x ".join(level.names()), problem="has no public keys")
        if (query, level) not in self._cells:
            self._cells[query, level] = keys.cells(level.groups, self.schema)
        return self._cells[query, level]


# What an engine returns for a plan: public cells, and exact integers in a box that only a session opens.


T = TypeVar("T")

POSITION = "position"
"""The row of a cell in the sorted public keys."""
BIN, HELD = "bin", "held"
"""A point of a quantile's grid, and the number of records there."""


def total_name(table: PlannedTable, total: Total) -> str:
    """The name of a total's column in an engine's result."""
    return f"total{table.totals.index(total)}"


class Sensitive(Generic[T]):
    """A confidential value that only the session unwraps.

    It prints nothing and cannot be pickled, compared or hashed.
    """

    __slots__ = ("_value",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: T) -> None:
        self._value = value

    def reveal(self) -> T:
        """The exact value. Call this only where noise is added immediately afterward."""
        return self._value

    def __repr__(self) -> str:
        return "<Sensitive>"

    def __eq__(self, other: object) -> bool:
        raise TypeError("a sensitive value cannot be compared")

    def __reduce__(self) -> str:
        raise TypeError("a sensitive value cannot be pickled")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableTotals:
    """One table of a plan: public cells and their exact integers."""

    table: PlannedTable
    cells: pa.Table
    exact: Sensitive[ExactTable]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTotals:
    """One table with selected keys; even which cells exist is confidential."""

    table: PlannedTable
    cells: Sensitive[pa.Table]
    exact: Sensitive[ExactTable]


Words = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
"""Shape (n, 2): the low and the high 64 bits of each number, two's complement."""

WIDE = pa.decimal128(38, 0)


def integer_bits(column: pa.ChunkedArray) -> Words:
    """The bits of a column of integers; NULL counts as 0."""
    array = single_array(column)
    if array.null_count:
        array = array.fill_null(0)
    if array.type != WIDE:
        narrow = numpy_of(array.cast(pa.int64()))
        return np.stack([narrow, narrow >> 63], axis=1)
    bits = np.frombuffer(array.buffers()[1], dtype=np.int64, count=2 * (len(array) + array.offset))
    return bits.reshape(-1, 2)[array.offset :]


def scatter(positions: IntArray, values: IntArray, cells: int) -> IntArray:
    """Return totals at their positions among public cells, 0 elsewhere."""
    full = np.zeros(cells, dtype=values.dtype)
    full[positions] = values
    return full


def integers(column: pa.ChunkedArray | pa.Array) -> IntArray:
    """Return totals as int64 or Python integers, never floats."""
    bits = integer_bits(column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column]))
    low, high = bits[:, 0], bits[:, 1]
    if np.array_equal(high, low >> 63):
        return low.copy()
    exact: IntArray = high.astype(object) * 2**64 + low.view(np.uint64).astype(object)
    return exact


def bin_counts(found: pa.Table) -> BinCounts:
    """Rows (position, bin, held) as numbers, in the order of the cells."""
    position, point, held = (np.asarray(numpy_of(found.column(name)), np.int64) for name in (POSITION, BIN, HELD))
    order = np.argsort(position, kind="stable")
    return BinCounts(position=position[order], point=point[order], held=held[order])
