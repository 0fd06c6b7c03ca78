"""The goals of a plan's statistics, table by table, and how far each table is from its goal."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.plan.cost import cell_mechanisms
from recordwise.plan.fields import ALL_OTHER
from recordwise.plan.query import Query
from recordwise.plan.schema import Schema
from recordwise.planning.errors import ask
from recordwise.planning.goals import Goal
from recordwise.planning.totals import PlanTotals, plan_totals
from recordwise.planning.whole import Asked, Choice, PlanLike, Scope, part_name, scope_of
from recordwise.session.owner import OwnerView


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class TargetTable:
    """CONFIDENTIAL if the records are: one statistic of one table of a plan, with its goal."""

    goal: Goal
    totals: PlanTotals
    counted: Any
    """Which cells count for the goal."""
    may_miss: int
    """How many of them need not meet it."""

    @property
    def name(self) -> str:
        return part_name(self.totals.asked.statistic.alias, self.totals.level)

    @property
    def asked(self) -> Asked:
        return self.totals.asked

    def served(self, scope: Scope, mechanism: Any, share: Fraction, schema: Schema) -> list[tuple[Any, Any]]:
        """Each mechanism that draws for counted cells if the statistic has this one and the table this share, with the cells."""
        table = replace(self.totals.table, shape=replace(self.totals.table.shape, share=share))
        statistic = replace(self.asked.statistic, mechanism=mechanism)
        found = []
        for each in cell_mechanisms(scope.plan, table, statistic, self.totals.cells):
            rows = each.run.rows[self.counted[each.run.rows]]
            if len(rows):
                found.append((each.mechanism, rows))
        return found

    def ratios(self, scope: Scope, mechanism: Any, share: Fraction, schema: Schema, *, kept: str = "") -> FloatArray:
        """Error divided by goal in each counted cell."""
        errors, total = np.zeros(len(self.totals.total)), self.totals.total
        step = self.asked.statistic.step(schema)
        held = self.totals.kept.get(kept)
        for each, rows in self.served(scope, mechanism, share, schema):
            own = {} if held is None else {"kept": held[..., rows]}
            errors[rows] = ask(each, "error_quantiles")(total[rows], confidence=self.goal.confidence, step=step, **own)
        return np.asarray((errors / (float(self.goal.within) * np.where(total > 0, total, 1.0)))[self.counted])

    def worst(self, ratios: FloatArray) -> float:
        """The ratio of the deciding cell: all cells except those that may miss are at most as bad."""
        place = len(ratios) - 1 - self.may_miss
        return float(np.partition(ratios, place)[place])


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Target:
    """A statistic of a plan that has a goal, in one or more tables."""

    asked: Asked
    goal: Goal


def targets_in(plan: PlanLike, goals: Sequence[Goal], schema: Schema) -> tuple[Scope, tuple[Target, ...]]:
    """The plan, and the statistic that each goal is about."""
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
    """Whether a goal is about a statistic of a query: its keys may since have been completed, its shape not."""
    shapes = [(each.condition, each.groups, each.axes, each.rest, each.name) for each in (goal.query, query)]
    return shapes[0] == shapes[1] and asked.measure == goal.measure and goal.statistic in (None, asked.statistic.alias)


def target_tables(
    view: OwnerView, scope: Scope, targets: Sequence[Target], choices: dict[str, Choice]
) -> tuple[TargetTable, ...]:
    """Every table of every target, with its totals read in as few passes as a release would take."""
    goals = {each.asked.place: each.goal for each in targets}
    part = Scope(plan=scope.plan, drawn=tuple(each.asked for each in targets), is_whole=False)
    return tuple(_table(goals[each.asked.place], each) for each in plan_totals(view, part, choices))


def _table(goal: Goal, totals: PlanTotals) -> TargetTable:
    counted = (totals.total > 0) & (totals.total >= float(goal.at_least))
    if ALL_OTHER in totals.cells.column_names:
        counted &= ~np.asarray(totals.cells.column(ALL_OTHER).to_numpy(zero_copy_only=False), bool)
    if not counted.any():
        groups = " x ".join(totals.level.names()) or "the grand total"
        raise ParameterError(
            parameter="goals",
            problem=f"has no cell of {groups} to which it applies",
            advice="Lower at_least, or check the keys.",
        )
    return TargetTable(goal=goal, totals=totals, counted=counted, may_miss=int((1 - goal.share) * int(counted.sum())))
