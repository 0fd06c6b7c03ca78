"""Sums of which any two are nested or disjoint form a forest, which is solved by elimination (T-ELIMINATION).

The tables of a release with one code at several levels are of this kind, including their unpublished remainders: their branches
have different depths, so no grid describes them.
"""

from typing import Any

import numpy as np
from scipy import sparse

from recordwise.postprocess.solvers.boxed import IntArray
from recordwise.postprocess.solvers.tree import Level, TreeSystem

MOST_LEVELS = 60
"""Deeper nesting is left to other solvers."""
NONE = -1


def forest_system(rows: Any) -> TreeSystem | None:
    """The sums as levels of a forest; None if two of them cross, or if one counts a cell other than exactly once."""
    if not np.all(rows.data == 1.0) or rows.shape[0] == 0:
        return None
    chain, length = chains(rows)
    if chain is None or not nested_chains(chain, rows.shape[0]):
        return None
    cells = rows.shape[1]
    levels, finer = [], np.arange(cells)
    places = np.full(cells, NONE)
    for depth in range(chain.shape[1], 0, -1):
        codes, own = nodes_at(chain, length, depth)
        levels.append(level_of(finer, places, codes))
        finer, places = codes, own
    levels.append(level_of(finer, places, np.zeros(cells, dtype=np.int64)))
    return TreeSystem(
        levels=tuple(levels),
        grid=np.arange(cells)[:, None],
        local=sparse.csr_array(np.ones((1, 1))),
        queries=rows.shape[0],
    )


def chains(rows: Any) -> tuple[IntArray | None, IntArray]:
    """For each cell, the sums that count it, widest first and padded with ``NONE``, and how many there are."""
    widest = np.argsort(-np.diff(rows.indptr), kind="stable")
    by_cell = sparse.csc_array(rows[widest])
    by_cell.sort_indices()
    length = np.diff(by_cell.indptr).astype(np.int64)
    if length.max() > MOST_LEVELS:
        return None, length
    chain = np.full((rows.shape[1], int(length.max())), NONE)
    chain[np.arange(chain.shape[1]) < length[:, None]] = widest[by_cell.indices]
    return chain, length


def nested_chains(chain: IntArray, sums: int) -> bool:
    """Whether every sum has the same next wider sum in all its cells, so that it lies inside it and no two sums cross."""
    wider = np.full(sums, NONE)
    above = np.concatenate([np.full((len(chain), 1), NONE), chain[:, :-1]], axis=1)
    inside = chain != NONE
    wider[chain[inside]] = above[inside]
    return bool(np.array_equal(wider[chain[inside]], above[inside]))


def nodes_at(chain: IntArray, length: IntArray, depth: int) -> tuple[IntArray, IntArray]:
    """The node of each cell at a depth, and its sum. Cells with fewer sums share a node without one, below their narrowest sum."""
    deep = length >= depth
    narrowest = np.where(length > 0, chain[np.arange(len(chain)), np.maximum(length, 1) - 1], NONE)
    own = np.where(deep, chain[:, depth - 1], NONE)
    name = np.where(deep, 2 * own, 2 * narrowest + 1)
    rank = np.cumsum(np.bincount(name + 1) > 0) - 1
    return rank[name + 1], own


def level_of(codes: IntArray, places: IntArray, above: IntArray) -> Level:
    """One level, from the nodes of the cells at that level and at the next wider one."""
    cell = np.empty(int(codes.max()) + 1, dtype=np.int64)
    cell[codes] = np.arange(len(codes))
    return Level(nodes=len(cell), parent=above[cell], place=places[cell][:, None])
