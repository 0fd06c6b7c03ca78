"""The page saved with a release: its script, spending and sections.

It is one file that makes no requests; nothing typed into it leaves the browser. The markup is in ``templates/``, one file for
each section, and is escaped by default.
"""

import base64
import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from importlib.resources import files as package_files
from typing import TYPE_CHECKING, Any

from recordwise.exact.text import formula_text, share_text
from recordwise.ledger.entries import looks_text
from recordwise.mechanisms.inference import ValuePolicy
from recordwise.plan.describe import DECLARED_ELSEWHERE, DeclaredClass
from recordwise.plan.publication import Labels
from recordwise.policy.atoms import AdditiveTable, CertifiedSum, SelectionDelta
from recordwise.policy.evaluate.javascript import FIRM_PRELUDE as FIRMS_PRELUDE
from recordwise.policy.evaluate.javascript import PURE_PRELUDE, firm_js, knots_js, prelude_of, terms_js
from recordwise.policy.firms import FirmPolicy
from recordwise.policy.policy import Policy
from recordwise.policy.render.html import Html
from recordwise.policy.render.text import SizeOfCell, policy_lines, sizes_of_cells, terms_lines
from recordwise.policy.series import Head
from recordwise.release.dictionary import in_short
from recordwise.release.page import charts
from recordwise.release.page.cells import accuracy_rows, first_shown, first_view, notes, with_titles
from recordwise.release.page.questions import CHOICE, SENTENCES, Question, lead, loss_or_infinity
from recordwise.release.page.results import headlines, results_json
from recordwise.release.page.value_change import change_js, has_band, numbers_js
from recordwise.release.page.view import View, payload
from recordwise.release.published import CodeList, Published
from recordwise.release.tables import PRIVATE, PagePart

if TYPE_CHECKING:
    import jinja2


# The page's calculations as JavaScript: the policy, its parts, the budget and the loss of a change, as in Python.


def model_js(
    policy: Policy,
    parts: Sequence[PagePart],
    budget: Policy | None,
    firms: FirmPolicy | None = None,
    periods: Sequence[Policy] = (),
    labels: Mapping[str, str] | None = None,
    values: ValuePolicy | None = None,
) -> str:
    """``{loss, pure, parts, bands, budget, change, numbers, firm, periods, sizes}``.

    ``change`` is null where a band has no meaning, ``firm`` where no cells are known; without a pure loss there is no ``pure``.
    """
    policies = [part.policy for part in parts] + [part.policy for part in (firms.parts if firms else ())]
    texts = [terms_js(each.rho) for each in policies]
    distinct = list(dict.fromkeys(texts))
    places = [distinct.index(text) for text in texts]
    members = [
        f"loss: r => ({{rho: {terms_js(policy.rho)}, delta: {terms_js(policy.delta_terms)}}})",
        *([] if policy.pure_problem() is not None else [f"pure: r => {terms_js(policy.pure().rho)}"]),
        f"parts: {json.dumps(places[: len(parts)])}.map(at => shares[at])",
        f"bands: [{', '.join(_band_js(part.policy) for part in parts)}]",
        f"budget: {'null' if budget is None else f'r => {terms_js(budget.rho)}'}",
        f"change: {change_js(parts) if has_band(parts) else 'null'}",
        f"numbers: {numbers_js(values)}",
        f"firm: {'null' if firms is None else firm_js(firms, [f'shares[{at}]' for at in places[len(parts) :]])}",
        f"periods: [{','.join(f'r => {terms_js(each.rho)}' for each in periods)}]",
        f"sizes: [{', '.join(_size_js(each) for each in sizes_of_cells(policy, labels))}]",
    ]
    shares = ", ".join(f"r => {text}" for text in distinct)
    written = f"const shares = [{shares}];\nreturn {{\n" + ",\n".join(members) + "\n};"
    bands = {
        digest: each for own in (policy, *policies, *periods, budget or policy) for digest, each in own.bands().items()
    }
    prelude = prelude_of(written, bands.values()) + ("" if firms is None else f"\n{FIRMS_PRELUDE}")
    prelude += PURE_PRELUDE if firms is not None and firms.pure() is not None else ""
    prelude = "\n".join(line.strip() for line in prelude.splitlines())
    return f"(() => {{\n{prelude}\n{_shared_tables(written, [policy, *policies, *periods])}\n}})()"


