"""The statistics of a query: what each needs from an engine, costs and publishes.

A new one subclasses ``Drawable`` and joins ``KINDS``; docs/architecture.md lists what else it needs.

In reading order:

- ``base``: the interface, answers and columns that statistics share
- ``totals``: the exact numbers that a statistic needs
- ``plain``: counts and sums
- ``ratio``: averages, ratios and linear combinations
- ``quantile``: quantiles on a public grid
- ``registry``: every statistic by name
"""

from recordwise.plan.statistics.base import Drawable, Statistic
from recordwise.plan.statistics.plain import Count, CountDistinct, Sum
from recordwise.plan.statistics.quantile import Quantile
from recordwise.plan.statistics.ratio import Average, Combination, Ratio, SumAndCount
from recordwise.plan.statistics.registry import KINDS, StatisticMechanism, statistic_kind
from recordwise.plan.statistics.totals import (
    AdditiveTotal,
    BinCounts,
    CountBins,
    CountFirms,
    CountPieces,
    CountUnits,
    ExactTable,
    SumSteps,
    Total,
)

__all__ = [
    "KINDS",
    "AdditiveTotal",
    "Average",
    "BinCounts",
    "Combination",
    "Count",
    "CountBins",
    "CountDistinct",
    "CountFirms",
    "CountPieces",
    "CountUnits",
    "Drawable",
    "ExactTable",
    "Quantile",
    "Ratio",
    "Statistic",
    "StatisticMechanism",
    "Sum",
    "SumAndCount",
    "SumSteps",
    "Total",
    "statistic_kind",
]
