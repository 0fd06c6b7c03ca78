"""The size of a cell's error, from the noise laws drawn.

Quantiles of abs(value - total), without simulation. For additive noise it is the quantile of the lattice
law, the same in every cell; for transforms the closed form of T-VALUE-LAW, solved by bisection. Clamping
adds the amount it cuts off. Custom transforms and roots of a degree above 4 are integrated numerically.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

import numpy as np

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray, NumpyArithmetic, normal_cdf
from recordwise.exact.functions import Function
from recordwise.exact.numbers import Number
from recordwise.mechanisms.base import BoolArray, Mechanism, read_confidence
from recordwise.mechanisms.calibration import solve
from recordwise.noise.laws import LatticeLaw

MOST_POINTS = 1024
"""Up to this many distinct totals are solved individually; beyond that, this many over their range, interpolated on log scales."""
BISECTIONS = 60
NARROW = 1e-12
"""How closely a reach is known, relatively, before bisection ends."""
MOST_SUMMED = 1000
ROUNDING = 1e-9
"""The tolerance for float64 rounding of probabilities and products when they are compared with a goal."""
DIGITS = 6
"""Significant digits of a parameter that planning finds, so that it is readable in a plan."""


class AdditiveNoise(Mechanism):
    """Noise that is the same in every cell, as planning sees it.

    Computed from the lattice law that is drawn. ``kept`` are the totals of clamped contributions; only
    mechanisms that clamp use them.
    """

    __slots__ = ()

    def drawn_law(self, step: Number) -> tuple[LatticeLaw, Fraction]:
        """The law that is drawn, in lattice steps, and its lattice."""
        raise NotImplementedError

    def error_quantiles(
        self, totals: FloatArray, *, confidence: float = 0.95, step: Number = 1, kept: FloatArray | None = None
    ) -> FloatArray:
        law, lattice = self.drawn_law(step)
        return np.full(np.shape(totals), law.quantile((1 + read_confidence(confidence)) / 2) * float(lattice))

    def mean_errors(self, totals: FloatArray, *, step: Number = 1) -> FloatArray:
        law, lattice = self.drawn_law(step)
        return np.full(np.shape(totals), law.mean_abs * float(lattice))

    def meets(
        self,
        totals: FloatArray,
        reach: FloatArray,
        *,
        confidence: float,
        step: Number = 1,
        kept: FloatArray | None = None,
    ) -> BoolArray:
        law, lattice = self.drawn_law(step)
        return np.asarray(reach * (1 + ROUNDING) >= law.quantile((1 + confidence) / 2) * float(lattice))


def over_totals(solve: Callable[[FloatArray], FloatArray], totals: FloatArray) -> FloatArray:
    """Evaluate a smooth function of the total at every cell."""
    if not _are_many(totals):
        different, places = np.unique(totals, return_inverse=True)
        return np.asarray(solve(different)[places])
    inside = totals[totals > 0]
    spread = np.geomspace(inside.min(), inside.max(), MOST_POINTS)
    knots = np.unique(np.append(spread, totals.min()))
    logs = np.log(solve(knots))
    return np.asarray(np.exp(np.interp(np.log1p(totals), np.log1p(knots), logs)))


def _are_many(totals: FloatArray) -> bool:
    """Return whether there are too many totals to solve individually."""
    some = totals[: 8 * MOST_POINTS]
    return len(np.unique(some)) > MOST_POINTS or (len(some) < len(totals) and len(np.unique(totals)) > MOST_POINTS)


def smallest(inside: Callable[[FloatArray], FloatArray], confidence: float, start: FloatArray) -> FloatArray:
    """Return the smallest reach with at least ``confidence`` for each total."""
    high = start.copy()
    while (short := inside(high) < confidence).any():
        high[short] *= 2
    low = np.where(inside(high / 2) < confidence, high / 2, 0.0)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        enough = inside(middle) >= confidence
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        if np.all(high - low <= NARROW * high):
            break
    return high


def lattice_cdf(k: FloatArray, sigma: float) -> FloatArray:
    """Return P(Z <= k) of the discrete Gaussian in float64.

    Beyond a thousand steps per sigma, the normal law with a half-step shift.
    """
    if sigma > MOST_SUMMED:
        return normal_cdf((k + 0.5) / sigma)
    reach = int(np.ceil(10 * sigma)) + 1
    below = np.cumsum(np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2))
    place = np.clip(k, -reach - 1, reach).astype(np.int64) + reach
    return np.where(place < 0, 0.0, below[np.maximum(place, 0)] / below[-1])


def short(value: Fraction, *, up: bool) -> Fraction:
    """Return a six-digit number just above or below a fraction."""
    rounding = "ROUND_CEILING" if up else "ROUND_FLOOR"
    return Fraction(
        Context(prec=DIGITS, rounding=rounding).divide(Decimal(value.numerator), Decimal(value.denominator))
    )


# The law of a transform's estimate: P(value <= y) at an exact total, in closed form (T-VALUE-LAW,
# docs/theory/planning.md). The estimate is g(v) of the noisy point v = f(total + offset) + noise. Where g is a
# polynomial of degree up to 4 or an exponential, the set {v : g(v) <= y} is a union of intervals known in closed
# form, and the noise law gives their probability. The grid is at least 2**20 times finer than the noise, so the
# continuous law stands for it: an error of probability below 1e-6.


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
    """Return the v with low <= v**2 <= high as two intervals."""
    outer, inner = np.sqrt(np.maximum(high, 0.0)), np.sqrt(np.maximum(low, 0.0))
    inner = np.where(high < 0, outer, np.minimum(inner, outer))
    return [(-outer, -inner), (inner, outer)]


def _cubic(linear: float, level: FloatArray) -> Intervals:
    """Return the intervals where a cubic is below a level.

    v**3 + linear * v <= level with linear < 0. Up to the smallest root, and between the other two where there
    are three.
    """
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
    """The law of ``value`` under a root or log transform."""

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
        """Return the law of a root transform, or None.

        For roots whose inverse is a polynomial of degree up to 4.
        """
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
        to_end, to_start = self.cdf(totals, np.stack([totals + reach, below]))
        return np.asarray(to_end - to_start)

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


# The size of a cell's error under noise on a transformed scale.


QUADRATURE = 1 << 14
PAIRS = 1 << 13
GOLDEN = (5**0.5 - 1) / 2
"""Multiples of it, without their whole parts, are spread evenly, and independently enough of their own numbers."""


class TransformAccuracy(Mechanism):
    """The error of a transform, by closed form or by integration."""

    __slots__ = ()

    sigma: Fraction | None
    signed: bool

    def value_law(self) -> ValueLaw | None:
        """The closed-form law of ``value``, if known."""
        return None

    def values_under(self, total: float, noise: FloatArray) -> FloatArray:
        raise NotImplementedError

    def with_noise_scale(self, scale: Fraction) -> "TransformAccuracy":
        raise NotImplementedError

    def error_quantiles(
        self, totals: FloatArray, *, confidence: float = 0.95, step: Number = 1, kept: FloatArray | None = None
    ) -> FloatArray:
        """The bound on |value - total| that holds with probability ``confidence``.

        Of a signed sum ``kept`` has two rows, the positive and the negative part of each total: the errors of both add up.
        """
        chance = read_confidence(confidence)
        if self.signed:
            return self._signed_quantiles(_two_parts(kept), chance)
        return over_totals(lambda points: self._quantiles(points, chance, step), np.asarray(totals, np.float64))

    def chances(
        self, totals: FloatArray, reach: FloatArray, *, step: Number = 1, kept: FloatArray | None = None
    ) -> FloatArray:
        """P(|value - total| <= reach) for each cell."""
        law = self.value_law()
        return self._integrated_chances(totals, reach) if law is None else law.within(totals, reach)

    def meets(
        self,
        totals: FloatArray,
        reach: FloatArray,
        *,
        confidence: float,
        step: Number = 1,
        kept: FloatArray | None = None,
    ) -> BoolArray:
        if self.signed:
            return np.asarray(self._signed_quantiles(_two_parts(kept), confidence) <= reach * (1 + ROUNDING))
        return np.asarray(self.chances(totals, reach, step=step) >= confidence - ROUNDING)

    def most_noise(
        self, total: float, reach: float, *, confidence: float, step: Number = 1, kept: float | None = None
    ) -> "TransformAccuracy | None":
        """The same with the most noise for a goal, to six digits."""

        def missed(scale: Fraction) -> float:
            try:
                made = self.with_noise_scale(scale)
            except ParameterError:
                return 1.0
            return 1 - float(made.chances(np.array([total]), np.array([reach]), step=step)[0])

        return self.with_noise_scale(short(solve(missed, 1 - confidence, rising=True), up=False))

    def _quantiles(self, totals: FloatArray, confidence: float, step: Number) -> FloatArray:
        law = self.value_law()
        if law is None:
            place = min(int(np.ceil(confidence * QUADRATURE)), QUADRATURE - 1)
            return np.array([np.partition(each, place)[place] for each in self._sampled_errors(totals)])
        with np.errstate(over="ignore", invalid="ignore"):
            start = np.nan_to_num(np.sqrt(self.variance(totals, step=step)), nan=1.0, posinf=1e300)
        return smallest(lambda reach: law.within(totals, reach), confidence, np.maximum(start, 1e-12 * (1 + totals)))

    def _integrated_chances(self, totals: FloatArray, reach: FloatArray) -> FloatArray:
        pairs, places = np.unique(np.stack([totals, reach]), axis=1, return_inverse=True)
        found = [np.mean(each <= r) for each, r in zip(self._sampled_errors(pairs[0]), pairs[1])]
        return np.array(found)[places.ravel()]

    def _sampled_errors(self, totals: FloatArray) -> Iterator[FloatArray]:
        """Errors at equally likely points of the noise."""
        noise = self._noise_at((np.arange(QUADRATURE) + 0.5) / QUADRATURE)
        for total in totals:
            yield np.abs(self.values_under(float(total), noise) - total)

    def _noise_at(self, chances: FloatArray) -> FloatArray:
        """The quantiles of the noise, in units of its scale."""
        from scipy.special import ndtri

        if self.sigma is not None:
            return np.asarray(ndtri(chances))
        return np.where(chances < 0.5, np.log(2 * chances), -np.log(2 - 2 * chances))

    def _signed_quantiles(self, parts: FloatArray, confidence: float) -> FloatArray:
        """Return quantiles from equally likely pairs of noises."""
        pairs, places = np.unique(parts, axis=1, return_inverse=True)
        numbers: FloatArray = np.arange(PAIRS, dtype=np.float64) + 0.5
        above = self._noise_at(numbers / PAIRS)
        below = self._noise_at(np.asarray(np.fmod(numbers * GOLDEN, 1), np.float64))
        sides = zip(
            (self.values_under(float(total), above) - total for total in pairs[0]),
            (self.values_under(float(total), below) - total for total in pairs[1]),
        )
        place = min(int(np.ceil(confidence * PAIRS)), PAIRS - 1)
        found = [np.partition(np.abs(one - other), place)[place] for one, other in sides]
        return np.array(found)[places.ravel()]


def _two_parts(kept: FloatArray | None) -> FloatArray:
    if kept is None or np.ndim(kept) != 2:
        raise ParameterError(
            parameter="mechanism",
            problem="is signed: its error depends on the positive and the negative part of each total",
            advice="Pass both parts as kept, in two rows.",
        )
    return np.asarray(kept, np.float64)
