r"""Trees, also crossed with margins, and forests: Newton systems solved by elimination.

Elimination goes from the leaves of the tree to its root and is exact.

Every sum is (node of the tree) x (local query), the same m local queries at every node. A cell below leaf l sees the multipliers of
all nodes above l added up, so the subtree of a node answers a shift lambda of its multipliers with X(lambda) = alpha + beta lambda,
where beta is m x m. With A, B the sums of alpha, beta over the children and omega = 1/diagonal (0 for sums not requested), the
node itself has u = lambda + p = (I + omega B)^-1 (lambda + omega (r - A)), beta = (I + B omega)^-1 B and
alpha = A + beta omega (r - A) (T-ELIMINATION).
Cost: nodes x m^3, whatever the number of cells; a plain tree has m = 1.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from recordwise.postprocess.measured import CellsAndSums
from recordwise.postprocess.solvers.boxed import FloatArray, IntArray, Solver
from recordwise.postprocess.solvers.trees import is_nested
from recordwise.postprocess.workload import Workload

Back: TypeAlias = Callable[[FloatArray], FloatArray]
"""Applies (I + omega B)^-1, node by node."""
LEAST_NODES = 16
"""The smallest number of nodes worth a separate thread."""


def eliminate(beta: FloatArray, omega: FloatArray) -> tuple[Back, FloatArray]:
    """Return each node's inverse and (I + B omega)^-1 B, overwriting ``beta``."""
    if beta.shape[-1] == 1:
        inverse = 1.0 / (1.0 + beta[:, :, 0] * omega)
        return lambda vector: inverse * vector, beta * inverse[:, :, None]
    try:
        from recordwise.postprocess.solvers import kernel as tree_kernel
    except ImportError:
        return eliminate_numpy(beta, omega)
    root, factor, cross = np.sqrt(omega), np.empty_like(beta), np.empty_like(beta)
    in_parallel(lambda part: tree_kernel.eliminate_nodes(beta[part], root[part], factor[part], cross[part]), len(beta))

    def back(vector: FloatArray) -> FloatArray:
        result = np.array(vector, order="C")
        in_parallel(lambda part: tree_kernel.back(root[part], factor[part], cross[part], result[part]), len(beta))
        return result

    return back, beta


def eliminate_numpy(beta: FloatArray, omega: FloatArray) -> tuple[Back, FloatArray]:
    """The same using LAPACK."""
    matrix = beta * omega[:, None, :]
    every = np.arange(beta.shape[-1])
    matrix[:, every, every] += 1.0
    inverse = np.linalg.inv(matrix)
    return lambda vector: np.einsum("nji,nj->ni", inverse, vector), inverse @ beta


def times(beta: FloatArray, vector: FloatArray) -> FloatArray:
    """Matrix times vector, node by node."""
    return np.asarray(np.einsum("nij,nj->ni", beta, vector))


def in_parallel(work: Callable[[slice], None], nodes: int) -> None:
    """Process the nodes in one part per processor."""
    workers = min(os.cpu_count() or 1, nodes // LEAST_NODES)
    if workers <= 1:
        work(slice(0, nodes))
        return
    ends = [nodes * k // workers for k in range(workers + 1)]
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, (slice(start, stop) for start, stop in pairwise(ends))))


MOST_WORK = 4e11
"""The number of multiplications up to which an elimination is worthwhile."""
MOST_ENTRIES = 6e7
"""The largest total number of entries in all the m x m matrices."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Level:
    """The nodes of one level: leaves and multiplier positions."""

    nodes: int
    parent: IntArray
    """The node one level up; for the coarsest level all zero."""
    place: IntArray
    """Position in the list of multipliers, nodes x m; -1 if there is no such sum."""

    @cached_property
    def runs(self) -> tuple[IntArray, IntArray]:
        """The nodes sorted by parent, and where each parent begins."""
        counts = np.bincount(self.parent)
        return np.argsort(self.parent, kind="stable"), np.concatenate([[0], np.cumsum(counts)[:-1]])

    def to_parents(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum the nodes' values (axis 1) to their parents."""
        order, first = self.runs
        return np.add.reduceat(values[:, order], first, axis=1)

    def read(self, values: FloatArray, absent: float) -> FloatArray:
        """Values by multiplier, arranged by node and local query."""
        padded = np.concatenate([values, np.full((len(values), 1), absent)], axis=1)
        return padded[:, self.place]


