"""The statistics a query can have."""

from typing import TYPE_CHECKING, TypeAlias

from recordwise.plan.statistics.base import Statistic
from recordwise.plan.statistics.plain import Count, CountDistinct, Sum
from recordwise.plan.statistics.quantile import Quantile
from recordwise.plan.statistics.ratio import Average, Combination, Ratio, SumAndCount

if TYPE_CHECKING:
    from recordwise.mechanisms.base import Mechanism
    from recordwise.mechanisms.quantile import TreeQuantile

KINDS: tuple[type[Statistic], ...] = (Count, Sum, CountDistinct, Average, Quantile, Combination, Ratio)
"""In the order in which a plan file's query publishes them: a ratio may be one of a combination."""


def statistic_kind(name: str) -> type[Statistic]:
    """Return the statistic class of a ``kind``, or ``Statistic`` if unknown."""
    return next((kind for kind in KINDS if kind.__name__ == name), Statistic)


StatisticMechanism: TypeAlias = "Mechanism | TreeQuantile | SumAndCount"
"""What SQL text may name for a statistic: a mechanism, the tree of a quantile, or the two mechanisms of an average."""
