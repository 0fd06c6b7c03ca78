r"""Exact Newton systems for two trees crossed on a full grid.

By elimination along one of them (T-ELIMINATION, second form).

A cell is (leaf of the tree) x (code). A node answers prices lambda of the n codes with X(lambda) = alpha +
beta lambda, beta being n x n, and its own sums are queries E over the codes with multipliers p. With A, B the
sums of alpha, beta over the children and omega = 1/diagonal (0 for sums not requested), W = E omega E', h = E
omega r: beta = (I + B W)^-1 B, alpha = (I + B W)^-1 A + beta h, and going down p = omega (r - E'X). At a leaf
the queries nest, so beta is a diagonal less one product for each query: only its sum over the leaves of a
parent is formed. Cost: inner nodes x n^3 and a few passes over the cells; ``tree.py`` inverts a matrix at
every leaf.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recordwise.postprocess.measured import CellsAndSums
from recordwise.postprocess.solvers.boxed import FloatArray, IntArray, Solver
from recordwise.postprocess.solvers.trees import is_nested
from recordwise.postprocess.workload import Group, Workload

MOST_WORK = 5e9
"""The largest number of inner nodes times n^3."""
MOST_ENTRIES = 2e7
"""The largest number of entries in all the n x n matrices."""
LEAST_LOCAL = 32
"""With fewer local queries the matrices of every node are small, and plain elimination is as fast."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Query:
    """The sums over one level of codes, at a tier's nodes."""

    code: IntArray
    """The query that counts each code."""
    place: IntArray
    """The position of each multiplier, nodes x queries; -1 if there is no such sum."""

    @cached_property
    def runs(self) -> tuple[IntArray | None, IntArray]:
        """The codes sorted by query (None if sorted), and each query's start."""
        return sorted_runs(self.code)

    @cached_property
    def first(self) -> IntArray:
        """A code of each query."""
        return np.unique(self.code, return_index=True)[1]

    @cached_property
    def bounds(self) -> IntArray:
        """Where each query's sorted codes begin, and the last end."""
        return np.append(self.runs[1], len(self.code))

    def sorted(self, values: FloatArray) -> FloatArray:
        """Values of codes (last axis), those of each query side by side."""
        order = self.runs[0]
        return values if order is None else values[..., order]

    def sums(self, values: FloatArray) -> FloatArray:
        """Values of codes (last axis) added up by query."""
        first = self.runs[1]
        if len(first) == 1:
            return np.asarray(values.sum(axis=-1, keepdims=True))
        return (
            self.sorted(values)
            if len(first) == len(self.code)
            else np.add.reduceat(self.sorted(values), first, axis=-1)
        )

    def spread(self, values: FloatArray) -> FloatArray:
        """Values of queries (last axis) given to their codes."""
        return values[..., self.code]


@dataclass(frozen=True, kw_only=True, eq=False)
class Tier:
    """A level of the tree."""

    parent: IntArray
    """The node one level up; for the root zero."""
    queries: tuple[Query, ...]
    """Its sums, those of the finest codes first."""

    @cached_property
    def runs(self) -> tuple[IntArray | None, IntArray]:
        """The nodes sorted by parent (None if sorted), and each parent's start."""
        return sorted_runs(self.parent)

    def to_parents(self, values: NDArray[Any], axis: int = 0) -> NDArray[Any]:
        """Sums of the nodes' values by parent."""
        order, first = self.runs
        return np.add.reduceat(values if order is None else np.take(values, order, axis=axis), first, axis=axis)

    def products(self, query: Query, weights: FloatArray, values: FloatArray) -> FloatArray:
        """Return sums by parent of weighted products of two codes' values."""
        order, first = self.runs
        ends = np.append(first, len(values))
        own, weight = query.sorted(values), weights
        if order is not None:
            own, weight = own[order], weight[order]
        found = np.zeros((len(first), values.shape[1], values.shape[1]))
        add_products(ends, query.bounds, np.ascontiguousarray(weight), np.ascontiguousarray(own), found)
        if query.runs[0] is None:
            return found
        back = np.argsort(query.runs[0])
        return found[:, back[:, None], back]


