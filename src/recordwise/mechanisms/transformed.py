"""The base of mechanisms that add noise on a transformed scale.

The scale is that of a concave f. RootTransform, LogTransform and Transform share this part. A mechanism releases f(total +
offset), rounded to a fine grid, plus lattice noise, and estimates through the inverse. With contributions x >= 0 the change of f
is largest if nothing else is in the cell: a record loses what F(x) = f(x + offset) - f(offset) costs (T-TRANSFORM).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import floor, lcm
from typing import TYPE_CHECKING, Any, ClassVar, Self, Unpack

import numpy as np
from flint import arb, fmpz

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import BallArithmetic, FloatArray, NumpyArithmetic
from recordwise.exact.functions import Function, Power, Sum, Variable
from recordwise.exact.numbers import (
    Number,
    ball,
    constant_ball,
    float_upper,
    midpoint,
    nonnegative,
    positive,
    rational,
    sqrt_upper,
    working_precision,
)
from recordwise.mechanisms.accuracy import TransformAccuracy
from recordwise.mechanisms.base import (
    BLOCK,
    NEARBY,
    SAFE,
    Estimates,
    ExponentArray,
    Fields,
    IntArray,
    Mechanism,
    Noisy,
    NoisyCurve,
    TransformGoals,
    by_blocks,
    difference,
    integers,
    last_digits,
    noised,
    read_confidence,
    read_goals,
    read_step,
    rounded,
    source_of,
    whole_totals,
)
from recordwise.mechanisms.calibration import calibrate, require_companion
from recordwise.mechanisms.gaussian import read_share
from recordwise.mechanisms.inverses import Inverse, laplace_mean, laplace_unbiased
from recordwise.noise.laws import DiscreteGaussian, DiscreteLaplace, discrete_gaussian
from recordwise.noise.randomness import BitSource, is_private
from recordwise.policy.atoms import laplace_zcdp
from recordwise.policy.columns import Measure
from recordwise.policy.constructors import gaussian_transform, laplace_transform
from recordwise.policy.meaning import discrete_laplace_zcdp
from recordwise.policy.policy import Policy

if TYPE_CHECKING:
    from sqlglot import exp


# Rounding f(total + offset) to the nearest point of a dyadic grid. Float64 decides only where it is certain; roots of
# a weighted total are decided in integers, without arbitrary precision.


@dataclass(frozen=True, slots=True)
class Root:
    """(weight * total + shift) ** (1/degree)."""

    weight: Fraction
    shift: Fraction
    degree: int

    def nearest(self, totals: Iterable[int], step: Fraction, grid: Fraction) -> list[int]:
        """Return the nearest grid point of each total's root.

        floor(r + 1/2) for r = root/grid, because n - 1/2 <= r exactly where (2n - 1)**degree <= (2r)**degree.
        """
        unit = (2 / grid) ** self.degree
        slope, start = self.weight * step * unit, self.shift * unit
        below = lcm(slope.denominator, start.denominator)
        a, b = int(slope * below), int(start * below)
        powers = ((a * total + b) // below for total in totals)
        if self.degree == 1:
            return [(power + 1) // 2 for power in powers]
        return [(int(fmpz(power).root(self.degree)) + 1) // 2 for power in powers]


def root_of(function: Function) -> Root | None:
    """Return a function as a root of an affine map, or None."""
    base, degree = function, 1
    if isinstance(function, Power) and function.exponent.numerator == 1:
        base, degree = function.base, function.exponent.denominator
    match base:
        case Variable():
            return Root(Fraction(1), Fraction(0), degree)
        case Sum(((weight, Variable()),), shift):
            return Root(weight, shift, degree)
        case _:
            return None


NUMPY = NumpyArithmetic()
BALLS = BallArithmetic()
FINE_NOISE = 2**20
"""Grid steps per sigma or Laplace scale."""
FINE_DATA = 4096
"""Grid steps in the transform's rise over the first data step."""
FLOAT_ERROR = 2.0**-42
"""The relative error allowed for f in float64 (T-OUTWARD)."""
PRECISIONS = (128, 256, 512, 1024, 4096)


