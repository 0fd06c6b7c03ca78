"""The noise of a transformation mechanism: as given, or found from a goal."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import Number, positive
from recordwise.mechanisms.calibration import calibrate, needed
from recordwise.mechanisms.transformed import TransformedNoise

TransformNoise: TypeAlias = Literal["gaussian", "laplace"]
"""The law of the noise that meets a goal."""
KINDS = {"gaussian": "sigma", "laplace": "laplace_scale"}
QUANTILES = 1 << 16


class _NoiseFamily:
    """A transformation mechanism as a function of its sigma or Laplace scale; a scale it refuses counts as too much noise."""

    def __init__(self, make: Callable[..., TransformedNoise], kind: str) -> None:
        self._make, self._kind = make, kind

    def spread(self, parameter: Fraction, total: Fraction) -> float:
        mechanism = self._with(parameter)
        return np.inf if mechanism is None else float(mechanism.variance(_parts(mechanism, total)))

    def loss(self, parameter: Fraction, contribution: Fraction) -> float:
        """As charged by the policy of a measure with that step; a finer step has a finer grid and costs less."""
        mechanism = self._with(parameter)
        return 0.0 if mechanism is None else mechanism.loss_at_shift(contribution, step=contribution)

    def relative_error(self, parameter: Fraction, total: Fraction, confidence: float) -> float:
        """The quantile of |value - total|/total over the noise, from many of its quantiles."""
        mechanism = self._with(parameter)
        if mechanism is None:
            return np.inf
        errors = np.abs(mechanism.values_under(float(total), _noise_quantiles(self._kind)) / float(total) - 1)
        return float(
            np.partition(errors, int(np.ceil(confidence * QUANTILES)) - 1)[int(np.ceil(confidence * QUANTILES)) - 1]
        )

    def _with(self, parameter: Fraction) -> TransformedNoise | None:
        try:
            return self._make(**{self._kind: parameter})
        except ParameterError:
            return None


def _parts(mechanism: TransformedNoise, total: Fraction) -> Any:
    return np.array([float(total), 0.0]) if mechanism.signed else float(total)


def _noise_quantiles(kind: str) -> FloatArray:
    """Standard noise at equally likely points."""
    from scipy.special import ndtri

    chances = (np.arange(QUANTILES) + 0.5) / QUANTILES
    if kind == "sigma":
        return np.asarray(ndtri(chances))
    return np.where(chances < 0.5, np.log(2 * chances), -np.log(2 - 2 * chances))


def goals_of_transform(
    variance: Number | None,
    rho: Number | None,
    at: Number | None,
    relative_error: Number | None,
    at_total: Number | None,
    confidence: float | None,
) -> dict[str, Number | None]:
    """The goals of a transform and what goes with them, by name; None where they are not given."""
    return {
        "variance": variance,
        "rho": rho,
        "at": at,
        "relative_error": relative_error,
        "at_total": at_total,
        "confidence": confidence,
    }


def noise_of(
    make: Callable[..., TransformedNoise],
    sigma: Number | None,
    laplace_scale: Number | None,
    goals: Mapping[str, Any],
    *,
    noise: str | None,
) -> dict[str, Fraction]:
    """``{"sigma": ...}`` or ``{"laplace_scale": ...}``; a goal is met with Gaussian noise unless ``noise`` is "laplace"."""
    own = {kind: value for kind, value in (("sigma", sigma), ("laplace_scale", laplace_scale)) if value is not None}
    if len(own) > 1 or (own and noise is not None):
        raise ParameterError(parameter="sigma, laplace_scale, noise", problem="are mutually exclusive")
    kind = next(iter(own), None) or _kind(noise or "gaussian")
    if goals["variance"] is not None:
        needed(goals, "at_total", "variance")
    if own and not any(value is not None for value in goals.values()):
        return {kind: positive(own[kind], parameter=kind)}
    return {kind: calibrate(_NoiseFamily(make, kind), name=kind, own=own.get(kind), **goals)}


def _kind(noise: str) -> str:
    if noise not in KINDS:
        raise ParameterError(parameter="noise", problem=f"must be one of {', '.join(KINDS)}")
    return KINDS[noise]
