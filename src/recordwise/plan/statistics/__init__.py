"""The statistics of a query: what each needs from an engine, what it costs, and how its noisy answers become columns."""

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
