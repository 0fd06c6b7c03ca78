"""Excel workbooks that follow the guidance for accessible statistics.

A workbook has a cover, contents, notes, the dictionary, a sheet for each table, and one to add up cells. Each sheet starts in A1
with its title and a sentence about it, has one table with one header row, and no merged or empty cells between. Codes and all
other text are text, never formulas, but for the last sheet, whose formulas are ours. An outline with one placeholder row for each
table is made first, then copied with the table's rows in its place: they are made and written in pieces, in constant memory.
"""

import math
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from itertools import product
from pathlib import Path
from statistics import NormalDist
from typing import IO, Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.exact.text import share_text
from recordwise.plan.expressions import ALL_OTHER
from recordwise.plan.publication import VALUE_SIGN
from recordwise.release.content import RESEARCH_END, Content, DescribedTable, basic_first, least_above, short_titles
from recordwise.release.dictionary import headings
from recordwise.release.formats.csv import meaningful, slices, write_pieces
from recordwise.release.formats.format import type_problem
from recordwise.release.formats.workbook import MAIN, label_of, sheet_file, sheets_of
from recordwise.release.tables import NAME, NOT_PRIVATE, PRIVATE

# Reading: the sheets of a workbook row by row, to compare them with tables. It needs no package.


def same_sheet(path: Path, number: int, data: pa.Table, *, skip: int, heads: Sequence[str] = ()) -> bool:
    """Return whether a sheet has exactly these rows after ``skip`` rows, below these heads or the names of columns."""
    known = (dict(enumerate(heads)), dict(enumerate(data.column_names)))
    with zipfile.ZipFile(path) as book:
        with book.open(sheet_file(number)) as file:
            if _as_written(file, data, skip, known):
                return True
        with book.open(sheet_file(number)) as file:
            return _as_read(file, data, skip, known)


def _as_written(file: IO[bytes], data: pa.Table, skip: int, heads: Sequence[dict[int, Any]]) -> bool:
    """Return whether a sheet has the very bytes that these rows are written as, known without reading cells."""
    start, above = b'<row r="%d"' % (skip + 2), b""
    while start not in above and (more := file.read(1 << 16)):
        above += more
    above, found, rest = above.partition(start)
    if not found or not data.num_rows:
        return False
    rows = list(_rows(BytesIO(above + b"</sheetData></worksheet>")))
    if len(rows) != skip + 1 or rows[-1] not in heads:
        return False
    (style, whole), rest, first = _styles(rest), found + rest, skip + 2
    for piece in slices(data, ROWS):
        made = rows_xml(piece, first, style, whole)
        rest += file.read(max(0, len(made) - len(rest)))
        if not rest.startswith(made):
            return False
        rest, first = rest[len(made) :], first + piece.num_rows
    return b"<!" not in above and not re.search(rb"<(!|([\w.-]+:)?row\b)", rest + file.read())


def _styles(rows: bytes) -> tuple[int, int]:
    """Return the numbers of the styles of text and of whole numbers in a sheet, 0 for none."""
    found = (re.search(pattern, rows) for pattern in (rb' s="(\d+)" t="inlineStr"', rb' s="(\d+)"><v>'))
    text, whole = (int(each[1]) if each else 0 for each in found)
    return text, whole


def _as_read(file: IO[bytes], data: pa.Table, skip: int, heads: Sequence[dict[int, Any]]) -> bool:
    """Return whether the cells of a sheet hold these rows, as those of earlier versions do."""
    rows = _rows(file)
    for _ in range(skip):
        next(rows, None)
    if next(rows, None) not in heads:
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
    """Yield the cells of each row by their columns; a row or cell that programs would show elsewhere has None as one."""
    number = 0
    for _, element in ElementTree.iterparse(file):
        if element.tag == f"{MAIN}row":
            number += 1
            cells = [_cell(cell, number) for cell in element]
            row = {place: value for place, value in cells if value is not None and value != ""}
            placed = element.get("r", str(number)) == str(number) and len({place for place, _ in cells}) == len(cells)
            yield row if placed else {-1: None}
            element.clear()


