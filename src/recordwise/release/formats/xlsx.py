"""Excel workbooks that follow the guidance for accessible statistics.

A workbook has a cover, contents, notes, the dictionary, and a sheet for each table. Each sheet starts in A1 with its title and a
sentence about it, has one table with one header row, and no merged or empty cells between. Codes and all other text are text,
never formulas. An outline with one placeholder row for each table is made first, then copied with the table's rows in its place:
they are made and written in pieces, in constant memory.
"""

import math
import re
import zipfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import IO, Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.release.content import Content, DescribedTable
from recordwise.release.formats.csv import meaningful, slices, write_pieces
from recordwise.release.formats.format import type_problem
from recordwise.release.tables import NOT_PRIVATE, PRIVATE

# Reading: the sheets of a workbook row by row, to compare them with tables. It needs no package.


MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
DESCRIPTION = "{http://purl.org/dc/elements/1.1/}description"


def label_of(path: Path) -> str:
    """The comment in a workbook's properties."""
    with zipfile.ZipFile(path) as book:
        return ElementTree.fromstring(book.read("docProps/core.xml")).findtext(DESCRIPTION) or ""


def same_sheet(path: Path, number: int, data: pa.Table, *, skip: int) -> bool:
    """Return whether a sheet has exactly these rows after ``skip`` rows."""
    with zipfile.ZipFile(path) as book, book.open(f"xl/worksheets/sheet{number}.xml") as file:
        rows = _rows(file)
        for _ in range(skip):
            next(rows, None)
        if next(rows, None) != dict(enumerate(data.column_names)):
            return False
        for batch in data.to_batches(max_chunksize=5_000):
            for wanted in zip(*(column.to_pylist() for column in batch.columns)):
                if not _same(next(rows, None), _stored_cells(wanted)):
                    return False
        return next(rows, None) is None


def _stored_cells(row: tuple[Any, ...]) -> dict[int, Any]:
    """Return a row's cells without empty text and non-finite numbers."""
    return {at: value for at, value in enumerate(row) if _holds(value)}


def _same(found: dict[int, Any] | None, wanted: dict[int, Any]) -> bool:
    """Return whether a row holds these values."""
    return found == wanted or found == {at: _short(value) for at, value in wanted.items()}


def _short(value: Any) -> Any:
    return float(f"{value:.16G}") if isinstance(value, float) else value


def _holds(value: Any) -> bool:
    return value is not None and value != "" and not (isinstance(value, float) and not math.isfinite(value))


def _rows(file: Any) -> Iterator[dict[int, Any]]:
    for _, element in ElementTree.iterparse(file):
        if element.tag == f"{MAIN}row":
            yield {place: value for place, value in map(_cell, element) if value is not None and value != ""}
            element.clear()


def _cell(cell: ElementTree.Element) -> tuple[int, Any]:
    place, kind = _column(cell.get("r", "")), cell.get("t")
    if kind == "inlineStr":
        return place, "".join(cell.itertext())
    text = cell.findtext(f"{MAIN}v")
    if text is None:
        return place, None
    return place, text == "1" if kind == "b" else float(text)


def _column(reference: str) -> int:
    total = 0
    for letter in reference.rstrip("0123456789"):
        total = 26 * total + ord(letter) - ord("A") + 1
    return total - 1


# Rows of a sheet as XML, thousands at a time: a column of cells is joined from columns of text. Nothing loops over
# cells.


UNUSUAL = r"[&<>\x00-\x1f\x7f]|^\s|\s$|_x[0-9A-Fa-f]{4}_|\x{fffe}|\x{ffff}"
"""Text that cannot be written into a sheet as it is."""
EMPTY = ""
ESCAPE = re.compile(r"(_x[0-9A-Fa-f]{4}_)")
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff]")


