"""Accuracy goals for tables, and the cells that decide them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import Number, nonnegative, positive
from recordwise.exact.text import digits_text, prose_text, share_text
from recordwise.mechanisms.base import Mechanism, read_confidence
from recordwise.plan.expressions import ALL_OTHER
from recordwise.plan.plan import Plan
from recordwise.plan.query import Query
from recordwise.plan.schema import Schema
from recordwise.planning.scope import (
    Asked,
    Choice,
    PlanLike,
    PlanTotals,
    Scope,
    at_level,
    bare,
    check_measure,
    part_name,
    plan_totals,
    scope_of,
    with_statistic,
)
from recordwise.planning.search.families import families, level_sizes
from recordwise.session import Session
from recordwise.session.checks import query_with_sizes
from recordwise.session.owner import FOR_OWNER, OwnerView

WHOLE = Fraction(1)


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Goal:
    """A bound on the relative error of a table's cells.

    At most ``within`` with probability ``confidence``, in every cell or in a ``share`` of them. Cells with a
    total of 0 or below ``at_least`` have no meaningful relative error and are not counted. A query with levels
    is one goal for each of its tables.

    Args:
        measure: The measure that is summed, or "count".
        query: The tables the goal is about.
        within: The largest relative error.
        confidence: The probability with which a cell stays within it.
        share: The share of the cells that must meet the goal.
        at_least: Totals below this do not count.
        statistic: The published name, where the plan has several statistics of the measure.
        levels: The numbers of the query's tables that the goal is about, from 0; all of them unless given.
    """

    measure: str
    query: Query
    within: Fraction
    confidence: float
    share: Fraction
    at_least: Fraction
    statistic: str | None
    levels: tuple[int, ...]

    def __init__(
        self,
        measure: str,
        query: Query,
        *,
        within: Number,
        confidence: float = 0.95,
        share: Number = 1,
        at_least: Number = 0,
        statistic: str | None = None,
        levels: Sequence[int] | None = None,
    ) -> None:
        part = positive(share, parameter="share")
        if part > 1:
            raise ParameterError(parameter="share", problem="must be at most 1")
        shape = bare(query)
        values = {
            "measure": measure,
            "query": shape,
            "within": positive(within, parameter="within"),
            "confidence": read_confidence(confidence),
            "share": part,
            "at_least": nonnegative(at_least, parameter="at_least"),
            "statistic": statistic,
            "levels": tuple(range(len(shape.tables()))) if levels is None else tuple(levels),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def queries(self) -> tuple[Query, ...]:
        """Return one query for each table, for separate noise."""
        tables = self.query.tables()
        return tuple(at_level(self.query, tables[number]) for number in self.levels)

    def with_query(self, query: Query) -> "Goal":
        """The same goal for another query.

        Args:
            query: The query, with as many tables.

        Returns:
            The goal.
        """
        return Goal(
            self.measure,
            query,
            within=self.within,
            confidence=self.confidence,
            share=self.share,
            at_least=self.at_least,
            statistic=self.statistic,
            levels=self.levels,
        )

    def words(self) -> str:
        """The goal as a reader says it."""
        which = "every cell" if self.share == 1 else f"{share_text(float(self.share))} of the cells"
        least = f" of at least {prose_text(self.at_least)}" if self.at_least else ""
        error = f"error at most {digits_text(float(self.within), 3)} of the total"
        return f"{self.statistic or self.measure}: {error} with {share_text(self.confidence)} in {which}{least}"


def plan_goals(
    session: Session,
    query: PlanLike,
    *,
    within: Number | Mapping[str, Number],
    confidence: float = 0.95,
    share: Number = 1,
    at_least: Number | Mapping[str, Number] = 0,
    tables: Sequence[str] = (),
    statistics: Sequence[str] = (),
) -> tuple[Goal, ...]:
    """Return one goal for every selected count and sum.

    Args:
        session: A session on the table of the plan; its records are not read.
        query: The plan: a query, several, a ``Plan`` or a plan file that was loaded.
        within: The largest relative error: one number, or one for each measure or published name.
        confidence: The probability with which a cell stays within it.
        share: The share of the cells of each table that must meet the goal.
        at_least: Totals below this do not count: one number, or one for each measure or published name.
        tables: The tables that are meant, by name or by the number or name of their query; all unless given.
        statistics: The statistics that are meant, by published name or measure; all unless given.

    Returns:
        The goals, for ``fitness``, ``allocate`` and ``recommend``.
    """
    return goals_in(
        scope_of(query, session.schema, tables=tables, statistics=statistics),
        within=within,
        confidence=confidence,
        share=share,
        at_least=at_least,
    )


def goals_in(scope: Scope, *, within: Any, confidence: float, share: Number, at_least: Any) -> tuple[Goal, ...]:
    """The goals of the statistics that are meant."""
    return tuple(
        Goal(
            str(each.measure),
            scope.plan.queries[each.query],
            within=_own(within, each, None, "within"),
            confidence=confidence,
            share=share,
            at_least=_own(at_least, each, 0, "at_least"),
            statistic=each.statistic.alias,
            levels=each.levels,
        )
        for each in scope.asked()
    )


def _own(given: Any, asked: Asked, default: Number | None, parameter: str) -> Any:
    """The number of one statistic, by its published name or its measure."""
    if not isinstance(given, Mapping):
        return given
    found = given.get(asked.statistic.alias, given.get(asked.measure, default))
    if found is None:
        raise ParameterError(parameter=parameter, problem=f"has no number for '{asked.statistic.alias}'")
    return found


def read_goals(goals: Goal | Sequence[Goal]) -> tuple[Goal, ...]:
    found = (goals,) if isinstance(goals, Goal) else tuple(goals)
    if not found or not all(isinstance(each, Goal) for each in found):
        raise ParameterError(parameter="goals", problem="must be a Goal or a sequence of Goals")
    return tuple(each.with_query(query_with_sizes(each.query)) for each in found)


def mechanism_for(family: Any, goal: Goal) -> Any:
    """Return a candidate's mechanism for one goal."""
    if not isinstance(family, Mapping):
        return family
    found = family.get(goal.statistic, family.get(goal.measure))
    if found is None:
        raise ParameterError(parameter="families", problem=f"has no mechanism for '{goal.statistic or goal.measure}'")
    return found


