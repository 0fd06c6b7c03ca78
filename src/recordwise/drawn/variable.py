"""One variable of a published table."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from recordwise.arithmetic import FloatArray
from recordwise.mechanisms import Estimates

NOT_UNBIASED = "not unbiased"
SELECTED_ON = "selected_on: this noisy count decided that the row is published, so it is too large on average"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A variable of a published table: its estimates, and the noisy point and sigma where noise was drawn on another scale."""

    alias: str
    estimates: Estimates
    noisy: FloatArray | None = None
    sigma: FloatArray | None = None
    whole: bool = False
    """Whether every value is a whole number of units, as of a count."""
    flag: str | None = None
    """What a reader must know before using the value as an unbiased estimate; saved with the column and in release.json."""

    def columns(self) -> dict[str, pa.Array]:
        """The published columns, nothing suppressed; NULL where a number does not exist."""
        found = self.estimates
        value = found.value.astype(np.int64) if self.whole else found.value
        with np.errstate(divide="ignore", invalid="ignore"):
            cv = found.standard_error / np.abs(found.value)
        columns = {
            self.alias: _array(value),
            f"{self.alias}_sd": _array(found.standard_error),
            f"{self.alias}_cv": pa.array(cv, mask=~np.isfinite(cv)),
            f"{self.alias}_low": _array(found.low),
            f"{self.alias}_high": _array(found.high),
        }
        if self.noisy is not None:
            columns[f"{self.alias}_noisy"] = pa.array(self.noisy)
            columns[f"{self.alias}_sigma"] = pa.array(self.sigma)
            columns[f"{self.alias}_variance"] = pa.array(found.variance_unbiased)
        return columns


def _array(values: Any) -> pa.Array:
    return pa.array(values, mask=np.isnan(values))
