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

    rows: Any
    variances: FloatArray
    fitted: FloatArray | None
    """The variances of the fitted answers; None if there are too many cells."""

    @classmethod
    def of(cls, rows: Any, variances: FloatArray) -> "CrossingWeights":
        """The fit of answers that are sums of cells, a row each."""
        asked = np.diff(rows.indptr) > 0
        if rows.shape[1] > MOST_CELLS:
            return cls(rows, variances, None)
        dense = rows[asked].toarray()
        # Cells that no answer tells apart have no variance of their own, but every answer has one.
        inverse = np.linalg.pinv(dense.T @ (dense / variances[asked, None]), hermitian=True)
        fitted = variances.copy()
        fitted[asked] = np.einsum("ij,jk,ik->i", dense, inverse, dense)
        return cls(rows, variances, fitted)

    def fit(self, answers: FloatArray) -> FloatArray:
        """The fitted answers, of one draw or of several (last axis: answers)."""
        asked = np.diff(self.rows.indptr) > 0
        workload = Workload.matrix(sparse.csr_array(self.rows[asked]))
        result = np.array(answers, dtype=np.float64)
        result[..., asked] = ols(workload, answers[..., asked], self.variances[asked], noise="gaussian").fitted
        return result
