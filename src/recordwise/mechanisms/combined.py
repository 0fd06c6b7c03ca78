"""Answers made of several draws: averages of two, more noise on an answer, and noise carried over from an earlier one."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import Number, fraction_text, rational, sqrt_upper
from recordwise.mechanisms.accuracy import MOST_SUMMED, short
from recordwise.mechanisms.base import (
    ROUNDINGS,
    Estimates,
    Mechanism,
    Noisy,
    NoisyCurve,
    Parameter,
    parameter_json,
    read_confidence,
    read_step,
    whole_totals,
)
from recordwise.mechanisms.gaussian import Clamped, Gaussian, SeveralDraws, Tiered, UnitSplit
from recordwise.mechanisms.sized import ByGroup, Sized
from recordwise.mechanisms.transformed import TransformedNoise
from recordwise.noise.laws import AveragedLaw, discrete_gaussian
from recordwise.noise.randomness import BitSource
from recordwise.policy.columns import Measure
from recordwise.policy.constructors import By
from recordwise.policy.policy import Policy

# Two draws of the same totals, averaged by their precisions (T-STAGES, docs/theory/series.md).


REACH = 12
"""Sigmas of each draw that are summed; what is left out is below 1e-32."""
FINE = 1000
"""Steps of the grid on which draws are added, to one standard deviation of their average."""
CERTAIN = 1e-9
"""Above the rounding of sums of probabilities."""
OUTWARD = 3
"""Ends keep this many digits below the first digit of half an interval's width."""


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Refined(Mechanism):
    """The average of two answers, by inverse variances (T-STAGES).

    With both draws a record loses exactly what one draw of the variance that is left would cost. ``release`` makes both; a release
    that refines an earlier one has ``continuing`` of it, which draws the further one alone. Made by ``refine``.

    Args:
        before: The mechanism of the answer that is refined.
        more: The mechanism of the further answer, of the same kind.
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("before", "mechanism of the answer that is refined", read="mechanism", needed=True),
        Parameter("more", "mechanism of the further answer", read="mechanism", needed=True),
    )
    words: ClassVar[str] = "Gaussian noise, made smaller by further draws"

    before: Mechanism
    more: Mechanism

    def __init__(self, *, before: Mechanism, more: Mechanism) -> None:
        object.__setattr__(self, "before", before)
        object.__setattr__(self, "more", more)

    @property
    def precision(self) -> Fraction:
        """One over the variance that is left."""
        return _precision(self.before) + _precision(self.more)

    @property
    def weight(self) -> Fraction:
        """The weight of the refined answer; the further one has the rest."""
        return _precision(self.before) / self.precision

    @property
    def noise_sigma(self) -> Fraction | None:
        """The sigma that is left, rounded up, where noise is on the data's own scale."""
        return sqrt_upper(1 / self.precision) if self.more.noise_scale is None else None

    @property
    def noise_scale(self) -> Fraction | None:
        """The remaining sigma, rounded up, where noise is on a transformed scale."""
        return None if self.more.noise_scale is None else sqrt_upper(1 / self.precision)

    def combine(self, earlier: FloatArray, drawn: Noisy) -> Noisy:
        """Return the averages of published answers and of further ones.

        Args:
            earlier: The published answers, on the scale of the noise.
            drawn: The further ones.

        Returns:
            The averages; the points are still those of the further answers.
        """
        share = float(self.weight)
        return replace(drawn, combined=share * earlier + float(1 - self.weight) * drawn.values())

    def further(self) -> Mechanism:
        """Return the mechanism of the further draw, which alone is paid for by a release that refines."""
        return self.more

    def continuing(self, earlier: FloatArray) -> "Continued":
        """Return the mechanism that draws only the further answers.

        Args:
            earlier: The published answers of the cells, on the scale of the noise.
        """
        return Continued(before=self.before, more=self.more, earlier=earlier)

    def release(self, totals: Any, *, step: Number = 1, rng: BitSource | None = None) -> Noisy:
        """Draw both answers, which costs what the policy says."""
        first = self.before.release(totals, step=step, rng=rng).values()
        return self.combine(first, self.more.release(totals, step=step, rng=rng))

    def estimate(self, noisy: Noisy, *, confidence: float = 0.95) -> Estimates:
        """Return the averages with intervals from the law of both draws."""
        value = noisy.values()
        if self.noise_scale is not None:
            points = np.rint(value / float(noisy.grid)).astype(np.int64)
            return self.as_one().estimate(replace(noisy, points=points, combined=None), confidence=confidence)
        variance = float(self.variance(0.0, step=noisy.step))
        return _estimates(value, variance, self._ends(value, noisy.grid, read_confidence(confidence)), confidence)

    def _ends(self, value: FloatArray, lattice: Fraction, confidence: float) -> tuple[FloatArray, FloatArray]:
        """Return both ends, rounded outward to digits that mean something."""
        draws = tuple((float(sqrt_upper(1 / each) / lattice), float(each / self.precision)) for each in _draws(self))
        return _outward_ends(value, averaged_reach(draws, confidence) * float(lattice))

    def as_one(self) -> TransformedNoise:
        """Return the transform with one draw of the sigma that is left."""
        scale = self.noise_scale
        assert isinstance(self.more, TransformedNoise)
        assert scale is not None
        return self.more.with_noise(sigma=scale)

    def noisy_curve(self, noisy: Noisy) -> NoisyCurve | None:
        """Return the averages on the noise's scale, and the way back."""
        if self.noise_scale is not None:
            return self.as_one().noisy_curve(noisy)
        sigma = self.noise_sigma
        assert sigma is not None
        return Gaussian(sigma=sigma).noisy_curve(noisy)

    def drawn_law(self, step: Number) -> Any:
        """Return the law of the average in lattice steps, and the lattice; None on a transformed scale."""
        if self.noise_scale is not None:
            return None
        lattice = read_step(step)
        draws = [(sqrt_upper(1 / each) / lattice, float(each / self.precision)) for each in _draws(self)]
        return AveragedLaw(tuple((discrete_gaussian(sigma), weight) for sigma, weight in draws)), lattice

    def policy(self, measure: Measure | str, *, tight: bool = True) -> Policy:
        """Return the loss of both draws."""
        return self.before.policy(measure, tight=tight) + self.more.policy(measure, tight=tight)

    def policy_of_count(self) -> Policy:
        """Return the loss of both draws of a count."""
        return self.before.policy_of_count() + self.more.policy_of_count()

    def loss_at_shift(self, shift: Number, *, step: Number = 1) -> float:
        """Return the loss of both draws at a shift."""
        return sum(each.loss_at_shift(shift, step=step) for each in (self.before, self.more)) * (1 + CERTAIN)

    def realized_loss(self, total_without: Number, contribution: Number, *, step: Number = 1) -> float:
        """Return the loss of both draws of a contribution."""
        both = (self.before, self.more)
        return sum(each.realized_loss(total_without, contribution, step=step) for each in both) * (1 + CERTAIN)

    def variance(self, total: Any, *, step: Number = 1) -> FloatArray:
        """Return the variance of the average, from the laws that are drawn."""
        if self.noise_scale is not None:
            return self.as_one().variance(total, step=step)
        share = float(self.weight)
        first, second = (each.variance(total, step=step) for each in (self.before, self.more))
        return np.asarray(share**2 * first + (1 - share) ** 2 * second)

    def bias(self, total: Any, *, step: Number = 1) -> FloatArray:
        """Return the bias that a transform's grid leaves; otherwise none."""
        return np.zeros(np.shape(total)) if self.noise_scale is None else self.as_one().bias(total, step=step)

    def shared(self, share: Fraction) -> "Refined":
        """The same with each draw at a share of its loss."""
        return Refined(before=self.before.at_share(share), more=self.more.at_share(share))

    def resized(self, size: Fraction) -> "Refined":
        """The same with both draws in proportion to a size."""
        return Refined(before=self.before.resized(size), more=self.more.resized(size))

    def threshold(self, measure: Measure | str) -> Fraction | By | None:
        return self.more.threshold(measure)

    def resolved(self, at: Any) -> "Refined":
        """The same with one plain threshold."""
        return Refined(before=self.before.resolved(at), more=self.more.resolved(at))

    def with_noise_scale(self, scale: Fraction) -> Mechanism:
        """Return the transform with one draw at this scale."""
        return self.more.with_noise_scale(scale)

    @property
    def at(self) -> Any:
        """The threshold or size of both."""
        return self.more.at

    @property
    def to(self) -> Fraction | None:  # type: ignore[override]
        """The bound of both."""
        return self.more.to

    @property
    def signed(self) -> bool:  # type: ignore[override]
        """Whether both take a positive and a negative part of each total."""
        return self.more.signed

    @property
    def loss_of_sum(self) -> bool:
        """Whether the policy at a sum bounds the joint loss."""
        return self.before.loss_of_sum and self.more.loss_of_sum

    @property
    def variance_varies(self) -> bool:  # type: ignore[override]
        """Whether the variance grows with the total."""
        return self.more.variance_varies

    @property
    def logarithmic(self) -> bool | None:  # type: ignore[override]
        """Whether total plus offset is lognormal."""
        return self.more.logarithmic

    @property
    def offset(self) -> Fraction:
        """The offset of both transforms."""
        return self.as_one().offset

    @property
    def sigma(self) -> Fraction | None:
        """The sigma that is left, on either scale."""
        return self.noise_sigma if self.noise_scale is None else self.noise_scale


