"""The released tables on the page: rows to browse, their accuracy, and the files with all rows."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from recordwise.exact.text import cell_text, number_text, percent_text, share_text
from recordwise.policy.render.html import Html, element, preview_table
from recordwise.release.content import Content
from recordwise.release.page.cells import PageTable, PageVariable, heading
from recordwise.release.page.parts import Part
from recordwise.release.tables import ReleasedTable

FIRST_CELLS = 8
"""Rows shown in a notebook."""
NO_INTERVAL = "\N{EN DASH}"
"""Stands for an interval that is not known; the page says why."""


def first_view(table: PageTable, level: float) -> dict[str, Any]:
    """The first rows of a table as the template shows them; the script pages through the rest."""
    titles = {each.name: each.title for each in table.described.columns}
    return {
        "title": table.described.title,
        "keys": [titles[name] for name in table.keys],
        "groups": [_group(each, level) for each in table.variables],
        "rows": [_row(table, row) for row in table.first_rows()],
    }


def _group(variable: PageVariable, level: float) -> dict[str, Any]:
    """The columns of one variable."""
    columns = ["value"]
    columns += [f"{share_text(level)} noise interval", "cv"] if variable.accurate else []
    columns += ["made to add up"] if variable.fitted else []
    columns += ["status"] if variable.status else []
    return {"name": variable.title, "columns": columns}


def _row(table: PageTable, row: Sequence[Any]) -> dict[str, Any]:
    at = len(table.keys)
    keys = [_key(value, labels) for value, labels in zip(row, table.labels)]
    cells = []
    for variable in table.variables:
        cells.append({"text": cell_text(row[at]), "kind": "first"})
        at += 1
        if variable.accurate:
            cells.append({"text": interval_text(row[at], row[at + 1]), "kind": "interval"})
            cells.append({"text": _cv_text(row[at - 1], row[at + 2]), "kind": ""})
            at += 3
        if variable.fitted:
            cells.append({"text": cell_text(row[at]), "kind": ""})
            at += 1
        if variable.status:
            cells.append({"text": row[at], "kind": "status"})
            at += 1
    return {"keys": keys, "cells": cells}


def _key(value: str | None, labels: Mapping[str, str]) -> str:
    if value is None:
        return "(missing)"
    return f"{value} {labels[value]}" if value in labels else value


def _cv_text(value: float | None, sd: float | None) -> str:
    return "" if not value or sd is None else percent_text(sd / abs(value))


def interval_text(low: float | None, high: float | None) -> str:
    """An interval in words; one without an end is said to have none."""
    if low is None and high is None:
        return NO_INTERVAL
    if low is None or high is None:
        return f"at most {cell_text(high)}" if low is None else f"at least {cell_text(low)}"
    return f"{cell_text(low)} to {cell_text(high)}"


Accuracy = Mapping[str, Mapping[str, Mapping[str, float | None]]]


def accuracy_rows(accuracy: Accuracy, notes: Mapping[str, Mapping[str, str]], content: Content) -> list[dict[str, str]]:
    """The accuracy of each variable of each table, from the noise and the released values alone, and why one is biased."""
    titles = {(table.name, each.name): heading(each) for table in content.tables for each in table.columns}
    tables = {table.name: table.title for table in content.tables}
    return [
        {
            "table": tables.get(table, table),
            "statistic": titles.get((table, name), name),
            "sd": _shown(found["median_sd"], number_text),
            "cv": _shown(found["median_cv"], percent_text),
            "share": _shown(found["share_cv_below_0.1"], "{:.1%}".format),
            "note": notes.get(table, {}).get(name, ""),
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


def titled(parts: Sequence[Part], content: Content) -> tuple[Part, ...]:
    """The parts under the titles of their tables and the labels of their statistics, where these tell them apart."""
    tables = {table.name: table.title for table in content.tables}
    labels = [content.words.label(part.statistic, part.measure) for part in parts]
    uses = Counter((part.table, label) for part, label in zip(parts, labels))
    return tuple(
        replace(
            part,
            table=tables.get(part.table, part.table),
            statistic=label if uses[part.table, label] == 1 else part.statistic,
        )
        for part, label in zip(parts, labels)
    )


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
