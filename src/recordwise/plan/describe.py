"""Descriptions of queries and plans as JSON, for the ledger and release.json. They contain public facts only."""

import platform
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from importlib import import_module
from typing import Any

from recordwise.errors import ParameterError
from recordwise.exact.numbers import fraction_text
from recordwise.mechanisms.base import mechanism_text, parameter_json
from recordwise.plan.cost import band_table, plan_policy
from recordwise.plan.expressions import (
    And,
    Case,
    Compare,
    DatePart,
    Field,
    Group,
    In,
    IsNull,
    Literal,
    Not,
    Operand,
    Or,
    Predicate,
    Prefix,
    condition,
    leaves,
    operand_name,
)
from recordwise.plan.keys.bands import sized_keys
from recordwise.plan.plan import Plan, PlannedTable, size_names
from recordwise.plan.query import Query
from recordwise.plan.schema import Measure, Schema
from recordwise.plan.sql.grammar import linear_text
from recordwise.plan.statistics import Statistic
from recordwise.policy.columns import plain_value
from recordwise.policy.policy import Policy
from recordwise.policy.render.html import Html, element, preview_table
from recordwise.policy.render.text import condition_words

SEVERAL_ROWS = "several for a unit, made one record"


def schema_json(schema: Schema) -> dict[str, Any]:
    """Roles and types; nothing derived from values."""
    rule = {name: {"collapse": each} for name, each in schema.collapse or ()}
    columns = [{"name": each.name, "type": each.type, "null": each.null} for each in schema.columns]
    return {
        "unit": schema.unit,
        "firm": schema.firm,
        **({} if schema.collapse is None else {"rows": SEVERAL_ROWS}),
        "measures": [_measure_json(measure) | rule.get(measure.name, {}) for measure in schema.measures],
        "columns": [form | rule.get(str(form["name"]), {}) for form in columns],
    }


def _measure_json(measure: Measure) -> dict[str, Any]:
    """What is not said is the default, so that the schemas of earlier ledgers stay equal to those they were written for."""
    form: dict[str, Any] = {
        "name": measure.name,
        "step": fraction_text(measure.step),
        "bound": fraction_text(measure.bound),
    }
    form |= {"derive": linear_text(measure.derive)} if measure.derive else {}
    form |= {"signed": True} if measure.signed else {}
    return form if measure.null == "refuse" else form | {"null": measure.null}


def plan_json(plan: Plan) -> list[dict[str, Any]]:
    """Each query: its condition, tables, number of public cells and statistics with their mechanisms."""
    described, tables = [], plan.tables()
    for number, query in enumerate(plan.queries):
        described.append(
            {
                **({"name": query.name} if query.name else {}),
                **({"title": query.title} if query.title else {}),
                "where": None if query.condition is None else predicate_json(query.condition),
                "tables": [_table_json(plan, each) for each in tables if each.query == number],
                "statistics": [parameter_json(statistic.description()) for statistic in query.statistics],
            }
        )
    return described


def _table_json(plan: Plan, table: PlannedTable) -> dict[str, Any]:
    shape = table.shape
    return {
        "name": table_name(plan, table),
        "by": [group_json(group, plan.schema) for group in shape.groups],
        "share": fraction_text(shape.share),
        **_rest_json(plan, table),
        **_cells_json(plan, table),
        **_sized_json(plan, table),
    }


def _rest_json(plan: Plan, table: PlannedTable) -> dict[str, Any]:
    """The table of which the rests are published."""
    if table.rest is None:
        return {}
    above = next(each for each in plan.tables() if each.query == table.query and each.shape == table.rest)
    return {"rest": table_name(plan, above)}


def _cells_json(plan: Plan, table: PlannedTable) -> dict[str, Any]:
    """The number of public cells, or how cells are selected; how many are found is confidential."""
    selection = plan.selection(table)
    if selection is not None:
        return {"keys": selection.to_json()}
    return {"public_cells": plan.cells(table).num_rows if table.shape.groups else 1}


