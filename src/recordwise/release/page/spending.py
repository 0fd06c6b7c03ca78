"""How the budget was spent: statistic by statistic, in words, in formulas, and in the books."""

from collections.abc import Sequence
from typing import Any

from recordwise.policy.policy import Policy
from recordwise.policy.render.html import Html, element, joined
from recordwise.policy.render.text import policy_lines, terms_lines
from recordwise.release.page.parts import Part

MOST_LINES = 8
LONGEST = 2000


def spending_table(parts: Sequence[Part]) -> Html:
    """One row for each statistic of each table; the script puts the record's own loss and its share into the last two cells."""
    several = len({part.table for part in parts}) > 1
    rows = [
        element(
            "tr",
            element("th", part.statistic, scope="row"),
            element("td", part.table, class_="words") if several else None,
            element("td", part.noise, class_="words"),
            element("td", "", class_="own"),
            element("td", element("span", "", class_="bar"), class_="share"),
        )
        for part in parts
    ]
    names = ("statistic", *(["table"] if several else []), "noise", "your loss", "share of it")
    heads = [element("th", name, scope="col", class_=None if name == "your loss" else "left") for name in names]
    return element("table", element("thead", element("tr", *heads)), element("tbody", *rows), id="spending")


def formulas(parts: Sequence[Part]) -> Html:
    """The exact policy of each statistic, one line for each term; tables that share one are named together."""
    tables: dict[tuple[str, Policy], list[str]] = {}
    for part in parts:
        tables.setdefault((part.statistic, part.policy), []).append(part.table)
    found = [_formula(f"{statistic} ({', '.join(names)})", policy) for (statistic, policy), names in tables.items()]
    return element("dl", joined(found), class_="formulas")


def whole_formula(policy: Policy) -> Html:
    """The same for everything at once."""
    return element("dl", _formula("all statistics together", policy), class_="formulas")


def _formula(name: str, policy: Policy) -> Html:
    lines = policy_lines(policy) + [f"delta: {line}" for line in terms_lines(policy.delta_terms)]
    shown = element("dd", *(element("code", line) for line in lines[:MOST_LINES]), _more(len(lines)))
    return joined([element("dt", name), shown])


def _more(lines: int) -> str:
    return f"… and {lines - MOST_LINES} more in policy.json" if lines > MOST_LINES else ""


def in_words(policy: Policy) -> str:
    """The paragraph; where there are too many groups to read, what to read instead."""
    words = policy.in_words()
    if len(words) <= LONGEST:
        return words
    return f"{words[:LONGEST].rsplit(';', 1)[0]}; and more parts, all of which are in policy.json."


def books(description: dict[str, Any], digest: str, head: Any) -> Html:
    """What ties the page to the ledger."""
    reason = f"accepted because: {description.get('accept_tuning')}"
    tuned = {
        "public": "on public data",
        "synthetic": "on synthetic data",
        "past": "on past releases",
        "confidential": f"on the confidential data themselves; {reason}",
    }
    chosen = tuned.get(str(description.get("tuned_on")), "in a way not stated")
    if description.get("looked_at_records") and description.get("tuned_on") != "confidential":
        chosen += f"; the confidential records had been looked at before, {reason}"
    told = {
        "Guarantee": description.get("guarantee", ""),
        "Mechanisms and thresholds were chosen": chosen,
        "Fingerprint of tables and policy": digest,
        "Entry in the ledger": f"{head.length}, {head.digest}",
        "Ledger": description.get("books", ""),
        "Made with": ", ".join(f"{name} {number}" for name, number in description.get("versions", {}).items()),
    }
    rows = [joined([element("dt", name), element("dd", value)]) for name, value in told.items()]
    return element("dl", *rows, class_="books")
