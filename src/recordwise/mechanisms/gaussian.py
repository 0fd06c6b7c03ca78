"""Gaussian noise for counts and sums: Gaussian, Clamped, UnitSplit, their base, and the noise of a public tier.

Counts are calibrated by a rho, sums by a sigma.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, Unpack

import numpy as np

from recordwise.errors import ParameterError, own_argument_errors
from recordwise.exact.arithmetic import FloatArray, normal_cdf
from recordwise.exact.numbers import Number, float_upper, positive, rational, sqrt_upper
from recordwise.mechanisms.accuracy import (
    MOST_SUMMED,
    ROUNDING,
    AdditiveNoise,
    lattice_cdf,
    over_totals,
    short,
    smallest,
)
from recordwise.mechanisms.base import (
    GAUSSIAN_GOALS,
    BoolArray,
    Estimates,
    GaussianGoals,
    IntArray,
    Mechanism,
    Noisy,
    NoisyCurve,
    Parameter,
    filled,
    lattice_ends,
    noised,
    read_confidence,
    read_goals,
    read_step,
    source_of,
    to_floats,
    whole_totals,
)
from recordwise.mechanisms.calibration import gaussian_variance, loss_for, only_goal, solve
from recordwise.noise.laws import AveragedLaw, DiscreteGaussian, LatticeLaw, discrete_gaussian
from recordwise.noise.randomness import BitSource, is_private
from recordwise.noise.two_draws import half_width, loss_factor
from recordwise.policy.columns import Measure
from recordwise.policy.constructors import By, clamped_sum, constant, gaussian_sum, split
from recordwise.policy.policy import Policy, compose

if TYPE_CHECKING:
    from sqlglot import exp


NEAR_GAUSSIAN_STEPS = 1000
"""Lattice steps that a sigma must have for Gaussian-DP numbers to be accurate up to rounding (MATH 6)."""
SLIGHTLY_LESS = Fraction(999_999, 1_000_000)


class GaussianNoise(AdditiveNoise):
    """A sum plus discrete Gaussian noise on the data's lattice."""

    __slots__ = ()

    loss_of_sum: ClassVar[bool] = True

    @property
    def noise_sigma(self) -> Fraction:
        """The sigma that is drawn, in the measure's units."""
        raise NotImplementedError

    def drawn_law(self, step: Number) -> tuple[LatticeLaw, Fraction]:
        lattice = read_step(step)
        return self._law(lattice), lattice

    def noise_steps(self, step: Number) -> Fraction | None:
        """Sigma in lattice steps."""
        return self.noise_sigma / read_step(step)

    def with_sigma(self, sigma: Fraction) -> "GaussianNoise":
        raise NotImplementedError

    def smooth_error_quantiles(
        self, totals: FloatArray, *, confidence: float, step: Number = 1, kept: FloatArray | None = None
    ) -> FloatArray:
        """Return error quantiles without the lattice.

        A quantile in whole steps has no slope to follow.
        """
        return np.full(np.shape(totals), NormalDist().inv_cdf((1 + confidence) / 2) * float(self.noise_sigma))

    def most_noise(
        self, total: float, reach: float, *, confidence: float, step: Number = 1, kept: float | None = None
    ) -> "GaussianNoise | None":
        """Return the noisiest mechanism with |value - total| <= ``reach``.

        With probability ``confidence`` by the tail of the lattice law: a normal law of the same sigma can miss the
        goal if sigma is only a few steps.
        """
        lattice = read_step(step)
        beyond = math.floor(Fraction(reach) / lattice) + 1

        def nearly_missed(sigma: Fraction) -> float:
            return 2 * float(1 - lattice_cdf(np.array([beyond - 1.0]), float(sigma / lattice))[0])

        sigma = solve(nearly_missed, 1 - confidence, rising=True)
        found = self.with_sigma(sigma)
        # Floats lead to the sigma; the exact tail decides.
        while 2 * float(discrete_gaussian(found.noise_sigma / lattice).sf_upper(beyond)) > 1 - confidence:
            sigma *= SLIGHTLY_LESS
            found = self.with_sigma(sigma)
        return found

    def release(self, totals: Any, *, step: Number = 1, rng: BitSource | None = None) -> Noisy:
        """Add noise to exact totals, given as whole numbers of lattice steps."""
        source, lattice = source_of(rng), read_step(step)
        points = noised(whole_totals(totals), self._law(lattice), source)
        return Noisy(points=points, grid=lattice, step=lattice, private=is_private(source))

    def estimate(self, noisy: Noisy, *, confidence: float = 0.95) -> Estimates:
        """Return noisy totals, mean- and median-unbiased, with equal spread."""
        law = self._law(noisy.grid)
        half_width = int(law.quantile((1 + read_confidence(confidence)) / 2))
        return additive_estimates(noisy, law.variance * float(noisy.grid) ** 2, half_width, confidence)

    def noisy_curve(self, noisy: Noisy) -> NoisyCurve:
        """Noise was added to the totals themselves."""
        value = noisy.values()
        width, half = float(self.noise_sigma), float(noisy.grid) / 2
        same, none = np.ones(value.shape), np.zeros(value.shape)
        return NoisyCurve(
            point=value, sigma=width * same, half=half * same, zero=none, bend=none, back=lambda points: points
        )

    def loss_at_shift(self, shift: Number, *, step: Number = 1) -> float:
        """x**2/(2 sigma**2): exact for lattice shifts of discrete Gaussian noise (T-GAUSS)."""
        return float_upper(rational(shift, parameter="shift") ** 2 / (2 * self.noise_sigma**2))

    def realized_loss(self, total_without: Number, contribution: Number, *, step: Number = 1) -> float:
        """The same whatever else is in the cell."""
        return self.loss_at_shift(contribution, step=step)

    def variance(self, total: Any, *, step: Number = 1) -> FloatArray:
        lattice = read_step(step)
        return np.full(np.shape(total), self._law(lattice).variance * float(lattice) ** 2)

    def bias(self, total: Any, *, step: Number = 1) -> FloatArray:
        return np.zeros(np.shape(total))

    def _law(self, lattice: Fraction) -> DiscreteGaussian:
        return discrete_gaussian(self.noise_sigma / lattice)


