"""Fat-tailed additive noise: GeneralizedGaussian, Polylog, Additive, and their base.

The density is exp(-f) with a concave f.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from recordwise.errors import ParameterError, RangeError, own_argument_errors
from recordwise.exact.arithmetic import BallArithmetic, FloatArray
from recordwise.exact.functions import LARGEST_POWER, Function, log, x
from recordwise.exact.numbers import (
    Number,
    arb_float_upper,
    ball,
    midpoint,
    positive,
    power_upper,
    rational,
    working_precision,
)
from recordwise.mechanisms.accuracy import AdditiveNoise, short
from recordwise.mechanisms.base import (
    SCALE_AND_GOALS,
    Estimates,
    LossGoals,
    Mechanism,
    Noisy,
    Parameter,
    noised,
    read_confidence,
    read_goals,
    read_step,
    source_of,
    times,
    whole_totals,
)
from recordwise.mechanisms.calibration import calibrate, plain_step
from recordwise.mechanisms.certified_loss import ABOVE, COARSE, Certificate, Nodes, Noise, certificate, certified_loss
from recordwise.mechanisms.gaussian import additive_estimates
from recordwise.noise.laws import ConcaveLaw, LatticeLaw
from recordwise.noise.laws import GeneralizedGaussian as GeneralizedGaussianLaw
from recordwise.noise.laws import Polylog as PolylogLaw
from recordwise.noise.randomness import BitSource, is_private
from recordwise.noise.stated import FINE, fine_lattice, lattice_part
from recordwise.policy.atoms import linear_slope
from recordwise.policy.columns import Measure
from recordwise.policy.constructors import additive, certified_sum, laplace_sum
from recordwise.policy.policy import Policy

CLOSE = Fraction(9999, 10000)
"""The factor by which noise is reduced while its lattice law misses a goal that its continuous law meets."""
SMALLEST_RECORD = 1000
"""A record of one such part of a scale is the smallest whose loss is within 1 % of the true one."""


class FatTailedNoise(AdditiveNoise):
    """A sum plus lattice noise with density exp(-f(|z|)).

    The lattice is finer than the data's.
    """

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

    @property
    def draws_laplace(self) -> bool:
        return laplace_scale(self.function) is not None

    def lattice_part(self, sd: float) -> float:
        """Bound the lattice as a part of the standard deviation (T-UNIMODAL).

        Args:
            sd: The least standard deviation of the answers.

        Returns:
            The part, at any share or size.
        """
        return lattice_part(self, self.width, self.coarseness, sd)

    def law_on(self, lattice: Fraction) -> LatticeLaw:
        """The law that is drawn, in lattice steps."""
        raise NotImplementedError

    def drawn_law(self, step: Number) -> tuple[LatticeLaw, Fraction]:
        lattice = self.lattice(step)
        return self.law_on(lattice), lattice

    def resized(self, size: Fraction) -> "FatTailedNoise":
        """Return the same law with scale as a share of ``size``."""
        return self.recalibrated(scale=self.width * size)

    def with_scale_times(self, factor: Fraction) -> "FatTailedNoise":
        """The same law with its scale multiplied and shortened to six digits."""
        return self.recalibrated(scale=short(self.width * factor, up=False))

    def most_noise(
        self, total: float, reach: float, *, confidence: float, step: Number = 1, kept: float | None = None
    ) -> "FatTailedNoise | None":
        """The same with the most noise for a goal, to six digits."""
        goal = self.recalibrated(relative_error=reach / total, at_total=total, confidence=confidence)
        found = goal.with_scale_times(Fraction(1))
        while float(found.error_quantiles(np.array([total]), confidence=confidence, step=step)[0]) > reach:
            found = found.with_scale_times(CLOSE)
        return found

    def recalibrated(self, **goals: Any) -> Self:
        """The same law with its scale recalibrated."""
        goals.pop("step", None)
        return Mechanism.recalibrated(self, **goals)

    def lattice(self, step: Number = 1) -> Fraction:
        """Return the lattice on which noise is drawn.

        The data's step, halved until the scale has a thousand lattice steps.
        """
        data = read_step(step)
        if self.coarseness is not None:
            if (data / self.coarseness).denominator != 1:
                raise ParameterError(parameter="lattice", problem=f"must divide the measure's step {data}")
            return self.coarseness
        return fine_lattice(data, self.width)

    def policy(self, measure: Measure | str, *, tight: bool = True) -> Policy:
        """Return the loss of the law that is drawn.

        Tight: certified, for Laplace noise its closed form. ``tight=False``: the paper's eps = f(x) - f(0).
        """
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
        """Return noisy totals, mean- and median-unbiased, with equal spread."""
        law = self.law_on(noisy.grid)
        half_width = int(law.quantile((1 + read_confidence(confidence)) / 2))
        return additive_estimates(noisy, law.variance * float(noisy.grid) ** 2, half_width, confidence)

    def loss_at_shift(self, shift: Number, *, step: Number = 1) -> float:
        """Return the certified loss at a shift on the data's lattice.

        Never above the published policy.
        """
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
    """Return the Laplace scale of an exponent, or None."""
    slope = linear_slope(function)
    return None if slope is None else 1 / slope


def shift_loss(mechanism: FatTailedNoise, step: Fraction, steps: int) -> float:
    """Return the certified loss at one number of data steps."""
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


# The scale of the noise: given, or found from a goal.


class _ScaleFamily:
    """A fat-tailed mechanism as a function of its scale.

    On a fine lattice, spread and quantiles are proportional to the scale, so they are taken from the law at a thousand lattice
    steps; on a lattice that the user requested, they are those of the law itself.
    """

    def __init__(self, make: Callable[[Fraction], FatTailedNoise], coarse: Fraction | None) -> None:
        self._make, self._coarse = make, coarse
        self._above: float | None = None

    def spread(self, parameter: Fraction, total: Fraction) -> float:
        if self._coarse is not None:
            return self._make(parameter).law_on(self._coarse).variance * float(self._coarse) ** 2
        law, lattice = self._fine()
        return law.variance * float(lattice * parameter) ** 2

    def loss(self, parameter: Fraction, contribution: Fraction) -> float:
        """Return the certified loss plus a margin for the policy's lines."""
        return self._certified_loss(parameter, contribution) * (1 + self._room(parameter, contribution))

    def charged_loss(self, parameter: Fraction, contribution: Fraction) -> float:
        """What the policy of a measure of that step charges."""
        policy = self._make(parameter).policy(Measure("shift", plain_step(contribution)))
        return float(policy.loss({"shift": contribution}))

    def charging_as(self, parameter: Fraction, contribution: Fraction) -> None:
        """Adopt the policy's margin at this parameter."""
        above = self.charged_loss(parameter, contribution) / self._certified_loss(parameter, contribution) - 1
        self._above = above if self._above is None else max(above, self._above) + MORE_ROOM

    def _certified_loss(self, parameter: Fraction, contribution: Fraction) -> float:
        step = plain_step(contribution)
        return shift_loss(self._make(parameter), step, int(contribution / step))

    def _room(self, parameter: Fraction, contribution: Fraction) -> float:
        mechanism = self._make(parameter)
        if self._above is not None or laplace_scale(mechanism.function) is not None:
            return self._above or 0.0
        return ABOVE * (COARSE if contribution * SMALLEST_RECORD < mechanism.width else 1)

    def relative_error(self, parameter: Fraction, total: Fraction, confidence: float) -> float:
        chance = (1 + read_confidence(confidence)) / 2
        if self._coarse is not None:
            return float(self._make(parameter).law_on(self._coarse).quantile(chance) * self._coarse / total)
        law, lattice = self._fine()
        return float(law.quantile(chance) * lattice * parameter / total)

    def _fine(self) -> tuple[LatticeLaw, Fraction]:
        """The law at scale 1 on a fine lattice, and that lattice."""
        mechanism = self._make(Fraction(1))
        return mechanism.law_on(mechanism.width / FINE), mechanism.width / FINE


