"""The noisy answers of a table, and the columns they are published as."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from recordwise.exact.arithmetic import FloatArray
from recordwise.mechanisms.base import gaussian_sigma, transformed_scale
from recordwise.mechanisms.noisy import Noisy
from recordwise.mechanisms.noisy_curve import NoisyCurve, noisy_curve
from recordwise.plan.arrays import array_of
from recordwise.plan.statistics.ratios import Side, gaussian_reach

NOT_UNBIASED = "not unbiased"
FIELDS = ("value", "standard_error", "variance_unbiased", "low", "high")
"""The estimates that are published."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyColumn:
    """A variable with its accuracy, and the noisy points and sigma where noise was drawn on another scale."""

    alias: str
    value: Any
    """Floats, or whole numbers if every value is whole, as for a count."""
    standard_error: FloatArray
    low: FloatArray
    high: FloatArray
    noisy: FloatArray | None = None
    """Of a sum of two parts, that of the positive part."""
    noisy_negative: FloatArray | None = None
    sigma: FloatArray | None = None
    variance_unbiased: FloatArray | None = None
    """Published beside ``noisy`` and ``sigma``."""
    flag: str | None = None
    """What a reader must know before using the value as an unbiased estimate; saved with the column and in release.json."""

    def columns(self) -> dict[str, pa.Array]:
        """The published columns, with nothing suppressed; NULL where a number does not exist."""
        columns = {
            self.alias: _array(self.value),
            f"{self.alias}_sd": _array(self.standard_error),
            f"{self.alias}_cv": _relative(self.standard_error, self.value),
            f"{self.alias}_low": _array(self.low),
            f"{self.alias}_high": _array(self.high),
        }
        if self.noisy is not None:
            if self.noisy_negative is None:
                columns[f"{self.alias}_noisy"] = array_of(self.noisy)
            else:
                columns[f"{self.alias}_noisy_positive"] = array_of(self.noisy)
                columns[f"{self.alias}_noisy_negative"] = array_of(self.noisy_negative)
            columns[f"{self.alias}_sigma"] = array_of(self.sigma)
            columns[f"{self.alias}_variance"] = array_of(self.variance_unbiased)
        return columns


def _array(values: Any) -> pa.Array:
    missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(0, np.bool_)
    return array_of(values, missing)


def _relative(error: FloatArray, value: Any) -> pa.Array:
    """The coefficient of variation; NULL where the value is 0 or the noise has no variance."""
    cv = np.abs(np.asarray(value, dtype=np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        np.divide(error, cv, out=cv)
    finite = np.isfinite(cv)
    return array_of(cv, ~finite)


@dataclass(frozen=True, slots=True)
class Part:
    """The cells for which one mechanism is used, and its noisy answers."""

    rows: Any
    mechanism: Any
    noisy: Noisy


@dataclass(frozen=True, slots=True)
class Answer:
    """The noisy answers to one statistic, one for each of ``cells`` cells, drawn once."""

    parts: Sequence[Part]
    cells: int
    _estimated: dict[float, dict[str, Any]] = field(default_factory=dict, compare=False, repr=False)
    """Estimates by confidence: ratios and combinations ask for them again."""

    def column(self, alias: str, confidence: float) -> NoisyColumn:
        """Estimates and intervals of every cell."""
        if confidence not in self._estimated:
            self._estimated[confidence] = self._estimates(confidence)
        return NoisyColumn(alias=alias, **self._estimated[confidence])

    def _estimates(self, confidence: float) -> dict[str, Any]:
        """With the runs of cells that different mechanisms served back in the order of the cells."""
        found = [(part.rows, _values(part, confidence)) for part in self.parts]
        if len(found) == 1:
            return found[0][1]
        full: dict[str, Any] = {}
        for name in found[0][1]:
            # Noise on whole numbers in some cells and on a finer lattice in others: all are floats.
            kind = np.result_type(*(columns[name].dtype for _, columns in found))
            full[name] = np.empty(self.cells, dtype=kind)
            for rows, columns in found:
                full[name][rows] = columns[name]
        return full

    def side(self, confidence: float) -> Side:
        """What a ratio with this confidence needs to know about one of its two answers."""
        found = self.column("", (1 + confidence) / 2)
        value = np.asarray(found.value, np.float64)
        return Side(value=value, low=found.low, high=found.high, reach=self.reach(confidence), curve=self.curve())

    def curve(self) -> NoisyCurve:
        """Where Gaussian noise was added, on the totals' own scale or on that of a transform; NaN where it is other noise."""
        columns = {name: np.full(self.cells, np.nan) for name in ("point", "sigma", "half", "zero", "bend")}
        found = [(part.rows, noisy_curve(part.mechanism, part.noisy)) for part in self.parts]
        known = [(rows, curve) for rows, curve in found if curve is not None]
        for rows, curve in known:
            for name, column in columns.items():
                column[rows] = getattr(curve, name)

        def back(points: FloatArray) -> FloatArray:
            totals = np.full(self.cells, np.nan)
            for rows, curve in known:
                totals[rows] = curve.back(points[rows])
            return totals

        return NoisyCurve(**columns, back=back)

    def reach(self, confidence: float) -> FloatArray:
        """What the noise of each cell stays within, alone or mixed, where it is Gaussian on the total's own scale; else NaN."""
        reach = np.full(self.cells, np.nan)
        for part in self.parts:
            sigma = gaussian_sigma(part.mechanism)
            if sigma is not None:
                reach[part.rows] = gaussian_reach(sigma, part.noisy.grid, confidence=confidence)
        return reach


def _values(part: Part, confidence: float) -> dict[str, Any]:
    estimates = part.mechanism.estimate(part.noisy, confidence=confidence)
    columns = {name: getattr(estimates, name) for name in FIELDS}
    scale = transformed_scale(part.mechanism)
    if scale is not None:
        noisy = part.noisy.values()
        columns |= {"noisy": noisy} if noisy.ndim == 1 else {"noisy": noisy[0], "noisy_negative": noisy[1]}
        columns["sigma"] = np.full(noisy.shape[-1], float(scale))
    elif part.noisy.grid == 1:
        columns["value"] = _fitting(part.noisy.points)
    return columns


def _fitting(points: Any) -> Any:
    """Noisy whole numbers in 64 bits; only the sum of total and noise is ever clipped (T-RANGE)."""
    return points if points.dtype == np.int64 else np.clip(points, -(2**63), 2**63 - 1).astype(np.int64)
