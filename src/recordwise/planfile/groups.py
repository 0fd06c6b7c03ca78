"""What a query of a plan file groups by: columns, prefixes of codes, and levels with their shares."""

from functools import partial

from recordwise.plan import Group, Prefix, Query
from recordwise.plan.fields import Field
from recordwise.planfile.node import Node


def read_levels(read: Query, node: Node) -> Query | None:
    """Each axis: the levels it chooses from and their shares."""
    found: Query | None = read
    for axis in node.items():
        entries = axis.table("by", "share", needed=("by",))
        groups = read_groups(entries["by"]) if "by" in entries else None
        shares = [each.number() for each in entries["share"].items()] if "share" in entries else None
        if found is None or groups is None or (shares is not None and None in shares):
            found = None
            continue
        given = None if shares is None else [share for share in shares if share is not None]
        found = entries.get("share", axis).attempt(partial(found.levels, *groups, share=given))
    return found


def read_groups(node: Node) -> list[Group] | None:
    found = [read_group(each) for each in node.items()]
    return None if None in found else [group for some in found if some is not None for group in some]


def read_group(node: Node) -> list[Group] | None:
    """A column by name, or a prefix of one: a length, or one for each of several levels."""
    if not isinstance(node.value, dict):
        name = node.text()
        return None if name is None else [Group(name, Field(name))]
    entries = node.table("prefix", "length", "lengths", "as", needed=("prefix",))
    column = entries["prefix"].text() if "prefix" in entries else None
    if ("length" in entries) == ("lengths" in entries):
        node.problem("must hold either length or lengths")
        return None
    given = entries.get("length") or entries["lengths"]
    lengths = [each.whole() for each in given.items()]
    name = entries["as"].text() if "as" in entries else None
    if name is not None and len(lengths) != 1:
        entries["as"].problem("can name one prefix only")
        return None
    if column is None or None in lengths or len(entries) < len(node.value):
        return None
    made = given.attempt(lambda: [Prefix(str(column), int(length or 0)) for length in lengths])
    return None if made is None else [Group(name or each.default_name(), each) for each in made]
