"""Draws of every mechanism at given totals: bias, error and coverage beside the formulas."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

import recordwise as rw
from experiments.frame import Tell
from experiments.slow_mechanisms import Entry
from experiments.slow_table.catalogue import catalogue

TOTALS = (0, 2, 10, 100, 1000, 10_000, 100_000)
LEVEL = 0.95
FALSE_ALARM = 1e-9
LIMIT = math.sqrt(2 * math.log(2 / FALSE_ALARM))
"""A self-normalized sum of independent symmetric errors exceeds it with at most the false alarm: 2 exp(-t^2/2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One mechanism at one total."""

    mechanism: str
    total: int
    mean_error: float
    bias_distance: float
    """The sum of the errors over the root of the sum of their squares."""
    root_mean_squared_error: float
    by_formula: float
    coverage: float
    coverage_chance: float
    """The chance of covering so seldom if the interval's coverage is the level."""


def measured(*, runs: int, seed: int, tell: Tell) -> list[Line]:
    lines = []
    for number, each in enumerate(drawn()):
        tell(f"draws of {each.label}")
        for place, total in enumerate(TOTALS):
            lines.append(line_of(each, total, runs, rw.noise.Seeded(seed + 1000 * number + place)))
    return lines


def drawn() -> list[Entry]:
    """Each mechanism once: two policies of one noise are drawn together."""
    return list({id(each.mechanism): each for each in reversed(catalogue())}.values())[::-1]


def line_of(each: Entry, total: int, runs: int, rng: rw.noise.Seeded) -> Line:
    noisy = each.mechanism.release(np.full(runs, total), rng=rng)
    found = each.mechanism.estimate(noisy, confidence=LEVEL)
    off = found.value - total
    inside = int(np.sum((found.low <= total) & (total <= found.high)))
    return Line(
        mechanism=each.label,
        total=total,
        mean_error=float(np.mean(off)),
        bias_distance=float(np.sum(off) / max(np.sqrt(np.sum(off**2)), 1e-300)),
        root_mean_squared_error=float(np.sqrt(np.mean(off**2))),
        by_formula=float(np.sqrt(each.mechanism.variance(float(total)))),
        coverage=inside / runs,
        coverage_chance=float(stats.binom.cdf(inside, runs, LEVEL)),
    )
