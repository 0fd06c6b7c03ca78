"""Reads the words of a plan file: the name of the dataset and who publishes it, labels, units."""

from collections.abc import Collection
from dataclasses import fields
from datetime import date
from typing import Any

from recordwise.plan.file.node import Node, suggestion
from recordwise.plan.plan import Plan
from recordwise.plan.schema import Schema
from recordwise.plan.words import VALUE_SIGN, Publication, Words

ABOUT = tuple(each.name for each in fields(Publication))


def read_dataset(node: Node | None) -> tuple[str | None, Publication | None]:
    """``dataset = "name"``, or a table with the name and what is said about the publication; None where it has a problem."""
    if node is None:
        return None, None
    if not isinstance(node.value, dict):
        return node.text(), Publication()
    entries = node.table("name", *ABOUT, needed=("name",))
    name = entries["name"].text() if "name" in entries else None
    given = {each: _day(entries[each]) if each == "date" else entries[each].text() for each in ABOUT if each in entries}
    if None in given.values():
        return name, None
    return name, node.attempt(lambda: Publication(**{each: str(text) for each, text in given.items()}))


def _day(node: Node) -> str | None:
    """A date of TOML, or the same as text."""
    return node.value.isoformat() if type(node.value) is date else node.text()


def read_words(entries: dict[str, Node], schema: Schema, plan: Plan | None, publication: Publication) -> Words | None:
    """Labels and units; without a plan, which has problems of its own, published names are not known and not checked."""
    if not {"labels", "units"} & entries.keys():
        return Words(publication=publication)
    measures = {*schema.measure_names(), *(() if plan is None else published(plan))}
    columns = {*schema.column_names(), *schema.coarser_names(), *(() if plan is None else groups(plan))}
    labels = _texts(entries.get("labels"), None if plan is None else measures | columns, values=True)
    units = _texts(entries.get("units"), None if plan is None else measures, values=False)
    return None if labels is None or units is None else Words(labels=labels, units=units, publication=publication)


def published(plan: Plan) -> set[str]:
    """The names that statistics are published under."""
    return {each.alias for query in plan.queries for each in (*query.statistics, *query.draws())}


def groups(plan: Plan) -> set[str]:
    """The names of key columns."""
    return {name for query in plan.queries for level in query.tables() for name in level.names()}


def _texts(node: Node | None, known: Collection[str] | None, *, values: bool) -> dict[str, str] | None:
    found: dict[str, Any] = {}
    for name, each in (node.table() if node is not None else {}).items():
        column = name.partition(VALUE_SIGN)[0] if values else name
        if known is not None and column not in known:
            what = "a measure, a column or a published name" if values else "a measure or a published name"
            each.problem(f"names '{column}', which is not {what}{suggestion(column, sorted(known))}")
        found[name] = each.text()
    return None if None in found.values() else found
