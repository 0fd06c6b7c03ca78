"""Fat-tailed additive noise whose loss grows like a power of the logarithm of the record."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from recordwise.errors import ParameterError
from recordwise.exact.functions import Function, log, x
from recordwise.exact.numbers import Number, ball, midpoint, positive, working_precision
from recordwise.mechanisms.described import SCALE_AND_GOALS, Parameter
from recordwise.mechanisms.fat_tailed import FatTailedNoise, read_lattice
from recordwise.mechanisms.fat_tailed_calibration import fat_tailed_scale
from recordwise.noise.lattice import LatticeLaw
from recordwise.noise.laws import Polylog as PolylogLaw


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Polylog(FatTailedNoise):
    """Noise with density exp(-rate * ln(|z|/scale + offset)**power), power >= 1.

    Theorem T-ADD (docs/theory/policy.md): the pure loss is the rise of that exponent from 0 to x, exactly. The exponent is concave
    only if offset >= e**(power-1); less is refused. At power 1 the noise is of Pareto type: no mean for rate <= 2 (refused), no
    variance for rate <= 3 (then ``standard_error`` is infinite).

    Args:
        power: Power of the logarithm, at least 1.
        rate: How fast the tails fall.
        offset: Added inside the logarithm.
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
        Parameter("power", "power of the logarithm, at least 1", needed=True),
        Parameter("rate", "how fast the tails fall", needed=True),
        Parameter("offset", "added inside the logarithm", needed=True),
        *SCALE_AND_GOALS,
    )
    words: ClassVar[str] = "noise with very heavy tails"

    power: Fraction
    rate: Fraction
    """Larger values give lighter tails and more loss for a very large record."""
    offset: Fraction
    scale: Fraction
    """In the measure's units."""
    coarse_lattice: Fraction | None

    def __init__(
        self,
        *,
        power: Number,
        rate: Number,
        offset: Number,
        scale: Number | None = None,
        variance: Number | None = None,
        rho: Number | None = None,
        at: Number | None = None,
        relative_error: Number | None = None,
        at_total: Number | None = None,
        confidence: float | None = None,
        lattice: Number | None = None,
    ) -> None:
        for name, value in (("power", power), ("rate", rate), ("offset", offset)):
            object.__setattr__(self, name, positive(value, parameter=name))
        object.__setattr__(self, "offset", _at_least_limit(self.offset, self.power, offset))
        object.__setattr__(self, "coarse_lattice", read_lattice(lattice))
        _check(self.power, self.rate, self.offset, needs_variance=variance is not None)
        found = fat_tailed_scale(
            lambda s: Polylog(power=power, rate=rate, offset=offset, scale=s, lattice=lattice),
            self.coarse_lattice,
            own=scale,
            variance=variance,
            rho=rho,
            at=at,
            relative_error=relative_error,
            at_total=at_total,
            confidence=confidence,
        )
        object.__setattr__(self, "scale", found)

    @classmethod
    def audit_examples(cls) -> dict[str, "Polylog"]:
        return {
            "polylog": cls(power=2, rate=1, offset=math.e, scale=20),
            "pareto": cls(power=1, rate=6, offset=1, scale=80),
        }

    @classmethod
    def planning_families(cls, *, offset: Number) -> dict[str, "Polylog"]:
        return {"polylog": cls(power=2, rate=1, offset=3, scale=1)}

    def shared(self, share: Fraction) -> "Polylog":
        """The same at a share of the pure loss, for one of several levels: the rate is multiplied by it, and the tails get heavier.

        A share that leaves no variance is refused: the level would have no standard error and could not be fitted to the others.
        """
        rate = self.rate * share
        if self.power == 1 and rate <= 3:
            raise ParameterError(
                parameter="rate",
                problem=f"{self.rate} cannot be shared: a share of {share} leaves {rate}, and the variance is finite only above 3",
                advice=f"Use a rate above {3 / share}, a power above 1, or fewer levels.",
            )
        return Polylog(power=self.power, rate=rate, offset=self.offset, scale=self.scale, lattice=self.coarse_lattice)

    @property
    def function(self) -> Function:
        return self.rate * log(x / self.scale + self.offset) ** self.power

    def law_on(self, lattice: Fraction) -> LatticeLaw:
        return PolylogLaw(scale=self.scale / lattice, rate=self.rate, offset=self.offset, power=self.power)


def _at_least_limit(offset: Fraction, power: Fraction, given: Number) -> Fraction:
    """The float nearest to e**(power-1) may be slightly below it; a caller who writes ``math.e`` means the limit, rounded up."""
    limit = math.exp(float(power) - 1)
    with working_precision(128):
        exact = ball(power - 1).exp()
        if isinstance(given, float) and math.isclose(given, limit, rel_tol=2**-51) and ball(offset) < exact:
            return Fraction(math.ceil(midpoint(exact.upper()) * 10**18), 10**18)
    return offset


def _check(power: Fraction, rate: Fraction, offset: Fraction, *, needs_variance: bool) -> None:
    if power < 1:
        raise ParameterError(parameter="power", problem="must be at least 1")
    if offset < 1:
        raise ParameterError(
            parameter="offset", problem="must be at least 1; otherwise the exponent would be negative at 0"
        )
    (log(x + offset) ** power).concave()
    if power == 1 and rate <= 2:
        raise ParameterError(
            parameter="rate",
            problem="must be above 2 at power 1; otherwise the noise has no mean and no estimate is unbiased",
        )
    if power == 1 and rate <= 3 and needs_variance:
        raise ParameterError(parameter="rate", problem="must be above 3 at power 1 for the noise to have a variance")