def grid_step(function: Function, step: Fraction, noise: Fraction) -> Fraction:
    """Return a power of two small against noise and data (T-GRID).

    The largest such.
    """
    with working_precision(PRECISIONS[0]):
        rise = midpoint(function.increase(BALLS, ball(step)).lower())
    limit = min(noise / FINE_NOISE, rise / FINE_DATA)
    exponent = limit.numerator.bit_length() - limit.denominator.bit_length()
    power = Fraction(2) ** exponent
    return power if power <= limit else power / 2


def to_grid(function: Function, totals: IntArray, step: Fraction, grid: Fraction) -> IntArray:
    """The grid point nearest to f(total), for nonnegative totals in data steps."""
    flat = totals.ravel()
    points = np.empty(flat.size, np.int64)
    certain = np.empty(flat.size, np.bool_)
    start = abs(float(function.at_zero()))
    for begin in range(0, flat.size, BLOCK):
        part = slice(begin, begin + BLOCK)
        points[part], certain[part] = _in_floats(function, flat[part], step, grid, start)
    places = np.flatnonzero(~certain)
    if places.size:
        exact = nearest_points(function, flat[places].tolist(), step, grid)
        points = points if max(exact) < SAFE else points.astype(object)
        points[places] = integers(exact, (len(exact),))
    return points.reshape(totals.shape)


def _in_floats(
    function: Function, totals: IntArray, step: Fraction, grid: Fraction, start: float
) -> tuple[FloatArray, IntArray]:
    """Return the nearest points, and which are certain.

    Rounding is relative to |f - f(0)| + |f(0)|, which is at most |f| + 2 |f(0)|.
    """
    scaled = function.value(NUMPY, totals.astype(np.float64) * float(step)) / float(grid)
    nearest = np.rint(scaled)
    doubt = (np.abs(scaled) + 2 * start / float(grid)) * FLOAT_ERROR
    # A point beyond 2**42 is uncertain by more than half a step, so whatever is certain fits into 64 bits.
    certain = np.abs(scaled - nearest) + doubt < 0.5
    return np.where(certain, nearest, 0.0), certain


def nearest_points(function: Function, totals: list[int], step: Fraction, grid: Fraction) -> list[int]:
    """Return the nearest grid point of each total, without floats.

    Ties are rounded up.
    """
    root = root_of(function)
    if root is not None:
        return root.nearest(totals, step, grid)
    return [_nearest_by_balls(function, total * step, grid) for total in totals]


def nearest_point(function: Function, total: Fraction, grid: Fraction) -> int:
    """The nearest grid point of one total in the measure's units."""
    return nearest_points(function, [total.numerator], Fraction(1, total.denominator), grid)[0]


def _nearest_by_balls(function: Function, total: Fraction, grid: Fraction) -> int:
    for precision in PRECISIONS:
        with working_precision(precision):
            shifted = function.value(BALLS, ball(total)) / ball(grid) + arb(0.5)
            low, high = floor(midpoint(shifted.lower())), floor(midpoint(shifted.upper()))
            if low == high:
                return low
    # Only an exact tie is still undecided at thousands of bits; both neighbors are then at distance grid/2.
    return high


def grid_values(points: Any, grid: Fraction) -> FloatArray:
    """Return grid points as floats.

    Exact up to 2**53, because the grid is a power of two.
    """
    return np.asarray(points, np.float64) * float(grid)


# The base: release, estimates, losses and intervals.


