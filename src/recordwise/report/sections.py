"""The sections of the page, top to bottom. What the script fills in is empty here, or shows the first record."""

import math

from recordwise.published import PRIVATE
from recordwise.report.comparing import comparison_table, ladder_table
from recordwise.report.example import loss_or_infinity
from recordwise.report.fields import CHOICE, Field
from recordwise.report.figure import LITTLE, MUCH, Figure, draw
from recordwise.report.sentences import SENTENCES, lead
from recordwise.report.spending import books, formulas, in_words, spending_table
from recordwise.report.tables import accuracy_table, downloads, first_view
from recordwise.report.view import View
from recordwise.showing import Html, LogAxis, element, joined, size_text

TITLES = {
    "ask": "What can be learned about my establishment?",
    "sizes": "Loss and noise by size",
    "same": "If everybody had the same loss",
    "firm": "A firm with several establishments",
    "tables": "The tables and their accuracy",
    "spent": "How the privacy budget was spent",
    "terms": "What the words mean",
}


def header(view: View) -> Html:
    links = [element("li", element("a", title, href=f"#{name}")) for name, title in TITLES.items()]
    return element(
        "header",
        element("p", "Privacy and accuracy of published tables", class_="over"),
        element("h1", view.description.get("dataset", "Release")),
        element(
            "p",
            "Noise was added to every number in these tables, so that little can be learned from them about any one record. How "
            "little depends on its size, by a rule that is public. Here you can look yours up. This page is one file and asks "
            "nothing of any network: what you type stays in your browser.",
            class_="intro",
        ),
        element("nav", element("ul", *links), aria_label="Sections of this page"),
    )


def _section(name: str, *children: Html | None) -> Html:
    return element("section", element("h2", TITLES[name], id=name), *children, aria_labelledby=name)


def ask(view: View) -> Html:
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
        "noscript", element("p", "The calculator needs JavaScript. `recordwise loss policy.json` does the same.")
    )
    return _section("ask", form if fields else empty, script, answer)


def _question(field: Field, view: View, place: int) -> Html:
    name, start = f"q{place}", view.start[field.name]
    if field.kind == CHOICE:
        options = [
            element("option", option.label, value=at, selected=option.value == start)
            for at, option in enumerate(field.options)
        ]
        control = element("select", *options, id=name)
    else:
        value = f"{start:,}" if isinstance(start, (int, float)) else start
        numeric = None if field.kind == "text" else "decimal"
        control = element(
            "input", id=name, type="text", inputmode=numeric, value=value, aria_describedby=f"{name}-hint"
        )
    hint = element("span", _hint(field), id=f"{name}-hint", class_="hint")
    return element("div", element("label", field.label, for_=name), control, hint, class_="field")


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


def sizes(view: View) -> Html | None:
    if not view.figures:
        return None
    intro = element(
        "p",
        "The upper chart shows what a record of each size loses, everything else as you typed it; the lower one, on the same axis, "
        "how large the noise of a published total of that size is. Both scales are logarithmic. Point at a chart, or move the "
        "slider below it with the arrow keys, to read it.",
    )
    return _section("sizes", intro, *(_figure(figure, number) for number, figure in enumerate(view.figures)))


def _figure(figure: Figure, number: int) -> Html:
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
    table = element("details", element("summary", "The charts as a table"), _scroll(ladder_table(figure), figure.label))
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


def _scroll(table: Html, label: str) -> Html:
    """A table wider than the screen scrolls by itself, also by keyboard."""
    return element("div", table, class_="scroll", tabindex=0, role="region", aria_label=f"Table: {label}")


def same_for_all(view: View) -> Html | None:
    if not view.figures:
        return None
    intro = element(
        "p",
        "Ordinary differential privacy promises one loss to everybody. With the same noise it would have to cut down every record "
        "larger than the one whose loss is promised to all, and count only what is left; or add noise in proportion to the largest "
        "record there may be. Here large records are counted in full, and pay for it.",
    )
    told = element("p", "", id="same-told", class_="told")
    return _section("same", intro, told, _scroll(comparison_table(), TITLES["same"]))


