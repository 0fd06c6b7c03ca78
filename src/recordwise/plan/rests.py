"""The published rest of a coarser cell: one "all other" cell for its records that are in no listed finer cell (T-REST).

With ``rest="publish"`` the tables of a query refine one another. Below every listed cell of a table the next finer table has its
listed cells and one more, whose records have the key of the coarser cell and no listed key of the finer table. Which records those
are is decided by public keys alone. A record is in at most one cell of each table, as it is without a rest.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.errors import ParameterError
from recordwise.plan.fields import ALL_OTHER, Group, Level, Prefix, finer

PUBLISH = "publish"


def read_rest(given: str | None) -> str | None:
    """``"publish"``, or None: nothing is published about records in no listed cell."""
    if given not in (None, PUBLISH):
        raise ParameterError(parameter="rest", problem=f"must be '{PUBLISH}' or left out, not {given!r}")
    return given


def refines(fine: Level, coarse: Level) -> bool:
    """Whether the cell of a record in the finer table determines its cell in the coarser one."""
    return all(any(finer(own.expression, group.expression) for own in fine.groups) for group in coarse.groups)


def parent_of(level: Level, levels: Sequence[Level]) -> Level | None:
    """The finest of the tables that a table refines; None for the coarsest."""
    above = [each for each in levels if refines(level, each) and not refines(each, level)]
    return next((each for each in above if all(refines(each, other) for other in above)), None)


def chain_problems(levels: Sequence[Level]) -> Iterator[str]:
    """A rest has one coarser cell that it belongs to only if all tables refine one another."""
    for number, one in enumerate(levels):
        for other in levels[:number]:
            if refines(one, other) == refines(other, one):
                names = " and ".join(" x ".join(each.names()) or "the grand total" for each in (other, one))
                yield f"rest = 'publish' needs tables that refine one another, and of {names} neither refines the other"
    if len(levels) < 2:
        yield "rest = 'publish' needs at least two levels: the rest is that of a coarser cell"
    if any(ALL_OTHER in level.names() for level in levels):
        yield f"a group is called '{ALL_OTHER}', which is the column that marks a published rest"


def with_rests(listed: pa.Table, level: Level, parent: Level, above: pa.Table) -> pa.Table:
    """The listed cells of a table and behind them one "all other" cell for each cell of the coarser table.

    A rest has the key of its coarser cell, a code as many characters as that has, and NULL where the coarser table has no column.
    """
    columns, count = {}, above.num_rows if parent.groups else 1
    for group in level.groups:
        own = listed.column(group.name).combine_chunks()
        sources = [each for each in parent.groups if finer(group.expression, each.expression)]
        source = max(sources, key=_length, default=None)
        rest = (
            pa.nulls(count, own.type) if source is None else above.column(source.name).combine_chunks().cast(own.type)
        )
        columns[group.name] = pa.chunked_array([own, rest]).combine_chunks()
    flags = np.arange(listed.num_rows + count) >= listed.num_rows
    return pa.table({**columns, ALL_OTHER: flags})


def _length(group: Group) -> int:
    return group.expression.length if isinstance(group.expression, Prefix) else 1 << 30


def listed_cells(cells: pa.Table) -> pa.Table:
    """The cells of a table without its rests, and without the column that marks them."""
    if ALL_OTHER not in cells.column_names:
        return cells
    return cells.filter(pc.invert(cells.column(ALL_OTHER))).drop_columns([ALL_OTHER])


def rest_keys(cells: pa.Table, level: Level, parent: Level) -> pa.Table:
    """The keys of the coarser cells that a table has a rest of, in the order of the rests."""
    rests = cells.filter(cells.column(ALL_OTHER))
    columns = {}
    for group in parent.groups:
        own = next(each for each in level.groups if finer(each.expression, group.expression))
        values = rests.column(own.name)
        short = isinstance(group.expression, Prefix)
        columns[group.name] = pc.utf8_slice_codeunits(values, 0, group.expression.length) if short else values  # type: ignore[union-attr]
    return pa.table(columns)