@dataclass(frozen=True, kw_only=True, eq=False)
class TreeSystem:
    """The sums of a workload by level, finest first, root last."""

    levels: tuple[Level, ...]
    grid: IntArray
    """The cell of each (leaf, local cell)."""
    local: Any
    """Local queries by local cells, sparse."""
    queries: int

    @cached_property
    def products(self) -> Any:
        """A map from local cells' responses to the flattened matrix."""
        m, cells = self.local.shape
        columns = sparse.csc_array(self.local)
        degree = np.diff(columns.indptr)
        cell = np.repeat(np.arange(cells), degree)
        left = np.repeat(np.arange(len(cell)), degree[cell])
        start = np.repeat(columns.indptr[cell], degree[cell])
        right = start + np.arange(len(left)) - np.repeat(np.cumsum(degree[cell]) - degree[cell], degree[cell])
        row = columns.indices[left].astype(np.int64) * m + columns.indices[right]
        return sparse.csr_array((np.ones(len(left)), (row, cell[left])), shape=(m * m, cells))

    def sums(self, x: FloatArray, /) -> FloatArray:
        by_leaf = x[:, self.grid].reshape(-1, self.grid.shape[1])
        values = np.asarray((self.local @ by_leaf.T).T).reshape(len(x), self.grid.shape[0], -1)
        result = np.zeros((len(x), self.queries + 1))
        for level in self.levels:
            result[:, level.place] = values
            values = level.to_parents(values)
        return result[:, :-1]

    def spread(self, y: FloatArray, /) -> FloatArray:
        seen = np.zeros((len(y), 1, self.local.shape[0]))
        for level in reversed(self.levels):
            seen = seen[:, level.parent] + level.read(y, 0.0)
        values = np.asarray((self.local.T @ seen.reshape(-1, seen.shape[2]).T).T)
        x = np.empty((len(y), self.grid.size))
        x[:, self.grid.ravel()] = values.reshape(len(y), -1)
        return x

    def powers(self, exponent: int, /) -> "TreeSystem":
        return self

    def take(self, chosen: IntArray, /) -> "TreeSystem":
        return self

    @property
    def exact(self) -> bool:
        return True

    def solver(self, response: FloatArray, diagonal: FloatArray, /) -> Solver:
        """One elimination for each draw, or one for all draws."""
        draws = max(len(response), len(diagonal))
        factors = [self._factor(response[k % len(response)], diagonal[[k % len(diagonal)]]) for k in range(draws)]
        return lambda right: np.concatenate([self._solve(factors[k % draws], right[[k]]) for k in range(len(right))])

    def _factor(self, response: FloatArray, diagonal: FloatArray) -> list[tuple[Back, FloatArray, FloatArray]]:
        """Go up the tree, computing inverses, subtree responses and omega."""
        m = self.local.shape[0]
        beta = np.ascontiguousarray((self.products @ response[self.grid].T).T).reshape(-1, m, m)
        parts = []
        for level in self.levels:
            omega = 1.0 / level.read(diagonal, np.inf)[0]
            back, beta = eliminate(beta, omega)
            parts.append((back, beta, omega))
            beta = level.to_parents(beta[None])[0]
        return parts

    def _solve(self, parts: list[tuple[Back, FloatArray, FloatArray]], right: FloatArray) -> FloatArray:
        """Go up with the right-hand side, then down with the multipliers."""
        m = self.local.shape[0]
        alpha, pulls = np.zeros((len(self.grid), m)), []
        for level, (_, beta, omega) in zip(self.levels, parts):
            pulls.append(omega * (level.read(right, 0.0)[0] - alpha))
            alpha = level.to_parents((alpha + times(beta, pulls[-1]))[None])[0]
        result = np.zeros((1, self.queries + 1))
        above = np.zeros((1, m))
        for level, (back, _, _), pull in zip(reversed(self.levels), reversed(parts), reversed(pulls)):
            shift = above[level.parent]
            above = back(shift + pull)
            result[0, level.place] = above - shift
        return result[:, :-1]


