"""The paper's claim by formula: median error 10 % with fewer than 1 % of the records above rho, and the fewest records for it."""

import math
from typing import Any

import numpy as np

from experiments.split_fig2.simulated import GROUPS, KINDS, RECORDS, STEP, TAILS, group_sizes, pareto_steps

GOAL = 0.10
ABOVE = 0.01
REPETITIONS = 20
"""Of the 1,000 groups, so that the median over groups is known to about 1 %."""
STEPS = 11
"""Halvings of the search: to about 1 % as well."""


def least_threshold(tail: float, share: float) -> float:
    """The smallest threshold on the lattice with P(X > threshold) below a share."""
    return (math.floor(share ** (-1 / tail) / float(STEP)) + 1) * float(STEP)


def median_error(totals: np.ndarray, sigma: float) -> float:
    """The median of |noise|/total over noise and groups: where the mean of the folded normal CDFs is a half."""
    from scipy.optimize import brentq
    from scipy.special import erf

    found = totals[totals > 0]
    empty = len(totals) - len(found)

    def beyond(log_error: float) -> float:
        return float(np.sum(erf(np.exp(log_error) * found / (sigma * math.sqrt(2))))) - (len(found) + empty) / 2

    return math.exp(brentq(beyond, math.log(1e-6), math.log(1e6)))


def typical_error(kind: str, tail: float, records: int, sigma: float, seed: int) -> float:
    """The same for fresh data sets of so many records."""
    rng = np.random.default_rng(seed)
    totals = []
    for _ in range(REPETITIONS):
        sizes = group_sizes(kind, records, rng)
        ends = np.concatenate([[0], np.cumsum(sizes)])
        running = np.concatenate([[0], np.cumsum(pareto_steps(tail, records, rng))])
        totals.append((running[ends[1:]] - running[ends[:-1]]) * float(STEP))
    return median_error(np.concatenate(totals), sigma)


def smallest_records(kind: str, tail: float, sigma: float, seed: int) -> int:
    """The fewest records at which the median error is at most the goal: halving on the log scale."""
    low, high = math.log(GROUPS), math.log(100 * RECORDS)
    for _ in range(STEPS):
        middle = (low + high) / 2
        if typical_error(kind, tail, round(math.exp(middle)), sigma, seed) <= GOAL:
            high = middle
        else:
            low = middle
    return 100 * math.ceil(math.exp(high) / 100)


def claim_rows(seed: int) -> list[dict[str, Any]]:
    """At rho = 1 and the smallest threshold that leaves less than 1 % above rho, for each value alone: splitting is univariate."""
    rows = []
    for kind in KINDS:
        for name, tail in TAILS.items():
            at = least_threshold(tail, ABOVE)
            sigma = at / math.sqrt(2)
            rows.append(
                {
                    "kind": kind,
                    "value": name,
                    "at": at,
                    "records_above_rho": at**-tail,
                    "median_are": typical_error(kind, tail, RECORDS, sigma, seed),
                    "smallest_records": smallest_records(kind, tail, sigma, seed),
                }
            )
    return rows