def rows_xml(data: pa.Table, first: int, style: int) -> bytes:
    """Consecutive rows of a sheet.

    Args:
        data: What they hold; an empty text, a missing value and a number that is not finite are no cell.
        first: The number of the first row, counted from 1.
        style: The number of the style of text cells.

    Returns:
        The rows, each with its number.
    """
    numbers = pa.array(np.arange(first, first + data.num_rows)).cast(pa.string())
    cells = [_cells(column.combine_chunks(), _name(at), numbers, style) for at, column in enumerate(data.columns)]
    return _bytes(pc.binary_join_element_wise('<row r="', numbers, '">', *cells, "</row>", EMPTY))


def _bytes(rows: pa.StringArray) -> bytes:
    """All texts one after the other."""
    _, offsets, letters = rows.buffers()
    if not len(rows):
        return b""
    ends = np.frombuffer(offsets, np.int32)[[rows.offset, rows.offset + len(rows)]]
    return letters.slice(int(ends[0]), int(ends[1] - ends[0])).to_pybytes()  # type: ignore[no-any-return]


def _cells(column: pa.Array, name: str, numbers: pa.StringArray, style: int) -> pa.StringArray:
    """The cells of a column, one for each row."""
    start, held = f'<c r="{name}', pc.is_valid(column)
    if pa.types.is_string(column.type):
        held = pc.and_(held, pc.fill_null(pc.greater(pc.binary_length(column), 0), False))
        opening, closing = f'" s="{style}" t="inlineStr"><is><t', "</t></is></c>"
        text = _inner(column)
    elif pa.types.is_boolean(column.type):
        opening, closing, text = '" t="b"><v>', "</v></c>", pc.if_else(column, "1", "0")
    else:
        if pa.types.is_floating(column.type):
            held = pc.and_(held, pc.fill_null(pc.is_finite(column), False))
        opening, closing, text = '"><v>', "</v></c>", column.cast(pa.string())
    made = pc.binary_join_element_wise(start, numbers, opening, pc.fill_null(text, EMPTY), closing, EMPTY)
    return made if pc.all(held).as_py() else pc.if_else(held, made, EMPTY)


def _inner(texts: pa.StringArray) -> pa.StringArray:
    """Return each text element's end: space attribute and text."""
    if not pc.any(pc.match_substring_regex(texts, UNUSUAL)).as_py():
        return pc.binary_join_element_wise(">", texts, EMPTY)
    known = pc.dictionary_encode(texts)
    return pa.array([_escape(text) for text in known.dictionary.to_pylist()], pa.string()).take(known.indices)


def _escape(text: str) -> str:
    plain = CONTROL.sub(lambda found: f"_x{ord(found[0]):04X}_", ESCAPE.sub(r"_x005F\1", text))
    kept = ' xml:space="preserve"' if plain != plain.strip() else ""
    return f"{kept}>{plain.replace('&', '&amp;').replace('<', '&lt;').replace('>', '&gt;')}"


def _name(column: int) -> str:
    from xlsxwriter.utility import xl_col_to_name

    return str(xl_col_to_name(column))


# The format.


