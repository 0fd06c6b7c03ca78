"""Gaussian noise: for counts at a rho, for sums at a sigma."""

from dataclasses import dataclass
from fractions import Fraction

from recordwise.errors import ParameterError
from recordwise.exact import Number, positive, sqrt_upper
from recordwise.mechanisms.calibration import gaussian_variance, only_goal
from recordwise.mechanisms.gaussian_noise import GaussianNoise, near_gaussian, read_share
from recordwise.policy import Measure, Policy, constant, gaussian_sum


@dataclass(frozen=True, slots=True, init=False)
class Gaussian(GaussianNoise):
    """Discrete Gaussian noise. ``Gaussian(rho=0.05)`` for counts; ``Gaussian(sigma=30)`` or ``Gaussian(rho=0.1, at=50)`` for sums.

    Instead of sigma, ``variance=900`` or ``relative_error=0.05, at_total=1000, level=0.9`` sets it, the latter on the
    lattice of the measure's ``step``: 1, or the power of ten that divides ``at_total``, if not given.
    Theorem T-GAUSS (docs/theory/policy.md): a sum with noise of this sigma on the data's lattice costs a record exactly
    x**2/(2 sigma**2); a count, where every record contributes 1, costs 1/(2 sigma**2).
    """

    rho: Fraction | None
    """The loss of a record that contributes ``at`` (1 for a count)."""
    at: Fraction | None
    sigma: Fraction | None
    """In the measure's units, instead of rho."""

    def __init__(
        self,
        *,
        rho: Number | None = None,
        at: Number | None = None,
        sigma: Number | None = None,
        variance: Number | None = None,
        relative_error: Number | None = None,
        at_total: Number | None = None,
        level: float | None = None,
        step: Number | None = None,
    ) -> None:
        goals = {
            "variance": variance,
            "relative_error": relative_error,
            "at_total": at_total,
            "level": level,
            "step": step,
        }
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

    def shared(self, share: Number) -> "Gaussian":
        """The same at a share of the loss."""
        part = read_share(share)
        if self.rho is not None:
            return Gaussian(rho=part * self.rho, at=self.at)
        return Gaussian(sigma=sqrt_upper(self.noise_sigma**2 / part))

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
