"""Additive noise with density exp(-f), f concave: the shared part of GeneralizedGaussian, Polylog and Additive."""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import BallArithmetic, FloatArray
from recordwise.exact.functions import Function, Sum, Variable, x
from recordwise.exact.numbers import Number, arb_float_upper, ball, positive, rational, working_precision
from recordwise.mechanisms.accuracy import AdditiveNoise, short
from recordwise.mechanisms.base import Estimates
from recordwise.mechanisms.certified_loss import Nodes, certified_loss
from recordwise.mechanisms.certified_table import Certificate, Noise, certificate
from recordwise.mechanisms.described import Described
from recordwise.mechanisms.gaussian import additive_estimates
from recordwise.mechanisms.noisy import Noisy, noised, read_confidence, read_step, source_of, times, whole_totals
from recordwise.noise.lattice import LatticeLaw
from recordwise.noise.randomness import BitSource, is_private
from recordwise.policy.constructors import additive, certified_sum, laplace_sum
from recordwise.policy.measure import Measure
from recordwise.policy.policy import Policy

CLOSE = Fraction(9999, 10000)
"""The factor by which noise is reduced while its lattice law misses a goal that its continuous law meets."""
FINE = 1000
"""Lattice steps in one scale: fine enough that the tight loss is within 1 % of the continuous one (MATH 4)."""
SMALLEST_RECORD = 1000
"""A record of one such part of a scale is the smallest whose loss is within 1 % of the true one."""


class FatTailedNoise(AdditiveNoise):
    """Release, estimate and losses of a sum plus noise with density exp(-f(|z|)) on a lattice finer than the data."""

    __slots__ = ()

    loss_of_sum: ClassVar[bool] = True

    @property
    def function(self) -> Function:
        """f, in the measure's units."""
        raise NotImplementedError

    @property
    def width(self) -> Fraction:
        """The noise's scale in the measure's units, which determines the lattice."""
        scale: Fraction = self.scale  # type: ignore[attr-defined]
        return scale

    @property
    def coarseness(self) -> Fraction | None:
        """The requested lattice, in the measure's units; None for a fine one."""
        asked: Fraction | None = self.coarse_lattice  # type: ignore[attr-defined]
        return asked

    def law_on(self, lattice: Fraction) -> LatticeLaw:
        """The law that is drawn, in lattice steps."""
        raise NotImplementedError

    def drawn_law(self, step: Number) -> tuple[LatticeLaw, Fraction]:
        lattice = self.lattice(step)
        return self.law_on(lattice), lattice

    def resized(self, size: Fraction) -> Any:
        """The same law with a scale that is a share of a size."""
        return self.recalibrated(scale=self.width * size)

    def with_scale_times(self, factor: Fraction) -> Any:
        """The same law with its scale multiplied and shortened to six digits."""
        return self.recalibrated(scale=short(self.width * factor, up=False))

    def most_noise(
        self, total: float, reach: float, *, confidence: float, step: Number = 1, kept: float | None = None
    ) -> Any | None:
        """The same with the most noise, to six digits, for which |value - total| <= ``reach`` with probability ``confidence``."""
        goal = self.recalibrated(relative_error=reach / total, at_total=total, confidence=confidence)
        found = goal.with_scale_times(Fraction(1))
        while float(found.error_quantiles(np.array([total]), confidence=confidence, step=step)[0]) > reach:
            found = found.with_scale_times(CLOSE)
        return found

    def recalibrated(self, **goals: Any) -> Any:
        """The same law with its scale recalibrated."""
        goals.pop("step", None)
        return Described.recalibrated(self, **goals)

    def lattice(self, step: Number = 1) -> Fraction:
        """The lattice on which noise is drawn: the data's step, halved until the scale has a thousand lattice steps."""
        data = read_step(step)
        if self.coarseness is not None:
            if (data / self.coarseness).denominator != 1:
                raise ParameterError(parameter="lattice", problem=f"must divide the measure's step {data}")
            return self.coarseness
        lacking = FINE * data / self.width
        return data / (1 << (math.ceil(lacking) - 1).bit_length())

    def policy(self, measure: Measure | str, *, tight: bool = True) -> Policy:
        """Tight: the certified loss of the law that is drawn, for Laplace noise its closed form. ``tight=False``: the paper's
        eps = f(x) - f(0)."""
        summed = Measure.of(measure)
        # Noise that cannot be drawn is refused here, before anything is spent.
        self.law_on(self.lattice(summed.step))
        if not tight:
            return additive(summed, self.function, bound="pure")
        scale = laplace_scale(self.function)
        if scale is not None:
            return laplace_sum(summed, scale=scale, grid=self.lattice(summed.step))
        found = _certificate(self, summed.step)
        return certified_sum(summed, self.function, found.knots, less=found.less)

    def closed_policy(self, measure: Measure | str) -> Policy:
        """The closed form between the two: eps*tanh(eps/2)."""
        return additive(Measure.of(measure), self.function, bound="tanh")

    def release(self, totals: Any, *, step: Number = 1, rng: BitSource | None = None) -> Noisy:
        """Add noise to exact totals, given as whole numbers of data steps."""
        source, data = source_of(rng), read_step(step)
        lattice = self.lattice(data)
        points = times(whole_totals(totals), int(data / lattice))
        noisy = noised(points, self.law_on(lattice), source)
        return Noisy(points=noisy, grid=lattice, step=data, private=is_private(source))

    def estimate(self, noisy: Noisy, *, confidence: float = 0.95) -> Estimates:
        """The noisy total is mean- and median-unbiased; its spread is the same in every cell."""
        law = self.law_on(noisy.grid)
        half_width = int(law.quantile((1 + read_confidence(confidence)) / 2))
        return additive_estimates(noisy, law.variance * float(noisy.grid) ** 2, half_width, confidence)

    def loss_at_shift(self, shift: Number, *, step: Number = 1) -> float:
        """The certified loss of the law that is drawn, at a shift on the data's lattice; never above the published policy."""
        moved = Measure("shift", read_step(step))
        steps = moved.steps(abs(rational(shift, parameter="shift")))
        charged = float(self.policy(moved).loss({"shift": steps * moved.step}))
        return (
            charged if laplace_scale(self.function) is not None else min(charged, shift_loss(self, moved.step, steps))
        )

    def realized_loss(self, total_without: Number, contribution: Number, *, step: Number = 1) -> float:
        """The same whatever else is in the cell."""
        return self.loss_at_shift(contribution, step=step)

    def epsilon_at_shift(self, shift: Number) -> float:
        """The pure loss f(x) - f(0), rounded up."""
        size = abs(rational(shift, parameter="shift"))
        with working_precision():
            return arb_float_upper(self.function.increase(BallArithmetic(), ball(size)))

    def variance(self, total: Any, *, step: Number = 1) -> FloatArray:
        lattice = self.lattice(step)
        return np.full(np.shape(total), self.law_on(lattice).variance * float(lattice) ** 2)

    def bias(self, total: Any, *, step: Number = 1) -> FloatArray:
        return np.zeros(np.shape(total))


