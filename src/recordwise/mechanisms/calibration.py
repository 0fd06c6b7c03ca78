"""Calibration of the noise parameter to a goal.

A variance, a loss at a reference record, or a relative error at a total.
"""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from typing import Any, Protocol

from recordwise.errors import ChoiceError, ParameterError
from recordwise.exact.numbers import Number, decimal, nonnegative, positive
from recordwise.mechanisms.base import read_confidence, read_step
from recordwise.noise.laws import DiscreteGaussian

DIGITS = 12
COMPANIONS = {
    "at": ("rho",),
    "at_total": ("variance", "relative_error"),
    "confidence": ("relative_error",),
    "step": ("relative_error",),
}
"""The goals that each companion parameter belongs to."""


class Family(Protocol):
    """A mechanism as a function of its noise parameter."""

    def spread(self, parameter: Fraction, total: Fraction) -> float:
        """The variance at a total; grows with the parameter."""

    def loss(self, parameter: Fraction, contribution: Fraction) -> float:
        """The policy at a contribution; falls with the parameter."""

    def relative_error(self, parameter: Fraction, total: Fraction, confidence: float) -> float:
        """Return the relative error bound with probability ``confidence``.

        It grows with the parameter.
        """


def calibrate(family: Family, *, name: str, own: Number | None, **goals: Number | None) -> Fraction:
    """Return the noise parameter, or calibrate it to one goal.

    The goal is never exceeded.
    """
    goal = only_goal({name: own, **goals})
    if goal == name:
        return positive(own or 0, parameter=name)
    wanted = float(positive(goals[goal] or 0, parameter=goal))
    if goal == "rho":
        record = positive(require_companion(goals, "at", goal), parameter="at")
        return solve(lambda parameter: family.loss(parameter, record), wanted, rising=False)
    if goal == "variance":
        total = nonnegative(goals.get("at_total") or 0, parameter="at_total")
        return solve(lambda parameter: family.spread(parameter, total), wanted, rising=True)
    total, confidence = relative_goal(goals)
    return solve(lambda parameter: family.relative_error(parameter, total, confidence), wanted, rising=True)


def only_goal(given: Mapping[str, Any]) -> str:
    """Return the only goal or parameter that is set.

    Raise if there are none or several, or if a companion does not belong.
    """
    present = {name for name, value in given.items() if value is not None}
    goals = [name for name in given if name not in COMPANIONS]
    chosen = [name for name in goals if name in present]
    if len(chosen) != 1:
        raise ChoiceError(choices=goals, given=chosen)
    for companion in sorted(present & set(COMPANIONS)):
        if chosen[0] not in COMPANIONS[companion]:
            raise ParameterError(
                parameter=companion, problem=f"goes with {' or '.join(COMPANIONS[companion])}, not with {chosen[0]}"
            )
    return chosen[0]


def require_companion(goals: Mapping[str, Any], companion: str, goal: str) -> Number:
    """A companion that a goal requires."""
    value: Number | None = goals.get(companion)
    if value is None:
        raise ParameterError(parameter=companion, problem=f"is required with {goal}")
    return value


def relative_goal(goals: Mapping[str, Any]) -> tuple[Fraction, float]:
    """The total and the confidence at which a relative error is stated."""
    total = positive(require_companion(goals, "at_total", "relative_error"), parameter="at_total")
    confidence = goals.get("confidence")
    return total, 0.95 if confidence is None else read_confidence(confidence)


def gaussian_variance(goals: Mapping[str, Any]) -> Fraction:
    """Return the Gaussian variance that meets a goal except rho."""
    if goals.get("variance") is not None:
        return positive(goals["variance"], parameter="variance")
    total, confidence = relative_goal(goals)
    reach = positive(goals["relative_error"], parameter="relative_error") * total
    step = plain_step(total) if goals.get("step") is None else read_step(goals["step"])
    return (step * lattice_sigma(math.floor(reach / step), confidence)) ** 2


def lattice_sigma(most: int, confidence: float) -> Fraction:
    """Return the largest sigma with P(|Z| <= most) at least ``confidence``.

    In lattice steps.
    """
    return solve(lambda sigma: 2 * float(DiscreteGaussian(sigma).sf_upper(most + 1)), 1 - confidence, rising=True)


def plain_step(value: Fraction) -> Fraction:
    """Return the likely step of a number's measure.

    1, the power of ten that divides it, or the number itself.
    """
    for digits in range(19):
        if (value * 10**digits).denominator == 1:
            return Fraction(1, 10**digits)
    return value


def loss_for(bound: Fraction, rho: Number | None, goals: Mapping[str, Any]) -> Fraction:
    """Return the Gaussian loss of a contribution of ``bound``.

    ``rho`` if set, or bound**2/(2 variance) for a goal.
    """
    if only_goal({"rho": rho, **goals}) == "rho":
        return positive(rho or 0, parameter="rho")
    return bound**2 / (2 * gaussian_variance(goals))


def solve(measured: Callable[[Fraction], float], wanted: float, *, rising: bool) -> Fraction:
    """Return where a monotone function reaches a value.

    To 12 digits, rounded to the safe side: neither the spread nor the loss exceeds the target.
    """
    known = cache(measured)

    def too_large(parameter: Fraction) -> bool:
        return (known(parameter) > wanted) == rising

    low, high = _narrow(known, wanted, too_large, *_bracket(too_large))
    while high / low > 1 + 10.0**-DIGITS:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if too_large(decimal(middle)) else (middle, high)
    return decimal(low) if rising else decimal(high, up=True)


def _narrow(
    measured: Callable[[Fraction], float],
    wanted: float,
    too_large: Callable[[Fraction], bool],
    low: float,
    high: float,
) -> tuple[float, float]:
    """Return a short interval around the answer."""
    from scipy.optimize import brentq

    def gap(exponent: float) -> float:
        return math.log(min(max(measured(decimal(math.exp(exponent))), 1e-300), 1e300) / wanted)

    start, end = math.log(low), math.log(high)
    if gap(start) * gap(end) >= 0:
        return low, high
    near, width = math.exp(brentq(gap, start, end, xtol=1e-13, rtol=1e-14)), 10.0**-DIGITS
    while (close := (near * (1 - width), near * (1 + width))) and width < 0.1:
        if not too_large(decimal(close[0])) and too_large(decimal(close[1])):
            return close
        width *= 16
    return low, high


def _bracket(too_large: Callable[[Fraction], bool]) -> tuple[float, float]:
    """Adjacent powers of 16 between which the answer changes."""
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