def fat_tailed_scale(
    make: Callable[[Fraction], FatTailedNoise],
    coarse: Fraction | None,
    *,
    own: Number | None,
    **given: Unpack[LossGoals],
) -> Fraction:
    """The scale itself, or the one that meets the one goal given."""
    goals = read_goals(LossGoals, given)
    family = _ScaleFamily(make, coarse)
    found = calibrate(family, name="scale", own=own, **goals)
    if goals.get("rho") is None:
        return found
    rho, record = positive(goals["rho"] or 0, parameter="rho"), positive(goals["at"] or 0, parameter="at")
    closer = found
    for _ in range(ATTEMPTS):
        family.charging_as(closer, record)
        closer = calibrate(family, name="scale", own=own, **goals)
        if family.charged_loss(closer, record) <= rho:
            return closer
    return found


MORE_ROOM = 3e-4
ATTEMPTS = 4
"""How often a scale is looked for at which the policy itself is close to a loss: its lines make it jump by a few thousandths."""


# GeneralizedGaussian: the loss grows like a power of the record, a square root for shape 1/2.


@dataclass(frozen=True, slots=True, init=False, repr=False)
class GeneralizedGaussian(FatTailedNoise):
    """Noise with density exp(-(|z|/scale)**shape), 0 < shape <= 1; 1 is Laplace.

    Theorem T-ADD (docs/theory/policy.md): the pure loss is (x/scale)**shape, exactly.

    Args:
        shape: Exponent of the law, above 0 and at most 1.
        scale: Scale of the noise, in the measure's units.
        lattice: Lattice on which noise is drawn, in the measure's units.
        goals: A goal: ``variance``, ``rho`` of a record of size ``at``, or ``relative_error`` at ``at_total``, with ``confidence``.
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("shape", "exponent of the law, above 0 and at most 1", needed=True),
        *SCALE_AND_GOALS,
    )
    words: ClassVar[str] = "noise with heavy tails"

    shape: Fraction
    """Smaller values give heavier tails and a loss that grows more slowly for very large records."""
    scale: Fraction
    """In the measure's units."""
    coarse_lattice: Fraction | None
    """The lattice on which noise is drawn, if not a fine one."""

    @own_argument_errors
    def __init__(
        self,
        *,
        shape: Number,
        scale: Number | None = None,
        lattice: Number | None = None,
        **goals: Unpack[LossGoals],
    ) -> None:
        exact = positive(shape, parameter="shape")
        if exact > 1:
            raise ParameterError(parameter="shape", problem="must be at most 1; above that the exponent is not concave")
        object.__setattr__(self, "shape", exact)
        object.__setattr__(self, "coarse_lattice", read_lattice(lattice))
        found = fat_tailed_scale(
            lambda s: GeneralizedGaussian(shape=exact, scale=s, lattice=lattice),
            self.coarse_lattice,
            own=scale,
            **goals,
        )
        object.__setattr__(self, "scale", found)

    @classmethod
    def audit_examples(cls) -> dict[str, "GeneralizedGaussian"]:
        return {"generalized gaussian": cls(shape=0.5, scale=2), "laplace": cls(shape=1, scale=30)}

    @classmethod
    def planning_families(cls, *, offset: Number) -> dict[str, "GeneralizedGaussian"]:
        return {"generalized Gaussian 1/2": cls(shape="0.5", scale=1)}

    def shared(self, share: Fraction) -> "GeneralizedGaussian":
        """Return the mechanism at a share of the pure loss.

        For one of several levels: the scale grows by share**(-1/shape), rounded up.
        """
        return GeneralizedGaussian(
            shape=self.shape, scale=self.scale * power_upper(1 / share, 1 / self.shape), lattice=self.coarse_lattice
        )

    @property
    def function(self) -> Function:
        return (x / self.scale) ** self.shape

    def law_on(self, lattice: Fraction) -> LatticeLaw:
        return GeneralizedGaussianLaw(scale=self.scale / lattice, shape=self.shape)


