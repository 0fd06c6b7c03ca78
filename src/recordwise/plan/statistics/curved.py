"""Intervals of ratios where noise was drawn on the scale of a transform (T-CURVE, docs/theory/averages.md).

In the plane of both noisy scales, in units of their sigmas, pairs of totals with one ratio lie on a rising curve. An interval has
the ratios whose curves pass the noisy point within some radius: that of straight lines, and a little more the more a curve bends.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist
from typing import TypeAlias

import numpy as np

from recordwise.exact.arithmetic import FloatArray, normal_cdf
from recordwise.mechanisms.noisy_curve import OUTSIDE, NoisyCurve

BoolArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
STEEPEST_BEND = 2 / 3**1.5
"""The largest w**2/(1 + w**2)**1.5: by how much a bend of one scale bends a curve in the plane at most."""
MOST_BENT = 0.6
"""Beyond it two separate intervals are no wider."""
BENDS = np.concatenate([[0.0], 0.002 * 1.05 ** np.arange(118)])
"""Curvatures are rounded up to one of these."""
COARSE_POINTS, GOLDEN_STEPS = 9, 18
GOLDEN = (math.sqrt(5) - 1) / 2
SLACK = 1e-6
"""Of the width of an interval: more than the search for its ends leaves out."""
INVERSE_ERROR = 2.0**-42
ACROSS = np.linspace(-9.0, 9.0, 8001)
NEAR = 1e-5
"""More than a radius is off by, from sums in place of integrals."""


def curved_interval(
    top: NoisyCurve, bottom: NoisyCurve, *, confidence: float
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Both ends and the cells they serve: where a curve bends, little, and the denominator is well above 0."""
    bend = STEEPEST_BEND * np.maximum(top.bend, bottom.bend)
    if not np.any(bend > 0):
        return bend, bend, np.zeros(bend.shape, np.bool_)
    radius = radii(bend, confidence)
    width, depth = top.sigma * radius + top.half, bottom.sigma * radius + bottom.half
    narrow = (bend > 0) & np.isfinite(width) & np.isfinite(depth) & (bottom.point - 2 * depth > bottom.zero)
    # Other cells take part in the arithmetic, at a point where nothing goes wrong.
    width, depth = np.where(narrow, width, 0.0), np.where(narrow, depth, 0.0)
    start = np.where(top.bend > 0, 0.0, -np.pi / 2)

    def end(side: float) -> FloatArray:
        def ratio(angle: FloatArray) -> FloatArray:
            above = top.back(top.point + side * width * np.cos(angle))
            below = bottom.back(bottom.point - side * depth * np.sin(angle))
            return np.where(narrow, side * above / below, 0.0)

        return side * _largest(ratio, start)

    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        low, high = end(-1.0), end(1.0)
        slack = SLACK * (high - low) + INVERSE_ERROR * np.maximum(np.abs(low), np.abs(high))
        low, high = low - slack, high + slack
        low = np.where(top.bend > 0, np.maximum(low, 0.0), low)
        return low, high, np.asarray(narrow & np.isfinite(low) & np.isfinite(high))


def _largest(value: Callable[[FloatArray], FloatArray], start: FloatArray) -> FloatArray:
    """The largest value between ``start`` and a right angle, by a golden section about the best of a few angles."""
    step = (np.pi / 2 - start) / (COARSE_POINTS - 1)
    tried = np.stack([value(start + at * step) for at in range(COARSE_POINTS)])
    best = start + np.argmax(tried, axis=0) * step
    low, high = np.maximum(best - step, start), np.minimum(best + step, np.pi / 2)
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = value(left), value(right)
    found = np.maximum(tried.max(axis=0), np.maximum(at_left, at_right))
    for _ in range(GOLDEN_STEPS):
        keep = at_left > at_right
        low, high = np.where(keep, low, left), np.where(keep, right, high)
        angle = np.where(keep, high - GOLDEN * (high - low), low + GOLDEN * (high - low))
        new = value(angle)
        left, right = np.where(keep, angle, right), np.where(keep, left, angle)
        at_left, at_right = np.where(keep, new, at_right), np.where(keep, at_left, new)
        found = np.maximum(found, new)
    return np.asarray(found)


def radii(bend: FloatArray, confidence: float) -> FloatArray:
    """The radius for each curvature; infinite where it bends too much."""
    place = np.searchsorted(BENDS, np.where(bend <= MOST_BENT, bend, 0.0))
    needed = np.unique(place)
    known = np.zeros(len(BENDS))
    known[needed] = [_radius(float(BENDS[each]), confidence) for each in needed]
    return np.where(bend <= MOST_BENT, known[place], np.inf)


@lru_cache(maxsize=4096)
def _radius(bend: float, confidence: float) -> float:
    """The z at which a pair of normal noises is further than z from a disk of radius 1/bend, on whose edge they start, with half of
    the chance to miss; a straight line has its normal quantile. A part of the chance is left to points far away."""
    miss = (1 - confidence - OUTSIDE) / 2
    if miss <= 0:
        return math.inf
    if bend == 0:
        return NormalDist().inv_cdf(1 - miss)
    size = 1 / bend
    # The disk holds no more than a half plane, and no less than its only point.
    low, high = NormalDist().inv_cdf(1 - miss), math.sqrt(-2 * math.log(miss))
    density = np.exp(-(ACROSS**2) / 2) / math.sqrt(2 * math.pi) * (ACROSS[1] - ACROSS[0])
    while high - low > NEAR / 2:
        middle = (low + high) / 2
        edge = np.sqrt(np.maximum((size + middle) ** 2 - ACROSS**2, 0.0))
        beyond = float(density @ (normal_cdf(size - edge) + normal_cdf(-size - edge)))
        low, high = (middle, high) if beyond > miss else (low, middle)
    return high + NEAR
