"""Controlled rounding of fitted tables: whole numbers that still add up, in every table of a query.

The cells that all tables are sums of are rounded, and every published number is the sum of rounded cells, so levels add up exactly.
Tables are divided into strips: chains of tables, each nested in the next. Along one strip, totals are handed down from the coarsest
table by largest remainders; two strips that cross are rounded together by a network flow. Either way every number is the fitted one
rounded up or down. With three strips or more that is not always possible (T-STRIPS): they are rounded one after the other, from
the coarsest to the finest, each within the one before it. Nothing here loops over cells.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from recordwise.exact.arithmetic import FloatArray
from recordwise.postprocess.records import nearly_whole
from recordwise.release.rounding_flow import ROOT, IntArray, Sets, added, balanced, bounds

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
        """The tables that nest in table j, with the cell of j that each of their cells lies in."""
        return [(k, ups[j]) for k, ups in self.above.items() if j in ups]

    def chain(self, start: int, among: Collection[int] | None = None) -> list[int]:
        """Tables each of which nests in the next, beginning with one, each as fine as possible."""
        found = [start]
        while wider := [j for j in self.above.get(found[-1], {}) if among is None or j in among]:
            found.append(max(wider, key=lambda j: (len(self.above.get(j, {})), self.sizes[j])))
        return found

    def strips(self) -> list[list[int]]:
        """Chains without a table in common, the one of the finest table first. The finest table of each nests in that of the next.

        Where three code lists cross, some tables are in none of them.
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
        cells = own_cells(values, nesting) if rests else {strip[0]: values[strip[0]]}
        rounded = _together(_Stage(values, nesting, known), cells, strip, above)
        known = {j: _total(rounded, nesting, j) for j in (strip[0], *nesting.above.get(strip[0], {}))}
    return [known[j] for j in range(len(fits))]


def _total(rounded: Mapping[int, IntArray], nesting: Nesting, j: int) -> IntArray:
    """A table as the sum of the rounded cells that lie in its own."""
    total = rounded[j].copy() if j in rounded else np.zeros(nesting.sizes[j], np.int64)
    for k, up in nesting.below(j):
        if k in rounded:
            total += added(rounded[k], up, len(total))
    return total


def own_cells(fits: Sequence[FloatArray], nesting: Nesting) -> dict[int, FloatArray]:
    """The cells that all tables are sums of: those of the finest table and, for every other cell, what is in none below it."""
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

    def place(self, k: int, chain: Sequence[int]) -> tuple[IntArray, IntArray]:
        """For each cell of a table, the finest table of a chain that it lies in, by its place in the chain, and the cell there."""
        at, cell = np.full((2, self.nesting.sizes[k]), OUTSIDE, np.int64)
        for level, j in enumerate(chain):
            up = self.nesting.above.get(k, {}).get(j)
            if up is not None:
                new = (at == OUTSIDE) & (up != OUTSIDE)
                at[new], cell[new] = level, up[new]
        return at, cell

    def sets(self, chain: Sequence[int], cells: Mapping[int, FloatArray]) -> Sets:
        """The cells of a chain of tables as sets of the cells that are rounded."""
        ends = np.cumsum([self.nesting.sizes[j] for j in chain])
        starts = np.append(0, ends[:-1])

        def within(k: int, *, own: bool) -> IntArray:
            if own and k in chain:
                return np.arange(self.nesting.sizes[k]) + int(starts[chain.index(k)])
            at, cell = self.place(k, chain)
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
    """The cells rounded along one strip, or along two: the strip of the finest table and what lies above it."""
    start = _handed_down(stage, cells, [strip[0], *above] if above else strip)
    if not above or len(strip) == 1:
        return start
    joined, values = np.concatenate([start[k] for k in cells]), np.concatenate(list(cells.values()))
    found = balanced(values, joined, stage.sets(strip[1:], cells), stage.sets(above, cells))
    return dict(zip(cells, np.split(found, np.cumsum([len(part) for part in cells.values()])[:-1])))


def _handed_down(stage: _Stage, cells: Mapping[int, FloatArray], chain: Sequence[int]) -> dict[int, IntArray]:
    """Every cell rounded, so that the numbers of the chain are the fitted ones rounded up or down, or those that are known."""
    # What lies in no cell of a coarser table of the chain is rounded to the nearest.
    totals = {k: stage.known[k].copy() if k in stage.known else _nearest(stage.fits[k]) for k in chain}
    rounded = {k: _nearest(values) for k, values in cells.items() if k != chain[0]}
    places = {k: stage.place(k, chain) for k in {*chain, *cells}}
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
                left -= added(totals[k], np.where(at == level, cell, OUTSIDE), len(left))
        shared = apportion(values, up, left)
        for (into, _, _), rows, found in zip(parts, chosen, shared):
            into[rows] = found
        if j in rounded:
            rounded[j] = shared[-1]
    return {k: totals[k] if k == chain[0] else rounded[k] for k in cells}


def apportion(values: Sequence[FloatArray], parents: Sequence[IntArray], totals: IntArray) -> list[IntArray]:
    """Round values so that those of one parent add up to its total; a value without a parent is rounded to the nearest.

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
    missing = totals - added(found, up, len(totals))
    starts = np.searchsorted(up[order], np.arange(len(totals)))
    rank = np.arange(len(order)) - starts[up[order]]
    more = (rank < missing[up[order]]) & (rest[order] > 0)
    found[order[more]] += 1
    _settle(found, order, up, totals)
    return np.split(found, np.cumsum([len(part) for part in values])[:-1])


def _settle(found: IntArray, order: IntArray, up: IntArray, totals: IntArray) -> None:
    """What remains where values do not quite add up to their total goes to the largest of them."""
    missing = totals - added(found, up, len(totals))
    if not np.any(missing):
        return
    largest = order[np.lexsort((-found[order], up[order]))]
    parents, first = np.unique(up[largest], return_index=True)
    found[largest[first]] += missing[parents]


def _nearest(values: FloatArray) -> IntArray:
    return np.rint(values).astype(np.int64)
