"""Errata of [A] Abowd et al., An Uncertainty Principle is a Price of Privacy-Preserving Microdata."""

import math

import numpy as np

from experiments.errata.evidence import Evidence
from experiments.microdata.paper import METHODS, TABLE_1
from recordwise.postprocess import Workload, point_first_errors, sequential_fit, sum_first_errors_gaussian

VARIANCE = 128.0
"""Of every answer at epsilon 1/2: Laplace noise of scale 8."""


def theorem_2() -> Evidence:
    """Under zCDP errors scale with 1/sqrt(rho); a statement in epsilon would scale with 1/epsilon."""

    def cell(rho: float) -> float:
        return sum_first_errors_gaussian(cells=1000, total_variance=1 / rho, cell_variance=1 / rho).cell ** 2

    ratio = cell(0.1) / cell(0.4)
    return Evidence(
        name="theorem-2",
        source="[A]",
        printed="a bound for zCDP in terms of epsilon",
        shown=f"sum first, Gaussian noise: four times the parameter divides C^2 by {ratio:.3f}; an epsilon would by 16",
        holds=math.isclose(ratio, 4, rel_tol=1e-9),
        correction="The parameter is rho: C^2 is of the order ln(d)/rho (T-UNCERTAIN, T-SUM-FIRST).",
    )


def theorem_3() -> Evidence:
    """Laplace noise of scale 1/epsilon has variance 2/epsilon^2."""
    errors = {epsilon: point_first_errors(cells=100, variance=2 / epsilon**2) for epsilon in (1.0, 0.1)}
    return Evidence(
        name="theorem-3b",
        source="[A]",
        printed="Theorem 3(b) bounds C and D by multiples of 1/epsilon^2",
        shown="cells first, C, C^2 and 2/epsilon^2: "
        + "; ".join(f"{one.cell:.2f}, {one.cell**2:.0f}, {2 / e**2:.0f} at {e:g}" for e, one in errors.items()),
        holds=all(math.isclose(one.cell**2, 2 / e**2) for e, one in errors.items()),
        correction="The squares C^2 and D^2 are meant.",
    )


def dropped_runs() -> Evidence:
    """The paper drew the noise of its 15 histograms once. Sequential fits the sum first, so each would have the same error."""
    place = METHODS.index("sequential")
    printed = {name: row[place] for name, row in TABLE_1.items() if name != "D01"}
    own = sorted({round(error, 6) for error in (sequential_sum_error(seed) for seed in range(3))})
    smallest = min(printed.values())
    far = (smallest - VARIANCE) / (VARIANCE * math.sqrt(5 / 1000))
    return Evidence(
        name="dropped-runs",
        source="[A]",
        printed=f"Table 1, Sequential: {len(set(printed.values()))} errors of the sum, {smallest:g} to {max(printed.values()):g}",
        shown=f"on the same 1,000 draws three unlike tables have the error {', '.join(f'{error:.1f}' for error in own)} in common; "
        f"the smallest print is {far:.1f} standard errors from 128",
        holds=len(own) == 1 and len(set(printed.values())) > 1,
        correction="With no run dropped the 15 numbers would be one, near 128: the printed ones are of the runs that did not fail.",
    )


def sequential_sum_error(table_seed: int) -> float:
    """The mean squared error of the sum on one set of draws, for a table that depends on the seed."""
    table = np.random.default_rng(table_seed).integers(0, 3 + 400 * table_seed, size=(9, 24)).astype(float) + 50
    workload = Workload.marginals((9, 24), {"sum": (), "rows": (0,), "columns": (1,), "cells": (0, 1)})
    exact = workload.answer(table.ravel())
    noise = np.random.default_rng(7).laplace(scale=8.0, size=(1000, workload.queries))
    fit = sequential_fit(workload, exact + noise, VARIANCE)
    return float(np.mean((fit.fitted[:, 0] - exact[0]) ** 2))


SHOWN = (theorem_2, theorem_3, dropped_runs)
