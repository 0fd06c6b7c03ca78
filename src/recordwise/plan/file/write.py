"""Queries as a plan file: TOML that reads back to the same plan, with long lists of keys in files of their own."""

import json
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa

from recordwise.errors import ParameterError
from recordwise.exact.functions import Function
from recordwise.mechanisms.described import given_parameters
from recordwise.plan.fields import Field, Group, Prefix
from recordwise.plan.given_keys import KeyList
from recordwise.plan.key_selection import SelectKeys
from recordwise.plan.keys import Keys
from recordwise.plan.predicates import And, Compare, In, IsNull, Not, Operand, Or, Predicate
from recordwise.plan.query import Query
from recordwise.plan.schema import Schema
from recordwise.plan.sources import Postgres
from recordwise.policy.constructors import By
from recordwise.policy.literals import Truth, Value
from recordwise.policy.render.text import function_text

MOST_LISTED = 40
"""So many cells are written into the plan itself."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlanText:
    """A plan as text, and the key lists it names."""

    text: str
    key_files: dict[str, pa.Table]

    def save(self, path: str | Path) -> Path:
        """Write the plan and, beside it, its key files; nothing that exists is overwritten."""
        import pyarrow.parquet as pq

        plan = Path(path)
        for each in (plan, *(plan.parent / name for name in self.key_files)):
            if each.exists():
                raise ParameterError(parameter=str(each), problem="exists already", advice="Name a new file.")
        plan.parent.mkdir(parents=True, exist_ok=True)
        for name, table in self.key_files.items():
            pq.write_table(table, plan.parent / name)
        plan.write_text(self.text, encoding="utf-8")
        return plan


def plan_text(
    queries: Sequence[Query],
    schema: Schema,
    *,
    dataset: str,
    source: str | Sequence[str] | Postgres,
    ledger: str,
    tuned_on: str,
    accept_tuning: str | None = None,
    comment: str = "",
) -> PlanText:
    """The whole file. Queries with public keys or keys selected from the data; counts and sums."""
    lists: list[KeyList] = []
    for query in queries:
        for keys in query.key_lists:
            if not any(keys is other or keys == other for other in lists):
                lists.append(keys)
    names = {f"keys{number}": keys for number, keys in enumerate(lists, 1)}
    parts = [
        *(f"# {line}" for line in wrapped(comment)),
        f"dataset = {_value(dataset)}",
        *_source(source),
        f"ledger = {_value(ledger)}",
        f"tuned_on = {_value(tuned_on)}",
        *acceptance(tuned_on, accept_tuning),
        "",
        *_schema(schema),
        *(line for name, keys in names.items() for line in _keys(name, keys)),
        *(line for query in queries for line in query_lines(query, _used(query, names))),
    ]
    files = {_key_file(name): keys.table for name, keys in names.items() if isinstance(keys, Keys) and _long(keys)}
    return PlanText(text="\n".join(parts) + "\n", key_files=files)


def _source(source: str | Sequence[str] | Postgres) -> list[str]:
    if isinstance(source, Postgres):
        return [f"source = {_value(source.uri)}", f"table = {_value(source.table)}"]
    return [f"source = {_value(source)}"]


def wrapped(comment: str) -> list[str]:
    return textwrap.wrap(comment, 110)


def acceptance(tuned_on: str, reason: str | None) -> list[str]:
    if tuned_on != "confidential":
        return []
    if reason is None:
        return ['# accept_tuning = "..."   # without a reason, which is printed with the release, this plan is refused']
    return [f"accept_tuning = {_value(reason)}"]


def _schema(schema: Schema) -> list[str]:
    lines = ["[schema]", f"unit = {_value(schema.unit)}"]
    lines += [f"firm = {_value(schema.firm)}"] if schema.firm else []
    for measure in schema.measures:
        lines.append(
            f"measures.{_key(measure.name)} = {{ step = {_value(measure.step)}, bound = {_value(measure.bound)} }}"
        )
    for column in schema.columns:
        lines.append(f"columns.{_key(column.name)} = {{ type = {_value(column.type)}, null = {_value(column.null)} }}")
    return [*lines, ""]


def _key_file(name: str) -> str:
    return f"{name}.parquet"


def _long(keys: Keys) -> bool:
    return int(keys.table.num_rows) > MOST_LISTED


def _keys(name: str, keys: KeyList) -> list[str]:
    if isinstance(keys, Keys):
        if _long(keys):
            return [f"[keys.{name}]", f"file = {_value(_key_file(name))}", ""]
        rows = {column: keys.table.column(column).to_pylist() for column in keys.table.column_names}
        return [f"[keys.{name}]", f"rows = {_value(rows)}", ""]
    if isinstance(keys, SelectKeys):
        given: dict[str, Any] = {"rho": keys.rho, "delta": keys.delta}
        given |= {"pieces": dict(keys.splitting.thresholds)} if keys.splitting else {}
        return [f"[keys.{name}]", f"select = {_value(given)}", ""]
    raise ParameterError(
        parameter="keys", problem="are selected from a public domain, which a plan cannot be written for yet"
    )


def _used(query: Query, names: dict[str, KeyList]) -> list[str]:
    return [name for name, keys in names.items() if any(keys is own or keys == own for own in query.key_lists)]


def query_lines(query: Query, keys: Any) -> list[str]:
    """A query of one table, with its keys as the plan names them."""
    (level,) = query.tables()
    lines = ["[[queries]]"]
    if query.condition is not None:
        lines.append(f"where = {_value(predicate_text(query.condition))}")
    if level.groups:
        lines.append(f"group_by = [{', '.join(_group(group) for group in level.groups)}]")
        lines.append(entry("keys", keys))
    for statistic in query.statistics:
        if statistic.planned_as is None:
            raise ParameterError(parameter="query", problem="has a statistic that planning does not write")
        name = statistic.word if statistic.of is None else f"{statistic.word}.{_key(statistic.of)}"
        (mechanism,) = statistic.mechanisms()
        lines.append(f"{name} = {_mechanism(mechanism)}")
    return [*lines, ""]


def _group(group: Group) -> str:
    expression = group.expression
    if isinstance(expression, Field):
        return _value(expression.name)
    if isinstance(expression, Prefix):
        return _value({"prefix": expression.column, "length": expression.length, "as": group.name})
    raise ParameterError(parameter="by", problem="groups by a CASE, which a plan file takes as SQL only")


def _mechanism(mechanism: Any) -> str:
    return _value({"kind": type(mechanism).__name__, **given_parameters(mechanism)})


def predicate_text(predicate: Predicate) -> str:
    """A condition as the SQL it was written in."""
    match predicate:
        case And(parts) | Or(parts):
            joined = f" {type(predicate).__name__.upper()} ".join(predicate_text(part) for part in parts)
            return f"({joined})"
        case Not(part):
            return f"NOT ({predicate_text(part)})"
        case IsNull(operand):
            return f"{_operand(operand)} IS NULL"
        case In(operand, literals):
            return f"{_operand(operand)} IN ({', '.join(_literal(each) for each in literals)})"
        case Compare(operand, operator, literal):
            return f"{_operand(operand)} {operator} {_literal(literal)}"


def _operand(operand: Operand) -> str:
    if isinstance(operand, Prefix):
        return f"left({_identifier(operand.column)}, {operand.length})"
    return _identifier(operand.name)


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(value: Any) -> str:
    if isinstance(value, Truth):
        return "TRUE" if value.value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return _number(value).strip('"')


def entry(name: str, value: Any) -> str:
    """One line of a table."""
    return f"{_key(name)} = {_value(value)}"


def _key(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() and name.isascii() else json.dumps(name)


def _value(value: Any) -> str:
    """A value in TOML; numbers exactly, as a fraction in quotes where no decimal is exact."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Decimal):
        text = f"{value:f}"
        return text if "." in text else f"{text}.0"
    if isinstance(value, int | Fraction):
        return _number(Fraction(value))
    if isinstance(value, Function):
        return _value(function_text(value, "x"))
    if isinstance(value, By):
        groups = {_group_value(group): number for group, number in value.values}
        given: dict[str, Any] = {"by": value.column.name, "values": groups}
        given |= {"length": value.column.length} if value.column.length else {}
        return _value(given | ({"default": value.default} if value.default else {}))
    if isinstance(value, dict):
        entries = (f"{_key(str(getattr(name, 'name', name)))} = {_value(each)}" for name, each in value.items())
        return "{ " + ", ".join(entries) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(each) for each in value) + "]"
    raise ParameterError(parameter="plan", problem=f"cannot hold a {type(value).__name__}")


def _group_value(value: Value) -> str:
    """A group's value as a key of TOML, which writes every key as text."""
    return str(value.value).lower() if isinstance(value, Truth) else str(value)


def _number(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest != 1:
        return f'"{value}"'
    digits = max(value.denominator.bit_length(), 1)
    scaled = value * 10**digits
    text = f"{abs(scaled.numerator // scaled.denominator):0{digits + 1}d}"
    return f"{'-' if value < 0 else ''}{text[:-digits]}.{text[-digits:]}".rstrip("0")
