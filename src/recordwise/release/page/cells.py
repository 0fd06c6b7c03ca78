"""The released tables on the page: rows to browse, and all cells.

The largest cells come first, and all of them as long as the page stays within its size. The first rows are in the page as they
are read; all others follow compressed, column by column: keys by number, numbers as digits and a power of ten. The script of the
page reads them back.
"""

import base64
import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.exact.text import cell_text, number_text, percent_text, share_text
from recordwise.plan.arrays import array_of, numpy_of
from recordwise.plan.statistics.totals import IntArray
from recordwise.policy.render.html import Html, element, preview_table
from recordwise.release.content import Content, DescribedTable, basic_first, short_titles
from recordwise.release.dictionary import STATUS, has_status, status_column, value_column
from recordwise.release.page.history import Digits, History, packed_codes, packed_numbers
from recordwise.release.page.results import Results, heading, on_page
from recordwise.release.tables import FITTED, Accuracy, PagePart, ReleasedTable

ROOM = 4_500_000
"""The approximate number of characters for the cells of all tables; with everything else the page stays below 5 MB."""
NUMBER, CODE = 4.5, 0.7
"""The approximate number of characters that a number or a key takes, and a status."""
FIRST_ROWS = 12
MOST_WITH_ENDS = 50_000
"""Of a table with more cells the page shows fitted values without their intervals."""
SAMPLE, RUNS = 4096, 8
"""At least this many cells are packed to see how many characters cells take, in about this many runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageVariable:
    """A variable of a table and its columns on the page."""

    name: str
    title: str
    columns: tuple[str, ...]
    """The value, the ends of its interval and its sd where there are any, and the fitted value with its ends."""
    accurate: bool
    fitted: int
    """How many columns are fitted: none, the value, or also the ends of its interval."""
    status: bool
    """Whether the status of its values is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTable:
    """A table as the page shows it, its largest cells first."""

    described: DescribedTable
    keys: tuple[str, ...]
    variables: tuple[PageVariable, ...]
    data: pa.Table
    """The cells that fit."""
    labels: tuple[dict[str, str], ...]
    """What readers call the values of each key."""
    status: dict[str, pa.Array]
    statuses: tuple[str, ...]
    """The possible statuses."""
    history: tuple[str, ...] = ()
    """The earlier periods whose values follow those of this one."""
    past: tuple[Digits, ...] = ()
    changes: tuple[float | None, ...] = ()
    """How far off the change of each variable since the last of them may be, where noise is carried on."""
    query: int | None = None
    """The number of its query."""
    parents: IntArray | None = None
    """The cell that each cell lies in, where tables form a tree."""

    @property
    def telling(self) -> tuple[str, ...]:
        """The keys that are shown: those with more than one code."""
        return tuple(self.described.telling_keys()) or self.keys

    def to_json(self, rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
        """What the script knows before it has read the compressed cells."""
        titles = {each.name: each.title for each in self.described.columns}
        table, telling = self.described.table, self.telling
        return {
            "name": table.name,
            "title": self.described.title,
            "keys": [titles[name] for name in self.keys],
            "names": list(self.keys),
            "texts": [pa.types.is_string(self.data.column(name).type) for name in self.keys],
            "variables": [[each.name, each.accurate, each.fitted, each.title, each.status] for each in self.variables],
            "rows": rows,
            "telling": [name in telling for name in self.keys],
            "basic": not any(each.accurate for each in self.variables) and bool(self.status),
            "held": self.data.num_rows,
            "all": table.data.num_rows,
            "gaps": any(self._has_gap(each) for each in self.variables),
            "flags": {name: why for name, why in table.flags().items() if name in table.variables},
            "periods": list(self.history),
            "query": self.query,
            "halves": [self.described.halves.get(each.name) for each in self.variables],
            "reaches": [self.described.reaches.get(each.name) for each in self.variables],
        } | ({"changes": list(self.changes)} if self.changes else {})

    def _has_gap(self, variable: PageVariable) -> bool:
        return variable.accurate and any(self.data.column(name).null_count for name in variable.columns[1:3])

    def first_rows(self) -> list[list[Any]]:
        """Return the first rows as lists."""
        shown = self.data.slice(0, FIRST_ROWS)
        columns: list[list[Any]] = [_texts(shown.column(name)) for name in self.keys]
        for variable in self.variables:
            columns += [packed_numbers(shown.column(name)).values() for name in variable.columns]
            columns += [self.status[variable.name][:FIRST_ROWS].to_pylist()] if variable.status else []
        return [list(row) for row in zip(*columns)] if columns else []

    def _status_codes(self, variable: str) -> np.ndarray:
        """The place of each status among the possible ones."""
        words = self.status[variable].dictionary_encode()
        places = np.array([self.statuses.index(word) for word in words.dictionary.to_pylist()], dtype=np.uint8)
        return np.asarray(places[numpy_of(words.indices)])

    def _pack(self, variable: PageVariable) -> list[bytes]:
        """The columns of a variable as bytes."""
        parts = [packed_numbers(self.data.column(name)).planes() for name in variable.columns]
        return [*parts, packed_codes(self._status_codes(variable.name), 1)] if variable.status else parts

    def pack(self) -> tuple[dict[str, Any], Iterator[bytes]]:
        """What the compressed cells say about themselves, and their bytes in order."""
        keys, parts = [], list[bytes]()
        for name, labels in zip(self.keys, self.labels):
            found = pc.dictionary_encode(self.data.column(name).combine_chunks(), null_encoding="encode")
            values = _texts(found.dictionary)
            keys.append({"values": values, "labels": [labels.get(value or "") for value in values] if labels else None})
            parts.append(packed_codes(numpy_of(found.indices), 4))
        head = {"rows": self.data.num_rows, "keys": keys} | ({} if self.parents is None else {"parents": 1})
        return head, chain(parts, self._numbers())

    def _numbers(self) -> Iterator[bytes]:
        """The bytes after the keys: while one variable is taken, the next are packed."""
        with ThreadPoolExecutor() as pool:
            for packed in pool.map(self._pack, self.variables):
                yield from packed
        if self.parents is not None:
            yield packed_codes(self.parents, 4)
        yield from (column.planes() for column in self.past)


def page_cells(
    content: Content, history: History | None = None, results: Results | None = None, *, room: int = ROOM
) -> tuple[tuple[PageTable, ...], str]:
    """Return the tables with the largest cells that fit, and packed."""
    orders = [_order(each.table) for each in content.tables]

    def tables(indices: Iterable[IntArray]) -> Sequence[PageTable]:
        shown = zip(content.tables, orders, indices)
        found = [_table(content, each, order, some, history) for each, order, some in shown]
        return found if results is None else _with_trees(found, results, orders)

    counts, estimated = rows_that_fit(content.tables, history, room), float(room)
    if counts == [_row_count(each.table, history) for each in content.tables]:
        return tuple(found := tables(map(np.arange, counts))), packed_cells(found)
    # The characters that a cell takes depend on its numbers: some of the cells tell how many there is room for.
    sampled = tables(map(_sample_rows, counts))
    taken = sum(_length(table, count) for table, count in zip(sampled, counts))
    for _ in range(3):
        estimated *= 0.97 * room / taken
        found = tables(map(np.arange, rows_that_fit(content.tables, history, estimated)))
        taken = len(packed := packed_cells(found))
        if taken <= room:
            break
    return tuple(found), packed


def _with_trees(tables: Sequence[PageTable], results: Results, orders: Sequence[pa.Array]) -> list[PageTable]:
    """Add the query of each table and, for trees whose cells are all on the page, the cell that each lies in."""
    whole = {each.described.name: each.data.num_rows == each.described.data.num_rows for each in tables}
    places = {each.described.name: numpy_of(order).astype(np.int64) for each, order in zip(tables, orders)}
    parents: dict[str, IntArray] = {}
    for tree in results.trees:
        if all(whole[name] for name in tree.tables):
            parents |= on_page(tree, places)
    named = [(each, each.described.name) for each in tables]
    return [replace(each, query=results.queries.get(name), parents=parents.get(name)) for each, name in named]


def page_content(content: Content) -> Content:
    """Return what the page shows: basic tables first, and titles without what all of them share."""
    tables = basic_first(content.tables)
    short = short_titles(tables, research=WITH_INTERVALS)
    return replace(content, tables=tuple(replace(each, title=title) for each, title in zip(tables, short)))


WITH_INTERVALS = ", with intervals"


def first_shown(tables: Sequence[PageTable]) -> int:
    """Return the number of the table that is shown first: the first, unless it is a basic one of a single cell."""
    basic = [at for at, each in enumerate(tables) if not each.described.halves and each.status]
    several = [at for at in basic if tables[at].data.num_rows > 1 and not any(v.accurate for v in tables[at].variables)]
    return several[0] if basic[:1] == [0] and several else 0


def _sample_rows(count: int) -> IntArray:
    """Return up to a sixteenth of rows, in a few runs."""
    places, every = np.arange(count), max(1, min(16, count // SAMPLE))
    return np.asarray(places[places * RUNS // max(1, count // every) % every == 0])


def _length(sample: PageTable, count: int) -> float:
    """Return about how many letters the sampled cells take.

    The compression sees that each column's bytes have particular frequencies, but not in as few as a sample has.
    """
    head, parts = sample.pack()
    body = b"".join(parts)
    rows = max(1, int(sample.data.num_rows))
    planes = (body[start : start + rows] for start in range(0, len(body), rows))
    taken = sum(len(compress([plane])) for plane in planes)
    return (len(compress([_json(head)])) + taken * count / rows) * 4 / 3


def rows_that_fit(tables: Sequence[DescribedTable], history: History | None, room: float = ROOM) -> list[int]:
    """Return how many cells of each table fit, by estimate."""
    sizes = np.array([_row_count(each.table, history) for each in tables], dtype=np.int64)
    widths = np.array([_width(each.table, history) for each in tables])
    if float(sizes @ widths) <= room:
        return [int(size) for size in sizes]
    low, high = FIRST_ROWS, int(sizes.max())
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if float(np.minimum(sizes, middle) @ widths) <= room else (low, middle)
    return [int(size) for size in np.minimum(sizes, low)]


def _row_count(table: ReleasedTable, history: History | None) -> int:
    """A page shows the cells whose history it has."""
    known = None if history is None else history.rows(table)
    return int(table.data.num_rows) if known is None else min(int(table.data.num_rows), known)


def _width(table: ReleasedTable, history: History | None) -> float:
    names = _key_names(table)
    numbers = sum(len(_columns(table, name)) for name in table.variables)
    past = 0 if history is None else history.columns(table)
    return NUMBER * (len(names) + numbers + past) + CODE * len(table.variables)


def largest_first(table: ReleasedTable, count: int) -> pa.Table:
    """Return the cells with the first variable's largest published values."""
    return table.data.take(_order(table).slice(0, count))


def _order(table: ReleasedTable) -> pa.Array:
    """The places of the cells, the largest first."""
    if not table.variables:
        return array_of(np.arange(table.data.num_rows))
    return pc.array_sort_indices(table.data.column(table.variables[0]).combine_chunks(), order="descending")


def compress(*parts: Iterable[bytes]) -> bytes:
    """Return the bytes of all parts in the format of zlib.

    Runs are shortened and bytes coded by frequency, but no repeated strings are searched: digits of noisy numbers
    have none, so the result is smaller than the usual one, in a third of the time.
    """
    coder = zlib.compressobj(strategy=zlib.Z_RLE)
    return b"".join([*(coder.compress(each) for each in chain(*parts)), coder.flush()])


def packed_cells(tables: Sequence[PageTable]) -> str:
    """Return all tables' cells, compressed, as letters safe in documents."""
    if not tables:
        return ""
    heads, bodies = zip(*(table.pack() for table in tables))
    head = _json(heads)
    return base64.b64encode(compress([len(head).to_bytes(4, "little"), head], *bodies)).decode()


def _json(form: Any) -> bytes:
    return json.dumps(form, ensure_ascii=False, separators=(",", ":")).encode()


def _table(
    content: Content, described: DescribedTable, order: pa.Array, indices: IntArray, history: History | None
) -> PageTable:
    """Return some of a table's cells, by position in an order."""
    table, titles = described.table, {each.name: each for each in described.columns}
    data, keys = table.data.take(order.take(array_of(indices))), _key_names(table)
    status = {
        name: status_column(content, described, data, name)
        for name in table.variables
        if has_status(table, name) or name + STATUS in data.column_names
    }
    variables = tuple(
        PageVariable(
            name=name,
            title=heading(titles[name]),
            columns=_columns(table, name),
            accurate=f"{name}_cv" in table.data.column_names,
            fitted=len(_fitted(table, name)),
            status=name in status,
        )
        for name in table.variables
    )
    return PageTable(
        described=described,
        keys=keys,
        variables=variables,
        data=data,
        labels=tuple(content.words.values(name) for name in keys),
        status=status,
        statuses=content.rules.names(),
        history=() if history is None else history.periods_of(table),
        past=() if history is None else history.past(table, indices),
        changes=() if history is None else tuple(history.changes.get(table.name, ())),
    )


def _key_names(table: ReleasedTable) -> tuple[str, ...]:
    return table.keys if table.variables else tuple(table.data.column_names)


def _columns(table: ReleasedTable, name: str) -> tuple[str, ...]:
    accuracy = [f"{name}_low", f"{name}_high", f"{name}_sd"] if f"{name}_cv" in table.data.column_names else []
    return (name, *accuracy, *_fitted(table, name))


def _fitted(table: ReleasedTable, name: str) -> list[str]:
    """Return the fitted value, and the ends of its interval where the page has room for them."""
    ends = ("", "_low", "_high") if table.data.num_rows <= MOST_WITH_ENDS else ("",)
    found = [f"{name}{FITTED}{end}" for end in ends]
    return [column for column in found if column in table.data.column_names]


def _texts(column: pa.Array | pa.ChunkedArray) -> list[str | None]:
    return [None if value is None else str(value) for value in column.to_pylist()]


# The tables: rows to browse, their accuracy, and the files with all rows.


FIRST_CELLS = 8
"""Rows shown in a notebook."""
FITTED_WITH_ENDS = 3
NO_INTERVAL = "\N{EN DASH}"
"""Stands for an interval that is not known; the page says why."""


def first_view(table: PageTable, level: float) -> dict[str, Any]:
    """Return a table's first rows as the template shows them."""
    titles, telling = {each.name: each.title for each in table.described.columns}, table.telling
    return {
        "title": table.described.title,
        "keys": [titles[name] for name in telling],
        "groups": [_group(each, level) for each in table.variables],
        "rows": [_row(table, row, telling) for row in table.first_rows()],
    }


def _group(variable: PageVariable, level: float) -> dict[str, Any]:
    """The columns of one variable."""
    columns = ["value"]
    columns += [f"{share_text(level)} noise interval", "cv"] if variable.accurate else []
    columns += ["made to add up"] if variable.fitted else []
    columns += ["its interval"] if variable.fitted == FITTED_WITH_ENDS else []
    columns += ["status"] if variable.status else []
    return {"name": variable.title, "columns": columns}


def _row(table: PageTable, row: Sequence[Any], telling: Sequence[str]) -> dict[str, Any]:
    at = len(table.keys)
    keys = [_key(value, labels) for name, value, labels in zip(table.keys, row, table.labels) if name in table.telling]
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
        if variable.fitted == FITTED_WITH_ENDS:
            cells.append({"text": interval_text(row[at + 1], row[at + 2]), "kind": "interval"})
        at += variable.fitted
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
    """Describe an interval, naming an end that does not exist."""
    if low is None and high is None:
        return NO_INTERVAL
    if low is None or high is None:
        return f"at most {cell_text(high)}" if low is None else f"at least {cell_text(low)}"
    return f"{cell_text(low)} to {cell_text(high)}"


def accuracy_rows(
    accuracy: Mapping[str, Mapping[str, Accuracy]], notes: Mapping[str, Mapping[str, str]], content: Content
) -> list[dict[str, str]]:
    """Return each variable's accuracy by table, and why it is biased."""
    titles = {(table.name, each.name): heading(each) for table in content.tables for each in table.columns}
    tables = {table.name: table.title for table in content.tables}
    return [
        {
            "table": tables.get(table, table),
            "statistic": titles.get((table, name), name),
            "sd": _number_cell(found.median_sd, number_text),
            "cv": _number_cell(found.median_cv, percent_text),
            "share": _number_cell(found.share_below, "{:.1%}".format),
            "note": notes.get(table, {}).get(name, ""),
        }
        for table, variables in accuracy.items()
        for name, found in variables.items()
    ]


def _number_cell(value: float | None, write: Callable[[float], str]) -> str:
    return "" if value is None else write(value)


CUT_DOWN = "of clamped records: biased downward, and the interval covers the sum of the clamped values"


def notes(flags: Mapping[str, Mapping[str, str]], parts: Sequence[PagePart]) -> dict[str, dict[str, str]]:
    """Return which variables are biased, and why."""
    found = {table: dict(each) for table, each in flags.items()}
    for part in parts:
        if part.cut_down:
            found.setdefault(part.table, {}).setdefault(part.statistic, CUT_DOWN)
    return found


def with_titles(parts: Sequence[PagePart], content: Content) -> tuple[PagePart, ...]:
    """Return the parts under titles and labels that distinguish them."""
    tables = {table.name: table.title.removesuffix(WITH_INTERVALS) for table in content.tables}
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
    """Return the first cells with noise intervals, for a notebook."""
    rows = table.data.slice(0, FIRST_CELLS).to_pylist()
    names = table.keys + table.variables if table.variables else tuple(table.data.column_names)
    shown = [[_cell(row, name, table) for name in names] for row in rows]
    rest = table.data.num_rows - len(rows)
    more = [element("p", f"and {rest:,} more rows")] if rest > 0 else []
    added = (
        " of numbers that were made to add up"
        if any(value_column(table, each) != each for each in table.variables)
        else ""
    )
    caption = f"number (noise interval){added}" if table.variables else "as released"
    return element("div", element("h4", table.name), element("p", caption), preview_table(names, shown), *more)


def _cell(row: dict[str, Any], name: str, table: ReleasedTable) -> str:
    shown = value_column(table, name) if name in table.variables else name
    value = row[shown]
    if value is None:
        return ""
    if name not in table.variables:
        return str(value)
    low, high = row.get(f"{shown}_low"), row.get(f"{shown}_high")
    number = number_text(float(value))
    return number if low is None or high is None else f"{number} ({number_text(low)} to {number_text(high)})"