def read_share(share: Number) -> Fraction:
    """A part of a loss: above 0, at most 1."""
    part = positive(share, parameter="share")
    if part > 1:
        raise ParameterError(parameter="share", problem="must be at most 1")
    return part


def near_gaussian(sigma: Fraction, lattice: Fraction) -> bool:
    """Return whether Gaussian-DP numbers may be shown for this noise.

    Policies call this, so that noise that cannot be drawn is refused with them, before anything is spent.
    """
    discrete_gaussian(sigma / lattice)
    return sigma >= NEAR_GAUSSIAN_STEPS * lattice


def additive_estimates(noisy: Noisy, variance: float, half_width: int, confidence: float) -> Estimates:
    """Estimates under symmetric noise that is the same for every cell (T-INTERVAL)."""

    def fields(points: IntArray) -> tuple[FloatArray, ...]:
        return to_floats(points, noisy.grid), *lattice_ends(points, half_width, noisy.grid)

    value, low, high = filled(noisy.points, 3, fields)
    return Estimates(
        value=value,
        median_unbiased=value,
        standard_error=np.broadcast_to(np.sqrt(variance), value.shape),
        variance_unbiased=np.broadcast_to(np.float64(variance), value.shape),
        low=low,
        high=high,
        confidence=confidence,
    )


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Gaussian(GaussianNoise):
    """Discrete Gaussian noise. ``Gaussian(rho=0.05)`` for counts; ``Gaussian(sigma=30)`` or ``Gaussian(rho=0.1, at=50)`` for sums.

    Instead of sigma, ``variance=900`` or ``relative_error=0.05, at_total=1000, confidence=0.9`` sets it, the latter on the
    lattice of the measure's ``step``, by default 1 or the power of ten that divides ``at_total``.
    Theorem T-GAUSS (docs/theory/policy.md): a sum with noise of this sigma on the data's lattice costs a record exactly
    x**2/(2 sigma**2); a count, where every record contributes 1, costs 1/(2 sigma**2).

    Args:
        rho: Loss of a record of size at; of any record for a count.
        at: Size of the record that loses rho, in the measure's units.
        sigma: Standard deviation of the noise, in the measure's units.
        given: A goal: ``variance``, or ``relative_error`` at ``at_total``, with ``confidence`` and the measure's ``step``.
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("rho", "loss of a record of size at; of any record for a count", "noise"),
        Parameter("at", "size of the record that loses rho, in the measure's units", "noise"),
        Parameter("sigma", "standard deviation of the noise, in the measure's units", "noise"),
        *GAUSSIAN_GOALS,
    )
    words: ClassVar[str] = "Gaussian noise"

    rho: Fraction | None
    """The loss of a record that contributes ``at`` (1 for a count)."""
    at: Fraction | None
    sigma: Fraction | None
    """In the measure's units, instead of rho."""

    @own_argument_errors
    def __init__(
        self,
        *,
        rho: Number | None = None,
        at: Number | None = None,
        sigma: Number | None = None,
        **given: Unpack[GaussianGoals],
    ) -> None:
        goals = read_goals(GaussianGoals, given)
        goal = only_goal({"rho": rho, "sigma": sigma, "at": at, **goals})
        if goal in ("variance", "relative_error"):
            sigma = sqrt_upper(gaussian_variance(goals))
        for name, value in (("rho", rho), ("at", at), ("sigma", sigma)):
            object.__setattr__(self, name, None if value is None else positive(value, parameter=name))

    @property
    def noise_sigma(self) -> Fraction:
        if self.sigma is not None:
            return self.sigma
        at, rho = self.at or Fraction(1), self.rho or Fraction(0)
        return sqrt_upper(at**2 / (2 * rho))

    def with_sigma(self, sigma: Fraction) -> "Gaussian":
        return Gaussian(sigma=short(sigma, up=False))

    @classmethod
    def audit_examples(cls) -> dict[str, "Gaussian"]:
        return {"gaussian": cls(sigma=20), "gaussian on few steps": cls(sigma="0.8")}

    @classmethod
    def planning_families(cls, *, offset: Number) -> dict[str, "Gaussian"]:
        return {"Gaussian (as unit splitting)": cls(sigma=1)}

    def shared(self, share: Number) -> "Gaussian":
        """The same at a share of the loss."""
        part = read_share(share)
        if self.rho is not None:
            return Gaussian(rho=part * self.rho, at=self.at)
        return Gaussian(sigma=sqrt_upper(self.noise_sigma**2 / part))

    def resized(self, size: Fraction) -> "Gaussian":
        """Return the mechanism with sigma as a share of ``size``."""
        if self.rho is not None:
            return Gaussian(rho=self.rho, at=(self.at or 1) * size)
        return Gaussian(sigma=self.noise_sigma * size)

    def policy_of_count(self) -> Policy:
        """The loss of a count: the same for every record."""
        sigma = self.noise_sigma
        return constant(1 / (2 * sigma**2), near_gaussian=near_gaussian(sigma, Fraction(1)))

    def policy(self, measure: Measure | str, *, tight: bool = True) -> Policy:
        """Return the loss of a sum, the same as in the papers."""
        summed = Measure.of(measure)
        if self.rho is not None and self.at is None:
            raise ParameterError(
                parameter="Gaussian(rho)",
                problem=f"alone is for counts; a sum of '{summed.name}' also needs the contribution that has this loss",
                advice="Write Gaussian(rho=..., at=...) or Gaussian(sigma=...).",
            )
        sigma = self.noise_sigma
        return gaussian_sum(summed, sigma=sigma, near_gaussian=near_gaussian(sigma, summed.step))


