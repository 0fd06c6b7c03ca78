"""What the shares of a plan waste, from public totals alone.

For the middle cell of each table, by the exact variances of the best linear fit; no record is read.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.text import share_text
from recordwise.mechanisms.base import Mechanism
from recordwise.plan.describe import group_json
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.plan.query import Query
from recordwise.planning.result import loss_figure
from recordwise.planning.scope import level_shares
from recordwise.planning.search.goals import by_band
from recordwise.planning.search.shares import (
    LevelTree,
    best_split,
    can_be_fitted,
    checked_sigma,
    fitted_split,
    tree_of_tables,
)
from recordwise.postprocess.linear import AnswerTree, Crossing
from recordwise.release.nesting import finest_of
from recordwise.release.published import CodeLists, read_groups
from recordwise.release.tables import ReleasedTable

MOST_SEARCHED = 3000
"""Up to this many cells the best shares are searched for with fitted variances; beyond, those for noisy answers are taken."""
NEARLY = 1.05
"""A variance this much larger is not worth a change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waste:
    """The variance of a statistic in the worst of its tables, at their middle cells, relative to better shares."""

    variable: str
    now: float
    """With the shares of the plan, divided by that with the shares found."""
    equal: float
    """The same with equal shares."""
    shares: tuple[tuple[Fraction, ...], ...]
    """The shares found, along each axis with several levels."""

    def text(self) -> str:
        """In words."""
        lists = " and ".join(
            f"share = [{', '.join(share_text(float(each), 2) for each in own)}]" for own in self.shares
        )
        own = "" if self.now < NEARLY else f"; those of the plan need {loss_figure(self.now)} times as much"
        return (
            f"{self.variable}: for the same relative error in the middle cell of each table, equal shares would need "
            f"{loss_figure(self.equal)} times the variance of {lists}{own}."
        )

    def to_json(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        shares = [[float(each) for each in own] for own in self.shares]
        return {"variable": self.variable, "now": self.now, "equal": self.equal, "shares": shares}


def wasted_variance(plan: Plan, totals: Callable[[PlannedTable, Any], FloatArray | None]) -> tuple[Waste, ...]:
    """Return what shares waste, for each statistic with Gaussian noise whose totals are public in all its tables."""
    found = []
    for number, query in enumerate(plan.queries):
        tables = [each for each in plan.tables() if each.query == number]
        if len(tables) < 2 or any(plan.selection(each) is not None for each in tables):
            continue
        known = {
            each: [totals(table, each) for table in tables]
            for each in query.draws()
            if each.totals(plan.schema) and can_be_fitted(each.mechanism)
        }
        usable = {each: [own for own in sizes if own is not None and np.any(own > 0)] for each, sizes in known.items()}
        usable = {each: sizes for each, sizes in usable.items() if len(sizes) == len(tables)}
        public = _public_tree(plan, query, tables) if usable else None
        if public is not None:
            found += [_waste(query, each.alias, each.mechanism, public, sizes) for each, sizes in usable.items()]
    return tuple(found)


def _public_tree(
    plan: Plan, query: Query, tables: Sequence[PlannedTable]
) -> tuple[AnswerTree | Crossing, list[int], list[int]] | None:
    """Return the answers of a query, the order of its tables, and how many cells each has."""
    named = [str(number) for number in range(len(tables))]
    by = {
        name: read_groups(group_json(group, plan.schema) for group in table.shape.groups)
        for name, table in zip(named, tables)
    }
    if finest_of(list(by.values())) is None:
        return None
    cells = [plan.cells(each) if each.shape.groups else pa.table({"all": [True]}) for each in tables]
    made = [
        ReleasedTable(name=name, keys=tuple(own.column_names) if table.shape.groups else (), variables=(), data=own)
        for name, own, table in zip(named, cells, tables)
    ]
    lists = CodeLists.read(each.to_json() for each in plan.schema.hierarchies)
    tree, order, _ = tree_of_tables(made, by, lists, query.all_other is not None)
    return tree, order, [own.num_rows for own in cells]


def _waste(
    query: Query,
    alias: str,
    mechanism: Mechanism,
    public: tuple[AnswerTree | Crossing, list[int], list[int]],
    sizes: Sequence[FloatArray],
) -> Waste:
    answers, order, counts = public
    # Published rests, which come last, have no size of their own.
    padded = [np.append(own, np.zeros(count - len(own))) for own, count in zip(sizes, counts)]
    reach, middles = [], [float(np.median(own[own > 0])) for own in padded]
    for own, middle in zip(padded, middles):
        at = int(np.argmin(np.abs(own - middle)))
        reach.append(np.where(np.arange(len(own)) == at, own, np.inf))
    variance = np.zeros(sum(counts))
    together = np.concatenate([padded[n] for n in order])
    for each, rows in by_band(mechanism, together):
        variance[rows] = float(checked_sigma(each)) ** 2
    level = np.concatenate([np.full(counts[n], n) for n in order])
    reached = np.concatenate([reach[n] for n in order])
    tree = LevelTree(tree=answers, level=level, variance=variance, reach=reached, may_miss=(0,) * len(counts))

    def cost(shares: FloatArray) -> float:
        return float(np.max(tree.squared_ratios(shares)))

    middle = np.isfinite(reached)
    raw = np.zeros(len(counts))
    raw[level[middle]] = variance[middle] / reached[middle] ** 2
    alone = best_split(query, lambda shares: float(np.max(raw / shares)), starts=[raw / raw.sum()])
    tried = [query, alone] + ([fitted_split(query, tree)] if len(level) <= MOST_SEARCHED else [])
    costs = [cost(level_shares(each)) for each in tried]
    least = min(costs)
    chosen = tried[costs.index(least)]
    return Waste(
        variable=alias,
        now=costs[0] / least,
        equal=cost(np.full(len(counts), 1 / len(counts))) / least,
        shares=tuple(tuple(each.share for each in axis) for axis in chosen.axes if len(axis) > 1),
    )
