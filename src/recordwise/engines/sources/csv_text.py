"""CSV that is not UTF-8: decoded here and copied over once, every field as text, because the engine itself reads UTF-8 only."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.csv

from recordwise.engines.compile.records import Stored
from recordwise.engines.problems import check_headed
from recordwise.errors import SourceError
from recordwise.plan.files import CsvFiles, compression
from recordwise.plan.schema import Schema


def text_columns(source: CsvFiles, schema: Schema) -> dict[str, Stored]:
    """Every declared column is text."""
    check_headed(schema.names(), source.header())
    return {name: Stored("text", comma=source.decimal == ",", untyped=True) for name in schema.names()}


def text_parts(source: CsvFiles, schema: Schema, _: dict[str, Stored]) -> Iterator[pa.Table]:
    """The records, file by file, block by block; an empty field is NULL."""
    names, header = list(schema.names()), source.header()
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
            raise torn(source) from None


def torn(source: CsvFiles) -> SourceError:
    """Which line of a CSV file cannot be read, by its number."""
    found = source.torn_line() or "it cannot be read as CSV"
    return SourceError(source="the CSV source", problem=found, read=True)
