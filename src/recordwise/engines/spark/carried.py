"""Records that Spark cannot read where they are: they go to it through this process, as Arrow, once, when they are first read."""

from typing import Any

import pyarrow as pa

from recordwise.engines.compile.records import Stored
from recordwise.engines.sources.copy import KINDS
from recordwise.engines.spark.sources import ENCODINGS, plain_types
from recordwise.plan.files import ArrowFiles, CsvFiles, StatFiles
from recordwise.plan.schema import Schema
from recordwise.plan.sources import Database, Relation

_TYPES = {"text": pa.string(), "number": pa.float64(), "date": pa.date32()}


def is_carried(source: Any) -> bool:
    """Whether a source goes through this process."""
    if isinstance(source, CsvFiles):
        packed = any(path.suffix.lower() == ".zst" for path in source.paths)
        return packed or source.encoding not in ENCODINGS
    return isinstance(source, ArrowFiles | StatFiles | Database | Relation)


def carried_head(source: Any, schema: Schema) -> tuple[pa.Table, dict[str, Stored] | None]:
    """The declared columns without a record, and how they are stored where their types do not say so."""
    found = KINDS[type(source)].columns(source, schema)
    if isinstance(found, pa.Table):
        return plain_types(found), None
    return pa.schema([(name, _TYPES[each.kind]) for name, each in found.items()]).empty_table(), found


def carried_records(source: Any, schema: Schema, stored: dict[str, Stored]) -> pa.Table:
    """All records, in the memory of this process."""
    parts = KINDS[type(source)].parts(source, schema, stored)
    return plain_types(pa.concat_tables(parts))
