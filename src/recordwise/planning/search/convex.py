"""The split of a loss over tables that needs the least: an exact convex program (T-FITSHARES).

With a share w of the loss a table has the variances sigma^2/w, of one sigma for all its cells or, where noise is sized,
of their own. The variance of a fitted cell is a convex function of the shares, and so is the largest of them relative to
its goal. It is minimized by cutting planes: every cut is a tangent and lies below the function, so that the least value
of all cuts bounds the optimum from below and shows how far the split found can be from it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from recordwise.exact.arithmetic import FloatArray
from recordwise.postprocess.linear import AnswerTree, Crossing, CrossingWeights, Weights

GAP = 1e-4
"""The squared ratio of the split that is returned is within this of the smallest possible, relatively."""
MOST_ROUNDS = 400
LEAST_SHARE = 1e-6
TIMES_CHOSEN = 5
"""How often the cells that may miss are chosen again, at the split found for those before."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LevelTree:
    """The cells of the tables of one goal."""

    tree: AnswerTree | Crossing
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

    def weights(self, shares: FloatArray) -> Weights | CrossingWeights:
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
    """Return the shares that minimize the worst fitted error.

    They add up to 1; errors are relative to goals. Exact where every cell counts. Where some may miss their
    goal, these are the worst ones at the previous split.
    """
    count = sum(each.tables for each in trees)
    best = split_at(trees, np.full(count, 1 / count), 0.0)
    for _ in range(TIMES_CHOSEN if any(any(each.may_miss) for each in trees) else 1):
        must = [_must(each, part) for each, part in zip(trees, _parts(trees, best.shares))]
        found = _minimized([partial(_tangents, trees, must)], np.ones(1), count)
        better = split_at(trees, *found)
        if better.worst >= best.worst * (1 - 1e-9):
            break
        best = better
    return best


def split_at(trees: Sequence[LevelTree], shares: FloatArray, gap: float) -> Split:
    """Return what some shares give, tree by tree."""
    ratios = []
    for tree, part in zip(trees, _parts(trees, shares)):
        squared = tree.squared_ratios(part)
        for number, may_miss in enumerate(tree.may_miss):
            own = np.sort(squared[(tree.level == number) & np.isfinite(tree.reach)])
            # A table without a goal is nowhere off.
            ratios.append(float(np.sqrt(own[len(own) - 1 - may_miss])) if len(own) else 0.0)
    return Split(shares=shares, ratios=tuple(ratios), gap=gap)


def _parts(trees: Sequence[LevelTree], values: FloatArray) -> list[FloatArray]:
    return list(np.split(values, np.cumsum([each.tables for each in trees])[:-1]))


def _must(tree: LevelTree, shares: FloatArray) -> Any:
    """Return the cells that must meet their goal."""
    squared, must = tree.squared_ratios(shares), np.isfinite(tree.reach)
    for number, may_miss in enumerate(tree.may_miss):
        own = np.flatnonzero((tree.level == number) & must)
        must[own[np.argsort(squared[own])[len(own) - may_miss :]]] = False
    return must


