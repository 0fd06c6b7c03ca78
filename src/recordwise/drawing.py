"""From exact totals to noisy columns: the only place where what came from records meets noise."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from recordwise.drawn import Drawn, average, draw_quantiles
from recordwise.engines.results import TableTotals
from recordwise.engines.wide import integers
from recordwise.mechanisms import Estimates, Noisy
from recordwise.mechanisms.transforming import TransformedNoise
from recordwise.noise import BitSource
from recordwise.plan import Plan
from recordwise.plan.analysis import cell_mechanisms
from recordwise.plan.average import Average
from recordwise.plan.lowering import total_name
from recordwise.plan.quantile import Quantile
from recordwise.plan.query import Drawable
from recordwise.plan.statistics import Sum


@dataclass(frozen=True, slots=True)
class Part:
    """The cells one mechanism served, and its noisy answers."""

    rows: Any
    mechanism: Any
    noisy: Noisy


def draw_table(plan: Plan, exact: TableTotals, rng: BitSource, *, level: float) -> tuple[Drawn, ...]:
    """Every statistic of one table, noise added; averages are made of sums and counts that are drawn once."""
    query = plan.queries[exact.table.query]
    draws = query.draws()
    drawn: dict[str, Drawn] = {}
    noisy: dict[str, list[Part]] = {}
    for statistic in draws:
        if isinstance(statistic, Quantile):
            drawn |= _draw_quantiles(plan, exact, statistic, rng, level)
        else:
            noisy[statistic.alias] = _draw(plan, exact, statistic, rng)
            drawn[statistic.alias] = _joined(statistic.alias, _cells(exact), noisy[statistic.alias], level)
    for wanted in query.statistics:
        if isinstance(wanted, Average):
            parts = wanted.parts(draws)
            assert parts is not None
            of_sum, of_count = (
                _joined(part.alias, _cells(exact), noisy[part.alias], (1 + level) / 2).estimates for part in parts
            )
            drawn[wanted.alias] = average(wanted.alias, of_sum, of_count, level=level)
    asked = [statistic.alias for statistic in query.statistics]
    return tuple(drawn[alias] for alias in dict.fromkeys([*asked, *drawn]))


def _cells(exact: TableTotals) -> int:
    return exact.cells.num_rows if exact.table.shape.groups else 1


def _draw(plan: Plan, exact: TableTotals, statistic: Drawable, rng: BitSource) -> list[Part]:
    (total,) = statistic.totals(plan.schema)
    totals = integers(exact.totals.reveal().column(total_name(exact.table, total)))
    step = _step(plan, statistic)
    return [
        Part(served.run.rows, served.mechanism, served.mechanism.release(totals[served.run.rows], step=step, rng=rng))
        for served in cell_mechanisms(plan, exact.table, statistic, exact.cells)
    ]


def _draw_quantiles(
    plan: Plan, exact: TableTotals, statistic: Quantile, rng: BitSource, level: float
) -> dict[str, Drawn]:
    """All quantiles that are read off one tree."""
    (served,) = cell_mechanisms(plan, exact.table, statistic, exact.cells)
    measure = plan.schema.measure(statistic.measure)
    assert measure is not None
    bins = exact.bins[exact.table.bins.index(statistic.bins())]
    shares = {
        each.alias: each.p
        for each in plan.queries[exact.table.query].statistics
        if isinstance(each, Quantile) and each.shares_tree(statistic)
    }
    return draw_quantiles(shares, served.mechanism, measure, bins, _cells(exact), rng, level=level)


def _step(plan: Plan, statistic: Drawable) -> Any:
    measure = plan.schema.measure(statistic.measure) if isinstance(statistic, Sum) else None
    return 1 if measure is None else measure.step


def _joined(alias: str, cells: int, parts: list[Part], level: float) -> Drawn:
    """Put the runs of cells that different mechanisms served back in the order of the cells."""
    fields = ("value", "median_unbiased", "standard_error", "variance_unbiased", "low", "high")
    full = {name: np.empty(cells) for name in fields}
    transformed = any(isinstance(part.mechanism, TransformedNoise) for part in parts)
    noisy, sigma = np.empty(cells), np.empty(cells)
    for part in parts:
        estimates = part.mechanism.estimate(part.noisy, level=level)
        for name in fields:
            full[name][part.rows] = getattr(estimates, name)
        if transformed:
            noisy[part.rows] = part.noisy.values()
            sigma[part.rows] = float(part.mechanism.sigma or part.mechanism.laplace_scale)
    whole = not transformed and all(part.noisy.grid.denominator == 1 for part in parts)
    return Drawn(
        alias=alias,
        estimates=Estimates(**full, level=level),
        noisy=noisy if transformed else None,
        sigma=sigma if transformed else None,
        whole=whole and bool(np.all(np.abs(full["value"]) < 2**62)),
    )
