"""Telling what somebody hands over, and what it costs a row."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from recordwise.errors import ParameterError
from recordwise.exact import Number, positive
from recordwise.foreign.mechanism import Foreign
from recordwise.foreign.opendp import is_opendp, read_opendp

DECLARED = "declared by the caller, not checked by recordwise"


def read_foreign(mechanism: Any, *, name: str, rho: Number | None, column: str | None) -> Foreign:
    """A callable with its declared loss, or an OpenDP measurement with the loss of its own map."""
    if is_opendp(mechanism):
        if rho is not None:
            raise ParameterError(parameter="rho", problem="is not declared for an OpenDP measurement: its map says it")
        return read_opendp(mechanism, name=name, column=column)
    if not callable(mechanism):
        raise ParameterError(parameter="mechanism", problem="is neither callable nor an OpenDP measurement")
    if rho is None:
        raise ParameterError(
            parameter="rho",
            problem="must be declared for a callable",
            advice="Its zCDP when one row is added or removed.",
        )
    loss = positive(rho, parameter="rho")
    select: Callable[[pa.Table], Any] = (lambda rows: rows) if column is None else (lambda rows: rows.column(column))
    return Foreign(name=name, rho=loss, known_from=DECLARED, column=column, prepare=select, call=mechanism)