class Continued(Refined):
    """Refined answers of cells whose first answers were published before."""

    __slots__ = ("earlier",)
    earlier: FloatArray

    def __init__(self, *, before: Mechanism, more: Mechanism, earlier: FloatArray) -> None:
        Refined.__init__(self, before=before, more=more)
        object.__setattr__(self, "earlier", earlier)

    def release(self, totals: Any, *, step: Number = 1, rng: BitSource | None = None) -> Noisy:
        """Draw the further answers alone, and average them with the published ones."""
        return self.combine(self.earlier, self.more.release(totals, step=step, rng=rng))


def _precision(mechanism: Mechanism) -> Fraction:
    """Return one over the variance of a draw or an average."""
    return sum(_draws(mechanism), Fraction(0))


def _draws(mechanism: Mechanism) -> tuple[Fraction, ...]:
    """Return the precision of each draw behind an answer, in order."""
    if isinstance(mechanism, Refined):
        return _draws(mechanism.before) + _draws(mechanism.more)
    sigma = mechanism.noise_sigma if mechanism.noise_scale is None else mechanism.noise_scale
    assert sigma is not None
    return (1 / sigma**2,)


def _estimates(value: FloatArray, variance: float, ends: tuple[FloatArray, FloatArray], confidence: float) -> Estimates:
    """Return unbiased answers that all have one variance."""
    return Estimates(
        value=value,
        median_unbiased=value,
        standard_error=np.full(value.shape, math.sqrt(variance)),
        variance_unbiased=np.full(value.shape, variance),
        low=ends[0],
        high=ends[1],
        confidence=confidence,
    )


