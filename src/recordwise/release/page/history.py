"""Earlier periods of the cells of a release, for its page: what was published about each cell then, with intervals.

It is computed from published tables alone, for the cells that the page holds, and kept in release.json to six digits.
"""

import base64
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.errors import ParameterError
from recordwise.plan.arrays import array_of, numpy_of
from recordwise.release.page.packing import PLANES, Digits, packed_numbers
from recordwise.release.tables import ReleasedTable

if TYPE_CHECKING:
    from recordwise.release.release import Release

ENDS = ("", "_low", "_high")
MOST = 1_000_000
"""The most numbers of earlier periods for one table; the largest cells come first, as on the page."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class History:
    """What earlier releases say about the cells of a release, its largest cells first."""

    periods: tuple[str, ...]
    digests: tuple[str, ...]
    tables: Mapping[str, tuple[Digits, ...]]
    """For each variable and period, oldest first, the value and the ends of its interval."""

    def columns(self, table: ReleasedTable) -> int:
        """How many columns of numbers it has for a table."""
        return len(ENDS) * len(self.periods) * len(table.variables) if table.name in self.tables else 0

    def rows(self, table: ReleasedTable) -> int | None:
        """How many cells of a table it has; None if it has nothing about the table."""
        columns = self.tables.get(table.name)
        return len(columns[0].whole) if columns else None

    def shown(self, table: ReleasedTable) -> tuple[str, ...]:
        """The periods it has for a table."""
        return self.periods if table.name in self.tables else ()

    def past(self, table: ReleasedTable, places: np.ndarray) -> tuple[Digits, ...]:
        """The columns for some rows of a table, by their places in its order."""
        return tuple(each.rows(places) for each in self.tables.get(table.name, ()))

    def to_json(self) -> dict[str, Any]:
        """Everything, the numbers compressed."""
        tables = {
            name: {
                "rows": len(columns[0].whole) if columns else 0,
                "numbers": base64.b64encode(zlib.compress(b"".join(each.planes() for each in columns), 6)).decode(),
            }
            for name, columns in self.tables.items()
        }
        return {"periods": list(self.periods), "digests": list(self.digests), "tables": tables}

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> "History":
        """What ``to_json`` wrote; raises KeyError, TypeError or ValueError for anything else."""
        tables = {}
        for name, each in form["tables"].items():
            rows, raw = int(each["rows"]), zlib.decompress(base64.b64decode(each["numbers"]))
            size = PLANES * rows
            count = len(raw) // size if size else 0
            tables[str(name)] = tuple(Digits.read(raw[at * size : (at + 1) * size], rows) for at in range(count))
        return cls(periods=tuple(map(str, form["periods"])), digests=tuple(map(str, form["digests"])), tables=tables)


def history_of(now: "Release", earlier: Sequence["Release"]) -> History:
    """What earlier releases of the same series say about the cells of a release; see ``Release.with_history``."""
    from recordwise.release.page.cells import FIRST_ROWS, largest_first

    for each in (now, *earlier):
        if not each.private:
            raise ParameterError(
                parameter="earlier", problem="holds a release that is NOT PRIVATE", advice="Use private releases."
            )
    periods = [_period(each) for each in earlier]
    if len({*periods, _period(now)}) <= len(periods):
        raise ParameterError(
            parameter="earlier",
            problem="holds two releases of one period",
            advice="Give one release of each earlier period, the last revision.",
        )
    tables = {}
    for table in now.tables:
        if table.variables and table.keys:
            width = len(ENDS) * len(earlier) * len(table.variables)
            cells = largest_first(table, max(FIRST_ROWS, MOST // width)).select(list(table.keys))
            found = [_matching(table, cells, each) for each in earlier]
            if any(each is not None for each in found):
                tables[table.name] = tuple(_columns(table, cells.num_rows, found))
    return History(periods=tuple(periods), digests=tuple(each.digest for each in earlier), tables=tables)


def _period(release: "Release") -> str:
    series = release.description.get("series", {})
    named = series.get("period") or release.words.publication.period
    if not named:
        raise ParameterError(
            parameter="earlier",
            problem="holds a release that names no period",
            advice="State [series] or the period of the dataset in its plan.",
        )
    return str(named)


def _matching(table: ReleasedTable, cells: pa.Table, earlier: "Release") -> pa.Table | None:
    """The rows of the table of the same name for these cells, null where a cell was not listed."""
    known = next((each for each in earlier.tables if each.name == table.name and each.keys == table.keys), None)
    if known is None or any(known.data.column(name).type != cells.column(name).type for name in table.keys):
        return None
    ours, theirs = _numbered(cells, known.data.select(list(table.keys)))
    places = pc.index_in(ours, value_set=theirs)
    return known.data.take(places)


def _numbered(first: pa.Table, second: pa.Table) -> tuple[pa.Array, pa.Array]:
    """Each row of both as one whole number, the same for the same keys."""
    together = pa.concat_tables([first, second])
    codes = np.zeros(together.num_rows, np.int64)
    for name in first.column_names:
        found = pc.dictionary_encode(together.column(name).combine_chunks(), null_encoding="encode")
        place = codes * len(found.dictionary) + numpy_of(found.indices)
        # Renumbered after every key, so that no product of many keys wraps.
        codes = np.unique(place, return_inverse=True)[1].reshape(-1)
    return array_of(codes[: first.num_rows]), array_of(codes[first.num_rows :])


def _columns(table: ReleasedTable, rows: int, found: Sequence[pa.Table | None]) -> list[Digits]:
    nothing = packed_numbers(pa.nulls(rows, pa.float64()))
    return [
        nothing if each is None or name + end not in each.column_names else packed_numbers(each.column(name + end))
        for name in table.variables
        for each in found
        for end in ENDS
    ]
