"""What a record can be grouped by: a column, a prefix of a code, a part of a date, or a CASE over predicates.

A query can publish several tables: the levels of a code, or geographies that do not nest, each with a share of the budget.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

from recordwise.errors import ParameterError
from recordwise.exact.numbers import Number, positive
from recordwise.policy.dates import check_part
from recordwise.policy.literals import Value, literal

if TYPE_CHECKING:
    from recordwise.plan.predicates import Predicate


Literal: TypeAlias = Value
"""A constant in a query: text, a truth value or an exact number, in the form that policies, drawing and SQL all compare."""

LONGEST_PREFIX = 64

ALL_OTHER = "all_other"
"""The key column that is true for the published rest of a coarser cell: its records in no listed finer cell."""


@dataclass(frozen=True, slots=True)
class Field:
    """A column or a measure, by name; the schema determines which when the query joins a plan."""

    name: str

    def default_name(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Prefix:
    """The first ``length`` characters of a text column: NAICS sectors to six-digit codes, or the state in a county code."""

    column: str
    length: int

    def __post_init__(self) -> None:
        if isinstance(self.length, bool) or not isinstance(self.length, int) or not 1 <= self.length <= LONGEST_PREFIX:
            raise ParameterError(
                parameter="prefix length", problem=f"must be a whole number from 1 to {LONGEST_PREFIX}"
            )

    def default_name(self) -> str:
        return f"{self.column}{self.length}"


@dataclass(frozen=True, slots=True)
class DatePart:
    """A part of a date as a whole number: year, quarter, month, ISO week (``week``) or ISO year (``isoyear``)."""

    column: str
    part: str

    def __post_init__(self) -> None:
        check_part(self.part)

    def default_name(self) -> str:
        return f"{self.column}_{self.part}"


@dataclass(frozen=True, slots=True)
class Case:
    """Labels chosen by the first predicate that is true. Predicates see the whole, unsplit record."""

    branches: tuple[tuple["Predicate", Literal], ...]
    default: Literal

    def __post_init__(self) -> None:
        if not self.branches:
            raise ParameterError(parameter="CASE", problem="needs at least one branch")
        object.__setattr__(self, "branches", tuple((test, literal(label)) for test, label in self.branches))
        object.__setattr__(self, "default", literal(self.default))

    def labels(self) -> tuple[Literal, ...]:
        return (*(label for _, label in self.branches), self.default)


Expression: TypeAlias = Field | Prefix | DatePart | Case


@dataclass(frozen=True, slots=True)
class Group:
    """A group expression and its name in the keys and in the published table."""

    name: str
    expression: Expression


def prefix(column: str, length: int | Iterable[int]) -> Prefix | tuple[Prefix, ...]:
    """One prefix, or one for each level: ``prefix("naics", [2, 3, 4, 5, 6])``.

    Args:
        column: A text column, such as an industry code.
        length: The number of characters to keep, or one number for each level.

    Returns:
        A group for ``group_by``, or the groups for ``levels``.
    """
    if isinstance(length, int):
        return Prefix(column, length)
    return tuple(Prefix(column, each) for each in length)


def year(column: str) -> DatePart:
    """The year of a date: ``group_by(rw.year("opened"))``, published as ``opened_year``.

    Args:
        column: A column of type date.

    Returns:
        What ``group_by`` and ``levels`` take; its values are whole numbers.
    """
    return DatePart(column, "year")


def quarter(column: str) -> DatePart:
    """The quarter of a date, 1 to 4.

    Args:
        column: A column of type date.

    Returns:
        What ``group_by`` and ``levels`` take; its values are whole numbers.
    """
    return DatePart(column, "quarter")


def month(column: str) -> DatePart:
    """The month of a date, 1 to 12.

    Args:
        column: A column of type date.

    Returns:
        What ``group_by`` and ``levels`` take; its values are whole numbers.
    """
    return DatePart(column, "month")


def week(column: str) -> DatePart:
    """The week of a date by ISO 8601, 1 to 53; it belongs to the ``isoyear``, which around New Year is not the year.

    Args:
        column: A column of type date.

    Returns:
        What ``group_by`` and ``levels`` take; its values are whole numbers.
    """
    return DatePart(column, "week")


def isoyear(column: str) -> DatePart:
    """The year that the ISO week of a date belongs to.

    Args:
        column: A column of type date.

    Returns:
        What ``group_by`` and ``levels`` take; its values are whole numbers.
    """
    return DatePart(column, "isoyear")


def finer(candidate: Expression, wanted: Expression) -> bool:
    """Whether the value of ``wanted`` is a function of the value of ``candidate`` alone (T-ROLLUP)."""
    if candidate == wanted:
        return True
    if not isinstance(wanted, Prefix):
        return False
    if isinstance(candidate, Field):
        return candidate.name == wanted.column
    return isinstance(candidate, Prefix) and candidate.column == wanted.column and candidate.length >= wanted.length


@dataclass(frozen=True, slots=True)
class Choice:
    """One level of an axis, with its share of the query's budget."""

    group: Group
    share: Fraction


@dataclass(frozen=True, slots=True)
class Level:
    """One published table of a query: its groups, and its share of the budget."""

    groups: tuple[Group, ...]
    share: Fraction

    def names(self) -> tuple[str, ...]:
        return tuple(group.name for group in self.groups)


def as_group(given: "str | Expression | Group") -> Group:
    """A group under its own name; a CASE has no name, so it must be given as a ``Group``."""
    if isinstance(given, str):
        return Group(given, Field(given))
    if isinstance(given, Case):
        raise ParameterError(parameter="group_by", problem="needs a name for a CASE", advice="Pass Group(name, case).")
    return given if isinstance(given, Group) else Group(given.default_name(), given)


def flat(given: Iterable["str | Expression | Group | tuple[Prefix, ...]"]) -> list[Group]:
    """The groups of a call, with tuples of prefixes flattened."""
    groups: list[Group] = []
    for each in given:
        groups.extend(as_group(one) for one in (each if isinstance(each, tuple) else (each,)))
    return groups


def axis(groups: Sequence[Group], share: Sequence[Number] | None) -> tuple[Choice, ...]:
    """The choices of one axis. Shares must add up to exactly 1; by default they are equal."""
    if not groups:
        raise ParameterError(parameter="levels", problem="needs at least one level")
    shares = (
        [Fraction(1, len(groups))] * len(groups) if share is None else [positive(s, parameter="share") for s in share]
    )
    if len(shares) != len(groups) or sum(shares) != 1:
        raise ParameterError(
            parameter="share",
            problem=f"must be {len(groups)} numbers that add up to 1",
            advice="Write thirds as '1/3'.",
        )
    return tuple(Choice(group, part) for group, part in zip(groups, shares))


def levels_of(groups: tuple[Group, ...], axes: tuple[tuple[Choice, ...], ...]) -> tuple[Level, ...]:
    """Every combination of the axes with the fixed groups; shares multiply, so they still add up to 1."""
    levels = []
    for choices in product(*axes):
        share = Fraction(1)
        for choice in choices:
            share *= choice.share
        levels.append(Level((*groups, *(choice.group for choice in choices)), share))
    return tuple(levels)
