"""A plan for planning: selected tables and statistics, origin, exact totals."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import Number, moderate, nonnegative
from recordwise.mechanisms.base import BoolArray, Mechanism
from recordwise.plan.cost import cell_mechanisms
from recordwise.plan.describe import table_name
from recordwise.plan.expressions import Level
from recordwise.plan.file.read import PlanFile
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.plan.query import Query
from recordwise.plan.schema import TUNINGS, Schema
from recordwise.plan.statistics import Drawable
from recordwise.session import Session
from recordwise.session.checks import with_sizes
from recordwise.session.owner import FOR_OWNER, CellTotals, OwnerView

# The table that a plan publishes, without its mechanisms: a query with groups, and the measure that is summed.


COUNT = "count"
"""The pseudo-measure that stands for the number of records."""


def bare(query: Query) -> Query:
    """A query's groups, levels, keys and condition without its statistics."""
    if not isinstance(query, Query):
        raise ParameterError(
            parameter="query",
            problem="must be a query with groups",
            advice='Use rw.query().group_by("NAME", keys=keys).',
        )
    return replace(query, statistics=())


def with_statistic(query: Query, measure: str, mechanism: Mechanism, alias: str | None = None) -> Query:
    """Return the query with one statistic, a sum or count."""
    if measure == COUNT:
        return query.count(mechanism, alias=alias or COUNT)
    return query.sum(measure, mechanism, alias=alias)


def check_measure(measure: str, schema: Schema) -> None:
    if measure != COUNT and schema.measure(measure) is None:
        known = ", ".join((*schema.measure_names(), COUNT))
        raise ParameterError(
            parameter="measure", problem=f"'{measure}' is not a measure", advice=f"Use one of {known}."
        )


def step_of(measure: str, view: OwnerView) -> Number:
    declared = view.schema.measure(measure)
    return declared.step if declared else Fraction(1)


def named(mechanisms: Mapping[str, Mechanism]) -> dict[str, Any]:
    """Mechanisms by name; an error if there is none."""
    found = dict(mechanisms)
    if not found:
        raise ParameterError(parameter="mechanisms", problem="must name at least one mechanism")
    for name, mechanism in found.items():
        if not isinstance(mechanism, Mechanism):
            raise ParameterError(parameter=f"mechanisms['{name}']", problem="is not a mechanism")
    return found


# The selected tables and statistics, and the plan with other mechanisms.


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
        """The statistic's measure or "count" in planning, or None."""
        return self.statistic.planned_as

    @property
    def place(self) -> tuple[int, str]:
        return self.query, self.statistic.alias


Choice: TypeAlias = Callable[[Asked], Any]
"""The mechanism of each statistic that planning may choose one for."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scope:
    """A plan and the tables and statistics selected from it."""

    plan: Plan
    drawn: tuple[Asked, ...]
    """Every selected statistic; planning offers mechanisms for some of them."""
    is_whole: bool

    def asked(self) -> tuple[Asked, ...]:
        """The statistics that planning may choose a mechanism for."""
        return tuple(each for each in self.drawn if each.measure is not None)

    def tables(self) -> dict[tuple[int, int], PlannedTable]:
        """Return the plan's tables by query and level number."""
        return {(each.query, each.level): each for each in self.plan.tables()}

    def measures(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(str(each.measure) for each in self.asked()))

    def queries(self, choice: Choice) -> tuple[Query, ...]:
        """Return the queries that would be released."""
        if self.is_whole:
            return with_choice(self.plan, self.asked(), choice)
        found: list[Query] = []
        for number, query in enumerate(self.plan.queries):
            own = [each for each in self.drawn if each.query == number]
            found += _narrowed(query, own, choice) if own else []
        return tuple(found)


def same_for_all(mechanism: Mechanism) -> Choice:
    """One mechanism for every statistic."""
    return lambda _: mechanism


def with_choice(plan: Plan, asked: Sequence[Asked], choice: Choice) -> tuple[Query, ...]:
    """Return the queries of a plan with the chosen mechanisms."""
    known = {each.place: each for each in asked}

    def remade(number: int, query: Query) -> Query:
        drawn = query.draws()

        def chosen(statistic: Drawable) -> Any:
            own = known.get((number, statistic.alias))
            return statistic.mechanism if own is None else choice(own)

        return replace(query, statistics=tuple(each.with_mechanisms(chosen, drawn) for each in query.statistics))

    return tuple(remade(number, query) for number, query in enumerate(plan.queries))


def _narrowed(query: Query, own: Sequence[Asked], choice: Choice) -> list[Query]:
    """Return the query with some of its statistics.

    One query for each table where some tables are left out.
    """
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
            statistics=tuple(replace(each, mechanism=each.mechanism.at_share(levels[number].share)) for each in asked),
        )
        for number in chosen
    ]


