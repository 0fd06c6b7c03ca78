"""The engine of a plan file: DuckDB unless it says Spark, and then where Spark runs."""

from typing import Any

from recordwise.engines.spark import SparkMaster
from recordwise.planfile.node import Node


def read_engine(entries: dict[str, Node]) -> dict[str, Any]:
    """``engine = "spark"`` with ``[spark]``: its master, and options of Spark's own."""
    if "engine" not in entries and "spark" not in entries:
        return {}
    engine = entries["engine"].word("duckdb", "spark") if "engine" in entries else "duckdb"
    if engine == "spark" and "spark" not in entries:
        entries["engine"].problem('needs a table [spark] with its master, "local[2]" or "spark://host:7077", say')
    if engine == "duckdb" and "spark" in entries:
        entries["spark"].problem('needs engine = "spark"')
    master = read_master(entries["spark"]) if "spark" in entries else None
    return {"engine": engine} | ({"spark": master} if engine == "spark" else {})


def read_master(node: Node) -> SparkMaster | None:
    """``[spark]`` with ``master`` and, where needed, ``options``."""
    entries = node.table("master", "options", needed=("master",))
    url = entries["master"].text() if "master" in entries else None
    given = entries["options"].table() if "options" in entries else {}
    options = {name: each.text() for name, each in given.items()}
    if url is None or None in options.values():
        return None
    known = {name: value for name, value in options.items() if value is not None}
    return node.attempt(lambda: SparkMaster(url=url, options=known))
