"""Arrow, CSV and Parquet files, and frames without types: names, types, records."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from recordwise.engines.compile.records import MOST_DIGITS, OFF, StorageType
from recordwise.engines.engine import check_header, check_present
from recordwise.errors import DataError, RecordError, RecordwiseError, SourceError
from recordwise.plan.arrays import array_from_list
from recordwise.plan.keys.cells import arrow_type
from recordwise.plan.schema import Measure, Schema
from recordwise.plan.sources import ArrowFiles, CsvFiles, Frame, ParquetFiles, compression

# Arrow files: names and types when a table is opened; every record once, batch by batch, when it is first read.


DAMAGED = "a file of it is damaged or no Arrow file"


def arrow_head(source: ArrowFiles, schema: Schema) -> pa.Table:
    """Return the declared columns without a record.

    They must be the same in every file.
    """
    heads = [_declared_schema(path, schema) for path in source.paths]
    if any(not head.equals(heads[0]) for head in heads):
        raise SourceError(source="the Arrow source", problem="its files have different columns")
    return heads[0].empty_table()


def arrow_batches(source: ArrowFiles, schema: Schema, _: dict[str, StorageType]) -> Iterator[pa.Table]:
    """The records, file by file, batch by batch."""
    head = arrow_head(source, schema)
    yield head
    for path in source.paths:
        with _reading(path) as reader:
            for number in range(reader.num_record_batches):
                yield plain_table(pa.Table.from_batches([reader.get_batch(number)]).select(head.column_names))


def file_schema(path: Path) -> pa.Schema:
    """The names and types of a file."""
    with _reading(path) as reader:
        return reader.schema


def _declared_schema(path: Path, schema: Schema) -> pa.Schema:
    found = file_schema(path)
    check_present(schema.names(), found.names)
    unique_names(schema.names(), found.names, path.name)
    chosen = pa.schema([field for field in found if field.name in schema.names()])
    return plain_table(chosen.empty_table()).schema


def plain_table(table: pa.Table) -> pa.Table:
    """Decode dictionary columns.

    They would arrive as ENUMs, whose order is not that of their text.
    """
    fields = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


@contextmanager
def _reading(path: Path) -> Iterator[pa.ipc.RecordBatchFileReader]:
    """Open an Arrow file, hiding errors that can quote it."""
    try:
        with pa.memory_map(str(path)) as mapped, pa.ipc.open_file(mapped) as reader:
            yield reader
    except RecordwiseError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise SourceError(
            source="the Arrow source",
            problem=DAMAGED,
            advice="Feather files of version 1 and streams must be written again.",
        ) from None


# CSV that is not UTF-8: decoded here and copied once, every field as text, because the engine reads UTF-8 only.


def text_columns(source: CsvFiles, schema: Schema) -> dict[str, StorageType]:
    """Every declared column is text."""
    check_header(schema.names(), source.header(schema.names()))
    return {name: StorageType("text", comma=source.decimal == ",", untyped=True) for name in schema.names()}


def text_batches(source: CsvFiles, schema: Schema, _: dict[str, StorageType]) -> Iterator[pa.Table]:
    """Yield the records, file by file, block by block."""
    names, header = list(schema.names()), source.header(schema.names())
    yield pa.schema([(name, pa.string()) for name in names]).empty_table()
    for path in source.paths:
        reading = pa.csv.ReadOptions(
            encoding=source.encoding, column_names=list(header), skip_rows=0, use_threads=False
        )
        parsing = pa.csv.ParseOptions(delimiter=source.delimiter, newlines_in_values=True)
        converting = pa.csv.ConvertOptions(
            column_types=dict.fromkeys(header, pa.string()),
            include_columns=names,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
        )
        try:
            with pa.input_stream(str(path), compression=compression(path)) as packed:
                reader = pa.csv.open_csv(
                    packed, read_options=reading, parse_options=parsing, convert_options=converting
                )
                first = True
                for batch in reader:
                    # The first row is the header, which was read already.
                    yield pa.Table.from_batches([batch.slice(1) if first else batch])
                    first = False
        except (pa.ArrowException, UnicodeError, OSError):
            # Their text quotes the line.
            raise torn_line_error(source) from None


def torn_line_error(source: CsvFiles) -> SourceError:
    """Which line of a CSV file cannot be read, by its number."""
    found = source.torn_line() or "it cannot be read as CSV"
    return SourceError(source="the CSV source", problem=found, read=True)


# Frames whose types depend on their values: pandas frames and plain mappings. Declared types are applied; none is
# guessed. One missing value turns a pandas integer column into floats, and a column of missing values has no type at
# all. What is published and what is refused must not depend on that, so such frames need declared columns and are
# read by them.


MIXED = "holds values of several types, or one that no Arrow type can hold"


def is_untyped(given: Any) -> bool:
    """Whether the types of a frame depend on its values."""
    return isinstance(given, Mapping) or _is_pandas(given)


def _is_pandas(given: Any) -> bool:
    return type(given).__module__.partition(".")[0] == "pandas" and hasattr(given, "columns")


def open_typed(given: Any, schema: Schema, opener: Callable[[Any], Any]) -> Any:
    """Apply the declared types to a source that has none."""
    if is_untyped(given):
        return Frame(_table(given, schema))
    opened = opener(given)
    return Frame(_without_nulls(opened.table, schema)) if isinstance(opened, Frame) else opened


def _without_nulls(table: pa.Table, schema: Schema) -> pa.Table:
    """Give columns of Arrow's null type their declared type."""
    for number, field in enumerate(table.schema):
        if pa.types.is_null(field.type) and field.name in schema.names():
            table = table.set_column(number, field.name, _declared_array(table.column(number), field.name, schema))
    return table


