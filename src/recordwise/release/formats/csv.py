"""CSV files that are safe to open in a spreadsheet: no text in them is run as a formula.

Text that a spreadsheet would treat as a formula is prefixed with an apostrophe. So is text that already begins with one, so that
reading can remove it again. Column names are treated in the same way; numbers are unchanged.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.exact.text import FORMULA
from recordwise.plan.arrays import texts_of
from recordwise.release.content import Content
from recordwise.release.formats.digits import meaningful, whole_numbers
from recordwise.release.formats.format import type_problem
from recordwise.release.formats.pieces import csv_bytes, first_bytes, slices, write_pieces
from recordwise.release.tables import PRIVATE, ReleasedTable

HARMLESS = np.array([chr(byte).isascii() and chr(byte).isalnum() for byte in range(256)])
"""The bytes that may begin a text which no spreadsheet runs."""


class Csv:
    """Text with a header line, below a comment with the privacy label unless the release is private.

    Numbers have the digits that mean something; the Parquet file beside it has all of them.
    """

    name = "csv"
    extension = "csv"
    description = "the whole table, as text"
    whole = False
    needs = ()

    def problem(self, content: Content) -> str | None:
        return type_problem(content)

    def write(self, content: Content, path: Path) -> None:
        table = content.table.table
        with path.open("wb") as file:
            if not content.private:
                file.write(f"# {content.privacy_label}\n".encode())
            file.write(csv_bytes(without_formulas(table.data.slice(0, 0)), header=True))
            write_pieces(slices(table.data), file, lambda piece: _text(table, piece))

    def privacy_label(self, path: Path) -> str:
        """The comment above the header, if any. A header is quoted and cannot be mistaken for a comment."""
        with path.open("rb") as file:
            first = file.readline().decode(errors="replace")
        return first.removeprefix("# ").removesuffix("\n") if first.startswith("# ") else PRIVATE

    def same(self, content: Content, path: Path) -> bool:
        """Whether a file contains exactly this table; text may have the apostrophe or not, and numbers all digits."""
        table = content.table.table
        plain = table.data.replace_schema_metadata(None)
        found = read_csv(path, plain, skip=int(self.privacy_label(path) != PRIVATE))
        short = meaningful(table, plain)
        return any(each.equals(other) for each in (found, with_formulas(found)) for other in (short, plain))


def _text(table: ReleasedTable, piece: pa.Table) -> pa.Buffer:
    return csv_bytes(without_formulas(whole_numbers(meaningful(table, piece))), header=False)


def read_csv(path: Path, like: pa.Table, *, skip: int) -> pa.Table:
    """A file as a table with the types of another."""
    import pyarrow.csv

    names = like.column_names + without_formulas(like.slice(0, 0)).column_names
    types = dict(zip(names, like.schema.types * 2))
    convert = pyarrow.csv.ConvertOptions(
        column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""]
    )
    parse = pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
    read = pyarrow.csv.ReadOptions(skip_rows=skip)
    return pyarrow.csv.read_csv(path, read_options=read, parse_options=parse, convert_options=convert)


def without_formulas(table: pa.Table) -> pa.Table:
    """The table with an apostrophe before text that a spreadsheet would run, and before text that begins with one."""
    return _each_text(table, lambda texts: _safe(texts) if _may_run(texts) else texts)


def runs(texts: pa.Array | pa.ChunkedArray) -> bool:
    """Whether a spreadsheet would run some of the texts: for layouts that have no room for an apostrophe."""
    return _may_run(texts) and bool(pc.any(pc.match_substring_regex(texts, FORMULA)).as_py())


def _safe(texts: Any) -> Any:
    return pc.if_else(pc.match_substring_regex(texts, FORMULA), _quoted(texts), texts)


def _may_run(texts: pa.Array | pa.ChunkedArray) -> bool:
    """Whether some text begins with anything but an ASCII letter or digit; nothing else can begin a formula."""
    chunks = texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
    return any(not HARMLESS[first_bytes(chunk)].all() for chunk in chunks)


def with_formulas(table: pa.Table) -> pa.Table:
    """The inverse of ``without_formulas``."""
    return _each_text(table, lambda texts: pc.replace_substring_regex(texts, "^'", "", max_replacements=1))


def _quoted(texts: pa.Array) -> pa.Array:
    apostrophe, nothing = texts_of(["'", ""])
    return pc.binary_join_element_wise(apostrophe, texts, nothing)


def _each_text(table: pa.Table, change: Callable[[Any], Any]) -> pa.Table:
    columns = [change(column) if pa.types.is_string(column.type) else column for column in table.columns]
    return pa.table(columns, names=change(texts_of(table.column_names)).to_pylist())
