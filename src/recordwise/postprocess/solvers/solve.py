"""Choose the solver for a workload, and refine what it leaves inexact."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy import sparse

from recordwise.postprocess.measured import CellsAndSums, Measurements, boxed_residual, sum_rows
from recordwise.postprocess.solvers.boxed import (
    BoxedProblem,
    FloatArray,
    IntArray,
    Solution,
    Solver,
    System,
    curvature,
    one_thread,
    proximal_weights,
)
from recordwise.postprocess.solvers.crossed import crossed_system
from recordwise.postprocess.solvers.dense import DenseSystem, Round, newton, solve_boxed, solve_dense
from recordwise.postprocess.solvers.iterative import Cascade, IterativeSystem, Operator, SparseRows, WithExtras
from recordwise.postprocess.solvers.prices import by_prices
from recordwise.postprocess.solvers.tree import TreeSystem, forest_system, tree_system
from recordwise.postprocess.workload import Group, Workload, group_spread

# A second, slower solver of a boxed problem, for the few draws that the first one leaves above the tolerance
# (T-REFINE). With constant weights the proximal method of multipliers converges linearly, at a rate set by the
# conditioning: large multipliers are reached in small steps, and cells with little pull on them move slowly. Here the
# weights shrink from round to round, which makes convergence superlinear, and after each round the active bounds are
# treated as equations: once they are the right ones, the remaining linear system is solved to rounding accuracy.


GOOD = 1e-10
"""A residual below this is accepted as it is."""
DONE = 1e-13
SHRINK = 0.3
"""The factor by which proximal weights shrink from one round to the next."""
LEAST = 1e-9
ROUNDS = 40
MOST_UNKNOWNS = 1500
"""The number of cells and queries up to which the equations are solved densely."""
RANK = 1e-13
"""Singular values below this fraction of the largest count as 0."""
PIECES = 20
"""How often the set of active bounds may change during a solve."""


def refine(problem: BoxedProblem, system: DenseSystem, found: Solution) -> Solution:
    """Solve again the draws that need it, never increasing the residual."""
    poor = np.flatnonzero(boxed_residual(problem, system, found.x, found.y) > GOOD)
    for draw in poor:
        chosen = np.array([draw])
        x, y, steps = _again(problem.take(chosen), system.take(chosen), found.x[chosen], found.y[chosen])
        found.x[draw], found.y[draw] = x, y
        found.iterations[draw] += steps
    return found


def _again(
    problem: BoxedProblem, system: DenseSystem, x: FloatArray, y: FloatArray
) -> tuple[FloatArray, FloatArray, int]:
    """Solve one draw and return its best point."""
    best, steps = (float(boxed_residual(problem, system, x, y)[0]), x, y), 0
    (_, held), (_, loose) = proximal_weights(problem)
    cells, queries = curvature(problem, system)
    for turn in range(ROUNDS):
        part = max(SHRINK**turn, LEAST)
        measured = problem.precision > 0
        stage = Round(
            problem=problem,
            system=system,
            precision=np.where(measured, problem.precision, loose * part * cells),
            target=np.where(measured, problem.target, x),
            proximal=held * part * queries * problem.bounded,
            center=y,
        )
        try:
            point, moved = newton(stage)
        except np.linalg.LinAlgError:
            break
        x, y, steps = point.x, point.y, steps + int(moved[0])
        for candidate in ((x, y), *_polish(problem, system, x, y)):
            residual = float(boxed_residual(problem, system, *candidate)[0])
            best = min(best, (residual, *candidate), key=lambda each: each[0])
        if best[0] <= DONE:
            break
    return best[1], best[2], steps


def _polish(
    problem: BoxedProblem, system: DenseSystem, x: FloatArray, y: FloatArray
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield points with active bounds exact and all else optimal."""
    if system.cells + system.queries > MOST_UNKNOWNS:
        return
    rows = system.rows.toarray()
    curved = problem.precision + (problem.weight @ rows**2)
    scale, size = 1.0 / np.sqrt(np.where(curved > 0, curved, 1.0))[0], np.sqrt(problem.weight)[0]
    for _ in range(PIECES):
        gradient = problem.precision * (x - problem.target) - y @ rows
        wanted = x - gradient * scale**2
        free = ((wanted > problem.low) & (wanted < problem.high))[0]
        loose = problem.answer - y / problem.weight
        slack = ((loose > problem.floor) & (loose < problem.ceiling))[0]
        x = np.where(free, x, np.clip(wanted, problem.low, problem.high))
        gap = np.clip(loose, problem.floor, problem.ceiling) - x @ rows.T
        pull = y @ rows - problem.precision * (x - problem.target)
        own, shared = (problem.precision[0] * scale**2)[free], (rows * scale * size[:, None])[:, free]
        matrix = np.block([[np.diag(own), -shared.T], [shared, np.diag(slack.astype(np.float64))]])
        step = np.linalg.lstsq(matrix, np.concatenate([(pull[0] * scale)[free], gap[0] * size]), rcond=RANK)[0]
        x, y = x.copy(), y + step[free.sum() :] * size
        x[0, free] += step[: free.sum()] * scale[free]
        yield np.clip(x, problem.low, problem.high), y


