"""By which losses of the records plans are ranked: a quantile of them, or a stated trade-off between two."""

import math
from collections.abc import Iterable

from recordwise.errors import ParameterError
from recordwise.planning.losses import Losses

QUANTILES = {"median": 0.5, "p99": 0.99, "maximum": 1.0}
BALANCED = "balanced"
RANKS: dict[str, tuple[float, ...]] = {
    BALANCED: (0.5, 0.99),
    **{name: (share,) for name, share in QUANTILES.items()},
}
"""The quantiles whose geometric mean is the loss of a rank."""
RANK_WORDS = {
    BALANCED: "balanced (geometric mean of median and 99th-percentile)",
    "median": "median",
    "p99": "99th-percentile",
    "maximum": "maximum",
}


def read_rank(rank_by: str) -> str:
    """The name of a rank.

    Raises:
        ParameterError: There is no such rank.
    """
    if rank_by not in RANKS:
        raise ParameterError(parameter="rank_by", problem=f"must be one of {', '.join(RANKS)}")
    return rank_by


def loss_at(losses: Losses, name: str) -> float:
    """The loss of a rank."""
    return balance(losses.quantile(share) for share in RANKS[name])


def balance(losses: Iterable[float]) -> float:
    """The geometric mean of losses, so that each may rise by a factor only if the other falls by it.

    A loss of 0, of records that no query counts, leaves nothing to trade: it is left out.
    """
    found = [each for each in losses if each > 0]
    if not found or math.inf in found:
        return math.inf if found else 0.0
    return found[0] if len(found) == 1 else math.exp(math.fsum(map(math.log, found)) / len(found))
