"""What post-processing needs to know about the noise: its distribution function and quantiles.

Any object with ``cdf`` and ``quantile`` serves, the lattice laws of ``recordwise.noise`` among them; the two continuous laws of the
paper are here, one scale per query.
"""

from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

from recordwise.errors import ParameterError

FloatArray: TypeAlias = NDArray[np.float64]


class NoiseLaw(Protocol):
    """The law of the noise on an answer."""

    def cdf(self, x: Any, /) -> Any: ...
    def quantile(self, p: Any, /) -> Any: ...


Noise: TypeAlias = Literal["laplace", "gaussian"] | NoiseLaw


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuousLaplace:
    """Laplace noise with one variance per query."""

    variance: FloatArray

    @property
    def scale(self) -> FloatArray:
        return np.sqrt(self.variance / 2)

    def cdf(self, x: FloatArray, /) -> FloatArray:
        ratio = np.asarray(x) / self.scale
        tail = 0.5 * np.exp(-np.abs(ratio))
        return np.where(ratio < 0, tail, 1 - tail)

    def quantile(self, p: FloatArray, /) -> FloatArray:
        p = np.asarray(p)
        return self.scale * np.where(p < 0.5, np.log(2 * p), -np.log(2 * (1 - p)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuousGaussian:
    """Gaussian noise with one variance per query."""

    variance: FloatArray

    @property
    def scale(self) -> FloatArray:
        return np.sqrt(self.variance)

    def cdf(self, x: FloatArray, /) -> FloatArray:
        return np.asarray(special.ndtr(np.asarray(x) / self.scale))

    def quantile(self, p: FloatArray, /) -> FloatArray:
        return np.asarray(self.scale * special.ndtri(p))


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenLaw:
    """One law for every query, from its two functions; the lattice laws of ``recordwise.noise`` count in whole steps."""

    law: NoiseLaw
    variance: FloatArray

    @property
    def scale(self) -> FloatArray:
        """The standard deviation: what all laws have, whatever their own parameter means."""
        return np.sqrt(self.variance)

    def cdf(self, x: FloatArray, /) -> FloatArray:
        """A law of whole numbers is asked at the whole number below: P(Z <= x) is the same."""
        whole = hasattr(self.law, "pmf")
        return np.asarray(self.law.cdf(np.floor(x).astype(np.int64) if whole else x), dtype=np.float64)

    def quantile(self, p: FloatArray, /) -> FloatArray:
        """One question for each probability that occurs: a certified quantile is not computed in bulk."""
        different, which = np.unique(p, return_inverse=True)
        found = np.array([float(self.law.quantile(float(one))) for one in different])
        return found[which].reshape(np.shape(p))


ScaledLaw: TypeAlias = ContinuousLaplace | ContinuousGaussian | GivenLaw


def law_of(noise: Noise, variance: FloatArray) -> ScaledLaw:
    """The law meant by ``noise`` for queries of these variances."""
    if noise == "laplace":
        return ContinuousLaplace(variance=variance)
    if noise == "gaussian":
        return ContinuousGaussian(variance=variance)
    if callable(getattr(noise, "cdf", None)) and callable(getattr(noise, "quantile", None)):
        return GivenLaw(law=noise, variance=variance)
    raise ParameterError(
        parameter="noise",
        problem="must be 'laplace', 'gaussian', or a law with cdf and quantile",
        advice=f"Got {noise!r}.",
    )
