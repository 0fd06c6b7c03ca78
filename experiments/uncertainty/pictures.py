"""The principle in three panels: the sum, the worst cell, and the criterion."""

from collections.abc import Sequence

from experiments.frame import COLORS, DASHES, Picture, new_figure, tidy
from experiments.uncertainty.measuring import Line

LOOK = {
    "point first": (COLORS[0], "o"),
    "sum first": (COLORS[1], "s"),
    "sum first, bounded noise": (COLORS[2], "^"),
}
PRIVACY = {"laplace": "ε = 1", "gaussian": "ρ = 1/2"}


def pictures(lines: Sequence[Line]) -> list[Picture]:
    return [picture([line for line in lines if line.noise == noise], noise) for noise in ("laplace", "gaussian")]


def picture(lines: Sequence[Line], noise: str) -> Picture:
    figure, axes = new_figure(1, 3, size=(15.5, 5.8))
    for name, (color, marker) in LOOK.items():
        chosen = [line for line in lines if line.construction == name]
        if chosen:
            draw(axes[0], chosen, name, color, marker)
    for each in axes[0]:
        each.set(xscale="log")
    axes[0, 0].set(yscale="log")
    axes[0, 0].plot([], [], color="#555555", linestyle=DASHES[1], label="promised for every table")
    axes[0, 0].plot([], [], color="#555555", linestyle=DASHES[2], label="least possible, given the other promise")
    for each in axes[0, 1:]:
        each.set(ylim=(0, None))
    size = "number of cells"
    tidy(axes[0, 0], title=f"The sum, {PRIVACY[noise]}", xlabel=size, ylabel="root mean squared error of the sum")
    tidy(axes[0, 1], title="The worst cell", xlabel=size, ylabel="root mean squared error of the worst cell")
    tidy(axes[0, 2], title="All cells at once", xlabel=size, ylabel="root mean of the largest squared error")
    figure.legend(loc="outside lower center", ncols=5, frameon=False, fontsize=11, handlelength=3.4)
    return Picture(
        name=f"uncertainty_{noise}",
        figure=figure,
        caption=(
            "Lines with marks: measured, the worst of three tables. Dashes: what is promised for every table. Dotted: what no "
            "construction can stay below. Left and middle: one error grows or the other does. Right: judged by the largest "
            "error of a draw, every construction grows."
        ),
        alt=(
            "Left: the error of the sum rises with the number of cells when cells come first, and is flat when the sum does. "
            "Middle: the worst cell is flat when cells come first and rises with the logarithm when the sum does. Right: "
            "the largest error of a draw rises with the logarithm for all constructions."
        ),
    )


def draw(axes: object, chosen: Sequence[Line], name: str, color: str, marker: str) -> None:
    """One construction in all three panels: each lower bound where it says something, on the error that was given up."""
    size = [line.cells for line in chosen]
    measured = {"color": color, "marker": marker, "linewidth": 2.0, "markersize": 6}
    bound = {"color": color, "linewidth": 1.8}
    left, middle, right = axes  # type: ignore[misc]
    left.plot(size, [line.sum_error for line in chosen], label=name, **measured)
    left.plot(size, [line.sum_upper for line in chosen], linestyle=DASHES[1], **bound)
    middle.plot(size, [line.cell_error for line in chosen], **measured)
    middle.plot(size, [line.cell_upper for line in chosen], linestyle=DASHES[1], **bound)
    if name == "point first":
        left.plot(size, [line.sum_lower for line in chosen], linestyle=DASHES[2], **bound)
    else:
        middle.plot(size, [line.cell_lower for line in chosen], linestyle=DASHES[2], **bound)
    right.plot(size, [line.simultaneous for line in chosen], **measured)
