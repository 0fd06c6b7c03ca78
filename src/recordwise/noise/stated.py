"""Noise as a release states it: kinds and parameters, and the laws that were drawn.

Readers add up published numbers and need no mechanism for it: no policy, no draw, no estimate. Only transforms, whose variance at a
total is that of an estimate through their inverse, laws of one's own and mechanisms of other packages are read by the mechanisms
themselves; tests hold both to the same laws.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Protocol, Self, TypeAlias

from recordwise.errors import ParameterError
from recordwise.exact.numbers import Number, positive, power_upper, rational, sqrt_upper
from recordwise.noise.laws import AveragedLaw, GeneralizedGaussian, LatticeLaw, Polylog, discrete_gaussian

FINE = 1000
"""Lattice steps in one scale: fine enough that the tight loss is within 1 % of the continuous one (MATH 4)."""


def fine_lattice(step: Fraction, scale: Fraction) -> Fraction:
    """Return the step, halved until the scale has a thousand lattice steps."""
    return step / (1 << (math.ceil(FINE * step / scale) - 1).bit_length())


class StatedNoise:
    """What fits ask about noise whose law does not depend on totals."""

    __slots__ = ()

    signed: ClassVar[bool] = False
    group_numbers: Any = None
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

    def at_share(self, share: Fraction) -> Self:
        """The noise at a share of the loss."""
        return self if share == 1 else self._shared(share)

    def _shared(self, share: Fraction) -> Self:
        raise NotImplementedError

    def at_size(self, size: Fraction) -> "StatedNoise":
        """The noise as a share of a size."""
        raise NotImplementedError

    def drawn_law(self, step: Number) -> "tuple[LatticeLaw | AveragedLaw, Fraction] | None":
        """The law in lattice steps, and the lattice; None where cells differ."""
        return None


class GaussianDraws(StatedNoise):
    """Answers that are weighted sums of Gaussian draws."""

    __slots__ = ()

    is_gaussian: ClassVar[bool] = True

    def draws(self) -> tuple["Draw", ...]:
        """Sigma, weight and lattice of each draw, one over how many parts of a step; the first one first."""
        raise NotImplementedError

    def at_size(self, size: Fraction) -> "GaussianDraws":
        """The noise as a share of a size."""
        raise NotImplementedError

    def precisions(self) -> tuple[Fraction, ...]:
        """One over the variance of each draw."""
        return tuple(1 / sigma**2 for sigma, _, _ in self.draws())

    @property
    def variance(self) -> Fraction:
        """That of continuous laws."""
        return sum(((sigma * weight) ** 2 for sigma, weight, _ in self.draws()), Fraction(0))

    def drawn_law(self, step: Number) -> tuple[LatticeLaw | AveragedLaw, Fraction] | None:
        """The law in lattice steps, and the lattice."""
        lattice = positive(step, parameter="step")
        parts = [
            (discrete_gaussian(sigma * parts / lattice), float(weight / parts)) for sigma, weight, parts in self.draws()
        ]
        return AveragedLaw(tuple(parts)), lattice


Draw: TypeAlias = tuple[Fraction, Fraction, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedGaussian(GaussianDraws):
    """Gaussian noise with a sigma, or with ``rho`` at ``at``."""

    sigma: Fraction | None = None
    rho: Fraction = Fraction(1)
    at: Fraction = Fraction(1)

    def draws(self) -> tuple[Draw, ...]:
        """The only one."""
        return ((sqrt_upper(self.at**2 / (2 * self.rho)) if self.sigma is None else self.sigma, Fraction(1), 1),)

    def _shared(self, share: Fraction) -> Self:
        if self.sigma is None:
            return replace(self, rho=share * self.rho)
        return replace(self, sigma=sqrt_upper(self.sigma**2 / share))

    def at_size(self, size: Fraction) -> "StatedGaussian":
        """The noise as a share of a size."""
        return replace(self, at=self.at * size) if self.sigma is None else replace(self, sigma=self.sigma * size)

    def drawn_law(self, step: Number) -> tuple[LatticeLaw, Fraction]:
        """The law in lattice steps, and the lattice."""
        lattice = positive(step, parameter="step")
        return discrete_gaussian(self.draws()[0][0] / lattice), lattice


@dataclass(frozen=True, slots=True)
class StatedSplit(StatedNoise):
    """Gaussian noise whose sigma differs by public group or by measure; tables state it cell by cell."""

    is_gaussian: ClassVar[bool] = True

    def _shared(self, share: Fraction) -> Self:
        return self

    def at_size(self, size: Fraction) -> "StatedSplit":
        """The same: its sigma is in the tables."""
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedRefined(GaussianDraws):
    """The average of two answers, by inverse variances (T-STAGES)."""

    before: GaussianDraws
    more: GaussianDraws

    def draws(self) -> tuple[Draw, ...]:
        """Those of both; each has the weight of its precision."""
        total = sum(self.precisions(), Fraction(0))
        return tuple((sqrt_upper(1 / each), each / total, 1) for each in self.precisions())

    def precisions(self) -> tuple[Fraction, ...]:
        """Those of both."""
        return self.before.precisions() + self.more.precisions()

    def _shared(self, share: Fraction) -> Self:
        before, more = self.before.at_share(share), self.more.at_share(share)
        return replace(self, before=before, more=more)

    def at_size(self, size: Fraction) -> "StatedRefined":
        """Both draws as shares of a size."""
        return replace(self, before=self.before.at_size(size), more=self.more.at_size(size))


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedCarried(GaussianDraws):
    """An answer with part of an earlier one's noise (T-SERIES)."""

    more: GaussianDraws
    before: GaussianDraws | None
    carry: Fraction

    def draws(self) -> tuple[Draw, ...]:
        """Those that were carried, then the fresh one, on the lattice of the part that is kept."""
        ((own, _, _),) = self.more.draws()
        last: tuple[Draw, ...] = ((own, Fraction(1), self.carry.denominator),)
        if self.before is None or not self.carry:
            return last
        return tuple((sigma, weight * self.carry, parts) for sigma, weight, parts in self.before.draws()) + last

    @property
    def keeps_variance(self) -> bool:
        """Whether answers are as accurate as the earlier ones, but for rounding."""
        return self.before is not None and self.variance <= ROUNDED * self.before.variance

    def _shared(self, share: Fraction) -> Self:
        before = None if self.before is None else self.before.at_share(share)
        return replace(self, more=self.more.at_share(share), before=before)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedTier(GaussianDraws):
    """Noise on top of that of a finer answer (T-TIER)."""

    before: GaussianDraws
    more: GaussianDraws

    def draws(self) -> tuple[Draw, ...]:
        """Those of both."""
        return (*self.before.draws(), *self.more.draws())

    def _shared(self, share: Fraction) -> Self:
        return replace(self, before=self.before.at_share(share), more=self.more.at_share(share))

    def at_size(self, size: Fraction) -> "StatedTier":
        """Both draws as shares of a size."""
        return replace(self, before=self.before.at_size(size), more=self.more.at_size(size))


