"""The unit-split table itself, as a tree. Only an external mechanism needs it: sums and counts use the whole records."""

from sqlglot import exp

from recordwise.engines.compile.expressions import (
    RECORDS,
    aliased,
    column,
    constant,
    greatest,
    least,
    pieces_tree,
    predicate_tree,
    size_tree,
    threshold_tree,
)
from recordwise.errors import PlanError
from recordwise.plan.predicates import Predicate
from recordwise.plan.schema import Schema
from recordwise.plan.splitting import PIECE, Splitting


def pieces_count_tree(splitting: Splitting, condition: Predicate | None, schema: Schema) -> exp.Expr:
    """The number of rows the split table will have."""
    select = exp.select(aliased(exp.Sum(this=pieces_tree(splitting, schema)), "rows")).from_(RECORDS)
    return select if condition is None else select.where(predicate_tree(condition, schema))


def split_rows_tree(splitting: Splitting, condition: Predicate | None, schema: Schema) -> exp.Expr:
    """One row for each piece: ids and conditional columns copied, measures divided (T-SPLIT).

    Piece i of a measure is max(0, min(T, x - (i-1) T)): the pieces add up to x, and where another measure needs more pieces
    they are zero. A negative value is cut by its absolute value, and each piece has its sign. A measure without a threshold stays
    whole on the first piece.
    """
    names = [schema.unit, schema.firm or "", *schema.column_names(), *schema.measure_names()]
    if PIECE in {name.casefold() for name in names}:
        raise PlanError(problems=(f"the split table reserves the column name '{PIECE}'; rename that column",))
    numbered = exp.select(exp.Star(), aliased(_piece_numbers(splitting, schema), PIECE)).from_(RECORDS)
    if condition is not None:
        numbered = numbered.where(predicate_tree(condition, schema))
    copied = [schema.unit, *([schema.firm] if schema.firm else []), *schema.column_names()]
    select = exp.select(*(column(name) for name in copied), column(PIECE)).from_(
        numbered.subquery("numbered", copy=False)
    )
    thresholds = dict(splitting.thresholds)
    for measure in schema.measure_names():
        if measure in thresholds:
            cut = _cut(measure, threshold_tree(measure, thresholds[measure], schema), schema)
        else:
            first = exp.EQ(this=column(PIECE), expression=constant(1))
            cut = exp.Case(ifs=[exp.If(this=first, true=column(measure))], default=constant(0))
        select = select.select(aliased(cut, exp.to_identifier(measure, quoted=True)))
    return select.order_by(column(schema.unit), column(PIECE))


def _piece_numbers(splitting: Splitting, schema: Schema) -> exp.Expr:
    return exp.Explode(this=exp.GenerateSeries(start=constant(1), end=pieces_tree(splitting, schema)))


def _cut(measure: str, at: exp.Expr, schema: Schema) -> exp.Expr:
    before = exp.Mul(this=exp.Paren(this=exp.Sub(this=column(PIECE), expression=constant(1))), expression=at)
    rest = exp.Paren(this=exp.Sub(this=size_tree(measure, schema), expression=before))
    piece = greatest(constant(0), least(rest, at.copy()))
    declared = schema.measure(measure)
    if declared is None or not declared.signed:
        return piece
    negative = exp.LT(this=column(measure), expression=constant(0))
    return exp.Case(ifs=[exp.If(this=negative, true=exp.Neg(this=exp.Paren(this=piece)))], default=piece.copy())