def _table(given: Any, schema: Schema) -> pa.Table:
    """The declared columns only; other columns are not read."""
    labels = [str(label) for label in (given if isinstance(given, Mapping) else given.columns)]
    if len(set(labels)) < len(labels):
        raise SourceError(source="the frame", problem="two of its columns have the same name")
    check_present(schema.names(), labels)
    wanted = {str(label): label for label in (given if isinstance(given, Mapping) else given.columns)}
    found = {name: _convert_column(given[wanted[name]], name, schema) for name in schema.names()}
    if len({len(column) for column in found.values()}) > 1:
        raise SourceError(source="the frame", problem="its columns have different lengths")
    return pa.table(found)


def _convert_column(values: Any, name: str, schema: Schema) -> pa.Array:
    """Convert a column.

    Arrow's error can quote the value it cannot hold, so ours names only the column.
    """
    try:
        array = values if isinstance(values, pa.ChunkedArray | pa.Array) else _array(values)
        array = pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) and array.num_chunks else array
    except Exception:
        raise DataError(problems=(RecordError(column=name, problem=MIXED),)) from None
    return _declared_array(array, name, schema)


def _array(values: Any) -> pa.Array:
    """NaN marks a missing value in a float column."""
    return array_from_list(values, nan_is_null=True) if isinstance(values, list) else pa.array(values, from_pandas=True)


def _declared_array(array: Any, name: str, schema: Schema) -> Any:
    """Return a column in a type independent of its values."""
    kind, measure, column = array.type, schema.measure(name), schema.column(name)
    if pa.types.is_null(kind):
        return array.cast(arrow_type(column.type) if column else pa.int64())
    if pa.types.is_dictionary(kind):
        return _declared_array(array.cast(kind.value_type), name, schema)
    if column and column.type == "integer" and pa.types.is_floating(kind):
        return _cast(array, pa.int64(), name, "cannot be read as integer")
    if measure and pa.types.is_decimal(kind):
        digits = _digits(measure)
        wide = kind if digits is None else pa.decimal128(MOST_DIGITS - digits, digits)
        return _cast(array, wide, name, OFF.format(measure.step))
    return array


def _cast(array: Any, kind: pa.DataType, name: str, problem: str) -> Any:
    try:
        return array.cast(kind, safe=True)
    except pa.ArrowException:
        raise DataError(problems=(RecordError(column=name, problem=problem),)) from None


