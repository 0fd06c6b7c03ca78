"""What a loss means to the person who looks it up: an attacker's odds and the power of the best membership test (T-MEANING)."""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from recordwise.exact.text import digits_text, formula_text, share_text
from recordwise.policy.conversions import check_loss, check_share, epsilon

ORDERS = 1 + np.geomspace(1e-4, 1e4, 400)
"""Renyi orders at which an attacker's power is limited; any set is valid, a finer one is tighter."""
OUTWARD = 1e-9


def expected_log_odds(rho: float) -> float:
    """By how much the log-odds of an attacker's guess can grow on average: the loss itself.

    Args:
        rho: The zCDP loss.

    Returns:
        The growth of the log-odds.
    """
    return check_loss(rho)


def log_odds_tail(rho: float, gain: float) -> float:
    """A bound on the probability that the log-odds grow by more than ``gain``: exp(-(gain-rho)**2/(4 rho)), or 1 where vacuous.

    Args:
        rho: The zCDP loss.
        gain: The growth of the log-odds.

    Returns:
        The probability.
    """
    rho, gain = check_loss(rho), check_loss(gain, "gain")
    if gain <= rho:
        return 1.0
    return 0.0 if rho == 0 else min(1.0, math.exp(-((gain - rho) ** 2) / (4 * rho)) * (1 + OUTWARD))


def likely_log_odds(rho: float) -> float:
    """What the growth of the log-odds exceeds in at most one case in twenty (T-MEANING).

    Args:
        rho: The zCDP loss.

    Returns:
        rho + 2 sqrt(rho ln 20), where the bound of ``log_odds_tail`` is 1/20.
    """
    return check_loss(rho) + 2 * math.sqrt(rho * math.log(20))


def power_beside_delta(rho: float, delta: float, *, false_alarm: float = 0.05) -> float:
    """The power of the best test where, with probability ``delta``, nothing is guaranteed; outside of that the zCDP bound holds.

    Args:
        rho: The zCDP loss.
        delta: The probability of key selection failing the record.
        false_alarm: The false-positive rate of the test; outside of that event it can be larger by 1/(1 - delta).

    Returns:
        A bound on the power.
    """
    inside = false_alarm / (1 - delta) if delta < 1 else 1.0
    return 1.0 if inside >= 1 else min(1.0, delta + (1 - delta) * power_zcdp(rho, inside))


def power_gaussian(rho: float, false_alarm: float = 0.05) -> float:
    """The power of the best membership test at false-positive rate ``false_alarm``, for Gaussian noise.

    Args:
        rho: The zCDP loss.
        false_alarm: The false-positive rate of the test.

    Returns:
        The power, rounded up.
    """
    normal = NormalDist()
    power = normal.cdf(normal.inv_cdf(check_share(false_alarm, "false_alarm")) + math.sqrt(2 * check_loss(rho)))
    return min(1.0, power + OUTWARD)


def power_zcdp(rho: float, false_alarm: float = 0.05) -> float:
    """The power of the best membership test against any mechanism of this zCDP loss, as far as the Renyi divergences allow,
    rounded up.

    Args:
        rho: The zCDP loss.
        false_alarm: The false-positive rate of the test.

    Returns:
        The power.
    """
    rho, false_alarm = check_loss(rho), check_share(false_alarm, "false_alarm")
    low, high = false_alarm, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _allowed(middle, false_alarm, rho) else (low, middle)
    return min(1.0, high + OUTWARD)


def _allowed(power: float, false_alarm: float, rho: float) -> bool:
    """Whether a test of this power is compatible with the loss: both binary divergences within every order's limit."""
    return _within(power, false_alarm, rho) and _within(false_alarm, power, rho)


def _within(p: float, q: float, rho: float) -> bool:
    order = ORDERS
    hit = order * math.log(p) + (1 - order) * math.log(q)
    if q == 1:
        return math.isinf(rho)
    miss = order * math.log1p(-p) + (1 - order) * math.log1p(-q) if p < 1 else np.full_like(order, -np.inf)
    divergence = np.logaddexp(hit, miss) / (order - 1)
    return bool(np.all(divergence <= order * rho * (1 + 1e-12)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """A loss expressed in several ways. Every number is an upper bound."""

    rho: float
    delta: float
    epsilon: float
    power: float
    false_alarm: float

    def sentence(self) -> str:
        """One sentence for a person."""
        false_alarm = share_text(self.false_alarm)
        return (
            f"A membership test with a {false_alarm} false-positive rate detects your record with probability at most "
            f"{share_text(self.power, 1)} (without the publication: {false_alarm})."
        )

    def _repr_html_(self) -> str:
        epsilon = f"epsilon {digits_text(self.epsilon, 4)} at delta {formula_text(self.delta)}"
        return f"<p>loss {digits_text(self.rho, 4)}; {epsilon}. {self.sentence()}</p>"


def meaning(rho: float, *, delta: float = 1e-5, false_alarm: float = 0.05) -> Meaning:
    """A loss as an epsilon at ``delta`` and as the power of the best membership test.

    Args:
        rho: The zCDP loss.
        delta: Where epsilon is stated.
        false_alarm: The false-positive rate of the test.

    Returns:
        The same loss in several forms, each an upper bound.

    Example:
        >>> meaning(0.1).sentence()[:97]
        'A membership test with a 5% false-positive rate detects your record with probability at most 13.4'
    """
    return Meaning(
        rho=rho, delta=delta, epsilon=epsilon(rho, delta), power=power_zcdp(rho, false_alarm), false_alarm=false_alarm
    )
