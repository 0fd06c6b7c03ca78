"""Lines on logarithmic axes as SVG: the small picture a notebook shows, and the paths of larger ones."""

from collections.abc import Sequence
from dataclasses import dataclass

from recordwise.showing.axis import LogAxis, number_text, size_text
from recordwise.showing.markup import Html, element

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
    """The line through the points with a positive height, as the d of a path."""
    points = [f"{across.place(a):.1f} {up.place(b):.1f}" for a, b in zip(x, y) if b > 0]
    return "M" + "L".join(points) if points else "M0 0"


def small_chart(lines: Sequence[Line], *, ends: tuple[str, str], across_name: str, up_name: str) -> Html:
    """A picture without style sheet or script: both axes logarithmic, the low and the high end of the upright one told in words."""
    across = LogAxis(low=min(line.x[0] for line in lines), high=max(line.x[-1] for line in lines), start=64, end=386)
    up = LogAxis(low=1e-3, high=1e4, start=180, end=24)
    told = f"{up_name} against {across_name}: " + "; ".join(_told(line) for line in lines)
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
        _text(68, 32, ends[1]),
        _text(382, 176, ends[0], anchor="end"),
        _text(236, 214, across_name, anchor="middle"),
        _text(8, 14, up_name),
    ]
    return element(
        "svg", *_grid(across, up), box, *words, viewBox=view, width=WIDTH, height=HEIGHT, role="img", aria_label=told
    )


def _told(line: Line) -> str:
    ends = f"{number_text(line.y[0])} at {size_text(line.x[0])}, {number_text(line.y[-1])} at {size_text(line.x[-1])}"
    return f"{line.name} {ends}" if line.name else ends


def _grid(across: LogAxis, up: LogAxis) -> list[Html]:
    marks = []
    for value in across.decades(5):
        x = across.place(value)
        marks += [_rule(x, up.start, x, up.end), _text(x, 196, size_text(value), anchor="middle")]
    for value in up.decades(8):
        y = up.place(value)
        marks += [_rule(across.start, y, across.end, y), _text(58, y + 4, size_text(value), anchor="end")]
    return marks


def _rule(x1: float, y1: float, x2: float, y2: float) -> Html:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke="#999", stroke_opacity=0.35)


def _text(x: float, y: float, words: str, *, anchor: str = "start") -> Html:
    return element("text", words, x=x, y=y, text_anchor=anchor, font_size=11, fill="currentColor", opacity=0.8)
