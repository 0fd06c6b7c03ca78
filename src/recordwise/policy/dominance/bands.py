"""The combinations of bands that records can be in, one axis for all band tables of a comparison (T-SIZE, T-REGIONS).

Tables whose columns determine those of the next coarser one are a chain, as the levels of a code are: a record is listed in some
finest of them, whose cell determines its bands in the coarser ones, and it is in the lowest band of the finer ones. So the cells of
each table, with their bands in all coarser ones, are all combinations. Other tables are looked up for all combinations of the
values that they tell apart. Where those are too many, bands are combined freely, which lists more than can occur; a counterexample
is then confirmed by its own columns.
"""

from collections.abc import Mapping, Sequence
from itertools import islice, pairwise, product
from math import prod
from typing import Any

import numpy as np

from recordwise.policy.bands import BandTable, IntArray
from recordwise.policy.condition_columns import ConditionColumn
from recordwise.policy.literals import Cell

OTHER = "\u2022"
"""A letter that continues a prefix to a text that no finer table lists."""
MOST_LOOKUPS = 50_000_000
LOOKUPS_AT_ONCE = 1_000_000
MOST_REGIONS = 100_000
"""A comparison of more parts than this is given up."""
MOST_LISTED = MOST_REGIONS + 1
"""No more combinations are listed. A list that is cut is too long for a comparison, so it is never taken for all of them."""


def combinations(tables: Sequence[BandTable]) -> list[dict[str, Any]]:
    """What records can show: the band in each table by its key, and a value of each column for a readable counterexample."""
    found: list[list[dict[str, Any]]] = []
    for group in _connected(tables):
        ordered = _ordered(group)
        found.append(_of_chain(ordered) if _is_chain(ordered) else _looked_up(ordered) or _freely(ordered))
    choices = islice(product(*found), MOST_LISTED)
    return [{name: value for part in choice for name, value in part.items()} for choice in choices]


def _connected(tables: Sequence[BandTable]) -> list[list[BandTable]]:
    """Tables that look at a common column, together."""
    groups: list[list[BandTable]] = []
    for table in tables:
        names = {column.name for column in table.columns}
        touched = [group for group in groups if any(column.name in names for each in group for column in each.columns)]
        groups = [group for group in groups if group not in touched]
        groups.append([table, *(each for group in touched for each in group)])
    return groups


def _ordered(tables: list[BandTable]) -> list[BandTable]:
    """Finest first: more columns, then longer prefixes."""
    return sorted(tables, key=lambda table: sum(column.length or 10_000 for column in table.columns), reverse=True)


def _determines(fine: BandTable, column: ConditionColumn) -> int | None:
    """The column of a finer table that determines a column; None if there is none."""
    for at, own in enumerate(fine.columns):
        same = own.name == column.name and own.part == column.part
        if same and (own.length is None or (column.length is not None and column.length <= own.length)):
            return at
    return None


def _is_chain(tables: list[BandTable]) -> bool:
    """Whether each table determines the next, and some record in a cell of that one is in none of the finer table."""
    return all(
        fine.columns != coarse.columns and all(_determines(fine, column) is not None for column in coarse.columns)
        for fine, coarse in pairwise(tables)
    )


def _of_chain(tables: list[BandTable]) -> list[dict[str, Any]]:
    found = [_unlisted(tables)]
    for at, table in enumerate(tables):
        coarser = tables[at + 1 :]
        bands = np.stack([table.bands, *(_bands_in(table, each) for each in coarser)])
        combined, first = np.unique(bands, axis=1, return_index=True)
        for own, row in zip(combined.T.tolist(), first.tolist()):
            held = {each.key: 0 for each in tables[:at]} | {
                each.key: band for each, band in zip((table, *coarser), own)
            }
            found.append(_unlisted(tables) | _values_at(table, row, whole=at == 0) | held)
    return found


