"""The columns of a source with their declared types.

For a first plan; and, if the owner requests it, what its records suggest. Parquet's statistics are values,
so they are not read.
"""

from dataclasses import replace
from typing import Any

import duckdb
import pyarrow as pa

from recordwise.engines.compile.records import READABLE, SOURCE
from recordwise.engines.sources.copy import fill, method_of
from recordwise.engines.sources.database import table_types
from recordwise.engines.sources.files import file_schema, parquet_schema
from recordwise.engines.sources.postgres import catalog, numbers_of
from recordwise.engines.sources.stat import file_kinds
from recordwise.errors import SourceError
from recordwise.plan.file.first import DAY, INTEGER, NUMBER, OTHER, TEXT, TRUTH, UNKNOWN, SourceColumn
from recordwise.plan.schema import Schema
from recordwise.plan.sources import (
    NO_HEADER,
    UTF8,
    ArrowFiles,
    CsvFiles,
    Database,
    ParquetFiles,
    Postgres,
    StatFiles,
    look_like_values,
    open_source,
)

MOST_DIGITS = 6
FEWEST_CODED = 20
"""With fewer values, one length of all may be chance."""
WORDS = {"text": TEXT, "number": NUMBER, "steps": NUMBER, "date": DAY, "integer": INTEGER, "boolean": TRUTH}
"""How sources that say what they store call it."""


def is_csv(source: Any) -> bool:
    """Return whether only a first line can hold column names.

    It can as well be a record.
    """
    return isinstance(open_source(source), CsvFiles)


def declared_columns(source: Any, *, headed: bool = False) -> list[SourceColumn]:
    """Return every column's name and, where declared, its type.

    ``headed``: the owner states that the first line of a CSV file holds names. Nothing in the file can prove
    it: a header of text looks like a record.
    """
    opened = _open(source)
    if isinstance(opened, CsvFiles):
        return [SourceColumn(name=name) for name in _names(opened, headed)]
    if isinstance(opened, ParquetFiles):
        schema = parquet_schema(opened.paths[0])
        here = [SourceColumn(name=field.name, kind=_kind(field.type)) for field in schema]
        return here + [SourceColumn(name=name, kind=TEXT) for name in opened.partitions() if name not in schema.names]
    if isinstance(opened, ArrowFiles):
        return [SourceColumn(name=field.name, kind=_kind(field.type)) for field in file_schema(opened.paths[0])]
    if isinstance(opened, StatFiles):
        return [
            SourceColumn(name=name, kind=WORDS.get(kind, OTHER)) for name, kind in file_kinds(opened.paths[0]).items()
        ]
    if isinstance(opened, Database):
        return [SourceColumn(name=name, kind=_kind(kind)) for name, kind in table_types(opened).items()]
    if isinstance(opened, Postgres):
        return [SourceColumn(name=name, kind=WORDS.get(stored, OTHER)) for name, stored in catalog(opened).items()]
    raise SourceError(source="the source", problem="a first plan is made from files, databases and PostgreSQL")


def _names(opened: CsvFiles, headed: bool) -> tuple[str, ...]:
    """Return the names of the header line.

    They go into the plan: a record in its place must not.
    """
    names = opened.header()
    if look_like_values(names):
        raise SourceError(source="the CSV source", problem="it has no header line", advice=NO_HEADER)
    if not headed:
        raise SourceError(
            source="the CSV source",
            problem="its first line would go into the plan, and nothing in the file says that it is no record",
            advice="If it holds the names of the columns, say so: recordwise init FILE --header.",
        )
    return names


def csv_options(source: Any) -> dict[str, str]:
    """Return the CSV options that differ from a plan's defaults.

    By the header line; nothing for other files.
    """
    opened, usual = _open(source), open_source(source)
    if not isinstance(opened, CsvFiles) or not isinstance(usual, CsvFiles):
        return {}
    found = {"delimiter": opened.delimiter} if opened.delimiter != usual.delimiter else {}
    return found | ({"encoding": opened.encoding} if opened.encoding != UTF8 else {})


def _open(source: Any) -> Any:
    opened = open_source(source)
    return opened.with_guessed_delimiter() if isinstance(opened, CsvFiles) else opened


