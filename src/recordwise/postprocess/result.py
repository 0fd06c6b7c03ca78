"""The result of a fit and its residuals, which are recomputed from the answer and never taken from a solver."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from recordwise.postprocess.measured import Measured
from recordwise.postprocess.solvers.boxed import Boxed, FloatArray, IntArray, System
from recordwise.postprocess.workload import Workload

TOLERANCE = 1e-8
CHUNK_DRAWS = 125
CHUNK_CELLS = 400_000
"""Cells of the draws fitted together: few enough for their arrays to stay in the cache."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fit:
    """Fitted tables, one per draw; without the draw axis if a single draw was given."""

    x: FloatArray
    """The cells."""
    fitted: FloatArray
    """The answers of the fitted table, which add up."""
    kkt: FloatArray
    """The largest violation of the optimality conditions, relative to the terms that should cancel (T-KKT)."""
    primal: FloatArray
    """The largest violation of a constraint, relative to its size; a negative cell counts in its own standard deviations."""
    iterations: IntArray
    """Newton steps (linear solves); 0 for a closed form."""
    tolerance: float = TOLERANCE
    bound: FloatArray | None = None
    """Max fit only: the smallest worst deviation from an answer, in its standard deviations, that some table attains."""

    @property
    def converged(self) -> FloatArray:
        """Whether both residuals reached the tolerance, per draw. Draws that did not converge are still returned."""
        return np.asarray((self.kkt <= self.tolerance) & (self.primal <= self.tolerance))


def fit_draws(measured: Measured, fit: Callable[[Measured], Fit]) -> Fit:
    """Fit the draws in chunks, one thread per processor, and combine the results in the shape the user gave."""
    size = max(1, min(CHUNK_DRAWS, CHUNK_CELLS // measured.workload.cells))
    chunks = [measured.take(slice(start, start + size)) for start in range(0, measured.draws, size)]
    workers = min(len(chunks), os.cpu_count() or 1)
    if workers == 1:
        return joined(measured, [fit(chunk) for chunk in chunks])
    with ThreadPoolExecutor(workers) as pool:
        return joined(measured, list(pool.map(fit, chunks)))


def joined(measured: Measured, fits: list[Fit]) -> Fit:
    """The results of all chunks combined; without the draw axis if a single draw was given."""
    parts: dict[str, Any] = {
        name: np.concatenate([getattr(fit, name) for fit in fits])
        for name in Fit.__slots__
        if isinstance(getattr(fits[0], name), np.ndarray)
    }
    return replace(fits[0], **{name: part[0] if measured.one else part for name, part in parts.items()})


def least_squares_residual(measured: Measured, x: FloatArray, fitted: FloatArray, *, nonnegative: bool) -> FloatArray:
    """The natural residual of (nonnegative) least squares, per draw."""
    weights = measured.weights
    pulls = weights * (fitted - measured.answers)
    return natural_residual(
        measured.workload, x, pulls, weights, weights * np.abs(measured.answers), nonnegative=nonnegative
    )


def natural_residual(
    workload: Workload, x: FloatArray, pulls: FloatArray, weights: FloatArray, sizes: FloatArray, *, nonnegative: bool
) -> FloatArray:
    """The residual of an objective whose derivative in the answer of query q is ``pulls[q]``, of size up to ``sizes[q]``.

    Cell i has gradient g_i = sum_q c_qi pulls_q and curvature h_i = sum_q w_q c_qi^2. The residual is |g_i|, or with a sign
    constraint |min(h_i x_i, g_i)|, divided by the size of the terms that cancel, sqrt(h_i) + sum_q |c_qi| sizes_q (T-KKT).
    """
    gradient = workload.spread(pulls)
    curved = workload.spread_power(weights, 2)
    size = np.sqrt(curved) + workload.spread_power(sizes, 1)
    off = np.minimum(curved * x, gradient) if nonnegative else gradient
    return np.asarray(np.max(np.abs(off) / np.where(size > 0, size, 1.0), axis=1, initial=0.0))


def boxed_residual(problem: Boxed, system: System, x: FloatArray, y: FloatArray) -> FloatArray:
    """The natural residual of the boxed problem at cells ``x`` and multipliers ``y``, per draw."""
    scale = np.where(problem.precision > 0, problem.precision, 1.0)
    pulls = system.spread(y)
    gradient = problem.precision * (x - problem.target) - pulls
    cells = np.abs(x - np.clip(x - gradient / scale, problem.low, problem.high))
    size = 1.0 / np.sqrt(scale) + np.abs(problem.target) + system.powers(1).spread(np.abs(y)) / scale
    z = system.sums(x)
    wanted = np.clip(problem.answer - y / problem.weight, problem.floor, problem.ceiling)
    sums = np.abs(z - wanted) / (1.0 + np.abs(wanted) + system.powers(1).sums(np.abs(x)))
    return np.asarray(np.maximum(np.max(cells / size, axis=1, initial=0.0), np.max(sums, axis=1, initial=0.0)))


def negativity(measured: Measured, x: FloatArray) -> FloatArray:
    """How far below zero the lowest cell is, in its standard deviations, per draw."""
    curved = measured.workload.spread_power(measured.weights, 2)
    return np.asarray(np.max(np.maximum(-x, 0.0) * np.sqrt(curved), axis=1, initial=0.0))
