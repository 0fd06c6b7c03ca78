"""How far the tables of one query of a plan are from their goals, as a function of how its loss is split over its levels."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from recordwise.exact.arithmetic import FloatArray
from recordwise.plan.query import Query
from recordwise.planning.level_shares import level_shares
from recordwise.planning.level_trees import goal_levels
from recordwise.planning.targets import TargetTable
from recordwise.planning.whole import Scope
from recordwise.session.owner import OwnerView


class LevelRatios(Protocol):
    """Error divided by goal in the deciding cell of each table."""

    def at(self, query: Query) -> list[float]:
        """At the split that the query has."""

    def nearby(self, found: Sequence[float], at: FloatArray) -> Callable[[FloatArray], float]:
        """The largest ratio as a function of the shares, given those found at some shares."""


class RawRatios:
    """Ratios of the noisy answers: that of a table depends on its own share alone."""

    def __init__(self, view: OwnerView, scope: Scope, tables: Sequence[TargetTable], *, complete: bool) -> None:
        self._view, self._scope, self._tables = view, scope, tables
        self._levels = np.array([each.totals.number for each in tables])

    def at(self, query: Query) -> list[float]:
        shares = [level.share for level in query.tables()]
        schema = self._view.schema
        return [
            each.worst(
                each.ratios(
                    self._scope, each.asked.statistic.mechanism, shares[each.totals.number], schema, kept="budget"
                )
            )
            for each in self._tables
        ]

    def nearby(self, found: Sequence[float], at: FloatArray) -> Callable[[FloatArray], float]:
        # Errors fall with the root of the share: exactly for Gaussian noise, nearly for other noise.
        scaled = np.array(found) * np.sqrt(at[self._levels])
        return lambda shares: float((scaled / np.sqrt(shares[self._levels])).max())


class FittedRatios:
    """Ratios of the best linear fit of all levels, which depend on all shares; for Gaussian noise, sized or not."""

    def __init__(self, view: OwnerView, scope: Scope, tables: Sequence[TargetTable], *, complete: bool) -> None:
        self._tables = tables
        statistics = list({each.asked.place: each for each in tables}.values())
        levels = goal_levels(view, [each.goal for each in statistics], complete=complete)
        self._trees: dict[Any, Any] = {
            each.asked.place: tree.at(each.asked.statistic.mechanism) for each, tree in zip(statistics, levels)
        }

    def at(self, query: Query) -> list[float]:
        return self._ratios(level_shares(query))

    def _ratios(self, shares: FloatArray) -> list[float]:
        squared = {place: tree.squared_ratios(shares) for place, tree in self._trees.items()}
        found = []
        for each in self._tables:
            tree = self._trees[each.asked.place]
            own = squared[each.asked.place][(tree.level == each.totals.number) & np.isfinite(tree.reach)]
            found.append(each.worst(np.sqrt(own)))
        return found

    def nearby(self, found: Sequence[float], at: FloatArray) -> Callable[[FloatArray], float]:
        return lambda shares: max(self._ratios(shares))
