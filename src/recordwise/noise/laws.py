"""The laws by name. Parameters are in lattice steps and are read exactly."""

from dataclasses import dataclass
from fractions import Fraction

from recordwise.errors import ParameterError
from recordwise.exact import Number, positive
from recordwise.functions import Function, log, x
from recordwise.noise.law import LatticeLaw, check_range


@dataclass(frozen=True, slots=True, init=False)
class DiscreteGaussian(LatticeLaw):
    """P(Z = k) proportional to exp(-k**2 / (2 sigma**2))."""

    sigma: Fraction

    def __init__(self, sigma: Number) -> None:
        object.__setattr__(self, "sigma", positive(sigma, parameter="sigma"))
        check_range(str(self), self.exponent)

    @property
    def exponent(self) -> Function:
        return x**2 / (2 * self.sigma**2)

    @property
    def inflection(self) -> int:
        return int(self.sigma)


@dataclass(frozen=True, slots=True, init=False)
class DiscreteLaplace(LatticeLaw):
    """P(Z = k) proportional to exp(-|k| / scale)."""

    scale: Fraction

    def __init__(self, scale: Number) -> None:
        object.__setattr__(self, "scale", positive(scale, parameter="scale"))
        check_range(str(self), self.exponent)

    @property
    def exponent(self) -> Function:
        return x / self.scale


@dataclass(frozen=True, slots=True, init=False)
class GeneralizedGaussian(LatticeLaw):
    """P(Z = k) proportional to exp(-(|k| / scale)**shape), 0 < shape <= 1."""

    scale: Fraction
    shape: Fraction

    def __init__(self, scale: Number, shape: Number) -> None:
        object.__setattr__(self, "scale", positive(scale, parameter="scale"))
        object.__setattr__(self, "shape", positive(shape, parameter="shape"))
        if self.shape > 1:
            raise ParameterError(
                parameter="shape",
                problem=f"must be at most 1, not {shape}",
                advice="Above 1 the exponent is not concave.",
            )
        check_range(str(self), self.exponent)

    @property
    def exponent(self) -> Function:
        return (x / self.scale) ** self.shape


@dataclass(frozen=True, slots=True, init=False)
class Polylog(LatticeLaw):
    """P(Z = k) proportional to exp(-rate * ln(|k| / scale + offset)**power), power >= 1."""

    scale: Fraction
    rate: Fraction
    offset: Fraction
    power: Fraction

    def __init__(self, scale: Number, rate: Number, offset: Number, power: Number) -> None:
        given = {"scale": scale, "rate": rate, "offset": offset, "power": power}
        for name, value in given.items():
            object.__setattr__(self, name, positive(value, parameter=name))
        if self.power < 1:
            raise ParameterError(parameter="power", problem=f"must be at least 1, not {power}")
        if self.offset < 1:
            raise ParameterError(parameter="offset", problem=f"must be at least 1, not {offset}")
        self._check_rate()
        self.exponent.concave()
        check_range(str(self), self.exponent)

    def _check_rate(self) -> None:
        if self.power == 1 and self.rate <= 2:
            lacks = "a normaliser" if self.rate <= 1 else "a mean"
            raise ParameterError(
                parameter="rate",
                problem=f"must be above 2 at power 1, not {self.rate}",
                advice=f"The law would lack {lacks}.",
            )

    @property
    def exponent(self) -> Function:
        return self.rate * log(x / self.scale + self.offset) ** self.power


@dataclass(frozen=True, slots=True, init=False)
class ConcaveLaw(LatticeLaw):
    """P(Z = k) proportional to exp(-f(|k|)) for an expression f whose concavity is certified (T-CONCAVE)."""

    exponent_function: Function

    def __init__(self, f: Function) -> None:
        f.concave()
        object.__setattr__(self, "exponent_function", f)
        check_range(str(self), f)

    @property
    def exponent(self) -> Function:
        return self.exponent_function