ROUNDED = Fraction(1_000_001, 1_000_000) ** 10
"""Above the roundings of sigmas at a share of a level."""


class StatedFat(StatedNoise):
    """Noise with heavy tails on a lattice of its own."""

    __slots__ = ()

    scale: Fraction
    lattice: Fraction | None
    """Where it was asked for."""

    def law_on(self, lattice: Fraction) -> LatticeLaw:
        """The law in lattice steps."""
        raise NotImplementedError

    def drawn_law(self, step: Number) -> tuple[LatticeLaw, Fraction]:
        """The law in lattice steps, and the lattice."""
        lattice = self.lattice or fine_lattice(positive(step, parameter="step"), self.scale)
        return self.law_on(lattice), lattice

    def lattice_part(self, sd: float) -> float:
        """The lattice as a part of the standard deviation, at most, as mechanisms say it (T-UNIMODAL)."""
        return lattice_part(self, self.scale, self.lattice, sd)


class _OnLattice(Protocol):
    def law_on(self, lattice: Fraction) -> LatticeLaw: ...


def lattice_part(law: _OnLattice, scale: Fraction, lattice: Fraction | None, sd: float) -> float:
    """Bound the lattice as a part of the standard deviation, at any share or size (T-UNIMODAL)."""
    if lattice is not None:
        return float(lattice) / sd
    # A scale has at least a thousand steps; half of their standard deviation allows for any finer lattice.
    return 2 / math.sqrt(law.law_on(scale / FINE).variance)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedPolylog(StatedFat):
    """Polylog noise."""

    power: Fraction
    rate: Fraction
    offset: Fraction
    scale: Fraction
    lattice: Fraction | None = None

    def _shared(self, share: Fraction) -> Self:
        return replace(self, rate=self.rate * share)

    def at_size(self, size: Fraction) -> "StatedPolylog":
        """The noise as a share of a size."""
        return replace(self, scale=self.scale * size)

    def law_on(self, lattice: Fraction) -> LatticeLaw:
        """The law in lattice steps."""
        return Polylog(scale=self.scale / lattice, rate=self.rate, offset=self.offset, power=self.power)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedPower(StatedFat):
    """Generalized Gaussian noise; of shape 1 it is Laplace noise."""

    shape: Fraction
    scale: Fraction
    lattice: Fraction | None = None

    @property
    def draws_laplace(self) -> bool:  # type: ignore[override]
        """Whether it is Laplace noise."""
        return self.shape == 1

    def _shared(self, share: Fraction) -> Self:
        return replace(self, scale=self.scale * power_upper(1 / share, 1 / self.shape))

    def at_size(self, size: Fraction) -> "StatedPower":
        """The noise as a share of a size."""
        return replace(self, scale=self.scale * size)

    def law_on(self, lattice: Fraction) -> LatticeLaw:
        """The law in lattice steps."""
        return GeneralizedGaussian(scale=self.scale / lattice, shape=self.shape)


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

    def _shared(self, share: Fraction) -> Self:
        low = None if self.low is None else self.low.at_share(share)
        return replace(self, noise=self.noise.at_share(share), low=low)

    def at_size(self, size: Fraction) -> StatedNoise:
        """The noise of the cells of a band, by its least size."""
        return (self.noise if self.low is None or size >= self.low_below else self.low).at_size(size)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedGroups(StatedNoise):
    """Noise by the public group of a cell (T-GROUPED)."""

    by: str
    length: int | None
    groups: tuple[Any, ...]
    """The group of each noise but for the default, which is the last one."""
    noises: tuple[StatedNoise, ...]

    @property
    def group_numbers(self) -> tuple[Any, ...]:
        """The groups, so that there are some."""
        return self.groups

    def inside(self) -> tuple[StatedNoise, ...]:
        """The noise of each group, then the default."""
        return self.noises


