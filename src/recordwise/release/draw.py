"""From exact totals to noisy columns: the only place where what came from records meets noise.

One variable of a published table.
A noisy sum over a noisy count (T-AVG, docs/theory/averages.md).
From counts on a public grid to noisy quantiles, a block of cells at a time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import Number
from recordwise.mechanisms.gaussian import GaussianNoise
from recordwise.mechanisms.noisy import Noisy
from recordwise.mechanisms.quantile import QuantileEstimates, TreeQuantile
from recordwise.mechanisms.transformed import TransformedNoise
from recordwise.noise.randomness import BitSource, Seeded
from recordwise.plan.cost import CellMechanism, Run, cell_mechanisms, possible_mechanisms
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.plan.query import Drawable
from recordwise.plan.results import BIN, HELD, POSITION, Sensitive, TableTotals, integers, total_name
from recordwise.plan.schema import Measure
from recordwise.plan.statistics import Average, Quantile, Sum
from recordwise.release.ratios import Side, gaussian_reach, ratio_interval

NOT_UNBIASED = "not unbiased"
SELECTED_ON = "selected_on: this noisy count decided that the row is published, so it is too large on average"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyColumn:
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


ONE_RECORD = 1.0


def average(alias: str, total: NoisyColumn, count: NoisyColumn, *, sides: tuple[Side, Side]) -> NoisyColumn:
    """The ratio with its interval in every cell (T-RATIO); no value and no error where the noisy count is not positive."""
    known = count.value > 0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        value = np.where(known, total.value / count.value, np.nan)
        error = np.sqrt(total.standard_error**2 + value**2 * count.standard_error**2) / count.value
    low, high = ratio_interval(*sides, least=ONE_RECORD)
    flag = f"{NOT_UNBIASED}: a ratio of two noisy numbers"
    return NoisyColumn(alias=alias, value=value, standard_error=error, low=low, high=high, flag=flag)


NODES_AT_ONCE = 1 << 22
IntArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
QUANTILE_FIELDS = ("value", "low", "high", "spread_low", "spread_high")


def draw_quantiles(
    shares: Mapping[str, Fraction],
    mechanism: TreeQuantile,
    measure: Measure,
    bins: Sensitive[pa.Table],
    cells: int,
    rng: BitSource,
    *,
    confidence: float,
) -> dict[str, NoisyColumn]:
    """Quantiles of every cell, by alias, all read off the same noisy trees; a cell without records is drawn like any other."""
    rows = bins.reveal().sort_by(POSITION)
    position, point, held = (np.asarray(rows.column(name).to_numpy(), np.int64) for name in (POSITION, BIN, HELD))
    found: dict[str, list[QuantileEstimates]] = {alias: [] for alias in shares}
    at_once = max(1, NODES_AT_ONCE // (2 * mechanism.grid.size))
    for first in range(0, cells, at_once):
        count = min(at_once, cells - first)
        here = slice(*np.searchsorted(position, [first, first + count]))
        leaves = np.zeros((count, mechanism.grid.size), dtype=np.int64)
        leaves[position[here] - first, point[here]] = held[here]
        noisy = mechanism.release(leaves, rng=rng)
        for alias, p in shares.items():
            found[alias].append(mechanism.estimate(noisy, p=float(p), confidence=confidence))
    return {alias: _drawn(alias, _places(parts), mechanism, measure) for alias, parts in found.items()}


def _places(parts: list[QuantileEstimates]) -> dict[str, IntArray]:
    nothing = np.empty(0, dtype=np.int64)
    return {name: np.concatenate([nothing, *(getattr(part, name) for part in parts)]) for name in QUANTILE_FIELDS}


def _drawn(alias: str, places: dict[str, IntArray], mechanism: TreeQuantile, measure: Measure) -> NoisyColumn:
    """Grid positions as amounts. Values up to the first point may be 0. An upper end at the last point says nothing and is left
    empty, unless the measure's public bound is no larger."""
    points = np.array([float(steps * measure.step) for steps in mechanism.grid.steps(measure.step)])
    below = np.concatenate([[0.0], points])
    above = np.concatenate([points[:-1], [points[-1] if measure.bound <= points[-1] else np.nan]])
    spread: FloatArray = (points[places["spread_high"]] - below[places["spread_low"] + 1]) / 2
    return NoisyColumn(
        alias=alias,
        value=points[places["value"]],
        standard_error=spread,
        low=below[places["low"] + 1],
        high=above[places["high"]],
        flag=f"{NOT_UNBIASED}: a quantile is read off a public grid",
    )


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
    confidence: float


