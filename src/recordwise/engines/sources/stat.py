"""SAS, Stata and SPSS files through pyreadstat.

Names and formats are read when a table is opened; every record once, in chunks.

A number is a float; a measure must hold the floats nearest to its lattice points (T-LATTICE), a
whole-number column whole ones. Every kind of missing value, special ones too, is NULL; so is a text of
blanks only, as in SAS. Blanks that pad a text at its end are dropped. A number with the format of a date or
of a date and time is a date; value labels do not count.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.engines.compile.records import StorageType
from recordwise.engines.engine import Mark, check_present, file_marks, load_optional
from recordwise.errors import DataError, EngineError, RecordError, SourceError
from recordwise.plan.schema import Schema
from recordwise.plan.sources import StatFiles

CHUNK_BYTES = 64 * 2**20
FEWEST_ROWS, MOST_ROWS = 1_000, 500_000
TEXT_COST, NUMBER_COST = 120, 40
"""Bytes a value takes as an object of Python, besides its letters."""
FAR = 50_000_000.0
"""Days from an epoch at which no date of the calendar is any more."""
CALENDAR = re.compile(
    r"(?:DATE(?:TIME|AMPM)?|DAY|DOWNAME|(?:DDMMYY|MMDDYY|YYMMDD|MMYY|YYMM|YYQR?)[BCDNPS]?|JULDAY|JULIAN|MONNAME|MONTH|MONYY"
    r"|YYMON|QTRR?|WEEK(?:DATE|DATX|DAY|[UVW])|WORDDAT[EX]|YEAR|DT(?:DATE|MONYY|WKDATX|YEAR|YYQC)|MDYAMPM|TOD|TIME(?:AMPM)?"
    r"|HHMM|HOUR|MMSS|(?:[BE]|IS)8601[A-Z]{2}|NL(?:DAT|TIM)[A-Z]*|EURDF[A-Z]*|NENGO|MINGUO)[\d.]*"
)
"""Formats under which SAS shows a number as a date or a time."""
DAYS_OF_SAS = re.compile(
    r"(?:DATE|(?:DDMMYY|MMDDYY|YYMMDD)[BCDNPS]?|E8601DA|B8601DA|WORDDAT[EX]|WEEKDAT[EX]|MONYY|YYMON)[\d.]*"
)
SECONDS_OF_SAS = re.compile(r"(?:DATETIME|E8601DT|B8601DT|DTDATE)[\d.]*")
DAYS_OF_STATA, MILLISECONDS_OF_STATA = re.compile(r"%-?(?:td|d)\S*"), re.compile(r"%-?tc\S*")
DATES_OF_SPSS = re.compile(r"(?:A|E|J|S)?DATE(?:TIME)?[\d.]*|YMDHMS[\d.]*")
OTHER_TIMES = re.compile(r"%-?t\S*|(?:D?TIME|MTIME|MOYR|QYR|WKYR|WKDAY|MONTH)[\d.]*")
SAS_EPOCH, SPSS_EPOCH = np.datetime64("1960-01-01"), np.datetime64("1582-10-14")
CLOCKS = {
    "days": (SAS_EPOCH, 1.0),
    "seconds": (SAS_EPOCH, 86_400.0),
    "milliseconds": (SAS_EPOCH, 86_400_000.0),
    "spss seconds": (SPSS_EPOCH, 86_400.0),
}
"""Where a format counts from, and how many of its units make a day."""
READERS = {
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
    ".dta": "read_dta",
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
}


def stat_columns(source: StatFiles, schema: Schema) -> dict[str, StorageType]:
    """Return how each column is stored, reading no record.

    It must be the same in every file.
    """
    kinds = _kinds(source, schema)
    timed = [name for name, kind in kinds.items() if kind == "time"]
    timed += [name for name, kind in kinds.items() if kind in CLOCKS and not _is_date(name, schema)]
    if timed:
        raise SourceError(
            source=f"column '{timed[0]}'",
            problem="its format is that of a date or a time",
            advice="Declare a date as type date; write anything else into a column of its own.",
        )
    return {name: StorageType({"text": "text", "number": "number"}.get(kind, "date")) for name, kind in kinds.items()}  # type: ignore[arg-type]


def _is_date(name: str, schema: Schema) -> bool:
    column = schema.column(name)
    return column is not None and column.type == "date"


def _kinds(source: StatFiles, schema: Schema) -> dict[str, str]:
    heads = [_head(path) for path in source.paths]
    for head in heads:
        check_present(schema.names(), list(head.column_names))
    kinds = [{name: _kind(head, name, path) for name in schema.names()} for head, path in zip(heads, source.paths)]
    if any(found != kinds[0] for found in kinds):
        raise SourceError(source="the source", problem="its files have different columns")
    return kinds[0]


def _kind(head: Any, name: str, path: Path) -> str:
    """Return text, number, a date's clock, or a nondate time."""
    if head.readstat_variable_types[name] == "string":
        return "text"
    shown, ending = head.original_variable_types.get(name) or "", path.suffix.lower()
    if ending == ".dta":
        found = {"days": DAYS_OF_STATA, "milliseconds": MILLISECONDS_OF_STATA, "time": OTHER_TIMES}
    elif ending in (".sas7bdat", ".xpt"):
        found = {"days": DAYS_OF_SAS, "seconds": SECONDS_OF_SAS, "time": CALENDAR}
    else:
        found = {"spss seconds": DATES_OF_SPSS, "time": OTHER_TIMES}
    written = shown if ending == ".dta" else shown.upper()
    return next((kind for kind, pattern in found.items() if pattern.fullmatch(written)), "number")


