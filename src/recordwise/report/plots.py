"""Two pictures to choose a mechanism by: what a record pays, and how large the error of a total is.

matplotlib is imported when a figure is drawn (the ``plots`` extra), and figures belong to no window: save or show them.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from recordwise.errors import ParameterError
from recordwise.mechanisms import Mechanism
from recordwise.policy import Measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
"""Okabe and Ito's palette, told apart by colour-blind readers too; its yellow is left out, which pales on white."""
DASHES = ("-", (0, (6, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)), (0, (3, 1.5)), (0, (10, 3)), "-", (0, (1.5, 3)))
"""And by dashes, in print without colour."""
POINTS = 400
LEAST_LOSS = 1e-6
"""Losses below are not worth a decade of paper."""
COINCIDE = 0.01
"""Curves this close, relatively, cannot be told apart on these scales."""


def plot_losses(
    mechanisms: Mapping[str, Mechanism],
    measure: Measure | str,
    *,
    largest: float = 1e6,
    most: float = 1e4,
    title: str = "What a record pays",
) -> "Figure":
    """The policy of each mechanism against the value of the record, both on logarithmic scales, for losses up to ``most``."""
    summed = Measure.of(measure)
    records = _spread(float(summed.step), largest)
    losses = {
        name: np.asarray(mechanism.policy(summed).loss({summed.name: records}))
        for name, mechanism in mechanisms.items()
    }
    shown = {name: np.where((loss >= LEAST_LOSS) & (loss <= most), loss, np.nan) for name, loss in losses.items()}
    axes_of = {"xlabel": f"value of the record ({summed.name})", "ylabel": "privacy loss ρ of the record"}
    return _drawn(records, shown, title, axes_of)


def plot_errors(
    mechanisms: Mapping[str, Mechanism],
    measure: Measure | str,
    *,
    largest: float = 1e6,
    relative: bool = False,
    title: str = "How large the error of a total is",
) -> "Figure":
    """The standard deviation of each mechanism's estimate against the exact total, or with ``relative`` its share of the total."""
    summed = Measure.of(measure)
    totals = _spread(float(summed.step), largest)
    unit = totals if relative else np.ones_like(totals)
    errors = {
        name: np.sqrt(mechanism.variance(_parts(mechanism, totals), step=summed.step)) / unit
        for name, mechanism in mechanisms.items()
    }
    shown = {_marked(name, error): np.where(np.isfinite(error), error, np.nan) for name, error in errors.items()}
    what = "standard deviation, as a share of the total" if relative else f"standard deviation ({summed.name})"
    figure = _drawn(totals, shown, title, {"xlabel": f"exact total ({summed.name})", "ylabel": what})
    if relative:
        figure.axes[0].axhline(1.0, color="#BBBBBB", linewidth=1.0, zorder=1)
        figure.axes[0].annotate("error as large as the total", (totals[-1], 1.0), **_REMARK)
    return figure


_REMARK: dict[str, Any] = {
    "textcoords": "offset points",
    "xytext": (-4, 4),
    "ha": "right",
    "fontsize": 8.5,
    "color": "#777777",
}


def _spread(step: float, largest: float) -> Any:
    """Points on the measure's lattice, evenly spread over the logarithm."""
    if not largest > step:
        raise ParameterError(parameter="largest", problem=f"must be above the measure's step {step:g}")
    return np.unique(np.rint(np.geomspace(step, largest, POINTS) / step)) * step


def _parts(mechanism: Any, totals: Any) -> Any:
    return np.stack([totals, np.zeros_like(totals)]) if getattr(mechanism, "signed", False) else totals


def _marked(name: str, error: Any) -> str:
    return name if np.any(np.isfinite(error)) else f"{name} (no variance)"


def _drawn(x: Any, curves: Mapping[str, Any], title: str, labels: Mapping[str, str]) -> "Figure":
    """One line for each curve; curves that coincide share a line and a legend entry; the legend follows the right ends."""
    if not 0 < len(curves) <= len(COLOURS):
        raise ParameterError(parameter="mechanisms", problem=f"must be 1 to {len(COLOURS)}, to tell their lines apart")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 5.2), dpi=120, layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log", **labels)
    axes.set_title(title, loc="left", fontsize=13, pad=10)
    styles = dict(zip(curves, zip(COLOURS, DASHES)))
    for names, curve in _distinct(curves):
        colour, dash = styles[names[0]]
        axes.plot(x, curve, color=colour, linestyle=dash, linewidth=2.0, label="\n".join(names))
    axes.grid(which="major", color="#DDDDDD", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.01)
    ordered = sorted(axes.get_lines(), key=lambda line: _end(line.get_ydata()), reverse=True)
    axes.legend(
        handles=ordered,
        loc="center left",
        bbox_to_anchor=(1.01, 0.5),
        frameon=False,
        handlelength=3.4,
        labelspacing=0.9,
    )
    return figure


def _distinct(curves: Mapping[str, Any]) -> list[tuple[list[str], Any]]:
    """The curves with their names; those that differ by less than a line's width are one."""
    found: list[tuple[list[str], Any]] = []
    for name, curve in curves.items():
        same = (names for names, other in found if np.allclose(curve, other, rtol=COINCIDE, atol=0.0, equal_nan=True))
        names = next(same, None)
        if names is None:
            found.append(([name], curve))
        else:
            names.append(name)
    return found


def _end(curve: Any) -> tuple[int, float]:
    """Where a line ends: one that leaves through the top ends the higher the earlier it leaves."""
    inside = np.flatnonzero(np.isfinite(curve))
    return (-int(inside[-1]), float(curve[inside[-1]])) if inside.size else (-len(curve), -np.inf)
