"""What an engine hands back: public cells, and confidential totals aligned with them."""

from dataclasses import dataclass

import pyarrow as pa

from recordwise.plan.plan import PlannedTable
from recordwise.sensitive import Sensitive


@dataclass(frozen=True, slots=True, kw_only=True)
class TableTotals:
    """One table of a plan. ``totals`` has a column of 128-bit integers for each total, one row for each public cell."""

    table: PlannedTable
    cells: pa.Table
    totals: Sensitive[pa.Table]
    bins: tuple[Sensitive[pa.Table], ...] = ()
    """For each grid of the table, rows (position, bin, held) of the non-empty bins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTotals:
    """One table whose keys are selected: which cells hold records is as confidential as what they hold."""

    table: PlannedTable
    cells: Sensitive[pa.Table]
    totals: Sensitive[pa.Table]
    bins: tuple[Sensitive[pa.Table], ...] = ()
