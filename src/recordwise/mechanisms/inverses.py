"""Inverses of transforms: polynomial, exponential or custom, with their unbiased estimators.

With phi the inverse and Gaussian noise, exp(-sigma**2/2 D**2) phi is unbiased and has variance sum_j sigma**(2j)/j! (phi^(j))**2
(T-HERMITE). With lattice Laplace noise, phi - b**2 phi'' is unbiased up to the boundary (T-LAPLACE-MEAN). Proofs:
docs/theory/transform.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.polynomial import Polynomial, hermite_e

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray, NumpyArithmetic
from recordwise.exact.functions import Function, Log, Power, Sum, Variable
from recordwise.exact.numbers import constant_ball

# A custom inverse that is not a polynomial. It is available only with Laplace noise, under which every smooth inverse
# has an unbiased estimator; the derivatives it needs are computed in float64 by the chain rule.


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
        """Return phi, its slope and its second derivative.

        The last replaces the second difference; the error is (h/v)**2, less than 1e-9 of it.
        """
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
        """Return the Laplace variance by quadrature.

        For many cells interpolated, accurate to 1e-7.
        """
        flat = np.atleast_1d(np.asarray(mu, np.float64)).ravel()
        by = _by_quadrature if flat.size <= FEW_CELLS else _by_interpolation
        return by(self, flat, zero, scale).reshape(np.shape(mu))


def _by_interpolation(inverse: FunctionInverse, mu: FloatArray, zero: float, scale: float) -> FloatArray:
    """Interpolate the variance's logarithm cubically."""
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
    """Refuse Gaussian noise or too small an offset for an inverse.

    An inverse that is not a polynomial may have unbounded curvature near 0.
    """
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


# Polynomial and exponential inverses, with what unbiased estimation needs from them.


BOUNDARY_REACH = 45.0
"""Laplace scales from total 0 beyond which the boundary changes a variance by less than its last digit."""


@dataclass(frozen=True, slots=True)
class PolynomialInverse:
    """phi(v) = sum of coefficient * v**power, with nonnegative coefficients."""

    coefficients: tuple[float, ...]

    def monotone(self, v: FloatArray) -> FloatArray:
        """Return the inverse extended to an odd function.

        v**k with an even k would increase again below 0.
        """
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
        return horner(_unbiased_coefficients(self.coefficients, sigma), v)

    def gaussian_variance(self, mu: FloatArray, sigma: float) -> FloatArray:
        return horner(_gaussian_spread(self.coefficients, sigma), mu)

    def gaussian_variance_unbiased(self, v: FloatArray, sigma: float) -> FloatArray:
        return horner(_unbiased_coefficients(_gaussian_spread(self.coefficients, sigma), sigma), v)

    def gaussian_deviation(self, v: FloatArray, sigma: float) -> FloatArray:
        """Return the standard deviation at a point shrunk toward 0.

        Its mean is then about that at the exact point (T-DEVIATION).
        """
        degree = len(self.coefficients) - 1
        drawn = max(degree - 2, 0) * (1.0 if degree <= 5 else 0.8)
        near = np.where(v > 0, v * v - drawn * sigma**2, 0.0)
        return np.sqrt(self.gaussian_variance(np.sqrt(np.maximum(near, 0.0)), sigma))

    def laplace_variance(self, mu: FloatArray, zero: float, scale: float) -> FloatArray:
        """Return the variance under Laplace noise (T-LAPLACE-MEAN).

        A polynomial in the exact point, plus near total 0 the effect of the constant estimator below it.
        """
        far_away, boundary = _laplace_spread(self.coefficients, zero, scale)
        variance, far = horner(far_away, mu), (np.asarray(mu) - zero) / scale
        near = far < BOUNDARY_REACH
        if np.any(near):
            variance = np.asarray(variance)
            variance[near] += np.exp(-far[near]) * horner(boundary, far[near])
        return variance


def horner(coefficients: tuple[float, ...], v: FloatArray) -> FloatArray:
    """Evaluate a polynomial at an array."""
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
    """Return the coefficients of the second difference.

    (phi(v+h) - 2 phi(v) + phi(v-h))/h**2 = sum over even j of 2 h**(j-2)/j! phi^(j)(v).
    """
    phi: Any = Polynomial(coefficients)
    parts = [phi.deriv(j) * (2 * h ** (j - 2) / math.factorial(j)) for j in range(2, max(len(coefficients), 3), 2)]
    return _tuple(sum(parts[1:], parts[0]))


