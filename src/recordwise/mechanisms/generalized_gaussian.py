"""Fat-tailed additive noise whose loss grows like a power of the record: a square root, for shape 1/2."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from recordwise.errors import ParameterError
from recordwise.exact.functions import Function, x
from recordwise.exact.numbers import Number, positive
from recordwise.mechanisms.calibration import power_upper
from recordwise.mechanisms.described import SCALE_AND_GOALS, Parameter
from recordwise.mechanisms.fat_tailed import FatTailedNoise, read_lattice
from recordwise.mechanisms.fat_tailed_calibration import fat_tailed_scale
from recordwise.noise.lattice import LatticeLaw
from recordwise.noise.laws import GeneralizedGaussian as GeneralizedGaussianLaw


@dataclass(frozen=True, slots=True, init=False, repr=False)
class GeneralizedGaussian(FatTailedNoise):
    """Noise with density exp(-(|z|/scale)**shape), 0 < shape <= 1; shape 1 is Laplace noise.

    Theorem T-ADD (docs/theory/policy.md): the pure loss is (x/scale)**shape, exactly.

    Args:
        shape: Exponent of the law, above 0 and at most 1.
        scale: Scale of the noise, in the measure's units.
        variance: Variance of the noise, in squared units of the measure.
        rho: Loss of a record of size at.
        at: Size of the record that loses rho, in the measure's units.
        relative_error: Relative error at the total at_total.
        at_total: Total at which the goal is stated, in the measure's units.
        confidence: Probability with which the error stays below relative_error.
        lattice: Lattice on which noise is drawn, in the measure's units.
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
        confidence: float | None = None,
        lattice: Number | None = None,
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
            variance=variance,
            rho=rho,
            at=at,
            relative_error=relative_error,
            at_total=at_total,
            confidence=confidence,
        )
        object.__setattr__(self, "scale", found)

    @classmethod
    def audit_examples(cls) -> dict[str, "GeneralizedGaussian"]:
        return {"generalized gaussian": cls(shape=0.5, scale=2), "laplace": cls(shape=1, scale=30)}

    @classmethod
    def planning_families(cls, *, offset: Number) -> dict[str, "GeneralizedGaussian"]:
        return {"generalized Gaussian 1/2": cls(shape="0.5", scale=1)}

    def shared(self, share: Fraction) -> "GeneralizedGaussian":
        """The same at a share of the pure loss, for one of several levels: the scale grows by share**(-1/shape), rounded up."""
        return GeneralizedGaussian(
            shape=self.shape, scale=self.scale * power_upper(1 / share, 1 / self.shape), lattice=self.coarse_lattice
        )

    @property
    def function(self) -> Function:
        return (x / self.scale) ** self.shape

    def law_on(self, lattice: Fraction) -> LatticeLaw:
        return GeneralizedGaussianLaw(scale=self.scale / lattice, shape=self.shape)
