r"""A second, slower solver of a boxed problem, for the few draws that the first one leaves above the tolerance (T-REFINE).

With constant weights the proximal method of multipliers converges linearly, at a rate set by the conditioning: large multipliers
are reached in small steps, and cells with little pull on them move slowly. Here the weights shrink from round to round, which makes
convergence superlinear, and after each round the active bounds are treated as equations: once they are the right ones, the
remaining linear system is solved to rounding accuracy.
"""

from collections.abc import Iterator

import numpy as np

from recordwise.postprocess.result import boxed_residual
from recordwise.postprocess.solvers.boxed import Boxed, FloatArray, Solution, curvature, levels_of
from recordwise.postprocess.solvers.dense import DenseSystem
from recordwise.postprocess.solvers.newton import Round, newton

GOOD = 1e-10
"""A residual below this is accepted as it is."""
DONE = 1e-13
SHRINK = 0.3
"""The factor by which proximal weights shrink from one round to the next."""
LEAST = 1e-9
ROUNDS = 40
MOST_UNKNOWNS = 1500
"""The number of cells and queries up to which the equations are solved densely."""
RANK = 1e-13
"""Singular values below this fraction of the largest count as 0."""
PIECES = 20
"""How often the set of active bounds may change during a solve."""


def refine(problem: Boxed, system: DenseSystem, found: Solution) -> Solution:
    """The solution, with the draws that need it solved again; the residual never gets larger."""
    poor = np.flatnonzero(boxed_residual(problem, system, found.x, found.y) > GOOD)
    for draw in poor:
        chosen = np.array([draw])
        x, y, steps = _again(problem.take(chosen), system.take(chosen), found.x[chosen], found.y[chosen])
        found.x[draw], found.y[draw] = x, y
        found.iterations[draw] += steps
    return found


def _again(problem: Boxed, system: DenseSystem, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray, int]:
    """Solve one draw; the center continues from round to round, and the best point found is kept."""
    best, steps = (float(boxed_residual(problem, system, x, y)[0]), x, y), 0
    (_, held), (_, loose) = levels_of(problem)
    cells, queries = curvature(problem, system)
    for turn in range(ROUNDS):
        part = max(SHRINK**turn, LEAST)
        measured = problem.precision > 0
        stage = Round(
            problem=problem,
            system=system,
            precision=np.where(measured, problem.precision, loose * part * cells),
            target=np.where(measured, problem.target, x),
            proximal=held * part * queries * problem.held,
            center=y,
        )
        try:
            point, moved = newton(stage)
        except np.linalg.LinAlgError:
            break
        x, y, steps = point.x, point.y, steps + int(moved[0])
        for candidate in ((x, y), *_polished(problem, system, x, y)):
            residual = float(boxed_residual(problem, system, *candidate)[0])
            best = min(best, (residual, *candidate), key=lambda each: each[0])
        if best[0] <= DONE:
            break
    return best[1], best[2], steps


def _polished(
    problem: Boxed, system: DenseSystem, x: FloatArray, y: FloatArray
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Points at which the active bounds hold exactly and everything else is optimal, continuing from one to the next."""
    if system.cells + system.queries > MOST_UNKNOWNS:
        return
    rows = system.rows.toarray()
    curved = problem.precision + (problem.weight @ rows**2)
    scale, size = 1.0 / np.sqrt(np.where(curved > 0, curved, 1.0))[0], np.sqrt(problem.weight)[0]
    for _ in range(PIECES):
        gradient = problem.precision * (x - problem.target) - y @ rows
        wanted = x - gradient * scale**2
        free = ((wanted > problem.low) & (wanted < problem.high))[0]
        loose = problem.answer - y / problem.weight
        slack = ((loose > problem.floor) & (loose < problem.ceiling))[0]
        x = np.where(free, x, np.clip(wanted, problem.low, problem.high))
        gap = np.clip(loose, problem.floor, problem.ceiling) - x @ rows.T
        pull = y @ rows - problem.precision * (x - problem.target)
        own, shared = (problem.precision[0] * scale**2)[free], (rows * scale * size[:, None])[:, free]
        matrix = np.block([[np.diag(own), -shared.T], [shared, np.diag(slack.astype(np.float64))]])
        step = np.linalg.lstsq(matrix, np.concatenate([(pull[0] * scale)[free], gap[0] * size]), rcond=RANK)[0]
        x, y = x.copy(), y + step[free.sum() :] * size
        x[0, free] += step[: free.sum()] * scale[free]
        yield np.clip(x, problem.low, problem.high), y
