"""Finding the noise parameter that meets a goal: a variance, a loss at a reference record, or a relative error at a total."""

import math
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from typing import Protocol

from recordwise.errors import ParameterError
from recordwise.exact import Number, positive

DIGITS = 12


class Family(Protocol):
    """How a mechanism behaves as a function of its noise parameter, everything else held fixed."""

    def spread(self, parameter: Fraction, total: Fraction) -> float:
        """The variance at a total; grows with the parameter."""

    def loss(self, parameter: Fraction, contribution: Fraction) -> float:
        """The policy at a contribution; falls with the parameter."""

    def relative_error(self, parameter: Fraction, total: Fraction, level: float) -> float:
        """What the relative error at a total stays below with probability ``level``; grows with the parameter."""


def calibrate(
    family: Family,
    *,
    own: Number | None,
    name: str,
    variance: Number | None = None,
    at_total: Number | None = None,
    rho: Number | None = None,
    at: Number | None = None,
    relative_error: Number | None = None,
    level: float = 0.95,
    total_matters: bool = False,
) -> Fraction:
    """The noise parameter: given itself, or the one that meets exactly one goal without exceeding it."""
    goals = {name: own, "variance": variance, "rho": rho, "relative_error": relative_error}
    given = [goal for goal, value in goals.items() if value is not None]
    if len(given) != 1:
        raise ParameterError(parameter=" or ".join(goals), problem=f"must be given once, not {len(given)} times")
    if own is not None:
        return positive(own, parameter=name)
    if rho is not None:
        wanted, record = positive(rho, parameter="rho"), _needed(at, "at", "rho")
        return solve(lambda parameter: family.loss(parameter, record), float(wanted), rising=False)
    total = _needed(at_total, "at_total", given[0]) if total_matters or relative_error is not None else Fraction(0)
    if variance is not None:
        return solve(
            lambda parameter: family.spread(parameter, total),
            float(positive(variance, parameter="variance")),
            rising=True,
        )
    goal = float(positive(relative_error or 0, parameter="relative_error"))
    return solve(lambda parameter: family.relative_error(parameter, total, level), goal, rising=True)


def _needed(value: Number | None, name: str, goal: str) -> Fraction:
    if value is None:
        raise ParameterError(parameter=name, problem=f"is needed with {goal}")
    return positive(value, parameter=name)


def solve(measured: Callable[[Fraction], float], wanted: float, *, rising: bool) -> Fraction:
    """Where a monotone function reaches a value, to 12 digits, on the side that keeps the promise: a spread not above the wanted
    one, a loss not above the wanted one."""
    low, high = _bracket(lambda parameter: (measured(parameter) > wanted) == rising)
    while high / low > 1 + 10.0**-DIGITS:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if (measured(decimal(middle)) > wanted) == rising else (middle, high)
    return decimal(low) if rising else decimal(high, up=True)


def _bracket(too_large: Callable[[Fraction], bool]) -> tuple[float, float]:
    """Neighbouring powers of 16 between which the answer changes."""
    high = 1.0
    while not too_large(decimal(high)):
        high *= 16
        if high > 1e30:
            raise ParameterError(
                parameter="calibration", problem="has no solution: no amount of noise reaches the goal"
            )
    low = high / 16
    while too_large(decimal(low)):
        low, high = low / 16, low
        if low < 1e-30:
            raise ParameterError(
                parameter="calibration", problem="has no solution: even the least noise misses the goal"
            )
    return low, high


def decimal(value: float, *, up: bool = False) -> Fraction:
    """A short decimal near a float: below it, or with ``up`` above it."""
    rounding = "ROUND_CEILING" if up else "ROUND_FLOOR"
    return Fraction(Context(prec=DIGITS + 2, rounding=rounding).create_decimal(Decimal(value)))
