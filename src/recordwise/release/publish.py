"""Published tables: cells selected where they must be, noise added to every statistic, the columns in order."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pyarrow as pa

from recordwise.noise.randomness import BitSource
from recordwise.plan.describe import table_name
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.plan.statistics import ExactTable
from recordwise.plan.statistics.answers import NoisyColumn
from recordwise.release.draw import PreparedTable, draw_table, prepare_table
from recordwise.release.select import select_cells
from recordwise.release.tables import ReleasedTable, flagged


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
    """Draw a table. One that was not prepared selects its keys: its cells are known only now.

    What is returned computes its columns from the noisy answers.
    """
    counts: tuple[NoisyColumn, ...] = ()
    if prepared is None:
        cells, exact, selected_on = select_cells(plan, table, cells, exact, rng, confidence=confidence)
        counts, prepared = (selected_on,), prepare_table(plan, table, cells, confidence=confidence)
    return partial(_released, table_name(plan, table), cells, counts, draw_table(prepared, exact, rng))


def _released(
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
        data=flagged(pa.table(columns), {variable.alias: variable.flag for variable in drawn if variable.flag}),
    )


def in_turn(drawn: Iterable[Callable[[], ReleasedTable]]) -> tuple[ReleasedTable, ...]:
    """Tables whose noise is drawn one after the other, as the source of bits demands, each computed while the next is drawn."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        waiting = [pool.submit(compute) for compute in drawn]
        return tuple(table.result() for table in waiting)
