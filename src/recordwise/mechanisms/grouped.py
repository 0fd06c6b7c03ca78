"""Mechanisms made of others: one for each public group, or two draws of the same totals."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from recordwise.errors import ParameterError, own_argument_errors
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import Number, sqrt_upper
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
)
from recordwise.mechanisms.gaussian import Clamped, Gaussian, UnitSplit
from recordwise.mechanisms.sized import Sized
from recordwise.mechanisms.transformed import TransformedNoise
from recordwise.noise.laws import LatticeLaw, discrete_gaussian
from recordwise.noise.randomness import BitSource
from recordwise.policy.atoms import Outside
from recordwise.policy.columns import ConditionColumn, Measure, Value, literal
from recordwise.policy.conditions import among, complement
from recordwise.policy.constructors import By
from recordwise.policy.policy import Policy, compose, policy_of


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ByGroup(Mechanism):
    """A mechanism for each value of a public column, in one query.

    Such as ``ByGroup("naics", {"21": UnitSplit(at=500, rho="0.1")}, default=UnitSplit(at=50, rho="0.1"), length=2)``.

    The groups partition the records, so a record pays for the mechanism of its group alone ([S] Lemma 3; T-GROUPED,
    docs/theory/splitting.md). Cells that may hold several groups, as those of a total, use ``default``, and all their
    records pay for it.

    Args:
        by: The column that holds the group.
        values: The mechanism of each group.
        default: The mechanism of all other groups, and of cells that may hold several. Without it, both are refused.
        length: The number of characters of a text column that are the group; all unless given.

    Example:
        >>> from recordwise.mechanisms import Gaussian
        >>> split = ByGroup("naics", {"21": Gaussian(sigma=50)}, default=Gaussian(sigma=5), length=2)
        >>> split.policy("emp").loss({"emp": [10, 10], "naics": ["2111", "4451"]}).round(4)
        array([0.02, 2.  ])
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("by", "column that holds the group", read="column", needed=True),
        Parameter("values", "mechanism of each group", read="groups", needed=True),
        Parameter("default", "mechanism of other groups and of cells that may hold several", read="mechanism"),
        Parameter("length", "characters of the column that are the group", read="length"),
    )
    words: ClassVar[str] = "noise of a mechanism for each public group"

    by: str
    values: tuple[tuple[Value, Mechanism], ...]
    default: Mechanism | None
    length: int | None

    @own_argument_errors
    def __init__(
        self,
        by: str,
        values: Mapping[Any, Mechanism] | Sequence[tuple[Any, Mechanism]],
        *,
        default: Mechanism | None = None,
        length: int | None = None,
    ) -> None:
        given = values.items() if isinstance(values, Mapping) else values if isinstance(values, list | tuple) else ()
        pairs = tuple((literal(group), each) for group, each in given)
        if not pairs or len({group for group, _ in pairs}) < len(pairs):
            raise ParameterError(parameter="values", problem="must give each group one mechanism")
        object.__setattr__(self, "by", by)
        object.__setattr__(self, "values", pairs)
        object.__setattr__(self, "default", default)
        object.__setattr__(self, "length", length)
        ConditionColumn(by, length)
        _check(self.inside())

    @property
    def column(self) -> ConditionColumn:
        """The column, or the prefix of it, that is the group."""
        return ConditionColumn(self.by, self.length)

    @property
    def group_numbers(self) -> By:  # type: ignore[override]
        """The number of each group's mechanism among ``inside()``, counted from 1."""
        numbers = tuple((group, Fraction(number)) for number, (group, _) in enumerate(self.values, 1))
        return By(self.column, numbers, None if self.default is None else Fraction(len(numbers) + 1))

    def inside(self) -> tuple[Mechanism, ...]:
        """The mechanisms of the groups, then the default."""
        own = tuple(each for _, each in self.values)
        return own if self.default is None else (*own, self.default)

    @property
    def signed(self) -> bool:  # type: ignore[override]
        """Whether all of them take a positive and a negative part of each total."""
        return self.values[0][1].signed

    @property
    def to(self) -> Fraction | None:  # type: ignore[override]
        """Where all of them clamp contributions, if they do."""
        return self.values[0][1].to

    @property
    def loss_of_sum(self) -> bool:
        """Whether the policy at a sum bounds the joint loss in a cell, which has one group."""
        return all(each.loss_of_sum for each in self.inside())

    def shared(self, share: Fraction) -> "ByGroup":
        """The same with each mechanism at a share of its loss."""
        return self.with_inside([each.at_share(share) for each in self.inside()])

    def with_inside(self, mechanisms: Sequence[Mechanism]) -> "ByGroup":
        """The same groups with other mechanisms.

        Args:
            mechanisms: As many as ``inside()`` has, in its order.

        Returns:
            The mechanism for each group.
        """
        values = [(group, each) for (group, _), each in zip(self.values, mechanisms)]
        default = None if self.default is None else mechanisms[-1]
        return ByGroup(self.by, values, default=default, length=self.length)

    def further(self) -> "ByGroup":
        """The same with the further draw of each mechanism."""
        return self.with_inside([each.further() for each in self.inside()])

    def with_amount(self, amount: Fraction) -> "ByGroup":
        """The same with Gaussian noise of this sigma in the first group, in the others in proportion."""
        amounts = [each.noise_scale or each.noise_sigma for each in self.inside()]
        if None in amounts:
            self._lacks("with_amount", "planning")
        return self.with_inside(
            [each.with_amount(amount * own / amounts[0]) for each, own in zip(self.inside(), amounts) if own]  # type: ignore[operator]
        )

    def policy(self, measure: Measure | str, *, tight: bool = True) -> Policy:
        """Return the loss in cells of one group each.

        A record of a group without a mechanism has no guarantee.
        """
        return self._by_group([each.policy(measure, tight=tight) for each in self.inside()])

    def policy_of_count(self) -> Policy:
        """The loss of a count, in cells of one group each."""
        return self._by_group([each.policy_of_count() for each in self.inside()])

    def _by_group(self, policies: Sequence[Policy]) -> Policy:
        groups = [group for group, _ in self.values]
        parts = [each.where(among(self.column, [group])) for group, each in zip(groups, policies)]
        others = policy_of(Outside(self.by), Fraction(1)) if self.default is None else policies[-1]
        return compose([*parts, others.where(complement(among(self.column, groups)))])


