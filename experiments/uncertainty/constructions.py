"""The constructions at one privacy setting: what they draw, and what is promised of them."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from recordwise.postprocess import (
    Errors,
    bounded_laplace,
    point_first,
    point_first_errors,
    sum_error_bound_approximate,
    sum_error_bound_pure,
    sum_error_bound_zcdp,
    sum_first,
    sum_first_errors_bounded,
    sum_first_errors_gaussian,
    sum_first_errors_laplace,
)

EPSILON = 1.0
RHO = 0.5
"""Of the Gaussian versions: epsilon^2/2."""
DELTA = 1e-6
Fit = Callable[[np.ndarray, int, np.random.Generator], np.ndarray]


@dataclass(frozen=True, slots=True, kw_only=True)
class Construction:
    """A way to a nonnegative table; privacy is the same for all, the sum and the cells share it where both are measured."""

    name: str
    noise: str
    fit: Fit
    """Fitted tables of some draws."""
    promised: Callable[[int], Errors]
    """The upper bounds, by the number of cells."""
    least_sum_error: Callable[[int, float], float]
    """The lower bound on D, by the number of cells and by C."""


def noisy_point(sampler: Callable[..., np.ndarray]) -> Fit:
    return lambda table, draws, rng: point_first(table + sampler(rng, (draws, len(table))))


def noisy_sum(total: Callable[..., np.ndarray], cells: Callable[..., np.ndarray]) -> Fit:
    def fit(table: np.ndarray, draws: int, rng: np.random.Generator) -> np.ndarray:
        noisy_total = table.sum() + total(rng, (draws,))
        noisy_cells = table + cells(rng, (draws, len(table)))
        return sum_first(noisy_total, noisy_cells, total_variance=1.0, cell_variance=1.0)

    return fit


def laplace(scale: float) -> Callable[..., np.ndarray]:
    return lambda rng, size: rng.laplace(scale=scale, size=size)


def gaussian(variance: float) -> Callable[..., np.ndarray]:
    return lambda rng, size: rng.normal(scale=math.sqrt(variance), size=size)


def bounded(epsilon: float, delta: float) -> Callable[..., np.ndarray]:
    return lambda rng, size: bounded_laplace(rng.random(size), epsilon=epsilon, delta=delta)


def constructions() -> tuple[Construction, ...]:
    half = EPSILON / 2

    def pure(cells: int, error: float) -> float:
        return sum_error_bound_pure(cells=cells, cell_error=error, epsilon=EPSILON)

    def concentrated(cells: int, error: float) -> float:
        return sum_error_bound_zcdp(cells=cells, cell_error=error, rho=RHO)

    def approximate(cells: int, error: float) -> float:
        return sum_error_bound_approximate(cells=cells, cell_error=error, epsilon=EPSILON, delta=DELTA)

    return (
        Construction(
            name="point first",
            noise="laplace",
            fit=noisy_point(laplace(1 / EPSILON)),
            promised=lambda cells: point_first_errors(cells=cells, variance=2 / EPSILON**2),
            least_sum_error=pure,
        ),
        Construction(
            name="sum first",
            noise="laplace",
            fit=noisy_sum(laplace(1 / half), laplace(1 / half)),
            promised=lambda cells: sum_first_errors_laplace(cells=cells, total_scale=1 / half, cell_scale=1 / half),
            least_sum_error=pure,
        ),
        Construction(
            name="sum first, bounded noise",
            noise="laplace",
            fit=noisy_sum(bounded(half, DELTA / 2), bounded(half, DELTA / 2)),
            promised=lambda _: sum_first_errors_bounded(total_epsilon=half, cell_epsilon=half, delta=DELTA),
            least_sum_error=approximate,
        ),
        Construction(
            name="point first",
            noise="gaussian",
            fit=noisy_point(gaussian(1 / (2 * RHO))),
            promised=lambda cells: point_first_errors(cells=cells, variance=1 / (2 * RHO)),
            least_sum_error=concentrated,
        ),
        Construction(
            name="sum first",
            noise="gaussian",
            fit=noisy_sum(gaussian(1 / RHO), gaussian(1 / RHO)),
            promised=lambda cells: sum_first_errors_gaussian(
                cells=cells, total_variance=1 / RHO, cell_variance=1 / RHO
            ),
            least_sum_error=concentrated,
        ),
    )


def least_cell_error(each: Construction, cells: int, sum_error: float) -> float:
    """The least C at which the lower bound allows a D: by bisection, the bound falls as C grows."""
    low, high = 0.0, 1.0
    if each.least_sum_error(cells, low) <= sum_error:
        return 0.0
    while each.least_sum_error(cells, high) > sum_error:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if each.least_sum_error(cells, middle) > sum_error else (low, middle)
    return low
