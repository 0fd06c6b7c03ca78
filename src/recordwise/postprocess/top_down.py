"""Nonnegative tables handed down from unbiased totals, coarsest first (T-DOWN).

The best linear estimate is unbiased but may be negative. Every table is moved to the nearest nonnegative one whose sums are those
of the coarser tables, which were moved before it. Large cells resist being moved, so what nonnegativity needs is taken from small
cells, and coarse totals stay what they are. Along one tree the children of a cell share its total. Where two trees cross, a
table has a coarser one along either tree: it falls into blocks, each with the sums of its rows and columns given (T-BLOCKS).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from recordwise.postprocess.linear import AnswerTree
from recordwise.postprocess.measured import TOLERANCE, Fit
from recordwise.postprocess.solvers.boxed import FloatArray, IntArray
from recordwise.postprocess.solvers.tree import NONE, chains, nested_chains
from recordwise.postprocess.solvers.trees import is_nested
from recordwise.postprocess.workload import Workload

BoolArray: TypeAlias = NDArray[np.bool_]
Sums: TypeAlias = Callable[[FloatArray], FloatArray]
"""Cells to the sums of their families, or numbers of families to their cells."""
STIFFEST = 100.0
"""Cells of more standard errors resist no more than those of this many: they hardly move."""


def ease_of(best: FloatArray, sd: FloatArray) -> FloatArray:
    """Return how far one unit of price moves each cell.

    The inverse of the weight (1 + z+/sd)^2 / sd^2.

    Args:
        best: Unbiased estimates z.
        sd: Their standard errors.

    Returns:
        A positive number for each.
    """
    return np.asarray((sd / (1.0 + np.minimum(np.maximum(best, 0.0) / sd, STIFFEST))) ** 2)


def top_down(workload: Workload, best: FloatArray, sd: FloatArray, *, shape: "Forest | Grid | None") -> Fit:
    """Return nonnegative cells handed down from unbiased estimates.

    Args:
        workload: The answers.
        best: Their unbiased estimates, of one draw or several (last axis: answers).
        sd: Their standard errors.
        shape: How the answers nest or cross. If they do otherwise (None), cells are fitted by least squares to all estimates
            at once, with the same resistance of large cells (several draws: that of their mean).

    Returns:
        The fitted table.
    """
    if shape is None:
        from recordwise.postprocess.least_squares import nnls

        middle = np.mean(np.atleast_2d(best), axis=0)
        return nnls(workload, best, ease_of(middle, sd), noise="gaussian")
    cells, gap = shape.hand_down(best, sd)
    zeros = np.zeros(best.shape[:-1])
    return Fit(
        x=cells,
        fitted=workload.answer(cells),
        kkt=zeros + gap,
        primal=zeros,
        iterations=zeros.astype(np.int64),
        tolerance=TOLERANCE,
    )


# One family at a time: cells max(0, target + price * ease) with a given sum.


def prices(target: FloatArray, ease: FloatArray, sums: FloatArray, add: Sums, spread: Sums) -> FloatArray:
    """Return the price at which each family's positive parts meet its sum.

    Newton's method from the right on an increasing convex function: the price falls, cells only leave, and the
    price is exact once none does (T-DOWN).
    """
    inside, found = np.ones(target.shape, dtype=bool), np.zeros(sums.shape)
    while True:
        room = add(np.where(inside, ease, 0.0))
        missing = sums - add(np.where(inside, target, 0.0))
        found = np.where(room > 0, missing / np.where(room > 0, room, 1.0), found)
        stays = inside & (target + spread(found) * ease > 0)
        if np.array_equal(stays, inside):
            return found
        inside = stays


def share_out(target: FloatArray, ease: FloatArray, sums: FloatArray, first: IntArray) -> FloatArray:
    """Return the nearest nonnegative cells with a given sum per family.

    Args:
        target: The cells, those of a family side by side along the last axis.
        ease: How far one unit of price moves each.
        sums: The sum of each family.
        first: Where the families begin.

    Returns:
        The cells.
    """
    family = np.repeat(np.arange(len(first)), np.diff(first, append=target.shape[-1]))
    target, ease = _closed(sums[..., family] <= 0, target, ease)
    found = prices(
        target,
        ease,
        sums,
        lambda cells: np.add.reduceat(cells, first, axis=-1),
        lambda price: price[..., family],
    )
    return np.maximum(target + found[..., family] * ease, 0.0)


def _closed(where: BoolArray, target: FloatArray, ease: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Hold cells at 0 whatever the price."""
    return np.where(where, -1.0, target), np.where(where, 0.0, ease)


