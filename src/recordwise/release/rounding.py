"""Controlled rounding of fitted tables: whole numbers that still add up, in every table of a query.

The cells that all tables are sums of are rounded, and every published number is the sum of rounded cells, so levels add up exactly.
Along a chain of tables, each nested in the next, totals are handed down from the coarsest table by largest remainders, so every
number of the chain is the fitted one rounded up or down. Nothing here loops over cells.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recordwise.exact.arithmetic import FloatArray

IntArray = NDArray[np.int64]
NEAR, RELATIVE = 1e-6, 1e-10
"""A value this close to a whole number counts as whole: fitted sums are exact only up to rounding."""
OUTSIDE = -1


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

    def chain(self) -> list[int]:
        """Tables each of which nests in the next, beginning with the finest, each as fine as possible."""
        found = [0]
        while wider := list(self.above.get(found[-1], {})):
            found.append(max(wider, key=lambda j: (len(self.above.get(j, {})), self.sizes[j])))
        return found


def round_tables(fits: Sequence[FloatArray], nesting: Nesting, *, rests: bool) -> list[IntArray]:
    """The tables in whole numbers that add up.

    Args:
        fits: The fitted numbers of each table, in units of the rounding, the finest table first.
        nesting: How the tables nest.
        rests: Whether a coarser cell may exceed the sum of its finer ones, so that it has a cell of its own for the rest.

    Returns:
        The rounded numbers of each table.
    """
    cells = own_cells(fits, nesting) if rests else {0: np.asarray(fits[0], np.float64)}
    rounded = _handed_down(fits, cells, nesting)
    found = []
    for j, fit in enumerate(fits):
        total = rounded[j].copy() if j in rounded else np.zeros(len(fit), np.int64)
        for k, up in nesting.below(j):
            if k in rounded:
                total += _sums(rounded[k], up, len(fit))
        found.append(total)
    return found


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


def _handed_down(fits: Sequence[FloatArray], cells: Mapping[int, FloatArray], nesting: Nesting) -> dict[int, IntArray]:
    """Every cell rounded, so that the numbers of the chain are the fitted ones rounded up or down."""
    chain = nesting.chain()
    # What lies in no cell of a coarser table of the chain is rounded to the nearest.
    totals = {k: _nearest(np.asarray(fits[k], np.float64)) for k in chain}
    rounded = {k: _nearest(values) for k, values in cells.items() if k != 0}
    places = {k: _first_above(nesting, k, chain) for k in range(len(fits))}
    for level in range(len(chain) - 1, 0, -1):
        j = chain[level]
        parts = [(totals[k], np.asarray(fits[k], np.float64), places[k]) for k in chain[:level]]
        parts += [(rounded[k], cells[k], places[k]) for k in rounded if k not in chain]
        chosen = [np.flatnonzero(at == level) for _, _, (at, _) in parts]
        values = [value[rows] for (_, value, _), rows in zip(parts, chosen)]
        up = [cell[rows] for (_, _, (_, cell)), rows in zip(parts, chosen)]
        if j in rounded:
            values, up = [*values, cells[j]], [*up, np.arange(len(totals[j]))]
        shared = apportion(values, up, totals[j])
        for (into, _, _), rows, found in zip(parts, chosen, shared):
            into[rows] = found
        if j in rounded:
            rounded[j] = shared[-1]
    return rounded | {0: totals[0]}


def _first_above(nesting: Nesting, k: int, chain: Sequence[int]) -> tuple[IntArray, IntArray]:
    """For each cell of a table, the finest table of the chain that it lies in, by its place in the chain, and the cell there."""
    at, cell = np.full((2, nesting.sizes[k]), OUTSIDE, np.int64)
    for level, j in enumerate(chain):
        if j in nesting.above.get(k, {}):
            up = nesting.above[k][j]
            new = (at == OUTSIDE) & (up != OUTSIDE)
            at[new], cell[new] = level, up[new]
    return at, cell


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
    near = _nearly_whole(joined)
    whole = np.where(near, np.rint(joined), np.floor(joined))
    found, rest = whole.astype(np.int64), np.where(near, 0.0, joined - whole)
    inside = np.flatnonzero(up != OUTSIDE)
    outside = up == OUTSIDE
    found[outside] = _nearest(joined[outside])
    order = inside[np.lexsort((-rest[inside], up[inside]))]
    missing = totals - _sums(found, up, len(totals))
    starts = np.searchsorted(up[order], np.arange(len(totals)))
    rank = np.arange(len(order)) - starts[up[order]]
    more = (rank < missing[up[order]]) & (rest[order] > 0)
    found[order[more]] += 1
    _settle(found, order, up, totals)
    return np.split(found, np.cumsum([len(part) for part in values])[:-1])


def _settle(found: IntArray, order: IntArray, up: IntArray, totals: IntArray) -> None:
    """What remains where values do not quite add up to their total goes to the largest of them."""
    missing = totals - _sums(found, up, len(totals))
    if not np.any(missing):
        return
    largest = order[np.lexsort((-found[order], up[order]))]
    parents, first = np.unique(up[largest], return_index=True)
    found[largest[first]] += missing[parents]


def _sums(values: IntArray, up: IntArray, size: int) -> IntArray:
    """Exact sums by place; values outside are left out."""
    inside = up != OUTSIDE
    total = np.zeros(size, np.int64)
    np.add.at(total, up[inside], values[inside])
    return total


def _nearest(values: FloatArray) -> IntArray:
    return np.rint(values).astype(np.int64)


def _nearly_whole(values: FloatArray) -> NDArray[np.bool_]:
    return np.asarray(np.abs(values - np.rint(values)) <= NEAR + RELATIVE * np.abs(values))
