"""Frames of any library, and lists of values, as Arrow tables and columns."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from recordwise.errors import KeysError
from recordwise.plan.arrays import listed
from recordwise.plan.own_tables import refuse_own_table


def as_array(name: str, values: Iterable[Any]) -> pa.Array:
    """Key values as one Arrow column. Mixed types are refused, and so is a string, which Python would read as a list of letters."""
    if isinstance(values, str | bytes):
        raise KeysError(column=f"'{name}'", problem=f"is a {type(values).__name__}, not a list of keys")
    try:
        array = pa.array(values) if hasattr(values, "__arrow_array__") else listed(list(values))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError):
        raise KeysError(column=f"'{name}'", problem="mixes types or has values that cannot be keys") from None
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def as_public(frame: Any) -> pa.Table:
    """A public list as an Arrow table; one that carries the label of a release of ours is refused."""
    table = as_arrow(frame)
    refuse_own_table(table, "the list")
    return table


def as_arrow(frame: Any) -> pa.Table:
    """An Arrow table from Arrow, Polars, pandas or a mapping, without importing any of them."""
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, Mapping):
        return _in_rows({name: as_array(name, values) for name, values in frame.items()})
    if hasattr(frame, "to_arrow") and hasattr(frame, "columns"):
        return frame.to_arrow()
    if hasattr(frame, "to_numpy") and hasattr(frame, "columns"):
        return _from_pandas(frame)
    if hasattr(frame, "__arrow_c_stream__"):
        return _from_stream(frame)
    raise KeysError(
        column="the list", problem=f"is a {type(frame).__name__}, not a frame", advice="Give a frame or a mapping."
    )


def _from_stream(frame: Any) -> pa.Table:
    """A table of any library that offers its rows as a stream of Arrow."""
    try:
        return pa.RecordBatchReader.from_stream(frame).read_all()
    except (pa.ArrowException, TypeError, ValueError):
        raise KeysError(column="the list", problem="is a stream of Arrow that is no table") from None


def _in_rows(columns: Mapping[str, pa.Array]) -> pa.Table:
    if len({len(column) for column in columns.values()}) > 1:
        raise KeysError(
            column="the list",
            problem="has columns of different lengths",
            advice="Each row is one cell. For all combinations of the values, use Keys.product.",
        )
    return pa.table(dict(columns))


def _from_pandas(frame: Any) -> pa.Table:
    """Convert a pandas frame. Arrow's error for an unreadable column quotes the value, so it is not passed on."""
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise KeysError(
            column="a column of the frame", problem="mixes types or has values that cannot be keys"
        ) from None
