"""A slow and obvious way to compute what an engine computes, on lists of dictionaries, for the tests to compare with."""

import operator
from fractions import Fraction

from recordwise.plan import Case, Prefix
from recordwise.plan.expressions import And, Compare, In, IsNull, Not, Or
from recordwise.policy.columns import literal

OPERATORS = {"=": "eq", "<>": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


def value_of(expression, row):
    if isinstance(expression, Case):
        return next((label for test, label in expression.branches if truth(test, row) is True), expression.default)
    value = row[expression.column if isinstance(expression, Prefix) else expression.name]
    if isinstance(expression, Prefix):
        return None if value is None else value[: expression.length]
    return Fraction(value) if isinstance(value, int) and not isinstance(value, bool) else value


def truth(predicate, row):
    """True, False or None, by SQL's three-valued logic."""
    if isinstance(predicate, Not):
        inner = truth(predicate.part, row)
        return None if inner is None else not inner
    if isinstance(predicate, And | Or):
        parts, decisive = [truth(part, row) for part in predicate.parts], isinstance(predicate, Or)
        return decisive if decisive in parts else None if None in parts else not decisive
    value = value_of(predicate.operand, row)
    if isinstance(predicate, IsNull):
        return value is None
    if value is None:
        return None
    if isinstance(predicate, In):
        return literal(value) in predicate.literals
    assert isinstance(predicate, Compare)
    return getattr(operator, OPERATORS[predicate.operator])(literal(value), predicate.literal)


def plain(value):
    return int(value) if isinstance(value, Fraction) else value


def totals(rows, query, level, cells, aggregate):
    """The aggregate of the rows of each cell: ten lines that nobody can get wrong."""
    found = {cell: [] for cell in cells}
    for row in rows:
        if query.condition is not None and truth(query.condition, row) is not True:
            continue
        cell = tuple(plain(value_of(group.expression, row)) for group in level.groups)
        if cell in found:
            found[cell].append(row)
    return [aggregate(found[cell]) for cell in cells]
