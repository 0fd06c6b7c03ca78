"""The older rules as baselines: the tables of a query, taken together, as an agency would publish them.

Suppression, coarsening, rounding and ranges apply to all tables of a query at once, because what one table withholds another can
give away. The codes of a dimension are those of its groups: levels of one hierarchy, or prefixes of one column.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from recordwise.disclosure.cells import Cells, Dimension
from recordwise.disclosure.rules import Contributions, Method
from recordwise.errors import ParameterError
from recordwise.plan.expressions import Prefix
from recordwise.plan.schema import Schema
from recordwise.plan.statistics.totals import Confidential
from recordwise.planning.simulate.baselines import OTHER, Case, Place, Stages, one_level, sums
from recordwise.session.owner import FOR_OWNER
from recordwise.session.simulated import SimulatedTable


class Ruled:
    """Exact tables after an older rule: NaN where it publishes nothing."""

    def __init__(self, method: Method) -> None:
        self.method = method
        self._read: dict[str, Any] = {}

    def draw(self, case: Case, number: int) -> Mapping[Place, Stages]:
        """The values that the rule publishes."""
        found: dict[Place, Stages] = {}
        unsigned = [each for each in sums(case) if not _is_signed(case, each[1])]
        for alias in dict.fromkeys(part.alias for _, part in unsigned):
            tables = [(table, part) for table, part in unsigned if part.alias == alias]
            for query in dict.fromkeys(table.table.query for table, _ in tables):
                own = [each for each in tables if each[0].table.query == query]
                publication = self._publication(case, alias, query, own)
                published = self.method.publish(publication.cells, publication.found, case.seed * 100_003 + number)
                ends = np.cumsum([0, *(_rows(table) for table, _ in own)])
                for (table, _), start, end in zip(own, ends, ends[1:]):
                    found[table.name, alias] = {OTHER: published.value[start:end]}
        return found

    def _publication(self, case: Case, alias: str, query: int, own: Sequence[Any]) -> "Publication":
        key = f"{query} {alias}"
        if key not in self._read:
            self._read[key] = publication_of(case, own)
        found: Publication = self._read[key]
        return found


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Publication(Confidential):
    """CONFIDENTIAL: the cells of a query's tables, with their contributors."""

    cells: Cells
    found: Contributions


def publication_of(case: Case, own: Sequence[tuple[SimulatedTable, Any]]) -> Publication:
    """Return the cells of tables over hierarchies, with contributions."""
    cells = joint_cells([table for table, _ in own], case.view.schema)
    read = [
        case.view.contributors(one_level(case, table).sum(str(part.of), FOR_OWNER), str(part.of)) for table, part in own
    ]
    columns = {
        name: np.concatenate([getattr(each, name) for each in read])
        for name in ("number", "total", "largest", "second")
    }
    return Publication(cells, Contributions.over(cells, Contributions(**columns, hidden=False)))


def joint_cells(tables: Sequence[SimulatedTable], schema: Schema) -> Cells:
    """Return the cells of a query's tables, table after table."""
    sources: dict[str, dict[str, Any]] = {}
    for table in tables:
        for group in table.table.shape.groups:
            sources.setdefault(_source(group, schema), {})[group.name] = group.expression
    parts = [_dimension(name, levels, tables, schema) for name, levels in sources.items()]
    if not parts:
        parts = [(Dimension.from_parents("all", {}), [np.zeros(1, np.int64) for _ in tables])]
    codes = [np.stack([places[number] for _, places in parts], axis=1) for number in range(len(tables))]
    return Cells.closed([dimension for dimension, _ in parts], np.concatenate(codes))


def _is_signed(case: Case, part: Any) -> bool:
    """Whether contributions can be negative, for which the rules have no meaning."""
    declared = case.view.schema.measure(str(part.of))
    return declared is None or declared.signed


def _rows(table: SimulatedTable) -> int:
    return table.cells.num_rows if table.cells.num_columns else 1


def _source(group: Any, schema: Schema) -> str:
    """Return what a group is a level of: a hierarchy, or the column of a prefix."""
    if isinstance(group.expression, Prefix):
        return str(group.expression.column)
    listed = schema.hierarchy(group.name)
    return group.name if listed is None else listed.levels[-1]


def _dimension(
    name: str, levels: Mapping[str, Any], tables: Sequence[SimulatedTable], schema: Schema
) -> tuple[Dimension, list[Any]]:
    """Return the codes of a dimension as a tree, and where each table's cells stand in it."""
    distinct = {
        level: max(len(table.cells.column(level).unique()) for table in tables if level in table.cells.column_names)
        for level in levels
    }
    ordered = sorted(levels, key=lambda level: (distinct[level], level))
    chains = [_chain(table, ordered, levels, schema, name) for table in tables]
    tree = Dimension.from_levels(name, [row for chain in chains for row in dict.fromkeys(chain) if row])
    places = [tree.positions(row[-1] if row else "" for row in chain) for chain in chains]
    return tree, places


def _chain(
    table: SimulatedTable, ordered: Sequence[str], levels: Mapping[str, Any], schema: Schema, name: str
) -> list[tuple[str, ...]]:
    """Return for each cell its codes from the coarsest level to the table's finest one."""
    from recordwise.planning.simulate.evaluate import column_of

    present = [level for level in ordered if level in table.cells.column_names]
    if not present:
        return [()] * _rows(table)
    above = ordered[: ordered.index(present[-1]) + 1]
    columns: list[Any] = []
    for level in above:
        by = levels[level] if isinstance(levels[level], Prefix) else level
        column = table.cells.column(level) if level in present else column_of(table, by, schema)
        if column is None:
            raise ParameterError(
                parameter="baselines",
                problem=f"need levels of '{name}' that nest, and '{level}' is not above '{present[-1]}'",
            )
        columns.append([f"{level}={each}" for each in pa.array(column.to_pylist()).cast(pa.string()).to_pylist()])
    return list(zip(*columns))
