"""How fast an atom grows, as a certified envelope: for all x >= start it lies between two multiples of x**a * ln(x)**b.

With it a budget is compared with a policy at values without bound (T-ENVELOPE, docs/theory/dominance.md).
"""

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from recordwise.exact import ball
from recordwise.functions import Function, Log, Power, Sum, Variable
from recordwise.policy.atoms import Atom, One, Pieces, SelectionDelta, Square
from recordwise.policy.concave_atoms import Additive, AdditiveTable, GaussianTransform, LaplaceTransform, from_pure
from recordwise.policy.evaluators import BallEvaluator

BALLS = BallEvaluator()
CONSTANT = (Fraction(0), Fraction(0))
SMALLEST_START = arb(16)
"""Envelopes are made from here on: below 1 the logarithm is negative, and ln(ln x)/ln(x) falls only from e**e = 15.2 on."""


@dataclass(frozen=True, slots=True)
class Growth:
    """lower * x**power * ln(x)**log <= atom(x) <= upper * the same, for every x at least the start it was made for."""

    power: Fraction
    log: Fraction
    lower: arb
    upper: arb

    @property
    def order(self) -> tuple[Fraction, Fraction]:
        return (self.power, self.log)

    def gauge(self, x: arb) -> arb:
        """x**power * ln(x)**log."""
        return x ** ball(self.power) * x.log() ** ball(self.log)

    def raised(self, exponent: Fraction) -> "Growth":
        power = ball(exponent)
        return Growth(self.power * exponent, self.log * exponent, self.lower**power, self.upper**power)

    def scaled(self, lower: arb, upper: arb) -> "Growth":
        return Growth(self.power, self.log, self.lower * lower, self.upper * upper)


def falls_from(slow: tuple[Fraction, Fraction], fast: tuple[Fraction, Fraction], start: arb) -> bool:
    """Whether gauge(slow)/gauge(fast) is nonincreasing from ``start`` on."""
    if slow == fast:
        return True
    if slow[0] == fast[0]:
        return slow[1] < fast[1]
    if slow[0] > fast[0]:
        return False
    return bool(start.log() >= ball((slow[1] - fast[1]) / (fast[0] - slow[0])))


def total(parts: list[Growth], shift: arb, start: arb) -> Growth | None:
    """The envelope of a sum plus a constant that is not negative, gauged by the fastest part."""
    top = max(parts, key=lambda part: part.order)
    lower, upper = arb(0), shift / top.gauge(start)
    if not falls_from(CONSTANT, top.order, start):
        return None
    for part in parts:
        if not falls_from(part.order, top.order, start):
            return None
        share = part.gauge(start) / top.gauge(start)
        upper += part.upper * share
        # A slower part may vanish beside the fastest one, but where it is negative (a logarithm below 1) it counts.
        lower += part.lower if part.order == top.order else part.lower.min(arb(0)) * share
    return Growth(top.power, top.log, lower, upper)


def function_growth(function: Function, start: arb) -> Growth | None:
    """The envelope of a function of the closed language; None where the language has no gauge (a log of a log)."""
    match function:
        case Variable():
            return Growth(Fraction(1), Fraction(0), arb(1), arb(1))
        case Sum(terms, shift):
            parts = [function_growth(part, start) for _, part in terms]
            known = [
                part.scaled(ball(weight), ball(weight)) for (weight, _), part in zip(terms, parts) if part is not None
            ]
            return total(known, ball(shift), start) if len(known) == len(parts) else None
        case Power(base, exponent):
            inner = function_growth(base, start)
            return inner and inner.raised(exponent)
        case Log(argument):
            return _log_growth(function_growth(argument, start), start)
        case _:
            return None


def _log_growth(inner: Growth | None, start: arb) -> Growth | None:
    """ln(c x**a ln(x)**b) = a ln x + b ln ln x + ln c; ln ln x / ln x falls from e**e on."""
    if inner is None or inner.power == 0 or inner.log < 0 or not start > SMALLEST_START or not inner.lower > 0:
        return None
    logarithm = start.log()
    loglog = ball(inner.log) * logarithm.log() / logarithm
    low, high = inner.lower.log() / logarithm, inner.upper.log() / logarithm
    zero = arb(0)
    return Growth(
        Fraction(0), Fraction(1), ball(inner.power) + low.min(zero), ball(inner.power) + loglog + high.max(zero)
    )


def _rise(function: Function, start: arb) -> Growth | None:
    """The envelope of f(x) - f(0), f(0) being of either sign."""
    growth = function_growth(function, start)
    if growth is None or not falls_from(CONSTANT, growth.order, start):
        return None
    share = function.at_zero() / growth.gauge(start)
    lower, upper = growth.lower - share.max(arb(0)), growth.upper - share.min(arb(0))
    return Growth(growth.power, growth.log, lower, upper)


def atom_growth(atom: Atom, start: arb) -> Growth | None:
    """The envelope of an atom of at most one measure, from ``start`` (in the measure's units) on; None where none is known."""
    constant = Growth(Fraction(0), Fraction(0), arb(1), arb(1))
    if not start > SMALLEST_START:
        return None
    match atom:
        case One():
            return constant
        case Square():
            return Growth(Fraction(2), Fraction(0), arb(1), arb(1))
        case Pieces(((measure, at),)):
            most = 1 / ball(at) + (1 + ball(measure.step / at)) / start
            return Growth(Fraction(1), Fraction(0), 1 / ball(at), most).raised(Fraction(2))
        case SelectionDelta(((measure, at),), steps):
            return constant if start > ball(at * (steps[-1][0] + 1)) else None
        case Additive(measure, function, bound):
            growth = _rise(function, start)
            return growth if growth is None or bound == "pure" else _from_pure(growth, function, start)
        case AdditiveTable(measure, function, steps):
            growth = _rise(function, start)
            beyond = start > ball(measure.step * (steps[-1][0] + 1))
            formula = from_pure(BALLS, function.increase(BALLS, start)) >= ball(steps[-1][1])
            return _from_pure(growth, function, start) if growth is not None and beyond and formula else None
        case GaussianTransform() | LaplaceTransform():
            return _transform_growth(atom, start)
        case _:
            return None


def _from_pure(growth: Growth, function: Function, start: arb) -> Growth:
    epsilon = function.increase(BALLS, start)
    return growth.scaled((epsilon / 2).tanh(), arb(1))


def _transform_growth(atom: GaussianTransform | LaplaceTransform, start: arb) -> Growth | None:
    rise = _rise(atom.function, start)
    shift = rise and total([rise], ball(atom.grid), start)
    if shift is None or not shift.lower > 0:
        return None
    if isinstance(atom, GaussianTransform):
        return shift.raised(Fraction(2))
    scale = 1 / ball(atom.scale)
    epsilon = shift.scaled(scale, scale)
    return Growth(epsilon.power, epsilon.log, epsilon.lower - 1 / epsilon.gauge(start), epsilon.upper)
