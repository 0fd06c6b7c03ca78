"""A custom inverse that is not a polynomial. It is available only with Laplace noise, under which every smooth inverse has an
unbiased estimator; the derivatives it needs are computed in float64 by the chain rule.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray, NumpyArithmetic
from recordwise.exact.functions import Function, Log, Power, Sum, Variable
from recordwise.exact.numbers import constant_ball


def jet(function: Function, v: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Value, first and second derivative."""
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


def slope(function: Function, v: FloatArray) -> FloatArray:
    """The first derivative; infinite where it does not exist."""
    return _value_and_slope(function, v)[1]


def _value_and_slope(function: Function, v: FloatArray) -> tuple[FloatArray, FloatArray]:
    match function:
        case Variable():
            return v, np.ones_like(v)
        case Sum(terms, shift):
            parts = [[float(weight) * part for part in _value_and_slope(inner, v)] for weight, inner in terms]
            value, first = (np.asarray(sum(column)) for column in zip(*parts))
            return value + float(shift), first
        case Power(base, exponent):
            u, du = _value_and_slope(base, v)
            with np.errstate(divide="ignore"):
                return u ** float(exponent), float(exponent) * u ** (float(exponent) - 1) * du
        case Log(argument):
            u, du = _value_and_slope(argument, v)
            return np.log(u), du / u
        case _:
            raise TypeError(type(function).__name__)


NUMPY = NumpyArithmetic()
PANELS = 12
NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)
FEW_CELLS = 256
NODES_PER_UNIT = 32
SMOOTH = 8
"""Total 0 is at least this fraction of a noise scale from where an inverse may stop being smooth (T-LAPLACE-MEAN)."""
REACH = 60.0
"""Laplace scales beyond which a tail is left out of a variance: it contributes less than 1e-20 of it."""


@dataclass(frozen=True, slots=True)
class FunctionInverse:
    """phi is an expression, extended to an odd function below 0."""

    function: Function

    def monotone(self, v: FloatArray) -> FloatArray:
        return np.asarray(np.copysign(self.function.value(NUMPY, np.abs(v)), v))

    def stencil(self, v: FloatArray, h: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The second derivative replaces the second difference; the error is (h/v)**2, less than 1e-9 of it."""
        return jet(self.function, np.asarray(v, np.float64))

    def rise(self, v: float, h: float) -> float:
        _, first, second = jet(self.function, np.array([v]))
        return float(first[0] + h / 2 * second[0])

    def gaussian_mean(self, v: FloatArray, sigma: float) -> FloatArray:
        raise no_gaussian()

    def gaussian_variance(self, mu: FloatArray, sigma: float) -> FloatArray:
        raise no_gaussian()

    def gaussian_variance_unbiased(self, v: FloatArray, sigma: float) -> FloatArray:
        raise no_gaussian()

    def gaussian_deviation(self, v: FloatArray, sigma: float) -> FloatArray:
        raise no_gaussian()

    def laplace_variance(self, mu: FloatArray, zero: float, scale: float) -> FloatArray:
        """By quadrature; for many cells, interpolated between quadratures at fixed points, accurate to 1e-7."""
        flat = np.atleast_1d(np.asarray(mu, np.float64)).ravel()
        by = _by_quadrature if flat.size <= FEW_CELLS else _by_interpolation
        return by(self, flat, zero, scale).reshape(np.shape(mu))


def _by_interpolation(inverse: FunctionInverse, mu: FloatArray, zero: float, scale: float) -> FloatArray:
    """Cubic interpolation of the variance's logarithm through the four nearest points, equally spaced in asinh(distance from 0)."""
    place = np.arcsinh((mu - zero) / scale) * NODES_PER_UNIT
    left = np.maximum(np.floor(place).astype(np.int64) - 1, 0)
    known = _logarithms(inverse, zero, scale, 4 + 256 * (int(left.max()) // 256 + 1))
    t = place - left
    corners = [known[left + i] for i in range(4)]
    weights = [-(t - 1) * (t - 2) * (t - 3) / 6, t * (t - 2) * (t - 3) / 2]
    weights += [-t * (t - 1) * (t - 3) / 2, t * (t - 1) * (t - 2) / 6]
    return np.asarray(np.exp(sum(weight * corner for weight, corner in zip(weights, corners))))


@lru_cache(maxsize=16)
def _logarithms(inverse: FunctionInverse, zero: float, scale: float, count: int) -> FloatArray:
    return np.log(_by_quadrature(inverse, zero + scale * np.sinh(np.arange(count) / NODES_PER_UNIT), zero, scale))


def _by_quadrature(inverse: FunctionInverse, mu: FloatArray, zero: float, scale: float) -> FloatArray:
    edges = (np.arange(PANELS + 1) / PANELS) ** 2
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    nodes, weights = (middle[:, None] + half[:, None] * NODES).ravel(), (half[:, None] * WEIGHTS).ravel()
    start, first, _ = (float(part[0]) for part in jet(inverse.function, np.array([zero])))
    exact, far = inverse.monotone(mu), (mu - zero) / scale
    square = 0.5 * np.exp(-far) * (start - scale * first - exact) ** 2
    for sign, reach in ((1.0, np.full_like(far, REACH)), (-1.0, np.minimum(far, REACH))):
        z = reach[:, None] * nodes
        point, _, second = jet(inverse.function, mu[:, None] + sign * scale * z)
        error = point - scale**2 * second - exact[:, None]
        square = square + np.sum(error**2 * (reach[:, None] * weights * np.exp(-z) / 2), axis=1)
    return np.asarray(square)


def check_smooth(function: Function, laplace_scale: Fraction | None) -> None:
    """An inverse that is not a polynomial may have unbounded curvature near 0; total 0 must stay away from there."""
    if laplace_scale is None:
        raise no_gaussian()
    if not function.at_zero() >= constant_ball(laplace_scale / SMOOTH):
        raise ParameterError(
            parameter="offset",
            problem=f"is too small for this inverse: f(offset) must be at least a {SMOOTH}th of the noise scale",
            advice="Raise the offset.",
        )


def no_gaussian() -> ParameterError:
    return ParameterError(
        parameter="inverse",
        problem="is not a polynomial, and no unbiased estimator is known for it under Gaussian noise",
        advice="Use laplace_scale instead of sigma.",
    )
