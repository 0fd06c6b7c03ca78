"""The frontier as a figure: losses against the share of the cells that is reliable, with today's plan on it."""

from typing import TYPE_CHECKING

import numpy as np

from recordwise.planning.frontier import Frontier
from recordwise.planning.plots import COLORS, DASHES, MARKERS, legend, paper, percent
from recordwise.planning.ranks import RANK_WORDS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_CLASSES = 5


def plot_frontier(found: Frontier, *, title: str = "What accuracy costs") -> "Figure":
    """The share of reliable cells against the loss: of all cells, and of the size classes with the most to tell.

    Args:
        found: The frontier.
        title: The title of the figure.

    Returns:
        The figure.
    """
    losses, shares = found.curve()
    shown = found.classes()
    # Classes that are always or never reliable say nothing.
    moving = [
        (place, name)
        for place, name in shown
        if np.ptp([point.reliable.by_class[place] for point in found.points]) > 0.02
    ][-MOST_CLASSES:]
    curves = {"all cells": shares} | {
        f"cells of {name}": np.array([point.reliable.by_class[place] for point in found.points])
        for place, name in moving
    }
    figure, axes = paper(curves, title, found.privacy_label)
    for place, (name, own) in enumerate(curves.items()):
        width = 2.6 if place == 0 else 1.4
        axes.plot(losses, own, color=COLORS[place], linestyle=DASHES[place], linewidth=width, label=name)
    if found.today is not None:
        axes.plot(
            [found.today.loss(found.rank_by)],
            [found.today.reliable.share],
            linestyle="",
            marker=MARKERS[0],
            markersize=11,
            color="#000000",
            label="today's plan, all cells",
        )
    axes.set(
        xscale="log",
        xlabel=f"{RANK_WORDS[found.rank_by]} privacy loss ρ of the records",
        ylabel=f"share of the cells that are {found.status}",
    )
    axes.set_ylim(-0.02, 1.02)
    percent(axes)
    legend(axes)
    return figure
