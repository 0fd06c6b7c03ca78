"""The combinations of bands that records can be in, one axis for all band tables of a comparison (T-SIZE, T-REGIONS).

Tables whose columns determine those of the next coarser one are a chain, as the levels of a code are: a record is listed in some
finest of them, whose cell determines its bands in the coarser ones, and it is in the lowest band of the finer ones. So the cells of
each table, with their bands in all coarser ones, are all combinations. Tables that are no chain are combined freely, which lists
more than can occur; a counterexample is then confirmed by its own columns.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np

from recordwise.policy.bands import BandTable, IntArray
from recordwise.policy.condition_columns import ConditionColumn
from recordwise.policy.literals import Cell

OTHER = "\u2022"
"""A letter that continues a prefix to a text that no finer table lists."""


def combinations(tables: Sequence[BandTable]) -> list[dict[str, Any]]:
    """What records can show: the band in each table by its key, and a value of each column for a readable counterexample."""
    found: list[list[dict[str, Any]]] = []
    for group in _connected(tables):
        found.append(_of_chain(group) if (group := _ordered(group)) and _is_chain(group) else _freely(group))
    return [{name: value for part in choice for name, value in part.items()} for choice in product(*found)]


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
    return all(_determines(fine, column) is not None for fine, coarse in pairwise(tables) for column in coarse.columns)


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
        continued = column.length is not None and isinstance(value, str) and len(value) == column.length and not whole
        shown[column.name] = f"{value}{OTHER}" if continued else value
    return shown


def _unlisted(tables: list[BandTable]) -> dict[str, Any]:
    """A record that no table lists."""
    return {column.name: OTHER for table in tables for column in table.columns} | {each.key: 0 for each in tables}


def _freely(tables: list[BandTable]) -> list[dict[str, Any]]:
    """Every choice of bands that some cell of each table has, whether or not a record can be in all of them."""
    options = []
    for table in tables:
        bands, first = np.unique(table.bands, return_index=True)
        shown = {band: _values_at(table, row, whole=True) for band, row in zip(bands.tolist(), first.tolist())}
        options.append([{table.key: 0}, *({table.key: band, **values} for band, values in shown.items())])
    return [_merged(tables, choice) for choice in product(*options)]


def _merged(tables: list[BandTable], choice: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found = _unlisted(tables)
    for part in choice:
        found |= part
    return found
