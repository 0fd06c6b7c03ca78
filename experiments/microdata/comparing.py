"""Our errors beside the paper's Tables 1 and 2, and beside what is known exactly."""

import math
from functools import cache

import numpy as np

from experiments.microdata import paper
from experiments.microdata.measuring import Line, variance_of, workload_of
from experiments.microdata.tables import all_tables
from recordwise.postprocess import ols

PAPER_RUNS = 1000


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
