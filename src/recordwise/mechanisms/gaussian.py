"""Gaussian noise: for counts at a rho, for sums at a sigma."""

from dataclasses import dataclass
from fractions import Fraction

from recordwise.errors import ParameterError
from recordwise.exact import Number, positive, sqrt_upper
from recordwise.mechanisms.gaussian_noise import GaussianNoise, near_gaussian
from recordwise.policy import Measure, Policy, constant, gaussian_sum


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian(GaussianNoise):
    """Discrete Gaussian noise. ``Gaussian(rho=0.05)`` for counts; ``Gaussian(sigma=30)`` or ``Gaussian(rho=0.1, at=50)`` for sums.

    Theorem T-GAUSS (docs/theory/policy.md): a sum with noise of this sigma on the data's lattice costs a record exactly
    x**2/(2 sigma**2); a count, where every record contributes 1, costs 1/(2 sigma**2).
    """

    rho: Number | None = None
    """The loss of a record that contributes ``at`` (1 for a count)."""
    at: Number | None = None
    sigma: Number | None = None
    """Standard deviation in the measure's units, instead of rho."""

    def __post_init__(self) -> None:
        if (self.rho is None) == (self.sigma is None):
            raise ParameterError(parameter="Gaussian", problem="needs either rho or sigma, not both")
        if self.sigma is not None and self.at is not None:
            raise ParameterError(parameter="at", problem="goes with rho, not with sigma")
        for name in ("rho", "at", "sigma"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, positive(value, parameter=name))

    @property
    def noise_sigma(self) -> Fraction:
        if self.sigma is not None:
            return Fraction(self.sigma)
        at, rho = Fraction(self.at or 1), Fraction(self.rho or 0)
        return sqrt_upper(at**2 / (2 * rho))

    def policy_of_count(self) -> Policy:
        """The loss of a count: the same for every record."""
        sigma = self.noise_sigma
        return constant(1 / (2 * sigma**2), near_gaussian=near_gaussian(sigma, Fraction(1)))

    def policy(self, measure: Measure | str, *, tight: bool = True) -> Policy:
        """The loss of a sum; the papers' and the tight one are the same."""
        summed = Measure.of(measure)
        if self.rho is not None and self.at is None:
            raise ParameterError(
                parameter="Gaussian(rho)",
                problem=f"is for counts; a sum of '{summed.name}' needs the contribution at which that loss holds",
                advice="Write Gaussian(rho=..., at=...) or Gaussian(sigma=...).",
            )
        sigma = self.noise_sigma
        return gaussian_sum(summed, sigma=sigma, near_gaussian=near_gaussian(sigma, summed.step))
