"""The laws written a second time, for mpmath, straight from their definitions."""

from collections.abc import Callable

import mpmath as mp

from recordwise.noise import DiscreteGaussian, DiscreteLaplace, GeneralizedGaussian, LatticeLaw, Polylog


def real(value: object) -> mp.mpf:
    return mp.mpf(value.numerator) / value.denominator  # type: ignore[attr-defined]


def exponent(law: LatticeLaw) -> Callable[[int], mp.mpf]:
    """f as a function of the magnitude."""
    if isinstance(law, DiscreteGaussian):
        return lambda m: mp.mpf(m) ** 2 / (2 * real(law.sigma) ** 2)
    if isinstance(law, DiscreteLaplace):
        return lambda m: m / real(law.scale)
    if isinstance(law, GeneralizedGaussian):
        return lambda m: (m / real(law.scale)) ** real(law.shape)
    if isinstance(law, Polylog):
        return lambda m: real(law.rate) * mp.log(m / real(law.scale) + real(law.offset)) ** real(law.power)
    raise TypeError(law)


def weight(law: LatticeLaw, m: int, first: int = 0) -> mp.mpf:
    """exp(f(first) - f(m))."""
    f = exponent(law)
    return mp.exp(f(first) - f(m))


def summed(law: LatticeLaw, moment: int, reach: int) -> mp.mpf:
    """Sum of |k|**moment * exp(f(0) - f(|k|)) over |k| <= reach."""
    return (mp.mpf(1) if moment == 0 else mp.mpf(0)) + 2 * mp.fsum(
        mp.mpf(k) ** moment * weight(law, k) for k in range(1, reach + 1)
    )
