"""From exact totals to noisy columns: the only place where what came from records meets noise."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from recordwise.drawn import Drawn, Side, average, draw_quantiles, gaussian_reach
from recordwise.engines.results import TableTotals
from recordwise.engines.wide import integers
from recordwise.exact import Number
from recordwise.mechanisms import Noisy
from recordwise.mechanisms.gaussian_noise import GaussianNoise
from recordwise.mechanisms.transforming import TransformedNoise
from recordwise.noise import BitSource, Seeded
from recordwise.plan import Measure, Plan, PlannedTable
from recordwise.plan.analysis import CellMechanism, cell_mechanisms, possible_mechanisms
from recordwise.plan.average import Average
from recordwise.plan.lowering import total_name
from recordwise.plan.quantile import Quantile
from recordwise.plan.query import Drawable
from recordwise.plan.statistics import Sum
from recordwise.plan.thresholds import Run
from recordwise.quantiles import TreeQuantile

FIELDS = ("value", "standard_error", "variance_unbiased", "low", "high")
"""What is published of the estimates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A statistic of one table with the mechanism of every cell."""

    alias: str
    total: str
    step: Number
    served: tuple[CellMechanism, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedTree:
    """All quantiles of one table that are read off one tree: their shares by alias, and which bins of the table to use."""

    shares: dict[str, Fraction]
    mechanism: TreeQuantile
    measure: Measure
    bins: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedTable:
    """Everything one table publishes, in the order of the query; averages by the aliases of their two parts."""

    plain: tuple[Prepared, ...]
    trees: tuple[PreparedTree, ...]
    averages: dict[str, tuple[str, str]]
    asked: tuple[str, ...]
    level: float


@dataclass(frozen=True, slots=True)
class Part:
    """The cells one mechanism served, and its noisy answers."""

    rows: Any
    mechanism: Any
    noisy: Noisy


def rehearse(plan: Plan, table: PlannedTable, *, level: float) -> None:
    """Whatever a mechanism can refuse, it refuses here, where nothing is spent yet: each one serves a cell of total 0."""
    query = plan.queries[table.query]
    # The parts of an average are read at a level above the one asked for.
    level = (1 + level) / 2 if any(isinstance(each, Average) for each in query.statistics) else level
    for statistic in query.draws():
        for mechanism in possible_mechanisms(plan, table, statistic):
            if isinstance(statistic, Quantile):
                nothing = np.zeros((1, mechanism.grid.size), dtype=np.int64)
                mechanism.estimate(mechanism.release(nothing, rng=Seeded(0)), p=float(statistic.p), level=level)
            else:
                rehearsed = mechanism.release(np.zeros(1, dtype=np.int64), step=_step(plan, statistic), rng=Seeded(0))
                mechanism.estimate(rehearsed, level=level)


def prepare_table(plan: Plan, exact: TableTotals, *, level: float) -> PreparedTable:
    """Which mechanism serves which cells."""
    query = plan.queries[exact.table.query]
    draws = query.draws()
    parts = {each.alias: each.parts(draws) for each in query.statistics if isinstance(each, Average)}
    return PreparedTable(
        plain=tuple(_prepare(plan, exact, each) for each in draws if not isinstance(each, Quantile)),
        trees=tuple(_prepare_tree(plan, exact, each) for each in draws if isinstance(each, Quantile)),
        averages={alias: (both[0].alias, both[1].alias) for alias, both in parts.items() if both},
        asked=tuple(each.alias for each in query.statistics),
        level=level,
    )


def _prepare(plan: Plan, exact: TableTotals, statistic: Drawable) -> Prepared:
    (total,) = statistic.totals(plan.schema)
    served = cell_mechanisms(plan, exact.table, statistic, exact.cells)
    if not served:
        # A selection may keep no cell at all; the empty table still has its columns.
        nothing = Run(None, np.empty(0, dtype=np.int64))
        served = (CellMechanism(possible_mechanisms(plan, exact.table, statistic)[0], nothing),)
    return Prepared(
        alias=statistic.alias, total=total_name(exact.table, total), step=_step(plan, statistic), served=served
    )


def _prepare_tree(plan: Plan, exact: TableTotals, statistic: Quantile) -> PreparedTree:
    sharing = [each for each in plan.queries[exact.table.query].statistics if statistic.shares_tree(each)]
    (served,) = cell_mechanisms(plan, exact.table, statistic, exact.cells)
    measure = plan.schema.measure(statistic.measure)
    assert measure is not None
    return PreparedTree(
        shares={each.alias: each.p for each in sharing if isinstance(each, Quantile)},
        mechanism=served.mechanism,
        measure=measure,
        bins=exact.table.bins.index(statistic.bins()),
    )


def _step(plan: Plan, statistic: Drawable) -> Number:
    measure = plan.schema.measure(statistic.measure) if isinstance(statistic, Sum) else None
    return 1 if measure is None else measure.step


def draw_table(prepared: PreparedTable, exact: TableTotals, rng: BitSource) -> tuple[Drawn, ...]:
    """Every variable of one table, noise added; averages are made of sums and counts that are drawn once."""
    cells = exact.cells.num_rows if exact.table.shape.groups else 1
    noisy = {each.alias: _draw(each, exact, rng) for each in prepared.plain}
    drawn = {alias: _estimated(alias, parts, cells, prepared.level) for alias, parts in noisy.items()}
    for tree in prepared.trees:
        bins = exact.bins[tree.bins]
        drawn |= draw_quantiles(tree.shares, tree.mechanism, tree.measure, bins, cells, rng, level=prepared.level)
    for alias, both in prepared.averages.items():
        of_sum, of_count = (_side(noisy[part], cells, prepared.level) for part in both)
        drawn[alias] = average(alias, drawn[both[0]], drawn[both[1]], sides=(of_sum, of_count))
    return tuple(drawn[alias] for alias in dict.fromkeys([*prepared.asked, *drawn]))


def _draw(prepared: Prepared, exact: TableTotals, rng: BitSource) -> list[Part]:
    totals = integers(exact.totals.reveal().column(prepared.total))
    parts = []
    for served in prepared.served:
        rows = served.run.rows if len(prepared.served) > 1 else slice(None)
        parts.append(Part(rows, served.mechanism, served.mechanism.release(totals[rows], step=prepared.step, rng=rng)))
    return parts


def _estimated(alias: str, parts: Sequence[Part], cells: int, level: float) -> Drawn:
    """The runs of cells that different mechanisms served, back in the order of the cells."""
    found = [(part.rows, _values(part, level)) for part in parts]
    if len(found) == 1:
        return Drawn(alias=alias, **found[0][1])
    full: dict[str, Any] = {}
    for rows, columns in found:
        for name, column in columns.items():
            full.setdefault(name, np.empty(cells, dtype=column.dtype))[rows] = column
    return Drawn(alias=alias, **full)


def _side(parts: Sequence[Part], cells: int, level: float) -> Side:
    """What a ratio of this level needs of one of its two answers."""
    found = _estimated("", parts, cells, (1 + level) / 2)
    reach = np.full(cells, np.nan)
    for part in parts:
        if isinstance(part.mechanism, GaussianNoise):
            reach[part.rows] = gaussian_reach(part.mechanism.noise_sigma, part.noisy.grid, level=level)
    return Side(value=np.asarray(found.value, np.float64), low=found.low, high=found.high, reach=reach)


def _values(part: Part, level: float) -> dict[str, Any]:
    estimates = part.mechanism.estimate(part.noisy, level=level)
    columns = {name: getattr(estimates, name) for name in FIELDS}
    if isinstance(part.mechanism, TransformedNoise):
        columns["noisy"] = part.noisy.values()
        scale = float(part.mechanism.sigma or part.mechanism.laplace_scale or 0)
        columns["sigma"] = np.full(len(columns["noisy"]), scale)
    elif part.noisy.grid == 1:
        columns["value"] = _fitting(part.noisy.points)
    return columns


def _fitting(points: Any) -> Any:
    """Noisy whole numbers in 64 bits; only the sum of total and noise is ever clipped (T-RANGE)."""
    return points if points.dtype == np.int64 else np.clip(points, -(2**63), 2**63 - 1).astype(np.int64)
