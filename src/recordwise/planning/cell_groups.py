"""Groups of cells: by a public column, a level of a hierarchy, a prefix, a function of one's own, or the size of a value."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.plan.fields import Expression, Field, Prefix
from recordwise.plan.schema import Schema
from recordwise.planning.size_classes import class_edges, class_name
from recordwise.session.simulated import SimulatedTable

SIZE, ALL = "size", "all cells"
Grouping: TypeAlias = str | Expression | Callable[[pa.Table], Any] | None


def by_words(by: Grouping) -> str:
    """What the groups are called together."""
    if by is None:
        return "group"
    if isinstance(by, str):
        return "size class" if by == SIZE else by
    return getattr(by, "__name__", None) or getattr(by, "default_name", lambda: "group")()


def labels_of(table: SimulatedTable, by: Grouping, schema: Schema) -> tuple[Any, list[str]]:
    """The group of each cell as a number, and what the groups are called."""
    rows = table.cells.num_rows if table.cells.num_columns else 1
    column = None if by is None or by == SIZE else _column(table, by, schema)
    if column is None:
        return np.zeros(rows, np.int64), [ALL]
    made = pa.array(["none" if each is None else str(each) for each in column.to_pylist()]).dictionary_encode()
    order = np.argsort(np.array(made.dictionary.to_pylist(), dtype=object).astype(str))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[made.indices.to_numpy()], [made.dictionary[int(each)].as_py() for each in order]


def _column(table: SimulatedTable, by: Any, schema: Schema) -> Any:
    """The labels of the cells; None where a table has nothing to group by."""
    if isinstance(by, Prefix):
        own = _column(table, by.column, schema)
        return None if own is None else pc.utf8_slice_codeunits(own.cast(pa.string()), 0, by.length)
    if isinstance(by, Field):
        by = by.name
    if callable(by):
        found = pa.array(by(table.cells))
        if len(found) != max(table.cells.num_rows, 1):
            raise ParameterError(parameter="by", problem="does not return one label for each cell")
        return found
    if by in table.cells.column_names:
        return table.cells.column(by).combine_chunks()
    listed = schema.hierarchy(by)
    for level in reversed(listed.levels) if listed is not None else ():
        if listed is not None and level in table.cells.column_names and listed.determines(level, by):
            fine, coarse = listed.above(level, by)
            return coarse.take(pc.index_in(table.cells.column(level).combine_chunks(), value_set=fine))
    return _of_prefix(table, by)


def _of_prefix(table: SimulatedTable, name: str) -> Any:
    """The column of a prefix of the name: cells by naics3 can be grouped by naics where that is asked for."""
    groups = {each.name: each.expression for each in table.table.shape.groups}
    for own, expression in groups.items():
        if isinstance(expression, Prefix) and expression.column == name:
            return table.cells.column(own).combine_chunks()
    return None


def size_labels(exact: FloatArray, variable: str) -> tuple[Any, list[str]]:
    """Tenfold classes of the exact value; those that cannot be sized are with 0."""
    size = np.where(np.isfinite(exact), np.abs(exact), 0.0)
    edges = class_edges(float(size.max(initial=0.0)), float(size[size > 0].min(initial=1.0)))
    place = np.searchsorted(edges, size, side="right")
    used, codes = np.unique(place, return_inverse=True)
    return codes, [class_name(edges, int(each), variable) for each in used]
