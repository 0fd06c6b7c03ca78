"""The families a recommendation chooses from, and the offset that suits a transform best."""

import math
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

from scipy.optimize import minimize_scalar

from recordwise.exact.numbers import Number
from recordwise.mechanisms.registry import planning_families

SHORT = Context(prec=2)
OFFSETS = 14
"""Offsets tried for one transform and one table."""


def families(*, offset: Number = 100) -> dict[str, Any]:
    """One mechanism of each family, its noise still to be set.

    Args:
        offset: The offset of the transforms, in the measure's units.

    Returns:
        The families by name, those of installed packages among them.
    """
    return planning_families(offset=offset)


def best_offset(cost: Callable[[Fraction], float], *, total: float, step: Number) -> Fraction:
    """The offset of two digits, between a step and ten times a total, at which a cost is least (Brent, on logarithms)."""
    low, high = math.log(float(Fraction(step))), math.log(max(10 * total, 10 * float(Fraction(step))))
    found = minimize_scalar(
        lambda log: cost(two_digits(math.exp(log))), bounds=(low, high), method="bounded", options={"maxiter": OFFSETS}
    )
    return two_digits(math.exp(float(found.x)))


def two_digits(value: float) -> Fraction:
    return Fraction(SHORT.create_decimal(Decimal(value)))
