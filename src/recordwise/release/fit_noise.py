"""The public noise law behind every answer of a statistic, read from a release's own description: its variance, and draws from it.

Draws come from a public seed and cost nothing: they simulate the law, they do not read a record.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.mechanisms.base import has_two_parts, inside, is_sized, shared
from recordwise.mechanisms.registry import mechanism_from_json
from recordwise.noise import Seeded
from recordwise.noise.laws import discrete_gaussian
from recordwise.noise.randomness import BitSource
from recordwise.release.families import Family

NORMAL_STEPS = 1000
"""Lattice steps in one standard deviation of the normal law that stands for Gaussian noise of any sigma."""
NORMAL = discrete_gaussian(Fraction(NORMAL_STEPS))
LEAST_STEPS = 0.5
"""Gaussian noise of at least so many lattice steps is covered by the formula with half a step; with fewer, its law is drawn."""


def noise_of(family: Family, statistic: Mapping[str, Any]) -> "AnswerNoise":
    """The noise of a described statistic in every table; where queries are joined, that of each by its own mechanism."""
    if "own" not in statistic:
        return _noise(family, statistic)
    ends = np.cumsum([0, *family.sizes.values()])
    places = {table.name: np.arange(start, stop) for table, start, stop in zip(family.tables, ends, ends[1:])}
    queries: dict[str, list[str]] = {}
    for name, own in statistic["own"].items():
        queries.setdefault(json.dumps(own, sort_keys=True), []).append(name)
    parts = []
    for own, names in queries.items():
        tables = tuple(table for table in family.tables if table.name in names)
        some = replace(family, tables=tables, sizes={table.name: table.data.num_rows for table in tables})
        parts.append((np.concatenate([places[table.name] for table in tables]), _noise(some, json.loads(own))))
    return JoinedNoise(tuple(parts))


def _noise(family: Family, statistic: Mapping[str, Any]) -> "OwnNoise":
    """The noise of a statistic of one query."""
    raw = family.column(statistic, "_sd") ** 2
    mechanism = mechanism_from_json(statistic["mechanism"])
    step = _step(family, statistic)
    ends = np.cumsum([0, *family.sizes.values()])
    parted = [slice(start, end) for start, end in pairwise(ends.tolist())]
    if mechanism is None or has_two_parts(mechanism):
        return FixedNoise(raw, tuple((rows, NORMAL) for rows in parted), known=False)
    if is_sized(mechanism):
        return _sized_noise(family, statistic, mechanism, raw, step)
    if getattr(mechanism, "variance_varies", False):
        scale = family.column(statistic, "_sigma")
        parts = [
            (np.flatnonzero(scale == each), mechanism.with_noise_scale(Fraction(float(each))))
            for each in np.unique(scale)
        ]
        return VaryingNoise(raw, tuple(parts), step)
    served = [shared(mechanism, Fraction(family.shares[name])) for name in family.sizes]
    return _fixed(raw, list(zip(parted, served)), step)


def _sized_noise(
    family: Family, statistic: Mapping[str, Any], mechanism: Any, raw: FloatArray, step: Fraction
) -> "OwnNoise":
    """Noise that follows public sizes: each cell has that of its band (T-SIZE)."""
    served = [
        (rows, shared(mechanism, share).at_size(size)) for rows, share, size in family.by_size(str(statistic["name"]))
    ]
    if any(getattr(each, "variance_varies", False) for each in inside(mechanism)):
        return VaryingNoise(raw, tuple(served), step)
    return _fixed(raw, served, step)


def _fixed(raw: FloatArray, served: Sequence[tuple[Any, Any]], step: Fraction) -> "FixedNoise":
    """Noise whose law does not depend on the total, from the mechanism of each part of the answers."""
    laws = [_law(mechanism, step) for _, mechanism in served]
    gaussian = all(hasattr(type(mechanism), "noise_sigma") for _, mechanism in served)
    fine = bool(np.all(raw >= (LEAST_STEPS * float(step)) ** 2))
    return FixedNoise(
        raw,
        tuple((rows, law or NORMAL) for (rows, _), law in zip(served, laws)),
        known=gaussian or None not in laws,
        normal=gaussian and fine,
        step=float(step),
    )


def _step(family: Family, statistic: Mapping[str, Any]) -> Fraction:
    declared = {str(each["name"]): each["step"] for each in family.schema.get("measures", ())}
    return Fraction(declared.get(statistic["of"], 1))


def _law(mechanism: Any, step: Fraction) -> Any:
    """The lattice law of a mechanism; None where cells have laws of their own or the mechanism does not say."""
    try:
        return mechanism.drawn_law(step)[0]
    except (AttributeError, ParameterError):
        return None


@dataclass(frozen=True, slots=True)
class Shape:
    """How the noise of each answer moves with its total."""

    offset: FloatArray
    """Added to totals before they are transformed."""
    log: Any
    """Whether noise is added to logarithms, so that estimates are lognormal rather than normal."""
    reach: float
    """What noise in units of its standard deviation stays within at the confidence; infinite if that is not known."""


def _normal_reach(confidence: float) -> float:
    return NormalDist().inv_cdf((1 + confidence) / 2)


@dataclass(frozen=True, slots=True)
class FixedNoise:
    """Noise whose law does not depend on the total. Where cells of a table differ, they differ by a factor only."""

    raw: FloatArray
    laws: tuple[tuple[Any, Any], ...]
    """The answers that have a law in common, and the law."""
    known: bool
    """Whether the law is that of the noise; otherwise it is a normal law of the same variance."""
    normal: bool = False
    """Whether the noise is Gaussian on enough steps, so that linear fits have normal errors."""
    varies: bool = False
    """Whether the variance depends on the total."""
    step: float = 0.0
    """The lattice of Gaussian noise."""

    def shape(self, confidence: float) -> "Shape":
        """Nothing moves with the total."""
        size, reach = len(self.raw), _normal_reach(confidence)
        return Shape(np.zeros(size), np.zeros(size, dtype=bool), reach if self.normal else math.inf)

    def variance(self, totals: FloatArray | None) -> FloatArray:
        """The variance of each answer."""
        return self.raw

    def variance_at(self, answers: Any, totals: FloatArray) -> FloatArray:
        """The variance of some answers."""
        return np.asarray(self.raw[answers])

    def errors(self, totals: FloatArray, draws: int, source: BitSource) -> FloatArray:
        """Draws of the answers' errors, a row for each draw."""
        found = np.empty((draws, len(self.raw)))
        for rows, law in self.laws:
            size = len(self.raw[rows])
            # Values beyond 64 bits are cut: they are the same order statistic.
            values = law.draw(draws * size, source).values.astype(np.float64).reshape(draws, size)
            found[:, rows] = values * (np.sqrt(self.raw[rows]) / math.sqrt(law.variance))
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

    def shape(self, confidence: float) -> "Shape":
        """Offsets, logarithms and the reach of Gaussian or Laplace noise; without a reach if there is any other."""
        found = Shape(np.zeros(len(self.raw)), np.zeros(len(self.raw), dtype=bool), _normal_reach(confidence))
        reach = found.reach
        for rows, mechanism in self.parts:
            log = getattr(mechanism, "logarithmic", None)
            if log is None:
                reach = math.inf
                continue
            found.offset[rows], found.log[rows] = float(mechanism.offset), log
            # The quantile of Laplace noise in units of its standard deviation.
            reach = max(reach, 0.0 if mechanism.sigma is not None else -math.log(1 - confidence) / math.sqrt(2))
        return replace(found, reach=reach)

    def variance(self, totals: FloatArray | None) -> FloatArray:
        """The variance of each answer as published, or at these totals (last axis)."""
        if totals is None:
            return self.raw
        spread = np.empty_like(totals)
        for rows, mechanism in self.parts:
            spread[..., rows] = mechanism.variance(np.maximum(totals[..., rows], 0.0))
        return spread

    def variance_at(self, answers: Any, totals: FloatArray) -> FloatArray:
        """The variance of some answers at given totals."""
        if len(self.parts) == 1:
            return np.asarray(self.parts[0][1].variance(np.maximum(totals, 0.0)))
        number, spread = np.empty(len(self.raw), dtype=np.int64), np.empty_like(totals)
        for place, (rows, _) in enumerate(self.parts):
            number[rows] = place
        for place, (_, mechanism) in enumerate(self.parts):
            here = number[answers] == place
            spread[here] = mechanism.variance(np.maximum(totals[here], 0.0))
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


