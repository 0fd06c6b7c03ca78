"""One variable of a published table."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from recordwise.arithmetic import FloatArray

NOT_UNBIASED = "not unbiased"
SELECTED_ON = "selected_on: this noisy count decided that the row is published, so it is too large on average"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A variable with its accuracy, and the noisy point and sigma where noise was drawn on another scale."""

    alias: str
    value: Any
    """Floats, or whole numbers where every value is one, as of a count."""
    standard_error: FloatArray
    low: FloatArray
    high: FloatArray
    noisy: FloatArray | None = None
    sigma: FloatArray | None = None
    variance_unbiased: FloatArray | None = None
    """Published beside ``noisy`` and ``sigma``."""
    flag: str | None = None
    """What a reader must know before using the value as an unbiased estimate; saved with the column and in release.json."""

    def columns(self) -> dict[str, pa.Array]:
        """The published columns, nothing suppressed; NULL where a number does not exist."""
        columns = {
            self.alias: _array(self.value),
            f"{self.alias}_sd": _array(self.standard_error),
            f"{self.alias}_cv": _relative(self.standard_error, self.value),
            f"{self.alias}_low": _array(self.low),
            f"{self.alias}_high": _array(self.high),
        }
        if self.noisy is not None:
            columns[f"{self.alias}_noisy"] = pa.array(self.noisy)
            columns[f"{self.alias}_sigma"] = pa.array(self.sigma)
            columns[f"{self.alias}_variance"] = pa.array(self.variance_unbiased)
        return columns


def _array(values: Any) -> pa.Array:
    missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(0, np.bool_)
    return pa.array(values, mask=missing) if missing.any() else pa.array(values)


def _relative(error: FloatArray, value: Any) -> pa.Array:
    """The coefficient of variation; NULL where the value is 0 or the noise has no variance."""
    with np.errstate(divide="ignore", invalid="ignore"):
        cv = error / np.abs(value)
    finite = np.isfinite(cv)
    return pa.array(cv) if finite.all() else pa.array(cv, mask=~finite)
