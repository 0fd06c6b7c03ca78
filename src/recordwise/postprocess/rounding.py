"""Controlled rounding by a network flow: all cells and sums become integers at once, each the floor or ceiling of its value.

Two families of nested groups make a network: the sums of one family send flow down to the cells, those of the other collect it. Its
constraint matrix is totally unimodular, so the cheapest flow within the rounded bounds is whole (T-ROUND).
"""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from recordwise.errors import ParameterError, SolverError
from recordwise.postprocess.solvers.boxed import FloatArray, IntArray
from recordwise.postprocess.workload import Group, Workload, group_sums

WHOLE = 1e-6
RELATIVE = 1e-10
"""A value this close to a whole number counts as one: fitted sums are exact up to rounding only."""


def controlled_rounding(workload: Workload, x: FloatArray) -> IntArray:
    """Integer cells whose sums over every query are the floor or the ceiling of the fitted ones."""
    if len(x) != workload.cells:
        raise ParameterError(parameter="x", problem=f"must have {workload.cells} cells, not {len(x)}")
    two_families(workload)
    base, rest = split(x)
    if not np.any(rest):
        return base
    counts = base + cheapest(workload, base, rest, x)
    verify(workload, counts, x)
    return counts


def split(x: FloatArray) -> tuple[IntArray, FloatArray]:
    """The whole part, and what is left of each cell; what is nearly whole is whole."""
    near = np.rint(x)
    whole = np.where(nearly_whole(x), near, np.floor(x))
    return whole.astype(np.int64), np.maximum(x - whole, 0.0)


def two_families(workload: Workload) -> tuple[list[Group], list[Group]]:
    """The groups in two families, nested each; refused where there are none."""
    for group in workload.groups:
        if group.labels is None:
            raise refused(f"group '{group.name}' is not a partition of the cells")
    colour: dict[int, int] = {}
    for start in range(len(workload.groups)):
        stack = [(start, colour.get(start, 0))] if start not in colour else []
        while stack:
            at, wanted = stack.pop()
            if at in colour:
                if colour[at] != wanted:
                    raise refused(f"group '{workload.groups[at].name}' cuts across groups that cut across each other")
                continue
            colour[at] = wanted
            stack += [(other, 1 - wanted) for other in range(len(workload.groups)) if cross(workload, at, other)]
    families = [[group for k, group in enumerate(workload.groups) if colour[k] == side] for side in (0, 1)]
    return families[0], families[1]


def cross(workload: Workload, first: int, second: int) -> bool:
    """Whether neither of two groups refines the other."""
    one, two = workload.groups[first], workload.groups[second]
    return not (one.refines(two) or two.refines(one))


def refused(why: str) -> ParameterError:
    return ParameterError(
        parameter="workload",
        problem=f"is not two families of nested groups: {why}; whole records with all these sums need not exist",
        advice="Keep fewer groups, or use to_weighted_records.",
    )


def cheapest(workload: Workload, base: IntArray, rest: FloatArray, x: FloatArray) -> IntArray:
    """The rounding nearest to the table: 0 or 1 more in each cell that is not whole."""
    open_cells = np.flatnonzero(rest)
    rows, low, high = [], [], []
    for group in workload.groups:
        if group.single:
            continue
        already = group_sums(group, base.astype(np.float64))
        floor, ceiling = bounds_of(group_sums(group, x))
        rows.append(sparse.csr_array(group.rows)[:, open_cells])
        low.append(floor - already)
        high.append(ceiling - already)
    chosen = np.zeros(len(base), dtype=np.int64)
    if not rows:
        chosen[open_cells] = np.rint(rest[open_cells]).astype(np.int64)
        return chosen
    matrix, upper, lower = sparse.vstack(rows, format="csr"), np.concatenate(high), np.concatenate(low)
    found = linprog(
        1.0 - 2.0 * rest[open_cells],
        A_ub=sparse.vstack([matrix, -matrix], format="csr"),
        b_ub=np.concatenate([upper, -lower]),
        bounds=(0, 1),
        method="highs-ds",
    )
    if found.x is None:
        raise SolverError(problem="the network flow of controlled rounding", status=str(found.message))
    chosen[open_cells] = np.rint(found.x).astype(np.int64)
    return chosen


def bounds_of(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Floor and ceiling, equal where a value is nearly whole."""
    near, whole = np.rint(values), nearly_whole(values)
    return np.where(whole, near, np.floor(values)), np.where(whole, near, np.ceil(values))


def nearly_whole(values: FloatArray) -> NDArray[np.bool_]:
    """Whole but for what a fit leaves."""
    return np.asarray(np.abs(values - np.rint(values)) <= WHOLE + RELATIVE * np.abs(values))


def verify(workload: Workload, counts: IntArray, x: FloatArray) -> None:
    """Check the whole answer in whole numbers; a fractional flow is an error, not a table."""
    for group in workload.groups:
        floor, ceiling = bounds_of(group_sums(group, x))
        sums: NDArray[np.float64] = group_sums(group, counts.astype(np.float64))
        if np.any(counts < 0) or np.any(sums < floor) or np.any(sums > ceiling):
            raise SolverError(problem="the network flow of controlled rounding", status="its vertex is not whole")