# Sums that cross, but of which few share a cell: their Newton systems are sparse and are factored as such. The tables
# of two codes with incomplete keys are of this kind. Which sums share a cell is known in advance, and so is how much
# of a system fills up while it is eliminated.


MOST_ENTRIES = 5_000_000
"""With more pairs of sums that share a cell, conjugate gradients are left to do it."""
MOST_FILL = 10_000_000
"""The same for the numbers of a factor (80 MB)."""
MOSTLY = 0.9
"""With a smaller share of cells that respond, the others are left out of the products."""
SYMMETRIC: dict[str, Any] = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}


def factored_system(rows: Any) -> "FactoredSystem | None":
    """Sparse rows, if few of them share a cell; None otherwise."""
    by_cell = np.diff(sparse.csc_array(rows).indptr).astype(np.float64)
    if np.sum(by_cell**2) > 10 * MOST_ENTRIES:
        return None
    shared = sparse.csr_array(abs(rows) @ abs(rows).T)
    # Sums that share a cell with few others are eliminated first: the finest ones, then those they are part of.
    order = np.argsort(np.diff(shared.indptr), kind="stable")
    if shared.nnz > MOST_ENTRIES or fill_count(sparse.csr_array(shared[order][:, order])) > MOST_FILL:
        return None
    return FactoredSystem(rows=rows, order=order)


def fill_count(pattern: Any) -> int:
    """Return the number of factor entries, or too many if unknown."""
    try:
        from recordwise.postprocess.solvers.kernel import fill
    except ImportError:
        return MOST_FILL + 1
    return int(fill(pattern.indptr, pattern.indices, MOST_FILL))


@dataclass(frozen=True, kw_only=True, eq=False)
class FactoredSystem:
    """Sparse rows, with the order in which they are eliminated."""

    rows: Any
    order: IntArray
    exact: bool = True

    @cached_property
    def columns(self) -> Any:
        return self.rows.T.tocsr()

    @cached_property
    def ordered(self) -> tuple[Any, Any]:
        """The rows in the order of elimination, and the same by cell."""
        rows = sparse.csr_array(self.rows[self.order])
        return rows, sparse.csr_array(rows.T)

    @property
    def queries(self) -> int:
        return int(self.rows.shape[0])

    def sums(self, x: FloatArray, /) -> FloatArray:
        return np.ascontiguousarray((self.rows @ x.T).T)

    def spread(self, y: FloatArray, /) -> FloatArray:
        return np.ascontiguousarray((self.columns @ y.T).T)

    def powers(self, exponent: int, /) -> "FactoredSystem":
        return FactoredSystem(rows=abs(self.rows).power(exponent), order=self.order)

    def take(self, chosen: IntArray, /) -> "FactoredSystem":
        return self

    def solver(self, response: FloatArray, diagonal: FloatArray, /) -> Solver:
        """Return a solver with one factorization per system, refined once."""
        count = max(len(response), len(diagonal))
        systems = [self._factor(response[k % len(response)], diagonal[k % len(diagonal)]) for k in range(count)]

        def solve(right: FloatArray) -> FloatArray:
            result = np.empty_like(right)
            for k, row in enumerate(right[:, self.order]):
                matrix, factors = systems[k % count]
                found = factors.solve(row)
                result[k, self.order] = found + factors.solve(row - matrix @ found)
            return result

        return solve

    def _factor(self, response: FloatArray, diagonal: FloatArray) -> tuple[Any, Any]:
        """Cells that are at a bound do not respond, and connect nothing."""
        rows, by_cell = self.ordered
        weighted = rows.copy()
        weighted.data *= response[rows.indices]
        if np.count_nonzero(response) < MOSTLY * len(response):
            weighted.eliminate_zeros()
        # A symmetric matrix is the same by rows and by columns.
        matrix = sparse.csr_array(weighted @ by_cell + sparse.diags_array(diagonal[self.order], format="csr")).T
        from scipy.sparse.linalg import splu

        return matrix, splu(sparse.csc_array(matrix), permc_spec="NATURAL", **SYMMETRIC)


