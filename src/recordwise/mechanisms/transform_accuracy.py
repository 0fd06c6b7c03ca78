"""The size of a cell's error under noise on a transformed scale."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import Number
from recordwise.mechanisms.accuracy import ROUNDING, BoolArray, over_totals, short, smallest
from recordwise.mechanisms.calibration import solve
from recordwise.mechanisms.described import Described
from recordwise.mechanisms.noisy import read_confidence
from recordwise.mechanisms.value_laws import ValueLaw

QUADRATURE = 1 << 14
PAIRS = 1 << 13
GOLDEN = (5**0.5 - 1) / 2
"""Multiples of it, without their whole parts, are spread evenly, and independently enough of their own numbers."""


class TransformAccuracy(Described):
    """What planning needs from a transform, from the closed-form law of ``value`` if there is one, otherwise by integration."""

    __slots__ = ()

    sigma: Fraction | None
    signed: bool

    def value_law(self) -> ValueLaw | None:
        """The closed-form law of ``value``, if known."""
        return None

    def values_under(self, total: float, noise: FloatArray) -> FloatArray:
        raise NotImplementedError

    def variance(self, total: Any, *, step: Number = 1) -> FloatArray:
        raise NotImplementedError

    def with_noise_scale(self, scale: Fraction) -> Any:
        raise NotImplementedError

    def error_quantiles(
        self, totals: FloatArray, *, confidence: float = 0.95, step: Number = 1, kept: FloatArray | None = None
    ) -> FloatArray:
        """The bound on |value - total| that holds with probability ``confidence``, for each exact total.

        Of a signed sum ``kept`` has two rows, the positive and the negative part of each total: the errors of both add up.
        """
        chance = read_confidence(confidence)
        if self.signed:
            return self._signed_quantiles(_two_parts(kept), chance)
        return over_totals(lambda points: self._quantiles(points, chance, step), np.asarray(totals, np.float64))

    def smooth_error_quantiles(
        self, totals: FloatArray, *, confidence: float, step: Number = 1, kept: FloatArray | None = None
    ) -> FloatArray:
        """The same for a search that follows slopes."""
        return self.error_quantiles(totals, confidence=confidence, step=step, kept=kept)

    def chances(
        self, totals: FloatArray, reach: FloatArray, *, step: Number = 1, kept: FloatArray | None = None
    ) -> FloatArray:
        """P(|value - total| <= reach) for each cell."""
        law = self.value_law()
        return self._integrated_chances(totals, reach) if law is None else law.within(totals, reach)

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
        if self.signed:
            return np.asarray(self._signed_quantiles(_two_parts(kept), confidence) <= reach * (1 + ROUNDING))
        return np.asarray(self.chances(totals, reach, step=step) >= confidence - ROUNDING)

    def most_noise(
        self, total: float, reach: float, *, confidence: float, step: Number = 1, kept: float | None = None
    ) -> Any | None:
        """The same with the most noise, to six digits, for which |value - total| <= ``reach`` with probability ``confidence``."""

        def missed(scale: Fraction) -> float:
            try:
                made = self.with_noise_scale(scale)
            except ParameterError:
                return 1.0
            return 1 - float(made.chances(np.array([total]), np.array([reach]), step=step)[0])

        return self.with_noise_scale(short(solve(missed, 1 - confidence, rising=True), up=False))

    def _quantiles(self, totals: FloatArray, confidence: float, step: Number) -> FloatArray:
        law = self.value_law()
        if law is None:
            place = min(int(np.ceil(confidence * QUADRATURE)), QUADRATURE - 1)
            return np.array([np.partition(each, place)[place] for each in self._sampled_errors(totals)])
        with np.errstate(over="ignore", invalid="ignore"):
            start = np.nan_to_num(np.sqrt(self.variance(totals, step=step)), nan=1.0, posinf=1e300)
        return smallest(lambda reach: law.within(totals, reach), confidence, np.maximum(start, 1e-12 * (1 + totals)))

    def _integrated_chances(self, totals: FloatArray, reach: FloatArray) -> FloatArray:
        pairs, places = np.unique(np.stack([totals, reach]), axis=1, return_inverse=True)
        found = [np.mean(each <= r) for each, r in zip(self._sampled_errors(pairs[0]), pairs[1])]
        return np.array(found)[places.ravel()]

    def _sampled_errors(self, totals: FloatArray) -> Iterator[FloatArray]:
        """Errors at equally likely points of the noise."""
        noise = self._noise_at((np.arange(QUADRATURE) + 0.5) / QUADRATURE)
        for total in totals:
            yield np.abs(self.values_under(float(total), noise) - total)

    def _noise_at(self, chances: FloatArray) -> FloatArray:
        """The quantiles of the noise, in units of its scale."""
        from scipy.special import ndtri

        if self.sigma is not None:
            return np.asarray(ndtri(chances))
        return np.where(chances < 0.5, np.log(2 * chances), -np.log(2 - 2 * chances))

    def _signed_quantiles(self, parts: FloatArray, confidence: float) -> FloatArray:
        """From equally likely pairs of noises: both parts of a total are drawn, each with noise of its own."""
        pairs, places = np.unique(parts, axis=1, return_inverse=True)
        numbers: FloatArray = np.arange(PAIRS, dtype=np.float64) + 0.5
        above = self._noise_at(numbers / PAIRS)
        below = self._noise_at(np.asarray(np.fmod(numbers * GOLDEN, 1), np.float64))
        sides = zip(
            (self.values_under(float(total), above) - total for total in pairs[0]),
            (self.values_under(float(total), below) - total for total in pairs[1]),
        )
        place = min(int(np.ceil(confidence * PAIRS)), PAIRS - 1)
        found = [np.partition(np.abs(one - other), place)[place] for one, other in sides]
        return np.array(found)[places.ravel()]


def _two_parts(kept: FloatArray | None) -> FloatArray:
    if kept is None or np.ndim(kept) != 2:
        raise ParameterError(
            parameter="mechanism",
            problem="is signed: its error depends on the positive and the negative part of each total",
            advice="Pass both parts as kept, in two rows.",
        )
    return np.asarray(kept, np.float64)
