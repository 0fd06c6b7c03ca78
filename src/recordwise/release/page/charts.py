"""Charts of one measure: record loss and noise by size.

The loss of a record of each size and, on the same axis, the size of a total's noise. The charts are SVG,
drawn with the helpers that draw policies in notebooks; everything around them is in the templates.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recordwise.exact.text import digits_text, loss_text, number_text, prose_text, share_text, size_text
from recordwise.mechanisms.base import Mechanism
from recordwise.plan.statistics.base import SUM
from recordwise.policy.columns import Measure
from recordwise.policy.policy import Policy
from recordwise.policy.render.html import Html, Line, LogAxis, element, ladder, log_spaced, path
from recordwise.release.page.questions import losses_along
from recordwise.release.tables import PagePart

WIDTH, HEIGHT = 440, 458
LEFT, RIGHT = 58, 424
LOSSES = LogAxis(low=1e-3, high=1e4, start=206, end=26)
NOISES = LogAxis(low=1e-3, high=10, start=408, end=270)
POINTS = 61
MOST_LINES = 5
MOST_DIGITS = 10**9
LETTER = 7.2
"""The width of a letter where letters are largest, on narrow screens."""
SAME = 0.01
"""Curves this close, in relative terms, look the same."""
SEEN = 0.1
"""The part of its points that a line of noise must have on the chart."""
SIZED = "size of the cell"
"""What the words of noise by size say."""
LITTLE, MUCH = "almost nothing can be learned", "hardly any protection"
EXACT, NOISY = "almost exact", "mostly noise"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Sizes, their losses, and each sum's relative noise."""

    measure: Measure
    label: str
    sizes: tuple[float, ...]
    losses: tuple[float, ...]
    noises: tuple[Line, ...]

    @property
    def across(self) -> LogAxis:
        return LogAxis(low=self.sizes[0], high=self.sizes[-1], start=LEFT, end=RIGHT)

    def to_json(self) -> dict[str, Any]:
        """Return what the script needs to redraw and follow the pointer."""
        noises = [[line.name, [_brief(float(digits_text(y, 4))) for y in line.y]] for line in self.noises]
        return {"name": self.measure.name, "sizes": [_brief(size) for size in self.sizes], "noises": noises}


def _brief(value: float) -> float | int | None:
    """Return a number in brief; None if not finite."""
    if not math.isfinite(value):
        return None
    return int(value) if value == int(value) and abs(value) < MOST_DIGITS else value


def figure_of(
    policy: Policy,
    parts: Sequence[PagePart],
    measure: Measure,
    label: str,
    record: Mapping[str, Any],
    sizes: tuple[float, ...],
) -> Figure:
    losses = tuple(losses_along(policy, record, measure.name, sizes))
    return Figure(measure=measure, label=label, sizes=sizes, losses=losses, noises=noise_lines(parts, measure, sizes))


def sizes_up_to(measure: Measure, reach: float) -> tuple[float, ...]:
    """The sizes at which the charts of a measure are drawn."""
    return tuple(log_spaced(float(measure.step), reach, POINTS))


def noise_lines(parts: Sequence[PagePart], measure: Measure, sizes: Sequence[float]) -> tuple[Line, ...]:
    """Return one line for each sum of the measure."""
    found: list[tuple[tuple[float, ...], dict[str, list[str]]]] = []
    summed = _telling([part for part in parts if part.kind == SUM and part.measure == measure.name], sizes)
    for part in summed:
        for ending, mechanism in extremes(part):
            curve = _relative(mechanism, part, sizes)
            same = (names for other, names in found if np.allclose(curve, other, rtol=SAME, atol=0.0, equal_nan=True))
            names = next(same, None)
            if names is None:
                names = {}
                found.append((curve, names))
            names.setdefault(part.statistic + ending, []).append(part.table)
    every = len({part.table for part in summed})
    lines = [Line(name=_line_name(names, every), x=sizes, y=curve) for curve, names in found]
    # A line above the chart at nearly every size would be in the legend alone.
    seen = [line for line in lines if sum(math.isfinite(y) and y <= NOISES.high for y in line.y) > SEEN * len(line.y)]
    known = [line for line in lines if any(math.isfinite(y) for y in line.y)]
    return tuple(seen or known)[:MOST_LINES]


