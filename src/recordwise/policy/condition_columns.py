"""What a condition looks at: a column of the record, the first characters of a text, or a part of a date."""

from dataclasses import dataclass
from datetime import date
from typing import Any

from recordwise.errors import ParameterError, RecordError, UnknownFormError
from recordwise.policy.dates import check_part, day_of, part_of
from recordwise.policy.literals import Cell

LONGEST_PREFIX = 1000
NO_DATE = "must contain dates without a time zone or NULL, because the policy looks at a part of it"


@dataclass(frozen=True, slots=True, order=True)
class ConditionColumn:
    """A column of the record, the first characters of a text column (``length``), or a part of a date (``part``)."""

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
    """What a record shows in a column, a prefix or a part of a date."""
    value = record[column.name]
    if column.part:
        return None if value is None else part_of(_day(value, column.name), column.part)
    return value[: column.length] if column.length and isinstance(value, str) else value


def _day(value: Cell, name: str) -> date:
    day = day_of(value)
    if day is None:
        raise RecordError(column=name, problem=NO_DATE)
    return day
