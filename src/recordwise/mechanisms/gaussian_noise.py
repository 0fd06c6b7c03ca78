"""Gaussian noise on a lattice sum: what Gaussian, Clamped and UnitSplit do once their sigma is known."""

from fractions import Fraction
from typing import Any

import numpy as np

from recordwise.arithmetic import FloatArray
from recordwise.errors import ParameterError
from recordwise.exact import Number, float_upper, positive, rational
from recordwise.mechanisms.ends import lattice_ends
from recordwise.mechanisms.estimates import Estimates, Fields, by_blocks
from recordwise.mechanisms.noisy import (
    IntArray,
    Noisy,
    noised,
    read_level,
    read_step,
    source_of,
    to_floats,
    whole_totals,
)
from recordwise.noise import BitSource, DiscreteGaussian, is_private

NEAR_GAUSSIAN_STEPS = 1000
"""Lattice steps a sigma must have before Gaussian-DP numbers are within rounding of the truth (MATH 6)."""


class GaussianNoise:
    """Release, estimate and losses of a sum plus discrete Gaussian noise of ``noise_sigma`` on the data's own lattice."""

    __slots__ = ()

    @property
    def noise_sigma(self) -> Fraction:
        """The sigma that is drawn, in the measure's units."""
        raise NotImplementedError

    def release(self, totals: Any, *, step: Number = 1, rng: BitSource | None = None) -> Noisy:
        """Add noise to exact totals, given as whole numbers of lattice steps."""
        source, lattice = source_of(rng), read_step(step)
        points = noised(whole_totals(totals), self._law(lattice), source)
        return Noisy(points=points, grid=lattice, step=lattice, private=is_private(source))

    def estimate(self, noisy: Noisy, *, level: float = 0.95) -> Estimates:
        """The noisy total is mean- and median-unbiased; its spread is the same in every cell."""
        law = self._law(noisy.grid)
        half_width = int(law.quantile((1 + read_level(level)) / 2))
        return additive_estimates(noisy, law.variance * float(noisy.grid) ** 2, half_width, level)

    def loss_at_shift(self, shift: Number, *, step: Number = 1) -> float:
        """x**2/(2 sigma**2): exact for lattice shifts of discrete Gaussian noise (T-GAUSS)."""
        return float_upper(rational(shift, parameter="shift") ** 2 / (2 * self.noise_sigma**2))

    def realised_loss(self, total_without: Number, contribution: Number, *, step: Number = 1) -> float:
        """The same whatever else is in the cell."""
        return self.loss_at_shift(contribution, step=step)

    def variance(self, total: Any, *, step: Number = 1) -> FloatArray:
        lattice = read_step(step)
        return np.full(np.shape(total), self._law(lattice).variance * float(lattice) ** 2)

    def bias(self, total: Any, *, step: Number = 1) -> FloatArray:
        return np.zeros(np.shape(total))

    def _law(self, lattice: Fraction) -> DiscreteGaussian:
        return DiscreteGaussian(self.noise_sigma / lattice)


def read_share(share: Number) -> Fraction:
    """A part of a loss: above 0, at most 1."""
    part = positive(share, parameter="share")
    if part > 1:
        raise ParameterError(parameter="share", problem="must be at most 1")
    return part


def near_gaussian(sigma: Fraction, lattice: Fraction) -> bool:
    """Whether Gaussian-DP numbers may be printed for noise of this sigma on this lattice.

    Policies ask, so that noise that cannot be drawn is refused with them, before anything is spent.
    """
    DiscreteGaussian(sigma / lattice)
    return sigma >= NEAR_GAUSSIAN_STEPS * lattice


def additive_estimates(noisy: Noisy, variance: float, half_width: int, level: float) -> Estimates:
    """Estimates under symmetric noise that is the same for every cell (T-INTERVAL)."""
    error = np.sqrt(variance)

    def fields(points: IntArray) -> Fields:
        value = to_floats(points, noisy.grid)
        return value, value, error, np.asarray(variance), *lattice_ends(points, half_width, noisy.grid)

    return by_blocks(noisy.points, level, fields)
