"""The part of a plan that planning is about: which of its tables and statistics are meant, and the plan with other mechanisms."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from recordwise.errors import ParameterError
from recordwise.mechanisms.base import shared
from recordwise.plan.describe import table_name
from recordwise.plan.fields import Level
from recordwise.plan.file.read import PlanFile
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.plan.query import Query
from recordwise.plan.schema import Schema
from recordwise.plan.statistics import Drawable
from recordwise.planning.shapes import bare, with_statistic
from recordwise.session.owner import FOR_OWNER
from recordwise.session.sizes import with_sizes

PlanLike: TypeAlias = Query | Sequence[Query] | Plan | PlanFile
"""A plan to be examined: a query, several of them, or a whole plan."""
TODAY = "today's plan"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Asked:
    """A drawn statistic of one query, in some of its tables."""

    query: int
    statistic: Drawable
    levels: tuple[int, ...]

    @property
    def measure(self) -> str | None:
        """What planning calls it: "count" or a measure; None if planning offers no mechanisms for it."""
        return self.statistic.planned_as

    @property
    def place(self) -> tuple[int, str]:
        return self.query, self.statistic.alias


Choice: TypeAlias = Callable[[Asked], Any]
"""The mechanism of each statistic that planning may choose one for."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scope:
    """A plan, and what of it is meant."""

    plan: Plan
    drawn: tuple[Asked, ...]
    """Every statistic that is meant; planning offers mechanisms for some of them."""
    is_whole: bool

    def asked(self) -> tuple[Asked, ...]:
        """The statistics that planning may choose a mechanism for."""
        return tuple(each for each in self.drawn if each.measure is not None)

    def tables(self) -> dict[tuple[int, int], PlannedTable]:
        """The tables of the plan, by the numbers of their query and level."""
        return {(each.query, each.level): each for each in self.plan.tables()}

    def measures(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(str(each.measure) for each in self.asked()))

    def queries(self, choice: Choice) -> tuple[Query, ...]:
        """What would be released: the whole plan with the chosen mechanisms, or only what is meant of it."""
        if self.is_whole:
            return with_choice(self.plan, self.asked(), choice)
        found: list[Query] = []
        for number, query in enumerate(self.plan.queries):
            own = [each for each in self.drawn if each.query == number]
            found += _narrowed(query, own, choice) if own else []
        return tuple(found)


def same_for_all(mechanism: Any) -> Choice:
    """One mechanism for every statistic."""
    return lambda _: mechanism


def with_choice(plan: Plan, asked: Sequence[Asked], choice: Choice) -> tuple[Query, ...]:
    """The queries of a plan with the chosen mechanisms; whatever is not asked about stays."""
    known = {each.place: each for each in asked}

    def remade(number: int, query: Query) -> Query:
        drawn = query.draws()

        def chosen(statistic: Drawable) -> Any:
            own = known.get((number, statistic.alias))
            return statistic.mechanism if own is None else choice(own)

        return replace(query, statistics=tuple(each.with_mechanisms(chosen, drawn) for each in query.statistics))

    return tuple(remade(number, query) for number, query in enumerate(plan.queries))


def _narrowed(query: Query, own: Sequence[Asked], choice: Choice) -> list[Query]:
    """The query with some of its statistics; one query for each table where some tables are left out."""
    levels, chosen = query.tables(), own[0].levels
    asked = [
        replace(each.statistic, mechanism=each.statistic.mechanism if each.measure is None else choice(each))
        for each in own
    ]
    if len(chosen) == len(levels):
        return [replace(query, statistics=tuple(asked))]
    return [
        replace(
            at_level(query, levels[number]),
            statistics=tuple(replace(each, mechanism=shared(each.mechanism, levels[number].share)) for each in asked),
        )
        for number in chosen
    ]


def at_level(query: Query, level: Level) -> Query:
    """One table of a query, as a query of its own."""
    return replace(query, groups=level.groups, axes=(), rest=None, name="", title="")


