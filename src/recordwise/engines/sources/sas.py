"""SAS files through pyreadstat: names and formats when a table is opened; every record once, in chunks, when it is first read.

A number of SAS is a float; a measure must hold the floats nearest to its lattice points (T-LATTICE), a whole-number column
whole ones. Every kind of missing value, special ones too, is NULL; so is a text of blanks only, which is how SAS itself has it.
Blanks that pad a text at its end are dropped.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from recordwise.engines.compile.records import Stored
from recordwise.engines.engine import Mark, file_marks
from recordwise.engines.sources.extras import load_part
from recordwise.errors import DataError, EngineError, RecordError, SourceError
from recordwise.plan.schema import Schema
from recordwise.plan.sources import SasFiles

CHUNK_BYTES = 64 * 2**20
FEWEST_ROWS, MOST_ROWS = 1_000, 500_000
TEXT_COST, NUMBER_COST = 120, 40
"""Bytes a value takes as an object of Python, beside its letters."""
CALENDAR = re.compile(
    r"(?:DATE(?:TIME|AMPM)?|DAY|DOWNAME|(?:DDMMYY|MMDDYY|YYMMDD|MMYY|YYMM|YYQR?)[BCDNPS]?|JULDAY|JULIAN|MONNAME|MONTH|MONYY"
    r"|YYMON|QTRR?|WEEK(?:DATE|DATX|DAY|[UVW])|WORDDAT[EX]|YEAR|DT(?:DATE|MONYY|WKDATX|YEAR|YYQC)|MDYAMPM|TOD|TIME(?:AMPM)?"
    r"|HHMM|HOUR|MMSS|(?:[BE]|IS)8601[A-Z]{2}|NL(?:DAT|TIM)[A-Z]*|EURDF[A-Z]*|NENGO|MINGUO)[\d.]*"
)
"""Formats under which SAS shows a number as a date or a time."""


def sas_columns(source: SasFiles, schema: Schema) -> dict[str, Stored]:
    """How each column is stored, the same in every file; reads the head of each file, no record."""
    heads = [_head(path) for path in source.paths]
    kinds = [{name: _kind(head, name) for name in schema.names() if name in head.column_names} for head in heads]
    for found in kinds:
        if found != kinds[0]:
            raise SourceError(source="the SAS source", problem="its files have different columns")
    dated = [name for name, kind in kinds[0].items() if kind == "date"]
    if dated:
        raise SourceError(
            source=f"column '{dated[0]}'",
            problem="it is a date or a time of SAS, which has no role here",
            advice="Write the year or the quarter into a column of its own.",
        )
    return {name: Stored("text" if kind == "text" else "number") for name, kind in kinds[0].items()}


def _kind(head: Any, name: str) -> str:
    if head.readstat_variable_types[name] == "string":
        return "text"
    shown = head.original_variable_types.get(name) or ""
    return "date" if CALENDAR.fullmatch(shown.upper()) else "number"


def sas_parts(source: SasFiles, schema: Schema, stored: dict[str, Stored]) -> Iterator[pa.Table]:
    """The records, file by file, in chunks of bounded size."""
    names = list(schema.names())
    if sas_columns(source, schema) != stored:
        raise _changed()
    yield _part({name: [] for name in names}, names, stored)
    for path in source.paths:
        before, rows = _mark(path), _rows_at_once(_head(path), names)
        taken = 0
        while chunk := _read(path, usecols=names, row_offset=taken, row_limit=rows):
            yield _part(chunk, names, stored)
            taken += len(chunk[names[0]])
        if _mark(path) != before:
            raise _changed()


def _rows_at_once(head: Any, names: list[str]) -> int:
    texts = [name for name in names if head.readstat_variable_types[name] == "string"]
    letters = sum(int(head.variable_storage_width[name]) for name in texts)
    cost = letters + TEXT_COST * len(texts) + NUMBER_COST * (len(names) - len(texts))
    return max(FEWEST_ROWS, min(MOST_ROWS, CHUNK_BYTES // cost))


def _part(chunk: dict[str, list[Any]], names: list[str], stored: dict[str, Stored]) -> pa.Table:
    return pa.table({name: _column(name, chunk[name], text=stored[name].kind == "text") for name in names})


def _column(name: str, values: list[Any], *, text: bool) -> pa.Array:
    try:
        if not text:
            return pa.array(values, pa.float64(), from_pandas=True)
        bare = pc.utf8_rtrim(pa.array(values, pa.string()), characters=" ")
        return pc.if_else(pc.equal(bare, ""), None, bare)
    except Exception:
        # Arrow quotes the value it cannot hold.
        problem = f"holds values that are no {'text' if text else 'number'}"
        raise DataError(problems=(RecordError(column=name, problem=problem),)) from None


def _head(path: Path) -> Any:
    return _parsed(path, metadataonly=True)[1]


def _read(path: Path, **options: Any) -> dict[str, list[Any]] | None:
    """A chunk of columns; None when there are no more rows."""
    chunk = _parsed(path, disable_datetime_conversion=True, **options)[0]
    return chunk if any(len(values) for values in chunk.values()) else None


def _parsed(path: Path, **options: Any) -> Any:
    pyreadstat = load_part("pyreadstat", extra="sas")
    read = pyreadstat.read_xport if path.suffix.lower() == ".xpt" else pyreadstat.read_sas7bdat
    try:
        return read(str(path), output_format="dict", **options)
    except Exception as error:
        # Its text can quote a record.
        raise EngineError(engine="pyreadstat", kind=type(error).__name__) from None


def _mark(path: Path) -> Mark:
    (mark,) = file_marks([path])
    return mark


def _changed() -> SourceError:
    return SourceError(source="the SAS source", problem="its files changed while they were read")
