"""Tables under the charts: a measure's ladder of sizes, and this release beside one with the same loss for everybody."""

import math

from recordwise.policy.render.html import Html, element, ladder, number_text, size_text
from recordwise.release.page.figure import Figure

FACTORS = {
    "a tenth of yours": 0.1,
    "yours": 1,
    "ten times yours": 10,
    "a hundred times": 100,
    "a thousand times": 1000,
}


def ladder_table(figure: Figure) -> Html:
    """Loss and noise at each power of ten; the script fills the losses in anew when the record changes."""
    heads = [figure.label, "privacy loss ρ", *(f"noise of {line.name}" for line in figure.noises)]
    rows = [_rung(figure, size) for size in ladder(figure.sizes)]
    head = element("tr", *(element("th", name, scope="col") for name in heads))
    return element("table", element("thead", head), element("tbody", *rows), class_="ladder")


def _rung(figure: Figure, size: float) -> Html:
    at = min(range(len(figure.sizes)), key=lambda place: abs(math.log(figure.sizes[place] / size)))
    noises = (f"{line.y[at]:.2%}" if math.isfinite(line.y[at]) else "no variance" for line in figure.noises)
    return element(
        "tr",
        element("th", size_text(figure.sizes[at]), scope="row"),
        element("td", number_text(figure.losses[at]), class_="at", data_at=at),
        *(element("td", noise) for noise in noises),
    )


def comparison_table() -> Html:
    """Records of several times the size that was typed; the script fills it in."""
    heads = ("size", "loss here", "loss if the same for all", "share counted then")
    rows = [
        element(
            "tr", element("th", name, scope="row"), element("td"), element("td"), element("td"), data_factor=str(factor)
        )
        for name, factor in FACTORS.items()
    ]
    head = element("tr", *(element("th", name, scope="col") for name in heads))
    return element("table", element("thead", head), element("tbody", *rows), id="same-table")
