r"""A second, slower way to the solution of a boxed problem, for the few draws the first one leaves above the tolerance (T-REFINE).

With constant weights the proximal method of multipliers converges linearly, as slowly as the problem is badly conditioned: large
multipliers are reached in small steps, and cells that nothing pulls at creep. Here the weights shrink from round to round, which
makes it superlinear, and after each round the bounds that hold are taken as equations: once they are the right ones, the linear
system that remains is solved to rounding.
"""

from collections.abc import Iterator

import numpy as np

from recordwise.postprocess.result import boxed_residual
from recordwise.postprocess.solvers.boxed import Boxed, FloatArray, Solution, curvature, levels_of
from recordwise.postprocess.solvers.dense import DenseSystem
from recordwise.postprocess.solvers.newton import Round, newton

GOOD = 1e-10
"""A residual below this is left as it is."""
DONE = 1e-13
SHRINK = 0.3
"""What proximal weights are multiplied by from one round to the next."""
LEAST = 1e-9
ROUNDS = 40
MOST_UNKNOWNS = 1500
"""Cells and queries up to which the equations are solved densely."""
RANK = 1e-13
"""Singular values below this share of the largest count as 0."""
PIECES = 20
"""How often the set of bounds that hold may change while they are solved."""


def refine(problem: Boxed, system: DenseSystem, found: Solution) -> Solution:
    """The solution itself, with the draws that need it solved again; never one with a larger residual."""
    poor = np.flatnonzero(boxed_residual(problem, system, found.x, found.y) > GOOD)
    for draw in poor:
        chosen = np.array([draw])
        x, y, steps = _again(problem.take(chosen), system.take(chosen), found.x[chosen], found.y[chosen])
        found.x[draw], found.y[draw] = x, y
        found.iterations[draw] += steps
    return found


def _again(problem: Boxed, system: DenseSystem, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray, int]:
    """One draw; the center goes on from round to round, and the best point met is kept."""
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
    """Points at which the bounds that hold at a point hold exactly, and everything else is at its optimum; then on from there."""
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