def firm(view: View) -> Html | None:
    if not view.fields:
        return None
    intro = element(
        "p",
        "What can be learned about a firm as a whole: the loss of all its establishments together. It is more than the sum of "
        "their losses, because one guess about the firm is a guess about all of them.",
    )
    heads = [element("th", field.label, scope="col") for field in view.fields]
    head = element(
        "tr",
        *heads,
        element("th", "loss", scope="col"),
        element("th", element("span", "remove", class_="hidden"), scope="col"),
    )
    table = element("table", element("thead", head), element("tbody"), id="members")
    button = element("button", "Add an establishment", type="button", id="add")
    told = element("p", "", id="firm-told", role="status", class_="told")
    return _section("firm", intro, _scroll(table, TITLES["firm"]), button, told)


def released(view: View) -> Html:
    level = view.description.get("interval_level", 0.95)
    intro = element(
        "p",
        f"Each number is an estimate: noise was drawn once and is in it. Its {level:.0%} noise interval holds the exact number in "
        f"at least {level:.0%} of all draws of the noise; cv is the standard deviation of the noise as a share of the number. "
        "Negative numbers are noise too: leave them in when you add up.",
    )
    flags = notes(view)
    accuracy = _scroll(accuracy_table(view.description.get("accuracy", {}), flags), "accuracy of each statistic")
    browse = _browser(view, level) if any(table["rows"] for table in view.tables) else None
    files = [element("h3", "Files beside this page"), downloads(view.files)] if view.files else []
    return _section("tables", intro, accuracy, browse, *files)


def notes(view: View) -> dict[str, dict[str, str]]:
    """Which variables are not unbiased, and why: as flagged in the files, and sums of records that were cut down."""
    found = {table: dict(flags) for table, flags in view.description.get("flags", {}).items()}
    for part in view.release.parts:
        if any(getattr(mechanism, "to", None) is not None for mechanism in part.mechanisms):
            found.setdefault(part.table, {}).setdefault(part.statistic, CUT_DOWN)
    return found


CUT_DOWN = "of records that were cut down: too low, and the interval is about the sum of what was left of them"


def _browser(view: View, level: float) -> Html:
    options = [element("option", table["name"], value=at) for at, table in enumerate(view.tables)]
    controls = element(
        "div",
        element(
            "div", element("label", "Table", for_="which"), element("select", *options, id="which"), class_="field"
        ),
        element(
            "div",
            element("label", "Find a cell", for_="find"),
            element("input", id="find", type="search"),
            class_="field",
        ),
        class_="controls",
    )
    pager = element(
        "div",
        element("button", "Previous", type="button", id="previous"),
        element("span", "", id="place", role="status"),
        element("button", "Next", type="button", id="next"),
        element("button", "Save these rows as CSV", type="button", id="save"),
        class_="pager",
    )
    limit = element("p", "", id="limit", class_="fine")
    return joined([controls, _scroll(first_view(view.tables[0], level), "cells of the table"), pager, limit])


def spent(view: View) -> Html:
    release = view.release
    table = _scroll(spending_table(release.parts), TITLES["spent"]) if release.parts else None
    return _section(
        "spent",
        element("p", "", id="budget-told", class_="told"),
        table,
        element(
            "details",
            element("summary", "The rule in words and in formulas"),
            element("p", in_words(release.policy)),
            formulas(release.parts),
        ),
        element("details", element("summary", "The books"), books(view.description, release.digest, release.head)),
    )


WORDS = {
    "Privacy loss (ρ)": (
        "The published bound on what can be learned about one record, whatever else is known: 0 is nothing, below 0.1 very little; "
        "from about 5 on, whether the record is in the data is hardly protected. It is the zCDP loss of the record."
    ),
    "Odds": (
        "The odds of a guess are its chance against the contrary: 1 to 1 for a coin. A factor of 1 means nothing was learned. The "
        "mean is a geometric one, over the draws of the noise."
    ),
    "ε at δ": (
        "The same bound in the currency of differential privacy: with a chance of at most δ left aside, no odds move by more "
        "than a factor of e to the ε."
    ),
    "Noise interval": (
        "An interval that tells about the noise that was added on purpose, and nothing else: no error of sampling, of reporting or "
        "of matching is in it."
    ),
    "Never told here": (
        "How many records there are, how many cells are empty, any exact total: the page holds only what was published."
    ),
}


def terms(view: View) -> Html:
    rows = [joined([element("dt", word), element("dd", told)]) for word, told in WORDS.items()]
    return _section("terms", element("dl", *rows, class_="words"))


def footer(view: View) -> Html:
    version = view.description.get("versions", {}).get("recordwise", "")
    drawn = "Its noise came from a secure source" if view.release.mark == PRIVATE else view.release.mark
    return element("footer", element("p", f"Written by recordwise {version} together with the release. {drawn}."))
