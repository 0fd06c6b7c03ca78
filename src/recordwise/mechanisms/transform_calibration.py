"""The noise of a transformation mechanism: given itself, or found from a goal."""

from collections.abc import Callable
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from recordwise.arithmetic import NumpyArithmetic
from recordwise.errors import ParameterError
from recordwise.exact import Number, positive
from recordwise.mechanisms.calibration import calibrate
from recordwise.mechanisms.transforming import TransformedNoise

GOALS = ("variance", "at_total", "rho", "at", "relative_error", "level", "noise")


class _NoiseFamily:
    """A transformation mechanism as a function of its sigma or Laplace scale."""

    def __init__(self, make: Callable[..., TransformedNoise], kind: str) -> None:
        self._make, self._kind = make, kind

    def _with(self, parameter: Fraction) -> TransformedNoise:
        return self._make(**{self._kind: parameter})

    def spread(self, parameter: Fraction, total: Fraction) -> float:
        try:
            return float(self._with(parameter).variance(self._parts(total)))
        except ParameterError:
            return float("inf")

    def loss(self, parameter: Fraction, contribution: Fraction) -> float:
        return self._with(parameter).loss_at_shift(contribution, step=contribution)

    def relative_error(self, parameter: Fraction, total: Fraction, level: float) -> float:
        """The farther of the two ends of the noise quantile, through the inverse."""
        mechanism = self._with(parameter)
        reach = float(parameter) * (
            NormalDist().inv_cdf((1 + level) / 2) if self._kind == "sigma" else -float(np.log(1 - level))
        )
        exact = mechanism.function.value(NumpyArithmetic(), np.array([float(total)]))
        ends = mechanism.inverse.monotone(exact + np.array([-reach, reach])) - float(mechanism.offset)
        return float(np.max(np.abs(ends - float(total)))) / float(total)

    def _parts(self, total: Fraction) -> object:
        return np.array([float(total), 0.0]) if self._make(**{self._kind: Fraction(1, 4)}).signed else float(total)


def noise_of(
    make: Callable[..., TransformedNoise],
    sigma: Number | None,
    laplace_scale: Number | None,
    goals: dict[str, Number | None],
) -> dict[str, Fraction]:
    """``{"sigma": ...}`` or ``{"laplace_scale": ...}``; a goal is met with Gaussian noise unless ``noise="laplace"`` is given."""
    unknown = sorted(set(goals) - set(GOALS))
    if unknown:
        raise ParameterError(parameter=unknown[0], problem=f"is not known; goals are {', '.join(GOALS)}")
    if sigma is not None and laplace_scale is not None:
        raise ParameterError(parameter="sigma / laplace_scale", problem="must not both be given")
    kind = "laplace_scale" if laplace_scale is not None or goals.get("noise") == "laplace" else "sigma"
    own = sigma if sigma is not None else laplace_scale
    if own is not None and not goals:
        return {kind: positive(own, parameter=kind)}
    wanted = {name: value for name, value in goals.items() if name != "noise"}
    family = _NoiseFamily(make, kind)
    return {kind: calibrate(family, own=own, name=kind, total_matters=True, **wanted)}  # type: ignore[arg-type]
