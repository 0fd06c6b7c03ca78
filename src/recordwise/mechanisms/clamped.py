"""The zCDP baseline: every contribution is cut at a bound, so that one loss holds for all."""

from dataclasses import dataclass
from fractions import Fraction

from recordwise.exact import Number, positive, sqrt_upper
from recordwise.mechanisms.gaussian_noise import GaussianNoise, near_gaussian
from recordwise.policy import Measure, Policy, constant


@dataclass(frozen=True, slots=True, kw_only=True)
class Clamped(GaussianNoise):
    """The sum of min(x, to) with Gaussian noise; its loss is ``rho`` for every record, its bias all that is cut off.

    The totals handed to ``release`` are sums of clamped values, and ``bias`` is about those: what clamping itself cuts off depends
    on the records and is not known from a total.
    """

    to: Number
    rho: Number

    def __post_init__(self) -> None:
        object.__setattr__(self, "to", positive(self.to, parameter="to"))
        object.__setattr__(self, "rho", positive(self.rho, parameter="rho"))

    @property
    def noise_sigma(self) -> Fraction:
        return sqrt_upper(Fraction(self.to) ** 2 / (2 * Fraction(self.rho)))

    def policy(self, measure: Measure | str, *, tight: bool = True) -> Policy:
        """Constant: a clamped contribution is at most ``to``."""
        summed = Measure.of(measure)
        bound = summed.on_lattice(Fraction(self.to), parameter="to")
        sigma = self.noise_sigma
        return constant(bound**2 / (2 * sigma**2), near_gaussian=near_gaussian(sigma, summed.step))