def laplace_scale(function: Function) -> Fraction | None:
    """The scale of an exponent x/scale plus a constant, which is Laplace noise; None for any other."""
    match function:
        case Variable():
            return Fraction(1)
        case Sum(((weight, Variable()),)):
            return 1 / weight
        case _:
            return None


def shift_loss(mechanism: FatTailedNoise, step: Fraction, steps: int) -> float:
    """The certified loss at one number of data steps, without the table: for Laplace noise its closed form."""
    if laplace_scale(mechanism.function) is not None:
        return mechanism.loss_at_shift(steps * step, step=step)
    lattice = mechanism.lattice(step)
    nodes, exponent = _nodes(mechanism, lattice)
    return certified_loss(nodes, exponent, steps * int(step / lattice))


@lru_cache(maxsize=64)
def _nodes(mechanism: FatTailedNoise, lattice: Fraction) -> tuple[Nodes, Function]:
    exponent = mechanism.function.after(x * lattice)
    return Nodes.of(mechanism.law_on(lattice), exponent), exponent


def _certificate(mechanism: FatTailedNoise, step: Fraction) -> Certificate:
    lattice = mechanism.lattice(step)
    noise = Noise(
        exponent=mechanism.function.after(x * lattice),
        step=int(step / lattice),
        accurate_from=math.ceil(mechanism.width / (SMALLEST_RECORD * step)),
    )
    return certificate(noise, lambda: mechanism.law_on(lattice))


def read_lattice(lattice: Number | None) -> Fraction | None:
    return None if lattice is None else positive(lattice, parameter="lattice")
