"""The public noise law behind every answer of a statistic, read from a release's own description: its variance, and draws from it.

Draws come from a public seed and cost nothing: they simulate the law, they do not read a record.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.mechanisms.base import has_two_parts, shared
from recordwise.mechanisms.registry import mechanism_from_json
from recordwise.noise import Seeded
from recordwise.noise.laws import discrete_gaussian
from recordwise.noise.randomness import BitSource
from recordwise.release.families import Family

NORMAL_STEPS = 1000
"""Lattice steps in one standard deviation of the normal law that stands for Gaussian noise of any sigma."""
NORMAL = discrete_gaussian(Fraction(NORMAL_STEPS))
LEAST_STEPS = 1.0
"""Gaussian noise of at least so many lattice steps is close enough to normal for a formula; with fewer, its law is drawn."""


def noise_of(family: Family, statistic: Mapping[str, Any]) -> "AnswerNoise":
    """The noise of a described statistic in every table of its query."""
    raw = family.column(statistic, "_sd") ** 2
    mechanism = mechanism_from_json(statistic["mechanism"])
    step = _step(family, statistic)
    sizes = list(family.sizes.values())
    if mechanism is None or has_two_parts(mechanism):
        return FixedNoise(raw, tuple((size, NORMAL) for size in sizes), known=False)
    if getattr(mechanism, "variance_varies", False):
        scale = family.column(statistic, "_sigma")
        parts = [
            (np.flatnonzero(scale == each), mechanism.with_noise_scale(Fraction(float(each))))
            for each in np.unique(scale)
        ]
        return VaryingNoise(raw, tuple(parts), step)
    laws = [_law(mechanism, Fraction(family.shares[name]), step) for name in family.sizes]
    gaussian = hasattr(type(mechanism), "noise_sigma")
    fine = bool(np.all(raw >= (LEAST_STEPS * float(step)) ** 2))
    return FixedNoise(
        raw,
        tuple((size, law or NORMAL) for size, law in zip(sizes, laws)),
        known=gaussian or None not in laws,
        normal=gaussian and fine,
    )


def _step(family: Family, statistic: Mapping[str, Any]) -> Fraction:
    declared = {str(each["name"]): each["step"] for each in family.schema.get("measures", ())}
    return Fraction(declared.get(statistic["of"], 1))


def _law(mechanism: Any, share: Fraction, step: Fraction) -> Any:
    """The lattice law of one table; None where cells have laws of their own or the mechanism does not say."""
    try:
        return shared(mechanism, share).drawn_law(step)[0]
    except (AttributeError, ParameterError):
        return None


@dataclass(frozen=True, slots=True)
class FixedNoise:
    """Noise whose law does not depend on the total. Where cells of a table differ, they differ by a factor only."""

    raw: FloatArray
    laws: tuple[tuple[int, Any], ...]
    """For each table its number of cells and its law."""
    known: bool
    """Whether the law is that of the noise; otherwise it is a normal law of the same variance."""
    normal: bool = False
    """Whether the noise is Gaussian on enough steps, so that linear fits have normal errors."""
    varies: bool = False
    """Whether the variance depends on the total."""

    def variance(self, totals: FloatArray | None) -> FloatArray:
        """The variance of each answer."""
        return self.raw

    def errors(self, totals: FloatArray, draws: int, source: BitSource) -> FloatArray:
        """Draws of the answers' errors, a row for each draw."""
        found = np.empty((draws, len(self.raw)))
        start = 0
        for size, law in self.laws:
            part = slice(start, start + size)
            # Values beyond 64 bits are cut: they are the same order statistic.
            values = law.draw(draws * size, source).values.astype(np.float64).reshape(draws, size)
            found[:, part] = values * (np.sqrt(self.raw[part]) / math.sqrt(law.variance))
            start += size
        return found


@dataclass(frozen=True, slots=True)
class VaryingNoise:
    """Noise drawn on the scale of a transform: its variance grows with the total."""

    raw: FloatArray
    parts: tuple[tuple[Any, Any], ...]
    """The answers that have the same scale, and the mechanism at that scale."""
    step: Fraction
    normal: bool = False
    known: bool = True
    varies: bool = True

    def variance(self, totals: FloatArray | None) -> FloatArray:
        """The variance of each answer as published, or at these totals (last axis)."""
        if totals is None:
            return self.raw
        spread = np.empty_like(totals)
        for rows, mechanism in self.parts:
            spread[..., rows] = mechanism.variance(np.maximum(totals[..., rows], 0.0))
        return spread

    def errors(self, totals: FloatArray, draws: int, source: BitSource) -> FloatArray:
        """Draws of the answers' errors at these totals, a row for each draw."""
        found = np.empty((draws, len(self.raw)))
        for rows, mechanism in self.parts:
            steps = np.rint(np.maximum(totals[rows], 0.0) / float(self.step)).astype(np.int64)
            noisy = mechanism.release(np.tile(steps, draws), step=self.step, rng=source)
            values = mechanism.estimate(noisy).value.reshape(draws, len(steps))
            found[:, rows] = values - steps * float(self.step)
        return found


AnswerNoise: TypeAlias = FixedNoise | VaryingNoise
"""The noise of all answers of one statistic."""


def public_seed(digest: str, *purpose: str) -> Seeded:
    """A generator that everybody can repeat: its seed is the digest of the release and what the draws are for."""
    text = ":".join([digest, *purpose])
    return Seeded(int(hashlib.sha256(text.encode()).hexdigest()[:30], 16))
