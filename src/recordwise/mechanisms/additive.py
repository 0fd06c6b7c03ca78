"""Additive noise from a user's own concave exponent."""

from dataclasses import dataclass
from fractions import Fraction

from recordwise.arithmetic import BallArithmetic
from recordwise.errors import ParameterError
from recordwise.exact import Number, ball
from recordwise.functions import Function, x
from recordwise.mechanisms.calibration import decimal
from recordwise.mechanisms.fat_tailed import FatTailedNoise, read_lattice
from recordwise.noise import ConcaveLaw, LatticeLaw


@dataclass(frozen=True, slots=True, init=False)
class Additive(FatTailedNoise):
    """Noise with density exp(-f(|z|)) for an increasing concave f, an expression of ``recordwise.functions``.

    Theorem T-ADD (docs/theory/policy.md): the pure loss is f(x) - f(0), exactly; f's concavity is certified (T-CONCAVE).
    """

    f: Function
    """In the measure's units, e.g. ``(x / 50) ** 0.5 + log(x / 10 + 1)``."""
    coarse_lattice: Fraction | None

    def __init__(self, f: Function, *, lattice: Number | None = None) -> None:
        if not isinstance(f, Function):
            raise ParameterError(
                parameter="f", problem="must be an expression of recordwise.functions, so that it can be published"
            )
        f.concave()
        object.__setattr__(self, "f", f)
        object.__setattr__(self, "coarse_lattice", read_lattice(lattice))

    @property
    def function(self) -> Function:
        return self.f

    @property
    def width(self) -> Fraction:
        """Where the exponent has risen by 1: it plays the part of a scale."""
        low, high = -200, 200
        while high - low > 1:
            middle = (low + high) // 2
            risen = self.f.increase(BallArithmetic(), ball(Fraction(2) ** middle)) > 1
            low, high = (low, middle) if risen else (middle, high)
        return decimal(2.0**high)

    def law_on(self, lattice: Fraction) -> LatticeLaw:
        return ConcaveLaw(self.f.after(x * lattice))
