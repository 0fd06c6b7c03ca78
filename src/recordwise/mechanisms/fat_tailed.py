"""Additive noise with a density exp(-f), f concave: what GeneralizedGaussian, Polylog and Additive do once f is known."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from recordwise.arithmetic import BallArithmetic, FloatArray
from recordwise.errors import ParameterError
from recordwise.exact import Number, arb_float_upper, ball, positive, rational
from recordwise.functions import Function, x
from recordwise.mechanisms.calibration import calibrate
from recordwise.mechanisms.gaussian_noise import additive_estimates
from recordwise.mechanisms.noisy import Estimates, Noisy, noised, read_level, read_step, times, whole_totals
from recordwise.mechanisms.tight import Blocks, certified_loss, step_table
from recordwise.noise import BitSource, LatticeLaw, Secure
from recordwise.policy import Measure, Policy, additive, additive_table

FINE = 1000
"""Lattice steps in one scale: fine enough that the tight loss is within 1 % of the continuous one (MATH 4)."""


class FatTailedNoise:
    """Release, estimate and losses of a sum plus noise with density exp(-f(|z|)) on a lattice finer than the data."""

    __slots__ = ()

    @property
    def function(self) -> Function:
        """f, in the measure's units."""
        raise NotImplementedError

    @property
    def width(self) -> Fraction:
        """The noise's scale in the measure's units, by which the lattice is chosen."""
        scale: Fraction = self.scale  # type: ignore[attr-defined]
        return scale

    @property
    def coarseness(self) -> Fraction | None:
        """The lattice asked for, in the measure's units; None for a fine one."""
        asked: Fraction | None = self.coarse_lattice  # type: ignore[attr-defined]
        return asked

    @property
    def unit_variance(self) -> float:
        """The continuous variance at scale 1."""
        raise NotImplementedError

    def law_on(self, lattice: Fraction) -> LatticeLaw:
        """The law that is drawn, in lattice steps."""
        raise NotImplementedError

    def lattice(self, step: Number = 1) -> Fraction:
        """The lattice noise is drawn on: the data's step halved until the scale has a thousand lattice steps."""
        data = read_step(step)
        if self.coarseness is not None:
            if (data / self.coarseness).denominator != 1:
                raise ParameterError(parameter="lattice", problem=f"must divide the measure's step {data}")
            return self.coarseness
        halvings = max(0, math.ceil(math.log2(FINE * data / self.width)))
        return data / Fraction(2) ** halvings

    def policy(self, measure: Measure | str, *, tight: bool = True) -> Policy:
        """Tight: the certified table of the law that is drawn. ``tight=False``: the paper's eps = f(x) - f(0)."""
        summed = Measure.of(measure)
        if not tight:
            return additive(summed, self.function, bound="pure")
        return additive_table(summed, self.function, _table(self, summed.step))

    def closed_policy(self, measure: Measure | str) -> Policy:
        """The closed form between the two: eps*tanh(eps/2)."""
        return additive(Measure.of(measure), self.function, bound="tanh")

    def release(self, totals: Any, *, step: Number = 1, rng: BitSource | None = None) -> Noisy:
        """Add noise to exact totals, given as whole numbers of data steps."""
        source, data = rng or Secure(), read_step(step)
        lattice = self.lattice(data)
        points = times(whole_totals(totals), int(data / lattice))
        noisy = noised(points, self.law_on(lattice), source)
        return Noisy(points=noisy, grid=lattice, step=data, private=source.private)

    def estimate(self, noisy: Noisy, *, level: float = 0.95) -> Estimates:
        """The noisy total is mean- and median-unbiased; its spread is the same in every cell."""
        law = self.law_on(noisy.grid)
        half_width = int(law.quantile((1 + read_level(level)) / 2))
        return additive_estimates(noisy, law.variance * float(noisy.grid) ** 2, half_width, level)

    def loss_at_shift(self, shift: Number, *, step: Number = 1) -> float:
        """The certified loss of the law that is drawn, at a shift on the data's lattice."""
        size, data = abs(rational(shift, parameter="shift")), read_step(step)
        return _certified(self, data, Measure("shift", data).steps(size))

    def realised_loss(self, total_without: Number, contribution: Number, *, step: Number = 1) -> float:
        """The same whatever else is in the cell."""
        return self.loss_at_shift(contribution, step=step)

    def epsilon_at_shift(self, shift: Number) -> float:
        """The pure loss f(x) - f(0), rounded up."""
        size = abs(rational(shift, parameter="shift"))
        return arb_float_upper(self.function.increase(BallArithmetic(), ball(size)))

    def variance(self, total: Any, *, step: Number = 1) -> FloatArray:
        lattice = self.lattice(step)
        return np.full(np.shape(total), self.law_on(lattice).variance * float(lattice) ** 2)

    def bias(self, total: Any, *, step: Number = 1) -> FloatArray:
        return np.zeros(np.shape(total))


@cache
def _certified(mechanism: FatTailedNoise, step: Fraction, steps: int) -> float:
    lattice = mechanism.lattice(step)
    in_lattice = mechanism.function.after(x * lattice)
    return certified_loss(_blocks(mechanism, lattice), in_lattice, steps * int(step / lattice))


@cache
def _blocks(mechanism: FatTailedNoise, lattice: Fraction) -> Blocks:
    return Blocks.of(mechanism.law_on(lattice))


@cache
def _table(mechanism: FatTailedNoise, step: Fraction) -> tuple[tuple[int, Fraction], ...]:
    return step_table(
        lambda steps: _certified(mechanism, step, steps), lambda steps: mechanism.epsilon_at_shift(steps * step)
    )


def read_lattice(lattice: Number | None) -> Fraction | None:
    return None if lattice is None else positive(lattice, parameter="lattice")


class _ScaleFamily:
    """A fat-tailed mechanism as a function of its scale, for calibration."""

    def __init__(self, make: Callable[[Fraction], FatTailedNoise]) -> None:
        self._make = make
        self._unit = make(Fraction(1))

    def spread(self, parameter: Fraction, total: Fraction) -> float:
        return self._unit.unit_variance * float(parameter) ** 2

    def loss(self, parameter: Fraction, contribution: Fraction) -> float:
        """Of the continuous law, which depends on contribution/scale alone: taken at scale 1 on a fine lattice."""
        return self._make(parameter).loss_at_shift(contribution, step=contribution)

    def relative_error(self, parameter: Fraction, total: Fraction, level: float) -> float:
        lattice = Fraction(1, FINE)
        reach = self._unit.law_on(lattice).quantile((1 + read_level(level)) / 2) * float(lattice)
        return reach * float(parameter / total)


def fat_tailed_scale(
    make: Callable[[Fraction], FatTailedNoise], scale: Number | None, level: float, goals: dict[str, Any]
) -> Fraction:
    """The scale itself, or the one that meets the one goal given."""
    if scale is not None and not any(value is not None for value in goals.values()):
        return positive(scale, parameter="scale")
    return calibrate(_ScaleFamily(make), own=scale, name="scale", level=level, **goals)
