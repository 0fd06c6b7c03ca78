"""What a policy depends on: public values in conditions, and measures."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import Enum
from fractions import Fraction
from itertools import pairwise
from math import floor, gcd, lcm
from typing import Any, TypeAlias

import numpy as np

from recordwise.errors import ParameterError, RecordError, UnknownFormError, own_errors_of
from recordwise.exact.numbers import fraction_text, moderate, positive, rational, read_fraction


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


def read_float(value: float) -> Fraction:
    """Return the number that a float stands for in conditions: its shortest decimal, but a whole number beyond 2^53 itself.

    Whole numbers stored as floats are converted exactly by engines, and a shortest decimal may be another whole number.
    """
    return Fraction(int(value)) if abs(value) > 2**53 else Fraction(repr(value))


def float_comparison(order: str, bound: Fraction) -> tuple[str, float]:
    """The same comparison for floats.

    Reading is increasing and ``float`` undoes it, so only the float next to the bound needs care: 0.3333333333333333 is below 1/3.
    """
    near = float(bound)
    read = read_float(near)
    if read == bound:
        return order, near
    looser = {"<": "<=", "<=": "<=", ">": ">", ">=": ">"}
    stricter = {"<": "<", "<=": "<", ">": ">=", ">=": ">="}
    return (looser if read < bound else stricter)[order], near


def float_members(values: Iterable[Value]) -> list[float]:
    """The floats that are read as one of the values."""
    numbers = [value for value in values if isinstance(value, Fraction)]
    return [float(value) for value in numbers if read_float(float(value)) == value]


# Parts of a date: year, quarter, month, and the week and year of ISO 8601. One meaning in every evaluator (T-DATES).
# A date is a day of the Gregorian calendar in the years 1 to 9999. A time of day without a zone is cut off. An ISO
# week begins on Monday and belongs to the year its Thursday is in, so that the first days of January can be in a week
# of the year before.


PARTS = {"year": (1, 9999), "quarter": (1, 4), "month": (1, 12), "week": (1, 53), "isoyear": (1, 9999)}
"""Every part with its smallest and largest value."""
WRITTEN = r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?)?"
"""How a date is written as text; a time without a zone may follow."""
CYCLE = 48
"""Any run of this many years has a year of every kind: leap or not, from each day of the week on, after each kind of year."""
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


@own_errors_of
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


# The measures of a policy, and their lattices.


SNAP = Fraction(1, 2**50)
"""A value this close (relatively, from above) to a lattice point is that point: 2.1 as a float is not exactly 21 steps of 0.1."""
FLOAT_SNAP = 2.0**-51
"""The same for evaluation in floats: above their error on a lattice point, below SNAP by more than that error, so that floats
never count fewer steps (T-OUTWARD)."""
MOST_SCALED_STEPS = 2.0**49
"""From here on a float that was divided by a step can miss its lattice point; its steps are then rounded up."""
MOST_STEPS = 2**53
"""The largest threshold in steps: all integers up to here are floats."""
LINEAR_ERROR = 2.0**-47
"""How far a linear form of many steps may be off in floats, as a share of the sum of the absolute values of its parts."""
MOST_DERIVED_FROM = 15
"""So few that the roundings of a sum of floats stay within what is added for them (T-OUTWARD)."""


@own_errors_of
@dataclass(frozen=True, slots=True, order=True)
class Measure:
    """A column that is summed, on a lattice.

    Its values are multiples of ``step`` (1 employee, 0.01 dollars), negative only if ``signed``. A measure may
    be ``derived``: a linear form of others with public coefficients. A record then holds the others, and the
    loss is looked up in them (T-JOINT).
    """

    name: str
    # Policies look up atoms of a few measures, which differ by their names: numbers would only take time to hash.
    step: Fraction = field(default=Fraction(1), hash=False)
    signed: bool = False
    derived: tuple[tuple["Measure", Fraction], ...] = field(default=(), hash=False)
    """The measures it is a linear form of, sorted, each with its coefficient; empty for a measure that records hold."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ParameterError(parameter="measure", problem="needs a name")
        object.__setattr__(self, "step", moderate(positive(self.step, parameter="step"), parameter="step"))
        for part in (self.step.numerator, self.step.denominator):
            if int(float(part)) != part:
                raise ParameterError(parameter="step", problem="must be a ratio of two integers of at most 15 digits")
        if not isinstance(self.signed, bool):
            raise ParameterError(parameter="signed", problem="must be True or False")
        if self.derived:
            self._check_derived()

    def _check_derived(self) -> None:
        """Refuse a form with values off the lattice or unexpectedly negative."""
        bases, multiples = self.inputs(), [share * base.step / self.step for base, share in self.derived]
        if any(base.derived for base in bases) or list(bases) != sorted({base.name: base for base in bases}.values()):
            problem = "must name measures that records hold, each once and in order"
            raise ParameterError(parameter=f"derived '{self.name}'", problem=problem)
        if len(bases) > MOST_DERIVED_FROM:
            problem = f"must name at most {MOST_DERIVED_FROM} measures"
            raise ParameterError(parameter=f"derived '{self.name}'", problem=problem)
        if any(each.denominator != 1 or not 0 < abs(each) <= MOST_STEPS for each in multiples):
            problem = "must have steps that divide those of its measures, at most 2^53 to one"
            raise ParameterError(parameter=f"derived '{self.name}'", problem=problem)
        if self.signed != any(share < 0 or base.signed for base, share in self.derived):
            raise ParameterError(parameter=f"derived '{self.name}'", problem="has the wrong sign")

    @classmethod
    def linear(cls, name: str, form: Mapping["Measure", Fraction]) -> "Measure":
        """Return a linear form of other measures as a measure.

        Its step is the greatest common step of their products with the coefficients.

        Args:
            name: The name of the form.
            form: The coefficient of each measure.

        Returns:
            The derived measure.

        Raises:
            ParameterError: The form is always 0, has too many measures, or a measure is derived itself.

        Example:
            >>> pay, emp = Measure("pay", Fraction(1, 2)), Measure("emp")
            >>> Measure.linear("rest", {pay: Fraction(1), emp: Fraction(-45)}).step
            Fraction(1, 2)
        """
        kept = {base: share for base, share in form.items() if share}
        if not kept:
            raise ParameterError(parameter=f"derived '{name}'", problem="must not be 0 for every record")
        signed = any(share < 0 or base.signed for base, share in kept.items())
        step = common_step([abs(share) * base.step for base, share in kept.items()])
        return cls(name, step, signed, tuple(sorted(kept.items())))

    def inputs(self) -> tuple["Measure", ...]:
        """Return the measures that a record holds."""
        return tuple(base for base, _ in self.derived) or (self,)

    def multiples(self) -> tuple[tuple["Measure", int], ...]:
        """Return the derived measure's steps per step of each input."""
        return tuple((base, int(share * base.step / self.step)) for base, share in self.derived)

    def value(self, record: Mapping[str, Fraction]) -> Fraction:
        """The value of a record, with its sign.

        Args:
            record: The amounts of the measures that the record holds.

        Returns:
            The exact value.
        """
        if not self.derived:
            return record[self.name]
        return sum((share * base.snap(record[base.name]) for base, share in self.derived), Fraction(0))

    def snap(self, value: Fraction) -> Fraction:
        """A value, or the lattice point it is as good as on.

        Args:
            value: An amount of this measure.

        Returns:
            The lattice point if the value is within 2^-50 of it, relatively; else the value.
        """
        point = self.step * round(value / self.step)
        return point if abs(value - point) <= SNAP * abs(value) else value

    @classmethod
    def of(cls, measure: "Measure | str") -> "Measure":
        """A measure from its name (nonnegative integers), or the measure itself.

        Args:
            measure: A name, or a measure.

        Returns:
            The measure.
        """
        return measure if isinstance(measure, Measure) else cls(measure)

    def on_lattice(self, value: Fraction, *, parameter: str) -> Fraction:
        """Return the value, or refuse it if off the lattice.

        Args:
            value: A value of the measure.
            parameter: The name to use in an error message.

        Returns:
            The same value, exactly.
        """
        if (value / self.step).denominator != 1:
            raise ParameterError(
                parameter=parameter,
                problem=f"must be a multiple of the step {self.step} of '{self.name}', not {value}",
            )
        return value

    def steps(self, value: Fraction) -> int:
        """Return the value's number of steps, rounded up.

        Args:
            value: A value of the measure.

        Returns:
            The number of steps.
        """
        exact = value / self.step
        below = floor(exact)
        return below + (exact > below * (1 + SNAP))

    def to_json(self) -> Any:
        """The saved form."""
        form = [self.name, fraction_text(self.step), "signed" if self.signed else "nonnegative"]
        if not self.derived:
            return form
        return [*form, [[*base.to_json(), fraction_text(share)] for base, share in self.derived]]

    @classmethod
    def from_json(cls, form: Any) -> "Measure":
        """Read back what ``to_json`` wrote.

        Args:
            form: The saved form, as read from JSON.

        Returns:
            The measure.
        """
        match form:
            case [str(name), str(step), "signed" | "nonnegative" as sign]:
                return cls(name, positive(step, parameter="step"), sign == "signed")
            case [str(name), str(step), "signed" | "nonnegative" as sign, [*rows]] if rows:
                return cls(name, positive(step, parameter="step"), sign == "signed", tuple(map(_share_from_json, rows)))
            case _:
                raise UnknownFormError(what="measure", found=form)


def _share_from_json(row: Any) -> tuple[Measure, Fraction]:
    match row:
        case [name, step, sign, str(share)]:
            return Measure.from_json([name, step, sign]), _coefficient(share)
        case _:
            raise UnknownFormError(what="measure", found=row)


def _coefficient(text: str) -> Fraction:
    try:
        return read_fraction(text)
    except (ValueError, ZeroDivisionError):
        raise UnknownFormError(what="number", found=text) from None


def common_step(steps: Sequence[Fraction]) -> Fraction:
    """The greatest number that every step is a whole multiple of."""
    whole = lcm(*(step.denominator for step in steps))
    return Fraction(gcd(*(int(step * whole) for step in steps)), whole)


def check_one_measure_a_name(measures: Iterable[Measure]) -> None:
    """Refuse two measures of one name: the policy would be ambiguous."""
    for first, second in pairwise(sorted({each for measure in measures for each in (measure, *measure.inputs())})):
        if first.name == second.name:
            raise ParameterError(
                parameter=f"measure '{first.name}'",
                problem="is used with different steps, signs or derivations in one policy",
            )
