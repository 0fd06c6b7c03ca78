"""Noisy answers, their weights and noise laws, and fit results.

Answers are checked and divided into cells measured directly and sums of cells. Any object with ``cdf`` and
``quantile`` can be a law, including the lattice laws of ``recordwise.noise``.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from recordwise.errors import ParameterError, SolverError, own_errors_of
from recordwise.postprocess.solvers.boxed import BoxedProblem, FloatArray, IntArray, System
from recordwise.postprocess.workload import Group, Workload


class NoiseLaw(Protocol):
    """The law of the noise on an answer."""

    def cdf(self, x: Any, /) -> Any:
        """P(Z <= x).

        Args:
            x: A number, or an array of them.

        Returns:
            A probability for each.
        """

    def quantile(self, p: Any, /) -> Any:
        """The point that Z stays below with probability p.

        Args:
            p: A probability between 0 and 1.

        Returns:
            The point.
        """


Noise: TypeAlias = Literal["laplace", "gaussian"] | NoiseLaw


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuousLaplace:
    """Laplace noise with one variance per query."""

    variance: FloatArray

    @property
    def scale(self) -> FloatArray:
        """The scale of each answer."""
        return np.sqrt(self.variance / 2)

    def cdf(self, x: FloatArray, /) -> FloatArray:
        """P(Z <= x).

        Args:
            x: A number, or an array of them.

        Returns:
            A probability for each.
        """
        ratio = np.asarray(x) / self.scale
        tail = 0.5 * np.exp(-np.abs(ratio))
        return np.where(ratio < 0, tail, 1 - tail)

    def quantile(self, p: FloatArray, /) -> FloatArray:
        """The point that Z stays below with probability p.

        Args:
            p: A probability between 0 and 1.

        Returns:
            The point.
        """
        p = np.asarray(p)
        return self.scale * np.where(p < 0.5, np.log(2 * p), -np.log(2 * (1 - p)))


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuousGaussian:
    """Gaussian noise with one variance per query."""

    variance: FloatArray

    @property
    def scale(self) -> FloatArray:
        """The standard deviation of each answer."""
        return np.sqrt(self.variance)

    def cdf(self, x: FloatArray, /) -> FloatArray:
        """P(Z <= x).

        Args:
            x: A number, or an array of them.

        Returns:
            A probability for each.
        """
        from scipy import special

        return np.asarray(special.ndtr(np.asarray(x) / self.scale))

    def quantile(self, p: FloatArray, /) -> FloatArray:
        """The point that Z stays below with probability p.

        Args:
            p: A probability between 0 and 1.

        Returns:
            The point.
        """
        from scipy import special

        return np.asarray(self.scale * special.ndtri(p))


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenLaw:
    """One law for every query, defined by its cdf and quantile."""

    law: NoiseLaw
    variance: FloatArray

    @property
    def scale(self) -> FloatArray:
        """The standard deviation, which all laws have whatever their own parameter means."""
        return np.sqrt(self.variance)

    def cdf(self, x: FloatArray, /) -> FloatArray:
        """Return P(Z <= x), at the integer below for a lattice law."""
        whole = hasattr(self.law, "pmf")
        return np.asarray(self.law.cdf(np.floor(x).astype(np.int64) if whole else x), dtype=np.float64)

    def quantile(self, p: FloatArray, /) -> FloatArray:
        """Return the quantiles, evaluating each distinct probability once."""
        different, which = np.unique(p, return_inverse=True)
        found = np.array([float(self.law.quantile(float(one))) for one in different])
        return found[which].reshape(np.shape(p))


ScaledLaw: TypeAlias = ContinuousLaplace | ContinuousGaussian | GivenLaw


def law_of(noise: Noise, variance: FloatArray) -> ScaledLaw:
    """The law that ``noise`` stands for, for queries with these variances."""
    if noise == "laplace":
        return ContinuousLaplace(variance=variance)
    if noise == "gaussian":
        return ContinuousGaussian(variance=variance)
    if callable(getattr(noise, "cdf", None)) and callable(getattr(noise, "quantile", None)):
        return GivenLaw(law=noise, variance=variance)
    raise ParameterError(
        parameter="noise",
        problem="must be 'laplace', 'gaussian', or a law with cdf and quantile",
        advice=f"Got {noise!r}.",
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurements:
    """Answers of shape (draws, queries) and weights of shape (1, queries)."""

    workload: Workload
    answers: FloatArray
    weights: FloatArray
    one: bool
    """Whether a single draw was given, so that a single one is returned."""

    @property
    def draws(self) -> int:
        return len(self.answers)

    def take(self, chosen: slice | IntArray) -> "Measurements":
        """Some of the draws."""
        return replace(self, answers=self.answers[chosen])


@dataclass(frozen=True, kw_only=True, eq=False)
class CellsAndSums:
    """The queries that are single cells, and those that are sums."""

    single: IntArray
    cell: IntArray
    coefficient: FloatArray
    sums: IntArray
    """Queries over several cells; the largest set of disjoint ones first."""
    head: int
    cells: int

    @classmethod
    def of(cls, workload: Workload) -> "CellsAndSums":
        single, cell, coefficient, sums, disjoint = [], [], [], [], []
        for group, place in zip(workload.groups, workload.slices):
            alone, where, factor = single_cells(group)
            single.append(place.start + alone)
            cell.append(where)
            coefficient.append(factor)
            several = np.ones(group.size, dtype=np.bool_)
            several[alone] = False
            sums.append(place.start + np.flatnonzero(several))
            disjoint.append(len(sums[-1]) if group.disjoint else 0)
        first = int(np.argmax(disjoint))
        order = [first, *(k for k in range(len(sums)) if k != first)]
        return cls(
            single=np.concatenate(single),
            cell=np.concatenate(cell),
            coefficient=np.concatenate(coefficient),
            sums=np.concatenate([sums[k] for k in order]),
            head=disjoint[first],
            cells=workload.cells,
        )

    @cached_property
    def placing(self) -> Any:
        """Adds the contribution of each single-cell query to its cell."""
        shape = (self.cells, len(self.single))
        return sparse.csr_array((np.ones(len(self.cell)), (self.cell, np.arange(len(self.cell)))), shape=shape)

    @cached_property
    def order(self) -> IntArray | None:
        """The single-cell query of each cell, if every cell has exactly one."""
        if len(self.cell) != self.cells or np.any(np.bincount(self.cell, minlength=self.cells) != 1):
            return None
        return np.argsort(self.cell)

    def scatter(self, values: FloatArray) -> FloatArray:
        if self.order is not None:
            return values[:, self.order]
        return np.asarray((self.placing @ values.T).T)

    def boxed_problem(self, answers: FloatArray, weights: FloatArray) -> BoxedProblem:
        """The nonnegative least-squares problem of these answers."""
        own = weights[:, self.single]
        precision = self.scatter(own * self.coefficient**2)
        pulled = self.scatter(own * self.coefficient * answers[:, self.single])
        target = pulled / np.where(precision > 0, precision, 1.0)
        free = np.full((1, len(self.sums)), np.inf)
        return BoxedProblem(
            precision=precision,
            target=target,
            low=np.zeros((1, self.cells)),
            high=np.full((1, self.cells), np.inf),
            weight=weights[:, self.sums],
            answer=answers[:, self.sums],
            floor=-free,
            ceiling=free,
        )


def single_cells(group: Group) -> tuple[IntArray, IntArray, FloatArray]:
    """Return a group's single-cell queries, their cells and coefficients."""
    if group.labels is not None:
        count = np.bincount(group.labels, minlength=group.size)
        alone = np.flatnonzero(count == 1)
        member = np.zeros(group.size, dtype=np.int64)
        member[group.labels] = np.arange(group.cells)
        return alone, member[alone], np.ones(len(alone))
    rows = group.rows
    alone = np.flatnonzero(np.diff(rows.indptr) == 1)
    first = rows.indptr[alone]
    return alone, rows.indices[first].astype(np.int64), rows.data[first]


