"""Fitted tables as weighted records or whole counts, by controlled rounding.

Controlled rounding is a network flow: the sums of one family of nested groups send flow down to the cells, and those of another
collect it. The constraint matrix is totally unimodular, so the cheapest flow within the rounded bounds is integral (T-ROUND).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from recordwise.errors import ParameterError, SolverError, own_argument_errors
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.text import FORMULA
from recordwise.postprocess.solvers.boxed import IntArray
from recordwise.postprocess.workload import Group, Workload, group_sums

# Records with positive weights, and whole counts of a single table.


WEIGHT = "weight"


@own_argument_errors
def to_weighted_records(x: ArrayLike, domain: Mapping[str, Sequence[Any]]) -> Any:
    """One weighted record for each nonempty cell, as an Arrow table.

    ``domain`` lists the values of each column; the cells are their combinations in C order. With as many values in every column as
    there are cells, the columns are read row by row instead.

    Args:
        x: A fitted table, cell by cell.
        domain: The values of each column, by its name.

    Returns:
        The records, with a column ``weight``.
    """
    import pyarrow

    weights = read_table(x)
    columns = columns_of(domain, len(weights))
    kept = np.flatnonzero(weights > 0)
    made = {name: pyarrow.array([values[k] for k in places[kept]]) for name, (values, places) in columns.items()}
    return pyarrow.table(made | {WEIGHT: weights[kept]})


@own_argument_errors
def to_integer_records(workload: Workload, x: ArrayLike, domain: Mapping[str, Sequence[Any]]) -> Any:
    """Return integer records by rounding a fitted table consistently.

    Every cell and every sum of the workload is rounded up or down, and all still add up (T-ROUND). Possible when
    the groups are two families of nested ones, such as regions by levels and industries by levels; refused
    otherwise.

    Args:
        workload: The sums that must be kept.
        x: A fitted table, cell by cell.
        domain: The values of each column, by its name.

    Returns:
        One record for each unit of each cell, as an Arrow table.
    """
    import pyarrow

    counts = controlled_rounding(workload, read_table(x))
    columns = columns_of(domain, len(counts))
    cells = np.repeat(np.arange(len(counts)), counts)
    return pyarrow.table(
        {name: pyarrow.array([values[k] for k in places[cells]]) for name, (values, places) in columns.items()}
    )


@own_argument_errors
def save_records(records: Any, path: str | Path) -> None:
    """Write records as Parquet or CSV, according to the file extension.

    Args:
        records: The records, as an Arrow table.
        path: A file that ends in .parquet or .csv.
    """
    from pyarrow import csv, parquet

    ending = Path(path).suffix.lower()
    if ending == ".parquet":
        parquet.write_table(records, path)
    elif ending == ".csv":
        _check_formulas(records)
        csv.write_csv(records, path)
    else:
        raise ParameterError(parameter="path", problem=f"must end in .parquet or .csv, not '{ending}'")


def _check_formulas(records: Any) -> None:
    """Refuse text that a spreadsheet would run."""
    import pyarrow
    from pyarrow import compute

    texts = [name for name, kind in zip(records.column_names, records.schema.types) if pyarrow.types.is_string(kind)]
    for name in texts:
        if compute.any(compute.match_substring_regex(records.column(name), FORMULA)).as_py():
            raise ParameterError(
                parameter="path",
                problem=f"is CSV, and a spreadsheet would run some values of '{name}' as formulas",
                advice="Write Parquet.",
            )


def read_table(x: ArrayLike) -> FloatArray:
    """One fitted table: finite and nonnegative."""
    values = np.asarray(x, dtype=np.float64)
    if values.ndim != 1 or not np.all(np.isfinite(values)):
        raise ParameterError(parameter="x", problem="must be one table of finite cells", advice="Choose a draw.")
    if np.any(values < 0):
        raise ParameterError(
            parameter="x",
            problem="has negative cells, which cannot become records",
            advice="Fit it with nnls or another nonnegative method.",
        )
    return values


def columns_of(domain: Mapping[str, Sequence[Any]], cells: int) -> dict[str, tuple[Sequence[Any], IntArray]]:
    """Return each column's values and the index of each cell's value."""
    if not domain or WEIGHT in domain:
        raise ParameterError(
            parameter="domain", problem=f"must name at least one column, and none may be named '{WEIGHT}'"
        )
    shape = tuple(len(values) for values in domain.values())
    if int(np.prod(shape)) == cells:
        places = np.indices(shape).reshape(len(shape), cells)
        return {name: (values, places[k]) for k, (name, values) in enumerate(domain.items())}
    if all(length == cells for length in shape):
        return {name: (values, np.arange(cells)) for name, values in domain.items()}
    raise ParameterError(
        parameter="domain", problem=f"has {' x '.join(map(str, shape))} combinations, the table {cells} cells"
    )


WHOLE = 1e-6
RELATIVE = 1e-10
"""A value this close to a whole number counts as whole, because fitted sums are exact only up to rounding."""


@own_argument_errors
def controlled_rounding(workload: Workload, x: FloatArray) -> IntArray:
    """Return integer cells whose sums round the fitted ones.

    The sum over every query is the floor or the ceiling of the fitted one.

    Args:
        workload: The sums that must be kept.
        x: A fitted table, cell by cell.

    Returns:
        Integers, cell by cell.
    """
    if len(x) != workload.cells:
        raise ParameterError(parameter="x", problem=f"must have {workload.cells} cells, not {len(x)}")
    two_nestings(workload)
    base, rest = whole_and_remainder(x)
    if not np.any(rest):
        return base
    counts = base + cheapest(workload, base, rest, x)
    verify(workload, counts, x)
    return counts


def whole_and_remainder(x: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the integer part and remainder; nearly integer counts as integer."""
    near = np.rint(x)
    whole = np.where(nearly_whole(x), near, np.floor(x))
    return whole.astype(np.int64), np.maximum(x - whole, 0.0)


