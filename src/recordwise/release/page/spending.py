"""How the budget was spent: the rule of each statistic as a formula and in words, and the page's link to the ledger."""

from collections.abc import Sequence
from typing import Any

from recordwise.ledger.looks import looks_in_words
from recordwise.policy.policy import Policy
from recordwise.policy.render.text import policy_lines, terms_lines
from recordwise.release.page.parts import Part

MOST_LINES = 8
LONGEST = 2000
NO_PARTS = (
    "This release was saved without its parts, so this page cannot show what each statistic cost or the noise of totals. "
    "The loss of a record, which is the sum over all parts, is complete."
)


def formulas(policy: Policy, parts: Sequence[Part]) -> list[dict[str, Any]]:
    """The exact policy of each statistic, one line per term; tables with the same policy are listed together."""
    if not parts:
        return [_formula("all statistics together", policy)]
    tables: dict[tuple[str, Policy], list[str]] = {}
    for part in parts:
        tables.setdefault((part.statistic, part.policy), []).append(part.table)
    return [_formula(f"{statistic} ({', '.join(names)})", shared) for (statistic, shared), names in tables.items()]


def _formula(name: str, policy: Policy) -> dict[str, Any]:
    lines = policy_lines(policy) + [f"delta: {line}" for line in terms_lines(policy.delta_terms)]
    return {"name": name, "lines": lines[:MOST_LINES], "more": max(0, len(lines) - MOST_LINES)}


def in_words(policy: Policy) -> str:
    """The policy as a paragraph; if there are too many groups to list, it refers to policy.json."""
    words = policy.in_words()
    if len(words) <= LONGEST:
        return words
    return f"{words[:LONGEST].rsplit(';', 1)[0]}; and further parts, all listed in policy.json."


def ledger_entries(description: dict[str, Any], digest: str, head: Any) -> list[tuple[str, Any]]:
    """The facts that link the page to the ledger."""
    reason = f"accepted because: {description.get('accept_tuning')}"
    tuned = {
        "public": "on public data",
        "synthetic": "on synthetic data",
        "past": "on past releases",
        "confidential": f"on the confidential data; {reason}",
    }
    chosen = tuned.get(str(description.get("tuned_on")), "in a way not stated")
    if description.get("looked_at_records"):
        looks = looks_in_words(description.get("looks", {}))
        viewed = f"the confidential records had been viewed before{f' ({looks})' if looks else ''}"
        chosen += f"; {viewed}" if description.get("tuned_on") == "confidential" else f"; {viewed}, {reason}"
    told = {
        "Guarantee": description.get("guarantee", ""),
        "Mechanisms and thresholds were chosen": chosen,
        **_declared(description),
        **{f"List of codes '{each['name']}'": _list_words(each) for each in description.get("hierarchies", ())},
        **_sizes(description),
        "Digest of tables and policy": digest,
        "Ledger entry": f"{head.length}, {head.digest}",
        "Ledger": description.get("ledger_storage", description.get("books", "")),
        "Made with": ", ".join(f"{name} {number}" for name, number in description.get("versions", {}).items()),
    }
    return list(told.items())


def _declared(description: dict[str, Any]) -> dict[str, str]:
    """The losses that other packages answer for."""
    found = description.get("declared_elsewhere", ())
    named = [f"{each['name']} of {each['package']} {each['version'] or '(version unknown)'}" for each in found]
    return {"Losses that recordwise did not prove": f"{'; '.join(named)}: {found[0]['policy']}"} if found else {}


def _sizes(description: dict[str, Any]) -> dict[str, str]:
    """Where the public sizes of cells are from, and what that means for the promise over time (T-SIZE)."""
    if "sized_noise" not in description:
        return {}
    tables = [table for query in description.get("plan", ()) for table in query["tables"]]
    sources = dict.fromkeys((source, table["sizes"]) for table in tables for source in table.get("sized_on", ()))
    return {
        "Sizes of cells": "; ".join(f"{source}; SHA-256 {digest}" for source, digest in sources),
        "Promise over time": description["sized_noise"],
    }


def _list_words(hierarchy: dict[str, Any]) -> str:
    """Where a public list of codes is from, and which of its levels do not nest."""
    crossing = [" and ".join(pair) for pair in hierarchy.get("not_nested", ())]
    apart = f"; not nested: {', '.join(crossing)}" if crossing else ""
    return f"{hierarchy['source']}; levels {', '.join(hierarchy['levels'])}{apart}; SHA-256 {hierarchy['digest']}"
