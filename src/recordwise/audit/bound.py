"""A lower bound, with stated confidence, on the loss of the process behind two samples (T-AUDIT, docs/theory/audit.md)."""

import math
from dataclasses import dataclass

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
    """What a bound is based on: the number of sample pairs, the stated delta, and ln(1/false-alarm rate)."""

    pairs: int
    delta: float
    log_alarms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stake:
    """What must be fixed before the samples of a bound are seen: the center of the tangent and the size of the bets."""

    within: Range
    evidence: Evidence
    centre: float
    """Approximate mean of exp(witness) without the record; any positive number is valid, a poor one only weakens the bound."""
    bet: float

    @classmethod
    def of(cls, present: FloatArray, absent: FloatArray, within: Range, evidence: Evidence) -> "Stake":
        """From witness values of samples that the bound will not use; the bet is small enough to keep every stake positive."""
        tilted, least = np.exp(absent), math.exp(within.low)
        centre = (float(tilted.mean()) - evidence.delta * least) / (1 - evidence.delta)
        spread = float(present.var() + tilted.var() / centre**2) + 1.0 / evidence.pairs
        widest = within.high - within.low + (math.exp(within.high) - least) / centre
        bet = min(math.sqrt(2 * evidence.log_alarms / (evidence.pairs * spread)), 0.5 / max(widest, 1e-9))
        return cls(within=within, evidence=evidence, centre=centre, bet=bet)

    def expected(self, present: FloatArray, absent: FloatArray) -> float:
        """Approximately the bound that as many samples like these would give; used only to choose among witnesses."""
        tilted = np.exp(absent) / self.centre
        spread = float(present.var() + tilted.var())
        slack = self.bet * spread / 2 + self.evidence.log_alarms / (self.bet * self.evidence.pairs)
        return self.loss(float(present.mean() - tilted.mean()) - slack)

    def loss(self, mean: float) -> float:
        """The loss that T-AUDIT derives from the mean of the gains."""
        delta, within = self.evidence.delta, self.within
        excused = delta * (within.high - math.exp(within.low) / self.centre)
        return (mean - excused) / (1 - delta) + 1 - math.log(self.centre)


def loss_lower(present: FloatArray, absent: FloatArray, stake: Stake) -> float:
    """A number that exceeds the loss with probability at most exp(-log_alarms), whatever made the samples (T-AUDIT).

    ``present`` and ``absent`` are values of one witness, within the stake's range, at independent samples with and without the
    record.
    """
    pairs = min(len(present), len(absent))
    gains = present[:pairs] - np.exp(absent[:pairs]) / stake.centre
    return max(0.0, stake.loss(mean_lower(gains, bet=stake.bet, log_alarms=stake.evidence.log_alarms)))


def mean_lower(values: FloatArray, *, bet: float, log_alarms: float) -> float:
    """A number that exceeds the mean of independent values with probability at most exp(-log_alarms) (T-BET).

    It is the largest mean against which betting ``bet`` on every value has multiplied the capital by exp(log_alarms).
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