def stat_batches(source: StatFiles, schema: Schema, stored: dict[str, StorageType]) -> Iterator[pa.Table]:
    """The records, file by file, in chunks of bounded size."""
    names, kinds = list(schema.names()), _kinds(source, schema)
    if stat_columns(source, schema) != stored:
        raise _changed_error()
    yield _batch_table({name: [] for name in names}, kinds)
    for path in source.paths:
        before, rows = _mark(path), _rows_at_once(_head(path), names)
        taken = 0
        while chunk := _read_chunk(path, usecols=names, row_offset=taken, row_limit=rows):
            yield _batch_table(chunk, kinds)
            taken += len(chunk[names[0]])
        if _mark(path) != before:
            raise _changed_error()


def _rows_at_once(head: Any, names: list[str]) -> int:
    texts = [name for name in names if head.readstat_variable_types[name] == "string"]
    letters = sum(int(head.variable_storage_width[name]) for name in texts)
    cost = letters + TEXT_COST * len(texts) + NUMBER_COST * (len(names) - len(texts))
    return max(FEWEST_ROWS, min(MOST_ROWS, CHUNK_BYTES // cost))


def _batch_table(chunk: dict[str, list[Any]], kinds: dict[str, str]) -> pa.Table:
    return pa.table({name: _column(name, chunk[name], kind) for name, kind in kinds.items()})


def _column(name: str, values: list[Any], kind: str) -> pa.Array:
    text = kind == "text"
    try:
        if not text:
            numbers = pa.array(values, pa.float64(), from_pandas=True)
            return _days(numbers, *CLOCKS[kind]) if kind in CLOCKS else numbers
        bare = pc.utf8_rtrim(pa.array(values, pa.string()), characters=" ")
        return pc.if_else(pc.equal(bare, ""), None, bare)
    except Exception:
        # Arrow quotes the value it cannot hold.
        problem = f"holds values that are no {'text' if text else 'number'}"
        raise DataError(problems=(RecordError(column=name, problem=problem),)) from None


def _days(numbers: pa.Array, epoch: np.datetime64, units: float) -> pa.Array:
    """Return the day of each number.

    One that is far from the calendar becomes a day that validation refuses.
    """
    known = np.nan_to_num(numbers.fill_null(0).to_numpy(zero_copy_only=False), posinf=FAR, neginf=-FAR)
    days = np.floor(np.clip(known / units, -FAR, FAR)).astype(np.int64) + epoch.astype("datetime64[D]").astype(np.int64)
    return pa.array(days.astype(np.int32), mask=numbers.is_null().to_numpy(zero_copy_only=False)).cast(pa.date32())


def file_kinds(path: Path) -> dict[str, str]:
    """Return every variable's kind from the head of a file."""
    head = _head(path)
    kinds = {name: _kind(head, name, path) for name in head.column_names}
    return {name: "date" if kind in CLOCKS else kind for name, kind in kinds.items()}


def _head(path: Path) -> Any:
    try:
        return _parse(path, metadataonly=True)[1]
    except EngineError:
        raise SourceError(
            source="the source", problem=f"a file of it cannot be read: it is damaged, or no {path.suffix} file"
        ) from None


def _read_chunk(path: Path, **options: Any) -> dict[str, list[Any]] | None:
    """A chunk of columns; None when there are no more rows."""
    chunk = _parse(path, disable_datetime_conversion=True, **options)[0]
    return chunk if any(len(values) for values in chunk.values()) else None


def _parse(path: Path, **options: Any) -> Any:
    read = getattr(load_optional("pyreadstat", extra="stat"), READERS[path.suffix.lower()])
    try:
        return read(str(path), output_format="dict", **options)
    except Exception as error:
        # Its text can quote a record.
        raise EngineError(engine="pyreadstat", kind=type(error).__name__) from None


def _mark(path: Path) -> Mark:
    (mark,) = file_marks([path])
    return mark


def _changed_error() -> SourceError:
    return SourceError(source="the source", problem="its files changed while they were read", read=True)
