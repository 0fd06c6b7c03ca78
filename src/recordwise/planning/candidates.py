"""The families that a recommendation chooses from, and the best offset of a transform."""

import math
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache
from typing import Any

from scipy.optimize import minimize_scalar

from recordwise.exact.numbers import Number
from recordwise.mechanisms.registry import planning_families

SHORT = Context(prec=2)
OFFSETS = 14
"""The most offsets that are tried for one transform and one table."""
CLOSE = 0.02
"""Offsets have two digits: their logarithm need not be known any closer."""


def families(*, offset: Number = 100) -> dict[str, Any]:
    """One mechanism of each family, before its noise is set.

    Args:
        offset: The offset of the transforms, in the measure's units.

    Returns:
        The families by name, those of installed packages among them.
    """
    return planning_families(offset=offset)


def best_offset(cost: Callable[[Fraction], float], *, total: float, step: Number) -> Fraction:
    """The two-digit offset, between a step and ten times a total, at which a cost is smallest (Brent, on logarithms)."""
    low, high = math.log(float(Fraction(step))), math.log(max(10 * total, 10 * float(Fraction(step))))
    known = cache(cost)
    found = minimize_scalar(
        lambda log: known(two_digits(math.exp(log))),
        bounds=(low, high),
        method="bounded",
        options={"maxiter": OFFSETS, "xatol": CLOSE},
    )
    return two_digits(math.exp(float(found.x)))


def two_digits(value: float) -> Fraction:
    return Fraction(SHORT.create_decimal(Decimal(value)))
