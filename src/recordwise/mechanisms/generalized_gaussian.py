"""Fat-tailed additive noise whose loss grows like a power of the record: a square root, for shape one half."""

import math
from dataclasses import dataclass
from fractions import Fraction

from recordwise.errors import ParameterError
from recordwise.exact import Number, positive
from recordwise.functions import Function, x
from recordwise.mechanisms.fat_tailed import FatTailedNoise, fat_tailed_scale, read_lattice
from recordwise.noise import GeneralizedGaussian as GeneralizedGaussianLaw
from recordwise.noise import LatticeLaw


@dataclass(frozen=True, slots=True, init=False)
class GeneralizedGaussian(FatTailedNoise):
    """Noise with density exp(-(|z|/scale)**shape), 0 < shape <= 1; shape 1 is Laplace noise.

    Theorem T-ADD (docs/theory/policy.md): the pure loss is (x/scale)**shape, exactly.
    """

    shape: Fraction
    """Smaller: fatter tails, and a loss that grows more slowly for giants."""
    scale: Fraction
    """In the measure's units."""
    coarse_lattice: Fraction | None
    """Where the noise is drawn, if not on a fine lattice."""

    def __init__(
        self,
        *,
        shape: Number,
        scale: Number | None = None,
        variance: Number | None = None,
        rho: Number | None = None,
        at: Number | None = None,
        relative_error: Number | None = None,
        at_total: Number | None = None,
        level: float = 0.95,
        lattice: Number | None = None,
    ) -> None:
        exact = positive(shape, parameter="shape")
        if exact > 1:
            raise ParameterError(parameter="shape", problem="must be at most 1: above it the exponent is not concave")
        object.__setattr__(self, "shape", exact)
        object.__setattr__(self, "coarse_lattice", read_lattice(lattice))
        goals = {"variance": variance, "rho": rho, "at": at, "relative_error": relative_error, "at_total": at_total}
        found = fat_tailed_scale(
            lambda s: GeneralizedGaussian(shape=exact, scale=s, lattice=lattice), scale, level, goals
        )
        object.__setattr__(self, "scale", found)

    @property
    def function(self) -> Function:
        return (x / self.scale) ** self.shape

    @property
    def unit_variance(self) -> float:
        """Gamma(3/shape)/Gamma(1/shape): the continuous variance at scale 1."""
        inverse = 1 / float(self.shape)
        return math.exp(math.lgamma(3 * inverse) - math.lgamma(inverse))

    def law_on(self, lattice: Fraction) -> LatticeLaw:
        return GeneralizedGaussianLaw(scale=self.scale / lattice, shape=self.shape)
