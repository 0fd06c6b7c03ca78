"""The page saved with a release: one file that makes no requests; nothing typed into it leaves the browser.

The markup is in ``templates/``, one file for each section, and is escaped by default.
"""

import base64
import hashlib
import math
import re
from functools import cache
from importlib.resources import files as package_files
from typing import TYPE_CHECKING, Any

from recordwise.exact.text import formula_text, share_text
from recordwise.policy.render.html import Html
from recordwise.release.dictionary import in_short
from recordwise.release.page import charts, spending
from recordwise.release.page.questions import CHOICE, Question, loss_or_infinity
from recordwise.release.page.script import model_js, page_file, script_json
from recordwise.release.page.sentences import SENTENCES, lead
from recordwise.release.page.tables import accuracy_rows, first_view, notes, titled
from recordwise.release.page.view import View, payload
from recordwise.release.tables import PRIVATE

if TYPE_CHECKING:
    import jinja2

NO_REQUESTS = "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:"
TITLES = {
    "ask": "What can be learned about my establishment?",
    "sizes": "Loss and noise by size",
    "same": "If everyone had the same loss",
    "firm": "A firm with several establishments",
    "tables": "The tables and their accuracy",
    "columns": "What the columns mean",
    "spent": "How the privacy budget was spent",
    "years": "Over the published periods",
    "terms": "What the words mean",
}
"""The sections in order, each with a template of the same name."""
ABOUT = {
    "publisher": "Publisher",
    "contact": "Contact",
    "period": "Period",
    "date": "Published",
    "version": "Version",
    "revision": "Changes since the previous version",
    "license": "License",
}
"""What the page says about a publication, in this order."""
FACTORS = {
    "a tenth of yours": 0.1,
    "yours": 1,
    "ten times yours": 10,
    "a hundred times": 100,
    "a thousand times": 1000,
}
WORDS = {
    "Privacy loss (ρ)": (
        "The published bound on what can be learned about one record, whatever else is known: 0 means nothing, below 0.1 very "
        "little; from about 5 on, the presence of the record in the data is hardly protected. It is the zCDP loss of the record."
    ),
    "Odds": (
        "The odds of a statement are its probability divided by that of its opposite: 1 to 1 for a coin toss. A factor of 1 means "
        "that nothing was learned. The mean is the geometric mean over the draws of the noise."
    ),
    "ε at δ": (
        "The same bound in the usual terms of differential privacy: except with probability at most δ, no odds change by more "
        "than a factor of e to the ε."
    ),
    "Noise interval": (
        "An interval that accounts only for the noise that was added on purpose. It does not include errors of sampling, "
        "reporting or matching."
    ),
    "Not disclosed here": (
        "The number of records, the number of empty cells, and any exact total: the page contains only what was published."
    ),
}


def page_html(view: View) -> str:
    """The whole page: a document that makes no request and runs only its own script."""
    style, script = page_file("page.css"), _script(view)
    context = _top(view) | _ask(view) | _sizes(view) | _tables(view) | _dictionary(view) | _spent(view)
    context |= {
        "periods": view.periods,
        "series": view.description.get("series", {}),
        "content_policy": f"{NO_REQUESTS}; style-src {_hash(style)}; script-src {_hash(script)}",
        "style": Html(style),
        "script": Html(script),
        "factors": FACTORS.items(),
        "places": [view.labels.get(name, name) for name in view.places.asked],
        "found_levels": [view.labels.get(name, name) for name in view.places.found()],
        "words": WORDS.items(),
    }
    return "<!doctype html>\n" + _environment().get_template("page.html").render(context)


def _script(view: View) -> str:
    release = view.release
    periods = [period.policy for period in view.periods]
    model = model_js(release.policy, release.parts, view.budget, release.firms, periods, view.labels)
    names = ["page.js", "tables.js"] + (["history.js"] if any(table.history for table in view.tables) else [])
    levels = page_file("levels.js") if view.places.lists else "const withLevels = place => place;\n"
    written = levels + "".join(map(page_file, names))
    return f"const model = {model};\nconst data = {script_json(payload(view))};\n{written}"


