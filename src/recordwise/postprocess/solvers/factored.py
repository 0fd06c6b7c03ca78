"""Sums that cross, but of which few share a cell: their Newton systems are sparse and are factored as such.

The tables of two codes with incomplete keys are of this kind. Which sums share a cell is known in advance, and so is how much of a
system fills up while it is eliminated.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from recordwise.postprocess.solvers.boxed import FloatArray, IntArray, Solver

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
    if shared.nnz > MOST_ENTRIES or filled(sparse.csr_array(shared[order][:, order])) > MOST_FILL:
        return None
    return FactoredSystem(rows=rows, order=order)


def filled(pattern: Any) -> int:
    """How many numbers the factor of a system has; too many where nothing can count them."""
    try:
        from recordwise.postprocess.solvers.tree_kernel import fill
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
        """One factorization for each different system; rounding is removed by a second solution, for the residual."""
        count = max(len(response), len(diagonal))
        systems = [self._factored(response[k % len(response)], diagonal[k % len(diagonal)]) for k in range(count)]

        def solve(right: FloatArray) -> FloatArray:
            result = np.empty_like(right)
            for k, row in enumerate(right[:, self.order]):
                matrix, factors = systems[k % count]
                found = factors.solve(row)
                result[k, self.order] = found + factors.solve(row - matrix @ found)
            return result

        return solve

    def _factored(self, response: FloatArray, diagonal: FloatArray) -> tuple[Any, Any]:
        """Cells that are at a bound do not respond, and connect nothing."""
        rows, by_cell = self.ordered
        weighted = rows.copy()
        weighted.data *= response[rows.indices]
        if np.count_nonzero(response) < MOSTLY * len(response):
            weighted.eliminate_zeros()
        # A symmetric matrix is the same by rows and by columns.
        matrix = sparse.csr_array(weighted @ by_cell + sparse.diags_array(diagonal[self.order], format="csr")).T
        return matrix, splu(sparse.csc_array(matrix), permc_spec="NATURAL", **SYMMETRIC)
