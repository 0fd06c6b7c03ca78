"""Inverses of transforms, and what unbiased estimation needs of them.

With phi the inverse and Gaussian noise, exp(-sigma**2/2 D**2) phi is unbiased and has variance sum_j sigma**(2j)/j! (phi^(j))**2
(T-HERMITE). With Laplace noise, phi - b**2 phi'' is, up to the boundary (T-LAPLACE-MEAN). Proofs: docs/theory/transform.md.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.polynomial import Polynomial, hermite_e

from recordwise.arithmetic import FloatArray, NumpyArithmetic
from recordwise.errors import ParameterError
from recordwise.functions import Function, Log, Power, Sum, Variable

NUMPY = NumpyArithmetic()
PANELS = 12
NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)
BLOCK = 4096
REACH = 60.0
"""Laplace scales after which a tail is left out of a variance: it holds less than 1e-20 of it."""


class Inverse(Protocol):
    """The inverse of a transform, from the noisy scale back to total plus offset."""

    def monotone(self, v: FloatArray) -> FloatArray:
        """Nondecreasing on all reals: the median-unbiased estimator."""

    def jet(self, v: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Value, first and second derivative."""

    def gaussian_mean(self, v: FloatArray, sigma: float) -> FloatArray:
        """Mean-unbiased under Gaussian noise."""

    def gaussian_variance(self, mu: FloatArray, sigma: float) -> FloatArray:
        """Its variance where the exact point is ``mu``."""

    def gaussian_variance_unbiased(self, v: FloatArray, sigma: float) -> FloatArray:
        """An unbiased estimate of that variance."""

    def laplace_variance(self, mu: FloatArray, zero: float, scale: float) -> FloatArray:
        """The variance of the Laplace estimator; ``zero`` is the transformed total 0."""


