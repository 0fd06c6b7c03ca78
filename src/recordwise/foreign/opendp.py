"""OpenDP measurements: what one says about itself, and rows in the form it takes. OpenDP itself is not imported here."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from recordwise.errors import ParameterError
from recordwise.foreign.mechanism import Foreign, refused
from recordwise.policy import pure_to_zcdp

METRICS = ("SymmetricDistance()", "InsertDeleteDistance()")
"""The metrics that count rows added or removed; the split table has a fixed order, so that either will do."""
GROUP_POWER = {"ZeroConcentratedDivergence": 2, "MaxDivergence": 1}
"""How the loss of k rows may grow with k (T-FOREIGN)."""
SIZES = (*range(2, 65), *(2**power for power in range(7, 17)))
"""Numbers of rows at which a privacy map is asked whether it grows no faster than that."""
ROUNDING = Fraction(1, 10**9)
"""Relative slack for the upward rounding inside a map."""
WRAP = "Wrap it in a Python callable and declare its rho."
SIZED = "A domain of known size does that: leave the size out."


def is_opendp(mechanism: Any) -> bool:
    """Told by its name, so that nobody needs OpenDP who does not use it."""
    kind = type(mechanism)
    return kind.__module__.partition(".")[0] == "opendp" and kind.__name__ == "Measurement"


def read_opendp(measurement: Any, *, name: str, column: str | None) -> Foreign:
    """Metric, measure, domain and map are asked before a row is read."""
    from importlib.metadata import version

    if column is None:
        raise ParameterError(parameter="column", problem="must name the column whose values the measurement takes")
    metric = str(measurement.input_metric)
    if metric not in METRICS:
        raise refused(name, f"counts neighbours by {metric}, not by rows added or removed")
    carrier = str(measurement.input_domain.carrier_type)
    if carrier not in CARRIERS:
        raise refused(name, f"takes {carrier}, not a vector of numbers, truth values or text", WRAP)
    rho = per_row_loss(measurement, name)
    return Foreign(
        name=name,
        rho=rho,
        known_from=f"the privacy map of OpenDP {version('opendp')}",
        column=column,
        prepare=lambda rows: _members(rows.column(column), measurement, carrier, name),
        call=measurement,
    )


def per_row_loss(measurement: Any, name: str) -> Fraction:
    """The zCDP loss of one row; pure DP is converted. A map that outgrows group privacy is refused: it says something else."""
    measure = str(measurement.output_measure)
    if measure not in GROUP_POWER:
        raise refused(name, f"measures its loss by {measure}, not by zCDP or pure DP")
    one = _mapped(measurement, 1, name)
    for rows in SIZES:
        if _mapped(measurement, rows, name) > one * rows ** GROUP_POWER[measure] * (1 + ROUNDING):
            raise refused(
                name, f"has a map whose loss for {rows} rows is above what one row and group privacy allow", SIZED
            )
    return one if measure == "ZeroConcentratedDivergence" else Fraction(pure_to_zcdp(float(one)))


def _mapped(measurement: Any, rows: int, name: str) -> Fraction:
    loss = float(measurement.map(rows))
    if not (math.isfinite(loss) and loss >= 0):
        raise refused(name, f"promises nothing for {rows} rows")
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
    """The rows as the measurement takes them. OpenDP wraps integers that do not fit and leaves bounds to its caller."""
    outside = refused(
        name, "has a domain that does not hold every row of the split table", "Compare it with the thresholds."
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
