"""The sum of two discrete Gaussian draws: its probabilities, and what it tells (T-TIER, docs/theory/series.md).

With variances a and b and v = a + b, the sum has probabilities proportional to exp(-k^2/(2v)) theta(k a/v), where
theta(c) = sum over j of exp(-(j - c)^2/(2u)) with u = ab/v has period 1, its maximum at 0 and its minimum at 1/2. So it is a
discrete Gaussian of variance v but for a factor that is nearly constant once u exceeds one squared step.
"""

import math
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from flint import arb

from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import arb_float_upper, ball, working_precision

SELF_DUAL = Fraction(4, 25)
"""From here on theta is summed by its Fourier series, below by its definition; both then fall faster than exp(-3 n^2)."""
TERMS = 7
"""Of either series; what is left out is below exp(-140)."""
DIGITS = 10**9
"""Factors are rounded up to one over this."""
FIRST_ORDER, LAST_ORDER, ORDER_RATIO = 1e-4, 300.0, 1.03
"""Orders less 1 at which divergences are summed."""
MOST_SHIFTS, MOST_VARIANCE, NEGLIGIBLE = 6, 2000, 1e-6
DEEP = 72.0
"""Exponents by which weights fall before a sum ends."""
FLOAT_ERROR, SUM_ERROR = 2.0**-49, 1e-10
"""Allowed for float64: relatively for each exponent; and for sums of some thousand terms, and for places within a period."""
REACH = 12
CERTAIN = 1e-9
"""Above the rounding of sums of probabilities."""
MOST_SUMMED = 1000


@lru_cache(maxsize=1024)
def loss_factor(first: Fraction, second: Fraction) -> Fraction:
    """Return a bound on the zCDP loss of the sum, as a multiple of s^2/(2v), for every shift s of whole steps.

    Args:
        first: The variance parameter of one draw, in squared lattice steps.
        second: That of the other.
    """
    total = first + second
    # The sum is made from either draw alone, by adding the other.
    most = total / max(first, second)
    swing = _log_swing_upper(first * second / total)
    found = 1.0
    for shift in range(1, MOST_SHIFTS + 1):
        simple = _simple(first, second, shift, swing)
        if simple > found:
            found = max(found, min(simple, _summed(first, second, shift, swing)))
    found = max(found, 1 + 2 * float(total) * swing / (MOST_SHIFTS + 1) ** 2)
    rounded = Fraction(math.ceil(Fraction(found) * DIGITS + 1), DIGITS) if math.isfinite(found) else most
    return min(rounded, most)


def _log_swing_upper(u: Fraction) -> float:
    """Return a bound on ln(theta(0)/theta(1/2))."""
    with working_precision(256):
        if u >= SELF_DUAL:
            q = (-2 * arb.pi() ** 2 * ball(u)).exp()
            rest, signs = 4 * q ** (TERMS**2), [(n, (-1) ** n) for n in range(1, TERMS)]
            top = 1 + 2 * sum((q ** (n * n) for n, _ in signs), arb(0)) + rest
            bottom = 1 + 2 * sum((sign * q ** (n * n) for n, sign in signs), arb(0)) - rest
        else:
            root = (-1 / (8 * ball(u))).exp()
            top = 1 + 2 * sum((root ** (4 * n * n) for n in range(1, TERMS)), arb(0)) + 4 * root ** (4 * TERMS**2)
            bottom = 2 * sum((root ** ((2 * n + 1) ** 2) for n in range(TERMS)), arb(0))
        return arb_float_upper((top / bottom).log())


def _simple(first: Fraction, second: Fraction, shift: int, swing: float) -> float:
    """Bound the factor at one shift without a sum."""
    total = first + second
    off = shift * first / total
    off = abs(off - round(off))
    apart = float(off**2 * total / (2 * first * second))
    return 1 + 2 * float(total) * min(apart, swing) / shift**2 * (1 + FLOAT_ERROR)


def _summed(first: Fraction, second: Fraction, shift: int, swing: float) -> float:
    """Bound the factor at one shift by sums over the lattice; between orders by chords, since (a-1) D_a is convex."""
    total = float(first + second)
    if total > MOST_VARIANCE or 2 * total * swing < NEGLIGIBLE or swing > DEEP:
        return math.inf
    count = math.ceil(math.log(LAST_ORDER / FIRST_ORDER) / math.log(ORDER_RATIO))
    orders = np.geomspace(FIRST_ORDER, LAST_ORDER, count)
    cumulants = _cumulants(first, second, shift, swing, orders)
    found = max(_highest(orders, cumulants), float(cumulants[0] / orders[0]))
    tail = shift**2 / (2 * total) + swing / (1 + LAST_ORDER)
    return max(found, tail) * 2 * total / shift**2 * (1 + FLOAT_ERROR)


