"""Reader of a plan file's keys, with names as in Python.

Public keys (listed, as a product of lists, or from a CSV or Parquet file) or keys selected privately.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from recordwise.plan.file.mechanisms import read_joint
from recordwise.plan.file.node import Entry, Node, suggestion
from recordwise.plan.keys.keys import EVERY_STATISTIC, FromRelease, Keys
from recordwise.plan.plan import cross_keys
from recordwise.plan.schema import Schema
from recordwise.plan.sources import read_code_file


def read_select(node: Node, schema: Schema) -> Keys | None:
    """Read ``select``.

    ``select = { rho = 0.1, delta = 1e-6, pieces = { emp = 50 } }``.
    """
    numbers = (Entry("rho", Node.number, needed=True), Entry("delta", Node.number, needed=True))
    read = node.section((*numbers, Entry("pieces", lambda each: _pieces(each, schema))))
    return None if read is None else node.attempt(lambda: Keys.select(**read))


def read_select_from(node: Node, schema: Schema, domain: Any | None) -> Keys | None:
    """Read ``select_from``, whose domain has been read already.

    ``select_from = { product = { county = [...] }, rho = 0.1, threshold = 12 }``.
    """
    if not isinstance(node.value, dict):
        return None
    entries = {name: Node(value, (*node.path, name), node.problems) for name, value in node.value.items()}
    for name in ("rho", "threshold"):
        if name not in entries:
            node.problem(f"'{name}' is missing")
    rho = entries["rho"].number() if "rho" in entries else None
    threshold = entries["threshold"].integer() if "threshold" in entries else None
    pieces = _pieces(entries.get("pieces"), schema)
    if domain is None or rho is None or threshold is None or pieces is None:
        return None
    return node.attempt(lambda: Keys.select_from(domain, rho=rho, threshold=threshold, pieces=pieces or None))


def _pieces(node: Node | None, schema: Schema) -> dict[str, Any] | None:
    """Read thresholds by measure; empty without any, None with problems."""
    if node is None:
        return {}
    joint = read_joint(node, schema)
    return None if joint is None else {measure.name: at for measure, at in joint.items()}


WAYS = ("product", "rows", "file")


def named_keys(node: Node, folder: Path, schema: Schema) -> dict[str, Keys | None]:
    """The named key lists; None stands for one with a problem."""
    return {name: read_keys(each, folder, schema) for name, each in node.table().items()}


def query_keys(node: Node, folder: Path, named: dict[str, Keys | None], schema: Schema) -> list[Keys] | None:
    """The key lists of one query, by name or inline."""
    found = []
    for each in node.items():
        if isinstance(each.value, str) and each.value not in named:
            each.problem(f"there are no keys named '{each.value}'{suggestion(each.value, named) if named else ''}")
        found.append(named.get(each.value) if isinstance(each.value, str) else read_keys(each, folder, schema))
    return None if None in found else [keys for keys in found if keys is not None]


def read_keys(node: Node, folder: Path, schema: Schema) -> Keys | None:
    """Read the keys of a query.

    A ``product`` of lists, ``rows`` column by column, a ``file``, ``select`` from the data, or ``select_from`` a
    domain.
    """
    entries = node.table(*WAYS, "select", "select_from", "size", "sized_on")
    size, sized_on = entries.pop("size", None), entries.pop("sized_on", None)
    if len(entries) != 1:
        if isinstance(node.value, dict):
            node.problem("must contain one of product, rows, file, select or select_from")
        return None
    (way, entry), *_ = entries.items()
    if (size or sized_on) and way.startswith("select"):
        node.problem("has sizes, but its keys are selected: noise can be sized only at public keys")
        return None
    if way == "select":
        return read_select(entry, schema)
    if way == "select_from":
        return read_select_from(entry, schema, _domain(entry, folder, schema))
    return read_listed(way, entry, folder, schema, size, sized_on)


def _domain(node: Node, folder: Path, schema: Schema) -> Any:
    """Read a public domain, leaving a product of lists unexpanded."""
    entries = node.table(*WAYS, "rho", "threshold", "pieces")
    ways = [name for name in WAYS if name in entries]
    if len(ways) != 1:
        if isinstance(node.value, dict):
            node.problem("must contain one of product, rows or file")
        return None
    way, entry = ways[0], entries[ways[0]]
    if way != "product":
        return read_listed(way, entry, folder, schema)
    parts = _product(entry, folder, schema)
    return None if parts is None else {name: values for part in parts for name, values in _columns(part).items()}


def _columns(part: Keys | dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return the lists of a part of a product."""
    if not isinstance(part, Keys):
        return part
    level = part.table.column_names[-1]
    return {level: part.table.column(level).to_pylist()}


