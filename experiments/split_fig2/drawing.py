"""Error against the share of records above rho, and the losses themselves."""

from collections.abc import Sequence
from typing import Any

from experiments.frame import COLORS, DASHES, Picture, new_figure, tidy
from experiments.split_fig2.smallest import ABOVE, GOAL

Row = dict[str, Any]
MARKERS = ("o", "s", "^")
ERROR = "absolute relative error"
SHARE = "share of records with loss above ρ"


def pictures(
    sim: Sequence[Row], sim_losses: Sequence[Row], cis: Sequence[Row], cis_losses: Sequence[Row]
) -> tuple[Picture, ...]:
    return (
        Picture(
            name="split-fig2-sim",
            figure=sim_figure(sim, sim_losses),
            caption="SIM. Small thresholds lie to the right: little error, many records above rho. Left of the "
            "dotted line fewer than 1 % pay more than rho; in the gray band the error is below 10 %. On the right "
            "the losses, by pieces and tight.",
            alt="Relative error against the share of records above rho for two heavy-tailed values and two kinds of "
            "groups. The error falls as more records pay more. At rho 1 and just under 1 % the median error is 4 to "
            "7 %.",
        ),
        Picture(
            name="split-fig2-cis",
            figure=cis_figure(cis, cis_losses),
            caption="Counties of the dairy census in place of the cattle survey: sums of cows by splitting, averages of herds "
            "under zCDP at each rho, and the losses.",
            alt="The same for sums of cows by state and by district, with averages as bars for each rho, and losses. Errors of "
            "sums fall as more counties pay more than rho.",
        ),
    )


def sim_figure(errors: Sequence[Row], losses: Sequence[Row]) -> Any:
    """A row for each value: uniform groups, Dirichlet groups, losses."""
    drawn, axes = new_figure(2, 3, size=(15.0, 9.0))
    for line, value in zip(axes, ("HT1", "HT2")):
        tail = {"HT1": 1.2, "HT2": 1.5}[value]
        for axis, kind in zip(line, ("uniform", "Dirichlet(1)")):
            chosen = [row for row in errors if row["value"] == value and row["kind"] == kind]
            tradeoff(axis, chosen, title=f"{value}: Pareto {tail}, {kind} groups")
        cdfs(
            line[2],
            [row for row in losses if row["value"] == value and row["rho"] == 1.0],
            title=f"{value}: losses at ρ = 1",
        )
    finish(axes)
    return drawn


def cis_figure(errors: Sequence[Row], losses: Sequence[Row]) -> Any:
    titles = {"state sum": "State sums, split", "district sum": "State × District sums, split"}
    drawn, axes = new_figure(2, 2, size=(12.5, 9.0))
    for axis, (query, title) in zip(axes[0], titles.items()):
        tradeoff(axis, [row for row in errors if row["query"] == query], title=title)
    averages(axes[1][0], [row for row in errors if row["query"].endswith("average")])
    cdfs(axes[1][1], [row for row in losses if row["rho"] == 1.0], title="Losses of counties at ρ = 1")
    finish(axes)
    return drawn


def averages(axis: Any, rows: Sequence[Row]) -> None:
    """Median and middle half of the error at each rho; there is no threshold."""
    for place, query in enumerate(("state average", "district average")):
        chosen = [row for row in rows if row["query"] == query]
        middle = [row["are_50"] for row in chosen]
        reach = [[row["are_50"] - row["are_25"] for row in chosen], [row["are_75"] - row["are_50"] for row in chosen]]
        at = [row["rho"] * (0.94, 1.06)[place] for row in chosen]
        axis.errorbar(at, middle, yerr=reach, fmt=MARKERS[place], color=COLORS[place], capsize=5, label=query)
    axis.set(xscale="log", yscale="log", ylim=(1e-4, 30))
    tidy(axis, title="Averages of herds, zCDP", xlabel="ρ", ylabel=ERROR)
    axis.legend(frameon=False, fontsize=11)


def tradeoff(axis: Any, rows: Sequence[Row], *, title: str) -> None:
    """Median and middle half of the error for each rho; the corner of the paper's claim is shaded."""
    axis.axhspan(1e-5, GOAL, xmax=1.0, color="#F2F2F2", zorder=0)
    axis.axvline(ABOVE, color="#777777", linewidth=1.2, linestyle=":", zorder=1)
    for rho, color, dash, marker in zip((0.1, 1.0, 10.0), COLORS, DASHES, MARKERS):
        chosen = sorted((row for row in rows if row["rho"] == rho), key=lambda row: row["share_above_rho"])
        x = [row["share_above_rho"] for row in chosen]
        axis.fill_between(
            x,
            [row["are_25"] for row in chosen],
            [row["are_75"] for row in chosen],
            color=color,
            alpha=0.16,
            linewidth=0,
        )
        axis.plot(
            x,
            [row["are_50"] for row in chosen],
            color=color,
            linestyle=dash,
            marker=marker,
            linewidth=2.2,
            markersize=6,
            label=f"ρ = {rho:g}",
        )
    axis.set(xscale="log", yscale="log", ylim=(1e-4, 30))
    tidy(axis, title=title, xlabel=SHARE, ylabel=ERROR)


def cdfs(axis: Any, rows: Sequence[Row], *, title: str) -> None:
    """One color for each threshold: the paper's policy in steps, the tight one as a thin line. The tail is what differs, so the
    share above is drawn, on a log scale; the tables hold the distribution function."""
    thresholds = list(dict.fromkeys(row["at"] for row in rows))
    for at, color in zip(thresholds, COLORS[3:]):
        for policy, width, dash in (("paper", 2.4, "-"), ("tight", 1.6, (0, (2, 1.5)))):
            chosen = [row for row in rows if row["at"] == at and row["policy"] == policy]
            axis.plot(
                [row["loss"] for row in chosen],
                [1 - row["share_at_most"] for row in chosen],
                color=color,
                linestyle=dash,
                linewidth=width,
                label=f"split at {at:g}, {'pieces' if policy == 'paper' else 'tight'}",
            )
    axis.axvline(1.0, color="#777777", linewidth=1.2, linestyle=":", zorder=1)
    axis.set(xscale="log", yscale="log", xlim=(1e-3, 1e6), ylim=(1e-5, 1.5))
    tidy(axis, title=title, xlabel="privacy loss", ylabel="share of records above this loss")
    axis.legend(frameon=False, fontsize=10, loc="upper right")


def finish(axes: Any) -> None:
    first = axes[0][0]
    first.legend(frameon=False, fontsize=11, loc="upper right", title="median, middle half shaded")
    first.annotate("1 %", (ABOVE, 1.3e-4), xytext=(4, 0), textcoords="offset points", fontsize=10, color="#555555")
    goal = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "xytext": (-4, 4), "ha": "right"}
    first.annotate("error 10 %", (1.0, GOAL), fontsize=10, color="#555555", **goal)
