"""Least squares with and without the sign constraint."""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.linalg import lsmr

from recordwise.postprocess.measured import Measured, Noise, law_of, measure
from recordwise.postprocess.result import TOLERANCE, Fit, fit_draws, least_squares_residual, negativity
from recordwise.postprocess.solvers.boxed import Boxed, FloatArray, Solver, System
from recordwise.postprocess.solvers.solve import prepared, solve_problem
from recordwise.postprocess.workload import Workload

DENSE_ENTRIES = 4_000_000


def ols(
    workload: Workload,
    answers: ArrayLike,
    variances: ArrayLike,
    noise: Noise = "laplace",
    *,
    tolerance: float = TOLERANCE,
) -> Fit:
    """Weighted least squares without a sign constraint: unbiased, consistent, but cells may be negative.

    Where the queries leave a table undetermined, the one of least norm is returned. ``noise`` plays no part beyond the variances.

    Args:
        workload: The queries that were answered.
        answers: The noisy answers, in the order of the workload; several rows are several draws.
        variances: The variance of each answer, one for each group, or one for all.
        noise: The law of the noise; Gaussian unless given.
        tolerance: The largest violation of the optimality conditions, relative to the answers.

    Returns:
        The fitted table.
    """
    measured = measure(workload, answers, variances)
    law_of(noise, 1.0 / measured.weights)
    parts, system = prepared(workload)
    first = parts.boxed(measured.answers[:1], measured.weights)
    closed = bool(np.all(first.precision > 0))
    # The system is the same for all draws.
    solver = system.solver(1.0 / first.precision, 1.0 / first.weight) if closed and system.exact else None

    def fit(some: Measured) -> Fit:
        x = closed_form(parts.boxed(some.answers, some.weights), system, solver) if closed else least_norm(some)
        fitted = workload.answer(x)
        return Fit(
            x=x,
            fitted=fitted,
            kkt=least_squares_residual(some, x, fitted, nonnegative=False),
            primal=np.zeros(some.draws),
            iterations=np.zeros(some.draws, dtype=np.int64),
            tolerance=tolerance,
        )

    return fit_draws(measured, fit)


def nnls(
    workload: Workload,
    answers: ArrayLike,
    variances: ArrayLike,
    noise: Noise = "laplace",
    *,
    tolerance: float = TOLERANCE,
) -> Fit:
    """Weighted least squares over nonnegative tables, solved exactly by Newton on the dual (T-DUAL).

    ``noise`` plays no part beyond the variances.

    Args:
        workload: The queries that were answered.
        answers: The noisy answers, in the order of the workload; several rows are several draws.
        variances: The variance of each answer, one for each group, or one for all.
        noise: The law of the noise; Gaussian unless given.
        tolerance: The largest violation of the optimality conditions, relative to the answers.

    Returns:
        The fitted table.
    """
    measured = measure(workload, answers, variances)
    law_of(noise, 1.0 / measured.weights)
    parts, system = prepared(workload)

    def fit(some: Measured) -> Fit:
        found = solve_problem(parts.boxed(some.answers, some.weights), system)
        fitted = workload.answer(found.x)
        return Fit(
            x=found.x,
            fitted=fitted,
            kkt=least_squares_residual(some, found.x, fitted, nonnegative=True),
            primal=negativity(some, found.x),
            iterations=found.iterations,
            tolerance=tolerance,
        )

    return fit_draws(measured, fit)


def closed_form(problem: Boxed, system: System, solver: Solver | None) -> FloatArray:
    """Least squares where every cell was measured: one linear system with one equation per sum, solved if it was factored."""
    if solver is None:
        return solve_problem(replace(problem, low=-problem.high), system).x
    y = solver(problem.answer - system.sums(problem.target))
    return problem.target + system.spread(y) / problem.precision


def least_norm(measured: Measured) -> FloatArray:
    """The least-squares table of smallest norm, for workloads that do not measure every cell."""
    root = np.sqrt(measured.weights[0])
    rows = sparse.diags_array(root) @ sparse.vstack([group.rows for group in measured.workload.groups], format="csr")
    right = measured.answers * root
    if rows.shape[0] * rows.shape[1] <= DENSE_ENTRIES:
        return np.asarray(np.linalg.lstsq(rows.toarray(), right.T)[0].T)
    return np.stack([lsmr(rows, row, atol=1e-15, btol=1e-15, conlim=0, maxiter=10_000)[0] for row in right])
