"""A user's own inverse that is no polynomial: Laplace noise only, for which every smooth inverse has an unbiased estimator."""

from dataclasses import dataclass

import numpy as np

from recordwise.arithmetic import FloatArray, NumpyArithmetic
from recordwise.errors import ParameterError
from recordwise.functions import Function
from recordwise.mechanisms.derivatives import jet

NUMPY = NumpyArithmetic()
PANELS = 12
NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)
BLOCK = 4096
REACH = 60.0
"""Laplace scales after which a tail is left out of a variance: it holds less than 1e-20 of it."""


@dataclass(frozen=True, slots=True)
class FunctionInverse:
    """phi is an expression, continued as an odd function below 0."""

    function: Function

    def monotone(self, v: FloatArray) -> FloatArray:
        return np.asarray(np.copysign(self.function.value(NUMPY, np.abs(v)), v))

    def stencil(self, v: FloatArray, h: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The second derivative stands for the second difference: off by (h/v)**2, less than 1e-9 of it."""
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

    def laplace_variance(self, mu: FloatArray, zero: float, scale: float) -> FloatArray:
        """Gauss-Legendre panels on each side of the exact point, a block of cells at a time."""
        flat = np.atleast_1d(np.asarray(mu, np.float64)).ravel()
        blocks = [_by_quadrature(self, flat[i : i + BLOCK], zero, scale) for i in range(0, len(flat), BLOCK)]
        return np.concatenate(blocks).reshape(np.shape(mu)) if blocks else flat


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


def no_gaussian() -> ParameterError:
    return ParameterError(
        parameter="inverse",
        problem="is no polynomial, and then no unbiased estimator under Gaussian noise is known",
        advice="Use laplace_scale instead of sigma.",
    )
