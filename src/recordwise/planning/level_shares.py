"""How the loss of a query is split over its levels: one split for all its statistics, found for whatever is to be small."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce

import numpy as np

from recordwise.exact.arithmetic import FloatArray
from recordwise.plan.fields import Choice
from recordwise.plan.query import Query

UNITS = 10**6
"""Shares have six decimals."""
ROUNDS = 3
"""How often the search starts again from the best found: a simplex can collapse at a kink."""
LEAST_LOGARITHM = -12.0


def level_shares(query: Query) -> FloatArray:
    """The share of each table of a query, in their order."""
    return np.array([float(level.share) for level in query.tables()])


def best_split(query: Query, cost: Callable[[FloatArray], float], *, starts: Sequence[FloatArray] = ()) -> Query:
    """The query with the split at which a cost of the shares of its tables is smallest, as far as was found.

    Shares are a product over the axes of the query, so that a start is the split along each axis that comes closest to it. The
    split that the query has is always among the starts: what is returned is never worse.
    """
    from scipy.optimize import minimize

    lengths = [len(axis) for axis in query.axes]
    if max(lengths, default=1) == 1:
        return query

    def value(logits: FloatArray) -> float:
        return float(np.log(cost(_levels(logits, lengths))))

    candidates = [_logits(each, lengths) for each in (level_shares(query), *starts)]
    best = min(candidates, key=value)
    for _ in range(ROUNDS):
        found = minimize(
            value, best, method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-7, "maxfev": 150 * len(best)}
        )
        if found.fun >= value(best) - 1e-6:
            break
        best = np.asarray(found.x)
    rounded = with_axis_shares(query, [_exact(each) for each in _axes(best, lengths)])
    return rounded if cost(level_shares(rounded)) < cost(level_shares(query)) * (1 - 1e-9) else query


def with_axis_shares(query: Query, shares: Sequence[Sequence[Fraction]]) -> Query:
    """The query with these shares along each of its axes."""
    axes = [
        tuple(Choice(choice.group, share) for choice, share in zip(axis, own)) for axis, own in zip(query.axes, shares)
    ]
    return replace(query, axes=tuple(axes))


def _axes(logits: FloatArray, lengths: Sequence[int]) -> list[FloatArray]:
    """The shares along each axis."""
    parts = np.split(logits, np.cumsum(lengths)[:-1])
    raised = [np.exp(np.maximum(each - each.max(), LEAST_LOGARITHM)) for each in parts]
    return [each / each.sum() for each in raised]


def _levels(logits: FloatArray, lengths: Sequence[int]) -> FloatArray:
    """The shares of the tables: every combination of the axes, the last one fastest."""
    return reduce(lambda one, other: np.outer(one, other).ravel(), _axes(logits, lengths))


def _logits(shares: FloatArray, lengths: Sequence[int]) -> FloatArray:
    """Logarithms of the sums of some shares along each axis."""
    grid = np.asarray(shares).reshape(lengths)
    others = [tuple(at for at in range(len(lengths)) if at != axis) for axis in range(len(lengths))]
    return np.concatenate([np.log(np.maximum(grid.sum(axis=each), 1e-9)) for each in others])


def _exact(shares: FloatArray) -> list[Fraction]:
    """Shares of six decimals that add up to exactly 1; the largest absorbs the rounding."""
    parts = [max(Fraction(int(share * UNITS), UNITS), Fraction(1, UNITS)) for share in shares]
    parts[int(np.argmax(shares))] += 1 - sum(parts)
    return parts
