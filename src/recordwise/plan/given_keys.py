"""Accepts keys in the forms users give them: lists of keys, mappings, frames, or the values of one column."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import pyarrow as pa

from recordwise.errors import KeysError
from recordwise.plan.key_selection import SelectFrom, SelectKeys
from recordwise.plan.keys import Keys

KeyList: TypeAlias = Keys | SelectKeys | SelectFrom
GivenKeys: TypeAlias = KeyList | Mapping[str, Any] | Iterable[Any]
"""Also any pandas, Polars or Arrow frame."""
ADVICE = "Give Keys, a mapping of columns, a frame, or the values of the only grouping column."


def read_keys(given: Any, columns: tuple[str, ...]) -> tuple[KeyList, ...]:
    """The key lists; plain values belong to the only column in ``columns``."""
    if _is_whole(given):
        return (_whole(given),)
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise KeysError(column="keys", problem=f"is a {type(given).__name__}, not a list of cells", advice=ADVICE)
    listed = given if hasattr(given, "__arrow_array__") or hasattr(given, "__arrow_c_stream__") else list(given)
    if not isinstance(listed, list) or not any(map(_is_whole, listed)):
        return (_of_values(listed, columns),)
    if not all(map(_is_whole, listed)):
        raise KeysError(column="keys", problem="mixes lists of cells with single values", advice=ADVICE)
    return tuple(map(_whole, listed))


def _is_whole(given: Any) -> bool:
    """Whether a value names its own columns, as a frame of any library does and an Arrow array does not."""
    return isinstance(given, KeyList | Mapping | pa.Table) or (
        hasattr(given, "columns") and (hasattr(given, "to_arrow") or hasattr(given, "to_numpy"))
    )


def _whole(given: Any) -> KeyList:
    return given if isinstance(given, KeyList) else Keys.of(given)


def _of_values(values: Any, columns: tuple[str, ...]) -> Keys:
    if len(columns) != 1:
        grouped = f"{len(columns)} columns" if columns else "no column"
        raise KeysError(
            column="keys", problem=f"is a plain list of values, but the query is grouped by {grouped}", advice=ADVICE
        )
    return Keys.of({columns[0]: values})