INVERSE_ERROR = 2.0**-44
"""The relative error allowed for an inverse in float64, including the rounding of its argument and of the offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A transform's inverse with its noise, on a grid."""

    inverse: Inverse
    offset: float
    zero: float
    """f(offset): the transformed total 0."""
    first: float
    """The grid point of total 0."""
    h: float
    """The grid."""
    sigma: float | None
    laplace_scale: float
    last_digits: ExponentArray
    """The last digits of interval ends, by decade."""

    def fields(self, v: FloatArray, reach: float) -> Fields:
        """Return all estimates for a block of cells.

        ``reach`` bounds the noise at the requested confidence.
        """
        value, spread = self.mean(v)
        median = self.inverse.monotone(v) - self.offset
        return value - self.offset, median, self.deviation(v), spread, *self.interval(v, reach)

    def mean(self, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return unbiased estimates of total + offset and its variance."""
        if self.sigma is not None:
            return self.inverse.gaussian_mean(v, self.sigma), self.inverse.gaussian_variance_unbiased(v, self.sigma)
        return laplace_mean(self.inverse, v, zero=self.first, h=self.h, scale=self.laplace_scale)

    def variance(self, mu: FloatArray) -> FloatArray:
        """The variance of the mean-unbiased estimate if the exact point is ``mu``."""
        if self.sigma is not None:
            return self.inverse.gaussian_variance(mu, self.sigma)
        return self.inverse.laplace_variance(mu, self.zero, self.laplace_scale)

    def deviation(self, v: FloatArray) -> FloatArray:
        """Return the published standard error.

        Unbiased for logarithms and under Laplace noise, otherwise nearly so (T-DEVIATION).
        """
        if self.sigma is not None:
            return self.inverse.gaussian_deviation(v, self.sigma)
        return laplace_unbiased(lambda mu: np.sqrt(self.variance(mu)), v, zero=self.zero, scale=self.laplace_scale)

    def interval(self, v: FloatArray, reach: float) -> tuple[FloatArray, FloatArray]:
        """Return both interval ends through the inverse (T-INTERVAL).

        Rounded outward to meaningful digits and truncated at total 0.
        """
        low, high = (self.inverse.monotone(np.maximum(end, self.zero)) for end in (v - reach, v + reach))
        low *= 1 - INVERSE_ERROR
        high *= 1 + INVERSE_ERROR
        low, high = np.maximum(low - self.offset, 0.0), np.maximum(high - self.offset, 0.0)
        return rounded(low, self.last_digits, up=False), rounded(high, self.last_digits, up=True)


class TransformedNoise(TransformAccuracy):
    """A transformation mechanism, defined by four properties."""

    __slots__ = ()

    loss_of_sum: ClassVar[bool] = True
    variance_varies: ClassVar[bool] = True
    logarithmic: ClassVar[bool] = False
    offset: Fraction
    sigma: Fraction | None
    laplace_scale: Fraction | None
    signed: bool

    @property
    def function(self) -> Function:
        """f(x + offset), in the measure's units."""
        raise NotImplementedError

    @property
    def inverse(self) -> Inverse:
        """From the noisy scale back to total + offset."""
        raise NotImplementedError

    def policy(self, measure: Measure | str, *, tight: bool = True) -> Policy:
        """Return the loss of a record, including the grid.

        The papers' continuous policy differs by less than a thousandth.
        """
        summed = Measure.of(measure)
        if summed.signed != self.signed:
            wanted = "signed=True" if summed.signed else "a signed measure"
            raise ParameterError(
                parameter="signed", problem=f"does not fit the measure '{summed.name}'", advice=f"Use {wanted}."
            )
        grid = self.grid(summed.step)
        # Noise that cannot be drawn is refused here, before anything is spent.
        self._law(grid)
        if self.sigma is not None:
            return gaussian_transform(summed, self.function, sigma=self.sigma, grid=grid)
        return laplace_transform(summed, self.function, scale=self.noise_scale, grid=grid)

    def realized_sql(self, measure: str, total: "exp.Expr", *, step: Fraction, dialect: str) -> "exp.Expr":
        """Return SQL of the loss a record really incurred.

        From f of the cell's total with and without it, plus one grid step (T-GRID). ``total`` is the column of the
        cell's exact total in steps. Confidential.
        """
        from sqlglot import exp

        from recordwise.policy.evaluate.sql import evaluator_of, number

        sql, grid = evaluator_of(dialect), self.grid(step)
        whole = sql.multiply(exp.cast(total, exp.DType.DOUBLE), number(float(step)))
        amount: exp.Expression = exp.Abs(
            this=exp.cast(exp.column(exp.to_identifier(measure, quoted=True)), exp.DType.DOUBLE)
        )
        without = exp.Greatest(
            this=exp.Paren(this=exp.Sub(this=whole.copy(), expression=amount.copy())),
            expressions=[number(0.0)],
            ignore_nulls=False,
        )
        rise = self.function.increase
        change = exp.Paren(this=exp.Sub(this=rise(sql, whole), expression=rise(sql, without)))
        shift = sql.add(exp.Greatest(this=change, expressions=[number(0.0)], ignore_nulls=False), number(float(grid)))
        if self.sigma is not None:
            loss = sql.multiply(number(float(1 / (2 * self.sigma**2))), sql.power(shift, Fraction(2)))
        else:
            loss = laplace_zcdp(
                sql, sql.divide(shift, sql.constant(constant_ball(self.noise_scale))), grid / self.noise_scale
            )
        return sql.if_positive(amount, loss)

    def shared(self, share: Number) -> "TransformedNoise":
        """Return the mechanism at a share of the loss.

        For one of several levels: of rho for Gaussian noise, where slightly more noise compensates for a coarser
        grid (T-GRID), and of epsilon for Laplace noise.
        """
        part = read_share(share)
        if self.sigma is not None:
            return self.with_noise(sigma=sqrt_upper(self.sigma**2 / part) * (1 + Fraction(1, FINE_DATA)))
        shared = self.with_noise(laplace_scale=self.noise_scale / part)
        if part < 1 and not np.all(np.isfinite(shared.variance(np.zeros(2)))):
            raise ParameterError(
                parameter="laplace_scale",
                problem=f"cannot be shared: a share of {part} leaves noise without a variance",
                advice="Use less noise, or give each level its own query.",
            )
        return shared

    def recalibrated(self, **goals: Any) -> Self:
        """Return the transform recalibrated, a variance at ``at_total``."""
        if goals.get("variance") is not None and goals.get("at_total") is None:
            raise ParameterError(
                parameter="at_total", problem="is required, because the variance of a transform grows with the total"
            )
        goals.pop("step", None)
        own = {"sigma", "laplace_scale"} & goals.keys()
        return Mechanism.recalibrated(self, **({} if own else {"noise": self._noise_law}), **goals)

    def set_noise(
        self,
        make: Callable[..., "TransformedNoise"],
        sigma: Number | None,
        laplace_scale: Number | None,
        **goals: Unpack[TransformGoals],
    ) -> None:
        """Set sigma or the Laplace scale in a constructor: as given, or as found from a goal."""
        found = noise_of(make, sigma, laplace_scale, read_goals(TransformGoals, goals))
        object.__setattr__(self, "sigma", found.get("sigma"))
        object.__setattr__(self, "laplace_scale", found.get("laplace_scale"))

    @property
    def _noise_law(self) -> str:
        return "gaussian" if self.sigma is not None else "laplace"

    def with_noise(self, *, sigma: Fraction | None = None, laplace_scale: Fraction | None = None) -> "TransformedNoise":
        """The same transform with other noise."""
        raise NotImplementedError

    def grid(self, step: Number = 1) -> Fraction:
        """The grid on the transformed scale, for a measure of this step."""
        return grid_step(self.function, read_step(step), self.noise_scale)

    def noise_steps(self, step: Number) -> Fraction | None:
        """Return sigma in grid steps, None for Laplace noise.

        The policy is at least the loss of the largest shift (T-GRID).
        """
        return None if self.sigma is None else self.sigma / self.grid(step)

    def with_noise_scale(self, scale: Fraction) -> "TransformedNoise":
        """The same transform and noise law at another scale."""
        return self.with_noise(**{"sigma" if self.sigma is not None else "laplace_scale": scale})

    @property
    def noise_scale(self) -> Fraction:
        """Sigma or the Laplace scale, on the transformed scale."""
        width = self.sigma if self.sigma is not None else self.laplace_scale
        assert width is not None
        return width

    def _law(self, grid: Fraction) -> DiscreteGaussian | DiscreteLaplace:
        return (
            discrete_gaussian(self.noise_scale / grid)
            if self.sigma is not None
            else DiscreteLaplace(self.noise_scale / grid)
        )

    def release(self, totals: Any, *, step: Number = 1, rng: BitSource | None = None) -> Noisy:
        """Round f of each exact total and add lattice noise.

        With ``signed=True`` the totals have two rows: the sum of the positive values, and the sum of the negative
        ones without their sign; a record affects only one of them.
        """
        source, data = source_of(rng), read_step(step)
        exact = self._check_totals(whole_totals(totals))
        grid = self.grid(data)
        points = to_grid(self.function, exact, data, grid)
        return Noisy(points=noised(points, self._law(grid), source), grid=grid, step=data, private=is_private(source))

    def _check_totals(self, totals: Any) -> Any:
        if self.signed and (totals.ndim == 0 or totals.shape[0] != 2):
            raise ParameterError(
                parameter="totals", problem="of a signed sum need two rows: the positive part and the negative part"
            )
        if totals.size and totals.min() < 0:
            raise ParameterError(
                parameter="totals",
                problem="must not be negative for a transform",
                advice="Use signed=True and pass the positive and the negative part.",
            )
        return totals

    def estimate(self, noisy: Noisy, *, confidence: float = 0.95) -> Estimates:
        """Return unbiased values and noise intervals through the inverse.

        For a signed sum, the difference of its two parts.
        """
        if not self.signed:
            return self._one_sided(noisy.points, noisy.grid, read_confidence(confidence))
        halves = [self._one_sided(noisy.points[i], noisy.grid, (1 + read_confidence(confidence)) / 2) for i in (0, 1)]
        return difference(*halves, confidence=confidence)

    def bend(self, least: FloatArray) -> FloatArray | None:
        """Return an upper bound of |f''|/f'**2, or None.

        It holds wherever f is at least ``least``; None where it is not known.
        """
        return None

    def noisy_curve(self, noisy: Noisy) -> NoisyCurve | None:
        """Return the noisy points with their inverse, or None.

        For one part, Gaussian noise and a known bend.
        """
        if self.sigma is None or self.signed:
            return None
        reading, point = self._reading(noisy.grid), noisy.values()
        same, sigma = np.ones(point.shape), float(self.sigma)
        bend = self.bend(np.maximum(point - NEARBY * sigma, reading.zero))
        if bend is None:
            return None

        def back(points: FloatArray) -> FloatArray:
            return np.maximum(reading.inverse.monotone(np.maximum(points, reading.zero)) - reading.offset, 0.0)

        half, zero = float(noisy.grid) * same, reading.zero * same
        return NoisyCurve(point=point, sigma=sigma * same, half=half, zero=zero, bend=sigma * bend, back=back)

    def _one_sided(self, points: IntArray, grid: Fraction, confidence: float) -> Estimates:
        reading = self._reading(grid)
        # Half a grid step beyond the noise quantile covers the rounding of the exact point (T-INTERVAL).
        reach = (self._law(grid).quantile((1 + confidence) / 2) + 0.5) * float(grid)
        return by_blocks(points, confidence, lambda block: reading.fields(grid_values(block, grid), reach))

    def _reading(self, grid: Fraction) -> Reading:
        return Reading(
            inverse=self.inverse,
            offset=float(self.offset),
            zero=float(self.function.at_zero()),
            first=float(nearest_point(self.function, Fraction(0), grid) * grid),
            h=float(grid),
            sigma=None if self.sigma is None else float(self.sigma),
            laplace_scale=float(self.laplace_scale or 0),
            last_digits=last_digits(self._noise_worth),
        )

    def _noise_worth(self, total: FloatArray) -> FloatArray:
        """Return one noise scale's effect at a total, in the measure's units."""
        moved = self.inverse.monotone(self._apply_function(total) + float(self.noise_scale))
        return moved - float(self.offset) - total

    def values_under(self, total: float, noise: FloatArray) -> FloatArray:
        """Return the ``value`` at a total for noise values.

        The noise is in units of sigma or of the Laplace scale.
        """
        v = self._apply_function(total) + float(self.noise_scale) * noise
        return self._reading(self.grid()).mean(v)[0] - float(self.offset)

    def loss_at_shift(self, shift: Number, *, step: Number = 1) -> float:
        """Return the policy at a contribution of this size.

        The worst case over what else is in the cell. For a signed sum, it is for a change of one of its two parts;
        changes of a group in both parts do not cancel but add up.
        """
        size = abs(rational(shift, parameter="shift"))
        policy = self.policy(Measure("shift", read_step(step), self.signed))
        return float(policy.loss({"shift": size}))

    def realized_loss(self, total_without: Number, contribution: Number, *, step: Number = 1) -> float:
        """Return the loss from two rounded totals."""
        without = nonnegative(total_without, parameter="total_without")
        size = nonnegative(contribution, parameter="contribution")
        grid = self.grid(step)
        moved = nearest_point(self.function, without + size, grid) - nearest_point(self.function, without, grid)
        if self.sigma is not None:
            return float_upper((moved * grid) ** 2 / (2 * self.sigma**2))
        return discrete_laplace_zcdp(self.noise_scale / grid, moved)

    def variance(self, total: Any, *, step: Number = 1) -> FloatArray:
        """Return the variance of ``value`` at exact totals.

        For a signed sum, at the two parts.
        """
        with np.errstate(over="ignore"):
            spread = self._reading(self.grid(step)).variance(self._apply_function(total))
        return spread.sum(axis=0) if self.signed else spread

    def bias(self, total: Any, *, step: Number = 1) -> FloatArray:
        """Return the bias left by rounding to the grid.

        At most grid/(2 sigma) of a standard error.
        """
        exact, grid = np.asarray(total, np.float64), self.grid(step)
        laid = np.rint(self._apply_function(total) / float(grid)) * float(grid)
        off = self.inverse.monotone(laid) - float(self.offset) - exact
        return off[0] - off[1] if self.signed else off

    def _apply_function(self, total: Any) -> FloatArray:
        exact = np.asarray(total, np.float64)
        if not np.all(exact >= 0):
            raise ParameterError(parameter="total", problem="must not be negative for a transform")
        return np.asarray(self.function.value(NumpyArithmetic(), exact))


# The noise: given, or found from a goal.


KINDS = {"gaussian": "sigma", "laplace": "laplace_scale"}
QUANTILES = 1 << 16


class _NoiseFamily:
    """A transformation mechanism as a function of its noise scale.

    A scale it refuses counts as too much noise.
    """

    def __init__(self, make: Callable[..., TransformedNoise], kind: str) -> None:
        self._make, self._kind = make, kind

    def spread(self, parameter: Fraction, total: Fraction) -> float:
        mechanism = self._with(parameter)
        return np.inf if mechanism is None else float(mechanism.variance(_signed_total(mechanism, total)))

    def loss(self, parameter: Fraction, contribution: Fraction) -> float:
        """Return the loss that the policy charges.

        For a measure with that step; a finer step has a finer grid and costs less.
        """
        mechanism = self._with(parameter)
        return 0.0 if mechanism is None else mechanism.loss_at_shift(contribution, step=contribution)

    def relative_error(self, parameter: Fraction, total: Fraction, confidence: float) -> float:
        """Return the quantile of |value - total|/total over the noise."""
        mechanism = self._with(parameter)
        if mechanism is None:
            return np.inf
        errors = np.abs(mechanism.values_under(float(total), _noise_quantiles(self._kind)) / float(total) - 1)
        return float(
            np.partition(errors, int(np.ceil(confidence * QUANTILES)) - 1)[int(np.ceil(confidence * QUANTILES)) - 1]
        )

    def _with(self, parameter: Fraction) -> TransformedNoise | None:
        try:
            return self._make(**{self._kind: parameter})
        except ParameterError:
            return None


def _signed_total(mechanism: TransformedNoise, total: Fraction) -> Any:
    return np.array([float(total), 0.0]) if mechanism.signed else float(total)


def _noise_quantiles(kind: str) -> FloatArray:
    """Standard noise at equally likely points."""
    from scipy.special import ndtri

    chances = (np.arange(QUANTILES) + 0.5) / QUANTILES
    if kind == "sigma":
        return np.asarray(ndtri(chances))
    return np.where(chances < 0.5, np.log(2 * chances), -np.log(2 - 2 * chances))


def noise_of(
    make: Callable[..., TransformedNoise],
    sigma: Number | None,
    laplace_scale: Number | None,
    goals: dict[str, Any],
) -> dict[str, Fraction]:
    """Return ``{"sigma": ...}`` or ``{"laplace_scale": ...}``.

    A goal is met with Gaussian noise unless ``noise`` is "laplace".
    """
    noise = goals.pop("noise")
    own = {kind: value for kind, value in (("sigma", sigma), ("laplace_scale", laplace_scale)) if value is not None}
    if len(own) > 1 or (own and noise is not None):
        raise ParameterError(parameter="sigma, laplace_scale, noise", problem="are mutually exclusive")
    kind = next(iter(own), None) or _kind(noise or "gaussian")
    if goals["variance"] is not None:
        require_companion(goals, "at_total", "variance")
    if own and not any(value is not None for value in goals.values()):
        return {kind: positive(own[kind], parameter=kind)}
    return {kind: calibrate(_NoiseFamily(make, kind), name=kind, own=own.get(kind), **goals)}


def _kind(noise: str) -> str:
    if noise not in KINDS:
        raise ParameterError(parameter="noise", problem=f"must be one of {', '.join(KINDS)}")
    return KINDS[noise]