def _outward_ends(value: FloatArray, reach: float) -> tuple[FloatArray, FloatArray]:
    """Return both ends, rounded outward to digits that mean something."""
    digits = OUTWARD - math.floor(math.log10(reach))
    up, down = 10.0 ** max(digits, 0), 10.0 ** max(-digits, 0)
    slack = ROUNDINGS * (np.abs(value) + reach)
    low, high = value - reach - slack, value + reach + slack
    return np.floor(low * up / down) / up * down, np.ceil(high * up / down) / up * down


@lru_cache(maxsize=512)
def averaged_reach(draws: tuple[tuple[float, float], ...], confidence: float) -> float:
    """Return a bound on an average of discrete Gaussian draws, in steps.

    The law of the sum on a grid; each draw is off by at most half a grid step there, which is added. Beyond a thousand steps
    per sigma, the normal quantile and half a lattice step (T-RATIO).

    Args:
        draws: The sigma of each draw, in lattice steps, and its weight.
        confidence: The probability with which the average stays within the bound.
    """
    spread = math.sqrt(sum((sigma * weight) ** 2 for sigma, weight in draws))
    if max(sigma for sigma, _ in draws) > MOST_SUMMED:
        return NormalDist().inv_cdf((1 + confidence) / 2) * spread + 0.5
    width = spread / FINE
    law: FloatArray = np.ones(1)
    for sigma, weight in draws:
        points = np.arange(-math.ceil(REACH * sigma) - 1, math.ceil(REACH * sigma) + 2)
        mass = np.exp(-((points / sigma) ** 2) / 2)
        places = np.rint(points * weight / width).astype(np.int64)
        law = _added(law, np.asarray(np.bincount(places - places[0], weights=mass / mass.sum()), np.float64))
    middle = len(law) // 2
    within = np.cumsum(law[middle:]) + np.append(0.0, np.cumsum(law[middle + 1 :]))
    inside = int(np.searchsorted(within, confidence + CERTAIN))
    return (min(inside, len(within) - 1) + len(draws) / 2) * width


