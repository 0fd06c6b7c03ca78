"""What a plan file says about selected keys, averages and quantiles, named as in Python."""

from collections.abc import Mapping
from typing import Any

from recordwise.plan import Keys, Query, Schema, SumAndCount
from recordwise.plan.selection import SelectFrom, SelectKeys
from recordwise.planfile.mechanisms import read_joint, read_mechanism
from recordwise.planfile.node import Node
from recordwise.quantiles import Grid, TreeQuantile


def read_select(node: Node, schema: Schema) -> SelectKeys | None:
    """``select = { rho = 0.1, delta = 1e-6, pieces = { emp = 50 } }``."""
    entries = node.table("rho", "delta", "pieces", needed=("rho", "delta"))
    rho, delta = (entries[name].number() if name in entries else None for name in ("rho", "delta"))
    pieces = _pieces(entries.get("pieces"), schema)
    if rho is None or delta is None or pieces is None:
        return None
    return node.attempt(lambda: Keys.select(rho=rho, delta=delta, pieces=pieces or None))


def read_select_from(node: Node, schema: Schema, domain: Any | None) -> SelectFrom | None:
    """``select_from = { product = { county = [...] }, rho = 0.1, threshold = 12 }``; the domain has been read already."""
    entries = {name: Node(value, (*node.path, name), node.problems) for name, value in node.value.items()}
    for name in ("rho", "threshold"):
        if name not in entries:
            node.problem(f"'{name}' is missing")
    rho = entries["rho"].number() if "rho" in entries else None
    threshold = entries["threshold"].whole() if "threshold" in entries else None
    pieces = _pieces(entries.get("pieces"), schema)
    if domain is None or rho is None or threshold is None or pieces is None:
        return None
    return node.attempt(lambda: Keys.select_from(domain, rho=rho, threshold=threshold, pieces=pieces or None))


def _pieces(node: Node | None, schema: Schema) -> dict[str, Any] | None:
    """Thresholds by the names of measures; empty where none are given, None where they have a problem."""
    if node is None:
        return {}
    joint = read_joint(node, schema)
    return None if joint is None else {measure.name: at for measure, at in joint.items()}


def read_average(read: Query, measure: str, node: Node, schema: Schema, named: Mapping[str, Any]) -> Query | None:
    """``avg.emp = { sum = "split", count = "counts", as = "mean" }``."""
    entries = node.table("sum", "count", "as", needed=("sum",))
    alias = entries["as"].text() if "as" in entries else None
    parts = sum_and_count(entries, schema, named)
    if parts is None or ("as" in entries and alias is None):
        return None
    return node.attempt(lambda: read.avg(measure, sum=parts.sum, count=parts.count, alias=alias))


def sum_and_count(entries: Mapping[str, Node], schema: Schema, named: Mapping[str, Any]) -> SumAndCount | None:
    """The two mechanisms of an average; the count may be left to the query."""
    found: dict[str, Any] = {
        name: read_mechanism(entries[name], schema, named) for name in ("sum", "count") if name in entries
    }
    return None if "sum" not in found or None in found.values() else SumAndCount(**found)


def read_quantile(read: Query, measure: str, node: Node) -> Query | None:
    """``quantile.payann = { p = 0.5, grid = { log = [1, 1e9], bits = 10 }, rho = 0.1 }``."""
    entries = node.table("p", "grid", "rho", "as", needed=("p", "grid", "rho"))
    p = entries["p"].number() if "p" in entries else None
    alias = entries["as"].text() if "as" in entries else None
    tree = read_tree(node, entries)
    if p is None or tree is None or ("as" in entries and alias is None):
        return None
    return node.attempt(lambda: read.quantile(measure, p=p, grid=tree.grid, rho=tree.rho, alias=alias))


def read_tree(node: Node, entries: Mapping[str, Node]) -> TreeQuantile | None:
    """The grid and rho of a quantile."""
    grid = read_grid(entries["grid"]) if "grid" in entries else None
    rho = entries["rho"].number() if "rho" in entries else None
    return None if grid is None or rho is None else node.attempt(lambda: TreeQuantile(grid=grid, rho=rho))


def read_grid(node: Node) -> Grid | None:
    """``{ log = [1, 1e9], bits = 10 }`` or ``{ linear = [0, 100] }``."""
    entries = node.table("log", "linear", "bits")
    ways = [name for name in ("log", "linear") if name in entries]
    if len(ways) != 1:
        if isinstance(node.value, dict):
            node.problem("must hold one of log and linear, each the two ends of the grid")
        return None
    ends = [each.number() for each in entries[ways[0]].items()]
    bits = entries["bits"].whole() if "bits" in entries else 10
    if len(ends) != 2:
        entries[ways[0]].problem("must be the two ends of the grid")
    if len(ends) != 2 or None in ends or bits is None:
        return None
    make = Grid.log if ways[0] == "log" else Grid.linear
    return node.attempt(lambda: make(*ends, bits=bits))  # type: ignore[arg-type]
