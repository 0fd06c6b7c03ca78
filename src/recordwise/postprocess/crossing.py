"""The best linear unbiased fit of answers of which some cross, so that they form no tree (T-FITVAR): by the solvers of ``ols``."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from recordwise.exact.arithmetic import FloatArray
from recordwise.postprocess.least_squares import ols
from recordwise.postprocess.workload import Workload

MOST_CELLS = 1500
"""With more cells the covariance matrix is not computed, and variances are those of draws."""


@dataclass(frozen=True, slots=True, eq=False)
class CrossingWeights:
    """The linear fit for given variances; answers without a cell stay as they are."""

    variances: FloatArray
    workload: Workload
    """The answers that have a cell."""
    asked: Any
    """Which answers these are."""
    rows: Any
    """Their cells."""
    fitted: FloatArray | None
    """The variances of the fitted answers; None if there are too many cells."""
    solved: FloatArray | None
    """The covariances of the answers that have a cell with the fitted cells; None if there are too many."""

    @classmethod
    def of(cls, rows: Any, variances: FloatArray, workload: Workload | None = None) -> "CrossingWeights":
        """The fit of answers that are sums of cells, a row each; of their workload, if it was made before."""
        asked = np.diff(rows.indptr) > 0
        used = sparse.csr_array(rows[asked])
        made = Workload.matrix(used) if workload is None else workload
        if rows.shape[1] > MOST_CELLS:
            return cls(variances, made, asked, used, None, None)
        dense = used.toarray()
        # Cells that no answer tells apart have no variance of their own, but every answer has one.
        inverse = np.linalg.pinv(dense.T @ (dense / variances[asked, None]), hermitian=True)
        solved, fitted = dense @ inverse, variances.copy()
        fitted[asked] = np.einsum("ij,ij->i", solved, dense)
        return cls(variances, made, asked, used, fitted, solved)

    def fit(self, answers: FloatArray) -> FloatArray:
        """The fitted answers, of one draw or of several (last axis: answers)."""
        asked, result = self.asked, np.array(answers, dtype=np.float64)
        result[..., asked] = ols(self.workload, answers[..., asked], self.variances[asked], noise="gaussian").fitted
        return result

    def blocks(self, most: int) -> Iterator[tuple[int, FloatArray]]:
        """The weights of all answers in the fits of some, at most so many at a time, and where those begin."""
        assert self.solved is not None
        answers = len(self.solved)
        size = max(1, most // max(answers, 1))
        for start in range(0, answers, size):
            yield start, (self.rows @ self.solved[start : start + size].T).T / self.variances[self.asked]

    def untouched(self) -> Any:
        """Answers that no other one says anything about: with a cell that only they have, or that is only theirs once such
        answers are left out."""
        alone, left = ~self.asked, np.ones(self.rows.shape[0], dtype=bool)
        while True:
            single = left.astype(np.float64) @ self.rows == 1
            free = left & (self.rows @ single.astype(np.float64) > 0)
            if not np.any(free):
                break
            left &= ~free
        alone[np.flatnonzero(self.asked)[~left]] = True
        return alone