# Polylog: the loss grows like a power of the logarithm of the record.


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Polylog(FatTailedNoise):
    """Noise with density exp(-rate * ln(|z|/scale + offset)**power), power >= 1.

    Theorem T-ADD (docs/theory/policy.md): the pure loss is the rise of that exponent from 0 to x, exactly. The exponent is concave
    only if offset >= e**(power-1); less is refused. At power 1 the noise is of Pareto type: no mean for rate <= 2 (refused), no
    variance for rate <= 3 (then ``standard_error`` is infinite).

    Args:
        power: Power of the logarithm, at least 1.
        rate: How fast the tails fall.
        offset: Added inside the logarithm.
        scale: Scale of the noise, in the measure's units.
        lattice: Lattice on which noise is drawn, in the measure's units.
        goals: A goal: ``variance``, ``rho`` of a record of size ``at``, or ``relative_error`` at ``at_total``, with ``confidence``.
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("power", "power of the logarithm, at least 1", needed=True),
        Parameter("rate", "how fast the tails fall", needed=True),
        Parameter("offset", "added inside the logarithm", needed=True),
        *SCALE_AND_GOALS,
    )
    words: ClassVar[str] = "noise with very heavy tails"

    power: Fraction
    rate: Fraction
    """Larger values give lighter tails and more loss for a very large record."""
    offset: Fraction
    scale: Fraction
    """In the measure's units."""
    coarse_lattice: Fraction | None

    @own_argument_errors
    def __init__(
        self,
        *,
        power: Number,
        rate: Number,
        offset: Number,
        scale: Number | None = None,
        lattice: Number | None = None,
        **goals: Unpack[LossGoals],
    ) -> None:
        for name, value in (("power", power), ("rate", rate), ("offset", offset)):
            object.__setattr__(self, name, positive(value, parameter=name))
        if self.power > LARGEST_POWER:
            raise ParameterError(parameter="power", problem=f"must be at most {LARGEST_POWER}")
        object.__setattr__(self, "offset", _at_least_limit(self.offset, self.power, offset))
        object.__setattr__(self, "coarse_lattice", read_lattice(lattice))
        _check(self.power, self.rate, self.offset, needs_variance=goals.get("variance") is not None)
        found = fat_tailed_scale(
            lambda s: Polylog(power=power, rate=rate, offset=offset, scale=s, lattice=lattice),
            self.coarse_lattice,
            own=scale,
            **goals,
        )
        object.__setattr__(self, "scale", found)

    @classmethod
    def audit_examples(cls) -> dict[str, "Polylog"]:
        return {
            "polylog": cls(power=2, rate=1, offset=math.e, scale=20),
            "pareto": cls(power=1, rate=6, offset=1, scale=80),
        }

    @classmethod
    def planning_families(cls, *, offset: Number) -> dict[str, "Polylog"]:
        return {"polylog": cls(power=2, rate=1, offset=3, scale=1)}

    def shared(self, share: Fraction) -> "Polylog":
        """Return the mechanism at a share of the pure loss.

        For one of several levels: the rate is multiplied by it, and the tails get heavier. A share that leaves no
        variance is refused: the level would have no standard error and could not be fitted to the others.
        """
        rate = self.rate * share
        if self.power == 1 and rate <= 3:
            raise ParameterError(
                parameter="rate",
                problem=f"{self.rate} cannot be shared: a share of {share} leaves {rate}, and the variance is finite only above 3",
                advice=f"Use a rate above {3 / share}, a power above 1, or fewer levels.",
            )
        return Polylog(power=self.power, rate=rate, offset=self.offset, scale=self.scale, lattice=self.coarse_lattice)

    @property
    def function(self) -> Function:
        return self.rate * log(x / self.scale + self.offset) ** self.power

    def law_on(self, lattice: Fraction) -> LatticeLaw:
        return PolylogLaw(scale=self.scale / lattice, rate=self.rate, offset=self.offset, power=self.power)


