"""Relative errors of released totals, and the share of records that pay more than the nominal loss."""

from fractions import Fraction
from typing import Any

import numpy as np

import recordwise as rw

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
ROUNDING = 1e-9
"""Losses are rounded up in the last digits; a loss of exactly rho is not above rho."""


def relative_errors(estimates: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """|estimate - exact|/exact for each query and run; queries with nothing to find are left out."""
    asked = exact > 0
    return (np.abs(estimates[..., asked] - exact[asked]) / exact[asked]).ravel()


def spread(errors: np.ndarray) -> dict[str, float]:
    """Five quantiles of the errors, by name."""
    found = np.quantile(errors, QUANTILES)
    return {f"are_{round(100 * p):02d}": float(value) for p, value in zip(QUANTILES, found)}


def released(mechanism: Any, totals: np.ndarray, runs: int, *, step: Fraction, rng: rw.noise.BitSource) -> np.ndarray:
    """Noisy totals, one row for each run, in the measure's units."""
    repeated = np.broadcast_to(totals, (runs, len(totals)))
    return np.asarray(mechanism.release(np.ascontiguousarray(repeated), step=step, rng=rng).values())


def share_above(losses: np.ndarray, rho: float) -> float:
    """The share of records with a loss above rho."""
    return float(np.mean(losses > rho * (1 + ROUNDING)))


def loss_cdf(losses: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """For each edge the share of records with a loss of at most it."""
    return np.searchsorted(np.sort(losses), edges * (1 + ROUNDING), side="right") / len(losses)
