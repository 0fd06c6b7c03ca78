"""Queries as a plan file: TOML that reads back to the same plan, with long lists of keys in files of their own."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import tomli_w

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
"""So many cells are written into the plan itself; longer lists get a file of their own."""
REASON = '# accept_tuning = "..."'


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlanText:
    """A plan as text, and the key lists it names."""

    text: str
    key_files: dict[str, pa.Table]

    def save(self, path: str | Path) -> Path:
        """Write the plan and, beside it, its key files; nothing that exists is overwritten.

        Args:
            path: The file to write.

        Returns:
            The file.
        """
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
    """The whole file. Queries with public keys or keys selected from the data; counts and sums.

    Args:
        queries: The queries of the plan.
        schema: The schema of its table.
        dataset: The name of the dataset.
        source: The table of records, as ``Session`` takes it.
        ledger: The file of the ledger.
        tuned_on: What its parameters were chosen with.
        accept_tuning: The reason for a release, where that was the confidential table.
        comment: A comment at the top of the file.

    Returns:
        The text, and the key lists that are too long for it.
    """
    lists: list[KeyList] = []
    for query in queries:
        for keys in query.key_lists:
            if not any(keys is other or keys == other for other in lists):
                lists.append(keys)
    names = {f"keys{number}": keys for number, keys in enumerate(lists, 1)}
    document = {
        "dataset": dataset,
        **_source(source),
        "ledger": ledger,
        "tuned_on": tuned_on,
        **({} if accept_tuning is None or tuned_on != "confidential" else {"accept_tuning": accept_tuning}),
        "schema": _schema(schema),
        "keys": {name: _keys(name, keys) for name, keys in names.items()},
        "queries": [query_form(query, _used(query, names)) for query in queries],
    }
    files = {_key_file(name): keys.table for name, keys in names.items() if isinstance(keys, Keys) and _long(keys)}
    return PlanText(text=toml_text(document, comment=comment), key_files=files)


def toml_text(document: dict[str, Any], *, comment: str = "") -> str:
    """A plan as TOML, below a comment; numbers are exact."""
    lines = [f"# {line}" for line in textwrap.wrap(comment, 110)]
    if document["tuned_on"] == "confidential" and "accept_tuning" not in document:
        lines += ["# This plan is refused until it gives a reason, which is printed with the release:", REASON]
    return "\n".join([*lines, tomli_w.dumps(toml_value({name: part for name, part in document.items() if part != {}}))])


def _source(source: str | Sequence[str] | Postgres) -> dict[str, Any]:
    if isinstance(source, Postgres):
        return {"source": source.uri, "table": source.table}
    return {"source": source}


def _schema(schema: Schema) -> dict[str, Any]:
    return {
        "unit": schema.unit,
        **({"firm": schema.firm} if schema.firm else {}),
        "measures": {each.name: {"step": each.step, "bound": each.bound} for each in schema.measures},
        "columns": {each.name: {"type": each.type, "null": each.null} for each in schema.columns},
    }


def _key_file(name: str) -> str:
    return f"{name}.parquet"


def _long(keys: Keys) -> bool:
    return int(keys.table.num_rows) > MOST_LISTED


def _keys(name: str, keys: KeyList) -> dict[str, Any]:
    if isinstance(keys, Keys):
        if _long(keys):
            return {"file": _key_file(name)}
        return {"rows": {column: keys.table.column(column).to_pylist() for column in keys.table.column_names}}
    if isinstance(keys, SelectKeys):
        given: dict[str, Any] = {"rho": keys.rho, "delta": keys.delta}
        given |= {"pieces": dict(keys.splitting.thresholds)} if keys.splitting else {}
        return {"select": given}
    raise ParameterError(
        parameter="keys", problem="are selected from a public domain, which a plan cannot be written for yet"
    )


def _used(query: Query, names: dict[str, KeyList]) -> list[str]:
    return [name for name, keys in names.items() if any(keys is own or keys == own for own in query.key_lists)]


def query_form(query: Query, keys: Any) -> dict[str, Any]:
    """A query of one table, with its keys as the plan names them."""
    (level,) = query.tables()
    form: dict[str, Any] = {}
    if query.condition is not None:
        form["where"] = predicate_text(query.condition)
    if level.groups:
        form |= {"group_by": [_group(group) for group in level.groups], "keys": keys}
    for statistic in query.statistics:
        if statistic.planned_as is None:
            raise ParameterError(parameter="query", problem="has a statistic that planning does not write")
        (mechanism,) = statistic.mechanisms()
        if statistic.of is None:
            form[statistic.word] = _mechanism(mechanism)
        else:
            form.setdefault(statistic.word, {})[statistic.of] = _mechanism(mechanism)
    return form


def _group(group: Group) -> Any:
    expression = group.expression
    if isinstance(expression, Field):
        return expression.name
    if isinstance(expression, Prefix):
        return {"prefix": expression.column, "length": expression.length, "as": group.name}
    raise ParameterError(parameter="by", problem="groups by a CASE, which a plan file takes as SQL only")


def _mechanism(mechanism: Any) -> dict[str, Any]:
    return {"kind": type(mechanism).__name__, **given_parameters(mechanism)}


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
    number = exact_number(value)
    return f"{number:f}" if isinstance(number, Decimal) else str(number)


def toml_value(value: Any) -> Any:
    """A value as tomli-w takes it."""
    match value:
        case bool() | str() | Decimal():
            return value
        case int() | Fraction():
            return exact_number(Fraction(value))
        case Function():
            return function_text(value, "x")
        case By():
            groups = {_group_value(group): number for group, number in value.values}
            given: dict[str, Any] = {"by": value.column.name, "values": groups}
            given |= {"length": value.column.length} if value.column.length else {}
            return toml_value(given | ({"default": value.default} if value.default else {}))
        case dict():
            return {str(getattr(name, "name", name)): toml_value(each) for name, each in value.items()}
        case list() | tuple():
            return [toml_value(each) for each in value]
        case _:
            raise ParameterError(parameter="plan", problem=f"cannot hold a {type(value).__name__}")


def _group_value(value: Value) -> str:
    """A group's value as a key of TOML, which writes every key as text."""
    return str(value.value).lower() if isinstance(value, Truth) else str(value)


def exact_number(value: Fraction) -> int | Decimal | str:
    """The same number as TOML can hold it: whole, as a decimal of as many digits as it needs, or else a fraction in quotes."""
    if value.denominator == 1:
        return value.numerator
    powers, rest = {2: 0, 5: 0}, value.denominator
    for prime in powers:
        while rest % prime == 0:
            rest, powers[prime] = rest // prime, powers[prime] + 1
    if rest != 1:
        return str(value)
    places = max(powers.values())
    digits = str(abs(value.numerator) * 10**places // value.denominator)
    # Built from its digits: arithmetic on decimals would round to the precision of the context.
    return Decimal((int(value < 0), tuple(map(int, digits)), -places))
