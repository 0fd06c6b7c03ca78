"""Least squares with and without the sign constraint."""

from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from recordwise.errors import ParameterError, own_argument_errors
from recordwise.postprocess.measured import (
    TOLERANCE,
    Fit,
    Measurements,
    Noise,
    ScaledLaw,
    fit_draws,
    law_of,
    least_squares_residual,
    measure,
    natural_residual,
    negativity,
)
from recordwise.postprocess.solvers.boxed import BoxedProblem, FloatArray, Solution, Solver, System
from recordwise.postprocess.solvers.solve import Extra, prepare, solve_extended, solve_problem
from recordwise.postprocess.workload import Workload

DENSE_ENTRIES = 4_000_000


@own_argument_errors
def ols(
    workload: Workload,
    answers: ArrayLike,
    variances: ArrayLike,
    noise: Noise = "laplace",
    *,
    tolerance: float = TOLERANCE,
) -> Fit:
    """Fit by weighted least squares without a sign constraint.

    Unbiased and consistent, but cells may be negative. Where the queries leave a table undetermined, returns the
    one of least norm. ``noise`` plays no part beyond the variances.

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
    parts, system = prepare(workload)
    first = parts.boxed_problem(measured.answers[:1], measured.weights)
    closed = bool(np.all(first.precision > 0))
    # The system is the same for all draws.
    solver = system.solver(1.0 / first.precision, 1.0 / first.weight) if closed and system.exact else None

    def fit(some: Measurements) -> Fit:
        x = closed_form(parts.boxed_problem(some.answers, some.weights), system, solver) if closed else least_norm(some)
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


@own_argument_errors
def nnls(
    workload: Workload,
    answers: ArrayLike,
    variances: ArrayLike,
    noise: Noise = "laplace",
    *,
    tolerance: float = TOLERANCE,
) -> Fit:
    """Fit a nonnegative table by weighted least squares.

    Solved exactly by Newton on the dual (T-DUAL). ``noise`` plays no part beyond the variances.

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
    parts, system = prepare(workload)

    def fit(some: Measurements) -> Fit:
        found = solve_problem(parts.boxed_problem(some.answers, some.weights), system)
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


def closed_form(problem: BoxedProblem, system: System, solver: Solver | None) -> FloatArray:
    """Solve least squares where every cell was measured, one equation per sum."""
    if solver is None:
        return solve_problem(replace(problem, low=-problem.high), system).x
    y = solver(problem.answer - system.sums(problem.target))
    return problem.target + system.spread(y) / problem.precision


def least_norm(measured: Measurements) -> FloatArray:
    """Return the least-squares table of smallest norm."""
    root = np.sqrt(measured.weights[0])
    rows = sparse.diags_array(root) @ sparse.vstack([group.rows for group in measured.workload.groups], format="csr")
    right = measured.answers * root
    if rows.shape[0] * rows.shape[1] <= DENSE_ENTRIES:
        return np.asarray(np.linalg.lstsq(rows.toarray(), right.T)[0].T)
    from scipy.sparse.linalg import lsmr

    return np.stack([lsmr(rows, row, atol=1e-15, btol=1e-15, conlim=0, maxiter=10_000)[0] for row in right])


# Reweighted least squares [A]: answers that look like zeros get less weight individually and more weight as a sum.


Units: TypeAlias = Literal["counts", "noise"]
CONFIDENCE = 0.99


@own_argument_errors
def reweighted_fit(
    workload: Workload,
    answers: ArrayLike,
    variances: ArrayLike,
    noise: Noise = "laplace",
    *,
    confidence: float = CONFIDENCE,
    units: Units = "counts",
    tolerance: float = TOLERANCE,
) -> Fit:
    """Fit by nonnegative least squares with the weights of [A], Algorithm 2.

    Read with the prose of the paper (T-REWEIGHT). In each group the smallest answers, up to the first that is
    surely not a zero cell, get a small weight each and their sum a large one. ``units="counts"`` measures the
    down-weighting in counts as the paper does; ``"noise"`` in units of the noise scale, so that doubling every
    answer and every scale doubles the fit.

    Args:
        workload: The queries that were answered.
        answers: The noisy answers, in the order of the workload; several rows are several draws.
        variances: The variance of each answer, one for each group, or one for all.
        noise: The law of the noise; Gaussian unless given.
        confidence: The confidence with which a cell must differ from zero to keep its weight.
        units: "counts" or "noise": what the down-weighting is measured in.
        tolerance: The largest violation of the optimality conditions, relative to the answers.

    Returns:
        The fitted table.
    """
    check(workload, confidence, units)
    measured = measure(workload, answers, variances)
    laws = [law_of(noise, 1.0 / measured.weights[0, place]) for place in workload.slices]
    parts, base = prepare(workload)

    def fit(some: Measurements) -> Fit:
        low = [low_queries(some.answers[:, place], law, confidence, units) for place, law in zip(workload.slices, laws)]
        weights, extras = reweight(some, low)
        return with_residuals(some, weights, extras, solve_extended(some, weights, extras, parts, base), tolerance)

    return fit_draws(measured, fit)


