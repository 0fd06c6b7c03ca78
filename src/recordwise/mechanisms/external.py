"""External mechanisms: a callable or an OpenDP measurement.

What one row costs, and how they are called. OpenDP itself is not imported here; a measurement is recognized
by its attributes.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from recordwise.errors import ExternalError, ParameterError
from recordwise.exact.numbers import Number, positive

CHARGED = "The charge stays in the ledger and nothing was published."
NOT_CHARGED = "Nothing was spent."


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalMechanism:
    """A mechanism with a zCDP or pure loss per row.

    When one row is added or removed.
    """

    name: str
    rho: Fraction | None
    epsilon: Fraction | None
    known_from: str
    column: str | None
    """The one column it reads; None if it takes the whole table."""
    prepare: Callable[[pa.Table], Any]
    """Converts the split table, row by row, to what the mechanism takes; refuses rows outside its domain."""
    call: Callable[[Any], Any]

    def run(self, rows: Any) -> Any:
        """Call the mechanism.

        Its exception can quote a record, so only the exception's type is reported.
        """
        try:
            return self.call(rows)
        except Exception as error:
            failed = ExternalError(mechanism=self.name, problem=f"failed with {type(error).__name__}", state=CHARGED)
        raise failed from None


def refusal(name: str, problem: str, advice: str = "") -> ExternalError:
    """An error raised before anything was spent."""
    return ExternalError(mechanism=name, problem=f"was refused: it {problem}", state=NOT_CHARGED, advice=advice)


METRICS = ("SymmetricDistance()", "InsertDeleteDistance()")
"""Metrics that count added or removed rows; the split table has a fixed order, so either one fits."""
GROUP_POWER = {"ZeroConcentratedDivergence": 2, "MaxDivergence": 1}
"""How the loss of k rows may grow with k (T-EXTERNAL)."""
SIZES = (*range(2, 65), *(2**power for power in range(7, 17)))
"""Numbers of rows at which a privacy map is checked to grow no faster than that."""
ROUNDING = Fraction(1, 10**9)
"""Relative slack for the upward rounding inside a map."""
WRAP = "Wrap it in a Python callable and declare its rho."
SIZED = "A domain of known size causes this; leave the size out."


def is_opendp(mechanism: object) -> bool:
    """Recognized by its name, so that OpenDP need not be installed."""
    kind = type(mechanism)
    return kind.__module__.partition(".")[0] == "opendp" and kind.__name__ == "Measurement"


def read_opendp(measurement: Any, *, name: str, column: str | None) -> ExternalMechanism:
    """Check metric, measure, domain and map before any row is read."""
    from importlib.metadata import version

    if column is None:
        raise ParameterError(parameter="column", problem="must name the column whose values the measurement takes")
    metric = str(measurement.input_metric)
    if metric not in METRICS:
        raise refusal(name, f"defines neighbors by {metric}, not by added or removed rows")
    carrier = str(measurement.input_domain.carrier_type)
    if carrier not in CARRIERS:
        raise refusal(name, f"takes {carrier}, not a vector of numbers, truth values or text", WRAP)
    pure, loss = per_row_loss(measurement, name)
    return ExternalMechanism(
        name=name,
        rho=None if pure else loss,
        epsilon=loss if pure else None,
        known_from=f"the privacy map of OpenDP {version('opendp')}",
        column=column,
        prepare=lambda rows: _members(rows.column(column), measurement, carrier, name),
        call=measurement,
    )


def per_row_loss(measurement: Any, name: str) -> tuple[bool, Fraction]:
    """Return whether the loss is pure, and that of one row.

    A map that outgrows group privacy is refused: it states something else.
    """
    measure = str(measurement.output_measure)
    if measure not in GROUP_POWER:
        raise refusal(name, f"measures its loss by {measure}, not by zCDP or pure DP")
    one = _map_loss(measurement, 1, name)
    for rows in SIZES:
        if _map_loss(measurement, rows, name) > one * rows ** GROUP_POWER[measure] * (1 + ROUNDING):
            raise refusal(
                name,
                f"has a map whose loss for {rows} rows exceeds what group privacy allows from the loss of one row",
                SIZED,
            )
    return measure == "MaxDivergence", one


def _map_loss(measurement: Any, rows: int, name: str) -> Fraction:
    loss = float(measurement.map(rows))
    if not (math.isfinite(loss) and loss >= 0):
        raise refusal(name, f"gives no guarantee for {rows} rows")
    return Fraction(loss)


CARRIERS: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    **{f"Vec<{name}>": (kind, int) for name, kind in {"i8": np.int8, "i16": np.int16, "i32": np.int32}.items()},
    **{f"Vec<{name}>": (kind, int) for name, kind in {"u8": np.uint8, "u16": np.uint16, "u32": np.uint32}.items()},
    **{f"Vec<{name}>": (kind, int) for name, kind in {"i64": np.int64, "u64": np.uint64, "usize": np.uint64}.items()},
    "Vec<f64>": (None, float),
    "Vec<f32>": (None, float),
    "Vec<bool>": (None, bool),
    "Vec<String>": (None, str),
}


def _members(values: pa.ChunkedArray, measurement: Any, carrier: str, name: str) -> list[Any]:
    """Return the rows in the measurement's form.

    OpenDP wraps integers that do not fit and leaves bounds to its caller.
    """
    outside = refusal(
        name, "has a domain that does not contain every row of the split table", "Compare it with the thresholds."
    )
    kind, convert = CARRIERS[carrier]
    try:
        listed = [convert(value) for value in values.to_pylist()]
    except (TypeError, ValueError):
        raise outside from None
    if kind is not None and listed and not np.iinfo(kind).min <= min(listed) <= max(listed) <= np.iinfo(kind).max:
        raise outside
    try:
        member = bool(measurement.input_domain.member(listed))
    except Exception:
        member = False
    if not member:
        raise outside
    return listed


DECLARED = "declared by the caller, not checked by recordwise"


def read_external(
    mechanism: object, *, name: str, rho: Number | None, epsilon: Number | None, column: str | None
) -> ExternalMechanism:
    """Return an external mechanism with its loss per row.

    A callable's declared loss, or that of an OpenDP measurement's map.
    """
    declared = {"rho": rho, "epsilon": epsilon}
    if is_opendp(mechanism):
        for parameter, given in declared.items():
            if given is not None:
                raise ParameterError(
                    parameter=parameter,
                    problem="is not declared for an OpenDP measurement: its privacy map determines it",
                )
        return read_opendp(mechanism, name=name, column=column)
    if not callable(mechanism):
        raise ParameterError(parameter="mechanism", problem="is neither callable nor an OpenDP measurement")
    if rho is None and epsilon is None:
        raise ParameterError(
            parameter="rho",
            problem="must be declared for a callable",
            advice="Its zCDP when one row is added or removed, or epsilon=, its pure loss.",
        )
    exact = {key: None if given is None else positive(given, parameter=key) for key, given in declared.items()}
    select: Callable[[pa.Table], Any] = (lambda rows: rows) if column is None else (lambda rows: rows.column(column))
    return ExternalMechanism(name=name, known_from=DECLARED, column=column, prepare=select, call=mechanism, **exact)