def tree_system(workload: Workload, parts: CellsAndSums) -> TreeSystem | None:
    """Return the workload along its best dimension; None if not a tree."""
    if workload.shape is None:
        return None
    position = np.full(workload.queries, -1)
    position[parts.sums] = np.arange(len(parts.sums))
    used = [k for k, place in enumerate(workload.slices) if np.any(position[place] >= 0)]
    plans = [
        (work, along) for along in range(len(workload.shape)) if (work := work_along(workload, used, along)) is not None
    ]
    return along_dimension(workload, used, position, min(plans)[1]) if plans else None


def margins_of(workload: Workload, used: list[int], along: int) -> list[tuple[tuple[int, str], ...]]:
    """The distinct margins over the other dimensions."""
    kept = [workload.groups[k].level_of for k in used]
    return sorted({tuple(sorted((d, level) for d, level in one.items() if d != along)) for one in kept})


def work_along(workload: Workload, used: list[int], along: int) -> float | None:
    """Return an elimination's multiplications; None if too much work or memory."""
    assert workload.shape is not None
    margins = margins_of(workload, used, along)
    local = sum(int(np.prod([workload.levels[level][1].max() + 1 for _, level in margin])) for margin in margins)
    nodes = 2 * workload.shape[along]
    return nodes * local**3 if nodes * local**3 <= MOST_WORK and nodes * local**2 <= MOST_ENTRIES else None


def along_dimension(workload: Workload, used: list[int], position: IntArray, along: int) -> TreeSystem:
    """Arrange the sums by one dimension's nodes and the others' local queries."""
    assert workload.shape is not None
    others = [d for d in range(len(workload.shape)) if d != along]
    grid = np.moveaxis(np.arange(workload.cells).reshape(workload.shape), along, 0).reshape(workload.shape[along], -1)
    places = np.indices([workload.shape[d] for d in others]).reshape(len(others), grid.shape[1])
    rows, members, first = [], {}, 0
    for margin in margins_of(workload, used, along):
        labels = np.zeros(grid.shape[1], dtype=np.int64)
        for dimension, level in margin:
            codes = workload.levels[level][1]
            labels = labels * (int(codes.max()) + 1) + codes[places[others.index(dimension)]]
        rows.append(first + labels)
        members[margin] = (first, np.unique(labels, return_index=True)[1])
        first += int(labels.max()) + 1
    local = sparse.csr_array(
        (np.ones(len(rows) * grid.shape[1]), (np.concatenate(rows), np.tile(np.arange(grid.shape[1]), len(rows)))),
        shape=(first, grid.shape[1]),
    )
    chain = level_chain(workload, used, along)
    levels = tuple(
        level_of(workload, used, position, along, grid, members, local.shape[0], codes, above)
        for codes, above in zip(chain, [*chain[1:], np.zeros_like(chain[0])])
    )
    queries = int(np.sum(position >= 0))
    return TreeSystem(levels=levels, grid=grid, local=local, queries=queries)


def level_chain(workload: Workload, used: list[int], along: int) -> list[IntArray]:
    """Return the leaves' codes at each requested level, finest first."""
    assert workload.shape is not None
    leaves = np.arange(workload.shape[along])
    names = {workload.groups[k].level_of.get(along) for k in used} - {None}
    codes = [workload.levels[str(name)][1] for name in names]
    codes.sort(key=lambda code: -int(code.max()))
    chain = [leaves]
    for code in [*codes, np.zeros_like(leaves)]:
        if int(code.max()) < int(chain[-1].max()) or not is_nested(code, chain[-1]):
            chain.append(code)
    return chain


