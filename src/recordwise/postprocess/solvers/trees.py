"""Trees of labels: reading, checking, crossing, and digits of their levels."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from recordwise.errors import ParameterError

IntArray: TypeAlias = NDArray[np.int64]
NONE = -1


def joint_labels(parts: Sequence[IntArray], cells: int) -> tuple[IntArray, int]:
    """Return a label per occurring combination, in order, and their number."""
    joint = np.zeros(cells, dtype=np.int64)
    for codes in parts:
        joint = joint * (int(codes.max()) + 1) + codes
    present = np.bincount(joint) > 0 if joint.max(initial=0) < 4 * cells + 1024 else None
    if present is None:
        found, labels = np.unique(joint, return_inverse=True)
        return labels.astype(np.int64), len(found)
    rank = np.cumsum(present) - 1
    return rank[joint], int(present.sum())


def tree_digits(trees: Mapping[str, Mapping[str, ArrayLike]]) -> dict[str, frozenset[str]]:
    """Return the digits that identify each level.

    A county has its state's digit and one more, a state only one. The levels of one dimension must be nested;
    crossing levels are refused.
    """
    known: dict[str, frozenset[str]] = {}
    for dimension, named in trees.items():
        codes = {level: np.unique(np.asarray(labels), return_inverse=True)[1] for level, labels in named.items()}
        above: frozenset[str] = frozenset()
        coarser: Any = None
        for level in sorted(codes, key=lambda name: int(codes[name].max())):
            if coarser is not None and not is_nested(codes[level], coarser):
                raise ParameterError(
                    parameter=f"trees['{dimension}']",
                    problem=f"is not a tree: level '{level}' cuts across a coarser one",
                )
            same = coarser is not None and codes[level].max() == coarser.max()
            trivial = codes[level].max() == 0
            above = above if same or trivial else above | {level}
            known[level], coarser = above, codes[level]
    return known


def is_nested(fine: IntArray, coarse: IntArray) -> bool:
    """Whether equal fine labels always have equal coarse labels."""
    parent = np.zeros(int(fine.max()) + 1, dtype=np.int64)
    parent[fine] = coarse
    return bool(np.array_equal(parent[fine], coarse))


def check_levels(name: str, named: Sequence[str], levels: Mapping[str, tuple[int, IntArray]]) -> None:
    """Each group names existing levels, at most one per dimension."""
    for level in named:
        if level not in levels:
            raise ParameterError(parameter=f"group '{name}'", problem=f"names the level '{level}', which is in no tree")
    dimensions = [levels[level][0] for level in named]
    if len(set(dimensions)) < len(dimensions):
        raise ParameterError(parameter=f"group '{name}'", problem="names two levels of one dimension")


def read_trees(
    trees: Mapping[str, Mapping[str, ArrayLike]],
) -> tuple[dict[str, int], dict[str, tuple[int, IntArray]]]:
    """Return leaves per dimension, and each level's dimension and leaf codes."""
    leaves: dict[str, int] = {}
    levels: dict[str, tuple[int, IntArray]] = {}
    for place, (dimension, named) in enumerate(trees.items()):
        lengths = {len(np.asarray(labels)) for labels in named.values()}
        if len(lengths) != 1 or lengths == {0}:
            raise ParameterError(
                parameter=f"trees['{dimension}']",
                problem="must give every level one label per leaf, and at least one leaf",
            )
        leaves[dimension] = lengths.pop()
        for level, labels in named.items():
            if level in levels:
                raise ParameterError(parameter="trees", problem=f"uses the level name '{level}' twice")
            levels[level] = (place, np.unique(np.asarray(labels), return_inverse=True)[1].astype(np.int64))
    return leaves, levels


def read_cells(cells: ArrayLike, shape: tuple[int, ...]) -> IntArray:
    """Return the cells as leaf indexes; refuse unknown or repeated ones."""
    listed = np.asarray(cells)
    if listed.ndim != 2 or listed.shape[1] != len(shape) or len(listed) == 0 or listed.dtype.kind not in "iu":
        raise ParameterError(parameter="cells", problem=f"must be rows of {len(shape)} integer leaf indexes")
    if np.any(listed < 0) or np.any(listed >= np.array(shape)):
        raise ParameterError(parameter="cells", problem="points outside the trees")
    if len(np.unique(np.ravel_multi_index(tuple(listed.T), shape))) < len(listed):
        raise ParameterError(parameter="cells", problem="lists one cell twice")
    return listed.astype(np.int64)


# What bounds the weights of fits (T-UNIMODULAR).


def two_families(rows: Any, tables: Sequence[int]) -> bool:
    """Return whether tables fall into two sets within which any two nest: no odd circle of tables that cross."""
    ends = np.cumsum([0, *tables]).tolist()
    parts = [sparse.csr_array(rows[start:stop]) for start, stop in pairwise(ends)]
    labels = [np.full(rows.shape[1], NONE) for _ in parts]
    for own, part in zip(labels, parts):
        own[part.indices] = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr))
        if len(np.unique(part.indices)) < len(part.indices):
            return False
    side = [0] * len(parts)
    for start in range(len(parts)):
        waiting, side[start] = [start] if not side[start] else [], side[start] or 1
        while waiting:
            one = waiting.pop()
            for other in range(len(parts)):
                if other == one or _inside(parts[one], labels[other]) or _inside(parts[other], labels[one]):
                    continue
                if side[other] == side[one]:
                    return False
                waiting += [] if side[other] else [other]
                side[other] = -side[one]
    return True


def _inside(part: Any, label: IntArray) -> bool:
    """Return whether each answer lies in at most one other answer."""
    starts = part.indptr[:-1][np.diff(part.indptr) > 0]
    own = label[part.indices]
    if not len(starts):
        return True
    return bool(np.array_equal(np.minimum.reduceat(own, starts), np.maximum.reduceat(own, starts)))


def grid_levels(rows: Any, tables: Sequence[int], axes: Sequence[Sequence[IntArray]]) -> IntArray | None:
    """Return the level of each table along both axes, if all pairs of levels are published over all pairs of codes."""
    counts = [[int(own.max(initial=-1)) + 1 for own in axis] for axis in axes]
    cells = rows.shape[1]
    if any(len(axis) != len(tables) for axis in axes) or counts[0][0] * counts[1][0] != cells:
        return None
    if any(one * other != size for one, other, size in zip(*counts, tables)) or len(axes[0][0]) != cells:
        return None
    found = []
    for axis, count in zip(axes, counts):
        first = np.zeros(count[0], np.int64)
        first[axis[0]] = np.arange(cells)
        short = {each.tobytes(): each for each in (own[first] for own in axis)}
        levels = sorted(short.values(), key=lambda each: -int(each.max()))
        # Levels of one axis nest: every code of a finer one has one code of the next.
        if any(len(np.unique(np.stack(pair), axis=1).T) != int(pair[0].max()) + 1 for pair in pairwise(levels)):
            return None
        names = [each.tobytes() for each in levels]
        found.append([names.index(own[first].tobytes()) for own in axis])
    pairs = set(zip(*found))
    full = len(pairs) == len(tables) == (max(found[0]) + 1) * (max(found[1]) + 1)
    return np.array(found).T if full else None
