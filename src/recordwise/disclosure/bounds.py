"""What can be computed about cells from equations and bounds.

A system has cells, what is known of each, and equations between them: a total is the sum of its parts. The feasible interval of
a cell has every value that it takes in some table that agrees with all that was published. Equations that share no unknown cell
are solved apart, which is exact. Intervals come from linear programs: for whole numbers they can be wider than necessary, never
narrower.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from recordwise.errors import ExtraError, ParameterError, own_argument_errors
from recordwise.exact.arithmetic import FloatArray
from recordwise.progress import tracked

TOLERANCE = 1e-6
"""What the solver may be off by, where numbers have the size it is made for."""
LARGEST = 1e8
"""Larger numbers are solved in larger units."""
MOST_ROUNDS = 50
LARGEST_BLOCK = 60_000
"""Unknown cells of one block. A larger one would take hours on two cores."""


def solver() -> Any:
    """Return the library of linear programs."""
    try:
        return import_module("highspy")
    except ImportError:
        raise ExtraError(what="an attack on tables", extra="attack") from None


def unit(*values: FloatArray) -> float:
    """Return the unit in which the solver is given numbers."""
    finite = [np.abs(each[np.isfinite(each)]) for each in values]
    return max(1.0, *(float(each.max(initial=0.0)) / LARGEST for each in finite))


@dataclass(frozen=True, slots=True, eq=False)
class System:
    """Bounds of cells, and equations between them."""

    low: FloatArray
    high: FloatArray
    equations: Any
    """A sparse matrix; each row times the cells is 0."""

    @property
    def free(self) -> Any:
        """Return which cells are not known exactly."""
        return self.high > self.low

    def contains(self, values: FloatArray) -> bool:
        """Return whether values agree with bounds and equations."""
        slack = TOLERANCE * unit(values)
        inside = np.all((values >= self.low - slack) & (values <= self.high + slack))
        return bool(inside and np.all(np.abs(self.equations @ values) <= slack * 10))


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Unknown cells that equations connect, and nothing else."""

    cells: Any
    """Their positions."""
    equations: Any
    right: FloatArray
    """What the known cells leave over, with the sign changed."""


def tighten(system: System) -> System:
    """Narrow the bounds by each equation alone until nothing changes.

    Raises:
        ParameterError: No table agrees with all of it.
    """
    matrix = sparse.csr_array(system.equations)
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    low, high = system.low.astype(np.float64), system.high.astype(np.float64)
    for _ in range(MOST_ROUNDS):
        new_low, new_high = _one_round(matrix, rows, low, high)
        if np.any(new_low > new_high + TOLERANCE * unit(new_low, new_high)):
            raise infeasible()
        crossed = new_low > new_high
        new_low = np.where(crossed, new_high, new_low)
        done = np.array_equal(new_low, low) and np.array_equal(new_high, high)
        low, high = new_low, new_high
        if done:
            break
    return System(low, high, system.equations)


def infeasible() -> ParameterError:
    """Return the error for tables that contradict each other."""
    return ParameterError(
        parameter="tables",
        problem="contradict each other: no values agree with all of them",
        advice="Check the description: what adds up to what, the rounding, and whether cells that are not listed are zero.",
    )


def _one_round(matrix: Any, rows: Any, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return bounds after each equation was used once."""
    weight, cells = matrix.data, matrix.indices
    least = np.where(weight > 0, weight * low[cells], weight * high[cells])
    most = np.where(weight > 0, weight * high[cells], weight * low[cells])
    others_least = _without_own(least, rows, matrix.shape[0], -np.inf)
    others_most = _without_own(most, rows, matrix.shape[0], np.inf)
    # weight * x = -(the others): x lies between -others_most / weight and -others_least / weight, in either order.
    one, two = -others_most / weight, -others_least / weight
    new_low, new_high = low.copy(), high.copy()
    np.maximum.at(new_low, cells, np.minimum(one, two))
    np.minimum.at(new_high, cells, np.maximum(one, two))
    return new_low, new_high


def _without_own(values: FloatArray, rows: Any, count: int, infinite: float) -> FloatArray:
    """Return each row's sum without the entry itself."""
    endless = np.isinf(values)
    finite = np.where(endless, 0.0, values)
    total = np.bincount(rows, weights=finite, minlength=count)[rows]
    others = np.bincount(rows, weights=endless, minlength=count)[rows] - endless
    return np.where(others > 0, infinite, total - finite)


def blocks(system: System) -> list[Block]:
    """Return the unknown cells in blocks that share no equation."""
    free = np.flatnonzero(system.free)
    matrix = sparse.csr_array(system.equations)[:, free]
    used = np.diff(matrix.indptr) > 0
    matrix = matrix[used]
    known = np.where(system.free, 0.0, system.low)
    right = -(sparse.csr_array(system.equations) @ known)[used]
    rows, columns = matrix.shape
    joint: Any = sparse.coo_array((rows + columns, rows + columns))
    if rows:
        entries = matrix.tocoo()
        joint = sparse.coo_array((entries.data, (entries.row, rows + entries.col)), shape=joint.shape)
    count, labels = connected_components(joint, directed=False)
    row_labels, cell_labels = labels[:rows], labels[rows:]
    by_row, by_cell = _positions(row_labels, count), _positions(cell_labels, count)
    return [Block(free[own], matrix[lines][:, own], right[lines]) for lines, own in zip(by_row, by_cell) if len(own)]


def _positions(labels: Any, count: int) -> list[Any]:
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.searchsorted(labels[order], np.arange(1, count)))


