"""Binds a DataFrame: checks that every declared column exists and how it is stored. Reads metadata and no record."""

from typing import Any

from recordwise.engines.compile.records import Stored
from recordwise.engines.problems import check_present, check_types
from recordwise.engines.sources.parquet_files import unique_names
from recordwise.errors import SourceError
from recordwise.plan.schema import Schema

MOST_DIGITS = 36
"""Digits plus scale of a decimal; Spark would round the product that moves the point of a longer one."""
_KINDS = {
    "tinyint": Stored("integer"),
    "smallint": Stored("integer"),
    "int": Stored("integer"),
    "bigint": Stored("integer"),
    "float": Stored("float"),
    "double": Stored("float"),
    "string": Stored("text"),
    "boolean": Stored("boolean"),
    "date": Stored("date"),
    "timestamp_ntz": Stored("date"),
    "timestamp": Stored("zoned"),
}


def wanted_columns(schema: Schema) -> list[str]:
    return list(schema.names())


def bind(frame: Any, schema: Schema) -> dict[str, Stored]:
    """How each column is stored; raises an error if its role cannot use that."""
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    _check_names(list(frame.columns), wanted_columns(schema))
    for name in wanted_columns(schema):
        _check_order(name, kinds[name])
    stored = {name: _stored(kind) for name, kind in kinds.items()}
    check_types(schema, stored)
    return stored


def _check_names(present: list[str], wanted: list[str]) -> None:
    check_present(wanted, present)
    unique_names(wanted, present, "the source")


def _check_order(name: str, kind: Any) -> None:
    """Refuse a collation, which would merge different texts into one cell or one firm."""
    if kind.typeName() == "string" and kind.simpleString() != "string":
        raise SourceError(source=f"column '{name}'", problem="it has a collation", advice="Cast it to STRING.")


def _stored(kind: Any) -> Stored:
    if kind.typeName() == "decimal":
        fits = kind.precision + kind.scale <= MOST_DIGITS
        return Stored("decimal", kind.scale) if fits or kind.scale == 0 else Stored("other")
    return _KINDS.get(kind.simpleString(), Stored("other"))
