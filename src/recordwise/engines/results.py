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