def _kind(kind: pa.DataType) -> str:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_null(kind):
        return UNKNOWN
    if pa.types.is_integer(kind):
        return INTEGER
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return NUMBER
    if pa.types.is_boolean(kind):
        return TRUTH
    if pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None):
        return DAY
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    return TEXT if text else OTHER


def look_at_columns(source: Any, *, headed: bool = False) -> list[SourceColumn]:
    """Return columns with types and steps that the records suggest.

    A look at confidential records. No bound, no key, no threshold.
    """
    opened, found = _open(source), declared_columns(source, headed=headed)
    open_ended = [each.name for each in found if each.kind in (NUMBER, INTEGER, UNKNOWN)]
    if not open_ended:
        return found
    try:
        relation = _records(opened, open_ended)
        return [_suggest_type(relation, each) for each in found]
    except duckdb.Error:
        # Its text can quote a record.
        raise SourceError(source="the source", problem="its records cannot be read", read=True) from None


def _records(opened: Any, names: list[str]) -> duckdb.DuckDBPyRelation:
    """Return the columns that a look at the records needs."""
    connection = duckdb.connect()
    if isinstance(opened, ParquetFiles):
        return connection.read_parquet([str(path) for path in opened.paths], hive_partitioning=False)
    if isinstance(opened, CsvFiles) and opened.encoding == UTF8:
        return connection.read_csv(
            [str(path) for path in opened.paths],  # type: ignore[arg-type]
            header=True,
            delimiter=opened.delimiter,
            columns=dict.fromkeys(opened.header(), "VARCHAR"),
            auto_detect=False,
        )
    if isinstance(opened, Postgres):
        fill(connection, numbers_of(opened, names))
    else:
        # Only names count here, except in SQLite, where an integer column may hold numbers and text alike.
        schema = Schema.of(unit=names[0], columns=dict.fromkeys(names[1:], "integer"))
        how = method_of(type(opened))
        stored = how.columns(opened, schema)
        fill(connection, how.parts(opened, schema, {} if isinstance(stored, pa.Table) else stored))
    return connection.table(SOURCE)


def _suggest_type(relation: duckdb.DuckDBPyRelation, found: SourceColumn) -> SourceColumn:
    name = '"' + found.name.replace('"', '""') + '"'
    if found.kind == NUMBER:
        return SourceColumn(name=found.name, kind=NUMBER, step=_step(relation, name))
    if found.kind:
        return replace(found, coded=_is_coded(relation, name)) if found.kind == INTEGER else found
    shapes = {INTEGER: "BIGINT", TRUTH: "BOOLEAN", DAY: "DATE", NUMBER: "DOUBLE"}
    text = f"CAST({name} AS VARCHAR)"
    counts = ", ".join(f"COUNT(*) FILTER (regexp_matches({text}, '{READABLE[each]}'))" for each in shapes.values())
    zeros = f"COUNT(*) FILTER (regexp_matches({text}, '^[+-]?0[0-9]'))"
    known, leading, *fitting = relation.aggregate(f"COUNT({name}), {zeros}, {counts}").fetchall()[0]
    # A code with leading zeros is text: as a number it would lose them.
    kind = next((kind for kind, count in zip(shapes, fitting) if known and not leading and count == known), TEXT)
    step = _step(relation, name) if kind == NUMBER else ""
    return SourceColumn(name=found.name, kind=kind, step=step, coded=kind == INTEGER and _is_coded(relation, name))


def _is_coded(relation: duckdb.DuckDBPyRelation, name: str) -> bool:
    """Return whether whole numbers all have the same number of digits, three or more, as codes have."""
    length = f"length(trim(CAST({name} AS VARCHAR)))"
    least, most, known = relation.aggregate(f"MIN({length}), MAX({length}), COUNT({name})").fetchall()[0]
    return bool(known >= FEWEST_CODED and least == most and least >= 3)


def _step(relation: duckdb.DuckDBPyRelation, name: str) -> str:
    """Return the largest power of ten dividing all values, or blank."""
    value = f"CAST({name} AS DOUBLE)"
    tests = ", ".join(
        f"bool_and(round({value} * 1e{digits}) / 1e{digits} = {value})" for digits in range(MOST_DIGITS + 1)
    )
    fitting = relation.aggregate(tests).fetchall()[0]
    digits = next((digits for digits, whole in enumerate(fitting) if whole), None)
    return "" if digits is None else "1" if digits == 0 else f"0.{'0' * (digits - 1)}1"
