"""Predicates as conditions of a policy: the records a query can see (T-WHERE).

A predicate has three values and selects where it is true; a condition has two. So a predicate is read twice, once for where it is
true and once for where it is false, and NOT swaps the two.
"""

from fractions import Fraction

from recordwise.plan.fields import Field, Literal
from recordwise.plan.predicates import And, In, IsNull, Not, Operand, Or, Predicate
from recordwise.policy import Column, Condition, Null, among, both, compare, either

_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def condition(predicate: Predicate) -> Condition:
    """Where the predicate is true. Exact, but for the order of texts, which becomes "is not NULL": more records, never fewer."""
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


def _comparison(column: Column, operator: str, literal: Literal) -> Condition:
    if operator in ("=", "<>"):
        return among(column, [literal], inside=operator == "=")
    if isinstance(literal, Fraction):
        return compare(column, operator, literal)
    return Null(column, inside=False)


def policy_column(operand: Operand) -> Column:
    """A column or a prefix in the policy language."""
    return Column(operand.name) if isinstance(operand, Field) else Column(operand.column, operand.length)
