"""Reads back the sheets of a workbook row by row, to compare them with tables. It needs no package."""

import math
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
DESCRIPTION = "{http://purl.org/dc/elements/1.1/}description"
ESCAPED = "_x005F_"


def label_of(path: Path) -> str:
    """The comment in a workbook's properties."""
    with zipfile.ZipFile(path) as book:
        return ElementTree.fromstring(book.read("docProps/core.xml")).findtext(DESCRIPTION) or ""


def same_sheet(path: Path, number: int, data: pa.Table, *, skip: int) -> bool:
    """Whether a sheet has a header row after ``skip`` rows and then exactly these rows."""
    with zipfile.ZipFile(path) as book, book.open(f"xl/worksheets/sheet{number}.xml") as file:
        rows = _rows(file)
        for _ in range(skip):
            next(rows, None)
        if next(rows, None) != dict(enumerate(data.column_names)):
            return False
        for batch in data.to_batches(max_chunksize=5_000):
            for wanted in zip(*(column.to_pylist() for column in batch.columns)):
                if not _same(next(rows, None), _kept(wanted)):
                    return False
        return next(rows, None) is None


def _kept(row: tuple[Any, ...]) -> dict[int, Any]:
    """The cells of a row that a workbook holds: empty text and numbers that are not finite are left out."""
    return {at: value for at, value in enumerate(row) if _holds(value)}


def _same(found: dict[int, Any] | None, wanted: dict[int, Any]) -> bool:
    """Whether a row holds these values; numbers may have been written to sixteen digits."""
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
