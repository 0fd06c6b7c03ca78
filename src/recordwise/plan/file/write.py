"""Writer of queries as a plan file that reads back the same.

Long key lists go to separate files.
"""

import json
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import tomli_w

from recordwise.errors import ParameterError, own_argument_errors
from recordwise.exact.functions import Function, Log, Power, Sum, Variable
from recordwise.exact.numbers import fraction_text
from recordwise.mechanisms.quantile import Grid
from recordwise.plan.expressions import (
    BEST,
    And,
    Choice,
    Compare,
    DatePart,
    Field,
    Group,
    In,
    IsNull,
    Not,
    Operand,
    Or,
    Predicate,
    Prefix,
)
from recordwise.plan.file.node import table_values
from recordwise.plan.file.sections import CSV, SCHEMA
from recordwise.plan.keys.cells import Product, Rows
from recordwise.plan.keys.hierarchies import Hierarchy
from recordwise.plan.keys.keys import EVERY_STATISTIC, PUBLIC, Keys, Selection, Sizes
from recordwise.plan.query import Query
from recordwise.plan.schema import Schema
from recordwise.plan.sources import Csv, Database, Postgres
from recordwise.plan.statistics import KINDS, Statistic
from recordwise.policy.columns import Truth, Value
from recordwise.policy.constructors import By

# Values as text of a plan file: numbers, conditions, functions, thresholds and grids, all of them exact.


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
    if isinstance(operand, DatePart):
        return f"EXTRACT({operand.part.upper()} FROM {_identifier(operand.column)})"
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
            return exact_function(value)
        case By():
            groups = {_group_value(group): number for group, number in value.values}
            given: dict[str, Any] = {"by": value.column.name, "values": groups}
            given |= {"length": value.column.length} if value.column.length else {}
            return toml_value(given | ({"default": value.default} if value.default else {}))
        case Grid():
            return toml_value({value.spacing: [value.low, value.high], "bits": value.bits})
        case dict():
            return {str(getattr(name, "name", name)): toml_value(each) for name, each in value.items()}
        case date():
            return value
        case list() | tuple():
            return [toml_value(each) for each in value]
        case _:
            raise ParameterError(parameter="plan", problem=f"cannot hold a {type(value).__name__}")


def _group_value(value: Value) -> str:
    """Return a group's value as a TOML key, which is text."""
    return str(value.value).lower() if isinstance(value, Truth) else str(value)


def exact_number(value: Fraction) -> int | Decimal | str:
    """Return the number for TOML: integer, decimal or quoted fraction."""
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


def exact_function(function: Function) -> str:
    """A function as a plan file writes it, every number in full."""
    match function:
        case Sum(terms, shift):
            parts = [_inner(part) if weight == 1 else f"{_fraction(weight)} * {_inner(part)}" for weight, part in terms]
            return " + ".join([*parts, *([_fraction(shift)] if shift else [])])
        case Power(base, exponent):
            return f"{_inner(base)} ** {_fraction(exponent)}"
        case Log(argument):
            return f"log({exact_function(argument)})"
        case _:
            return "x"


def _inner(function: Function) -> str:
    text = exact_function(function)
    return text if isinstance(function, Log | Variable) else f"({text})"


def _fraction(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else f"({value.numerator} / {value.denominator})"


# The file.


MOST_LISTED = 40
"""Up to this many cells are listed in the plan itself; longer lists go to a separate file."""
REASON = '# tuning_reason = "..."'


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlanText:
    """The text of a plan, and the key lists it refers to."""

    text: str
    key_files: dict[str, pa.Table]

    def save(self, path: str | Path) -> Path:
        """Write the plan and, next to it, its key files.

        Nothing that exists is overwritten.

        Args:
            path: The file to write.

        Returns:
            The file.
        """
        import pyarrow.parquet as pq

        plan = Path(path)
        for each in (plan, *(plan.parent / name for name in self.key_files)):
            if each.exists():
                raise ParameterError(parameter=str(each), problem="already exists", advice="Choose a new file.")
        plan.parent.mkdir(parents=True, exist_ok=True)
        for name, table in self.key_files.items():
            pq.write_table(table, plan.parent / name)
        plan.write_text(self.text, encoding="utf-8")
        return plan


@own_argument_errors
def plan_text(
    queries: Sequence[Query],
    schema: Schema,
    *,
    dataset: str,
    source: str | Sequence[str] | Postgres | Database | Csv,
    ledger: str,
    tuned_on: str,
    tuning_reason: str | None = None,
    comment: str = "",
) -> PlanText:
    """The whole file, except the budget: every statistic, condition and level, public keys and both kinds of selected ones.

    Args:
        queries: The queries of the plan.
        schema: The schema of its table.
        dataset: The name of the dataset.
        source: The table of records, as ``Session`` takes it.
        ledger: The file of the ledger.
        tuned_on: What its parameters were chosen with.
        tuning_reason: The reason for a release, where that was the confidential table.
        comment: A comment at the top of the file.

    Returns:
        The text, and the key lists that are too long for it.
    """
    lists: list[Keys] = []
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
        "max_outside": Decimal("0.01"),
        **({} if tuning_reason is None else {"tuning_reason": tuning_reason}),
        "schema": table_values(SCHEMA, schema),
        "hierarchies": {each.name: _hierarchy(each) for each in schema.hierarchies},
        "keys": {name: _keys(name, keys) for name, keys in names.items()},
        "queries": [query_form(query, _used_key_lists(query, names)) for query in queries],
    }
    files = {
        _key_file(name): _with_sizes(_plain(kept.table), kept.sizes)
        for name, keys in names.items()
        if (kept := _in_a_file(keys)) is not None
    }
    files |= {_code_file(each): each.codes for each in schema.hierarchies}
    return PlanText(text=toml_text(document, comment=comment), key_files=files)


