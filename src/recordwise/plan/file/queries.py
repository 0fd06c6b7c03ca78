"""Reader of a plan file's queries, by builder words or SQL.

Including their groups, prefixes and levels. A part with a problem is left out and the rest is still checked,
so that one run reports everything.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from recordwise.exact.numbers import Number
from recordwise.mechanisms.base import Mechanism
from recordwise.plan.expressions import BEST, PUBLISH, DatePart, Field, Group, Prefix
from recordwise.plan.file.keys import query_keys
from recordwise.plan.file.mechanisms import build_mechanism, read_mechanism
from recordwise.plan.file.node import Entry, Node, one_of
from recordwise.plan.keys.keys import Keys
from recordwise.plan.plan import query_with_levels
from recordwise.plan.query import Query, query
from recordwise.plan.schema import Schema
from recordwise.plan.sql.parse import parse_sql
from recordwise.plan.statistics import KINDS, Statistic
from recordwise.policy.columns import PARTS

AXIS = (Entry("by", lambda node: read_choices(node), needed=True), Entry("share", Node.items))


def read_levels(read: Query, node: Node) -> Query | None:
    """Each axis: its levels and their shares."""
    found: Query | None = read
    for axis in node.items():
        entries = axis.entries(AXIS)
        groups = read_choices(entries["by"]) if "by" in entries else None
        is_best = "share" in entries and entries["share"].value == BEST
        shares = [each.number() for each in entries["share"].items()] if "share" in entries and not is_best else None
        if found is None or groups is None or (shares is not None and None in shares):
            found = None
            continue
        stated = None if shares is None else [share for share in shares if share is not None]
        given = BEST if is_best else stated
        found = entries.get("share", axis).attempt(partial(found.with_axis, *groups, share=given))
    return found


def read_choices(node: Node) -> list[Group | tuple[Prefix, ...]] | None:
    """Read the levels of an axis; an empty list is the total."""
    found: list[Group | tuple[Prefix, ...]] = []
    for each in node.items():
        groups = [()] if each.value == [] else read_group(each)
        if groups is None:
            return None
        found += groups
    return found


def read_groups(node: Node) -> list[Group] | None:
    found = [read_group(each) for each in node.items()]
    return None if None in found else [group for some in found if some is not None for group in some]


def read_group(node: Node) -> list[Group] | None:
    """Read columns, prefixes or date parts to group by."""
    if not isinstance(node.value, dict):
        name = node.text()
        return None if name is None else [Group(name, Field(name))]
    if "part" in node.value:
        return _read_part(node)
    entries = node.table("prefix", "length", "lengths", "as", needed=("prefix",))
    column = entries["prefix"].text() if "prefix" in entries else None
    if ("length" in entries) == ("lengths" in entries):
        node.problem("must contain either length or lengths")
        return None
    given = entries.get("length") or entries["lengths"]
    lengths = [each.integer() for each in given.items()]
    name = entries["as"].text() if "as" in entries else None
    if name is not None and len(lengths) != 1:
        entries["as"].problem("can name only a single prefix")
        return None
    if column is None or None in lengths or len(entries) < len(node.value):
        return None
    made = given.attempt(lambda: [Prefix(str(column), int(length or 0)) for length in lengths])
    return None if made is None else [Group(name or each.default_name(), each) for each in made]


PART = (Entry("part", one_of(*PARTS), needed=True), Entry("of", Node.text, needed=True), Entry("as", Node.text))


def _read_part(node: Node) -> list[Group] | None:
    """``{ part = "year", of = "date" }``."""
    read = node.section(PART, alone=True)
    if read is None:
        return None
    made = DatePart(read["of"], read["part"])
    return [Group(read.get("as") or made.default_name(), made)]


@dataclass(frozen=True, slots=True)
class Shelf:
    """Names that queries may refer to, and the folder of files."""

    schema: Schema
    mechanisms: dict[str, Mechanism]
    keys: dict[str, Keys | None]
    folder: Path

    def mechanism(self, node: Node) -> Any | None:
        """A mechanism, by name or inline; None if it has a problem."""
        return read_mechanism(node, self.schema, self.mechanisms)

    def build_mechanism(self, kind: Any, node: Node, entries: Mapping[str, Node]) -> Any | None:
        """Return a mechanism of a kind from a node's entries."""
        return build_mechanism(kind, node, entries, self.schema)

    def named(self, node: Node) -> tuple[str | None, Any | None]:
        """The published name of a statistic, and its mechanism."""
        if not isinstance(node.value, dict):
            return None, self.mechanism(node)
        rest = {name: value for name, value in node.value.items() if name != "as"}
        alias = Node(node.value["as"], (*node.path, "as"), node.problems).text() if "as" in node.value else None
        if set(rest) == {"mechanism"}:
            found = self.mechanism(Node(rest["mechanism"], (*node.path, "mechanism"), node.problems))
        else:
            found = self.mechanism(Node(rest, node.path, node.problems))
        return alias, None if "as" in node.value and alias is None else found