@dataclass(frozen=True, slots=True)
class Part:
    """The cells one mechanism served, and its noisy answers."""

    rows: Any
    mechanism: Any
    noisy: Noisy


def dry_run(plan: Plan, table: PlannedTable, *, confidence: float) -> None:
    """Whatever a mechanism can refuse, it refuses here, where nothing is spent yet: each one serves a cell of total 0."""
    query = plan.queries[table.query]
    # The parts of an average are read at a confidence above the one asked for.
    confidence = (1 + confidence) / 2 if any(isinstance(each, Average) for each in query.statistics) else confidence
    for statistic in query.draws():
        for mechanism in possible_mechanisms(plan, table, statistic):
            if isinstance(statistic, Quantile):
                nothing = np.zeros((1, mechanism.grid.size), dtype=np.int64)
                mechanism.estimate(
                    mechanism.release(nothing, rng=Seeded(0)), p=float(statistic.p), confidence=confidence
                )
            else:
                rehearsed = mechanism.release(np.zeros(1, dtype=np.int64), step=_step(plan, statistic), rng=Seeded(0))
                mechanism.estimate(rehearsed, confidence=confidence)


def prepare_table(plan: Plan, exact: TableTotals, *, confidence: float) -> PreparedTable:
    """Which mechanism serves which cells."""
    query = plan.queries[exact.table.query]
    draws = query.draws()
    parts = {each.alias: each.parts(draws) for each in query.statistics if isinstance(each, Average)}
    return PreparedTable(
        plain=tuple(_prepare(plan, exact, each) for each in draws if not isinstance(each, Quantile)),
        trees=tuple(_prepare_tree(plan, exact, each) for each in draws if isinstance(each, Quantile)),
        averages={alias: (both[0].alias, both[1].alias) for alias, both in parts.items() if both},
        asked=tuple(each.alias for each in query.statistics),
        confidence=confidence,
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


def draw_table(prepared: PreparedTable, exact: TableTotals, rng: BitSource) -> tuple[NoisyColumn, ...]:
    """Every variable of one table, noise added; averages are made of sums and counts that are drawn once."""
    cells = exact.cells.num_rows if exact.table.shape.groups else 1
    noisy = {each.alias: _draw(each, exact, rng) for each in prepared.plain}
    drawn = {alias: _estimated(alias, parts, cells, prepared.confidence) for alias, parts in noisy.items()}
    for tree in prepared.trees:
        bins = exact.bins[tree.bins]
        drawn |= draw_quantiles(
            tree.shares, tree.mechanism, tree.measure, bins, cells, rng, confidence=prepared.confidence
        )
    for alias, both in prepared.averages.items():
        of_sum, of_count = (_side(noisy[part], cells, prepared.confidence) for part in both)
        drawn[alias] = average(alias, drawn[both[0]], drawn[both[1]], sides=(of_sum, of_count))
    return tuple(drawn[alias] for alias in dict.fromkeys([*prepared.asked, *drawn]))


def _draw(prepared: Prepared, exact: TableTotals, rng: BitSource) -> list[Part]:
    totals = integers(exact.totals.reveal().column(prepared.total))
    parts = []
    for served in prepared.served:
        rows = served.run.rows if len(prepared.served) > 1 else slice(None)
        parts.append(Part(rows, served.mechanism, served.mechanism.release(totals[rows], step=prepared.step, rng=rng)))
    return parts


def _estimated(alias: str, parts: Sequence[Part], cells: int, confidence: float) -> NoisyColumn:
    """The runs of cells that different mechanisms served, back in the order of the cells."""
    found = [(part.rows, _values(part, confidence)) for part in parts]
    if len(found) == 1:
        return NoisyColumn(alias=alias, **found[0][1])
    full: dict[str, Any] = {}
    for rows, columns in found:
        for name, column in columns.items():
            full.setdefault(name, np.empty(cells, dtype=column.dtype))[rows] = column
    return NoisyColumn(alias=alias, **full)


def _side(parts: Sequence[Part], cells: int, confidence: float) -> Side:
    """What a ratio of this confidence needs of one of its two answers."""
    found = _estimated("", parts, cells, (1 + confidence) / 2)
    reach = np.full(cells, np.nan)
    for part in parts:
        if isinstance(part.mechanism, GaussianNoise):
            reach[part.rows] = gaussian_reach(part.mechanism.noise_sigma, part.noisy.grid, confidence=confidence)
    return Side(value=np.asarray(found.value, np.float64), low=found.low, high=found.high, reach=reach)


def _values(part: Part, confidence: float) -> dict[str, Any]:
    estimates = part.mechanism.estimate(part.noisy, confidence=confidence)
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
