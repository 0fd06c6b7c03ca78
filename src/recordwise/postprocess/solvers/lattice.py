"""How groups of one workload lie to each other: their common margins, and whether fitted margins can always be completed."""

from collections.abc import Iterable

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from recordwise.postprocess.solvers.boxed import FloatArray, IntArray
from recordwise.postprocess.workload import Digits, Group


def meet(group: Group, other: Group) -> tuple[IntArray, IntArray]:
    """The finest partition coarser than both: its label of each query of ``group`` and of each query of ``other``."""
    assert group.labels is not None
    assert other.labels is not None
    nodes = group.size + other.size
    ones = np.ones(group.cells, dtype=np.int8)
    edges = sparse.coo_array((ones, (group.labels, group.size + other.labels)), shape=(nodes, nodes))
    label = connected_components(edges, directed=False)[1].astype(np.int64)
    return label[: group.size], label[group.size :]


def regroup(values: FloatArray, labels: IntArray, size: int) -> FloatArray:
    """Sums of values by label, for each draw."""
    order = np.argsort(labels, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=size))[:-1]])
    return np.add.reduceat(values[:, order], first, axis=1)


def coarser(fine: IntArray, coarse: IntArray) -> bool:
    """Whether equal fine labels have equal coarse labels."""
    parent = np.zeros(int(fine.max()) + 1, dtype=np.int64)
    parent[fine] = coarse
    return bool(np.array_equal(parent[fine], coarse))


def acyclic(margins: Iterable[Digits]) -> bool:
    """Whether tables for these margins that agree on their overlaps always come from one nonnegative table (T-ACYCLIC).

    Graham's reduction: drop coordinates that only one margin has and margins inside another, until nothing or a cycle is left.
    """
    edges = [set(margin) for margin in margins]
    while True:
        count: dict[str, int] = {}
        for edge in edges:
            for digit in edge:
                count[digit] = count.get(digit, 0) + 1
        trimmed = [{digit for digit in edge if count[digit] > 1} for edge in edges]
        kept: list[set[str]] = []
        for edge in sorted(trimmed, key=len, reverse=True):
            if not any(edge <= other for other in kept):
                kept.append(edge)
        if len(kept) <= 1:
            return True
        if kept == edges:
            return False
        edges = kept
