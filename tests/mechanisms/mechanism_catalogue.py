"""Every mechanism the contract suite runs, each with the step of the measure it is used on."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import recordwise as rw
from recordwise.exact.functions import log, x
from recordwise.mechanisms.fat_tailed import FatTailedNoise
from recordwise.mechanisms.transformed import TransformedNoise
from recordwise.policy import Measure


@dataclass(frozen=True)
class Entry:
    """A mechanism and the step it is tried at."""

    name: str
    mechanism: Any
    step: Fraction = Fraction(1)

    def __str__(self) -> str:
        return self.name.replace(" ", "-")

    @property
    def transforms(self) -> bool:
        return isinstance(self.mechanism, TransformedNoise)

    @property
    def fat_tailed(self) -> bool:
        return isinstance(self.mechanism, FatTailedNoise)

    @property
    def laplace(self) -> bool:
        return self.transforms and self.mechanism.laplace_scale is not None

    @property
    def measure(self) -> Measure:
        return Measure("emp", self.step, self.transforms and self.mechanism.signed)


CENT = Fraction(1, 100)
JOINT = rw.UnitSplit(at={"emp": 50, "payann": 2000}, rho=0.1)
GROUPED = rw.UnitSplit(at=rw.by("industry", {"Mining": 500, "Retail": 50}, default=100), rho=0.1)

GAUSSIAN = [
    Entry("gaussian", rw.Gaussian(sigma="3.3")),
    Entry("gaussian narrow", rw.Gaussian(sigma="0.6")),
    Entry("gaussian at a record", rw.Gaussian(rho=0.1, at=50)),
    Entry("gaussian in cents", rw.Gaussian(sigma="0.05"), CENT),
    Entry("clamped", rw.Clamped(to=20, rho=0.5)),
    Entry("unit split", rw.UnitSplit(at=5, rho=0.1)),
    Entry("unit split joint", JOINT.resolved(JOINT.threshold("emp"))),
    Entry("unit split by group", GROUPED.resolved(GROUPED.threshold("emp").values[0][1])),
]
FAT_TAILED = [
    Entry("generalized gaussian", rw.GeneralizedGaussian(shape=0.5, scale=2)),
    Entry("generalized gaussian third", rw.GeneralizedGaussian(shape="1/3", scale="0.5", lattice="1/8")),
    Entry("generalized gaussian on integers", rw.GeneralizedGaussian(shape=0.5, variance=2, lattice=1)),
    Entry("laplace", rw.GeneralizedGaussian(shape=1, scale=3)),
    Entry("polylog", rw.Polylog(power=2, rate=1, offset=math.e, variance=2)),
    Entry("polylog on integers", rw.Polylog(power=2, rate=1, offset=math.e, variance=2, lattice=1)),
    Entry("polylog in cents", rw.Polylog(power="1.5", rate=3, offset=4, scale="0.02"), CENT),
    Entry("pareto", rw.Polylog(power=1, rate=6, offset=1, scale=4)),
    Entry("additive", rw.mechanisms.Additive((x / 5) ** 0.5 + log(x / 10 + 1))),
]
ROOTS = [
    Entry(f"root {degree} {noise}", rw.RootTransform(degree=degree, offset=offset, **{noise: scale}))
    for degree, offset, noise, scale in (
        (1, 3, "sigma", 2),
        (2, 0, "sigma", "0.5"),
        (2, 10, "laplace_scale", "0.3"),
        (3, 1, "sigma", "0.2"),
        (3, 0, "laplace_scale", "0.2"),
        (4, 0, "sigma", "0.2"),
        (4, 1, "sigma", "0.15"),
        (4, 1, "laplace_scale", "0.1"),
        (5, 1, "sigma", "0.1"),
        (8, 1, "laplace_scale", "0.05"),
        ("5/2", 10, "laplace_scale", "0.2"),
    )
]
TRANSFORMS = [
    *ROOTS,
    Entry("root 2 in cents", rw.RootTransform(degree=2, offset="0.25", sigma="0.1"), CENT),
    Entry("log sigma", rw.LogTransform(offset=10, sigma="0.2")),
    Entry("log laplace_scale", rw.LogTransform(offset=10, laplace_scale="0.1")),
    Entry("transform of the user", rw.mechanisms.Transform(2 * x**0.5, (x / 2) ** 2, offset=4, sigma="0.4")),
    Entry("transform with laplace noise", rw.mechanisms.Transform(x**0.4, x**2.5, offset=10, laplace_scale="0.1")),
]
SIGNED = [
    Entry("signed root", rw.RootTransform(degree=2, offset=1, sigma="0.3", signed=True)),
    Entry("signed log", rw.LogTransform(offset=10, laplace_scale="0.1", signed=True)),
]
ONE_SIDED = GAUSSIAN + FAT_TAILED + TRANSFORMS
EVERY = ONE_SIDED + SIGNED
TOTALS = [0, 1, 2, 10, 10**3, 10**6, 10**9]
"""In data steps."""