def _bands_in(fine: BandTable, coarse: BandTable) -> IntArray:
    """For each cell of a finer table, its band in a coarser one."""
    own, numbers = fine.numbers_of_cells(), []
    for number, column in enumerate(coarse.columns):
        place = _determines(fine, column)
        assert place is not None
        shown = [_shortened(value, column) for value in fine.values[place]]
        numbers.append(coarse.numbered(number, shown)[own[place]])
    return coarse.bands_at(numbers)


def _shortened(value: Cell | None, column: ConditionColumn) -> Cell | None:
    return value[: column.length] if column.length and isinstance(value, str) else value


def _values_at(table: BandTable, row: int, *, whole: bool) -> dict[str, Any]:
    """Values that put a record into a cell; a prefix is continued, unless no finer table could list it."""
    shown = {}
    for column, numbers, held in zip(table.columns, table.numbers_of_cells(), table.values):
        value = held[int(numbers[row])]
        shown[column.name] = value if whole else _continued(value, column)
    return shown


def _unlisted(tables: list[BandTable]) -> dict[str, Any]:
    """A record that no table lists."""
    return {column.name: OTHER for table in tables for column in table.columns} | {each.key: 0 for each in tables}


def _looked_up(tables: list[BandTable]) -> list[dict[str, Any]]:
    """The bands of all combinations of values that the tables tell apart; nothing where those are too many.

    A text that no table lists in full is told apart by the longest listed prefix of it, so that prefix with another letter after it
    stands for all such texts.
    """
    columns = [column for table in tables for column in table.columns]
    different = {column.name: _told_apart(tables, column.name) for column in columns}
    shape, codes = tuple(map(len, different.values())), prod(len(table.edges) for table in tables)
    if any(column.part for column in columns) or prod(shape) * len(tables) > MOST_LOOKUPS or codes >= 2**62:
        return []
    seen: dict[int, int] = {}
    for start in range(0, prod(shape), LOOKUPS_AT_ONCE):
        rows = np.arange(start, min(start + LOOKUPS_AT_ONCE, prod(shape)))
        own = dict(zip(different, np.unravel_index(rows, shape)))
        code = np.zeros(len(rows), np.int64)
        for table in tables:
            numbers = [
                _numbers(table, at, different[each.name])[own[each.name]] for at, each in enumerate(table.columns)
            ]
            code = code * len(table.edges) + table.bands_at(numbers)
        for each, first in zip(*(found.tolist() for found in np.unique(code, return_index=True))):
            seen.setdefault(each, start + first)
    found = []
    for each, row in seen.items():
        bands = np.unravel_index(each, [len(table.edges) for table in tables])
        values = zip(different.items(), np.unravel_index(row, shape))
        shown: dict[str, Any] = {name: held[int(place)] for (name, held), place in values}
        found.append(shown | {table.key: int(band) for table, band in zip(tables, bands)})
    return found


def _told_apart(tables: list[BandTable], name: str) -> list[Any]:
    """Values of a column, one for each way in which tables can tell records apart by it."""
    found: dict[Any, None] = {OTHER: None}
    for table in tables:
        for column, held in zip(table.columns, table.values):
            if column.name == name:
                found |= dict.fromkeys(_continued(value, column) for value in held)
    return list(found)


def _continued(value: Cell | None, column: ConditionColumn) -> Cell | None:
    whole = column.length is None or not isinstance(value, str) or len(value) < column.length
    return value if whole else f"{value}{OTHER}"


def _numbers(table: BandTable, at: int, values: Sequence[Any]) -> IntArray:
    return table.numbered(at, [_shortened(value, table.columns[at]) for value in values])


def _freely(tables: list[BandTable]) -> list[dict[str, Any]]:
    """Every choice of bands that some cell of each table has, whether or not a record can be in all of them."""
    options = []
    for table in tables:
        bands, first = np.unique(table.bands, return_index=True)
        shown = {band: _values_at(table, row, whole=True) for band, row in zip(bands.tolist(), first.tolist())}
        options.append([{table.key: 0}, *({table.key: band, **values} for band, values in shown.items())])
    return [_merged(tables, choice) for choice in islice(product(*options), MOST_LISTED)]


def _merged(tables: list[BandTable], choice: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found = _unlisted(tables)
    for part in choice:
        found |= part
    return found