# The goals of a plan's statistics, table by table.


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class GoalTable:
    """CONFIDENTIAL if the records are: one statistic of one table of a plan, with its goal."""

    goal: Goal
    part: PlanTotals
    counted: Any
    """Which cells count for the goal."""
    totals: FloatArray
    """The totals of the counted cells."""
    has_sizes: bool
    """Whether the keys have public sizes."""
    may_miss: int
    """How many of the counted cells need not meet the goal."""

    @property
    def name(self) -> str:
        return part_name(self.goal.statistic or self.goal.measure, self.part.level)

    @property
    def asked(self) -> Asked:
        return self.part.asked

    @property
    def step(self) -> Fraction:
        return self.part.step

    def kept(self, name: str) -> FloatArray | None:
        """Return the clamped totals, or the parts of signed ones, of the counted cells under a mechanism."""
        held = self.part.kept.get(name)
        return None if held is None else held[..., self.counted]

    def deciding(self) -> float:
        """Return the smallest total that must meet the goal, which decides if relative errors fall as totals grow."""
        return float(np.partition(self.totals, self.may_miss)[self.may_miss])

    @property
    def query(self) -> Query:
        """The groups, keys and condition of this table alone."""
        return at_level(self.goal.query, self.part.level)

    def with_mechanism(self, mechanism: Mechanism) -> Query:
        """Return a query for this table alone."""
        return with_statistic(self.query, self.goal.measure, mechanism)

    def met_by(self, mechanism: Mechanism, name: str, share: Fraction = WHOLE) -> Any:
        """Return which of the counted cells meet the goal under the mechanism of a candidate of this name."""
        reach = float(self.goal.within) * self.part.total
        return self.part.by_cell(
            "meets", mechanism, reach, share=share, only=self.counted, kept=name, confidence=self.goal.confidence
        )

    def ratio(self, mechanism: Mechanism, share: Fraction = WHOLE, *, name: str = "", smooth: bool = False) -> float:
        """Return error divided by goal in the deciding cell."""
        errors = self.part.by_cell(
            "smooth_error_quantiles" if smooth else "error_quantiles",
            mechanism,
            share=share,
            only=self.counted,
            kept=name,
            confidence=self.goal.confidence,
        )
        return self.worst(errors / (float(self.goal.within) * self.totals))

    def worst(self, ratios: FloatArray) -> float:
        """Return the ratio of the deciding cell: all cells except those that may miss are at most as bad."""
        place = len(ratios) - 1 - self.may_miss
        return float(np.partition(ratios, place)[place])


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Target:
    """A statistic of a plan that has a goal."""

    asked: Asked
    goal: Goal


def goal_scope(goals: Sequence[Goal], schema: Schema, *, full: bool = False) -> tuple[Scope, tuple[Target, ...]]:
    """Return a plan of one statistic for each goal, in the tables of the goal or in all of its query."""
    queries = tuple(
        with_statistic(replace(goal.query, name="", title=""), goal.measure, FOR_OWNER, alias=goal.statistic)
        for goal in goals
    )
    plan = Plan(schema=schema, queries=queries)
    targets = []
    for number, (query, goal) in enumerate(zip(plan.queries, goals)):
        levels = tuple(range(len(query.tables()))) if full else goal.levels
        targets.append(Target(asked=Asked(query=number, statistic=query.draws()[0], levels=levels), goal=goal))
    return Scope(plan=plan, drawn=tuple(each.asked for each in targets), is_whole=False), tuple(targets)