def _telling(parts: Sequence[PagePart], sizes: Sequence[float]) -> Sequence[PagePart]:
    """Return all parts, or where many tables have noise by the size of their cells, the one with the least noise."""
    banded = [part for part in parts if len(part.mechanisms) > 1]
    if len(banded) < MOST_LINES - 1:
        return parts
    return [min(banded, key=lambda part: _relative(extremes(part)[0][1], part, sizes)[-1])]


def _line_name(names: Mapping[str, Sequence[str]], every: int) -> str:
    """Return a line's name, with its tables unless all."""
    told = []
    for name, tables in names.items():
        which = f" ({tables[0]})" if len(tables) == 1 else f" ({len(tables)} tables)"
        told.append(name if len(tables) == every else name + which)
    return ", ".join(told)


def extremes(part: PagePart) -> tuple[tuple[str, Any], ...]:
    """Return the mechanisms with the least and most noise."""
    if len(part.mechanisms) < 2:
        return tuple(("", mechanism) for mechanism in part.mechanisms)
    sigmas = [each.noise_sigma for each in part.mechanisms]
    # Without a sigma to compare they are in the order of their bands, from the smallest cells to the largest.
    known = None not in sigmas
    ordered = sorted(part.mechanisms, key=lambda each: each.noise_sigma or 0) if known else list(part.mechanisms)
    least, most = (
        ("smallest cells", "largest cells")
        if SIZED in part.noise
        else ("group with least noise", "group with most noise")
    )
    return ((f", {least}", ordered[0]), (f", {most}", ordered[-1]))


def _relative(mechanism: Mechanism, part: PagePart, sizes: Sequence[float]) -> tuple[float, ...]:
    return tuple(float(y) for y in np.sqrt(variances(mechanism, part, sizes)) / np.asarray(sizes))


def variances(mechanism: Mechanism, part: PagePart, sizes: Sequence[float]) -> list[float]:
    """Return the noise variance at these totals; infinite without one."""
    totals = np.asarray(sizes)
    with np.errstate(all="ignore"):
        found = np.broadcast_to(mechanism.variance_of(totals, step=part.step), totals.shape)
    return [float(value) if math.isfinite(value) else math.inf for value in found]


def draw(figure: Figure, number: int) -> Html:
    """Draw both panels as SVG, which ``chart_text`` describes."""
    return element(
        "svg",
        *_panel(figure.across, LOSSES, "Privacy loss ρ of one record", 7),
        *_panel(figure.across, NOISES, "Noise of a total, as a share of it", 5, percent=True),
        *_size_labels(figure.across),
        *_ends(),
        element(
            "text",
            "size of a record (above) or of a total (below)",
            x=(LEFT + RIGHT) / 2,
            y=HEIGHT - 6,
            class_="axis",
            text_anchor="middle",
        ),
        _clip_path(LOSSES, *_loss_marks(figure), beyond=0),
        _clip_path(LOSSES, element("circle", cx=-99, cy=0, r=5, class_="you"), beyond=6),
        _clip_path(NOISES, *_noise_marks(figure), beyond=0),
        *(
            element("line", x1=0, x2=0, y1=axis.end, y2=axis.start, class_="cursor", visibility="hidden")
            for axis in (LOSSES, NOISES)
        ),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_labelledby=f"told-{number}",
    )


def _loss_marks(figure: Figure) -> list[Html]:
    return [
        element("line", x1=LEFT, x2=RIGHT, y1=-9, y2=-9, class_="constant"),
        element("path", d=path(figure.sizes, figure.losses, figure.across, LOSSES), class_="loss"),
    ]


def _noise_marks(figure: Figure) -> list[Html]:
    return [
        element(
            "path",
            d=path(line.x, [y if math.isfinite(y) else 0 for y in line.y], figure.across, NOISES),
            class_=f"noise n{place}",
        )
        for place, line in enumerate(figure.noises)
    ]


