"""CSV files in which a spreadsheet runs no text as formula.

Text that a spreadsheet would treat as a formula is prefixed with an apostrophe. So is text that already
begins with one, so that reading can remove it again. Column names are treated in the same way; numbers are
unchanged.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.text import FORMULA
from recordwise.plan.arrays import array_of, numpy_of, texts_of
from recordwise.release.content import Content
from recordwise.release.formats.format import type_problem
from recordwise.release.tables import PRIVATE, ReleasedTable

# Numbers to the digits that mean something: a value to a hundredth of the first digit of its noise, an error to four
# digits. Whole numbers are left alone. The ends of an interval are rounded outward. Parquet files keep every digit.


VALUE_DIGITS = 2
"""Decimal digits after the first digit of the standard deviation."""
NOISY_DIGITS = 4
"""The same for noisy answers on another scale, from which values are computed again."""
OWN_DIGITS = 4
"""Significant digits of errors."""
ALONE = 6
"""Significant digits of a value without a standard deviation."""
POWERS = 10.0 ** np.arange(23)
"""The powers of ten that are exact."""
LARGEST = 2.0**53
CLOSE = 2.0**-50
"""Relative differences that are rounding errors of a computation in floating point."""
ERRORS = ("_sd", "_cv", "_variance", "_fit_sd", "_best_sd")
VALUES = {"": "_sd", "_median": "_sd", "_low": "_sd", "_high": "_sd", "_fit": "_sd", "_noisy": "_sigma"}
VALUES |= {"_noisy_positive": "_sigma", "_noisy_negative": "_sigma"}
VALUES |= {f"_{fit}{end}": f"_{fit}_sd" for fit in ("fit", "best") for end in ("", "_low", "_high")}
"""The columns of a variable, with the column whose size says which digits mean something; ``_sd`` where that is missing."""


def meaningful(table: ReleasedTable, data: pa.Table) -> pa.Table:
    """Return rows rounded independently, so tables can be written in pieces."""
    columns = dict(zip(data.column_names, data.columns))
    for name in table.variables:
        for end in ERRORS:
            _replace_column(
                columns, name + end, lambda values: round_digits(values, np.abs(values), OWN_DIGITS - 1, np.rint)
            )
        for end, error in ((end, error) for end, error in VALUES.items() if name + end in columns):
            size = next((each for each in (name + error, f"{name}_sd") if each in data.column_names), None)
            spread = None if size is None else _floats(data.column(size))
            digits = NOISY_DIGITS if end.startswith("_noisy") else VALUE_DIGITS
            _replace_column(columns, name + end, _to(spread, digits, _direction(end)))
    return pa.table(list(columns.values()), names=data.column_names)


def whole_numbers(data: pa.Table) -> pa.Table:
    """Return the table with integer-valued float columns as integers."""
    return pa.table([_as_integers(column) for column in data.columns], names=data.column_names)


def _as_integers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_floating(column.type) or column.null_count:
        return column
    values = _floats(column)
    # Most columns are known by their first value.
    if not (len(values) and values[0] == np.rint(values[0]) and np.abs(values).max() < LARGEST):
        return column
    whole = values.astype(np.int64)
    # A negative zero would lose its sign.
    same = np.array_equal(whole, values) and not (0 in whole and np.any(np.signbit(values[whole == 0])))
    return pa.chunked_array([array_of(whole)]) if same else column


def _direction(end: str) -> Callable[..., Any]:
    return np.floor if end.endswith("_low") else np.ceil if end.endswith("_high") else np.rint


def _to(spread: FloatArray | None, digits: int, direction: Any) -> Callable[[FloatArray], FloatArray]:
    def change(values: FloatArray) -> FloatArray:
        known = np.zeros(len(values), np.bool_) if spread is None else np.isfinite(spread) & (spread > 0)
        if spread is not None and known.all():
            return round_digits(values, spread, digits, direction)
        alone = round_digits(values, np.abs(values), ALONE - 1, direction)
        if spread is None or not known.any():
            return alone
        return np.where(known, round_digits(values, np.where(known, spread, 1.0), digits, direction), alone)

    return change


def round_digits(values: FloatArray, sizes: FloatArray, digits: int, direction: Any) -> FloatArray:
    """Round to ``digits`` after the first of ``sizes``, at most to integers."""
    scale = _scale(sizes, digits)
    with np.errstate(all="ignore"):
        scaled = values if len(scale) == 1 and scale[0] == 1.0 else values * scale
        found, size = np.rint(scaled), np.abs(scaled)
        if direction is not np.rint:
            # What is already a decimal of this many digits stays that decimal, whichever way others are rounded.
            near = np.abs(scaled - found) <= CLOSE * size
            found = np.where(near, found, direction(scaled))
        if scaled is not values:
            found = found / scale
        return found if size.max(initial=0.0) < LARGEST else np.where(size < LARGEST, found, values)


def _scale(sizes: FloatArray, digits: int) -> FloatArray:
    """Return the power of ten for each size."""
    if len(sizes) and sizes[0] == sizes.min() == sizes.max():
        sizes = sizes[:1]
    with np.errstate(all="ignore"):
        first = np.floor(np.log10(sizes))
        places = np.clip(digits - np.where(np.isfinite(first), first, 0.0), 0, len(POWERS) - 1).astype(np.int64)
    return np.asarray(POWERS[places])


def _floats(column: pa.ChunkedArray) -> FloatArray:
    return np.asarray(numpy_of(column), np.float64)


def _replace_column(columns: dict[str, Any], name: str, change: Callable[[FloatArray], FloatArray]) -> None:
    """Replace a float column, leaving NULL and other columns unchanged."""
    column = columns.get(name)
    if column is None or not pa.types.is_floating(column.type):
        return
    changed = change(_floats(column))
    missing = numpy_of(column.is_null()) if column.null_count else None
    columns[name] = pa.chunked_array([array_of(changed, missing)])


# Writes text files piece by piece: pieces are made ahead on several threads, few at a time, and written in order.


Part = TypeVar("Part")
ROWS = 50_000
"""Rows of a table in one piece."""
BATCH = 16_384
"""Rows that are turned into text at once."""
THREADS = min(4, os.cpu_count() or 1)
AHEAD = 6


def slices(data: pa.Table, rows: int = ROWS) -> Iterator[pa.Table]:
    """A table as consecutive pieces."""
    return (data.slice(start, rows) for start in range(0, data.num_rows, rows))


def write_pieces(parts: Iterable[Part], file: IO[bytes], made: Callable[[Part], Any]) -> None:
    """Write what ``made`` returns for each part, in order."""
    waiting: deque[Future[Any]] = deque()
    with ThreadPoolExecutor(THREADS) as pool:
        for part in parts:
            waiting.append(pool.submit(made, part))
            if len(waiting) > AHEAD:
                file.write(waiting.popleft().result())
        while waiting:
            file.write(waiting.popleft().result())


def first_bytes(texts: pa.StringArray) -> NDArray[np.uint8]:
    """The first byte of each text that has one."""
    _, offsets, letters = texts.buffers()
    if letters is None or not len(texts):
        return np.zeros(0, np.uint8)
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return np.frombuffer(letters, np.uint8)[ends[:-1][ends[1:] > ends[:-1]]]


def csv_bytes(data: pa.Table, *, header: bool) -> pa.Buffer:
    """A table as the text of a CSV file."""
    import pyarrow.csv

    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(data, sink, pyarrow.csv.WriteOptions(include_header=header, batch_size=BATCH))
    return sink.getvalue()


def same_bytes(path: Path, header: Any, pieces: Iterable[Any]) -> bool:
    """Whether a file holds exactly a header and these pieces."""
    with path.open("rb") as file:
        wanted = map(bytes, chain((header,), pieces))
        return all(file.read(len(part)) == part for part in wanted) and not file.read(1)


HARMLESS = np.array([chr(byte).isascii() and chr(byte).isalnum() for byte in range(256)])
"""The bytes that may begin a text which no spreadsheet runs."""


class Csv:
    """Text with a header line, below a privacy label if needed.

    A release that is not private has the label as a comment. Numbers have the digits that mean something; the
    Parquet file next to it has all of them.
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
            file.write(label_line(content.privacy_label))
            file.write(csv_bytes(without_formulas(table.data.slice(0, 0)), header=True))
            write_pieces(slices(table.data), file, lambda piece: _text(table, piece))

    def privacy_label(self, path: Path) -> str:
        """Return the comment above the quoted header, if any."""
        with path.open("rb") as file:
            first = file.readline().decode(errors="replace")
        return first.removeprefix("# ").removesuffix("\n") if first.startswith("# ") else PRIVATE

    def same(self, content: Content, path: Path) -> bool:
        """Return whether a file contains exactly this table."""
        table = content.table.table
        plain = table.data.replace_schema_metadata(None)
        found = read_csv(path, plain, skip=int(self.privacy_label(path) != PRIVATE))
        short = meaningful(table, plain)
        return any(each.equals(other) for each in (found, with_formulas(found)) for other in (short, plain))


