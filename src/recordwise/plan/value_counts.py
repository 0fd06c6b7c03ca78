"""How often each value of some columns occurs, and what the contributors of each cell are like: one pass over the records each.

Policies are functions of a few columns with far fewer values than records. Counted once, the values give the exact distribution of
the losses of any number of policies. Confidential, for the owner only.
"""

from collections.abc import Sequence

from sqlglot import exp

from recordwise.plan.lowering import at_keys
from recordwise.plan.plan import PlannedTable
from recordwise.plan.predicates import Predicate
from recordwise.plan.schema import Schema
from recordwise.plan.summaries import COUNT
from recordwise.plan.trees import RECORDS, column, constant, expression_tree, predicate_tree

CONTRIBUTORS, TOTAL, LARGEST, TIED, SECOND, SQUARES = "contributors", "total", "largest", "tied", "second", "squares"
AMOUNT = "amount"


def value_counts_tree(names: Sequence[str], schema: Schema, condition: Predicate | None, *, at_most: int) -> exp.Select:
    """The number of records with each combination of values, measures in steps; no more than ``at_most`` rows."""
    select = exp.select(*(column(name) for name in names), exp.alias_(exp.Count(this=exp.Star()), COUNT)).from_(RECORDS)
    if condition is not None:
        select = select.where(predicate_tree(condition, schema))
    return select.group_by(*(column(name) for name in names)).limit(at_most)


def contributors_tree(table: PlannedTable, measure: str, schema: Schema, *, keys: str, by_firm: bool) -> exp.Select:
    """For each public cell: how many contribute, their total, the two largest contributions and the sum of squares.

    The second largest is the largest again where two are tied. Contributors are records, or firms with all they have in a cell.
    """
    amounts = _amounts(table, measure, schema, by_firm=by_firm)
    names = [f"k{i}" for i in range(len(table.shape.groups))]
    amount = column(AMOUNT, "amounts")
    tops = exp.select(*(column(name) for name in names), exp.alias_(exp.Max(this=column(AMOUNT)), LARGEST))
    tops = tops.from_(amounts.subquery("amounts"))
    tops = tops.group_by(*(column(name) for name in names)) if names else tops
    same = [exp.NullSafeEQ(this=column(name, "amounts"), expression=column(name, "tops")) for name in names]
    is_top = exp.EQ(this=amount.copy(), expression=column(LARGEST, "tops"))
    below = exp.Case(ifs=[exp.If(this=exp.Not(this=exp.Paren(this=is_top.copy())), true=amount.copy())])
    tie = exp.Case(ifs=[exp.If(this=is_top, true=constant(1))], default=constant(0))
    size = exp.cast(amount.copy(), "double")
    found = {
        CONTRIBUTORS: exp.Count(this=exp.Star()),
        TOTAL: exp.cast(exp.Sum(this=amount.copy()), "double"),
        LARGEST: exp.Max(this=column(LARGEST, "tops")),
        TIED: exp.Sum(this=tie),
        SECOND: exp.Max(this=below),
        SQUARES: exp.Sum(this=exp.Mul(this=size, expression=size.copy())),
    }
    rolled = exp.select(*(exp.alias_(column(name, "amounts"), name) for name in names))
    rolled = rolled.select(*(exp.alias_(tree, name) for name, tree in found.items())).from_(amounts.subquery("amounts"))
    rolled = rolled.join(tops.subquery("tops"), on=exp.and_(*same) if same else exp.true(), join_type="inner")
    rolled = rolled.group_by(*(column(name, "amounts") for name in names)) if names else rolled
    return at_keys(table, rolled, keys, list(found))


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
