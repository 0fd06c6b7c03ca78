"""Additive noise with a custom concave exponent."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from recordwise.errors import ParameterError, RangeError
from recordwise.exact.arithmetic import BallArithmetic
from recordwise.exact.functions import Function, log, x
from recordwise.exact.numbers import Number, ball, working_precision
from recordwise.mechanisms.described import SCALE_AND_GOALS, Parameter
from recordwise.mechanisms.fat_tailed import FatTailedNoise, read_lattice
from recordwise.mechanisms.fat_tailed_calibration import fat_tailed_scale
from recordwise.noise.lattice import LatticeLaw
from recordwise.noise.laws import ConcaveLaw


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Additive(FatTailedNoise):
    """Noise with density exp(-f(|z|)) for an increasing concave f, an expression of ``recordwise.exact.functions``.

    A goal (``variance``, ``rho`` with ``at``, ``relative_error`` with ``at_total``) or a ``scale`` stretches it to f(|z|/scale).
    Theorem T-ADD (docs/theory/policy.md): the pure loss is f(x) - f(0), exactly; f's concavity is certified (T-CONCAVE).

    Args:
        f: Exponent of the law: an increasing concave function.
        scale: Scale of the noise, in the measure's units.
        variance: Variance of the noise, in squared units of the measure.
        rho: Loss of a record of size at.
        at: Size of the record that loses rho, in the measure's units.
        relative_error: Relative error at the total at_total.
        at_total: Total at which the goal is stated, in the measure's units.
        confidence: Probability with which the error stays below relative_error.
        lattice: Lattice on which noise is drawn, in the measure's units.
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("f", "exponent of the law: an increasing concave function", read="function", needed=True),
        *SCALE_AND_GOALS,
    )
    words: ClassVar[str] = "noise from a custom law"

    f: Function
    """In the measure's units, e.g. ``(x / 50) ** 0.5 + log(x / 10 + 1)``; already stretched."""
    coarse_lattice: Fraction | None

    def __init__(
        self,
        f: Function,
        *,
        scale: Number | None = None,
        variance: Number | None = None,
        rho: Number | None = None,
        at: Number | None = None,
        relative_error: Number | None = None,
        at_total: Number | None = None,
        confidence: float | None = None,
        lattice: Number | None = None,
    ) -> None:
        if not isinstance(f, Function):
            raise ParameterError(
                parameter="f",
                problem="must be an expression of recordwise.exact.functions, so that it can be published",
            )
        f.concave()
        object.__setattr__(self, "coarse_lattice", read_lattice(lattice))
        given = (variance, rho, at, relative_error, at_total, confidence)
        stretch = fat_tailed_scale(
            lambda s: Additive(f, scale=s, lattice=lattice),
            self.coarse_lattice,
            own=1 if scale is None and not any(goal is not None for goal in given) else scale,
            variance=variance,
            rho=rho,
            at=at,
            relative_error=relative_error,
            at_total=at_total,
            confidence=confidence,
        )
        object.__setattr__(self, "f", f.after(x / stretch))

    @classmethod
    def audit_examples(cls) -> dict[str, "Additive"]:
        return {"additive": cls((x / 50) ** 0.5 + log(x / 100 + 1))}

    def shared(self, share: Fraction) -> "Additive":
        """The same at a share of the pure loss, for one of several levels: share * f, if that is still a law that can be drawn."""
        scaled = Additive(share * self.f, lattice=self.coarse_lattice)
        try:
            accurate = math.isfinite(scaled.law_on(scaled.lattice()).variance)
        except RangeError:
            accurate = False
        if not accurate:
            raise ParameterError(
                parameter="f",
                problem=f"cannot be shared: a share of {share} leaves tails too heavy to have a variance or to be drawn",
                advice="Give each level its own query.",
            )
        return scaled

    def resized(self, size: Fraction) -> "Additive":
        """The same law stretched by a size."""
        return Additive(self.f, scale=size, lattice=self.coarse_lattice)

    def with_scale_times(self, factor: Fraction) -> "Additive":
        """The same law stretched by a factor."""
        return Additive(self.f, scale=factor, lattice=self.coarse_lattice)

    @property
    def function(self) -> Function:
        return self.f

    @property
    def width(self) -> Fraction:
        """A power of two at which the exponent has risen by 1; it serves as a scale."""
        low, high = -200, 200
        with working_precision():
            while high - low > 1:
                middle = (low + high) // 2
                risen = self.f.increase(BallArithmetic(), ball(Fraction(2) ** middle)) > 1
                low, high = (low, middle) if risen else (middle, high)
        return Fraction(2) ** high

    def law_on(self, lattice: Fraction) -> LatticeLaw:
        return ConcaveLaw(self.f.after(x * lattice))