@own_argument_errors
def feasible_intervals(system: System, targets: Any) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and the largest feasible value of cells.

    Args:
        system: What is known.
        targets: The positions of the cells that are attacked.

    Returns:
        The lower and upper ends for the targets, in their order.

    Raises:
        ParameterError: The tables contradict each other, or a block of cells is too large.
    """
    narrow = tighten(system)
    low, high = narrow.low.copy(), narrow.high.copy()
    wanted = np.zeros(len(low), np.bool_)
    wanted[targets] = True
    parts = [each for each in blocks(narrow) if wanted[each.cells].any()]
    for part in tracked(parts, "computing what can be told"):
        if len(part.cells) > LARGEST_BLOCK:
            raise ParameterError(
                parameter="tables",
                problem=f"have {len(part.cells):,} withheld cells that depend on each other",
                advice=f"Attack fewer places at a time; up to {LARGEST_BLOCK:,} such cells work.",
            )
        for position, lower, upper in ends(part, narrow.low, narrow.high, wanted):
            low[position], high[position] = max(lower, low[position]), min(upper, high[position])
    return low[targets], high[targets]


def ends(block: Block, low: FloatArray, high: FloatArray, wanted: Any) -> Iterator[tuple[int, float, float]]:
    """Solve two linear programs for each wanted cell of a block."""
    own_low, own_high = low[block.cells], high[block.cells]
    if not block.equations.shape[0]:
        yield from zip(block.cells.tolist(), own_low.tolist(), own_high.tolist())
        return
    size = unit(block.right, own_low)
    program = Program(block.equations, block.right / size, own_low / size, own_high / size)
    seen_low, seen_high = np.full(len(own_low), np.inf), np.full(len(own_low), -np.inf)
    for column in tracked(np.flatnonzero(wanted[block.cells]).tolist(), "computing what can be told"):
        found = []
        for sign, bound, seen in ((1.0, own_low, seen_low), (-1.0, own_high, seen_high)):
            reached = seen[column] * size
            if np.isfinite(reached) and abs(reached - bound[column]) <= TOLERANCE * size:
                found.append(float(bound[column]))
                continue
            value, point = program.least(column, sign)
            found.append(sign * value * size)
            if point is not None:
                np.minimum(seen_low, point, out=seen_low)
                np.maximum(seen_high, point, out=seen_high)
        yield int(block.cells[column]), found[0], found[1]


class Program:
    """One block in the solver's memory, solved again and again."""

    def __init__(self, equations: Any, right: FloatArray, low: FloatArray, high: FloatArray) -> None:
        self._highs, self._library = start(), solver()
        columns = sparse.csc_array(equations)
        model = self._library.HighsLp()
        model.num_col_, model.num_row_ = columns.shape[1], columns.shape[0]
        model.col_cost_ = np.zeros(columns.shape[1])
        model.col_lower_, model.col_upper_ = low, high
        model.row_lower_ = model.row_upper_ = right
        model.a_matrix_.format_ = self._library.MatrixFormat.kColwise
        model.a_matrix_.start_, model.a_matrix_.index_ = columns.indptr, columns.indices
        model.a_matrix_.value_ = columns.data
        self._highs.passModel(model)

    def least(self, column: int, sign: float) -> tuple[float, FloatArray | None]:
        """Return the least value of a cell or its negative, and where.

        Raises:
            ParameterError: There is no solution.
        """
        self._highs.changeColCost(column, sign)
        self._highs.run()
        status = self._highs.getModelStatus()
        self._highs.changeColCost(column, 0.0)
        if status == self._library.HighsModelStatus.kOptimal:
            point = np.asarray(self._highs.getSolution().col_value)
            return sign * float(point[column]), point
        if status in (
            self._library.HighsModelStatus.kUnbounded,
            self._library.HighsModelStatus.kUnboundedOrInfeasible,
        ):
            return -np.inf, None
        raise infeasible()


def start() -> Any:
    """Return a silent solver on one thread."""
    highs = solver().Highs()
    for name, value in (("output_flag", False), ("threads", 1), ("presolve", "off"), ("solver", "simplex")):
        highs.setOptionValue(name, value)
    return highs
