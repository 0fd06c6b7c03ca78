"""What a record can be grouped by: a column, a prefix of a code, or a CASE over predicates."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from recordwise.errors import ParameterError
from recordwise.policy.literals import Value, literal

if TYPE_CHECKING:
    from recordwise.plan.predicates import Predicate

Literal: TypeAlias = Value
"""A constant in a query: text, truth value or exact number, in the one form that policies, drawing and SQL compare."""

LONGEST_PREFIX = 64


@dataclass(frozen=True, slots=True)
class Field:
    """A column or a measure, by name; the schema says which when the query joins a plan."""

    name: str

    def default_name(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Prefix:
    """The first ``length`` characters of a text column: NAICS 44-45 down to six digits, a state out of a county code."""

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
class Case:
    """Labels chosen by the first predicate that holds. Predicates see the whole, unsplit record."""

    branches: tuple[tuple["Predicate", Literal], ...]
    default: Literal

    def __post_init__(self) -> None:
        if not self.branches:
            raise ParameterError(parameter="CASE", problem="needs at least one branch")
        object.__setattr__(self, "branches", tuple((test, literal(label)) for test, label in self.branches))
        object.__setattr__(self, "default", literal(self.default))

    def labels(self) -> tuple[Literal, ...]:
        return (*(label for _, label in self.branches), self.default)


Expression: TypeAlias = Field | Prefix | Case


@dataclass(frozen=True, slots=True)
class Group:
    """A group expression under the name it has in the keys and in the published table."""

    name: str
    expression: Expression


def prefix(column: str, length: int | Iterable[int]) -> Prefix | tuple[Prefix, ...]:
    """One prefix, or one for each level: ``prefix("naics", [2, 3, 4, 5, 6])``."""
    if isinstance(length, int):
        return Prefix(column, length)
    return tuple(Prefix(column, each) for each in length)


def finer(candidate: Expression, wanted: Expression) -> bool:
    """Whether the value of ``wanted`` is a function of the value of ``candidate`` alone (T-ROLLUP)."""
    if candidate == wanted:
        return True
    if not isinstance(wanted, Prefix):
        return False
    if isinstance(candidate, Field):
        return candidate.name == wanted.column
    return isinstance(candidate, Prefix) and candidate.column == wanted.column and candidate.length >= wanted.length
