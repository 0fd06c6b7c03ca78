"""Noise on the k-th root of a total: the loss of a giant grows like a root, the error with the total."""

from dataclasses import dataclass
from fractions import Fraction

from recordwise.errors import ParameterError
from recordwise.exact import Number, nonnegative
from recordwise.functions import Function, x
from recordwise.mechanisms.inverses import Inverse
from recordwise.mechanisms.polynomial_inverse import PolynomialInverse
from recordwise.mechanisms.transform_calibration import noise_of
from recordwise.mechanisms.transforming import TransformedNoise


@dataclass(frozen=True, slots=True, init=False)
class RootTransform(TransformedNoise):
    """Release (total + offset)**(1/degree) with Gaussian (``sigma``) or Laplace (``laplace_scale``) noise; degree 1 to 4.

    Theorem T-TRANSFORM (docs/theory/policy.md): with contributions x >= 0 the loss is ((x+offset)**(1/degree) -
    offset**(1/degree))**2/(2 sigma**2), plus the grid step of T-GRID.
    """

    degree: int
    offset: Fraction
    """Larger: less loss for every record, more error on small totals."""
    sigma: Fraction | None
    laplace_scale: Fraction | None
    signed: bool

    def __init__(
        self,
        *,
        degree: int,
        offset: Number = 0,
        sigma: Number | None = None,
        laplace_scale: Number | None = None,
        signed: bool = False,
        **goals: Number | None,
    ) -> None:
        if degree not in (1, 2, 3, 4) or isinstance(degree, bool):
            raise ParameterError(parameter="degree", problem="must be 1, 2, 3 or 4")
        object.__setattr__(self, "degree", degree)
        object.__setattr__(self, "offset", nonnegative(offset, parameter="offset"))
        object.__setattr__(self, "signed", signed)
        noise = noise_of(
            lambda **noise: RootTransform(degree=degree, offset=offset, signed=signed, **noise),
            sigma,
            laplace_scale,
            goals,
        )
        object.__setattr__(self, "sigma", noise.get("sigma"))
        object.__setattr__(self, "laplace_scale", noise.get("laplace_scale"))

    def with_noise(self, *, sigma: Fraction | None = None, laplace_scale: Fraction | None = None) -> "RootTransform":
        return RootTransform(
            degree=self.degree, offset=self.offset, sigma=sigma, laplace_scale=laplace_scale, signed=self.signed
        )

    @property
    def function(self) -> Function:
        return (x + self.offset) ** Fraction(1, self.degree)

    @property
    def inverse(self) -> Inverse:
        return PolynomialInverse((0.0,) * self.degree + (1.0,))
