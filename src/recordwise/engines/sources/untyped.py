"""Frames whose types depend on their values: pandas frames and plain mappings. Declared types are applied; none is guessed.

One missing value turns a pandas integer column into floats, and a column of missing values has no type at all. What is published
and what is refused must not depend on that, so such frames need declared columns and are read by them.
"""

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from recordwise.engines.compile.records import MOST_DIGITS, OFF
from recordwise.errors import DataError, RecordError, SourceError
from recordwise.plan.arrays import listed
from recordwise.plan.key_columns import arrow_type
from recordwise.plan.schema import Measure, Schema
from recordwise.plan.sources import Frame

MIXED = "holds values of several types, or one that no Arrow type can hold"


def is_untyped(given: Any) -> bool:
    """Whether the types of a frame depend on its values."""
    return isinstance(given, Mapping) or _is_pandas(given)


def _is_pandas(given: Any) -> bool:
    return type(given).__module__.partition(".")[0] == "pandas" and hasattr(given, "columns")


def open_typed(given: Any, schema: Schema, opener: Callable[[Any], Any]) -> Any:
    """Apply the declared types to a source that has none of its own; return any other source unchanged."""
    if is_untyped(given):
        return Frame(_table(given, schema))
    opened = opener(given)
    return Frame(_without_nulls(opened.table, schema)) if isinstance(opened, Frame) else opened


def _without_nulls(table: pa.Table, schema: Schema) -> pa.Table:
    """Give a column of Arrow's null type, as in a table made from Python values, its declared type."""
    for number, field in enumerate(table.schema):
        if pa.types.is_null(field.type) and field.name in schema.names():
            table = table.set_column(number, field.name, _declared(table.column(number), field.name, schema))
    return table


def _table(given: Any, schema: Schema) -> pa.Table:
    """The declared columns only; other columns are not read."""
    labels = [str(label) for label in (given if isinstance(given, Mapping) else given.columns)]
    if len(set(labels)) < len(labels):
        raise SourceError(source="the frame", problem="two of its columns have the same name")
    wanted = {str(label): label for label in (given if isinstance(given, Mapping) else given.columns)}
    found = {name: _read(given[wanted[name]], name, schema) for name in schema.names() if name in wanted}
    if len({len(column) for column in found.values()}) > 1:
        raise SourceError(source="the frame", problem="its columns have different lengths")
    return pa.table(found)


def _read(values: Any, name: str, schema: Schema) -> pa.Array:
    """Convert a column; Arrow's error can quote the value it cannot hold, so ours names only the column."""
    try:
        array = values if isinstance(values, pa.ChunkedArray | pa.Array) else _array(values)
        array = pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) and array.num_chunks else array
    except Exception:
        raise DataError(problems=(RecordError(column=name, problem=MIXED),)) from None
    return _declared(array, name, schema)


def _array(values: Any) -> pa.Array:
    """NaN marks a missing value in a float column."""
    return listed(values, nan_is_null=True) if isinstance(values, list) else pa.array(values, from_pandas=True)


def _declared(array: Any, name: str, schema: Schema) -> Any:
    """A column in a type that does not depend on its values, as far as its role determines it; the engine refuses others."""
    kind, measure, column = array.type, schema.measure(name), schema.column(name)
    if pa.types.is_null(kind):
        return array.cast(arrow_type(column.type) if column else pa.int64())
    if pa.types.is_dictionary(kind):
        return _declared(array.cast(kind.value_type), name, schema)
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
    """The decimal places of a measure's step; None if its decimal expansion does not end."""
    return next((digits for digits in range(MOST_DIGITS // 2) if (measure.step * 10**digits).denominator == 1), None)
