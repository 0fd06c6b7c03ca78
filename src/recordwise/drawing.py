"""From exact totals to noisy columns: the only place where what came from records meets noise."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from recordwise.arithmetic import FloatArray
from recordwise.engines.results import TableTotals
from recordwise.engines.wide import integers
from recordwise.mechanisms import Estimates, Noisy
from recordwise.mechanisms.transforming import TransformedNoise
from recordwise.noise import BitSource
from recordwise.plan import Plan
from recordwise.plan.analysis import cell_mechanisms
from recordwise.plan.lowering import total_name
from recordwise.plan.statistics import Statistic, Sum


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A variable of a published table: its estimates, and the noisy point and sigma where noise was drawn on another scale."""

    alias: str
    estimates: Estimates
    noisy: FloatArray | None
    sigma: FloatArray | None
    whole: bool
    """Whether every value is a whole number of units, as of a count."""

    def columns(self) -> dict[str, pa.Array]:
        """The published columns, nothing suppressed."""
        found = self.estimates
        value = found.value.astype(np.int64) if self.whole else found.value
        with np.errstate(divide="ignore", invalid="ignore"):
            cv = found.standard_error / np.abs(found.value)
        columns = {
            self.alias: pa.array(value),
            f"{self.alias}_sd": pa.array(found.standard_error),
            f"{self.alias}_cv": pa.array(cv, mask=~np.isfinite(cv)),
            f"{self.alias}_low": pa.array(found.low),
            f"{self.alias}_high": pa.array(found.high),
        }
        if self.noisy is not None:
            columns[f"{self.alias}_noisy"] = pa.array(self.noisy)
            columns[f"{self.alias}_sigma"] = pa.array(self.sigma)
            columns[f"{self.alias}_variance"] = pa.array(found.variance_unbiased)
        return columns


def draw_table(plan: Plan, exact: TableTotals, rng: BitSource, *, level: float) -> tuple[Drawn, ...]:
    """Every statistic of one table, noise added."""
    query = plan.queries[exact.table.query]
    return tuple(_draw(plan, exact, statistic, rng, level) for statistic in query.statistics)


def _draw(plan: Plan, exact: TableTotals, statistic: Statistic, rng: BitSource, level: float) -> Drawn:
    (total,) = statistic.totals(plan.schema)
    totals = integers(exact.totals.reveal().column(total_name(exact.table, total)))
    step = _step(plan, statistic)
    parts: list[tuple[Any, Any, Noisy, Estimates]] = []
    for served in cell_mechanisms(plan, exact.table, statistic, exact.cells):
        noisy = served.mechanism.release(totals[served.run.rows], step=step, rng=rng)
        parts.append((served.run.rows, served.mechanism, noisy, served.mechanism.estimate(noisy, level=level)))
    return _joined(statistic.alias, len(totals), parts)


def _step(plan: Plan, statistic: Statistic) -> Any:
    measure = plan.schema.measure(statistic.measure) if isinstance(statistic, Sum) else None
    return 1 if measure is None else measure.step


def _joined(alias: str, cells: int, parts: list[tuple[Any, Any, Noisy, Estimates]]) -> Drawn:
    """Put the runs of cells that different mechanisms served back in the order of the cells."""
    fields = ("value", "median_unbiased", "standard_error", "variance_unbiased", "low", "high")
    full = {name: np.empty(cells) for name in fields}
    transformed = any(isinstance(mechanism, TransformedNoise) for _, mechanism, _, _ in parts)
    noisy, sigma = np.empty(cells), np.empty(cells)
    for rows, mechanism, points, estimates in parts:
        for name in fields:
            full[name][rows] = getattr(estimates, name)
        if transformed:
            noisy[rows], sigma[rows] = points.values(), float(mechanism.sigma or mechanism.laplace_scale)
    estimates = Estimates(**full, level=parts[0][3].level)
    whole = not transformed and all(points.grid.denominator == 1 for _, _, points, _ in parts)
    return Drawn(
        alias=alias,
        estimates=estimates,
        noisy=noisy if transformed else None,
        sigma=sigma if transformed else None,
        whole=whole and bool(np.all(np.abs(full["value"]) < 2**62)),
    )
