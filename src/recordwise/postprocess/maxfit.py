"""MaxFit [A]: least squares among tables with the smallest worst deviation."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from recordwise.errors import ParameterError, SolverError, own_argument_errors, value_text
from recordwise.postprocess.measured import (
    TOLERANCE,
    CellsAndSums,
    Fit,
    Measurements,
    Noise,
    boxed_residual,
    fit_draws,
    law_of,
    measure,
)
from recordwise.postprocess.sequential import regroup
from recordwise.postprocess.solvers.boxed import BoxedProblem, FloatArray, IntArray, Solution, System
from recordwise.postprocess.solvers.solve import prepare, solve_again, solve_problem
from recordwise.postprocess.workload import Group, Workload

NEWTON_STEPS = 60


def lower_bound(measured: Measurements) -> FloatArray:
    """Return a lower bound on the worst deviation, per draw (T-MAXFIT).

    From single queries alone: no answer may stay negative, and a query must agree with the finer queries inside
    it, from above and from below.
    """
    workload, spread = measured.workload, 1.0 / np.sqrt(measured.weights)
    bound = np.zeros(measured.draws)
    counts = [group for group in workload.groups if group.labels is not None or bool(np.all(group.rows.data > 0))]
    for group in counts:
        place = workload.slices[workload.groups.index(group)]
        bound = np.maximum(bound, np.max(-measured.answers[:, place] / spread[:, place], axis=1))
    for fine, inner in zip(workload.groups, workload.slices):
        for coarse, outer in zip(workload.groups, workload.slices):
            if fine is not coarse and fine.size > coarse.size and fine.refines(coarse):
                own, theirs = (
                    (measured.answers[:, inner], spread[:, inner]),
                    (measured.answers[:, outer], spread[:, outer]),
                )
                bound = np.maximum(bound, nested_bound(fine, coarse, own, theirs, bound))
    return bound


def nested_bound(
    fine: Group,
    coarse: Group,
    own: tuple[FloatArray, FloatArray],
    theirs: tuple[FloatArray, FloatArray],
    bound: FloatArray,
) -> FloatArray:
    """Return the deviation at which a query agrees with its finer queries.

    From below: a_q - t s_q <= sum (a_c + t s_c). From above: sum max(0, a_c - t s_c) <= a_q + t s_q, whose excess
    is convex and decreasing in t, so Newton's method from a lower bound rises to the root and stops there.
    """
    parents = fine.parents_in(coarse)
    assert parents is not None
    (answers, spread), (total, reach) = own, theirs
    width = regroup(np.broadcast_to(spread, answers.shape), parents, coarse.size)
    bound = np.maximum(bound, np.max((total - regroup(answers, parents, coarse.size)) / (reach + width), axis=1))
    for _ in range(NEWTON_STEPS):
        least = np.maximum(answers - bound[:, None] * spread, 0.0)
        excess = regroup(least, parents, coarse.size) - total - bound[:, None] * reach
        slope = regroup((least > 0) * spread, parents, coarse.size) + reach
        step = np.max(excess / slope, axis=1)
        if np.all(step <= 1e-15 * (1.0 + bound)):
            break
        bound = bound + np.maximum(step, 0.0)
    return bound


def smallest_deviation(measured: Measurements, draw: int) -> float:
    """Return the exact smallest deviation of a draw, by linear programming."""
    workload, answers = measured.workload, measured.answers[draw]
    scale = np.sqrt(measured.weights[0])
    rows = sparse.diags_array(scale) @ sparse.vstack([group.rows for group in workload.groups], format="csr")
    ones = sparse.csr_array(np.ones((len(answers), 1)))
    above, below = sparse.hstack([rows, -ones]), sparse.hstack([-rows, -ones])
    cost = np.append(np.zeros(workload.cells), 1.0)
    from scipy import optimize

    found = optimize.linprog(
        cost,
        A_ub=sparse.vstack([above, below], format="csr"),
        b_ub=np.concatenate([answers * scale, -answers * scale]),
        bounds=(0, None),
        method="highs",
    )
    if found.x is None:
        raise SolverError(problem="the linear program of the smallest worst deviation", status=str(found.message))
    return float(found.x[-1])


Solve: TypeAlias = Callable[[BoxedProblem, System], Solution]
SLACK = 0.01
"""The amount that [A] adds to the smallest worst deviation, in standard deviations."""
MOST_SLACK = 1e6
FEASIBLE = 1e-9
"""How far an answer may exceed its bound because of rounding, in standard deviations."""


@own_argument_errors
def max_fit(
    workload: Workload,
    answers: ArrayLike,
    variances: ArrayLike,
    noise: Noise = "laplace",
    *,
    slack: float = SLACK,
    tolerance: float = TOLERANCE,
) -> Fit:
    """Fit by nonnegative least squares among tables of small worst deviation.

    The worst deviation is within ``slack`` of the smallest possible one, in standard deviations of each answer.
    The smallest comes from cuts at single queries where a table proves that they are enough, and from a linear
    program where not (T-MAXFIT). ``noise`` plays no part beyond the variances.

    Args:
        workload: The queries that were answered.
        answers: The noisy answers, in the order of the workload; several rows are several draws.
        variances: The variance of each answer, one for each group, or one for all.
        noise: The law of the noise; Gaussian unless given.
        slack: How far beyond the smallest possible worst deviation a table may go, relatively.
        tolerance: The largest violation of the optimality conditions, relative to the answers.

    Returns:
        The fitted table.
    """
    if isinstance(slack, bool) or not isinstance(slack, int | float) or not 0 < slack < MOST_SLACK:
        raise ParameterError(parameter="slack", problem=f"must be a positive number, not {value_text(slack)}")
    measured = measure(workload, answers, variances)
    law_of(noise, 1.0 / measured.weights)
    parts, system = prepare(workload)
    task = Task(parts=parts, system=system)
    return fit_draws(measured, lambda some: fit_stages(some, task, slack, tolerance))


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The data shared by all draws."""

    parts: CellsAndSums
    system: System


