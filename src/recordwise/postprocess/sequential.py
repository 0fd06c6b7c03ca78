"""Sequential fitting by priority, without changing what was fitted before."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from recordwise.errors import ParameterError, own_argument_errors
from recordwise.postprocess.measured import (
    TOLERANCE,
    Fit,
    Measurements,
    Noise,
    boxed_residual,
    fit_draws,
    law_of,
    measure,
)
from recordwise.postprocess.solvers.boxed import BoxedProblem, FloatArray, IntArray, Solution, System
from recordwise.postprocess.solvers.solve import rows_system, solve_problem
from recordwise.postprocess.workload import Digits, Group, Workload, group_spread, group_sums


@own_argument_errors
def sequential_fit(
    workload: Workload,
    answers: ArrayLike,
    variances: ArrayLike,
    noise: Noise = "laplace",
    *,
    priority: Sequence[str] | None = None,
    tolerance: float = TOLERANCE,
) -> Fit:
    """Fit the groups in order, with all earlier fitted answers fixed.

    Each by nonnegative least squares. ``priority`` names the groups, the most important first; the default is the
    order of the workload. The first group keeps only its measurement noise: its error does not depend on the
    table. ``noise`` plays no part beyond the variances.

    Args:
        workload: The queries that were answered.
        answers: The noisy answers, in the order of the workload; several rows are several draws.
        variances: The variance of each answer, one for each group, or one for all.
        noise: The law of the noise; Gaussian unless given.
        priority: The names of the groups, the most important first; the order of the workload unless given.
        tolerance: The largest violation of the optimality conditions, relative to the answers.

    Returns:
        The fitted table.
    """
    measured = measure(workload, answers, variances)
    law_of(noise, 1.0 / measured.weights)
    order = read_priority(workload, priority)
    return fit_draws(measured, lambda some: in_order(some, order, tolerance))


def read_priority(workload: Workload, priority: Sequence[str] | None) -> list[int]:
    """The groups in order; each exactly once, and each of disjoint counts."""
    for group in workload.groups:
        if not group.disjoint:
            raise ParameterError(
                parameter=f"group '{group.name}'",
                problem="has queries that overlap or are weighted; sequential_fit needs disjoint counts",
                advice="Split it into groups of disjoint counts, or use nnls.",
            )
    if priority is None:
        return list(range(len(workload.groups)))
    if sorted(priority) != sorted(group.name for group in workload.groups):
        raise ParameterError(parameter="priority", problem="must name every group of the workload once")
    return [workload.index(name) for name in priority]


@dataclass(slots=True)
class Progress:
    """What has been fitted so far, and with what residuals."""

    groups: list[Group] = field(default_factory=list)
    fitted: list[FloatArray] = field(default_factory=list)
    kkt: FloatArray = field(default_factory=lambda: np.zeros(1))
    moved: FloatArray = field(default_factory=lambda: np.zeros(1))
    iterations: IntArray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))

    def add(self, group: Group, fitted: FloatArray) -> None:
        self.groups.append(group)
        self.fitted.append(fitted)

    def settle(self, x: FloatArray) -> None:
        """Take the fitted answers from a table, and record their movement."""
        for place, group in enumerate(self.groups):
            sums = group_sums(group, x)
            moved = np.max(np.abs(sums - self.fitted[place]) / (1.0 + np.abs(sums)), axis=1)
            self.moved = np.maximum(self.moved, moved)
            self.fitted[place] = sums

    def solve(self, problem: BoxedProblem, system: System) -> Solution:
        """Solve a stage and keep the worst residual so far."""
        found = solve_problem(problem, system)
        self.kkt = np.maximum(self.kkt, boxed_residual(problem, system, found.x, found.y))
        self.iterations = self.iterations + found.iterations
        return found


def in_order(measured: Measurements, order: list[int], tolerance: float) -> Fit:
    """Run all stages for some draws, then build a table."""
    workload = measured.workload
    done = Progress()
    for place in order:
        group, where = workload.groups[place], workload.slices[place]
        target, weight = measured.answers[:, where], measured.weights[:, where]
        stage = margin_stage if is_closed(group, done.groups) else cell_stage
        done.add(group, stage(done, group, target, weight))
    x = table_of(done, workload)
    fitted = workload.answer(x)
    kept = np.concatenate([done.fitted[order.index(k)] for k in range(len(order))], axis=1)
    primal = done.moved + np.max(np.abs(fitted - kept) / (1.0 + np.abs(kept)), axis=1)
    zeros = np.zeros(measured.draws)
    return Fit(
        x=x,
        fitted=fitted,
        kkt=zeros + done.kkt,
        primal=primal,
        iterations=zeros.astype(np.int64) + done.iterations,
        tolerance=tolerance,
    )


def is_closed(group: Group, before: list[Group]) -> bool:
    """Return whether only margins shared with earlier groups restrict this one."""
    if group.labels is None or any(other.labels is None for other in before):
        return False
    if all(group.refines(other) or other.refines(group) for other in before):
        return True
    digits = [other.digits for other in (*before, group)]
    return all(known is not None for known in digits) and acyclic([known for known in digits if known is not None])


def margin_stage(done: Progress, group: Group, target: FloatArray, weight: FloatArray) -> FloatArray:
    """Fit nonnegative queries with margins shared with earlier groups fixed."""
    margins: list[tuple[IntArray, FloatArray]] = []
    for other, fitted in zip(done.groups, done.fitted):
        own, theirs = meet(group, other)
        margins.append((own, regroup(fitted, theirs, int(theirs.max()) + 1)))
    margins.sort(key=lambda margin: -int(margin[0].max()))
    needed: list[tuple[IntArray, FloatArray]] = []
    for labels, sums in margins:
        if not any(coarser(finer, labels) for finer, _ in needed):
            needed.append((labels, sums))
    if not needed:
        return np.maximum(target, 0.0)
    labels, sums = needed[0]
    if int(labels.max()) + 1 == group.size:
        return sums[:, labels]
    if len(needed) == 1:
        return simplex(target, weight, labels, sums)
    return project(done, target, weight, needed)


def simplex(target: FloatArray, weight: FloatArray, labels: IntArray, sums: FloatArray) -> FloatArray:
    """Return the nearest nonnegative values with a fixed sum per label.

    Michelot's method: one shift per label, dropping values it makes negative. The shift for all members is too
    low for those that stay, so members only ever leave.
    """
    ease = 1.0 / weight
    inside = np.ones(target.shape)
    inside[np.take(sums, labels, axis=1) <= 0.0] = 0.0
    for _ in range(target.shape[1]):
        room = regroup(inside * ease, labels, sums.shape[1])
        shift = (sums - regroup(inside * target, labels, sums.shape[1])) / np.where(room > 0, room, 1.0)
        values = inside * (target + ease * np.take(shift, labels, axis=1))
        if np.all(values >= 0.0):
            return values
        inside[values < 0.0] = 0.0
    return np.maximum(values, 0.0)


def project(
    done: Progress, target: FloatArray, weight: FloatArray, margins: list[tuple[IntArray, FloatArray]]
) -> FloatArray:
    """Return the nearest nonnegative values with these sums."""
    size = target.shape[1]
    high = np.full(target.shape, np.inf)
    rows = []
    for labels, sums in margins:
        high[np.take(sums, labels, axis=1) <= 0.0] = 0.0
        ones = np.ones(size)
        rows.append(sparse.csr_array((ones, (labels, np.arange(size))), shape=(sums.shape[1], size)))
    fixed = np.concatenate([sums for _, sums in margins], axis=1)
    problem = BoxedProblem(
        precision=weight,
        target=target,
        low=np.zeros((1, size)),
        high=high,
        weight=np.ones((1, fixed.shape[1])),
        answer=fixed,
        floor=fixed,
        ceiling=fixed,
    )
    return done.solve(problem, rows_system(sparse.vstack(rows, format="csr"), margins[0][1].shape[1])).x


def cell_stage(done: Progress, group: Group, target: FloatArray, weight: FloatArray) -> FloatArray:
    """Fit a group over the cells.

    For families whose margins alone do not determine which answers are possible. Earlier answers are recomputed
    from the new table, so that the answers fixed next are consistent to the last digit.
    """
    x = over_cells(done, [group], [target], [weight])
    done.settle(x)
    return group_sums(group, x)


def over_cells(done: Progress, groups: list[Group], targets: list[FloatArray], weights: list[FloatArray]) -> FloatArray:
    """Fit groups by a nonnegative table with all earlier answers fixed."""
    cells = (groups or done.groups)[0].cells
    kept = np.concatenate([*done.fitted, np.zeros((len((targets or done.fitted)[0]), 0))], axis=1)
    aim = np.concatenate([kept, *targets], axis=1)
    free = np.full((1, aim.shape[1] - kept.shape[1]), np.inf) * np.ones((len(aim), 1))
    high = np.full((len(aim), cells), np.inf)
    for group, fitted in zip(done.groups, done.fitted):
        high[group_spread(group, (fitted <= 0.0).astype(np.float64)) > 0] = 0.0
    problem = BoxedProblem(
        precision=np.zeros((1, cells)),
        target=np.zeros((1, cells)),
        low=np.zeros((1, cells)),
        high=high,
        weight=np.concatenate([np.ones((1, kept.shape[1])), *weights], axis=1),
        answer=aim,
        floor=np.concatenate([kept, -free], axis=1),
        ceiling=np.concatenate([kept, free], axis=1),
    )
    rows = sparse.vstack([group.rows for group in (*done.groups, *groups)], format="csr")
    return done.solve(problem, rows_system(rows)).x


def table_of(done: Progress, workload: Workload) -> FloatArray:
    """Return a table with all the fitted answers."""
    for group, fitted in zip(done.groups, done.fitted):
        if group.single and group.labels is not None:
            return fitted[:, group.labels]
    return over_cells(done, [], [], [])


def meet(group: Group, other: Group) -> tuple[IntArray, IntArray]:
    """Return query labels of the finest partition coarser than both."""
    assert group.labels is not None
    assert other.labels is not None
    nodes = group.size + other.size
    ones = np.ones(group.cells, dtype=np.int8)
    edges = sparse.coo_array((ones, (group.labels, group.size + other.labels)), shape=(nodes, nodes))
    from scipy.sparse.csgraph import connected_components

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
    """Return whether margins that agree always have a nonnegative table (T-ACYCLIC).

    They agree on their overlaps. Graham's reduction: drop coordinates that only one margin has and margins inside
    another, until nothing or a cycle is left.
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
