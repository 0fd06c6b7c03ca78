"""Selected keys: noise on the counts of the cells that hold records and, from a public domain, on all that hold none."""

import numpy as np
import pyarrow as pa

from recordwise.mechanisms.key_selection import passing_empty_cells, truncated_deviations, truncated_intervals
from recordwise.noise.randomness import BitSource
from recordwise.plan.key_selection import KeySelection, SelectFrom
from recordwise.plan.plan import Plan
from recordwise.plan.results import POSITION, FoundTotals, Sensitive, TableTotals, integers, scatter, total_name, words
from recordwise.plan.statistics.answers import NoisyColumn
from recordwise.release.draw import SELECTED_ON

IntArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


def select_cells(
    plan: Plan, found: FoundTotals, rng: BitSource, *, confidence: float
) -> tuple[TableTotals, NoisyColumn]:
    """The cells that are published, with their exact totals (confidential still) and the noisy counts that selected them."""
    selection = plan.selection(found.table)
    assert selection is not None
    cells = found.cells.reveal()
    counts = integers(found.totals.reveal().column(total_name(found.table, selection.total())))
    if not isinstance(selection, SelectFrom):
        noisy = selection.law.noise.add_to(counts, rng)
        kept = np.flatnonzero(noisy >= selection.law.threshold)
        chosen = _at_rows(found, cells.take(pa.array(kept)), kept, np.arange(len(kept)))
        return chosen, _counts(selection, noisy[kept], least=1, confidence=confidence)
    domain = selection.domain.bound(found.table.shape.groups, plan.schema)
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
    chosen = _at_rows(found, domain.keys(positions[order]), kept, place[: len(kept)])
    return chosen, _counts(
        selection, np.concatenate([noisy[passed], empty.noisy])[order], least=0, confidence=confidence
    )


def dry_run_selection(plan: Plan, found: FoundTotals) -> None:
    """Look every found cell up in its domain before anything is charged: a domain's functions are somebody's own code."""
    selection = plan.selection(found.table)
    if isinstance(selection, SelectFrom):
        selection.domain.bound(found.table.shape.groups, plan.schema).locate(found.cells.reveal())


def _at_rows(found: FoundTotals, cells: pa.Table, rows: IntArray, places: IntArray) -> TableTotals:
    """The totals of some found cells at their places in the published table; a cell without records has zeros."""
    totals = found.totals.reveal()
    columns = {name: scatter(places, words(totals.column(name))[rows], cells.num_rows) for name in totals.column_names}
    moved = np.full(len(found.cells.reveal()), -1, dtype=np.int64)
    moved[rows] = places
    bins = tuple(Sensitive(_moved(each.reveal(), moved)) for each in found.bins)
    return TableTotals(table=found.table, cells=cells, totals=Sensitive(pa.table(columns)), bins=bins)


def _moved(bins: pa.Table, place: IntArray) -> pa.Table:
    position = place[np.asarray(bins.column(POSITION).to_numpy(), np.int64)]
    column = bins.column_names.index(POSITION)
    return bins.set_column(column, POSITION, pa.array(position)).filter(pa.array(position >= 0))


def _counts(selection: KeySelection, noisy: IntArray, *, least: int, confidence: float) -> NoisyColumn:
    """The counts that selected, at no cost: biased given selection; deviation and interval of the truncated law (T-TRUNCATED)."""
    low, high = truncated_intervals(selection.law, noisy, confidence=confidence, least=least)
    return NoisyColumn(
        alias=selection.alias,
        value=noisy,
        standard_error=truncated_deviations(selection.law, noisy, least=least),
        low=low.astype(np.float64),
        high=high.astype(np.float64),
        flag=SELECTED_ON,
    )
