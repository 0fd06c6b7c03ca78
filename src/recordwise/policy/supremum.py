"""The largest value, over a range of lattice steps that may have no end, of a difference of atoms of one measure."""

import heapq
import time
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import isqrt

from flint import arb

from recordwise.exact import ball, midpoint
from recordwise.policy.atoms import Atom, Pieces, SelectionDelta
from recordwise.policy.concave_atoms import AdditiveTable
from recordwise.policy.evaluators import BallEvaluator
from recordwise.policy.growth import CONSTANT, Growth, atom_growth, falls_from
from recordwise.policy.measure import Measure
from recordwise.policy.regions import Range

BALLS = BallEvaluator()
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
        self._bounds = cache(self._point_bounds)

    def _point_bounds(self, atom: Atom, steps: int) -> tuple[Fraction, Fraction]:
        amount = self.measure.step * steps
        exact = atom.exactly({self.measure.name: amount})
        if exact is not None:
            return exact, exact
        value = atom.value(BALLS, {self.measure.name: ball(amount)})
        return midpoint(value.lower()), midpoint(value.upper())

    def upper(self, first: int, last: int) -> Fraction:
        """Not below the difference at any step from first to last: every atom is nondecreasing."""
        most = sum((c * self._bounds(atom, last)[1] for atom, c in self.gains.items()), Fraction(0))
        return most - sum((c * self._bounds(atom, first)[0] for atom, c in self.costs.items()), Fraction(0))

    def lower(self, steps: int) -> Fraction:
        """Not above the difference at this step."""
        least = sum((c * self._bounds(atom, steps)[0] for atom, c in self.gains.items()), Fraction(0))
        return least - sum((c * self._bounds(atom, steps)[1] for atom, c in self.costs.items()), Fraction(0))

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
    best, best_at = max((difference.lower(point), -point) for point in _probes(net, measure, span))
    best_at = -best_at
    bounded = last is not None
    if last is None:
        last = _tail_start(difference, first, best)
        bounded = last is not None
    if last is None:
        last = max(first, 1) * 2 ** TAIL_EXPONENTS[-1]
    heap = [(-difference.upper(first, last), first, last)]
    settled = best
    while heap and time.monotonic() < deadline:
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
            case Pieces(at) | SelectionDelta(at):
                edges |= {int(threshold / measure.step) * times for _, threshold in at for times in (1, 2, 3)}
            case AdditiveTable(steps=steps):
                edges |= {count for count, _ in steps[:MOST_PROBES]}
    first, last = span
    near = {max(first, edge + more) for edge in edges for more in (0, 1)}
    return {first} | {point for point in near if last is None or point <= last}


MOST_PROBES = 100


def _tail_start(difference: Difference, first: int, level: Fraction) -> int | None:
    """A step from which on the difference is certainly not above ``level``."""
    for exponent in TAIL_EXPONENTS:
        start: int = max(first, 1) * 2**exponent
        if difference.tail_below(start, level):
            return start
    return None