MOST_ROWS = 1_048_576
LONGEST_NAME = 31
ROWS = 5_000
"""Rows that are made together."""
ABOVE = 3
"""Rows above the header of a table: its title, what it is, and how to get back to the contents."""
OPTIONS = {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
FIRST = ("Cover", "Contents", "Notes", "Dictionary")
FORBIDDEN = str.maketrans("[]:*?/\\'", "________")


class Xlsx:
    """One workbook for all tables of a release."""

    name = "xlsx"
    extension = "xlsx"
    description = "all tables in one workbook, with notes and the data dictionary"
    whole = True
    needs = ("xlsxwriter",)

    def problem(self, content: Content) -> str | None:
        return type_problem(content)

    def write(self, content: Content, path: Path) -> None:
        import xlsxwriter

        outline = BytesIO()
        with xlsxwriter.Workbook(outline, OPTIONS) as book:
            # The time of writing would make two equal workbooks differ.
            made = datetime.fromisoformat(content.words.publication.date or "2000-01-01").replace(tzinfo=UTC)
            about = {"title": content.title, "author": content.words.publication.publisher, "created": made}
            book.set_properties(about | {"comments": content.privacy_label})
            writer = _Writer(book, content)
            writer.write_all()
        writer.fill(outline, path)

    def privacy_label(self, path: Path) -> str:

        return NOT_PRIVATE if label_of(path) == NOT_PRIVATE else PRIVATE

    def same(self, content: Content, path: Path) -> bool:
        """Return whether each table's sheets hold its rows."""

        place = len(FIRST)
        for each in content.tables:
            short = meaningful(each.table, each.data)
            for start, count in sheet_ranges(each):
                place += 1
                if not same_sheet(path, place, short.slice(start, count), skip=ABOVE):
                    return False
        return True


def sheet_ranges(table: DescribedTable) -> Iterator[tuple[int, int]]:
    """Yield the first row and row count of each sheet."""
    room = MOST_ROWS - ABOVE - 1
    starts = range(0, max(1, table.data.num_rows), room)
    return ((start, min(room, table.data.num_rows - start)) for start in starts)


def sheet_names(wanted: Sequence[str]) -> list[str]:
    """Return distinct, short sheet names that Excel accepts."""
    taken, names = {name.casefold() for name in FIRST}, []
    for name in wanted:
        plain = name.translate(FORBIDDEN) or "table"
        found, number = plain[:LONGEST_NAME], 1
        while found.casefold() in taken:
            number += 1
            end = f"_{number}"
            found = plain[: LONGEST_NAME - len(end)] + end
        taken.add(found.casefold())
        names.append(found)
    return names


class _Writer:
    """A writer of one workbook's sheets, each from first to last row."""

    def __init__(self, book: Any, content: Content) -> None:
        self.book, self.content = book, content
        self.heading = book.add_format({"bold": True, "font_size": 15})
        self.head = book.add_format({"bold": True, "text_wrap": True, "valign": "top"})
        self.wrapped = book.add_format({"text_wrap": True, "valign": "top"})
        self.text = book.add_format({"num_format": "@"})
        parts = [(each, *part) for each in content.tables for part in sheet_ranges(each)]
        self.sheets = list(zip(sheet_names([each.name for each, _, _ in parts]), parts))

    def write_all(self) -> None:
        self._cover()
        self._contents()
        self._notes()
        self._dictionary()
        for name, (table, start, count) in self.sheets:
            self._table(name, table, start, count)

    def _lines(self, name: str, title: str, lines: Sequence[str]) -> None:
        sheet = self.book.add_worksheet(name)
        sheet.set_column(0, 0, 100)
        sheet.write_string(0, 0, title, self.heading)
        for row, line in enumerate(lines, 1):
            sheet.write_string(row, 0, line, self.wrapped)

    def _cover(self) -> None:
        said, content = self.content.words.publication, self.content
        named = {
            "Publisher": said.publisher,
            "Contact": said.contact,
            "Period": said.period,
            "Published": said.date,
            "Version": said.version,
            "Changes since the previous version": said.revision,
            "License": said.license,
        }
        lines = [f"{heading}: {text}" for heading, text in named.items() if text]
        label = [] if content.private else [content.privacy_label]
        more = ["Sheets: contents, notes, a data dictionary, then one table on each sheet.", content.notes[0]]
        self._lines(FIRST[0], content.title, [*label, *lines, *more])

    def _contents(self) -> None:
        rows = [[name, table.title] for name, (table, _, _) in self.sheets]
        about = "This sheet has one table: the sheets of the workbook."
        sheet = self._add_sheet(FIRST[1], "Contents", about, ["Sheet", "Title"], len(rows))
        for at, (name, title) in enumerate(rows, ABOVE + 1):
            sheet.write_url(at, 0, f"internal:'{name}'!A1", string=name)
            sheet.write_string(at, 1, title, self.wrapped)

    def _notes(self) -> None:
        labels = sorted(self.content.words.labels.items())
        values = [f"{name} is {label}" for name, label in labels]
        said = [] if self.content.private else [self.content.privacy_label]
        self._lines(FIRST[2], "Notes", [*said, *self.content.notes, *values])

    def _dictionary(self) -> None:
        names = ["Table", "Column", "Title", "Unit", "Type", "Meaning", "How computed", "Missing"]
        rows = [[table.name, *entry.to_json().values()] for table in self.content.tables for entry in table.columns]
        about = "This sheet has one table: what each column of each table means."
        sheet = self._add_sheet(FIRST[3], "Data dictionary", about, names, len(rows))
        for at, row in enumerate(rows, ABOVE + 1):
            for column, text in enumerate(row):
                sheet.write_string(at, column, text or "none", self.wrapped)

    def _table(self, name: str, table: DescribedTable, start: int, count: int) -> None:
        label = "" if self.content.private else f" {self.content.privacy_label}."
        about = f"This sheet has one table. Empty cells: see the dictionary.{label}"
        names = table.data.column_names
        sheet = self._add_sheet(name, table.title, about, names, count)
        if not count:
            return
        sheet.write_string(ABOVE + count, len(names) - 1, "rows", self.text)

    def fill(self, outline: BytesIO, path: Path) -> None:
        """Copy the workbook with its tables' rows in place of placeholders."""
        tables = {f"xl/worksheets/sheet{at}.xml": part for at, (_, part) in enumerate(self.sheets, len(FIRST) + 1)}
        with zipfile.ZipFile(outline) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
            for info in source.infolist():
                with target.open(_same_entry(info), "w") as file:
                    table, start, count = tables.get(info.filename, (None, 0, 0))
                    xml = source.read(info)
                    if table is None or not count:
                        file.write(xml)
                    else:
                        _write_rows(xml, file, table, start, count)

    def _add_sheet(self, name: str, title: str, about: str, names: Sequence[str], rows: int) -> Any:
        """Return a sheet with title, description, link back and table header."""
        sheet = self.book.add_worksheet(name)
        sheet.set_column(0, len(names) - 1, 22)
        sheet.freeze_panes(ABOVE + 1, 0)
        sheet.write_string(0, 0, title, self.heading)
        sheet.write_string(1, 0, about)
        sheet.write_url(2, 0, f"internal:'{FIRST[1]}'!A1", string="Contents")
        if rows:
            self._mark(sheet, names, rows)
        for column, each in enumerate(names):
            sheet.write_string(ABOVE, column, each, self.head)
        return sheet

    def _mark(self, sheet: Any, names: Sequence[str], rows: int) -> None:
        """Mark an area as a table, for screen readers.

        The writer refuses that in constant memory only because it would write the header cells as well; those are
        written again by the caller. It also keeps every cell of the area in memory, so the table is added with one
        row and extended afterward.
        """
        from xlsxwriter.utility import xl_range

        plain = "".join(letter if letter.isalnum() or letter == "_" else "_" for letter in sheet.get_name())
        columns, last = [{"header": each} for each in names], len(names) - 1
        sheet.constant_memory = False
        options = {"columns": columns, "autofilter": False, "style": None, "name": f"rw_{plain}"}
        sheet.add_table(ABOVE, 0, ABOVE + 1, last, options)
        sheet.constant_memory = True
        sheet.tables[-1]["range"] = xl_range(ABOVE, 0, ABOVE + rows, last)


def _same_entry(info: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """Return a new entry with the name, time and mode of another."""
    made = zipfile.ZipInfo(info.filename, info.date_time)
    made.compress_type, made.external_attr = info.compress_type, info.external_attr
    return made


def _write_rows(xml: bytes, file: IO[bytes], table: DescribedTable, start: int, count: int) -> None:
    """Write a sheet with a table's rows instead of its placeholder row."""
    last = ABOVE + count + 1
    before, style, after = re.split(rb'<row r="%d".*? s="(\d+)".*?</row>' % last, xml, maxsplit=1)

    def made(part: tuple[int, pa.Table]) -> bytes:
        return rows_xml(meaningful(table.table, part[1]), part[0], int(style))

    pieces = slices(table.data.slice(start, count), ROWS)
    file.write(before)
    write_pieces(((ABOVE + 2 + ROWS * at, piece) for at, piece in enumerate(pieces)), file, made)
    file.write(after)
