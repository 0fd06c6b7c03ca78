"""Schemas as a ledger states them: which names changed their meaning, and what a schema has grown by."""

from typing import Any

PARTS = ("measures", "columns")


def changed_names(known: Any, wanted: Any) -> list[str]:
    """The names that have a different meaning in the second schema; both in JSON as written by ``plan.describe.schema_json``.

    Names that differ only in case are the same name. A schema may leave out names and the firm.
    """
    if not known or not wanted:
        return []
    try:
        before, after = _meanings(known), _meanings(wanted)
    except (AttributeError, KeyError, TypeError):
        return ["everything (it is not a valid schema)"]
    changed = [name for name in before if name in after and before[name] != after[name]]
    for role in ("unit", "firm"):
        first, second = known.get(role), wanted.get(role)
        if first != second and (role == "unit" or None not in (first, second)):
            changed.append(f"the {role}")
    if known.get("rows") != wanted.get("rows"):
        changed.append("the rows of a unit")
    return sorted(changed)


def grown(known: Any, wanted: Any) -> Any:
    """Both schemas combined, the names of the first one first; for schemas in which ``changed_names`` finds nothing."""
    if not known or not wanted:
        return known or wanted
    before = _meanings(known)
    new = {part: [each for each in wanted.get(part, []) if each["name"].casefold() not in before] for part in PARTS}
    merged = {part: [*known.get(part, []), *new[part]] for part in PARTS if part in known or new[part]}
    firm = {"firm": known.get("firm") or wanted.get("firm")} if "firm" in known or "firm" in wanted else {}
    return known | firm | merged


def within(smaller: Any, larger: Any) -> bool:
    """Whether a larger schema has every name of a smaller one, with the same meaning."""
    return not smaller or (not changed_names(larger, smaller) and grown(larger, smaller) == larger)


def _meanings(schema: dict[str, Any]) -> dict[str, Any]:
    """The meaning of each name: an id, a measure with its step and bound, or a column with its type and its rule for NULL."""
    roles = {schema[role].casefold(): (role, schema[role]) for role in ("unit", "firm") if schema.get(role)}
    return roles | {each["name"].casefold(): (part, each) for part in PARTS for each in schema.get(part, [])}


def amount_bounds(schema: Any) -> dict[str, str]:
    """The bound of every measure of a schema, in JSON as ``describing.schema_json`` writes it: no record is larger."""
    measures = schema.get("measures", []) if isinstance(schema, dict) else []
    return {measure["name"]: measure["bound"] for measure in measures if {"name", "bound"} <= set(measure)}
