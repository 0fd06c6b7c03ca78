"""Semismooth Newton on the dual of the boxed problem, in numpy, all draws at once.

Where the dual is flat (totals held fixed, cells never measured), a proximal term makes it strictly convex; its center moves to the
solution of the last round until the term no longer matters (the proximal method of multipliers).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recordwise.postprocess.solvers.boxed import (
    INNER_TOLERANCE,
    MAX_ROUNDS,
    MAX_STEPS,
    NEAR,
    OUTER_TOLERANCE,
    SMALL,
    Boxed,
    FloatArray,
    IntArray,
    Solution,
    System,
    curvature,
    levels_of,
)

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

    problem: Boxed
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


def solve_boxed(problem: Boxed, system: System, start: Solution | None = None) -> Solution:
    """Solve every draw, from a start or from zero; rounds continue for the draws whose proximal term still matters."""
    draws, levels = problem.draws, levels_of(problem)
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
        proximal = levels[0][later] * queries[left] * part.held
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
    """Newton steps with a line search on the slope, for all draws that have not converged."""
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
    """Whether a step stayed on the linear piece it was computed for; a full step then ended at the root up to rounding."""
    cells = np.all((before.response > 0) == (after.response > 0), axis=1)
    return np.asarray(cells & np.all(before.diagonal == after.diagonal, axis=1))


def step(stage: Round, point: Point) -> tuple[Point, NDArray[np.bool_]]:
    """One Newton step, and whether it was a full one; if it overshoots, regula falsi brings the slope along it near zero."""
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
