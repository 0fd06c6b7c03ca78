"""Groups of counting queries over the cells of a table.

Implicit operators: a group is either a partition of the cells (a margin, a level of a tree, every cell by
itself), stored as one label per cell, or a block of rows of a sparse matrix. No dense matrix is ever built.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from recordwise.errors import ParameterError, own_errors_of
from recordwise.postprocess.solvers.trees import (
    IntArray,
    check_levels,
    joint_labels,
    read_cells,
    read_trees,
    tree_digits,
)

FloatArray: TypeAlias = NDArray[np.float64]
Digits: TypeAlias = frozenset[str]


@own_errors_of
@dataclass(frozen=True, kw_only=True, eq=False)
class Group:
    """A margin, a level, or a block of matrix rows."""

    name: str
    size: int
    cells: int
    labels: IntArray | None = None
    """The query of each cell, if the group is a partition of the cells."""
    block: Any = None
    """Rows of a sparse matrix, if it is not."""
    digits: Digits | None = None
    """The coordinates that distinguish its queries on a full grid; a margin of a margin has fewer."""
    level_of: Mapping[int, str] = field(default_factory=dict)
    """For each dimension that is not summed over, the level that is kept."""

    @cached_property
    def rows(self) -> Any:
        """The queries as a sparse matrix, one row each."""
        if self.labels is None:
            return self.block
        ones = np.ones(self.cells)
        return sparse.csr_array((ones, (self.labels, np.arange(self.cells))), shape=(self.size, self.cells))

    @cached_property
    def runs(self) -> tuple[IntArray | None, IntArray]:
        """The cells sorted by query (None if sorted), and each query's start."""
        assert self.labels is not None
        ordered = bool(np.all(self.labels[1:] >= self.labels[:-1]))
        order = None if ordered else np.argsort(self.labels, kind="stable")
        return order, np.concatenate([[0], np.cumsum(np.bincount(self.labels))[:-1]])

    @property
    def single(self) -> bool:
        """Whether each query is one cell and each cell one query."""
        return self.labels is not None and self.size == self.cells

    @cached_property
    def disjoint(self) -> bool:
        """Whether no cell is counted by two queries and none is weighted."""
        if self.labels is not None:
            return True
        once = np.bincount(self.block.indices, minlength=self.cells).max(initial=0) <= 1
        return bool(once and np.all(self.block.data == 1.0))

    def powers(self, exponent: int) -> "Group":
        """The same queries with |coefficient|^exponent.

        Args:
            exponent: The exponent.

        Returns:
            The new group.
        """
        return self if self.labels is not None else replace(self, block=abs(self.block).power(exponent))

    def refines(self, other: "Group") -> bool:
        """Return whether every query of ``other`` unites queries of this group.

        Args:
            other: Another group over the same cells.

        Returns:
            True or false.
        """
        return self.parents_in(other) is not None

    def parents_in(self, other: "Group") -> IntArray | None:
        """Return the query of ``other`` containing each query.

        None where some query is cut.

        Args:
            other: Another group over the same cells.

        Returns:
            The place of each, or None.
        """
        if self.labels is None or other.labels is None or self.size < other.size:
            return None
        if self.digits is not None and other.digits is not None and not other.digits <= self.digits:
            return None
        parents = np.zeros(self.size, dtype=np.int64)
        parents[self.labels] = other.labels
        return parents if np.array_equal(parents[self.labels], other.labels) else None


