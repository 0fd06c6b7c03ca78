"""From a base and its tables to the statements an engine runs, as trees: one pass over the records, then roll-ups at the keys."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from recordwise.plan.bases import Base
from recordwise.plan.fields import Expression, Prefix, finer
from recordwise.plan.plan import PlannedTable
from recordwise.plan.predicates import Predicate
from recordwise.plan.schema import LARGEST_BOUND_STEPS, Schema
from recordwise.plan.totals import AdditiveTotal, CountFirms, CountUnits, SumSteps, Total
from recordwise.plan.trees import (
    RECORDS,
    balanced,
    column,
    constant,
    expression_tree,
    least,
    pieces_tree,
    predicate_tree,
    prefix_tree,
)

POSITION = "position"
"""The row of a cell in the sorted public keys."""
FIRM = "firm"


@dataclass(frozen=True, slots=True)
class Names:
    """The names of the working tables of one base."""

    cells: str
    firms: tuple[str, ...]
    keys: str


def total_name(table: PlannedTable, total: Total) -> str:
    """The column of a total in what an engine returns."""
    return f"total{table.totals.index(total)}"


def cells_tree(base: Base, schema: Schema) -> exp.Expr | None:
    """The finest cells, in one pass. Conditions that differ between queries become filters of the sums."""
    wanted = base.additive()
    if not wanted:
        return None
    conditions = list(dict.fromkeys(condition for _, condition in wanted))
    select = _grouped(base, schema, RECORDS)
    for number, (total, condition) in enumerate(wanted):
        value = _additive_tree(total, schema)
        if condition is not None and len(conditions) > 1:
            value = exp.Filter(this=value, expression=exp.Where(this=predicate_tree(condition, schema)))
        select = select.select(exp.alias_(value, f"a{number}"))
    known = [condition for condition in conditions if condition is not None]
    if len(known) == len(conditions):
        select = select.where(balanced(exp.Or, [predicate_tree(condition, schema) for condition in known]))
    return select


def firms_tree(base: Base, condition: Predicate | None, schema: Schema) -> exp.Expr:
    """The distinct pairs of finest cell and firm."""
    select = _columns(base, schema).select(exp.alias_(column(schema.firm or ""), FIRM)).from_(RECORDS).distinct()
    return select if condition is None else select.where(predicate_tree(condition, schema))


def _columns(base: Base, schema: Schema) -> exp.Select:
    return exp.select(*(exp.alias_(expression_tree(e, schema), f"g{i}") for i, e in enumerate(base.expressions)))


def _grouped(base: Base, schema: Schema, table: str) -> exp.Select:
    select = _columns(base, schema).from_(table)
    return select.group_by(*(expression_tree(each, schema) for each in base.expressions))


def _additive_tree(total: AdditiveTotal, schema: Schema) -> exp.Expr:
    if isinstance(total, CountUnits):
        return exp.Count(this=exp.Star())
    if isinstance(total, SumSteps):
        whole = column(total.measure)
        return exp.Sum(
            this=whole if total.at_most is None else least(whole, constant(min(total.at_most, LARGEST_BOUND_STEPS)))
        )
    return exp.Sum(this=pieces_tree(total.splitting, schema))


def additive_columns(base: Base, table: PlannedTable) -> dict[str, str]:
    """For each sum and count of a table the column of the finest cells that adds up to it."""
    additive = [total for total in table.totals if not isinstance(total, CountFirms)]
    return {total_name(table, total): f"a{base.additive().index((total, table.condition))}" for total in additive}


def additive_tree(base: Base, table: PlannedTable, names: Names, keys: str) -> exp.Select | None:
    """Rows (position in the keys, sums and counts) of a table from its kept cells; cells without records are left out."""
    columns = additive_columns(base, table)
    if not columns:
        return None
    rolled = _finest(base, table, names.cells, columns) if _is_finest(base, table) else None
    sums = {name: exp.Sum(this=column(source)) for name, source in columns.items()}
    return at_keys(table, rolled or _rolled(base, table, names.cells, sums), keys, list(sums))


def firm_counts_tree(base: Base, table: PlannedTable, names: Names, keys: str) -> exp.Select | None:
    """Rows (position in the keys, number of firms) of a table from the kept pairs, if it counts firms."""
    if CountFirms() not in table.totals:
        return None
    pairs = names.firms[base.firm_conditions().index(table.condition)]
    firms = {total_name(table, CountFirms()): exp.Count(this=exp.Distinct(expressions=[column(FIRM)]))}
    return at_keys(table, _rolled(base, table, pairs, firms), keys, list(firms))


def _is_finest(base: Base, table: PlannedTable) -> bool:
    return bool(table.shape.groups) and {group.expression for group in table.shape.groups} == set(base.expressions)


def _finest(base: Base, table: PlannedTable, source: str, columns: Mapping[str, str]) -> exp.Select:
    """The finest cells as they are: one row each, nothing left to add up."""
    groups = [rolled_up(base, group.expression) for group in table.shape.groups]
    select = exp.select(*(exp.alias_(tree, f"k{i}") for i, tree in enumerate(groups)))
    return select.select(*(exp.alias_(column(each), name) for name, each in columns.items())).from_(source)


def _rolled(base: Base, table: PlannedTable, source: str, totals: Mapping[str, exp.Expr]) -> exp.Select:
    """All finest cells rolled up to a level, whether it has keys for them or not (T-ROLLUP)."""
    groups = [rolled_up(base, group.expression) for group in table.shape.groups]
    select = exp.select(*(exp.alias_(tree, f"k{i}") for i, tree in enumerate(groups)))
    select = select.select(*(exp.alias_(tree, name) for name, tree in totals.items())).from_(source)
    return select.group_by(*(tree.copy() for tree in groups)) if groups else select


def at_keys(table: PlannedTable, rolled: exp.Select, keys: str, totals: list[str]) -> exp.Select:
    """The totals of the public cells, with each cell's place in the list."""
    if not table.shape.groups:
        return rolled.select(exp.alias_(constant(0), POSITION))
    matches = [
        exp.NullSafeEQ(this=column(f"k{i}", "rolled"), expression=column(f"k{i}", "keys"))
        for i in range(len(table.shape.groups))
    ]
    select = exp.select(column(POSITION, "keys"), *(column(name, "rolled") for name in totals))
    listed = exp.to_table(keys).as_("keys")
    return select.from_(rolled.subquery("rolled")).join(listed, on=exp.and_(*matches), join_type="inner")


def rolled_from(base: Base, wanted: Expression) -> tuple[int, int | None]:
    """The column of the finest cells a group comes from, and how many of its characters; None: all of it."""
    number = next(i for i, candidate in enumerate(base.expressions) if finer(candidate, wanted))
    whole = base.expressions[number] == wanted or not isinstance(wanted, Prefix)
    return number, None if whole else wanted.length  # type: ignore[union-attr]


def rolled_up(base: Base, wanted: Expression) -> exp.Expr:
    """The group of a level out of the finest cells."""
    number, length = rolled_from(base, wanted)
    source = column(f"g{number}")
    return source if length is None else prefix_tree(source, length)
