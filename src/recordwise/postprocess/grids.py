"""Tables over a full grid of two codes, recognized by the query that counts each cell."""

from collections.abc import Mapping, Sequence

import numpy as np

from recordwise.postprocess.solvers.boxed import IntArray
from recordwise.postprocess.solvers.crossed import best_dimension
from recordwise.postprocess.workload import Group, Workload


def grid_workload(shape: Sequence[int], labels: Mapping[str, IntArray]) -> Workload | None:
    """Groups that tell apart a level of the rows and one of the columns of a grid; None if a group is anything else, or if no
    solver would gain by it.

    Args:
        shape: The number of rows and columns; cells are listed row by row.
        labels: For each group the query of every cell.

    Returns:
        The workload, whose solvers can use that the levels cross.
    """
    names: dict[tuple[int, bytes], str] = {}
    levels: dict[str, tuple[int, IntArray]] = {}
    groups = []
    for name, own in labels.items():
        table = own.reshape(*shape)
        codes = [_by_first(table[:, 0]), _by_first(table[0])]
        counts = [int(code.max()) + 1 for code in codes]
        joint = codes[0][:, None] * counts[1] + codes[1]
        query = np.zeros(counts[0] * counts[1], np.int64)
        query[joint] = table
        if int(own.max()) + 1 != len(query) or not np.array_equal(query[joint], table):
            return None
        kept = {}
        for dimension in (0, 1):
            if counts[dimension] > 1:
                level = names.setdefault((dimension, codes[dimension].tobytes()), f"level{len(names)}")
                levels[level], kept[dimension] = (dimension, codes[dimension]), level
        groups.append(Group(name=name, size=len(query), cells=len(own), labels=own, kept=kept))
    found = Workload(cells=table.size, groups=tuple(groups), shape=tuple(shape), levels=levels)
    return None if best_dimension(found) is None else found


def _by_first(labels: IntArray) -> IntArray:
    """The labels numbered in the order in which they occur."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse].astype(np.int64)
