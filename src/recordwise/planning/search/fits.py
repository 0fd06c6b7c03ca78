"""What a family of mechanisms needs for the goals of one statistic of a plan, and the split over levels that costs least.

A query splits the loss of all its statistics over its levels in one way. A statistic whose mechanism has sigma s for the whole loss
has s / sqrt(w) at a level with the share w, so that the levels allow it min_l n_l sqrt(w_l), where n_l is the most noise that meets
the goal of level l; for fitted levels, the most at which the fit meets all goals. The split is chosen for what the records lose
from all statistics together.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from recordwise.exact.arithmetic import FloatArray
from recordwise.mechanisms.base import Mechanism
from recordwise.mechanisms.calibration import decimal
from recordwise.plan.cost import records_of, statistic_policy
from recordwise.plan.query import Query
from recordwise.plan.schema import Schema
from recordwise.planning.losses import RANKS, Losses, balance, loss_at, policy_names
from recordwise.planning.search.families import amount, has_amount
from recordwise.planning.search.fitness import Fitted, InfeasibleError, met_by
from recordwise.planning.search.goals import GoalTable, Target
from recordwise.planning.search.shares import LevelTree, best_split, level_shares
from recordwise.policy.policy import Policy
from recordwise.session.owner import OwnerView, ValueCounts

# Losses of a sample of the records, on which splits and families are tried before they are measured on all of them.


RECORDS = 4000
"""Records evenly spaced in the order of their values."""
LARGEST = 50
"""So many of the records largest in each measure are in the sample too, with next to no weight: they decide the maximum."""
NEXT_TO_NOTHING = 1e-3


class RecordSample:
    """CONFIDENTIAL if the records are: some records with their weights; where there are too many values, one typical record."""

    def __init__(self, view: OwnerView, policies: Sequence[Policy], rank_by: str) -> None:
        self._view, self._rank_by = view, rank_by
        self._counted = view.value_counts(policy_names(policies))
        self._rows: Any = np.zeros(1, np.int64)
        self.weights: FloatArray = np.ones(1)
        if self._counted is not None and len(self._counted.records):
            self._rows, self.weights = _chosen(self._counted)
        self.columns = {} if self._counted is None else _taken(self._counted.columns, self._rows)

    def losses(self, policies: Sequence[Policy]) -> FloatArray:
        """The loss of each record under each policy, a column for each."""
        if self._counted is None:
            bins = self._view.loss_bins(list(policies))
            return np.array([[loss_at(Losses.of_bins(each), self._rank_by) for each in bins]])
        return np.stack([self._of(each) for each in policies], axis=1)

    def _of(self, policy: Policy) -> FloatArray:
        found = policy.loss(self.columns) if self.columns else float(policy.loss({}))
        return np.asarray(np.broadcast_to(np.asarray(found, np.float64), len(self._rows)))

    def ranked(self, losses: FloatArray, rank_by: str | None = None) -> float:
        """The loss of a rank: of the one by which plans are compared, unless another is given."""
        order = np.argsort(losses)
        risen = np.cumsum(self.weights[order])
        shares = np.array(RANKS[rank_by or self._rank_by])
        places = np.searchsorted(risen, shares * risen[-1] * (1 - 1e-12))
        return balance(losses[order[np.minimum(places, len(order) - 1)]].tolist())


def _chosen(counted: ValueCounts) -> tuple[Any, FloatArray]:
    """Rows evenly spaced along the measures, and the largest of each measure."""
    measures = [np.asarray(each, np.float64) for each in counted.columns.values() if not _is_text(each)]
    order = np.lexsort(measures[::-1]) if measures else np.arange(len(counted.records))
    risen = np.cumsum(counted.records[order])
    count = int(min(RECORDS, risen[-1]))
    even = order[np.searchsorted(risen, (np.arange(count) + 0.5) * risen[-1] / count)]
    rows, times = np.unique(even, return_counts=True)
    largest = [np.argsort(each)[-LARGEST:] for each in measures]
    more = np.setdiff1d(np.concatenate(largest) if largest else rows[:0], rows)
    return np.append(rows, more), np.append(times.astype(np.float64), np.full(len(more), NEXT_TO_NOTHING))


def _is_text(column: Any) -> bool:
    return isinstance(column, pa.ChunkedArray | pa.Array)


def _taken(columns: dict[str, Any], rows: Any) -> dict[str, Any]:
    return {name: each.take(pa.array(rows)) if _is_text(each) else each[rows] for name, each in columns.items()}


SLACK, TRANSFORM_SLACK = 1e-6, 5e-4
"""So much less noise than the most: shares have six decimals, sigmas are rounded, and a shared transform has a little more noise
because its grid is coarser (T-GRID)."""
UNSHARED = (
    "its loss cannot be split over levels without changing the shape of its noise; give each level a query of its own"
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class StatisticFit:
    """CONFIDENTIAL if the records are: one family for one statistic of a plan."""

    family: str
    target: Target
    prototype: Any
    """The mechanism, whose amount of noise is still to be set; of a query with one table, the mechanism itself."""
    tables: tuple[GoalTable, ...]
    needed: tuple[Fitted, ...]
    """For each table of the goal, the mechanism it would need by itself; empty where the levels are fitted together."""
    tree: LevelTree | None = None
    """The levels to be fitted together, at an amount of 1 for the whole loss."""

    def most(self, shares: FloatArray) -> float:
        """The most noise for the whole loss, if the tables have these shares of it."""
        if self.tree is not None:
            return 1 / self._worst(self.tree.squared_ratios(shares))
        levels = list(self.target.goal.levels)
        return float(min(amount(each.mechanism) * np.sqrt(share) for each, share in zip(self.needed, shares[levels])))

    def _worst(self, squared: FloatArray) -> float:
        assert self.tree is not None
        found = []
        for level in self.target.goal.levels:
            own = squared[(self.tree.level == level) & np.isfinite(self.tree.reach)]
            place = len(own) - 1 - self.tree.may_miss[level]
            found.append(float(np.partition(own, place)[place]))
        return float(np.sqrt(max(found)))

    def mechanism(self, query: Query) -> Any:
        """The mechanism of the statistic, at the split that the query has."""
        if len(query.tables()) == 1 and self.tree is None:
            return self.needed[0].mechanism
        slack = SLACK if self.prototype.inside()[0].noise_scale is None else TRANSFORM_SLACK
        return self.prototype.with_amount(decimal(self.most(level_shares(query)) * (1 - slack)))

    def at(self, query: Query, part: Fraction) -> list[Fitted]:
        """What each table gets of a part of the loss that the goal needs, and how many of its cells meet the goal."""
        levels, mechanism = query.tables(), self.mechanism(query).at_share(part)
        squared = None
        if self.tree is not None:
            squared = self.tree.squared_ratios(level_shares(query)) * amount(mechanism) ** 2
        found = []
        for number, table in zip(self.target.goal.levels, self.tables):
            own = mechanism.at_share(levels[number].share)
            if squared is None or self.tree is None:
                met = met_by(table, own, self.family)
            else:
                met = squared[(self.tree.level == number) & np.isfinite(self.tree.reach)] <= 1
            found.append(Fitted(table=table, mechanism=own, deciding=table.deciding(), share_met=float(np.mean(met))))
        return found


def level_policies(fit: StatisticFit, query: Query, schema: Schema) -> list[Policy]:
    """What the prototype would cost at each table of the query if that one had the whole loss."""
    statistic = replace(fit.target.asked.statistic, mechanism=fit.prototype)
    condition = records_of(query.condition, schema)
    return [
        statistic_policy(query, statistic, replace(level, share=Fraction(1)), schema, tight=True).where(condition)
        for level in query.tables()
    ]


def check_shared(mechanism: Mechanism, query: Query) -> None:
    """Whether a mechanism can serve a query of several levels with one amount of noise."""
    if len(query.tables()) > 1 and not has_amount(mechanism):
        raise InfeasibleError(f"{type(mechanism).__name__}: {UNSHARED}")


class QueryCost:
    """The loss by which plans are compared, for one query, as a function of its families and of its split."""

    def __init__(self, query: Query, fits: Sequence[StatisticFit], schema: Schema) -> None:
        self.query, self.fits = query, list(fits)
        self._places, self.policies = {}, list[Policy]()
        for each in self.fits:
            own = level_policies(each, query, schema)
            self._places[each] = range(len(self.policies), len(self.policies) + len(own))
            self.policies += own
        self._losses: dict[StatisticFit, FloatArray] = {}

    def measured(self, sample: RecordSample, losses: FloatArray) -> None:
        """Take the losses of the sampled records under ``policies``, a column each."""
        self._sample = sample
        for each in self.fits:
            scale = amount(each.prototype) ** 2 if has_amount(each.prototype) else 1.0
            self._losses[each] = losses[:, list(self._places[each])] * scale

    def cost(self, fits: Sequence[StatisticFit]) -> Callable[[FloatArray], float]:
        """The loss at the rank, from some statistics, as a function of the shares of the tables."""

        def at(shares: FloatArray) -> float:
            total = np.zeros(len(self._sample.weights))
            for each in fits:
                most = each.most(shares) if has_amount(each.prototype) else 1.0
                total += self._losses[each] @ shares / most**2
            return max(self._sample.ranked(total), 1e-300)

        return at

    def split(self, fits: Sequence[StatisticFit]) -> Query:
        """The query with the split that costs least; as it is where a table or a statistic of it has no goal."""
        drawn = {each.alias for each in self.query.draws()}
        levels = len(self.query.tables())
        whole = all(len(each.target.goal.levels) == levels for each in fits)
        if levels == 1 or not whole or drawn != {each.target.asked.statistic.alias for each in fits}:
            return self.query
        return best_split(self.query, self.cost(fits), starts=[self._start(each) for each in fits])

    def _start(self, fit: StatisticFit) -> FloatArray:
        """Where levels do not depend on each other: what each needs by itself."""
        if fit.tree is not None:
            return level_shares(self.query)
        need = np.array([self._sample.ranked(own) for own in self._losses[fit].T])
        need = need / np.array([amount(each.mechanism) for each in fit.needed]) ** 2
        return np.asarray(need / need.sum())

    def best(self, fits: Sequence[StatisticFit]) -> StatisticFit:
        """The family that costs least for one statistic by itself."""

        def alone(fit: StatisticFit) -> float:
            return self.cost([fit])(level_shares(self.split_alone(fit)))

        return min(fits, key=alone)

    def split_alone(self, fit: StatisticFit) -> Query:
        levels = len(self.query.tables())
        if levels == 1 or len(fit.target.goal.levels) < levels:
            return self.query
        return best_split(self.query, self.cost([fit]), starts=[self._start(fit)])
