"""HTML and SVG elements, logarithmic axes, and small notebook charts.

Content is escaped unless it is already markup, so no name can become markup.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from recordwise.errors import RecordError
from recordwise.exact.text import number_text, size_text
from recordwise.policy.columns import plain_value
from recordwise.policy.conditions import Among
from recordwise.policy.policy import example_date, tests_of
from recordwise.policy.render.text import policy_prose, value_prose

if TYPE_CHECKING:
    from recordwise.policy.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class LogAxis:
    """A logarithmic axis from values to positions."""

    low: float
    high: float
    start: float
    end: float

    def position(self, value: float) -> float:
        """Return the position of a value."""
        share = math.log(max(value, 1e-300) / self.low) / math.log(self.high / self.low)
        return self.start + (self.end - self.start) * min(max(share, -0.2), 1.2)

    def decades(self, most: int = 7) -> list[float]:
        """Powers of ten on the axis, evenly thinned to at most ``most``."""
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        stride = max(1, math.ceil((last - first + 1) / most))
        return [10.0**power for power in range(first, last + 1, stride)]


def log_spaced(step: float, high: float, points: int) -> list[float]:
    """Return multiples of a step, roughly evenly spaced on the logarithm."""
    ratio = (high / step) ** (1 / (points - 1))
    return sorted({step * round(ratio**number) for number in range(points)})


def ladder(values: Sequence[float]) -> list[float]:
    """The powers of ten between the ends of a spread."""
    low, high = values[0], values[-1]
    powers: Iterable[int] = range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)
    return [10.0**power for power in powers]


class Html(str):
    """Text that is already markup."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)

    def __html__(self) -> str:
        """Lets a template insert the text without escaping it again."""
        return str(self)


def element(name: str, /, *children: object, **attributes: object) -> Html:
    """Return an HTML element.

    ``text_anchor`` is written text-anchor, ``class_`` class. None and False omit an attribute, True is bare.
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID and not children:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{join_markup(children)}</{name}>")


VOID = frozenset({"input", "meta", "br", "hr", "col"})


def _attribute(key: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = key.removesuffix("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(_text(value), quote=True)}"'


def _text(value: object) -> str:
    """Coordinates need no more than hundredths of a point."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def join_markup(children: Iterable[object]) -> Html:
    """Several children in a row, each escaped unless it is markup."""
    return Html(
        "".join(child if isinstance(child, Html) else escape(_text(child)) for child in children if child is not None)
    )


def preview_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> Html:
    """A plain table with a header row."""
    head = element("tr", *(element("th", name, scope="col") for name in headings))
    body = [element("tr", *(element("td", value) for value in row)) for row in rows]
    return element("table", element("thead", head), element("tbody", *body))


WIDTH, HEIGHT = 420, 220
STROKES = ("#0b5d8a", "#b3541e", "#2e7d4f", "#7a4fa3")
DASHES = (None, "7 3", "2 3", "8 3 2 3")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A named curve."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


def path(x: Sequence[float], y: Sequence[float], across: LogAxis, up: LogAxis) -> str:
    """Return the ``d`` of a path through points of positive height."""
    points = [f"{across.position(a):.1f} {up.position(b):.1f}" for a, b in zip(x, y) if b > 0]
    return "M" + "L".join(points) if points else "M0 0"


def small_chart(lines: Sequence[Line], *, ends: tuple[str, str], across_name: str, up_name: str) -> Html:
    """Return a chart without style sheet or script.

    Both axes are logarithmic, the ends of the vertical one labeled in words.
    """
    across = LogAxis(low=min(line.x[0] for line in lines), high=max(line.x[-1] for line in lines), start=64, end=386)
    up = LogAxis(low=1e-3, high=1e4, start=180, end=24)
    told = f"{up_name} against {across_name}: " + "; ".join(_line_text(line) for line in lines)
    curves = [
        element(
            "path",
            d=path(line.x, line.y, across, up),
            fill="none",
            stroke=stroke,
            stroke_width=2,
            stroke_dasharray=dash,
            clip_path="inset(0)",
        )
        for line, stroke, dash in zip(lines, STROKES, DASHES)
    ]
    view = f"0 0 {WIDTH} {HEIGHT}"
    box = element("svg", *curves, x=0, y=18, width=WIDTH, height=168, viewBox=f"0 18 {WIDTH} 168")
    words = [
        _label(68, 32, ends[1]),
        _label(382, 176, ends[0], anchor="end"),
        _label(236, 214, across_name, anchor="middle"),
        _label(8, 14, up_name),
    ]
    return element(
        "svg", *_grid(across, up), box, *words, viewBox=view, width=WIDTH, height=HEIGHT, role="img", aria_label=told
    )


