"""Loss against the record, error against the total."""

from collections.abc import Mapping, Sequence

import numpy as np

from experiments.frame import COLORS, DASHES, Picture, new_figure, tidy
from experiments.slow_mechanisms import MEASURE, Entry
from experiments.slow_table.measuring import Line

STYLES = {
    "gaussian": (COLORS[0], "-"),
    "split": (COLORS[0], DASHES[2]),
    "square_root": (COLORS[6], DASHES[1]),
    "general_tight": (COLORS[1], "-"),
    "root_offset": (COLORS[1], DASHES[1]),
    "root_laplace": (COLORS[3], DASHES[1]),
    "polylog_tight": (COLORS[2], "-"),
    "log": (COLORS[2], DASHES[1]),
    "log_laplace": (COLORS[5], DASHES[1]),
    "pareto": (COLORS[4], "-"),
}
"""Solid: additive noise; dashed: transforms; dotted: the splitting paper's staircase."""
LARGEST = 1e6
NOTES = {
    "logarithm, both noises": (2e3, 0.62),
    "4th root, both noises": (2e4, 0.07),
    "additive noise, all alike": (60.0, 1e-5),
}


def pictures(found: Mapping[str, Entry], lines: Sequence[Line]) -> list[Picture]:
    figure, axes = new_figure(1, 2, size=(13.0, 6.4))
    records = np.unique(np.rint(np.geomspace(1, LARGEST, 400)))
    for key, (color, dash) in STYLES.items():
        each = found[key]
        look = {"color": color, "linestyle": dash, "linewidth": 2.2}
        axes[0, 0].plot(records, np.asarray(each.policy.loss({MEASURE: records})), label=each.label, **look)
        spread = np.sqrt(np.asarray(each.mechanism.variance(records)))
        axes[0, 1].plot(records, spread / records, **look)
        drawn = [line for line in lines if line.mechanism == each.label and line.total > 0]
        share = [line.root_mean_squared_error / line.total for line in drawn]
        axes[0, 1].plot([line.total for line in drawn], share, "o", color=color, markersize=4.5)
    axes[0, 0].set(xscale="log", yscale="log", ylim=(0.2, 1e5))
    axes[0, 1].set(xscale="log", yscale="log", ylim=(1e-6, 3))
    for text, place in NOTES.items():
        axes[0, 1].annotate(text, place, fontsize=11, color="#333333")
    tidy(axes[0, 0], title="What a record pays", xlabel="value of the record", ylabel="privacy loss ρ of the record")
    tidy(
        axes[0, 1],
        title="How large the error of a total is",
        xlabel="exact total",
        ylabel="error as a share of the total",
    )
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=11, handlelength=3.4)
    return [
        Picture(
            name="table",
            figure=figure,
            caption=(
                "Left: the policy against the record, at noise variance 2 (at a total of 2). Right: the error by formula "
                "(lines) and the error of real draws (dots). A slow loss is paid by small records or by the error of large totals."
            ),
            alt=(
                "Left: losses of Gaussian noise and unit splitting rise with the square and leave the picture at 600; square root, "
                "fourth root and logarithm rise ever more slowly. Right: the relative error of additive noise falls with totals, "
                "that of the logarithm stays near one half, that of the roots falls slowly."
            ),
        )
    ]