# Clamped, the zCDP baseline: every contribution is cut at a bound, so that no record loses more than one of that
# size.


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Clamped(GaussianNoise):
    """The sum of contributions cut to [-to, to], with Gaussian noise: loss ``rho`` from ``to`` on, less below (T-CLAMP).

    The totals handed to ``release`` are sums of clamped values, and ``bias`` is about those: what clamping itself cuts off depends
    on the records and is not known from a total. Instead of rho, ``variance=`` or ``relative_error=, at_total=`` sets the noise.

    Args:
        to: Bound contributions are cut at, in the measure's units.
        rho: Loss of every record.
        given: A goal: ``variance``, or ``relative_error`` at ``at_total``, with ``confidence`` and the measure's ``step``.
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("to", "bound contributions are cut at, in the measure's units", needed=True),
        Parameter("rho", "loss of a record of size to or more", "noise"),
        *GAUSSIAN_GOALS,
    )
    words: ClassVar[str] = "Gaussian noise, large records cut down"
    loss_of_sum: ClassVar[bool] = False
    """Each contribution is cut by itself, so that their sum may exceed the bound."""

    to: Fraction
    rho: Fraction

    @own_argument_errors
    def __init__(
        self,
        *,
        to: Number,
        rho: Number | None = None,
        **given: Unpack[GaussianGoals],
    ) -> None:
        bound = positive(to, parameter="to")
        goals = read_goals(GaussianGoals, given)
        object.__setattr__(self, "to", bound)
        object.__setattr__(self, "rho", loss_for(bound, rho, goals))

    @property
    def noise_sigma(self) -> Fraction:
        return sqrt_upper(self.to**2 / (2 * self.rho))

    def with_sigma(self, sigma: Fraction) -> "Clamped":
        return Clamped(to=self.to, rho=short(self.to**2 / (2 * sigma**2), up=True))

    @classmethod
    def audit_examples(cls) -> dict[str, "Clamped"]:
        return {"clamped": cls(to=20, rho=1)}

    def shared(self, share: Number) -> "Clamped":
        """The same at a share of the loss."""
        return Clamped(to=self.to, rho=read_share(share) * self.rho)

    def policy(self, measure: Measure | str, *, tight: bool = True) -> Policy:
        """Return the loss of a clamped sum.

        Tight: min(x, to)**2/(2 sigma**2). ``tight=False``: the papers' constant, which only records from ``to`` on
        lose.
        """
        summed = Measure.of(measure)
        bound, sigma = summed.on_lattice(self.to, parameter="to"), self.noise_sigma
        near = near_gaussian(sigma, summed.step)
        if not tight:
            return constant(bound**2 / (2 * sigma**2), near_gaussian=near)
        return clamped_sum(summed, to=bound, sigma=sigma, near_gaussian=near)

    def error_quantiles(
        self, totals: FloatArray, *, confidence: float = 0.95, step: Number = 1, kept: FloatArray | None = None
    ) -> FloatArray:
        """With ``kept``, the quantile of |Z - amount removed by clamping|."""
        if kept is None:
            return AdditiveNoise.error_quantiles(self, totals, confidence=confidence, step=step)
        chance, start = read_confidence(confidence), float(self.noise_sigma)

        def solved(biases: FloatArray) -> FloatArray:
            return smallest(lambda reach: self._within(biases, reach, step), chance, np.abs(biases) + start)

        return over_totals(solved, np.abs(np.asarray(totals, np.float64) - kept))

    smooth_error_quantiles = Mechanism.smooth_error_quantiles

    def mean_errors(self, totals: FloatArray, *, step: Number = 1, kept: FloatArray | None = None) -> FloatArray:
        """With ``kept``, E |Z - amount removed by clamping|."""
        noise = AdditiveNoise.mean_errors(self, totals, step=step)
        if kept is None:
            return noise
        lattice = float(read_step(step))
        biases = np.abs(np.asarray(totals, np.float64) - kept) / lattice
        return np.asarray(noise + lattice * _mean_rise(biases, float(self.noise_sigma) / lattice))

    def chances(
        self, totals: FloatArray, reach: FloatArray, *, step: Number = 1, kept: FloatArray | None = None
    ) -> FloatArray:
        """P(|value - total| <= reach) for each cell."""
        return self._within(totals - (totals if kept is None else kept), reach, step)

    def meets(
        self,
        totals: FloatArray,
        reach: FloatArray,
        *,
        confidence: float,
        step: Number = 1,
        kept: FloatArray | None = None,
    ) -> BoolArray:
        if kept is None:
            return AdditiveNoise.meets(self, totals, reach, confidence=confidence, step=step)
        return np.asarray(self.chances(totals, reach, step=step, kept=kept) >= confidence - ROUNDING)

    def most_noise(
        self, total: float, reach: float, *, confidence: float, step: Number = 1, kept: float | None = None
    ) -> "GaussianNoise | None":
        """Return the noisiest mechanism that meets the goal, or None.

        ``kept`` is the total of clamped contributions; None if clamping alone misses the goal.
        """
        if kept is None or kept == total:
            return GaussianNoise.most_noise(self, total, reach, confidence=confidence, step=step)
        if abs(total - kept) > reach:
            return None

        def missed(sigma: Fraction) -> float:
            made = Clamped(to=self.to, variance=sigma**2)
            return 1 - float(made._within(np.array([total - kept]), np.array([reach]), step)[0])

        return self.with_sigma(solve(missed, 1 - confidence, rising=True))

    def _within(self, biases: FloatArray, reach: FloatArray, step: Number) -> FloatArray:
        """P(|Z - bias| <= reach) under the lattice law."""
        lattice, sigma = float(read_step(step)), float(self.noise_sigma)
        low, high = np.ceil((biases - reach) / lattice), np.floor((biases + reach) / lattice)
        return np.maximum(lattice_cdf(high, sigma / lattice) - lattice_cdf(low - 1, sigma / lattice), 0.0)

    def realized_loss(self, total_without: Number, contribution: Number, *, step: Number = 1) -> float:
        """The loss of the contribution after clamping."""
        size = abs(rational(contribution, parameter="contribution"))
        return self.loss_at_shift(min(size, self.to), step=step)

    def realized_sql(self, measure: str, total: "exp.Expr", *, step: Fraction, dialect: str) -> "exp.Expr":
        """Return SQL of the loss a record really incurred.

        CONFIDENTIAL.
        """
        from recordwise.policy.evaluate.sql import amount_sql, evaluator_of, number

        sql = evaluator_of(dialect)
        size = sql.minimum(amount_sql(measure), number(float(self.to)))
        return sql.multiply(number(float_upper(1 / (2 * self.noise_sigma**2))), sql.power(size, Fraction(2)))


def _mean_rise(biases: FloatArray, sigma: float) -> FloatArray:
    """Return E |Z - bias| - E |Z| for whole-number noise.

    It rises by 2 P(Z <= k) - 1 from k to k + 1; beyond a thousand steps per sigma, as for the normal law.
    """
    if sigma > MOST_SUMMED:
        density = np.exp(-((biases / sigma) ** 2) / 2) / math.sqrt(2 * math.pi)
        fallen = 2 * sigma * (1 / math.sqrt(2 * math.pi) - density)
        return np.asarray(biases * (2 * normal_cdf(biases / sigma) - 1) - fallen)
    places = np.arange(math.ceil(10 * sigma) + 2, dtype=np.float64)
    risen = np.append(0.0, np.cumsum(2 * lattice_cdf(places, sigma) - 1))
    last = float(len(risen) - 1)
    return np.asarray(np.interp(biases, np.arange(len(risen)), risen) + np.maximum(biases - last, 0.0))


# UnitSplit: a large record is split into pieces and pays for each of them.


Thresholds: TypeAlias = Number | By | Mapping[Measure | str, Number | By]
"""One threshold, one for each group (``rw.by``), or one of either for each measure that is split jointly."""


@dataclass(frozen=True, slots=True, init=False, repr=False)
class UnitSplit(GaussianNoise):
    """A sum with Gaussian noise of sigma = at/sqrt(2 rho): loss ``rho`` at ``at``, growing with the square beyond that.

    Instead of rho, ``variance=`` or ``relative_error=, at_total=`` sets the noise if there is a single threshold.
    Theorem T-SPLIT (docs/theory/splitting.md): any rho-zCDP mechanism on split rows costs rho * pieces**2; for a plain sum
    splitting changes nothing in the answer, so the tight policy is rho * (x/at)**2.

    Args:
        at: Threshold, in the measure's units; may differ by group or measure.
        rho: Loss of a record of size at.
        given: A goal: ``variance``, or ``relative_error`` at ``at_total``, with ``confidence`` and the measure's ``step``.
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "at", "threshold, in the measure's units; may differ by group or measure", read="thresholds", needed=True
        ),
        Parameter("rho", "loss of a record of size at", "noise"),
        *GAUSSIAN_GOALS,
    )
    words: ClassVar[str] = "Gaussian noise, its size set by splitting large records"

    at: Fraction | By | Mapping[Measure | str, Fraction | By]
    """A threshold for the summed measure, or a mapping measure -> threshold for joint splitting; either may be ``rw.by(...)``."""
    rho: Fraction

    @own_argument_errors
    def __init__(
        self,
        *,
        at: Thresholds,
        rho: Number | None = None,
        **given: Unpack[GaussianGoals],
    ) -> None:
        thresholds = _thresholds(at)
        goals = read_goals(GaussianGoals, given)
        plain = thresholds if isinstance(thresholds, Fraction) else None
        if only_goal({"rho": rho, **goals}) != "rho" and plain is None:
            raise ParameterError(
                parameter="at",
                problem="differs by group or measure, so one variance does not fit all",
                advice="Give rho instead.",
            )
        object.__setattr__(self, "at", thresholds)
        object.__setattr__(self, "rho", loss_for(plain or Fraction(1), rho, goals))

    def threshold(self, measure: Measure | str) -> Fraction | By:
        """The threshold of one measure."""
        if not isinstance(self.at, Mapping):
            return self.at
        summed = Measure.of(measure)
        for key, value in self.at.items():
            if key in (summed, summed.name):
                return value
        raise ParameterError(parameter="at", problem=f"has no threshold for '{summed.name}', which is summed")

    def resolved(self, at: Number) -> "UnitSplit":
        """The same with one plain threshold, for cells whose group is known."""
        return UnitSplit(at=at, rho=self.rho)

    def with_sigma(self, sigma: Fraction) -> "UnitSplit":
        if not isinstance(self.at, Fraction):
            raise ParameterError(parameter="at", problem="differs by group or measure, so one noise does not fit all")
        return UnitSplit(at=self.at, rho=short(self.at**2 / (2 * sigma**2), up=True))

    @classmethod
    def audit_examples(cls) -> dict[str, "UnitSplit"]:
        return {"unit split": cls(at=50, rho="0.1")}

    def resized(self, size: Fraction) -> "UnitSplit":
        """The same with a threshold that is a share of a size."""
        if not isinstance(self.at, Fraction):
            raise ParameterError(parameter="at", problem="differs by group or measure, so it is no share of a size")
        return UnitSplit(at=self.at * size, rho=self.rho)

    def shared(self, share: Number) -> "UnitSplit":
        """The same thresholds at a share of the loss."""
        return UnitSplit(at=self.at, rho=read_share(share) * self.rho)

    @property
    def noise_sigma(self) -> Fraction:
        if isinstance(self.at, (By, Mapping)):
            raise ParameterError(
                parameter="at",
                problem="differs by group or measure, so there is no single sigma",
                advice="Use mechanism.resolved(threshold) for one cell's group.",
            )
        return self._sigma(self.at)

    def _sigma(self, at: Fraction) -> Fraction:
        return sqrt_upper(at**2 / (2 * self.rho))

    def policy(self, measure: Measure | str, *, tight: bool = True) -> Policy:
        """Return the loss of a split sum.

        Tight: x**2/(2 sigma**2), by group if thresholds differ. ``tight=False``: the paper's rho * pieces**2.
        """
        summed = Measure.of(measure)
        threshold = self.threshold(summed)
        charged = _by_group(self, summed, threshold) if isinstance(threshold, By) else self._tight(summed, threshold)
        return charged if tight else split(self.rho, self._joint(summed, threshold))

    def _joint(self, summed: Measure, threshold: Fraction | By) -> dict[Measure | str, Number | By]:
        others = self.at.items() if isinstance(self.at, Mapping) else ()
        joint: dict[Measure | str, Number | By] = {summed: threshold}
        return joint | {m: value for key, value in others if (m := Measure.of(key)).name != summed.name}

    def _tight(self, measure: Measure, at: Fraction) -> Policy:
        sigma = self._sigma(measure.on_lattice(at, parameter="at"))
        return gaussian_sum(measure, sigma=sigma, near_gaussian=near_gaussian(sigma, measure.step))


