"""Intervals of fitted totals whose noise grows with the total: all totals under which the fit is not surprising (T-MOVED).

Nothing is drawn: the variance of the fit is computed at every total that is tried. Where the relative error is large no formula
holds as often as it says, so that there the interval contains that of the cell's own noisy answer, which does.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from recordwise.exact.arithmetic import FloatArray
from recordwise.postprocess.answer_kin import MovedVariance
from recordwise.release.fit_noise import Shape

NEAR = 0.3
"""The relative error at the lower end up to which the formula holds as often as it says. Beyond, the interval also contains that of
the cell's own answer."""
WIDE = 0.5
"""The relative error at the fit from which on the interval is that of the cell's own answer. Between the two it contains both, so
that no cell is given now the one and now the other by chance."""
CLOSE = 2.0**-30
MOST_DOUBLINGS = 60
MOST_TRIES = 200
TRIES_TO_HALF = 3
"""After so many tries the bracket of an end is halved."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Surprise:
    """How far a fit lies above a total, in standard errors at that total; falling in the total."""

    moved: MovedVariance
    shape: Shape

    def __call__(self, totals: FloatArray) -> FloatArray:
        """Normal, or lognormal with the mean and the variance that the fit has at this total."""
        value, spread = self.moved.value, self.moved.at(totals)
        found = (value - totals) / np.sqrt(spread)
        log = self.shape.log
        if np.any(log):
            point, offset = totals[log] + self.shape.offset[log], self.shape.offset[log]
            squared = np.log1p(spread[log] / point**2)
            with np.errstate(divide="ignore"):
                ratio = np.log(np.maximum(value[log] + offset, 0.0) / point)
            found[log] = ratio / np.sqrt(squared) + np.sqrt(squared) / 2
        return found

    def relative(self, totals: FloatArray) -> FloatArray:
        """The fit's relative error at these totals."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.sqrt(self.moved.at(totals)) / (totals + self.shape.offset))


def total_intervals(
    moved: MovedVariance, shape: Shape, raw_low: FloatArray, raw_high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Both ends of every interval; they enclose the fit itself. An end that does not exist is NaN."""
    low, high = raw_low, raw_high
    if math.isfinite(shape.reach):
        surprise = Surprise(moved=moved, shape=shape)
        start = np.maximum(moved.value, 0.0) + (1 + shape.reach) * np.sqrt(moved.fitted)
        with np.errstate(over="ignore", invalid="ignore"):
            low = _crossing(surprise, shape.reach, start)[0]
            high = _crossing(surprise, -shape.reach, start)[1]
            near = surprise.relative(low) <= NEAR
            wide = surprise.relative(np.maximum(moved.value, 0.0)) > WIDE
        low = np.where(wide, raw_low, np.where(near, low, np.minimum(low, raw_low)))
        high = np.where(wide, raw_high, np.where(near, high, np.maximum(high, raw_high)))
    low, high = np.minimum(low, moved.value), np.maximum(high, moved.value)
    return low, np.where(np.isfinite(high), high, np.nan)


def _crossing(
    surprise: Callable[[FloatArray], FloatArray], level: float, start: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Totals just below and just above the one at which the surprise falls to a level: both 0 if it is below it there, and without
    an upper one if it never falls so far."""
    left, right = np.zeros(len(start)), start.copy()
    above, below = surprise(left) - level, surprise(right) - level
    none = above <= 0
    for _ in range(MOST_DOUBLINGS):
        if not np.any(far := (below > 0) & ~none & np.isfinite(right)):
            break
        left, above = np.where(far, right, left), np.where(far, below, above)
        right = np.where(far, 2 * right, right)
        below = surprise(right) - level
    right = np.where(none, 0.0, np.where(below > 0, np.inf, right))
    return _narrowed(surprise, level, left, right, above, below)


def _narrowed(
    surprise: Callable[[FloatArray], FloatArray],
    level: float,
    left: FloatArray,
    right: FloatArray,
    above: FloatArray,
    below: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """The bracket of a crossing, narrowed by secants of which the end that stays counts half (Illinois), and by halving."""
    for number in range(MOST_TRIES):
        open_ended = np.isfinite(right) & (right - left > CLOSE * right)
        if not np.any(open_ended):
            break
        with np.errstate(divide="ignore", invalid="ignore"):
            secant = (left * -below + right * above) / (above - below)
        half = (number % TRIES_TO_HALF == TRIES_TO_HALF - 1) | ~((secant > left) & (secant < right))
        point = np.where(half, (left + right) / 2, secant)
        point = np.where(open_ended, point, left)
        found = surprise(point) - level
        high = found > 0
        above, below = (
            np.where(open_ended, np.where(high, found, above / 2), above),
            np.where(open_ended, np.where(high, below / 2, found), below),
        )
        left, right = np.where(open_ended & high, point, left), np.where(open_ended & ~high, point, right)
    return left, right