def _line_text(line: Line) -> str:
    ends = f"{number_text(line.y[0])} at {size_text(line.x[0])}, {number_text(line.y[-1])} at {size_text(line.x[-1])}"
    return f"{line.name} {ends}" if line.name else ends


def _grid(across: LogAxis, up: LogAxis) -> list[Html]:
    marks = []
    for value in across.decades(5):
        x = across.position(value)
        marks += [_rule(x, up.start, x, up.end), _label(x, 196, size_text(value), anchor="middle")]
    for value in up.decades(8):
        y = up.position(value)
        marks += [_rule(across.start, y, across.end, y), _label(58, y + 4, size_text(value), anchor="end")]
    return marks


def _rule(x1: float, y1: float, x2: float, y2: float) -> Html:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke="#999", stroke_opacity=0.35)


def _label(x: float, y: float, words: str, *, anchor: str = "start") -> Html:
    return element("text", words, x=x, y=y, text_anchor=anchor, font_size=11, fill="currentColor", opacity=0.8)


# A policy as a notebook shows it: its formula, a description, and a chart of losses by record size.


MOST_LINES = 4
POINTS = 49
DECADES = 6
ENDS = ("almost nothing can be learned", "hardly any protection")


def policy_html(policy: "Policy") -> str:
    """Markup in which every name is escaped."""
    lines = list(_lines(policy))[:MOST_LINES]
    pictures = [_picture(policy, lines)] if lines else []
    return element("div", element("p", f"$${policy.to_latex()}$$"), element("p", policy_prose(policy)), *pictures)


def _picture(policy: "Policy", lines: list[Line]) -> Html:
    measures = policy.inputs()
    across = measures[0].name if len(measures) == 1 or policy.columns() else "the measure, the others at 0"
    key = ", ".join(f"{style} {line.name}" for style, line in zip(STYLES, lines)) if len(lines) > 1 else ""
    chart = small_chart(lines, ends=ENDS, across_name=across, up_name="pure ε" if policy.is_pure else "privacy loss ρ")
    return element("figure", chart, element("figcaption", key))


STYLES = ("solid:", "dashed:", "dotted:", "dash and dot:")


def _lines(policy: "Policy") -> Iterator[Line]:
    """Yield one line for each measure.

    If the policy depends on one group column: one for each group, for the first measure.
    """
    measures = policy.inputs()
    columns = {column.name for column in policy.columns()} - {measure.name for measure in measures}
    if not measures or len(columns) > 1:
        return
    record: dict[str, Any] = {measure.name: 0 for measure in measures}
    if not columns:
        for measure in measures:
            yield from _line(policy, record, measure.name, float(measure.step), measure.name)
        return
    (name,) = columns
    if any(column.part for column in policy.columns()):
        yield from _line(
            policy, record | {name: example_date(policy, name)}, measures[0].name, float(measures[0].step), name
        )
        return
    values = dict.fromkeys(value for test in tests_of(policy) if isinstance(test, Among) for value in test.values)
    for value in values:
        step = float(measures[0].step)
        yield from _line(policy, record | {name: plain_value(value)}, measures[0].name, step, value_prose(value))


def _line(policy: "Policy", record: dict[str, Any], measure: str, step: float, name: str) -> Iterator[Line]:
    sizes = log_spaced(step, step * 10**DECADES, POINTS)
    try:
        losses = [float(policy.loss(record | {measure: size})) for size in sizes]
    except RecordError:
        return
    if all(math.isfinite(loss) for loss in losses):
        yield Line(name=name, x=sizes, y=losses)
