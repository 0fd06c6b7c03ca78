"""Trees of labels: reading, checking, crossing, and digits of their levels."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recordwise.errors import ParameterError

IntArray: TypeAlias = NDArray[np.int64]


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
