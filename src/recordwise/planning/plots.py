"""Figures for planning: losses, errors, trade-offs, evaluations and the frontier.

matplotlib (the ``plots`` extra) is imported when a figure is drawn. Figures belong to no window: save or show them. A
CONFIDENTIAL label is printed in the figure.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from recordwise.errors import ParameterError
from recordwise.exact.text import formula_text, prose_text, share_text, tick_text
from recordwise.mechanisms.base import Mechanism
from recordwise.planning.frontier import Frontier
from recordwise.planning.simulate.baselines import STAGES
from recordwise.policy.columns import Measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from recordwise.planning.simulate.evaluate import Evaluation


COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
"""Okabe and Ito's palette, which color-blind readers can distinguish, without its yellow, which is too pale on white."""
DASHES = ("-", (0, (6, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)), (0, (3, 1.5)), (0, (10, 3)), "-", (0, (1.5, 3)))
"""Dash patterns, for printing without color."""
POINTS = 400
LEAST_LOSS = 1e-6
"""Smaller losses are not shown."""
COINCIDE = 0.01
"""Curves this close, in relative terms, look the same on these scales."""


def plot_losses(
    mechanisms: Mapping[str, Mechanism],
    measure: Measure | str,
    *,
    largest: float = 1e6,
    most: float = 1e4,
    title: str = "What a record pays",
) -> "Figure":
    """Plot each mechanism's policy against the record's value, up to ``most``."""
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
    """Plot each mechanism's standard deviation against the exact total."""
    summed = Measure.of(measure)
    totals = _spread(float(summed.step), largest)
    unit = totals if relative else np.ones_like(totals)
    errors = {
        name: np.sqrt(mechanism.variance_of(totals, step=summed.step)) / unit for name, mechanism in mechanisms.items()
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
    """Points on the measure's lattice, evenly spaced on the logarithmic scale."""
    if not largest > step:
        raise ParameterError(parameter="largest", problem=f"must be above the measure's step {formula_text(step)}")
    return np.unique(np.rint(np.geomspace(step, largest, POINTS) / step)) * step


def _marked(name: str, error: Any) -> str:
    return name if np.any(np.isfinite(error)) else f"{name} (no variance)"


def _drawn(x: Any, curves: Mapping[str, Any], title: str, labels: Mapping[str, str]) -> "Figure":
    """Draw one line per curve.

    Curves that coincide share a line and a legend entry; the legend is ordered by the right ends.
    """
    if not 0 < len(curves) <= len(COLORS):
        raise ParameterError(
            parameter="mechanisms", problem=f"must be 1 to {len(COLORS)}, so that lines can be distinguished"
        )
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 5.2), dpi=120, layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log", **labels)
    axes.set_title(title, loc="left", fontsize=13, pad=10)
    styles = dict(zip(curves, zip(COLORS, DASHES)))
    for names, curve in _distinct(curves):
        color, dash = styles[names[0]]
        axes.plot(x, curve, color=color, linestyle=dash, linewidth=2.0, label="\n".join(names))
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
    """Merge curves that differ by less than a line's width."""
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
    """Return the height at which a line ends."""
    inside = np.flatnonzero(np.isfinite(curve))
    return (-int(inside[-1]), float(curve[inside[-1]])) if inside.size else (-len(curve), -np.inf)


LEAST_PLOTTED = 1e-4
MOST_LINES = len(COLORS)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


def plot_loss_shares(
    curves: Mapping[str, tuple[Any, Any]],
    *,
    privacy_label: str = "",
    title: str = "How many records lose how much",
    of: str = "records",
) -> "Figure":
    """Plot the share of records above each loss.

    For each mechanism, on logarithmic scales. ``curves`` are losses in ascending order and the share with at
    most each, as returned by ``Comparison.curves()``.
    """
    figure, axes = paper(curves, title, privacy_label)
    for (names, losses, shares), (color, dash) in zip(_different(curves), zip(COLORS, DASHES)):
        above, at = _tail(losses, shares)
        axes.step(at, above, where="post", color=color, linestyle=dash, linewidth=2.0, label="\n".join(names))
    axes.set(xscale="log", yscale="log", xlabel="privacy loss ρ", ylabel=f"share of the {of} that lose more")
    axes.set_ylim(top=1.15)
    percent(axes)
    legend(axes)
    return figure


