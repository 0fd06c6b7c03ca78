"""Selects keys privately: adds noise to the counts of cells that contain records and, for a public domain, of empty cells."""

import numpy as np
import pyarrow as pa

from recordwise.mechanisms.key_selection import passing_empty_cells, truncated_deviations, truncated_intervals
from recordwise.noise.randomness import BitSource
from recordwise.plan.arrays import array_of
from recordwise.plan.key_selection import KeySelection, SelectFrom
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.plan.statistics import BinCounts, ExactTable
from recordwise.plan.statistics.answers import NoisyColumn
from recordwise.release.draw import SELECTED_ON

IntArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


def select_cells(
    plan: Plan, table: PlannedTable, cells: pa.Table, exact: ExactTable, rng: BitSource, *, confidence: float
) -> tuple[pa.Table, ExactTable, NoisyColumn]:
    """The published cells, with their exact totals (still confidential) and the noisy counts that selected them."""
    selection = plan.selection(table)
    assert selection is not None
    counts = exact.totals[selection.total()]
    if not isinstance(selection, SelectFrom):
        noisy = selection.law.noise.add_to(counts, rng)
        kept = np.flatnonzero(noisy >= selection.law.threshold)
        moved = _at_rows(exact, len(kept), kept, np.arange(len(kept)))
        return cells.take(array_of(kept)), moved, _counts(selection, noisy[kept], least=1, confidence=confidence)
    domain = selection.domain.bound(table.shape.groups, plan.schema)
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
    moved = _at_rows(exact, len(order), kept, place[: len(kept)])
    return (
        domain.keys(positions[order]),
        moved,
        _counts(selection, np.concatenate([noisy[passed], empty.noisy])[order], least=0, confidence=confidence),
    )


def dry_run_selection(plan: Plan, table: PlannedTable, cells: pa.Table) -> None:
    """Look up every cell found in its domain before anything is charged, because a domain's functions are the user's code."""
    selection = plan.selection(table)
    if isinstance(selection, SelectFrom):
        selection.domain.bound(table.shape.groups, plan.schema).locate(cells)


def _at_rows(exact: ExactTable, cells: int, rows: IntArray, places: IntArray) -> ExactTable:
    """The numbers of some found cells at their rows in the published table; a cell without records has zeros."""
    moved = np.full(exact.cells, -1, dtype=np.int64)
    moved[rows] = places
    return ExactTable(
        cells=cells,
        totals={total: _scattered(values[rows], places, cells) for total, values in exact.totals.items()},
        bins={wanted: _moved(each, moved) for wanted, each in exact.bins.items()},
    )


def _scattered(values: IntArray, places: IntArray, cells: int) -> IntArray:
    full = np.zeros(cells, dtype=values.dtype)
    full[places] = values
    return full


def _moved(bins: BinCounts, place: IntArray) -> BinCounts:
    position = place[bins.position]
    kept = np.flatnonzero(position >= 0)
    order = kept[np.argsort(position[kept], kind="stable")]
    return BinCounts(position=position[order], point=bins.point[order], held=bins.held[order])


def _counts(selection: KeySelection, noisy: IntArray, *, least: int, confidence: float) -> NoisyColumn:
    """The counts used for selection: biased given selection, with the truncated law's deviation and interval (T-TRUNCATED)."""
    low, high = truncated_intervals(selection.law, noisy, confidence=confidence, least=least)
    return NoisyColumn(
        alias=selection.alias,
        value=noisy,
        standard_error=truncated_deviations(selection.law, noisy, least=least),
        low=low.astype(np.float64),
        high=high.astype(np.float64),
        flag=SELECTED_ON,
    )
