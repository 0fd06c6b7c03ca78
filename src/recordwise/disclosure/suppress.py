"""Complementary suppression: withhold more cells until none can be computed too closely.

For every cell that a rule withholds there must be a table that agrees with all published cells and has the cell larger by what
the rule demands, and one that has it smaller. Such a table is the true one plus a change that adds up to nothing in every
equation. The cheapest change is a linear program; the cells that it changes are withheld too. What was found stays feasible when
more cells are withheld, so one pass over the cells is enough.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from recordwise.disclosure.bounds import TOLERANCE, System, blocks, feasible_intervals, solver, start, unit
from recordwise.exact.arithmetic import FloatArray
from recordwise.progress import tracked


@dataclass(frozen=True, slots=True, eq=False)
class Suppression:
    """Which cells are withheld, and by what."""

    withheld: Any
    """Whether each cell is withheld."""
    primary: Any
    """Whether the rule itself withholds it."""
    unprotected: Any
    """The positions of cells that no pattern protects."""


def complementary_suppression(
    equations: Any, values: FloatArray, primary: Any, upward: FloatArray, downward: FloatArray, *, hidden: Any = None
) -> Suppression:
    """Withhold cells until each primary one is protected.

    Args:
        equations: Each row times the cells is 0.
        values: The exact values, at least 0.
        primary: Whether a rule withholds each cell.
        upward: How far above its value each primary cell must be able to lie.
        downward: How far below its value each primary cell must be able to lie; at most the value counts.
        hidden: Whether each cell is never published.

    Returns:
        The cells withheld.
    """
    primary = np.asarray(primary, np.bool_)
    unseen = np.zeros(len(values), np.bool_) if hidden is None else np.asarray(hidden, np.bool_)
    # Zeros are published: everybody knows where nobody is.
    must = (values == 0) & ~primary & ~unseen
    withheld, unprotected = primary | unseen, []
    whole = System(np.where(must, values, 0.0), np.where(must, values, np.inf), equations)
    for block in blocks(whole):
        if primary[block.cells].any():
            own = _Pattern(block.equations, values[block.cells], primary[block.cells], unseen[block.cells])
            unprotected += block.cells[own.protect(upward[block.cells], downward[block.cells])].tolist()
            withheld[block.cells] = own.withheld
    return Suppression(withheld, primary, np.array(sorted(unprotected), np.int64))


class _Pattern:
    """The withheld cells of one block."""

    def __init__(self, equations: Any, values: FloatArray, primary: Any, hidden: Any) -> None:
        self.size = unit(values)
        self.values, self.primary, self.withheld = values / self.size, primary, primary | hidden
        self._equations = sparse.csc_array(equations)
        self._price = (1.0 + np.log1p(values)) / np.maximum(values, 1.0)
        self._price /= self._price.mean()
        self._highs = start()
        count = len(values)
        # A change is a rise and a fall of each cell; a cell can fall by no more than it has.
        doubled = sparse.csc_array(sparse.hstack([self._equations, -self._equations]))
        library = solver()
        model = library.HighsLp()
        model.num_col_, model.num_row_ = 2 * count, doubled.shape[0]
        model.col_cost_ = np.tile(np.where(self.withheld, 0.0, self._price), 2)
        model.col_lower_ = np.zeros(2 * count)
        model.col_upper_ = np.concatenate([np.full(count, np.inf), self.values])
        model.row_lower_ = model.row_upper_ = np.zeros(doubled.shape[0])
        model.a_matrix_.format_ = library.MatrixFormat.kColwise
        model.a_matrix_.start_, model.a_matrix_.index_, model.a_matrix_.value_ = (
            doubled.indptr,
            doubled.indices,
            doubled.data,
        )
        self._highs.passModel(model)
        self._optimal = library.HighsModelStatus.kOptimal
        self.rise, self.fall = np.zeros(count), np.zeros(count)
        """How far each cell can rise and fall by the changes found."""

    def protect(self, upward: FloatArray, downward: FloatArray) -> list[int]:
        """Withhold what each primary cell needs; return those without any protection."""
        failed = []
        up, down = upward / self.size, np.minimum(downward / self.size, self.values)
        order = np.flatnonzero(self.primary)
        for cell in tracked(order[np.argsort(-up[order], kind="stable")].tolist(), "choosing what else to withhold"):
            for need, reached, sign in ((up, self.rise, 1), (down, self.fall, -1)):
                if reached[cell] < need[cell] - TOLERANCE and not self._change(cell, sign, float(need[cell])):
                    failed.append(cell)
        return sorted(set(failed))

    def _change(self, cell: int, sign: int, amount: float) -> bool:
        """Find the cheapest change by which a cell moves by an amount, and withhold what it changes."""
        count = len(self.values)
        own, other = (cell, cell + count) if sign > 0 else (cell + count, cell)
        limits = {own: np.inf if sign > 0 else float(self.values[cell]), other: self._limit(other)}
        # From the empty basis: that of another cell is farther away.
        self._highs.clearSolver()
        self._highs.changeColBounds(own, amount, amount)
        self._highs.changeColBounds(other, 0.0, 0.0)
        self._highs.run()
        solved = bool(self._highs.getModelStatus() == self._optimal)
        if solved:
            point = np.asarray(self._highs.getSolution().col_value)
            change = point[:count] - point[count:]
            np.maximum(self.rise, change, out=self.rise)
            np.maximum(self.fall, -change, out=self.fall)
            new = np.flatnonzero((np.abs(change) > TOLERANCE) & ~self.withheld)
            self.withheld[new] = True
            for column in (*new.tolist(), *(new + count).tolist()):
                self._highs.changeColCost(column, 0.0)
        for column, limit in limits.items():
            self._highs.changeColBounds(column, 0.0, limit)
        return solved

    def _limit(self, column: int) -> float:
        count = len(self.values)
        return np.inf if column < count else float(self.values[column - count])


def audit(system: System, values: FloatArray, primary: Any, upward: FloatArray, downward: FloatArray) -> Any:
    """Return which primary cells can be computed within their protection.

    Args:
        system: What is published.
        values: The exact values.
        primary: The positions of the cells to be protected.
        upward: How far above its value each of them must be able to lie.
        downward: How far below.

    Returns:
        Whether each is exposed.
    """
    low, high = feasible_intervals(system, primary)
    exact = values[primary]
    slack = 10 * TOLERANCE * unit(values)
    return (high < exact + upward - slack) | (low > exact - np.minimum(downward, exact) + slack)
