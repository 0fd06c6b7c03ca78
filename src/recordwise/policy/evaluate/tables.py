"""Records and tables of any library as columns for a policy.

Measures and condition columns; the latter in a form in which a condition is decided exactly and fast for
all rows. Errors quote no value.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from operator import ge, gt, le, lt
from typing import Any, TypeAlias

import numpy as np

from recordwise.errors import ParameterError, RecordError, UnknownFormError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import float_upper, rational
from recordwise.policy.bands import BandTable
from recordwise.policy.columns import (
    FLOAT_SNAP,
    LINEAR_ERROR,
    MOST_SCALED_STEPS,
    MOST_STEPS,
    Cell,
    ConditionColumn,
    Measure,
    Truth,
    Value,
    cell,
    day_of,
    float_comparison,
    float_members,
    read_float,
)
from recordwise.policy.conditions import Among, Compare, Condition, Null, holds

AnyArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[Any]]
IntArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
LARGEST_WHOLE_FLOAT = 2.0**53
Record: TypeAlias = Mapping[str, str | bool | int | float | Fraction | Decimal | date | None]
"""One record: a scalar for each column."""
Table: TypeAlias = Any
"""Many records: a mapping of columns, an Arrow table, or a frame of any library whose columns are found by ``table[name]``."""


def is_record(records: Any) -> bool:
    """Whether this is one record: a mapping whose values are scalars."""
    return isinstance(records, Mapping) and not any(_is_column(value) for value in records.values())


def _is_column(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return not isinstance(value, (str, bytes)) and (hasattr(value, "__len__") or hasattr(value, "__arrow_c_stream__"))


def cell_of(record: Mapping[str, Any], name: str) -> Cell | None:
    """Return a record's column in canonical form, None if missing."""
    value = plain(fetch(record, name))
    if value is None or (isinstance(value, (float, Decimal)) and value != value):
        return None
    if isinstance(value, bool):
        return Truth(value)
    if isinstance(value, str):
        return value
    if isinstance(value, date):
        return _day(value, name)
    number = read_float(value) if isinstance(value, float) and isfinite(value) else _number(value)
    if number is None:
        raise RecordError(column=name, problem="is not text, a boolean, a date or a finite number")
    return number


def amount_of(record: Mapping[str, Any], name: str) -> Fraction:
    """Return a measure of one record exactly.

    A float is read by its shortest decimal.
    """
    number = _number(plain(fetch(record, name)))
    if number is None:
        raise RecordError(column=name, problem="must be a finite number")
    return number


def _day(value: date, name: str) -> date:
    day = day_of(value)
    if day is None:
        raise RecordError(column=name, problem=ZONED)
    return day


def plain(value: Any) -> Any:
    """Return numpy scalars as Python scalars, pandas' missing value as None."""
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, np.datetime64):
        return value.astype("datetime64[D]").item()
    return value.item() if isinstance(value, (np.generic, np.ndarray)) else value


def _number(value: Any) -> Fraction | None:
    """Return the number or None, not an exception quoting its argument."""
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
    """Return a column, or raise an error that quotes nothing."""
    try:
        return records[name]
    except Exception:
        return MISSING


def measure_column(records: Any, name: str) -> AnyArray:
    """Return a measure as a numeric array.

    NULL becomes NaN, which the evaluator refuses.
    """
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
    """Return an array, or None for other libraries.

    A list becomes an array of objects: numpy would guess a common type for it.
    """
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
    """Return one Arrow array.

    What Arrow cannot read is refused without its message, which may quote a cell.
    """
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
        raise RecordError(column=name, problem="is not a column of a single type")
    return array


def absolute_upper(part: AnyArray) -> FloatArray:
    """Return absolute values as float64, rounded up.

    Not below the exact ones, nor below the decimals that large floats are read as.
    """
    size: FloatArray = np.abs(part.astype(np.float64))
    if size.size and size.max() >= LARGEST_WHOLE_FLOAT:
        large = np.flatnonzero(size >= LARGEST_WHOLE_FLOAT)
        if part.dtype.kind == "f":
            size[large] = np.nextafter(size[large], np.inf)
        else:
            size[large] = [float_upper(Fraction(abs(value))) for value in part[large].tolist()]
    return size


