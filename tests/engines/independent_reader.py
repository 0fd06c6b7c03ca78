"""A second reader of record files that shares nothing with recordwise: pyarrow, Python's csv, sqlite3, and exact fractions.

It is strict. Each part is read with the types of its own file and each value by the declared type of its column, by the grammar
below; whatever could be read in two ways is ``Refused``. ``Reader`` has a method for each decision, so that a test can plant a
lenient one.
"""

import csv
import gzip
import io
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

NUMBER = re.compile(r" *[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)? *")
WHOLE = re.compile(r" *[+-]?[0-9]+ *")
DAY = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?)?")
TRUTH = {"t": True, "true": True, "y": True, "yes": True, "1": True}
TRUTH |= {"f": False, "false": False, "n": False, "no": False, "0": False}
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


class Refused(Exception):  # noqa: N818
    """The files are no table of the declared types."""


@dataclass(frozen=True)
class Declared:
    """What is declared about a column; the id is declared by its name alone."""

    name: str
    role: str
    """``id``, ``measure``, ``text``, ``integer``, ``boolean`` or ``date``."""
    step: Fraction = Fraction(1)
    bound: Fraction = Fraction(2**53)
    null: bool = False
    """Whether a missing value is allowed: 0 for a measure, one more category elsewhere."""
    signed: bool = False


@dataclass(frozen=True)
class Files:
    """Where a table lies: the kind of its files, and how CSV is written."""

    kind: str
    """``parquet``, ``hive``, ``csv``, ``arrow`` or ``sqlite``."""
    place: Path
    paths: tuple[Path, ...] = ()
    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    table: str = "firms"


@dataclass(frozen=True)
class Part:
    """The declared columns of a file, as found: each value a kind and a Python value, or None."""

    columns: dict[str, list[Any]] = field(default_factory=dict)