def _band_js(policy: Policy) -> str:
    """Write JavaScript for the band of a record's cell."""
    tables = list(policy.bands().values())
    return tables[0].key if len(tables) == 1 else "null"


def _size_js(size: SizeOfCell) -> str:
    """Write a cell size's subject and its words for a record."""
    return f"[{script_json(size.about)}, r => {script_json(size.words)}[{size.table.key}(r)]]"


def _shared_tables(written: str, policies: Sequence[Policy]) -> str:
    """Write each step table once, since long ones occur repeatedly."""
    tables: dict[str, str] = {}
    for policy in policies:
        for terms in (policy.rho, policy.delta_terms):
            for _, atom in terms:
                if isinstance(atom, (AdditiveTable, SelectionDelta)):
                    text = json.dumps([[count, float(level)] for count, level in atom.steps])
                    tables.setdefault(text, f"T{len(tables)}")
                elif isinstance(atom, CertifiedSum):
                    tables.setdefault(knots_js(atom.knots), f"T{len(tables)}")
    for text, name in tables.items():
        written = written.replace(text, name)
    named = "".join(f"const {name} = {text.replace(' ', '')};\n" for text, name in tables.items())
    return f"{named}{written}"


def script_json(value: Any) -> str:
    """Return JSON that cannot close its script element."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


IDLE = ("=>", "===", "!==", "&&", "||")
"""Signs around which scripts need no spaces."""


def page_file(name: str) -> str:
    """Return a script or style file without indentation, comments and idle spaces."""
    text = files("recordwise.release.page").joinpath("scripts", name).read_text(encoding="utf-8")
    if name.endswith(".css"):
        text = re.sub(r'(?<=[{:;,]) +(?!")| +(?=[{}])|;(?= *})', "", text)
    # No text of the scripts has one of these.
    for sign in IDLE:
        text = text.replace(f" {sign} ", sign)
    lines = (line.strip() for line in text.splitlines())
    kept = (line for line in lines if line and not line.startswith("//"))
    return "".join(line if line.endswith(("{", ",", ";")) else f"{line}\n" for line in kept)


# How the budget was spent: the rule of each statistic as a formula and in words, and the page's link to the ledger.


MOST_LINES = 8
LONGEST = 2000
NO_PARTS = (
    "This release was saved without its parts, so this page cannot show what each statistic cost or the noise of totals. "
    "The loss of a record, which is the sum over all parts, is complete."
)


def formulas(policy: Policy, parts: Sequence[PagePart]) -> list[dict[str, Any]]:
    """Return each statistic's exact policy by term, with equal ones merged."""
    if not parts:
        return [_formula("all statistics together", policy)]
    tables: dict[tuple[str, Policy], list[str]] = {}
    for part in parts:
        tables.setdefault((part.statistic, part.policy), []).append(part.table)
    return [_formula(f"{statistic} ({', '.join(names)})", shared) for (statistic, shared), names in tables.items()]


def _formula(name: str, policy: Policy) -> dict[str, Any]:
    lines = policy_lines(policy) + [f"delta: {line}" for line in terms_lines(policy.delta_terms)]
    return {"name": name, "lines": lines[:MOST_LINES], "more": max(0, len(lines) - MOST_LINES)}


def policy_text(policy: Policy) -> str:
    """Describe the policy in a paragraph, or refer to policy.json."""
    words = policy.in_words()
    if len(words) <= LONGEST:
        return words
    return f"{words[:LONGEST].rsplit(';', 1)[0]}; and further parts, all listed in policy.json."