# Blocks: cells max(0, target + (price of the row + price of the column) * ease) with given sums of rows and columns.


CLOSE = 1e-12
"""Sums of columns this close to the given ones, relative to their block's total, are met."""
MOST_STEPS = 400
RIDGE = 1e-3
"""The first ridge of a block's Newton system, relative to its diagonal; it falls with the gap."""
SMALL_SIDE = 16
"""Blocks of at most this many columns are multiplied out together."""
MOST_PRODUCTS = 4_000_000


@dataclass(slots=True, eq=False)
class Blocks:
    """Blocks of rows with as many columns each."""

    target: FloatArray
    """The cells, a line for each row, the rows of a block together."""
    ease: FloatArray
    rows: FloatArray
    """The sum of each row."""
    columns: FloatArray
    """The sums of the columns of each block."""
    first: IntArray
    """Where the blocks begin."""

    @property
    def block(self) -> IntArray:
        """The block of each row."""
        return np.repeat(np.arange(len(self.first)), np.diff(self.first, append=len(self.target)))

    def add(self, values: FloatArray) -> FloatArray:
        """Sums over the rows of each block."""
        return np.add.reduceat(values, self.first, axis=0)

    def take(self, chosen: IntArray) -> tuple["Blocks", IntArray]:
        """Return some of the blocks, and where their rows were."""
        length = np.diff(self.first, append=len(self.target))[chosen]
        first = np.cumsum(length) - length
        rows = np.arange(int(length.sum())) + np.repeat(self.first[chosen] - first, length)
        return Blocks(self.target[rows], self.ease[rows], self.rows[rows], self.columns[chosen], first), rows

    def row_prices(self, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the rows' exact prices for these of columns, and the cells before they are cut at 0."""
        target = self.target + columns[self.block] * self.ease
        rows = prices(target, self.ease, self.rows, lambda cells: cells.sum(axis=1), lambda price: price[:, None])
        return rows, target + rows[:, None] * self.ease

    def column_prices(self, rows: FloatArray) -> FloatArray:
        """Return the columns' exact prices for these of rows."""
        block = self.block
        return prices(self.target + rows[:, None] * self.ease, self.ease, self.columns, self.add, lambda p: p[block])

    def curvature(self, active: BoolArray) -> FloatArray:
        """Return how the columns' sums respond to their prices, once rows adjust."""
        moves = np.where(active, self.ease, 0.0)
        room = moves.sum(axis=1)
        part, side = moves / np.sqrt(np.where(room > 0, room, 1.0))[:, None], moves.shape[1]
        found = np.empty((len(self.first), side, side))
        ends = np.append(self.first, len(moves))
        if side <= SMALL_SIDE:
            size = max(1, MOST_PRODUCTS // side**2)
            # Whole blocks, as many together as fit.
            cuts = np.unique(np.append(np.searchsorted(ends, np.arange(0, len(moves), size)), len(self.first)))
            for start, stop in pairwise(cuts):
                some = part[ends[start] : ends[stop]]
                products = (some[:, :, None] * some[:, None, :]).reshape(len(some), -1)
                added = np.add.reduceat(products, ends[start:stop] - ends[start], axis=0)
                found[start:stop] = -added.reshape(-1, side, side)
        else:
            for place, (start, stop) in enumerate(pairwise(ends)):
                found[place] = -part[start:stop].T @ part[start:stop]
        every = np.arange(side)
        found[:, every, every] += self.add(moves)
        return found


def fill_blocks(blocks: Blocks) -> FloatArray:
    """Return the nearest nonnegative cells with given row and column sums.

    The dual has a price for each row and column. Every step sets the columns' prices exactly, then the rows', and
    then takes a Newton step on the columns' with the rows' following, wherever that raises the dual (T-BLOCKS).
    """
    given, size = blocks.columns.sum(axis=1), blocks.add(blocks.rows)
    # Both add up to the same but for roundings, which would be left over.
    blocks.columns = blocks.columns * np.where(given > 0, size / np.where(given > 0, given, 1.0), 0.0)[:, None]
    shut = (blocks.rows <= 0)[:, None] | (blocks.columns <= 0)[blocks.block]
    blocks.target, blocks.ease = _closed(shut, blocks.target, blocks.ease)
    found, places = np.zeros_like(blocks.target), np.arange(len(blocks.target))
    size = np.maximum(size, np.finfo(np.float64).tiny)
    rows, _ = blocks.row_prices(np.zeros_like(blocks.columns))
    part, damping = blocks, np.full(len(size), RIDGE)
    for _ in range(MOST_STEPS):
        rows, cells, gap, damping = _step(part, rows, size, damping)
        found[places] = cells
        left = np.flatnonzero(gap > CLOSE)
        if not len(left):
            break
        if len(left) < len(gap):
            part, kept = part.take(left)
            places, rows, size, damping = places[kept], rows[kept], size[left], damping[left]
    return found


def _step(
    part: Blocks, rows: FloatArray, size: FloatArray, damping: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return rows' prices, cells, relative gaps and damping after one step."""
    columns = part.column_prices(rows)
    rows, loose = part.row_prices(columns)
    cells = np.maximum(loose, 0.0)
    missing = part.columns - part.add(cells)
    gap = np.abs(missing).max(axis=1) / size
    step = _newton(part, loose > 0, missing, np.where(damping > RIDGE, damping, np.minimum(damping, gap)))
    next_rows, loose = part.row_prices(columns + step)
    next_cells = np.maximum(loose, 0.0)
    next_gap = np.abs(part.columns - part.add(next_cells)).max(axis=1) / size
    ease = np.where(part.ease > 0, part.ease, np.inf)
    lost = ((next_cells - cells) * (next_cells + cells) / (2 * ease)).sum(axis=1)
    gain = part.add(part.rows * (next_rows - rows) - lost) + (part.columns * step).sum(axis=1)
    better = (next_gap < gap / 2) | (gain > 0)
    own = better[part.block]
    return (
        np.where(own, next_rows, rows),
        np.where(own[:, None], next_cells, cells),
        np.where(better, next_gap, gap),
        np.where(
            better, np.maximum(damping / 4, 1e-12), np.minimum(np.maximum(damping, np.minimum(RIDGE, gap)) * 16, 1.0)
        ),
    )


def _newton(part: Blocks, active: BoolArray, missing: FloatArray, ridge: FloatArray) -> FloatArray:
    """Return the Newton step of the columns' prices."""
    matrix, room = part.curvature(active), part.add(part.ease)
    mean, side = room.mean(axis=1), room.shape[1]
    every = np.arange(side)
    # Prices that rise in all columns and fall in all rows change nothing; columns held at 0 have no price.
    matrix += (mean / side)[:, None, None]
    matrix[:, every, every] += ((ridge + 1e-15) * mean)[:, None] + (room <= 0) + (mean <= 0)[:, None]
    return np.asarray(np.linalg.solve(matrix, missing[:, :, None])[:, :, 0])


# One tree.


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Answers that nest, with the rests of those that may exceed their children, and one root above all."""

    tree: AnswerTree
    below: Any
    """Adds up the children of each answer."""
    rests: IntArray
    """The answers that may exceed the sum of their children."""
    roots: IntArray
    cells: IntArray
    """The answer or rest that each cell belongs to."""
    sharing: FloatArray
    """How many cells belong to the same."""

    @classmethod
    def of(cls, rows: Any) -> "Forest | None":
        """Return the forest of sums of cells; None if two cross.

        Args:
            rows: Every answer as a row of a sparse matrix.

        Returns:
            The forest.
        """
        if not np.all(rows.data == 1.0):
            return None
        chain, length = chains(rows)
        if chain is None or not nested_chains(chain, rows.shape[0]) or np.any(length == 0):
            return None
        parent = np.full(rows.shape[0], NONE)
        for above, below in zip(chain.T[:-1], chain.T[1:]):
            parent[below[below != NONE]] = above[below != NONE]
        narrowest = chain[np.arange(len(length)), length - 1]
        nested, roots = np.flatnonzero(parent != NONE), np.flatnonzero(parent == NONE)
        shape = (len(parent), len(parent))
        below = sparse.csr_array((np.ones(len(nested)), (parent[nested], nested)), shape=shape)
        rests = np.unique(narrowest[np.diff(below.indptr)[narrowest] > 0])
        owner, root = np.arange(len(parent)), len(parent) + len(rests)
        owner[rests] = len(parent) + np.arange(len(rests))
        up = np.concatenate([np.where(parent == NONE, root, parent), rests, [NONE]])
        cells = owner[narrowest]
        sharing = np.bincount(cells, minlength=root)[cells].astype(np.float64)
        return cls(AnswerTree.of(up), below, rests, roots, cells, sharing)

    def hand_down(self, best: FloatArray, sd: FloatArray) -> tuple[FloatArray, float]:
        """Return nonnegative cells from unbiased estimates, and how far sums are missed.

        Args:
            best: The estimates, of one draw or several (last axis: answers).
            sd: Their standard errors.

        Returns:
            The cells, and the largest relative difference of a total from what was handed down to it.
        """
        rest = (best - (self.below @ best.T).T)[..., self.rests]
        rest_sd = np.sqrt(sd**2 + self.below @ sd**2)[self.rests]
        top = best[..., self.roots].sum(axis=-1, keepdims=True)
        order = self.tree.order
        found = np.concatenate([best, rest, top], axis=-1)[..., order]
        ease = ease_of(found, np.concatenate([sd, rest_sd, [1.0]])[order])
        found[..., 0] = np.maximum(found[..., 0], 0.0)
        for each in self.tree.generations:
            own, sums = found[..., each.nodes], found[..., each.heads]
            found[..., each.nodes] = share_out(own, ease[..., each.nodes], sums, each.first)
        return np.asarray(self.tree.in_answer_order(found)[..., self.cells] / self.sharing), 0.0


# Two trees that cross.


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """One of the trees, its leaves sorted by family."""

    order: IntArray
    codes: tuple[IntArray, ...]
    """For each level, from one root to the leaves, the node of every sorted leaf."""

    @classmethod
    def of(cls, levels: Sequence[IntArray]) -> "Axis | None":
        """Return the axis with these levels, each the label of every leaf."""
        size = len(levels[0])
        known = {code.tobytes(): code for code in (np.zeros(size, np.int64), *map(_numbered, levels), np.arange(size))}
        ordered = sorted(known.values(), key=lambda code: int(code.max()))
        if not all(is_nested(fine, coarse) for coarse, fine in pairwise(ordered)):
            return None
        order = np.lexsort(ordered[::-1])
        changes = (np.diff(code[order], prepend=code[order[0]]) != 0 for code in ordered)
        return cls(order, tuple(np.cumsum(change) for change in changes))

    def level(self, labels: IntArray) -> int:
        """Return the place of the level with these labels of the leaves."""
        own = _numbered(labels[self.order])
        return next(place for place, code in enumerate(self.codes) if np.array_equal(code, own))

    def first(self, level: int) -> IntArray:
        """Where the nodes of a level begin among the leaves."""
        return np.flatnonzero(np.diff(self.codes[level], prepend=-1))

    def families(self, level: int) -> IntArray:
        """Where the children of each node one level up begin among the nodes of a level."""
        return self.codes[level][self.first(level - 1)]


def _numbered(labels: IntArray) -> IntArray:
    """Return labels numbered in the order in which they occur."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse].astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Tables that cross a level of one tree with a level of another, over all pairs of leaves."""

    axes: tuple[Axis, Axis]
    answers: dict[tuple[int, int], IntArray]
    """For a pair of levels that is published, the answer of each pair of nodes."""

    @classmethod
    def of(cls, shape: tuple[int, int], labels: Sequence[IntArray]) -> "Grid | None":
        """Return the grid of tables; None if one of them is no cross of levels.

        Args:
            shape: The number of leaves of the two trees; cells are listed row by row.
            labels: For each table the number of the answer that counts each cell, from 0 on.

        Returns:
            The grid.
        """
        tables = [own.reshape(shape) for own in labels]
        axes = [
            Axis.of([_numbered(table[:, 0]) for table in tables]),
            Axis.of([_numbered(table[0]) for table in tables]),
        ]
        first, second = axes
        if first is None or second is None:
            return None
        found, start = {}, 0
        for table in tables:
            levels = first.level(table[:, 0]), second.level(table[0])
            ordered = table[np.ix_(first.order, second.order)]
            answer = ordered[np.ix_(first.first(levels[0]), second.first(levels[1]))]
            again = answer[np.ix_(first.codes[levels[0]], second.codes[levels[1]])]
            # Every pair of nodes has an answer of its own.
            if levels in found or answer.size != int(table.max()) + 1 or not np.array_equal(again, ordered):
                return None
            found[levels] = answer + start
            start += answer.size
        return cls((first, second), found)

    def hand_down(self, best: FloatArray, sd: FloatArray) -> tuple[FloatArray, float]:
        """Return nonnegative cells from unbiased estimates, and how far sums are missed.

        Pairs of levels that are not published are handed down too, as sums of the finest cells.

        Args:
            best: The estimates, of one draw or several (last axis: answers).
            sd: Their standard errors.

        Returns:
            The cells, and the largest relative difference of a total from what was handed down to it.
        """
        draws = np.atleast_2d(best)
        depth = [len(axis.codes) for axis in self.axes]
        finest = self.answers[depth[0] - 1, depth[1] - 1]
        leaves = draws[:, finest], np.broadcast_to(sd[finest] ** 2, (1, *finest.shape))
        above: list[FloatArray] = []
        gap = 0.0
        for i in range(depth[0]):
            row: list[FloatArray] = []
            for j in range(depth[1]):
                if (i, j) in self.answers:
                    target, spread = draws[:, self.answers[i, j]], sd[self.answers[i, j]]
                else:
                    target, spread = self._sums(leaves[0], i, j), np.sqrt(self._sums(leaves[1], i, j))[0]
                row.append(self._table(i, j, target, ease_of(target, spread), above, row))
                gap = max(gap, self._gap(i, j, above, row))
            above = row
        cells = np.empty((len(draws), *finest.shape))
        cells[:, self.axes[0].order[:, None], self.axes[1].order] = above[-1]
        return cells.reshape(*best.shape[:-1], finest.size), gap

    def _sums(self, leaves: FloatArray, i: int, j: int) -> FloatArray:
        rows = np.add.reduceat(leaves, self.axes[0].first(i), axis=1)
        return np.add.reduceat(rows, self.axes[1].first(j), axis=2)

    def _gap(self, i: int, j: int, above: list[FloatArray], row: list[FloatArray]) -> float:
        """Return the largest relative difference of sums from the totals above them."""
        found = 0.0
        pairs = [(above[j], 1, i)] if i else []
        pairs += [(row[j - 1], 2, j)] if j else []
        for up, axis, level in pairs:
            sums = np.add.reduceat(row[j], self.axes[axis - 1].families(level), axis=axis)
            found = max(found, float(np.max(np.abs(sums - up) / (1.0 + up))))
        return found

    def _table(
        self, i: int, j: int, target: FloatArray, ease: FloatArray, above: list[FloatArray], row: list[FloatArray]
    ) -> FloatArray:
        """Return one table, with the sums of the tables one level up along either tree."""
        if i == j == 0:
            return np.maximum(target, 0.0)
        if i == 0:
            return share_out(target, ease, row[j - 1], self.axes[1].families(j))
        if j == 0:
            turned = [np.ascontiguousarray(np.swapaxes(each, 1, 2)) for each in (target, ease, above[0])]
            return np.swapaxes(share_out(turned[0], turned[1], turned[2], self.axes[0].families(i)), 1, 2)
        families = self.axes[0].families(i), self.axes[1].families(j)
        length = [np.diff(first, append=size) for first, size in zip(families, target.shape[1:])]
        work = [int(np.sum(own**2)) * other for own, other in zip(length, target.shape[:0:-1])]
        if work[0] < work[1]:
            z, e, rows, columns = (np.swapaxes(each, 1, 2) for each in (target, ease, above[j], row[j - 1]))
            return np.swapaxes(cross_out(z, e, rows, columns, families[1], families[0]), 1, 2)
        return cross_out(target, ease, row[j - 1], above[j], *families)


def cross_out(
    target: FloatArray, ease: FloatArray, rows: FloatArray, columns: FloatArray, down: IntArray, across: IntArray
) -> FloatArray:
    """Return nonnegative tables with each block's row and column sums.

    Args:
        target: The tables: draws, rows, columns.
        ease: How far one unit of price moves each cell.
        rows: For each draw and row its sum over the columns of each block.
        columns: For each draw, block and column its sum over the rows of the block.
        down: Where the rows of each block begin.
        across: Where its columns begin.

    Returns:
        The tables.
    """
    found, (draws, height, _) = np.empty_like(target), target.shape
    length = np.diff(across, append=target.shape[2])
    for side in np.unique(length).tolist():
        # Blocks with as many columns, for all draws together: one line for each draw, block of columns and row.
        chosen = np.flatnonzero(length == side)
        places = across[chosen][:, None] + np.arange(side)
        lines = [np.swapaxes(each[:, :, places], 1, 2).reshape(-1, side) for each in (target, ease)]
        first = (np.arange(draws * len(chosen)) * height)[:, None] + down
        blocks = Blocks(
            lines[0],
            lines[1],
            np.swapaxes(rows[:, :, chosen], 1, 2).ravel(),
            np.swapaxes(columns[:, :, places], 1, 2).reshape(-1, side),
            first.ravel(),
        )
        cells = fill_blocks(blocks).reshape(draws, len(chosen), height, side)
        found[:, :, places] = np.swapaxes(cells, 1, 2)
    return found