def absolute_measure_upper(measure: Measure, columns: Mapping[str, AnyArray]) -> FloatArray:
    """Return the absolute values of a measure, rounded up."""
    if not measure.derived:
        return absolute_upper(columns[measure.name])
    rows = len(next(iter(columns.values())))
    total, size, rounded = np.zeros(rows), np.zeros(rows), np.zeros(rows, np.bool_)
    for base, multiple in measure.multiples():
        steps = columns[base.name].astype(np.float64) * float(base.step.denominator) / float(base.step.numerator)
        near = np.rint(steps)
        lies_off = np.abs(steps - near) > np.abs(steps) * FLOAT_SNAP
        part = float(multiple) * np.where(lies_off, steps, near)
        total, size = total + part, size + np.abs(part)
        rounded |= lies_off | (np.abs(steps) >= MOST_SCALED_STEPS)
    up, down = float(measure.step.numerator), float(measure.step.denominator)
    # Fewer steps on the lattice are added without rounding; else the sum may be off by less than is added here (T-OUTWARD).
    rounded |= size * up >= MOST_STEPS
    return np.asarray((np.abs(total) + np.where(rounded, size * LINEAR_ERROR, 0.0)) * up / down)


ZONED = "holds times with a time zone, which have no day of their own"
NEGATIVE = "is negative, but its measure was not declared signed"


def check_amounts(column: AnyArray, measure: Measure) -> None:
    """Refuse NaN, infinities and, unless the measure is signed, negative amounts."""
    if column.dtype.kind == "f" and (bad := int(np.count_nonzero(~np.isfinite(column)))):
        raise RecordError(column=measure.name, problem="is NULL, NaN or infinite", count=bad)
    if not measure.signed and column.dtype.kind in "if" and (bad := int(np.count_nonzero(column < 0))):
        raise RecordError(column=measure.name, problem=NEGATIVE, count=bad)


BoolArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
ORDERS: dict[str, Callable[[AnyArray, Any], Any]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
FEW = 8  # Distinct values of a column up to which every condition looks at every row; beyond, the rows are sorted once.
NOT_NUMBERS = "must contain numbers or NULL, because the policy compares it with a number"


@dataclass(frozen=True, slots=True)
class CodedColumn:
    """A column as indices into the list of its distinct values."""

    places: np.ndarray[tuple[int, ...], np.dtype[np.int32]]
    values: list[Cell | None]
    decided: dict[Condition, BoolArray] = field(default_factory=dict)
    """Answers for each distinct value, shared by all parts of the column."""
    shown: dict[ConditionColumn, dict[Cell | None, list[int]]] = field(default_factory=dict)
    """The indices of the values that show the same, as a whole, by a prefix or by a part; shared by all parts of the column."""
    sorted: list[tuple[IntArray, IntArray]] = field(default_factory=list)
    """The rows in the order of their indices, and where each index begins among them; made once asked for."""

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, rows: Any) -> "CodedColumn":
        return CodedColumn(self.places[rows], self.values, self.decided, self.shown)

    def test(self, condition: Condition, name: str) -> BoolArray:
        if condition not in self.decided:
            answers = (holds(condition, {name: value}) for value in self.values)
            self.decided[condition] = np.fromiter(answers, np.bool_, len(self.values))
        return self.decided[condition][self.places]

    def rows_among(self, condition: Among) -> IntArray:
        """Return the rows that hold one of the values."""
        if len(self.values) <= FEW:
            return np.flatnonzero(self.test(condition, condition.column.name))
        if condition.column not in self.shown:
            found: dict[Cell | None, list[int]] = {}
            for place, value in enumerate(self.values):
                found.setdefault(cell({condition.column.name: value}, condition.column), []).append(place)
            self.shown[condition.column] = found
        if not self.sorted:
            starts = np.concatenate([[0], np.cumsum(np.bincount(self.places, minlength=len(self.values)))])
            narrow = np.uint16 if len(self.values) <= 2**16 else np.int32  # 16 bits are sorted by counting
            self.sorted.append((np.argsort(self.places.astype(narrow), kind="stable"), starts))
        order, starts = self.sorted[0]
        found = self.shown[condition.column]
        codes = [code for value in condition.values for code in found.get(value, ())]
        return np.concatenate([order[:0], *(order[starts[code] : starts[code + 1]] for code in codes)])

    def numeric(self) -> bool:
        return all(value is None or isinstance(value, Fraction) for value in self.values)


