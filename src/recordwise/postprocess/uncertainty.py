"""The uncertainty principle of private microdata [A].

Positively weighted data cannot be accurate in every cell and in the sum. C is the worst root mean squared error of a cell, D that
of the sum, d the number of cells. The bounds hold for every mechanism that returns nonnegative weights (T-UNCERTAIN,
docs/theory/uncertainty.md); they are sharper than those of [A]. They bound errors, not privacy losses, and are computed in
floating point.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from recordwise.errors import ParameterError, own_argument_errors, own_errors_of
from recordwise.exact.text import formula_text
from recordwise.postprocess.least_squares import nnls, ols, reweighted_fit
from recordwise.postprocess.maxfit import max_fit
from recordwise.postprocess.measured import Fit
from recordwise.postprocess.sequential import sequential_fit
from recordwise.postprocess.solvers.boxed import FloatArray
from recordwise.postprocess.workload import Workload

LOG_4_3 = math.log(4 / 3)
MOST = 1e150
CLOSE = 1e-12
"""The relative distance at which a bisection stops."""


@own_argument_errors
def sum_error_bound_pure(*, cells: int, cell_error: float, epsilon: float) -> float:
    """Return the least D under epsilon-differential privacy.

    The largest 3/4 k d exp(-epsilon t) over integers t = 2 C + k.

    Args:
        cells: The number of cells.
        cell_error: C, the worst root mean squared error of a cell.
        epsilon: The epsilon of the whole release.

    Returns:
        The least D, the root mean squared error of the sum.
    """
    check(cells, cell_error, epsilon=epsilon)
    return cells * best(lambda k, t: 0.75 * k * math.exp(-epsilon * t), cell_error, 1 / epsilon)


@own_argument_errors
def sum_error_bound_approximate(*, cells: int, cell_error: float, epsilon: float, delta: float) -> float:
    """Return the least D under (epsilon, delta).

    The largest k d (3/4 exp(-epsilon t) - delta/(exp(epsilon) - 1)), or 0.

    Args:
        cells: The number of cells.
        cell_error: C, the worst root mean squared error of a cell.
        epsilon: The epsilon of the whole release.
        delta: The delta.

    Returns:
        The least D, the root mean squared error of the sum.
    """
    check(cells, cell_error, epsilon=epsilon)
    check_real("delta", delta)
    if not 0 <= delta < 1:
        raise ParameterError(parameter="delta", problem=f"must be at least 0 and below 1, not {delta}")
    lost = delta / math.expm1(epsilon)
    found = best(lambda k, t: k * (0.75 * math.exp(-epsilon * t) - lost), cell_error, 1 / epsilon)
    return cells * max(found, 0.0)


@own_argument_errors
def sum_error_bound_zcdp(*, cells: int, cell_error: float, rho: float) -> float:
    """Return the least D under rho-zCDP.

    The largest k d exp(-(sqrt(ln 4/3) + t sqrt(rho))^2), at the best Renyi order. If C^2 is of the order 1/rho,
    D^2 is of the order d^2/rho (T-RATE).

    Args:
        cells: The number of cells.
        cell_error: C, the worst root mean squared error of a cell.
        rho: The zCDP loss.

    Returns:
        The least D, the root mean squared error of the sum.
    """
    check(cells, cell_error, rho=rho)
    reach = 1 / (2 * math.sqrt(rho * LOG_4_3))
    return cells * best(lambda k, t: k * math.exp(-((math.sqrt(LOG_4_3) + t * math.sqrt(rho)) ** 2)), cell_error, reach)


@own_argument_errors
def cell_error_bound_pure(*, cells: int, sum_error: float, epsilon: float) -> float:
    """Return the least C under epsilon-differential privacy.

    No nonnegative table with a sum this good has better cells: the other direction of ``sum_error_bound_pure``.

    Args:
        cells: The number of cells.
        sum_error: D, the root mean squared error of the sum.
        epsilon: The epsilon of the whole release.

    Returns:
        The least C, the worst root mean squared error of a cell.
    """
    return least_cell_error(lambda c: sum_error_bound_pure(cells=cells, cell_error=c, epsilon=epsilon), sum_error)


@own_argument_errors
def cell_error_bound_approximate(*, cells: int, sum_error: float, epsilon: float, delta: float) -> float:
    """Return the least C under (epsilon, delta).

    Args:
        cells: The number of cells.
        sum_error: D, the root mean squared error of the sum.
        epsilon: The epsilon of the whole release.
        delta: The delta.

    Returns:
        The least C, the worst root mean squared error of a cell.
    """

    def bound(cell_error: float) -> float:
        return sum_error_bound_approximate(cells=cells, cell_error=cell_error, epsilon=epsilon, delta=delta)

    return least_cell_error(bound, sum_error)


@own_argument_errors
def cell_error_bound_zcdp(*, cells: int, sum_error: float, rho: float) -> float:
    """Return the least C under rho-zCDP.

    Args:
        cells: The number of cells.
        sum_error: D, the root mean squared error of the sum.
        rho: The zCDP loss.

    Returns:
        The least C, the worst root mean squared error of a cell.
    """
    return least_cell_error(lambda c: sum_error_bound_zcdp(cells=cells, cell_error=c, rho=rho), sum_error)


def least_cell_error(bound: Callable[[float], float], sum_error: float) -> float:
    """Return a C below which D's bound exceeds an error (T-UNCERTAIN).

    The bound falls continuously with C, as the largest of falling lines, so that a bisection keeps its lower end.
    """
    check_real("sum_error", sum_error)
    if not (math.isfinite(sum_error) and sum_error >= 0):
        raise ParameterError(parameter="sum_error", problem=f"must be a nonnegative number, not {sum_error}")
    low, high = 0.0, 1.0
    if bound(low) <= sum_error:
        return 0.0
    while bound(high) > sum_error:
        low, high = high, 2 * high
    while high - low > CLOSE * high:
        middle = (low + high) / 2
        low, high = (middle, high) if bound(middle) > sum_error else (low, middle)
    return low


@own_argument_errors
def sum_error_bound_policy(*, cells: int, cell_error: float, sizes: ArrayLike, losses: ArrayLike) -> float:
    """Return the least D where one record may hold a whole total.

    The largest (t - 2 C) d exp(-(sqrt(ln 4/3) + sqrt(P(t)))^2) over the sizes t of a record: the proof of T-UNCERTAIN
    with the loss P(t) of a record of size t in place of that of t records. The slower a policy grows, the larger.

    Args:
        cells: The number of cells.
        cell_error: C, the worst root mean squared error of a cell.
        sizes: Sizes of a record, in the units of the total.
        losses: The zCDP loss of a record of each size, in all that the table was made of.

    Returns:
        The least D, the root mean squared error of the sum.
    """
    check(cells, cell_error)
    over = np.asarray(sizes, dtype=np.float64) - 2 * cell_error
    root = math.sqrt(LOG_4_3) + np.sqrt(np.asarray(losses, dtype=np.float64))
    return cells * float(np.max(np.maximum(over, 0.0) * np.exp(-(root**2)), initial=0.0))


def best(value: Callable[[float, int], float], cell_error: float, reach: float) -> float:
    """Return the largest value over integers t above 2 C (T-UNCERTAIN)."""
    start = 2 * cell_error
    low = math.floor(start) + 1
    high = max(low, math.ceil(start + reach))
    while high - low > 2:
        middle = (low + high) // 2
        if value(middle - start, middle) < value(middle + 1 - start, middle + 1):
            low = middle + 1
        else:
            high = middle
    return max(value(t - start, t) for t in range(low, high + 1))


def check_real(parameter: str, given: Any) -> None:
    """Refuse what is no number, or one too large to compute with."""
    known = isinstance(given, int | float | np.integer) and not isinstance(given, bool)
    if not known or MOST < abs(given) < math.inf:
        raise ParameterError(parameter=parameter, problem=f"must be a number of at most {MOST:g}")


def check(cells: int, cell_error: float, **positive: float) -> None:
    """Refuse an invalid number of cells, error or privacy parameter."""
    for name, given in {"cells": cells, "cell_error": cell_error, **positive}.items():
        check_real(name, given)
    if not 1 <= cells < math.inf:
        raise ParameterError(parameter="cells", problem=f"must be at least 1, not {cells}")
    if not (math.isfinite(cell_error) and cell_error >= 0):
        raise ParameterError(parameter="cell_error", problem=f"must be a nonnegative number, not {cell_error}")
    for name, given in positive.items():
        if not (math.isfinite(given) and given > 0):
            raise ParameterError(parameter=name, problem=f"must be a positive number, not {given}")


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Upper bounds on the errors of a construction, over all tables."""

    cell: float
    """Worst root mean squared error of a cell."""
    sum: float
    """Root mean squared error of the sum."""


