"""What distinguishes a release with the record from one without: a function of the published columns, learned on held-out samples.

Any bounded function is a valid witness of T-AUDIT; a better one only makes the bound larger. So it may be learned by any means.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from recordwise.audit.bound import Evidence, Range, Stake
from recordwise.exact.arithmetic import FloatArray

MOST_BINS = 64
LEAST_IN_A_BIN = 40
MOST_FEATURES = 3
AT_ONCE = 4
"""Sums of readings that are kept and extended at a time."""
WORTH_ADDING = 0.01
CEILINGS = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)
"""Candidates for the largest value of a witness."""
Features: TypeAlias = Mapping[str, FloatArray]
"""Published numbers by name, one for each cell; NaN where the cell was not published or the number does not exist."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reading:
    """The log-ratio of frequencies with and without the record, as a step function of one feature."""

    feature: str
    edges: FloatArray
    heights: FloatArray
    """One for NaN, then one for each bin between the edges."""

    @classmethod
    def learned(cls, feature: str, present: FloatArray, absent: FloatArray) -> "Reading":
        pooled = np.concatenate([present, absent])
        edges = _edges(np.sort(pooled[~np.isnan(pooled)]))
        counts = [np.bincount(_places(edges, values), minlength=len(edges) + 2) for values in (present, absent)]
        shares = [np.log((each + 0.5) / (each.sum() + 1)) for each in counts]
        return cls(feature=feature, edges=edges, heights=shares[0] - shares[1])

    def at(self, values: FloatArray) -> FloatArray:
        found: FloatArray = self.heights[_places(self.edges, values)]
        return found


def _edges(known: FloatArray) -> FloatArray:
    """Values that end bins of about the same number of samples."""
    bins = max(1, min(MOST_BINS, len(known) // LEAST_IN_A_BIN))
    if not len(known):
        return known
    ends = known[np.linspace(0, len(known) - 1, bins + 1)[1:].astype(np.int64)]
    return np.asarray(ends[np.append(True, ends[1:] > ends[:-1])])


def _places(edges: FloatArray, values: FloatArray) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """0 for NaN, else 1 + the number of edges below the value: an edge belongs to the bin it ends."""
    return np.where(np.isnan(values), 0, 1 + np.searchsorted(edges, values, side="left"))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Witness:
    """A sum of readings, clipped at ``ceiling`` on both sides; ``reverse`` if it favors absence over presence."""

    readings: tuple[Reading, ...]
    ceiling: float
    reverse: bool

    @property
    def within(self) -> Range:
        """The range of the witness."""
        ends = np.array([sum(f(reading.heights) for reading in self.readings) for f in (np.min, np.max)])
        low, high = np.sort(self.cut(ends))
        return Range(low=float(low), high=float(high))

    def at(self, features: Features) -> FloatArray:
        return self.cut(np.sum([reading.at(features[reading.feature]) for reading in self.readings], axis=0))

    def cut(self, total: FloatArray) -> FloatArray:
        return np.clip(-total if self.reverse else total, -self.ceiling, self.ceiling)


@dataclass(frozen=True, slots=True, eq=False)
class Lesson:
    """The sum of the readings on the training samples."""

    readings: tuple[Reading, ...]
    present: FloatArray
    absent: FloatArray

    def __add__(self, other: "Lesson") -> "Lesson":
        return Lesson((*self.readings, *other.readings), self.present + other.present, self.absent + other.absent)


def is_answer(feature: str) -> bool:
    """Whether a feature is a published answer, as opposed to its accuracy or something derived from it."""
    return not (" " in feature or feature.endswith(("_sd", "_cv", "_low", "_high", "_sigma", "_variance")))


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A witness with the approximate bound it would give."""

    score: float
    lesson: Lesson
    witness: Witness
    stake: Stake


def learned(present: Features, absent: Features, evidence: Evidence) -> tuple[Witness, Stake]:
    """The witness and the stake that do best on these samples; the bound must then be computed on others."""
    singles = []
    for name in present:
        reading = Reading.learned(name, present[name], absent[name])
        singles.append(Lesson((reading,), reading.at(present[name]), reading.at(absent[name])))
    answers = [one for one in singles if is_answer(one.readings[0].feature)]
    likely = [each.lesson for each in _best(singles, evidence)]
    best = max((_sums(added, evidence) for added in (answers, likely) if added), key=lambda each: each.score)
    return best.witness, best.stake


def _sums(added: list[Lesson], evidence: Evidence) -> Candidate:
    """The best sum of a few of these lessons."""
    kept = _best(added, evidence)
    best = kept[0]
    for _ in range(MOST_FEATURES - 1):
        kept = _best([each.lesson + one for each in kept for one in added], evidence)
        best = kept[0] if kept[0].score > best.score + WORTH_ADDING * abs(best.score) else best
    return best


def _best(lessons: list[Lesson], evidence: Evidence) -> list[Candidate]:
    """The most promising of some lessons, each with its best ceiling and direction."""
    found = [max(_cuts(lesson, evidence), key=lambda each: each.score) for lesson in lessons]
    return sorted(found, key=lambda each: -each.score)[:AT_ONCE]


def _cuts(lesson: Lesson, evidence: Evidence) -> list[Candidate]:
    """Every ceiling and direction."""
    found = []
    for reverse in (False, True):
        for ceiling in CEILINGS:
            witness = Witness(readings=lesson.readings, ceiling=ceiling, reverse=reverse)
            present, absent = witness.cut(lesson.present), witness.cut(lesson.absent)
            first, second = (absent, present) if reverse else (present, absent)
            stake = Stake.of(first, second, witness.within, evidence)
            found.append(Candidate(stake.expected(first, second), lesson, witness, stake))
    return found