@own_errors_of
@dataclass(frozen=True, kw_only=True, eq=False)
class Workload:
    """Groups of queries over ``cells`` cells; answers are listed group by group."""

    cells: int
    groups: tuple[Group, ...]
    shape: tuple[int, ...] | None = None
    """The grid of the cells, in C order, if there is one."""
    levels: Mapping[str, tuple[int, IntArray]] = field(default_factory=dict)
    """For each level, its dimension and the code of every leaf."""

    def __post_init__(self) -> None:
        if not self.groups:
            raise ParameterError(parameter="groups", problem="is empty", advice="Give at least one group of queries.")
        names = [group.name for group in self.groups]
        if len(set(names)) < len(names):
            raise ParameterError(parameter="groups", problem="names a group twice")
        for group in self.groups:
            if group.size == 0:
                raise ParameterError(parameter=f"group '{group.name}'", problem="is empty: it contains no query")

    @classmethod
    def marginals(
        cls, shape: Sequence[int], groups: Mapping[str, Sequence[int]] | Sequence[Sequence[int]]
    ) -> "Workload":
        """Return the workload of margins of a table.

        Each group is the tuple of axes it keeps; ``()`` is the sum, all axes the table.

        Args:
            shape: The number of values of each dimension.
            groups: The axes that each group keeps.

        Returns:
            The workload.
        """
        shape = tuple(int(length) for length in shape)
        if not shape or min(shape) < 1:
            raise ParameterError(parameter="shape", problem=f"must list positive lengths, not {shape}")
        axes = {f"axis{axis}": {f"axis{axis}": np.arange(length)} for axis, length in enumerate(shape)}
        listed = groups if isinstance(groups, Mapping) else {margin_name(kept): kept for kept in groups}
        if len(listed) < len(groups):
            raise ParameterError(parameter="groups", problem="names a group twice")
        check_axes(listed, len(shape))
        return cls.hierarchy(axes, {name: [f"axis{axis}" for axis in kept] for name, kept in listed.items()})

    @classmethod
    def hierarchy(
        cls,
        trees: Mapping[str, Mapping[str, ArrayLike]],
        groups: Mapping[str, Sequence[str]] | Sequence[Sequence[str]],
        *,
        cells: ArrayLike | None = None,
    ) -> "Workload":
        """Return the workload of trees crossed with each other.

        Such as nation, state and county by NAICS 2 to 6, or any margins of them. ``trees`` has for each dimension its
        levels and for each level the label of every leaf; levels of one dimension must be nested. A group is the list
        of levels it distinguishes, at most one per dimension. The cells are all combinations of leaves in C order, or
        the rows of ``cells`` (one leaf index per dimension) where only some combinations exist.

        Args:
            trees: For each dimension its levels, and for each level the label of every leaf.
            groups: The levels that each group keeps apart.
            cells: The leaves of each cell, where not all combinations exist.

        Returns:
            The workload.
        """
        leaves, levels = read_trees(trees)
        shape = tuple(leaves.values())
        places = np.indices(shape).reshape(len(shape), -1) if cells is None else read_cells(cells, shape).T
        listed = groups if isinstance(groups, Mapping) else {margin_name(kept): kept for kept in groups}
        if len(listed) < len(groups):
            raise ParameterError(parameter="groups", problem="names a group twice")
        digits = tree_digits(trees)
        made = []
        for name, kept in listed.items():
            check_levels(name, kept, levels)
            parts = [(levels[level][1], places[levels[level][0]]) for level in kept]
            labels, size = joint_labels([codes[place] for codes, place in parts], places.shape[1])
            told = frozenset[str]().union(*(digits[level] for level in kept)) if cells is None else None
            where = {levels[level][0]: level for level in kept}
            made.append(Group(name=name, size=size, cells=places.shape[1], labels=labels, digits=told, level_of=where))
        return cls(cells=places.shape[1], groups=tuple(made), shape=shape if cells is None else None, levels=levels)

    @classmethod
    def matrix(cls, rows: Any, groups: Mapping[str, int] | None = None) -> "Workload":
        """Return the workload of the rows of a sparse matrix.

        ``groups`` is how many consecutive rows each group has.

        Args:
            rows: The coefficients, a row for each query.
            groups: The number of consecutive rows of each group, by its name.

        Returns:
            The workload.
        """
        block = sparse.csr_array(rows, dtype=np.float64)
        block.sum_duplicates()
        block.eliminate_zeros()
        if not np.all(np.isfinite(block.data)):
            raise ParameterError(parameter="rows", problem="contains a coefficient that is not finite")
        if np.any(np.diff(block.indptr) == 0):
            raise ParameterError(parameter="rows", problem="contains a query without a cell", advice="Drop its row.")
        sizes = {"queries": block.shape[0]} if groups is None else dict(groups)
        if sum(sizes.values()) != block.shape[0] or min(sizes.values(), default=0) < 1:
            raise ParameterError(
                parameter="groups", problem=f"must split the {block.shape[0]} rows into nonempty groups"
            )
        ends = np.concatenate([[0], np.cumsum(list(sizes.values()))])
        made = (
            Group(name=name, size=int(stop - start), cells=block.shape[1], block=block[start:stop])
            for name, (start, stop) in zip(sizes, pairwise(ends))
        )
        return cls(cells=block.shape[1], groups=tuple(made))

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """The positions of each group's answers in the list of all answers."""
        ends = np.concatenate([[0], np.cumsum([group.size for group in self.groups])])
        return tuple(slice(int(start), int(stop)) for start, stop in pairwise(ends))

    @property
    def queries(self) -> int:
        """The number of answers."""
        return sum(group.size for group in self.groups)

    def index(self, name: str) -> int:
        """The place of a group by its name.

        Args:
            name: The name of a group.

        Returns:
            Its place.
        """
        for place, group in enumerate(self.groups):
            if group.name == name:
                return place
        raise ParameterError(parameter="groups", problem=f"has no group '{name}'")

    def answer(self, x: FloatArray) -> FloatArray:
        """Return the exact answers for one table or several.

        The last axis is the cells.

        Args:
            x: The cells of a table, or of several.

        Returns:
            The answers, in the order of the groups.
        """
        return np.concatenate([group_sums(group, x) for group in self.groups], axis=-1)

    def spread(self, weights: FloatArray) -> FloatArray:
        """Return each cell's sum of the weights of queries counting it.

        The transpose of ``answer``.

        Args:
            weights: A number for each query.

        Returns:
            A number for each cell.
        """
        total = np.zeros((*weights.shape[:-1], self.cells))
        for group, place in zip(self.groups, self.slices):
            total += group_spread(group, weights[..., place])
        return total

    def spread_power(self, weights: FloatArray, exponent: int) -> FloatArray:
        """The transpose with |coefficient|^exponent: curvatures and sizes of gradients.

        Args:
            weights: A number for each query.
            exponent: The exponent.

        Returns:
            A number for each cell.
        """
        total = np.zeros((*weights.shape[:-1], self.cells))
        for group, place in zip(self.groups, self.slices):
            total += group_spread(group.powers(exponent), weights[..., place])
        return total


