"""CONFIDENTIAL: exact quantiles of the records of each cell, from values and how often each occurs."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from recordwise.exact.arithmetic import FloatArray

ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class CellValues:
    """CONFIDENTIAL: how often each value occurs in each cell, in ascending order within a cell."""

    position: Any
    value: FloatArray
    risen: Any
    """How many records there are up to this row, in all cells up to this one."""
    records: Any
    """How many records each cell has."""

    @classmethod
    def of(cls, position: Any, value: FloatArray, times: Any, cells: int) -> "CellValues":
        """Values in any order."""
        order = np.lexsort((value, position))
        records = np.bincount(position, weights=times, minlength=cells).astype(np.int64)
        return cls(position=position[order], value=value[order], risen=np.cumsum(times[order]), records=records)

    def with_zeros(self, records: Any) -> "CellValues":
        """The same where each cell has so many records, of which those not listed have a value of 0."""
        cells = np.arange(len(records))
        times = np.diff(self.risen, prepend=0)
        return CellValues.of(
            np.append(cells, self.position),
            np.append(np.zeros(len(cells)), self.value),
            np.append(records - self.records, times),
            len(records),
        )

    def quantile(self, p: float) -> FloatArray:
        """The smallest value that at least a share p of the records of a cell does not exceed; NaN for empty cells."""
        before = np.cumsum(self.records) - self.records
        place = np.maximum(np.ceil(p * self.records * (1 - ROUNDING)).astype(np.int64), 1)
        held = self.records > 0
        found = np.full(len(self.records), np.nan)
        found[held] = self.value[np.searchsorted(self.risen, (before + place)[held])]
        return found

    def __repr__(self) -> str:
        return "<CellValues: CONFIDENTIAL>"
