"""The least noise that keeps a relative error goal on 95 % of each table's queries, and what it costs every establishment."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

import recordwise as rw
from experiments.establishments import MEASURES
from experiments.establishments_schemes import SPLITTING, TOP_CODING
from experiments.establishments_tables import ATTRIBUTES, Level, Tables

GOALS = ("0.05", "0.10", "0.20")
"""Decimals, so that a goal times a total is exact."""
QUERIES = 0.95
"""The share of a table's queries that must meet the goal, as the caption of Figure 4 has it."""
EVERY = 1.0
"""The same as the text of section 6.4 has it."""
LEVEL = 0.95
"""With this probability each."""
Z = 1.959964
"""The normal quantile of that level, where the search begins."""
FULL = "tight"
"""The policy x^2/(2 sigma^2), which needs no threshold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """One table with the noise its goal allows."""

    goal: str
    attribute: str
    digits: int
    at_total: int
    """The smallest total that must meet the goal: 95 % of the queries (or all) have at least it."""
    gaussian: rw.Gaussian

    @property
    def sigma(self) -> float:
        return float(self.gaussian.noise_sigma)


def least_total(totals: np.ndarray, share: float = QUERIES) -> int:
    """The largest value that at least a share of the totals reach."""
    return int(np.sort(totals)[len(totals) - math.ceil(share * len(totals))])


def calibrated(made: Tables, goal: str, share: float = QUERIES) -> list[Calibrated]:
    """Every table of the workload."""
    return [calibrated_table(level, attribute, goal, share) for level in made.levels for attribute in ATTRIBUTES]


def calibrated_table(level: Level, attribute: str, goal: str, share: float = QUERIES) -> Calibrated:
    """One table; totals of zero, which have no relative error, are no queries."""
    totals = level.totals[attribute]
    total = least_total(totals[totals > 0], share)
    noise = rw.Gaussian(sigma=largest_sigma(reach(goal, total)))
    return Calibrated(goal=goal, attribute=attribute, digits=level.digits, at_total=total, gaussian=noise)


def reach(goal: str, total: int) -> int:
    """The largest whole error within the goal."""
    return math.floor(Fraction(goal) * total)


@cache
def largest_sigma(steps: int) -> Fraction:
    """The largest sigma, to six digits, whose lattice law exceeds so many steps with a probability of at most 5 %.

    The normal quantile alone would miss the goal for counts, whose noise is a few steps wide.
    """
    near = (steps + 0.5) / Z
    # The lattice law differs from the normal one, at half a step further out, by less than the square of a step over sigma.
    low, high = (round(10**6 * near * (1 + side * min(0.6, near**-2))) for side in (-1, 1))
    while high - low > max(1, low // 10**6):
        middle = (low + high) // 2
        missed = 2 * float(rw.noise.DiscreteGaussian(Fraction(middle, 10**6)).sf_upper(steps + 1))
        low, high = (middle, high) if missed <= 1 - LEVEL else (low, middle)
    return Fraction(low, 10**6)


def policy(found: list[Calibrated], scheme: str, attributes: tuple[str, ...] = ATTRIBUTES) -> rw.Policy:
    """What an establishment pays: counts are constant, sums tight or by the pieces of a splitting scheme at the same noise."""
    return sum((table_policy(each, scheme) for each in found if each.attribute in attributes), rw.policy.constant(0))


def table_policy(table: Calibrated, scheme: str) -> rw.Policy:
    if table.attribute not in MEASURES:
        return table.gaussian.policy_of_count()
    if scheme == FULL:
        return table.gaussian.policy(table.attribute)
    thresholds = SPLITTING[scheme]
    rho = table.gaussian.loss_at_shift(thresholds[table.attribute])
    return rw.UnitSplit(at=thresholds, rho=rho).policy(table.attribute, tight=False)


def met_share(table: Calibrated, totals: np.ndarray) -> float:
    """The share of queries whose error exceeds the goal with a probability of at most 5 %, by the law that is drawn."""
    law = rw.noise.DiscreteGaussian(table.gaussian.noise_sigma)
    goal, beyond = Fraction(table.goal), law.quantile((1 + LEVEL) / 2)
    return float(np.mean(totals * goal.numerator >= beyond * goal.denominator))


def pooled_sigma(totals: np.ndarray, goal: str) -> float:
    """The other reading of 95 %: the noise at which 95 % of all errors, over queries and noise together, meet the goal."""
    from scipy.optimize import brentq
    from scipy.special import erfc

    def missed(log_sigma: float) -> float:
        return float(np.mean(erfc(float(goal) * totals / (math.exp(log_sigma) * math.sqrt(2))))) - (1 - QUERIES)

    high = math.log(float(totals.max()))
    return math.exp(brentq(missed, high - 30, high))


def top_coding_limits(made: Tables, goal: str) -> list[dict[str, Any]]:
    """The share of queries that top-coding could bring within the goal with no noise at all: where its bias allows it."""
    rows = []
    for scheme, bounds in TOP_CODING.items():
        for name in MEASURES:
            shares = []
            for level in made.levels:
                exact = level.totals[name]
                cut = level.clamped_totals(made.records.measures[name], bounds[name])
                shares.append(float(np.mean(exact - cut <= float(goal) * exact)))
            rows.append(
                {
                    "scheme": scheme,
                    "attribute": name,
                    "goal": goal,
                    "best_level": max(shares),
                    "worst_level": min(shares),
                }
            )
    return rows