def _digits(measure: Measure) -> int | None:
    """Return the decimal places of a measure's step, or None."""
    return next((digits for digits in range(MOST_DIGITS // 2) if (measure.step * 10**digits).denominator == 1), None)


# Parquet files, which engines read themselves: names and types of every file, from the footers, and no record. An
# engine takes the types of one file and converts what the others hold: 1.6 to 2, '1_000' to 1000, a time with a zone
# to the day in the machine's zone. So every file must store a declared column in the same way, under the same name.


OLD_TIME = "a time of the old 96-bit kind, which does not say whether it has a zone"
WORDS = {
    "Int": "whole numbers of {bitWidth} bits{unsigned}",
    "Decimal": "decimals with {precision} digits, {scale} of them after the point",
    "String": "text",
    "Date": "dates",
    "Timestamp": "times in {timeUnit} {zone} a zone",
    "Null": "nothing but missing values",
}
PHYSICAL = {
    "BOOLEAN": "truth values",
    "FLOAT": "floats of 32 bits",
    "DOUBLE": "floats of 64 bits",
    "INT96": OLD_TIME,
    "BYTE_ARRAY": "bytes",
}
NESTED = "a nested column"
ADVICE = "Write its files again with one type for each column."


def parquet_schema(path: Path) -> pa.Schema:
    """Return the names and types of a Parquet file.

    A damaged footer, or one with names that are no text, is refused.
    """
    return _footer(path)[0]


def check_parquet(source: ParquetFiles, schema: Schema) -> None:
    """Refuse Parquet files whose declared columns are missing or differ.

    Reads every footer, no record.
    """
    folders = named_by_folders(source, schema)
    names, first = schema.names(), dict[str, str]()
    for number, path in enumerate(source.paths, 1):
        where = f"file {number} of {len(source.paths)} ('{path.name}')" if len(source.paths) > 1 else "the source"
        found = _storage_by_column(path)
        beside_folders(folders, list(found), where)
        check_present([name for name in names if name not in folders], list(found), source=where)
        unique_names(names, list(found), where)
        for name in (name for name in names if name not in folders):
            if found[name] == OLD_TIME:
                raise no_zone(name, where)
            if found[name] != first.setdefault(name, found[name]):
                raise SourceError(
                    source=f"column '{name}'",
                    problem=f"{where} stores it as {found[name]}, and the first as {first[name]}",
                    advice=ADVICE,
                )


def named_by_folders(source: ParquetFiles, schema: Schema) -> tuple[str, ...]:
    """The declared columns that the names of folders hold."""
    return tuple(name for name in source.partitions() if name in schema.names())


def beside_folders(folders: Iterable[str], present: Iterable[str], where: str) -> None:
    """Refuse a column in both folder names and files."""
    folded = {name.casefold() for name in present}
    for name in folders:
        if name.casefold() in folded:
            raise SourceError(
                source=f"column '{name}'",
                problem=f"the names of folders hold it, and {where} holds it too",
                advice="Name the files with a glob ('folder/**/*.parquet'), which leaves the names of folders aside.",
            )


def unique_names(wanted: Iterable[str], present: Iterable[str], where: str) -> None:
    """Refuse a declared column whose name another matches ignoring case."""
    folded = [name.casefold() for name in present]
    for name in wanted:
        if folded.count(name.casefold()) > 1:
            raise SourceError(source=where, problem=f"it has no column {name} that is unique when case is ignored")


def no_zone(name: str, where: str) -> SourceError:
    """Return the error for a time whose day is ambiguous."""
    return SourceError(
        source=f"column '{name}'",
        problem=f"{where} stores it as {OLD_TIME}",
        advice="Store the local day or time, without a zone.",
    )


def _storage_by_column(path: Path) -> dict[str, str]:
    """Return how a file stores each of its columns."""
    schema, flat = _footer(path)
    if len(set(schema.names)) < len(schema.names):
        raise SourceError(source="the source", problem="two columns of one of its files have the same name")
    return dict.fromkeys(schema.names, NESTED) | flat


def _storage_text(leaf: Any) -> str:
    said: Mapping[str, Any] = json.loads(leaf.logical_type.to_json())
    kind = said["Type"]
    if kind == "None" and leaf.physical_type in ("INT32", "INT64"):
        kind, said = "Int", {"bitWidth": int(leaf.physical_type[3:]), "isSigned": True}
    if kind == "None":
        return PHYSICAL.get(leaf.physical_type, f"bytes, {leaf.length} of them")
    if kind not in WORDS:
        return " ".join(str(each) for each in (f"the type {kind}", leaf.physical_type, leaf.length, *said.values()))
    zone = "with" if said.get("isAdjustedToUTC") else "without"
    unsigned = "" if said.get("isSigned", True) else ", without a sign"
    return WORDS[kind].format(**said, zone=zone, unsigned=unsigned)


def _footer(path: Path) -> tuple[pa.Schema, dict[str, str]]:
    """Return a file's Arrow schema and Parquet's column descriptions."""
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            schema, plain = file.schema_arrow, file.schema
            _ = schema.names, [str(field.type) for field in schema]
            leaves = [plain.column(number) for number in range(len(plain.names))]
            flat = [leaf for leaf in leaves if leaf.path == leaf.name and leaf.max_repetition_level == 0]
            return schema, {leaf.name: _storage_text(leaf) for leaf in flat}
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise SourceError(source="the source", problem="one of its files is damaged or is not a Parquet file") from None


# Quotes in CSV that one reader takes for letters and another leaves out: refused, so that a field is the same text on
# every engine. A field is quoted from its first letter to its last, or not at all: ``"a"b``, ``"a" `` and `` "a"``
# are neither. A quote within a field that does not begin with one is a letter. Files without a quote are only
# searched for one.


BLOCK = 1 << 20
LONGEST = 1 << 25
"""A record with more letters than this, most likely the rest of a file after a quote that is not closed, is refused."""
UNCLEAR = "line {}{} has a quote with a blank or more text next to it, or one that is not closed"


def check_quotes(source: CsvFiles) -> None:
    """Refuse a file with ambiguous quotes.

    The error has the number of the line, not its text.
    """
    lines, start = _grammar(source.delimiter)
    for number, path in enumerate(source.paths, 1):
        line = _unclear(source, path, lines, start)
        if line is not None:
            where = f" of file {number}" if len(source.paths) > 1 else ""
            raise SourceError(source="the CSV source", problem=UNCLEAR.format(line, where), read=True)


def _grammar(delimiter: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Whole lines, and the start of one that may go on."""
    sign = re.escape(delimiter)
    plain = rf'(?![ \t]*")[^{sign}\r\n]*+' if delimiter != "\t" else rf'(?! *")[^{sign}\r\n]*+'
    field = rf'(?:"(?:[^"]++|"")*+"(?=[{sign}\r\n])|{plain}(?=[{sign}\r\n]))'
    lines = re.compile(rf"(?:(?:{field}{sign})*+{field}(?:\r\n|\r|\n))*+")
    return lines, re.compile(rf'(?:{field}{sign})*+(?:"(?:[^"]++|"")*+"?|{plain})')


def _unclear(source: CsvFiles, path: Path, lines: re.Pattern[str], start: re.Pattern[str]) -> int | None:
    """Return the line in which the first unclear quote begins."""
    ended, last, rest = 0, "", ""
    try:
        with source.open_text(path) as text:
            while block := text.read(BLOCK):
                rest += block
                cut = _clear(rest, lines)
                ended, last = ended + _ends(last + rest[:cut]) - _ends(last), rest[:cut][-1:] or last
                rest = rest[cut:]
                if '"' in rest and (start.fullmatch(rest) is None or len(rest) > LONGEST):
                    return ended + 1
            # The last line may have no end; given one it must be a line like the others.
            return ended + 1 if '"' in rest and _clear(rest + "\n", lines) <= len(rest) else None
    except (UnicodeError, OSError, pa.ArrowException):
        # What cannot be decoded is refused where it is read, by its line.
        return None


def _clear(text: str, lines: re.Pattern[str]) -> int:
    """How far a text consists of whole lines without an unclear quote."""
    if '"' not in text:
        return max(text.rfind("\n"), text.rfind("\r")) + 1
    found = lines.match(text)
    return found.end() if found else 0


def _ends(text: str) -> int:
    """How many lines end in a text."""
    return text.count("\n") + text.count("\r") - text.count("\r\n")
