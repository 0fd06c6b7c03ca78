"""Dense Newton systems for the boxed problem with few sums."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from recordwise.postprocess.solvers.boxed import (
    INNER_TOLERANCE,
    MAX_ROUNDS,
    MAX_STEPS,
    NEAR,
    OUTER_TOLERANCE,
    SMALL,
    BoxedProblem,
    FloatArray,
    IntArray,
    Solution,
    Solver,
    System,
    curvature,
    proximal_weights,
)

# Semismooth Newton on the dual of the boxed problem, in numpy, all draws at once. Where the dual is flat (totals held
# fixed, cells never measured), a proximal term makes it strictly convex; its center moves to the solution of the last
# round until the term no longer matters (the proximal method of multipliers).


LINE_SEARCH = 20
OVERSHOOT = 0.3
"""A step is shortened if the slope at its end is positive and above this share of the slope at its start."""

RULES = (INNER_TOLERANCE, SMALL, NEAR, OVERSHOOT, MAX_STEPS, LINE_SEARCH)
ROUNDS = (OUTER_TOLERANCE, MAX_ROUNDS)
"""Constants passed to the compiled form."""


@dataclass(slots=True)
class Point:
    """The current multipliers, with the cells and the mismatch they imply."""

    y: FloatArray
    x: FloatArray
    response: FloatArray
    diagonal: FloatArray
    gap: FloatArray
    size: FloatArray
    worst: FloatArray


@dataclass(slots=True, kw_only=True)
class Round:
    """One proximal round: the strictly convex problem being solved and its center."""

    problem: BoxedProblem
    system: System
    precision: FloatArray
    target: FloatArray
    proximal: FloatArray
    center: FloatArray

    def at(self, y: FloatArray) -> Point:
        """Evaluate the multipliers."""
        problem = self.problem
        free = self.target + self.system.spread(y) / self.precision
        x = np.clip(free, problem.low, problem.high)
        inside = (free > problem.low) & (free < problem.high)
        loose = problem.answer - y / problem.weight
        z = np.clip(loose, problem.floor, problem.ceiling)
        slack = (loose > problem.floor) & (loose < problem.ceiling)
        gap = self.system.sums(x) - z + self.proximal * (y - self.center)
        diagonal = slack / problem.weight + self.proximal
        size = 1.0 + np.abs(z)
        return Point(
            y, x, inside / self.precision, diagonal, gap, size, np.max(np.abs(gap) / size, axis=1, initial=0.0)
        )

    def take(self, chosen: IntArray) -> "Round":
        return Round(
            problem=self.problem.take(chosen),
            system=self.system.take(chosen),
            precision=self.precision[chosen],
            target=self.target[chosen],
            proximal=self.proximal[chosen],
            center=self.center[chosen],
        )


def solve_boxed(problem: BoxedProblem, system: System, start: Solution | None = None) -> Solution:
    """Solve every draw, until its proximal term no longer matters."""
    draws, levels = problem.draws, proximal_weights(problem)
    cells, queries = (np.broadcast_to(part, (draws, part.shape[1])) for part in curvature(problem, system))
    measured = np.broadcast_to(problem.precision > 0, cells.shape)
    y, x = np.zeros((draws, system.queries)), np.zeros(cells.shape)
    if start is not None:
        y, x = start.y.copy(), start.x.copy()
    iterations, left = np.zeros(draws, dtype=np.int64), np.arange(draws)
    for turn in range(MAX_ROUNDS):
        later = min(turn, 1)
        part = problem.take(left)
        precision = np.where(measured[left], part.precision, levels[1][later] * cells[left])
        target = np.where(measured[left], part.target, x[left])
        proximal = levels[0][later] * queries[left] * part.bounded
        stage = Round(
            problem=part,
            system=system.take(left),
            precision=precision,
            target=target,
            proximal=proximal,
            center=y[left],
        )
        point, steps = newton(stage)
        error = round_error(stage, point, x[left], measured[left])
        y[left], x[left] = point.y, point.x
        iterations[left] += steps
        left = left[error > OUTER_TOLERANCE]
        if len(left) == 0:
            break
    return Solution(x=x, y=y, iterations=iterations)


def round_error(stage: Round, point: Point, before: FloatArray, measured: NDArray[np.bool_]) -> FloatArray:
    """How much the proximal terms still distort the solution, in relative terms."""
    dual = np.max(stage.proximal * np.abs(point.y - stage.center) / point.size, axis=1, initial=0.0)
    moved = np.where(measured, 0.0, stage.precision * np.abs(point.x - before))
    pull = stage.system.powers(1).spread(np.abs(point.y)) + np.sqrt(stage.precision)
    return np.asarray(np.maximum(dual, np.max(moved / pull, axis=1, initial=0.0)))


def newton(stage: Round) -> tuple[Point, IntArray]:
    """Run line-searched Newton steps for all draws that have not converged."""
    point = stage.at(stage.center.copy())
    settled, last = np.zeros(len(point.y), dtype=np.bool_), np.full(len(point.y), np.inf)
    steps = np.zeros(len(point.y), dtype=np.int64)
    for _ in range(MAX_STEPS):
        stuck = point.worst > 0.5 * last
        rounding = (settled & (stuck | (point.worst < SMALL))) | (stuck & (point.worst < NEAR))
        moving = np.flatnonzero((point.worst > INNER_TOLERANCE) & ~rounding)
        if len(moving) == 0:
            break
        before = take(point, moving)
        last[moving] = before.worst
        reached, full = step(stage.take(moving), before)
        put(point, moving, reached)
        settled[moving] = full & same_piece(before, reached)
        steps[moving] += 1
    return point, steps


def same_piece(before: Point, after: Point) -> NDArray[np.bool_]:
    """Return whether a step stayed on its linear piece."""
    cells = np.all((before.response > 0) == (after.response > 0), axis=1)
    return np.asarray(cells & np.all(before.diagonal == after.diagonal, axis=1))


def step(stage: Round, point: Point) -> tuple[Point, NDArray[np.bool_]]:
    """Take one Newton step, shortened by regula falsi if it overshoots."""
    move = -stage.system.solver(point.response, point.diagonal)(point.gap)
    slope = np.sum(point.gap * move, axis=1)
    length = np.ones(len(slope))
    reached = stage.at(point.y + move)
    for _ in range(LINE_SEARCH):
        end = np.sum(reached.gap * move, axis=1)
        over = np.flatnonzero(end > OVERSHOOT * np.abs(slope))
        if len(over) == 0:
            break
        share = np.clip(-slope[over] / (end[over] - slope[over]), 0.1, 0.9)
        length[over] *= share
        put(reached, over, stage.take(over).at(point.y[over] + length[over, None] * move[over]))
    return reached, length == 1.0


def take(point: Point, chosen: IntArray) -> Point:
    return Point(*(getattr(point, name)[chosen] for name in Point.__slots__))


def put(point: Point, chosen: IntArray, values: Point) -> None:
    for name in Point.__slots__:
        getattr(point, name)[chosen] = getattr(values, name)


@dataclass(frozen=True, kw_only=True, eq=False)
class DenseSystem:
    """The rows of M by columns: ``query[start[i]:start[i+1]]`` count cell i."""

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
        """Coefficient pairs of each cell, with their positions in the Newton matrix."""
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
        """Return the same pattern with other coefficients, sharing indices."""
        other = replace(self, data=data)
        shared = ("cell", "by_query", "by_cell", "pairs", "plain")
        other.__dict__.update({name: self.__dict__[name] for name in shared if name in self.__dict__})
        return other


def gather(index: NDArray[Any], size: int) -> Any:
    """The matrix that adds entry k to ``place[k]``."""
    return sparse.csr_array((np.ones(len(index)), (index, np.arange(len(index)))), shape=(size, len(index)))


def solve_dense(problem: BoxedProblem, system: DenseSystem) -> Solution:
    """Solve with the compiled kernel, or in numpy without numba."""
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
        problem.bounded,
        system.head,
        RULES,
        proximal_weights(problem),
        ROUNDS,
        x,
        y,
        iterations,
    )
    return Solution(x=x, y=y, iterations=iterations)
