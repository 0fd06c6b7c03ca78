"""A polynomial inverse, as of a root: every estimator and every variance is a polynomial too, worked out once per noise scale."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial, hermite_e

from recordwise.arithmetic import FloatArray

BOUNDARY_REACH = 45.0
"""Laplace scales from total 0 beyond which the boundary changes a variance by less than its last digit."""


@dataclass(frozen=True, slots=True)
class PolynomialInverse:
    """phi(v) = sum of coefficient * v**power, coefficients not negative."""

    coefficients: tuple[float, ...]

    def monotone(self, v: FloatArray) -> FloatArray:
        """Continued as an odd function: v**k with an even k would turn back up below 0."""
        return np.copysign(horner(self.coefficients, np.abs(v)), v)

    def stencil(self, v: FloatArray, h: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        second = _second_difference(self.coefficients, h)
        return horner(self.coefficients, v), horner(_derivative(self.coefficients), v), horner(second, v)

    def rise(self, v: float, h: float) -> float:
        derivatives = [_derivative(self.coefficients, j) for j in range(1, len(self.coefficients))]
        return sum(
            float(horner(part, np.asarray(v))) * h**j / math.factorial(j + 1) for j, part in enumerate(derivatives)
        )

    def gaussian_mean(self, v: FloatArray, sigma: float) -> FloatArray:
        return horner(_unbiased(self.coefficients, sigma), v)

    def gaussian_variance(self, mu: FloatArray, sigma: float) -> FloatArray:
        return horner(_gaussian_spread(self.coefficients, sigma), mu)

    def gaussian_variance_unbiased(self, v: FloatArray, sigma: float) -> FloatArray:
        return horner(_unbiased(_gaussian_spread(self.coefficients, sigma), sigma), v)

    def gaussian_deviation(self, v: FloatArray, sigma: float) -> FloatArray:
        """The standard deviation at a point drawn towards 0, so that its mean is about that at the exact point (T-DEVIATION)."""
        degree = len(self.coefficients) - 1
        drawn = max(degree - 2, 0) * (1.0 if degree <= 5 else 0.8)
        near = np.where(v > 0, v * v - drawn * sigma**2, 0.0)
        return np.sqrt(self.gaussian_variance(np.sqrt(np.maximum(near, 0.0)), sigma))

    def laplace_variance(self, mu: FloatArray, zero: float, scale: float) -> FloatArray:
        """A polynomial of the exact point, and near total 0 what the constant estimator below it changes (T-LAPLACE-MEAN)."""
        far_away, boundary = _laplace_spread(self.coefficients, zero, scale)
        variance, far = horner(far_away, mu), (np.asarray(mu) - zero) / scale
        near = far < BOUNDARY_REACH
        if np.any(near):
            variance = np.asarray(variance)
            variance[near] += np.exp(-far[near]) * horner(boundary, far[near])
        return variance


def horner(coefficients: tuple[float, ...], v: FloatArray) -> FloatArray:
    """A polynomial at an array; in v**2 where only even or only odd powers occur."""
    if not any(coefficients[1::2]):
        return _horner(coefficients[::2], v * v)
    if not any(coefficients[::2]):
        return _horner(coefficients[1::2], v * v) * v
    return _horner(coefficients, v)


def _horner(coefficients: tuple[float, ...], v: FloatArray) -> FloatArray:
    total = np.full(np.shape(v), coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total *= v
        if coefficient:
            total += coefficient
    return total


def _tuple(polynomial: Any) -> tuple[float, ...]:
    return tuple(map(float, polynomial.coef))


@lru_cache(maxsize=256)
def _derivative(coefficients: tuple[float, ...], times: int = 1) -> tuple[float, ...]:
    return _tuple(Polynomial(coefficients).deriv(times))


@lru_cache(maxsize=256)
def _second_difference(coefficients: tuple[float, ...], h: float) -> tuple[float, ...]:
    """(phi(v+h) - 2 phi(v) + phi(v-h))/h**2 = sum over even j of 2 h**(j-2)/j! phi^(j)(v)."""
    phi: Any = Polynomial(coefficients)
    parts = [phi.deriv(j) * (2 * h ** (j - 2) / math.factorial(j)) for j in range(2, max(len(coefficients), 3), 2)]
    return _tuple(sum(parts[1:], parts[0]))


@lru_cache(maxsize=256)
def _unbiased(coefficients: tuple[float, ...], sigma: float) -> tuple[float, ...]:
    """Each v**m becomes sigma**m He_m(v/sigma) (T-HERMITE)."""
    scaled = [coefficient * sigma**m for m, coefficient in enumerate(coefficients)]
    plain = hermite_e.herme2poly(scaled)
    return tuple(float(coefficient) / sigma**m for m, coefficient in enumerate(plain))


@lru_cache(maxsize=256)
def _gaussian_spread(coefficients: tuple[float, ...], sigma: float) -> tuple[float, ...]:
    """sum over j >= 1 of sigma**(2j)/j! (phi^(j))**2 (T-HERMITE)."""
    phi: Any = Polynomial(coefficients)
    parts = [phi.deriv(j) ** 2 * (sigma ** (2 * j) / math.factorial(j)) for j in range(1, len(coefficients))]
    return _tuple(sum(parts[1:], parts[0]))


@lru_cache(maxsize=256)
def _laplace_spread(
    coefficients: tuple[float, ...], zero: float, scale: float
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The variance far from total 0, in mu; and what is added near it, over exp(-far), in far = (mu - zero)/scale.

    In z = noise/scale the estimator's error is a polynomial d(z); E[d**2; z > -far] is the whole-line moment less the part below
    -far, whose moments are factorials times exp(-far) times truncated exponential series; below ``zero`` the estimator is constant.
    """
    phi: Any = Polynomial(coefficients)
    in_far = Polynomial([zero, scale])
    estimator = phi - scale**2 * phi.deriv(2)
    errors = [estimator.deriv(j) * (scale**j / math.factorial(j)) for j in range(len(coefficients))]
    errors[0] = errors[0] - phi
    squares: list[Any] = [Polynomial([0.0])] * (2 * len(errors) - 1)
    for i, left in enumerate(errors):
        for j, right in enumerate(errors):
            squares[i + j] = squares[i + j] + left * right
    far_away = sum((math.factorial(n) * square for n, square in enumerate(squares) if n % 2 == 0), Polynomial([0.0]))
    floor = float(phi(zero) - scale * phi.deriv()(zero))
    boundary = 0.5 * (floor - phi(in_far)) ** 2
    for n, square in enumerate(squares):
        series = Polynomial([1 / math.factorial(i) for i in range(n + 1)])
        boundary = boundary - (-1) ** n * math.factorial(n) / 2 * square(in_far) * series
    return _tuple(far_away), _tuple(boundary)