def reweight(measured: Measurements, low: list[tuple[NDArray[np.bool_], FloatArray]]) -> tuple[FloatArray, list[Extra]]:
    """Return the new weights and the sums of each group's low queries."""
    factor = np.concatenate([np.where(flags, divisor, 1.0) for flags, divisor in low], axis=1)
    groups = measured.workload.groups
    extras = [low_sum(measured, k, flags) for k, (flags, _) in enumerate(low) if groups[k].size > 1]
    return measured.weights / factor, extras


def check(workload: Workload, confidence: float, units: str) -> None:
    """Refuse inputs for which the method is not defined."""
    if not 0 < confidence < 1:
        raise ParameterError(parameter="confidence", problem=f"must lie between 0 and 1, not {confidence}")
    if units not in ("counts", "noise"):
        raise ParameterError(parameter="units", problem=f"must be 'counts' or 'noise', not {units!r}")
    for group in workload.groups:
        if not group.disjoint:
            raise ParameterError(
                parameter=f"group '{group.name}'",
                problem="has queries that overlap or are weighted, but reweighted_fit adds up the small answers of a group",
                advice="Split it into groups of disjoint counts, or use nnls.",
            )


def low_queries(
    answers: FloatArray, law: ScaledLaw, confidence: float, units: Units
) -> tuple[NDArray[np.bool_], FloatArray]:
    """Return which answers may come from zeros, and their weight divisor.

    Per draw. The j-th smallest is certainly not a zero if F(a_(j))^j >= confidence; the low answers are those
    before the first such one. Equal answers are never separated, because the power only falls with j. A query
    alone keeps its weight, because its low weight and the weight of its low sum add up to it.
    """
    size = answers.shape[1]
    if size == 1:
        return np.zeros(answers.shape, dtype=np.bool_), np.ones((1, 1))
    chance = np.clip(law.cdf(answers), 0.0, 1.0)
    ranked = np.sort(chance, axis=1)
    sure = ranked ** np.arange(1, size + 1) >= confidence
    found = np.any(sure, axis=1)
    count = np.where(found, np.argmax(sure, axis=1), size)
    edge = np.where(found, ranked[np.arange(len(ranked)), np.minimum(count, size - 1)], np.inf)
    highest = law.quantile(0.5 ** (1.0 / np.maximum(count, 1))[:, None])
    unit = law.scale if units == "noise" else 1.0
    return chance < edge[:, None], 2.0 * np.maximum(1.0, highest / unit) ** 2


def low_sum(measured: Measurements, index: int, low: NDArray[np.bool_]) -> Extra:
    """Return the sum of a group's low answers as a separate query."""
    where = measured.workload.slices[index]
    chosen = low.astype(np.float64)
    variance = chosen @ (1.0 / measured.weights[0, where])
    return Extra(
        group=measured.workload.groups[index],
        place=where,
        chosen=chosen,
        answer=np.sum(chosen * measured.answers[:, where], axis=1),
        weight=np.where(variance > 0, 0.5 / np.where(variance > 0, variance, 1.0), 0.0),
    )


def with_residuals(
    measured: Measurements, weights: FloatArray, extras: list[Extra], found: Solution, tolerance: float
) -> Fit:
    """The result with its residuals, including those of the low sums."""
    fitted = measured.workload.answer(found.x)
    pulls = weights * (fitted - measured.answers)
    sizes = weights * np.abs(measured.answers)
    curved = weights.copy()
    for extra in extras:
        off = np.sum(extra.chosen * fitted[:, extra.place], axis=1) - extra.answer
        pulls[:, extra.place] += extra.chosen * (extra.weight * off)[:, None]
        sizes[:, extra.place] += extra.chosen * (extra.weight * np.abs(extra.answer))[:, None]
        curved[:, extra.place] += extra.chosen * extra.weight[:, None]
    kkt = natural_residual(measured.workload, found.x, pulls, curved, sizes, nonnegative=True)
    return Fit(
        x=found.x,
        fitted=fitted,
        kkt=kkt,
        primal=negativity(measured, found.x),
        iterations=found.iterations,
        tolerance=tolerance,
    )
