"""Error against the clamp: as the paper plots it, and like over like."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.frame import COLOURS, DASHES, new_figure, tidy
from experiments.split_fig1.theory import RECORDS, RHOS, TAILS, Pareto, mean_squared_error

CLAMPS = np.geomspace(1.0, 1e6, 241)


def curves() -> list[dict[str, Any]]:
    """Every curve of the figure, point by point."""
    rows: list[dict[str, Any]] = []
    for tail in TAILS:
        law = Pareto(tail=tail)
        for rho in RHOS:
            errors = mean_squared_error(law, rho, CLAMPS)
            for clamp, error in zip(CLAMPS, errors):
                ratio, fair = error / (RECORDS * law.mean), np.sqrt(error) / (RECORDS * law.mean)
                rows.append(
                    {"tail": tail, "rho": rho, "clamp": float(clamp), "mse_over_sum": ratio, "rmse_over_sum": fair}
                )
    return rows


def figure(rows: Sequence[dict[str, Any]], optima: Sequence[dict[str, Any]]) -> Any:
    drawn, axes = new_figure(2, len(TAILS), size=(14.0, 8.2), sharex=True, sharey="row")
    kinds = (
        ("mse_over_sum", "MSE / expected sum\n(as the paper plots it)"),
        ("rmse_over_sum", "RMSE / expected sum\n(like over like)"),
    )
    for line, (column, label) in zip(axes, kinds):
        for axis, tail in zip(line, TAILS):
            for rho, colour, dash in zip(RHOS, COLOURS, DASHES):
                chosen = [row for row in rows if row["tail"] == tail and row["rho"] == rho]
                (best,) = [row for row in optima if row["tail"] == tail and row["rho"] == rho]
                axis.loglog(
                    [row["clamp"] for row in chosen],
                    [row[column] for row in chosen],
                    color=colour,
                    linestyle=dash,
                    linewidth=2.2,
                    label=f"ρ = {rho:g}",
                )
                axis.plot(best["best_clamp"], best[column], "o", color=colour, markersize=9, markeredgecolor="white")
            axis.axhline(1.0, color="#777777", linewidth=1.2, zorder=1)
            tidy(axis, title=f"Pareto tail {tail}" if column == "mse_over_sum" else "", xlabel="", ylabel="")
        line[0].set_ylabel(label, fontsize=12)
    for axis in axes[1]:
        axis.set_xlabel("clamp Δ", fontsize=12)
        axis.set_ylim(0.01, 100)
    for axis, tail in zip(axes[1], TAILS):
        (best,) = [row for row in optima if row["tail"] == tail and row["rho"] == 1.0]
        axis.annotate(
            f"{best['rmse_over_sum']:.2f}",
            (best["best_clamp"], best["rmse_over_sum"]),
            textcoords="offset points",
            xytext=(0, -18),
            ha="center",
            fontsize=12,
            color=COLOURS[1],
        )
    axes[0][0].legend(frameon=False, fontsize=12, loc="upper center")
    drawn.suptitle(
        f"A clamped Gaussian sum of {RECORDS:,} Pareto values. Dots: the best clamp. Grey: an error as large as "
        "the sum",
        fontsize=14,
    )
    return drawn
