"""Unbiased estimation under lattice Laplace noise, for any smooth inverse (T-LAPLACE-MEAN, docs/theory/transform.md)."""

import math
from collections.abc import Callable

import numpy as np

from recordwise.arithmetic import FloatArray
from recordwise.mechanisms.inverses import Inverse

NARROW = 64


def laplace_mean(
    inverse: Inverse, v: FloatArray, *, zero: float, h: float, scale: float
) -> tuple[FloatArray, FloatArray]:
    """The mean-unbiased estimate of phi, and the unbiased estimate of its variance, at grid points v.

    Above the grid point ``zero`` of total 0: phi - kappa * (second difference); from it down, where no exact point lies, constant.
    """
    ratio = h / scale
    spread = (h / (2 * math.sinh(ratio / 2))) ** 2
    value, slope, second = inverse.stencil(np.maximum(v, zero + h), h)
    bend = spread * second
    odds, rise = 1 / math.expm1(ratio), inverse.rise(zero, h) * h
    floor = float(inverse.monotone(np.asarray(zero))) - odds * rise
    above = v > zero
    variance = bend * bend + 2 * spread * (slope * slope)
    return np.where(above, value - bend, floor), np.where(above, variance, odds * (1 + odds) * rise**2)


def laplace_unbiased(
    function: Callable[[FloatArray], FloatArray], v: FloatArray, *, zero: float, scale: float
) -> FloatArray:
    """An unbiased estimate of any smooth function of the exact point: g - scale**2 g'' above ``zero``, constant from it down.

    Derivatives are differences over a 64th of a noise scale; the estimate is infinite where the function is.
    """
    d = scale / NARROW
    middle = np.maximum(v, zero + d)
    with np.errstate(invalid="ignore", over="ignore"):
        before, here, after = (function(middle + k * d) for k in (-1, 0, 1))
        first, second, third = (float(function(np.array([zero + k * d]))[0]) for k in range(3))
        floor = first - NARROW * (-1.5 * first + 2 * second - 0.5 * third)
        found = np.where(v > zero, here - NARROW**2 * (before - 2 * here + after), floor)
    return np.where(np.isfinite(found), found, np.inf)
