"""Two more number systems for exponents: complex balls (rigorous integrals, bounds on derivatives) and power series.

Only what an expression of ``recordwise.functions`` asks for is offered, and only to the right of the imaginary axis, where
every such expression is holomorphic.
"""

from fractions import Fraction
from typing import Generic, NoReturn, TypeVar

from flint import acb, arb, arb_series

from recordwise.exact import ball

T = TypeVar("T", acb, arb_series)


class _Ring(Generic[T]):
    """What complex balls and series share: they have no order, so nothing that compares is offered."""

    def add(self, left: T, right: T) -> T:
        return left + right

    def multiply(self, left: T, right: T) -> T:
        return left * right

    def divide(self, left: T, right: T) -> T:
        return left / right

    def _unordered(self, *_: T) -> NoReturn:
        raise TypeError("an exponent uses no operation that compares")

    maximum = tanh = exp_remainder = if_positive = _unordered


class HolomorphicArithmetic(_Ring[acb]):
    """Complex balls; what leaves the right half plane under a root or a logarithm comes out as not finite."""

    def constant(self, value: arb) -> acb:
        return acb(value)

    def power(self, base: acb, exponent: Fraction) -> acb:
        if exponent.denominator == 1:
            return base ** int(exponent)
        return (self._log(base) * ball(exponent)).exp()

    def log1p(self, value: acb) -> acb:
        return self._log(value + 1)

    def power_less_one(self, value: acb, exponent: Fraction) -> acb:
        return self.power(value + 1, exponent) - 1

    def _log(self, value: acb) -> acb:
        return value.log() if value.real > 0 else acb("nan")


class SeriesArithmetic(_Ring[arb_series]):
    """Power series about a point to the length in force (``flint.ctx.cap``)."""

    def constant(self, value: arb) -> arb_series:
        return arb_series([value])

    def power(self, base: arb_series, exponent: Fraction) -> arb_series:
        return base ** int(exponent) if exponent.denominator == 1 else (base.log() * ball(exponent)).exp()

    def log1p(self, value: arb_series) -> arb_series:
        return (value + 1).log()

    def power_less_one(self, value: arb_series, exponent: Fraction) -> arb_series:
        return self.power(value + 1, exponent) - 1
