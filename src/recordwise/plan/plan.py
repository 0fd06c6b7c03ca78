"""A plan: queries bound to a schema and checked as a whole before any record is read.

All problems are collected, so that a plan can be corrected in one go.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from recordwise.errors import KeysError, PlanError
from recordwise.mechanisms.base import is_sized
from recordwise.plan.cell_bands import sized_keys
from recordwise.plan.column_types import DERIVED, derived_problem, fits, is_value, kind_of, part_problems
from recordwise.plan.fields import Case, DatePart, Field, Group, Level, Literal, Prefix
from recordwise.plan.key_products import query_with_levels
from recordwise.plan.key_selection import SelectFrom, SelectKeys
from recordwise.plan.keys import Keys
from recordwise.plan.predicates import Compare, In, IsNull, Predicate, leaves, operand_name
from recordwise.plan.published_names import name_problems
from recordwise.plan.query import Query
from recordwise.plan.rests import chain_problems, with_rests
from recordwise.plan.schema import Schema
from recordwise.plan.statistics import CountBins, Drawable, Total
from recordwise.policy.constructors import By
from recordwise.policy.literals import literal, plain_value

OF_A_DATE = "year, quarter, month, week or isoyear"


def query_problems(query: Query, schema: Schema) -> list[str]:
    """All problems of a query, as sentences without a final period."""
    problems = [] if query.statistics else ["a query asks for no statistic"]
    for statistic in query.statistics:
        problems += statistic.problems(schema)
        problems += statistic.missing(query.draws(), schema)
    if query.condition is not None:
        problems += predicate_problems(query.condition, schema)
    for group in {group.name: group for level in query.tables() for group in level.groups}.values():
        problems += group_problems(group, schema)
    problems += _rest_problems(query, schema)
    sized = [each for each in query.draws() if is_sized(each.mechanism)]
    for level in query.tables():
        problems += _level_problems(level, query, sized)
        problems += _selection_problems(level, query, schema)
    return list(dict.fromkeys(problems))


def _level_problems(level: Level, query: Query, sized: list[Drawable]) -> Iterator[str]:
    yield from name_problems(level, query)
    if level.groups and not any(keys.covers(level.groups) for keys in query.key_lists):
        yield f"no public keys for {' x '.join(level.names())}"
        return
    for statistic in sized:
        if sized_keys(query, level, size_names(statistic)) is None:
            yield (
                f"the noise of '{statistic.alias}' is sized, but the keys of {' x '.join(level.names()) or 'the grand total'} "
                "give no size for it; use Keys.of(frame, size=..., sized_on=...)"
            )


def size_names(statistic: Drawable) -> tuple[str | None, ...]:
    """The names under which the sizes of a statistic may be given."""
    return (statistic.alias, statistic.planned_as, statistic.of, statistic.word)


def _rest_problems(query: Query, schema: Schema) -> Iterator[str]:
    """A rest is that of public keys, and below one coarser cell."""
    if query.rest is None:
        return
    yield from chain_problems(query.tables())
    levels = [name for level in query.tables() for name in level.names() if name in schema.coarser_names()]
    if levels:
        yield f"rest = 'publish' is for codes and their prefixes, and '{levels[0]}' is a level of a hierarchy"
    if any(query.selection_of(level) for level in query.tables()):
        yield "rest = 'publish' needs public keys, and some keys are selected from the data"


def _selection_problems(level: Level, query: Query, schema: Schema) -> Iterator[str]:
    """A selection publishes cells that are not listed in advance, so every parameter must be defined for any cell."""
    selection = query.selection_of(level)
    if selection is None:
        return
    if not any(group_problems(group, schema) for group in level.groups):
        yield from selection.problems(level.groups, schema)
    for name in set(level.names()) & set(schema.coarser_names()) if isinstance(selection, SelectKeys) else ():
        yield f"the keys of '{name}' are selected, but all its values are in a public hierarchy; use those or select_from"
    for statistic in query.draws():
        at = getattr(statistic.mechanism, "at", None)
        thresholds = list(at.values()) if isinstance(at, Mapping) else [at]
        for threshold in thresholds:
            if isinstance(threshold, By) and threshold.default is None:
                yield f"the thresholds of '{statistic.alias}' need a default, because the keys are selected"


def group_problems(group: Group, schema: Schema) -> list[str]:
    """The problems of a group: its name, its column, its labels."""
    value, problems = group.expression, []
    own = value.name if isinstance(value, Field) else None
    taken = {schema.unit, schema.firm, *schema.measure_names(), *schema.column_names(), *schema.coarser_names()}
    if isinstance(value, Prefix | DatePart):
        own = value.column
    if group.name in taken and group.name != own:
        problems.append(f"the group '{group.name}' has the name of another column")
    if isinstance(value, Case):
        return problems + _case_problems(group.name, value, schema)
    column = schema.column(value.name if isinstance(value, Field) else value.column)
    if column is None:
        problems.append(f"'{own}' is a group but not a conditional column (to group by a measure, use a CASE)")
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
        yield f"'{name}' is used in a condition but is neither a conditional column nor a measure"
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
    """A coarser level has the values of a public list, so that any other is a mistake."""
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
        """Groups of which two records with different values are surely in different cells of the table (T-REST)."""
        return self.shape.groups if self.rest is None else self.rest.groups


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The questions to be asked of one table of records. Public: it contains no value of any record."""

    schema: Schema
    queries: tuple[Query, ...]
    _cells: dict[tuple[int, Level], pa.Table] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The public cells of tables by query and level, made when first asked for; a release asks for them several times."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "queries", tuple(query_with_levels(query, self.schema) for query in self.queries))
        problems = [] if self.queries else ["the plan has no query"]
        for number, query in enumerate(self.queries, 1):
            prefix = f"query {number}: " if len(self.queries) > 1 else ""
            problems += [prefix + problem for problem in query_problems(query, self.schema)]
        names = [query.name.casefold() for query in self.queries if query.name]
        problems += [f"two queries have the name '{name}'" for name in dict.fromkeys(names) if names.count(name) > 1]
        if problems:
            raise PlanError(problems=tuple(problems))
        for query in self.queries:
            for level in query.tables():
                keys = query.keys_of(level)
                if isinstance(keys, Keys):
                    keys.check(level.groups, self.schema)

    def _repr_html_(self) -> str:
        from recordwise.plan.preview import plan_html

        return plan_html(self)

    def tables(self) -> tuple[PlannedTable, ...]:
        """Every table of every query, in order."""
        return tuple(
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
        )

    def _totals(self, query: Query, shape: Level) -> tuple[Total, ...]:
        """Each total once: a count needed by two statistics, or also by a selection, is computed once."""
        wanted = [total for statistic in query.draws() for total in statistic.totals(self.schema)]
        selection = query.selection_of(shape)
        return tuple(dict.fromkeys([*wanted, *([selection.total()] if selection else [])]))

    def _bins(self, query: Query) -> tuple[CountBins, ...]:
        return tuple(dict.fromkeys(bins for each in query.draws() for bins in each.bins()))

    def selection(self, table: PlannedTable) -> SelectKeys | SelectFrom | None:
        """The selection that finds the keys of a table; None if they are public."""
        return self.queries[table.query].selection_of(table.shape)

    def cells(self, table: PlannedTable) -> pa.Table:
        """The public cells of a table, cast, distinct and sorted; a grand total has one row without key values. Published rests
        come last, marked by a column of their own."""
        listed = self._listed(table.query, table.shape)
        if table.rest is None:
            return listed
        return with_rests(listed, table.shape, table.rest, self._listed(table.query, table.rest))

    def _listed(self, query: int, level: Level) -> pa.Table:
        if not level.groups:
            return pa.table({})
        keys = self.queries[query].keys_of(level)
        if not isinstance(keys, Keys):
            raise KeysError(column=" x ".join(level.names()), problem="has no public keys")
        if (query, level) not in self._cells:
            self._cells[query, level] = keys.cells(level.groups, self.schema)
        return self._cells[query, level]
