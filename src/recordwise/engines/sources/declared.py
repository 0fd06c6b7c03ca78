"""Column types that a source declares, never its values."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from recordwise.engines.sources.files import file_schema, is_untyped, parquet_schema
from recordwise.errors import ParameterError
from recordwise.plan.sources import ArrowFiles, CsvFiles, Database, Frame, ParquetFiles, Postgres, Source, StatFiles

if TYPE_CHECKING:
    from recordwise.engines.spark.sources import SparkSource


def _declare(source: Any, roles: set[str | None]) -> str:
    """Return how to declare the columns, by the names of a frame; a first line of CSV may be a record."""
    named = _frame_names(source) if is_untyped(source) else []
    listed = ", ".join(f'"{name}": "text"' for name in named if name not in roles)[:MOST_SHOWN]
    shown = listed or '"NAME": "text"'
    return f"Give columns={{{shown}}}, each with its type: text, integer, boolean or date."


def _frame_names(source: Any) -> list[str]:
    return list(map(str, source if isinstance(source, Mapping) else source.columns))


MOST_SHOWN = 300


def inferred_columns(source: "Source | SparkSource", roles: set[str | None]) -> dict[str, Any]:
    """Return conditional columns from a Parquet file's or frame's types.

    Text, whole numbers, truth values and dates.
    """
    import pyarrow as pa

    from recordwise.engines.spark.sources import SparkFrame

    if isinstance(source, ParquetFiles):
        schema = parquet_schema(source.paths[0])
        for name in source.partitions():
            schema = schema.append(pa.field(name, pa.string())) if name not in schema.names else schema
    elif isinstance(source, ArrowFiles):
        schema = file_schema(source.paths[0])
    elif isinstance(source, Frame):
        schema = source.table.schema
    elif isinstance(source, SparkFrame):
        schema = source.arrow_schema()
    elif is_untyped(source) and roles.issuperset(_frame_names(source)):
        # Its id and measures are all that it has.
        return {}
    else:
        kinds = {CsvFiles: "CSV", StatFiles: "SAS, Stata and SPSS", Postgres: "PostgreSQL", Database: "a database file"}
        kind = kinds.get(type(source), "a relation, a table's name or a path of Spark's")
        kind = "a pandas frame or a mapping, whose types follow from its values" if is_untyped(source) else kind
        raise ParameterError(
            parameter="columns", problem=f"must be declared for {kind}", advice=_declare(source, roles)
        )
    found = {}
    for field in schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if field.name in roles:
            continue
        if pa.types.is_null(kind):
            raise ParameterError(
                parameter="columns",
                problem=f"must be declared: '{field.name}' has no type of its own",
                advice=f'Give columns={{"{field.name}": "text"}}.',
            )
        if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            found[field.name] = "text"
        elif pa.types.is_integer(kind):
            found[field.name] = "integer"
        elif pa.types.is_boolean(kind):
            found[field.name] = "boolean"
        elif pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None):
            found[field.name] = "date"
    return found
