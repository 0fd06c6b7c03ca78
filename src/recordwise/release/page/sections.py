"""The sections of the page, top to bottom. What the script fills in is empty here, or shows the first record."""

from recordwise.policy.render.html import Html, element, joined
from recordwise.release.page.asking import asked
from recordwise.release.page.captioned import captioned, scroll
from recordwise.release.page.comparing import comparison_table
from recordwise.release.page.spending import books, formulas, in_words, spending_table, whole_formula
from recordwise.release.page.tables import accuracy_table, downloads, first_view
from recordwise.release.page.view import View
from recordwise.release.tables import PRIVATE

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
    absent = (set() if view.figures else {"sizes", "same"}) | (set() if view.fields else {"firm"})
    links = [
        element("li", element("a", title, href=f"#{name}")) for name, title in TITLES.items() if name not in absent
    ]
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
    return _section("ask", asked(view))


def sizes(view: View) -> Html | None:
    if not view.figures:
        return None
    lower = (
        "the lower one, on the same axis, how large the noise of a published total of that size is"
        if view.release.parts
        else "the lower one is empty, because this release was saved without what it would show"
    )
    intro = element(
        "p",
        f"The upper chart shows what a record of each size loses, everything else as you typed it; {lower}. Both scales are "
        "logarithmic. Point at a chart, or move the slider below it with the arrow keys, to read it.",
    )
    return _section("sizes", intro, *(captioned(figure, number) for number, figure in enumerate(view.figures)))


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
    return _section("same", intro, told, scroll(comparison_table(), TITLES["same"]))


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
    return _section("firm", intro, scroll(table, TITLES["firm"]), button, told)


def released(view: View) -> Html:
    level = view.description.get("interval_level", 0.95)
    intro = element(
        "p",
        f"Each number is an estimate: noise was drawn once and is in it. Its {level:.0%} noise interval holds the exact number in "
        f"at least {level:.0%} of all draws of the noise; cv is the standard deviation of the noise as a share of the number. "
        "Negative numbers are noise too: leave them in when you add up.",
    )
    flags = notes(view)
    known = {table: found for table, found in view.description.get("accuracy", {}).items() if found}
    accuracy = scroll(accuracy_table(known, flags), "accuracy of each statistic") if known else None
    browse = _browser(view, level) if any(table["rows"] for table in view.tables) else None
    files = [element("h3", "Files beside this page"), downloads(view.files)] if view.files else []
    return _section("tables", intro, accuracy, browse, *files)


def notes(view: View) -> dict[str, dict[str, str]]:
    """Which variables are not unbiased, and why: as flagged in the files, and sums of records that were cut down."""
    found = {table: dict(flags) for table, flags in view.description.get("flags", {}).items()}
    for part in view.release.parts:
        if part.cut_down:
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
    return joined([controls, scroll(first_view(view.tables[0], level), "cells of the table"), pager, limit])


def spent(view: View) -> Html:
    release = view.release
    table = scroll(spending_table(release.parts), TITLES["spent"]) if release.parts else element("p", NO_PARTS)
    return _section(
        "spent",
        element("p", "", id="budget-told", class_="told"),
        table,
        element(
            "details",
            element("summary", "The rule in words and in formulas"),
            element("p", in_words(release.policy)),
            formulas(release.parts) if release.parts else whole_formula(release.policy),
        ),
        element("details", element("summary", "The books"), books(view.description, release.digest, release.head)),
    )


NO_PARTS = (
    "This release was saved without the parts it was made of, so this page cannot say what each statistic cost, nor draw the noise "
    "of totals above. The loss of a record, which is their sum, is complete."
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