Form = Mapping[str, Any]


def stated_noise(form: Form) -> StatedNoise | None:
    """Read saved noise, or None for a kind that its mechanism reads."""
    if not isinstance(form, Mapping):
        raise ParameterError(parameter="mechanism", problem="must be a table of its kind and parameters")
    read = READERS.get(str(form.get("kind")))
    return None if read is None else read(form)


def _numbers(form: Form, *names: str) -> dict[str, Fraction] | None:
    """Return the stated parameters, or None if one is no number."""
    given = {name: form[name] for name in names if name in form}
    if not all(isinstance(each, (str, int)) for each in given.values()):
        return None
    return {name: positive(each, parameter=name) for name, each in given.items()}


def _gaussian(form: Form) -> StatedNoise:
    found = _numbers(form, "sigma", "rho", "at")
    return StatedSplit() if found is None else StatedGaussian(**found)


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


def _polylog(form: Form) -> StatedNoise | None:
    found = _numbers(form, "power", "rate", "offset", "scale", "coarse_lattice")
    return None if found is None else StatedPolylog(lattice=found.pop("coarse_lattice", None), **found)


def _refined(form: Form) -> StatedNoise | None:
    before, more = (stated_noise(form[name]) for name in ("before", "more"))
    if not isinstance(before, GaussianDraws) or not isinstance(more, GaussianDraws):
        return None
    made = StatedTier if form["kind"] == "Tiered" else StatedRefined
    return made(before=before, more=more)


def _carried(form: Form) -> StatedNoise | None:
    given = [form[name] for name in ("more", "before") if form.get(name) is not None]
    read = [each for each in map(stated_noise, given) if isinstance(each, GaussianDraws)]
    if len(read) < len(given):
        return None
    carry = rational(form.get("carry", 0), parameter="carry")
    return StatedCarried(more=read[0], before=read[1] if len(read) > 1 else None, carry=carry)


def _groups(form: Form) -> StatedNoise | None:
    default = form.get("default")
    read = [
        stated_noise(each) for each in (*(own for _, own in form["values"]), *([] if default is None else [default]))
    ]
    noises = tuple(each for each in read if each is not None)
    if len(noises) < len(read):
        return None
    groups = tuple(Fraction(each["number"]) if isinstance(each, Mapping) else each for each, _ in form["values"])
    return StatedGroups(by=form["by"], length=form.get("length"), groups=groups, noises=noises)


READERS: Mapping[str, Callable[[Form], StatedNoise | None]] = {
    "Gaussian": _gaussian,
    "UnitSplit": _gaussian,
    "Clamped": _clamped,
    "GeneralizedGaussian": _power,
    "Polylog": _polylog,
    "Sized": _sized,
    "ByGroup": _groups,
    "Refined": _refined,
    "Carried": _carried,
    "Tiered": _refined,
}
