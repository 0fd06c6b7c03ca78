"""Accuracy goals for tables, and the cell of a table that decides whether a goal is met."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import Number, nonnegative, positive
from recordwise.exact.text import digits_text, prose_text, share_text
from recordwise.mechanisms.noisy import read_confidence
from recordwise.plan.query import Query
from recordwise.planning.shapes import bare, check_measure, step_of, with_statistic
from recordwise.planning.sized import sizes_of
from recordwise.planning.totals import ExactTotals, read_totals, totals_query
from recordwise.session.owner import OwnerView


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Goal:
    """Relative error at most ``within`` with probability ``confidence``, in every cell of a table or in a ``share`` of them.

    Cells with a total of 0 or below ``at_least`` have no meaningful relative error and are not counted. A query with levels is
    one goal for each of its tables.

    Args:
        measure: The measure that is summed, or "count".
        query: The tables the goal is about.
        within: The largest relative error.
        confidence: The probability with which a cell stays within it.
        share: The share of the cells that must meet the goal.
        at_least: Totals below this do not count.
    """

    measure: str
    query: Query
    within: Fraction
    confidence: float
    share: Fraction
    at_least: Fraction

    def __init__(
        self,
        measure: str,
        query: Query,
        *,
        within: Number,
        confidence: float = 0.95,
        share: Number = 1,
        at_least: Number = 0,
    ) -> None:
        part = positive(share, parameter="share")
        if part > 1:
            raise ParameterError(parameter="share", problem="must be at most 1")
        values = {
            "measure": measure,
            "query": bare(query),
            "within": positive(within, parameter="within"),
            "confidence": read_confidence(confidence),
            "share": part,
            "at_least": nonnegative(at_least, parameter="at_least"),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def queries(self) -> tuple[Query, ...]:
        """One query for each table, so that each may have its own noise."""
        return tuple(replace(self.query, groups=level.groups, axes=(), rest=None) for level in self.query.tables())

    def words(self) -> str:
        """The goal as a reader says it."""
        which = "every cell" if self.share == 1 else f"{share_text(float(self.share))} of the cells"
        least = f" of at least {prose_text(self.at_least)}" if self.at_least else ""
        error = f"error at most {digits_text(float(self.within), 3)} of the total"
        return f"{self.measure}: {error} with {share_text(self.confidence)} in {which}{least}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class GoalTable:
    """CONFIDENTIAL if the records are: one table of a goal, with the totals of the counted cells."""

    goal: Goal
    query: Query
    name: str
    step: Number
    totals: FloatArray
    kept: dict[str, FloatArray]
    sizes: FloatArray | None
    """The public sizes of the counted cells, if the keys have any."""
    may_miss: int
    """How many of the cells need not meet the goal."""

    def deciding(self) -> float:
        """The deciding total if relative errors fall as totals grow: the smallest that must meet the goal."""
        return float(np.partition(self.totals, self.may_miss)[self.may_miss])

    def with_mechanism(self, mechanism: Any) -> Query:
        return with_statistic(self.query, self.goal.measure, mechanism)


def read_goals(goals: Goal | Sequence[Goal]) -> tuple[Goal, ...]:
    found = (goals,) if isinstance(goals, Goal) else tuple(goals)
    if not found or not all(isinstance(each, Goal) for each in found):
        raise ParameterError(parameter="goals", problem="must be a Goal or a sequence of Goals")
    return found


def goal_tables(view: OwnerView, goals: Sequence[Goal], families: Mapping[str, Any]) -> tuple[GoalTable, ...]:
    """The totals of every table of every goal, read together."""
    for goal in goals:
        check_measure(goal.measure, view)
    pairs = [(goal, query) for goal in goals for query in goal.queries()]
    wanted = [{name: mechanism_for(each, goal.measure) for name, each in families.items()} for goal, _ in pairs]
    found = view.cell_totals(*(totals_query(query, goal.measure, m) for (goal, query), m in zip(pairs, wanted)))
    read = [read_totals(each, mechanisms) for each, mechanisms in zip(found, wanted)]
    return tuple(_table(goal, query, each, view, len(pairs)) for (goal, query), each in zip(pairs, read))


def _table(goal: Goal, query: Query, exact: ExactTotals, view: OwnerView, number: int) -> GoalTable:
    sizes = sizes_of(query, goal.measure, view.schema)
    counted = (exact.total > 0) & (exact.total >= float(goal.at_least))
    groups = " x ".join(query.tables()[0].names()) or "total"
    if not counted.any():
        raise ParameterError(
            parameter="goals",
            problem=f"has no cell of {groups} to which it applies",
            advice="Lower at_least, or check the keys.",
        )
    return GoalTable(
        goal=goal,
        query=query,
        name=f"{goal.measure} by {groups}" if groups != "total" else f"{goal.measure} in total",
        step=step_of(goal.measure, view),
        totals=exact.total[counted],
        kept={name: part[..., counted] for name, part in exact.kept.items()},
        sizes=None if sizes is None else sizes[counted],
        may_miss=int((1 - goal.share) * int(counted.sum())),
    )


def mechanism_for(family: Any, measure: str) -> Any:
    """The mechanism of a family for one measure: the family itself, or its entry if measures have their own."""
    if not isinstance(family, Mapping):
        return family
    if measure not in family:
        raise ParameterError(parameter="families", problem=f"has no mechanism for '{measure}'")
    return family[measure]
