"""Earlier periods of a release's cells, for its page.

What was published about each cell then, with intervals. Computed from published tables alone, for the cells
that the page holds, and saved in release.json to six digits.
"""

import base64
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.plan.arrays import array_of, numpy_of
from recordwise.policy.series import Renaming
from recordwise.release.tables import ReleasedTable

if TYPE_CHECKING:
    from recordwise.release.release import Release


# Columns as few bytes: numbers as digits and a power of ten, codes as they are, each byte of all rows together. The
# bytes of one place lie side by side, so that those that hardly vary cost almost nothing once compressed.


DIGITS = 6
"""The digits of a number that is not whole. The files next to the page have every digit."""
PLANES = 10
"""Bytes of a number: seven of its digits, its sign, two of its power of ten."""
MISSING = 2
"""In the place of the sign of a number that is missing."""
SHIFT = 1024
"""Added to a power of ten, so that it is never negative."""


@dataclass(frozen=True, slots=True)
class Digits:
    """Numbers as whole numbers times powers of ten."""

    whole: np.ndarray
    power: np.ndarray
    sign: np.ndarray

    def planes(self) -> bytes:
        """The bytes of all rows."""
        return packed_codes(self.whole, 7) + packed_codes(self.sign, 1) + packed_codes(self.power + SHIFT, 2)

    def values(self) -> list[int | float | None]:
        """The numbers as the page shows them."""
        return [
            None if sign == MISSING else _number(-whole if sign else whole, power)
            for whole, power, sign in zip(self.whole.tolist(), self.power.tolist(), self.sign.tolist())
        ]

    def rows(self, indices: np.ndarray) -> "Digits":
        """Some of the numbers."""
        return Digits(self.whole[indices], self.power[indices], self.sign[indices])

    @classmethod
    def read(cls, raw: bytes, rows: int) -> "Digits":
        """What ``planes`` wrote."""
        bytes_of = np.frombuffer(raw, np.uint8, count=PLANES * rows).reshape(PLANES, rows).astype(np.int64)
        whole = sum((bytes_of[at] << (8 * at) for at in range(7)), np.zeros(rows, np.int64))
        return cls(whole, bytes_of[8] + (bytes_of[9] << 8) - SHIFT, bytes_of[7].astype(np.uint8))


def packed_codes(codes: np.ndarray, planes: int) -> bytes:
    """Return nonnegative integers as bytes, plane by plane."""
    wide = np.ascontiguousarray(codes, "<u8")
    return wide.view(np.uint8).reshape(-1, 8)[:, :planes].T.tobytes()


def packed_numbers(column: pa.Array | pa.ChunkedArray) -> Digits:
    """Return integers unchanged and other numbers to six digits."""
    whole = pa.types.is_integer(column.type)
    values = numpy_of(column)
    if whole and column.null_count == 0 and _exact(values):
        return Digits(np.abs(values).astype(np.int64), np.zeros(len(values), np.int64), (values < 0).astype(np.uint8))
    return _digits(values.astype(np.float64), whole)


def _exact(values: np.ndarray) -> bool:
    return len(values) == 0 or bool(values.max() <= 2**53 and values.min() >= -(2**53))


def _digits(values: FloatArray, whole: bool) -> Digits:
    missing, size = ~np.isfinite(values), np.abs(values)
    size[missing] = 0.0
    keep = whole & (size <= 2**53)
    small = (size < 1e-290) | keep
    power = np.floor(np.log10(np.where(small, 1.0, size))).astype(np.int64) - (DIGITS - 1)
    power[small] = 0
    digits = np.rint(size / 10.0**power)
    digits[small] = np.where(keep, size, 0.0)[small]
    more = ~keep & (digits >= 10**DIGITS)
    digits[more] /= 10
    power[more] += 1
    sign = ((values < 0) & (digits > 0)).astype(np.uint8)
    sign[missing] = MISSING
    return Digits(digits.astype(np.int64), power, sign)


def _number(whole: int, power: int) -> Any:
    """The decimal number, correctly rounded; a whole one where it is one."""
    value = float(f"{whole}e{power}")
    return int(value) if value == int(value) and abs(value) < 2**53 else value


