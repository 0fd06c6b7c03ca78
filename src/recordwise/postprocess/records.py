"""Converts fitted tables to records: with positive weights, or as integer counts by controlled rounding.

Controlled rounding is a network flow: the sums of one family of nested groups send flow down to the cells, and those of another
collect it. The constraint matrix is totally unimodular, so the cheapest flow within the rounded bounds is integral (T-ROUND).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.optimize import linprog

from recordwise.errors import ParameterError, SolverError
from recordwise.exact.text import FORMULA
from recordwise.postprocess.solvers.boxed import FloatArray, IntArray
from recordwise.postprocess.workload import Group, Workload, group_sums

WEIGHT = "weight"


def to_weighted_records(x: ArrayLike, domain: Mapping[str, Sequence[Any]]) -> Any:
    """One weighted record for each nonempty cell, as an Arrow table.

    ``domain`` lists the values of each column; the cells are their combinations in C order. With as many values in every column as
    there are cells, the columns are read row by row instead.

    Args:
        x: A fitted table, cell by cell.
        domain: The values of each column, by its name.

    Returns:
        The records, with a column ``weight``.
    """
    import pyarrow

    weights = read_table(x)
    columns = columns_of(domain, len(weights))
    kept = np.flatnonzero(weights > 0)
    made = {name: pyarrow.array([values[k] for k in places[kept]]) for name, (values, places) in columns.items()}
    return pyarrow.table(made | {WEIGHT: weights[kept]})


def to_integer_records(workload: Workload, x: ArrayLike, domain: Mapping[str, Sequence[Any]]) -> Any:
    """Whole records: every cell and every sum of the workload is rounded up or down, and all still add up (T-ROUND).

    Possible when the groups are two families of nested ones, such as regions by levels and industries by levels; refused otherwise.

    Args:
        workload: The sums that must be kept.
        x: A fitted table, cell by cell.
        domain: The values of each column, by its name.

    Returns:
        One record for each unit of each cell, as an Arrow table.
    """
    import pyarrow

    counts = controlled_rounding(workload, read_table(x))
    columns = columns_of(domain, len(counts))
    cells = np.repeat(np.arange(len(counts)), counts)
    return pyarrow.table(
        {name: pyarrow.array([values[k] for k in places[cells]]) for name, (values, places) in columns.items()}
    )


def save_records(records: Any, path: str | Path) -> None:
    """Write records as Parquet or CSV, according to the file extension.

    Args:
        records: The records, as an Arrow table.
        path: A file that ends in .parquet or .csv.
    """
    from pyarrow import csv, parquet

    ending = Path(path).suffix.lower()
    if ending == ".parquet":
        parquet.write_table(records, path)
    elif ending == ".csv":
        _check_formulas(records)
        csv.write_csv(records, path)
    else:
        raise ParameterError(parameter="path", problem=f"must end in .parquet or .csv, not '{ending}'")


def _check_formulas(records: Any) -> None:
    """Refuse text that a spreadsheet would run: records are read by programs, so it is not changed."""
    import pyarrow
    from pyarrow import compute

    texts = [name for name, kind in zip(records.column_names, records.schema.types) if pyarrow.types.is_string(kind)]
    for name in texts:
        if compute.any(compute.match_substring_regex(records.column(name), FORMULA)).as_py():
            raise ParameterError(
                parameter="path",
                problem=f"is CSV, and a spreadsheet would run some values of '{name}' as formulas",
                advice="Write Parquet.",
            )


def read_table(x: ArrayLike) -> FloatArray:
    """One fitted table: finite and nonnegative."""
    values = np.asarray(x, dtype=np.float64)
    if values.ndim != 1 or not np.all(np.isfinite(values)):
        raise ParameterError(parameter="x", problem="must be one table of finite cells", advice="Choose a draw.")
    if np.any(values < 0):
        raise ParameterError(
            parameter="x",
            problem="has negative cells, which cannot become records",
            advice="Fit it with nnls or another nonnegative method.",
        )
    return values


def columns_of(domain: Mapping[str, Sequence[Any]], cells: int) -> dict[str, tuple[Sequence[Any], IntArray]]:
    """For each column, its values and the index of the value that each cell has."""
    if not domain or WEIGHT in domain:
        raise ParameterError(
            parameter="domain", problem=f"must name at least one column, and none may be named '{WEIGHT}'"
        )
    shape = tuple(len(values) for values in domain.values())
    if int(np.prod(shape)) == cells:
        places = np.indices(shape).reshape(len(shape), cells)
        return {name: (values, places[k]) for k, (name, values) in enumerate(domain.items())}
    if all(length == cells for length in shape):
        return {name: (values, np.arange(cells)) for name, values in domain.items()}
    raise ParameterError(
        parameter="domain", problem=f"has {' x '.join(map(str, shape))} combinations, the table {cells} cells"
    )


WHOLE = 1e-6
RELATIVE = 1e-10
"""A value this close to a whole number counts as whole, because fitted sums are exact only up to rounding."""


def controlled_rounding(workload: Workload, x: FloatArray) -> IntArray:
    """Integer cells whose sums over every query are the floor or the ceiling of the fitted ones.

    Args:
        workload: The sums that must be kept.
        x: A fitted table, cell by cell.

    Returns:
        Integers, cell by cell.
    """
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
    """The whole part and the remainder of each cell; a nearly whole value counts as whole."""
    near = np.rint(x)
    whole = np.where(nearly_whole(x), near, np.floor(x))
    return whole.astype(np.int64), np.maximum(x - whole, 0.0)


def two_families(workload: Workload) -> tuple[list[Group], list[Group]]:
    """The groups divided into two nested families; an error if that is impossible."""
    for group in workload.groups:
        if group.labels is None:
            raise refused(f"group '{group.name}' is not a partition of the cells")
    color: dict[int, int] = {}
    for start in range(len(workload.groups)):
        stack = [(start, color.get(start, 0))] if start not in color else []
        while stack:
            at, wanted = stack.pop()
            if at in color:
                if color[at] != wanted:
                    raise refused(f"group '{workload.groups[at].name}' cuts across groups that cut across each other")
                continue
            color[at] = wanted
            stack += [(other, 1 - wanted) for other in range(len(workload.groups)) if cross(workload, at, other)]
    families = [[group for k, group in enumerate(workload.groups) if color[k] == side] for side in (0, 1)]
    return families[0], families[1]


def cross(workload: Workload, first: int, second: int) -> bool:
    """Whether neither of two groups refines the other."""
    one, two = workload.groups[first], workload.groups[second]
    return not (one.refines(two) or two.refines(one))


def refused(why: str) -> ParameterError:
    return ParameterError(
        parameter="workload",
        problem=f"is not two families of nested groups: {why}; whole records with all these sums may not exist",
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
    """Whole except for the error a fit leaves."""
    return np.asarray(np.abs(values - np.rint(values)) <= WHOLE + RELATIVE * np.abs(values))


def verify(workload: Workload, counts: IntArray, x: FloatArray) -> None:
    """Check the whole answer in integers; a fractional flow is an error, not a table."""
    for group in workload.groups:
        floor, ceiling = bounds_of(group_sums(group, x))
        sums: NDArray[np.float64] = group_sums(group, counts.astype(np.float64))
        if np.any(counts < 0) or np.any(sums < floor) or np.any(sums > ceiling):
            raise SolverError(problem="the network flow of controlled rounding", status="its vertex is not whole")
