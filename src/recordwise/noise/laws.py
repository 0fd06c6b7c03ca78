"""The noise laws by name, and what every lattice law derives from its exponent. Parameters are exact and in lattice steps."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from recordwise.errors import ParameterError
from recordwise.exact.functions import Function, log, x
from recordwise.exact.numbers import Number, ball, positive, working_precision
from recordwise.noise.calibration import scale_for_variance
from recordwise.noise.lattice import LatticeLaw, check_range

CERTIFYING_BITS = 256


@lru_cache(maxsize=1024)
def _gaussian_exponent(sigma: Fraction) -> Function:
    return x**2 / (2 * sigma**2)


@dataclass(frozen=True, slots=True, init=False)
class DiscreteGaussian(LatticeLaw):
    """P(Z = k) proportional to exp(-k**2 / (2 sigma**2))."""

    sigma: Fraction

    def __init__(self, sigma: Number) -> None:
        object.__setattr__(self, "sigma", positive(sigma, parameter="sigma"))
        check_range(str(self), self.exponent)

    @classmethod
    def for_variance(cls, variance: Number) -> "DiscreteGaussian":
        """The law whose lattice variance is the wanted one, never below it (T-CALIBRATE).

        Args:
            variance: The wanted variance, in squared lattice steps.

        Returns:
            The law.
        """
        return cls(scale_for_variance(_gaussian_exponent, variance))

    @property
    def exponent(self) -> Function:
        return _gaussian_exponent(self.sigma)

    @property
    def inflection(self) -> int:
        return int(self.sigma)


@lru_cache(maxsize=1024)
def discrete_gaussian(sigma: Fraction) -> DiscreteGaussian:
    """The law for a sigma, checked once however many policies, draws and intervals use it."""
    return DiscreteGaussian(sigma)


@dataclass(frozen=True, slots=True, init=False)
class DiscreteLaplace(LatticeLaw):
    """P(Z = k) proportional to exp(-|k| / scale)."""

    scale: Fraction

    def __init__(self, scale: Number) -> None:
        object.__setattr__(self, "scale", positive(scale, parameter="scale"))
        check_range(str(self), self.exponent)

    @classmethod
    def for_variance(cls, variance: Number) -> "DiscreteLaplace":
        """The law whose lattice variance is the wanted one, never below it (T-CALIBRATE).

        Args:
            variance: The wanted variance, in squared lattice steps.

        Returns:
            The law.
        """
        return cls(scale_for_variance(lambda scale: x / scale, variance))

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
        object.__setattr__(self, "shape", _checked_shape(shape))
        check_range(str(self), self.exponent)

    @classmethod
    def for_variance(cls, variance: Number, *, shape: Number) -> "GeneralizedGaussian":
        """The law of that shape whose lattice variance is the wanted one, never below it (T-CALIBRATE).

        Args:
            variance: The wanted variance, in squared lattice steps.
            shape: The shape, above 0 and at most 1.

        Returns:
            The law.
        """
        power = _checked_shape(shape)
        return cls(scale_for_variance(lambda scale: (x / scale) ** power, variance), power)

    @property
    def exponent(self) -> Function:
        return (x / self.scale) ** self.shape


def _checked_shape(shape: Number) -> Fraction:
    power = positive(shape, parameter="shape")
    if power > 1:
        raise ParameterError(
            parameter="shape", problem=f"must be at most 1, not {shape}", advice="Above 1 the exponent is not concave."
        )
    return power


@dataclass(frozen=True, slots=True, init=False)
class Polylog(LatticeLaw):
    """P(Z = k) proportional to exp(-rate * ln(|k| / scale + offset)**power), power >= 1, offset >= e**(power - 1)."""

    scale: Fraction
    rate: Fraction
    offset: Fraction
    power: Fraction

    def __init__(self, scale: Number, rate: Number, offset: Number, power: Number) -> None:
        given = {"scale": scale, "rate": rate, "offset": offset, "power": power}
        for name, value in given.items():
            object.__setattr__(self, name, positive(value, parameter=name))
        _check_polylog(self.rate, self.offset, self.power)
        check_range(str(self), self.exponent)

    @classmethod
    def for_variance(cls, variance: Number, *, rate: Number, offset: Number, power: Number) -> "Polylog":
        """The law of that shape whose lattice variance is the wanted one, never below it (T-CALIBRATE).

        Args:
            variance: The wanted variance, in squared lattice steps.
            rate: The rate.
            offset: The offset.
            power: The power.

        Returns:
            The law.
        """
        d, o, p = (
            positive(rate, parameter="rate"),
            positive(offset, parameter="offset"),
            positive(power, parameter="power"),
        )
        _check_polylog(d, o, p)
        return cls(scale_for_variance(lambda scale: d * log(x / scale + o) ** p, variance), d, o, p)

    @property
    def exponent(self) -> Function:
        return self.rate * log(x / self.scale + self.offset) ** self.power


def _check_polylog(rate: Fraction, offset: Fraction, power: Fraction) -> None:
    """Refuse an exponent that is not concave and, at power 1, a law without a mean."""
    if power < 1:
        raise ParameterError(parameter="power", problem=f"must be at least 1, not {power}")
    with working_precision(CERTIFYING_BITS):
        needed = ball(power - 1).exp()
        concave = ball(offset) >= needed
    if not concave:
        raise ParameterError(
            parameter="offset",
            problem=f"must be at least e^(power - 1) = {float(needed):.17g}, not {float(offset):.17g}",
            advice="Below that, the exponent is not concave and losses could exceed the policy.",
        )
    if power == 1 and rate <= 2:
        lacks = "a normalizer" if rate <= 1 else "a mean"
        raise ParameterError(
            parameter="rate", problem=f"must be above 2 at power 1, not {rate}", advice=f"The law would lack {lacks}."
        )


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
