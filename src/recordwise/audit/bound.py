"""A lower bound on the loss of whatever made two samples, with stated confidence (T-AUDIT, docs/theory/audit.md)."""

import math
from dataclasses import dataclass

import numpy as np

from recordwise.exact.arithmetic import FloatArray

HALVINGS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Within which every value of a witness lies, whatever is published."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a bound has to go by: how many pairs of samples, the delta that is promised, and ln of one over the false alarms."""

    pairs: int
    delta: float
    log_alarms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stake:
    """What must be fixed before the samples of a bound are seen: the slope of the logarithm and the size of the bets."""

    within: Range
    evidence: Evidence
    centre: float
    """About the mean of exp(witness) without the record; any positive number is valid, a bad one only weakens the bound."""
    bet: float

    @classmethod
    def of(cls, present: FloatArray, absent: FloatArray, within: Range, evidence: Evidence) -> "Stake":
        """From witness values of samples that the bound itself will not use; it may bet no more than keeps every stake positive."""
        tilted, least = np.exp(absent), math.exp(within.low)
        centre = (float(tilted.mean()) - evidence.delta * least) / (1 - evidence.delta)
        spread = float(present.var() + tilted.var() / centre**2) + 1.0 / evidence.pairs
        widest = within.high - within.low + (math.exp(within.high) - least) / centre
        bet = min(math.sqrt(2 * evidence.log_alarms / (evidence.pairs * spread)), 0.5 / max(widest, 1e-9))
        return cls(within=within, evidence=evidence, centre=centre, bet=bet)

    def expected(self, present: FloatArray, absent: FloatArray) -> float:
        """About the bound that as many samples like these would give: to choose by, not to rely on."""
        tilted = np.exp(absent) / self.centre
        spread = float(present.var() + tilted.var())
        slack = self.bet * spread / 2 + self.evidence.log_alarms / (self.bet * self.evidence.pairs)
        return self.loss(float(present.mean() - tilted.mean()) - slack)

    def loss(self, mean: float) -> float:
        """What T-AUDIT makes of the mean of the gains."""
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

    The largest mean against which somebody who stakes ``bet`` on every value has multiplied their capital by exp(log_alarms).
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
