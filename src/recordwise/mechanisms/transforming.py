"""Noise on the scale of a concave f: what RootTransform, LogTransform and Transform do once f and its inverse are known.

Release f(total + offset), laid on a fine grid, plus lattice noise; estimate through the inverse. With contributions x >= 0 the
change of f is largest where nothing else is in the cell: a record loses what F(x) = f(x + offset) - f(offset) costs (T-TRANSFORM).
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from recordwise.arithmetic import FloatArray, NumpyArithmetic
from recordwise.errors import ParameterError
from recordwise.exact import Number, float_upper, nonnegative, rational
from recordwise.functions import Function
from recordwise.mechanisms.grid import grid_step, grid_values, nearest_point, to_grid
from recordwise.mechanisms.inverses import Inverse
from recordwise.mechanisms.noisy import Estimates, Noisy, noised, outward, read_level, read_step, whole_totals
from recordwise.noise import BitSource, DiscreteGaussian, DiscreteLaplace, Secure
from recordwise.policy import Measure, Policy, discrete_laplace_zcdp, gaussian_transform, laplace_transform


class TransformedNoise:
    """Release, estimate and losses of a transformation mechanism. The four properties say which."""

    __slots__ = ()

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
        """The loss of a record, grid included; the papers' continuous policy differs by less than a thousandth."""
        summed = Measure.of(measure)
        if summed.signed != self.signed:
            wanted = "signed=True" if summed.signed else "a signed measure"
            raise ParameterError(
                parameter="signed", problem=f"does not fit the measure '{summed.name}'", advice=f"Use {wanted}."
            )
        grid = self.grid(summed.step)
        if self.sigma is not None:
            return gaussian_transform(summed, self.function, sigma=self.sigma, grid=grid)
        return laplace_transform(summed, self.function, scale=self._width(), grid=grid)

    def grid(self, step: Number = 1) -> Fraction:
        """The grid on the transformed scale, for a measure of this step."""
        return grid_step(self.function, read_step(step), self._width())

    def _width(self) -> Fraction:
        width = self.sigma if self.sigma is not None else self.laplace_scale
        assert width is not None
        return width

    def _law(self, grid: Fraction) -> DiscreteGaussian | DiscreteLaplace:
        return (
            DiscreteGaussian(self._width() / grid) if self.sigma is not None else DiscreteLaplace(self._width() / grid)
        )

    def release(self, totals: Any, *, step: Number = 1, rng: BitSource | None = None) -> Noisy:
        """Lay f of each exact total on the grid and add lattice noise.

        With ``signed=True`` the totals have two rows: the sum of the positive values and the sum of the negative ones without their
        sign; a record touches one of them.
        """
        source, data = rng or Secure(), read_step(step)
        exact = self._checked(whole_totals(totals))
        grid = self.grid(data)
        points = to_grid(self.function, exact, data, grid)
        return Noisy(points=noised(points, self._law(grid), source), grid=grid, step=data, private=source.private)

    def _checked(self, totals: Any) -> Any:
        if self.signed and (totals.ndim == 0 or totals.shape[0] != 2):
            raise ParameterError(
                parameter="totals", problem="of a signed sum need two rows: positive part, negative part"
            )
        if totals.size and totals.min() < 0:
            raise ParameterError(
                parameter="totals",
                problem="must not be negative for a transform",
                advice="Use signed=True and hand over the positive and the negative part.",
            )
        return totals

    def estimate(self, noisy: Noisy, *, level: float = 0.95) -> Estimates:
        """Unbiased values and noise intervals through the inverse; of a signed sum, the difference of its two parts."""
        if not self.signed:
            return self._one_sided(noisy, read_level(level))
        halves = [self._one_sided(_row(noisy, i), (1 + read_level(level)) / 2) for i in (0, 1)]
        return _difference(*halves, level=level)

    def _one_sided(self, noisy: Noisy, level: float) -> Estimates:
        v, offset = grid_values(noisy.points, noisy.grid), float(self.offset)
        value, spread = self._mean(v, noisy.grid)
        low, high = self._interval(noisy, level)
        return Estimates(
            value=value - offset,
            median_unbiased=self.inverse.monotone(v) - offset,
            standard_error=np.sqrt(self._variance_at(np.maximum(v, self._zero()))),
            variance_unbiased=spread,
            low=np.maximum(low - offset, 0.0),
            high=np.maximum(high - offset, 0.0),
            level=level,
        )

    def _zero(self) -> float:
        """f(offset): the transformed total 0."""
        return float(self.function.at_zero())

    def _mean(self, v: FloatArray, grid: Fraction) -> tuple[FloatArray, FloatArray]:
        """The mean-unbiased estimate of total + offset, and the unbiased estimate of its variance."""
        if self.sigma is not None:
            sigma = float(self.sigma)
            return self.inverse.gaussian_mean(v, sigma), self.inverse.gaussian_variance_unbiased(v, sigma)
        return self._laplace_mean(v, grid)

    def _laplace_mean(self, v: FloatArray, grid: Fraction) -> tuple[FloatArray, FloatArray]:
        """On the grid, exactly: phi - kappa * (second difference) above the grid point of 0, constant below (T-LAPLACE-MEAN)."""
        h, ratio = float(grid), float(grid / self._width())
        zero = float(nearest_point(self.function, Fraction(0), grid)) * h
        kappa = 1 / (2 * math.sinh(ratio / 2)) ** 2
        value, first, second = self.inverse.jet(np.maximum(v, zero + h))
        bend = kappa * h**2 * second
        spread = bend**2 + 2 * kappa * h**2 * first**2
        start, slope, curve = (float(part[0]) for part in self.inverse.jet(np.array([zero])))
        rise, odds = h * slope + h**2 / 2 * curve, 1 / math.expm1(ratio)
        above = v > zero
        return np.where(above, value - bend, start - odds * rise), np.where(above, spread, odds * (1 + odds) * rise**2)

    def _variance_at(self, mu: FloatArray) -> FloatArray:
        if self.sigma is not None:
            return self.inverse.gaussian_variance(mu, float(self.sigma))
        return self.inverse.laplace_variance(mu, self._zero(), float(self._width()))

    def _interval(self, noisy: Noisy, level: float) -> tuple[FloatArray, FloatArray]:
        """Half a grid step beyond the noise quantile covers the rounding; then through the inverse, outward."""
        half = self._law(noisy.grid).quantile((1 + level) / 2) + 0.5
        ends = [grid_values(noisy.points.astype(np.float64) + sign * half, noisy.grid) for sign in (-1, 1)]
        clipped = [np.maximum(end, self._zero()) for end in ends]
        low, high = (self.inverse.monotone(end) for end in clipped)
        return outward(low * (1 - INVERSE_ERROR), high * (1 + INVERSE_ERROR))

    def loss_at_shift(self, shift: Number, *, step: Number = 1) -> float:
        """The policy at a contribution of this size: the worst case over what else is in the cell."""
        size = abs(rational(shift, parameter="shift"))
        policy = self.policy(Measure("shift", read_step(step), self.signed))
        return float(policy.loss({"shift": size}))

    def realised_loss(self, total_without: Number, contribution: Number, *, step: Number = 1) -> float:
        """From the two grid points the totals with and without the record are laid on."""
        without = nonnegative(total_without, parameter="total_without")
        size = nonnegative(contribution, parameter="contribution")
        grid = self.grid(step)
        moved = nearest_point(self.function, without + size, grid) - nearest_point(self.function, without, grid)
        if self.sigma is not None:
            return float_upper((moved * grid) ** 2 / (2 * self.sigma**2))
        return discrete_laplace_zcdp(self._width() / grid, moved)

    def variance(self, total: Any, *, step: Number = 1) -> FloatArray:
        """Of ``value``, at exact totals in the measure's units; of a signed sum, at the two parts."""
        v = self._transformed(total)
        spread = self._variance_at(v)
        return spread.sum(axis=0) if self.signed else spread

    def bias(self, total: Any, *, step: Number = 1) -> FloatArray:
        """What rounding to the grid leaves: at most grid/(2 sigma) of a standard error."""
        exact, grid = np.asarray(total, np.float64), self.grid(step)
        laid = np.rint(self._transformed(total) / float(grid)) * float(grid)
        off = self.inverse.monotone(laid) - float(self.offset) - exact
        return off[0] - off[1] if self.signed else off

    def _transformed(self, total: Any) -> FloatArray:
        return np.asarray(self.function.value(NumpyArithmetic(), np.asarray(total, np.float64)))


INVERSE_ERROR = 2.0**-44
"""Relative error allowed to an inverse in float64."""


def _row(noisy: Noisy, row: int) -> Noisy:
    return Noisy(points=noisy.points[row], grid=noisy.grid, step=noisy.step, private=noisy.private)


def _difference(positive: Estimates, negative: Estimates, *, level: float) -> Estimates:
    """Positive part minus negative part; each interval holds at a level that leaves half of the misses to each."""
    return Estimates(
        value=positive.value - negative.value,
        median_unbiased=positive.median_unbiased - negative.median_unbiased,
        standard_error=np.hypot(positive.standard_error, negative.standard_error),
        variance_unbiased=positive.variance_unbiased + negative.variance_unbiased,
        low=positive.low - negative.high,
        high=positive.high - negative.low,
        level=level,
    )
