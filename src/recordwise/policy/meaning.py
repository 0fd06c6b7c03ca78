"""What a loss means to the person who looks theirs up: an attacker's odds and the power of the best test (T-MEANING)."""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from recordwise.policy.conversions import check_loss, check_share, epsilon

ORDERS = 1 + np.geomspace(1e-4, 1e4, 400)
"""Renyi orders at which an attacker's power is limited; any set is valid, a finer one is tighter."""
OUTWARD = 1e-9


def expected_log_odds(rho: float) -> float:
    """How much, on average, the log-odds of an attacker's guess can grow: the loss itself."""
    return check_loss(rho)


def log_odds_tail(rho: float, gain: float) -> float:
    """The chance that the log-odds grow by more than ``gain``, at most exp(-(gain-rho)**2/(4 rho)); 1 where that says nothing."""
    rho, gain = check_loss(rho), check_loss(gain, "gain")
    if gain <= rho:
        return 1.0
    return 0.0 if rho == 0 else min(1.0, math.exp(-((gain - rho) ** 2) / (4 * rho)) * (1 + OUTWARD))


def power_gaussian(rho: float, level: float = 0.05) -> float:
    """The power of the best test "is this record in the data?" at a false-alarm ``level``, for Gaussian noise."""
    normal = NormalDist()
    power = normal.cdf(normal.inv_cdf(check_share(level, "level")) + math.sqrt(2 * check_loss(rho)))
    return min(1.0, power + OUTWARD)


def power_zcdp(rho: float, level: float = 0.05) -> float:
    """The same for any mechanism of this zCDP loss: the largest power the Renyi divergences both ways allow, rounded up."""
    rho, level = check_loss(rho), check_share(level, "level")
    low, high = level, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _allowed(middle, level, rho) else (low, middle)
    return min(1.0, high + OUTWARD)


def _allowed(power: float, level: float, rho: float) -> bool:
    """Whether a test of this power is compatible with the loss: both binary divergences within every order's limit."""
    return _within(power, level, rho) and _within(level, power, rho)


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
    """A loss, told in several ways. Every number is on the safe side: never smaller than the truth."""

    rho: float
    delta: float
    epsilon: float
    power: float
    level: float

    def sentence(self) -> str:
        """One sentence for a person."""
        return (
            f"Somebody who must decide whether your record is in the data, and accepts to be wrong {self.level:.0%} of the time "
            f"when it is not, finds out that it is with a chance of at most {self.power:.1%} "
            f"(without the publication: {self.level:.0%})."
        )

    def _repr_html_(self) -> str:
        return f"<p>loss {self.rho:.4g}; epsilon {self.epsilon:.4g} at delta {self.delta:g}. {self.sentence()}</p>"


def meaning(rho: float, *, delta: float = 1e-5, level: float = 0.05) -> Meaning:
    """A loss in other words: epsilon at ``delta`` and the power of the best test at ``level``."""
    return Meaning(rho=rho, delta=delta, epsilon=epsilon(rho, delta), power=power_zcdp(rho, level), level=level)