def _added(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return the law of the sum of two numbers on a grid."""
    size = len(one) + len(other) - 1
    padded = 1 << (size - 1).bit_length()
    return np.asarray(np.fft.irfft(np.fft.rfft(one, padded) * np.fft.rfft(other, padded), padded)[:size])


def refine(before: Mechanism, after: Mechanism) -> Mechanism:
    """Return the mechanism that turns answers of ``before`` into those of ``after``.

    The further draw has at least the variance that is needed, so that both cost at most what ``after`` costs.

    Args:
        before: The mechanism of the published answers.
        after: One of the same kind with less noise.

    Raises:
        ParameterError: There is no proof for these mechanisms, or there is nothing to draw.
    """
    return _inside(before, after, lambda one, other: Refined(before=one, more=_further(one, other)))


def _inside(before: Mechanism, after: Mechanism, made: Callable[[Mechanism, Mechanism], Mechanism]) -> Mechanism:
    """Return the mechanism made of two, or of each pair inside sized ones or those by group."""
    if isinstance(before, Sized) and isinstance(after, Sized):
        if (before.floor, before.low_below, before.low is None) != (after.floor, after.low_below, after.low is None):
            raise _unrefined("has another floor or another mechanism for the lowest bands")
        low = None if before.low is None or after.low is None else _inside(before.low, after.low, made)
        inner = _inside(before.mechanism, after.mechanism, made)
        return Sized(inner, floor=after.floor, low=low, low_below=after.low_below)
    if isinstance(before, ByGroup) and isinstance(after, ByGroup):
        groups, others = dict(before.values), dict(after.values)
        same = (before.by, before.length, before.default is None) == (after.by, after.length, after.default is None)
        if not same or list(groups) != list(others):
            raise _unrefined("has other groups")
        default = (
            None if before.default is None or after.default is None else _inside(before.default, after.default, made)
        )
        values = [(group, _inside(groups[group], each, made)) for group, each in after.values]
        return ByGroup(after.by, values, default=default, length=after.length)
    return made(before, after)


def coarsen(before: Mechanism, after: Mechanism) -> Mechanism:
    """Return the mechanism that makes answers of the variance of ``after`` from those of ``before`` (T-TIER).

    Args:
        before: The mechanism of the finer answers.
        after: One of the same kind with more noise.

    Raises:
        ParameterError: There is no proof for these mechanisms, or there is nothing to add.
    """
    return _inside(before, after, _coarsened)


def _coarsened(before: Mechanism, after: Mechanism) -> Mechanism:
    for each, of in ((before, " in the finer release"), (after, "")):
        if not isinstance(each, Gaussian | UnitSplit | Clamped):
            raise _unrefined(f"is {type(each).__name__}{of}, {UNCOARSENED}")
        if isinstance(each.at, By | Mapping):
            raise _unrefined("has thresholds that differ by group or measure, so that cells have no one variance")
    if type(before) is not type(after) or _shape(before) != _shape(after):
        raise _unrefined("is of another kind, threshold or bound than in the finer release")
    wanted, known = after.noise_sigma, before.noise_sigma
    assert wanted is not None
    assert known is not None
    if wanted <= known:
        raise _unrefined("must have more noise than in the finer release: the difference is what is drawn")
    return Tiered(before=before, more=Gaussian(sigma=short(sqrt_upper(wanted**2 - known**2), up=True)))


UNCOARSENED = (
    "and there is a law of the sum for one draw of Gaussian noise alone, not for averages, carried or other noise"
)


def _further(before: Mechanism, after: Mechanism) -> Mechanism:
    """Return the mechanism of the further draw."""
    model = before
    while isinstance(model, Refined):
        model = model.more
    if not isinstance(after, Gaussian | UnitSplit | Clamped | TransformedNoise) or after.draws_laplace:
        raise _unrefined(f"is {type(after).__name__}, {NOT_GAUSSIAN}")
    if isinstance(after, TransformedNoise) and after.sigma is None:
        raise _unrefined(f"has Laplace noise, {NOT_GAUSSIAN}")
    if type(model) is not type(after) or _shape(model) != _shape(after):
        raise _unrefined("is of another kind, threshold, bound, function or offset than in the release that is refined")
    if isinstance(after, UnitSplit | Clamped):
        rho = after.rho - _rho(before)
        if rho <= 0:
            raise _unrefined(NOTHING_LEFT)
        less = short(rho, up=False)
        return UnitSplit(at=after.at, rho=less) if isinstance(after, UnitSplit) else Clamped(to=after.to, rho=less)
    precision = _precision(after) - _precision(before)
    if precision <= 0:
        raise _unrefined(NOTHING_LEFT)
    sigma = short(sqrt_upper(1 / precision), up=True)
    return Gaussian(sigma=sigma) if isinstance(after, Gaussian) else after.with_noise(sigma=sigma)


NOT_GAUSSIAN = (
    "and only Gaussian noise can be refined: averages of other noise cost more than one draw of their accuracy"
)
NOTHING_LEFT = "must have less noise than in the release that is refined, for the rest is what is drawn and paid for"


def _unrefined(problem: str) -> ParameterError:
    return ParameterError(parameter="the mechanism", problem=problem, advice="Publish it by a plan of its own.")


def _rho(mechanism: Mechanism) -> Fraction:
    """Return the loss of all draws at their common threshold or bound."""
    if isinstance(mechanism, Refined):
        return _rho(mechanism.before) + _rho(mechanism.more)
    assert isinstance(mechanism, UnitSplit | Clamped)
    return mechanism.rho


def _shape(mechanism: Mechanism) -> dict[str, Any]:
    """Return the parameters that are not its noise."""
    return {
        each.name: parameter_json(getattr(mechanism, each.stored))
        for each in mechanism.parameters
        if each.role == "shape"
    }


# Noise that is carried over from a published answer to a later one of other records (T-SERIES, docs/theory/series.md).


SLACK = Fraction(1_000_001, 1_000_000)
"""Above the roundings of sigmas at a share of a level."""


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Carried(SeveralDraws):
    """An answer with a part of the noise of an earlier one: y = carry y_before + (Q - carry Q_before) + fresh noise (T-SERIES).

    The policy is what a record pays for coming into the table and, where ``leave`` is above 0, for leaving it in the next
    period: every unit, whether it stays, moves, enters or leaves, loses at most the sum over its records. Drawn on its own, as
    in a cell that was not published before, it is plain noise of the same variance.

    Args:
        more: The fresh noise.
        before: The mechanism of the earlier answer; None where a series begins.
        carry: The part of the earlier noise that is kept; 1 for a revision.
        leave: The part of this noise that the next period will keep.
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("more", "mechanism of the fresh noise", read="mechanism", needed=True),
        Parameter("before", "mechanism of the answer whose noise is carried", read="mechanism"),
        Parameter("carry", "part of the earlier noise that is kept"),
        Parameter("leave", "part of this noise that the next period will keep"),
    )
    words: ClassVar[str] = "Gaussian noise, a part of it carried over from an earlier release"
    loss_of_sum: ClassVar[bool] = True

    more: Mechanism
    before: Mechanism | None
    carry: Fraction
    leave: Fraction

    def __init__(
        self, *, more: Mechanism, before: Mechanism | None = None, carry: Number = 0, leave: Number = 0
    ) -> None:
        object.__setattr__(self, "more", more)
        object.__setattr__(self, "before", before)
        object.__setattr__(self, "carry", rational(carry, parameter="carry"))
        object.__setattr__(self, "leave", rational(leave, parameter="leave"))

    @property
    def noise_variance(self) -> Fraction:
        """The variance of all noise in an answer, that of continuous laws."""
        return _variance(self)

    @property
    def noise_sigma(self) -> Fraction:
        """The root of that variance, rounded up."""
        return sqrt_upper(self.noise_variance)

    @property
    def sigma(self) -> Fraction:
        """The same."""
        return self.noise_sigma

    @property
    def keeps_variance(self) -> bool:
        """Whether answers are as accurate as the earlier ones, but for rounding."""
        return self.before is not None and self.noise_variance <= SLACK**10 * _variance(self.before)

    @property
    def going(self) -> Fraction:
        """Twice the loss of a contribution of 1 that leaves in the next period, which is paid in advance."""
        return SLACK * self.leave**2 / (self.noise_variance * (1 - self.leave**2))

    def paid(self) -> Gaussian:
        """Return the noise whose loss is that of coming and of leaving."""
        drawn = self.more.noise_sigma
        assert drawn is not None
        return Gaussian(sigma=1 / sqrt_upper(1 / drawn**2 + self.going))

    def fresh(self) -> Gaussian:
        """Return the noise of a cell without an earlier answer."""
        return Gaussian(sigma=self.noise_sigma)

    def further(self) -> Mechanism:
        """Return the fresh noise, paid by records that come or leave."""
        return self.more

    def following(self, earlier: FloatArray | None, totals: Any = None) -> Mechanism:
        """Return the mechanism that follows published answers.

        Args:
            earlier: The published answers of the cells; None for cells that were not listed.
            totals: The totals that they were drawn from, in lattice steps.
        """
        return self.fresh() if earlier is None else Following(self, earlier, totals)

    def draws(self) -> tuple[tuple[Fraction, Fraction, int], ...]:
        """Return the sigma, the weight and the lattice of each draw in an answer: one over how many parts of a step."""
        own = self.more.noise_sigma
        assert own is not None
        last = ((own, Fraction(1), self.carry.denominator),)
        if self.before is None or not self.carry:
            return last
        return tuple((sigma, weight * self.carry, parts) for sigma, weight, parts in _weighted(self.before)) + last

    @property
    def change_part(self) -> float:
        """The standard deviation of a change from the earlier answer, as a part of that of this one."""
        assert self.before is not None
        *_, (last, _, _) = self.draws()
        return math.sqrt(((1 - self.carry) ** 2 * _variance(self.before) + last**2) / self.noise_variance)

    def change_reach(self, step: Number, confidence: float) -> float:
        """Return a bound on the error of the change from the earlier answer to this one.

        Args:
            step: The measure's lattice.
            confidence: The probability with which the error stays within the bound.
        """
        assert self.before is not None
        *_, last = self.draws()
        found = []
        for chain in _chains(self.before):
            kept = [(sigma, weight * (1 - self.carry), parts) for sigma, weight, parts in chain]
            found.append(_reach_of((*(each for each in kept if each[1]), last), read_step(step), confidence))
        return max(found)

    def release(self, totals: Any, *, step: Number = 1, rng: BitSource | None = None) -> Noisy:
        """Draw fresh noise of the same variance."""
        return self.fresh().release(totals, step=step, rng=rng)

    def estimate(self, noisy: Noisy, *, confidence: float = 0.95) -> Estimates:
        """Return the answers with intervals from the law of all draws."""
        value, lattice = noisy.values(), noisy.step
        variance = float(self.variance(0.0, step=lattice))
        reach = max(_reach_of(each, lattice, read_confidence(confidence)) for each in _chains(self))
        return _estimates(value, variance, _outward_ends(value, reach), confidence)

    def started(self, first: int) -> tuple[Fraction, Fraction, int]:
        """Return the draw of an answer that was drawn afresh where others have this draw."""
        draws, weight = self.draws(), self.draws()[first][1]
        spread = sqrt_upper(sum((sigma * own) ** 2 for sigma, own, _ in draws[: first + 1]))
        return spread / weight, weight, 1

    def noisy_curve(self, noisy: Noisy) -> NoisyCurve | None:
        """Return the answers as they are: noise is on the totals."""
        return self.fresh().noisy_curve(noisy)

    def drawn_law(self, step: Number) -> Any:
        """Return the law of an answer in lattice steps, and the lattice."""
        lattice = read_step(step)
        laws = [
            (discrete_gaussian(sigma * parts / lattice), float(weight / parts)) for sigma, weight, parts in self.draws()
        ]
        return AveragedLaw(tuple(laws)), lattice

    def policy(self, measure: Measure | str, *, tight: bool = True) -> Policy:
        """Return what a record pays for coming and for leaving."""
        return self.paid().policy(measure, tight=tight)

    def policy_of_count(self) -> Policy:
        """Return what a record pays in a count, coming and leaving."""
        return self.paid().policy_of_count()

    def loss_at_shift(self, shift: Number, *, step: Number = 1) -> float:
        """Return the loss of coming and of leaving."""
        return self.paid().loss_at_shift(shift, step=step)

    def shared(self, share: Fraction) -> "Carried":
        """The same with each draw at a share of its loss."""
        before = None if self.before is None else self.before.at_share(share)
        return Carried(more=self.more.at_share(share), before=before, carry=self.carry, leave=self.leave)