@lru_cache(maxsize=256)
def _unbiased_coefficients(coefficients: tuple[float, ...], sigma: float) -> tuple[float, ...]:
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
    """Return the Laplace variance far from total 0 and near it.

    Far in mu; near, the addition divided by exp(-far), in far = (mu - zero)/scale.

    In z = noise/scale the estimator's error is a polynomial d(z); E[d**2; z > -far] is the whole-line moment
    minus the part below -far, whose moments are factorials times exp(-far) times truncated exponential series;
    below ``zero`` the estimator is constant.
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


class Inverse(Protocol):
    """The inverse phi of a transform."""

    def monotone(self, v: FloatArray) -> FloatArray:
        """Nondecreasing on all reals: the median-unbiased estimator."""

    def stencil(self, v: FloatArray, h: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return phi(v), its slope and its second difference.

        (phi(v+h) - 2 phi(v) + phi(v-h))/h**2.
        """

    def rise(self, v: float, h: float) -> float:
        """(phi(v+h) - phi(v))/h."""

    def gaussian_mean(self, v: FloatArray, sigma: float) -> FloatArray:
        """Mean-unbiased under Gaussian noise."""

    def gaussian_variance(self, mu: FloatArray, sigma: float) -> FloatArray:
        """Its variance if the exact point is ``mu``."""

    def gaussian_variance_unbiased(self, v: FloatArray, sigma: float) -> FloatArray:
        """An unbiased estimate of that variance."""

    def gaussian_deviation(self, v: FloatArray, sigma: float) -> FloatArray:
        """The standard error printed under Gaussian noise (T-DEVIATION)."""

    def laplace_variance(self, mu: FloatArray, zero: float, scale: float) -> FloatArray:
        """The variance of the Laplace estimator; ``zero`` is the transformed total 0."""


def inverse_of(function: Function) -> Inverse:
    """Return the inverse, as a polynomial if possible.

    Only a polynomial has Gaussian estimators.
    """
    coefficients = polynomial_coefficients(function)
    return FunctionInverse(function) if coefficients is None else PolynomialInverse(tuple(map(float, coefficients)))


def polynomial_coefficients(function: Function) -> list[Fraction] | None:
    """Return a polynomial's coefficients from the constant up, or None."""
    match function:
        case Variable():
            return [Fraction(0), Fraction(1)]
        case Sum(terms, shift):
            total = [shift]
            for weight, part in terms:
                inner = polynomial_coefficients(part)
                if inner is None:
                    return None
                total = _add_polynomials(total, [weight * coefficient for coefficient in inner])
            return total
        case Power(base, exponent) if exponent.denominator == 1:
            inner = polynomial_coefficients(base)
            return None if inner is None else _power(inner, int(exponent))
        case _:
            return None


def _add_polynomials(left: list[Fraction], right: list[Fraction]) -> list[Fraction]:
    size = max(len(left), len(right))
    padded = [[*terms, *[Fraction(0)] * (size - len(terms))] for terms in (left, right)]
    return [a + b for a, b in zip(*padded)]


def _power(base: list[Fraction], exponent: int) -> list[Fraction]:
    product = [Fraction(1)]
    for _ in range(exponent):
        shifted = [[*[Fraction(0)] * i, *[a * b for b in base]] for i, a in enumerate(product)]
        product = []
        for row in shifted:
            product = _add_polynomials(product, row)
    return product


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
        """Return an unbiased estimate of the standard deviation.

        sqrt(exp(sigma**2) - 1) exp(v - sigma**2/2) is unbiased for sqrt(exp(sigma**2) - 1) exp(mu).
        """
        return np.asarray(math.sqrt(-math.expm1(-(sigma**2))) * np.exp(v))

    def laplace_variance(self, mu: FloatArray, zero: float, scale: float) -> FloatArray:
        """Return the Laplace variance in closed form (T-LAPLACE-MEAN).

        Including the constant estimator below ``zero``; infinite from scale 1/2 on.
        """
        b = scale
        if b >= 0.5:
            return np.full(np.shape(mu), np.inf)
        far = (np.asarray(mu) - zero) / b
        boundary = np.exp(-far * (1 + 2 * b)) * (((1 - b) * b) ** 2 / (2 * (1 + 2 * b)))
        return np.asarray(np.exp(2 * np.asarray(mu)) * (b**2 * (2 + b**2) / (1 - 4 * b**2) - boundary))


NARROW = 64


def laplace_mean(
    inverse: Inverse, v: FloatArray, *, zero: float, h: float, scale: float
) -> tuple[FloatArray, FloatArray]:
    """Return mean-unbiased estimates of phi and of its variance.

    At grid points v. Above the grid point ``zero`` of total 0: phi - kappa * (second difference); at and below
    it, where no exact point is, constant.
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
    """Return an unbiased estimate of a smooth function.

    Of the exact point: g - scale**2 g'' above ``zero``, constant at and below it. Derivatives are differences
    over a 64th of a noise scale; the estimate is infinite where the function is.
    """
    d = scale / NARROW
    middle = np.maximum(v, zero + d)
    with np.errstate(invalid="ignore", over="ignore"):
        before, here, after = (function(middle + k * d) for k in (-1, 0, 1))
        first, second, third = (float(function(np.array([zero + k * d]))[0]) for k in range(3))
        floor = first - NARROW * (-1.5 * first + 2 * second - 0.5 * third)
        found = np.where(v > zero, here - NARROW**2 * (before - 2 * here + after), floor)
    return np.where(np.isfinite(found), found, np.inf)
