"""Noise on the logarithm of a total: the same relative error at every size, and a loss that grows with the squared logarithm."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.functions import Function, log, x
from recordwise.exact.numbers import Number, positive
from recordwise.mechanisms.described import TRANSFORM_NOISE, Parameter
from recordwise.mechanisms.inverses import ExponentialInverse, Inverse
from recordwise.mechanisms.transform_calibration import TransformNoise, goals_of_transform, noise_of
from recordwise.mechanisms.transformed import TransformedNoise
from recordwise.mechanisms.value_laws import ValueLaw


@dataclass(frozen=True, slots=True, init=False, repr=False)
class LogTransform(TransformedNoise):
    """Release ln(total + offset) with Gaussian (``sigma``) or Laplace (``laplace_scale``) noise.

    Theorem T-TRANSFORM (docs/theory/policy.md): with contributions x >= 0 the loss is ln(1 + x/offset)**2/(2 sigma**2), plus
    the grid step of T-GRID. Laplace noise needs a scale below 1 to be unbiased, below 1/2 to have a variance.
    A change of a value by a share p costs at most ln(1 + p)**2/(2 sigma**2) at every size (T-P-RULE, docs/theory/transform.md).

    Args:
        offset: Added to the total, in the measure's units.
        sigma: Standard deviation of Gaussian noise, on the transformed scale.
        laplace_scale: Scale of Laplace noise, on the transformed scale.
        signed: Whether contributions may be negative.
        variance: Variance of the noise, in squared units of the measure.
        rho: Loss of a record of size at.
        at: Size of the record that loses rho, in the measure's units.
        relative_error: Relative error at the total at_total.
        at_total: Total at which the goal is stated, in the measure's units.
        confidence: Probability with which the error stays below relative_error.
        noise: Law of the noise that meets the goal.
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("offset", "added to the total, in the measure's units", needed=True),
        *TRANSFORM_NOISE,
    )
    words: ClassVar[str] = "noise on a logarithmic scale"
    logarithmic: ClassVar[bool] = True

    offset: Fraction
    """Larger values give less loss for large records and more error on small totals."""
    sigma: Fraction | None
    """Noise on the log scale; about the relative error of a large total."""
    laplace_scale: Fraction | None
    signed: bool

    def __init__(
        self,
        *,
        offset: Number,
        sigma: Number | None = None,
        laplace_scale: Number | None = None,
        signed: bool = False,
        variance: Number | None = None,
        rho: Number | None = None,
        at: Number | None = None,
        relative_error: Number | None = None,
        at_total: Number | None = None,
        confidence: float | None = None,
        noise: TransformNoise | None = None,
    ) -> None:
        object.__setattr__(self, "offset", positive(offset, parameter="offset"))
        object.__setattr__(self, "signed", signed)
        found = noise_of(
            lambda **chosen: LogTransform(offset=offset, signed=signed, **chosen),
            sigma,
            laplace_scale,
            goals_of_transform(variance, rho, at, relative_error, at_total, confidence),
            noise=noise,
        )
        object.__setattr__(self, "sigma", found.get("sigma"))
        object.__setattr__(self, "laplace_scale", found.get("laplace_scale"))
        if self.laplace_scale is not None and self.laplace_scale >= 1:
            raise ParameterError(
                parameter="laplace_scale", problem="must be below 1; otherwise the exponential of the noise has no mean"
            )

    @classmethod
    def audit_examples(cls) -> dict[str, "LogTransform"]:
        return {
            "logarithm": cls(offset=100, sigma="0.3"),
            "logarithm, laplace": cls(offset=100, laplace_scale="0.3"),
            "signed logarithm": cls(offset=100, sigma="0.3", signed=True),
        }

    @classmethod
    def planning_families(cls, *, offset: Number) -> dict[str, "LogTransform"]:
        return {
            "logarithm": cls(offset=offset, sigma=1),
            "logarithm, Laplace": cls(offset=offset, laplace_scale="0.25"),
        }

    def with_noise(self, *, sigma: Fraction | None = None, laplace_scale: Fraction | None = None) -> "LogTransform":
        return LogTransform(offset=self.offset, sigma=sigma, laplace_scale=laplace_scale, signed=self.signed)

    def value_law(self) -> ValueLaw:
        return ValueLaw.of_log(self)

    def resized(self, size: Fraction) -> "LogTransform":
        """The same with an offset that is a share of a size; noise on the scale of logarithms is relative already."""
        return self.with_offset(self.offset * size)

    def with_offset(self, offset: Fraction) -> "LogTransform":
        """The same noise at another offset."""
        return LogTransform(offset=offset, sigma=self.sigma, laplace_scale=self.laplace_scale, signed=self.signed)

    @property
    def function(self) -> Function:
        return log(x + self.offset)

    def bend(self, least: FloatArray) -> FloatArray | None:
        """1 everywhere: f'' is -f'**2."""
        return np.ones(least.shape)

    @property
    def inverse(self) -> Inverse:
        return ExponentialInverse()
