"""Public keys of a plan file: written out, as a product of lists, or in a CSV or Parquet file."""

from pathlib import Path

import pyarrow as pa

from recordwise.errors import KeysError
from recordwise.plan.keys import Keys
from recordwise.planfile.node import Node, suggestion


def named_keys(node: Node | None, folder: Path) -> dict[str, Keys | None]:
    """The key lists that have a name; None stands for one with a problem."""
    if node is None:
        return {}
    return {name: read_keys(each, folder) for name, each in node.table().items()}


def query_keys(node: Node, folder: Path, named: dict[str, Keys | None]) -> list[Keys] | None:
    """The key lists of one query, by name or in place."""
    found = []
    for each in node.items():
        if isinstance(each.value, str) and each.value not in named:
            each.problem(f"there are no keys '{each.value}'{suggestion(each.value, named) if named else ''}")
        found.append(named.get(each.value) if isinstance(each.value, str) else read_keys(each, folder))
    return None if None in found else [keys for keys in found if keys is not None]


def read_keys(node: Node, folder: Path) -> Keys | None:
    """``product`` of lists, ``rows`` column by column, or a ``file``."""
    entries = node.table("product", "rows", "file")
    if len(entries) != 1:
        if isinstance(node.value, dict):
            node.problem("must hold one of product, rows or file")
        return None
    (way, entry), *_ = entries.items()
    if way == "file":
        name = entry.text()
        return None if name is None else entry.attempt(lambda: Keys(read_table(folder / name)))
    lists = entry.table()
    if not lists or any(not isinstance(each.value, list) for each in lists.values()):
        entry.problem("must be a table of lists, one for each column")
        return None
    values = {name: each.value for name, each in lists.items()}
    if way == "rows" and len({len(each) for each in values.values()}) > 1:
        entry.problem("lists columns of different lengths; one row is one cell")
        return None
    return entry.attempt(lambda: Keys.product(**values) if way == "product" else Keys.of(values))


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