Pieces = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""Convex functions of the shares, of which the largest counts: their values at a point, and their slopes."""
Needs = LevelTree | FloatArray
"""What a statistic needs: fitted levels together, or so much of each table by itself, as squared ratios at the whole loss."""


def convex_shares(needs: Sequence[Needs], weights: FloatArray | None, start: FloatArray) -> FloatArray:
    """Return the shares for several statistics that need the least (T-FITSHARES).

    Args:
        needs: The need of each statistic.
        weights: What each statistic's worst squared ratio counts in their sum; None to minimize the largest of them.
        start: Shares of the tables.

    Returns:
        Shares of the tables; the start if none are better.
    """

    def value(at: FloatArray) -> float:
        own = np.array([_worst(each, at) for each in needs])
        return float(own.max() if weights is None else own @ weights)

    best, least = start, value(start)
    chosen = any(isinstance(each, LevelTree) and any(each.may_miss) for each in needs)
    for _ in range(TIMES_CHOSEN if chosen else 1):
        pieces = [_pieces(each, best) for each in needs]
        together = [_together(pieces)] if weights is None else pieces
        found, _ = _minimized(together, np.ones(1) if weights is None else weights, len(start))
        if value(found) >= least * (1 - 1e-9):
            break
        best, least = found, value(found)
    return best


def _worst(need: Needs, shares: FloatArray) -> float:
    """The largest squared ratio that counts."""
    return split_at([need], shares, 0.0).worst ** 2 if isinstance(need, LevelTree) else float((need / shares).max())


def _pieces(need: Needs, shares: FloatArray) -> Pieces:
    if isinstance(need, LevelTree):
        must = _must(need, shares)
        return lambda at: _tangents([need], [must], at)
    return lambda at: (need / at, -np.diag(need / at**2))


def _together(pieces: Sequence[Pieces]) -> Pieces:
    def both(at: FloatArray) -> tuple[FloatArray, FloatArray]:
        found = [each(at) for each in pieces]
        return np.concatenate([values for values, _ in found]), np.concatenate([slopes for _, slopes in found])

    return both


def _minimized(parts: Sequence[Pieces], weights: FloatArray, count: int) -> tuple[FloatArray, float]:
    """Return the shares with the smallest weighted sum of maxima."""
    point = best = np.full(count, 1 / count)
    least, highest = 0.0, np.inf
    slopes, offsets, owners = [np.zeros(count)] * len(parts), [0.0] * len(parts), list(range(len(parts)))
    for _ in range(MOST_ROUNDS):
        found = [part(point) for part in parts]
        total = float(weights @ np.array([values.max() for values, _ in found]))
        if total < highest:
            best, highest = point, total
        for number, (values, gradients) in enumerate(found):
            slopes += list(gradients)
            offsets += list(values - gradients @ point)
            owners += [number] * len(values)
        least, lowest = _lowest(np.array(slopes), np.array(offsets), np.array(owners), weights)
        if highest - least <= GAP * highest:
            break
        # Tangents at a corner say little about the middle, so the next point is between the lowest one and the best so far.
        point = (lowest + best) / 2
    return best, (highest - least) / highest


def _tangents(trees: Sequence[LevelTree], must: Sequence[Any], shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return each table's largest squared ratio and its slopes."""
    values, gradients, start = [], [], 0
    for tree, own, part in zip(trees, must, _parts(trees, shares)):
        weights = tree.weights(part)
        squared = np.where(own, weights.fitted / tree.reach**2, -np.inf)
        goals = np.unique(tree.level[own])
        cells = [int(np.argmax(np.where(tree.level == number, squared, -np.inf))) for number in goals]
        unit = np.zeros((len(cells), len(squared)))
        unit[np.arange(len(cells)), cells] = tree.variance[cells] / part[tree.level[cells]]
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


def _lowest(slopes: FloatArray, offsets: FloatArray, owners: Any, weights: FloatArray) -> tuple[float, FloatArray]:
    """Return the least weighted sum of largest tangents, and where."""
    from scipy.optimize import linprog

    count, parts = slopes.shape[1], len(weights)
    scale = np.array([max(float(offsets[owners == number].max()), 1e-300) for number in range(parts)])
    whole = float(weights @ scale)
    found = linprog(
        np.append(np.zeros(count), weights * scale / whole),
        A_ub=np.hstack([slopes / scale[owners][:, None], -(owners[:, None] == np.arange(parts)).astype(np.float64)]),
        b_ub=-offsets / scale[owners],
        A_eq=np.append(np.ones(count), np.zeros(parts))[None],
        b_eq=[1.0],
        bounds=[(LEAST_SHARE, 1.0)] * count + [(0.0, None)] * parts,
        method="highs",
    )
    assert found.x is not None
    assert found.fun is not None
    return float(found.fun) * whole, np.asarray(found.x[:count])