def read_listed(
    way: str, entry: Node, folder: Path, schema: Schema, size: Node | None = None, sized_on: Node | None = None
) -> Keys | None:
    """Public keys with one row per cell, and their sizes."""
    source = None if sized_on is None else sized_on.text()
    given = None if size is None else read_size(size, folder)
    if (size is not None and given is None) or (sized_on is not None and source is None):
        return None
    own = {name: each for name, each in (given or {}).items() if not isinstance(each, SizeFile)}
    others = {name: each for name, each in (given or {}).items() if isinstance(each, SizeFile)}
    frame = _frame(way, entry, folder, schema)
    if frame is None:
        return None
    # A source is refused where there is nothing that it is the source of.
    of_own = source if not others or any(isinstance(each, str) for each in own.values()) else None

    def made() -> Keys:
        keys = Keys.of(frame, size=own or None, sized_on=of_own)
        for name, file in others.items():
            keys = keys.sized(read_code_file(file.path), size={name: file.column}, sized_on=source)
        return keys

    return entry.attempt(made)


def _frame(way: str, entry: Node, folder: Path, schema: Schema) -> Any | None:
    """The list of cells of public keys."""
    if way == "product":
        made = _cross_product(entry, folder, schema)
        return None if made is None else made.table
    if way == "file":
        name = entry.text()
        return None if name is None else entry.attempt(lambda: read_code_file(folder / name))
    values = _lists(entry)
    if values is not None and len({len(each) for each in values.values()}) > 1:
        entry.problem("lists columns of different lengths; each row is one cell")
        return None
    return values


@dataclass(frozen=True, slots=True)
class SizeFile:
    """A column of another file with the sizes of cells."""

    path: Path
    column: str


COLUMN_OF = Entry("column", Node.text, needed=True)
GivenSize: TypeAlias = str | FromRelease | SizeFile


def read_size(node: Node, folder: Path) -> dict[str, GivenSize] | None:
    """Read the sizes of cells.

    A column of the list, ``{ release = "FOLDER", column = "sum_emp" }``, ``{ file = "sizes.csv", column = "emp"
    }``, or one of these for each statistic.
    """
    if isinstance(node.value, str) or (isinstance(node.value, dict) and {"release", "file"} & set(node.value)):
        every = _size_source(node, folder)
        return None if every is None else {EVERY_STATISTIC: every}
    found = {name: _size_source(each, folder) for name, each in node.table().items()}
    kept = {name: each for name, each in found.items() if each is not None}
    return kept if found and len(kept) == len(found) else None


def _size_source(node: Node, folder: Path) -> GivenSize | None:
    if isinstance(node.value, str):
        return node.value
    where = "file" if isinstance(node.value, dict) and "file" in node.value else "release"
    read = node.section((Entry(where, Node.text, needed=True), COLUMN_OF))
    if read is None:
        return None
    place, column = folder / read[where], read["column"]
    return SizeFile(place, column) if where == "file" else FromRelease(release=str(place), column=column)


def _cross_product(entry: Node, folder: Path, schema: Schema) -> Keys | None:
    parts = _product(entry, folder, schema)
    if parts is None:
        return None
    made = entry.attempt(lambda: [part if isinstance(part, Keys) else Keys.product(**part) for part in parts])
    return None if made is None else entry.attempt(lambda: cross_keys(made))


def _product(entry: Node, folder: Path, schema: Schema) -> list[Keys | dict[str, list[Any]]] | None:
    """Read a product's parts: column lists, and hierarchies' levels by name."""
    parts = {name: _factor(name, each, folder, schema) for name, each in entry.table().items()}
    if not parts:
        entry.problem("must be a table of lists, one for each column")
    if not parts or None in parts.values():
        return None
    return [part if isinstance(part, Keys) else {name: part} for name, part in parts.items() if part is not None]


def _factor(name: str, node: Node, folder: Path, schema: Schema) -> Keys | list[Any] | None:
    """Read a list of values, a level's name, or a file's column."""
    if isinstance(node.value, list):
        return node.value
    if isinstance(node.value, str):
        known = {each.name: each for each in schema.hierarchies}
        if name not in known:
            node.problem(f"is text: give a list, or a level of a hierarchy by its name{suggestion(name, known)}")
            return None
        return node.attempt(lambda: known[name].keys(node.value))
    read = node.section((Entry("file", Node.text, needed=True), COLUMN_OF))
    if read is None:
        return None
    file, column = read["file"], read["column"]
    table = node.attempt(lambda: read_code_file(folder / file))
    if table is None:
        return None
    if column not in table.column_names:
        node.table()["column"].problem(f"'{column}' is not a column of {file}{suggestion(column, table.column_names)}")
        return None
    return list(dict.fromkeys(table.column(column).to_pylist()))


def _lists(entry: Node) -> dict[str, list[Any]] | None:
    lists = entry.table()
    if not lists or any(not isinstance(each.value, list) for each in lists.values()):
        entry.problem("must be a table of lists, one for each column")
        return None
    return {name: each.value for name, each in lists.items()}