def label_line(privacy_label: str) -> bytes:
    """Return the comment above the header of what is not private."""
    return b"" if privacy_label == PRIVATE else f"# {privacy_label}\n".encode()


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
    """Return the table with apostrophes before formulas and apostrophes."""
    return _each_text(table, lambda texts: _safe(texts) if _may_run(texts) else texts)


def runs(texts: pa.Array | pa.ChunkedArray) -> bool:
    """Return whether a spreadsheet would run some text."""
    return _may_run(texts) and bool(pc.any(pc.match_substring_regex(texts, FORMULA)).as_py())


def _safe(texts: Any) -> Any:
    return pc.if_else(pc.match_substring_regex(texts, FORMULA), _quote(texts), texts)


def _may_run(texts: pa.Array | pa.ChunkedArray) -> bool:
    """Return whether some text starts without ASCII letter or digit."""
    chunks = texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
    return any(not HARMLESS[first_bytes(chunk)].all() for chunk in chunks)


def with_formulas(table: pa.Table) -> pa.Table:
    """The inverse of ``without_formulas``."""
    return _each_text(table, lambda texts: pc.replace_substring_regex(texts, "^'", "", max_replacements=1))


def _quote(texts: pa.Array) -> pa.Array:
    apostrophe, nothing = texts_of(["'", ""])
    return pc.binary_join_element_wise(apostrophe, texts, nothing)


def _each_text(table: pa.Table, change: Callable[[Any], Any]) -> pa.Table:
    columns = [change(column) if pa.types.is_string(column.type) else column for column in table.columns]
    return pa.table(columns, names=change(texts_of(table.column_names)).to_pylist())
