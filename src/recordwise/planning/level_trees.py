"""The levels of a goal as one tree of cells, for goals about fitted errors, and the query that releases them with given shares."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from statistics import NormalDist
from typing import Any

import numpy as np

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.mechanisms.base import clamping_bound, gaussian_sigma, inside
from recordwise.plan.describe import group_json
from recordwise.plan.fields import Choice
from recordwise.plan.query import Query
from recordwise.plan.schema import Schema
from recordwise.planning.fitted_shares import LevelTree
from recordwise.planning.goals import Goal
from recordwise.planning.sized import by_band, sizes_of
from recordwise.planning.totals import EXACT, totals_query
from recordwise.planning.whole import at_level
from recordwise.postprocess.answer_tree import tree_of
from recordwise.release.code_lists import CodeLists
from recordwise.release.families import cell_rows, nests, rest_rows
from recordwise.release.tables import ReleasedTable
from recordwise.session.owner import CellTotals, OwnerView


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GoalLevels:
    """CONFIDENTIAL if the records are: the tree of a goal's levels, at a variance of 1."""

    goal: Goal
    tree: LevelTree
    sizes: FloatArray | None
    """The public sizes of the cells, if the keys have any; 0 for published rests."""

    def at(self, mechanism: Any) -> LevelTree:
        """The tree under this mechanism, which must have Gaussian noise, of one sigma or in proportion to sizes."""
        variance = np.zeros(len(self.tree.level))
        for each, rows in by_band(mechanism, self.sizes):
            variance[rows] = float(checked_sigma(each)) ** 2
        return replace(self.tree, variance=variance)


def checked_sigma(mechanism: Any) -> Fraction:
    """The sigma of a mechanism; an error if its noise is not Gaussian."""
    sigma = None if clamping_bound(mechanism) is not None else gaussian_sigma(mechanism)
    if sigma is None:
        raise ParameterError(
            parameter="fitted",
            problem=f"needs Gaussian noise, and {type(mechanism).__name__} has another law or clamps",
            advice="Use Gaussian or UnitSplit, or leave fitted out.",
        )
    return sigma


def can_be_fitted(mechanism: Any) -> bool:
    """Whether shares can be chosen for the fitted errors of a mechanism."""
    try:
        for each in inside(mechanism):
            checked_sigma(each)
    except ParameterError:
        return False
    return True


def goal_levels(view: OwnerView, goals: Sequence[Goal], *, complete: bool) -> list[GoalLevels]:
    """The trees of all goals, read in as few passes as a release takes."""
    for goal in goals:
        _check(goal, view.schema, complete=complete)
    found = iter(view.cell_totals(*(totals_query(goal.query, goal.measure, {}) for goal in goals)))
    return [_levels(goal, [next(found) for _ in goal.query.tables()], view.schema) for goal in goals]


def _check(goal: Goal, schema: Schema, *, complete: bool) -> None:
    if len(goal.query.tables()) > 1 and goal.query.rest is None and not complete:
        raise ParameterError(
            parameter="fitted",
            problem="needs complete levels: below keys that may miss cells a fit changes nothing",
            advice="Give the query rest='publish', or say complete=True if the keys list every cell.",
        )
    shapes = [(each, [group_json(group, schema) for group in each.groups]) for each in goal.query.tables()]
    for (one, by), (other, other_by) in combinations(shapes, 2):
        if nests(by, other_by) == nests(other_by, by):
            names = " and ".join(" x ".join(each.names()) or "the grand total" for each in (one, other))
            problem = f"needs tables that refine one another, and of {names} neither refines the other"
            raise ParameterError(parameter="fitted", problem=problem)


def _levels(goal: Goal, found: Sequence[CellTotals], schema: Schema) -> GoalLevels:
    by = {each.name: [group_json(group, schema) for group in each.table.shape.groups] for each in found}
    tables = [
        ReleasedTable(name=each.name, keys=tuple(each.cells.column_names), variables=(), data=each.cells)
        for each in found
    ]
    order = sorted(range(len(found)), key=lambda n: (len(by[found[n].name]), tables[n].data.num_rows), reverse=True)
    lists = CodeLists({each.name: each.to_json() for each in schema.hierarchies})
    tree = tree_of(cell_rows([tables[n] for n in order], by, complete=True, lists=lists))
    assert tree is not None
    z = NormalDist().inv_cdf((1 + goal.confidence) / 2)
    level, reach, sizes, may_miss = [], [], [], [0] * len(found)
    for n in order:
        total = np.abs(found[n].totals[EXACT])
        counted = (total > 0) & (total >= float(goal.at_least)) & ~rest_rows(tables[n])
        counted &= n in goal.levels
        level.append(np.full(len(total), n))
        sizes.append(_sizes(goal, n, schema, len(total)))
        reach.append(np.where(counted, float(goal.within) * total / z, np.inf))
        may_miss[n] = int((1 - goal.share) * int(counted.sum()))
    return GoalLevels(
        goal=goal,
        tree=LevelTree(
            tree=tree,
            level=np.concatenate(level),
            variance=np.ones(sum(map(len, level))),
            reach=np.concatenate(reach),
            may_miss=tuple(may_miss),
        ),
        sizes=None if any(each is None for each in sizes) else np.concatenate(sizes),
    )


def _sizes(goal: Goal, level: int, schema: Schema, cells: int) -> Any:
    """The sizes of the cells of one table; published rests, which come last, are in the lowest band."""
    listed = sizes_of(at_level(goal.query, goal.query.tables()[level]), goal.measure, schema)
    return None if listed is None else np.append(listed, np.zeros(cells - len(listed)))


def with_shares(query: Query, shares: Sequence[Fraction]) -> Query:
    """The query with its loss split over its levels in these proportions."""
    whole = sum(shares, Fraction(0))
    parts = iter(shares)
    axes = [
        tuple(Choice(choice.group, next(parts) / whole if len(axis) > 1 else Fraction(1)) for choice in axis)
        for axis in query.axes
    ]
    return replace(query, axes=tuple(axes))
