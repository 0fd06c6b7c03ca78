"""Queries of a plan file: in the words of the builder, or as SQL.

A part with a problem is left out and the rest is checked all the same, so that one look at the file finds everything.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from recordwise.plan import Query, parse_sql, query
from recordwise.plan.query import KeyList
from recordwise.planfile.groups import read_groups, read_levels
from recordwise.planfile.keys import query_keys
from recordwise.planfile.node import Node
from recordwise.planfile.shelf import Shelf
from recordwise.planfile.statistics import STATISTICS, add_statistic, sql_mechanism, wanted


@dataclass(slots=True)
class Draft:
    """A query as far as it could be read, with the entries its parts come from."""

    node: Node
    query: Query = field(default_factory=query)
    entries: dict[str, Node] = field(default_factory=dict)
    places: list[Node] = field(default_factory=list)
    """One for each statistic."""
    broken: set[str] = field(default_factory=set)
    """The parts that were left out."""

    def add(self, part: str, changed: Query | None) -> None:
        """Take a part in, or note that it is missing."""
        if changed is None:
            self.broken.add(part)
        else:
            self.query = changed

    def statistic(self, changed: Query | None, place: Node) -> None:
        self.add("statistics", changed)
        if changed is not None:
            self.places.append(place)


BUILDER = ("where", "group_by", "levels", "keys", *STATISTICS)


def read_draft(node: Node, shelf: Shelf) -> Draft:
    """One query with everything in it that can be read."""
    draft = Draft(node)
    if isinstance(node.value, dict) and "sql" in node.value:
        draft.entries = node.table("sql", "mechanisms", "keys", needed=("mechanisms",))
        _from_sql(draft, shelf)
    else:
        draft.entries = node.table("sql", *BUILDER)
        _from_builder(draft, shelf)
    return draft


def _from_sql(draft: Draft, shelf: Shelf) -> None:
    keys = _keys(draft, shelf)
    tables = draft.entries["mechanisms"].table() if "mechanisms" in draft.entries else {}
    chosen: dict[str, Any] = {name: sql_mechanism(each, shelf) for name, each in tables.items()}
    statement = draft.entries["sql"]
    text = statement.text()
    if text is None or not chosen or None in chosen.values():
        draft.broken |= {"statistics", "group_by", "where"}
        return
    draft.add("statistics", statement.attempt(lambda: parse_sql(text, mechanisms=chosen, keys=keys)))
    draft.places = [_sql_place(each, chosen, tables, statement) for each in draft.query.statistics]


def _sql_place(statistic: Any, chosen: dict[str, Any], tables: dict[str, Node], default: Node) -> Node:
    """The entry a statistic got its mechanism from; an average holds the two parts of one."""
    held = (getattr(statistic, "mechanism", None), getattr(statistic, "sum", None))
    found = (name for name, each in chosen.items() if each in held or getattr(each, "sum", None) in held)
    return next((tables[name] for name in found), default)


def _keys(draft: Draft, shelf: Shelf) -> list[KeyList]:
    if "keys" not in draft.entries:
        return []
    found = query_keys(draft.entries["keys"], shelf)
    if found is None:
        draft.broken.add("keys")
    return found or []


def _from_builder(draft: Draft, shelf: Shelf) -> None:
    readers: dict[str, Callable[[Query, Node], Query | None]] = {
        "where": _where,
        "group_by": _grouped,
        "levels": read_levels,
    }
    for name, read in readers.items():
        if name in draft.entries:
            draft.add(name, read(draft.query, draft.entries[name]))
    draft.query = draft.query.at(_keys(draft, shelf))
    for name in STATISTICS:
        for column, each in wanted(name, draft.entries.get(name)):
            draft.statistic(add_statistic(draft.query, name, column, each, shelf), each)


def _where(read: Query, node: Node) -> Query | None:
    text = node.text()
    return None if text is None else node.attempt(lambda: read.where(text))


def _grouped(read: Query, node: Node) -> Query | None:
    groups = read_groups(node)
    return None if groups is None else node.attempt(partial(read.group_by, *groups))