def _by_group(mechanism: UnitSplit, measure: Measure, threshold: By) -> Policy:
    """Return the policy with a sigma for each group.

    A group without a threshold has no guarantee.
    """
    undefined = split(mechanism.rho, {measure: threshold})
    return compose(
        [
            (undefined if at is None else mechanism._tight(measure, at)).where(condition)
            for condition, at in threshold.cases()
        ]
    )


def _thresholds(at: Thresholds) -> Fraction | By | Mapping[Measure | str, Fraction | By]:
    if not isinstance(at, Mapping):
        return _threshold(at, "at")
    if not at:
        raise ParameterError(parameter="at", problem="must name at least one measure")
    return {name: _threshold(value, f"at['{name}']") for name, value in at.items()}


def _threshold(value: Number | By, parameter: str) -> Fraction | By:
    return value if isinstance(value, By) else positive(value, parameter=parameter)


# A noisier answer made from a published one, for a public tier (T-TIER, docs/theory/series.md).


class SeveralDraws(Mechanism):
    """An answer made of several Gaussian draws, on the data's own scale."""

    __slots__ = ()

    def realized_loss(self, total_without: Number, contribution: Number, *, step: Number = 1) -> float:
        """Return the same, whatever else is in the cell."""
        return self.loss_at_shift(contribution, step=step)

    def variance(self, total: Any, *, step: Number = 1) -> FloatArray:
        """Return the variance of an answer, from the laws that are drawn."""
        drawn = self.drawn_law(step)
        assert drawn is not None
        law, lattice = drawn
        return np.full(np.shape(total), law.variance * float(lattice) ** 2)

    def bias(self, total: Any, *, step: Number = 1) -> FloatArray:
        """Return zeros: every draw is unbiased."""
        return np.zeros(np.shape(total))


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Tiered(SeveralDraws):
    """An answer with noise on top of a finer one's (T-TIER).

    The policy is that of the sum of both draws, for whoever sees it without the finer answer. ``release`` makes both; a public tier
    has ``continuing`` of the finer answers, which draws the further noise alone. Made by ``combined.coarsen``.

    Args:
        before: The mechanism of the finer answer.
        more: The further noise.
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("before", "mechanism of the finer answer", read="mechanism", needed=True),
        Parameter("more", "further noise", read="mechanism", needed=True),
    )
    words: ClassVar[str] = "Gaussian noise, with more of it than in a finer release"

    before: Mechanism
    more: Mechanism

    def __init__(self, *, before: Mechanism, more: Mechanism) -> None:
        object.__setattr__(self, "before", before)
        object.__setattr__(self, "more", more)

    def variances(self, step: Number = 1) -> tuple[Fraction, Fraction]:
        """Return the variance parameter of each draw, in squared lattice steps."""
        first, second = self.before.noise_sigma, self.more.noise_sigma
        assert first is not None
        assert second is not None
        return (first / read_step(step)) ** 2, (second / read_step(step)) ** 2

    @property
    def noise_sigma(self) -> Fraction:
        """The sigma of both draws together, rounded up."""
        return sqrt_upper(sum(self.variances(), Fraction(0)))

    @property
    def sigma(self) -> Fraction:
        """The same."""
        return self.noise_sigma

    @property
    def to(self) -> Fraction | None:  # type: ignore[override]
        """The bound of clamped contributions."""
        return self.before.to

    @property
    def loss_of_sum(self) -> bool:
        """Whether the policy at a sum bounds the joint loss."""
        return self.before.loss_of_sum

    def as_one(self, step: Number = 1) -> GaussianNoise:
        """Return one draw that costs at least as much as the sum of both, on this lattice."""
        factor = loss_factor(*self.variances(step)) / sum(self.variances(), Fraction(0))
        return (
            Gaussian(sigma=1 / sqrt_upper(factor))
            if self.to is None
            else Clamped(to=self.to, rho=self.to**2 * factor / 2)
        )

    def continuing(self, earlier: FloatArray) -> "OnTop":
        """Return the mechanism that adds the further noise to published answers.

        Args:
            earlier: The published answers of the cells, on the lattice.
        """
        return OnTop(before=self.before, more=self.more, earlier=earlier)

    def release(self, totals: Any, *, step: Number = 1, rng: BitSource | None = None) -> Noisy:
        """Draw both."""
        return self.more.release(self.before.release(totals, step=step, rng=rng).points, step=step, rng=rng)

    def estimate(self, noisy: Noisy, *, confidence: float = 0.95) -> Estimates:
        """Return the answers with intervals from the law of the sum."""
        reach = half_width(*self.variances(noisy.grid), read_confidence(confidence))
        return additive_estimates(noisy, float(self.variance(0.0, step=noisy.grid)), reach, confidence)

    def noisy_curve(self, noisy: Noisy) -> NoisyCurve:
        """Return the answers as they are: noise is on the totals."""
        return Gaussian(sigma=self.noise_sigma).noisy_curve(noisy)

    def drawn_law(self, step: Number) -> Any:
        """Return the law of an answer in lattice steps, and the lattice."""
        laws = [each._law(read_step(step)) for each in (self.before, self.more) if isinstance(each, GaussianNoise)]
        return AveragedLaw(tuple((law, 1.0) for law in laws)), read_step(step)

    def policy(self, measure: Measure | str, *, tight: bool = True) -> Policy:
        """Return the loss of the sum of both draws."""
        return self.as_one(Measure.of(measure).step).policy(measure)

    def policy_of_count(self) -> Policy:
        """Return the loss of the sum of both draws of a count."""
        return self.as_one().policy_of_count()

    def loss_at_shift(self, shift: Number, *, step: Number = 1) -> float:
        """Return the loss of the sum of both draws."""
        return self.as_one(step).loss_at_shift(shift, step=step)

    def shared(self, share: Fraction) -> "Tiered":
        """The same with each draw at a share of its loss."""
        return Tiered(before=self.before.at_share(share), more=self.more.at_share(share))

    def resized(self, size: Fraction) -> "Tiered":
        """The same with both draws in proportion to a size."""
        return Tiered(before=self.before.resized(size), more=self.more.resized(size))


class OnTop(Tiered):
    """Noisier answers of cells whose finer answers were drawn before; totals of records are not read."""

    __slots__ = ("earlier",)
    earlier: FloatArray

    def __init__(self, *, before: Mechanism, more: Mechanism, earlier: FloatArray) -> None:
        Tiered.__init__(self, before=before, more=more)
        object.__setattr__(self, "earlier", earlier)

    def release(self, totals: Any, *, step: Number = 1, rng: BitSource | None = None) -> Noisy:
        """Add the further noise to the finer answers."""
        points = self.earlier / float(read_step(step))
        whole = np.rint(points)
        if np.any(np.abs(points - whole) > OFF_LATTICE) or np.any(np.abs(whole) >= WHOLE_FLOATS):
            raise ParameterError(
                parameter="tier_of", problem="has answers that are no whole numbers of steps, or too large to read back"
            )
        return self.more.release(whole.astype(np.int64), step=step, rng=rng)


OFF_LATTICE, WHOLE_FLOATS = 1e-3, 2.0**52
"""How far a float may be from its lattice point, in steps; and from where on floats have none between whole numbers."""
