"""Unbiased estimation under lattice Laplace noise, for any smooth inverse (T-LAPLACE-MEAN, docs/theory/transform.md)."""

import math

import numpy as np

from recordwise.arithmetic import FloatArray
from recordwise.mechanisms.inverses import Inverse


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
