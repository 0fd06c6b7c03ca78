"""Reader of a plan file's mechanisms: kind and parameters.

Parameters are named as in Python. Functions are written as text, such as "(x / 50) ** 0.5 + log(x / 10 + 1)",
and parsed by a small grammar; no code is evaluated.
"""

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

from recordwise.errors import ParameterError
from recordwise.exact.functions import Function, log, x
from recordwise.exact.numbers import Number, positive, read_fraction
from recordwise.mechanisms.base import Parameter
from recordwise.mechanisms.quantile import Grid
from recordwise.mechanisms.registry import mechanism_kind, mechanism_kinds
from recordwise.plan.file.node import Node, suggestion
from recordwise.plan.schema import Schema, policy_measure
from recordwise.policy.columns import ConditionColumn
from recordwise.policy.constructors import By, by

# Functions written as text, "(x / 50) ** 0.5 + log(x / 10 + 1)": a grammar of seven rules and no evaluation of code.


LONGEST = 500
DEEPEST = 40
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)|(?P<name>[A-Za-z_]+)|(?P<sign>\*\*|[-+*/^()]))"
)
ADVICE = "Use x, numbers, + * / **, log(...), sqrt(...) and parentheses."
Value: TypeAlias = Function | Fraction


def parse_function(text: str) -> Function:
    """Parse an increasing function of x; anything outside the grammar is refused."""
    if len(text) > LONGEST:
        raise _function_error(f"has more than {LONGEST} characters")
    reader = _Reader(_tokens(text))
    found = reader.sum(0)
    if reader.here:
        raise _function_error(f"has an unexpected '{reader.here}'")
    if not isinstance(found, Function):
        raise _function_error("does not depend on x")
    return found


def _function_error(problem: str) -> ParameterError:
    return ParameterError(parameter="function", problem=problem, advice=ADVICE)


def _tokens(text: str) -> list[str]:
    found, at = [], 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise _function_error(f"contains '{text[at:].strip()[0]}', which is not allowed in a function")
        found.append(match[match.lastgroup or 0])
        at = match.end()
    return found


class _Reader:
    """Recursive descent: sum, product, power, atom."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def here(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        token = self.here
        self._at += 1
        return token

    def sum(self, depth: int) -> Value:
        total = self._product(depth)
        while self.here in ("+", "-"):
            if self._take() == "-":
                raise _function_error("contains a difference, which may not be increasing")
            total = _add(total, self._product(depth))
        return total

    def _product(self, depth: int) -> Value:
        total = self._power(depth)
        while self.here in ("*", "/"):
            total = _times(total, self._power(depth)) if self._take() == "*" else _over(total, self._power(depth))
        return total

    def _power(self, depth: int) -> Value:
        base = self._atom(depth)
        if self.here not in ("**", "^"):
            return base
        self._take()
        exponent = self._atom(depth)
        if isinstance(exponent, Function):
            raise _function_error("has x in an exponent")
        if isinstance(base, Function):
            return base**exponent
        if exponent.denominator != 1 or abs(exponent) > 100 or (base == 0 and exponent < 0):
            raise _function_error("raises a number to a power that cannot be computed exactly")
        return base**exponent.numerator

    def _atom(self, depth: int) -> Value:
        token = self._take()
        if depth > DEEPEST:
            raise _function_error(f"is nested more than {DEEPEST} levels deep")
        if token == "(":
            return self._closed(depth)
        if token == "x":
            return x
        if token in ("log", "ln", "sqrt") and self._take() == "(":
            inner = self._closed(depth)
            if not isinstance(inner, Function):
                raise _function_error(f"takes the {token} of a number; write the number itself")
            return inner ** Fraction(1, 2) if token == "sqrt" else log(inner)
        if token[:1].isdigit() or token[:1] == ".":
            return _number(token)
        raise _function_error(f"has an unexpected '{token}'" if token else "ends too early")

    def _closed(self, depth: int) -> Value:
        inner = self.sum(depth + 1)
        if self._take() != ")":
            raise _function_error("has an unclosed parenthesis")
        return inner


def _number(token: str) -> Fraction:
    try:
        return read_fraction(token)
    except ValueError:
        raise _function_error("contains a number that is too long") from None


def _add(left: Value, right: Value) -> Value:
    if isinstance(left, Fraction) and isinstance(right, Function):
        return right + left
    return left + right


def _times(left: Value, right: Value) -> Value:
    if isinstance(left, Function) and isinstance(right, Function):
        raise _function_error("multiplies x by x; write a power")
    return left * right  # type: ignore[operator]


def _over(left: Value, right: Value) -> Value:
    if isinstance(right, Function):
        raise _function_error("divides by x, which is not increasing")
    if right == 0:
        raise _function_error("divides by 0")
    return left / right


def named_mechanisms(node: Node, schema: Schema) -> dict[str, Any]:
    """The named mechanisms; None stands for one with a problem."""
    return {name: read_mechanism(each, schema, {}) for name, each in node.table().items()}


def read_mechanism(node: Node, schema: Schema, named: Mapping[str, Any]) -> Any | None:
    """A mechanism by name, or by kind and parameters."""
    if isinstance(node.value, str):
        if node.value not in named:
            node.problem(f"there is no mechanism named '{node.value}'{suggestion(node.value, named) if named else ''}")
        return named.get(node.value)
    if not isinstance(node.value, dict):
        node.problem("must be a mechanism: a table with a kind, or the name of one under [mechanisms]")
        return None
    chosen = node.value.get("kind")
    kind = mechanism_kind(chosen) if isinstance(chosen, str) else None
    if kind is None:
        found = f"'{chosen}' is not a kind of mechanism" if isinstance(chosen, str) else "'kind' is missing"
        node.problem(found + suggestion(str(chosen), mechanism_kinds()))
        return None
    if kind.answers != "totals":
        node.problem(f"'{chosen}' is for {kind.answers}, whose entries name its parameters without a kind")
        return None
    entries = _entries(node, kind)
    # An unknown parameter was already reported; building without it would only add a second, misleading problem.
    return None if len(entries) < len(node.value) - 1 else build_mechanism(kind, node, entries, schema)


def build_mechanism(kind: Any, node: Node, entries: Mapping[str, Node], schema: Schema) -> Any | None:
    """Return a mechanism from a node's entries; None with a problem."""
    read = {
        each.name: _parameter(each, entries[each.name], schema, entries)
        for each in kind.parameters
        if each.name in entries
    }
    if any(name not in read for name in required_parameters(kind)) or any(value is None for value in read.values()):
        return None
    return node.attempt(lambda: kind(**read))