def at_level(query: Query, level: Level) -> Query:
    """One table of a query, as a query of its own."""
    return replace(query, groups=level.groups, axes=(), table_shares=(), all_other=None, name="", title="")


def describes_plan(given: Any) -> bool:
    """Return whether an object is a plan, not mechanisms."""
    return isinstance(given, Query | Plan | PlanFile | Sequence)


def level_shares(query: Query) -> FloatArray:
    """The share of each table of a query, in their order."""
    return np.array([float(level.share) for level in query.tables()])


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
            advice='Use rw.query().group_by("NAME", keys=keys).',
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
    """Return the selected scope of a plan.

    All of it, or the tables and statistics named; with ``measure``, its sum in all the tables.
    """
    queries = read_queries(given)
    if measure is not None:
        check_measure(measure, schema)
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
    """Return the selected levels of each query.

    A word is the number or name of a query, or the name of a table.
    """
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
    """Return the selected statistics.

    A word is a published name, a measure, or "count".
    """
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
    """How readers see which statistic of which table it is."""
    groups = " x ".join(level.names())
    return f"{statistic} by {groups}" if groups else f"{statistic} in total"


# The origin of the records used for planning.


def read_origin(data: str) -> str:
    """The origin of the records, one of four."""
    if data not in TUNINGS:
        raise ParameterError(
            parameter="data",
            problem=f"must be one of {', '.join(TUNINGS)}",
            advice="Use 'confidential' unless the records are public or synthetic; those of an earlier period are 'past'.",
        )
    return data


def viewed(session: Session, data: str, command: str, plan: PlanLike | None = None) -> OwnerView:
    """Return the records of a session for planning.

    Unless they are declared public or synthetic, the ledger first notes the look.
    """
    queries = () if plan is None else read_queries(plan)
    return session.owner.view(data=read_origin(data), command=command, queries=queries)


# The exact totals of a plan's cells, their clamped totals, and the parts of signed ones, in one pass.


EXACT = "exact"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class PlanTotals:
    """The totals of one statistic in one table of a plan.

    CONFIDENTIAL if the records are.
    """

    plan: Plan
    asked: Asked
    number: int
    """The number of the table among the levels of its query."""
    table: PlannedTable
    cells: pa.Table
    total: FloatArray
    """Without their signs, on which no noise depends."""
    kept: dict[str, FloatArray]
    """By the name of a clamping mechanism: the totals of what it keeps, below 0 where their sign is another. By the name of a
    transform of a signed measure: the positive and the negative part of each total, in two rows."""

    @property
    def level(self) -> Level:
        """The groups of the table and its share of the loss."""
        return self.table.shape

    @property
    def step(self) -> Fraction:
        """The step of the statistic's lattice."""
        return self.asked.statistic.step(self.plan.schema)

    def served(
        self, mechanism: Mechanism, share: Fraction | None = None, only: Any = None
    ) -> Iterator[tuple[Any, Any]]:
        """Yield each mechanism that draws for cells, with their rows.

        That is the statistic's mechanism at the level's share (or another), at the band of the cell and at its threshold.
        """
        shape = self.level if share is None else replace(self.level, share=share)
        statistic = replace(self.asked.statistic, mechanism=mechanism)
        for each in cell_mechanisms(self.plan, replace(self.table, shape=shape), statistic, self.cells):
            rows = each.run.rows if only is None else each.run.rows[only[each.run.rows]]
            if len(rows):
                yield each.mechanism, rows

    def by_cell(
        self,
        ability: str,
        mechanism: Mechanism,
        *more: FloatArray,
        share: Fraction | None = None,
        only: Any = None,
        kept: str = "",
        **given: Any,
    ) -> Any:
        """Return what the mechanism of each cell says of its total, such as ``error_quantiles`` or ``meets``."""
        held, found = self.kept.get(kept), None
        for each, rows in self.served(mechanism, share, only):
            own = {} if held is None else {"kept": held[..., rows]}
            part = getattr(each, ability)(
                self.total[rows], *(other[rows] for other in more), step=self.step, **own, **given
            )
            found = np.zeros(len(self.total), np.asarray(part).dtype) if found is None else found
            found[rows] = part
        return found if only is None or found is None else found[only]


def _totals_query(query: Query, measure: str, mechanisms: Mapping[str, Mechanism], *, prefix: str) -> Query:
    """Return the query with the plain total and the clamped ones."""
    # Goals about several statistics of one query would ask for its name twice.
    asked = with_statistic(replace(query, name="", title=""), measure, FOR_OWNER, alias=prefix + EXACT)
    if measure == COUNT:
        return asked
    for number, mechanism in enumerate(mechanisms.values()):
        if mechanism.to is not None or mechanism.signed:
            asked = asked.sum(measure, mechanism, alias=f"{prefix}kept{number}")
    return asked


