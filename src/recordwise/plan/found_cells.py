"""The cells that hold records, where keys are not public: rolled up like any totals, but met by no list."""

import pyarrow as pa
from sqlglot import exp

from recordwise.plan.bases import Base
from recordwise.plan.keys import cell_type
from recordwise.plan.lowering import Names, rolled_up
from recordwise.plan.plan import PlannedTable
from recordwise.plan.schema import Schema
from recordwise.plan.totals import AdditiveTotal
from recordwise.plan.trees import column, constant


def found_cells_tree(base: Base, table: PlannedTable, names: Names, counted: AdditiveTotal) -> exp.Expr:
    """Every cell with at least one record that meets the query's own condition.

    A finest cell can be there for another query's sake alone; publishing it would tell of a record this query must not see.
    """
    groups = [rolled_up(base, group.expression) for group in table.shape.groups]
    pieces = exp.Sum(this=column(f"a{base.additive().index((counted, table.condition))}"))
    return (
        exp.select(*(exp.alias_(tree, f"k{i}") for i, tree in enumerate(groups)))
        .from_(names.cells)
        .group_by(*(tree.copy() for tree in groups))
        .having(exp.GT(this=pieces, expression=constant(0)))
    )


def typed_cells(found: pa.Table, table: PlannedTable, schema: Schema) -> pa.Table:
    """Found cells under the groups' names and in their declared types, sorted: the order of the records must not be published."""
    kinds = {"text": pa.string(), "integer": pa.int64(), "boolean": pa.bool_()}
    columns = {
        group.name: found.column(f"k{i}").cast(kinds[cell_type(group.expression, schema)[0]])
        for i, group in enumerate(table.shape.groups)
    }
    cells = pa.table(columns)
    return cells.sort_by([(name, "ascending") for name in cells.column_names]).combine_chunks()
