"""Pictures of what planning finds: losses of the records, errors of the cells, and the price of one in the other.

They take what results of ``recordwise.planning`` offer (``curves()``, ``mark``, arrays) and know nothing else about them. A mark
that says CONFIDENTIAL is printed into the picture.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from recordwise.errors import ParameterError
from recordwise.report.plots import COLOURS, DASHES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST_LOSS = 1e-4
MOST_LINES = len(COLOURS)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


def plot_loss_shares(
    curves: Mapping[str, tuple[Any, Any]],
    *,
    mark: str = "",
    title: str = "How many records lose how much",
    of: str = "records",
) -> "Figure":
    """For each mechanism the share of the records that lose more than a loss, both on logarithmic scales.

    ``curves`` hold losses in rising order and the share with at most each, as ``Comparison.curves()`` gives them.
    """
    figure, axes = _paper(curves, title, mark)
    for (names, losses, shares), (colour, dash) in zip(_different(curves), zip(COLOURS, DASHES)):
        above, at = _tail(losses, shares)
        axes.step(at, above, where="post", color=colour, linestyle=dash, linewidth=2.0, label="\n".join(names))
    axes.set(xscale="log", yscale="log", xlabel="privacy loss ρ", ylabel=f"share of the {of} that lose more")
    axes.set_ylim(top=1.15)
    _percent(axes)
    _legend(axes)
    return figure


def _different(curves: Mapping[str, tuple[Any, Any]]) -> list[tuple[list[str], Any, Any]]:
    """The curves with their names; those that coincide share a line."""
    found: list[tuple[list[str], Any, Any]] = []
    for name, (given, held) in curves.items():
        losses, shares = np.asarray(given, float), np.asarray(held, float)
        same = (
            names
            for names, other, part in found
            if other.shape == losses.shape and np.allclose(other, losses, rtol=0.01) and np.allclose(part, shares)
        )
        names = next(same, None)
        if names is None:
            found.append(([name], losses, shares))
        else:
            names.append(name)
    return found


def _tail(losses: Any, shares: Any) -> tuple[Any, Any]:
    """The share above each loss; it ends where nobody is left, and losses too small for a picture start at its edge."""
    above = np.concatenate([[1.0], 1 - shares])
    at = np.concatenate([[min(LEAST_LOSS, losses[0] if losses.size else LEAST_LOSS)], losses])
    at = np.maximum(at, LEAST_LOSS)
    floor = above[above > 1e-12].min()
    return np.where(above > 1e-12, above, floor / 3), at


def plot_cell_errors(
    totals: Any, errors: Mapping[str, Any], *, measure: str, level: float = 0.95, mark: str = "", title: str = ""
) -> "Figure":
    """For each mechanism the error of the cells, as a share of their total, against that total."""
    held = np.asarray(totals, float) > 0
    size = np.asarray(totals, float)[held]
    order = np.argsort(size)
    figure, axes = _paper(errors, title or f"{level:.0%} error of a cell", mark)
    for (name, error), (colour, dash) in zip(errors.items(), zip(COLOURS, DASHES)):
        at, relative = _thinned(size[order], (np.asarray(error, float)[held] / size)[order])
        axes.plot(at, relative, color=colour, linestyle=dash, linewidth=2.0, label=name)
    axes.axhline(1.0, color="#BBBBBB", linewidth=1.0, zorder=1)
    axes.annotate("error as large as the total", (size.max(), 1.0), **_REMARK)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel=f"exact total of the cell ({measure})",
        ylabel="error, as a share of the total",
    )
    _percent(axes)
    _legend(axes)
    return figure


def _thinned(x: Any, y: Any) -> tuple[Any, Any]:
    """Medians over narrow ranges of totals: mechanisms with a bias differ from cell to cell."""
    edges = np.unique(np.geomspace(x[0], x[-1] * (1 + 1e-9), 80))
    place = np.searchsorted(edges, x, side="right")
    kept = [(np.median(x[place == each]), np.median(y[place == each])) for each in np.unique(place)]
    return np.array([each[0] for each in kept]), np.array([each[1] for each in kept])


def plot_sweep(
    curves: Mapping[str, tuple[Any, Any, Any]],
    *,
    measure: str,
    mark: str = "",
    title: str = "Thresholds and their price",
) -> "Figure":
    """Median error of the cells against the share of records that lose more than rho; a curve for each rho, a dot for each
    threshold, which is written beside the dots of the lowest curve."""
    figure, axes = _paper(curves, title, mark)
    lowest = min(curves, key=lambda name: float(np.median(curves[name][2])))
    for place, (name, (at, share, error)) in enumerate(curves.items()):
        axes.plot(
            share,
            error,
            color=COLOURS[place],
            linestyle=DASHES[place],
            marker=MARKERS[place],
            markersize=6,
            linewidth=2.0,
            label=name,
        )
        for threshold, x, y in zip(at, share, error) if name == lowest else ():
            axes.annotate(
                f"{threshold:,g}", (x, y), textcoords="offset points", xytext=(-5, -13), fontsize=8.5, ha="right"
            )
    axes.set(
        xscale="log",
        yscale="log",
        xlabel=f"share of the records that lose more than ρ ({measure} above the threshold)",
        ylabel="median absolute relative error of a cell",
    )
    _percent(axes)
    axes.xaxis.set_major_formatter(_percent_text)
    _legend(axes)
    return figure


def plot_fitness(
    names: Sequence[str],
    quantiles: Mapping[str, Sequence[float]],
    *,
    mark: str = "",
    title: str = "Losses that meet the goals",
) -> "Figure":
    """Each family as a row: a dot for each quantile of the losses of the records, on a logarithmic scale."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 1.6 + 0.45 * len(names)), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, loc="left", fontsize=13, pad=10)
    rows = np.arange(len(names))[::-1]
    values = np.array([quantiles[each] for each in quantiles], float)
    axes.hlines(rows, values.min(axis=0), values.max(axis=0), color="#CCCCCC", linewidth=2.0, zorder=1)
    for place, (label, losses) in enumerate(quantiles.items()):
        axes.plot(
            losses, rows, linestyle="", marker=MARKERS[place], markersize=8, color=COLOURS[place], label=label, zorder=2
        )
    axes.set_yticks(rows, names)
    axes.set(xscale="log", xlabel="privacy loss ρ of a record")
    axes.set_ylim(-0.6, len(names) - 0.4)
    _finish(figure, axes, mark)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    return figure


_REMARK: dict[str, Any] = {
    "textcoords": "offset points",
    "xytext": (-4, 4),
    "ha": "right",
    "fontsize": 8.5,
    "color": "#777777",
}


def _paper(curves: Mapping[str, Any], title: str, mark: str) -> tuple["Figure", Any]:
    if not 0 < len(curves) <= len(COLOURS):
        raise ParameterError(parameter="curves", problem=f"must be 1 to {len(COLOURS)}, to tell their lines apart")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 5.2), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, loc="left", fontsize=13, pad=10)
    _finish(figure, axes, mark)
    return figure, axes


def _finish(figure: "Figure", axes: Any, mark: str) -> None:
    axes.grid(which="major", color="#DDDDDD", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if mark:
        confidential = mark.startswith("CONFIDENTIAL")
        figure.supxlabel(mark, fontsize=8.5, x=0.01, ha="left", color="#B00020" if confidential else "#777777")


def _percent_text(value: float, _: int) -> str:
    return f"{value:.10%}".rstrip("%").rstrip("0").rstrip(".") + "%"


def _percent(axes: Any) -> None:
    axes.yaxis.set_major_formatter(_percent_text)


def _legend(axes: Any) -> None:
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, handlelength=3.4, labelspacing=0.9)