def as_grouped(mechanism: Mechanism) -> ByGroup | None:
    """Return a mechanism if it is one for each group, else None."""
    return mechanism if isinstance(mechanism, ByGroup) else None


def _check(mechanisms: Sequence[object]) -> None:
    """Refuse what cannot be drawn for some cells of a table and not for others.

    Clamps are accepted if they are the same: then the totals are those of one clamped sum (T-CLAMP, T-GROUPED).
    """
    for each in mechanisms:
        if not isinstance(each, Mechanism) or each.answers != "totals":
            raise ParameterError(parameter="values", problem="must be mechanisms for counts and sums")
        if each.is_sized:
            raise _apart("has noise that follows sizes, whose bands are those of a whole table and not of a group")
        if each.group_numbers is not None or isinstance(each.at, By):
            raise _apart("differs by a second column within a group, and one column decides for a cell")
        if each.to != mechanisms[0].to:  # type: ignore[attr-defined]
            raise _apart("clamps sums at different bounds, and all totals of a table are clamped at one")
        if each.signed != mechanisms[0].signed:  # type: ignore[attr-defined]
            raise ParameterError(parameter="values", problem="must be all signed or none")


def _apart(problem: str) -> ParameterError:
    return ParameterError(parameter="values", problem=problem, advice="Give each group its own query.")


