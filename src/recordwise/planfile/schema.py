"""The roles of the columns, as the plan file declares them."""

from fractions import Fraction
from functools import partial

from recordwise.plan.schema import Column, Measure, Schema
from recordwise.planfile.node import Node

NO_UNIT = "(no unit)"


def read_schema(node: Node) -> Schema | None:
    """Unit, firm, measures and columns. What has a problem, noted, keeps its place by name, so that the rest can be checked."""
    entries = node.table("unit", "firm", "measures", "columns", needed=("unit",))
    unit = entries["unit"].text() if "unit" in entries else None
    firm = entries["firm"].text() if "firm" in entries else None
    measures = tuple(
        read_measure(name, each) or Measure(name=name) for name, each in _table(entries.get("measures")).items()
    )
    columns = tuple(
        read_column(name, each) or Column(name=name) for name, each in _table(entries.get("columns")).items()
    )
    return node.attempt(lambda: Schema(unit=unit or NO_UNIT, measures=measures, columns=columns, firm=firm))


def _table(node: Node | None) -> dict[str, Node]:
    return {} if node is None else node.table()


def read_measure(name: str, node: Node) -> Measure | None:
    """A measure by its step, or by a table of step and bound."""
    if not isinstance(node.value, dict):
        step = node.number()
        return None if step is None else node.attempt(partial(Measure.of, name, step=step))
    entries = node.table("step", "bound")
    step = entries["step"].number() if "step" in entries else Fraction(1)
    bound = entries["bound"].number() if "bound" in entries else None
    if step is None or (bound is None and "bound" in entries):
        return None
    return node.attempt(partial(Measure.of, name, step=step, bound=bound))


def read_column(name: str, node: Node) -> Column | None:
    """A column by its type, or by a table of type and what NULL means."""
    types, rules = ("text", "integer", "boolean"), ("refuse", "category")
    if not isinstance(node.value, dict):
        kind = node.word(*types)
        return None if kind is None else Column(name=name, type=kind)  # type: ignore[arg-type]
    entries = node.table("type", "null")
    kind = entries["type"].word(*types) if "type" in entries else "text"
    null = entries["null"].word(*rules) if "null" in entries else "refuse"
    if kind is None or null is None or len(entries) < len(node.value):
        return None
    return Column(name=name, type=kind, null=null)  # type: ignore[arg-type]
