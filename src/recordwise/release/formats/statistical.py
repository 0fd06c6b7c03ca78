"""Files for statistical packages: SAS transport, Stata, and functions for R.

SAS transport is XPORT, versions 5 and 8; pyreadstat writes all of them. Columns get the titles of the
dictionary as labels. Truth values become 0 and 1. XPORT 5 has names of 8 characters, so longer ones are
shortened; the label of such a column starts with its name.
"""

import hashlib
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from recordwise.release.content import Content, DescribedTable
from recordwise.release.formats.format import type_problem
from recordwise.release.tables import NAME, NOT_PRIVATE, PRIVATE

START = "NOT PRIVATE"


class Statistical:
    """A pyreadstat format: name, extension and limits."""

    whole = False
    needs = ("pyreadstat", "pandas")

    def __init__(self, name: str, extension: str, description: str, *, longest: int, label: int, text: int) -> None:
        self.name, self.extension, self.description = name, extension, description
        self._longest, self._label, self._text = longest, label, text

    def problem(self, content: Content) -> str | None:
        problem = type_problem(content)
        if problem is not None:
            return problem
        for table in content.tables:
            for field, column in zip(table.data.schema, table.data.columns):
                # Names that are too long are cut, codes never.
                if field.name not in (*table.table.keys, *table.table.variables) and field.name.endswith(NAME):
                    continue
                if pa.types.is_string(field.type) and _longest(column) > self._text:
                    return f"cannot store column '{field.name}': its text is longer than {self._text} bytes"
        return None

    def write(self, content: Content, path: Path) -> None:
        table = content.table
        names = short_names(table.data.column_names, self._longest)
        labels = [
            cut_bytes(entry.title if name == entry.name else f"{entry.name}: {entry.title}", self._label)
            for name, entry in zip(names, table.columns)
        ]
        frame = _frame(table.data, names, self._text)
        said = content.privacy_label if not content.private else table.title
        self._write(frame, str(path), labels, said)

    def _write(self, frame: Any, path: str, labels: list[str], said: str) -> None:
        import pyreadstat

        match self.name:
            case "stata":
                pyreadstat.write_dta(frame, path, file_label=cut_bytes(said, 80), column_labels=labels, version=15)
            case _:
                version = 5 if self._longest == 8 else 8
                name = "TABLE"
                pyreadstat.write_xport(
                    frame,
                    path,
                    file_label=cut_bytes(said, 40),
                    column_labels=labels,
                    table_name=name,
                    file_format_version=version,
                )

    def privacy_label(self, path: Path) -> str:
        _, found = self._read(path, only_metadata=True)
        return NOT_PRIVATE if (found.file_label or "").startswith(START) else PRIVATE

    def _read(self, path: Path, *, only_metadata: bool) -> tuple[Any, Any]:
        import pyreadstat

        read = pyreadstat.read_dta if self.name == "stata" else pyreadstat.read_xport
        found: tuple[Any, Any] = read(str(path), metadataonly=only_metadata)
        return found

    def same(self, content: Content, path: Path) -> bool:
        """Return whether the file has these values, empty text being missing."""
        data = content.table.data
        found, _ = self._read(path, only_metadata=False)
        names = short_names(data.column_names, self._longest)
        if list(found.columns) != names or len(found) != data.num_rows:
            return False
        wanted = _frame(data, names, self._text)
        return all(_equal(wanted[name].to_numpy(), found[name].to_numpy()) for name in names)


def _frame(data: pa.Table, names: list[str], longest: int) -> Any:
    """Return a pandas frame of floats and short text."""
    import pandas

    columns: dict[str, Any] = {}
    for name, column in zip(names, data.columns):
        if pa.types.is_string(column.type):
            texts = column.fill_null("")
            cut = _longest(texts) > longest
            columns[name] = np.array([cut_bytes(t, longest) if cut else t for t in texts.to_pylist()], dtype=object)
        else:
            numbers = np.asarray(column.cast(pa.float64()).to_numpy(), np.float64)
            columns[name] = np.where(np.isfinite(numbers), numbers, np.nan)
    return pandas.DataFrame(columns)


def _equal(wanted: Any, found: Any) -> bool:
    if wanted.dtype.kind == "f":
        return bool(np.array_equal(wanted, np.asarray(found, np.float64), equal_nan=True))
    return [str(text).rstrip(" ") for text in wanted] == [str(text).rstrip(" ") for text in found]


def _longest(column: pa.ChunkedArray) -> int:
    import pyarrow.compute as pc

    return int(pc.max(pc.binary_length(column)).as_py() or 0)


def cut_bytes(text: str, most: int) -> str:
    """The start of a text, of at most this many bytes."""
    return text.encode()[:most].decode(errors="ignore")


