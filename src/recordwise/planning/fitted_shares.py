"""The split of a loss over levels that makes the fitted errors smallest: an exact convex program for Gaussian noise (T-FITSHARES).

With a share w of the loss a level has the variances sigma^2/w, of one sigma for all its cells or, where noise is sized, of their
own. The variance of a fitted cell is a convex function of the shares, and so is the largest of them relative to its goal. It is
minimized by cutting planes: every cut is a tangent and lies below the function, so that the least value of all cuts bounds the
best from below and shows how far the split found can be from it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recordwise.exact.arithmetic import FloatArray
from recordwise.postprocess.answer_tree import AnswerTree, Weights

GAP = 1e-4
"""The squared ratio of the split that is returned is within this of the smallest possible, relatively."""
MOST_ROUNDS = 400
LEAST_SHARE = 1e-6
TIMES_CHOSEN = 5
"""How often the cells that may miss are chosen again, at the split found for those before."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LevelTree:
    """The cells of the tables of one goal, with the variance each would have if its table had the whole loss."""

    tree: AnswerTree
    level: Any
    """The number of each cell's table."""
    variance: FloatArray
    reach: FloatArray
    """The standard error that just meets the goal of each cell; infinite where there is none."""
    may_miss: tuple[int, ...]
    """How many cells of each table need not meet it."""

    @property
    def tables(self) -> int:
        return len(self.may_miss)

    def weights(self, shares: FloatArray) -> Weights:
        """The best linear fit at these shares."""
        return self.tree.weights(self.variance / shares[self.level])

    def squared_ratios(self, shares: FloatArray) -> FloatArray:
        """The variance of each fitted cell relative to what its goal allows."""
        return np.asarray(self.weights(shares).fitted / self.reach**2)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Split:
    """Shares of all tables, tree by tree."""

    shares: FloatArray
    ratios: tuple[float, ...]
    """For each table the fitted error divided by its goal, in the deciding cell."""
    gap: float
    """How much larger than the smallest possible the largest squared ratio can be, relatively: 0 is exact."""

    @property
    def worst(self) -> float:
        """The largest of the ratios."""
        return max(self.ratios)


def fitted_shares(trees: Sequence[LevelTree]) -> Split:
    """The shares, adding up to 1, at which the largest fitted error relative to its goal is smallest.

    Exact where every cell counts. Where some may miss their goal, these are the worst ones at the split found before.
    """
    count = sum(each.tables for each in trees)
    best = _split(trees, np.full(count, 1 / count), 0.0)
    for _ in range(TIMES_CHOSEN if any(any(each.may_miss) for each in trees) else 1):
        found = _minimized(trees, [_must(each, part) for each, part in zip(trees, _parts(trees, best.shares))])
        better = _split(trees, *found)
        if better.worst >= best.worst * (1 - 1e-9):
            break
        best = better
    return best


def _split(trees: Sequence[LevelTree], shares: FloatArray, gap: float) -> Split:
    ratios = []
    for tree, part in zip(trees, _parts(trees, shares)):
        squared = tree.squared_ratios(part)
        for number, may_miss in enumerate(tree.may_miss):
            own = np.sort(squared[(tree.level == number) & np.isfinite(tree.reach)])
            ratios.append(float(np.sqrt(own[len(own) - 1 - may_miss])))
    return Split(shares=shares, ratios=tuple(ratios), gap=gap)


def _parts(trees: Sequence[LevelTree], values: FloatArray) -> list[FloatArray]:
    return list(np.split(values, np.cumsum([each.tables for each in trees])[:-1]))


def _must(tree: LevelTree, shares: FloatArray) -> Any:
    """The cells that must meet their goal: all but the worst that each table may miss."""
    squared, must = tree.squared_ratios(shares), np.isfinite(tree.reach)
    for number, may_miss in enumerate(tree.may_miss):
        own = np.flatnonzero((tree.level == number) & must)
        must[own[np.argsort(squared[own])[len(own) - may_miss :]]] = False
    return must


def _minimized(trees: Sequence[LevelTree], must: Sequence[Any]) -> tuple[FloatArray, float]:
    """The shares with the smallest largest squared ratio, by cutting planes, and the relative gap that remains."""
    count = sum(each.tables for each in trees)
    point = best = np.full(count, 1 / count)
    least, highest = 0.0, np.inf
    slopes, offsets = [np.zeros(count)], [0.0]
    for _ in range(MOST_ROUNDS):
        values, gradients = _tangents(trees, must, point)
        if values.max() < highest:
            best, highest = point, float(values.max())
        slopes += list(gradients)
        offsets += list(values - gradients @ point)
        least, lowest = _lowest(np.array(slopes), np.array(offsets))
        if highest - least <= GAP * highest:
            break
        # Tangents at a corner say little about the middle, so the next point is between the lowest one and the best so far.
        point = (lowest + best) / 2
    return best, (highest - least) / highest


def _tangents(trees: Sequence[LevelTree], must: Sequence[Any], shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The largest squared ratio of each table and its slope in all shares."""
    values, gradients, start = [], [], 0
    for tree, own, part in zip(trees, must, _parts(trees, shares)):
        weights = tree.weights(part)
        squared = np.where(own, weights.fitted / tree.reach**2, -np.inf)
        cells = [int(np.argmax(np.where(tree.level == number, squared, -np.inf))) for number in range(tree.tables)]
        unit = np.zeros((tree.tables, len(squared)))
        unit[np.arange(tree.tables), cells] = tree.variance[cells] / part[tree.level[cells]]
        # The fit of a cell's own variance is its covariance with every fitted cell.
        powers = weights.fit(unit) ** 2
        for number, cell in enumerate(cells):
            slope = np.zeros(len(shares))
            added = np.bincount(tree.level, weights=powers[number] / tree.variance, minlength=tree.tables)
            slope[start : start + tree.tables] = -added / tree.reach[cell] ** 2
            values.append(squared[cell])
            gradients.append(slope)
        start += tree.tables
    return np.array(values), np.array(gradients)


def _lowest(slopes: FloatArray, offsets: FloatArray) -> tuple[float, FloatArray]:
    """The least value of the largest tangent over all splits, and where."""
    from scipy.optimize import linprog

    count = slopes.shape[1]
    scale = max(float(offsets.max()), 1e-300)
    found = linprog(
        np.append(np.zeros(count), 1.0),
        A_ub=np.hstack([slopes / scale, -np.ones((len(slopes), 1))]),
        b_ub=-offsets / scale,
        A_eq=np.append(np.ones(count), 0.0)[None],
        b_eq=[1.0],
        bounds=[(LEAST_SHARE, 1.0)] * count + [(0.0, None)],
        method="highs",
    )
    assert found.x is not None
    assert found.fun is not None
    return float(found.fun) * scale, np.asarray(found.x[:count])