def two_nestings(workload: Workload) -> tuple[list[Group], list[Group]]:
    """Return the groups as two nested families, or raise."""
    for group in workload.groups:
        if group.labels is None:
            raise refusal(f"group '{group.name}' is not a partition of the cells")
    color: dict[int, int] = {}
    for start in range(len(workload.groups)):
        stack = [(start, color.get(start, 0))] if start not in color else []
        while stack:
            at, wanted = stack.pop()
            if at in color:
                if color[at] != wanted:
                    raise refusal(f"group '{workload.groups[at].name}' cuts across groups that cut across each other")
                continue
            color[at] = wanted
            stack += [(other, 1 - wanted) for other in range(len(workload.groups)) if cross(workload, at, other)]
    families = [[group for k, group in enumerate(workload.groups) if color[k] == side] for side in (0, 1)]
    return families[0], families[1]


def cross(workload: Workload, first: int, second: int) -> bool:
    """Whether neither of two groups refines the other."""
    one, two = workload.groups[first], workload.groups[second]
    return not (one.refines(two) or two.refines(one))


def refusal(why: str) -> ParameterError:
    return ParameterError(
        parameter="workload",
        problem=f"is not two families of nested groups: {why}; whole records with all these sums may not exist",
        advice="Keep fewer groups, or use to_weighted_records.",
    )


def cheapest(workload: Workload, base: IntArray, rest: FloatArray, x: FloatArray) -> IntArray:
    """Return the rounding nearest to the table, adding 0 or 1."""
    open_cells = np.flatnonzero(rest)
    rows, low, high = [], [], []
    for group in workload.groups:
        if group.single:
            continue
        already = group_sums(group, base.astype(np.float64))
        floor, ceiling = bounds_of(group_sums(group, x))
        rows.append(sparse.csr_array(group.rows)[:, open_cells])
        low.append(floor - already)
        high.append(ceiling - already)
    chosen = np.zeros(len(base), dtype=np.int64)
    if not rows:
        chosen[open_cells] = np.rint(rest[open_cells]).astype(np.int64)
        return chosen
    matrix, upper, lower = sparse.vstack(rows, format="csr"), np.concatenate(high), np.concatenate(low)
    from scipy import optimize

    found = optimize.linprog(
        1.0 - 2.0 * rest[open_cells],
        A_ub=sparse.vstack([matrix, -matrix], format="csr"),
        b_ub=np.concatenate([upper, -lower]),
        bounds=(0, 1),
        method="highs-ds",
    )
    if found.x is None:
        raise SolverError(problem="the network flow of controlled rounding", status=str(found.message))
    chosen[open_cells] = np.rint(found.x).astype(np.int64)
    return chosen


