"""The public values in conditions, as text, boolean or exact number."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from recordwise.errors import ParameterError, RecordError, UnknownFormError
from recordwise.exact.numbers import fraction_text, moderate, rational


class Truth(Enum):
    """A boolean distinct from 1 and 0.

    In Python ``True == 1``, which would merge two different conditions.
    """

    TRUE = True
    FALSE = False


Value: TypeAlias = str | Truth | Fraction
"""A literal: text, boolean or exact number."""
Cell: TypeAlias = Value | date
"""What a record can hold in a column: what a literal can be, or a date, of which conditions see the parts."""


def literal(value: Any) -> Value:
    """A public value in canonical form: text, boolean or exact number."""
    if isinstance(value, (str, Truth)):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, (bool, np.bool_)):
        return Truth(bool(value))
    return moderate(rational(value, parameter="value"), parameter="value")


def plain_value(value: Value) -> str | bool | Fraction:
    """A literal as a user would write it."""
    return value.value if isinstance(value, Truth) else value


def value_key(value: Value) -> tuple[str, Any]:
    return (type(value).__name__, value.value if isinstance(value, Truth) else value)


def value_json(value: Value) -> Any:
    if isinstance(value, Truth):
        return value.value
    return {"number": fraction_text(value)} if isinstance(value, Fraction) else value


def float_comparison(order: str, bound: Fraction) -> tuple[str, float]:
    """The same comparison for floats read by their shortest decimal.

    Reading is increasing and ``float`` undoes it, so only the float next to the bound needs care: 0.3333333333333333 is below 1/3.
    """
    near = float(bound)
    read = Fraction(repr(near))
    if read == bound:
        return order, near
    looser = {"<": "<=", "<=": "<=", ">": ">", ">=": ">"}
    stricter = {"<": "<", "<=": "<", ">": ">=", ">=": ">="}
    return (looser if read < bound else stricter)[order], near


def float_members(values: Iterable[Value]) -> list[float]:
    """The floats that, read by their shortest decimal, are among the values."""
    numbers = [value for value in values if isinstance(value, Fraction)]
    return [float(value) for value in numbers if Fraction(repr(float(value))) == value]


# Parts of a date: year, quarter, month, and the week and year of ISO 8601. One meaning in every evaluator (T-DATES).
# A date is a day of the Gregorian calendar in the years 1 to 9999. A time of day without a zone is cut off. An ISO
# week begins on Monday and belongs to the year its Thursday is in, so that the first days of January can be in a week
# of the year before.


PARTS = {"year": (1, 9999), "quarter": (1, 4), "month": (1, 12), "week": (1, 53), "isoyear": (1, 9999)}
"""Every part with its smallest and largest value."""
WRITTEN = r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?)?"
"""How a date is written as text; a time without a zone may follow."""
CYCLE = 48
"""Any so many years in a row hold a year of every kind: leap or not, from each day of the week on, after each kind of year."""
IntArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


def check_part(part: str) -> None:
    """Refuse what is no part of a date."""
    if part not in PARTS:
        raise ParameterError(parameter="part", problem=f"of a date must be one of {', '.join(PARTS)}")


def day_of(value: Any) -> date | None:
    """The day a value stands for; None where it is none."""
    if isinstance(value, datetime):
        return value.date() if value.tzinfo is None else None
    if isinstance(value, date):
        return value
    if not isinstance(value, str) or re.fullmatch(WRITTEN, value) is None:
        return None
    try:
        return date.fromisoformat(value[:10])
    except ValueError:
        return None


def part_of(day: date, part: str) -> Fraction:
    """A part of a date, as the exact number that conditions compare."""
    match part:
        case "year":
            return Fraction(day.year)
        case "quarter":
            return Fraction((day.month + 2) // 3)
        case "month":
            return Fraction(day.month)
        case "week":
            return Fraction(day.isocalendar().week)
        case "isoyear":
            return Fraction(day.isocalendar().year)
        case _:
            raise ParameterError(parameter="part", problem=f"of a date must be one of {', '.join(PARTS)}")


def parts_of_days(days: IntArray) -> dict[str, IntArray]:
    """Every part of many days, counted from 1970-01-01."""
    written = days.astype("datetime64[D]")
    months = written.astype("datetime64[M]").astype(np.int64)
    thursday = days - (days + 3) % 7 + 3
    isoyear = thursday.astype("datetime64[D]").astype("datetime64[Y]")
    first = isoyear.astype("datetime64[D]").astype(np.int64)
    return {
        "year": months // 12 + 1970,
        "quarter": months % 12 // 3 + 1,
        "month": months % 12 + 1,
        "week": (thursday - first) // 7 + 1,
        "isoyear": isoyear.astype(np.int64) + 1970,
    }


def representatives(tests: Iterable[tuple[str, Fraction]]) -> list[date]:
    """Return dates that represent every answer to comparisons of date parts."""
    constants: dict[str, list[Fraction]] = {}
    for part, constant in tests:
        constants.setdefault(part, []).append(constant)
    days = _days(int(each) for part in ("year", "isoyear") for each in constants.get(part, []))
    parts = parts_of_days(days)
    # Where a value stands among the constants: between two of them, or on one.
    code = np.zeros(len(days), dtype=np.int64)
    for part, numbers in sorted(constants.items()):
        different = sorted(set(numbers))
        code = np.unique(
            code * (2 * len(different) + 1) + _constant_ranks(parts[part], different), return_inverse=True
        )[1]
    _, first = np.unique(code, return_index=True)
    return [date.fromordinal(int(day) + date(1970, 1, 1).toordinal()) for day in days[np.sort(first)]]


def _days(years: Iterable[int]) -> IntArray:
    """Return every day of the years around those that are named."""
    least, most = PARTS["year"]
    named = [min(max(year, least), most) for year in years] or [2000]
    around = {near for year in named for near in range(year - CYCLE, year + CYCLE + 1) if least <= near <= most}
    starts = np.array(sorted(around), dtype=np.int64) - 1970
    first = starts.astype("datetime64[Y]").astype("datetime64[D]").astype(np.int64)
    ends = (starts + 1).astype("datetime64[Y]").astype("datetime64[D]").astype(np.int64)
    return np.concatenate([np.arange(start, end) for start, end in zip(first, ends)])


def _constant_ranks(values: IntArray, constants: list[Fraction]) -> IntArray:
    """Return twice the number of smaller constants, plus one on equality."""
    below = np.zeros(len(values), dtype=np.int64)
    for each in constants:
        below += 2 * (values > each.numerator // each.denominator)
        if each.denominator == 1:
            below += values == each.numerator
    return below


# What a condition looks at: a column of the record, the first characters of a text, or a part of a date.


LONGEST_PREFIX = 1000
NO_DATE = "must contain dates without a time zone or NULL, because the policy looks at a part of it"


@dataclass(frozen=True, slots=True, order=True)
class ConditionColumn:
    """A column, a text prefix (``length``) or a date part (``part``)."""

    name: str
    length: int | None = None
    part: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ParameterError(parameter="column", problem="needs a name")
        if self.length is not None and (type(self.length) is not int or not 1 <= self.length <= LONGEST_PREFIX):
            raise ParameterError(
                parameter="length", problem=f"of a prefix must be a whole number from 1 to {LONGEST_PREFIX}"
            )
        if self.part:
            check_part(self.part)
            if self.length is not None:
                raise ParameterError(parameter="length", problem="is for text, part is for dates: give one of them")

    def determines(self, other: "ConditionColumn") -> bool:
        """Whether records that agree here agree on another column.

        Args:
            other: The other column.

        Returns:
            True if they must agree on it: it is the same, or a prefix of what is known here.
        """
        if self.name != other.name or self.part != other.part:
            return False
        return self.length is None or (other.length is not None and other.length <= self.length)

    def to_json(self) -> Any:
        """The saved form."""
        if self.part:
            return {"part": self.part, "of": self.name}
        return self.name if self.length is None else [self.name, self.length]


def column_from_json(form: Any) -> ConditionColumn:
    """Read back what ``to_json`` wrote; an unknown form is refused."""
    match form:
        case str(name):
            return ConditionColumn(name)
        case [str(name), int(length)]:
            return ConditionColumn(name, length)
        case {"part": str(part), "of": str(name), **rest} if not rest and part:
            return ConditionColumn(name, part=part)
        case _:
            raise UnknownFormError(what="column", found=form)


def cell(record: dict[str, Cell | None], column: ConditionColumn) -> Cell | None:
    """Return a record's value of a column, prefix or date part."""
    value = record[column.name]
    if column.part:
        return None if value is None else part_of(_day(value, column.name), column.part)
    return value[: column.length] if column.length and isinstance(value, str) else value


def _day(value: Cell, name: str) -> date:
    day = day_of(value)
    if day is None:
        raise RecordError(column=name, problem=NO_DATE)
    return day