@dataclass(frozen=True, slots=True)
class Numbers:
    """A column of whole or floating numbers; ``missing`` marks NULL."""

    values: AnyArray
    missing: BoolArray

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> "Numbers":
        return Numbers(self.values[rows], self.missing[rows])

    def test(self, condition: Condition, name: str) -> BoolArray:
        match condition:
            case Null(_, inside):
                return self.missing if inside else ~self.missing
            case Among(_, values, inside):
                listed, unsigned = self._members(values), self.values.dtype.kind == "u"
                # With a table, numpy 2.0 fails on unsigned numbers beyond the signed ones.
                found = np.isin(self.values, listed, invert=not inside, kind="sort" if unsigned else None)
                return found & ~self.missing
            case Compare(_, order, bound):
                return np.asarray(self._compare(order, bound), np.bool_) & ~self.missing
            case _:
                raise UnknownFormError(what="condition", found=type(condition).__name__)

    def _members(self, values: Iterable[Value]) -> Any:
        if self.values.dtype.kind == "f":
            return float_members(values)
        span = np.iinfo(self.values.dtype)
        wholes = [int(value) for value in values if isinstance(value, Fraction) and value.denominator == 1]
        return np.array([whole for whole in wholes if span.min <= whole <= span.max], self.values.dtype)

    def _compare(self, order: str, bound: Fraction) -> Any:
        if self.values.dtype.kind == "f":
            order, near = float_comparison(order, bound)
            return ORDERS[order](self.values, near)
        # For whole numbers x < 2.5 is x < 3 and x > 2.5 is x >= 3.
        whole = -int(-bound // 1)
        order = order if whole == bound else {"<=": "<", ">": ">="}.get(order, order)
        return ORDERS[order](self.values, whole)

    def rows_among(self, condition: Among) -> IntArray:
        """The rows that hold one of the values."""
        return np.flatnonzero(self.test(condition, condition.column.name))

    def numeric(self) -> bool:
        return True


GroupColumn: TypeAlias = CodedColumn | Numbers


def group_column(records: Any, name: str) -> GroupColumn:
    """Return a column used in conditions."""
    column = fetch(records, name)
    array = as_array(column)
    if array is None and getattr(getattr(column, "dtype", None), "kind", "") == "O":
        array = np.asarray(column, dtype=object)
    if array is None:
        return _from_arrow(arrow_array(column, name), name)
    if array.ndim != 1:
        raise RecordError(column=name, problem="is not one-dimensional")
    if array.dtype.kind == "M":
        return _from_arrow(arrow_array(array.astype("datetime64[D]"), name), name)
    if array.dtype.kind in "iuf":
        return _numbers(array, np.isnan(array) if array.dtype.kind == "f" else np.zeros(len(array), np.bool_), name)
    return _encode(array.tolist(), name)


def band_column(table: BandTable, groups: Mapping[str, GroupColumn]) -> Numbers:
    """The band of every row, from the columns of its cell."""
    numbers = [_value_numbers(table, at, groups[column.name]) for at, column in enumerate(table.columns)]
    bands = table.bands_at(numbers)
    return Numbers(bands, np.zeros(len(bands), np.bool_))


def _value_numbers(table: BandTable, at: int, held: GroupColumn) -> IntArray:
    """Return the table's number for each row's value, or -1."""
    column = table.columns[at]
    if isinstance(held, CodedColumn):
        shown = [cell({column.name: value}, column) for value in held.values]
        return table.value_numbers(at, shown)[held.places]
    # What stands where nothing is known may be no number.
    different, places = np.unique(np.where(held.missing, 0, held.values), return_inverse=True)
    listed = table.value_numbers(at, [read_float(value) for value in different.tolist()])[places]
    return np.where(held.missing, table.value_numbers(at, [None])[0], listed)


def _numbers(values: AnyArray, missing: BoolArray, name: str) -> Numbers:
    if values.dtype.kind == "f":
        values = values.astype(np.float64)
        if bad := int(np.count_nonzero(np.isinf(values))):
            raise RecordError(column=name, problem="is infinite", count=bad)
    return Numbers(values, missing)


def _encode(values: list[Any], name: str) -> CodedColumn:
    """Return codes for any mixture of Python objects."""
    found: dict[tuple[type, Any], int] = {}
    distinct: list[Cell | None] = []
    places = np.empty(len(values), np.int32)
    for row, value in enumerate(values):
        key = (type(value), value) if isinstance(value, (str, bool, int, date)) else (object, row)
        if key not in found:
            found[key] = len(distinct)
            distinct.append(cell_of({name: value}, name))
        places[row] = found[key]
    return CodedColumn(places, distinct)


def _from_arrow(array: Any, name: str) -> GroupColumn:
    import pyarrow

    kind = array.type
    if pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind):
        missing = array.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
        return _numbers(array.fill_null(0).to_numpy(zero_copy_only=False), missing, name)
    if pyarrow.types.is_null(kind):
        return _encode([None] * len(array), name)
    if pyarrow.types.is_timestamp(kind) and kind.tz is not None:
        raise RecordError(column=name, problem=ZONED)
    if pyarrow.types.is_timestamp(kind) or pyarrow.types.is_date(kind):
        array = array.cast(pyarrow.date32(), safe=False)
    if not pyarrow.types.is_dictionary(kind):
        array = array.cast("large_string") if str(kind) == "string_view" else array
        array = array.dictionary_encode()
    values: list[Any] = [*array.dictionary.to_pylist(), None]
    places = array.indices.fill_null(len(values) - 1).to_numpy(zero_copy_only=False).astype(np.int32)
    return CodedColumn(places, [cell_of({name: value}, name) for value in values])
