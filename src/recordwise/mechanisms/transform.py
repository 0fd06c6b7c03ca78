"""Noise on the scale of a custom concave function."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from flint import arb

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import BallArithmetic
from recordwise.exact.functions import Function, x
from recordwise.exact.numbers import Number, ball, nonnegative, working_precision
from recordwise.mechanisms.described import TRANSFORM_NOISE, Parameter
from recordwise.mechanisms.function_inverse import FunctionInverse, check_smooth
from recordwise.mechanisms.inverses import Inverse, inverse_of
from recordwise.mechanisms.transform_calibration import TransformNoise, goals_of_transform, noise_of
from recordwise.mechanisms.transformed import TransformedNoise

BALLS = BallArithmetic()
PROBES = tuple(Fraction(10) ** k for k in range(-2, 13))


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Transform(TransformedNoise):
    """Release f(total + offset) for an increasing concave f with its inverse, both expressions of ``recordwise.exact.functions``.

    f's concavity is certified by rules (T-CONCAVE); the inverse is checked against f in arbitrary precision. An inverse that is no
    polynomial has an unbiased estimator under Laplace noise only.

    Args:
        f: The transform: an increasing concave function.
        inverse: The inverse of f.
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
        Parameter("f", "the transform: an increasing concave function", read="function", needed=True),
        Parameter("inverse", "the inverse of f", read="function", needed=True, field="f_inverse"),
        Parameter("offset", "added to the total, in the measure's units"),
        *TRANSFORM_NOISE,
    )
    words: ClassVar[str] = "noise on a custom scale"
    variance_varies: ClassVar[bool] = False

    f: Function
    f_inverse: Function
    offset: Fraction
    sigma: Fraction | None
    laplace_scale: Fraction | None
    signed: bool

    def __init__(
        self,
        f: Function,
        inverse: Function,
        *,
        offset: Number = 0,
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
        for name, given in (("f", f), ("inverse", inverse)):
            if not isinstance(given, Function):
                raise ParameterError(
                    parameter=name,
                    problem="must be an expression of recordwise.exact.functions, so that it can be published",
                )
        f.concave()
        _check_inverse(f, inverse)
        for name, value in (("f", f), ("f_inverse", inverse), ("signed", signed)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "offset", nonnegative(offset, parameter="offset"))
        found = noise_of(
            lambda **chosen: Transform(f, inverse, offset=offset, signed=signed, **chosen),
            sigma,
            laplace_scale,
            goals_of_transform(variance, rho, at, relative_error, at_total, confidence),
            noise=noise,
        )
        object.__setattr__(self, "sigma", found.get("sigma"))
        object.__setattr__(self, "laplace_scale", found.get("laplace_scale"))
        if isinstance(self.inverse, FunctionInverse):
            check_smooth(self.function, self.laplace_scale)

    @classmethod
    def audit_examples(cls) -> dict[str, "Transform"]:
        return {"transform of one's own": cls(2 * x**0.5, (x / 2) ** 2, offset=40, sigma=4)}

    def with_noise(self, *, sigma: Fraction | None = None, laplace_scale: Fraction | None = None) -> "Transform":
        return Transform(
            self.f,
            self.f_inverse,
            offset=self.offset,
            sigma=sigma,
            laplace_scale=laplace_scale,
            signed=self.signed,
        )

    @property
    def function(self) -> Function:
        return self.f.after(x + self.offset)

    @property
    def inverse(self) -> Inverse:
        return inverse_of(self.f_inverse)


def _check_inverse(f: Function, inverse: Function) -> None:
    with working_precision(256):
        for probe in PROBES:
            point = ball(probe)
            back = inverse.value(BALLS, f.value(BALLS, point))
            if not abs(back / point - 1) < arb(2) ** -100:
                raise ParameterError(parameter="inverse", problem="does not undo f: inverse(f(x)) is not x")
