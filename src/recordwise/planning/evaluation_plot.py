"""The figure of an evaluation: a metric by group for a plan and its baselines, and what each stage adds for the plan."""

from typing import TYPE_CHECKING

import numpy as np

from recordwise.planning.plots import COLORS, MARKERS
from recordwise.planning.rivals import STAGES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from recordwise.planning.evaluate import Evaluation

MOST_GROUPS = 40
"""At most this many groups are drawn, those with the most cells."""
APART = 0.24
"""How far the first and the last dot of a row are from its middle."""
STAGE_COLORS = ("#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")
"""Other colors than those of the plan and its baselines."""


def plot_evaluation(found: "Evaluation", table: str, variable: str) -> "Figure":
    """Rows are groups. Left: a dot for the plan and for each baseline; right: bars that add up to the plan's dot."""
    from matplotlib.figure import Figure

    own = found.at(table, variable)
    every = {name: found.at(table, variable, name) for name in found.names[: len(COLORS)]}
    told = [group for group in own if any(not np.isnan(each[group].value) for each in every.values() if group in each)]
    shown = sorted(told, key=lambda group: -own[group].cells)[:MOST_GROUPS]
    names = [group for group in own if group in shown]
    rows = np.arange(len(names))[::-1]
    figure = Figure(figsize=(11.0, 2.4 + 0.34 * len(names)), dpi=120, layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    # Dots of the same value are one below the other.
    apart = np.linspace(APART, -APART, len(every)) if len(every) > 1 else np.zeros(1)
    for place, (name, groups) in enumerate(every.items()):
        values = [groups[group].value if group in groups else np.nan for group in names]
        style = {"marker": MARKERS[place], "color": COLORS[place], "markersize": 7, "zorder": 3}
        left.plot(values, rows + apart[place], linestyle="", label=name, **style)
    after, before = np.zeros(len(names)), np.zeros(len(names))
    for place, stage in enumerate(STAGES):
        parts = np.array([own[group].sources.get(stage, 0.0) for group in names])
        if np.any(parts):
            start = np.where(parts >= 0, after, before)
            right.barh(rows, parts, left=start, height=0.6, color=STAGE_COLORS[place], label=stage, zorder=2)
            after, before = after + np.maximum(parts, 0), before + np.minimum(parts, 0)
    total = [own[group].value for group in names]
    right.plot(total, rows, linestyle="", marker=MARKERS[0], markersize=7, color=COLORS[0], label="together", zorder=3)
    words = found.metric.replace("_", " ")
    figure.suptitle(f"{variable} in {table}: mean {words} over {found.draws} draws", x=0.01, ha="left", fontsize=13)
    left.set(xlabel=f"mean {words}", ylabel=found.by)
    right.set(xlabel=f"what each stage adds to the mean {words} of the plan")
    left.set_yticks(rows, names)
    for axes in (left, right):
        axes.grid(which="major", axis="x", color="#DDDDDD", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.09 - 0.5 / (2 + len(names))), frameon=False, ncols=2)
    confidential = found.privacy_label.startswith("CONFIDENTIAL")
    figure.supxlabel(
        found.privacy_label, fontsize=8.5, x=0.01, ha="left", color="#B00020" if confidential else "#777777"
    )
    return figure