def _sized_json(plan: Plan, table: PlannedTable) -> dict[str, Any]:
    """The bands of the cells for each statistic whose noise is sized, and where the sizes are from (T-SIZE)."""
    query = plan.queries[table.query]
    found = {each.alias: band_table(query, each, table.shape, plan.schema) for each in query.draws()}
    bands = {
        alias: {"bands": each.digest, "edges": [fraction_text(edge) for edge in each.edges]}
        for alias, each in found.items()
        if each
    }
    lists = [sized_keys(query, table.shape, size_names(each)) for each in query.draws() if found[each.alias]]
    sizes = next((keys.sizes for keys in lists if keys is not None), None)
    if not bands or sizes is None:
        return {}
    return {"sized": bands, "sized_on": list(sizes.sized_on), "sizes": sizes.digest()}


def query_names(plan: Plan) -> str:
    """The statistics of a plan, for the ledger and for error messages."""
    return "; ".join(", ".join(statistic.alias for statistic in query.statistics) for query in plan.queries)


def group_json(group: Group, schema: Schema) -> dict[str, Any]:
    """A group as release.json describes it."""
    expression = group.expression
    if isinstance(expression, Field) and expression.name in schema.coarser_names():
        return {"name": group.name, **_level_json(expression.name, schema)}
    if isinstance(expression, Prefix):
        return {"name": group.name, "prefix_of": expression.column, "length": expression.length}
    if isinstance(expression, DatePart):
        return {"name": group.name, "part": expression.part, "of": expression.column}
    if isinstance(expression, Case):
        branches = [{"when": predicate_json(test), "then": literal_json(label)} for test, label in expression.branches]
        return {"name": group.name, "case": branches, "else": literal_json(expression.default)}
    return {"name": group.name, "column": expression.name}


def _level_json(level: str, schema: Schema) -> dict[str, Any]:
    """A coarser level: the list of codes it is from, and the other levels that determine it."""
    hierarchy = schema.hierarchy(level)
    assert hierarchy is not None
    below = [each for each in hierarchy.levels if each != level and hierarchy.determines(each, level)]
    return {"level": level, "hierarchy": hierarchy.name, "digest": hierarchy.digest, "determined_by": below}


def predicate_json(predicate: Predicate) -> Any:
    """A condition as it was written, so that a reader can tell which records a table covers."""
    match predicate:
        case And(parts) | Or(parts):
            return {type(predicate).__name__.lower(): [predicate_json(part) for part in parts]}
        case Not(part):
            return {"not": predicate_json(part)}
        case IsNull(operand):
            return {"null": _operand_json(operand)}
        case In(operand, literals):
            return {"in": _operand_json(operand), "values": [literal_json(literal) for literal in literals]}
        case Compare(operand, operator, literal):
            return {operator: [_operand_json(operand), literal_json(literal)]}


def _operand_json(operand: Operand) -> Any:
    if isinstance(operand, DatePart):
        return {"part": operand.part, "of": operand.column}
    return {"prefix_of": operand.column, "length": operand.length} if isinstance(operand, Prefix) else operand.name


def literal_json(value: Literal) -> Any:
    """A constant of a query; a number that is not whole becomes a fraction, so that nothing is rounded."""
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else {"fraction": fraction_text(value)}
    return plain_value(value)


LONGEST_NAME = 80


def table_name(plan: Plan, table: PlannedTable) -> str:
    """A unique file name for a table: the query's name or number where it has one, and its groups where that leaves several."""
    taken: set[str] = set()
    for each in plan.tables():
        plain = name = _plain_name(plan, each)
        number = 1
        while name.casefold() in taken:
            number += 1
            name = f"{plain}_{number}"
        taken.add(name.casefold())
        if (each.query, each.level) == (table.query, table.level):
            return name
    raise ParameterError(parameter="table", problem="is not part of the plan")


def _plain_name(plan: Plan, table: PlannedTable) -> str:
    query, safe = plan.queries[table.query], safe_name("_by_".join(table.shape.names()) or "total")
    if query.name:
        return query.name if len(query.tables()) == 1 else f"{query.name}_{safe}"
    return safe if len(plan.queries) == 1 else f"q{table.query + 1}_{safe}"