def _hash(text: str) -> str:
    """A hash that allows only this exact text to run."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _environment() -> "jinja2.Environment":
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FunctionLoader(_template), autoescape=True, undefined=jinja2.StrictUndefined
    )


def _template(name: str) -> str:
    """A template without line breaks beside tags, which a browser might show as spaces; other line breaks become one space."""
    text = package_files("recordwise.release.page").joinpath("templates", name).read_text(encoding="utf-8")
    beside = re.sub(r"(?<=[>}])\s*\n\s*(?=[<{])|(?<=>)\s*\n\s*|(?<=%})\s*\n\s*|\s*\n\s*(?=<|\{%)", "", text.strip())
    return re.sub(r"\s*\n\s*", " ", beside)


def _top(view: View) -> dict[str, Any]:
    absent = set() if view.figures else {"sizes", "same"}
    absent |= set() if view.questions or view.places.asked else {"firm"}
    absent |= set() if view.periods else {"years"}
    return {
        "title": view.content.title,
        "about": _about(view),
        "titles": TITLES,
        "shown": [name for name in TITLES if name not in absent],
        "version": view.description.get("versions", {}).get("recordwise", ""),
        "privacy_label": view.release.privacy_label,
        "private": view.release.privacy_label == PRIVATE,
    }


def _about(view: View) -> list[tuple[str, str]]:
    """Who publishes the release, when and under which terms."""
    said = view.content.words.publication.to_json()
    return [(heading, said[name]) for name, heading in ABOUT.items() if name in said]


def _dictionary(view: View) -> dict[str, Any]:
    tables = view.content.tables
    variables = {name for table in tables for name in table.table.variables}
    level = share_text(view.description.get("interval_level", 0.95))
    return {"dictionary": in_short((entry for table in tables for entry in table.columns), variables, level)}


def _ask(view: View) -> dict[str, Any]:
    policy, start = view.release.policy, view.start
    rho = loss_or_infinity(policy, start)
    return {
        "questions": [_question(each, start[each.name]) for each in view.questions],
        "lead": lead(rho, (), policy.delta(start) if math.isfinite(rho) else 0.0),
        "gauge": charts.gauge(),
        "little": charts.LITTLE,
        "much": charts.MUCH,
        "reliably": SENTENCES["reliably"],
    }


def _question(question: Question, start: Any) -> dict[str, Any]:
    return {
        "label": question.label,
        "options": question.options,
        "start": start,
        "inputmode": "" if question.kind in ("text", "date") else Html(' inputmode="decimal"'),
        "typed": _typed(start) if isinstance(start, (int, float)) else start,
        "hint": _hint(question),
    }


def _typed(start: float) -> str:
    """A number as the page would read it back: three decimals would look like thousands, so they get a fourth."""
    text = f"{start:,}"
    return f"{text}0" if re.fullmatch(r"-?[1-9]\d{0,2}\.\d{3}", text) else text


def _hint(question: Question) -> str:
    if question.kind == CHOICE:
        return ""
    if question.kind == "text":
        return "as it appears in the register"
    if question.kind == "date":
        return "a date, as 2024-12-31"
    if question.kind == "amount":
        return "a whole number" if question.step == 1 else f"in steps of {formula_text(question.step)}"
    return "a number"


def _sizes(view: View) -> dict[str, Any]:
    found = [
        {
            "label": figure.label,
            "in_words": charts.in_words(figure),
            "svg": charts.draw(figure, number),
            "points": len(figure.sizes),
            "lines": [line.name for line in figure.noises],
            "ladder": charts.rungs(figure),
        }
        for number, figure in enumerate(view.figures)
    ]
    return {"charts": found}


def _tables(view: View) -> dict[str, Any]:
    level = view.description.get("interval_level", 0.95)
    known = {table: found for table, found in view.description.get("accuracy", {}).items() if found}
    return {
        "level": f"{share_text(level)}",
        "accuracy": accuracy_rows(known, notes(view.description, view.release.parts), view.content),
        "several_tables": len(known) > 1,
        "names": [table.described.title for table in view.tables],
        "first": first_view(view.tables[0], level) if any(table.data.num_rows for table in view.tables) else None,
        "packed": Html(view.packed),
        "has_history": any(table.history for table in view.tables),
        "files": view.files,
    }


def _spent(view: View) -> dict[str, Any]:
    release = view.release
    parts = titled(release.parts, view.content)
    return {
        "parts": parts,
        "several_spent": len({part.table for part in parts}) > 1,
        "no_parts": spending.NO_PARTS,
        "rule": spending.in_words(release.policy),
        "formulas": spending.formulas(release.policy, release.parts),
        "ledger": spending.ledger_entries(view.description, release.digest, release.head),
    }
