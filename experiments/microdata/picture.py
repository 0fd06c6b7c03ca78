"""Table 1 as a picture: the error of the sum, by table and method, the paper's and ours."""

from collections.abc import Sequence

from experiments.frame import COLORS, Picture, new_figure, tidy

LABELS = {"ols": "OLS", "nnls": "NNLS", "max_fit": "MaxFit", "sequential": "Sequential", "reweighted": "ReWeighted"}
MARKERS = ("o", "s", "^", "D", "v")


def picture(rows: Sequence[dict[str, object]]) -> Picture:
    figure, axes = new_figure(size=(10.5, 5.6))
    names = list(dict.fromkeys(str(row["table"]) for row in rows))
    for place, (method, label) in enumerate(LABELS.items()):
        chosen = {str(row["table"]): row for row in rows if row["method"] == method}
        at = [number + 0.15 * (place - 2) for number in range(len(names))]
        ours = [float(str(chosen[name]["sum"])) for name in names]
        errors = [3 * float(str(chosen[name]["sum_se"])) for name in names]
        theirs = [float(str(chosen[name]["paper_sum"])) for name in names]
        axes[0, 0].errorbar(
            at, ours, yerr=errors, fmt=MARKERS[place], color=COLORS[place], markersize=6, linewidth=1.4, label=label
        )
        axes[0, 0].scatter(at, theirs, marker="_", s=90, color="black", linewidth=1.6, zorder=3)
    axes[0, 0].scatter([], [], marker="_", s=90, color="black", linewidth=1.6, label="printed in the paper")
    axes[0, 0].set_xticks(range(len(names)), names)
    axes[0, 0].set_ylim(0, None)
    tidy(
        axes[0, 0],
        title="What nonnegative cells cost the sum, at privacy loss ε = 0.5",
        xlabel="benchmark table",
        ylabel="mean squared error of the sum",
    )
    figure.legend(loc="outside lower center", ncols=6, frameon=False, fontsize=11)
    return Picture(
        name="table1",
        figure=figure,
        caption="Mean squared error of the sum by table. Bars: three standard errors of ours; dashes: the paper's figures.",
        alt=(
            "For each table: OLS and ReWeighted lie near 110, Sequential at 128, NNLS and MaxFit between 280 and 680. "
            "The paper's figures coincide with ours for OLS, NNLS and ReWeighted, and scatter for Sequential and MaxFit."
        ),
    )