def _code_file(hierarchy: Hierarchy) -> str:
    return f"codes_{hierarchy.name}.parquet"


def _hierarchy(hierarchy: Hierarchy) -> dict[str, Any]:
    titles = {"titles": dict(hierarchy.titles)} if hierarchy.titles else {}
    return {"file": _code_file(hierarchy), "levels": hierarchy.levels, "source": hierarchy.source, **titles}


def toml_text(document: dict[str, Any], *, comment: str = "") -> str:
    """A plan as TOML below a comment, with exact numbers."""
    lines = [f"# {line}" for line in textwrap.wrap(comment, 110)]
    if document["tuned_on"] == "confidential" and "tuning_reason" not in document:
        lines += ["# This plan is refused until it gives a reason, which is published with the release:", REASON]
    return "\n".join([*lines, tomli_w.dumps(toml_value({name: part for name, part in document.items() if part != {}}))])


def _source(source: str | Sequence[str] | Postgres | Database | Csv) -> dict[str, Any]:
    if isinstance(source, Postgres):
        return {"source": source.uri, "table": source.table}
    if isinstance(source, Database):
        return {"source": str(source.path), "table": source.table}
    if isinstance(source, Csv):
        return {"source": source.paths, "csv": table_values(CSV, source.options)}
    return {"source": source}


def _key_file(name: str) -> str:
    return f"{name}.parquet"


def _in_a_file(keys: Keys) -> Keys | None:
    """Return the cells that need a separate file, or None."""
    if not isinstance(keys.domain, Rows):
        return None
    plain = all(_in_text(column) for column in keys.table.columns) and not _columns_of(keys.sizes)
    return None if plain and keys.table.num_rows <= MOST_LISTED else keys


def _plain(table: pa.Table) -> pa.Table:
    """Return the columns decoded, since Parquet dictionaries hold no NULL."""
    arrays = {name: pa.concat_arrays(table.column(name).chunks) for name in table.column_names}
    dictionaries = {name: array for name, array in arrays.items() if pa.types.is_dictionary(array.type)}
    return pa.table(arrays | {name: array.dictionary_decode() for name, array in dictionaries.items()})


def _in_text(column: pa.ChunkedArray) -> bool:
    """Return whether a TOML list reads back as the same column."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return kind in (pa.string(), pa.int64(), pa.bool_()) and None not in column.to_pylist()


def _keys(name: str, keys: Keys) -> dict[str, Any]:
    if keys.selection is None:
        return _key_list_entry(name, keys)
    selection = selection_entry(keys.selection)
    return {"select": selection} if keys.domain is None else {"select_from": {**_domain(name, keys), **selection}}


def selection_entry(selection: Selection) -> dict[str, Any]:
    """Return the parameters of a selection."""
    when = {"threshold": selection.threshold} if selection.delta is None else {"delta": selection.delta}
    pieces = {"pieces": dict(selection.splitting.thresholds)} if selection.splitting else {}
    return {"rho": selection.rho, **when, **pieces}


def _columns_of(sizes: Sizes | None) -> dict[str, str]:
    """Return the size columns of a key file, by statistic."""
    if sizes is None:
        return {}
    return {name: f"size_{name}" if name else "size" for name in sizes.columns if name not in sizes.read}


def _with_sizes(table: pa.Table, sizes: Sizes | None) -> pa.Table:
    for name, column in _columns_of(sizes).items():
        assert sizes is not None
        table = table.append_column(column, pa.array(sizes.columns[name]))
    return table


def _sizes_entry(sizes: Sizes | None) -> dict[str, Any]:
    """Return a plan file's entry for the sizes of keys."""
    if sizes is None:
        return {}
    # A path in a plan is relative to the plan, one in Python to the working folder.
    waiting = {
        name: {"release": str(Path(each.release).absolute()), "column": each.column}
        for name, each in {**sizes.waiting, **sizes.read}.items()
    }
    found: dict[str, Any] = {**_columns_of(sizes), **waiting}
    every = found.get(EVERY_STATISTIC)
    if every is not None and len(found) > 1:
        raise ParameterError(
            parameter="size", problem="is given for all statistics and for single ones", advice="Name each statistic."
        )
    public = [each for each in sizes.sized_on if each.startswith(PUBLIC)]
    return {"size": found if every is None else every} | ({"sized_on": public[0]} if public else {})