# The choice of a solver.


@dataclass(frozen=True, kw_only=True, eq=False)
class BorderedSystem:
    """``base`` with extra queries below; ``member`` is draws x extras x cells."""

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
        """Return a solver that eliminates the base, factored once per draw."""
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
    """An additional query: a sum of a group's queries, by draw."""

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


_prepared: WeakKeyDictionary[Workload, tuple[CellsAndSums, System]] = WeakKeyDictionary()


def prepare(workload: Workload) -> tuple[CellsAndSums, System]:
    """Return a workload's cells, sums and the system of sums."""
    if workload not in _prepared:
        parts = CellsAndSums.of(workload)
        _prepared[workload] = parts, system_of(workload, parts)
    return _prepared[workload]


def system_of(workload: Workload, parts: CellsAndSums) -> System:
    """Return the sums as an operator with its best linear solver."""
    if dense_pays(len(parts.sums), parts.head):
        return DenseSystem.of(sum_rows(workload, parts), parts.head)
    rows = sum_rows(workload, parts)
    found: System | None = crossed_system(workload, parts) or tree_system(workload, parts) or forest_system(rows)
    if found is None and any(group.labels is None for group in workload.groups):
        found = factored_system(rows)
    return found or IterativeSystem(operator=operator_of(workload, parts))


def rows_system(rows: Any, head: int = 0) -> System:
    """Return sparse rows as a system; the leading ``head`` share no cell."""
    if dense_pays(rows.shape[0], head):
        return DenseSystem.of(rows, head)
    return forest_system(rows) or factored_system(rows) or IterativeSystem(operator=SparseRows(rows=rows))


def dense_pays(queries: int, head: int) -> bool:
    """Whether a dense factorization is cheap."""
    rest = queries - head
    return bool(rest**3 / 3 + head * rest**2 <= DENSE_WORK)


def operator_of(workload: Workload, parts: CellsAndSums) -> Operator:
    """Return the sums for conjugate gradients, rolled up if all are partitions."""
    groups = [partition(group) for group in workload.groups]
    if any(group.labels is None for group in groups):
        return SparseRows(rows=sum_rows(workload, parts))
    position = np.full(workload.queries, -1)
    position[parts.sums] = np.arange(len(parts.sums))
    places = [position[place] for place in workload.slices]
    used = [k for k, place in enumerate(places) if np.any(place >= 0)]
    return Cascade.of([groups[k] for k in used], [places[k] for k in used], len(parts.sums))


def partition(group: Group) -> Group:
    """Return the group by each cell's query, if it is a partition."""
    if group.labels is not None:
        return group
    by_cell = sparse.csc_array(group.block)
    if not (np.all(np.diff(by_cell.indptr) == 1) and np.all(by_cell.data == 1.0)):
        return group
    return replace(group, labels=by_cell.indices.astype(np.int64), block=None)


@one_thread()
def solve_problem(problem: BoxedProblem, system: System) -> Solution:
    """Solve the boxed problem of every draw."""
    if isinstance(system, DenseSystem):
        return solve_dense(problem, system)
    return solve_boxed(problem, system, by_prices(problem, system) if isinstance(system, TreeSystem) else None)


def solve_again(problem: BoxedProblem, system: System) -> Solution:
    """Solve again the draws above the tolerance (T-REFINE)."""
    found = solve_problem(problem, system)
    return refine(problem, system, found) if isinstance(system, DenseSystem) else found


def solve_extended(
    measured: Measurements, weights: FloatArray, extras: list[Extra], parts: CellsAndSums, base: System
) -> Solution:
    """Solve nonnegative least squares with additional queries by draw."""
    problem = parts.boxed_problem(measured.answers, weights)
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


def extended_dense(base: DenseSystem, parts: CellsAndSums, extras: list[Extra]) -> DenseSystem:
    """Return the sums with a row per extra query, by draw."""
    rows = base.rows
    pattern = np.stack([np.any(extra.member != 0, axis=0) for extra in extras])
    system = DenseSystem.of(sparse.vstack([rows, sparse.csr_array(pattern.astype(np.float64))]), parts.head)
    data = np.broadcast_to(system.data, (len(extras[0].member), system.data.shape[1])).copy()
    for k, extra in enumerate(extras):
        entries = np.flatnonzero(system.query == rows.shape[0] + k)
        data[:, entries] = extra.member[:, system.cell[entries]]
    return replace(system, data=data)
