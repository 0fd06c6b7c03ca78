"""Parts of a date: year, quarter, month, and the week and year of ISO 8601. One meaning in every evaluator (T-DATES).

A date is a day of the Gregorian calendar in the years 1 to 9999. A time of day without a zone is cut off. An ISO week begins on
Monday and belongs to the year its Thursday is in, so that the first days of January can be in a week of the year before.
"""

import re
from collections.abc import Iterable
from datetime import date, datetime
from fractions import Fraction
from typing import Any

import numpy as np

from recordwise.errors import ParameterError

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
    """Dates of which one answers all comparisons of parts with constants as any date of the calendar does."""
    constants: dict[str, list[Fraction]] = {}
    for part, constant in tests:
        constants.setdefault(part, []).append(constant)
    days = _days(int(each) for part in ("year", "isoyear") for each in constants.get(part, []))
    parts = parts_of_days(days)
    # Where a value stands among the constants: between two of them, or on one.
    code = np.zeros(len(days), dtype=np.int64)
    for part, numbers in sorted(constants.items()):
        different = sorted(set(numbers))
        code = np.unique(code * (2 * len(different) + 1) + _places(parts[part], different), return_inverse=True)[1]
    _, first = np.unique(code, return_index=True)
    return [date.fromordinal(int(day) + date(1970, 1, 1).toordinal()) for day in days[np.sort(first)]]


def _days(years: Iterable[int]) -> IntArray:
    """Every day of the years around those that are named, or of some years where none is."""
    least, most = PARTS["year"]
    named = [min(max(year, least), most) for year in years] or [2000]
    around = {near for year in named for near in range(year - CYCLE, year + CYCLE + 1) if least <= near <= most}
    starts = np.array(sorted(around), dtype=np.int64) - 1970
    first = starts.astype("datetime64[Y]").astype("datetime64[D]").astype(np.int64)
    ends = (starts + 1).astype("datetime64[Y]").astype("datetime64[D]").astype(np.int64)
    return np.concatenate([np.arange(start, end) for start, end in zip(first, ends)])


def _places(values: IntArray, constants: list[Fraction]) -> IntArray:
    """Twice the number of constants below, and one more on a constant; a constant that is not whole is met by none."""
    below = np.zeros(len(values), dtype=np.int64)
    for each in constants:
        below += 2 * (values > each.numerator // each.denominator)
        if each.denominator == 1:
            below += values == each.numerator
    return below
