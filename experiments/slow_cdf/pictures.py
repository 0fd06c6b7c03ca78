"""The loss CDFs: the slides' six, our additions, and what was realized."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.frame import COLORS, DASHES, Picture, new_figure, tidy
from experiments.slow_cdf.losses import EDGES, Distribution

STYLES = {
    "gaussian": (COLORS[0], "-"),
    "identity": (COLORS[6], (0, (1.5, 3))),
    "general": (COLORS[1], "-"),
    "root": (COLORS[1], DASHES[1]),
    "polylog": (COLORS[2], "-"),
    "log": (COLORS[2], DASHES[1]),
    "general_tight": (COLORS[1], DASHES[2]),
    "polylog_tight": (COLORS[2], DASHES[2]),
    "root_offset": (COLORS[4], DASHES[3]),
    "root_laplace": (COLORS[3], "-"),
    "log_laplace": (COLORS[5], "-"),
}
"""Colors by order, solid for additive noise, dashed for transforms."""
LEAST = 0.05
LOSS = "privacy loss ρ of the establishment"


def pictures(found: Sequence[Distribution], realized: Mapping[str, Any]) -> list[Picture]:
    return [kinds(found), tails(found), additions(found), lost(found, realized)]


def kinds(found: Sequence[Distribution]) -> Picture:
    """The two plots of the slides: additive mechanisms and transformation mechanisms."""
    figure, axes = new_figure(1, 2, size=(13.0, 5.8), sharey=True)
    for axis, kind in zip(axes[0], ("additive", "transformation")):
        chosen = [each for each in found if not each.entry.ours and each.entry.kind == kind]
        for each, color in zip(chosen, COLORS):
            at = np.maximum(each.losses, LEAST)
            axis.step(at, each.shares, where="post", color=color, linewidth=2.2, label=each.entry.label)
        axis.set(xscale="log", xlim=(LEAST, 2 * max(each.quantile(0.999) for each in chosen[1:])), ylim=(0, 1.01))
        tidy(axis, title=f"{kind.capitalize()} mechanisms", xlabel=LOSS, ylabel="")
        axis.legend(frameon=False, fontsize=11, loc="lower right")
    axes[0, 0].set_ylabel("share of establishments with at most this loss", fontsize=12)
    return Picture(
        name="cdf",
        figure=figure,
        caption="Share of establishments whose loss is at most the value; a curve that rises faster is better. Each panel has a "
        "scale of its own, as on the slides.",
        alt="Distribution curves of privacy losses, additive mechanisms left, transformations right. Those of square order "
        "lead at very low losses and then fall behind; the scale of the transformations reaches further.",
    )


def tails(found: Sequence[Distribution]) -> Picture:
    chosen = [each for each in found if not each.entry.ours]
    figure = both_sides(chosen, "Six mechanisms of three orders, noise variance 2")
    largest = ", ".join(f"{each.entry.label} {each.quantile(1):.3g}" for each in chosen)
    return Picture(
        name="tails",
        figure=figure,
        caption=(
            "Left: share of establishments whose loss is at most the value. Right: share above it, where the orders part. "
            "Solid lines are additive noise, dashed ones transformations; the identity transform is Gaussian noise."
        ),
        alt=f"Distribution curves of privacy losses. Largest losses: {largest}.",
    )


def additions(found: Sequence[Distribution]) -> Picture:
    keys = ("general", "general_tight", "polylog", "polylog_tight", "log", "log_laplace", "root_laplace")
    chosen = [each for key in keys for each in found if each.entry.key == key]
    return Picture(
        name="additions",
        figure=both_sides(chosen, "The same noise with tighter policies, and Laplace noise"),
        caption="Our additions: dotted lines are tight policies of the noise whose paper policy is the solid line of that color.",
        alt="The tight policies lie left of the paper's; Laplace noise under the logarithm has the smallest largest loss.",
    )


def both_sides(chosen: Sequence[Distribution], title: str) -> Any:
    figure, axes = new_figure(1, 2, size=(13.0, 5.8))
    for each in chosen:
        color, dash = STYLES[each.entry.key]
        at = np.maximum(each.losses, LEAST)
        axes[0, 0].step(at, each.shares, where="post", color=color, linestyle=dash, linewidth=2.2)
        axes[0, 1].step(
            at, 1 - each.shares, where="post", color=color, linestyle=dash, linewidth=2.2, label=each.entry.label
        )
    top = 2 * max(each.quantile(1) for each in chosen)
    axes[0, 0].set(xscale="log", xlim=(LEAST, min(top, 1e4)), ylim=(0, 1.01))
    axes[0, 1].set(xscale="log", yscale="log", xlim=(LEAST, top), ylim=(1e-7, 1.3))
    tidy(axes[0, 0], title="All establishments", xlabel=LOSS, ylabel="share of establishments with at most this loss")
    tidy(axes[0, 1], title="The tail: share above, logarithmic", xlabel=LOSS, ylabel="share of establishments above it")
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=11, handlelength=3.4)
    figure.suptitle(title, x=0.01, ha="left", fontsize=15)
    return figure


def lost(found: Sequence[Distribution], realized: Mapping[str, Any]) -> Picture:
    figure, axes = new_figure(size=(10.5, 6.0))
    for each in found:
        key = each.entry.key
        if key in realized:
            color = STYLES[key][0]
            axes[0, 0].step(each.losses, each.shares, where="post", color=color, linewidth=2.2, label=each.entry.label)
            axes[0, 0].plot(
                EDGES,
                realized[key].cdf(),
                color=color,
                linestyle=DASHES[2],
                linewidth=2.2,
                label=f"{each.entry.label}, realized",
            )
    axes[0, 0].set(xscale="log", xlim=(1e-8, 1e4), ylim=(0, 1.01))
    tidy(
        axes[0, 0],
        title="What transforms promise, and what records of filled cells lose",
        xlabel=LOSS,
        ylabel="share of establishments with at most this loss",
    )
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=11, handlelength=3.4)
    return Picture(
        name="realized",
        figure=figure,
        caption="Solid: the policy, which must hold for an empty cell. Dotted: the realized loss beside the cell's other records.",
        alt="For each transform the realized losses lie several powers of ten below the policy for most establishments.",
    )