def short_names(names: list[str], longest: int) -> list[str]:
    """Return short, distinct names of letters, digits and _."""
    taken: set[str] = set()
    found = []
    for name in names:
        plain = "".join(letter if letter.isascii() and (letter.isalnum() or letter == "_") else "_" for letter in name)
        plain = plain if plain[:1].isalpha() or plain[:1] == "_" else f"_{plain}"
        short, number = plain[:longest], 1
        while short.casefold() in taken:
            number += 1
            short = f"{plain[: longest - len(str(number))]}{number}"
        taken.add(short.casefold())
        found.append(short)
    return found


# Functions for R next to the CSV files, with what they need to know about the tables: R reads no JSON by itself.


LABEL = "# Privacy: "


class RFunctions:
    """One file of functions in base R: totals, growth, regressions."""

    name = "r"
    extension = "R"
    file = "recordwise.R"
    description = "totals, growth and regressions with their errors, for R; it reads the CSV files"
    whole = True
    needs = ()
    reads = "csv"

    def problem(self, content: Content) -> str | None:
        return type_problem(content)

    def write(self, content: Content, path: Path) -> None:
        path.write_text(_r_file(content), encoding="utf-8")

    def privacy_label(self, path: Path) -> str:
        lines = path.read_text(encoding="utf-8").splitlines()
        return next((line.removeprefix(LABEL) for line in lines if line.startswith(LABEL)), "")

    def same(self, content: Content, path: Path) -> bool:
        """Return whether the file has this content; its functions may be those of an earlier version."""
        written = path.read_bytes().decode("utf-8").replace("\r\n", "\n")
        for place, piece in zip(PLACES_IN_R, _r_pieces(content)):
            before, found, after = written.partition(f"\n{piece}\n")
            if not found:
                return False
            written = f"{before}\n{place}\n{after}"
        return hashlib.sha256(written.encode()).hexdigest() in R_DIGESTS


PLACES_IN_R = ("# ABOUT", "# TABLES")
R_DIGESTS = ("f05bdf969cde6539ac4b222d06f8484af30f8e43e5f218045021bb82a8f70388",)
"""The digests of the functions of this version and of those that were published before."""


def _r_file(content: Content) -> str:
    text = files("recordwise.release.formats").joinpath("recordwise.R").read_text(encoding="utf-8")
    # Titles and codes are put in at once, so that none is taken for a place of the other.
    pieces = dict(zip(PLACES_IN_R, _r_pieces(content)))
    return re.sub("^(# ABOUT|# TABLES)$", lambda found: pieces[found[0]], text, flags=re.MULTILINE)


def _r_pieces(content: Content) -> tuple[str, str]:
    """What the file says about this release: its title and label, and its tables."""
    tables = ",\n".join(f"  {_r_text(each.name)} = {_r_table(each)}" for each in content.tables)
    title = content.title.replace("\n", " ").replace("\r", " ")
    about = f"# {title}\n{LABEL}{content.privacy_label}"
    known = f"rw_release$confidence <- {content.confidence!r}\nrw_release$tables <- list(\n{tables}\n)"
    return about, known


def _r_table(table: DescribedTable) -> str:
    texts = [field.name for field in table.data.schema if pa.types.is_string(field.type)]
    # Its intervals are those of normal errors.
    normal = {name: half for name, half in table.halves.items() if name not in table.reaches}
    halves = ", ".join(f"{_r_text(name)} = {half!r}" for name, half in normal.items())
    return (
        f"list(keys = {_r_texts(table.table.keys)}, texts = {_r_texts(texts)}, rows = {table.data.num_rows}, "
        f"halves = list({halves}))"
    )


def _r_texts(texts: Sequence[str]) -> str:
    return f"c({', '.join(map(_r_text, texts))})" if texts else "character(0)"


def _r_text(text: str) -> str:
    """A text in quotes, as R reads it: letters beyond 16 bits have eight digits, and none is 0."""
    return '"' + "".join(_r_letter(letter) for letter in text) + '"'


def _r_letter(letter: str) -> str:
    number = ord(letter)
    if letter in '"\\':
        return f"\\{letter}"
    return letter if 31 < number < 127 else "" if not number else f"\\U{{{number:08x}}}"


SAS = Statistical(
    "sas", "xpt", "the whole table, for SAS (XPORT 5, names of 8 characters)", longest=8, label=40, text=200
)
SAS8 = Statistical("sas8", "v8xpt", "the whole table, for SAS (XPORT 8)", longest=32, label=256, text=32767)
R = RFunctions()
STATA = Statistical("stata", "dta", "the whole table, for Stata", longest=32, label=80, text=2045)