OwnNoise: TypeAlias = FixedNoise | VaryingNoise


@dataclass(frozen=True, slots=True)
class JoinedNoise:
    """The noise of one statistic in tables of several queries: the answers of each, and their noise."""

    parts: tuple[tuple[Any, OwnNoise], ...]

    @property
    def normal(self) -> bool:
        """Whether linear fits have normal errors."""
        return all(noise.normal for _, noise in self.parts)

    @property
    def step(self) -> float:
        """The lattice of Gaussian noise."""
        return max(noise.step if isinstance(noise, FixedNoise) else 0.0 for _, noise in self.parts)

    def shape(self, confidence: float) -> "Shape":
        """That of each part."""
        size = sum(len(rows) for rows, _ in self.parts)
        offset, log, reach = np.zeros(size), np.zeros(size, dtype=bool), 0.0
        for rows, noise in self.parts:
            part = noise.shape(confidence)
            offset[rows], log[rows], reach = part.offset, part.log, max(reach, part.reach)
        return Shape(offset, log, reach)

    @property
    def known(self) -> bool:
        """Whether every law is that of the noise."""
        return all(noise.known for _, noise in self.parts)

    @property
    def varies(self) -> bool:
        """Whether a variance depends on the total."""
        return any(noise.varies for _, noise in self.parts)

    def variance(self, totals: FloatArray | None) -> FloatArray:
        """The variance of each answer as published, or at these totals (last axis)."""
        sizes = sum(len(rows) for rows, _ in self.parts)
        spread = np.empty(sizes) if totals is None else np.empty_like(totals)
        for rows, noise in self.parts:
            spread[..., rows] = noise.variance(None if totals is None else totals[..., rows])
        return spread

    def variance_at(self, answers: Any, totals: FloatArray) -> FloatArray:
        """The variance of some answers at given totals."""
        part, place, spread = (
            np.empty((2, sum(len(rows) for rows, _ in self.parts)), dtype=np.int64),
            0,
            np.empty_like(totals),
        )
        for place, (rows, _) in enumerate(self.parts):
            part[0, rows], part[1, rows] = place, np.arange(len(rows))
        for place, (_, noise) in enumerate(self.parts):
            here = part[0, answers] == place
            spread[here] = noise.variance_at(part[1, answers][here], totals[here])
        return spread

    def errors(self, totals: FloatArray, draws: int, source: BitSource) -> FloatArray:
        """Draws of the answers' errors at these totals, a row for each draw."""
        found = np.empty((draws, len(totals)))
        for rows, noise in self.parts:
            found[:, rows] = noise.errors(totals[rows], draws, source)
        return found


AnswerNoise: TypeAlias = OwnNoise | JoinedNoise
"""The noise of all answers of one statistic."""


def public_seed(digest: str, *purpose: str) -> Seeded:
    """A generator that everybody can repeat: its seed is the digest of the release and what the draws are for."""
    text = ":".join([digest, *purpose])
    return Seeded(int(hashlib.sha256(text.encode()).hexdigest()[:30], 16))