INSIDE: list[list[str]] = [[], [f"{MAIN}v"], [f"{MAIN}is"]]


def _cell(cell: ElementTree.Element, row: int) -> tuple[int, Any]:
    reference, kind = cell.get("r", ""), cell.get("t")
    if reference != f"{reference.rstrip('0123456789')}{row}" or [each.tag for each in cell] not in INSIDE:
        # A cell in another row, or with a formula, of which programs show what it gives.
        return -1, False
    place = _column(reference)
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


def rows_xml(data: pa.Table, first: int, style: int, whole: int = 0) -> bytes:
    """Consecutive rows of a sheet.

    Args:
        data: What they hold; an empty text, a missing value and a number that is not finite are no cell.
        first: The number of the first row, counted from 1.
        style: The number of the style of text cells.
        whole: The number of the style of whole numbers; 0 for none, as in earlier versions.

    Returns:
        The rows, each with its number.
    """
    numbers = pa.array(np.arange(first, first + data.num_rows)).cast(pa.string())
    columns = [column.combine_chunks() for column in data.columns]
    cells = [_cells(column, _name(at), numbers, style, whole) for at, column in enumerate(columns)]
    return _bytes(pc.binary_join_element_wise('<row r="', numbers, '">', *cells, "</row>", EMPTY))


def _bytes(rows: pa.StringArray) -> bytes:
    """All texts one after the other."""
    _, offsets, letters = rows.buffers()
    if not len(rows):
        return b""
    ends = np.frombuffer(offsets, np.int32)[[rows.offset, rows.offset + len(rows)]]
    return letters.slice(int(ends[0]), int(ends[1] - ends[0])).to_pybytes()  # type: ignore[no-any-return]


