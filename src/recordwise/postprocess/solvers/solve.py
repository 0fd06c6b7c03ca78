"""Chooses the solver for a workload."""

from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy import sparse

from recordwise.postprocess.measured import Measured, Parts, sum_rows
from recordwise.postprocess.solvers.boxed import Boxed, FloatArray, IntArray, Solution, Solver, System
from recordwise.postprocess.solvers.crossed import crossed_system
from recordwise.postprocess.solvers.dense import DenseSystem, solve_dense
from recordwise.postprocess.solvers.factored import factored_system
from recordwise.postprocess.solvers.forest import forest_system
from recordwise.postprocess.solvers.iterative import Cascade, IterativeSystem, Operator, SparseRows, WithExtras
from recordwise.postprocess.solvers.newton import solve_boxed
from recordwise.postprocess.solvers.prices import by_prices
from recordwise.postprocess.solvers.refine import refine
from recordwise.postprocess.solvers.tree import TreeSystem, tree_system
from recordwise.postprocess.workload import Group, Workload, group_spread


@dataclass(frozen=True, kw_only=True, eq=False)
class BorderedSystem:
    """``base`` with the extra queries below it; ``member`` is draws x extras x cells."""

    base: System
    member: FloatArray

    @property
    def exact(self) -> bool:
        return self.base.exact

    @property
    def queries(self) -> int:
        return self.base.queries + int(self.member.shape[1])

    def sums(self, x: FloatArray, /) -> FloatArray:
        return np.hstack([self.base.sums(x), np.einsum("dec,dc->de", self.member, x)])

    def spread(self, y: FloatArray, /) -> FloatArray:
        extra = np.einsum("dec,de->dc", self.member, y[:, self.base.queries :])
        return np.asarray(self.base.spread(y[:, : self.base.queries]) + extra)

    def powers(self, exponent: int, /) -> "BorderedSystem":
        return replace(self, base=self.base.powers(exponent))

    def take(self, chosen: IntArray, /) -> "BorderedSystem":
        return BorderedSystem(base=self.base.take(chosen), member=self.member[chosen])

    def solver(self, response: FloatArray, diagonal: FloatArray, /) -> Solver:
        """Eliminate the base: one of its solutions per extra query, from one factorization per draw."""
        split = self.base.queries
        parts = []
        for draw in range(len(response)):
            one = self.base.take(np.array([draw])).solver(response[[draw]], diagonal[[draw], :split])
            seen = self.member[draw] * response[draw]
            border = self.base.take(np.full(len(seen), draw)).sums(seen)
            through = np.concatenate([one(row[None]) for row in border])
            corner = seen @ self.member[draw].T + np.diag(diagonal[draw, split:]) - border @ through.T
            parts.append((one, through, corner))

        def solve(right: FloatArray) -> FloatArray:
            result = np.empty_like(right)
            for draw, (one, through, corner) in enumerate(parts):
                extra = np.linalg.solve(corner, right[draw, split:] - through @ right[draw, :split])
                result[draw, :split] = one(right[[draw], :split])[0] - extra @ through
                result[draw, split:] = extra
            return result

        return solve


DENSE_WORK = 2e8
"""The number of multiplications of a dense factorization up to which it is the fastest method."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Extra:
    """An additional query: the sum of some queries of a group, which may differ between draws."""

    group: Group
    place: slice
    """The positions of the group's answers."""
    chosen: FloatArray
    """1 for each query of the group that is summed, per draw."""
    answer: FloatArray
    weight: FloatArray
    """Zero in draws without such a query."""

    @property
    def member(self) -> FloatArray:
        """1 for each cell that is summed, per draw."""
        return group_spread(self.group, self.chosen)


_prepared: WeakKeyDictionary[Workload, tuple[Parts, System]] = WeakKeyDictionary()


def prepared(workload: Workload) -> tuple[Parts, System]:
    """The queries of a workload that are cells and sums, and the system of the sums; found once for each workload."""
    if workload not in _prepared:
        parts = Parts.of(workload)
        _prepared[workload] = parts, system_of(workload, parts)
    return _prepared[workload]


def system_of(workload: Workload, parts: Parts) -> System:
    """The sums of a workload as an operator with the best linear solver for it."""
    if dense_pays(len(parts.sums), parts.head):
        return DenseSystem.of(sum_rows(workload, parts), parts.head)
    rows = sum_rows(workload, parts)
    found: System | None = crossed_system(workload, parts) or tree_system(workload, parts) or forest_system(rows)
    if found is None and any(group.labels is None for group in workload.groups):
        found = factored_system(rows)
    return found or IterativeSystem(operator=operator_of(workload, parts))


