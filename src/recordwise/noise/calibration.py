"""Finds the scale at which the LATTICE law, not its continuous counterpart, has a given variance."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

from flint import arb

from recordwise.errors import ParameterError
from recordwise.exact.functions import Function
from recordwise.exact.numbers import Number, ball, positive, working_precision
from recordwise.noise.growth import log_slope_limit
from recordwise.noise.probabilities import absolute_moment

Family: TypeAlias = Callable[[Fraction], Function]
"""The exponent at a scale. The variance grows with the scale (T-CALIBRATE)."""
DIGITS = 12
"""Significant decimal digits of a calibrated scale."""
TOLERANCE = 1e-13


def scale_for_variance(family: Family, variance: Number) -> Fraction:
    """The smallest scale of 12 significant digits whose lattice variance is certified to reach the target (T-CALIBRATE)."""
    wanted = positive(variance, parameter="variance")
    if log_slope_limit(family(Fraction(1))) <= 3:
        raise ParameterError(parameter="variance", problem="is infinite at every scale of this law")
    root = _root(lambda log_scale: _gap(family, Fraction(math.exp(log_scale)), wanted), math.log(wanted) / 2)
    unit = Fraction(10) ** (math.floor(root / math.log(10)) + 1 - DIGITS)
    scale = math.ceil(Fraction(math.exp(root)) / unit) * unit
    while _reaches(family, scale - unit, wanted):
        scale -= unit
    while not _reaches(family, scale, wanted):
        scale += unit
    return scale


def _reaches(family: Family, scale: Fraction, wanted: Fraction) -> bool:
    with working_precision():
        return bool(absolute_moment(family(scale), 2) >= ball(wanted))


def _gap(family: Family, scale: Fraction, wanted: Fraction) -> float:
    """Approximately ln(variance / wanted)."""
    with working_precision():
        ratio: arb = absolute_moment(family(scale), 2) / ball(wanted)
        return float(ratio.log().mid())


def _root(gap: Callable[[float], float], start: float) -> float:
    """The approximate root of an increasing function of the log scale: a bracket by doubling, then regula falsi (Illinois)."""
    step, low, high = 1.0, start, start
    gap_low = gap_high = gap(start)
    while gap_low > 0:
        low, step = low - step, 2 * step
        gap_low = gap(low)
    while gap_high < 0:
        high, step = high + step, 2 * step
        gap_high = gap(high)
    middle, last = high, 0.0
    while high - low > TOLERANCE and gap_high > gap_low:
        middle = high - gap_high * (high - low) / (gap_high - gap_low)
        here = gap(middle)
        if abs(here) < TOLERANCE:
            break
        if here < 0:
            low, gap_low, gap_high = middle, here, gap_high / 2 if last < 0 else gap_high
        else:
            high, gap_high, gap_low = middle, here, gap_low / 2 if last > 0 else gap_low
        last = here
    return middle
