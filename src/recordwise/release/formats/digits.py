"""Numbers to the digits that mean something: a value to a hundredth of the first digit of its noise, an error to four digits.

Whole numbers are left alone. The ends of an interval are rounded outward. Parquet files keep every digit.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from recordwise.exact.arithmetic import FloatArray
from recordwise.plan.arrays import array_of, numpy_of
from recordwise.release.tables import ReleasedTable

VALUE_DIGITS = 2
"""Decimal digits after the first digit of the standard deviation."""
NOISY_DIGITS = 4
"""The same for noisy answers on another scale, from which values are computed again."""
OWN_DIGITS = 4
"""Significant digits of errors."""
ALONE = 6
"""Significant digits of a value without a standard deviation."""
POWERS = 10.0 ** np.arange(23)
"""The powers of ten that are exact."""
LARGEST = 2.0**53
CLOSE = 2.0**-50
"""Relative differences that are rounding errors of a computation in floating point."""
ERRORS = ("_sd", "_cv", "_variance", "_fit_sd", "_best_sd")
VALUES = {"": "_sd", "_low": "_sd", "_high": "_sd", "_fit": "_sd", "_noisy": "_sigma"}
VALUES |= {"_noisy_positive": "_sigma", "_noisy_negative": "_sigma"}
VALUES |= {f"_{fit}{end}": f"_{fit}_sd" for fit in ("fit", "best") for end in ("", "_low", "_high")}
"""The columns of a variable, with the column whose size says which digits mean something; ``_sd`` where that is missing."""


def meaningful(table: ReleasedTable, data: pa.Table) -> pa.Table:
    """Rows of a table with their numbers rounded. Each row is rounded by itself, so that a table can be written in pieces."""
    columns = dict(zip(data.column_names, data.columns))
    for name in table.variables:
        for end in ERRORS:
            _put(columns, name + end, lambda values: rounded(values, np.abs(values), OWN_DIGITS - 1, np.rint))
        for end, error in ((end, error) for end, error in VALUES.items() if name + end in columns):
            size = next((each for each in (name + error, f"{name}_sd") if each in data.column_names), None)
            spread = None if size is None else _floats(data.column(size))
            digits = NOISY_DIGITS if end.startswith("_noisy") else VALUE_DIGITS
            _put(columns, name + end, _to(spread, digits, _direction(end)))
    return pa.table(list(columns.values()), names=data.column_names)


def whole_numbers(data: pa.Table) -> pa.Table:
    """The table with columns of whole floating-point numbers as integers, which are written faster and look the same."""
    return pa.table([_as_integers(column) for column in data.columns], names=data.column_names)


def _as_integers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_floating(column.type) or column.null_count:
        return column
    values = _floats(column)
    # Most columns are told by their first value.
    if not (len(values) and values[0] == np.rint(values[0]) and np.abs(values).max() < LARGEST):
        return column
    whole = values.astype(np.int64)
    # A negative zero would lose its sign.
    same = np.array_equal(whole, values) and not (0 in whole and np.any(np.signbit(values[whole == 0])))
    return pa.chunked_array([array_of(whole)]) if same else column


def _direction(end: str) -> Callable[..., Any]:
    return np.floor if end.endswith("_low") else np.ceil if end.endswith("_high") else np.rint


def _to(spread: FloatArray | None, digits: int, direction: Any) -> Callable[[FloatArray], FloatArray]:
    def change(values: FloatArray) -> FloatArray:
        known = np.zeros(len(values), np.bool_) if spread is None else np.isfinite(spread) & (spread > 0)
        if spread is not None and known.all():
            return rounded(values, spread, digits, direction)
        alone = rounded(values, np.abs(values), ALONE - 1, direction)
        if spread is None or not known.any():
            return alone
        return np.where(known, rounded(values, np.where(known, spread, 1.0), digits, direction), alone)

    return change


def rounded(values: FloatArray, sizes: FloatArray, digits: int, direction: Any) -> FloatArray:
    """Values to ``digits`` decimal digits after the first digit of ``sizes``, but never to less than whole numbers."""
    scale = _scale(sizes, digits)
    with np.errstate(all="ignore"):
        scaled = values if len(scale) == 1 and scale[0] == 1.0 else values * scale
        found, size = np.rint(scaled), np.abs(scaled)
        if direction is not np.rint:
            # What is already a decimal of so many digits stays that decimal, whichever way others are rounded.
            near = np.abs(scaled - found) <= CLOSE * size
            found = np.where(near, found, direction(scaled))
        if scaled is not values:
            found = found / scale
        return found if size.max(initial=0.0) < LARGEST else np.where(size < LARGEST, found, values)


def _scale(sizes: FloatArray, digits: int) -> FloatArray:
    """The power of ten for each size; one for all of them where they are equal, as the noise of one mechanism is."""
    if len(sizes) and sizes[0] == sizes.min() == sizes.max():
        sizes = sizes[:1]
    with np.errstate(all="ignore"):
        first = np.floor(np.log10(sizes))
        places = np.clip(digits - np.where(np.isfinite(first), first, 0.0), 0, len(POWERS) - 1).astype(np.int64)
    return np.asarray(POWERS[places])


def _floats(column: pa.ChunkedArray) -> FloatArray:
    return np.asarray(numpy_of(column), np.float64)


def _put(columns: dict[str, Any], name: str, change: Callable[[FloatArray], FloatArray]) -> None:
    """Replace a column of floating-point numbers; NULL stays NULL, and other columns stay as they are."""
    column = columns.get(name)
    if column is None or not pa.types.is_floating(column.type):
        return
    changed = change(_floats(column))
    missing = numpy_of(column.is_null()) if column.null_count else None
    columns[name] = pa.chunked_array([array_of(changed, missing)])
