"""Mechanisms with their shape kept and their noise set anew: to a variance, an error at a total, or the most a goal allows."""

import math
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from recordwise.errors import ParameterError
from recordwise.exact.numbers import Number
from recordwise.mechanisms.additive import Additive
from recordwise.mechanisms.calibration import solve
from recordwise.mechanisms.clamped import Clamped
from recordwise.mechanisms.gaussian import Gaussian, GaussianNoise
from recordwise.mechanisms.generalized_gaussian import GeneralizedGaussian
from recordwise.mechanisms.log_transform import LogTransform
from recordwise.mechanisms.noisy import read_step
from recordwise.mechanisms.polylog import Polylog
from recordwise.mechanisms.root_transform import RootTransform
from recordwise.mechanisms.transform import Transform
from recordwise.mechanisms.transformed import TransformedNoise
from recordwise.mechanisms.unit_split import UnitSplit
from recordwise.noise.laws import DiscreteGaussian
from recordwise.planning.errors import chances, error_quantiles

CLOSE = Fraction(9999, 10000)
"""How much narrower noise is made while its lattice still misses a goal that its continuous law meets."""
DIGITS = 6
"""Of a parameter that planning finds: it is to be read, and to be written into a plan."""


def with_goal(mechanism: Any, **goals: Any) -> Any:
    """The same mechanism calibrated by its constructor: to a variance or to a relative_error with at_total, confidence, step."""
    if not isinstance(mechanism, GaussianNoise):
        goals.pop("step", None)
    lattice: dict[str, Any] = {"lattice": getattr(mechanism, "coarse_lattice", None)}
    match mechanism:
        case Gaussian():
            return Gaussian(**goals)
        case Clamped():
            return Clamped(to=mechanism.to, **goals)
        case UnitSplit():
            return UnitSplit(at=mechanism.at, **goals)
        case GeneralizedGaussian():
            return GeneralizedGaussian(shape=mechanism.shape, **lattice, **goals)
        case Polylog():
            shape: dict[str, Any] = {"power": mechanism.power, "rate": mechanism.rate, "offset": mechanism.offset}
            return Polylog(**shape, **lattice, **goals)
        case Additive():
            return Additive(mechanism.f, **lattice, **goals)
        case RootTransform() | LogTransform() | Transform():
            return _transform(mechanism, goals)
        case _:
            raise ParameterError(
                parameter="mechanism", problem=f"{type(mechanism).__name__} is not one planning can calibrate"
            )


def _transform(mechanism: Any, goals: dict[str, Any]) -> Any:
    if goals.get("at_total") is None:
        raise ParameterError(
            parameter="at_total", problem="is needed: the variance of a transform grows with the total"
        )
    kind: dict[str, Any] = {"noise": "gaussian" if mechanism.sigma is not None else "laplace"}
    if isinstance(mechanism, LogTransform):
        return LogTransform(offset=mechanism.offset, **kind, **goals)
    if isinstance(mechanism, RootTransform):
        return RootTransform(degree=mechanism.degree, offset=mechanism.offset, **kind, **goals)
    return Transform(mechanism.f, mechanism.f_inverse, offset=mechanism.offset, **kind, **goals)


def most_noise(
    mechanism: Any, total: float, reach: float, *, confidence: float, step: Number = 1, kept: float | None = None
) -> Any | None:
    """The same mechanism with the most noise, to six digits, for which |value - total| <= ``reach`` with probability ``confidence``
    as drawn; None where the goal is missed without any noise. ``kept`` is the total of clamped contributions."""
    clamps = isinstance(mechanism, Clamped) and kept is not None
    if clamps and total - float(kept or 0) > reach:
        return None
    if clamps and kept != total:
        return _clamped(mechanism, total, reach, confidence, step, float(kept or 0))
    if isinstance(mechanism, GaussianNoise):
        return _gaussian(mechanism, reach, confidence, step)
    if isinstance(mechanism, TransformedNoise):
        return _widest_transform(mechanism, total, reach, confidence, step)
    found = _with_scale(
        with_goal(mechanism, relative_error=reach / total, at_total=total, confidence=confidence), Fraction(1)
    )
    while float(error_quantiles(found, np.array([total]), confidence=confidence, step=step)[0]) > reach:
        found = _with_scale(found, CLOSE)
    return found


def _with_scale(mechanism: Any, factor: Fraction) -> Any:
    """Fat-tailed noise with its scale multiplied and shortened."""
    if isinstance(mechanism, Additive):
        return Additive(mechanism.f, scale=factor, lattice=mechanism.coarse_lattice)
    return with_goal(mechanism, scale=short(mechanism.scale * factor, up=False))


def with_sigma(mechanism: Any, sigma: Fraction) -> Any:
    """A mechanism of Gaussian noise at a sigma that is hardly smaller, in the parameter it is written with."""
    if isinstance(mechanism, Gaussian):
        return Gaussian(sigma=short(sigma, up=False))
    if isinstance(mechanism, Clamped):
        return Clamped(to=mechanism.to, rho=short(mechanism.to**2 / (2 * sigma**2), up=True))
    if not isinstance(mechanism.at, Fraction):
        raise ParameterError(parameter="at", problem="differs by group or measure, so that one noise does not fit all")
    return UnitSplit(at=mechanism.at, rho=short(mechanism.at**2 / (2 * sigma**2), up=True))


def _gaussian(mechanism: Any, reach: float, confidence: float, step: Number) -> Any:
    """By the tail of the lattice law: a normal law of the same sigma can miss the goal where sigma is a few steps."""
    data = read_step(step)
    beyond = math.floor(Fraction(reach) / data) + 1

    def missed(sigma: Fraction) -> float:
        return 2 * float(DiscreteGaussian(sigma / data).sf_upper(beyond))

    return with_sigma(mechanism, solve(missed, 1 - confidence, rising=True))


def _widest_transform(mechanism: TransformedNoise, total: float, reach: float, confidence: float, step: Number) -> Any:
    kind = "sigma" if mechanism.sigma is not None else "laplace_scale"

    def missed(width: Fraction) -> float:
        try:
            made = mechanism.with_noise(**{kind: width})
        except ParameterError:
            return 1.0
        return 1 - float(chances(made, np.array([total]), np.array([reach]), step=step)[0])

    return mechanism.with_noise(**{kind: short(solve(missed, 1 - confidence, rising=True), up=False)})


def _clamped(mechanism: Clamped, total: float, reach: float, confidence: float, step: Number, kept: float) -> Any:
    def missed(sigma: Fraction) -> float:
        made, held = Clamped(to=mechanism.to, variance=sigma**2), np.array([kept])
        return 1 - float(chances(made, np.array([total]), np.array([reach]), step=step, kept=held)[0])

    return with_sigma(mechanism, solve(missed, 1 - confidence, rising=True))


def short(value: Fraction, *, up: bool) -> Fraction:
    """A number of six digits next to a fraction, above or below it."""
    rounding = "ROUND_CEILING" if up else "ROUND_FLOOR"
    return Fraction(
        Context(prec=DIGITS, rounding=rounding).divide(Decimal(value.numerator), Decimal(value.denominator))
    )
