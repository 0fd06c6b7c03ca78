"""Reads the hierarchies of a plan file: public lists of codes, each with the column of a coarser level beside the finest code."""

from functools import partial
from pathlib import Path

from recordwise.plan.file.node import Node
from recordwise.plan.hierarchies import Hierarchy

ENTRIES = ("file", "levels", "source", "titles", "labels", "totals")
NEEDED = ("file", "levels", "source")
MADE_FROM_RECORDS = (
    "does not begin with 'public': a list made with the confidential records needs accept_tuning = \"reason\", which is published "
    "with the release"
)


def read_hierarchies(node: Node | None, folder: Path, *, accepted: bool) -> tuple[Hierarchy, ...] | None:
    """``[hierarchies.NAME]``: a file, its levels and where it is from; None if one has a problem."""
    if node is None:
        return ()
    found = [_read(name, each, folder, accepted=accepted) for name, each in node.table().items()]
    return None if None in found else tuple(each for each in found if each is not None)


def _read(name: str, node: Node, folder: Path, *, accepted: bool) -> Hierarchy | None:
    entries = node.table(*ENTRIES, needed=NEEDED)
    if not isinstance(node.value, dict) or not set(NEEDED) <= set(node.value) <= set(ENTRIES):
        return None
    file, source = entries["file"].text(), entries["source"].text()
    levels = [each.text() for each in entries["levels"].items()]
    words = {each: _texts(entries[each]) for each in ("titles", "labels", "totals") if each in entries}
    if file is None or source is None or None in levels or None in words.values():
        return None
    known = [level for level in levels if level is not None]
    made: Hierarchy | None = node.attempt(
        partial(Hierarchy.of, name, folder / file, levels=known, source=source, **words)
    )
    if made is not None and not made.is_public and not accepted:
        entries["source"].problem(MADE_FROM_RECORDS)
        return None
    return made


def _texts(node: Node) -> dict[str, str] | None:
    found = {name: each.text() for name, each in node.table().items()}
    return None if None in found.values() else {name: text for name, text in found.items() if text is not None}
