"""The divergence of a signed sum when records of both signs leave together, from the points the two parts are laid on."""

from typing import Any

from recordwise.mechanisms.transformed import nearest_point


def joint_divergence(mechanism: Any, gain: int, cost: int) -> float:
    """D_a/a under Gaussian noise, the same for all orders: (shift)**2/(2 sigma**2), both parts added up, in an empty cell."""
    grid = mechanism.grid()
    zero = nearest_point(mechanism.function, 0 * grid, grid)
    shifts = [(nearest_point(mechanism.function, size + 0 * grid, grid) - zero) * grid for size in (gain, cost)]
    return float(sum(shift**2 for shift in shifts) / (2 * mechanism.sigma**2))