def ledger_entries(published: Published, digest: str, head: Head) -> list[tuple[str, Any]]:
    """The facts that link the page to the ledger."""
    reason = f"accepted because: {published.tuning_reason}"
    tuned = {
        "public": "on public data",
        "synthetic": "on synthetic data",
        "past": "on past releases",
        "confidential": f"on the confidential data; {reason}",
    }
    chosen = tuned.get(published.tuned_on, "in a way not stated")
    if published.looked_at_records:
        looks = looks_text(published.looks or {})
        viewed = f"the confidential records had been viewed before{f' ({looks})' if looks else ''}"
        chosen += f"; {viewed}" if published.tuned_on == "confidential" else f"; {viewed}, {reason}"
    told = {
        "Guarantee": published.guarantee,
        **({"A record, which is what is protected": published.protects} if published.protects else {}),
        "Mechanisms and thresholds were chosen": chosen,
        **_declared_losses(published.declared_elsewhere),
        **{f"List of codes '{name}'": _code_list_text(each) for name, each in published.lists.lists.items()},
        **_band_sizes(published),
        **_stages(published),
        "Digest of tables and policy": digest,
        "Ledger entry": f"{head.length}, {head.digest}",
        "Ledger": published.storage,
        "Made with": ", ".join(f"{name} {number}" for name, number in published.versions.items()),
    }
    return list(told.items())


def _declared_losses(found: Sequence[DeclaredClass]) -> dict[str, str]:
    """The losses that other packages answer for."""
    named = [f"{each.name} of {each.package} {each.version or '(version unknown)'}" for each in found]
    return {"Losses that recordwise did not prove": f"{'; '.join(named)}: {DECLARED_ELSEWHERE}"} if found else {}


def _band_sizes(published: Published) -> dict[str, str]:
    """Return where cells' public sizes are from (T-SIZE)."""
    if not published.promise:
        return {}
    tables = [table for query in published.queries for table in query.tables]
    sources = dict.fromkeys((source, table.sizes) for table in tables for source in table.sized_on)
    return {
        "Sizes of cells": "; ".join(f"{source}; SHA-256 {digest}" for source, digest in sources),
        "Promise over time": published.promise,
    }


def _stages(published: Published) -> dict[str, str]:
    """Return what a release shares with those that it refines or follows, and what that costs (T-STAGES, T-SERIES)."""
    found, step, finer = published.refinement, published.step, published.tier_of
    if finer is not None:
        about = f"made from release {finer[0]}, ledger entry {finer[1]}, by adding noise once"
        return {
            "Tier": f"{about}. The losses on this page are those of this tier alone; who also sees that release, or another "
            "tier of it, learns at most what that entry charged. Nothing more was charged"
        }
    if step is not None:
        before = f"release {(*published.follows, '')[0]}, ledger entry {step.follows}"
        about = {
            "start": "the next period will carry noise of this release; the losses on this page pay for leaving it then, too",
            "carry": f"carries noise of {before}: a change between both is more accurate than either. The losses on this page pay "
            "for coming into a table and for leaving it",
            "revise": f"corrects {before}: the losses on this page are those of records that were added, removed or moved",
        }[step.kind]
        stays = (
            {} if step.kind == "start" else {"Loss of units that stay, by what changed": policy_text(step.staying())}
        )
        return {"Series": about, **stays}
    if found is None:
        return {}
    return {
        "Refines": f"release {found.digests[0]}, ledger entry {found.charge}: answers are averages of both draws, and the losses "
        "on this page are those of all stages; this release was charged the further draws alone",
        "Loss of all stages": policy_text(found.total.policy()),
    }


