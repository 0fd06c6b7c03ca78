"""The law of a transform's estimate: P(value <= y) at an exact total, in closed form (T-VALUE-LAW, docs/theory/planning.md).

The estimate is g(v) of the noisy point v = f(total + offset) + noise. Where g is a polynomial of degree up to 4 or an exponential,
the set {v : g(v) <= y} is a union of intervals known in closed form, and the noise law gives their probability. The grid is at
least 2**20 times finer than the noise, so the continuous law stands for it: an error of probability below 1e-6.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

import numpy as np

from recordwise.exact.arithmetic import FloatArray, NumpyArithmetic, normal_cdf
from recordwise.exact.functions import Function

Intervals: TypeAlias = list[tuple[FloatArray, FloatArray]]
NUMPY = NumpyArithmetic()


class Inverse(Protocol):
    """A mean-unbiased estimator g of total + offset."""

    def below(self, y: FloatArray) -> Intervals:
        """The intervals of v with g(v) <= y."""


@dataclass(frozen=True, slots=True)
class Exponential:
    """g(v) = factor * exp(v)."""

    factor: float

    def below(self, y: FloatArray) -> Intervals:
        with np.errstate(divide="ignore", invalid="ignore"):
            end = np.where(y > 0, np.log(np.maximum(y, 0.0) / self.factor), -np.inf)
        return [(np.full(y.shape, -np.inf), end)]


@dataclass(frozen=True, slots=True)
class Polynomial:
    """g(v) = v**degree + linear * v**(degree - 2) + constant."""

    degree: int
    linear: float
    constant: float

    def below(self, y: FloatArray) -> Intervals:
        level = y - self.constant
        if self.degree == 1:
            return [(np.full(y.shape, -np.inf), level)]
        if self.degree == 2:
            return _symmetric(np.zeros_like(level), level)
        if self.degree == 3:
            return _cubic(self.linear, level)
        middle = -self.linear / 2
        root = np.sqrt(np.maximum(middle**2 + level, 0.0))
        none = middle**2 + level < 0
        return _symmetric(np.where(none, 0.0, middle - root), np.where(none, -1.0, middle + root))


def _symmetric(low: FloatArray, high: FloatArray) -> Intervals:
    """The v with low <= v**2 <= high, as two intervals; empty where high is negative."""
    outer, inner = np.sqrt(np.maximum(high, 0.0)), np.sqrt(np.maximum(low, 0.0))
    inner = np.where(high < 0, outer, np.minimum(inner, outer))
    return [(-outer, -inner), (inner, outer)]


def _cubic(linear: float, level: FloatArray) -> Intervals:
    """v**3 + linear * v <= level with linear < 0: up to the smallest root, and between the other two where there are three."""
    turn = np.sqrt(-linear / 3)
    ratio = level / (2 * turn**3)
    three = np.abs(ratio) <= 1
    angle = np.arccos(np.clip(ratio, -1.0, 1.0)) / 3
    roots = [2 * turn * np.cos(angle - 2 * np.pi * k / 3) for k in (0, 1, 2)]
    least, middle, most = np.sort(np.stack(roots), axis=0)
    beyond = np.maximum(np.abs(ratio), 1.0)
    single = 2 * turn * np.copysign(np.cosh(np.arccosh(beyond) / 3), ratio)
    return [
        (np.full(level.shape, -np.inf), np.where(three, least, single)),
        (np.where(three, middle, 0.0), np.where(three, most, 0.0)),
    ]


class Transforming(Protocol):
    """What the law needs to know about a transform."""

    @property
    def function(self) -> Function: ...
    @property
    def offset(self) -> Fraction: ...
    @property
    def sigma(self) -> Fraction | None: ...
    @property
    def laplace_scale(self) -> Fraction | None: ...


@dataclass(frozen=True, slots=True)
class ValueLaw:
    """The law of ``value`` under a root or log transform, for arrays of totals."""

    mechanism: Transforming
    inverse: Inverse
    floor: float | None
    """Laplace noise only: the estimate at and below the point of total 0, minus the offset."""

    @classmethod
    def of_log(cls, mechanism: Transforming) -> "ValueLaw":
        """For Gaussian noise by T-HERMITE, for Laplace noise by T-LAPLACE-MEAN."""
        if mechanism.sigma is not None:
            return cls(mechanism, Exponential(float(np.exp(-(float(mechanism.sigma) ** 2) / 2))), None)
        scale = float(mechanism.laplace_scale or 0)
        return cls(mechanism, Exponential(1 - scale**2), -float(mechanism.offset) * scale)

    @classmethod
    def of_root(cls, mechanism: Transforming, degree: int | Fraction) -> "ValueLaw | None":
        """For roots whose inverse is a polynomial of degree up to 4, by the same theorems; None for others."""
        if degree not in CLOSED_DEGREES:
            return None
        degree, offset = int(degree), float(mechanism.offset)
        if mechanism.sigma is not None:
            return cls(mechanism, _hermite(degree, float(mechanism.sigma) ** 2), None)
        scale = float(mechanism.laplace_scale or 0)
        floor = -scale * degree * offset ** ((degree - 1) / degree) if degree > 1 else -scale
        linear = -(scale**2) * degree * (degree - 1)
        return cls(mechanism, Polynomial(degree, linear if degree > 2 else 0.0, linear if degree == 2 else 0.0), floor)

    def within(self, totals: FloatArray, reach: FloatArray) -> FloatArray:
        """P(|value - total| <= reach) at each exact total."""
        below = np.nextafter(totals - reach, -np.inf)
        return self.cdf(totals, totals + reach) - self.cdf(totals, below)

    def cdf(self, totals: FloatArray, y: FloatArray) -> FloatArray:
        """P(value <= y) at each exact total."""
        function = self.mechanism.function
        center = np.asarray(function.value(NUMPY, np.asarray(totals, np.float64)))
        width = float(self.mechanism.sigma or self.mechanism.laplace_scale or 0)
        noise = _normal if self.mechanism.sigma is not None else _laplace
        start = -np.inf if self.floor is None else float(function.at_zero())
        chance: FloatArray = np.zeros(np.broadcast(totals, y).shape)
        at_start: FloatArray = np.zeros_like(center)
        if self.floor is not None:
            at_start = noise((start - center) / width)
            chance += np.where(y >= self.floor, at_start, 0.0)
        for low, high in self.inverse.below(np.asarray(y, np.float64) + float(self.mechanism.offset)):
            first, last = np.maximum(low, start), np.maximum(high, start)
            # Mostly all that is above the start: the noise below it is known.
            below = at_start if np.all(first == start) else noise((first - center) / width)
            chance += np.maximum(noise((last - center) / width) - below, 0.0)
        return chance


CLOSED_DEGREES = (1, 2, 3, 4)


def _hermite(degree: int, s2: float) -> Polynomial:
    """sigma**k He_k(v/sigma)."""
    return {
        1: Polynomial(1, 0.0, 0.0),
        2: Polynomial(2, 0.0, -s2),
        3: Polynomial(3, -3 * s2, 0.0),
        4: Polynomial(4, -6 * s2, 3 * s2**2),
    }[degree]


def _normal(z: Any) -> FloatArray:
    return normal_cdf(np.asarray(z, np.float64))


def _laplace(z: Any) -> FloatArray:
    with np.errstate(over="ignore"):
        return np.asarray(np.where(z < 0, np.exp(np.minimum(z, 0.0)) / 2, 1 - np.exp(-np.maximum(z, 0.0)) / 2))
