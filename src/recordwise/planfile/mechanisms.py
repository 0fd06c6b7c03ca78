"""Mechanisms of a plan file: a kind and its parameters, named as in Python."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from recordwise import mechanisms
from recordwise.exact import Number, positive
from recordwise.plan.analysis import policy_measure
from recordwise.plan.schema import Schema
from recordwise.planfile.expressions import parse_function
from recordwise.planfile.node import Node, suggestion
from recordwise.policy import By, Column, by

GAUSSIAN = ("rho", "variance", "relative_error", "at_total", "level", "step")
FAT_TAILED = ("scale", "variance", "rho", "at", "relative_error", "at_total", "level", "lattice")
TRANSFORM_GOALS = ("variance", "at_total", "rho", "at", "relative_error", "level", "noise")
TRANSFORM = ("offset", "sigma", "laplace_scale", "signed", *TRANSFORM_GOALS)
PARAMETERS: dict[str, tuple[str, ...]] = {
    "Gaussian": ("sigma", "at", *GAUSSIAN),
    "Clamped": ("to", *GAUSSIAN),
    "UnitSplit": ("at", *GAUSSIAN),
    "GeneralizedGaussian": ("shape", *FAT_TAILED),
    "Polylog": ("power", "rate", "offset", *FAT_TAILED),
    "RootTransform": ("degree", *TRANSFORM),
    "LogTransform": TRANSFORM,
    "Additive": ("f", *FAT_TAILED),
    "Transform": ("f", "inverse", *TRANSFORM),
}
NEEDED: dict[str, tuple[str, ...]] = {
    "Clamped": ("to",),
    "UnitSplit": ("at",),
    "GeneralizedGaussian": ("shape",),
    "Polylog": ("power", "rate", "offset"),
    "RootTransform": ("degree",),
    "LogTransform": ("offset",),
    "Additive": ("f",),
    "Transform": ("f", "inverse"),
}


def named_mechanisms(node: Node | None, schema: Schema) -> dict[str, Any]:
    """The mechanisms that have a name of their own; None stands for one with a problem."""
    if node is None:
        return {}
    return {name: read_mechanism(each, schema, {}) for name, each in node.table().items()}


def read_mechanism(node: Node, schema: Schema, named: Mapping[str, Any]) -> Any | None:
    """A mechanism by name, or by kind and parameters."""
    if isinstance(node.value, str):
        if node.value not in named:
            node.problem(f"there is no mechanism '{node.value}'{suggestion(node.value, named) if named else ''}")
        return named.get(node.value)
    if not isinstance(node.value, dict):
        node.problem("must be a mechanism: a table with a kind, or the name of one under [mechanisms]")
        return None
    chosen = node.value.get("kind")
    if chosen not in PARAMETERS:
        found = f"'{chosen}' is no kind of mechanism" if isinstance(chosen, str) else "'kind' is missing"
        node.problem(found + suggestion(str(chosen), PARAMETERS))
        return None
    entries = node.table("kind", *PARAMETERS[chosen], needed=NEEDED.get(chosen, ()))
    entries.pop("kind")
    read = {name: _parameter(chosen, name, entry, schema) for name, entry in entries.items()}
    complete = all(name in read for name in NEEDED.get(chosen, ())) and all(v is not None for v in read.values())
    # An unknown parameter was noted already; building without it would only add a second, misleading complaint.
    if not complete or len(entries) < len(node.value) - 1:
        return None
    return node.attempt(lambda: getattr(mechanisms, chosen)(**read))


def _parameter(kind: str, name: str, node: Node, schema: Schema) -> Any | None:
    if name == "at" and kind == "UnitSplit":
        return read_thresholds(node, schema)
    readers: dict[str, Callable[[], Any]] = {
        "f": lambda: read_function(node),
        "inverse": lambda: read_function(node),
        "signed": node.flag,
        "level": node.share,
        "noise": lambda: node.word("gaussian", "laplace"),
    }
    return readers.get(name, node.number)()


def read_function(node: Node) -> Any | None:
    """A function of x as text."""
    text = node.text()
    return None if text is None else node.attempt(lambda: parse_function(text))


def read_thresholds(node: Node, schema: Schema) -> Any | None:
    """One threshold; one for each group (``by``); or a table of them, one for each measure split jointly."""
    if not isinstance(node.value, dict):
        return node.number()
    if "by" in node.value or "values" in node.value:
        return read_by(node, schema)
    return read_joint(node, schema)


def read_joint(node: Node, schema: Schema) -> dict[Any, Number | By] | None:
    """Thresholds by measure."""
    found: dict[Any, Number | By] = {}
    for name, entry in node.table().items():
        if schema.measure(name) is None:
            entry.problem(f"is not a measure{suggestion(name, schema.measure_names())}")
        value = read_by(entry, schema) if isinstance(entry.value, dict) else entry.number()
        if value is not None:
            found[policy_measure(name, schema)] = value
    complete = isinstance(node.value, dict) and len(found) == len(node.value) and found
    if not found and isinstance(node.value, dict) and not node.value:
        node.problem("must name at least one measure")
    return found if complete else None


def read_by(node: Node, schema: Schema) -> By | None:
    """``{ by = "naics", length = 2, values = { "21" = 500 }, default = 100 }``."""
    entries = node.table("by", "length", "values", "default", needed=("by", "values"))
    if "by" not in entries or "values" not in entries:
        return None
    name = entries["by"].text()
    length = entries["length"].whole() if "length" in entries else None
    column = None if name is None else schema.column(name)
    if column is None:
        if name is not None:
            entries["by"].problem(f"'{name}' is not a column{suggestion(name, schema.column_names())}")
        return None
    values = {_group(each, group, column.type): each.number() for group, each in entries["values"].table().items()}
    default = entries["default"].number() if "default" in entries else None
    if None in values or any(value is None for value in values.values()):
        return None
    return node.attempt(lambda: by(Column(str(name), length), values, default))  # type: ignore[arg-type]


def _group(node: Node, text: str, kind: str) -> str | int | bool | None:
    """A group's value in the type of its column; TOML writes every key as text."""
    if kind == "boolean" and text in ("true", "false"):
        return text == "true"
    if kind == "integer" and re.fullmatch("-?[1-9][0-9]*|0", text):
        return int(text)
    if kind == "text":
        return text
    node.problem(f"'{text}' is not a value of a column of type {kind}")
    return None


def checked_positive(node: Node) -> Number | None:
    """A number above zero."""
    number = node.number()
    return None if number is None else node.attempt(lambda: positive(number, parameter="it"))
