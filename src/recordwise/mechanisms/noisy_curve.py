"""Where Gaussian noise was drawn, and the way back from there to totals: what an interval of a ratio needs (T-CURVE)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from recordwise.exact.arithmetic import FloatArray
from recordwise.mechanisms.noisy import Noisy

NEARBY = 10.0
"""Sigmas around a noisy point within which its bend is bounded, but for a chance of ``OUTSIDE``."""
OUTSIDE = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyCurve:
    """Noisy points of some cells, on the scale f on which Gaussian noise of ``sigma`` was added."""

    point: FloatArray
    sigma: FloatArray
    half: FloatArray
    """Half a step of the lattice of the noise."""
    zero: FloatArray
    """The point of the total 0."""
    bend: FloatArray
    """Not below sigma |f''|/f'**2 within ``NEARBY`` of the point; 0 where noise was added to the totals themselves."""
    back: Callable[[FloatArray], FloatArray]
    """From points to totals, increasing."""


def noisy_curve(mechanism: Any, noisy: Noisy) -> NoisyCurve | None:
    """The curve of a mechanism that has one."""
    own = getattr(mechanism, "noisy_curve", None)
    found: NoisyCurve | None = None if own is None else own(noisy)
    return found
