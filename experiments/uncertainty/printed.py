"""The inequality between C and D that Theorem 3 of [A] prints for pure and approximate privacy, solved for D."""

import math

import numpy as np

from recordwise.postprocess import point_first_errors

STEPS = 20_000


def least_sum_error(*, cells: int, cell_error: float, epsilon: float, delta: float = 0.0) -> float:
    """exp(epsilon (4 C + 2 k)) (delta/epsilon + (4 C + 2 D + k)/(k (d - 1))) >= 1/4 for every k > 0, or 0.

    Beyond k = 1/epsilon the bound falls, because k exp(-2 epsilon k) does from 1/(2 epsilon) on.
    """
    k = np.linspace(0.0, 1 / epsilon, STEPS + 1)[1:]
    share = 0.25 * np.exp(-epsilon * (4 * cell_error + 2 * k)) - delta / epsilon
    return float(max(0.0, np.max((share * k * (cells - 1) - 4 * cell_error - k) / 2)))


def item_1(cells: int, epsilon: float) -> tuple[float, float]:
    """C^2 and D^2 of Theorem 4, item 1, by the library."""
    found = point_first_errors(cells=cells, variance=2 / epsilon**2)
    return found.cell**2, found.sum**2


def answers_alone(epsilon: float) -> float:
    """The variance of Laplace noise that answers the cells and the sum, one record moving two of them by 1."""
    return 2 * (2 / epsilon) ** 2


def tight_constants(cells: int, epsilon: float) -> bool:
    """Whether item 1 has the constants of the text: 2/epsilon^2 and 2 d^2/epsilon^2."""
    cell, total = item_1(cells, epsilon)
    return math.isclose(cell, 2 / epsilon**2) and math.isclose(total, 2 * cells**2 / epsilon**2)