# Two draws of the same totals, averaged by their precisions (T-STAGES, docs/theory/stages.md).


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
    """The average of an answer and a further one, by inverse variances (T-STAGES).

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
        """The weight of the answer that is refined; the further one has the rest."""
        return _precision(self.before) / self.precision

    @property
    def noise_sigma(self) -> Fraction | None:
        """The sigma that is left, rounded up, where noise is on the data's own scale."""
        return sqrt_upper(1 / self.precision) if self.more.noise_scale is None else None

    @property
    def noise_scale(self) -> Fraction | None:
        """The sigma that is left, rounded up, where noise is on a transformed scale."""
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
        low, high = self._ends(value, noisy.grid, read_confidence(confidence))
        return Estimates(
            value=value,
            median_unbiased=value,
            standard_error=np.full(value.shape, math.sqrt(variance)),
            variance_unbiased=np.full(value.shape, variance),
            low=low,
            high=high,
            confidence=confidence,
        )

    def _ends(self, value: FloatArray, lattice: Fraction, confidence: float) -> tuple[FloatArray, FloatArray]:
        """Return both ends, rounded outward to digits that mean something."""
        draws = tuple((float(sqrt_upper(1 / each) / lattice), float(each / self.precision)) for each in _draws(self))
        reach = averaged_reach(draws, confidence) * float(lattice)
        digits = OUTWARD - math.floor(math.log10(reach))
        up, down = 10.0 ** max(digits, 0), 10.0 ** max(-digits, 0)
        slack = ROUNDINGS * (np.abs(value) + reach)
        low, high = value - reach - slack, value + reach + slack
        return np.floor(low * up / down) / up * down, np.ceil(high * up / down) / up * down

    def as_one(self) -> TransformedNoise:
        """Return the transform with one draw of the sigma that is left."""
        scale = self.noise_scale
        assert isinstance(self.more, TransformedNoise)
        assert scale is not None
        return self.more.with_noise(sigma=scale)

    def noisy_curve(self, noisy: Noisy) -> NoisyCurve | None:
        """Return the averages on the scale of the noise, and the way back."""
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


@dataclass(frozen=True, slots=True)
class AveragedLaw:
    """The law of an average of discrete Gaussian draws, for simulations."""

    draws: tuple[tuple[LatticeLaw, float], ...]
    """Each law with its weight."""

    @property
    def variance(self) -> float:
        """In squared lattice steps."""
        return sum(weight**2 * float(law.variance) for law, weight in self.draws)

    def draw(self, count: int, source: BitSource) -> "AveragedDraws":
        """Return averages of fresh draws.

        Args:
            count: How many.
            source: Random bits.
        """
        each = [weight * law.draw(count, source).values.astype(np.float64) for law, weight in self.draws]
        return AveragedDraws(np.sum(each, axis=0))


@dataclass(frozen=True, slots=True)
class AveragedDraws:
    """Averages, which are no whole numbers."""

    values: FloatArray


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
    """Return one over the variance of a draw, or of an average of draws."""
    return sum(_draws(mechanism), Fraction(0))


def _draws(mechanism: Mechanism) -> tuple[Fraction, ...]:
    """Return the precision of each draw behind an answer, the first one first."""
    if isinstance(mechanism, Refined):
        return _draws(mechanism.before) + _draws(mechanism.more)
    sigma = mechanism.noise_sigma if mechanism.noise_scale is None else mechanism.noise_scale
    assert sigma is not None
    return (1 / sigma**2,)


@lru_cache(maxsize=512)
def averaged_reach(draws: tuple[tuple[float, float], ...], confidence: float) -> float:
    """Return a bound on the average of discrete Gaussian draws, in lattice steps.

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
    if isinstance(before, Sized) and isinstance(after, Sized):
        if (before.floor, before.low_below, before.low is None) != (after.floor, after.low_below, after.low is None):
            raise _unrefined("has another floor or another mechanism for the lowest bands")
        low = None if before.low is None or after.low is None else refine(before.low, after.low)
        return Sized(refine(before.mechanism, after.mechanism), floor=after.floor, low=low, low_below=after.low_below)
    if isinstance(before, ByGroup) and isinstance(after, ByGroup):
        groups, others = dict(before.values), dict(after.values)
        same = (before.by, before.length, before.default is None) == (after.by, after.length, after.default is None)
        if not same or list(groups) != list(others):
            raise _unrefined("has other groups")
        default = None if before.default is None or after.default is None else refine(before.default, after.default)
        values = [(group, refine(groups[group], each)) for group, each in after.values]
        return ByGroup(after.by, values, default=default, length=after.length)
    return Refined(before=before, more=_further(before, after))


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
