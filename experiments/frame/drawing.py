"""The look of the figures: one palette told apart by color-blind readers, sizes that can be read from the back of a room."""

from typing import TYPE_CHECKING, Any

from recordwise.planning.plots import COLORS, DASHES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COLORS", "DASHES", "new_figure", "tidy"]

FONT = 12
TITLE = 14


def new_figure(rows: int = 1, columns: int = 1, *, size: tuple[float, float] = (9.0, 5.2), **shared: Any) -> Any:
    """A figure that belongs to no window, and its axes as a two-dimensional array."""
    from matplotlib.figure import Figure

    figure: Figure = Figure(figsize=size, dpi=150, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **shared)


def tidy(axes: "Axes", *, title: str, xlabel: str, ylabel: str) -> None:
    """Labels, a light grid, no box."""
    axes.set_title(title, loc="left", fontsize=TITLE, pad=10)
    axes.set_xlabel(xlabel, fontsize=FONT)
    axes.set_ylabel(ylabel, fontsize=FONT)
    axes.tick_params(labelsize=FONT - 2)
    axes.grid(which="major", color="#DDDDDD", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
