"""The zCDP baseline: every contribution is cut at a bound, so that one loss holds for all."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from recordwise.exact.numbers import Number, float_upper, positive, rational, sqrt_upper
from recordwise.mechanisms.calibration import loss_for
from recordwise.mechanisms.described import GAUSSIAN_GOALS, Parameter
from recordwise.mechanisms.gaussian import GaussianNoise, near_gaussian, read_share
from recordwise.policy.constructors import constant
from recordwise.policy.measure import Measure
from recordwise.policy.policy import Policy

if TYPE_CHECKING:
    from sqlglot import exp


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Clamped(GaussianNoise):
    """The sum of contributions cut to [-to, to], with Gaussian noise; its loss is ``rho`` for every record.

    The totals handed to ``release`` are sums of clamped values, and ``bias`` is about those: what clamping itself cuts off depends
    on the records and is not known from a total. Instead of rho, ``variance=`` or ``relative_error=, at_total=`` sets the noise.
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("to", "bound contributions are cut at, in the measure's units", needed=True),
        Parameter("rho", "loss of every record", "noise"),
        *GAUSSIAN_GOALS,
    )
    words: ClassVar[str] = "Gaussian noise, large records cut down"

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

    def shared(self, share: Number) -> "Clamped":
        """The same at a share of the loss."""
        return Clamped(to=self.to, rho=read_share(share) * self.rho)

    def policy(self, measure: Measure | str, *, tight: bool = True) -> Policy:
        """Constant: a clamped contribution is at most ``to``."""
        summed = Measure.of(measure)
        bound = summed.on_lattice(self.to, parameter="to")
        sigma = self.noise_sigma
        return constant(bound**2 / (2 * sigma**2), near_gaussian=near_gaussian(sigma, summed.step))

    def realised_loss(self, total_without: Number, contribution: Number, *, step: Number = 1) -> float:
        """Of the contribution as it is, before it is cut."""
        size = abs(rational(contribution, parameter="contribution"))
        return self.loss_at_shift(min(size, self.to), step=step)

    def realised_sql(self, measure: str, total: "exp.Expr", *, step: Fraction, dialect: str) -> "exp.Expr":
        """What a record really lost, in an engine: one below the bound changed the sum by what it has. Confidential."""
        from sqlglot import exp

        from recordwise.policy.evaluate.sql import amount_sql, evaluator_of, number

        sql = evaluator_of(dialect)
        size = exp.Least(this=amount_sql(measure), expressions=[number(float(self.to))], ignore_nulls=False)
        return sql.multiply(number(float_upper(1 / (2 * self.noise_sigma**2))), sql.power(size, Fraction(2)))
