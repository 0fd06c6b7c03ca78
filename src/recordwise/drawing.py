"""From exact totals to noisy columns: the only place where what came from records meets noise."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from recordwise.arithmetic import FloatArray
from recordwise.engines.results import TableTotals
from recordwise.engines.wide import integers
from recordwise.exact import Number
from recordwise.mechanisms import Estimates, Noisy
from recordwise.mechanisms.transforming import TransformedNoise
from recordwise.noise import BitSource, Seeded
from recordwise.plan import Plan
from recordwise.plan.analysis import CellMechanism, cell_mechanisms
from recordwise.plan.lowering import total_name
from recordwise.plan.statistics import Statistic, Sum

FIELDS = ("value", "standard_error", "variance_unbiased", "low", "high")
"""What is published of the estimates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A statistic of one table with the mechanism of every cell, tried out before the ledger is charged."""

    alias: str
    total: str
    step: Number
    served: tuple[CellMechanism, ...]
    level: float

    @property
    def transformed(self) -> bool:
        """Whether noise is drawn on another scale than the measure's."""
        return any(isinstance(each.mechanism, TransformedNoise) for each in self.served)


def prepare_table(plan: Plan, exact: TableTotals, *, level: float) -> tuple[Prepared, ...]:
    """Whatever a mechanism can refuse, it refuses here, where nothing is spent yet: each one serves a cell of total 0."""
    prepared = tuple(
        _prepare(plan, exact, statistic, level) for statistic in plan.queries[exact.table.query].statistics
    )
    for each in prepared:
        for served in each.served:
            rehearsed = served.mechanism.release(np.zeros(1, dtype=np.int64), step=each.step, rng=Seeded(0))
            served.mechanism.estimate(rehearsed, level=level)
    return prepared


def _prepare(plan: Plan, exact: TableTotals, statistic: Statistic, level: float) -> Prepared:
    (total,) = statistic.totals(plan.schema)
    measure = plan.schema.measure(statistic.measure) if isinstance(statistic, Sum) else None
    return Prepared(
        alias=statistic.alias,
        total=total_name(exact.table, total),
        step=1 if measure is None else measure.step,
        served=cell_mechanisms(plan, exact.table, statistic, exact.cells),
        level=level,
    )


def draw_columns(prepared: Prepared, exact: TableTotals, rng: BitSource) -> dict[str, pa.Array]:
    """The published columns of one variable, noise added, nothing suppressed."""
    totals = integers(exact.totals.reveal().column(prepared.total))
    parts = []
    for served in prepared.served:
        rows = served.run.rows if len(prepared.served) > 1 else slice(None)
        noisy = served.mechanism.release(totals[rows], step=prepared.step, rng=rng)
        parts.append((rows, served.mechanism, noisy, served.mechanism.estimate(noisy, level=prepared.level)))
    return _columns(prepared, _joined(parts, len(totals)))


def _joined(parts: list[tuple[Any, Any, Noisy, Estimates]], cells: int) -> dict[str, Any]:
    """The runs of cells that different mechanisms served, back in the order of the cells."""
    found = [(rows, _values(mechanism, noisy, estimates)) for rows, mechanism, noisy, estimates in parts]
    if len(found) == 1:
        return found[0][1]
    full = {name: np.empty(cells, dtype=column.dtype) for name, column in found[0][1].items()}
    for rows, columns in found:
        for name, column in columns.items():
            full[name][rows] = column
    return full


def _values(mechanism: Any, noisy: Noisy, estimates: Estimates) -> dict[str, Any]:
    columns = {name: getattr(estimates, name) for name in FIELDS}
    if isinstance(mechanism, TransformedNoise):
        columns["noisy"] = noisy.values()
        columns["sigma"] = np.full(len(columns["noisy"]), float(mechanism.sigma or mechanism.laplace_scale or 0))
    elif noisy.grid == 1:
        columns["value"] = _fitting(noisy.points)
    return columns


def _fitting(points: Any) -> Any:
    """Noisy whole numbers in 64 bits; only the sum of total and noise is ever clipped (T-RANGE)."""
    return points if points.dtype == np.int64 else np.clip(points, -(2**63), 2**63 - 1).astype(np.int64)


def _columns(prepared: Prepared, found: dict[str, Any]) -> dict[str, pa.Array]:
    alias = prepared.alias
    columns = {
        alias: pa.array(found["value"]),
        f"{alias}_sd": pa.array(found["standard_error"]),
        f"{alias}_cv": _relative(found["standard_error"], found["value"]),
        f"{alias}_low": pa.array(found["low"]),
        f"{alias}_high": pa.array(found["high"]),
    }
    if prepared.transformed:
        columns[f"{alias}_noisy"] = pa.array(found["noisy"])
        columns[f"{alias}_sigma"] = pa.array(found["sigma"])
        columns[f"{alias}_variance"] = pa.array(found["variance_unbiased"])
    return columns


def _relative(error: FloatArray, value: Any) -> pa.Array:
    """The coefficient of variation; NULL where the value is 0 or the noise has no variance."""
    with np.errstate(divide="ignore", invalid="ignore"):
        cv = error / np.abs(value)
    finite = np.isfinite(cv)
    return pa.array(cv) if finite.all() else pa.array(cv, mask=~finite)