class Following(Carried):
    """Carried noise of cells whose earlier answers were published."""

    __slots__ = ("earlier", "totals")
    earlier: FloatArray
    totals: Any

    def __init__(self, own: Carried, earlier: FloatArray, totals: Any) -> None:
        Carried.__init__(self, more=own.more, before=own.before, carry=own.carry, leave=own.leave)
        object.__setattr__(self, "earlier", earlier)
        object.__setattr__(self, "totals", totals)

    def release(self, totals: Any, *, step: Number = 1, rng: BitSource | None = None) -> Noisy:
        """Draw noise around Q - carry Q_before, on the lattice of these differences, and add the carried answers.

        On the data's own lattice the fraction of what is drawn would tell Q_before modulo the denominator of ``carry``.
        """
        lattice, parts = read_step(step), self.carry.denominator
        moved = (
            np.asarray(totals).astype(object) * parts - np.asarray(self.totals).astype(object) * self.carry.numerator
        )
        drawn = self.more.release(whole_totals(moved), step=lattice / parts, rng=rng)
        combined = float(self.carry) * self.earlier + drawn.values()
        return replace(drawn, grid=lattice, step=lattice, combined=combined)


def _variance(mechanism: Mechanism) -> Fraction:
    """Return the variance of an answer, that of continuous laws."""
    return sum(((sigma * weight) ** 2 for sigma, weight, _ in _weighted(mechanism)), Fraction(0))


