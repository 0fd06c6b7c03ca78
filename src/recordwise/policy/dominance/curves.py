"""One comparison of parts: values, lines above and below, largest difference."""

import heapq
import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import isqrt, prod
from typing import Any, NamedTuple, cast

from flint import arb

from recordwise.exact.functions import Function, Log, Power, Sum, Variable
from recordwise.exact.numbers import ball, float_lower, float_upper, midpoint
from recordwise.policy.atoms import (
    Additive,
    AdditiveTable,
    Atom,
    CertifiedSum,
    ClampedSquare,
    GaussianTransform,
    LaplaceSum,
    LaplaceTransform,
    One,
    PieceCount,
    Pieces,
    PurePieces,
    PureTransform,
    SelectionDelta,
    Square,
    from_pure,
)
from recordwise.policy.columns import Measure
from recordwise.policy.dominance.regions import Range, Region
from recordwise.policy.evaluate.evaluator import BALLS

# Parts at lattice points and over intervals: exact values, and straight lines above and below (T-SLOPES).


MOST_KNOWN = 20_000
STAIRS: dict[type[Atom], int] = {Pieces: 2, PieceCount: 1}
"""Atoms that are a power of the number of pieces, with the power (1 or 2)."""


def outward(value: Fraction) -> tuple[float, float]:
    """The floats next to a fraction, not above and not below it."""
    try:
        near = value.numerator / value.denominator
    except OverflowError:
        return float_lower(value), float_upper(value)
    top, bottom = near.as_integer_ratio()
    difference = top * value.denominator - value.numerator * bottom
    return (
        near if difference <= 0 else math.nextafter(near, -math.inf),
        near if difference >= 0 else math.nextafter(near, math.inf),
    )


def weighted(terms: Iterable[tuple[Fraction, Fraction]]) -> Fraction:
    """The exact sum of products, reduced once at its end."""
    top, bottom = 0, 1
    for weight, value in terms:
        part, over = weight.numerator * value.numerator, weight.denominator * value.denominator
        if over == bottom:
            top += part
        else:
            top, bottom = top * over + part * bottom, bottom * over
    return Fraction(top, bottom)


class Lines(NamedTuple):
    """Lines that enclose a part between two points.

    For 0 <= t <= 1 the part at first + t * (last - first) lies between low + t * low_rise and high + t *
    high_rise.
    """

    low: Fraction
    low_rise: Fraction
    high: Fraction
    high_rise: Fraction


class Curve:
    """A nondecreasing function of the lattice steps of one measure."""

    def __init__(self, measure: Measure, atom: Atom) -> None:
        self.measure, self.atom = measure, atom
        self._known: dict[int, tuple[Fraction, Fraction]] = {}

    def bounds(self, steps: int) -> tuple[Fraction, Fraction]:
        """Return fractions that enclose the part, equal where it is rational."""
        found = self._known.get(steps)
        if found is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            found = self._known[steps] = self._compute(steps)
        return found

    def _compute(self, steps: int) -> tuple[Fraction, Fraction]:
        record = {self.measure.name: self.measure.step * steps}
        exact = self.atom.exactly(record)
        if exact is not None:
            return exact, exact
        value = self.atom.value(BALLS, {self.measure.name: ball(record[self.measure.name])})
        return max(Fraction(0), midpoint(value.lower())), midpoint(value.upper())

    def lines(self, first: int, last: int) -> Lines:
        """What holds for every nondecreasing part: its values at the two ends."""
        return Lines(self.bounds(first)[0], Fraction(0), self.bounds(last)[1], Fraction(0))


class SquareCurve(Curve):
    """The square of a measure.

    Bounded by a chord above and a tangent at the middle below.
    """

    def __init__(self, measure: Measure, atom: Atom) -> None:
        super().__init__(measure, atom)
        self.factor = measure.step**2

    def _compute(self, steps: int) -> tuple[Fraction, Fraction]:
        value = self.factor * steps**2
        return value, value

    def lines(self, first: int, last: int) -> Lines:
        return square_lines(first, last, self.factor)


