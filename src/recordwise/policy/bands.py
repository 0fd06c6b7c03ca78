"""Public tables of the size band of each cell (T-SIZE).

A policy has one term for each band, whatever the number of cells, and names the table by its digest. A
record whose cell is not listed counts in the lowest band, where noise is smallest and the loss largest.
"""

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

import numpy as np

from recordwise.errors import ParameterError, UnknownFormError
from recordwise.exact.numbers import fraction_text, read_fraction
from recordwise.policy.columns import (
    Cell,
    ConditionColumn,
    Value,
    cell,
    column_from_json,
    literal,
    value_json,
    value_key,
)

IntArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
Values: TypeAlias = tuple[Value | None, ...]

MOST_BANDS = 31
MOST_PLACES = 2**52
"""Combinations of values that a float can number, so that a page can look a cell up."""
GAPS = 8
"""A packed byte holds a band and a gap below this to the cell before; longer gaps follow in a list of their own."""


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False, repr=False)
class BandTable:
    """The band of each listed cell, with equality by digest.

    Args:
        columns: What a record's cell is read from.
        edges: The least size of each band, increasing. The first is the floor: smaller and unknown sizes count as it.
        values: The values of each column, sorted, NULL last.
        places: The number of each listed cell, increasing: its values are the digits, the last column the lowest digit.
        bands: The band of each listed cell.
        level: The columns of the published cells, where records do not hold them: words for readers, no part of the digest.
    """

    columns: tuple[ConditionColumn, ...]
    edges: tuple[Fraction, ...]
    values: tuple[Values, ...]
    places: IntArray
    bands: IntArray
    level: tuple[str, ...] = ()
    digest: str = ""
    _numbers: list[dict[Value | None, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if len(self.values) != len(self.columns) or len(self.places) != len(self.bands):
            raise ParameterError(parameter="bands", problem="need values for each column and a band for each cell")
        if not self.columns and len(self.edges) != 1:
            raise ParameterError(parameter="bands", problem="need a column, unless all records are in the same one")
        if not 1 <= len(self.edges) <= MOST_BANDS or any(a >= b for a, b in zip(self.edges, self.edges[1:])):
            raise ParameterError(parameter="bands", problem=f"must be 1 to {MOST_BANDS}, with increasing edges")
        if self.size() > MOST_PLACES:
            raise ParameterError(parameter="bands", problem="are for too many combinations of values")
        inside = not len(self.bands) or (self.bands.min() >= 0 and self.bands.max() < len(self.edges))
        sorted_places = bool(np.all(np.diff(self.places) > 0))
        if (
            not inside
            or not sorted_places
            or (len(self.places) and not 0 <= self.places[0] <= self.places[-1] < self.size())
        ):
            raise ParameterError(parameter="bands", problem="must be listed once for each cell, each with an edge")
        object.__setattr__(self, "digest", self._digest())
        self._numbers.extend({value: place for place, value in enumerate(held)} for held in self.values)

    @classmethod
    def of(
        cls,
        columns: Sequence[ConditionColumn],
        edges: Sequence[Fraction],
        cells: Sequence[tuple[Sequence[Any], IntArray]],
        bands: IntArray,
        level: Sequence[str] = (),
    ) -> "BandTable":
        """Build a table from the distinct values of each column.

        Args:
            columns: What a record's cell is read from.
            edges: The least size of each band.
            cells: For each column the distinct values, and the place of each cell's value.
            bands: The band of each cell.
            level: The columns of the published cells, where records do not hold them.

        Returns:
            The table.
        """
        values, places = [], np.zeros(len(bands), np.int64)
        for given, own in cells:
            plain = [None if value is None else literal(value) for value in given]
            order = sorted(range(len(plain)), key=lambda at: _key(plain[at]))
            rank = np.empty(len(plain), np.int64)
            rank[order] = np.arange(len(plain))
            values.append(tuple(plain[at] for at in order))
            places = places * max(1, len(plain)) + rank[own]
        order_of_cells = np.argsort(places, kind="stable")
        return cls(
            tuple(columns),
            tuple(edges),
            tuple(values),
            places[order_of_cells],
            np.asarray(bands, np.int64)[order_of_cells],
            tuple(level),
        )

    def size(self) -> int:
        """The number of combinations of values."""
        total = 1
        for held in self.values:
            total *= max(1, len(held))
        return total

    def _digest(self) -> str:
        made = hashlib.sha256(json.dumps(self._head(), sort_keys=True).encode())
        made.update(self.places.astype("<i8").tobytes())
        made.update(self.bands.astype("<i8").tobytes())
        return made.hexdigest()

    def _head(self) -> dict[str, Any]:
        return {
            "columns": [column.to_json() for column in self.columns],
            "edges": [fraction_text(edge) for edge in self.edges],
            "values": [
                list(held) if _only_texts(held) else [None if value is None else value_json(value) for value in held]
                for held in self.values
            ],
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BandTable) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __deepcopy__(self, memo: dict[int, Any]) -> "BandTable":
        """Return the table itself, which is immutable and copied often."""
        return self

    def __repr__(self) -> str:
        names = " x ".join(column.name for column in self.columns)
        return f"<BandTable: {len(self.bands):,} cells of {names} in {len(self.edges)} bands, {self.digest[:12]}>"

    @property
    def key(self) -> str:
        """The name under which evaluators hold the band of a record."""
        return f"band_{self.digest[:16]}"

    def value_numbers(self, column: int, values: Sequence[Cell | None]) -> IntArray:
        """Return the number of each value of a column, -1 if unlisted."""
        known = self._numbers[column]
        return np.fromiter((_number(known, value) for value in values), np.int64, len(values))

    def bands_at(self, numbers: Sequence[IntArray]) -> IntArray:
        """Return the bands of rows, the lowest where not listed."""
        place, known = np.zeros(len(numbers[0]), np.int64), np.ones(len(numbers[0]), np.bool_)
        for own, held in zip(numbers, self.values):
            place, known = place * max(1, len(held)) + own, known & (own >= 0)
        if not len(self.places):
            return np.zeros(len(place), np.int64)
        at = np.minimum(np.searchsorted(self.places, place), len(self.places) - 1)
        return np.where(known & (self.places[at] == place), self.bands[at], 0)

    def band_of(self, record: Mapping[str, Cell | None]) -> int:
        """The band of one record, whose columns are in canonical form."""
        shown = [cell(dict(record), column) for column in self.columns]
        return int(self.bands_at([self.value_numbers(at, [value]) for at, value in enumerate(shown)])[0])

    def strides(self) -> list[int]:
        """Return the distance between neighboring cells for each column."""
        found = [1]
        for held in self.values[:0:-1]:
            found.append(found[-1] * max(1, len(held)))
        return found[::-1][: len(self.values)]

    def numbers_of_cells(self) -> list[IntArray]:
        """For each column, the number of the value of each listed cell."""
        found, rest = [], self.places
        for held in reversed(self.values):
            found.append(rest % max(1, len(held)))
            rest = rest // max(1, len(held))
        return found[::-1]

    def to_json(self) -> dict[str, Any]:
        """The saved form, compressed."""
        cells, gaps = self.pack()
        said = {"level": list(self.level)} if self.level else {}
        return self._head() | {"digest": self.digest, "cells": _text(cells), "gaps": _text(gaps)} | said

    @classmethod
    def from_json(cls, form: Any) -> "BandTable":
        """Read back what ``to_json`` wrote, and check its digest.

        Args:
            form: The saved form.

        Returns:
            The table.

        Raises:
            UnknownFormError: The form is not one this version knows, or it was changed.
        """
        try:
            saved = json.dumps(form)
        except (TypeError, ValueError, RecursionError):
            # No text of a file: what is wrong with it is found below.
            return cls._checked(form)
        found = _KNOWN.get(saved)
        if found is None:
            found = _KNOWN[saved] = cls._checked(form)
        return found

    @classmethod
    def _checked(cls, form: Any) -> "BandTable":
        try:
            bands, places = unpack(_bytes(form["cells"]), _bytes(form["gaps"]))
            values = tuple(tuple(held) if _only_texts(held) else tuple(map(_value, held)) for held in form["values"])
            edges = tuple(read_fraction(edge) for edge in form["edges"])
            columns, level = tuple(map(column_from_json, form["columns"])), tuple(map(str, form.get("level", ())))
            table = cls(columns, edges, values, places, bands, level)
        except (LookupError, TypeError, ValueError, zlib.error, ParameterError):
            raise UnknownFormError(what="band table", found=type(form).__name__) from None
        if table.digest != form.get("digest"):
            raise UnknownFormError(what="band table", found="one that was changed since it was saved")
        return table

    def pack(self) -> tuple[bytes, bytes]:
        """Return the cells packed into one byte each, and long gaps.

        A byte holds the band and the gap to the previous cell; longer gaps use seven bits a byte.
        """
        gaps = np.diff(self.places, prepend=-1) - 1
        cells = (self.bands * GAPS + np.minimum(gaps, GAPS - 1)).astype(np.uint8)
        return cells.tobytes(), _varints(gaps[gaps >= GAPS - 1] - (GAPS - 1))


_KNOWN: WeakValueDictionary[str, BandTable] = WeakValueDictionary()
"""Tables in use by their saved form: the policy, the series and the page of a release repeat the same few."""


def unpack(cells: bytes, gaps: bytes) -> tuple[IntArray, IntArray]:
    """The bands and places that ``packed`` packed."""
    held = np.frombuffer(cells, np.uint8).astype(np.int64)
    steps = held % GAPS
    long = np.flatnonzero(steps == GAPS - 1)
    steps[long] += _from_varints(gaps)
    return held // GAPS, np.cumsum(steps + 1) - 1


def _varints(numbers: IntArray) -> bytes:
    """Encode whole numbers as variable-length integers, lowest seven bits first."""
    count = np.ones(len(numbers), np.int64)
    for bits in range(7, 63, 7):
        count += numbers >= (1 << bits)
    ends = np.cumsum(count)
    found = np.zeros(int(ends[-1]) if len(ends) else 0, np.uint8)
    for byte in range(int(count.max()) if len(count) else 0):
        own = np.flatnonzero(count > byte)
        more = np.where(count[own] > byte + 1, 128, 0)
        found[ends[own] - count[own] + byte] = ((numbers[own] >> (7 * byte)) & 127) + more
    return found.tobytes()


def _from_varints(text: bytes) -> IntArray:
    held = np.frombuffer(text, np.uint8).astype(np.int64)
    last = held < 128
    number = np.concatenate([[0], np.cumsum(last)])[:-1]
    starts = np.flatnonzero(np.concatenate([[True], last[:-1]])) if len(held) else np.zeros(0, np.int64)
    shift = 7 * (np.arange(len(held)) - starts[number]) if len(held) else held
    found = np.zeros(int(last.sum()), np.int64)
    np.add.at(found, number, (held & 127) << shift)
    return found


def _text(packed: bytes) -> str:
    return base64.b64encode(zlib.compress(packed, 9)).decode()


def _bytes(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text, validate=True))


def _only_texts(values: Sequence[Any]) -> bool:
    """Whether all values are texts, which are their own saved form."""
    return set(map(type, values)) <= {str}


def _value(form: Any) -> Value | None:
    return None if form is None else literal(read_fraction(form["number"]) if isinstance(form, Mapping) else form)


def _key(value: Value | None) -> tuple[bool, Any]:
    return (value is None, None if value is None else value_key(value))


def _number(known: Mapping[Value | None, int], value: Cell | None) -> int:
    return known.get(value, -1)  # type: ignore[arg-type]
