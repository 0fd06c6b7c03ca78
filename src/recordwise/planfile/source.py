"""Where a plan file says its records are: files beside it, or a table of a PostgreSQL server."""

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from recordwise.engines.sources import POSTGRES_SCHEMES, Postgres
from recordwise.engines.spark.sources import found_by_spark
from recordwise.planfile.node import Node

NO_PASSWORD = "holds a password; take it out and use a password file, a service file or PGPASSWORD"


def read_source(entries: dict[str, Node], folder: Path, *, by_spark: bool) -> tuple[str, ...] | Postgres | None:
    """Files as paths from the plan's folder; an address of a server with the name of its table; what only Spark finds as it is."""
    if "source" not in entries:
        return None
    node, table = entries["source"], entries.get("table")
    if isinstance(node.value, str) and node.value.startswith(POSTGRES_SCHEMES):
        return _server(node, node.value, table)
    if table is not None:
        table.problem("is for a source that starts with postgresql://")
    names = [each.text() for each in node.items()]
    if not by_spark and any("://" in name for name in names if name is not None):
        # It can hold a password, so it is not taken for a path, which a message would repeat.
        node.problem("is an address of a kind that is not known, or one among several sources")
        return None
    if not names or None in names or table is not None:
        return None
    known = [name for name in names if name is not None]
    return tuple(name if by_spark and found_by_spark(name) else str(folder / name) for name in known)


def _server(node: Node, address: str, table: Node | None) -> Postgres | None:
    name = table.text() if table is not None else None
    if table is None:
        node.problem('needs the name of a table beside it: table = "schema.table"')
    if _has_password(address):
        node.problem(NO_PASSWORD)
        return None
    return None if table is None or name is None else table.attempt(lambda: Postgres(address, table=name))


def _has_password(address: str) -> bool:
    """A plan file is passed around and kept; a password must not be in it."""
    try:
        parts = urlsplit(address)
        return bool(parts.password) or any("password" in name for name in parse_qs(parts.query))
    except ValueError:
        return "@" in address