def _at_least_limit(offset: Fraction, power: Fraction, given: Number) -> Fraction:
    """Return the offset, raised to the limit e**(power-1) if near.

    The float nearest to the limit may be slightly below it; a caller who writes ``math.e`` wants the limit,
    rounded up.
    """
    limit = math.exp(float(power) - 1)
    with working_precision(128):
        exact = ball(power - 1).exp()
        if isinstance(given, float) and math.isclose(given, limit, rel_tol=2**-51) and ball(offset) < exact:
            return Fraction(math.ceil(midpoint(exact.upper()) * 10**18), 10**18)
    return offset


def _check(power: Fraction, rate: Fraction, offset: Fraction, *, needs_variance: bool) -> None:
    if power < 1:
        raise ParameterError(parameter="power", problem="must be at least 1")
    if offset < 1:
        raise ParameterError(
            parameter="offset", problem="must be at least 1; otherwise the exponent would be negative at 0"
        )
    (log(x + offset) ** power).concave()
    if power == 1 and rate <= 2:
        raise ParameterError(
            parameter="rate",
            problem="must be above 2 at power 1; otherwise the noise has no mean and no estimate is unbiased",
        )
    if power == 1 and rate <= 3 and needs_variance:
        raise ParameterError(parameter="rate", problem="must be above 3 at power 1 for the noise to have a variance")


