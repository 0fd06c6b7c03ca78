"""Parts at lattice points and over intervals: exact values, and straight lines above and below (T-SLOPES)."""

import math
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from recordwise.exact.numbers import ball, float_lower, float_upper, midpoint
from recordwise.policy.atoms import Atom, PieceCount, Pieces, Square
from recordwise.policy.concave_atoms import Additive
from recordwise.policy.evaluate.evaluator import BALLS
from recordwise.policy.measure import Measure

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


class Lines(NamedTuple):
    """For 0 <= t <= 1 the part at first + t * (last - first) lies between low + t * low_rise and high + t * high_rise."""

    low: Fraction
    low_rise: Fraction
    high: Fraction
    high_rise: Fraction


class Curve:
    """A nondecreasing function of one measure, by the number of its lattice steps."""

    def __init__(self, measure: Measure, atom: Atom) -> None:
        self.measure, self.atom = measure, atom
        self._known: dict[int, tuple[Fraction, Fraction]] = {}

    def bounds(self, steps: int) -> tuple[Fraction, Fraction]:
        """Fractions not above and not below the part; equal where it is rational."""
        found = self._known.get(steps)
        if found is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            found = self._known[steps] = self._computed(steps)
        return found

    def _computed(self, steps: int) -> tuple[Fraction, Fraction]:
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
    """The square of a measure: a chord above, a tangent at the middle below."""

    def _computed(self, steps: int) -> tuple[Fraction, Fraction]:
        value = self.measure.step**2 * steps**2
        return value, value

    def lines(self, first: int, last: int) -> Lines:
        return square_lines(first, last, self.measure.step**2)


class StairCurve(Curve):
    """A power of the number of pieces: between those of x/T and (x + T - 1)/T, x in steps and at least 1."""

    def __init__(self, measure: Measure, atom: Atom) -> None:
        super().__init__(measure, atom)
        ((_, at),) = getattr(atom, "at")  # noqa: B009
        self.length, self.power = int(at / measure.step), STAIRS[type(atom)]

    def _computed(self, steps: int) -> tuple[Fraction, Fraction]:
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
    """A concave rise: a chord below, and above it the chord of an interval before, carried on."""

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
    tangent = factor * (first + last)
    return Lines(factor * (first**2 - Fraction(width**2, 4)), tangent * width, factor * first**2, tangent * width)


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