def _cells(column: pa.Array, name: str, numbers: pa.StringArray, style: int, whole: int) -> pa.StringArray:
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
        styled = whole and pa.types.is_integer(column.type)
        opening, closing, text = f'" s="{whole}"><v>' if styled else '"><v>', "</v></c>", column.cast(pa.string())
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
LONGEST_NAME, LONGEST_MARK = 31, 255
LONGEST_TEXT = 240
"""Characters of a text in a formula."""
ROWS = 5_000
"""Rows that are made together."""
LINE, WIDER = 15.0, 1.15
"""The height of a line in points, and the part of a column's width that words which do not fill it leave empty."""
ABOVE = 3
"""Rows above the header of a table: its title, what it is, and how to get back to the contents."""
OPTIONS = {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
FIRST = ("Cover", "Contents", "Notes", "Dictionary")
CODES = "Codes"
RESERVED = "History"
"""Excel keeps this name for itself."""
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
        """Return whether each table's sheets hold its rows, and there are no other sheets than ours."""
        found = sheets_of(path)
        others, numbers = {*FIRST, CODES, AREA}, {name: number for number, name in enumerate(found, 1)}
        # Sheets of earlier versions are named after files, and may have the name that is reserved now.
        for reserved, by_file in product((True, False), (False, True)):
            sheets = named_sheets(content, by_file=by_file, reserved=reserved)
            names = [*FIRST, *(name for name, _ in sheets)]
            if sorted(names) == sorted(name for name in found if name not in others or name in FIRST):
                return all(_same_rows(path, numbers[name], part) for name, part in sheets)
        return False


Sheet = tuple[str, tuple[DescribedTable, int, int]]
"""The name of a sheet, and its table with the first row and the number of rows."""


def _same_rows(path: Path, number: int, part: tuple[DescribedTable, int, int]) -> bool:
    """Return whether a sheet holds the rows of a table."""
    each, start, count = part
    rows = meaningful(each.table, each.data.slice(start, count))
    # Workbooks of earlier versions have the names of columns as heads.
    return same_sheet(path, number, rows, skip=ABOVE, heads=headings(each.columns))


def named_sheets(content: Content, *, by_file: bool = False, reserved: bool = True) -> list[Sheet]:
    """Return the sheets of the tables, basic ones first; named in words where names of files are too long."""
    tables = list(content.tables) if by_file else basic_first(content.tables)
    names = [each.name for each in tables]
    if not by_file and max(map(len, names), default=0) > LONGEST_NAME:
        names = short_titles(tables, research=RESEARCH_END)
    wanted = dict(zip((each.name for each in tables), names))
    parts = [(each, *part) for each in tables for part in sheet_ranges(each)]
    return list(zip(sheet_names([wanted[each.name] for each, _, _ in parts], reserved=reserved), parts))


def sheet_ranges(table: DescribedTable) -> Iterator[tuple[int, int]]:
    """Yield the first row and row count of each sheet."""
    room = MOST_ROWS - ABOVE - 1
    starts = range(0, max(1, table.data.num_rows), room)
    return ((start, min(room, table.data.num_rows - start)) for start in starts)


def sheet_names(wanted: Sequence[str], *, reserved: bool = True) -> list[str]:
    """Return distinct, short sheet names that Excel accepts."""
    taken = (*FIRST, CODES, AREA, *((RESERVED,) if reserved else ()))
    return distinct_names([name.translate(FORBIDDEN) or "table" for name in wanted], taken)


def distinct_names(wanted: Iterable[str], taken: Iterable[str] = (), *, longest: int = LONGEST_NAME) -> list[str]:
    """Return names short enough for Excel that differ in more than the case of letters."""
    used, names = {name.casefold() for name in taken}, []
    for plain in wanted:
        found, number = plain[:longest], 1
        while found.casefold() in used:
            number += 1
            end = f"_{number}"
            found = plain[: longest - len(end)] + end
        used.add(found.casefold())
        names.append(found)
    return names


class _Writer:
    """A writer of one workbook's sheets, each from first to last row."""

    def __init__(self, book: Any, content: Content) -> None:
        self.book, self.content = book, content
        self.heading = book.add_format({"bold": True, "font_size": 15})
        self.head = book.add_format({"bold": True, "text_wrap": True, "valign": "top", "indent": 1})
        self.above_numbers = book.add_format({"bold": True, "text_wrap": True, "valign": "top", "align": "right"})
        self.wrapped = book.add_format({"text_wrap": True, "valign": "top"})
        self.text = book.add_format({"num_format": "@", "indent": 1})
        self.whole = book.add_format({"num_format": "#,##0"})
        self.input = book.add_format({"num_format": "@", "bg_color": "#FFF6CC", "border": 4})
        self.number = book.add_format({"num_format": "#,##0.##"})
        self.named = any(VALUE_SIGN in name for name in content.words.labels)
        self.sheets = named_sheets(content)
        self.area = Area.of(content, {table.name: name for name, (table, start, _) in self.sheets if not start})
        self.marks: list[str] = []
        """The names of areas so far: unlike those of sheets they have no blanks or signs, so that two may become one."""

    def write_all(self) -> None:
        self._cover()
        self._contents()
        self._notes()
        self._dictionary()
        if self.named:
            self._codes()
        for name, (table, start, count) in self.sheets:
            self._table(name, table, start, count)
        if self.area is not None:
            self._area(self.area)

    def _sheet(self, name: str) -> Any:
        """Return a new sheet that prints as wide as a page."""
        sheet = self.book.add_worksheet(name)
        sheet.set_landscape()
        sheet.fit_to_pages(1, 0)
        return sheet

    def _lines(self, name: str, title: str, lines: Sequence[str]) -> None:
        sheet = self._sheet(name)
        sheet.set_column(0, 0, 100)
        sheet.write_string(0, 0, title, self.heading)
        for row, line in enumerate(lines, 1):
            self._tall(sheet, row, [(line, 100)])
            sheet.write_string(row, 0, line, self.wrapped)

    @staticmethod
    def _tall(sheet: Any, row: int, texts: Sequence[tuple[str, int]]) -> None:
        """Make a row as high as its wrapped texts need at the widths of their columns: not every program does."""
        lines = max(math.ceil(len(text) * WIDER / width) for text, width in texts)
        if lines > 1:
            sheet.set_row(row, LINE * lines)

    def _area(self, area: "Area") -> None:
        """The form in which readers add up cells."""
        sheet = self._sheet(AREA)
        sheet.set_column(0, area.width, 18)
        sheet.set_column(0, 0, min(48, max(18, *(len(area.label(name)) + 1 for name in area.variables))))
        places = {
            "text": self.text,
            "head": self.head,
            "input": self.input,
            "number": self.number,
            "title": self.heading,
        }
        for row, column, kind, value, known in area.cells():
            style = places.get(kind)
            if kind == "link":
                sheet.write_url(row, column, f"internal:'{FIRST[1]}'!A1", string=value)
            elif known is not None:
                sheet.write_formula(row, column, value, style, known)
            else:
                sheet.write_string(row, column, value, style)
        sheet.data_validation(CHOICE, 1, CHOICE, 1, {"validate": "list", "source": f"={area.list_range()}"})

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
        more = [
            "Sheets: contents, notes, a data dictionary, names of codes, then one table on each sheet.",
            content.notes[0],
        ]
        self._lines(FIRST[0], content.title, [*label, *lines, *more])

    def _contents(self) -> None:
        rows = [[name, table.title] for name, (table, _, _) in self.sheets]
        about = "This sheet has one table: the sheets of the workbook."
        rows += [[AREA, "Add up cells of your own choice, with the error of the sum"]] if self.area is not None else []
        sheet = self._add_sheet(FIRST[1], "Contents", about, ["Sheet", "Title"], len(rows))
        sheet.set_column(0, 0, 32)
        sheet.set_column(1, 1, 90)
        for at, (name, title) in enumerate(rows, ABOVE + 1):
            sheet.write_url(at, 0, f"internal:'{name}'!A1", string=name)
            sheet.write_string(at, 1, title, self.wrapped)

    def _notes(self) -> None:
        labels = sorted(self.content.words.labels.items())
        values = [f"{name} is {label}" for name, label in labels if VALUE_SIGN not in name]
        said = [] if self.content.private else [self.content.privacy_label]
        self._lines(FIRST[2], "Notes", [*said, *self.content.notes, *values])

    def _codes(self) -> None:
        """What readers call each code of each column."""
        rows = [
            (*name.split(VALUE_SIGN, 1), label)
            for name, label in self.content.words.labels.items()
            if VALUE_SIGN in name
        ]
        about = "This sheet has one table: the names of codes."
        sheet = self._add_sheet(CODES, "Codes", about, ["Column", "Code", "Name"], len(rows))
        for at, row in enumerate(sorted(rows), ABOVE + 1):
            for column, text in enumerate(row):
                sheet.write_string(at, column, text, self.text)

    def _dictionary(self) -> None:
        names = ["Sheet", "Heading", "Name in files", "Title", "Unit", "Type", "Meaning", "How computed", "Missing"]
        rows = [
            [name, head, *entry.to_json().values()]
            for name, (table, start, _) in self.sheets
            if not start
            for head, entry in zip(headings(table.columns), table.columns)
        ]
        about = "This sheet has one table: what each column of each table means."
        sheet = self._add_sheet(FIRST[3], "Data dictionary", about, names, len(rows))
        widths = [22] * 6 + [48] * 3
        sheet.set_column(6, 8, 48)
        for at, row in enumerate(rows, ABOVE + 1):
            self._tall(sheet, at, [(text or "", width) for text, width in zip(row, widths)])
            for column, text in enumerate(row):
                sheet.write_string(at, column, text or "none", self.wrapped)

    def _table(self, name: str, table: DescribedTable, start: int, count: int) -> None:
        label = "" if self.content.private else f" {self.content.privacy_label}."
        about = f"This sheet has one table. Empty cells: see the dictionary.{label}"
        names = headings(table.columns)
        types = [table.data.schema.field(entry.name).type for entry in table.columns]
        numbers = [pa.types.is_integer(each) or pa.types.is_floating(each) for each in types]
        sheet = self._add_sheet(name, table.title, about, names, count, numbers)
        for at, entry in enumerate(table.columns):
            # A code is short, its name is not.
            sheet.set_column(at, at, 28 if entry.name.endswith(NAME) else 12 if entry.name in table.table.keys else 18)
        if not count:
            return
        sheet.write_string(ABOVE + count, len(names) - 1, "rows", self.text)
        if len(names) > 1:
            sheet.write_number(ABOVE + count, len(names) - 2, 0, self.whole)

    def fill(self, outline: BytesIO, path: Path) -> None:
        """Copy the workbook with its tables' rows in place of placeholders."""
        first = len(FIRST) + 1 + self.named
        tables = {sheet_file(at): part for at, (_, part) in enumerate(self.sheets, first)}
        with zipfile.ZipFile(outline) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
            for info in source.infolist():
                with target.open(_same_entry(info), "w") as file:
                    table, start, count = tables.get(info.filename, (None, 0, 0))
                    xml = source.read(info)
                    if table is None or not count:
                        file.write(xml)
                    else:
                        _write_rows(xml, file, table, start, count)

    def _add_sheet(
        self, name: str, title: str, about: str, names: Sequence[str], rows: int, numbers: Sequence[bool] = ()
    ) -> Any:
        """Return a sheet with title, description, link back and table header, which is on the right above numbers."""
        sheet = self._sheet(name)
        sheet.set_column(0, len(names) - 1, 22)
        sheet.freeze_panes(ABOVE + 1, 0)
        sheet.repeat_rows(ABOVE)
        sheet.write_string(0, 0, title, self.heading)
        sheet.write_string(1, 0, about)
        sheet.write_url(2, 0, f"internal:'{FIRST[1]}'!A1", string="Contents")
        if rows:
            self._mark(sheet, names, rows)
        self._tall(sheet, ABOVE, [(each, 15) for each in names])
        for column, (each, right) in enumerate(zip(names, numbers or [False] * len(names))):
            sheet.write_string(ABOVE, column, each, self.above_numbers if right else self.head)
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
        self.marks += distinct_names([f"rw_{plain}"], self.marks, longest=LONGEST_MARK)
        options = {"columns": columns, "autofilter": False, "style": None, "name": self.marks[-1]}
        sheet.add_table(ABOVE, 0, ABOVE + 1, last, options)
        sheet.constant_memory = True
        sheet.tables[-1]["range"] = xl_range(ABOVE, 0, ABOVE + rows, last)


# The sheet on which readers add up cells of one table. A line names one cell by its codes; a formula finds its row, others
# take its value and error from there. Cells have noise of their own, so that squares of errors add up.


AREA = "Add up your own area"
CHOICE, RESULTS, LINES = 4, 7, 60
"""The rows of the choice of a table and of the first result, and the lines to type codes into."""
MOST_SUMMED = 100_000
"""Cells of a table up to which looking for one takes no noticeable time."""
MOST_TABLES, LONGEST_FORMULA = 20, 8192
"""Excel calls a workbook damaged that has a longer formula, and formulas grow with the tables to choose from."""
FORM = (
    "Choose a table and type the codes of one cell into each yellow line, as the table has them. The rest is computed."
)
AT_LEAST = (
    "The {} interval holds in at least {} of cases where noise is not normal; recordwise ask gives a narrower one."
)
MORE_TABLES = "(recordwise ask adds up {} more)"
NO_CODES = "Type codes into the yellow lines."
ALONE = "No coarser table says more about these cells: recordwise ask gives the same."
SMALL = "recordwise ask uses the coarser tables too ({}); here it gains little."
LARGE = (
    "recordwise ask is more accurate here: this error is larger than that of a single number of a coarser table ({}), which your "
    "area may be a large part of."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """The cells of the sheet: row, column, kind, text or formula, and the saved value of a formula, None for text."""

    content: Content
    sheets: Mapping[str, str]
    tables: tuple[DescribedTable, ...]
    left_out: int = 0
    """How many further tables there is no room for."""

    @classmethod
    def of(cls, content: Content, sheets: Mapping[str, str]) -> "Area | None":
        """Return the sheet of a release, or None if nothing adds up."""
        tables = [each for each in content.tables if _may_be_summed(each)]
        # Tables of few keys and many cells come first: regions are added up most often.
        tables.sort(key=lambda each: (len(code_keys(each)), -each.data.num_rows))
        for count in range(min(len(tables), MOST_TABLES), 0, -1):
            found = cls(content=content, sheets=sheets, tables=tuple(tables[:count]), left_out=len(tables) - count)
            if found.longest_formula() <= LONGEST_FORMULA:
                return found
        return None

    def longest_formula(self) -> int:
        """Return the length of the longest formula, which is in the results or on the last line to type codes into."""
        lines = self._line(LINES - 1, self.titles())
        results = (cell for at in range(len(self.variables)) for cell in self._result(at))
        formulas = (*lines, *results, (0, 0, "", self._advice(RESULTS + len(self.variables) + 1), ""))
        return max(len(text) for _, _, _, text, _ in formulas)

    @property
    def keys(self) -> list[str]:
        """The columns of codes of all tables."""
        return list(dict.fromkeys(key for each in self.tables for key in code_keys(each)))

    @property
    def variables(self) -> list[str]:
        """The variables of all tables that can be added up."""
        return list(dict.fromkeys(name for each in self.tables for name in each.halves))

    @property
    def width(self) -> int:
        """The last column: keys, what was found, the row, values and errors, and the list of tables."""
        return len(self.keys) + 2 + 2 * len(self.variables) + 1

    @property
    def first_line(self) -> int:
        """The first line to type codes into."""
        return RESULTS + len(self.variables) + 4

    def list_range(self) -> str:
        """Where the titles of the tables are listed."""
        first = self.first_line
        return f"${_name(self.width)}${first + 1}:${_name(self.width)}${first + len(self.tables)}"

    def cells(self) -> Iterator[tuple[int, int, str, str, Any]]:
        """Every cell of the sheet, row by row."""
        titles = self.titles()
        yield 0, 0, "title", AREA, None
        yield 1, 0, "plain", FORM, None
        yield 2, 0, "link", "Contents", None
        if any(each.reaches for each in self.tables):
            level = share_text(self.content.confidence)
            yield 3, 0, "plain", AT_LEAST.format(level, level), None
        yield CHOICE, 0, "head", "Table", None
        yield CHOICE, 1, "input", titles[0], None
        level = share_text(self.content.confidence)
        for column, text in enumerate(("Statistic", "Value", "Standard error", f"{level} interval from", "to")):
            yield RESULTS - 1, column, "head", text, None
        for at in range(len(self.variables)):
            yield from self._result(at)
        advice = RESULTS + len(self.variables)
        yield advice, 0, "plain", "Cells added up", None
        yield advice, 1, "number", f'=COUNTIF({self._lines(len(self.keys) + 1)},">0")', 0
        yield advice + 1, 0, "plain", self._advice(advice + 1), NO_CODES
        yield from self._heads()
        for line in range(max(LINES, len(self.tables))):
            yield from self._line(line, titles)

    def titles(self) -> list[str]:
        """The titles of the tables, with their names where titles are shared."""
        shared = Counter(each.title for each in self.tables)
        return [each.title if shared[each.title] == 1 else f"{each.title} ({each.name})" for each in self.tables]

    def _heads(self) -> Iterator[tuple[int, int, str, str, Any]]:
        """The headings above the lines."""
        entries = {entry.name: entry for each in self.tables for entry in each.columns}
        heads = [entries[key].title for key in self.keys] + ["Found", "Row"]
        heads += [end for name in self.variables for end in (entries[name].title, "standard error")]
        for column, text in enumerate([*heads, "Tables to choose from"]):
            yield self.first_line - 1, column, "head", text, None

    def _line(self, line: int, titles: Sequence[str]) -> Iterator[tuple[int, int, str, str, Any]]:
        row, keys = self.first_line + line, len(self.keys)
        if line < LINES:
            for column in range(keys):
                yield row, column, "input", "", None
            found, earlier = (
                f"{_name(keys + 1)}{row + 1}",
                f"{_name(keys + 1)}${self.first_line}:{_name(keys + 1)}{row}",
            )
            named = self._chosen([self._named(each, found) for each in self.tables])
            said = f'IF({found}="","",IF({found}>0,{named},IF({found}<0,"named above","no such cell")))'
            yield row, keys, "text", f"={said}", ""
            empty = "&".join(f"{_name(column)}{row + 1}" for column in range(keys))
            place = self._chosen([self._place(each, row) for each in self.tables])
            again = f"IF(COUNTIF(${earlier},{place})>0,-1,{place})"
            yield row, keys + 1, "text", f'=IF({empty}="","",{again})', ""
            for at, name in enumerate(self.variables):
                for end, column in (("", keys + 2 + 2 * at), ("_sd", keys + 3 + 2 * at)):
                    taken = self._chosen([self._taken(each, name, end, found) for each in self.tables])
                    yield row, column, "number", f'=IF(N({found})>0,{taken},"")', ""
        if line < len(titles):
            yield row, self.width, "plain", titles[line], None
        elif line == len(titles) and self.left_out:
            yield row, self.width, "plain", MORE_TABLES.format(self.left_out), None

    def _result(self, at: int) -> Iterator[tuple[int, int, str, str, Any]]:
        """The sum of a variable over all lines, with its error."""
        row, name, keys = RESULTS + at, self.variables[at], len(self.keys)
        known = (
            f'IF({self._chosen(["1" if name in each.halves else "0" for each in self.tables])}=0,"not in this table",'
        )
        yield row, 0, "plain", self.label(name), None
        yield row, 1, "number", f"={known}SUM({self._lines(keys + 2 + 2 * at)}))", 0
        yield row, 2, "number", f"={known}SQRT(SUMSQ({self._lines(keys + 3 + 2 * at)})))", 0
        half = self._chosen([repr(each.halves.get(name, 0.0)) for each in self.tables])
        reach = f"IF(C{row + 1}=0,0,{self._errors(name)}*C{row + 1}+{half})"
        for column, sign in ((3, "-"), (4, "+")):
            yield row, column, "number", f'=IF(ISNUMBER(B{row + 1}),B{row + 1}{sign}{reach},"")', 0

    def label(self, name: str) -> str:
        """What a variable is called, with its unit unless it is the same."""
        entry = next(entry for each in self.tables for entry in each.columns if entry.name == name)
        same = entry.unit.casefold() == entry.title.casefold()
        return f"{entry.title} ({entry.unit})" if entry.unit and not same else entry.title

    def _errors(self, name: str) -> str:
        """The standard errors in the reach of an interval: those of normal noise, or of any with one mode (T-UNIMODAL)."""
        normal = NormalDist().inv_cdf((1 + self.content.confidence) / 2)
        found = [repr(each.reaches.get(name, normal)) for each in self.tables]
        return found[0] if len(set(found)) == 1 else self._chosen(found)

    def _lines(self, column: int) -> str:
        """The cells of a column over all lines."""
        return f"{_name(column)}{self.first_line + 1}:{_name(column)}{self.first_line + LINES}"

    def _chosen(self, each: Sequence[str]) -> str:
        """What holds for the chosen table."""
        listed = self.list_range()
        return f"CHOOSE(MAX(1,SUMPRODUCT(EXACT({listed},$B${CHOICE + 1})*(ROW({listed})-{self.first_line}))),{','.join(each)})"

    def _column(self, table: DescribedTable, name: str) -> str:
        """The cells of a column of a table, on its own sheet."""
        letter = _name(table.data.column_names.index(name))
        return f"'{self.sheets[table.name]}'!${letter}${ABOVE + 2}:${letter}${ABOVE + 1 + table.data.num_rows}"

    def _place(self, table: DescribedTable, row: int) -> str:
        """The place of the cell that a line names, counted from 1; 0 where there is none."""
        keys = {key: self.keys.index(key) for key in code_keys(table)}
        tests = [f"EXACT({self._column(table, key)},${_name(at)}{row + 1})" for key, at in keys.items()]
        if ALL_OTHER in table.table.keys:
            tests.append(f"NOT({self._column(table, ALL_OTHER)})")
        others = [f'(${_name(at)}{row + 1}="")' for at, key in enumerate(self.keys) if key not in keys]
        count = f"(ROW({self._column(table, next(iter(keys)))})-{ABOVE + 1})"
        return f"SUMPRODUCT(MAX({'*'.join([*tests, *others, count])}))"

    def _taken(self, table: DescribedTable, name: str, end: str, place: str) -> str:
        return f"INDEX({self._column(table, name + end)},{place})" if name in table.halves else '""'

    def _named(self, table: DescribedTable, place: str) -> str:
        """What the cell that was found is called."""
        names = [key + NAME for key in code_keys(table) if key + NAME in table.data.column_names]
        found = [f"INDEX({self._column(table, name)},{place})" for name in names]
        return '&", "&'.join(found) if found else '"yes"'

    def _advice(self, row: int) -> str:
        """Whether other tables would make the error smaller."""
        titles = {each.name: each.title for each in self.content.tables}
        said = []
        for each in self.tables:
            names = ", ".join(titles[name] for name in each.coarser if name in titles)
            pairs = [(at, least_above(self.content, each, name)) for at, name in enumerate(self.variables)]
            over = [f"N(C{RESULTS + at + 1})>{least[0]!r}" for at, least in pairs if least is not None]
            exact = ", ".join(dict.fromkeys(titles[least[1]] for _, least in pairs if least is not None))
            text = f"IF(OR({','.join(over)}),{_quoted(LARGE.format(exact))},{_quoted(SMALL.format(names))})"
            said.append(text if over else _quoted(ALONE))
        return f"=IF(B{row}=0,{_quoted(NO_CODES)},{self._chosen(said)})"


def code_keys(table: DescribedTable) -> list[str]:
    """The keys of a table that readers name cells by."""
    return [key for key in table.table.keys if key != ALL_OTHER]


def _may_be_summed(table: DescribedTable) -> bool:
    types = [table.data.schema.field(key).type for key in code_keys(table)]
    fits = 1 < table.data.num_rows <= MOST_SUMMED
    return bool(table.halves and types and fits and all(pa.types.is_string(t) or pa.types.is_integer(t) for t in types))


def _quoted(text: str) -> str:
    """A text in a formula, where texts are at most 255 characters."""
    parts = [text[at : at + LONGEST_TEXT].replace('"', '""') for at in range(0, len(text), LONGEST_TEXT)]
    return "&".join(f'"{each}"' for each in parts)


def _same_entry(info: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """Return a new entry with the name, time and mode of another."""
    made = zipfile.ZipInfo(info.filename, info.date_time)
    made.compress_type, made.external_attr = info.compress_type, info.external_attr
    return made


def _write_rows(xml: bytes, file: IO[bytes], table: DescribedTable, start: int, count: int) -> None:
    """Write a sheet with a table's rows instead of its placeholder row."""
    last = ABOVE + count + 1
    before, placeholder, after = re.split(rb'(<row r="%d".*?</row>)' % last, xml, maxsplit=1)
    style = re.search(rb' s="(\d+)" t="inlineStr"', placeholder) or re.search(rb' s="(\d+)" t="', placeholder)
    whole = re.search(rb' s="(\d+)"><v>', placeholder)

    def made(part: tuple[int, pa.Table]) -> bytes:
        numbers = (int(each[1]) if each else 0 for each in (style, whole))
        return rows_xml(meaningful(table.table, part[1]), part[0], *numbers)

    pieces = slices(table.data.slice(start, count), ROWS)
    file.write(before)
    write_pieces(((ABOVE + 2 + ROWS * at, piece) for at, piece in enumerate(pieces)), file, made)
    file.write(after)
