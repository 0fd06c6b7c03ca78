"""The only place where exact totals are combined with noise."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from recordwise.errors import ExternalError, KeysError, ParameterError
from recordwise.mechanisms.external import CHARGED
from recordwise.noise.randomness import BitSource
from recordwise.plan.arrays import array_of
from recordwise.plan.cost import CellMechanism, Part, Run
from recordwise.plan.describe import table_name
from recordwise.plan.keys.keys import Selection
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.plan.schema import Schema
from recordwise.plan.sources import as_arrow
from recordwise.plan.statistics import BinCounts, Drawable, ExactTable, Statistic
from recordwise.plan.statistics.base import NoisyColumn, published_columns
from recordwise.release.tables import ReleasedTable, publishable, with_flags

SELECTED_ON = "selected_on: this noisy count decided that the row is published, so it is too large on average"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedStatistic:
    """A drawn statistic with the mechanism of every cell."""

    statistic: Drawable
    served: tuple[CellMechanism, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedTable:
    """Everything that is drawn and published for one table, in order."""

    schema: Schema
    drawn: tuple[PreparedStatistic, ...]
    statistics: tuple[Statistic, ...]
    """The statistics of the query."""
    median: tuple[str, ...]
    """Those with a median-unbiased estimate."""
    confidence: float


def dry_run(plan: Plan, table: PlannedTable, *, confidence: float) -> None:
    """Run each mechanism on a zero total before spending budget."""
    confidence = plan.queries[table.query].confidence_of_parts(confidence)
    for part, statistic in plan.drawn(table):
        for mechanism in part.mechanisms:
            statistic.dry_run(mechanism, plan.schema, confidence=confidence)


def prepare_table(plan: Plan, table: PlannedTable, cells: pa.Table, *, confidence: float) -> PreparedTable:
    """Assign mechanisms to cells; totals are drawn before bins."""
    drawn = sorted(plan.drawn(table), key=lambda each: bool(each[1].bins()))
    return PreparedTable(
        schema=plan.schema,
        drawn=tuple(
            PreparedStatistic(statistic=statistic, served=_cell_mechanisms(part, cells)) for part, statistic in drawn
        ),
        statistics=plan.queries[table.query].statistics,
        median=plan.queries[table.query].median,
        confidence=confidence,
    )


def _cell_mechanisms(part: Part, cells: pa.Table) -> tuple[CellMechanism, ...]:
    # A selection may keep no cell at all; even an empty table has its columns.
    nothing = Run(None, np.empty(0, dtype=np.int64))
    return part.mechanisms_of(cells) or (CellMechanism(part.mechanisms[0], nothing),)


def draw_table(prepared: PreparedTable, exact: ExactTable, rng: BitSource) -> Callable[[], tuple[NoisyColumn, ...]]:
    """Add noise once; return a function that computes the variables."""
    schema, confidence = prepared.schema, prepared.confidence
    answers = {
        each.statistic.alias: each.statistic.draw(
            exact, each.served, schema, rng, asked=prepared.statistics, confidence=confidence
        )
        for each in prepared.drawn
    }
    statistics = [each.statistic for each in prepared.drawn]
    return partial(
        published_columns, prepared.statistics, statistics, answers, confidence=confidence, median=prepared.median
    )


# Selects keys privately: adds noise to the counts of cells that contain records and, for a public domain, of empty
# cells.


IntArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


def select_cells(
    plan: Plan, table: PlannedTable, cells: pa.Table, exact: ExactTable, rng: BitSource, *, confidence: float
) -> tuple[pa.Table, ExactTable, NoisyColumn]:
    """Return published cells, their confidential totals and their noisy counts."""
    from recordwise.mechanisms.key_selection import passing_empty_cells

    selection = plan.selection(table)
    assert selection is not None
    counts = exact.totals[selection.total()]
    public = plan.domain(table)
    if public is None:
        noisy = selection.law.noise.add_to(counts, rng)
        kept = np.flatnonzero(noisy >= selection.law.threshold)
        moved = _scatter_rows(exact, len(kept), kept, np.arange(len(kept)))
        return cells.take(array_of(kept)), moved, _counts(selection, noisy[kept], least=1, confidence=confidence)
    domain = public.bound(table.shape.groups, plan.schema)
    located = domain.locate(cells)
    inside = np.flatnonzero(located >= 0)
    noisy = selection.law.noise.add_to(counts[inside], rng)
    empty = passing_empty_cells(domain.size, np.sort(located[inside]), selection.law, rng)
    passed = noisy >= selection.law.threshold
    positions = np.concatenate([located[inside][passed], empty.positions])
    order = np.argsort(positions, kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    kept = inside[passed]
    moved = _scatter_rows(exact, len(order), kept, place[: len(kept)])
    return (
        domain.keys(positions[order]),
        moved,
        _counts(selection, np.concatenate([noisy[passed], empty.noisy])[order], least=0, confidence=confidence),
    )


def dry_run_selection(plan: Plan, table: PlannedTable, cells: pa.Table) -> None:
    """Look up every cell by the user's functions before charging."""
    domain = plan.domain(table)
    if plan.selection(table) is not None and domain is not None:
        domain.bound(table.shape.groups, plan.schema).locate(cells)


