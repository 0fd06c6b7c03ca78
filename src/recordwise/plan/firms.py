"""What a plan costs the establishments of a firm together: each statistic of each table, by cell (T-CELLS)."""

from collections.abc import Iterator

from recordwise.mechanisms.base import shared
from recordwise.plan.cost import check_policy, records_of, statistic_policy
from recordwise.plan.fields import Case, Field, Group, Prefix
from recordwise.plan.held_columns import in_held_columns
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.plan.predicates import Compare, Predicate, leaves
from recordwise.plan.schema import Schema
from recordwise.plan.statistics import Drawable
from recordwise.policy.conditions import ConditionColumn
from recordwise.policy.firms import CellKey, FirmPart, FirmPolicy, Joint


def firm_policy(plan: Plan) -> FirmPolicy:
    """The parts of a plan, table by table; a statistic that several averages share is there once (T-AVG)."""
    found = FirmPolicy(parts=tuple(part for table in plan.tables() for part in table_parts(plan, table)))
    check_policy(found.policy(), plan.schema)
    return found


def table_parts(plan: Plan, table: PlannedTable) -> Iterator[FirmPart]:
    """The selection of a table's keys, and its statistics."""
    where = records_of(table.condition, plan.schema)
    cells = tuple(cell_key(group, plan.schema) for group in table.joined_by())
    selection = plan.selection(table)
    if selection is not None:
        policy = in_held_columns(selection.policy(plan.schema), plan.schema)
        yield FirmPart(policy=policy, condition=where, cells=cells)
    for statistic in plan.queries[table.query].draws():
        yield FirmPart(
            policy=statistic_policy(plan.queries[table.query], statistic, table.shape, plan.schema, tight=True),
            condition=where,
            cells=cells,
            joint=_joint(plan, table, statistic),
        )


def _joint(plan: Plan, table: PlannedTable, statistic: Drawable) -> Joint:
    """What the units of a firm in one cell lose together. A rest joins units of different unlisted cells, which conditions cannot
    tell from those of listed ones: below one coarser cell all are then bounded as in any group."""
    if table.rest is not None:
        return Joint()
    return statistic.joint(shared(statistic.mechanism, table.shape.share), plan.schema)


def cell_key(group: Group, schema: Schema) -> CellKey:
    """A group as the coordinate of a cell; a label that several branches of a CASE have is one coordinate.

    What the language of conditions does not say exactly (a part of a date, a CASE by the order of texts) goes by the name of the
    group, as a column of its own. So does a coarser level of a hierarchy.
    """
    expression = group.expression
    if isinstance(expression, Field):
        return CellKey(column=ConditionColumn(expression.name))
    if isinstance(expression, Prefix):
        return CellKey(column=ConditionColumn(expression.column, expression.length))
    if not isinstance(expression, Case) or any(_by_order_of_texts(test) for test, _ in expression.branches):
        return CellKey(column=ConditionColumn(group.name))
    numbers = {expression.default: -1}
    for _, label in expression.branches:
        numbers.setdefault(label, len(numbers))
    return CellKey(cases=tuple((records_of(test, schema), numbers[label]) for test, label in expression.branches))


def _by_order_of_texts(predicate: Predicate) -> bool:
    """Whether a predicate compares texts by their order, which conditions know only roughly."""
    compared = (leaf for leaf in leaves(predicate) if isinstance(leaf, Compare))
    return any(isinstance(leaf.literal, str) and leaf.operator not in ("=", "<>") for leaf in compared)