def group_sums(group: Group, x: FloatArray) -> FloatArray:
    """The answers of one group."""
    if group.single and group.labels is not None:
        sums = np.empty_like(x)
        sums[..., group.labels] = x
        return sums
    if group.labels is not None:
        order, first = group.runs
        return np.add.reduceat(x if order is None else x[..., order], first, axis=-1)
    return np.asarray((group.rows @ x.reshape(-1, group.cells).T).T).reshape(*x.shape[:-1], group.size)


def group_spread(group: Group, weights: FloatArray) -> FloatArray:
    """The transpose of one group."""
    if group.labels is not None:
        return weights[..., group.labels]
    return np.asarray((group.rows.T @ weights.reshape(-1, group.size).T).T).reshape(*weights.shape[:-1], group.cells)


def margin_name(parts: Sequence[object]) -> str:
    """The default name of a group: what it keeps, or ``sum``."""
    return "*".join(str(part) for part in parts) or "sum"


def check_axes(groups: Mapping[str, Sequence[int]], dimensions: int) -> None:
    """Check that each group keeps existing axes, each once."""
    for name, kept in groups.items():
        if len(set(kept)) < len(kept) or any(axis not in range(dimensions) for axis in kept):
            raise ParameterError(
                parameter=f"group '{name}'", problem=f"must keep distinct axes below {dimensions}, not {tuple(kept)}"
            )
