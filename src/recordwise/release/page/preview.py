"""The first cells of a released table, for a notebook."""

from typing import Any

from recordwise.policy.render.html import Html, element, number_text, preview_table
from recordwise.release.tables import ReleasedTable

FIRST = 8


def table_preview(table: ReleasedTable) -> Html:
    """Each variable with its noise interval; a table of a foreign mechanism as it is."""
    rows = table.data.slice(0, FIRST).to_pylist()
    names = table.keys + table.variables if table.variables else tuple(table.data.column_names)
    shown = [[_cell(row, name, table) for name in names] for row in rows]
    rest = table.data.num_rows - len(rows)
    more = [element("p", f"and {rest:,} more rows")] if rest > 0 else []
    caption = "number (noise interval)" if table.variables else "as released"
    return element("div", element("h4", table.name), element("p", caption), preview_table(names, shown), *more)


def _cell(row: dict[str, Any], name: str, table: ReleasedTable) -> str:
    value = row[name]
    if value is None:
        return ""
    if name not in table.variables:
        return str(value)
    low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
    number = number_text(float(value))
    return number if low is None or high is None else f"{number} ({number_text(low)} to {number_text(high)})"