def _code_list_text(listed: CodeList) -> str:
    """Describe a code list's origin and levels that do not nest."""
    crossing = [" and ".join(pair) for pair in listed.not_nested]
    apart = f"; not nested: {', '.join(crossing)}" if crossing else ""
    return f"{listed.source}; levels {', '.join(listed.levels)}{apart}; SHA-256 {listed.digest}"


# The page.


NO_REQUESTS = "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:"
TITLES = {
    "results": "Results",
    "area": "Add up your own area",
    "tables": "The tables and their accuracy",
    "ask": "What can be learned about my establishment?",
    "sizes": "Loss and noise by size",
    "same": "If everyone had the same loss",
    "firm": "A firm with several establishments",
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

PURE_WORDS = {
    "Pure ε": "Whatever was believed before, no odds change by more than a factor of e to the ε, in no case: δ is 0.",
}
"""What is said as well where all noise has a pure loss."""


def page_html(view: View) -> str:
    """Return the page as HTML that makes no request."""
    style, script = page_file("page.css"), _script(view)
    context = _top(view) | _ask(view) | _charts_section(view) | _tables(view) | _dictionary(view) | _loss_section(view)
    context |= _results(view) | {
        "periods": view.periods,
        "series": view.published.series,
        "content_policy": f"{NO_REQUESTS}; style-src {script_hash(style)}; script-src {script_hash(script)}",
        "style": Html(style),
        "script": Html(script),
        "factors": FACTORS.items(),
        "places": [view.labels.get(name, name) for name in view.firm_columns.needed],
        "found_levels": [view.labels.get(name, name) for name in view.firm_columns.found_levels()],
        "words": (WORDS if view.release.policy.pure_problem() else WORDS | PURE_WORDS).items(),
    }
    return "<!doctype html>\n" + _environment().get_template("page.html").render(context)


def _script(view: View) -> str:
    release = view.release
    periods = [period.policy for period in view.periods]
    model = model_js(release.policy, release.parts, view.budget, release.firms, periods, view.labels, release.values)
    names = ["page.js", "tables.js", "results.js"] + (
        ["history.js"] if any(table.history for table in view.tables) else []
    )
    levels = page_file("levels.js") if view.firm_columns.lists else "const withLevels = place => place;\n"
    is_pure = release.policy.pure_problem() is None
    levels += page_file("pure.js") if is_pure else "const withPure = known => known;\n"
    written = levels + "".join(map(page_file, names))
    return f"const model = {model};\nconst data = {script_json(payload(view))};\n{written}"


def script_hash(text: str) -> str:
    """A hash that allows only this exact text to run."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _environment() -> "jinja2.Environment":
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FunctionLoader(_template), autoescape=True, undefined=jinja2.StrictUndefined
    )


def read_templates() -> None:
    """Compile the templates before a page needs them."""
    for name in ("page", "macros", *TITLES):
        _environment().get_template(f"{name}.html")


def _template(name: str) -> str:
    """Return a template without line breaks next to tags."""
    text = package_files("recordwise.release.page").joinpath("templates", name).read_text(encoding="utf-8")
    joined = re.sub(r"(?<=[>}])\s*\n\s*(?=[<{])|(?<=>)\s*\n\s*|(?<=%})\s*\n\s*|\s*\n\s*(?=<|\{%)", "", text.strip())
    return re.sub(r"\s*\n\s*", " ", joined)


def _top(view: View) -> dict[str, Any]:
    absent = set() if view.figures else {"sizes", "same"}
    absent |= set() if view.questions or view.firm_columns.needed else {"firm"}
    absent |= set() if view.periods else {"years"}
    absent |= set() if any(table.halves for table in view.content.tables) else {"area"}
    absent |= set() if any(table.variables for table in view.tables) else {"results"}
    return {
        "title": view.content.title,
        "about": _about(view),
        "titles": TITLES,
        "shown": [name for name in TITLES if name not in absent],
        "version": view.published.versions.get("recordwise", ""),
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
    level = share_text(view.published.confidence)
    return {"dictionary": in_short((entry for table in tables for entry in table.columns), variables, level)}


def _results(view: View) -> dict[str, Any]:
    content = view.content
    found = results_json(view.results, content, [table.described.name for table in view.tables])
    ranked = any(each.table.variables and each.table.keys and each.data.num_rows > 1 for each in content.tables)
    return {"headlines": headlines(content, view.results), "ranked": ranked, "map": found["map"]}


def _ask(view: View) -> dict[str, Any]:
    policy, start = view.release.policy, view.start
    rho = loss_or_infinity(policy, start)
    return {
        "questions": [_question(each, start[each.name], view.content.words) for each in view.questions],
        "lead": lead(rho, (), policy.delta(start) if math.isfinite(rho) else 0.0),
        "gauge": charts.gauge(),
        "little": charts.LITTLE,
        "much": charts.MUCH,
        "reliably": SENTENCES["reliably"],
    }


def _question(question: Question, start: Any, words: Labels) -> dict[str, Any]:
    return {
        "label": question.label,
        "unit": "" if question.kind != "amount" else words.unit(question.name),
        "options": question.options,
        "start": start,
        "inputmode": "" if question.kind in ("text", "date") else Html(' inputmode="decimal"'),
        "typed": _input_text(start) if isinstance(start, (int, float)) else start,
        "hint": CHOSEN if question.kind == "text" and words.values(question.name) else _hint(question),
    }


CHOSEN = "type its name and choose, or enter the code"


def _input_text(start: float) -> str:
    """Return a number as read back: never with exactly three decimals."""
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


def _charts_section(view: View) -> dict[str, Any]:
    found = [
        {
            "label": figure.label,
            "in_words": charts.chart_text(figure),
            "svg": charts.draw(figure, number),
            "points": len(figure.sizes),
            "lines": [line.name for line in figure.noises],
            "ladder": charts.rungs(figure),
        }
        for number, figure in enumerate(view.figures)
    ]
    return {"charts": found}


ADDED_UP = (
    "These are the errors of the numbers that were made to add up, from all tables together; release.json has those of each table "
    "as it was drawn. Numbers that were kept from being negative are a little too large in small cells."
)


def _tables(view: View) -> dict[str, Any]:
    level, basic = view.published.confidence, bool(view.release.basic_tables)
    accuracy = view.published.accuracy
    if basic:
        # Of numbers that were made to add up, those are shown: as drawn, coarse tables may be mostly noise.
        from recordwise.release.basic import basic_accuracy

        accuracy = basic_accuracy(view.release)
    known = {table: found for table, found in accuracy.items() if found}
    return {
        "made_to_add_up": ADDED_UP if basic else "",
        "level": f"{share_text(level)}",
        "accuracy": accuracy_rows(known, notes(view.published.flags, view.release.parts), view.content),
        "several_tables": len(known) > 1,
        "names": [table.described.title for table in view.tables],
        "counts": [_cell_count(table.described.data.num_rows) for table in view.tables],
        "chosen": (chosen := first_shown(view.tables)),
        "first": first_view(view.tables[chosen], level) if any(table.data.num_rows for table in view.tables) else None,
        "packed": Html(view.packed),
        "has_history": any(table.history for table in view.tables),
        "carries": any(table.changes for table in view.tables),
        "files": view.files,
    }


def _cell_count(rows: int) -> str:
    return "1 cell" if rows == 1 else f"{rows:,} cells"


def _loss_section(view: View) -> dict[str, Any]:
    release = view.release
    parts = with_titles(release.parts, view.content)
    return {
        "parts": parts,
        "several_spent": len({part.table for part in parts}) > 1,
        "no_parts": NO_PARTS,
        "rule": policy_text(release.policy),
        "formulas": formulas(release.policy, release.parts),
        "ledger": ledger_entries(view.published, release.digest, release.head),
    }
