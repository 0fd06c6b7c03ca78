"""How often each value of some columns occurs, and what the contributors of each cell are like: one pass over the records each.

Policies are functions of a few columns with far fewer values than records. Counted once, the values give the exact distribution of
the losses of any number of policies. Confidential, for the owner only.
"""

from collections.abc import Sequence

from sqlglot import exp

from recordwise.plan.lowering import POSITION
from recordwise.plan.plan import PlannedTable
from recordwise.plan.predicates import Predicate
from recordwise.plan.schema import Schema
from recordwise.plan.summaries import COUNT
from recordwise.plan.trees import RECORDS, column, constant, expression_tree, predicate_tree

CONTRIBUTORS, TOTAL, LARGEST, TIED, SECOND, SQUARES = "contributors", "total", "largest", "tied", "second", "squares"
AMOUNT, TIMES = "amount", "times"


def value_counts_tree(names: Sequence[str], schema: Schema, condition: Predicate | None, *, at_most: int) -> exp.Select:
    """The number of records with each combination of values, measures in steps; no more than ``at_most`` rows."""
    select = exp.select(*(column(name) for name in names), exp.alias_(exp.Count(this=exp.Star()), COUNT)).from_(RECORDS)
    if condition is not None:
        select = select.where(predicate_tree(condition, schema))
    return select.group_by(*(column(name) for name in names)).limit(at_most)


def contributions_tree(table: PlannedTable, measure: str, schema: Schema, *, keys: str, by_firm: bool) -> exp.Select:
    """How often each contribution above 0 occurs in each public cell: far fewer rows than records where values repeat.

    Contributions are those of records, or of firms with all they have in a cell.
    """
    amounts = _amounts(table, measure, schema, by_firm=by_firm).subquery("amounts")
    names = [f"k{i}" for i in range(len(table.shape.groups))]
    place: exp.Expr = column(POSITION, "keys") if names else constant(0)
    select = exp.select(
        exp.alias_(place, POSITION), column(AMOUNT, "amounts"), exp.alias_(exp.Count(this=exp.Star()), TIMES)
    )
    select = select.from_(amounts)
    if names:
        same = [exp.NullSafeEQ(this=column(name, "amounts"), expression=column(name, "keys")) for name in names]
        select = select.join(exp.to_table(keys).as_("keys"), on=exp.and_(*same), join_type="inner")
        return select.group_by(place.copy(), column(AMOUNT, "amounts"))
    return select.group_by(column(AMOUNT, "amounts"))


def contributors_tree(contributions: str) -> exp.Select:
    """For each cell of kept contributions: how many there are, their total, the two largest different ones, how often the largest
    occurs, and the sum of squares."""
    largest = exp.alias_(exp.Max(this=column(AMOUNT)), LARGEST)
    tops = exp.select(column(POSITION), largest).from_(contributions).group_by(column(POSITION))
    amount, times = column(AMOUNT, "held"), column(TIMES, "held")
    is_top = exp.EQ(this=amount, expression=column(LARGEST, "tops"))
    size = exp.cast(amount.copy(), "double")
    weighted = exp.Mul(this=size, expression=exp.cast(times, "double"))
    # Sums of floats, under a cast: an engine that cuts returned sums of whole numbers in two leaves these alone.
    found = {
        CONTRIBUTORS: exp.cast(exp.Sum(this=times.copy()), "double"),
        TOTAL: exp.cast(exp.Sum(this=weighted), "double"),
        LARGEST: exp.Max(this=column(LARGEST, "tops")),
        TIED: exp.Max(this=exp.Case(ifs=[exp.If(this=is_top, true=times.copy())])),
        SECOND: exp.Max(
            this=exp.Case(ifs=[exp.If(this=exp.Not(this=exp.Paren(this=is_top.copy())), true=amount.copy())])
        ),
        SQUARES: exp.cast(exp.Sum(this=exp.Mul(this=weighted.copy(), expression=size.copy())), "double"),
    }
    same = exp.EQ(this=column(POSITION, "held"), expression=column(POSITION, "tops"))
    select = exp.select(column(POSITION, "held"), *(exp.alias_(tree, name) for name, tree in found.items()))
    select = select.from_(exp.to_table(contributions).as_("held")).join(
        tops.subquery("tops"), on=same, join_type="inner"
    )
    return select.group_by(column(POSITION, "held"))


def _amounts(table: PlannedTable, measure: str, schema: Schema, *, by_firm: bool) -> exp.Select:
    """The contributions above 0 with the groups of their cells."""
    groups = [expression_tree(group.expression, schema) for group in table.shape.groups]
    select = exp.select(*(exp.alias_(tree, f"k{i}") for i, tree in enumerate(groups))).from_(RECORDS)
    if table.condition is not None:
        select = select.where(predicate_tree(table.condition, schema))
    select = select.where(exp.GT(this=column(measure), expression=constant(0)))
    if not by_firm:
        return select.select(exp.alias_(column(measure), AMOUNT))
    select = select.select(exp.alias_(exp.Sum(this=column(measure)), AMOUNT))
    return select.group_by(*(tree.copy() for tree in groups), column(schema.firm or ""))