@own_argument_errors
def point_first(cells: ArrayLike) -> FloatArray:
    """Cut every noisy cell at zero.

    Cells are as good as they can be; the sum of an empty table is not.

    Args:
        cells: The noisy cells.

    Returns:
        The cells, cut at zero.
    """
    return np.maximum(np.asarray(cells, dtype=np.float64), 0.0)


@own_argument_errors
def sum_first(total: ArrayLike, cells: ArrayLike, *, total_variance: float, cell_variance: float) -> FloatArray:
    """Cut the noisy total at zero, then fit cells to it.

    The nearest nonnegative cells with that total: Sequential on one table.

    Args:
        total: The noisy total.
        cells: The noisy cells.
        total_variance: The variance of the total.
        cell_variance: The variance of a cell.

    Returns:
        The fitted cells.
    """
    given = np.asarray(cells, dtype=np.float64)
    workload = Workload.marginals((given.shape[-1],), {"sum": (), "cells": (0,)})
    answers = np.concatenate([np.asarray(total, dtype=np.float64)[..., None], given], axis=-1)
    return sequential_fit(workload, answers, [total_variance, cell_variance]).x


@own_argument_errors
def point_first_errors(*, cells: int, variance: float) -> Errors:
    """Return error bounds of ``point_first`` (T-POINT-FIRST).

    Cutting at zero brings a nonnegative count no further off; the sum adds up d errors at worst.

    Args:
        cells: The number of cells.
        variance: The variance of a cell.

    Returns:
        Bounds on C and D.
    """
    check(cells, 0.0, variance=variance)
    return Errors(cell=math.sqrt(variance), sum=cells * math.sqrt(variance))


