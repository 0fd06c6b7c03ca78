"""The page's numbers as JavaScript: the policy, its parts, the budget and the loss of another value, the formulas Python runs."""

import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from recordwise.policy.atoms import SelectionDelta
from recordwise.policy.concave_atoms import AdditiveTable
from recordwise.policy.evaluate.javascript import PRELUDE, terms_js
from recordwise.policy.policy import Policy
from recordwise.release.page.change import change_js, has_band
from recordwise.release.page.parts import Part


def model_js(policy: Policy, parts: Sequence[Part], budget: Policy | None) -> str:
    """``{loss, parts, budget, change}``; ``change`` is null where a band has no meaning."""
    texts = [terms_js(part.policy.rho) for part in parts]
    distinct = list(dict.fromkeys(texts))
    shares = ", ".join(f"r => {text}" for text in distinct)
    members = [
        f"loss: r => ({{rho: {terms_js(policy.rho)}, delta: {terms_js(policy.delta_terms)}}})",
        f"parts: (p => {json.dumps([distinct.index(text) for text in texts])}.map(at => p[at]))([{shares}])",
        f"budget: {'null' if budget is None else f'r => {terms_js(budget.rho)}'}",
        f"change: {change_js(parts) if has_band(parts) else 'null'}",
    ]
    written = ",\n".join(members)
    return f"(() => {{\n{PRELUDE}\n{_shared_tables(written, [policy, *(part.policy for part in parts)])}\n}})()"


def _shared_tables(written: str, policies: Sequence[Policy]) -> str:
    """Each step table once: a heavy-tailed law's has hundreds of entries, and stands in the sum, in its part and in the change."""
    tables: dict[str, str] = {}
    for policy in policies:
        for terms in (policy.rho, policy.delta_terms):
            for _, atom in terms:
                if isinstance(atom, (AdditiveTable, SelectionDelta)):
                    text = json.dumps([[count, float(level)] for count, level in atom.steps])
                    tables.setdefault(text, f"T{len(tables)}")
    for text, name in tables.items():
        written = written.replace(text, name)
    named = "".join(f"const {name} = {text.replace(' ', '')};\n" for text, name in tables.items())
    return f"{named}return {{\n{written}\n}};"


def script_json(value: Any) -> str:
    """JSON that can stand in a script element: no text can end it."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def page_file(name: str) -> str:
    """The script's fixed part or the style sheet, without what only its authors read: indentation and remarks."""
    text = files("recordwise.release.page").joinpath(name).read_text(encoding="utf-8")
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//")) + "\n"
