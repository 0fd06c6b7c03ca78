"""Shares of a loss for which the largest of several costs is smallest, by cutting planes (T-FITSHARES).

A cost is a mean of variances of fitted cells. Its inverse is concave in the shares and grows in proportion to all of them
together, so that a tangent of it lies above it everywhere and goes through 0. The shares at which the lowest of all tangents is
highest say how much better than the best ones found any others can be.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from recordwise.exact.arithmetic import FloatArray

GAP = 1e-3
"""The largest cost is within this of the smallest possible, relatively."""
ROUNDS = 60
TURNS = 12
"""How often the shares of each axis are chosen again, given those of the others."""
STEP = 1e-4
"""How far the logarithm of a share moves to find a slope."""

Costs = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Split:
    """Shares, and what is known of the costs at all others."""

    shares: FloatArray
    cost: float
    """The largest cost."""
    tangents: FloatArray
    """Slopes of inverse costs: at any shares one over a cost is at most their product with a row of it."""

    def bound(self, shares: FloatArray) -> float:
        """Return what the largest cost at some shares is at least."""
        return float(1 / np.min(self.tangents @ shares))


def least_split(costs: Costs, start: FloatArray, least: float, tangents: Sequence[FloatArray] = ()) -> Split:
    """Return the shares with the smallest largest cost, up to ``GAP``.

    Args:
        costs: The costs, as a function of the shares.
        start: Shares to begin from.
        least: The smallest share that may be given.
        tangents: Known ones.

    Returns:
        The shares, which add up to 1.
    """
    known, point = list(tangents), np.maximum(start, least)
    point = _highest(np.concatenate(known), least)[0] if known else point / point.sum()
    best, cost = point, np.inf
    for _ in range(ROUNDS):
        now, slopes = _tangents(costs, point)
        better = float(now.max()) < cost
        best, cost = (point, float(now.max())) if better else (best, cost)
        known.append(slopes)
        highest, most = _highest(np.concatenate(known), least)
        if cost * most <= 1 + GAP:
            break
        # Where the tangents promised too much, they are not trusted as far as they go.
        point = highest if better else (highest + best) / 2
    return Split(shares=best, cost=cost, tangents=np.concatenate(known))


def least_product(split: Split, lengths: Sequence[int], least: float) -> list[FloatArray]:
    """Return shares along axes whose products are best by the tangents: for each axis in turn, given the others.

    Args:
        split: The best shares of all combinations.
        lengths: The number of levels of each axis.
        least: The smallest share that a level may get.

    Returns:
        The shares of each axis.
    """
    grid = split.shares.reshape(lengths)
    axes = [grid.sum(axis=tuple(other for other in range(len(lengths)) if other != own)) for own in range(len(lengths))]
    axes = [np.maximum(each, least) / np.maximum(each, least).sum() for each in axes]
    slopes = split.tangents.reshape(-1, *lengths)
    for _ in range(TURNS):
        before = split.bound(product_of(axes))
        for own in range(len(axes)):
            left = slopes
            for other in reversed([number for number in range(len(axes)) if number != own]):
                left = np.tensordot(left, axes[other], axes=(other + 1, 0))
            axes[own] = _highest(left, least)[0]
        if split.bound(product_of(axes)) > before * (1 - GAP / 10):
            break
    return axes


def product_of(axes: Sequence[FloatArray]) -> FloatArray:
    """Return the shares of all combinations.

    Args:
        axes: The shares of each axis.

    Returns:
        Their products.
    """
    return np.asarray(reduce(lambda one, other: np.outer(one, other).ravel(), axes, np.ones(1)))


def _tangents(costs: Costs, point: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the costs at a point, and the slopes of their inverses."""
    now, largest = costs(point), int(np.argmax(point))
    falls = np.zeros((len(now), len(point)))
    for each in range(len(point)):
        if each != largest:
            moved = point * np.where(np.arange(len(point)) == each, np.exp(STEP), 1.0)
            falls[:, each] = np.maximum(np.log(now / costs(moved)) / STEP, 0.0)
    # Costs are halved where all shares are doubled, so that what all shares take off adds up to 1.
    falls[:, largest] = np.maximum(1 - falls.sum(axis=1), 0.0)
    return now, falls / (now[:, None] * point)


def _highest(tangents: FloatArray, least: float) -> tuple[FloatArray, float]:
    """Return the shares where the lowest tangent is highest, with height."""
    from scipy.optimize import linprog

    count, scale = tangents.shape[1], float(np.min(np.max(tangents, axis=1)))
    found = linprog(
        np.append(np.zeros(count), -1.0),
        A_ub=np.hstack([-tangents / scale, np.ones((len(tangents), 1))]),
        b_ub=np.zeros(len(tangents)),
        A_eq=np.append(np.ones(count), 0.0)[None],
        b_eq=[1.0],
        bounds=[*[(least, 1.0)] * count, (0.0, None)],
        method="highs",
    )
    assert found.x is not None
    return np.asarray(found.x[:count]), float(found.x[count]) * scale
