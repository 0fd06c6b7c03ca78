"""Cells of tables over hierarchies, and the equations between them.

Every cell is a combination of codes, one of each dimension; the codes of a dimension form a tree, or several trees over the same
finest codes (two classifications). A table that does not group by a dimension is about its root. All tables together are one
list of cells, and every cell is the sum of its children along each tree of each dimension.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from recordwise.disclosure.bounds import System
from recordwise.errors import ParameterError, own_errors_of
from recordwise.exact.arithmetic import FloatArray

ROOT = ""
"""The code of all."""


@own_errors_of
@dataclass(frozen=True, slots=True, eq=False)
class Dimension:
    """The codes of one dimension as trees, the root first."""

    name: str
    codes: tuple[str, ...]
    trees: tuple[Any, ...]
    """For each tree the position of the code above each; -1 for the root and codes outside the tree."""

    @classmethod
    def from_levels(cls, name: str, *trees: Iterable[Sequence[str]]) -> "Dimension":
        """Make the trees from rows of codes, the coarsest first.

        Args:
            name: What the dimension is called.
            trees: For each classification the codes above each finest code, and that code: ``[("34", "34001"), ("34", "34003")]``.

        Raises:
            ParameterError: A code has two parents in one classification.
        """
        maps = []
        for rows in trees:
            above: dict[str, str] = {}
            for row in rows:
                for over, code in zip((ROOT, *row), row):
                    if above.setdefault(code, over) != over:
                        raise ParameterError(parameter=name, problem=f"has the code '{code}' below two others")
            maps.append(above)
        return cls.from_parents(name, *maps)

    @classmethod
    def from_parents(cls, name: str, *trees: Mapping[str, str]) -> "Dimension":
        """Make the trees from each code's parent; "" is the root.

        Args:
            name: What the dimension is called.
            trees: For each classification the code above each code.

        Raises:
            ParameterError: A code is above itself, or one that is above others has none above it.
        """
        codes = (ROOT, *dict.fromkeys(code for above in trees for code in above))
        position = {code: number for number, code in enumerate(codes)}
        parents = []
        for above in trees:
            unknown = [over for over in above.values() if over != ROOT and over not in above]
            if unknown:
                raise ParameterError(parameter=name, problem=f"has codes below '{unknown[0]}', which is below none")
            parent = np.full(len(codes), -1)
            parent[[position[code] for code in above]] = [position[over] for over in above.values()]
            if (_depth(parent) < 0).any():
                raise ParameterError(parameter=name, problem="has a code that is above itself")
            parents.append(parent)
        return cls(name, codes, tuple(parents))

    @property
    def depth(self) -> Any:
        """Return how many codes are above each in the first tree."""
        return _depth(self.trees[0])

    def positions(self, codes: Iterable[str]) -> Any:
        """Return where codes stand in the tree.

        Raises:
            ParameterError: A code is not in the tree.
        """
        position = {code: number for number, code in enumerate(self.codes)}
        try:
            return np.array([position[code] for code in codes], np.int64)
        except KeyError as error:
            raise ParameterError(parameter=self.name, problem=f"has no code '{error.args[0]}'") from None


def _depth(parent: Any) -> Any:
    """Return how many codes are above each; -1 for those above themselves."""
    found, reached = np.zeros(len(parent), np.int64), parent
    for _ in range(len(parent) + 1):
        if not (reached >= 0).any():
            return found
        found += reached >= 0
        reached = np.where(reached >= 0, parent[reached], -1)
    return np.where(reached >= 0, -1, found)


@own_errors_of
@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Cells of all tables of a publication, each once."""

    dimensions: tuple[Dimension, ...]
    codes: Any
    """A row for each cell, a column for each dimension: positions in the trees."""

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def keys(self) -> Any:
        """Return one number for each cell, different for different cells."""
        return self.keys_of(self.codes)

    def keys_of(self, codes: Any) -> Any:
        """Return the number of each combination of codes."""
        found = np.zeros(len(codes), np.int64)
        for column, each in enumerate(self.dimensions):
            found = found * len(each.codes) + codes[:, column]
        return found

    def find(self, codes: Any) -> Any:
        """Return where cells are in the list, or -1."""
        order = np.argsort(self.keys)
        keys, wanted = self.keys[order], self.keys_of(codes)
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[place] == wanted, order[place], -1)

    @classmethod
    def closed(cls, dimensions: Sequence[Dimension], codes: Any) -> "Cells":
        """Make the list of cells and of all totals above them.

        The given cells come first, in their order.
        """
        made = cls(tuple(dimensions), np.asarray(codes, np.int64).reshape(-1, len(dimensions)))
        if len(np.unique(made.keys)) != len(made):
            raise ParameterError(parameter="tables", problem="have a cell twice")
        while True:
            new = []
            for column, each in enumerate(dimensions):
                for parent in each.trees:
                    above = made.codes.copy()
                    above[:, column] = parent[above[:, column]]
                    new.append(above[above[:, column] >= 0])
            missing = np.concatenate(new)
            missing = missing[made.find(missing) < 0] if len(made) else missing
            if not len(missing):
                return made
            _, first = np.unique(made.keys_of(missing), return_index=True)
            made = cls(made.dimensions, np.concatenate([made.codes, missing[np.sort(first)]]))

    def equations(self, *, absent_is_zero: bool) -> Any:
        """Return the equations: a cell less its children along a dimension.

        A cell none of whose children is listed has none. Where some are not listed and may be more than zero, the sum of those is
        an unknown cell of its own, in a column after the cells.
        """
        rows, columns, weights, lacking = [], [], [], []
        count = 0
        for column, parent in ((number, tree) for number, each in enumerate(self.dimensions) for tree in each.trees):
            below, total = self._below(column, parent)
            sums, row = np.unique(total, return_inverse=True)
            rows += [count + row, count + np.arange(len(sums))]
            columns += [below, sums]
            weights += [-np.ones(len(below)), np.ones(len(sums))]
            children = np.bincount(parent[parent >= 0], minlength=len(parent))
            listed = np.bincount(row, minlength=len(sums))
            lacking.append(count + np.flatnonzero(listed < children[self.codes[sums, column]]))
            count += len(sums)
        slack = np.concatenate(lacking) if lacking and not absent_is_zero else np.empty(0, np.int64)
        rows.append(slack)
        columns.append(len(self) + np.arange(len(slack)))
        weights.append(-np.ones(len(slack)))
        shape = (count, len(self) + len(slack))
        entries = (np.concatenate(weights), (np.concatenate(rows), np.concatenate(columns)))
        return sparse.csr_array(entries, shape=shape)

    def _below(self, column: int, parent: Any) -> tuple[Any, Any]:
        """Return the cells whose total is listed, and that total."""
        above = self.codes.copy()
        above[:, column] = parent[above[:, column]]
        below = np.flatnonzero(above[:, column] >= 0)
        total = self.find(above[below])
        return below[total >= 0], total[total >= 0]

    def add_up(self, values: FloatArray) -> None:
        """Fill in missing cells whose children along a tree all have values."""
        for column, parent in ((number, tree) for number, each in enumerate(self.dimensions) for tree in each.trees):
            below, total = self._below(column, parent)
            sums = np.bincount(total, weights=values[below], minlength=len(self))
            open_cells = np.isnan(values) & (np.bincount(total, minlength=len(self)) > 0)
            values[open_cells] = sums[open_cells]

    def system(self, low: FloatArray, high: FloatArray, *, absent_is_zero: bool = True) -> System:
        """Return the equations with what is known of each cell.

        Args:
            low: The least value of each cell.
            high: The largest value of each cell.
            absent_is_zero: Whether cells that are not listed are zero. Otherwise they are unknown.
        """
        equations = self.equations(absent_is_zero=absent_is_zero)
        more = equations.shape[1] - len(self)
        return System(np.concatenate([low, np.zeros(more)]), np.concatenate([high, np.full(more, np.inf)]), equations)
