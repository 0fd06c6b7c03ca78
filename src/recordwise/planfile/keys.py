"""Keys of a plan file: written out, as a product of lists, in a CSV or Parquet file, or selected at a cost."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from recordwise.errors import KeysError
from recordwise.exact import Number
from recordwise.plan.keys import Keys
from recordwise.plan.query import KeyList
from recordwise.plan.selection import SelectFrom, SelectKeys
from recordwise.planfile.mechanisms import read_joint
from recordwise.planfile.node import Node, suggestion
from recordwise.planfile.shelf import Shelf
from recordwise.policy import By

WAYS = ("product", "rows", "file", "select", "select_from")


def named_keys(node: Node | None, shelf: Shelf) -> dict[str, KeyList | None]:
    """The key lists that have a name; None stands for one with a problem."""
    if node is None:
        return {}
    return {name: read_keys(each, shelf) for name, each in node.table().items()}


def query_keys(node: Node, shelf: Shelf) -> list[KeyList] | None:
    """The key lists of one query, by name or in place."""
    found: list[KeyList | None] = []
    for each in node.items():
        if isinstance(each.value, str) and each.value not in shelf.keys:
            each.problem(f"there are no keys '{each.value}'{suggestion(each.value, shelf.keys) if shelf.keys else ''}")
        found.append(shelf.keys.get(each.value) if isinstance(each.value, str) else read_keys(each, shelf))
    return None if None in found else [keys for keys in found if keys is not None]


def read_keys(node: Node, shelf: Shelf) -> KeyList | None:
    """A list that is public, or a selection that finds the keys at a cost."""
    entries = node.table(*WAYS)
    if len(entries) != 1:
        if isinstance(node.value, dict):
            node.problem(f"must hold one of {', '.join(WAYS)}")
        return None
    (way, entry), *_ = entries.items()
    if way == "file":
        name = entry.text()
        return None if name is None else entry.attempt(lambda: Keys(read_table(shelf.folder / name)))
    if way == "select":
        return read_selection(entry, shelf)
    if way == "select_from":
        return _select_from(entry, shelf)
    return _listed(way, entry)


def _listed(way: str, node: Node) -> Keys | None:
    values = _lists(node)
    if values is None:
        return None
    if way == "rows" and len({len(each) for each in values.values()}) > 1:
        node.problem("lists columns of different lengths; one row is one cell")
        return None
    return node.attempt(lambda: Keys.product(**values) if way == "product" else Keys.of(values))


def _lists(node: Node) -> dict[str, list[Any]] | None:
    lists = node.table()
    if not lists or any(not isinstance(each.value, list) for each in lists.values()):
        node.problem("must be a table of lists, one for each column")
        return None
    return {name: each.value for name, each in lists.items()}


def read_selection(node: Node, shelf: Shelf) -> SelectKeys | None:
    """``{ rho = 0.1, delta = 1e-6, pieces = { emp = 50 } }``."""
    entries = node.table("rho", "delta", "pieces", needed=("rho", "delta"))
    rho, delta = (entries[name].number() if name in entries else None for name in ("rho", "delta"))
    pieces = _pieces(entries.get("pieces"), shelf)
    if rho is None or delta is None or ("pieces" in entries and pieces is None):
        return None
    return node.attempt(lambda: Keys.select(rho=rho, delta=delta, pieces=pieces))


def _select_from(node: Node, shelf: Shelf) -> SelectFrom | None:
    """``{ domain = { county = [...] }, rho = 0.1, threshold = 20 }``; a domain may also be a key file."""
    entries = node.table("domain", "rho", "threshold", "pieces", needed=("domain", "rho", "threshold"))
    domain = _domain(entries["domain"], shelf) if "domain" in entries else None
    rho = entries["rho"].number() if "rho" in entries else None
    threshold = entries["threshold"].whole() if "threshold" in entries else None
    pieces = _pieces(entries.get("pieces"), shelf)
    if domain is None or rho is None or threshold is None or ("pieces" in entries and pieces is None):
        return None
    return node.attempt(lambda: Keys.select_from(domain, rho=rho, threshold=threshold, pieces=pieces))


def _domain(node: Node, shelf: Shelf) -> Keys | dict[str, list[Any]] | None:
    if not isinstance(node.value, str):
        return _lists(node)
    try:
        return Keys(read_table(shelf.folder / node.value))
    except KeysError as error:
        node.problem(str(error))
        return None


def _pieces(node: Node | None, shelf: Shelf) -> dict[str, Number | By] | None:
    """Thresholds by measure, under plain names."""
    found = None if node is None else read_joint(node, shelf.schema)
    return None if found is None else {measure.name: at for measure, at in found.items()}


def read_table(path: Path) -> pa.Table:
    """A key file. In CSV every field is text, so that '01' keeps its zero; the declared types are applied later."""
    import pyarrow.csv
    import pyarrow.parquet

    try:
        if path.suffix.lower() in (".parquet", ".pq"):
            return pyarrow.parquet.read_table(path)
        with pyarrow.csv.open_csv(path) as opened:
            names = opened.schema.names
        as_text = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
        return pyarrow.csv.read_csv(path, convert_options=as_text)
    except FileNotFoundError:
        raise KeysError(column=f"the file {path.name}", problem="does not exist") from None
    except (OSError, pa.ArrowInvalid, pa.ArrowTypeError):
        raise KeysError(column=f"the file {path.name}", problem="cannot be read as CSV or Parquet") from None
