"""Counting records at the points of a public grid, as a tree: a float guesses the point, whole numbers decide (T-BIN)."""

import math
from fractions import Fraction

import pyarrow as pa
from sqlglot import exp

from recordwise.plan.lowering import at_keys
from recordwise.plan.plan import PlannedTable
from recordwise.plan.schema import Schema
from recordwise.plan.totals import CountBins
from recordwise.plan.trees import RECORDS, column, constant, expression_tree, greatest, least, predicate_tree
from recordwise.quantiles import Grid

BIN, HELD = "bin", "held"
GUESS, BELOW, HERE = "guess", "below", "here"
LARGEST = 2**63 - 1


def grid_table(grid: Grid, step: Fraction) -> pa.Table:
    """For each guess, the point before and the point itself, in steps: nothing is below the first, all is within the last."""
    points = grid.steps(step)
    return pa.table(
        {
            GUESS: pa.array(range(grid.size), pa.int64()),
            BELOW: pa.array([-1, *points[:-1]], pa.int64()),
            HERE: pa.array([*points[:-1], LARGEST], pa.int64()),
        }
    )


def bins_tree(table: PlannedTable, bins: CountBins, schema: Schema, *, grid: str, keys: str) -> exp.Expr:
    """Rows (position in the keys, bin, records held) of the non-empty bins of a table."""
    declared = schema.measure(bins.measure)
    step = declared.step if declared else Fraction(1)
    groups = [expression_tree(group.expression, schema) for group in table.shape.groups]
    named = [exp.alias_(tree, f"k{i}") for i, tree in enumerate(groups)]
    guessed = exp.select(
        *named, exp.alias_(column(bins.measure), "amount"), exp.alias_(guess_tree(bins, step), GUESS)
    ).from_(RECORDS)
    if table.condition is not None:
        guessed = guessed.where(predicate_tree(table.condition, schema))
    ours = [column(f"k{i}", "guessed") for i in range(len(groups))]
    placed = (
        exp.select(*ours, exp.alias_(_decided(), BIN), exp.alias_(exp.Count(this=exp.Star()), HELD))
        .from_(guessed.subquery("guessed"))
        .join(
            exp.to_table(grid).as_("grid"), on=exp.EQ(this=column(GUESS, "guessed"), expression=column(GUESS, "grid"))
        )
        .group_by(*(tree.copy() for tree in ours), _decided())
    )
    return at_keys(table, placed, keys, [BIN, HELD])


def guess_tree(bins: CountBins, step: Fraction) -> exp.Expr:
    """A grid position within one of the true one, from float64 arithmetic."""
    grid, amount = bins.grid, column(bins.measure)
    last = grid.size - 1
    low, high = grid.low / step, grid.high / step
    first = exp.LTE(this=amount, expression=constant(grid.steps(step)[0]))
    real = exp.Cast(this=amount.copy(), to=exp.DataType.build("DOUBLE"))
    if grid.spacing == "log":
        along: exp.Expr = exp.Ln(this=exp.Div(this=real, expression=_float(float(low))))
        scale = last / math.log(float(high / low))
    else:
        along = exp.Paren(this=exp.Sub(this=real, expression=_float(float(low))))
        scale = last / float(high - low)
    # The smaller is taken first: Spark's CEIL is a 64-bit integer, and a value far above the grid would not fit it.
    place = exp.Ceil(this=least(_float(float(last)), exp.Mul(this=along, expression=_float(scale))))
    whole = exp.Cast(this=greatest(_float(0.0), place), to=exp.DataType.build("BIGINT"))
    # Values up to the first point are settled without a logarithm, which has none of 0.
    return exp.Case(ifs=[exp.If(this=first, true=constant(0))], default=whole)


def _decided() -> exp.Expr:
    guess, amount = column(GUESS, "guessed"), column("amount", "guessed")
    one = constant(1)
    before = exp.LTE(this=amount, expression=column(BELOW, "grid"))
    here = exp.LTE(this=amount.copy(), expression=column(HERE, "grid"))
    return exp.Case(
        ifs=[exp.If(this=before, true=exp.Sub(this=guess, expression=one)), exp.If(this=here, true=guess.copy())],
        default=exp.Add(this=guess.copy(), expression=one.copy()),
    )


def _float(value: float) -> exp.Expr:
    text = repr(value)
    return exp.Literal.number(text if "e" in text else text + "e0")
