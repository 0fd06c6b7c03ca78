"""The released tables on the page: rows to look through, their accuracy, and the files that hold all of them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from recordwise.policy.render.html import Html, element, joined, number_text
from recordwise.release.tables import FITTED, ReleasedTable

ROOM = 300_000
"""About how many characters of table rows the page carries, all tables together; the files beside it hold every row."""
FIRST_ROWS = 12
CELL = 11
"""About how long a number is."""


def table_json(table: ReleasedTable, room: int, labels: Mapping[str, str]) -> dict[str, Any]:
    """The first rows of a table, as many as fit: keys, then value, interval, cv and fitted value of each variable."""
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
        variables.append([name, len(ends) == 4, fitted])
    rows = [list(row) for row in zip(*columns)] if columns else []
    keys = [labels.get(name, name) for name in headings]
    return {
        "name": table.name,
        "keys": keys,
        "texts": [pa.types.is_string(shown.column(name).type) for name in headings],
        "variables": variables,
        "rows": rows,
        "all": table.data.num_rows,
        "flags": {name: why for name, why in table.flags().items() if name in table.variables},
    }


def rows_that_fit(table: ReleasedTable, room: int) -> int:
    width = CELL * (len(table.keys) + 5 * len(table.variables)) or CELL
    return min(int(table.data.num_rows), max(FIRST_ROWS, room // width))


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    return [None if value is None else str(value) for value in column.to_pylist()]


def _numbers(column: pa.ChunkedArray) -> list[float | None]:
    return [_short(value) for value in column.to_pylist()]


def _short(value: Any) -> float | int | None:
    """Whole numbers as they are, others to six digits: what a reader of the page needs. The files hold every digit."""
    if value is None or isinstance(value, int):
        return value
    number = float(value)
    if not math.isfinite(number):
        return None
    rounded = float(f"{number:.6g}")
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 2**53 else rounded


def first_view(table: dict[str, Any], level: float) -> Html:
    """The first rows as a table, which the script pages through."""
    return element(
        "table",
        element("caption", f"Table {table['name']}", class_="hidden"),
        element("thead", *head_rows(table, level)),
        element("tbody", *(body_row(table, row) for row in table["rows"][:FIRST_ROWS])),
        id="cells",
    )


def head_rows(table: dict[str, Any], level: float) -> list[Html]:
    keys = [element("th", name, scope="col", rowspan=2) for name in table["keys"]]
    groups, names = [], []
    for name, accurate, fitted in table["variables"]:
        inner = [
            "value",
            *([f"{level:.0%} noise interval", "cv"] if accurate else []),
            *(["made to add up"] if fitted else []),
        ]
        groups.append(element("th", name, scope="colgroup", colspan=len(inner)))
        names += [element("th", each, scope="col", class_="first" if not at else None) for at, each in enumerate(inner)]
    return [element("tr", *keys, *groups), element("tr", *names)]


def body_row(table: dict[str, Any], row: Sequence[Any]) -> Html:
    cells = [element("th", "(missing)" if value is None else value, scope="row") for value in row[: len(table["keys"])]]
    at = len(table["keys"])
    for _, accurate, fitted in table["variables"]:
        cells.append(element("td", _figure(row[at]), class_="first"))
        if accurate:
            cells.append(element("td", f"{_figure(row[at + 1])} to {_figure(row[at + 2])}", class_="interval"))
            cells.append(element("td", "" if row[at + 3] is None else _percent(row[at + 3])))
        at += 4 if accurate else 1
        if fitted:
            cells.append(element("td", _figure(row[at])))
            at += 1
    return element("tr", *cells)


def _figure(value: float | None) -> str:
    """Without digits that are noise: whole from a hundred on."""
    if value is None:
        return ""
    size = abs(value)
    text = f"{value:,.{0 if size >= 100 else 1 if size >= 10 else 2 if size >= 0.1 else 4}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _percent(share: float) -> str:
    return f"{share:.1%}" if share < 0.1 else f"{share:.0%}" if share < 10 else "> 1000%"


def accuracy_table(accuracy: Mapping[str, Mapping[str, Mapping[str, float | None]]], notes: Mapping[str, Any]) -> Html:
    """How accurate each variable of each table is, from the noise and the released values alone."""
    several = len(accuracy) > 1
    rows = [
        _accuracy_row(table if several else None, name, found, notes.get(table, {}).get(name, "unbiased"))
        for table, variables in accuracy.items()
        for name, found in variables.items()
    ]
    names = ("statistic", "median sd of the noise", "median cv", "cells with cv below 10 %", "estimate")
    left = {"statistic", "estimate"}
    heads = [element("th", name, scope="col", class_="left" if name in left else None) for name in names]
    heads = [element("th", "table", scope="col"), *heads] if several else heads
    return element("table", element("thead", element("tr", *heads)), element("tbody", *rows))


def _accuracy_row(table: str | None, name: str, found: Mapping[str, float | None], note: str) -> Html:
    sd, cv, share = found["median_sd"], found["median_cv"], found["share_cv_below_0.1"]
    return element(
        "tr",
        None if table is None else element("th", table, scope="row"),
        element("th", name, scope="row"),
        element("td", "" if sd is None else number_text(sd)),
        element("td", "" if cv is None else _percent(cv)),
        element("td", "" if share is None else f"{share:.1%}"),
        element("td", note, class_="words"),
    )


def downloads(files: Mapping[str, str]) -> Html:
    """Links to the files beside the page."""
    items = [
        element("li", element("a", name, href=f"./{_address(name)}", download=name), f" {told}")
        for name, told in files.items()
    ]
    return element("ul", joined(items), class_="files")


def _address(name: str) -> str:
    from urllib.parse import quote

    return quote(name)
