"""Relative errors of every table, scheme and budget."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

import recordwise as rw
from experiments.establishments import MEASURES
from experiments.establishments_schemes import BUDGETS, SPLITTING, TOP_CODING, share
from experiments.establishments_tables import Level, Tables
from experiments.split_fig2.errors import relative_errors, released, spread

STEP = Fraction(1)
LINES = (0.05, 0.20)
COUNTS = ("estab",)


def error_rows(made: Tables, runs: int, rng: rw.noise.BitSource) -> list[dict[str, Any]]:
    """One row for each family, scheme, budget, attribute and NAICS level."""
    rows = []
    for level in made.levels:
        for budget in BUDGETS:
            for setting, mechanism, totals in answers(made, level, budget):
                exact = level.totals[setting["attribute"]]
                noisy = released(mechanism, totals, runs, step=STEP, rng=rng)
                errors = relative_errors(noisy, exact)
                within = {f"within_{round(100 * line):02d}": float(np.mean(errors <= line)) for line in LINES}
                queries = {"digits": level.digits, "queries": int(np.sum(exact > 0))}
                rows.append(
                    {**setting, "budget": budget, **queries, **spread(errors), **within, "bias": bias(totals, exact)}
                )
    return rows


def answers(made: Tables, level: Level, budget: int) -> Iterator[tuple[dict[str, Any], Any, np.ndarray]]:
    """Every mechanism of one level at one budget, with the totals it is handed."""
    part = share(budget)
    for attribute in COUNTS:
        setting = {"family": "counts", "scheme": "counts", "attribute": attribute}
        yield setting, rw.Gaussian(rho=part), level.totals[attribute]
    for name in MEASURES:
        for scheme, bounds in TOP_CODING.items():
            setting = {"family": "top-coding", "scheme": scheme, "attribute": name}
            cut = level.clamped_totals(made.records.measures[name], bounds[name])
            yield setting, rw.Clamped(to=bounds[name], rho=part), cut
        for scheme, thresholds in SPLITTING.items():
            setting = {"family": "splitting", "scheme": scheme, "attribute": name}
            yield setting, rw.UnitSplit(at=thresholds[name], rho=part), level.totals[name]


def bias(totals: np.ndarray, exact: np.ndarray) -> float:
    """The median share of a total that top-coding cuts off before any noise."""
    asked = exact > 0
    return float(np.median(1 - totals[asked] / exact[asked]))
