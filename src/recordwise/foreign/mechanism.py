"""A mechanism from elsewhere, whatever it is, and its result as a table."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from recordwise.errors import ForeignError, KeysError, ParameterError
from recordwise.fingerprint import publishable
from recordwise.plan.keys import as_arrow

CHARGED = "The charge stays in the ledger and nothing was published."
NOT_CHARGED = "Nothing was spent."


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """A mechanism that is ``rho``-zCDP when one row is added or removed."""

    name: str
    rho: Fraction
    known_from: str
    column: str | None
    """The one column it reads; None if it takes the whole table."""
    prepare: Callable[[pa.Table], Any]
    """Row by row, from the split table to what the mechanism takes; refuses rows outside its domain."""
    call: Callable[[Any], Any]

    def run(self, rows: Any) -> pa.Table:
        """Call it. What it raises can quote a record, so only the kind is told."""
        try:
            result = self.call(rows)
        except Exception as error:
            failed = ForeignError(mechanism=self.name, problem=f"failed with {type(error).__name__}", state=CHARGED)
        else:
            return published(result, self.name)
        raise failed from None


def refused(name: str, problem: str, advice: str = "") -> ForeignError:
    """A refusal before anything was spent."""
    return ForeignError(mechanism=name, problem=f"was refused: it {problem}", state=NOT_CHARGED, advice=advice)


def published(result: Any, name: str) -> pa.Table:
    """A result as a table: a frame or mapping as it is, a list or a number as one column ``value``."""
    try:
        if isinstance(result, pa.Table | Mapping) or hasattr(result, "columns"):
            table = as_arrow(dict(result) if isinstance(result, Mapping) else result)
        else:
            table = pa.table({"value": pa.array(np.atleast_1d(np.asarray(result)))})
        plain = [_plain(column) for column in table.columns]
    except (KeysError, ParameterError, pa.ArrowException, TypeError, ValueError):
        raise ForeignError(
            mechanism=name, problem="gave back something that is no table, list or number", state=CHARGED
        ) from None
    return pa.table(plain, names=table.column_names)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    if not publishable(column.type):
        raise ParameterError(parameter="result", problem="has a column that is neither numbers, text nor truth values")
    return column
