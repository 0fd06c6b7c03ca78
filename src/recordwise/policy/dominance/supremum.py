"""The largest value of a difference of atoms of one measure over a range of lattice steps that may be unbounded.

The unbounded end is settled by growth: a certified envelope puts an atom between two multiples of x**a * ln(x)**b for all
x >= start (T-ENVELOPE, docs/theory/dominance.md).
"""

import heapq
import time
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from flint import arb

from recordwise.exact.functions import Function, Log, Power, Sum, Variable
from recordwise.exact.numbers import ball
from recordwise.policy.atoms import (
    Atom,
    ClampedSquare,
    One,
    PieceCount,
    Pieces,
    PurePieces,
    SelectionDelta,
    Square,
    from_pure,
)
from recordwise.policy.concave_atoms import (
    Additive,
    AdditiveTable,
    CertifiedSum,
    GaussianTransform,
    LaplaceSum,
    LaplaceTransform,
)
from recordwise.policy.dominance.curves import curve
from recordwise.policy.dominance.regions import Range
from recordwise.policy.evaluate.evaluator import BALLS
from recordwise.policy.measure import Measure

CONSTANT = (Fraction(0), Fraction(0))
SMALLEST_START = arb(16)
"""Envelopes start here: below 1 the logarithm is negative, and ln(ln x)/ln(x) falls only from e**e = 15.2 on."""


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
    """The envelope of a function of the closed language; None if there is no gauge for it (a log of a log)."""
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
        case ClampedSquare(_, to):
            return constant.scaled(ball(to**2), ball(to**2)) if start >= ball(to) else None
        case Pieces(thresholds):
            growth = atom_growth(PieceCount(thresholds), start)
            return growth and growth.raised(Fraction(2))
        case PieceCount(((measure, at),)):
            most = 1 / ball(at) + (1 + ball(measure.step / at)) / start
            return Growth(Fraction(1), Fraction(0), 1 / ball(at), most)
        case PurePieces(((measure, at),) as thresholds, epsilon, rho):
            # From eps/rho pieces on the pure bound is the smaller one.
            few = start / ball(at)
            growth = atom_growth(PieceCount(thresholds), start) if ball(rho) * few >= ball(epsilon) else None
            return growth and growth.scaled(ball(epsilon) * (ball(epsilon) * few / 2).tanh(), ball(epsilon))
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
        case CertifiedSum(measure, function, knots, less):
            growth = _rise(function, start)
            beyond = start > ball(measure.step * knots[-1][0])
            formula = function.increase(BALLS, start) - ball(less) >= ball(knots[-1][1])
            return _less(growth, ball(less), start) if growth is not None and beyond and formula else None
        case LaplaceSum(_, _, scale):
            return _less(Growth(Fraction(1), Fraction(0), 1 / ball(scale), 1 / ball(scale)), arb(1), start)
        case GaussianTransform() | LaplaceTransform():
            return _transform_growth(atom, start)
        case _:
            return None


def _less(growth: Growth, constant: arb, start: arb) -> Growth:
    """The envelope of a function that is below another by at most a constant."""
    return Growth(growth.power, growth.log, growth.lower - constant / growth.gauge(start), growth.upper)


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
    return _less(shift.scaled(scale, scale), arb(1), start)


TAIL_EXPONENTS = (8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)


@dataclass(frozen=True, slots=True)
class Supremum:
    """An upper bound (None: unbounded or unknown) and the best point found."""

    upper: Fraction | None
    steps: int


class Difference:
    """Positive coefficients minus negative ones, all atoms of one measure; bounds at lattice points are exact fractions."""

    def __init__(self, net: dict[Atom, Fraction], measure: Measure) -> None:
        self.gains = {atom: c for atom, c in net.items() if c > 0}
        self.costs = {atom: -c for atom, c in net.items() if c < 0}
        self.measure = measure
        self._more = [(c, curve(measure, atom)) for atom, c in self.gains.items()]
        self._less = [(c, curve(measure, atom)) for atom, c in self.costs.items()]

    def upper(self, first: int, last: int) -> Fraction:
        """Not below the difference at any step from first to last: by the values at both ends, and by straight lines."""
        most = sum((c * each.bounds(last)[1] for c, each in self._more), Fraction(0))
        flat = most - sum((c * each.bounds(first)[0] for c, each in self._less), Fraction(0))
        return flat if first == last else min(flat, self._by_lines(first, last))

    def _by_lines(self, first: int, last: int) -> Fraction:
        above = [(c, each.lines(first, last)) for c, each in self._more]
        below = [(c, each.lines(first, last)) for c, each in self._less]
        start = sum((c * line.high for c, line in above), Fraction(0)) - sum(c * line.low for c, line in below)
        rise = sum((c * line.high_rise for c, line in above), Fraction(0)) - sum(c * line.low_rise for c, line in below)
        return start + max(rise, Fraction(0))

    def lower(self, steps: int) -> Fraction:
        """Not above the difference at this step."""
        least = sum((c * each.bounds(steps)[0] for c, each in self._more), Fraction(0))
        return least - sum((c * each.bounds(steps)[1] for c, each in self._less), Fraction(0))

    def tail_below(self, start: int, level: Fraction) -> bool:
        """Whether the difference is certainly at most ``level`` at every step from ``start`` on."""
        x = ball(self.measure.step * start)
        gains = [(c, atom_growth(atom, x)) for atom, c in self.gains.items()]
        costs = [(c, growth) for atom, c in self.costs.items() if (growth := atom_growth(atom, x)) is not None]
        if not costs or any(growth is None for _, growth in gains):
            return False
        return _tail_below([(c, growth) for c, growth in gains if growth is not None], costs, x, level)