SHAPE = {"group_by", "levels"}


@dataclass(slots=True)
class Draft:
    """A query as far as it could be read, with its entries."""

    node: Node
    query: Query = field(default_factory=query)
    entries: dict[str, Node] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    """One entry for each statistic."""
    broken: set[str] = field(default_factory=set)
    """The parts that were left out."""

    def add(self, part: str, changed: Query | None) -> None:
        """Add a part, or record that it is missing."""
        if changed is None:
            self.broken.add(part)
        else:
            self.query = changed

    def statistic(self, changed: Query | None, node: Node) -> None:
        self.add("statistics", changed)
        if changed is not None:
            self.nodes.append(node)

    def node_for(self, about: int | str | None) -> Node:
        """Return the entry of a part, its SQL statement, or the query."""
        if isinstance(about, int):
            return self.nodes[about]
        stands = about in {"where", *SHAPE} and "sql" in self.entries
        return self.entries["sql"] if stands else self.entries.get(about or "", self.node)


def _where(read: Query, node: Node) -> Query | None:
    text = node.text()
    return None if text is None else node.attempt(lambda: read.where(text))


def _group(read: Query, node: Node) -> Query | None:
    groups = read_groups(node)
    return None if groups is None else node.attempt(partial(read.group_by, *groups))


def _all_other(read: Query, node: Node) -> Query | None:
    word = node.word(PUBLISH)
    return None if word is None else replace(read, all_other=word)


def _table_share(read: Query, node: Node) -> Query | None:
    """The share of each table, where levels cross."""
    if read.best is not None:
        node.problem('cannot be given with share = "best"')
        return None
    shares = [each.number() for each in node.items()]
    given = [share for share in shares if share is not None]
    return node.attempt(lambda: read.with_shares(*given)) if len(given) == len(shares) else None


def _share_goal(read: Query, node: Node) -> Query | None:
    """The relative error of cells by their size, for which the best shares are best."""
    stated = {size: each.number() for size, each in node.table().items()}
    given: dict[Number, Number] = {size: error for size, error in stated.items() if error is not None}
    return node.attempt(lambda: read.with_share_goal(given)) if len(given) == len(stated) else None


NAMES = (Entry("name", Node.text), Entry("title", Node.text))
MEDIAN = Entry("median", lambda node: node.each(Node.text))
SHAPES = (
    Entry("where", _where),
    Entry("group_by", _group),
    Entry("levels", read_levels),
    Entry("table_share", lambda read, node: _table_share(read, node)),
    Entry("share_goal", lambda read, node: _share_goal(read, node)),
    Entry("all_other", _all_other, old="rest"),
)
KEYS = Entry("keys", query_keys)
SQL = (Entry("sql", Node.text, needed=True), Entry("mechanisms", Node.table, needed=True), KEYS, *NAMES, MEDIAN)
QUERY = (*NAMES, *SHAPES, KEYS, MEDIAN)
"""Without its statistics, which are entries under the words of ``KINDS``."""


