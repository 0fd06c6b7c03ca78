"""The smallest worst deviation from the answers that a nonnegative table can have, in standard deviations."""

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from recordwise.errors import SolverError
from recordwise.postprocess.measured import Measured
from recordwise.postprocess.solvers.boxed import FloatArray
from recordwise.postprocess.solvers.lattice import regroup
from recordwise.postprocess.workload import Group

NEWTON_STEPS = 60


def lower_bound(measured: Measured) -> FloatArray:
    """What single queries alone demand, per draw (T-MAXFIT).

    No answer may stay negative, and a query must agree with the finer queries inside it, from above and from below.
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
    """What a query and the finer ones inside it demand of each other.

    From below: a_q - t s_q <= sum (a_c + t s_c). From above: sum max(0, a_c - t s_c) <= a_q + t s_q, whose excess is convex and
    decreasing in t: Newton from a lower bound rises to the root and stops there.
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


def smallest_deviation(measured: Measured, draw: int) -> float:
    """The exact value by a linear program, for the draws whose cuts no table attains."""
    workload, answers = measured.workload, measured.answers[draw]
    scale = np.sqrt(measured.weights[0])
    rows = sparse.diags_array(scale) @ sparse.vstack([group.rows for group in workload.groups], format="csr")
    ones = sparse.csr_array(np.ones((len(answers), 1)))
    above, below = sparse.hstack([rows, -ones]), sparse.hstack([-rows, -ones])
    cost = np.append(np.zeros(workload.cells), 1.0)
    found = linprog(
        cost,
        A_ub=sparse.vstack([above, below], format="csr"),
        b_ub=np.concatenate([answers * scale, -answers * scale]),
        bounds=(0, None),
        method="highs",
    )
    if found.x is None:
        raise SolverError(problem="the linear program of the smallest worst deviation", status=str(found.message))
    return float(found.x[-1])
