"""Quantiles from a binary tree of noisy counts over a public grid."""

from recordwise.quantiles.grid import Grid
from recordwise.quantiles.tree_quantile import NoisyTrees, QuantileEstimates, TreeQuantile

__all__ = ["Grid", "NoisyTrees", "QuantileEstimates", "TreeQuantile"]