def _weighted(mechanism: Mechanism) -> tuple[tuple[Fraction, Fraction, int], ...]:
    """Return the sigma, weight and lattice of each draw in an answer."""
    if isinstance(mechanism, Carried):
        return mechanism.draws()
    found, total = _draws(mechanism), _precision(mechanism)
    return tuple((sqrt_upper(1 / each), each / total, 1) for each in found)


def _chains(mechanism: Mechanism) -> list[tuple[tuple[Fraction, Fraction, int], ...]]:
    """Return the draws that an answer may have: a cell may have been listed for the first time at any of them."""
    draws = _weighted(mechanism)
    if not isinstance(mechanism, Carried):
        return [draws]
    return [draws, *((mechanism.started(first), *draws[first + 1 :]) for first in range(len(draws)))]


def _reach_of(draws: Sequence[tuple[Fraction, Fraction, int]], lattice: Fraction, confidence: float) -> float:
    """Return a bound on a weighted sum of draws, in units."""
    steps = tuple((float(sigma * parts / lattice), float(abs(weight) / parts)) for sigma, weight, parts in draws)
    return averaged_reach(steps, confidence) * float(lattice)


def carried_from(before: Mechanism | None, after: Mechanism, *, carry: Fraction, leave: Fraction) -> Carried:
    """Return the mechanism that carries noise of ``before`` into answers of the variance of ``after``.

    Args:
        before: The mechanism of the published answers; None where a series begins.
        after: Gaussian noise as the plan states it.
        carry: The part of the earlier noise that is kept; 1 for a revision.
        leave: The part of this noise that the next period will keep; 0 without one.

    Raises:
        ParameterError: There is no proof for these mechanisms, or too little noise to draw.
    """
    if not isinstance(after, Gaussian):
        raise _uncarried(f"is {type(after).__name__}, and there is a proof for Gaussian(...) alone")
    if before is None:
        return Carried(more=after, leave=leave)
    if not _is_carriable(before):
        raise _uncarried("was other than Gaussian noise in the earlier release, for which there is no proof")
    if _releases_in(before) >= MOST_CARRIED:
        raise _uncarried(
            f"has noise of {MOST_CARRIED} earlier releases in it: begin again with a release that carries none"
        )
    kept, wanted = _variance(before), after.noise_sigma**2
    if carry < 1:
        paid = _prepaid(before, carry)
        if not paid:
            raise _uncarried(
                f"was published before without carry = {fraction_text(carry)}, so that nobody paid for leaving"
            )
        wanted = max(wanted, kept) if wanted * SLACK**10 >= kept else wanted
        least = SLACK * carry**2 / paid
        if wanted - carry**2 * kept < least:
            raise _uncarried(
                f"has less noise than the release before it allows: give it a sigma of at least "
                f"{float(short(sqrt_upper(least + carry**2 * kept), up=True)):g}"
            )
    if wanted <= carry**2 * kept:
        raise _uncarried(
            "must have more noise than the release that is revised: the difference hides who was corrected"
        )
    drawn = short(sqrt_upper(wanted - carry**2 * kept), up=True)
    return Carried(more=Gaussian(sigma=drawn), before=before, carry=carry, leave=leave)


MOST_CARRIED = 100
"""Every release whose noise is in an answer makes all later ones slower to read: 100 take some seconds."""


def _releases_in(mechanism: Mechanism | None) -> int:
    """Return of how many releases an answer has noise."""
    found = 0
    while isinstance(mechanism, Carried):
        found, mechanism = found + 1, mechanism.before
    return found + (mechanism is not None)


def _prepaid(before: Mechanism, carry: Fraction) -> Fraction:
    """Return what the period before paid for leaving; corrections of a period share what it paid."""
    while isinstance(before, Carried) and before.carry == 1 and before.before is not None:
        before = before.before
    return before.going if isinstance(before, Carried) and before.leave == carry else Fraction(0)


def _is_carriable(mechanism: Mechanism) -> bool:
    if isinstance(mechanism, Refined):
        return _is_carriable(mechanism.before) and _is_carriable(mechanism.more)
    return isinstance(mechanism, Gaussian | Carried)


def _uncarried(problem: str) -> ParameterError:
    return ParameterError(parameter="the mechanism", problem=problem, advice="Publish it by a plan of its own.")
