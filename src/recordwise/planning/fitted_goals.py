"""The least loss at which fitted levels meet their goals: the best split, and the noise at which it just meets them."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from recordwise.mechanisms.base import is_sized, shared
from recordwise.plan.query import Query
from recordwise.planning.amounts import with_amount
from recordwise.planning.fitness import Fitted
from recordwise.planning.fitted_shares import fitted_shares
from recordwise.planning.goals import Goal, GoalTable
from recordwise.planning.level_trees import GoalLevels, goal_levels, with_shares
from recordwise.planning.shapes import with_statistic
from recordwise.session.owner import OwnerView

UNITS = 10**6
"""Shares have six decimals."""
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LevelSplit:
    """CONFIDENTIAL if the records are: the best split of one goal, the same for every sigma because that scales all errors."""

    shares: tuple[Fraction, ...]
    worst: float
    """The largest fitted error relative to its goal, at these shares and a sigma of 1 for the whole loss."""


class LevelSplits:
    """CONFIDENTIAL if the records are: the best split of each goal, found once for all mechanisms whose noise is in proportion."""

    def __init__(self, view: OwnerView, goals: Sequence[Goal], *, complete: bool) -> None:
        self.levels = goal_levels(view, goals, complete=complete)
        self._found: dict[Any, LevelSplit] = {}

    def of(self, number: int, mechanism: Any) -> LevelSplit:
        """The split of a goal for a mechanism."""
        kind = (number, mechanism.floor if is_sized(mechanism) else None)
        if kind not in self._found:
            self._found[kind] = _split(self.levels[number], with_amount(mechanism, 1.0))
        return self._found[kind]


def _split(levels: GoalLevels, mechanism: Any) -> LevelSplit:
    tree = levels.at(mechanism)
    found = fitted_shares([tree])
    shares = [max(Fraction(int(share * UNITS), UNITS), Fraction(1, UNITS)) for share in found.shares]
    shares[int(np.argmax(found.shares))] += 1 - sum(shares)
    squared = tree.squared_ratios(np.array([float(share) for share in shares]))
    worst = [np.sort(squared[_counted(levels, n)])[::-1][missed] for n, missed in enumerate(levels.tree.may_miss)]
    return LevelSplit(shares=tuple(shares), worst=float(np.sqrt(max(worst))))


def _counted(levels: GoalLevels, number: int) -> Any:
    return (levels.tree.level == number) & np.isfinite(levels.tree.reach)


def fitted_family(
    splits: LevelSplits, tables: Sequence[GoalTable], whole: Sequence[Any]
) -> tuple[tuple[Fitted, ...], tuple[Query, ...]]:
    """A Gaussian family with the most noise whose fitted levels meet the goals, table by table and as one query for each goal."""
    found: list[Fitted] = []
    asked: list[Query] = []
    for at, mechanism in enumerate(whole):
        split, levels = splits.of(at, mechanism), splits.levels[at]
        goal = levels.goal
        fitting = with_amount(mechanism, 1 / split.worst)
        squared = levels.at(fitting).squared_ratios(np.array([float(share) for share in split.shares]))
        asked.append(with_statistic(with_shares(goal.query, split.shares), goal.measure, fitting))
        for number, share in enumerate(split.shares):
            own = squared[_counted(levels, number)]
            table = tables[len(found)]
            found.append(
                Fitted(
                    table=table,
                    mechanism=shared(fitting, share),
                    deciding=table.deciding(),
                    share_met=float(np.mean(own <= 1 + ROUNDING)),
                )
            )
    return tuple(found), tuple(asked)