def _tail_below(
    gains: list[tuple[Fraction, Growth]], costs: list[tuple[Fraction, Growth]], x: arb, level: Fraction
) -> bool:
    top = max((growth for _, growth in costs), key=lambda growth: growth.order)
    margin = sum((ball(c) * growth.lower for c, growth in costs if growth.order == top.order), arb(0))
    for c, growth in gains:
        if not falls_from(growth.order, top.order, x):
            return False
        margin -= ball(c) * growth.upper * growth.gauge(x) / top.gauge(x)
    rising = falls_from(CONSTANT, top.order, x)
    return bool(margin > 0) and rising and bool(-margin * top.gauge(x) <= ball(level))


def supremum(
    net: dict[Atom, Fraction], measure: Measure, span: Range, *, enough: Fraction | None, deadline: float
) -> Supremum:
    """Best-first branch and bound; stops early once the bound is at most ``enough`` or a point is above it."""
    difference = Difference(net, measure)
    first, last = span
    if not difference.gains:
        return Supremum(difference.upper(first, first), first)
    best, best_at = max((difference.lower(point), -point) for point in _probes(net, measure, span))
    best_at = -best_at
    bounded = last is not None
    settled = best
    if last is None:
        settled = best if enough is None else max(best, enough)
        last = tail_start(difference, first, settled)
        bounded = last is not None
    if last is None:
        last = max(first, 1) * 2 ** TAIL_EXPONENTS[-1]
    heap = [(-difference.upper(first, last), first, last)]
    while heap and time.thread_time() < deadline:
        bound = -heap[0][0]
        if bound <= max(best, settled) or (enough is not None and (bound <= enough or best > enough)):
            break
        _, left, right = heapq.heappop(heap)
        if left == right:
            settled = max(settled, bound)
            continue
        middle = isqrt(max(left, 1) * right) if right > 4 * max(left, 1) else (left + right) // 2
        for start, end in ((left, middle), (middle + 1, right)):
            for point in (start, end):
                if (value := difference.lower(point)) > best:
                    best, best_at = value, point
            heapq.heappush(heap, (-difference.upper(start, end), start, end))
        if enough is None and -heap[0][0] - best <= abs(best) / 10**9:
            break
    upper = max(settled, best, -heap[0][0]) if heap else max(settled, best)
    return Supremum(upper if bounded else None, best_at)


def _probes(net: dict[Atom, Fraction], measure: Measure, span: Range) -> set[int]:
    """Points at which a difference is likely to be largest: the ends of steps and pieces, and one of each magnitude."""
    edges = {0, *(2**exponent for exponent in range(0, 64, 4))}
    for atom in net:
        match atom:
            case ClampedSquare(_, to):
                edges.add(int(to / measure.step))
            case CertifiedSum(knots=knots):
                edges |= {count for count, _ in knots[:MOST_PROBES]}
            case Pieces(at) | PieceCount(at) | SelectionDelta(at) | PurePieces(at):
                edges |= {int(threshold / measure.step) * times for _, threshold in at for times in (1, 2, 3)}
            case AdditiveTable(steps=steps):
                edges |= {count for count, _ in steps[:MOST_PROBES]}
    first, last = span
    near = {max(first, edge + more) for edge in edges for more in (0, 1)}
    return {first} | {point for point in near if last is None or point <= last}


MOST_PROBES = 100


def tail_start(difference: Difference, first: int, level: Fraction) -> int | None:
    """A step from which on the difference is certainly not above ``level``."""
    for exponent in TAIL_EXPONENTS:
        start: int = max(first, 1) * 2**exponent
        if difference.tail_below(start, level):
            return start
    return None
