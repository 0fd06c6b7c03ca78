"""The rows of a sheet as XML, thousands at a time: a column of cells is joined from columns of text. Nothing loops over cells."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

UNUSUAL = r"[&<>\x00-\x1f\x7f]|^\s|\s$|_x[0-9A-Fa-f]{4}_|\x{fffe}|\x{ffff}"
"""Text that cannot be written into a sheet as it is."""
EMPTY = ""


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
    """What follows the name of the text's element: whether blanks are kept, and the text."""
    if not pc.any(pc.match_substring_regex(texts, UNUSUAL)).as_py():
        return pc.binary_join_element_wise(">", texts, EMPTY)
    known = pc.dictionary_encode(texts)
    return pa.array([_escaped(text) for text in known.dictionary.to_pylist()], pa.string()).take(known.indices)


def _escaped(text: str) -> str:
    from xlsxwriter.worksheet import Worksheet

    plain = Worksheet._escape_control_characters(text)
    kept = ' xml:space="preserve"' if plain != plain.strip() else ""
    return f"{kept}>{plain.replace('&', '&amp;').replace('<', '&lt;').replace('>', '&gt;')}"


def _name(column: int) -> str:
    from xlsxwriter.utility import xl_col_to_name

    return str(xl_col_to_name(column))


def append_rows(sheet: Any, last: tuple[int, int]) -> Any:
    """Where the rows of a sheet in constant memory can be appended as bytes.

    Args:
        sheet: A sheet, of which rows were written in the usual way and none will be after this.
        last: The last row and the last column that will be written, counted from 0.

    Returns:
        A file.
    """
    sheet._check_dimensions(*last)
    sheet._write_single_row(last[0] + 1)
    sheet.fh.flush()
    return sheet.fh.buffer
