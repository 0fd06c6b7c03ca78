"""The statistics of a query in a plan file, each with the mechanisms that protect it."""

from typing import Any

from recordwise.plan import Query
from recordwise.plan.average import SumAndCount
from recordwise.planfile.mechanisms import read_mechanism
from recordwise.planfile.node import Node
from recordwise.planfile.shelf import Shelf
from recordwise.quantiles import Grid, TreeQuantile

STATISTICS = ("count", "sum", "count_distinct", "avg", "quantile")


def wanted(name: str, node: Node | None) -> list[tuple[str, Node]]:
    """The statistics of one kind: of which column, and the entry that says how."""
    if node is None:
        return []
    if name == "count":
        return [("", each) for each in node.items()]
    return [(column, each) for column, listed in node.table().items() for each in listed.items()]


def add_statistic(read: Query, name: str, column: str, node: Node, shelf: Shelf) -> Query | None:
    """The query with one statistic more, or None where it has a problem."""
    if name == "avg":
        return _average(read, column, node, shelf)
    if name == "quantile":
        return _quantile(read, column, node)
    alias, mechanism = _named(node, shelf)
    if mechanism is None:
        if name == "sum" and shelf.schema.measure(column) is None:
            node.problem(f"'{column}' is summed but is not a measure")
        return None
    if name == "count":
        return node.attempt(lambda: read.count(mechanism, alias=alias or "count"))
    add = read.sum if name == "sum" else read.count_distinct
    return node.attempt(lambda: add(column, mechanism, alias=alias))


def _named(node: Node, shelf: Shelf) -> tuple[str | None, Any | None]:
    """The name a statistic is published under, and its mechanism."""
    if not isinstance(node.value, dict):
        return None, read_mechanism(node, shelf.schema, shelf.mechanisms)
    rest = {name: value for name, value in node.value.items() if name != "as"}
    alias = _alias(node)
    if set(rest) == {"mechanism"}:
        inner = Node(rest["mechanism"], (*node.path, "mechanism"), node.problems)
    else:
        inner = Node(rest, node.path, node.problems)
    found = read_mechanism(inner, shelf.schema, shelf.mechanisms)
    return alias, None if "as" in node.value and alias is None else found


def _alias(node: Node) -> str | None:
    return Node(node.value["as"], (*node.path, "as"), node.problems).text() if "as" in node.value else None


def _average(read: Query, column: str, node: Node, shelf: Shelf) -> Query | None:
    """``{ sum = ..., count = ... }``; without a count, one of the query is used."""
    parts = _sum_and_count(node, shelf, "as")
    if parts is None:
        return None
    alias = _alias(node)
    return node.attempt(lambda: read.avg(column, sum=parts.sum, count=parts.count, alias=alias))


def _sum_and_count(node: Node, shelf: Shelf, *more: str) -> SumAndCount | None:
    entries = node.table("sum", "count", *more, needed=("sum",))
    total, count = (
        read_mechanism(entries[name], shelf.schema, shelf.mechanisms) if name in entries else None
        for name in ("sum", "count")
    )
    if total is None or (count is None and "count" in entries) or len(entries) < len(node.value):
        return None
    return SumAndCount(sum=total, count=count)


def _quantile(read: Query, column: str, node: Node) -> Query | None:
    """``{ p = 0.5, grid = { ... }, rho = 0.1 }``."""
    entries = node.table("p", "grid", "rho", "as", needed=("p", "grid", "rho"))
    tree = _tree(node, entries)
    share = entries["p"].number() if "p" in entries else None
    if tree is None or share is None:
        return None
    alias = _alias(node)
    return node.attempt(lambda: read.quantile(column, p=share, grid=tree.grid, rho=tree.rho, alias=alias))


def _tree(node: Node, entries: dict[str, Node]) -> TreeQuantile | None:
    grid = _grid(entries["grid"]) if "grid" in entries else None
    rho = entries["rho"].number() if "rho" in entries else None
    if grid is None or rho is None or len(entries) < len(node.value):
        return None
    return node.attempt(lambda: TreeQuantile(grid=grid, rho=rho))


def _grid(node: Node) -> Grid | None:
    """``{ spacing = "log", low = 1, high = 1e6, bits = 10 }``."""
    entries = node.table("spacing", "low", "high", "bits", needed=("spacing", "low", "high"))
    spacing = entries["spacing"].word("log", "linear") if "spacing" in entries else None
    low, high = (entries[name].number() if name in entries else None for name in ("low", "high"))
    bits = entries["bits"].whole() if "bits" in entries else 10
    if spacing is None or low is None or high is None or bits is None:
        return None
    make = Grid.log if spacing == "log" else Grid.linear
    return node.attempt(lambda: make(low, high, bits=bits))


def sql_mechanism(node: Node, shelf: Shelf) -> Any | None:
    """What stands beside a statistic of SQL text: a mechanism, the two parts of an average, or the grid of a quantile."""
    if isinstance(node.value, dict) and "sum" in node.value:
        return _sum_and_count(node, shelf)
    if isinstance(node.value, dict) and "grid" in node.value:
        return _tree(node, node.table("grid", "rho", needed=("grid", "rho")))
    return read_mechanism(node, shelf.schema, shelf.mechanisms)