def sum_rows(workload: Workload, parts: CellsAndSums) -> Any:
    """Return the queries over several cells as one sparse matrix."""
    return sparse.csr_array(sparse.vstack([group.rows for group in workload.groups], format="csr")[parts.sums])


def measure(workload: Workload, answers: ArrayLike, variances: ArrayLike) -> Measurements:
    """Check the user's input; the weights are the inverse variances."""
    given = np.asarray(answers, dtype=np.float64)
    if given.ndim not in (1, 2) or given.shape[-1] != workload.queries or len(given) == 0:
        raise ParameterError(
            parameter="answers",
            problem=f"must have shape ({workload.queries},) or (draws, {workload.queries}), not {given.shape}",
        )
    if not np.all(np.isfinite(given)):
        lost = int(np.sum(~np.isfinite(given)))
        raise ParameterError(
            parameter="answers",
            problem=f"has {lost} values that are not finite numbers",
            advice="Drop those queries.",
        )
    return Measurements(
        workload=workload,
        answers=np.atleast_2d(given),
        weights=1.0 / read_variances(workload, variances),
        one=given.ndim == 1,
    )


def read_variances(workload: Workload, variances: ArrayLike) -> FloatArray:
    """Return the variances as a row with one per query."""
    given = np.asarray(variances, dtype=np.float64)
    if given.ndim == 1 and len(given) == len(workload.groups) != workload.queries:
        given = np.repeat(given, [group.size for group in workload.groups])
    if given.shape not in ((), (workload.queries,)):
        raise ParameterError(
            parameter="variances",
            problem=f"must be one number, {len(workload.groups)} (groups) or {workload.queries} (queries), not {given.shape}",
        )
    if not np.all(np.isfinite(given) & (given > 0)):
        raise ParameterError(
            parameter="variances",
            problem="must be finite and positive",
            advice="To keep an exact answer fixed, use sequential_fit.",
        )
    return np.broadcast_to(given, (workload.queries,))[None, :].copy()