@own_argument_errors
def sum_first_errors_laplace(*, cells: int, total_scale: float, cell_scale: float) -> Errors:
    """Return error bounds of ``sum_first`` with Laplace noise (T-SUM-FIRST).

    E max|z|^2 = scale^2 (H^2 + H2), harmonic sums over the cells.

    Args:
        cells: The number of cells.
        total_scale: The scale of the noise of the total.
        cell_scale: The scale of the noise of a cell.

    Returns:
        Bounds on C and D.
    """
    check(cells, 0.0, total_scale=total_scale, cell_scale=cell_scale)
    ranks = np.arange(1, cells + 1)
    largest = cell_scale**2 * (np.sum(1 / ranks) ** 2 + np.sum(1 / ranks**2))
    return sum_first_errors(largest=float(largest), total_variance=2 * total_scale**2)


@own_argument_errors
def sum_first_errors_gaussian(*, cells: int, total_variance: float, cell_variance: float) -> Errors:
    """Return error bounds of ``sum_first`` with Gaussian noise (T-SUM-FIRST).

    E max|z|^2 <= 2 variance (ln(2 d) + 1).

    Args:
        cells: The number of cells.
        total_variance: The variance of the total.
        cell_variance: The variance of a cell.

    Returns:
        Bounds on C and D.
    """
    check(cells, 0.0, total_variance=total_variance, cell_variance=cell_variance)
    return sum_first_errors(largest=2 * cell_variance * (math.log(2 * cells) + 1), total_variance=total_variance)


@own_argument_errors
def bounded_reach(*, epsilon: float, delta: float) -> float:
    """Return the cutoff of bounded Laplace noise (T-BOUNDED).

    Noise of scale 1/epsilon cut off there on both sides is (epsilon, delta) for a record.

    Args:
        epsilon: The epsilon of the whole release.
        delta: The delta.

    Returns:
        The largest noise on either side.
    """
    check(1, 0.0, epsilon=epsilon)
    check_real("delta", delta)
    if not 0 < delta <= 0.5:
        raise ParameterError(parameter="delta", problem=f"must be above 0 and at most 1/2, not {delta}")
    return math.log1p(math.expm1(epsilon) / (2 * delta)) / epsilon


@own_argument_errors
def bounded_laplace(uniforms: ArrayLike, *, epsilon: float, delta: float) -> FloatArray:
    """Return Laplace noise cut off at its reach, from uniform numbers.

    For studies, not for a release: it is not exact.

    Args:
        uniforms: Independent uniform numbers in (0, 1).
        epsilon: The epsilon of the whole release.
        delta: The delta.

    Returns:
        The noise, one number for each uniform.
    """
    kept = -math.expm1(-epsilon * bounded_reach(epsilon=epsilon, delta=delta))
    centered = 2 * np.asarray(uniforms, dtype=np.float64) - 1
    return np.asarray(-np.sign(centered) * np.log1p(-np.abs(centered) * kept) / epsilon)


@own_argument_errors
def sum_first_errors_bounded(*, total_epsilon: float, cell_epsilon: float, delta: float) -> Errors:
    """Return error bounds of ``sum_first`` with bounded noise (T-BOUNDED).

    Each part has half of delta; no error grows with the number of cells.

    Args:
        total_epsilon: The epsilon of the total.
        cell_epsilon: The epsilon of the cells.
        delta: The delta of both together.

    Returns:
        Bounds on C and D.
    """
    reach = bounded_reach(epsilon=cell_epsilon, delta=delta / 2)
    variance = bounded_variance(epsilon=total_epsilon, delta=delta / 2)
    return Errors(cell=2 * reach + math.sqrt(variance), sum=math.sqrt(variance))


