"""Confidential summaries for the owner, computed where the records are: histograms of a number of each record or firm.

The number is an expression over the record's own columns, measures in their own units: a policy's loss (``terms_sql``), say.
Only the counts of the bins travel.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from sqlglot import exp

from recordwise.errors import ParameterError
from recordwise.plan.predicates import Predicate
from recordwise.plan.schema import Schema
from recordwise.plan.trees import RECORDS, column, constant, predicate_tree

BIN, COUNT, VALUE = "bin", "records", "value"
FIRM_BOUNDS = ("tight", "simple", "advanced")
LARGEST_LOG = 600.0
RATIOS = (*(1 + Fraction(1, 2**i) for i in range(13)), *(Fraction(1 + 2**i) for i in (1, 2, 3, 5, 30)))
"""The k of Lemma 5 that are tried; each of them gives a valid bound. Large ones serve firms of one establishment or two."""
PER_DECADE, LEAST_DECADE, MOST_DECADE = 100, -9, 15
BIN_EDGES = tuple(
    10.0 ** (place / PER_DECADE) for place in range(LEAST_DECADE * PER_DECADE, MOST_DECADE * PER_DECADE + 1)
)
"""Of the bins of several histograms in one pass."""


def amounts_tree(schema: Schema) -> exp.Select:
    """The records with measures in their own units, as floats: what expressions look at."""
    select = exp.select(*(column(name) for name in schema.column_names()))
    if schema.firm:
        select = select.select(column(schema.firm))
    for measure in schema.measures:
        steps: exp.Expr = _double(column(measure.name))
        if measure.step.numerator != 1:
            steps = exp.Mul(this=steps, expression=_double(constant(measure.step.numerator)))
        if measure.step.denominator != 1:
            steps = exp.Div(this=steps, expression=_double(constant(measure.step.denominator)))
        select = select.select(exp.alias_(steps, exp.to_identifier(measure.name, quoted=True)))
    return select.from_(RECORDS)


def histogram_tree(
    value: exp.Expr, edges: Sequence[float], schema: Schema, condition: Predicate | None = None
) -> exp.Expr:
    """How many records fall into each bin; bin i holds edges[i-1] < value <= edges[i]."""
    inner = amounts_tree(schema)
    if condition is not None:
        inner = inner.where(predicate_tree(condition, schema))
    valued = exp.select(exp.alias_(value.copy(), VALUE)).from_(inner.subquery("amounts"))
    return binned_tree(valued, edges)


def histograms_tree(values: Sequence[exp.Expr], schema: Schema, condition: Predicate | None = None) -> exp.Expr:
    """Several histograms in one pass; see ``many_binned_tree``."""
    inner = amounts_tree(schema)
    if condition is not None:
        inner = inner.where(predicate_tree(condition, schema))
    return many_binned_tree(named_values(values).from_(inner.subquery("amounts"), copy=False), len(values))


def firm_histograms_tree(names: Sequence[str], count: int, schema: Schema, *, roots: str) -> exp.Expr:
    """Several histograms of the joint losses of firms in one pass, by the tight bound: the square of a sum of roots (T-GROUP).

    The roots of a record's losses are looked up in a table ``roots`` by the values of some columns, measures in steps.
    """
    if schema.firm is None:
        raise ParameterError(parameter="firm", problem="is not declared in the schema")
    same = [exp.NullSafeEQ(this=column(name, RECORDS), expression=column(name, roots)) for name in names]
    sums = [exp.Sum(this=column(value_name(i), roots)) for i in range(count)]
    summed = named_values(sums).from_(RECORDS)
    summed = summed.join(roots, on=exp.and_(*same) if same else exp.true(), join_type="inner")
    summed = summed.group_by(column(schema.firm, RECORDS))
    values = [column(value_name(i)) for i in range(count)]
    squares = named_values([exp.Mul(this=each, expression=each.copy()) for each in values])
    return many_binned_tree(squares.from_(summed.subquery("summed")), count)


def named_values(values: Sequence[exp.Expr]) -> exp.Select:
    """Expressions under the names ``many_binned_tree`` reads."""
    return exp.select(*(exp.alias_(value.copy(), value_name(i)) for i, value in enumerate(values)))


def value_name(number: int) -> str:
    return f"{VALUE}{number}"


def bin_name(number: int) -> str:
    """The column that holds the bins of one histogram of several."""
    return f"{BIN}{number}"


def firm_histogram_tree(value: exp.Expr, edges: Sequence[float], schema: Schema, *, bound: str) -> exp.Expr:
    """How many firms have a joint loss in each bin: (sum of roots)^2, J times the sum, or Lemma 5 (T-GROUP)."""
    if schema.firm is None:
        raise ParameterError(parameter="firm", problem="is not declared in the schema")
    if bound not in FIRM_BOUNDS:
        raise ParameterError(parameter="bound", problem=f"must be one of {', '.join(FIRM_BOUNDS)}")
    firm, loss = column(schema.firm), column(VALUE)
    valued = exp.select(firm, exp.alias_(value.copy(), VALUE)).from_(amounts_tree(schema).subquery("amounts"))
    if bound == "advanced":
        order = exp.Order(expressions=[exp.Ordered(this=value.copy(), desc=True, nulls_first=False)])
        rank = exp.Window(this=exp.RowNumber(), partition_by=[firm.copy()], order=order)
        valued = valued.select(exp.alias_(rank, "place"))
    joint = _joint_loss(bound, loss)
    grouped = exp.select(exp.alias_(joint, VALUE)).from_(valued.subquery("valued")).group_by(firm.copy())
    return binned_tree(grouped, edges)


def _joint_loss(bound: str, loss: exp.Expr) -> exp.Expr:
    if bound == "tight":
        roots = exp.Sum(this=exp.Sqrt(this=loss))
        return exp.Mul(this=roots, expression=roots.copy())
    if bound == "simple":
        return exp.Mul(this=exp.Count(this=exp.Star()), expression=exp.Sum(this=loss))
    return exp.Least(
        this=_lemma5(RATIOS[0], loss), expressions=[_lemma5(k, loss) for k in RATIOS[1:]], ignore_nulls=True
    )


def _lemma5(ratio: Fraction, loss: exp.Expr) -> exp.Expr:
    """Sum of k^j/(k-1) P_j. Where k^j leaves the floats this ratio says infinity, and a smaller ratio decides."""
    power = exp.Pow(this=_number(float(ratio)), expression=column("place"))
    last = exp.GT(this=column("place"), expression=constant(int(LARGEST_LOG / math.log(ratio))))
    capped = exp.Case(ifs=[exp.If(this=last, true=_number(math.inf))], default=power)
    return exp.Div(
        this=exp.Sum(this=exp.Mul(this=capped, expression=loss.copy())), expression=_number(float(ratio - 1))
    )


def many_binned_tree(valued: exp.Select, count: int) -> exp.Expr:
    """How many rows fall into each bin of each value, read once; a hundred bins to a factor of ten (``BIN_EDGES``).

    Bin i holds what is above BIN_EDGES[i-1] and not above BIN_EDGES[i]. A row of the answer is about the one histogram whose column
    of bins is not NULL.
    """
    bins = [exp.alias_(_decade_bin(column(value_name(i))), bin_name(i)) for i in range(count)]
    numbered = exp.select(*bins).from_(valued.subquery("valued", copy=False), copy=False)
    names = [column(bin_name(i)) for i in range(count)]
    counted = exp.select(*names, exp.alias_(exp.Count(this=exp.Star()), COUNT))
    counted = counted.from_(numbered.subquery("numbered", copy=False), copy=False)
    sets = exp.GroupingSets(expressions=[exp.Tuple(expressions=[name.copy()]) for name in names])
    counted.set("group", exp.Group(grouping_sets=[sets]))
    return counted


def _decade_bin(value: exp.Expr) -> exp.Expr:
    """The bin by a logarithm, which costs less than a tree of comparisons; an edge is met to the last digit or two."""
    log = exp.Anonymous(this="LOG10", expressions=[value.copy()])
    place = exp.Anonymous(this="CEIL", expressions=[exp.Mul(this=_number(float(PER_DECADE)), expression=log)])
    shifted = exp.Sub(this=exp.cast(place, "bigint"), expression=constant(PER_DECADE * LEAST_DECADE))
    least = exp.LTE(this=value.copy(), expression=_number(10.0**LEAST_DECADE))
    most = exp.LTE(this=value.copy(), expression=_number(10.0**MOST_DECADE))
    ifs = [exp.If(this=least, true=constant(0)), exp.If(this=most, true=shifted)]
    return exp.Case(ifs=ifs, default=constant(len(BIN_EDGES)))


def _increasing(edges: Sequence[float]) -> list[float]:
    ordered = [float(edge) for edge in edges]
    if not ordered or any(a >= b for a, b in pairwise(ordered)):
        raise ParameterError(parameter="edges", problem="must be increasing numbers")
    return ordered


def binned_tree(valued: exp.Select, edges: Sequence[float]) -> exp.Expr:
    """How many rows of a selection of ``value`` fall into each bin."""
    ordered = _increasing(edges)
    numbered = exp.select(exp.alias_(_bin(column(VALUE), ordered, 0), BIN)).from_(valued.subquery("valued"))
    counted = exp.select(column(BIN), exp.alias_(exp.Count(this=exp.Star()), COUNT))
    return counted.from_(numbered.subquery("numbered")).group_by(column(BIN)).order_by(column(BIN))


def _bin(value: exp.Expr, edges: Sequence[float], first: int) -> exp.Expr:
    """The bin of a value by a balanced tree of comparisons: a few tests a record, whatever the number of bins."""
    if not edges:
        return constant(first)
    middle = len(edges) // 2
    test = exp.LTE(this=value.copy(), expression=_number(edges[middle]))
    below = _bin(value, edges[:middle], first)
    above = _bin(value, edges[middle + 1 :], first + middle + 1)
    return exp.Case(ifs=[exp.If(this=test, true=below)], default=above)


def _number(value: float) -> exp.Expr:
    if math.isinf(value):
        return _double(exp.Literal.string("Infinity"))
    text = repr(value)
    return exp.Literal.number(text if "e" in text else text + "e0")


def _double(tree: exp.Expr) -> exp.Expr:
    return exp.Cast(this=tree, to=exp.DataType.build("DOUBLE"))
