"""Slow, independent solvers to hold ours against, and random problems to do it on."""

import daqp
import numpy as np
from scipy.optimize import linprog, nnls

from recordwise.postprocess import Workload


def dense(workload):
    """The queries as a dense matrix."""
    return np.vstack([group.rows.toarray() for group in workload.groups])


def scipy_nnls(matrix, answers, weights):
    """The textbook active-set method."""
    root = np.sqrt(weights)
    return nnls(matrix * root[:, None], answers * root, maxiter=100 * matrix.shape[1])[0]


def quadratic(matrix, answers, weights, low, high):
    """min of the weighted squares with 0 <= x and low <= matrix x <= high, by daqp."""
    cells = matrix.shape[1]
    hessian = (matrix.T * weights) @ matrix
    linear = -(matrix.T * weights) @ answers
    upper = np.concatenate([np.full(cells, 1e30), high])
    lower = np.concatenate([np.zeros(cells), low])
    sense = np.zeros(len(upper), dtype=np.int32)
    x, _, flag, _ = daqp.solve(hessian, linear, np.ascontiguousarray(matrix), upper, lower, sense, primal_tol=1e-10)
    assert flag > 0
    return np.maximum(x, 0.0)


def least_value(cost, rows, values):
    """min of cost.x over x >= 0 with rows x = values; minus infinity where it has no end."""
    found = linprog(cost, A_eq=rows if len(rows) else None, b_eq=values if len(rows) else None, bounds=(0, None))
    assert found.status in (0, 3), found.message
    return found.fun if found.status == 0 else -np.inf


def smallest_deviation(matrix, answers, weights):
    """The linear program of the worst deviation, dense."""
    root = np.sqrt(weights)
    rows = matrix * root[:, None]
    ones = np.ones((len(rows), 1))
    found = linprog(
        np.append(np.zeros(matrix.shape[1]), 1.0),
        A_ub=np.block([[rows, -ones], [-rows, -ones]]),
        b_ub=np.concatenate([answers * root, -answers * root]),
        bounds=(0, None),
    )
    return found.x[-1]


def random_workload(rng):
    """Margins of small tables, trees, and arbitrary weighted rows."""
    kind = rng.integers(4)
    if kind == 0:
        shape = tuple(rng.integers(1, 5, size=rng.integers(1, 4)))
        kept = {tuple(np.flatnonzero(rng.random(len(shape)) < 0.5)) for _ in range(rng.integers(0, 4))}
        return Workload.marginals(shape, [*sorted(kept - {tuple(range(len(shape)))}), tuple(range(len(shape)))])
    if kind == 1:
        leaves = int(rng.integers(1, 12))
        fine = rng.integers(0, 4, size=leaves)
        tree = {"nation": np.zeros(leaves), "state": fine // 2, "county": fine, "block": np.arange(leaves)}
        other = {"all": np.zeros(3), "half": np.array([0, 0, 1]), "each": np.arange(3)}
        return Workload.hierarchy(
            {"place": tree, "sector": other}, [("nation",), ("state", "half"), ("county",), ("block", "each")]
        )
    cells = int(rng.integers(1, 9))
    rows = (rng.random((rng.integers(1, 10), cells)) < 0.5) * (1.0 if kind == 2 else rng.normal(size=cells))
    rows = rows[np.any(rows != 0, axis=1)]
    blocks = [rows, np.eye(cells)] if rng.random() < 0.5 or len(rows) == 0 else [rows]
    return Workload.matrix(np.vstack(blocks))


def random_answers(workload, rng):
    """Answers near a table, or far from any: ties, zeros, all negative, one huge."""
    table = rng.integers(0, 6, size=workload.cells) * (rng.random(workload.cells) < 0.5)
    exact = workload.answer(table.astype(float))
    kind = rng.integers(6)
    if kind == 0:
        return np.rint(exact + rng.normal(size=len(exact)) * 3)
    if kind == 1:
        return np.zeros(len(exact))
    if kind == 2:
        return -np.abs(rng.normal(size=len(exact)))
    if kind == 3:
        return exact
    noisy = exact + rng.laplace(size=len(exact)) * 5
    if kind == 4:
        noisy[rng.integers(len(exact))] += 1e4
    return noisy


def random_variances(workload, rng):
    """Equal, or spread over four orders of magnitude."""
    return np.ones(workload.queries) if rng.random() < 0.3 else 10.0 ** rng.uniform(-2, 2, size=workload.queries)
