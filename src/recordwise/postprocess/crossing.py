"""The best linear unbiased fit of answers of which some cross, so that they form no tree (T-FITVAR): by the solvers of ``ols``."""

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
    fitted: FloatArray | None
    """The variances of the fitted answers; None if there are too many cells."""

    @classmethod
    def of(cls, rows: Any, variances: FloatArray, workload: Workload | None = None) -> "CrossingWeights":
        """The fit of answers that are sums of cells, a row each; of their workload, if it was made before."""
        asked = np.diff(rows.indptr) > 0
        made = Workload.matrix(sparse.csr_array(rows[asked])) if workload is None else workload
        if rows.shape[1] > MOST_CELLS:
            return cls(variances, made, asked, None)
        dense = rows[asked].toarray()
        # Cells that no answer tells apart have no variance of their own, but every answer has one.
        inverse = np.linalg.pinv(dense.T @ (dense / variances[asked, None]), hermitian=True)
        fitted = variances.copy()
        fitted[asked] = np.einsum("ij,jk,ik->i", dense, inverse, dense)
        return cls(variances, made, asked, fitted)

    def fit(self, answers: FloatArray) -> FloatArray:
        """The fitted answers, of one draw or of several (last axis: answers)."""
        asked, result = self.asked, np.array(answers, dtype=np.float64)
        result[..., asked] = ols(self.workload, answers[..., asked], self.variances[asked], noise="gaussian").fitted
        return result
