"""Noise as a release states it: kinds and parameters, and the laws that were drawn.

Readers add up published numbers and need no mechanism for it: no policy, no draw, no estimate. Kinds that are not here are read by
the mechanisms themselves; tests hold both to the same laws.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from recordwise.exact.numbers import Number, positive, power_upper, sqrt_upper
from recordwise.noise.laws import GeneralizedGaussian, LatticeLaw, discrete_gaussian

FINE = 1000
"""Lattice steps in one scale: fine enough that the tight loss is within 1 % of the continuous one (MATH 4)."""


def fine_lattice(step: Fraction, scale: Fraction) -> Fraction:
    """Return the step, halved until the scale has a thousand lattice steps."""
    return step / (1 << (math.ceil(FINE * step / scale) - 1).bit_length())


class StatedNoise:
    """What fits ask about noise whose law does not depend on totals."""

    __slots__ = ()

    signed: ClassVar[bool] = False
    group_numbers: ClassVar[None] = None
    variance_varies: ClassVar[bool] = False
    is_sized: ClassVar[bool] = False
    is_gaussian: ClassVar[bool] = False
    draws_laplace: bool = False

    def offers(self, name: str) -> bool:
        """Return whether there is a sigma, as mechanisms say it."""
        return name == "noise_sigma" and self.is_gaussian

    def inside(self) -> "tuple[StatedNoise, ...]":
        """The noise that is drawn."""
        return (self,)

    def at_share(self, share: Fraction) -> "StatedNoise":
        """The noise at a share of the loss."""
        return self if share == 1 else self._shared(share)

    def _shared(self, share: Fraction) -> "StatedNoise":
        raise NotImplementedError

    def at_size(self, size: Fraction) -> "StatedNoise":
        """The noise as a share of a size."""
        raise NotImplementedError

    def drawn_law(self, step: Number) -> tuple[LatticeLaw, Fraction] | None:
        """The law in lattice steps, and the lattice; None where cells differ."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedGaussian(StatedNoise):
    """Gaussian noise with a sigma, or with the loss ``rho`` at the size ``at``."""

    sigma: Fraction | None = None
    rho: Fraction = Fraction(1)
    at: Fraction = Fraction(1)

    is_gaussian: ClassVar[bool] = True

    def _shared(self, share: Fraction) -> "StatedGaussian":
        if self.sigma is None:
            return replace(self, rho=share * self.rho)
        return replace(self, sigma=sqrt_upper(self.sigma**2 / share))

    def at_size(self, size: Fraction) -> "StatedGaussian":
        """The noise as a share of a size."""
        return replace(self, at=self.at * size) if self.sigma is None else replace(self, sigma=self.sigma * size)

    def drawn_law(self, step: Number) -> tuple[LatticeLaw, Fraction]:
        """The law in lattice steps, and the lattice."""
        lattice = positive(step, parameter="step")
        sigma = sqrt_upper(self.at**2 / (2 * self.rho)) if self.sigma is None else self.sigma
        return discrete_gaussian(sigma / lattice), lattice


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedPower(StatedNoise):
    """Generalized Gaussian noise; of shape 1 it is Laplace noise."""

    shape: Fraction
    scale: Fraction
    lattice: Fraction | None = None
    """Where it was asked for."""

    @property
    def draws_laplace(self) -> bool:  # type: ignore[override]
        """Whether it is Laplace noise."""
        return self.shape == 1

    def _shared(self, share: Fraction) -> "StatedPower":
        return replace(self, scale=self.scale * power_upper(1 / share, 1 / self.shape))

    def at_size(self, size: Fraction) -> "StatedPower":
        """The noise as a share of a size."""
        return replace(self, scale=self.scale * size)

    def drawn_law(self, step: Number) -> tuple[LatticeLaw, Fraction]:
        """The law in lattice steps, and the lattice."""
        lattice = self.lattice or fine_lattice(positive(step, parameter="step"), self.scale)
        return GeneralizedGaussian(scale=self.scale / lattice, shape=self.shape), lattice


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedSized(StatedNoise):
    """Noise in shares of the public sizes of cells (T-SIZE)."""

    noise: StatedNoise
    low: StatedNoise | None
    low_below: Fraction
    """The size below which ``low`` is used."""

    is_sized: ClassVar[bool] = True

    def inside(self) -> tuple[StatedNoise, ...]:
        """The noise of all bands, then that of the lowest."""
        return (self.noise,) if self.low is None else (self.noise, self.low)

    def _shared(self, share: Fraction) -> "StatedSized":
        low = None if self.low is None else self.low.at_share(share)
        return replace(self, noise=self.noise.at_share(share), low=low)

    def at_size(self, size: Fraction) -> StatedNoise:
        """The noise of the cells of a band, by its least size."""
        return (self.noise if self.low is None or size >= self.low_below else self.low).at_size(size)


Form = Mapping[str, Any]


def stated_noise(form: Form) -> StatedNoise | None:
    """Read noise as saved; None for a kind that its mechanism must read."""
    read = READERS.get(str(form.get("kind")))
    return None if read is None else read(form)


def _numbers(form: Form, *names: str) -> dict[str, Fraction] | None:
    """Return the parameters that are stated; None if one is more than a number."""
    given = {name: form[name] for name in names if name in form}
    if not all(isinstance(each, (str, int)) for each in given.values()):
        return None
    return {name: positive(each, parameter=name) for name, each in given.items()}


def _gaussian(form: Form) -> StatedNoise | None:
    found = _numbers(form, "sigma", "rho", "at")
    return None if found is None else StatedGaussian(**found)


def _clamped(form: Form) -> StatedNoise | None:
    found = _numbers(form, "to", "rho")
    return None if found is None else StatedGaussian(rho=found["rho"], at=found["to"])


def _power(form: Form) -> StatedNoise | None:
    found = _numbers(form, "shape", "scale", "coarse_lattice")
    if found is None:
        return None
    return StatedPower(shape=found["shape"], scale=found["scale"], lattice=found.get("coarse_lattice"))


def _sized(form: Form) -> StatedNoise | None:
    found = _numbers(form, "floor", "low_below")
    inner, low = (stated_noise(form[name]) if name in form else None for name in ("mechanism", "low"))
    if found is None or inner is None or (low is None and "low" in form):
        return None
    return StatedSized(noise=inner, low=low, low_below=found.get("low_below", 2 * found["floor"]))


READERS: Mapping[str, Callable[[Form], StatedNoise | None]] = {
    "Gaussian": _gaussian,
    "UnitSplit": _gaussian,
    "Clamped": _clamped,
    "GeneralizedGaussian": _power,
    "Sized": _sized,
}
