"""Error against the clamp: as the paper plots it, and like over like."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.frame import COLORS, DASHES, new_figure, tidy
from experiments.split_fig1.theory import RECORDS, RHOS, TAILS, Pareto, mean_squared_error

Row = dict[str, Any]
CLAMPS = np.geomspace(1.0, 1e6, 241)
RATIOS = {
    "mse_over_sum": "MSE / expected sum\n(as the paper plots it)",
    "rmse_over_sum": "RMSE / expected sum\n(like over like)",
}


def curves() -> list[Row]:
    """Every curve of the figure, point by point."""
    rows: list[Row] = []
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


def figure(rows: Sequence[Row], optima: Sequence[Row]) -> Any:
    drawn, axes = new_figure(2, len(TAILS), size=(14.0, 8.2), sharex=True, sharey="row")
    for line, (column, label) in zip(axes, RATIOS.items()):
        for axis, tail in zip(line, TAILS):
            panel(axis, of_tail(rows, tail), of_tail(optima, tail), column)
        line[0].set_ylabel(label, fontsize=12)
    for axis, upper, tail in zip(axes[1], axes[0], TAILS):
        upper.set_title(f"Pareto tail {tail}", loc="left", fontsize=14, pad=10)
        axis.set_xlabel("clamp Δ", fontsize=12)
        axis.set_ylim(0.01, 100)
        write_ratio(axis, of_tail(optima, tail))
    axes[0][0].legend(frameon=False, fontsize=12, loc="upper center")
    title = (
        f"A clamped Gaussian sum of {RECORDS:,} Pareto values. Dots: the best clamp. Gray: an error as large as the sum"
    )
    drawn.suptitle(title, fontsize=14)
    return drawn


def of_tail(rows: Sequence[Row], tail: float) -> list[Row]:
    return [row for row in rows if row["tail"] == tail]


def panel(axis: Any, rows: Sequence[Row], optima: Sequence[Row], column: str) -> None:
    """One curve for each rho, its best clamp marked."""
    for best, color, dash in zip(optima, COLORS, DASHES):
        chosen = [row for row in rows if row["rho"] == best["rho"]]
        axis.loglog(
            [row["clamp"] for row in chosen],
            [row[column] for row in chosen],
            color=color,
            linestyle=dash,
            linewidth=2.2,
            label=f"ρ = {best['rho']:g}",
        )
        axis.plot(best["best_clamp"], best[column], "o", color=color, markersize=9, markeredgecolor="white")
    axis.axhline(1.0, color="#777777", linewidth=1.2, zorder=1)
    tidy(axis, title="", xlabel="", ylabel="")


def write_ratio(axis: Any, optima: Sequence[Row]) -> None:
    """The relative error at the best clamp and rho = 1, under its dot."""
    (best,) = [row for row in optima if row["rho"] == 1.0]
    at = (best["best_clamp"], best["rmse_over_sum"])
    under: dict[str, Any] = {"textcoords": "offset points", "xytext": (0, -18), "ha": "center"}
    axis.annotate(f"{best['rmse_over_sum']:.2f}", at, fontsize=12, color=COLORS[1], **under)
