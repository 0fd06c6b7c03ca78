"""Files of Arrow's own: names and types when a table is opened; every record once, batch by batch, when it is first read."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from recordwise.engines.compile.records import Stored
from recordwise.engines.problems import check_present
from recordwise.errors import RecordwiseError, SourceError
from recordwise.plan.files import ArrowFiles
from recordwise.plan.schema import Schema

DAMAGED = "a file of it is damaged or no Arrow file"


def arrow_head(source: ArrowFiles, schema: Schema) -> pa.Table:
    """The declared columns without a record; they must be the same in every file."""
    heads = [_declared(path, schema) for path in source.paths]
    if any(not head.equals(heads[0]) for head in heads):
        raise SourceError(source="the Arrow source", problem="its files have different columns")
    return heads[0].empty_table()


def arrow_parts(source: ArrowFiles, schema: Schema, _: dict[str, Stored]) -> Iterator[pa.Table]:
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


def _declared(path: Path, schema: Schema) -> pa.Schema:
    found = file_schema(path)
    check_present(schema.names(), found.names)
    # Names that differ by case only are one to DuckDB, so both come along and the table is refused.
    wanted = {name.casefold() for name in schema.names()}
    chosen = pa.schema([field for field in found if field.name.casefold() in wanted])
    return plain_table(chosen.empty_table()).schema


def plain_table(table: pa.Table) -> pa.Table:
    """Dictionary columns as what they stand for: they would arrive as ENUMs, whose order is not that of their text."""
    fields = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


@contextmanager
def _reading(path: Path) -> Iterator[pa.ipc.RecordBatchFileReader]:
    """What Arrow says about a file can quote it, so it is not passed on."""
    try:
        with pa.memory_map(str(path)) as mapped, pa.ipc.open_file(mapped) as reader:
            yield reader
    except RecordwiseError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise SourceError(
            source="the Arrow source",
            problem=DAMAGED,
            advice="Feather files of version 1 and streams must be written anew.",
        ) from None