def _different(curves: Mapping[str, tuple[Any, Any]]) -> list[tuple[list[str], Any, Any]]:
    """The curves with their names; curves that coincide share a line."""
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
    """Return the share above each loss.

    It ends where no record is left, and losses too small to show start at the edge.
    """
    above = np.concatenate([[1.0], 1 - shares])
    at = np.concatenate([[min(LEAST_PLOTTED, losses[0] if losses.size else LEAST_PLOTTED)], losses])
    at = np.maximum(at, LEAST_PLOTTED)
    floor = above[above > 1e-12].min()
    return np.where(above > 1e-12, above, floor / 3), at


def plot_cell_errors(
    totals: Any,
    errors: Mapping[str, Any],
    *,
    measure: str,
    confidence: float = 0.95,
    privacy_label: str = "",
    title: str = "",
) -> "Figure":
    """Plot each mechanism's relative cell errors against the totals."""
    held = np.asarray(totals, float) > 0
    size = np.asarray(totals, float)[held]
    order = np.argsort(size)
    figure, axes = paper(errors, title or f"{share_text(confidence)} error of a cell", privacy_label)
    for (name, error), (color, dash) in zip(errors.items(), zip(COLORS, DASHES)):
        at, relative = _thinned(size[order], (np.asarray(error, float)[held] / size)[order])
        axes.plot(at, relative, color=color, linestyle=dash, linewidth=2.0, label=name)
    axes.axhline(1.0, color="#BBBBBB", linewidth=1.0, zorder=1)
    axes.annotate("error as large as the total", (size.max(), 1.0), **_REMARK_ABOVE)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel=f"exact total of the cell ({measure})",
        ylabel="error, as a share of the total",
    )
    percent(axes)
    legend(axes)
    return figure


def _thinned(x: Any, y: Any) -> tuple[Any, Any]:
    """Return medians over narrow ranges of totals."""
    edges = np.unique(np.geomspace(x[0], x[-1] * (1 + 1e-9), 80))
    place = np.searchsorted(edges, x, side="right")
    kept = [(np.median(x[place == each]), np.median(y[place == each])) for each in np.unique(place)]
    return np.array([each[0] for each in kept]), np.array([each[1] for each in kept])


def plot_sweep(
    curves: Mapping[str, tuple[Any, Any, Any]],
    *,
    measure: str,
    privacy_label: str = "",
    title: str = "Thresholds and their price",
) -> "Figure":
    """Plot median errors against shares of records above rho.

    A curve for each rho, and a dot for each threshold, labeled on the lowest curve.
    """
    figure, axes = paper(curves, title, privacy_label)
    lowest = min(curves, key=lambda name: float(np.median(curves[name][2])))
    for place, (name, (at, share, error)) in enumerate(curves.items()):
        axes.plot(
            share,
            error,
            color=COLORS[place],
            linestyle=DASHES[place],
            marker=MARKERS[place],
            markersize=6,
            linewidth=2.0,
            label=name,
        )
        for threshold, x, y in zip(at, share, error) if name == lowest else ():
            axes.annotate(
                f"{prose_text(threshold)}",
                (x, y),
                textcoords="offset points",
                xytext=(-5, -13),
                fontsize=8.5,
                ha="right",
            )
    axes.set(
        xscale="log",
        yscale="log",
        xlabel=f"share of the records that lose more than ρ ({measure} above the threshold)",
        ylabel="median absolute relative error of a cell",
    )
    percent(axes)
    _labels(axes.xaxis, _percent_text)
    legend(axes)
    return figure