def _key_list_entry(name: str, keys: Keys) -> dict[str, Any]:
    if _in_a_file(keys) is not None:
        return {"file": _key_file(name), **_sizes_entry(keys.sizes)}
    return {
        **_sizes_entry(keys.sizes),
        "rows": {column: keys.table.column(column).to_pylist() for column in keys.table.column_names},
    }


def _domain(name: str, keys: Keys) -> dict[str, Any]:
    match keys.domain:
        case Rows():
            return _key_list_entry(name, keys)
        case Product(columns=columns) if all(_in_text(pa.chunked_array([values])) for _, values in columns):
            return {"product": {column: values.to_pylist() for column, values in columns}}
        case _:
            raise ParameterError(
                parameter="keys",
                problem="are selected from a domain of functions or of values that TOML does not have",
                advice="List the cells in Keys.",
            )


def _used_key_lists(query: Query, names: dict[str, Keys]) -> list[str]:
    """Return the names of a query's key lists, in its order."""
    return [next(name for name, keys in names.items() if keys is own or keys == own) for own in query.key_lists]


def query_form(query: Query, keys: Any) -> dict[str, Any]:
    """Return a query, with its keys as the plan names them."""
    form: dict[str, Any] = {name: text for name, text in (("name", query.name), ("title", query.title)) if text}
    form |= {"median": list(query.median)} if query.median else {}
    if query.condition is not None:
        form["where"] = predicate_text(query.condition)
    if query.groups:
        form["group_by"] = [_group(group) for group in query.groups]
    if query.axes:
        best = query.has_best_shares
        form["levels"] = [_axis(axis) | ({"share": BEST} if best else {}) for axis in query.axes]
        if best and query.best is not None and query.best.goal:
            form["share_goal"] = {fraction_text(size): error for size, error in query.best.goal}
    if query.table_shares and not query.has_best_shares:
        form["table_share"] = list(query.table_shares)
    if query.groups or query.axes:
        form["keys"] = keys
    if query.all_other is not None:
        form["all_other"] = query.all_other
    for kind in KINDS:
        form |= _entries(kind, [each for each in query.statistics if type(each) is kind])
    if any(type(each) not in KINDS for each in query.statistics):
        raise ParameterError(parameter="query", problem="has a statistic of a kind that plan files do not have")
    return form


def _entries(kind: type[Statistic], statistics: list[Statistic]) -> dict[str, Any]:
    """Return the statistics of one kind under its word."""
    if not statistics:
        return {}
    if kind.names_itself:
        return {kind.word: {each.alias: each.entry() for each in statistics}}
    forms = [each.entry() | ({} if each.alias == each.default_alias() else {"as": each.alias}) for each in statistics]
    if not kind.names_column:
        return {kind.word: forms if len(forms) > 1 else forms[0]}
    columns: dict[str, list[Any]] = {}
    for each, form in zip(statistics, forms):
        columns.setdefault(str(each.of), []).append(form)
    return {kind.word: {column: found if len(found) > 1 else found[0] for column, found in columns.items()}}


def statistic_lines(query: Query) -> list[str]:
    """Return the statistics of a query as lines of a plan file."""
    found = []
    for kind in KINDS:
        for word, form in _entries(kind, [each for each in query.statistics if type(each) is kind]).items():
            by_name = kind.names_itself or kind.names_column
            found += [f"{word}.{_key(name)} = {inline_toml(own)}" for name, own in form.items()] if by_name else []
            found += [] if by_name else [f"{word} = {inline_toml(form)}"]
    return found


def inline_toml(value: Any) -> str:
    """Return a value on one line, as a plan file reads it."""
    match toml_value(value):
        case bool() as truth:
            return str(truth).lower()
        case str() as text:
            return json.dumps(text, ensure_ascii=False)
        case Decimal() as number:
            return f"{number:f}"
        case dict() as entries:
            return f"{{ {', '.join(f'{_key(name)} = {inline_toml(each)}' for name, each in entries.items())} }}"
        case list() as listed:
            return f"[{', '.join(map(inline_toml, listed))}]"
        case other:
            return str(other)


def _key(name: str) -> str:
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def _axis(axis: tuple[Choice, ...]) -> dict[str, Any]:
    by = [[] if choice.group is None else _group(choice.group) for choice in axis]
    return {"by": by, "share": [choice.share for choice in axis]}


def _group(group: Group) -> Any:
    expression = group.expression
    if isinstance(expression, Field) and expression.name == group.name:
        return expression.name
    if isinstance(expression, Prefix):
        return {"prefix": expression.column, "length": expression.length, "as": group.name}
    if isinstance(expression, DatePart):
        return {"part": expression.part, "of": expression.column, "as": group.name}
    raise ParameterError(
        parameter="by", problem="groups by a CASE or by a column of another name, which a plan file takes as SQL only"
    )