ENDS = ("", "_low", "_high")
MOST = 1_000_000
"""The most numbers of earlier periods for one table; the largest cells come first, as on the page."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class History:
    """Earlier releases' values for a release's cells, largest cells first."""

    periods: tuple[str, ...]
    digests: tuple[str, ...]
    tables: Mapping[str, tuple[Digits, ...]]
    """For each variable and period, oldest first, the value and the ends of its interval."""
    changes: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    """How far off the change of each variable since the last period may be, where its noise was carried on (T-SERIES)."""

    def columns(self, table: ReleasedTable) -> int:
        """How many columns of numbers it has for a table."""
        return len(ENDS) * len(self.periods) * len(table.variables) if table.name in self.tables else 0

    def rows(self, table: ReleasedTable) -> int | None:
        """Return the number of a table's cells; None without any."""
        columns = self.tables.get(table.name)
        return len(columns[0].whole) if columns else None

    def periods_of(self, table: ReleasedTable) -> tuple[str, ...]:
        """The periods it has for a table."""
        return self.periods if table.name in self.tables else ()

    def past(self, table: ReleasedTable, indices: np.ndarray) -> tuple[Digits, ...]:
        """Return the columns for some rows, by position in the order."""
        return tuple(each.rows(indices) for each in self.tables.get(table.name, ()))

    def to_json(self) -> dict[str, Any]:
        """Everything, the numbers compressed."""
        tables = {
            name: {
                "rows": len(columns[0].whole) if columns else 0,
                "numbers": base64.b64encode(zlib.compress(b"".join(each.planes() for each in columns), 6)).decode(),
            }
            for name, columns in self.tables.items()
        }
        changes = {name: list(each) for name, each in self.changes.items()}
        found = {"periods": list(self.periods), "digests": list(self.digests), "tables": tables}
        return found | ({"changes": changes} if changes else {})

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> "History":
        """What ``to_json`` wrote; raises KeyError, TypeError or ValueError for anything else."""
        tables = {}
        for name, each in form["tables"].items():
            rows, raw = int(each["rows"]), zlib.decompress(base64.b64decode(each["numbers"]))
            size = PLANES * rows
            count = len(raw) // size if size else 0
            tables[str(name)] = tuple(Digits.read(raw[at * size : (at + 1) * size], rows) for at in range(count))
        return cls(
            periods=tuple(map(str, form["periods"])),
            digests=tuple(map(str, form["digests"])),
            tables=tables,
            changes={str(name): tuple(each) for name, each in form.get("changes", {}).items()},
        )


def history_of(now: "Release", earlier: Sequence["Release"]) -> History:
    """Return what earlier releases of the series say about cells."""
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
    tables, changes = {}, {}
    followed = _followed(now, earlier)
    for table in now.tables:
        if table.variables and table.keys:
            width = len(ENDS) * len(earlier) * len(table.variables)
            cells = largest_first(table, max(FIRST_ROWS, MOST // width)).select(list(table.keys))
            renamed = {} if followed is None or now.published.step is None else now.published.step.renamed
            found = [_matching(table, cells, each, renamed if each is followed else {}) for each in earlier]
            if any(each is not None for each in found):
                tables[table.name] = tuple(_columns(table, cells.num_rows, found))
                if followed is not None:
                    changes[table.name] = _reaches(now, followed, table)
    digests = tuple(each.digest for each in earlier)
    return History(periods=tuple(periods), digests=digests, tables=tables, changes=changes)


def _followed(now: "Release", earlier: Sequence["Release"]) -> "Release | None":
    """Return the last of these releases, if its noise is carried on."""
    known = bool(earlier) and now.published.follows[:1] == (earlier[-1].digest,)
    return earlier[-1] if known else None


def _reaches(now: "Release", before: "Release", table: ReleasedTable) -> tuple[float | None, ...]:
    """Return a bound on the error of the change of each variable, by the joint law of both releases."""
    from recordwise.release.change import carried_reaches

    known = next((each for each in before.tables if each.name == table.name), None)
    found = {} if known is None else carried_reaches(now, before, table, known)
    return tuple(found.get(name) for name in table.variables)


def _period(release: "Release") -> str:
    named = release.published.series.period or release.words.publication.period
    if not named:
        raise ParameterError(
            parameter="earlier",
            problem="holds a release that names no period",
            advice="State [series] or the period of the dataset in its plan.",
        )
    return str(named)


def _matching(table: ReleasedTable, cells: pa.Table, earlier: "Release", renamed: Renaming) -> pa.Table | None:
    """Return the same-named table's rows, null where not listed."""
    known = next((each for each in earlier.tables if each.name == table.name and each.keys == table.keys), None)
    if known is None or any(known.data.column(name).type != cells.column(name).type for name in table.keys):
        return None
    listed = known.data
    if renamed:
        from recordwise.release.change import renamed_cells

        listed = renamed_cells(listed, renamed)
    ours, theirs = _number_rows(cells, listed.select(list(table.keys)))
    places = pc.index_in(ours, value_set=theirs)
    return listed.take(places)


def _number_rows(first: pa.Table, second: pa.Table) -> tuple[pa.Array, pa.Array]:
    """Return each row of both as an integer, equal for equal keys."""
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