# The result of a fit and its residuals, which are recomputed from the answer and never taken from a solver.


TOLERANCE = 1e-8
CHUNK_DRAWS = 125
CHUNK_CELLS = 400_000
"""Cells of the draws fitted together: few enough for their arrays to stay in the cache."""


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fit:
    """Fitted tables, one per draw; no draw axis for a single draw."""

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
        """Whether both residuals reached the tolerance, per draw."""
        return np.asarray((self.kkt <= self.tolerance) & (self.primal <= self.tolerance))


def fit_draws(measured: Measurements, fit: Callable[[Measurements], Fit]) -> Fit:
    """Fit the draws in chunks, one thread per processor."""
    size = max(1, min(CHUNK_DRAWS, CHUNK_CELLS // measured.workload.cells))
    chunks = [measured.take(slice(start, start + size)) for start in range(0, measured.draws, size)]
    workers = min(len(chunks), os.cpu_count() or 1)
    if workers == 1:
        return join_fits(measured, [fit(chunk) for chunk in chunks])
    with ThreadPoolExecutor(workers) as pool:
        return join_fits(measured, list(pool.map(fit, chunks)))


def join_fits(measured: Measurements, fits: list[Fit]) -> Fit:
    """Return all chunks combined, without the draw axis for one draw.

    Numbers too far apart for the solver are refused, not returned as missing.
    """
    if not all(np.isfinite(fit.x).all() for fit in fits):
        raise SolverError(problem="the fit", status="its weights differ by more than the digits of a number")
    parts: dict[str, Any] = {
        name: np.concatenate([getattr(fit, name) for fit in fits])
        for name in Fit.__slots__
        if isinstance(getattr(fits[0], name), np.ndarray)
    }
    return replace(fits[0], **{name: part[0] if measured.one else part for name, part in parts.items()})


def least_squares_residual(
    measured: Measurements, x: FloatArray, fitted: FloatArray, *, nonnegative: bool
) -> FloatArray:
    """The natural residual of (nonnegative) least squares, per draw."""
    weights = measured.weights
    pulls = weights * (fitted - measured.answers)
    return natural_residual(
        measured.workload, x, pulls, weights, weights * np.abs(measured.answers), nonnegative=nonnegative
    )


def natural_residual(
    workload: Workload, x: FloatArray, pulls: FloatArray, weights: FloatArray, sizes: FloatArray, *, nonnegative: bool
) -> FloatArray:
    """Return the residual of an objective from its derivatives ``pulls``.

    ``pulls[q]`` is the derivative in the answer of query q, of size up to ``sizes[q]``. Cell i has gradient g_i =
    sum_q c_qi pulls_q and curvature h_i = sum_q w_q c_qi^2. The residual is |g_i|, or with a sign constraint
    |min(h_i x_i, g_i)|, divided by the size of the terms that cancel, sqrt(h_i) + sum_q |c_qi| sizes_q (T-KKT).
    """
    gradient = workload.spread(pulls)
    curved = workload.spread_power(weights, 2)
    size = np.sqrt(curved) + workload.spread_power(sizes, 1)
    off = np.minimum(curved * x, gradient) if nonnegative else gradient
    return np.asarray(np.max(np.abs(off) / np.where(size > 0, size, 1.0), axis=1, initial=0.0))


def boxed_residual(problem: BoxedProblem, system: System, x: FloatArray, y: FloatArray) -> FloatArray:
    """Return the boxed problem's natural residual, per draw."""
    scale = np.where(problem.precision > 0, problem.precision, 1.0)
    pulls = system.spread(y)
    gradient = problem.precision * (x - problem.target) - pulls
    cells = np.abs(x - np.clip(x - gradient / scale, problem.low, problem.high))
    size = 1.0 / np.sqrt(scale) + np.abs(problem.target) + system.powers(1).spread(np.abs(y)) / scale
    z = system.sums(x)
    wanted = np.clip(problem.answer - y / problem.weight, problem.floor, problem.ceiling)
    sums = np.abs(z - wanted) / (1.0 + np.abs(wanted) + system.powers(1).sums(np.abs(x)))
    return np.asarray(np.maximum(np.max(cells / size, axis=1, initial=0.0), np.max(sums, axis=1, initial=0.0)))


def negativity(measured: Measurements, x: FloatArray) -> FloatArray:
    """Return how many standard deviations the lowest cell is below zero."""
    curved = measured.workload.spread_power(measured.weights, 2)
    return np.asarray(np.max(np.maximum(-x, 0.0) * np.sqrt(curved), axis=1, initial=0.0))
