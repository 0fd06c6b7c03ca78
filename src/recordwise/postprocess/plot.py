"""Error on the sum against the worst cell error of the five methods, on a hard and on an easy table."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from recordwise.postprocess.laws import FloatArray
from recordwise.postprocess.least_squares import nnls, ols
from recordwise.postprocess.maxfit import max_fit
from recordwise.postprocess.result import Fit
from recordwise.postprocess.reweighted import reweighted_fit
from recordwise.postprocess.sequential import sequential_fit
from recordwise.postprocess.uncertainty import easy_table, hard_table, sum_error_bound_pure
from recordwise.postprocess.workload import Workload

METHODS: dict[str, Callable[..., Fit]] = {
    "OLS": ols,
    "NNLS": nnls,
    "MaxFit": max_fit,
    "Sequential": sequential_fit,
    "ReWeighted": reweighted_fit,
}


class LaplaceSource(Protocol):
    """What draws the noise of a study; numpy's generator is one. Not for a release."""

    def laplace(self, *, scale: float, size: tuple[int, int]) -> FloatArray: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Tradeoff:
    """What a method did on a table: root mean squared errors."""

    method: str
    table: str
    cell: float
    """Of the worst cell."""
    sum: float


def tradeoffs(*, cells: int, epsilon: float, draws: int, rng: LaplaceSource) -> list[Tradeoff]:
    """Every method on a hard and an easy table, sum and cells measured with half of epsilon each."""
    workload = Workload.marginals((cells,), {"sum": (), "cells": (0,)})
    scale, made = 2 / epsilon, []
    tables = {"hard": hard_table(cells=cells, epsilon=epsilon), "easy": easy_table(cells=cells, epsilon=epsilon)}
    for name, table in tables.items():
        exact = workload.answer(table)
        answers = exact + rng.laplace(scale=scale, size=(draws, workload.queries))
        for method, solve in METHODS.items():
            squared = np.mean((solve(workload, answers, 2 * scale**2).fitted - exact) ** 2, axis=0)
            worst, total = float(np.sqrt(squared[1:].max())), float(np.sqrt(squared[0]))
            made.append(Tradeoff(method=method, table=name, cell=worst, sum=total))
    return made


def plot_tradeoffs(points: list[Tradeoff], *, cells: int, epsilon: float) -> Any:
    """The figure: no method with nonnegative cells lies below the curve on every table."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for axis, table in zip(axes, ("hard", "easy")):
        for point in (point for point in points if point.table == table):
            axis.plot(point.cell, point.sum, "o", label=point.method)
        reach = np.linspace(0, max(point.cell for point in points) * 1.1, 200)
        bound = [sum_error_bound_pure(cells=cells, cell_error=float(error), epsilon=epsilon) for error in reach]
        axis.plot(reach, bound, "k--", linewidth=1, label="least possible over all tables")
        axis.set(
            title=f"{table} table, {cells} cells, epsilon {epsilon:g}", xlabel="worst cell, root mean squared error"
        )
    axes[0].set(ylabel="sum, root mean squared error", yscale="log")
    axes[1].legend(fontsize="small")
    return figure