def plan_totals(view: OwnerView, scope: Scope, choices: Mapping[str, Choice]) -> tuple[PlanTotals, ...]:
    """Return the totals of every selected statistic and table, in as few passes as a release would take."""
    asked = scope.asked()
    numbers = list(dict.fromkeys(each.query for each in asked))
    own = {number: [each for each in asked if each.query == number] for number in numbers}
    chosen = {each.place: {name: choice(each) for name, choice in choices.items()} for each in asked}
    queries = []
    for number in numbers:
        query = bare(scope.plan.queries[number])
        for at, each in enumerate(own[number]):
            query = _totals_query(query, str(each.measure), chosen[each.place], prefix=f"{at}_")
        queries.append(query)
    found, tables, read = iter(view.cell_totals(*queries)), scope.tables(), []
    for number in numbers:
        for level in range(len(scope.plan.queries[number].tables())):
            cells = next(found)
            for at, each in enumerate(own[number]):
                if level in each.levels:
                    read.append(_read(scope.plan, each, tables[number, level], cells, chosen[each.place], f"{at}_"))
    return tuple(read)


def _read(
    plan: Plan, asked: Asked, table: PlannedTable, found: CellTotals, mechanisms: Mapping[str, Mechanism], prefix: str
) -> PlanTotals:
    """Return what ``_totals_query`` found in one table."""
    total = found.totals[prefix + EXACT]
    sign = np.where(total < 0, -1.0, 1.0)
    kept = {
        name: found.totals[f"{prefix}kept{number}"] * (1.0 if mechanism.signed else sign)
        for number, (name, mechanism) in enumerate(mechanisms.items())
        if f"{prefix}kept{number}" in found.totals
    }
    return PlanTotals(
        plan=plan, asked=asked, number=table.level, table=table, cells=found.cells, total=np.abs(total), kept=kept
    )


Least: TypeAlias = Number | Mapping[str, Number]
"""What the totals of a cell must reach: its own one number, or any statistics, by measure, published name or "count"."""


def reaching(view: OwnerView, parts: Sequence[PlanTotals], at_least: Least) -> list[BoolArray]:
    """Return which cells of each part reach what is asked for.

    Statistics other than a part's own are read in one more pass.
    """
    if not isinstance(at_least, Mapping):
        least = float(moderate(nonnegative(at_least, parameter="at_least"), parameter="at_least"))
        return [each.total >= least for each in parts]
    plan = parts[0].plan
    wanted = _read_least(plan, at_least)
    numbers = list(dict.fromkeys(each.asked.query for each in parts if set(wanted) - {each.asked.measure}))
    queries = []
    for number in numbers:
        query = bare(plan.queries[number])
        for at, measure in enumerate(wanted):
            query = with_statistic(query, measure, FOR_OWNER, alias=f"least_{at}")
        queries.append(query)
    found = iter(view.cell_totals(*queries) if queries else ())
    held = {(number, level): next(found) for number in numbers for level in range(len(plan.queries[number].tables()))}
    reached: list[BoolArray] = []
    for each in parts:
        rows = np.ones(len(each.total), bool)
        for at, (measure, least) in enumerate(wanted.items()):
            own = measure == each.asked.measure
            total = each.total if own else np.abs(held[each.asked.query, each.number].totals[f"least_{at}"])
            rows &= total >= least
        reached.append(rows)
    return reached


def counted_rows(view: OwnerView, totals: Sequence[PlanTotals], at_least: Least) -> list[BoolArray]:
    """Return which cells of each table the errors are about."""
    return [(each.total > 0) & reached for each, reached in zip(totals, reaching(view, totals, at_least))]


def by_measure(at_least: Mapping[str, Number], queries: Iterable[Query]) -> dict[str, Number]:
    """Return what totals must reach, by measure."""
    published = {each.alias: each.planned_as for query in queries for each in query.draws() if each.planned_as}
    found: dict[str, Number] = {}
    for name, number in at_least.items():
        own = name if name in published.values() else published.get(name, name)
        found[own] = max(
            nonnegative(found.get(own, 0), parameter="at_least"), nonnegative(number, parameter="at_least")
        )
    return found


def _read_least(plan: Plan, at_least: Mapping[str, Number]) -> dict[str, float]:
    """Return what a cell's totals must reach, by measure or "count"."""
    found: dict[str, float] = {}
    for name, number in at_least.items():
        check_measure(name, plan.schema)
        found[name] = float(moderate(nonnegative(number, parameter="at_least"), parameter="at_least"))
    return found
