"""CSV files that are safe to open in a spreadsheet: no text in them is run as a formula.

Text that a spreadsheet would treat as a formula is prefixed with an apostrophe. So is text that already begins with one, so that
reading can remove it again. Column names are treated in the same way; numbers are unchanged.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from recordwise.release.tables import PRIVATE, publishable

FORMULA = r"^['\t\r\n]|^[\s\p{Z}]*[=+\-@\x{ff1d}\x{ff0b}\x{ff0d}\x{ff20}]"
"""Text that a spreadsheet treats as a formula (also with full-width signs), and text that begins with an apostrophe."""


class Csv:
    """Text with a header line, below a comment with the privacy label unless the release is private."""

    name = "csv"
    extension = "csv"
    description = "the whole table, as text"

    def holds(self, kind: pa.DataType) -> bool:
        return publishable(kind)

    def write(self, data: pa.Table, path: Path, *, privacy_label: str) -> None:
        import pyarrow.csv

        with path.open("wb") as file:
            if privacy_label != PRIVATE:
                file.write(f"# {privacy_label}\n".encode())
            pyarrow.csv.write_csv(without_formulas(data), file)

    def privacy_label(self, path: Path) -> str:
        """The comment above the header, if any. A header is quoted and cannot be mistaken for a comment."""
        with path.open("rb") as file:
            first = file.readline().decode(errors="replace")
        return first.removeprefix("# ").removesuffix("\n") if first.startswith("# ") else PRIVATE

    def same(self, data: pa.Table, path: Path) -> bool:
        """Whether a file contains exactly this table; text may have the apostrophe or not."""
        import pyarrow.csv

        plain = data.replace_schema_metadata(None)
        names = plain.column_names + without_formulas(plain.slice(0, 0)).column_names
        types = dict(zip(names, plain.schema.types * 2))
        convert = pyarrow.csv.ConvertOptions(
            column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""]
        )
        read = pyarrow.csv.ReadOptions(skip_rows=int(self.privacy_label(path) != PRIVATE))
        parse = pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
        found = pyarrow.csv.read_csv(path, read_options=read, parse_options=parse, convert_options=convert)
        return bool(found.equals(plain) or with_formulas(found).equals(plain))


def without_formulas(table: pa.Table) -> pa.Table:
    """The table with an apostrophe before text that a spreadsheet would run, and before text that begins with one."""
    return _each_text(table, lambda texts: pc.if_else(pc.match_substring_regex(texts, FORMULA), _quoted(texts), texts))


def with_formulas(table: pa.Table) -> pa.Table:
    """The inverse of ``without_formulas``."""
    return _each_text(table, lambda texts: pc.replace_substring_regex(texts, "^'", "", max_replacements=1))


def _quoted(texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise("'", texts, "")


def _each_text(table: pa.Table, change: Callable[[Any], Any]) -> pa.Table:
    columns = [change(column) if pa.types.is_string(column.type) else column for column in table.columns]
    return pa.table(columns, names=change(pa.array(table.column_names, pa.string())).to_pylist())