def safe_name(text: str) -> str:
    """The letters, digits, - and _ of a text, shortened, for use in a file name."""
    return "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in text)[:LONGEST_NAME]


LIBRARIES = {"duckdb": "duckdb", "numpy": "numpy", "pyarrow": "pyarrow", "python-flint": "flint", "sqlglot": "sqlglot"}
"""Where each library states its version, by the name of its package."""


@cache
def _own_version() -> str:
    from importlib.metadata import version

    return version("recordwise")


def versions() -> dict[str, str]:
    """The versions of the software that made the release."""
    found = {name: import_module(module).__version__ for name, module in LIBRARIES.items()}
    return {"python": platform.python_version(), "recordwise": _own_version(), **found}


# The part of a schema that a plan uses, so that a release describes that part of the table and nothing else.


def used_schema(plan: Plan, *policies: Policy | None) -> Schema:
    """The ids, and the measures and columns that its queries or policies name."""
    return schema_of(plan.schema, used_names(plan, *policies))


def used_names(plan: Plan, *policies: Policy | None) -> set[str]:
    """The measures, columns and levels that its queries or policies name, and the firm if firms are counted."""
    return _named({name for query in plan.queries for name in _names(query)}, *policies)


def schema_of(schema: Schema, names: set[str], *policies: Policy | None) -> Schema:
    """The schema without the measures and columns that neither the names nor the policies mention."""
    names = _named(names, *policies)
    names = names | {each.finest for each in schema.hierarchies if not names.isdisjoint(each.levels)}
    names = names | {base for each in schema.measures if each.name in names for base, _ in each.derive}
    used = {schema.firm, *names}
    return replace(
        schema,
        collapse=None if schema.collapse is None else tuple(each for each in schema.collapse if each[0] in used),
        measures=tuple(each for each in schema.measures if each.name in names),
        columns=tuple(each for each in schema.columns if each.name in names),
        hierarchies=tuple(each for each in schema.hierarchies if each.finest in names),
    )


def _named(names: set[str], *policies: Policy | None) -> set[str]:
    for policy in filter(None, policies):
        measures = (*policy.measures(), *policy.inputs())
        names = names | {column.name for column in policy.columns()} | {each.name for each in measures}
    return names


def _names(query: Query) -> Iterator[str]:
    if query.condition is not None:
        yield from (operand_name(leaf.operand) for leaf in leaves(query.condition))
    for level in query.tables():
        for group in level.groups:
            yield from _group_names(group)
    yield from (each.of for each in query.draws() if each.of)


def _group_names(group: Group) -> Iterator[str]:
    value = group.expression
    if isinstance(value, Case):
        yield from (operand_name(leaf.operand) for test, _ in value.branches for leaf in leaves(test))
    else:
        yield value.name if isinstance(value, Field) else value.column


# Queries and plans as HTML for notebooks, with every name escaped.


def query_html(query: "Query") -> Html:
    """The query's tables, condition and statistics."""
    tables = [" × ".join(level.names()) or "the grand total" for level in query.tables()]
    only = [] if query.condition is None else [f"Only records where {condition_words(condition(query.condition))}."]
    rows = [_row(statistic) for statistic in query.statistics]
    return element(
        "div",
        element("p", element("b", "recordwise query"), f" by {'; '.join(tables)}. ", *only),
        preview_table(("statistic", "is", "of", "noise"), rows),
    )


def _row(statistic: Statistic) -> tuple[str, str, str, str]:
    noise = ", ".join(map(mechanism_text, statistic.mechanisms()))
    return statistic.alias, type(statistic).__name__, statistic.of or "", noise


def plan_html(plan: "Plan") -> Html:
    """The plan's queries in order, and their total cost."""
    cost = Html(plan_policy(plan)._repr_html_())
    return element("div", *map(query_html, plan.queries), element("p", element("b", "Cost to a record")), cost)
