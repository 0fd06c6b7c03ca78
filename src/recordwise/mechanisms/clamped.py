"""The zCDP baseline: every contribution is cut at a bound, so that no record loses more than one that is as large."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import Number, float_upper, positive, rational, sqrt_upper
from recordwise.mechanisms.accuracy import ROUNDING, AdditiveNoise, BoolArray, lattice_cdf, over_totals, short, smallest
from recordwise.mechanisms.calibration import loss_for, solve
from recordwise.mechanisms.described import GAUSSIAN_GOALS, Parameter
from recordwise.mechanisms.gaussian import GaussianNoise, near_gaussian, read_share
from recordwise.mechanisms.noisy import read_confidence, read_step
from recordwise.policy.constructors import clamped_sum, constant
from recordwise.policy.measure import Measure
from recordwise.policy.policy import Policy

if TYPE_CHECKING:
    from sqlglot import exp


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Clamped(GaussianNoise):
    """The sum of contributions cut to [-to, to], with Gaussian noise: loss ``rho`` from ``to`` on, less below (T-CLAMP).

    The totals handed to ``release`` are sums of clamped values, and ``bias`` is about those: what clamping itself cuts off depends
    on the records and is not known from a total. Instead of rho, ``variance=`` or ``relative_error=, at_total=`` sets the noise.

    Args:
        to: Bound contributions are cut at, in the measure's units.
        rho: Loss of every record.
        variance: Variance of the noise, in squared units of the measure.
        relative_error: Relative error at the total at_total.
        at_total: Total at which the goal is stated, in the measure's units.
        confidence: Probability with which the error stays below relative_error.
        step: Step of the measure a relative_error is for.
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

    def __init__(
        self,
        *,
        to: Number,
        rho: Number | None = None,
        variance: Number | None = None,
        relative_error: Number | None = None,
        at_total: Number | None = None,
        confidence: float | None = None,
        step: Number | None = None,
    ) -> None:
        bound = positive(to, parameter="to")
        goals = {
            "variance": variance,
            "relative_error": relative_error,
            "at_total": at_total,
            "confidence": confidence,
            "step": step,
        }
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
        """Tight: min(x, to)**2/(2 sigma**2). ``tight=False``: the papers' constant, which only records from ``to`` on lose."""
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

    def smooth_error_quantiles(
        self, totals: FloatArray, *, confidence: float, step: Number = 1, kept: FloatArray | None = None
    ) -> FloatArray:
        return self.error_quantiles(totals, confidence=confidence, step=step, kept=kept)

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
    ) -> Any | None:
        """With ``kept``, the total of clamped contributions; None if clamping alone misses the goal."""
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
        """What a record really lost, in an engine: one below the bound changed the sum by what it has. Confidential."""
        from recordwise.policy.evaluate.sql import amount_sql, evaluator_of, number

        sql = evaluator_of(dialect)
        size = sql.minimum(amount_sql(measure), number(float(self.to)))
        return sql.multiply(number(float_upper(1 / (2 * self.noise_sigma**2))), sql.power(size, Fraction(2)))
