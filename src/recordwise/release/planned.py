"""The content of a release before it is made, as far as the plan decides it, so that a format can refuse before budget is spent."""

import pyarrow as pa

from recordwise.plan.describe import table_name
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.plan.words import Words
from recordwise.release.content import Content, content_of
from recordwise.release.tables import PRIVATE, ReleasedTable


def planned_content(plan: Plan, *, dataset: str, words: Words) -> Content:
    """The tables of a plan with their public cells and without numbers.

    Args:
        plan: The plan.
        dataset: The name of the dataset.
        words: Labels, units and who publishes.

    Returns:
        The content; a table whose keys will be selected has no rows.
    """
    tables = [_table(plan, each) for each in plan.tables()]
    return content_of({"dataset": dataset}, tables, words, privacy_label=PRIVATE)


def _table(plan: Plan, table: PlannedTable) -> ReleasedTable:
    query, names = plan.queries[table.query], table.shape.names()
    if plan.selection(table) is None:
        cells = plan.cells(table)
    else:
        cells = pa.table({name: pa.array([], pa.string()) for name in names})
    rows = cells.num_rows if names else 1
    variables = tuple(each.alias for each in query.statistics)
    columns = {name: cells.column(name) for name in cells.column_names}
    columns |= {name: pa.nulls(rows, pa.float64()) for name in variables}
    return ReleasedTable(
        name=table_name(plan, table), keys=tuple(cells.column_names), variables=variables, data=pa.table(columns)
    )
