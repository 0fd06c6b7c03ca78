"""A record or a table, whatever library it comes from, as the columns a policy needs. Nothing here quotes a value in an error."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from operator import ge, gt, le, lt
from typing import Any, TypeAlias

import numpy as np

from recordwise.arithmetic import FloatArray
from recordwise.errors import ParameterError, RecordError, UnknownFormError
from recordwise.exact import rational
from recordwise.policy.conditions import Among, Compare, Condition, Null, Value, holds, literal
from recordwise.policy.measure import Measure

BoolArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
LARGEST_WHOLE_FLOAT = 2**53


def is_record(records: Any) -> bool:
    """Whether this is one record: a mapping whose values are scalars."""
    return isinstance(records, Mapping) and not any(_is_column(value) for value in records.values())


def _is_column(value: Any) -> bool:
    return not isinstance(value, str) and (hasattr(value, "__len__") or hasattr(value, "__arrow_c_stream__"))


def cell_of(record: Mapping[str, Any], name: str) -> Value | None:
    """One column of one record, in canonical form; None for a missing value."""
    value = _fetch(record, name)
    if value is None or (isinstance(value, float) and value != value):
        return None
    try:
        return literal(value.item() if isinstance(value, np.generic) else value)
    except ParameterError:
        raise RecordError(column=name, problem="is neither text, a truth value nor a finite number") from None


def amount_of(record: Mapping[str, Any], name: str) -> Fraction:
    """A measure of one record, exactly; a float is read by its shortest decimal."""
    value = _fetch(record, name)
    try:
        return rational(value.item() if isinstance(value, np.generic) else value, parameter=name)
    except ParameterError:
        raise RecordError(column=name, problem="must be a finite number") from None


def _fetch(records: Any, name: str) -> Any:
    try:
        return records[name]
    except Exception:
        raise RecordError(column=name, problem="is missing; the policy depends on it") from None


def measure_column(records: Any, name: str) -> np.ndarray[tuple[int, ...], np.dtype[Any]]:
    """A measure as a numeric array. NULL becomes NaN, which the evaluator refuses."""
    column = _fetch(records, name)
    array = np.asarray(column) if isinstance(column, (np.ndarray, list, tuple)) else _arrow(column).to_numpy()
    if array.dtype.kind == "O":
        array = _objects_to_floats(array, name)
    if array.dtype.kind not in "iufb":
        raise RecordError(column=name, problem="must hold numbers")
    return array


def _objects_to_floats(array: np.ndarray[Any, Any], name: str) -> FloatArray:
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise RecordError(column=name, problem="must hold numbers") from None


def _arrow(column: Any) -> Any:
    import pyarrow

    if isinstance(column, (pyarrow.ChunkedArray, pyarrow.Array)):
        return column
    return pyarrow.chunked_array(column) if hasattr(column, "__arrow_c_stream__") else pyarrow.array(column)


def absolute_upper(part: np.ndarray[Any, Any]) -> FloatArray:
    """Absolute values as float64, rounded up where a whole number has no float."""
    size: FloatArray = np.abs(part.astype(np.float64))
    if part.dtype.kind in "iu" and size.size and size.max() >= LARGEST_WHOLE_FLOAT:
        size = np.where(size >= LARGEST_WHOLE_FLOAT, np.nextafter(size, np.inf), size)
    return size


NEGATIVE = "is negative, though its measure was not declared signed"


def check_amounts(column: np.ndarray[Any, Any], measure: Measure) -> None:
    """Refuse NaN, infinities and, unless the measure is signed, negative amounts."""
    if column.dtype.kind == "f" and (bad := int(np.count_nonzero(~np.isfinite(column)))):
        raise RecordError(column=measure.name, problem="is NULL, NaN or infinite", count=bad)
    if not measure.signed and column.dtype.kind in "if" and (bad := int(np.count_nonzero(column < 0))):
        raise RecordError(column=measure.name, problem=NEGATIVE, count=bad)


@dataclass(frozen=True, slots=True)
class Coded:
    """A text column as places in the list of its distinct values, so that a condition is decided once per distinct value."""

    places: np.ndarray[tuple[int, ...], np.dtype[np.int32]]
    values: list[Value | None]

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, rows: Any) -> "Coded":
        return Coded(self.places[rows], self.values)

    def test(self, condition: Condition, name: str) -> BoolArray:
        answers = np.fromiter((holds(condition, {name: value}) for value in self.values), np.bool_, len(self.values))
        return answers[self.places]


@dataclass(frozen=True, slots=True)
class Numbers:
    """A numeric column that conditions look at; NaN stands for NULL."""

    values: FloatArray

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> "Numbers":
        return Numbers(self.values[rows])

    def test(self, condition: Condition, name: str) -> BoolArray:
        match condition:
            case Null(_, inside):
                return np.asarray(np.isnan(self.values) == inside, np.bool_)
            case Among(_, values, inside):
                listed = np.isin(self.values, [float(value) for value in values if isinstance(value, Fraction)])
                return listed if inside else ~listed & ~np.isnan(self.values)
            case Compare(_, order, bound):
                return np.asarray(ORDERS[order](self.values, float(bound)), np.bool_)
            case _:
                raise UnknownFormError(what="condition", found=type(condition).__name__)


ORDERS: dict[str, Callable[[FloatArray, float], Any]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
GroupColumn: TypeAlias = Coded | Numbers


def group_column(records: Any, name: str) -> GroupColumn:
    """A column conditions look at: numbers as they are, everything else dictionary-encoded."""
    import pyarrow

    arrow = _arrow(_fetch(records, name))
    if isinstance(arrow, pyarrow.ChunkedArray):
        arrow = arrow.combine_chunks()
    kind = arrow.type
    if pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind) or pyarrow.types.is_decimal(kind):
        return Numbers(arrow.cast("float64", safe=False).to_numpy(zero_copy_only=False))
    if not pyarrow.types.is_dictionary(kind):
        arrow = arrow.dictionary_encode()
    values: list[Any] = [*arrow.dictionary.to_pylist(), None]
    places = arrow.indices.fill_null(len(values) - 1).to_numpy(zero_copy_only=False).astype(np.int32)
    return Coded(places, [cell_of({name: value}, name) for value in values])