def _scatter_rows(exact: ExactTable, cells: int, rows: IntArray, indices: IntArray) -> ExactTable:
    """Return exact numbers at published rows, zeros without records."""
    moved = np.full(exact.cells, -1, dtype=np.int64)
    moved[rows] = indices
    return ExactTable(
        cells=cells,
        totals={total: _scatter(values[rows], indices, cells) for total, values in exact.totals.items()},
        bins={wanted: _move_bins(each, moved) for wanted, each in exact.bins.items()},
    )


def _scatter(values: IntArray, indices: IntArray, cells: int) -> IntArray:
    full = np.zeros(cells, dtype=values.dtype)
    full[indices] = values
    return full


def _move_bins(bins: BinCounts, index: IntArray) -> BinCounts:
    position = index[bins.position]
    kept = np.flatnonzero(position >= 0)
    order = kept[np.argsort(position[kept], kind="stable")]
    return BinCounts(position=position[order], point=bins.point[order], held=bins.held[order])


def _counts(selection: Selection, noisy: IntArray, *, least: int, confidence: float) -> NoisyColumn:
    """Return the selection's counts, biased, with truncated-law intervals (T-TRUNCATED)."""
    from recordwise.mechanisms.key_selection import truncated_deviations, truncated_intervals

    low, high = truncated_intervals(selection.law, noisy, confidence=confidence, least=least)
    return NoisyColumn(
        alias=selection.alias,
        value=noisy,
        standard_error=truncated_deviations(selection.law, noisy, least=least),
        low=low.astype(np.float64),
        high=high.astype(np.float64),
        flag=SELECTED_ON,
    )


# Published tables: cells selected where they must be, noise added to every statistic, the columns in order.


def publish_table(
    plan: Plan,
    table: PlannedTable,
    cells: pa.Table,
    exact: ExactTable,
    prepared: PreparedTable | None,
    rng: BitSource,
    *,
    confidence: float,
) -> Callable[[], ReleasedTable]:
    """Draw a table, and return a function that computes its columns.

    One that was not prepared selects its keys: its cells are known only now.
    """
    counts: tuple[NoisyColumn, ...] = ()
    if prepared is None:
        cells, exact, selected_on = select_cells(plan, table, cells, exact, rng, confidence=confidence)
        counts, prepared = (selected_on,), prepare_table(plan, table, cells, confidence=confidence)
    return partial(_make_table, table_name(plan, table), cells, counts, draw_table(prepared, exact, rng))


def _make_table(
    name: str, cells: pa.Table, counts: tuple[NoisyColumn, ...], variables: Callable[[], tuple[NoisyColumn, ...]]
) -> ReleasedTable:
    drawn = counts + variables()
    columns = {name: cells.column(name) for name in cells.column_names}
    with ThreadPoolExecutor() as pool:
        for found in pool.map(NoisyColumn.columns, drawn):
            columns |= found
    return ReleasedTable(
        name=name,
        keys=tuple(cells.column_names),
        variables=tuple(variable.alias for variable in drawn),
        data=with_flags(pa.table(columns), {variable.alias: variable.flag for variable in drawn if variable.flag}),
    )


def in_turn(drawn: Iterable[Callable[[], ReleasedTable]]) -> tuple[ReleasedTable, ...]:
    """Draw tables in turn, computing each while the next is drawn."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        waiting = [pool.submit(compute) for compute in drawn]
        return tuple(table.result() for table in waiting)


# Publishes the result of an external mechanism as a table.


def external_table(result: Any, name: str) -> pa.Table:
    """Return an external result as a table; a list becomes ``value``."""
    try:
        if isinstance(result, pa.Table | Mapping) or hasattr(result, "columns"):
            table = as_arrow(dict(result) if isinstance(result, Mapping) else result)
        else:
            table = pa.table({"value": pa.array(np.atleast_1d(np.asarray(result)))})
        plain = [_plain(column) for column in table.columns]
    except (KeysError, ParameterError, pa.ArrowException, TypeError, ValueError):
        raise ExternalError(
            mechanism=name, problem="returned something that is not a table, list or number", state=CHARGED
        ) from None
    return pa.table(plain, names=table.column_names)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    if not publishable(column.type):
        raise ParameterError(
            parameter="result", problem="has a column whose values are not numbers, text or truth values"
        )
    return column
