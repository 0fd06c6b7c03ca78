r"""How fast an exponent f grows relative to the logarithm: bounds on ``x f'(x)``, derived from the expression.

They determine whether the weights exp(-f) can be summed at all, which moments exist, and how much mass lies beyond a point. The
rules and their proof are T-GROWTH in docs/theory/noise.md; the key is that ``f(exp(y))`` is convex in y for most expressions, so
that ``x f'(x)`` only grows.
"""

import math
from fractions import Fraction
from typing import TypeAlias

from flint import arb

from recordwise.exact.arithmetic import BallArithmetic
from recordwise.exact.functions import Function, Log, Power, Sum, Variable
from recordwise.exact.numbers import ball

Slope: TypeAlias = Fraction | float
"""A limit of x f'(x): a rational, or infinity."""


def log_slope_lower(function: Function, start: arb) -> arb:
    """A ball whose every point is at most ``x f'(x)`` for all x >= start > 0, or is the value at ``start`` itself."""
    match function:
        case Variable():
            return start
        case Sum():
            return sum((ball(weight) * log_slope_lower(part, start) for weight, part in function.terms), arb(0))
        case Power(base, exponent) if exponent >= 1 or log_convex(base):
            value = base.value(BallArithmetic(), start)
            return ball(exponent) * value ** ball(exponent - 1) * log_slope_lower(base, start)
        case Log(argument) if log_convex(argument):
            return log_slope_lower(argument, start) / argument.value(BallArithmetic(), start)
        case _:
            return arb(0)


def log_convex(function: Function) -> bool:
    """Whether ln f(exp(y)) is certified convex in y: sums of powers of x, and powers of such sums."""
    match function:
        case Variable():
            return True
        case Sum():
            return function.shift >= 0 and all(log_convex(part) for _, part in function.terms)
        case Power(base, _):
            return log_convex(base)
        case _:
            return False


def degree(function: Function) -> Fraction:
    """The d for which f(x) is x**d up to powers of logarithms, as x grows."""
    match function:
        case Variable():
            return Fraction(1)
        case Sum():
            return max(degree(part) for _, part in function.terms)
        case Power(base, exponent):
            return exponent * degree(base)
        case _:
            return Fraction(0)


def log_slope_limit(function: Function) -> Slope:
    """A rational not above the limit of ``x f'(x)`` as x goes to infinity, or infinity; exact except for iterated logarithms."""
    if degree(function) > 0:
        return math.inf
    match function:
        case Sum():
            return sum((weight * log_slope_limit(part) for weight, part in function.terms), Fraction(0))
        case Log(argument):
            return degree(argument) if log_convex(argument) else Fraction(0)
        case Power(base, exponent):
            return math.inf if exponent > 1 and log_slope_limit(base) > 0 else Fraction(0)
        case _:
            return Fraction(0)
