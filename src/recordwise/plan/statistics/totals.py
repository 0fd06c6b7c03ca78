"""The exact numbers that a statistic needs from an engine, cell by cell. An engine knows these and no mechanism."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from recordwise.mechanisms.quantile import Grid
from recordwise.plan.splitting import Splitting

IntArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class CountUnits:
    """The number of units, COUNT(*). Ids are unique, so this is also COUNT(DISTINCT unit)."""


@dataclass(frozen=True, slots=True)
class SumSteps:
    """The sum of a measure, as a whole number of its steps; ``at_most`` caps the steps that each record contributes.

    ``part`` says which values of a signed measure are added up, each without its sign: those above or those below 0.
    """

    measure: str
    at_most: int | None = None
    part: Literal["positive", "negative"] | None = None


@dataclass(frozen=True, slots=True)
class CountFirms:
    """COUNT(DISTINCT firm): not additive over cells, so it is never rolled up from finer counts."""


@dataclass(frozen=True, slots=True)
class CountPieces:
    """The number of rows the unit-split table would have (T-SPLIT), counted without creating them."""

    splitting: Splitting


AdditiveTotal: TypeAlias = CountUnits | SumSteps | CountPieces
Total: TypeAlias = AdditiveTotal | CountFirms


@dataclass(frozen=True, slots=True)
class CountBins:
    """The number of records at each point of a public grid, cell by cell; only non-empty bins are returned."""

    measure: str
    grid: Grid


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class BinCounts:
    """CONFIDENTIAL: the non-empty bins of a table, sorted by the position of their cell."""

    position: IntArray
    point: IntArray
    held: IntArray

    def __repr__(self) -> str:
        return "<BinCounts: CONFIDENTIAL>"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ExactTable:
    """CONFIDENTIAL: the exact numbers of one table, opened only to add noise to them."""

    cells: int
    totals: Mapping[Total, IntArray]
    bins: Mapping[CountBins, BinCounts]

    def __repr__(self) -> str:
        return "<ExactTable: CONFIDENTIAL>"
