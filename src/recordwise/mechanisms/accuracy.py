"""The size of a cell's error: quantiles of |value - total| from the noise laws that are drawn, without simulation.

For additive noise it is the quantile of the lattice law, the same in every cell. For transforms it is the closed form of
``value_laws``, solved by bisection. Clamping adds the amount it cuts off. Custom transforms and roots of a degree above 4 are
integrated numerically.
"""

from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from recordwise.exact.arithmetic import FloatArray, normal_cdf
from recordwise.exact.numbers import Number
from recordwise.mechanisms.described import Described
from recordwise.mechanisms.noisy import read_confidence
from recordwise.noise.lattice import LatticeLaw

MOST_POINTS = 1024
"""Up to this many distinct totals are solved individually; beyond that, this many over their range, interpolated on log scales."""
BISECTIONS = 60
NARROW = 1e-12
"""How closely a reach is known, relatively, before bisection ends."""
MOST_SUMMED = 1000
ROUNDING = 1e-9
"""The tolerance for float64 rounding of probabilities and products when they are compared with a goal."""
DIGITS = 6
"""Significant digits of a parameter that planning finds, so that it is readable in a plan."""
BoolArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


class AdditiveNoise(Described):
    """What planning needs from noise that is the same in every cell, computed from the lattice law that is drawn.

    ``kept`` are the totals of clamped contributions; only mechanisms that clamp use them.
    """

    __slots__ = ()

    def drawn_law(self, step: Number) -> tuple[LatticeLaw, Fraction]:
        """The law that is drawn, in lattice steps, and its lattice."""
        raise NotImplementedError

    def error_quantiles(
        self, totals: FloatArray, *, confidence: float = 0.95, step: Number = 1, kept: FloatArray | None = None
    ) -> FloatArray:
        """The bound on |value - total| that holds with probability ``confidence``, for each exact total."""
        law, lattice = self.drawn_law(step)
        return np.full(np.shape(totals), law.quantile((1 + read_confidence(confidence)) / 2) * float(lattice))

    def smooth_error_quantiles(
        self, totals: FloatArray, *, confidence: float, step: Number = 1, kept: FloatArray | None = None
    ) -> FloatArray:
        """The same for a search that follows slopes."""
        return self.error_quantiles(totals, confidence=confidence, step=step, kept=kept)

    def mean_errors(self, totals: FloatArray, *, step: Number = 1) -> FloatArray:
        """E |value - total|."""
        law, lattice = self.drawn_law(step)
        return np.full(np.shape(totals), law.mean_abs * float(lattice))

    def meets(
        self,
        totals: FloatArray,
        reach: FloatArray,
        *,
        confidence: float,
        step: Number = 1,
        kept: FloatArray | None = None,
    ) -> BoolArray:
        """Whether |value - total| <= ``reach`` with probability ``confidence``, cell by cell."""
        law, lattice = self.drawn_law(step)
        return np.asarray(reach * (1 + ROUNDING) >= law.quantile((1 + confidence) / 2) * float(lattice))


def over_totals(solve: Callable[[FloatArray], FloatArray], totals: FloatArray) -> FloatArray:
    """A smooth function of the total at every cell, solved at no more points than needed."""
    if not _are_many(totals):
        different, places = np.unique(totals, return_inverse=True)
        return np.asarray(solve(different)[places])
    inside = totals[totals > 0]
    spread = np.geomspace(inside.min(), inside.max(), MOST_POINTS)
    knots = np.unique(np.append(spread, totals.min()))
    logs = np.log(solve(knots))
    return np.asarray(np.exp(np.interp(np.log1p(totals), np.log1p(knots), logs)))


def _are_many(totals: FloatArray) -> bool:
    """Whether there are more different totals than are solved individually; the first ones nearly always tell."""
    some = totals[: 8 * MOST_POINTS]
    return len(np.unique(some)) > MOST_POINTS or (len(some) < len(totals) and len(np.unique(totals)) > MOST_POINTS)


def smallest(inside: Callable[[FloatArray], FloatArray], confidence: float, start: FloatArray) -> FloatArray:
    """For each total, the smallest reach that contains a probability of at least ``confidence``; never below it."""
    high = start.copy()
    while (short := inside(high) < confidence).any():
        high[short] *= 2
    low = np.where(inside(high / 2) < confidence, high / 2, 0.0)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        enough = inside(middle) >= confidence
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        if np.all(high - low <= NARROW * high):
            break
    return high


def lattice_cdf(k: FloatArray, sigma: float) -> FloatArray:
    """P(Z <= k) of the discrete Gaussian in float64; beyond a thousand steps per sigma, the normal law with a half-step shift."""
    if sigma > MOST_SUMMED:
        return normal_cdf((k + 0.5) / sigma)
    reach = int(np.ceil(10 * sigma)) + 1
    below = np.cumsum(np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2))
    place = np.clip(k, -reach - 1, reach).astype(np.int64) + reach
    return np.where(place < 0, 0.0, below[np.maximum(place, 0)] / below[-1])


def short(value: Fraction, *, up: bool) -> Fraction:
    """A number of six digits next to a fraction, above or below it."""
    rounding = "ROUND_CEILING" if up else "ROUND_FLOOR"
    return Fraction(
        Context(prec=DIGITS, rounding=rounding).divide(Decimal(value.numerator), Decimal(value.denominator))
    )
