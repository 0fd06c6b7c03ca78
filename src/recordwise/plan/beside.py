"""Records beside the exact totals of their cells, for realised losses: what a record changed in the answers as they were."""

from collections.abc import Sequence

from sqlglot import exp

from recordwise.plan.bases import Base
from recordwise.plan.lowering import POSITION, Names, additive_tree, firm_counts_tree
from recordwise.plan.plan import PlannedTable
from recordwise.plan.schema import Schema
from recordwise.plan.summaries import VALUE, amounts_tree, binned_tree, many_binned_tree, named_values
from recordwise.plan.trees import column, constant, expression_tree, predicate_tree


def beside_tree(
    value: exp.Expr, edges: Sequence[float], base: Base, table: PlannedTable, names: Names, keys: str, schema: Schema
) -> exp.Expr:
    """A histogram over the records of public cells; ``value`` may use ``total0``, ``total1``... of the record's own cell."""
    return binned_tree(_joined(exp.select(exp.alias_(value.copy(), VALUE)), base, table, names, keys, schema), edges)


def many_beside_tree(
    values: Sequence[exp.Expr], base: Base, table: PlannedTable, names: Names, keys: str, schema: Schema
) -> exp.Expr:
    """Several such histograms in one pass over the records."""
    return many_binned_tree(_joined(named_values(values), base, table, names, keys, schema), len(values))


def _joined(select: exp.Select, base: Base, table: PlannedTable, names: Names, keys: str, schema: Schema) -> exp.Select:
    totals = additive_tree(base, table, names, keys) or firm_counts_tree(base, table, names, keys)
    assert totals is not None
    cell_totals = totals.subquery("cell")
    same = exp.EQ(this=column(POSITION, "located"), expression=column(POSITION, "cell"))
    located = _located(table, keys, schema).subquery("located")
    return select.from_(located, copy=False).join(cell_totals, on=same, join_type="inner", copy=False)


def _located(table: PlannedTable, keys: str, schema: Schema) -> exp.Select:
    """Every selected record with the place of its cell among the public keys; records of other cells are left out."""
    inner = amounts_tree(schema)
    if table.condition is not None:
        inner = inner.where(predicate_tree(table.condition, schema))
    if not table.shape.groups:
        return inner.select(exp.alias_(constant(0), POSITION))
    groups = [expression_tree(group.expression, schema) for group in table.shape.groups]
    inner = inner.select(*(exp.alias_(tree, f"k{i}") for i, tree in enumerate(groups)))
    matches = [
        exp.NullSafeEQ(this=column(f"k{i}", "amounts"), expression=column(f"k{i}", "keys")) for i in range(len(groups))
    ]
    names = [*schema.column_names(), *([schema.firm] if schema.firm else []), *schema.measure_names()]
    select = exp.select(*(column(name, "amounts") for name in names), column(POSITION, "keys"))
    listed = exp.to_table(keys).as_("keys")
    return select.from_(inner.subquery("amounts")).join(listed, on=exp.and_(*matches), join_type="inner")
