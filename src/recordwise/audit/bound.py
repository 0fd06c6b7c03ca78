"""Statistics of an audit: loss bound, witness and repeated-noise test.

A lower bound on the loss behind two samples, the witness it is computed from, and a test for repeated noise
(T-AUDIT, T-BET and T-FRESH, docs/theory/audit.md). Any bounded function is a valid witness; a better one only
makes the bound larger, so it may be learned by any means.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from recordwise.exact.arithmetic import FloatArray

HALVINGS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The range of a witness, whatever is published."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The basis of a bound: sample pairs, stated delta, false-alarm rate."""

    pairs: int
    delta: float
    log_alarms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stake:
    """The tangent's center and bet size, fixed before samples are seen."""

    within: Range
    evidence: Evidence
    center: float
    """Approximate mean of exp(witness) without the record; any positive number is valid, a poor one only weakens the bound."""
    bet: float

    @classmethod
    def of(cls, present: FloatArray, absent: FloatArray, within: Range, evidence: Evidence) -> "Stake":
        """Return a stake from witness values that the bound will not use."""
        tilted, least = np.exp(absent), math.exp(within.low)
        center = (float(tilted.mean()) - evidence.delta * least) / (1 - evidence.delta)
        spread = float(present.var() + tilted.var() / center**2) + 1.0 / evidence.pairs
        widest = within.high - within.low + (math.exp(within.high) - least) / center
        bet = min(math.sqrt(2 * evidence.log_alarms / (evidence.pairs * spread)), 0.5 / max(widest, 1e-9))
        return cls(within=within, evidence=evidence, center=center, bet=bet)

    def expected_bound(self, present: FloatArray, absent: FloatArray) -> float:
        """Return the approximate bound from as many samples like these."""
        tilted = np.exp(absent) / self.center
        spread = float(present.var() + tilted.var())
        slack = self.bet * spread / 2 + self.evidence.log_alarms / (self.bet * self.evidence.pairs)
        return self.loss(float(present.mean() - tilted.mean()) - slack)

    def loss(self, mean: float) -> float:
        """The loss that T-AUDIT derives from the mean of the gains."""
        delta, within = self.evidence.delta, self.within
        excused = delta * (within.high - math.exp(within.low) / self.center)
        return (mean - excused) / (1 - delta) + 1 - math.log(self.center)


def loss_lower(present: FloatArray, absent: FloatArray, stake: Stake) -> float:
    """Return a lower confidence bound on the loss (T-AUDIT).

    It exceeds the loss with probability at most exp(-log_alarms), whatever made the samples. ``present`` and
    ``absent`` are values of one witness, within the stake's range, at independent samples with and without the
    record.
    """
    pairs = min(len(present), len(absent))
    gains = present[:pairs] - np.exp(absent[:pairs]) / stake.center
    return max(0.0, stake.loss(mean_lower(gains, bet=stake.bet, log_alarms=stake.evidence.log_alarms)))


def mean_lower(values: FloatArray, *, bet: float, log_alarms: float) -> float:
    """Return a lower confidence bound on the mean of independent values (T-BET).

    It exceeds the mean with probability at most exp(-log_alarms): the largest mean against which betting ``bet``
    on every value has multiplied the capital by exp(log_alarms).
    """
    lowest = float(values.min())
    low, high = lowest - 1 / bet, min(float(values.max()), lowest + 1 / bet)

    def won(mean: float) -> bool:
        stakes = 1 + bet * (values - mean)
        return bool(np.all(stakes > 0)) and float(np.log(stakes).sum()) >= log_alarms

    if not won(low):
        return -math.inf
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if won(middle) else (low, middle)
    return low


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
    """The log-ratio of frequencies with and without the record."""

    feature: str
    edges: FloatArray
    heights: FloatArray
    """One for NaN, then one for each bin between the edges."""

    @classmethod
    def learn(cls, feature: str, present: FloatArray, absent: FloatArray) -> "Reading":
        pooled = np.concatenate([present, absent])
        edges = _edges(np.sort(pooled[~np.isnan(pooled)]))
        counts = [np.bincount(_bin_numbers(edges, values), minlength=len(edges) + 2) for values in (present, absent)]
        shares = [np.log((each + 0.5) / (each.sum() + 1)) for each in counts]
        return cls(feature=feature, edges=edges, heights=shares[0] - shares[1])

    def evaluate(self, values: FloatArray) -> FloatArray:
        found: FloatArray = self.heights[_bin_numbers(self.edges, values)]
        return found


