"""The released tables on the page: rows to browse, their accuracy, and the files with all rows."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from recordwise.exact.text import cell_text, digits_text, number_text, percent_text, share_text
from recordwise.policy.render.html import Html, element, preview_table
from recordwise.release.content import Content, DescribedTable
from recordwise.release.dictionary import Entry
from recordwise.release.page.parts import Part
from recordwise.release.tables import FITTED, ReleasedTable

ROOM = 300_000
"""The approximate number of characters of table rows on the page, all tables together; the files have every row."""
FIRST_ROWS = 12
CELL = 11
"""The approximate length of a number."""


def table_json(described: DescribedTable, room: int) -> dict[str, Any]:
    """The first rows of a table, as many as fit: keys, then the value, interval, cv and fitted value of each variable."""
    table, titles = described.table, {each.name: each for each in described.columns}
    shown = table.data.slice(0, rows_that_fit(table, room))
    headings = table.keys if table.variables else tuple(table.data.column_names)
    columns: list[list[Any]] = [_texts(shown.column(name)) for name in headings]
    variables = []
    for name in table.variables:
        ends = [each for each in (name, f"{name}_low", f"{name}_high", f"{name}_cv") if each in shown.column_names]
        fitted = f"{name}{FITTED}" in shown.column_names
        columns += [_numbers(shown.column(each)) for each in ends] + (
            [_numbers(shown.column(f"{name}{FITTED}"))] if fitted else []
        )
        variables.append([name, len(ends) == 4, fitted, heading(titles[name])])
    rows = [list(row) for row in zip(*columns)] if columns else []
    keys = [titles[name].title for name in headings]
    return {
        "name": table.name,
        "title": described.title,
        "keys": keys,
        "names": list(headings),
        "texts": [pa.types.is_string(shown.column(name).type) for name in headings],
        "variables": variables,
        "rows": rows,
        "all": table.data.num_rows,
        "flags": {name: why for name, why in table.flags().items() if name in table.variables},
    }


def heading(entry: Entry) -> str:
    """The title of a column with its unit."""
    return f"{entry.title} ({entry.unit})" if entry.unit else entry.title


def rows_that_fit(table: ReleasedTable, room: int) -> int:
    width = CELL * (len(table.keys) + 5 * len(table.variables)) or CELL
    return min(int(table.data.num_rows), max(FIRST_ROWS, room // width))


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    return [None if value is None else str(value) for value in column.to_pylist()]


def _numbers(column: pa.ChunkedArray) -> list[float | None]:
    return [_short(value) for value in column.to_pylist()]


def _short(value: Any) -> float | int | None:
    """Whole numbers unchanged, others to six digits, which is enough for the page. The files have every digit."""
    if value is None or isinstance(value, int):
        return value
    number = float(value)
    if not math.isfinite(number):
        return None
    rounded = float(digits_text(number, 6))
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 2**53 else rounded


def first_view(table: dict[str, Any], level: float) -> dict[str, Any]:
    """The first rows of a table as the template shows them; the script pages through the rest."""
    return {
        "title": table["title"],
        "keys": table["keys"],
        "groups": [_group(title, accurate, fitted, level) for _, accurate, fitted, title in table["variables"]],
        "rows": [_row(table, row) for row in table["rows"][:FIRST_ROWS]],
    }


def _group(name: str, accurate: bool, fitted: bool, level: float) -> dict[str, Any]:
    """The columns of one variable."""
    columns = ["value"]
    columns += [f"{share_text(level)} noise interval", "cv"] if accurate else []
    columns += ["made to add up"] if fitted else []
    return {"name": name, "columns": columns}


def _row(table: dict[str, Any], row: Sequence[Any]) -> dict[str, Any]:
    at = len(table["keys"])
    keys = ["(missing)" if value is None else value for value in row[:at]]
    cells = []
    for _, accurate, fitted, _ in table["variables"]:
        cells.append({"text": cell_text(row[at]), "kind": "first"})
        if accurate:
            cells.append({"text": f"{cell_text(row[at + 1])} to {cell_text(row[at + 2])}", "kind": "interval"})
            cells.append({"text": "" if row[at + 3] is None else percent_text(row[at + 3]), "kind": ""})
        at += 4 if accurate else 1
        if fitted:
            cells.append({"text": cell_text(row[at]), "kind": ""})
            at += 1
    return {"keys": keys, "cells": cells}


Accuracy = Mapping[str, Mapping[str, Mapping[str, float | None]]]


def accuracy_rows(accuracy: Accuracy, notes: Mapping[str, Mapping[str, str]], content: Content) -> list[dict[str, str]]:
    """The accuracy of each variable of each table, from the noise and the released values alone."""
    titles = {(table.name, each.name): heading(each) for table in content.tables for each in table.columns}
    tables = {table.name: table.title for table in content.tables}
    return [
        {
            "table": tables.get(table, table),
            "statistic": titles.get((table, name), name),
            "sd": _shown(found["median_sd"], number_text),
            "cv": _shown(found["median_cv"], percent_text),
            "share": _shown(found["share_cv_below_0.1"], "{:.1%}".format),
            "note": notes.get(table, {}).get(name, "unbiased"),
        }
        for table, variables in accuracy.items()
        for name, found in variables.items()
    ]


def _shown(value: float | None, write: Callable[[float], str]) -> str:
    return "" if value is None else write(value)


CUT_DOWN = "of clamped records: biased downward, and the interval covers the sum of the clamped values"


def notes(description: Mapping[str, Any], parts: Sequence[Part]) -> dict[str, dict[str, str]]:
    """Which variables are not unbiased, and why: those flagged in the files, and sums of clamped records."""
    found = {table: dict(flags) for table, flags in description.get("flags", {}).items()}
    for part in parts:
        if part.cut_down:
            found.setdefault(part.table, {}).setdefault(part.statistic, CUT_DOWN)
    return found


FIRST_CELLS = 8
"""Rows shown in a notebook."""


def table_preview(table: ReleasedTable) -> Html:
    """The first cells for a notebook, each variable with its noise interval; an external mechanism's table is shown unchanged."""
    rows = table.data.slice(0, FIRST_CELLS).to_pylist()
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
