"""Predicates, groups and pieces as SQL trees over ``records``.

In that view every measure is a whole number of steps. Trees, not text, so that each engine's emitter quotes
names and escapes constants.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from sqlglot import exp

from recordwise.errors import PlanError
from recordwise.plan.expressions import (
    And,
    Compare,
    DatePart,
    Expression,
    Field,
    In,
    IsNull,
    Literal,
    Not,
    Operand,
    Or,
    Predicate,
    Prefix,
)
from recordwise.plan.schema import LARGEST_BOUND_STEPS, Schema, is_value
from recordwise.plan.statistics.totals import Splitting, Threshold, threshold_steps
from recordwise.policy.columns import Truth
from recordwise.policy.constructors import By

RECORDS = "records"
ELEMENT = "LIST_ELEMENT"
"""An element of a list by its place, which begins at 1; Spark has another name for it."""
_COMPARISONS: dict[str, type[exp.Expr]] = {
    "=": exp.EQ,
    "<>": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
}


def column(name: str, table: str | None = None) -> exp.Expr:
    """A quoted column."""
    return exp.column(exp.to_identifier(name, quoted=True), table=table)


def aliased(tree: exp.Expr, name: str | exp.Identifier) -> exp.Expr:
    """Return an expression under a name, without copying it."""
    return exp.alias_(tree, name, copy=False)


def constant(value: Literal | int) -> exp.Expr:
    """Return a constant as a literal, fractions being whole here."""
    if isinstance(value, Truth):
        return exp.true() if value.value else exp.false()
    if isinstance(value, str):
        return exp.Literal.string(value)
    return exp.Literal.number(int(value))


def balanced_tree(kind: type[exp.Expr], parts: Sequence[exp.Expr]) -> exp.Expr:
    """Return AND or OR of many parts as a shallow tree."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return exp.Paren(
        this=kind(this=balanced_tree(kind, parts[:middle]), expression=balanced_tree(kind, parts[middle:]))
    )


def predicate_tree(predicate: Predicate, schema: Schema) -> exp.Expr:
    """A predicate as a truth value with SQL's three-valued logic."""
    if isinstance(predicate, And | Or):
        kind = exp.And if isinstance(predicate, And) else exp.Or
        return balanced_tree(kind, [predicate_tree(part, schema) for part in predicate.parts])
    if isinstance(predicate, Not):
        return exp.Not(this=exp.Paren(this=predicate_tree(predicate.part, schema)))
    operand = expression_tree(predicate.operand, schema)
    if isinstance(predicate, IsNull):
        return exp.Paren(this=exp.Is(this=operand, expression=exp.null()))
    if isinstance(predicate, Compare):
        return _compare(predicate, operand, schema)
    return _in(predicate, operand, schema)


def lattice_step(operand: Operand, schema: Schema) -> Fraction:
    """Return the step of a comparison's numbers: the measure's or 1."""
    measure = schema.measure(operand.name) if isinstance(operand, Field) else None
    return measure.step if measure else Fraction(1)


def _compare(predicate: Compare, operand: exp.Expr, schema: Schema) -> exp.Expr:
    """Compare whole steps with a constant (T-COMPARE).

    A constant between two steps is replaced by the correct neighbor.
    """
    literal, operator = predicate.literal, predicate.operator
    if isinstance(literal, Fraction):
        steps = literal / lattice_step(predicate.operand, schema)
        if operator in ("=", "<>") and steps.denominator != 1:
            return _where_known(operand, exp.true() if operator == "<>" else exp.false())
        literal = Fraction(math.ceil(steps) if operator in ("<", ">=") else math.floor(steps))
        if not is_value(literal, "integer"):
            # Spark would return NULL for a comparison with such a constant.
            return _where_known(operand, exp.true() if _always(operator, literal) else exp.false())
    return exp.Paren(this=_COMPARISONS[operator](this=operand, expression=constant(literal)))


def _always(operator: str, literal: Fraction) -> bool:
    """Return the comparison's result for a constant beyond every number."""
    return operator == "<>" or (operator != "=" and operator.startswith("<") == (literal > 0))


def _where_known(operand: exp.Expr, value: exp.Expr) -> exp.Expr:
    """A constant truth value, unknown where the operand is NULL."""
    known = exp.Not(this=exp.Is(this=operand, expression=exp.null()))
    return exp.Case(ifs=[exp.If(this=known, true=value)])


