"""Squared errors of every method on the same draws of one table."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from recordwise.postprocess import Fit, Workload, max_fit, nnls, ols, reweighted_fit, sequential_fit

SETTINGS = (
    *(("laplace", parameter) for parameter in (1.0, 0.5, 0.1)),
    *(("gaussian", parameter) for parameter in (0.5, 0.125, 0.005)),
)
"""Laplace by epsilon, Gaussian by rho = epsilon^2/2."""


def scale_free(workload: Workload, answers: np.ndarray, variance: float, noise: str) -> Fit:
    return reweighted_fit(workload, answers, variance, noise, units="noise")


METHODS: dict[str, Callable[..., Fit]] = {
    "ols": ols,
    "nnls": nnls,
    "max_fit": max_fit,
    "sequential": sequential_fit,
    "reweighted": reweighted_fit,
    "reweighted_noise_units": scale_free,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One table, setting, method and group of queries: squared errors, summed over the group and of its worst query."""

    table: str
    noise: str
    parameter: float
    method: str
    group: str
    total: float
    total_se: float
    largest: float
    largest_se: float
    runs: int
    failures: int
    worst_kkt: float
    worst_primal: float


def workload_of(shape: tuple[int, ...]) -> Workload:
    if len(shape) == 1:
        return Workload.marginals(shape, {"sum": (), "cells": (0,)})
    return Workload.marginals(shape, {"sum": (), "rows": (0,), "columns": (1,), "cells": (0, 1)})


def variance_of(noise: str, parameter: float, groups: int) -> float:
    """Equal noise on every answer, the privacy loss split evenly over the groups."""
    return 2 * (groups / parameter) ** 2 if noise == "laplace" else groups / (2 * parameter)


def noise_of(rng: np.random.Generator, noise: str, variance: float, size: tuple[int, int]) -> np.ndarray:
    if noise == "laplace":
        return rng.laplace(scale=math.sqrt(variance / 2), size=size)
    return rng.normal(scale=math.sqrt(variance), size=size)


def measure_table(
    name: str, table: np.ndarray, setting: tuple[str, float], runs: int, rng: np.random.Generator
) -> list[Line]:
    """All methods on the same draws of one table under one setting."""
    noise, parameter = setting
    workload = workload_of(table.shape)
    variance = variance_of(noise, parameter, len(workload.groups))
    exact = workload.answer(table.ravel())
    answers = exact + noise_of(rng, noise, variance, (runs, workload.queries))
    lines = []
    for method, solve in METHODS.items():
        fit = solve(workload, answers, variance, noise)
        squared = (fit.fitted - exact) ** 2
        for group, place in zip(workload.groups, workload.slices):
            lines.append(line_of(name, setting, method, group.name, squared[:, place], fit))
    return lines


def line_of(name: str, setting: tuple[str, float], method: str, group: str, squared: np.ndarray, fit: Fit) -> Line:
    runs = len(squared)
    total, means = squared.sum(axis=1), squared.mean(axis=0)
    worst = int(np.argmax(means))
    return Line(
        table=name,
        noise=setting[0],
        parameter=setting[1],
        method=method,
        group=group,
        total=float(total.mean()),
        total_se=float(total.std(ddof=1) / math.sqrt(runs)),
        largest=float(means[worst]),
        largest_se=float(squared[:, worst].std(ddof=1) / math.sqrt(runs)),
        runs=runs,
        failures=int(np.sum(~fit.converged)),
        worst_kkt=float(fit.kkt.max()),
        worst_primal=float(fit.primal.max()),
    )
