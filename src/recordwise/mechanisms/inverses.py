"""Inverses of transforms, and what unbiased estimation needs of them.

With phi the inverse and Gaussian noise, exp(-sigma**2/2 D**2) phi is unbiased and has variance sum_j sigma**(2j)/j! (phi^(j))**2
(T-HERMITE). With Laplace noise, phi - b**2 phi'' is, up to the boundary (T-LAPLACE-MEAN). Proofs: docs/theory/transform.md.
"""

from fractions import Fraction
from typing import Protocol

from recordwise.arithmetic import FloatArray
from recordwise.functions import Function, Power, Sum, Variable
from recordwise.mechanisms.function_inverse import FunctionInverse
from recordwise.mechanisms.polynomial_inverse import PolynomialInverse


class Inverse(Protocol):
    """The inverse phi of a transform, from the noisy scale back to total plus offset."""

    def monotone(self, v: FloatArray) -> FloatArray:
        """Nondecreasing on all reals: the median-unbiased estimator."""

    def stencil(self, v: FloatArray, h: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """phi(v), its slope, and its second difference (phi(v+h) - 2 phi(v) + phi(v-h))/h**2."""

    def rise(self, v: float, h: float) -> float:
        """(phi(v+h) - phi(v))/h."""

    def gaussian_mean(self, v: FloatArray, sigma: float) -> FloatArray:
        """Mean-unbiased under Gaussian noise."""

    def gaussian_variance(self, mu: FloatArray, sigma: float) -> FloatArray:
        """Its variance where the exact point is ``mu``."""

    def gaussian_variance_unbiased(self, v: FloatArray, sigma: float) -> FloatArray:
        """An unbiased estimate of that variance."""

    def gaussian_deviation(self, v: FloatArray, sigma: float) -> FloatArray:
        """The standard error printed under Gaussian noise (T-DEVIATION)."""

    def laplace_variance(self, mu: FloatArray, zero: float, scale: float) -> FloatArray:
        """The variance of the Laplace estimator; ``zero`` is the transformed total 0."""


def inverse_of(function: Function) -> Inverse:
    """A polynomial where the expression is one, with its Gaussian estimators; any other expression for Laplace noise."""
    coefficients = polynomial_coefficients(function)
    return FunctionInverse(function) if coefficients is None else PolynomialInverse(tuple(map(float, coefficients)))


def polynomial_coefficients(function: Function) -> list[Fraction] | None:
    """The coefficients from the constant up, or None where the expression is no polynomial."""
    match function:
        case Variable():
            return [Fraction(0), Fraction(1)]
        case Sum(terms, shift):
            total = [shift]
            for weight, part in terms:
                inner = polynomial_coefficients(part)
                if inner is None:
                    return None
                total = _added(total, [weight * coefficient for coefficient in inner])
            return total
        case Power(base, exponent) if exponent.denominator == 1:
            inner = polynomial_coefficients(base)
            return None if inner is None else _power(inner, int(exponent))
        case _:
            return None


def _added(left: list[Fraction], right: list[Fraction]) -> list[Fraction]:
    size = max(len(left), len(right))
    padded = [[*terms, *[Fraction(0)] * (size - len(terms))] for terms in (left, right)]
    return [a + b for a, b in zip(*padded)]


def _power(base: list[Fraction], exponent: int) -> list[Fraction]:
    product = [Fraction(1)]
    for _ in range(exponent):
        shifted = [[*[Fraction(0)] * i, *[a * b for b in base]] for i, a in enumerate(product)]
        product = []
        for row in shifted:
            product = _added(product, row)
    return product
