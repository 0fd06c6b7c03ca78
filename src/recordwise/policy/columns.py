"""A record or a table, whatever library it comes from, as the measures a policy needs. Nothing here quotes a value in an error."""

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from recordwise.arithmetic import FloatArray
from recordwise.errors import ParameterError, RecordError
from recordwise.exact import float_upper, rational
from recordwise.policy.literals import Truth, Value
from recordwise.policy.measure import Measure

AnyArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[Any]]
LARGEST_WHOLE_FLOAT = 2.0**53


def is_record(records: Any) -> bool:
    """Whether this is one record: a mapping whose values are scalars."""
    return isinstance(records, Mapping) and not any(_is_column(value) for value in records.values())


def _is_column(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return not isinstance(value, (str, bytes)) and (hasattr(value, "__len__") or hasattr(value, "__arrow_c_stream__"))


def cell_of(record: Mapping[str, Any], name: str) -> Value | None:
    """One column of one record, in canonical form; None for a missing value."""
    value = plain(fetch(record, name))
    if value is None or (isinstance(value, (float, Decimal)) and value != value):
        return None
    if isinstance(value, bool):
        return Truth(value)
    if isinstance(value, str):
        return value
    number = _number(value)
    if number is None:
        raise RecordError(column=name, problem="is neither text, a truth value nor a finite number")
    return number


def amount_of(record: Mapping[str, Any], name: str) -> Fraction:
    """A measure of one record, exactly; a float is read by its shortest decimal."""
    number = _number(plain(fetch(record, name)))
    if number is None:
        raise RecordError(column=name, problem="must be a finite number")
    return number


def plain(value: Any) -> Any:
    """A numpy scalar as Python's own, and the missing value of pandas as None."""
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    return value.item() if isinstance(value, (np.generic, np.ndarray)) else value


def _number(value: Any) -> Fraction | None:
    """The number, or None: the refusal, which quotes its argument, must not be what the caller's error was raised from."""
    try:
        return rational(value, parameter="value")
    except ParameterError:
        return None


def fetch(records: Any, name: str) -> Any:
    """A column, or the one cell of it."""
    column = _get(records, name)
    if column is MISSING:
        raise RecordError(column=name, problem="is missing; the policy depends on it")
    return column


MISSING = object()


def _get(records: Any, name: str) -> Any:
    """Every library has its own error for a missing column, and some quote the table."""
    try:
        return records[name]
    except Exception:
        return MISSING


def measure_column(records: Any, name: str) -> AnyArray:
    """A measure as a numeric array. NULL becomes NaN, which the evaluator refuses."""
    column = fetch(records, name)
    array = as_array(column)
    if array is None:
        array = arrow_array(column, name).to_numpy(zero_copy_only=False)
    if array.dtype.kind == "O":
        array = _objects_to_floats(array, name)
    if array.dtype.kind not in "iuf" or array.ndim != 1:
        raise RecordError(column=name, problem="must be a column of numbers")
    return array


def as_array(column: Any) -> AnyArray | None:
    """An array, or a list as an array of objects: numpy would guess a common type for it. None for other libraries."""
    if isinstance(column, np.ndarray):
        return column
    if isinstance(column, (list, tuple)):
        return np.fromiter(column, dtype=object, count=len(column))
    return None


def _objects_to_floats(array: AnyArray, name: str) -> FloatArray:
    """Objects as floats, those beyond 2**53 rounded away from zero."""
    values = [plain(value) for value in array.tolist()]
    if not all(_is_number(value) for value in values):
        raise RecordError(column=name, problem="must be a column of numbers")
    floats = np.fromiter((_nearest(value) for value in values), np.float64, len(values))
    large = np.abs(floats) >= LARGEST_WHOLE_FLOAT
    return np.where(large, np.nextafter(floats, np.copysign(np.inf, floats)), floats) if large.any() else floats


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float, Decimal, Fraction)) and not isinstance(value, bool))


def _nearest(value: Any) -> float:
    try:
        return np.nan if value is None else float(value)
    except (OverflowError, ValueError):
        return np.inf


def arrow_array(column: Any, name: str) -> Any:
    """One Arrow array; what Arrow cannot read is refused without its message, which may quote a cell."""
    import pyarrow

    array = None
    try:
        if isinstance(column, (pyarrow.ChunkedArray, pyarrow.Array)):
            array = column
        elif hasattr(column, "__arrow_c_stream__"):
            array = pyarrow.chunked_array(column)
        elif hasattr(column, "__len__"):
            array = pyarrow.array(column)
        if isinstance(array, pyarrow.ChunkedArray):
            array = array.unify_dictionaries().combine_chunks()
    except (pyarrow.ArrowException, TypeError, ValueError):
        array = None
    if array is None or isinstance(array, pyarrow.ChunkedArray):
        raise RecordError(column=name, problem="is no column of one type")
    return array


def absolute_upper(part: AnyArray) -> FloatArray:
    """Absolute values as float64, not below the exact ones, nor below the decimals that large floats are read as."""
    size: FloatArray = np.abs(part.astype(np.float64))
    if size.size and size.max() >= LARGEST_WHOLE_FLOAT:
        large = np.flatnonzero(size >= LARGEST_WHOLE_FLOAT)
        if part.dtype.kind == "f":
            size[large] = np.nextafter(size[large], np.inf)
        else:
            size[large] = [float_upper(Fraction(abs(value))) for value in part[large].tolist()]
    return size


NEGATIVE = "is negative, though its measure was not declared signed"


def check_amounts(column: AnyArray, measure: Measure) -> None:
    """Refuse NaN, infinities and, unless the measure is signed, negative amounts."""
    if column.dtype.kind == "f" and (bad := int(np.count_nonzero(~np.isfinite(column)))):
        raise RecordError(column=measure.name, problem="is NULL, NaN or infinite", count=bad)
    if not measure.signed and column.dtype.kind in "if" and (bad := int(np.count_nonzero(column < 0))):
        raise RecordError(column=measure.name, problem=NEGATIVE, count=bad)
