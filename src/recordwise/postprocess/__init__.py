"""Nonnegative tables that add up, and microdata, from noisy answers. Post-processing costs no privacy budget."""

from recordwise.postprocess.laws import ContinuousGaussian, ContinuousLaplace, NoiseLaw
from recordwise.postprocess.least_squares import nnls, ols
from recordwise.postprocess.maxfit import max_fit
from recordwise.postprocess.result import Fit
from recordwise.postprocess.reweighted import reweighted_fit
from recordwise.postprocess.sequential import sequential_fit
from recordwise.postprocess.workload import Group, Workload

__all__ = [
    "ContinuousGaussian",
    "ContinuousLaplace",
    "Fit",
    "Group",
    "NoiseLaw",
    "Workload",
    "max_fit",
    "nnls",
    "ols",
    "reweighted_fit",
    "sequential_fit",
]