def rows_system(rows: Any, head: int = 0) -> System:
    """Any sparse rows as a system; the leading ``head`` rows share no cell."""
    if dense_pays(rows.shape[0], head):
        return DenseSystem.of(rows, head)
    return forest_system(rows) or factored_system(rows) or IterativeSystem(operator=SparseRows(rows=rows))


def dense_pays(queries: int, head: int) -> bool:
    """Whether a dense factorization is cheap."""
    rest = queries - head
    return bool(rest**3 / 3 + head * rest**2 <= DENSE_WORK)


def operator_of(workload: Workload, parts: Parts) -> Operator:
    """The sums for conjugate gradients: rolled up if all groups are partitions, sparse rows otherwise."""
    groups = [partition(group) for group in workload.groups]
    if any(group.labels is None for group in groups):
        return SparseRows(rows=sum_rows(workload, parts))
    position = np.full(workload.queries, -1)
    position[parts.sums] = np.arange(len(parts.sums))
    places = [position[place] for place in workload.slices]
    used = [k for k, place in enumerate(places) if np.any(place >= 0)]
    return Cascade.of([groups[k] for k in used], [places[k] for k in used], len(parts.sums))


def partition(group: Group) -> Group:
    """The group by the query of each cell, if it counts every cell exactly once; the group itself otherwise."""
    if group.labels is not None:
        return group
    by_cell = sparse.csc_array(group.block)
    if not (np.all(np.diff(by_cell.indptr) == 1) and np.all(by_cell.data == 1.0)):
        return group
    return replace(group, labels=by_cell.indices.astype(np.int64), block=None)


def solve_problem(problem: Boxed, system: System) -> Solution:
    """Solve the boxed problem of every draw."""
    if isinstance(system, DenseSystem):
        return solve_dense(problem, system)
    return solve_boxed(problem, system, by_prices(problem, system) if isinstance(system, TreeSystem) else None)


def solve_again(problem: Boxed, system: System) -> Solution:
    """Solve again the draws left above the tolerance; small problems are continued until they are solved (T-REFINE)."""
    found = solve_problem(problem, system)
    return refine(problem, system, found) if isinstance(system, DenseSystem) else found


def solve_extended(
    measured: Measured, weights: FloatArray, extras: list[Extra], parts: Parts, base: System
) -> Solution:
    """Nonnegative least squares with additional queries, each the sum of some queries of a group, chosen for each draw."""
    problem = parts.boxed(measured.answers, weights)
    if not extras:
        return solve_problem(problem, base)
    used = [extra.weight > 0 for extra in extras]
    wide = np.full((1, problem.answer.shape[1] + len(extras)), np.inf)
    problem = replace(
        problem,
        weight=np.hstack(
            [problem.weight, *(np.where(on, extra.weight, 1.0)[:, None] for on, extra in zip(used, extras))]
        ),
        answer=np.hstack(
            [problem.answer, *(np.where(on, extra.answer, 0.0)[:, None] for on, extra in zip(used, extras))]
        ),
        floor=-wide,
        ceiling=wide,
    )
    if isinstance(base, DenseSystem):
        return solve_dense(problem, extended_dense(base, parts, extras))
    member = np.stack([extra.member for extra in extras], axis=1)
    if not isinstance(base, IterativeSystem):
        return solve_boxed(problem, BorderedSystem(base=base, member=member))
    found = [
        solve_boxed(
            problem.take(np.array([draw])),
            IterativeSystem(operator=WithExtras(base=base.operator, member=member[draw])),
        )
        for draw in range(measured.draws)
    ]
    return Solution(
        x=np.concatenate([one.x for one in found]),
        y=np.concatenate([one.y for one in found]),
        iterations=np.concatenate([one.iterations for one in found]),
    )


def extended_dense(base: DenseSystem, parts: Parts, extras: list[Extra]) -> DenseSystem:
    """The sums with one row below them for each extra query, with coefficients by draw."""
    rows = base.rows
    pattern = np.stack([np.any(extra.member != 0, axis=0) for extra in extras])
    system = DenseSystem.of(sparse.vstack([rows, sparse.csr_array(pattern.astype(np.float64))]), parts.head)
    data = np.broadcast_to(system.data, (len(extras[0].member), system.data.shape[1])).copy()
    for k, extra in enumerate(extras):
        entries = np.flatnonzero(system.query == rows.shape[0] + k)
        data[:, entries] = extra.member[:, system.cell[entries]]
    return replace(system, data=data)