def sorted_runs(labels: IntArray) -> tuple[IntArray | None, IntArray]:
    """Return positions sorted by label (None if sorted), and label starts."""
    ordered = bool(np.all(labels[1:] >= labels[:-1]))
    first = np.concatenate([[0], np.cumsum(np.bincount(labels))[:-1]])
    return None if ordered else np.argsort(labels, kind="stable"), first


def add_products(ends: IntArray, bounds: IntArray, weights: FloatArray, values: FloatArray, found: FloatArray) -> None:
    """Compiled, or in numpy if numba is not installed."""
    try:
        from recordwise.postprocess.solvers import kernel as tree_kernel
    except ImportError:
        add_products_numpy(ends, bounds, weights, values, found)
    else:
        tree_kernel.add_products(ends, bounds, weights, values, found)


def add_products_numpy(
    ends: IntArray, bounds: IntArray, weights: FloatArray, values: FloatArray, found: FloatArray
) -> None:
    """Add sums over nodes of weight x values x values'."""
    for query, (low, high) in enumerate(pairwise(bounds)):
        own = values[:, low:high]
        scaled = own * weights[:, query, None]
        for parent, (start, stop) in enumerate(pairwise(ends)):
            found[parent, low:high, low:high] = scaled[start:stop].T @ own[start:stop]


Step: TypeAlias = tuple[Query, FloatArray, FloatArray, FloatArray, FloatArray]
"""A query of the leaves: omega, the response to a price of the query by code and in all, and 1/(1 + omega response)."""
Inner: TypeAlias = tuple[list[FloatArray], FloatArray, FloatArray]
"""An inner level: omega of its queries, (I + B W)^-1 and beta."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CrossedSystem:
    """The sums of two crossed trees by level, leaves first."""

    tiers: tuple[Tier, ...]
    grid: IntArray
    """The cell of each (leaf, code)."""
    queries: int
    exact: bool = True

    def sums(self, x: FloatArray, /) -> FloatArray:
        values, result = x[:, self.grid], np.zeros((len(x), self.queries + 1))
        for tier in self.tiers:
            for query in tier.queries:
                result[:, query.place] = query.sums(values)
            values = tier.to_parents(values, axis=1)
        return result[:, :-1]

    def spread(self, y: FloatArray, /) -> FloatArray:
        padded = np.concatenate([y, np.zeros((len(y), 1))], axis=1)
        seen = np.zeros((len(y), 1, self.grid.shape[1]))
        for tier in reversed(self.tiers):
            seen = seen[:, tier.parent]
            for query in tier.queries:
                seen += query.spread(padded[:, query.place])
        x = np.empty((len(y), self.grid.size))
        x[:, self.grid.ravel()] = seen.reshape(len(y), -1)
        return x

    def powers(self, exponent: int, /) -> "CrossedSystem":
        return self

    def take(self, chosen: IntArray, /) -> "CrossedSystem":
        return self

    def solver(self, response: FloatArray, diagonal: FloatArray, /) -> Solver:
        """Return a solver with one elimination per system, refined once."""
        count = max(len(response), len(diagonal))
        factors = [self._factor(response[k % len(response)], diagonal[k % len(diagonal)]) for k in range(count)]

        def once(right: FloatArray) -> FloatArray:
            return np.stack([self._solve(*factors[k % count], row) for k, row in enumerate(right)])

        def solve(right: FloatArray) -> FloatArray:
            found = once(right)
            return found + once(right - self.sums(response * self.spread(found)) - diagonal * found)

        return solve

    def _factor(self, response: FloatArray, diagonal: FloatArray) -> tuple[FloatArray, list[Step], list[Inner]]:
        """Return the leaves' answers, then the inner levels' matrices."""
        omega = np.append(1.0 / diagonal, 0.0)
        leaves, *inner = self.tiers
        cells = response[self.grid]
        steps, beta = _leaf_steps(leaves, cells, omega)
        parts: list[Inner] = []
        for tier in inner:
            weights = [omega[query.place] for query in tier.queries]
            matrix = np.broadcast_to(np.eye(beta.shape[-1]), beta.shape).copy()
            for query, weight in zip(tier.queries, weights):
                matrix += query.spread(query.sums(beta) * weight[:, None, :])
            inverse = np.asarray(np.linalg.inv(matrix), np.float64)
            parts.append((weights, inverse, inverse @ beta))
            beta = tier.to_parents(parts[-1][2])
        return cells, steps, parts

    def _solve(self, cells: FloatArray, steps: list[Step], parts: list[Inner], right: FloatArray) -> FloatArray:
        """Go up with the right-hand side, then down with the prices."""
        padded, result = np.append(right, 0.0), np.zeros(self.queries + 1)
        leaves, *inner = self.tiers
        alphas, below = [], leaves.to_parents(_leaf_answers(steps, np.zeros_like(cells), padded)[0])
        for tier, (weights, inverse, beta) in zip(inner, parts):
            pulled = np.zeros_like(below)
            for query, weight in zip(tier.queries, weights):
                pulled += query.spread(weight * padded[query.place])
            alphas.append(_times(inverse, below) + _times(beta, pulled))
            below = tier.to_parents(alphas[-1])
        price = np.zeros((1, cells.shape[1]))
        for tier, (weights, _, beta), alpha in zip(reversed(inner), reversed(parts), reversed(alphas)):
            price = price[tier.parent]
            answered = alpha + _times(beta, price)
            for query, weight in zip(tier.queries, weights):
                own = weight * (padded[query.place] - query.sums(answered))
                result[query.place] = own
                price = price + query.spread(own)
        shift = np.zeros_like(cells)
        firsts = _leaf_answers(steps, cells * price[leaves.parent], padded)[1]
        for (query, weight, _, whole, inverse), first in zip(reversed(steps), reversed(firsts)):
            own = first - weight * inverse * whole * shift[:, query.first]
            result[query.place] = own
            shift += query.spread(own)
        return result[:-1]


def _leaf_steps(leaves: Tier, cells: FloatArray, omega: FloatArray) -> tuple[list[Step], FloatArray]:
    """Eliminate the leaves' queries; return the steps and beta by parent."""
    steps: list[Step] = []
    own, response = leaves.to_parents(cells), cells
    beta = np.zeros((*own.shape, own.shape[1]))
    for query in leaves.queries:
        weight, whole = omega[query.place], query.sums(response)
        inverse = 1.0 / (1.0 + weight * whole)
        steps.append((query, weight, response, whole, inverse))
        beta -= leaves.products(query, weight * inverse, response)
        response = response * query.spread(inverse)
    every = np.arange(own.shape[1])
    beta[:, every, every] += own
    return steps, beta