def _clip_path(axis: LogAxis, *marks: Html, beyond: int) -> Html:
    """Clip marks to the axes, or so far beyond."""
    top, height = axis.end - beyond, axis.start - axis.end + 2 * beyond
    return element("svg", *marks, x=0, y=top, width=WIDTH, height=height, viewBox=f"0 {top} {WIDTH} {height}")


def _panel(across: LogAxis, up: LogAxis, title: str, most: int, *, percent: bool = False) -> list[Html]:
    heights = up.decades(most)
    rules = [f"M{LEFT} {up.position(value):.1f}H{RIGHT}" for value in heights]
    rules += [f"M{across.position(value):.1f} {up.start:g}V{up.end:g}" for value in across.decades(12)]
    names = [
        element(
            "text",
            f"{prose_text(value * 100)} %" if percent else size_text(value),
            x=LEFT - 6,
            y=up.position(value) + 4,
            text_anchor="end",
        )
        for value in heights
    ]
    heading = element("text", title, x=4, y=up.end - 11, class_="title")
    return [heading, element("path", d="".join(rules), class_="grid"), *names]


def _size_labels(across: LogAxis) -> list[Html]:
    """Return labels from the left, without those that would touch the one before."""
    found, free = [], -math.inf
    for value in across.decades(5):
        x, text = across.position(value), size_text(value)
        anchor = "end" if x > RIGHT - 20 else "middle"
        width = LETTER * len(text)
        start = x - (width if anchor == "end" else width / 2)
        if start >= free:
            found.append(element("text", text, x=x, y=NOISES.start + 18, text_anchor=anchor))
            free = start + width + LETTER
    return found


def _ends() -> list[Html]:
    """Labels for both ends of each scale, placed away from the lines."""
    return [
        element("text", f"▲ {MUCH}", x=LEFT + 6, y=LOSSES.end + 14, class_="end"),
        element("text", f"{LITTLE} ▼", x=RIGHT - 4, y=LOSSES.start - 7, class_="end", text_anchor="end"),
        element("text", f"{NOISY} ▲", x=RIGHT - 4, y=NOISES.end + 14, class_="end", text_anchor="end"),
        element("text", f"▼ {EXACT}", x=LEFT + 6, y=NOISES.start - 7, class_="end"),
    ]


def chart_text(figure: Figure) -> str:
    """A description of the charts for readers who cannot see them."""
    ends = [
        f"{loss_text(figure.losses[at])} at {size_text(figure.sizes[at])}" for at in (0, len(figure.sizes) // 2, -1)
    ]
    noise = ", ".join(line.name for line in figure.noises) or "nothing"
    return (
        f"Two charts over {figure.label}. Privacy loss of a record: {', '.join(ends)}. Below, the noise of totals of {noise}, as a "
        "share of the total. The numbers are in the table that follows."
    )


def rungs(figure: Figure) -> list[dict[str, Any]]:
    """Return loss and noise at each power of ten."""
    return [_rung(figure, size) for size in ladder(figure.sizes)]


def _rung(figure: Figure, size: float) -> dict[str, Any]:
    at = min(range(len(figure.sizes)), key=lambda place: abs(math.log(figure.sizes[place] / size)))
    noises = [f"{share_text(line.y[at], 2)}" if math.isfinite(line.y[at]) else "no variance" for line in figure.noises]
    return {
        "size": size_text(figure.sizes[at]),
        "at": at,
        "loss": number_text(figure.losses[at]),
        "noises": noises,
    }


def gauge() -> Html:
    """The scale of losses; the script moves the circle."""
    across = LogAxis(low=1e-3, high=1e3, start=12, end=428)
    ticks = [
        element("text", size_text(value), x=across.position(value), y=40, text_anchor="middle")
        for value in across.decades(7)
    ]
    notches = [
        element("line", x1=across.position(v), x2=across.position(v), y1=14, y2=22, class_="grid")
        for v in across.decades(7)
    ]
    bar = element("rect", x=12, y=16, width=416, height=4, rx=2, class_="track")
    mark = element("circle", cx=-99, cy=18, r=8, class_="you", id="gauge")
    return element("svg", bar, *notches, *ticks, mark, viewBox="0 0 440 46", aria_hidden="true")