@dataclass(frozen=True, slots=True)
class PolynomialInverse:
    """phi(v) = sum of coefficient * v**power: the inverse of a root."""

    coefficients: tuple[float, ...]

    def _polynomial(self) -> Polynomial:
        return Polynomial(self.coefficients)

    def monotone(self, v: FloatArray) -> FloatArray:
        """Continued as an odd function: v**k with an even k would turn back up below 0."""
        return np.asarray(np.sign(v) * self._polynomial()(np.abs(v)))

    def jet(self, v: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        phi = self._polynomial()
        return np.asarray(phi(v)), np.asarray(phi.deriv()(v)), np.asarray(phi.deriv(2)(v))

    def gaussian_mean(self, v: FloatArray, sigma: float) -> FloatArray:
        return _unbiased(self._polynomial(), v, sigma)

    def gaussian_variance(self, mu: FloatArray, sigma: float) -> FloatArray:
        return self._series(sigma, lambda square: np.asarray(square(mu)))

    def gaussian_variance_unbiased(self, v: FloatArray, sigma: float) -> FloatArray:
        return self._series(sigma, lambda square: _unbiased(square, v, sigma))

    def _series(self, sigma: float, read: "PolynomialReader") -> FloatArray:
        phi: Any = self._polynomial()
        parts = [
            read(phi.deriv(j) ** 2) * (sigma ** (2 * j) / math.factorial(j)) for j in range(1, len(self.coefficients))
        ]
        return np.asarray(sum(parts))

    def laplace_variance(self, mu: FloatArray, zero: float, scale: float) -> FloatArray:
        """In closed form, expanded around the exact point so that nothing cancels."""
        phi: Any = self._polynomial()
        estimator, floor = phi - scale**2 * phi.deriv(2), float(phi(zero) - scale * phi.deriv()(zero))
        point, far = np.asarray(mu, np.float64), (np.asarray(mu) - zero) / scale
        exact = phi(point)
        taylor = [np.asarray(estimator.deriv(j)(point)) / math.factorial(j) for j in range(1, len(self.coefficients))]
        around = [np.asarray(estimator(point) - exact), *taylor]
        moments = [_laplace_moment(j, far) * scale**j for j in range(2 * len(around))]
        below, gap = 0.5 * np.exp(-far), floor - exact
        mean = sum(c * moments[j] for j, c in enumerate(around)) + gap * below
        square = (
            sum(c * d * moments[i + j] for i, c in enumerate(around) for j, d in enumerate(around)) + gap**2 * below
        )
        return np.asarray(square - mean**2)


def _laplace_moment(order: int, far: FloatArray) -> FloatArray:
    """E[z**order; z > -far] for standard Laplace z."""
    from scipy.special import gammainc

    left = gammainc(order + 1, far)
    return np.asarray(math.factorial(order) / 2 * (1 + (-1) ** order * left))


class PolynomialReader(Protocol):
    def __call__(self, polynomial: Polynomial, /) -> FloatArray: ...


def _unbiased(polynomial: Polynomial, v: FloatArray, sigma: float) -> FloatArray:
    """Each v**m becomes sigma**m He_m(v/sigma)."""
    series = [float(coefficient) * sigma**m for m, coefficient in enumerate(polynomial.coef)]
    return np.asarray(hermite_e.hermeval(v / sigma, series))


@dataclass(frozen=True, slots=True)
class ExponentialInverse:
    """phi(v) = e**v: the inverse of the logarithm."""

    def monotone(self, v: FloatArray) -> FloatArray:
        return np.exp(v)

    def jet(self, v: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        value = np.exp(v)
        return value, value, value

    def gaussian_mean(self, v: FloatArray, sigma: float) -> FloatArray:
        return np.exp(v - sigma**2 / 2)

    def gaussian_variance(self, mu: FloatArray, sigma: float) -> FloatArray:
        return np.asarray(np.exp(2 * mu) * math.expm1(sigma**2))

    def gaussian_variance_unbiased(self, v: FloatArray, sigma: float) -> FloatArray:
        return np.asarray(math.expm1(sigma**2) * np.exp(2 * v - 2 * sigma**2))

    def laplace_variance(self, mu: FloatArray, zero: float, scale: float) -> FloatArray:
        """In closed form: the estimator is (1-b**2) e**v above ``zero`` and constant below; no variance from b = 1/2 on."""
        if scale >= 0.5:
            return np.full(np.shape(mu), np.inf)
        far = np.asarray(mu) - zero
        below = 0.5 * np.exp(-far / scale)
        floor = math.exp(zero) * (1 - scale)
        factor = 1 - scale**2

        def moment(order: int) -> FloatArray:
            left = -np.expm1(-far * (1 / scale + order)) / (2 * (1 + order * scale))
            return np.exp(order * np.asarray(mu)) * (1 / (2 * (1 - order * scale)) + left)

        mean = factor * moment(1) + floor * below
        return np.asarray(factor**2 * moment(2) + floor**2 * below - mean**2)


@dataclass(frozen=True, slots=True)
class FunctionInverse:
    """A user's own inverse that is no polynomial: Laplace noise only, for which every smooth inverse has an unbiased estimator."""

    function: Function

    def monotone(self, v: FloatArray) -> FloatArray:
        return np.asarray(np.sign(v) * self.function.value(NUMPY, np.abs(v)))

    def jet(self, v: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        return jet(self.function, np.asarray(v, np.float64))

    def gaussian_mean(self, v: FloatArray, sigma: float) -> FloatArray:
        raise no_gaussian()

    def gaussian_variance(self, mu: FloatArray, sigma: float) -> FloatArray:
        raise no_gaussian()

    def gaussian_variance_unbiased(self, v: FloatArray, sigma: float) -> FloatArray:
        raise no_gaussian()

    def laplace_variance(self, mu: FloatArray, zero: float, scale: float) -> FloatArray:
        return laplace_variance_by_quadrature(self, mu, zero, scale)


def no_gaussian() -> ParameterError:
    return ParameterError(
        parameter="inverse",
        problem="is no polynomial, and then no unbiased estimator under Gaussian noise is known",
        advice="Use laplace_scale instead of sigma.",
    )


def jet(function: Function, v: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Value and two derivatives of an expression by the chain rule."""
    match function:
        case Variable():
            return v, np.ones_like(v), np.zeros_like(v)
        case Sum(terms, shift):
            parts = [[float(weight) * part for part in jet(inner, v)] for weight, inner in terms]
            value, first, second = (np.asarray(sum(column)) for column in zip(*parts))
            return value + float(shift), first, second
        case Power(base, exponent):
            u, du, ddu = jet(base, v)
            e = float(exponent)
            return u**e, e * u ** (e - 1) * du, e * (e - 1) * u ** (e - 2) * du**2 + e * u ** (e - 1) * ddu
        case Log(argument):
            u, du, ddu = jet(argument, v)
            return np.log(u), du / u, ddu / u - (du / u) ** 2
        case _:
            raise TypeError(type(function).__name__)


def laplace_variance_by_quadrature(inverse: Inverse, mu: FloatArray, zero: float, scale: float) -> FloatArray:
    """For an inverse without closed form: Gauss-Legendre panels on each side of the exact point, a block of cells at a time."""
    flat = np.atleast_1d(np.asarray(mu, np.float64)).ravel()
    blocks = [_quadrature_block(inverse, flat[i : i + BLOCK], zero, scale) for i in range(0, len(flat), BLOCK)]
    return np.concatenate(blocks).reshape(np.shape(mu)) if blocks else flat


def _quadrature_block(inverse: Inverse, mu: FloatArray, zero: float, scale: float) -> FloatArray:
    edges = (np.arange(PANELS + 1) / PANELS) ** 2
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    nodes, weights = (middle[:, None] + half[:, None] * NODES).ravel(), (half[:, None] * WEIGHTS).ravel()
    value, first, _ = inverse.jet(np.array([zero]))
    exact, far = inverse.jet(mu)[0], (mu - zero) / scale
    below, gap = 0.5 * np.exp(-far), float(value[0] - scale * first[0]) - exact
    mean, square = gap * below, gap**2 * below
    for sign, reach in ((1.0, np.full_like(far, REACH)), (-1.0, np.minimum(far, REACH))):
        z = reach[:, None] * nodes
        point, _, second = inverse.jet(mu[:, None] + sign * scale * z)
        error = point - scale**2 * second - exact[:, None]
        mass = reach[:, None] * weights * np.exp(-z) / 2
        mean, square = mean + np.sum(error * mass, axis=1), square + np.sum(error**2 * mass, axis=1)
    return np.asarray(square - mean**2)


def inverse_of(function: Function) -> Inverse:
    """A polynomial where the expression is one, with its Gaussian estimators; any other expression for Laplace noise."""
    coefficients = _polynomial_coefficients(function)
    return FunctionInverse(function) if coefficients is None else PolynomialInverse(coefficients)


def _polynomial_coefficients(function: Function) -> tuple[float, ...] | None:
    terms = function.terms if isinstance(function, Sum) else ((Fraction(1), function),)
    powers: dict[int, Fraction] = {0: function.shift if isinstance(function, Sum) else Fraction(0)}
    for weight, part in terms:
        exponent = part.exponent if isinstance(part, Power) and isinstance(part.base, Variable) else Fraction(1)
        if exponent.denominator != 1 or (exponent == 1 and not isinstance(part, Variable)):
            return None
        powers[int(exponent)] = powers.get(int(exponent), Fraction(0)) + weight
    return tuple(float(powers.get(power, 0)) for power in range(max(powers) + 1))