def _edges(known: FloatArray) -> FloatArray:
    """Values that end bins of about the same number of samples."""
    bins = max(1, min(MOST_BINS, len(known) // LEAST_IN_A_BIN))
    if not len(known):
        return known
    ends = known[np.linspace(0, len(known) - 1, bins + 1)[1:].astype(np.int64)]
    return np.asarray(ends[np.append(True, ends[1:] > ends[:-1])])


def _bin_numbers(edges: FloatArray, values: FloatArray) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Return 0 for NaN, else 1 + the number of edges below."""
    return np.where(np.isnan(values), 0, 1 + np.searchsorted(edges, values, side="left"))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Witness:
    """A sum of readings, clipped at ``ceiling``; ``reverse`` favors absence."""

    readings: tuple[Reading, ...]
    ceiling: float
    reverse: bool

    @property
    def within(self) -> Range:
        """The range of the witness."""
        ends = np.array([sum(f(reading.heights) for reading in self.readings) for f in (np.min, np.max)])
        low, high = np.sort(self.clip_total(ends))
        return Range(low=float(low), high=float(high))

    def evaluate(self, features: Features) -> FloatArray:
        return self.clip_total(
            np.sum([reading.evaluate(features[reading.feature]) for reading in self.readings], axis=0)
        )

    def clip_total(self, total: FloatArray) -> FloatArray:
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
    """Return whether a feature is a published answer."""
    return not (" " in feature or feature.endswith(("_sd", "_cv", "_low", "_high", "_sigma", "_variance")))


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A witness with the approximate bound it would give."""

    score: float
    lesson: Lesson
    witness: Witness
    stake: Stake


def learn_witness(present: Features, absent: Features, evidence: Evidence) -> tuple[Witness, Stake]:
    """Return the best witness and stake, for bounds on other samples."""
    singles = []
    for name in present:
        reading = Reading.learn(name, present[name], absent[name])
        singles.append(Lesson((reading,), reading.evaluate(present[name]), reading.evaluate(absent[name])))
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
    """Return the most promising lessons, each with best ceiling and direction."""
    found = [max(_cuts(lesson, evidence), key=lambda each: each.score) for lesson in lessons]
    return sorted(found, key=lambda each: -each.score)[:AT_ONCE]


def _cuts(lesson: Lesson, evidence: Evidence) -> list[Candidate]:
    """Every ceiling and direction."""
    found = []
    for reverse in (False, True):
        for ceiling in CEILINGS:
            witness = Witness(readings=lesson.readings, ceiling=ceiling, reverse=reverse)
            present, absent = witness.clip_total(lesson.present), witness.clip_total(lesson.absent)
            first, second = (absent, present) if reverse else (present, absent)
            stake = Stake.of(first, second, witness.within, evidence)
            found.append(Candidate(stake.expected_bound(first, second), lesson, witness, stake))
    return found


SETTING_ASIDE = 10
"""One in this many samples is used to find the median and is then left out."""


def sequences_repeat(first: FloatArray, second: FloatArray, *, log_alarms: float) -> bool:
    """Return whether two sequences agree at some lag too often.

    More than independent ones would, with false-alarm rate exp(-log_alarms). A sequence passed twice is compared
    with itself at every lag except 0.
    """
    itself = first is second
    left, right = (signs(each) for each in (first, second))
    count = min(len(left), len(right))
    if count < SETTING_ASIDE:
        return False
    left, right = left[:count], right[:count]
    agreement = np.fft.irfft(np.fft.rfft(left).conj() * np.fft.rfft(right), count) / count
    excess = np.abs(agreement - left.mean() * right.mean())
    return bool(np.max(excess[1:] if itself else excess) > tolerance(count, log_alarms))


def tolerance(count: int, log_alarms: float) -> float:
    """Return the allowed deviation of agreement at all lags (T-FRESH)."""
    needed = log_alarms + math.log(6 * count + 4)
    return math.sqrt(6 * needed / count) + 2 * math.sqrt(2 * needed / count)


def signs(numbers: FloatArray) -> FloatArray:
    """Return +1 above the median of samples set aside, else -1."""
    known = np.where(np.isnan(numbers), -np.inf, numbers)
    aside = np.arange(len(known)) % SETTING_ASIDE == 0
    middle = np.median(known[aside]) if len(known) >= SETTING_ASIDE else 0.0
    return np.where(known[~aside] > middle, 1.0, -1.0)
