"""The page's calculations as JavaScript: the policy, its parts, the budget and the loss of a change, as in Python."""

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from recordwise.policy.atoms import SelectionDelta
from recordwise.policy.concave_atoms import AdditiveTable, CertifiedSum
from recordwise.policy.evaluate.javascript import knots_js, prelude_of, terms_js
from recordwise.policy.evaluate.javascript_firms import PRELUDE as FIRMS_PRELUDE
from recordwise.policy.evaluate.javascript_firms import firm_js
from recordwise.policy.firms import FirmPolicy
from recordwise.policy.policy import Policy
from recordwise.policy.render.bands import SizeOfCell, sizes_of_cells
from recordwise.release.page.change import change_js, has_band
from recordwise.release.page.parts import Part


def model_js(
    policy: Policy,
    parts: Sequence[Part],
    budget: Policy | None,
    firms: FirmPolicy | None = None,
    periods: Sequence[Policy] = (),
    labels: Mapping[str, str] | None = None,
) -> str:
    """``{loss, parts, bands, budget, change, firm, periods, sizes}``.

    ``change`` is null where a band has no meaning, ``firm`` where no cells are known.
    """
    policies = [part.policy for part in parts] + [part.policy for part in (firms.parts if firms else ())]
    texts = [terms_js(each.rho) for each in policies]
    distinct = list(dict.fromkeys(texts))
    places = [distinct.index(text) for text in texts]
    members = [
        f"loss: r => ({{rho: {terms_js(policy.rho)}, delta: {terms_js(policy.delta_terms)}}})",
        f"parts: {json.dumps(places[: len(parts)])}.map(at => shares[at])",
        f"bands: [{', '.join(_band_js(part.policy) for part in parts)}]",
        f"budget: {'null' if budget is None else f'r => {terms_js(budget.rho)}'}",
        f"change: {change_js(parts) if has_band(parts) else 'null'}",
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
    return f"(() => {{\n{prelude}\n{_shared_tables(written, [policy, *policies, *periods])}\n}})()"


def _band_js(policy: Policy) -> str:
    """The band of a record's cell in a part whose noise follows the sizes of cells."""
    tables = list(policy.bands().values())
    return tables[0].key if len(tables) == 1 else "null"


def _size_js(size: SizeOfCell) -> str:
    """What the size of a cell is about, and its words for a record."""
    return f"[{script_json(size.about)}, r => {script_json(size.words)}[{size.table.key}(r)]]"


def _shared_tables(written: str, policies: Sequence[Policy]) -> str:
    """Each step table once: that of a heavy-tailed law has hundreds of entries and occurs in the sum, its part and the change."""
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
    """JSON that is safe inside a script element: no text can close the element."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def page_file(name: str) -> str:
    """The fixed part of the script or the style sheet, without indentation and comments."""
    text = files("recordwise.release.page").joinpath(name).read_text(encoding="utf-8")
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//")) + "\n"