def plot_fitness(
    names: Sequence[str],
    quantiles: Mapping[str, Sequence[float]],
    *,
    privacy_label: str = "",
    title: str = "Losses that meet the goals",
) -> "Figure":
    """Plot quantiles of losses, one row for each family."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 1.6 + 0.45 * len(names)), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, loc="left", fontsize=13, pad=10)
    rows = np.arange(len(names))[::-1]
    values = np.array([quantiles[each] for each in quantiles], float)
    axes.hlines(rows, values.min(axis=0), values.max(axis=0), color="#CCCCCC", linewidth=2.0, zorder=1)
    for place, (label, losses) in enumerate(quantiles.items()):
        axes.plot(
            losses, rows, linestyle="", marker=MARKERS[place], markersize=8, color=COLORS[place], label=label, zorder=2
        )
    axes.set_yticks(rows, names)
    axes.set(xscale="log", xlabel="privacy loss ρ of a record")
    axes.set_ylim(-0.6, len(names) - 0.4)
    _finish(figure, axes, privacy_label)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    return figure


_REMARK_ABOVE: dict[str, Any] = {
    "textcoords": "offset points",
    "xytext": (-4, 4),
    "ha": "right",
    "fontsize": 8.5,
    "color": "#777777",
}


def paper(curves: Mapping[str, Any], title: str, privacy_label: str) -> tuple["Figure", Any]:
    """Return an empty figure with its title and privacy label."""
    if not 0 < len(curves) <= len(COLORS):
        raise ParameterError(
            parameter="curves", problem=f"must be 1 to {len(COLORS)}, so that lines can be distinguished"
        )
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 5.2), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, loc="left", fontsize=13, pad=10)
    _finish(figure, axes, privacy_label)
    return figure, axes


def _finish(figure: "Figure", axes: Any, privacy_label: str) -> None:
    axes.grid(which="major", color="#DDDDDD", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if privacy_label:
        confidential = privacy_label.startswith("CONFIDENTIAL")
        figure.supxlabel(privacy_label, fontsize=8.5, x=0.01, ha="left", color="#B00020" if confidential else "#777777")


def _percent_text(value: float, _: int) -> str:
    return tick_text(value)


def _number_text(value: float, _: int) -> str:
    return prose_text(value)


def percent(axes: Any) -> None:
    """Percentages on the vertical axis."""
    _labels(axes.yaxis, _percent_text)


def _labels(axis: Any, text: Callable[[float, int], str]) -> None:
    """Write the labels of an axis alike, also those between the powers of ten."""
    from matplotlib.ticker import LogFormatterSciNotation

    class Between(LogFormatterSciNotation):
        def __call__(self, x: float, pos: int | None = None) -> str:
            return text(x, 0) if super().__call__(x, pos) else ""

    axis.set_major_formatter(text)
    if axis.get_scale() == "log":
        axis.set_minor_formatter(Between())


def legend(axes: Any) -> None:
    """The legend, next to the figure."""
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, handlelength=3.4, labelspacing=0.9)


# The figure of an evaluation: a metric by group for a plan and its baselines, and what each stage adds for the plan.


MOST_GROUPS = 40
"""At most this many groups are drawn, those with the most cells."""
APART = 0.24
"""How far the first and the last dot of a row are from its middle."""
MOST_LINEAR = 10
"""Values that differ by more than this factor are drawn on a logarithmic scale."""
STAGE_COLORS = ("#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")
"""Other colors than those of the plan and its baselines."""


def plot_evaluation(found: "Evaluation", table: str, variable: str) -> "Figure":
    """Plot an evaluation, one row for each group.

    Left: a dot for the plan and for each baseline; right: bars that add up to the plan's dot.
    """
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
        if np.all(np.isnan(values)):
            continue
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
    words = found.metric_words
    figure.suptitle(f"{variable} in {table}: {words} over {found.draws} draws", x=0.01, ha="left", fontsize=13)
    left.set(xlabel=words, ylabel=found.by)
    right.set(xlabel=f"what each stage adds to the plan's {words}")
    left.set_yticks(rows, names)
    shown_values = [groups[group].value for groups in every.values() for group in names if group in groups]
    _spread_out(left, np.array(shown_values, float))
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


def _spread_out(axes: Any, values: Any) -> None:
    """Put values of several orders of magnitude on a logarithmic scale that has a 0."""
    known = values[np.isfinite(values)]
    sizes = np.abs(known[known != 0])
    if sizes.size and sizes.max() > MOST_LINEAR * sizes.min():
        least = 10.0 ** np.floor(np.log10(sizes.min()))
        axes.set_xscale("symlog", linthresh=least)
        axes.xaxis.set_major_formatter(_number_text)
        axes.set_xlim(-1.6 * sizes.max() if known.min() < 0 else -least / 5, 1.6 * sizes.max())


# The frontier as a figure: losses against the share of the cells that is reliable, with today's plan on it.


MOST_CLASSES = 5


def plot_frontier(found: Frontier, *, title: str = "What accuracy costs") -> "Figure":
    """Plot the share of reliable cells against the loss.

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
        style: dict[str, Any] = {"color": COLORS[place], "linestyle": DASHES[place], "linewidth": width}
        axes.plot(losses, own, marker=MARKERS[0] if place == 0 else "", markersize=4, label=name, **style)
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
        xlabel=f"{found.rank_by} privacy loss ρ of the records",
        ylabel=f"share of the cells that are {found.status}",
    )
    axes.set_ylim(-0.02, 1.02)
    percent(axes)
    _labels(axes.xaxis, _number_text)
    legend(axes)
    return figure
