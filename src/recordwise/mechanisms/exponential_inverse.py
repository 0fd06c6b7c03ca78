"""The exponential: inverse of the logarithm."""

import math
from dataclasses import dataclass

import numpy as np

from recordwise.arithmetic import FloatArray


@dataclass(frozen=True, slots=True)
class ExponentialInverse:
    """phi(v) = e**v."""

    def monotone(self, v: FloatArray) -> FloatArray:
        return np.exp(v)

    def stencil(self, v: FloatArray, h: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        value = np.exp(v)
        return value, value, value * (2 * math.sinh(h / 2) / h) ** 2

    def rise(self, v: float, h: float) -> float:
        return math.exp(v) * math.expm1(h) / h

    def gaussian_mean(self, v: FloatArray, sigma: float) -> FloatArray:
        return np.exp(v - sigma**2 / 2)

    def gaussian_variance(self, mu: FloatArray, sigma: float) -> FloatArray:
        return np.asarray(np.exp(2 * mu + sigma**2) * -math.expm1(-(sigma**2)))

    def gaussian_variance_unbiased(self, v: FloatArray, sigma: float) -> FloatArray:
        return np.asarray(np.exp(2 * v - sigma**2) * -math.expm1(-(sigma**2)))

    def gaussian_deviation(self, v: FloatArray, sigma: float) -> FloatArray:
        """sqrt(exp(sigma**2) - 1) exp(v - sigma**2/2), which is unbiased for sqrt(exp(sigma**2) - 1) exp(mu)."""
        return np.asarray(math.sqrt(-math.expm1(-(sigma**2))) * np.exp(v))

    def laplace_variance(self, mu: FloatArray, zero: float, scale: float) -> FloatArray:
        """In closed form, the constant estimator below ``zero`` included; infinite from scale 1/2 on (T-LAPLACE-MEAN)."""
        b = scale
        if b >= 0.5:
            return np.full(np.shape(mu), np.inf)
        far = (np.asarray(mu) - zero) / b
        boundary = np.exp(-far * (1 + 2 * b)) * (((1 - b) * b) ** 2 / (2 * (1 + 2 * b)))
        return np.asarray(np.exp(2 * np.asarray(mu)) * (b**2 * (2 + b**2) / (1 - 4 * b**2) - boundary))
