"""The columns conditions look at, in a form in which a condition is decided exactly and fast for all rows."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from operator import ge, gt, le, lt
from typing import Any, TypeAlias

import numpy as np

from recordwise.errors import RecordError, UnknownFormError
from recordwise.policy.columns import AnyArray, arrow_array, as_array, cell_of, fetch
from recordwise.policy.conditions import Among, Compare, Condition, Null, holds
from recordwise.policy.literals import Value, float_comparison, float_members

BoolArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
ORDERS: dict[str, Callable[[AnyArray, Any], Any]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
NOT_NUMBERS = "must hold numbers or NULL; the policy compares it with a number"


@dataclass(frozen=True, slots=True)
class Coded:
    """A column as places in the list of its distinct values, so that a condition is decided once per distinct value."""

    places: np.ndarray[tuple[int, ...], np.dtype[np.int32]]
    values: list[Value | None]
    decided: dict[Condition, BoolArray] = field(default_factory=dict)
    """Answers for each distinct value, shared by all parts of the column."""

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, rows: Any) -> "Coded":
        return Coded(self.places[rows], self.values, self.decided)

    def test(self, condition: Condition, name: str) -> BoolArray:
        if condition not in self.decided:
            answers = (holds(condition, {name: value}) for value in self.values)
            self.decided[condition] = np.fromiter(answers, np.bool_, len(self.values))
        return self.decided[condition][self.places]

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
                return np.isin(self.values, self._members(values), invert=not inside) & ~self.missing
            case Compare(_, order, bound):
                return np.asarray(self._ordered(order, bound), np.bool_) & ~self.missing
            case _:
                raise UnknownFormError(what="condition", found=type(condition).__name__)

    def _members(self, values: Iterable[Value]) -> Any:
        if self.values.dtype.kind == "f":
            return float_members(values)
        span = np.iinfo(self.values.dtype)
        wholes = [int(value) for value in values if isinstance(value, Fraction) and value.denominator == 1]
        return np.array([whole for whole in wholes if span.min <= whole <= span.max], self.values.dtype)

    def _ordered(self, order: str, bound: Fraction) -> Any:
        if self.values.dtype.kind == "f":
            order, near = float_comparison(order, bound)
            return ORDERS[order](self.values, near)
        # For whole numbers x < 2.5 is x < 3 and x > 2.5 is x >= 3.
        whole = -int(-bound // 1)
        order = order if whole == bound else {"<=": "<", ">": ">="}.get(order, order)
        return ORDERS[order](self.values, whole)

    def numeric(self) -> bool:
        return True


GroupColumn: TypeAlias = Coded | Numbers


def group_column(records: Any, name: str) -> GroupColumn:
    """A column conditions look at: numbers as they are, everything else by its distinct values."""
    column = fetch(records, name)
    array = as_array(column)
    if array is None and getattr(getattr(column, "dtype", None), "kind", "") == "O":
        array = np.asarray(column, dtype=object)
    if array is None:
        return _from_arrow(arrow_array(column, name), name)
    if array.ndim != 1:
        raise RecordError(column=name, problem="is no column")
    if array.dtype.kind in "iuf":
        return _numbers(array, np.isnan(array) if array.dtype.kind == "f" else np.zeros(len(array), np.bool_), name)
    return _coded(array.tolist(), name)


def _numbers(values: AnyArray, missing: BoolArray, name: str) -> Numbers:
    if values.dtype.kind == "f":
        values = values.astype(np.float64)
        if bad := int(np.count_nonzero(np.isinf(values))):
            raise RecordError(column=name, problem="is infinite", count=bad)
    return Numbers(values, missing)


def _coded(values: list[Any], name: str) -> Coded:
    """Codes for Python objects of any mixture; ``True`` and 1 are told apart by their type."""
    found: dict[tuple[type, Any], int] = {}
    distinct: list[Value | None] = []
    places = np.empty(len(values), np.int32)
    for row, value in enumerate(values):
        key = (type(value), value) if isinstance(value, (str, bool, int)) else (object, row)
        if key not in found:
            found[key] = len(distinct)
            distinct.append(cell_of({name: value}, name))
        places[row] = found[key]
    return Coded(places, distinct)


def _from_arrow(array: Any, name: str) -> GroupColumn:
    import pyarrow

    kind = array.type
    if pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind):
        missing = array.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
        return _numbers(array.fill_null(0).to_numpy(zero_copy_only=False), missing, name)
    if pyarrow.types.is_null(kind):
        return _coded([None] * len(array), name)
    if not pyarrow.types.is_dictionary(kind):
        array = array.cast("large_string") if str(kind) == "string_view" else array
        array = array.dictionary_encode()
    values: list[Any] = [*array.dictionary.to_pylist(), None]
    places = array.indices.fill_null(len(values) - 1).to_numpy(zero_copy_only=False).astype(np.int32)
    return Coded(places, [cell_of({name: value}, name) for value in values])
