"""What a mechanism draws, seen from outside: the exact points it lays totals on, the law it adds, and their probabilities."""

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp

from recordwise.exact.arithmetic import NumpyArithmetic
from recordwise.mechanisms import Noisy, transformed
from recordwise.noise import Draws, LatticeLaw, Seeded

Floats = NDArray[np.float64]


def laid(mechanism: Any, totals: Any, step: Fraction = Fraction(1)) -> tuple[Noisy, LatticeLaw]:
    """The exact points of some totals, and the law of the noise that would be added: the draw is caught and answered by 0."""
    caught: list[LatticeLaw] = []

    def no_noise(law: LatticeLaw, size: int, rng: Any = None) -> Draws:
        caught.append(law)
        return Draws(values=np.zeros(size, np.int64), extremes={})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LatticeLaw, "draw", no_noise)
        noisy = mechanism.release(totals, step=step, rng=Seeded(0))
    return noisy, caught[0]


def moved(noisy: Noisy, noise: Any) -> Noisy:
    """The same answers with this noise added."""
    return Noisy(points=noisy.points + noise, grid=noisy.grid, step=noisy.step, private=noisy.private)


@contextmanager
def coarse_grid(noise: int, data: int) -> Iterator[None]:
    """Transforms on a grid so coarse that every probability can be written down: ``noise`` steps a scale, ``data`` a data step."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transformed, "FINE_NOISE", noise)
        patch.setattr(transformed, "FINE_DATA", data)
        yield


def log_weights(law: LatticeLaw, k: NDArray[np.int64]) -> Floats:
    """-(f(|k|) - f(0)), from the law's exponent alone."""
    return -np.asarray(law.exponent.increase(NumpyArithmetic(), np.abs(k).astype(np.float64)))


def reach_of(law: LatticeLaw, depth: float = 46.0) -> int:
    """About the first integer whose weight is below exp(-depth)."""
    reach = 4
    while log_weights(law, np.array([reach]))[0] > -depth:
        reach += reach // 4
    return reach


def pmf(law: LatticeLaw, depth: float = 46.0) -> tuple[NDArray[np.int64], Floats]:
    """Every integer that matters, with its probability; the sum of all is 1 up to exp(-depth) or so."""
    k = np.arange(-reach_of(law, depth), reach_of(law, depth) + 1)
    weights = np.exp(log_weights(law, k))
    return k, weights / weights.sum()


def divergences(law: LatticeLaw, shift: int, orders: Floats) -> Floats:
    """D_a(P||Q) for each order, P the law and Q the same shifted, added up integer by integer.

    It is D_a(Q||P) too: the law is symmetric, so counting from the shift down instead of from 0 up turns one into the other.
    The support reaches to where the largest order puts its weight: under Gaussian noise that is (a-1) shifts away.
    """
    reach = reach_of(law)
    beyond = int(orders[-1] * shift) if law.inflection else 0
    weights = log_weights(law, np.arange(-reach - shift - beyond, reach + shift + beyond + 1))
    middle = reach + shift + beyond
    normalizer = logsumexp(weights[middle - reach : middle + reach + 1])
    p, q = weights[shift:] - normalizer, weights[: len(weights) - shift] - normalizer
    share, ratio = np.exp(p), p - q
    return np.array([_divergence(p, share, ratio, a) for a in orders])


def _divergence(p: Floats, share: Floats, ratio: Floats, order: float) -> float:
    """ln sum p exp((a-1) ln(p/q)) over a - 1; near order 1 as a sum of small differences, so that little is lost."""
    exponents = (order - 1) * ratio
    if exponents.max() < 30:
        return float(np.log1p(np.sum(share * np.expm1(exponents))) / (order - 1))
    exponents += p
    largest = exponents.max()
    return float((np.log(np.sum(np.exp(exponents - largest))) + largest) / (order - 1))
