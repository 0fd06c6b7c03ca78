"""A mechanism: Laplace noise on a sum, whose pure loss is x/scale."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from recordwise.exact.functions import Function, x
from recordwise.mechanisms.base import SCALE_AND_GOALS
from recordwise.mechanisms.fat_tailed import FatTailedNoise, fat_tailed_scale, read_lattice
from recordwise.noise.laws import GeneralizedGaussian, LatticeLaw


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Laplace(FatTailedNoise):
    """``Laplace(scale=30)``, or a goal instead of the scale: ``Laplace(variance=400)``, ``Laplace(rho=0.1, at=50)``."""

    scale: Fraction
    coarse_lattice: Fraction | None

    parameters = SCALE_AND_GOALS
    words = "Laplace noise"

    def __init__(self, *, scale: Any = None, lattice: Any = None, **goals: Any) -> None:
        object.__setattr__(self, "coarse_lattice", read_lattice(lattice))
        found = fat_tailed_scale(lambda s: Laplace(scale=s, lattice=lattice), self.coarse_lattice, own=scale, **goals)
        object.__setattr__(self, "scale", found)

    @property
    def function(self) -> Function:
        return x / self.scale

    def law_on(self, lattice: Fraction) -> LatticeLaw:
        return GeneralizedGaussian(scale=self.scale / lattice, shape=Fraction(1))

    def shared(self, share: Fraction) -> "Laplace":
        return Laplace(scale=self.scale / share, lattice=self.coarse_lattice)

    @classmethod
    def audit_examples(cls) -> dict[str, "Laplace"]:
        return {"Laplace noise of one's own": cls(scale=30)}
