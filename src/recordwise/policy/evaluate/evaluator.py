"""The number systems in which policies are evaluated.

``Arithmetic`` plus the two operations only policies need: pieces and tables.
"""

import math
from bisect import bisect_left
from fractions import Fraction
from typing import Protocol, TypeAlias, TypeVar

import numpy as np
from flint import arb

from recordwise.exact.arithmetic import Arithmetic, BallArithmetic, FloatArray, NumpyArithmetic, monotone
from recordwise.exact.numbers import ball, float_lower, midpoint
from recordwise.policy.columns import FLOAT_SNAP, MOST_SCALED_STEPS, MOST_STEPS, Measure

T = TypeVar("T")
Steps: TypeAlias = tuple[tuple[int, Fraction], ...]
"""A step function of a whole number: (argument, value), both increasing; between two arguments the value of the larger applies.
Values are rounded up to floats when the table is made, so that every evaluator reads the same number."""
Knots: TypeAlias = tuple[tuple[int, Fraction], ...]
"""Points (steps, value), both increasing, of a function that is straight between two of them and constant before the first."""


class Evaluator(Arithmetic[T], Protocol[T]):
    """Arithmetic, plus the operations that only policies need."""

    def pieces(self, value: T, measure: Measure, at: Fraction) -> T:
        """Return the number of pieces of at most ``at``, 0 for 0."""

    def step_up(self, count: T, steps: Steps, beyond: T) -> T:
        """Return the step function from ``count`` up, ``beyond`` past its end."""

    def on_lines(self, value: T, measure: Measure, knots: Knots, beyond: T) -> T:
        """Return the function through the knots at a number of steps.

        The steps are those that ``pieces`` counts; ``beyond`` applies past the last knot.
        """


class NumpyEvaluator(NumpyArithmetic):
    """float64 columns."""

    def pieces(self, value: FloatArray, measure: Measure, at: Fraction) -> FloatArray:
        count, large = self._steps(value, measure)
        if at == measure.step:
            return count
        quotient = count / float(at / measure.step)
        # Whole numbers below 2**53 have a rounded quotient that is whole only where the exact one is; larger ones need care.
        return np.ceil(np.where(count < MOST_STEPS, quotient, np.nextafter(quotient, np.inf)) if large else quotient)

    def _steps(self, value: FloatArray, measure: Measure) -> tuple[FloatArray, bool]:
        """Return lattice steps, rounded up, and whether floats become inexact."""
        steps = value
        if measure.step != 1:
            steps = value * float(measure.step.denominator) / float(measure.step.numerator)
        below = np.floor(steps)
        count = below + (steps > below * (1 + FLOAT_SNAP))
        large = bool(steps.size) and bool(steps.max() >= MOST_SCALED_STEPS)
        if large and measure.step != 1:
            count = np.where(steps < MOST_SCALED_STEPS, count, np.ceil(steps * (1 + 2 * FLOAT_SNAP)))
        return count, large and bool(steps.max() >= MOST_STEPS)

    def step_up(self, count: FloatArray, steps: Steps, beyond: FloatArray) -> FloatArray:
        arguments = np.array([float(argument) for argument, _ in steps])
        values = np.array([float(level) for _, level in steps] + [0.0])
        place = np.searchsorted(arguments, count, side="left")
        return np.where(place < len(steps), values[place], beyond)

    def on_lines(self, value: FloatArray, measure: Measure, knots: Knots, beyond: FloatArray) -> FloatArray:
        count = self.pieces(value, measure, measure.step)
        # A knot of more steps than floats can tell apart is moved down, which never lowers the function (T-OUTWARD).
        counts = np.array([float_lower(Fraction(steps)) for steps, _ in knots])
        levels = np.array([float(level) for _, level in knots])
        return np.where(count <= counts[-1], np.interp(count, counts, levels), beyond)


class BallEvaluator(BallArithmetic):
    """Arb balls that enclose values at a point or over an interval."""

    def pieces(self, value: arb, measure: Measure, at: Fraction) -> arb:
        whole = at / measure.step
        return monotone(value, lambda point: arb(-(-measure.steps(midpoint(point)) // int(whole))))

    def step_up(self, count: arb, steps: Steps, beyond: arb) -> arb:
        low, high = (self._level(end, steps, beyond) for end in (count.lower(), count.upper()))
        return low.union(high)

    def _level(self, count: arb, steps: Steps, beyond: arb) -> arb:
        place = bisect_left([argument for argument, _ in steps], math.ceil(midpoint(count)))
        return ball(steps[place][1]) if place < len(steps) else beyond

    def on_lines(self, value: arb, measure: Measure, knots: Knots, beyond: arb) -> arb:
        # Whole numbers are told apart exactly; a ball around 0.22 is not told from a knot at 0.22.
        count = self.pieces(value, measure, measure.step)
        inside = monotone(count, lambda point: ball(line_value(midpoint(point), knots)))
        if count <= knots[-1][0]:
            return inside
        return beyond if count > knots[-1][0] else inside.union(beyond)


def line_value(count: Fraction, knots: Knots) -> Fraction:
    """Return the exact function through the knots at a count."""
    place = bisect_left(knots, count, key=lambda knot: Fraction(knot[0]))
    if place == 0 or place == len(knots):
        return knots[min(place, len(knots) - 1)][1]
    (left, low), (right, high) = knots[place - 1], knots[place]
    return low + (high - low) * (count - left) / (right - left)


BALLS = BallEvaluator()
