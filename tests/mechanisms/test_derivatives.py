"""Derivatives of inverses by the chain rule, against numerical ones to 40 digits: what is inside has a slope other than 1."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from recordwise.exact.functions import Function, log, x
from recordwise.mechanisms.inverses import FunctionInverse, jet, slope

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
CASES: dict[str, tuple[Function, Callable[[Any], Any]]] = {
    "line": (3 * x + 2, lambda v: 3 * v + 2),
    "square of a line": ((2 * x + 5) ** 2, lambda v: (2 * v + 5) ** 2),
    "power of a flat line": ((x / 7 + 2) ** Fraction(5, 2), lambda v: (v / 7 + 2) ** mpmath.mpf(2.5)),
    "root of a steep line": ((9 * x + 4) ** HALF, lambda v: mpmath.sqrt(9 * v + 4)),
    "power of a curve": (
        ((2 * x + 1) ** HALF + 3 * x) ** 3,
        lambda v: (mpmath.sqrt(2 * v + 1) + 3 * v) ** 3,
    ),
    "logarithm of a line": (4 * log(3 * x + 2), lambda v: 4 * mpmath.log(3 * v + 2)),
    "logarithm of a power": (log((2 * x + 3) ** 3 + 1), lambda v: mpmath.log((2 * v + 3) ** 3 + 1)),
    "square of a logarithm": (2 * log(x / 5 + 3) ** 2, lambda v: 2 * mpmath.log(v / 5 + 3) ** 2),
    "logarithm of a logarithm": (log(2 + 3 * log(1 + 5 * x)), lambda v: mpmath.log(2 + 3 * mpmath.log(1 + 5 * v))),
    "sum": ((x + 1) ** THIRD + 5 * log(x + 2) + x / 4, lambda v: mpmath.cbrt(v + 1) + 5 * mpmath.log(v + 2) + v / 4),
}
POINTS = (0.25, 1.0, 3.5, 40.0, 1e4)


@pytest.mark.parametrize("name", CASES)
def test_value_slope_and_curvature_are_those_of_the_function(name: str) -> None:
    ours, theirs = CASES[name]
    found = jet(ours, np.array(POINTS))
    with mpmath.workdps(60):
        for order, values in enumerate(found):
            known = [float(mpmath.diff(theirs, mpmath.mpf(point), order)) for point in POINTS]
            assert values == pytest.approx(known, rel=1e-11, abs=1e-13), order
            if order == 1:
                assert slope(ours, np.array(POINTS)) == pytest.approx(known, rel=1e-11)


@pytest.mark.parametrize("name", CASES)
def test_a_rise_over_a_step_is_that_of_the_function(name: str) -> None:
    """Per step, to the second order: what is left out is the third derivative times a sixth of the squared step."""
    ours, theirs = CASES[name]
    for point in POINTS:
        step = 1e-4 * point
        with mpmath.workdps(60):
            known = float((theirs(mpmath.mpf(point) + mpmath.mpf(step)) - theirs(mpmath.mpf(point))) / mpmath.mpf(step))
        assert FunctionInverse(ours).rise(point, step) == pytest.approx(known, rel=1e-7)