# Additive: a custom concave exponent.


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Additive(FatTailedNoise):
    """Noise with density exp(-f(|z|)) for an increasing concave f.

    A goal (``variance``, ``rho`` with ``at``, ``relative_error`` with ``at_total``) or a ``scale`` stretches it to f(|z|/scale).
    Theorem T-ADD (docs/theory/policy.md): the pure loss is f(x) - f(0), exactly; f's concavity is certified (T-CONCAVE).

    Args:
        f: Exponent of the law: an increasing concave function.
        scale: Scale of the noise, in the measure's units.
        lattice: Lattice on which noise is drawn, in the measure's units.
        goals: A goal: ``variance``, ``rho`` of a record of size ``at``, or ``relative_error`` at ``at_total``, with ``confidence``.
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("f", "exponent of the law: an increasing concave function", read="function", needed=True),
        *SCALE_AND_GOALS,
    )
    words: ClassVar[str] = "noise from a custom law"

    f: Function
    """In the measure's units, e.g. ``(x / 50) ** 0.5 + log(x / 10 + 1)``; already stretched."""
    coarse_lattice: Fraction | None

    @own_argument_errors
    def __init__(
        self,
        f: Function,
        *,
        scale: Number | None = None,
        lattice: Number | None = None,
        **goals: Unpack[LossGoals],
    ) -> None:
        if not isinstance(f, Function):
            raise ParameterError(
                parameter="f",
                problem="must be an expression of recordwise.exact.functions, so that it can be published",
            )
        f.concave()
        object.__setattr__(self, "coarse_lattice", read_lattice(lattice))
        stretch = fat_tailed_scale(
            lambda s: Additive(f, scale=s, lattice=lattice),
            self.coarse_lattice,
            own=1 if scale is None and all(goal is None for goal in goals.values()) else scale,
            **goals,
        )
        object.__setattr__(self, "f", f.after(x / stretch))

    @classmethod
    def audit_examples(cls) -> dict[str, "Additive"]:
        return {"additive": cls((x / 50) ** 0.5 + log(x / 100 + 1))}

    def shared(self, share: Fraction) -> "Additive":
        """Return the mechanism at a share of the pure loss.

        For one of several levels: share * f, if that is still a law that can be drawn.
        """
        scaled = Additive(share * self.f, lattice=self.coarse_lattice)
        try:
            accurate = math.isfinite(scaled.law_on(scaled.lattice()).variance)
        except RangeError:
            accurate = False
        if not accurate:
            raise ParameterError(
                parameter="f",
                problem=f"cannot be shared: a share of {share} leaves tails too heavy to have a variance or to be drawn",
                advice="Give each level its own query.",
            )
        return scaled

    def resized(self, size: Fraction) -> "Additive":
        """The same law stretched by a size."""
        return Additive(self.f, scale=size, lattice=self.coarse_lattice)

    def with_scale_times(self, factor: Fraction) -> "Additive":
        """The same law stretched by a factor."""
        return Additive(self.f, scale=factor, lattice=self.coarse_lattice)

    @property
    def function(self) -> Function:
        return self.f

    @property
    def width(self) -> Fraction:
        """A power of two at which the exponent has risen by 1."""
        low, high = -200, 200
        with working_precision():
            while high - low > 1:
                middle = (low + high) // 2
                risen = self.f.increase(BallArithmetic(), ball(Fraction(2) ** middle)) > 1
                low, high = (low, middle) if risen else (middle, high)
        return Fraction(2) ** high

    def law_on(self, lattice: Fraction) -> LatticeLaw:
        return ConcaveLaw(self.f.after(x * lattice))