def describes_plan(given: Any) -> bool:
    """Whether something is a plan and not a mechanism or a mapping of mechanisms."""
    return isinstance(given, Query | Plan | PlanFile | Sequence)


def read_queries(given: PlanLike) -> tuple[Query, ...]:
    """The queries of whatever describes a plan."""
    if isinstance(given, PlanFile):
        return given.plan.queries
    if isinstance(given, Plan):
        return given.queries
    found = (given,) if isinstance(given, Query) else tuple(given) if isinstance(given, Sequence) else ()
    if not found or not all(isinstance(each, Query) for each in found):
        raise ParameterError(
            parameter="query",
            problem="must be a query, several queries or a plan",
            advice='Use rw.query().group_by("county", keys=keys).',
        )
    return found


def scope_of(
    given: PlanLike,
    schema: Schema,
    *,
    measure: str | None = None,
    tables: Sequence[str] = (),
    statistics: Sequence[str] = (),
) -> Scope:
    """What is meant of a plan: all of it, or the tables and statistics named; with ``measure``, its sum in all the tables."""
    queries = read_queries(given)
    if measure is not None:
        queries = tuple(with_statistic(bare(query), measure, FOR_OWNER) for query in queries)
    plan = with_sizes(Plan(schema=schema, queries=queries))
    levels = _chosen_tables(plan, tables)
    known = [(number, each) for number, query in enumerate(plan.queries) for each in query.draws()]
    wanted = _chosen_statistics(known, statistics)
    drawn = tuple(
        Asked(query=number, statistic=each, levels=levels[number])
        for number, each in known
        if levels[number] and (number, each.alias) in wanted
    )
    if not any(each.measure is not None for each in drawn):
        raise ParameterError(
            parameter="query",
            problem="has no count and no sum among the tables and statistics chosen",
            advice="Ask for one, or choose others.",
        )
    return Scope(plan=plan, drawn=drawn, is_whole=not tables and not statistics)


def _chosen_tables(plan: Plan, words: Sequence[str]) -> dict[int, tuple[int, ...]]:
    """The levels of each query that are meant: a word is the number or name of a query, or the name of a table."""
    names = {(each.query, each.level): table_name(plan, each) for each in plan.tables()}
    found: dict[int, set[int]] = {number: set() for number in range(len(plan.queries))}
    for word in words:
        chosen = [
            place
            for place, name in names.items()
            if word in (name, str(place[0] + 1), plan.queries[place[0]].name or name)
        ]
        if not chosen:
            raise ParameterError(
                parameter="table",
                problem=f"'{word[:80]}' is not a table of the plan",
                advice=f"Use the number of a query or one of {', '.join(names.values())}.",
            )
        for query, level in chosen:
            found[query].add(level)
    if not words:
        return {number: tuple(range(len(query.tables()))) for number, query in enumerate(plan.queries)}
    return {number: tuple(sorted(each)) for number, each in found.items()}


def _chosen_statistics(known: Sequence[tuple[int, Drawable]], words: Sequence[str]) -> set[tuple[int, str]]:
    """The statistics that are meant: a word is a published name, a measure, or "count"."""
    found = {(number, each.alias) for number, each in known} if not words else set()
    for word in words:
        own = {(number, each.alias) for number, each in known if word in (each.alias, each.planned_as)}
        if not own:
            names = dict.fromkeys(each.alias for _, each in known)
            raise ParameterError(
                parameter="statistic",
                problem=f"'{word[:80]}' is not a statistic of the plan",
                advice=f"Use one of {', '.join(names)}.",
            )
        found |= own
    return found


def part_name(statistic: str, level: Level) -> str:
    """How a reader is told which statistic of which table is meant."""
    groups = " x ".join(level.names())
    return f"{statistic} by {groups}" if groups else f"{statistic} in total"