def targets_in(plan: PlanLike, goals: Sequence[Goal], schema: Schema) -> tuple[Scope, tuple[Target, ...]]:
    """Return the plan, and the statistic that each goal is about."""
    whole = scope_of(plan, schema)
    found: dict[tuple[int, str], Target] = {}
    for goal in goals:
        own = [each for each in whole.asked() if _means(goal, each, whole.plan.queries[each.query])]
        if not own:
            raise ParameterError(
                parameter="goals",
                problem=f"include one about {goal.statistic or goal.measure} in a table that the plan does not have",
                advice="Make goals with plan_goals.",
            )
        for each in own:
            asked = replace(each, levels=goal.levels)
            found[asked.place] = Target(asked=asked, goal=goal)
    return whole, tuple(found.values())


def _means(goal: Goal, asked: Asked, query: Query) -> bool:
    """Return whether a goal applies to a statistic of a query."""
    shapes = [(each.condition, each.groups, each.axes, each.all_other, each.name) for each in (goal.query, query)]
    return shapes[0] == shapes[1] and asked.measure == goal.measure and goal.statistic in (None, asked.statistic.alias)


def goal_tables(
    view: OwnerView, scope: Scope, targets: Sequence[Target], choices: Mapping[str, Choice]
) -> tuple[GoalTable, ...]:
    """Return every table of every target, with its totals read in as few passes as a release would take."""
    goals = {each.asked.place: each.goal for each in targets}
    part = Scope(plan=scope.plan, drawn=tuple(each.asked for each in targets), is_whole=False)
    return tuple(_goal_table(goals[each.asked.place], each) for each in plan_totals(view, part, choices))


def tables_of(view: OwnerView, goals: Sequence[Goal], candidates: Mapping[str, Any]) -> tuple[GoalTable, ...]:
    """Return every table of goals that are about no plan."""
    for goal in goals:
        check_measure(goal.measure, view)
    scope, targets = goal_scope(goals, view.schema)
    return goal_tables(view, scope, targets, choices_of(candidates, targets))


def choices_of(candidates: Mapping[str, Any], targets: Sequence[Target]) -> dict[str, Choice]:
    """Return the mechanism of each candidate for each statistic that has a goal."""
    goals = {each.asked.place: each.goal for each in targets}

    def choice(candidate: Any) -> Choice:
        return lambda asked: mechanism_for(candidate, goals[asked.place])

    return {name: choice(each) for name, each in candidates.items()}


def _goal_table(goal: Goal, part: PlanTotals) -> GoalTable:
    counted = counted_cells(goal, part)
    if not counted.any():
        groups = " x ".join(part.level.names()) or "the grand total"
        raise ParameterError(
            parameter="goals",
            problem=f"has no cell of {groups} to which it applies",
            advice="Lower at_least, or check the keys.",
        )
    query = part.plan.queries[part.asked.query]
    return GoalTable(
        goal=goal,
        part=part,
        counted=counted,
        totals=part.total[counted],
        has_sizes=level_sizes(query, part.level, goal.measure, part.plan.schema) is not None,
        may_miss=int((1 - goal.share) * int(counted.sum())),
    )


def counted_cells(goal: Goal, part: PlanTotals) -> Any:
    """Return which cells count for a goal: no published rest, and none whose total is 0 or below ``at_least``."""
    counted = (part.total > 0) & (part.total >= float(goal.at_least))
    if ALL_OTHER in part.cells.column_names:
        counted &= ~np.asarray(part.cells.column(ALL_OTHER).to_numpy(zero_copy_only=False), bool)
    return counted


# The candidates for the tables of a plan: its own mechanisms, and the usual ones for its measures.


USUAL_OFFSET = 100
OWN = "as in the plan"


def usual_families(plan: Plan, offset: Any = None) -> dict[str, Any]:
    """Return the usual candidates for a plan."""
    if not isinstance(offset, Mapping):
        return families(offset=offset or USUAL_OFFSET)
    names = {each.planned_as for query in plan.queries for each in query.draws() if each.planned_as}
    by_measure = {name: families(offset=offset.get(name, USUAL_OFFSET)) for name in sorted(names)}
    return {kind: {name: own[kind] for name, own in by_measure.items()} for kind in families()}


def own_family(plan: Plan, goals: Sequence[Goal]) -> dict[str, Any]:
    """The plan's own mechanisms as one family, whose noise is set anew."""
    wanted = {goal.statistic for goal in goals}
    found = {each.alias: each.mechanism for query in plan.queries for each in query.draws() if each.alias in wanted}
    return {OWN: found}
