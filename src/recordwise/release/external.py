"""Publishes the result of an external mechanism as a table."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from recordwise.errors import ExternalError, KeysError, ParameterError
from recordwise.mechanisms.external import CHARGED
from recordwise.plan.frames import as_arrow
from recordwise.release.tables import publishable


def external_table(result: Any, name: str) -> pa.Table:
    """A result as a table: a frame or mapping unchanged, a list or a number as one column ``value``."""
    try:
        if isinstance(result, pa.Table | Mapping) or hasattr(result, "columns"):
            table = as_arrow(dict(result) if isinstance(result, Mapping) else result)
        else:
            table = pa.table({"value": pa.array(np.atleast_1d(np.asarray(result)))})
        plain = [_plain(column) for column in table.columns]
    except (KeysError, ParameterError, pa.ArrowException, TypeError, ValueError):
        raise ExternalError(
            mechanism=name, problem="returned something that is not a table, list or number", state=CHARGED
        ) from None
    return pa.table(plain, names=table.column_names)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    if not publishable(column.type):
        raise ParameterError(
            parameter="result", problem="has a column whose values are not numbers, text or truth values"
        )
    return column