def _leaf_answers(steps: list[Step], start: FloatArray, padded: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
    """Return the cells' answers and each query's multiplier."""
    answered, firsts = start, []
    for query, weight, response, _, inverse in steps:
        firsts.append(weight * inverse * (padded[query.place] - query.sums(answered)))
        answered = answered + response * query.spread(firsts[-1])
    return answered, firsts


def _times(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    return np.asarray((matrices @ vectors[:, :, None])[:, :, 0])


def crossed_system(workload: Workload, parts: CellsAndSums) -> CrossedSystem | None:
    """Return a two-dimensional grid's sums; None unless both dimensions nest."""
    along = best_dimension(workload)
    if along is None:
        return None
    position = np.full(workload.queries, -1)
    position[parts.sums] = np.arange(len(parts.sums))
    cells = np.arange(workload.cells).reshape(workload.shape or ())
    grid = cells if along == 0 else np.ascontiguousarray(cells.T)
    chain = nested_levels(codes_along(workload, along)) or []
    ends = [*chain[1:], np.zeros_like(chain[0])]
    tiers = tuple(_tier(workload, position, grid, along, codes, above) for codes, above in zip(chain, ends))
    return CrossedSystem(tiers=tiers, grid=grid, queries=len(parts.sums))


def best_dimension(workload: Workload) -> int | None:
    """Return the dimension with the cheapest elimination; None if none suits."""
    if workload.shape is None or len(workload.shape) != 2:
        return None
    works = [(work, along) for along in range(2) if (work := work_along(workload, along)) is not None]
    return min(works)[1] if works else None


def work_along(workload: Workload, along: int) -> float | None:
    """Return inner nodes times n^3; None if too much or useless."""
    assert workload.shape is not None
    chain, other = (nested_levels(codes_along(workload, dimension)) for dimension in (along, 1 - along))
    if chain is None or other is None:
        return None
    n, inner = workload.shape[1 - along], sum(int(codes.max()) + 1 for codes in chain[1:])
    if sum(int(codes.max()) + 1 for codes in other) <= LEAST_LOCAL:
        return None
    return inner * n**3 if inner * n**3 <= MOST_WORK and 2 * inner * n**2 <= MOST_ENTRIES else None


def codes_along(workload: Workload, along: int) -> list[IntArray]:
    """Return each group's codes of the leaves of a dimension."""
    assert workload.shape is not None
    none = np.zeros(workload.shape[along], dtype=np.int64)
    return [workload.levels[group.level_of[along]][1] if along in group.level_of else none for group in workload.groups]


def nested_levels(codes: list[IntArray]) -> list[IntArray] | None:
    """Return a dimension's distinct levels, leaves first; None if two cross."""
    leaves = np.arange(len(codes[0]))
    found = [leaves]
    for code in sorted([*codes, np.zeros_like(leaves)], key=lambda code: -int(code.max())):
        if not is_nested(found[-1], code):
            return None
        if code.max() < found[-1].max():
            found.append(code)
    return found


def _tier(workload: Workload, position: IntArray, grid: IntArray, along: int, codes: IntArray, above: IntArray) -> Tier:
    """Return one level: its parents and its nodes' sums."""
    leaf = np.unique(codes, return_index=True)[1]
    owns, others = codes_along(workload, along), codes_along(workload, 1 - along)
    queries = []
    for group, where, own, code in zip(workload.groups, workload.slices, owns, others):
        if own.max() == codes.max() and group.labels is not None:
            first = np.unique(code, return_index=True)[1]
            place = position[where.start + group.labels[grid[leaf][:, first]]]
            queries += [Query(code=code, place=place)] if np.any(place >= 0) else []
    queries.sort(key=lambda query: -query.place.shape[1])
    return Tier(parent=above[leaf], queries=tuple(queries))


# Tables over a full grid of two codes, recognized by the query that counts each cell.


def grid_workload(shape: Sequence[int], labels: Mapping[str, IntArray]) -> Workload | None:
    """Return the workload of groups that cross levels of a grid.

    A group distinguishes a level of the rows and one of the columns. None if a group is anything else, or if no
    solver would gain by it.

    Args:
        shape: The number of rows and columns; cells are listed row by row.
        labels: For each group the query of every cell.

    Returns:
        The workload, whose solvers can use that the levels cross.
    """
    names: dict[tuple[int, bytes], str] = {}
    levels: dict[str, tuple[int, IntArray]] = {}
    groups = []
    for name, own in labels.items():
        table = own.reshape(*shape)
        codes = [_by_first(table[:, 0]), _by_first(table[0])]
        counts = [int(code.max()) + 1 for code in codes]
        joint = codes[0][:, None] * counts[1] + codes[1]
        query = np.zeros(counts[0] * counts[1], np.int64)
        query[joint] = table
        if int(own.max()) + 1 != len(query) or not np.array_equal(query[joint], table):
            return None
        kept = {}
        for dimension in (0, 1):
            if counts[dimension] > 1:
                level = names.setdefault((dimension, codes[dimension].tobytes()), f"level{len(names)}")
                levels[level], kept[dimension] = (dimension, codes[dimension]), level
        groups.append(Group(name=name, size=len(query), cells=len(own), labels=own, level_of=kept))
    found = Workload(cells=table.size, groups=tuple(groups), shape=tuple(shape), levels=levels)
    return None if best_dimension(found) is None else found


def _by_first(labels: IntArray) -> IntArray:
    """The labels numbered in the order in which they occur."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse].astype(np.int64)
