"""A figure with all that belongs to it: caption, legend, slider, the sentence for who cannot see it, and its table."""

import math

from recordwise.policy.render.html import Html, element, size_text
from recordwise.release.page.comparing import ladder_table
from recordwise.release.page.figure import Figure, draw


def captioned(figure: Figure, number: int) -> Html:
    lines = [
        element("li", element("span", "", class_=f"key n{at}"), f"noise of {line.name}")
        for at, line in enumerate(figure.noises)
    ]
    legend = element(
        "ul",
        element("li", element("span", "", class_="key loss"), "loss in this release"),
        element("li", element("span", "", class_="key constant"), "your loss, if it were everybody’s"),
        *lines,
        class_="legend",
    )
    slider = element(
        "input",
        type="range",
        min=0,
        max=len(figure.sizes) - 1,
        value=len(figure.sizes) // 2,
        step=1,
        id=f"slider-{number}",
        aria_label=f"Read the charts of {figure.label} at a size",
    )
    chart = element("div", draw(figure, number), slider, class_="chart")
    beside = element("div", legend, element("p", "", class_="readout", aria_live="off"), class_="beside")
    told = element("p", _told(figure), id=f"told-{number}", class_="hidden")
    table = element("details", element("summary", "The charts as a table"), scroll(ladder_table(figure), figure.label))
    caption = element("figcaption", element("h3", figure.label))
    return element("figure", caption, told, element("div", chart, beside, class_="pair"), table, class_="measure")


def _told(figure: Figure) -> str:
    ends = [
        f"{loss_text(figure.losses[at])} at {size_text(figure.sizes[at])}" for at in (0, len(figure.sizes) // 2, -1)
    ]
    noise = ", ".join(line.name for line in figure.noises) or "nothing"
    return (
        f"Two charts over {figure.label}. Privacy loss of a record: {', '.join(ends)}. Below, the noise of totals of {noise}, as a "
        "share of the total. The numbers are in the table that follows."
    )


def loss_text(loss: float) -> str:
    return f"{loss:.3g}" if math.isfinite(loss) else "without limit"


def scroll(table: Html, label: str) -> Html:
    """A table wider than the screen scrolls by itself, also by keyboard."""
    return element("div", table, class_="scroll", tabindex=0, role="region", aria_label=f"Table: {label}")
