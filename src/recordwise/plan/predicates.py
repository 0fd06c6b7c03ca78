"""Predicates on one record: the closed language of WHERE and CASE. They are three-valued as in SQL, and a record is selected where
its predicate is true.

BETWEEN is read as two comparisons, NOT IN as NOT of IN, and IS NOT NULL as NOT of IS NULL, so six forms are enough.

Predicates also become conditions of a policy: the records that a query can see (T-WHERE). A condition has only two values, so a
predicate is converted twice, once for where it is true and once for where it is false, and NOT swaps the two.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from recordwise.errors import ParameterError
from recordwise.plan.fields import DatePart, Field, Literal, Prefix
from recordwise.policy.conditions import Condition, ConditionColumn, Null, among, both, compare, either
from recordwise.policy.literals import literal

Operand: TypeAlias = Field | Prefix | DatePart
OPERATORS = ("=", "<>", "<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True)
class Compare:
    """``operand operator literal``."""

    operand: Operand
    operator: str
    literal: Literal

    def __post_init__(self) -> None:
        if self.operator not in OPERATORS:
            raise ParameterError(parameter="operator", problem=f"must be one of {', '.join(OPERATORS)}")
        object.__setattr__(self, "literal", literal(self.literal))


@dataclass(frozen=True, slots=True)
class In:
    """``operand IN (literals)``."""

    operand: Operand
    literals: tuple[Literal, ...]

    def __post_init__(self) -> None:
        if not self.literals:
            raise ParameterError(parameter="IN", problem="needs at least one value")
        object.__setattr__(self, "literals", tuple(map(literal, self.literals)))


@dataclass(frozen=True, slots=True)
class IsNull:
    """``operand IS NULL``: possible only for a column declared ``null="category"``."""

    operand: Operand


@dataclass(frozen=True, slots=True)
class And:
    """All of the parts."""

    parts: tuple["Predicate", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Any of the parts."""

    parts: tuple["Predicate", ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The negation; unknown stays unknown."""

    part: "Predicate"


Predicate: TypeAlias = Compare | In | IsNull | And | Or | Not


def leaves(predicate: Predicate) -> Iterator[Compare | In | IsNull]:
    """Every comparison inside a predicate."""
    if isinstance(predicate, And | Or):
        for part in predicate.parts:
            yield from leaves(part)
    elif isinstance(predicate, Not):
        yield from leaves(predicate.part)
    else:
        yield predicate


def operand_name(operand: Operand) -> str:
    """The column or measure that an operand refers to."""
    return operand.name if isinstance(operand, Field) else operand.column


def conjunction(left: Predicate | None, right: Predicate) -> Predicate:
    """The conjunction, flattened where possible."""
    if left is None:
        return right
    parts = (left.parts if isinstance(left, And) else (left,)) + (right.parts if isinstance(right, And) else (right,))
    return And(parts)


_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def condition(predicate: Predicate) -> Condition:
    """Where the predicate is true. Exact except for text order, which becomes "is not NULL": more records, never fewer."""
    return _where(predicate, true=True)


def _where(predicate: Predicate, *, true: bool) -> Condition:
    if isinstance(predicate, Not):
        return _where(predicate.part, true=not true)
    if isinstance(predicate, And | Or):
        parts = [_where(part, true=true) for part in predicate.parts]
        return both(*parts) if isinstance(predicate, And) == true else either(*parts)
    column = policy_column(predicate.operand)
    if isinstance(predicate, IsNull):
        return Null(column, inside=true)
    if isinstance(predicate, In):
        return among(column, predicate.literals, inside=true)
    return _comparison(column, predicate.operator if true else _OPPOSITE[predicate.operator], predicate.literal)


def _comparison(column: ConditionColumn, operator: str, literal: Literal) -> Condition:
    if operator in ("=", "<>"):
        return among(column, [literal], inside=operator == "=")
    if isinstance(literal, Fraction):
        return compare(column, operator, literal)
    return Null(column, inside=False)


def policy_column(operand: Operand) -> ConditionColumn:
    """A column, a prefix or a part of a date in the policy language."""
    if isinstance(operand, DatePart):
        return ConditionColumn(operand.column, part=operand.part)
    return (
        ConditionColumn(operand.name) if isinstance(operand, Field) else ConditionColumn(operand.column, operand.length)
    )