def bounds_of(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Floor and ceiling, equal where a value is nearly whole."""
    near, whole = np.rint(values), nearly_whole(values)
    return np.where(whole, near, np.floor(values)), np.where(whole, near, np.ceil(values))


def nearly_whole(values: FloatArray) -> NDArray[np.bool_]:
    """Whole except for the error a fit leaves."""
    return np.asarray(np.abs(values - np.rint(values)) <= WHOLE + RELATIVE * np.abs(values))


def verify(workload: Workload, counts: IntArray, x: FloatArray) -> None:
    """Check the sums in integers; raise for a fractional flow."""
    for group in workload.groups:
        floor, ceiling = bounds_of(group_sums(group, x))
        sums: NDArray[np.float64] = group_sums(group, counts.astype(np.float64))
        if np.any(counts < 0) or np.any(sums < floor) or np.any(sums > ceiling):
            raise SolverError(problem="the network flow of controlled rounding", status="its vertex is not whole")


# Two families of sets that cross, rounded together: within a family any two sets are nested or disjoint. Every
# rounded item flows from the smallest set of the first family that holds it to the smallest of the second, and every
# set passes on the sum of its items. Whole numbers within whole bounds exist wherever fractions within them do
# (T-ROUND), and a maximum flow finds them. Items near the middle between two whole numbers are changed first.


ROOT = -1
"""The place of what lies in no set of a family."""
PHASES = ((0, 0.0), (0, 0.5), (0, 1.0), (1, 3.0), (2, 5.0), (4, 9.0), (8, 17.0))
"""By how much more than a rounding up or down numbers may move, and by how much an item's own error may grow. Only the first three
are needed where fractions within the bounds exist."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sets:
    """One family of sets, each before the set that contains it."""

    parent: IntArray
    """The smallest set that each one lies in."""
    ends: tuple[int, ...]
    """Where runs of sets end that do not lie in each other."""
    lower: IntArray
    upper: IntArray
    fixed: NDArray[np.bool_]
    """The sets whose sum may not leave its bounds in any phase."""
    place: IntArray
    """For each item the smallest set that holds it."""

    def sums(self, items: IntArray) -> IntArray:
        """What the items of each set add up to."""
        found = sum_by_index(items, self.place, len(self.parent))
        for start, stop in zip((0, *self.ends), self.ends):
            found += sum_by_index(found[start:stop], self.parent[start:stop], len(found))
        return found

    def within(self, items: IntArray, more: int) -> tuple[IntArray, IntArray, IntArray]:
        """The sums of sets brought within their bounds, and the bounds."""
        wider = np.where(self.fixed, 0, more)
        lower, upper = self.lower - wider, self.upper + wider
        return np.clip(self.sums(items), lower, upper), lower, upper


def bounds(values: FloatArray) -> tuple[IntArray, IntArray]:
    """Return each value rounded down and up; nearly integers are exact."""
    low, high = bounds_of(values)
    return low.astype(np.int64), high.astype(np.int64)


def sum_by_index(values: IntArray, index: IntArray, size: int) -> IntArray:
    """Exact sums by place; values at the root are left out."""
    inside = index != ROOT
    total = np.zeros(size, np.int64)
    np.add.at(total, index[inside], values[inside])
    return total


def balance(values: FloatArray, start: IntArray, first: Sets, second: Sets) -> IntArray:
    """Return rounded items with both families' sums within their bounds.

    Items stay near their values; bounds hold as far as possible.

    Args:
        values: The values of the items.
        start: The items, rounded so that the sums of one family are within their bounds.
        first: One family of sets.
        second: The other.

    Returns:
        The rounded items.
    """
    low, high = bounds(values)
    found = np.array(start)
    for more, dearest in PHASES:
        least = np.where(low >= 0, np.maximum(low - more, 0), low - more)
        network = _Network(first, second, found, more)
        if network.settled:
            break
        steps = [np.abs(found + way - values) - np.abs(found - values) for way in (1, -1)]
        free = [(found < high + more) & (steps[0] <= dearest), (found > least) & (steps[1] <= dearest)]
        found = found + network.item_changes(steps, free)
    return found


class _Network:
    """The sets of both families as nodes, with their current flow."""

    def __init__(self, first: Sets, second: Sets, items: IntArray, more: int) -> None:
        top, size = len(first.parent), len(first.parent) + len(second.parent) + 2
        bottom, own = size - 1, np.arange(len(second.parent)) + top + 1
        self.tail = np.where(first.place == ROOT, top, first.place)
        self.head = np.where(second.place == ROOT, bottom, second.place + top + 1)
        flow, lower, upper = (
            np.concatenate(each) for each in zip(first.within(items, more), second.within(items, more))
        )
        into = np.where(second.parent == ROOT, bottom, second.parent + top + 1)
        self.tree_tail = np.concatenate([np.where(first.parent == ROOT, top, first.parent), own])
        self.tree_head = np.concatenate([np.arange(top), into])
        self.room = upper - flow, flow - lower
        arriving = sum_by_index(flow, self.tree_head, size) + sum_by_index(items, self.head, size)
        leaving = sum_by_index(flow, self.tree_tail, size) + sum_by_index(items, self.tail, size)
        self.excess = arriving - leaving
        # What arrives at the bottom returns to the top.
        self.excess[top] += self.excess[bottom]
        self.excess[bottom] = 0
        self.ends = top, bottom

    @property
    def settled(self) -> bool:
        """Whether every sum is within its bounds."""
        return not np.any(self.excess)

    def item_changes(self, steps: list[FloatArray], free: list[NDArray[np.bool_]]) -> IntArray:
        """Return each item's change, by maximum flow from excess to deficit."""
        size, (top, bottom) = len(self.excess), self.ends
        source, sink, most = size, size + 1, int(np.abs(self.excess).sum())
        too_much, too_little = np.flatnonzero(self.excess > 0), np.flatnonzero(self.excess < 0)
        up, down = (np.flatnonzero(each) for each in free)
        arcs = [
            (self.tree_tail, self.tree_head, self.room[0]),
            (self.tree_head, self.tree_tail, self.room[1]),
            (self.tail[up], self.head[up], np.ones(len(up))),
            (self.head[down], self.tail[down], np.ones(len(down))),
            (np.array([top, bottom]), np.array([bottom, top]), np.array([most, most])),
            (np.full(len(too_much), source), too_much, self.excess[too_much]),
            (too_little, np.full(len(too_little), sink), -self.excess[too_little]),
        ]
        tails, heads, room = (np.concatenate(each) for each in zip(*arcs))
        room = np.minimum(room, most).astype(np.int32)
        graph = sparse.csr_array((room, (tails, heads)), shape=(size + 2, size + 2))
        from scipy.sparse.csgraph import maximum_flow

        flow = sparse.csr_array(maximum_flow(graph, source, sink).flow)
        return self._share_flow(flow, steps, free)

    def _share_flow(self, flow: sparse.csr_array, steps: list[FloatArray], free: list[NDArray[np.bool_]]) -> IntArray:
        """Return the flow between two sets, split among their common items."""
        change = np.zeros(len(self.tail), np.int64)
        net = np.asarray(flow[self.tail, self.head]).ravel()
        net[self.head == self.ends[1]] *= self.tail[self.head == self.ends[1]] != self.ends[0]
        pair = self.tail * (len(self.excess) + 1) + self.head
        for way, step, able in zip((1, -1), steps, free):
            chosen = np.flatnonzero(able & (way * net > 0))
            order = chosen[np.lexsort((step[chosen], pair[chosen]))]
            _, first, count = np.unique(pair[order], return_index=True, return_counts=True)
            rank = np.arange(len(order)) - np.repeat(first, count)
            change[order[rank < way * net[order]]] = way
        return change


# Controlled rounding of fitted tables: whole numbers that still add up, in every table of a query. The finest cells,
# of which all tables are sums, are rounded, and every published number is the sum of rounded cells, so levels add up
# exactly. Tables are divided into strips: chains of tables, each nested in the next. Along one strip, totals are
# handed down from the coarsest table by largest remainders; two strips that cross are rounded together by a network
# flow. Either way every number is the fitted one rounded up or down. With three strips or more that is not always
# possible (T-STRIPS): they are rounded one after the other, from the coarsest to the finest, each within the one
# before it. Nothing here loops over cells.


OUTSIDE = ROOT


@dataclass(frozen=True, slots=True, kw_only=True)
class Nesting:
    """How the tables of a query nest, with the finest table first.

    ``above[k][j]`` is, for each cell of table k, its cell in table j, or ``OUTSIDE`` if that is not published. There is no entry if
    table k does not nest in table j.
    """

    sizes: tuple[int, ...]
    above: Mapping[int, Mapping[int, IntArray]]

    def below(self, j: int) -> list[tuple[int, IntArray]]:
        """Return the tables nested in table j, with their cells' parents."""
        return [(k, ups[j]) for k, ups in self.above.items() if j in ups]

    def chain(self, start: int, among: Collection[int] | None = None) -> list[int]:
        """Return the chain of tables from ``start``, each in the next."""
        found = [start]
        while wider := [j for j in self.above.get(found[-1], {}) if among is None or j in among]:
            found.append(max(wider, key=lambda j: (len(self.above.get(j, {})), self.sizes[j])))
        return found

    def strips(self) -> list[list[int]]:
        """Return disjoint chains of tables, the finest table's chain first.

        The finest table of each nests in that of the next. Where three code lists cross, some tables are in none of
        them.
        """
        found: list[list[int]] = []
        head = 0
        while True:
            above = self.above.get(head, {})
            whole = self.chain(head)
            if len(whole) == len(above) + 1:
                return [*found, whole]
            nearest = [j for j in above if not any(j in self.above.get(k, {}) for k in above)]
            chains = {j: self.chain(head, set(above) - {j} - set(self.above.get(j, {}))) for j in nearest}
            head = max(nearest, key=lambda j: (len(chains[j]), self.sizes[j]))
            found.append(chains[head])


def round_tables(fits: Sequence[FloatArray], nesting: Nesting, *, rests: bool) -> list[IntArray]:
    """The tables in whole numbers that add up.

    Args:
        fits: The fitted numbers of each table, in units of the rounding, the finest table first.
        nesting: How the tables nest.
        rests: Whether a coarser cell may exceed the sum of its finer ones, so that it has a cell of its own for the rest. If so,
            only the two finest strips are rounded together; coarser ones are what these add up to.

    Returns:
        The rounded numbers of each table.
    """
    values = [np.asarray(fit, np.float64) for fit in fits]
    strips = nesting.strips()
    known: dict[int, IntArray] = {}
    for place in [0] if rests else range(max(len(strips) - 2, 0), -1, -1):
        strip = strips[place]
        wider = strips[place + 1] if place + 1 < len(strips) else []
        above = [*wider[:-1], *nesting.chain(wider[-1])] if wider else []
        cells = disjoint_cells(values, nesting) if rests else {strip[0]: values[strip[0]]}
        rounded = _together(_Stage(values, nesting, known), cells, strip, above)
        known = {j: _total(rounded, nesting, j) for j in (strip[0], *nesting.above.get(strip[0], {}))}
    return [known[j] for j in range(len(fits))]


def _total(rounded: Mapping[int, IntArray], nesting: Nesting, j: int) -> IntArray:
    """Return a table as sums of the rounded cells in its cells."""
    total = rounded[j].copy() if j in rounded else np.zeros(nesting.sizes[j], np.int64)
    for k, up in nesting.below(j):
        if k in rounded:
            total += sum_by_index(rounded[k], up, len(total))
    return total


def disjoint_cells(fits: Sequence[FloatArray], nesting: Nesting) -> dict[int, FloatArray]:
    """Return the finest table's cells and every other cell's remainder."""
    found: dict[int, FloatArray] = {}
    for j in sorted(range(len(fits)), key=lambda table: len(nesting.below(table))):
        rest = np.array(fits[j], np.float64)
        for k, up in nesting.below(j):
            inside = up != OUTSIDE
            rest -= np.bincount(up[inside], weights=found[k][inside], minlength=len(rest))
        found[j] = rest
    return found


@dataclass(frozen=True, slots=True)
class _Stage:
    """What one or two strips are rounded from."""

    fits: Sequence[FloatArray]
    nesting: Nesting
    known: Mapping[int, IntArray]
    """The tables that are rounded already."""

    def finest_in(self, k: int, chain: Sequence[int]) -> tuple[IntArray, IntArray]:
        """Return each cell's finest table in a chain, and the cell there."""
        at, cell = np.full((2, self.nesting.sizes[k]), OUTSIDE, np.int64)
        for level, j in enumerate(chain):
            up = self.nesting.above.get(k, {}).get(j)
            if up is not None:
                new = (at == OUTSIDE) & (up != OUTSIDE)
                at[new], cell[new] = level, up[new]
        return at, cell

    def sets(self, chain: Sequence[int], cells: Mapping[int, FloatArray]) -> Sets:
        """Return a chain's cells as sets of the rounded cells."""
        ends = np.cumsum([self.nesting.sizes[j] for j in chain])
        starts = np.append(0, ends[:-1])

        def within(k: int, *, own: bool) -> IntArray:
            if own and k in chain:
                return np.arange(self.nesting.sizes[k]) + int(starts[chain.index(k)])
            at, cell = self.finest_in(k, chain)
            return np.asarray(np.where(at == OUTSIDE, ROOT, cell + starts[at]), np.int64)

        low, high = zip(*([self.known[j]] * 2 if j in self.known else bounds(self.fits[j]) for j in chain))
        return Sets(
            parent=np.concatenate([within(j, own=False) for j in chain]),
            ends=tuple(int(end) for end in ends),
            lower=np.concatenate(low),
            upper=np.concatenate(high),
            fixed=np.concatenate([np.full(self.nesting.sizes[j], j in self.known) for j in chain]),
            place=np.concatenate([within(k, own=True) for k in cells]),
        )


def _together(
    stage: _Stage, cells: Mapping[int, FloatArray], strip: Sequence[int], above: Sequence[int]
) -> dict[int, IntArray]:
    """Return the cells rounded along one strip or two."""
    start = _round_downward(stage, cells, [strip[0], *above] if above else strip)
    if not above or len(strip) == 1:
        return start
    joined, values = np.concatenate([start[k] for k in cells]), np.concatenate(list(cells.values()))
    found = balance(values, joined, stage.sets(strip[1:], cells), stage.sets(above, cells))
    return dict(zip(cells, np.split(found, np.cumsum([len(part) for part in cells.values()])[:-1])))


def _round_downward(stage: _Stage, cells: Mapping[int, FloatArray], chain: Sequence[int]) -> dict[int, IntArray]:
    """Return every cell rounded, consistent with the chain's known numbers."""
    # What lies in no cell of a coarser table of the chain is rounded to the nearest.
    totals = {k: stage.known[k].copy() if k in stage.known else _nearest(stage.fits[k]) for k in chain}
    rounded = {k: _nearest(values) for k, values in cells.items() if k != chain[0]}
    places = {k: stage.finest_in(k, chain) for k in {*chain, *cells}}
    for level in range(len(chain) - 1, 0, -1):
        j, finer = chain[level], chain[:level]
        parts = [(totals[k], stage.fits[k], places[k]) for k in finer if k not in stage.known]
        parts += [(rounded[k], cells[k], places[k]) for k in rounded if k not in chain]
        chosen = [np.flatnonzero(at == level) for _, _, (at, _) in parts]
        values = [value[rows] for (_, value, _), rows in zip(parts, chosen)]
        up = [cell[rows] for (_, _, (_, cell)), rows in zip(parts, chosen)]
        if j in rounded:
            values, up = [*values, cells[j]], [*up, np.arange(len(totals[j]))]
        left = totals[j].copy()
        for k in finer:
            if k in stage.known:
                at, cell = places[k]
                left -= sum_by_index(totals[k], np.where(at == level, cell, OUTSIDE), len(left))
        shared = apportion(values, up, left)
        for (into, _, _), rows, found in zip(parts, chosen, shared):
            into[rows] = found
        if j in rounded:
            rounded[j] = shared[-1]
    return {k: totals[k] if k == chain[0] else rounded[k] for k in cells}


def apportion(values: Sequence[FloatArray], parents: Sequence[IntArray], totals: IntArray) -> list[IntArray]:
    """Round values so that each parent's add up to its total.

    A value without a parent is rounded to the nearest integer.

    Args:
        values: The values, in several parts.
        parents: For each value the place of its total, or ``OUTSIDE``.
        totals: What the values of each parent add up to.

    Returns:
        The rounded values, part by part: each is its value rounded up or down, if every total is the sum of its values so rounded.
    """
    joined, up = np.concatenate(values), np.concatenate(parents)
    near = nearly_whole(joined)
    whole = np.where(near, np.rint(joined), np.floor(joined))
    found, rest = whole.astype(np.int64), np.where(near, 0.0, joined - whole)
    inside = np.flatnonzero(up != OUTSIDE)
    outside = up == OUTSIDE
    found[outside] = _nearest(joined[outside])
    order = inside[np.lexsort((-rest[inside], up[inside]))]
    missing = totals - sum_by_index(found, up, len(totals))
    starts = np.searchsorted(up[order], np.arange(len(totals)))
    rank = np.arange(len(order)) - starts[up[order]]
    more = (rank < missing[up[order]]) & (rest[order] > 0)
    found[order[more]] += 1
    _settle(found, order, up, totals)
    return np.split(found, np.cumsum([len(part) for part in values])[:-1])


def _settle(found: IntArray, order: IntArray, up: IntArray, totals: IntArray) -> None:
    """Move what is left of each total to its largest values."""
    missing = totals - sum_by_index(found, up, len(totals))
    if not np.any(missing):
        return
    largest = order[np.lexsort((-found[order], up[order]))]
    parents, first = np.unique(up[largest], return_index=True)
    found[largest[first]] += missing[parents]


def _nearest(values: FloatArray) -> IntArray:
    return np.rint(values).astype(np.int64)