def _cumulants(first: Fraction, second: Fraction, shift: int, swing: float, orders: FloatArray) -> FloatArray:
    """Bound (a-1) D_a by sums over a window, with what they leave out and round; ``orders`` are a - 1."""
    total = float(first + second)
    room = shift + math.ceil(math.sqrt(2 * total * (DEEP + LAST_ORDER * swing)))
    points = np.arange(-room, math.ceil((LAST_ORDER + 1) * shift) + room + 1, dtype=np.float64)
    here, there = log_weights(points, first, second), log_weights(points - shift, first, second)
    # The difference of both, without the squares that cancel.
    bent = _log_theta(points - shift, first, second) - _log_theta(points, first, second)
    loss = (2 * points * shift - shift**2) / (2 * total) + bent
    exponents = there[None, :] + orders[:, None] * loss[None, :]
    largest = exponents.max(axis=1)
    sums = largest + np.log(np.exp(exponents - largest[:, None]).sum(axis=1)) - np.logaddexp.reduce(here)
    rounding = FLOAT_ERROR * (float(np.abs(there).max()) + orders * float(np.abs(loss).max()))
    return np.asarray(np.logaddexp(sums, _left_out(orders, shift, total, swing)) + rounding + SUM_ERROR * (1 + orders))


def _left_out(orders: FloatArray, shift: int, total: float, swing: float) -> FloatArray:
    """Bound the logarithm of the terms outside the window, by Chernoff."""
    return math.log(2) - (DEEP + LAST_ORDER * swing) + orders * (swing + (orders + 1) * shift**2 / (2 * total))


def _highest(orders: FloatArray, cumulants: FloatArray) -> float:
    """Return the largest chord over a (a-1) between two orders."""
    low, high = orders[:-1], orders[1:]
    slope = np.diff(cumulants) / (high - low)
    start = cumulants[:-1] - slope * low
    inner = np.sqrt(np.maximum(start**2 - start * slope, 0.0))
    found = [cumulants / (orders * (orders + 1))]
    for place in ((-start + inner) / slope, (-start - inner) / slope):
        inside = np.clip(place, low, high)
        found.append((start + slope * inside) / (inside * (inside + 1)))
    return float(max(each.max() for each in found))


def log_weights(points: FloatArray, first: Fraction, second: Fraction) -> FloatArray:
    """Return log-probabilities of the sum at whole numbers, up to a constant."""
    return np.asarray(-(points**2) / (2 * float(first + second)) + _log_theta(points, first, second))


def _log_theta(points: FloatArray, first: Fraction, second: Fraction) -> FloatArray:
    """Return what the sum has besides the Gaussian of its variance, up to a constant."""
    total = first + second
    u, period = first * second / total, float(first / total)
    place = points * period
    place -= np.rint(place)
    if u >= SELF_DUAL:
        q = math.exp(-2 * math.pi**2 * float(u))
        return np.asarray(np.log(1 + 2 * sum(q ** (n * n) * np.cos(2 * math.pi * n * place) for n in range(1, TERMS))))
    steps = np.arange(-TERMS, TERMS + 1)
    return np.asarray(np.logaddexp.reduce(-((steps[:, None] - place[None, :]) ** 2) / (2 * float(u)), axis=0))


@lru_cache(maxsize=512)
def half_width(first: Fraction, second: Fraction, confidence: float) -> int:
    """Return the fewest steps that hold the sum with this probability.

    Beyond a thousand steps per sigma, the normal quantile and half a step (T-RATIO).
    """
    spread = math.sqrt(float(first + second))
    if spread > MOST_SUMMED:
        return math.ceil(NormalDist().inv_cdf((1 + confidence) / 2) * spread + 0.5)
    logs = log_weights(np.arange(math.ceil(REACH * spread) + 2, dtype=np.float64), first, second)
    weights = np.exp(logs - logs[0])
    within = (2 * np.cumsum(weights) - weights[0]) / (2 * weights.sum() - weights[0])
    return int(np.searchsorted(within, confidence + CERTAIN))