@own_argument_errors
def bounded_variance(*, epsilon: float, delta: float) -> float:
    """Return the variance of bounded Laplace noise.

    Args:
        epsilon: The epsilon of the whole release.
        delta: The delta.

    Returns:
        The variance.
    """
    reach = bounded_reach(epsilon=epsilon, delta=delta)
    return 2 / epsilon**2 - (reach**2 + 2 * reach / epsilon) / math.expm1(epsilon * reach)


def sum_first_errors(*, largest: float, total_variance: float) -> Errors:
    """Return error bounds of ``sum_first`` for any table (T-SUM-FIRST).

    A cell is off by at most twice the largest cell noise plus the noise of the total.
    """
    return Errors(cell=2 * math.sqrt(largest) + math.sqrt(total_variance), sum=math.sqrt(total_variance))


@own_argument_errors
def hard_table(*, cells: int, epsilon: float) -> FloatArray:
    """Return a table with one cell of ln(d)/epsilon, the rest empty.

    No nonnegative answer hides the noise of the empty cells.

    Args:
        cells: The number of cells.
        epsilon: The epsilon of the whole release.

    Returns:
        The cells.
    """
    check(cells, 0.0, epsilon=epsilon)
    table = np.zeros(cells)
    table[0] = math.ceil(math.log(cells) / epsilon)
    return table


@own_argument_errors
def easy_table(*, cells: int, epsilon: float) -> FloatArray:
    """Return a table with every cell ten times the largest expected noise.

    The sign constraint never binds, and least squares is unbiased.

    Args:
        cells: The number of cells.
        epsilon: The epsilon of the whole release.

    Returns:
        The cells.
    """
    check(cells, 0.0, epsilon=epsilon)
    return np.full(cells, float(math.ceil(10 * (1 + math.log(cells)) / epsilon)))


METHODS: dict[str, Callable[..., Fit]] = {
    "OLS": ols,
    "NNLS": nnls,
    "MaxFit": max_fit,
    "Sequential": sequential_fit,
    "ReWeighted": reweighted_fit,
}


class LaplaceSource(Protocol):
    """A source of a study's noise, not for a release."""

    def laplace(self, *, scale: float, size: tuple[int, int]) -> FloatArray: ...


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True)
class Tradeoff:
    """The root mean squared errors of a method on a table."""

    method: str
    table: str
    cell: float
    """For the worst cell."""
    sum: float


@own_argument_errors
def tradeoffs(*, cells: int, epsilon: float, draws: int, rng: LaplaceSource) -> list[Tradeoff]:
    """Return every method's errors on a hard and an easy table.

    Sum and cells are measured with half of epsilon each.

    Args:
        cells: The number of cells.
        epsilon: The epsilon of the whole release.
        draws: How many noisy tables each method gets.
        rng: A generator of numpy.

    Returns:
        The errors of each method, by table.
    """
    workload = Workload.marginals((cells,), {"sum": (), "cells": (0,)})
    scale, made = 2 / epsilon, []
    tables = {"hard": hard_table(cells=cells, epsilon=epsilon), "easy": easy_table(cells=cells, epsilon=epsilon)}
    for name, table in tables.items():
        exact = workload.answer(table)
        answers = exact + rng.laplace(scale=scale, size=(draws, workload.queries))
        for method, solve in METHODS.items():
            squared = np.mean((solve(workload, answers, 2 * scale**2).fitted - exact) ** 2, axis=0)
            worst, total = float(np.sqrt(squared[1:].max())), float(np.sqrt(squared[0]))
            made.append(Tradeoff(method=method, table=name, cell=worst, sum=total))
    return made


@own_argument_errors
def plot_tradeoffs(points: list[Tradeoff], *, cells: int, epsilon: float) -> Any:
    """Plot the errors of each method and the lower bound.

    No method with nonnegative cells lies below the curve on every table.

    Args:
        points: The errors of each method, from ``tradeoffs``.
        cells: The number of cells.
        epsilon: The epsilon of the whole release.

    Returns:
        A matplotlib figure.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for axis, table in zip(axes, ("hard", "easy")):
        for point in (point for point in points if point.table == table):
            axis.plot(point.cell, point.sum, "o", label=point.method)
        reach = np.linspace(0, max(point.cell for point in points) * 1.1, 200)
        bound = [sum_error_bound_pure(cells=cells, cell_error=float(error), epsilon=epsilon) for error in reach]
        axis.plot(reach, bound, "k--", linewidth=1, label="least possible over all tables")
        axis.set(
            title=f"{table} table, {cells} cells, epsilon {formula_text(epsilon)}",
            xlabel="worst cell, root mean squared error",
        )
    axes[0].set(ylabel="sum, root mean squared error", yscale="log")
    axes[1].legend(fontsize="small")
    return figure
