"""An interval for the ratio of two independent noisy answers, in every cell (T-RATIO, docs/theory/averages.md)."""

from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from recordwise.exact.arithmetic import FloatArray
from recordwise.mechanisms.noisy_curve import NoisyCurve
from recordwise.plan.statistics.curved import curved_interval

STEEPEST = 0.25
"""Fieller's set is used where (reach/value)**2 of the denominator is below this."""
ROUNDINGS = 2.0**-46
"""Relative slack for the rounding of a ratio's ends."""
DIGITS = 3
"""Ends keep this many digits below the first digit of the interval's width."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A numerator or denominator, cell by cell."""

    value: FloatArray
    """Unbiased."""
    low: FloatArray
    high: FloatArray
    """The interval contains the exact total with probability (1 + confidence)/2, for the ``confidence`` of the ratio."""
    reach: FloatArray
    """``gaussian_reach`` where Gaussian noise was added on the total's own scale, NaN elsewhere."""
    curve: NoisyCurve | None = None
    """Where Gaussian noise was added on any scale, to an answer that the other side does not contain."""


def gaussian_reach(sigma: Fraction, step: Fraction, *, confidence: float) -> float:
    """The bound that Gaussian noise on a lattice, alone or mixed with another such noise, stays within (T-RATIO)."""
    return NormalDist().inv_cdf((1 + confidence) / 2) * float(sigma) + float(step) / 2


def ratio_interval(
    top: Side, bottom: Side, *, least: float, shared: FloatArray | float = 0.0, confidence: float | None = None
) -> tuple[FloatArray, FloatArray]:
    """Ends that hold the exact ratio with at least that confidence, given that the exact denominator is at least ``least``.

    ``shared`` is what correlated answers have in common: the sum of the products of their coefficients with squared reaches. The
    ``confidence`` is needed where noise was drawn on the scale of a transform.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        steepness = (bottom.reach / bottom.value) ** 2
        narrow = (bottom.value > 0) & (steepness < STEEPEST) & ~np.isnan(top.reach)
        fieller = _fieller(top, bottom, steepness, shared / bottom.value**2)
        corners = _corners(top, bottom, least)
        low, high = (np.where(narrow, one, other) for one, other in zip(fieller, corners))
        if confidence is not None and top.curve is not None and bottom.curve is not None:
            *curved, bent = curved_interval(top.curve, bottom.curve, confidence=confidence)
            low, high = (np.where(bent, one, other) for one, other in zip(curved, (low, high)))
        return _rounded(low, high)


def _fieller(top: Side, bottom: Side, steepness: FloatArray, shared: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The r with (N - r D)**2 <= reach(N)**2 - 2 r shared + r**2 reach(D)**2: the roots of a quadratic, divided by D**2."""
    ratio, own = top.value / bottom.value, top.reach / bottom.value
    root = own**2 * (1 - steepness) + steepness * ratio**2 + shared * (shared - 2 * ratio)
    half = np.sqrt(np.maximum(root, 0.0))
    # A difference of nearly equal numbers can be off by as much as the roundings of the larger ones.
    lost = np.sqrt(ROUNDINGS * np.abs(shared * (np.abs(shared) + 2 * np.abs(ratio)))) if np.any(shared) else 0.0
    slack = ROUNDINGS * (np.abs(ratio) + half) + lost
    middle = ratio - shared
    return (middle - half - slack) / (1 - steepness), (middle + half + slack) / (1 - steepness)


def _corners(top: Side, bottom: Side, least: float) -> tuple[FloatArray, FloatArray]:
    """The extreme quotients of the ends of both intervals, assuming that both hold."""
    smallest, largest = np.maximum(bottom.low, least), np.maximum(bottom.high, least)
    low = top.low / np.where(top.low >= 0, largest, smallest)
    high = top.high / np.where(top.high >= 0, smallest, largest)
    return low - ROUNDINGS * np.abs(low), high + ROUNDINGS * np.abs(high)


def outward(low: FloatArray, high: FloatArray, size: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ends moved apart by what roundings of numbers up to ``size`` can be worth, then to digits that mean something."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        slack = ROUNDINGS * size
        return _rounded(low - slack - ROUNDINGS * np.abs(low), high + slack + ROUNDINGS * np.abs(high))


def _rounded(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Round outward to meaningful digits: at most a hundredth of the width wider at either end."""
    places = DIGITS - 1 - np.floor(np.log10(high - low))
    # Powers of ten with a whole exponent up to 22 are exact floats, so this produces the shortest decimals.
    fine = np.where(np.isfinite(places), np.clip(places, -22, 22), 0)
    up, down = 10.0 ** np.maximum(fine, 0), 10.0 ** np.maximum(-fine, 0)
    lower, upper = np.floor(low * up / down) / up * down, np.ceil(high * up / down) / up * down
    sure = np.isfinite(lower) & np.isfinite(upper) & (lower <= low) & (upper >= high) & (fine == places)
    return np.where(sure, lower, low), np.where(sure, upper, high)