def _in(predicate: In, operand: exp.Expr, schema: Schema) -> exp.Expr:
    step = lattice_step(predicate.operand, schema)
    steps = [literal / step if isinstance(literal, Fraction) else literal for literal in predicate.literals]
    # A single constant that does not fit in 64 bits would turn the whole comparison into one of floats.
    reachable = [value for value in steps if not isinstance(value, Fraction) or is_value(value, "integer")]
    if not reachable:
        return _where_known(operand, exp.false())
    return exp.Paren(this=exp.In(this=operand, expressions=[constant(value) for value in reachable]))


def expression_tree(value: Expression, schema: Schema) -> exp.Expr:
    """The value a record is grouped by, computed from the record itself."""
    if isinstance(value, Field):
        return column(value.name)
    if isinstance(value, Prefix):
        return prefix_tree(column(value.column), value.length)
    if isinstance(value, DatePart):
        from recordwise.policy.evaluate.sql import date_part_sql

        return date_part_sql(column(value.column), value.part)
    branches = [exp.If(this=predicate_tree(test, schema), true=constant(label)) for test, label in value.branches]
    return exp.Case(ifs=branches, default=constant(value.default))


def prefix_tree(text: exp.Expr, length: int) -> exp.Expr:
    """The first characters of a text value."""
    return exp.Substring(this=text, start=constant(1), length=constant(length))


def threshold_tree(measure: str, at: Threshold, schema: Schema) -> exp.Expr:
    """The threshold that applies to a record, in steps."""
    if not isinstance(at, By):
        return _steps(at, measure, schema)
    if at.default is None:
        raise PlanError(problems=(f"the thresholds of '{measure}' by '{at.column.name}' need a default",))
    operand = Prefix(at.column.name, at.column.length) if at.column.length else Field(at.column.name)
    branches = [
        exp.If(
            this=predicate_tree(Compare(operand, "=", value), schema),
            true=_steps(each, measure, schema),
        )
        for value, each in at.values
    ]
    return exp.Paren(this=exp.Case(ifs=branches, default=_steps(at.default, measure, schema)))


def _steps(at: Fraction, measure: str, schema: Schema) -> exp.Expr:
    """Return a threshold in steps, limited to what records can have."""
    return constant(min(threshold_steps(at, measure, schema), LARGEST_BOUND_STEPS))


def pieces_tree(splitting: Splitting, schema: Schema) -> exp.Expr:
    """Return the number of pieces of a record (T-SPLIT).

    The whole quotient plus one for a remainder, never a rounded-up division.
    """
    needs = []
    for measure, at in splitting.thresholds:
        value = absolute_tree(measure, schema)
        whole = exp.IntDiv(this=value, expression=threshold_tree(measure, at, schema))
        rest = exp.Mod(this=value.copy(), expression=threshold_tree(measure, at, schema))
        remainder = exp.GT(this=rest, expression=constant(0))
        extra = exp.Case(ifs=[exp.If(this=remainder, true=constant(1))], default=constant(0))
        needs.append(exp.Add(this=whole, expression=extra))
    return greatest(constant(1), *needs)


def absolute_tree(measure: str, schema: Schema) -> exp.Expr:
    """The absolute value of a measure, in steps."""
    declared = schema.measure(measure)
    return exp.Abs(this=column(measure)) if declared is not None and declared.signed else column(measure)


def greatest(*values: exp.Expr) -> exp.Expr:
    """The largest of several values that are never NULL."""
    return _fold(lambda left, right: exp.GT(this=left, expression=right), values)


def least(*values: exp.Expr) -> exp.Expr:
    """The smallest of several values that are never NULL."""
    return _fold(lambda left, right: exp.LT(this=left, expression=right), values)


def _fold(better: Callable[[exp.Expr, exp.Expr], exp.Expr], values: Sequence[exp.Expr]) -> exp.Expr:
    """Fold values with CASE comparisons.

    GREATEST and LEAST treat NULL differently from engine to engine.
    """
    best = values[0]
    for value in values[1:]:
        best = exp.Paren(this=exp.Case(ifs=[exp.If(this=better(value.copy(), best.copy()), true=value)], default=best))
    return best
