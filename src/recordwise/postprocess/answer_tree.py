"""The best linear unbiased fit of answers that form a tree, and its exact variances, in one pass up and one down (T-FITVAR).

Every answer is a node with its own noise variance. The children of a node add up to it; where they need not (a cell below the
node was measured by nothing else), they say nothing about it and the edge is cut. Works on floats, and on exact numbers in object
arrays.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from recordwise.postprocess.solvers.boxed import IntArray
from recordwise.postprocess.solvers.forest import NONE, chains, nested_chains


@dataclass(frozen=True, slots=True, eq=False)
class Generation:
    """The nodes of one depth, sorted by parent: a run of positions, and where each of the parents' children begin."""

    nodes: slice
    parent: IntArray
    """The position of each node's parent."""
    first: IntArray
    """The beginnings of the families within the run."""
    heads: IntArray
    """The position of the parent of each family."""


@dataclass(frozen=True, slots=True, eq=False)
class AnswerTree:
    """The answers in order of depth. ``order`` gives the answer at each position."""

    order: IntArray
    generations: tuple[Generation, ...]
    """Below the roots, from the top down."""

    @classmethod
    def of(cls, parent: IntArray) -> "AnswerTree":
        """The tree in which answer n is a part of answer ``parent[n]``; -1 for a root."""
        depth = np.zeros(len(parent), dtype=np.int64)
        above = np.asarray(parent)
        while np.any(inside := above != NONE):
            depth += inside
            above = np.where(inside, parent[above], NONE)
        order, position = np.flatnonzero(depth == 0), np.full(len(parent), NONE)
        position[order] = np.arange(len(order))
        parts, generations, start = [order], [], len(order)
        for level in range(1, int(depth.max(initial=0)) + 1):
            members = np.flatnonzero(depth == level)
            members = members[np.argsort(position[parent[members]], kind="stable")]
            own = position[parent[members]]
            heads, first = np.unique(own, return_index=True)
            generations.append(Generation(slice(start, start + len(members)), own, first, heads))
            position[members] = np.arange(start, start + len(members))
            start += len(members)
            parts.append(members)
        return cls(np.concatenate(parts), tuple(generations))

    def weights(self, variances: Any) -> "Weights":
        """The passes for answers with these variances: up for the variance of what a node and all below it say, then down."""
        own = np.asarray(variances)[self.order]
        below, up = np.zeros_like(own), own.copy()
        inner = np.zeros(len(own), dtype=bool)
        for each in reversed(self.generations):
            below[each.heads] = np.add.reduceat(up[each.nodes], each.first)
            inner[each.heads] = True
            up[each.heads] = own[each.heads] * below[each.heads] / (own[each.heads] + below[each.heads])
        share, fitted = np.zeros_like(own), up.copy()
        for each in self.generations:
            share[each.nodes] = up[each.nodes] / below[each.parent]
            fitted[each.nodes] -= share[each.nodes] ** 2 * (below[each.parent] - fitted[each.parent])
        pull = np.zeros_like(own)
        pull[inner] = below[inner] / (own[inner] + below[inner])
        return Weights(self, inner, pull, share, self.unsorted(fitted))

    def unsorted(self, values: Any) -> Any:
        """Values by position, in the order of the answers."""
        result = np.empty_like(values)
        result[..., self.order] = values
        return result

    def connected(self) -> Any:
        """Whether an answer has a parent or children; the fit of any other answer is the answer itself."""
        found = np.zeros(len(self.order), dtype=bool)
        for each in self.generations:
            found[each.heads] = found[each.nodes] = True
        return self.unsorted(found)


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """The linear fit for given variances: ``fitted`` are the variances of the fitted answers."""

    tree: AnswerTree
    inner: Any
    pull: Any
    """The weight of an inner node's own answer against the sum of its children."""
    share: Any
    """The part of what is missing from its parent that a node takes."""
    fitted: Any

    def fit(self, answers: Any) -> Any:
        """The fitted answers, of one draw or of several (last axis: answers)."""
        tree, up = self.tree, np.asarray(answers)[..., self.tree.order]
        added = np.zeros_like(up)
        for each in reversed(tree.generations):
            added[..., each.heads] = np.add.reduceat(up[..., each.nodes], each.first, axis=-1)
            total = added[..., each.heads]
            up[..., each.heads] = total + self.pull[each.heads] * (up[..., each.heads] - total)
        for each in tree.generations:
            missing = up[..., each.parent] - added[..., each.parent]
            up[..., each.nodes] += self.share[each.nodes] * missing
        return tree.unsorted(up)


def tree_of(rows: Any) -> AnswerTree | None:
    """The tree of answers that are sums of cells (a row each); None if two cross or one counts a cell other than exactly once."""
    if rows.shape[0] == 0 or not np.all(rows.data == 1.0):
        return None
    chain, length = chains(rows)
    if chain is None or not nested_chains(chain, rows.shape[0]):
        return None
    parent = np.full(rows.shape[0], NONE)
    for above, below in zip(chain.T[:-1], chain.T[1:]):
        parent[below[below != NONE]] = above[below != NONE]
    measured = length > 0
    narrowest = chain[np.flatnonzero(measured), length[measured] - 1]
    # A node with a cell of its own beside its children may differ from their sum by anything.
    open_ended = np.zeros(rows.shape[0], dtype=bool)
    open_ended[narrowest] = True
    parent[(parent != NONE) & open_ended[parent]] = NONE
    return AnswerTree.of(parent)
