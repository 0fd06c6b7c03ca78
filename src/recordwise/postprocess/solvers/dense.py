"""The boxed problem with few sum queries: dense Newton systems, compiled if numba is installed."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from recordwise.postprocess.solvers.boxed import Boxed, FloatArray, IntArray, Solution, Solver, curvature, levels_of
from recordwise.postprocess.solvers.newton import ROUNDS, RULES, solve_boxed


@dataclass(frozen=True, kw_only=True, eq=False)
class DenseSystem:
    """The rows of M by columns: cell i is counted by ``query[start[i]:start[i+1]]`` with the coefficients ``data``."""

    start: NDArray[np.uint32]
    query: NDArray[np.uint32]
    data: FloatArray
    """One row for all draws, or one per draw."""
    queries: int
    head: int = 0
    """The number of leading queries that share no cell with each other."""

    @classmethod
    def of(cls, rows: Any, head: int = 0) -> "DenseSystem":
        """From a sparse matrix with one row per query."""
        columns = sparse.csc_array(rows)
        columns.sort_indices()
        start, query = columns.indptr.astype(np.uint32), columns.indices.astype(np.uint32)
        return cls(start=start, query=query, data=columns.data[None, :], queries=columns.shape[0], head=head)

    @property
    def cells(self) -> int:
        return len(self.start) - 1

    @cached_property
    def cell(self) -> IntArray:
        """The cell of each coefficient."""
        return np.repeat(np.arange(self.cells), np.diff(self.start).astype(np.int64))

    @cached_property
    def rows(self) -> Any:
        """The rows as a sparse matrix, if all draws share them."""
        shape = (self.queries, self.cells)
        return sparse.csc_array((self.data[0], self.query, self.start), shape=shape).tocsr()

    @cached_property
    def by_query(self) -> Any:
        return gather(self.query, self.queries)

    @cached_property
    def by_cell(self) -> Any:
        return gather(self.cell, self.cells)

    @cached_property
    def pairs(self) -> tuple[IntArray, IntArray, Any]:
        """Every pair of coefficients of a cell, and where their product goes in the Newton matrix."""
        degree = np.diff(self.start).astype(np.int64)
        left = np.repeat(np.arange(len(self.query)), degree[self.cell])
        within = np.arange(len(left)) - np.repeat(np.cumsum(degree[self.cell]) - degree[self.cell], degree[self.cell])
        right = self.start[self.cell[left]] + within
        place = self.query[left].astype(np.int64) * self.queries + self.query[right]
        return left, right, gather(place, self.queries**2)

    def sums(self, x: FloatArray, /) -> FloatArray:
        return np.asarray((self.by_query @ (self.data * x[:, self.cell]).T).T)

    def spread(self, y: FloatArray, /) -> FloatArray:
        return np.asarray((self.by_cell @ (self.data * y[:, self.query]).T).T)

    @cached_property
    def plain(self) -> bool:
        """Whether all coefficients are 0 or 1."""
        return bool(np.all((self.data == 0.0) | (self.data == 1.0)))

    def powers(self, exponent: int, /) -> "DenseSystem":
        return self if self.plain else self._with(np.abs(self.data) ** exponent)

    def take(self, chosen: IntArray, /) -> "DenseSystem":
        return self if len(self.data) == 1 else self._with(self.data[chosen])

    @property
    def exact(self) -> bool:
        return True

    def solver(self, response: FloatArray, diagonal: FloatArray, /) -> Solver:
        first, second, place = self.pairs
        products = self.data[:, first] * self.data[:, second] * response[:, self.cell[first]]
        matrix = np.asarray((place @ products.T).T).reshape(len(products), self.queries, self.queries)
        every = np.arange(self.queries)
        matrix[:, every, every] += diagonal
        if len(matrix) == 1:
            return lambda right: np.asarray(np.linalg.solve(matrix[0], right.T).T)
        return lambda right: np.asarray(np.linalg.solve(matrix, right[:, :, None])[:, :, 0])

    def _with(self, data: FloatArray) -> "DenseSystem":
        """The same pattern with other coefficients; the gathered indices are shared rather than rebuilt."""
        other = replace(self, data=data)
        shared = ("cell", "by_query", "by_cell", "pairs", "plain")
        other.__dict__.update({name: self.__dict__[name] for name in shared if name in self.__dict__})
        return other


def gather(place: NDArray[Any], size: int) -> Any:
    """The matrix that adds entry k to ``place[k]``."""
    return sparse.csr_array((np.ones(len(place)), (place, np.arange(len(place)))), shape=(size, len(place)))


def solve_dense(problem: Boxed, system: DenseSystem) -> Solution:
    """Solve with the compiled kernel, or in numpy if numba is not installed."""
    try:
        from recordwise.postprocess.solvers import kernel
    except ImportError:
        return solve_boxed(problem, system)
    draws = problem.draws
    x, y = np.zeros((draws, system.cells)), np.zeros((draws, system.queries))
    iterations = np.zeros(draws, dtype=np.int64)
    kernel.solve_draws(
        system.start,
        system.query,
        system.data,
        tuple(np.ascontiguousarray(part) for part in problem.arrays),
        tuple(np.ascontiguousarray(part) for part in curvature(problem, system)),
        problem.held,
        system.head,
        RULES,
        levels_of(problem),
        ROUNDS,
        x,
        y,
        iterations,
    )
    return Solution(x=x, y=y, iterations=iterations)