def fit_stages(measured: Measurements, task: Task, slack: float, tolerance: float) -> Fit:
    """Run both stages, solving again draws with too low a bound."""
    deviation = lower_bound(measured)
    found, kkt = cells_first(measured, task, deviation + slack)
    doubtful = unproved_draws(measured, task, deviation, found.x)
    exact = np.array([smallest_deviation(measured, int(draw)) for draw in doubtful])
    raised = doubtful[exact > deviation[doubtful]]
    deviation[doubtful] = np.maximum(deviation[doubtful], exact)
    if len(raised):
        again, kkt[raised] = cells_first(measured.take(raised), task, deviation[raised] + slack)
        found.x[raised], found.iterations[raised] = again.x, again.iterations
    poor = np.flatnonzero(kkt > tolerance)
    if len(poor):
        again, kkt[poor] = cells_first(measured.take(poor), task, deviation[poor] + slack, solve_again)
        found.x[poor], found.iterations[poor] = again.x, again.iterations
    excess = worst(measured, found.x) - (deviation + slack)
    return Fit(
        x=found.x,
        fitted=measured.workload.answer(found.x),
        kkt=kkt,
        primal=np.maximum(excess, 0.0) / (1.0 + deviation),
        iterations=found.iterations,
        tolerance=tolerance,
        bound=deviation,
    )


def unproved_draws(measured: Measurements, task: Task, deviation: FloatArray, x: FloatArray) -> IntArray:
    """Return the draws for which no table proves the deviation attainable."""
    doubtful = np.flatnonzero(~is_attained(measured, task, deviation, x))
    if len(doubtful) == 0:
        return doubtful
    some, reach = measured.take(doubtful), deviation[doubtful]
    sought, _ = within(some, task, reach, bound_sums=True)
    return doubtful[~is_attained(some, task, reach, sought.x)]


def is_attained(measured: Measurements, task: Task, deviation: FloatArray, x: FloatArray) -> NDArray[np.bool_]:
    """Return whether the fitted table, moved inside bounds, proves the deviation."""
    low, high = cell_bounds(measured, task.parts, deviation)
    return worst(measured, np.clip(x, low, high)) <= deviation + FEASIBLE * (1.0 + deviation)


def cells_first(
    measured: Measurements, task: Task, deviation: FloatArray, solve: Solve = solve_problem
) -> tuple[Solution, FloatArray]:
    """Solve within the deviation, bounding sums only where one violates it."""
    found, kkt = within(measured, task, deviation, bound_sums=False, solve=solve)
    again = np.flatnonzero(worst(measured, found.x) > deviation + FEASIBLE)
    if len(again):
        part, kkt[again] = within(measured.take(again), task, deviation[again], bound_sums=True, solve=solve)
        found.x[again], found.iterations[again] = part.x, found.iterations[again] + part.iterations
    return found, kkt


def worst(measured: Measurements, x: FloatArray) -> FloatArray:
    """The largest deviation from an answer, in its standard deviations, per draw."""
    off = np.abs(measured.workload.answer(x) - measured.answers) * np.sqrt(measured.weights)
    return np.asarray(np.max(off, axis=1))


def within(
    measured: Measurements, task: Task, deviation: FloatArray, *, bound_sums: bool, solve: Solve = solve_problem
) -> tuple[Solution, FloatArray]:
    """Solve with every cell, and if ``bound_sums`` every sum, within the deviation."""
    problem = bounded_problem(measured, task.parts, deviation, bound_sums=bound_sums)
    found = solve(problem, task.system)
    return found, boxed_residual(problem, task.system, found.x, found.y)


def bounded_problem(
    measured: Measurements, parts: CellsAndSums, deviation: FloatArray, *, bound_sums: bool
) -> BoxedProblem:
    """The least-squares problem with its bounds."""
    problem = parts.boxed_problem(measured.answers, measured.weights)
    low, high = cell_bounds(measured, parts, deviation)
    problem = replace(problem, low=low, high=high)
    if not bound_sums:
        return problem
    sums = measured.answers[:, parts.sums]
    reach = deviation[:, None] / np.sqrt(measured.weights[:, parts.sums])
    return replace(problem, floor=sums - reach, ceiling=sums + reach)


def cell_bounds(measured: Measurements, parts: CellsAndSums, deviation: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return each cell's range by its answers and nonnegativity."""
    middle = measured.answers[:, parts.single] / parts.coefficient
    reach = deviation[:, None] / np.abs(np.sqrt(measured.weights[:, parts.single]) * parts.coefficient)
    if parts.order is not None:
        low, high = np.maximum(middle - reach, 0.0)[:, parts.order], (middle + reach)[:, parts.order]
    else:
        low, high = np.zeros((len(middle), parts.cells)), np.full((len(middle), parts.cells), np.inf)
        np.maximum.at(low.T, parts.cell, (middle - reach).T)
        np.minimum.at(high.T, parts.cell, (middle + reach).T)
    return low, np.maximum(high, low)
