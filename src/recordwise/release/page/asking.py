"""The question the page asks an establishment, the answer with its sentence first, and the scale with both ends in words."""

import math
import re

from recordwise.policy.render.html import Html, LogAxis, element, joined, size_text
from recordwise.release.page.example import loss_or_infinity
from recordwise.release.page.fields import CHOICE, Field
from recordwise.release.page.figure import LITTLE, MUCH
from recordwise.release.page.sentences import SENTENCES, lead
from recordwise.release.page.view import View


def asked(view: View) -> Html:
    """The question, and the answer with its sentence first."""
    rho = loss_or_infinity(view.release.policy, view.start)
    fields = [_question(field, view, place) for place, field in enumerate(view.fields)]
    form = element("form", *fields, id="question", novalidate=True, autocomplete="off")
    empty = element("p", "The loss is the same for every record, so there is nothing to ask.")
    answer = element(
        "div",
        element(
            "p",
            lead(rho, (), view.release.policy.delta(view.start) if math.isfinite(rho) else 0.0),
            id="lead",
            role="status",
        ),
        gauge(),
        element("p", id="details"),
        element("p", SENTENCES["reliably"], id="reliably", class_="fine", hidden=True),
        element("dl", id="numbers", class_="numbers"),
        class_="answer",
    )
    script = element(
        "noscript",
        element("p", "The calculator needs JavaScript. The command recordwise loss policy.json does the same."),
    )
    return joined([form if fields else empty, script, answer])


def _question(field: Field, view: View, place: int) -> Html:
    name, start = f"q{place}", view.start[field.name]
    if field.kind == CHOICE:
        options = [
            element("option", option.label, value=at, selected=option.value == start)
            for at, option in enumerate(field.options)
        ]
        control = element("select", *options, id=name)
    else:
        value = _typed(start) if isinstance(start, (int, float)) else start
        numeric = None if field.kind == "text" else "decimal"
        control = element(
            "input", id=name, type="text", inputmode=numeric, value=value, aria_describedby=f"{name}-hint"
        )
    hint = element("span", _hint(field), id=f"{name}-hint", class_="hint")
    return element("div", element("label", field.label, for_=name), control, hint, class_="field")


def _typed(start: float) -> str:
    """As the page would read it back: three decimals look like thousands and get a fourth."""
    text = f"{start:,}"
    return f"{text}0" if re.fullmatch(r"-?[1-9]\d{0,2}\.\d{3}", text) else text


def _hint(field: Field) -> str:
    if field.kind == CHOICE:
        return ""
    if field.kind == "text":
        return "as it stands in the register"
    if field.kind == "amount":
        return "a whole number" if field.step == 1 else f"in steps of {float(field.step):g}"
    return "a number"


def gauge() -> Html:
    """The loss on a scale whose two ends are told in words."""
    across = LogAxis(low=1e-3, high=1e3, start=12, end=428)
    ticks = [
        element("text", size_text(value), x=across.place(value), y=40, text_anchor="middle")
        for value in across.decades(7)
    ]
    notches = [
        element("line", x1=across.place(v), x2=across.place(v), y1=14, y2=22, class_="grid") for v in across.decades(7)
    ]
    bar = element("rect", x=12, y=16, width=416, height=4, rx=2, class_="track")
    mark = element("circle", cx=-99, cy=18, r=8, class_="you", id="gauge")
    svg = element("svg", bar, *notches, *ticks, mark, viewBox="0 0 440 46", aria_hidden="true")
    ends = element(
        "p",
        element("span", f"◀ {LITTLE}"),
        element("span", f"{MUCH} ▶"),
        class_="ends",
    )
    return element("div", svg, ends, class_="gauge")