class StairCurve(Curve):
    """A power of the number of pieces.

    It lies between those of x/T and (x + T - 1)/T, x in steps and at least 1.
    """

    def __init__(self, measure: Measure, atom: Atom) -> None:
        super().__init__(measure, atom)
        ((_, at),) = getattr(atom, "at")  # noqa: B009
        self.length, self.power = int(at / measure.step), STAIRS[type(atom)]

    def _compute(self, steps: int) -> tuple[Fraction, Fraction]:
        value = Fraction(max(1, -(-steps // self.length)) ** self.power)
        return value, value

    def lines(self, first: int, last: int) -> Lines:
        if first < 1 or last - first < 2 * self.length:
            return super().lines(first, last)
        more, length = self.length - 1, self.length
        if self.power == 1:
            rise = Fraction(last - first, length)
            return Lines(Fraction(first, length), rise, Fraction(first + more, length), rise)
        below = square_lines(first, last, Fraction(1, length**2))
        above = square_lines(first + more, last + more, Fraction(1, length**2))
        return Lines(below.low, below.low_rise, above.high, above.high_rise)


class ConcaveCurve(Curve):
    """A concave rise.

    Bounded by a chord below and an earlier interval's chord above.
    """

    def lines(self, first: int, last: int) -> Lines:
        if first in (0, last):
            return super().lines(first, last)
        before = max(0, 2 * first - last)
        low, high = self.bounds(first)
        rise = (high - self.bounds(before)[0]) * Fraction(last - first, first - before)
        return Lines(low, self.bounds(last)[0] - low, high, rise)


def square_lines(first: int, last: int, factor: Fraction) -> Lines:
    """factor * x**2 between its tangent at the middle and its chord."""
    width = last - first
    top, bottom = factor.numerator, factor.denominator
    rise = Fraction(top * (first + last) * width, bottom)
    low = Fraction(top * (4 * first**2 - width**2), 4 * bottom)
    return Lines(low, rise, Fraction(top * first**2, bottom), rise)


@lru_cache(maxsize=512)
def curve(measure: Measure, atom: Atom) -> Curve:
    """The curve of a part."""
    if isinstance(atom, Square):
        return SquareCurve(measure, atom)
    if type(atom) in STAIRS:
        return StairCurve(measure, atom)
    if isinstance(atom, Additive) and atom.bound == "pure":
        return ConcaveCurve(measure, atom)
    return Curve(measure, atom)


# The largest value of a difference of atoms of one measure over a range of lattice steps that may be unbounded. The
# unbounded end is settled by growth: a certified envelope puts an atom between two multiples of x**a * ln(x)**b for
# all x >= start (T-ENVELOPE, docs/theory/dominance.md).


ONE = Fraction(1)
CONSTANT = (Fraction(0), Fraction(0))
SMALLEST_START = arb(16)
"""Envelopes start here: below 1 the logarithm is negative, and ln(ln x)/ln(x) falls only from e**e = 15.2 on."""


@dataclass(frozen=True, slots=True)
class Growth:
    """An envelope of a function for all arguments from a start.

    lower * x**power * ln(x)**log <= atom(x) <= upper * the same.
    """

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

    def to_power(self, exponent: Fraction) -> "Growth":
        power = ball(exponent)
        return Growth(self.power * exponent, self.log * exponent, self.lower**power, self.upper**power)

    def scale_by(self, lower: arb, upper: arb) -> "Growth":
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
    """Return the envelope of a sum in its fastest part's gauge."""
    top = max(parts, key=lambda part: part.order)
    lower, upper = arb(0), shift / top.gauge(start)
    if not falls_from(CONSTANT, top.order, start):
        return None
    for part in parts:
        if not falls_from(part.order, top.order, start):
            return None
        share = part.gauge(start) / top.gauge(start)
        upper += part.upper * share
        # A slower part may vanish next to the fastest one, but where it is negative (a logarithm below 1) it counts.
        lower += part.lower if part.order == top.order else part.lower.min(arb(0)) * share
    return Growth(top.power, top.log, lower, upper)


def function_growth(function: Function, start: arb) -> Growth | None:
    """Return the envelope of a function, or None without a gauge.

    A log of a log has no gauge.
    """
    match function:
        case Variable():
            return Growth(Fraction(1), Fraction(0), arb(1), arb(1))
        case Sum(terms, shift):
            parts = [function_growth(part, start) for _, part in terms]
            known = [
                part.scale_by(ball(weight), ball(weight)) for (weight, _), part in zip(terms, parts) if part is not None
            ]
            return total(known, ball(shift), start) if len(known) == len(parts) else None
        case Power(base, exponent):
            inner = function_growth(base, start)
            return inner and inner.to_power(exponent)
        case Log(argument):
            return _log_growth(function_growth(argument, start), start)
        case _:
            return None


def _log_growth(inner: Growth | None, start: arb) -> Growth | None:
    """Return the envelope of the logarithm of a growing function.

    ln(c x**a ln(x)**b) = a ln x + b ln ln x + ln c; ln ln x / ln x falls from e**e on.
    """
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
    """Return the envelope of an atom from ``start`` on.

    ``start`` is in the measure's units. The atom has at most one measure; None where no envelope is known.
    """
    constant = Growth(Fraction(0), Fraction(0), arb(1), arb(1))
    if not start > SMALLEST_START:
        return None
    match atom:
        case One():
            return constant
        case Square():
            return Growth(Fraction(2), Fraction(0), arb(1), arb(1))
        case ClampedSquare(_, to):
            return constant.scale_by(ball(to**2), ball(to**2)) if start >= ball(to) else None
        case Pieces(thresholds):
            growth = atom_growth(PieceCount(thresholds), start)
            return growth and growth.to_power(Fraction(2))
        case PieceCount(((measure, at),)):
            most = 1 / ball(at) + (1 + ball(measure.step / at)) / start
            return Growth(Fraction(1), Fraction(0), 1 / ball(at), most)
        case PurePieces(((measure, at),) as thresholds, epsilon, rho):
            # From eps/rho pieces on the pure bound is the smaller one.
            few = start / ball(at)
            growth = atom_growth(PieceCount(thresholds), start) if ball(rho) * few >= ball(epsilon) else None
            return growth and growth.scale_by(ball(epsilon) * (ball(epsilon) * few / 2).tanh(), ball(epsilon))
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
    """Return the envelope of a function less at most a constant."""
    return Growth(growth.power, growth.log, growth.lower - constant / growth.gauge(start), growth.upper)


def _from_pure(growth: Growth, function: Function, start: arb) -> Growth:
    epsilon = function.increase(BALLS, start)
    return growth.scale_by((epsilon / 2).tanh(), arb(1))


def _transform_growth(atom: GaussianTransform | LaplaceTransform, start: arb) -> Growth | None:
    rise = _rise(atom.function, start)
    shift = rise and total([rise], ball(atom.grid), start)
    if shift is None or not shift.lower > 0:
        return None
    if isinstance(atom, GaussianTransform):
        return shift.to_power(Fraction(2))
    scale = 1 / ball(atom.scale)
    epsilon = shift.scale_by(scale, scale)
    return epsilon if isinstance(atom, PureTransform) else _less(epsilon, arb(1), start)


TAIL_EXPONENTS = (8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)


@dataclass(frozen=True, slots=True)
class Supremum:
    """An upper bound (None: unbounded or unknown) and the best point found."""

    upper: Fraction | None
    steps: int


class Difference:
    """A signed sum of atoms of one measure."""

    def __init__(self, net: dict[Atom, Fraction], measure: Measure) -> None:
        self.gains = {atom: c for atom, c in net.items() if c > 0}
        self.costs = {atom: -c for atom, c in net.items() if c < 0}
        self.measure = measure
        self._more = [(c, curve(measure, atom)) for atom, c in self.gains.items()]
        self._less = [(-c, curve(measure, atom)) for atom, c in self.costs.items()]

    def upper(self, first: int, last: int) -> Fraction:
        """Return an upper bound of the difference over a range."""
        most = [(c, each.bounds(last)[1]) for c, each in self._more]
        flat = weighted(most + [(c, each.bounds(first)[0]) for c, each in self._less])
        return flat if first == last else min(flat, self._by_lines(first, last))

    def _by_lines(self, first: int, last: int) -> Fraction:
        above = [(c, each.lines(first, last)) for c, each in self._more]
        below = [(c, each.lines(first, last)) for c, each in self._less]
        start = [(c, line.high) for c, line in above] + [(c, line.low) for c, line in below]
        rise = weighted([(c, line.high_rise) for c, line in above] + [(c, line.low_rise) for c, line in below])
        return weighted([*start, (rise, ONE)]) if rise > 0 else weighted(start)

    def lower(self, steps: int) -> Fraction:
        """Not above the difference at this step."""
        least = [(c, each.bounds(steps)[0]) for c, each in self._more]
        return weighted(least + [(c, each.bounds(steps)[1]) for c, each in self._less])

    def tail_below(self, start: int, level: Fraction) -> bool:
        """Return whether the difference stays at most ``level`` from ``start`` on."""
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
    """Bound a difference by branch and bound, best first.

    Stop early once the bound is at most ``enough`` or a point is above it.
    """
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
    """Return points where a difference is likely to be largest."""
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


# One comparison in one region: what is spent, what the budget offers, and the measures that decide. Every atom of
# several measures is the largest of its parts, one part for each measure (T-PARTS, docs/theory/dominance.md). The
# code below handles parts only, functions of one measure: a new atom needs nothing here as long as that holds.


AtomSum = dict[Atom, Fraction]
"""Coefficient of each atom, none of them a maximum."""
Part = tuple[Measure, Atom]
MOST_OPENINGS = 64
"""How many ways of choosing the largest part of every joint gain are looked at one by one."""


class DoubtError(Exception):
    """Neither proved nor refuted; carries the reason."""


@dataclass(frozen=True, slots=True)
class Term:
    """An atom as coefficient * max(floor, the parts)."""

    coefficient: Fraction
    floor: Fraction
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of summed gains with the largest budget in ranges."""

    gains: tuple[Term, ...]
    budgets: tuple[tuple[Term, ...], ...]
    spans: dict[Measure, Range]

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures that a gain depends on."""
        return tuple(sorted(self.spans))

    def marks(self, measure: Measure) -> list[int]:
        """Return the piece lengths of a measure in steps, longest first."""
        terms = [*self.gains, *(term for budget in self.budgets for term in budget)]
        atoms = [atom for term in terms for own, atom in term.parts if own == measure]
        lengths = {int(at / measure.step) for atom in atoms for _, at in getattr(atom, "at", ())}
        return sorted(lengths, reverse=True)


def comparison(gain: AtomSum, budgets: list[AtomSum], region: Region) -> Comparison:
    """Return the comparison of gains with several costs in a region."""
    wanted = {measure for atom in gain for measure in atom.measures()}
    gains = tuple(_gain(atom, coefficient) for atom, coefficient in gain.items())
    costs = tuple(tuple(_cost(atom, c, wanted, region) for atom, c in budget.items()) for budget in budgets)
    spans = {measure: _useful(measure, gains, region.ranges[measure.name]) for measure in wanted}
    return Comparison(gains, costs, spans)


def _gain(atom: Atom, coefficient: Fraction) -> Term:
    if not atom.measures():
        return Term(coefficient, constant_upper(atom), ())
    parts = maximands(atom)
    if parts is None:
        raise DoubtError(f"a loss of several measures at once ({atom.kind}) can only be covered by the same term")
    return Term(coefficient, Fraction(0), parts)


def constant_upper(atom: Atom) -> Fraction:
    """Not below an atom that depends on no measure."""
    exact = atom.exactly({})
    return midpoint(atom.value(BALLS, {}).upper()) if exact is None else exact


def _cost(atom: Atom, coefficient: Fraction, wanted: set[Measure], region: Region) -> Term:
    parts = tuple(part for part in maximands(atom) or () if part[0] in wanted)
    return Term(coefficient, _least(atom, region), parts)


def _useful(measure: Measure, gains: tuple[Term, ...], span: Range) -> Range:
    """Return the range up to where no gain rises any more."""
    ends = [atom.constant_from() for gain in gains for own, atom in gain.parts if own == measure]
    if any(end is None for end in ends):
        return span
    last = max([span[0], *(end for end in ends if end is not None)])
    return (span[0], last if span[1] is None else min(last, span[1]))


def maximands(atom: Atom) -> tuple[Part, ...] | None:
    """Return the parts whose maximum the atom is, or None."""
    measures = atom.measures()
    if len(measures) == 1:
        return ((measures[0], atom),)
    at = getattr(atom, "at", None)
    if at is None:
        return None
    return tuple((item[0], cast(Atom, replace(cast(Any, atom), at=(item,)))) for item in at)


def _least(atom: Atom, region: Region) -> Fraction:
    """Return a lower bound of the atom in the region."""
    lowest = {measure.name: measure.step * region.ranges[measure.name][0] for measure in atom.measures()}
    exact = atom.exactly(lowest)
    if exact is not None:
        return exact
    return max(Fraction(0), midpoint(atom.value(BALLS, {name: ball(value) for name, value in lowest.items()}).lower()))


def openings(gains: tuple[Term, ...], spans: dict[Measure, Range]) -> Iterator[tuple[Term, ...]]:
    """Yield the gains with one part chosen in each joint term.

    Their sum is the largest of these. Where that would be too many, yield one sum not below any of them: all
    parts together, less the least that the others are.
    """
    if prod(max(1, len(gain.parts)) for gain in gains) > MOST_OPENINGS:
        yield tuple(term for gain in gains for term in _bound_by_sum(gain, spans))
        return
    choices = [[replace(gain, parts=(part,)) for part in gain.parts] or [gain] for gain in gains]
    yield from product(*choices)


def _bound_by_sum(gain: Term, spans: dict[Measure, Range]) -> Iterator[Term]:
    for part in gain.parts:
        yield replace(gain, parts=(part,))
    if not gain.parts:
        yield gain
    elif len(gain.parts) > 1:
        lowest = min(curve(measure, atom).bounds(spans[measure][0])[0] for measure, atom in gain.parts)
        yield Term(-gain.coefficient * (len(gain.parts) - 1), lowest, ())
