"""The exact numbers an engine computes for a cell. An engine knows these and no mechanism."""

from dataclasses import dataclass
from typing import TypeAlias

from recordwise.plan.splitting import Splitting
from recordwise.quantiles import Grid


@dataclass(frozen=True, slots=True)
class CountUnits:
    """The number of units, COUNT(*): ids are unique, so also COUNT(DISTINCT unit)."""


@dataclass(frozen=True, slots=True)
class SumSteps:
    """The sum of a measure, as a whole number of its steps; with ``at_most``, of what each record has up to so many steps."""

    measure: str
    at_most: int | None = None


@dataclass(frozen=True, slots=True)
class CountFirms:
    """COUNT(DISTINCT firm): not additive over cells, so it never cascades from counts."""


@dataclass(frozen=True, slots=True)
class CountPieces:
    """The number of rows the unit-split table would have (T-SPLIT), counted without making them."""

    splitting: Splitting


AdditiveTotal: TypeAlias = CountUnits | SumSteps | CountPieces
Total: TypeAlias = AdditiveTotal | CountFirms


@dataclass(frozen=True, slots=True)
class CountBins:
    """The number of records at each point of a public grid, cell by cell; only non-empty bins are returned."""

    measure: str
    grid: Grid