def level_of(
    workload: Workload,
    used: list[int],
    position: IntArray,
    along: int,
    grid: IntArray,
    members: dict[tuple[tuple[int, str], ...], tuple[int, IntArray]],
    local: int,
    codes: IntArray,
    above: IntArray,
) -> Level:
    """Return one level: its parents and the positions of its sums."""
    nodes, leaf = np.unique(codes, return_index=True)
    place = np.full((len(nodes), local), -1)
    for k in used:
        group, where = workload.groups[k], workload.slices[k]
        name = group.level_of.get(along)
        own = np.zeros_like(codes) if name is None else workload.levels[name][1]
        if not (is_nested(own, codes) and is_nested(codes, own)):
            continue
        first, cell = members[tuple(sorted((d, level) for d, level in group.level_of.items() if d != along))]
        assert group.labels is not None
        place[:, first : first + len(cell)] = position[where.start + group.labels[grid[leaf][:, cell]]]
    return Level(nodes=len(nodes), parent=above[leaf], place=place)


# Sums of which any two are nested or disjoint form a forest, which is solved by elimination (T-ELIMINATION). The
# tables of a release with one code at several levels are of this kind, including their unpublished remainders: their
# branches have different depths, so no grid describes them.


MOST_LEVELS = 60
"""Deeper nesting is left to other solvers."""
NONE = -1


def forest_system(rows: Any) -> TreeSystem | None:
    """Return the sums as levels of a forest; None if two cross.

    Also None if one counts a cell other than exactly once.
    """
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
        levels.append(forest_level(finer, places, codes))
        finer, places = codes, own
    levels.append(forest_level(finer, places, np.zeros(cells, dtype=np.int64)))
    return TreeSystem(
        levels=tuple(levels),
        grid=np.arange(cells)[:, None],
        local=sparse.csr_array(np.ones((1, 1))),
        queries=rows.shape[0],
    )


def chains(rows: Any) -> tuple[IntArray | None, IntArray]:
    """Return each cell's sums, widest first, padded, and their number.

    Of sums of the same cells, as of a state with one county, the later is the wider: finer tables are listed first.
    """
    widest = np.lexsort((-np.arange(rows.shape[0]), -np.diff(rows.indptr)))
    by_cell = sparse.csc_array(rows[widest])
    by_cell.sort_indices()
    length = np.diff(by_cell.indptr).astype(np.int64)
    if length.max() > MOST_LEVELS:
        return None, length
    chain = np.full((rows.shape[1], int(length.max())), NONE)
    chain[np.arange(chain.shape[1]) < length[:, None]] = widest[by_cell.indices]
    return chain, length


def nested_chains(chain: IntArray, sums: int) -> bool:
    """Return whether every sum lies inside one next wider sum."""
    wider = np.full(sums, NONE)
    above = np.concatenate([np.full((len(chain), 1), NONE), chain[:, :-1]], axis=1)
    inside = chain != NONE
    wider[chain[inside]] = above[inside]
    return bool(np.array_equal(wider[chain[inside]], above[inside]))


def nodes_at(chain: IntArray, length: IntArray, depth: int) -> tuple[IntArray, IntArray]:
    """Return the node of each cell at a depth, and its sum."""
    deep = length >= depth
    narrowest = np.where(length > 0, chain[np.arange(len(chain)), np.maximum(length, 1) - 1], NONE)
    own = np.where(deep, chain[:, depth - 1], NONE)
    name = np.where(deep, 2 * own, 2 * narrowest + 1)
    rank = np.cumsum(np.bincount(name + 1) > 0) - 1
    return rank[name + 1], own


def forest_level(codes: IntArray, indices: IntArray, above: IntArray) -> Level:
    """Return one level from cells' nodes there and one level wider."""
    cell = np.empty(int(codes.max()) + 1, dtype=np.int64)
    cell[codes] = np.arange(len(codes))
    return Level(nodes=len(cell), parent=above[cell], place=indices[cell][:, None])