def read_draft(node: Node, shelf: Shelf) -> Draft:
    """Read one query, with every part that can be read."""
    draft = Draft(node)
    if isinstance(node.value, dict) and "sql" in node.value:
        draft.entries = node.entries(SQL)
        _from_sql(draft, shelf)
    else:
        draft.entries = node.entries((*QUERY, *(Entry(kind.word, kind.read_entry) for kind in KINDS)))
        _from_builder(draft, shelf)
    _name(draft)
    draft.add("keys", draft.node_for("keys").attempt(lambda: query_with_levels(draft.query, shelf.schema)))
    return draft


def _name(draft: Draft) -> None:
    given = {each.name: each.read(draft.entries[each.name]) for each in (*NAMES, MEDIAN) if each.name in draft.entries}
    if "name" in given:
        draft.add("name", draft.entries["name"].attempt(lambda: draft.query.named(given["name"] or "?")))
    draft.query = replace(draft.query, title=given.get("title") or "", median=tuple(given.get("median") or ()))


def _from_sql(draft: Draft, shelf: Shelf) -> None:
    keys = _keys(draft, shelf)
    tables = draft.entries["mechanisms"].table() if "mechanisms" in draft.entries else {}
    chosen: dict[str, Any] = {name: _sql_mechanism(each, shelf) for name, each in tables.items()}
    statement = draft.entries["sql"]
    text = statement.text()
    if text is None or not chosen or None in chosen.values():
        draft.broken |= {"statistics", "group_by", "where"}
        return
    draft.add("statistics", statement.attempt(lambda: parse_sql(text, mechanisms=chosen, keys=keys)))
    draft.nodes = [
        _sql_node(getattr(each, "mechanism", None), chosen, tables, statement) for each in draft.query.statistics
    ]


def _sql_mechanism(node: Node, shelf: Shelf) -> Any | None:
    """Read a mechanism, an average's two, or a quantile's grid and rho."""
    given = node.value if isinstance(node.value, dict) else {}
    own = next((kind for kind in KINDS if kind.sql_key in given), None)
    return shelf.mechanism(node) if own is None else own.read_sql_mechanism(node, shelf)


def _sql_node(mechanism: Mechanism | None, chosen: dict[str, Any], tables: dict[str, Node], default: Node) -> Node:
    return next((tables[name] for name, each in chosen.items() if each is mechanism), default)


def _keys(draft: Draft, shelf: Shelf) -> list[Keys] | None:
    if "keys" not in draft.entries:
        return None
    found = query_keys(draft.entries["keys"], shelf.folder, shelf.keys, shelf.schema)
    if found is None:
        draft.broken.add("keys")
    return found or None


def _from_builder(draft: Draft, shelf: Shelf) -> None:
    for shape in SHAPES:
        if shape.name in draft.entries:
            draft.add(shape.name, shape.read(draft.query, draft.entries[shape.name]))
    draft.query = draft.query.at(_keys(draft, shelf))
    for kind in KINDS:
        for column, each in _statistic_entries(kind, draft.entries.get(kind.word)):
            draft.statistic(_ask(draft.query, kind.read_entry(column, each, shelf), each), each)


def _statistic_entries(kind: type[Statistic], node: Node | None) -> list[tuple[str, Node]]:
    """Return the statistics of one kind, each as column and entry."""
    if node is None:
        return []
    if not kind.names_column:
        return [("", each) for each in node.items()]
    return [(column, each) for column, listed in node.table().items() for each in listed.items()]


def _ask(read: Query, statistic: Statistic | None, node: Node) -> Query | None:
    return None if statistic is None else node.attempt(lambda: read.ask(statistic))