def required_parameters(kind: Any) -> tuple[str, ...]:
    """The parameters a kind cannot do without."""
    return tuple(each.name for each in kind.parameters if each.needed)


def _entries(node: Node, kind: Any) -> dict[str, Node]:
    """Return the parameters present, with ``level`` read as ``confidence``."""
    known = [each.name for each in kind.parameters]
    old = ["level"] if "confidence" in known and "confidence" not in node.value else []
    entries = node.table("kind", *known, *old, needed=required_parameters(kind))
    entries.pop("kind")
    if "level" in entries:
        entries["confidence"] = entries.pop("level")
    return entries


def _parameter(parameter: Parameter, node: Node, schema: Schema, entries: Mapping[str, Node]) -> Any | None:
    readers: dict[str, Callable[[], Any]] = {
        "number": node.number,
        "probability": node.share,
        "flag": node.flag,
        "function": lambda: read_function(node),
        "thresholds": lambda: read_thresholds(node, schema),
        "word": lambda: node.word(*parameter.choices),
        "grid": lambda: read_grid(node),
        "mechanism": lambda: read_mechanism(node, schema, {}),
        "column": node.text,
        "groups": lambda: read_groups(node, entries.get("by"), schema),
        "length": node.integer,
    }
    return readers[parameter.read]()


def read_groups(node: Node, by: Node | None, schema: Schema) -> Any | None:
    """Read a mechanism for each group, ``{ "21" = { kind = ... } }``, by the type of the column."""
    name = None if by is None or not isinstance(by.value, str) else by.value
    column = None if name is None else schema.column(name)
    if column is None:
        if by is not None and name is not None:
            by.problem(f"'{name}' is not a column{suggestion(name, schema.column_names())}")
        return None
    found = {_group(each, group, column.type): read_mechanism(each, schema, {}) for group, each in node.table().items()}
    return None if None in found or None in found.values() else found


def read_function(node: Node) -> Any | None:
    """A function of x given as text."""
    text = node.text()
    return None if text is None else node.attempt(lambda: parse_function(text))


def read_grid(node: Node) -> Grid | None:
    """Read a grid.

    ``{ log = [1, 1e9], bits = 10 }`` or ``{ linear = [0, 100] }``.
    """
    entries = node.table("log", "linear", "bits")
    ways = [name for name in ("log", "linear") if name in entries]
    if len(ways) != 1:
        if isinstance(node.value, dict):
            node.problem("must contain either log or linear, with the two ends of the grid")
        return None
    ends = [each.number() for each in entries[ways[0]].items()]
    bits = entries["bits"].integer() if "bits" in entries else 10
    if len(ends) != 2:
        entries[ways[0]].problem("must be the two ends of the grid")
    if len(ends) != 2 or None in ends or bits is None:
        return None
    make = Grid.log if ways[0] == "log" else Grid.linear
    return node.attempt(lambda: make(*ends, bits=bits))  # type: ignore[arg-type]


def read_thresholds(node: Node, schema: Schema) -> Any | None:
    """Read one threshold, or several by group or measure."""
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
    """Read thresholds by group.

    ``{ by = "naics", length = 2, values = { "21" = 500 }, default = 100 }``.
    """
    entries = node.table("by", "length", "values", "default", needed=("by", "values"))
    if "by" not in entries or "values" not in entries:
        return None
    name = entries["by"].text()
    length = entries["length"].integer() if "length" in entries else None
    column = None if name is None else schema.column(name)
    if column is None:
        if name is not None:
            entries["by"].problem(f"'{name}' is not a column{suggestion(name, schema.column_names())}")
        return None
    values = {_group(each, group, column.type): each.number() for group, each in entries["values"].table().items()}
    default = entries["default"].number() if "default" in entries else None
    if None in values or any(value is None for value in values.values()):
        return None
    return node.attempt(lambda: by(ConditionColumn(str(name), length), values, default))  # type: ignore[arg-type]


def _group(node: Node, text: str, kind: str) -> str | int | bool | None:
    """Return a group's TOML key in its column's type."""
    if kind == "boolean" and text in ("true", "false"):
        return text == "true"
    if kind == "integer" and re.fullmatch("-?[1-9][0-9]*|0", text):
        return int(text)
    if kind == "text":
        return text
    node.problem(f"'{text}' is not a value of a column of type {kind}")
    return None


def read_positive(node: Node) -> Number | None:
    """A number above zero."""
    number = node.number()
    return None if number is None else node.attempt(lambda: positive(number, parameter="it"))
