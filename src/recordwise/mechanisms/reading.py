"""From noisy points on a transform's scale back to totals: what every estimate needs, worked out once for all cells."""

from dataclasses import dataclass

import numpy as np

from recordwise.arithmetic import FloatArray
from recordwise.mechanisms.ends import ExponentArray, rounded
from recordwise.mechanisms.estimates import Fields
from recordwise.mechanisms.inverses import Inverse
from recordwise.mechanisms.laplace_mean import laplace_mean, laplace_unbiased

INVERSE_ERROR = 2.0**-44
"""Relative error allowed to an inverse in float64, the roundings of its argument and of the offset included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A transform's inverse with its noise, on a grid."""

    inverse: Inverse
    offset: float
    zero: float
    """f(offset): the transformed total 0."""
    first: float
    """The grid point total 0 is laid on."""
    h: float
    """The grid."""
    sigma: float | None
    laplace_scale: float
    last_digits: ExponentArray
    """Of the ends of intervals, decade by decade."""

    def fields(self, v: FloatArray, reach: float) -> Fields:
        """Everything said about a block of cells; ``reach`` is what the noise stays below with the level asked for."""
        value, spread = self.mean(v)
        median = self.inverse.monotone(v) - self.offset
        return value - self.offset, median, self.deviation(v), spread, *self.interval(v, reach)

    def mean(self, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The mean-unbiased estimate of total + offset, and the unbiased estimate of its variance."""
        if self.sigma is not None:
            return self.inverse.gaussian_mean(v, self.sigma), self.inverse.gaussian_variance_unbiased(v, self.sigma)
        return laplace_mean(self.inverse, v, zero=self.first, h=self.h, scale=self.laplace_scale)

    def variance(self, mu: FloatArray) -> FloatArray:
        """The variance of the mean-unbiased estimate where the exact point is ``mu``."""
        if self.sigma is not None:
            return self.inverse.gaussian_variance(mu, self.sigma)
        return self.inverse.laplace_variance(mu, self.zero, self.laplace_scale)

    def deviation(self, v: FloatArray) -> FloatArray:
        """The standard error that is printed: unbiased for logarithms and under Laplace noise, nearly so else (T-DEVIATION)."""
        if self.sigma is not None:
            return self.inverse.gaussian_deviation(v, self.sigma)
        return laplace_unbiased(lambda mu: np.sqrt(self.variance(mu)), v, zero=self.zero, scale=self.laplace_scale)

    def interval(self, v: FloatArray, reach: float) -> tuple[FloatArray, FloatArray]:
        """Both ends through the inverse, rounded outward to digits that mean something, cut at total 0 (T-INTERVAL)."""
        low, high = (self.inverse.monotone(np.maximum(end, self.zero)) for end in (v - reach, v + reach))
        low *= 1 - INVERSE_ERROR
        high *= 1 + INVERSE_ERROR
        low, high = np.maximum(low - self.offset, 0.0), np.maximum(high - self.offset, 0.0)
        return rounded(low, self.last_digits, up=False), rounded(high, self.last_digits, up=True)