def decoded(values: pa.ChunkedArray) -> list[Any]:
    """The values of an Arrow column with their kind; times count from 1970 in whole units, so that no zone comes in."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return decoded(values.cast(kind.value_type))
    if pa.types.is_timestamp(kind):
        numbers = values.cast(pa.int64()).to_pylist()
        per_day = 86400 * UNITS[kind.unit]
        found = [None if each is None else (each // per_day, each % per_day) for each in numbers]
        name = "day" if kind.tz is None else "zoned"
        return [None if each is None else (name, each) for each in found]
    if pa.types.is_date(kind):
        days = values.cast(pa.date32()).cast(pa.int32()).to_pylist()
        return [None if each is None else ("day", (each, 0)) for each in days]
    try:
        plain = values.to_pylist()
    except (UnicodeDecodeError, pa.ArrowException):
        raise Refused("text that is none") from None
    return [None if each is None else (kind_of(each), each) for each in plain]


def kind_of(value: Any) -> str:
    kinds = {bool: "boolean", int: "whole", float: "float", Decimal: "decimal", str: "text"}
    return kinds.get(type(value), "other")


class Reader:
    """Reads a table strictly; ``records`` is the only method to call."""

    def records(self, files: Files, declared: tuple[Declared, ...]) -> list[dict[str, Any]]:
        """One dictionary a record: measures in whole steps, dates as days."""
        parts = list(getattr(self, f"_{files.kind}")(files, [each.name for each in declared]))
        found: dict[str, list[Any]] = {}
        for each in declared:
            values = [value for part in parts for value in part.columns[each.name]]
            if each.role == "id":
                found[each.name] = self.ids(values)
            else:
                read = getattr(self, each.role)
                found[each.name] = [self._value(each, value, read, files) for value in values]
        return [dict(zip(found, row)) for row in zip(*found.values())]

    def _value(self, declared: Declared, value: Any, read: Any, files: Files) -> Any:
        if value is None:
            if not declared.null:
                raise Refused("a missing value")
            return 0 if declared.role == "measure" else None
        return read(declared, *value, files)

    # Values by declared type.

    def ids(self, values: list[Any]) -> list[Any]:
        """Every id must be there and differ from all others; where numbers and text meet, '1', 1 and 1.0 are one."""
        if any(value is None for value in values):
            raise Refused("no id")
        texts = all(kind == "text" for kind, _ in values)
        found = [("text", value) if texts else self.identity(kind, value) for kind, value in values]
        if len(set(found)) < len(found):
            raise Refused("an id twice")
        return found

    def identity(self, kind: str, value: Any) -> tuple[str, Any]:
        if kind in ("whole", "decimal") or (kind == "float" and value == value and abs(value) != float("inf")):
            return "number", Fraction(value)
        if kind == "text" and NUMBER.fullmatch(value):
            return "number", Fraction(value.strip(" "))
        return kind, str(value)

    def measure(self, declared: Declared, kind: str, value: Any, files: Files) -> int:
        if kind == "text":
            steps = self.steps_of_text(declared, value, files)
        elif kind == "float":
            steps = self.steps_of_float(declared, value)
        elif kind in ("whole", "decimal"):
            steps = self.steps(Fraction(value), declared.step)
        else:
            raise Refused("no number")
        if abs(steps) * declared.step > declared.bound or (steps < 0 and not declared.signed):
            raise Refused("out of bounds")
        return steps

    def steps(self, value: Fraction, step: Fraction) -> int:
        if (value / step).denominator != 1:
            raise Refused("off the lattice")
        return int(value / step)

    def steps_of_float(self, declared: Declared, value: float) -> int:
        """The lattice point whose nearest float it is."""
        if value != value or abs(value) == float("inf"):
            raise Refused("no finite number")
        steps = round(Fraction(value) / declared.step)
        if float(steps * declared.step) != value:
            raise Refused("off the lattice")
        return steps

    def steps_of_text(self, declared: Declared, text: str, files: Files) -> int:
        """The float nearest to the number that is written; beyond what floats tell apart there is none."""
        if files.decimal == ",":
            if "." in text:
                raise Refused("a point where commas are")
            text = text.replace(",", ".")
        if not NUMBER.fullmatch(text):
            raise Refused("no number")
        steps = self.steps_of_float(declared, float(text))
        whole = declared.step.denominator == 1
        if abs(steps) * declared.step.numerator >= 2**53 or (not whole and abs(steps) > 2**50):
            raise Refused("more digits than a float holds")
        return steps

    def integer(self, declared: Declared, kind: str, value: Any, files: Files) -> int:
        if kind == "text":
            if not WHOLE.fullmatch(value) or len(value.strip(" ")) > 4000:
                raise Refused("no whole number")
            found = Fraction(int(value.strip(" ")))
        elif kind in ("whole", "decimal") or (kind == "float" and value == value and abs(value) != float("inf")):
            found = Fraction(value)
        else:
            raise Refused("no whole number")
        if found.denominator != 1 or not -(2**63) <= found < 2**63:
            raise Refused("no whole number of 64 bits")
        return int(found)

    def text(self, declared: Declared, kind: str, value: Any, files: Files) -> str:
        if kind != "text":
            raise Refused("no text")
        return str(value)

    def boolean(self, declared: Declared, kind: str, value: Any, files: Files) -> bool:
        if files.kind == "sqlite" and kind == "whole":
            kind, value = "text", str(value)
        if kind == "text" and value.isascii() and value.lower() in TRUTH:
            return TRUTH[value.lower()]
        if kind != "boolean":
            raise Refused("no truth value")
        return bool(value)

    def date(self, declared: Declared, kind: str, value: Any, files: Files) -> date:
        try:
            if kind == "text" and (found := DAY.fullmatch(value)) and value.isascii():
                return date(*map(int, found.group(1, 2, 3)))
            if kind == "day":
                return date(1970, 1, 1) + timedelta(days=value[0])
        except (ValueError, OverflowError):
            raise Refused("no day") from None
        raise Refused("no day")

    # Files by kind.

    def _arrow_part(self, table: pa.Table, names: list[str], given: dict[str, str | None] | None = None) -> Part:
        """Names are looked for whatever their case, and each must be there once."""
        given = given or {}
        here = [*table.column_names, *given]
        folded = [name.casefold() for name in here]
        if any(folded.count(name.casefold()) != 1 for name in names):
            raise Refused("a column is missing, or there twice")
        found = {}
        for name in names:
            own = folded.index(name.casefold())
            if own < table.num_columns:
                found[name] = decoded(table.column(own))
            else:
                text = given[here[own]]
                found[name] = [None if text is None else ("text", text)] * table.num_rows
        return Part(found)

    def _parquet(self, files: Files, names: list[str]) -> Iterator[Part]:
        for path in files.paths:
            yield self._arrow_part(pq.ParquetFile(path).read(), names)

    def _hive(self, files: Files, names: list[str]) -> Iterator[Part]:
        """Columns in the names of folders, the same in all of them."""
        paths = sorted(path for path in files.place.rglob("*.parquet") if path.is_file())
        stated = [self.folders(path.relative_to(files.place)) for path in paths]
        if len({tuple(each) for each in stated}) > 1:
            raise Refused("folders state different columns")
        for path, given in zip(paths, stated):
            yield self._arrow_part(pq.ParquetFile(path).read(), names, given)

    def folders(self, path: Path) -> dict[str, str | None]:
        pairs = [part.split("=", 1) for part in path.parts[:-1] if "=" in part]
        if len({key for key, _ in pairs}) < len(pairs) or any(not value for _, value in pairs):
            raise Refused("a folder that states a column twice, or no value")
        return {key: None if value == NO_VALUE else unquote(value, errors="strict") for key, value in pairs}

    def _arrow(self, files: Files, names: list[str]) -> Iterator[Part]:
        for path in files.paths:
            with pa.ipc.open_file(str(path)) as reader:
                yield self._arrow_part(reader.read_all(), names)

    def _csv(self, files: Files, names: list[str]) -> Iterator[Part]:
        headers = set()
        for path in files.paths:
            lines = csv.reader(
                io.StringIO(self.csv_text(path, files), newline=""), delimiter=files.delimiter, strict=True
            )
            try:
                header, *rows = [row for number, row in enumerate(lines) if row or not number]
            except (csv.Error, ValueError):
                raise Refused("no CSV") from None
            headers.add(tuple(header))
            # Blanks around a name do not count, unless it is declared with them.
            header = [name if name in names else name.strip() for name in header]
            folded = [name.casefold() for name in header]
            if len(headers) > 1 or len(set(folded)) < len(folded) or not set(names) <= set(header):
                raise Refused("another header")
            if any(len(row) != len(header) for row in rows):
                raise Refused("a ragged line")
            places = {name: header.index(name) for name in names}
            yield Part(
                {name: [self.csv_value(row[place]) for row in rows] for name, place in places.items()},
            )

    def csv_text(self, path: Path, files: Files) -> str:
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix == ".gz" else content
        try:
            return content.decode("utf-8-sig" if files.encoding == "utf-8" else files.encoding)
        except UnicodeError:
            raise Refused("bytes that are no text") from None

    def csv_value(self, text: str) -> Any:
        return ("text", text) if text else None

    def _sqlite(self, files: Files, names: list[str]) -> Iterator[Part]:
        with closing(sqlite3.connect(files.place / "firms.db")) as connection:
            here = [row[1] for row in connection.execute(f"PRAGMA table_xinfo({files.table})")]
            if not set(names) <= set(here):
                raise Refused("a column is missing")
            listed = ", ".join(f'"{name}"' for name in names)
            try:
                rows = connection.execute(f"SELECT {listed} FROM {files.table}").fetchall()
            except sqlite3.OperationalError:
                raise Refused("text that is none") from None
        yield Part(
            {
                name: [None if row[place] is None else (kind_of(row[place]), row[place]) for row in rows]
                for place, name in enumerate(names)
            }
        )
