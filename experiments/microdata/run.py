"""Tables 1 and 2 of [A] beside ours: five methods, 31 tables, six privacy settings, every run kept."""

import csv
import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np
from experiments.microdata import paper
from experiments.microdata.tables import SOURCE, all_tables, data_folder

from recordwise.postprocess import Fit, Workload, max_fit, nnls, ols, reweighted_fit, sequential_fit

SETTINGS = (
    *(("laplace", parameter) for parameter in (1.0, 0.5, 0.1)),
    *(("gaussian", parameter) for parameter in (0.5, 0.125, 0.005)),
)
"""Laplace by epsilon, Gaussian by rho = epsilon^2/2."""
PAPER_RUNS = 1000


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


def distance(line: Line, printed: float) -> float:
    """How many standard errors of the difference the paper's number is from ours; its own is taken from our spread."""
    theirs = line.total_se * math.sqrt(line.runs / PAPER_RUNS)
    return (line.total - printed) / math.hypot(line.total_se, theirs)


def beside_paper(lines: list[Line]) -> list[dict[str, object]]:
    """Every figure of Tables 1 and 2 with ours and the distance between them."""
    chosen = {
        (line.table, line.method, line.group): line
        for line in lines
        if (line.noise, line.parameter) == ("laplace", 0.5)
    }
    rows: list[dict[str, object]] = []
    for table in paper.TABLE_1:
        for place, method in enumerate(paper.METHODS):
            if (table, method, "sum") not in chosen:
                continue
            sums, cells = chosen[table, method, "sum"], chosen[table, method, "cells"]
            printed_max, printed_total = paper.TABLE_2[table][place]
            rows.append(
                {
                    "table": table,
                    "method": method,
                    "paper_sum": paper.TABLE_1[table][place],
                    "sum": sums.total,
                    "sum_se": sums.total_se,
                    "sum_distance": distance(sums, paper.TABLE_1[table][place]),
                    "paper_total": printed_total,
                    "total": cells.total,
                    "total_se": cells.total_se,
                    "total_distance": distance(cells, printed_total),
                    "paper_max": printed_max,
                    "max": cells.largest,
                    "max_se": cells.largest_se,
                    "note": paper.DROPPED.get(method, ""),
                }
            )
    return rows


def report(rows: list[dict[str, object]]) -> str:
    """Tables 1 and 2 as text: paper, ours, standard error, distance in standard errors."""
    text = [
        "Squared error at epsilon 0.5: paper | ours +- standard error (distance in standard errors of the difference)",
        "",
    ]
    text.append(f"{'data':5}{'method':12}{'Sum':>34}{'Identity total':>42}{'Identity max':>30}")
    for row in rows:
        first = f"{row['paper_sum']:8.1f} |{row['sum']:7.1f} +-{row['sum_se']:5.1f} ({row['sum_distance']:+6.1f})"
        second = (
            f"{row['paper_total']:9.1f} |{row['total']:9.1f} +-{row['total_se']:6.1f} ({row['total_distance']:+6.1f})"
        )
        third = f"{row['paper_max']:7.1f} |{row['max']:7.1f} +-{row['max_se']:5.1f}"
        text.append(f"{row['table']:5}{row['method']:12}{first:>34}{second:>42}{third:>30}")
    text += ["", *(f"{method}: {why}." for method, why in paper.DROPPED.items())]
    return "\n".join(text)


def theory(lines: list[Line]) -> dict[str, float]:
    """The largest distances, in standard errors, from what is known exactly.

    Sequential fits the sum first, so its error is the noise: variance v, and the squared error has standard deviation v sqrt(5)
    (Laplace) or v sqrt(2) (Gaussian). Least squares has a covariance in closed form; its figures are those of Tables 1 and 2.
    """
    shapes = {name: table.shape for name, table in all_tables()[0].items()}
    worst = {"sequential_sum_distance": 0.0, "ols_distance": 0.0}
    for line in lines:
        variance = variance_of(line.noise, line.parameter, 2 * len(shapes[line.table]))
        if (line.method, line.group) == ("sequential", "sum"):
            error = variance * math.sqrt((5 if line.noise == "laplace" else 2) / line.runs)
            worst["sequential_sum_distance"] = max(worst["sequential_sum_distance"], abs(line.total - variance) / error)
        if (
            line.method == "ols"
            and line.table in paper.TABLE_1
            and line.group in ("sum", "cells")
            and line.parameter == 0.5
        ):
            away = abs(line.total - variance * exact_error(shapes[line.table], line.group)) / line.total_se
            worst["ols_distance"] = max(worst["ols_distance"], away)
    return worst


@cache
def exact_error(shape: tuple[int, ...], group: str) -> float:
    """The expected squared error of least squares, summed over a group, at variance 1."""
    workload = workload_of(shape)
    place = workload.slices[workload.index(group)]
    return float(np.sum(ols(workload, np.eye(workload.queries), 1.0).fitted[:, place] ** 2))


def summary(lines: list[Line], rows: list[dict[str, object]]) -> dict[str, object]:
    """The checks of the page in a few numbers."""
    honest = [row for row in rows if not row["note"]]
    distances = [abs(float(str(row[name]))) for row in honest for name in ("sum_distance", "total_distance")]
    return {
        "fits": sum(line.runs for line in lines if line.group == "sum"),
        "failures": sum(line.failures for line in lines if line.group == "sum"),
        "worst_kkt": max(line.worst_kkt for line in lines),
        "worst_primal": max(line.worst_primal for line in lines),
        "figures_compared": len(distances),
        "beyond_3_standard_errors": sum(value > 3 for value in distances),
        "beyond_4_standard_errors": sum(value > 4 for value in distances),
        **theory(lines),
    }


def main(runs: int = 1000, seed: int = 20211, out: Path | str | None = None) -> dict[str, object]:
    """Run everything, print the tables, write ``figures.csv``, ``paper.csv`` and ``summary.json`` to ``out``."""
    tables, missing = all_tables()
    if missing:
        print(f"{len(missing)} of 15 real tables are missing below {data_folder().name}/puma; they are: {SOURCE}.")
        print("Only the synthetic tables run. Set RECORDWISE_DATA to the folder that holds puma/.")
    started = time.perf_counter()
    seeds = np.random.SeedSequence(seed).spawn(len(tables) * len(SETTINGS))
    lines: list[Line] = []
    for place, (name, table) in enumerate(tables.items()):
        for number, setting in enumerate(SETTINGS):
            rng = np.random.default_rng(seeds[place * len(SETTINGS) + number])
            lines += measure_table(name, table, setting, runs, rng)
    rows = beside_paper(lines)
    checks = summary(lines, rows) | {"seconds": round(time.perf_counter() - started, 1), "missing": missing}
    print(report(rows))
    print(json.dumps(checks, indent=1))
    if out is not None:
        save(Path(out), lines, rows, checks)
    return checks


def save(folder: Path, lines: list[Line], rows: list[dict[str, object]], checks: dict[str, object]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, listed in (("figures.csv", [asdict(line) for line in lines]), ("paper.csv", rows)):
        with (folder / name).open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(listed[0]))
            writer.writeheader()
            writer.writerows(listed)
    (folder / "summary.json").write_text(json.dumps(checks, indent=1) + "\n")
