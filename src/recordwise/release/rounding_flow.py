"""Two families of sets that cross, rounded together: each family consists of sets of which any two are nested or apart.

Every rounded item flows from the smallest set of the first family that holds it to the smallest of the second, and every set passes
on the sum of its items. Whole numbers within whole bounds exist wherever fractions within them do (T-ROUND), and a maximum flow
finds them. Items that lie near the middle between two whole numbers are changed first.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import maximum_flow

from recordwise.exact.arithmetic import FloatArray
from recordwise.postprocess.records import bounds_of

IntArray = NDArray[np.int64]
ROOT = -1
"""The place of what lies in no set of a family."""
PHASES = ((0, 0.0), (0, 0.5), (0, 1.0), (1, 3.0), (2, 5.0), (4, 9.0), (8, 17.0))
"""By how much more than a rounding up or down numbers may move, and by how much an item's own error may grow. Only the first three
are needed where fractions within the bounds exist."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sets:
    """One family: sets in an order in which every set comes before the one that it lies in."""

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
        found = added(items, self.place, len(self.parent))
        for start, stop in zip((0, *self.ends), self.ends):
            found += added(found[start:stop], self.parent[start:stop], len(found))
        return found

    def within(self, items: IntArray, more: int) -> tuple[IntArray, IntArray, IntArray]:
        """The sums of sets brought within their bounds, and the bounds."""
        wider = np.where(self.fixed, 0, more)
        lower, upper = self.lower - wider, self.upper + wider
        return np.clip(self.sums(items), lower, upper), lower, upper


def bounds(values: FloatArray) -> tuple[IntArray, IntArray]:
    """Each value rounded down and up; a value that is nearly whole is only rounded to that."""
    low, high = bounds_of(values)
    return low.astype(np.int64), high.astype(np.int64)


def added(values: IntArray, place: IntArray, size: int) -> IntArray:
    """Exact sums by place; values at the root are left out."""
    inside = place != ROOT
    total = np.zeros(size, np.int64)
    np.add.at(total, place[inside], values[inside])
    return total


def balanced(values: FloatArray, start: IntArray, first: Sets, second: Sets) -> IntArray:
    """Items near their values with which the sums of both families are within their bounds, as far as possible.

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
        found = found + network.moved(steps, free)
    return found


class _Network:
    """The sets of both families as nodes, with what flows between them now."""

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
        arriving = added(flow, self.tree_head, size) + added(items, self.head, size)
        leaving = added(flow, self.tree_tail, size) + added(items, self.tail, size)
        self.excess = arriving - leaving
        # What arrives at the bottom returns to the top.
        self.excess[top] += self.excess[bottom]
        self.excess[bottom] = 0
        self.ends = top, bottom

    @property
    def settled(self) -> bool:
        """Whether every sum is within its bounds."""
        return not np.any(self.excess)

    def moved(self, steps: list[FloatArray], free: list[NDArray[np.bool_]]) -> IntArray:
        """By how much each item changes: a maximum flow from where too much arrives to where too little does."""
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
        flow = sparse.csr_array(maximum_flow(graph, source, sink).flow)
        return self._shared(flow, steps, free)

    def _shared(self, flow: sparse.csr_array, steps: list[FloatArray], free: list[NDArray[np.bool_]]) -> IntArray:
        """The flow between two sets, by the items that connect them: those whose error grows least change first."""
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
