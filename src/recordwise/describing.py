"""Plans and schemas in plain JSON, for the ledger and for release.json. Public facts only."""

from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

from recordwise.engines.sources import CsvFiles, Frame, ParquetFiles, Source
from recordwise.errors import ParameterError
from recordwise.exact import fraction_text
from recordwise.functions import Function
from recordwise.plan import Case, Plan, PlannedTable, Prefix, Schema
from recordwise.plan.average import Average
from recordwise.plan.conditions import condition
from recordwise.plan.fields import Group
from recordwise.plan.quantile import Quantile
from recordwise.plan.query import Statistic
from recordwise.policy import By


def schema_json(schema: Schema) -> dict[str, Any]:
    """Roles and types; nothing derived from values."""
    return {
        "unit": schema.unit,
        "firm": schema.firm,
        "measures": [
            {"name": measure.name, "step": fraction_text(measure.step), "bound": fraction_text(measure.bound)}
            for measure in schema.measures
        ],
        "columns": [{"name": column.name, "type": column.type, "null": column.null} for column in schema.columns],
    }


def plan_json(plan: Plan) -> list[dict[str, Any]]:
    """Each query: its condition, tables, public cells and statistics with their mechanisms."""
    described = []
    for number, query in enumerate(plan.queries):
        tables = [table for table in plan.tables() if table.query == number]
        described.append(
            {
                "where": None if query.condition is None else condition(query.condition).to_json(),
                "tables": [_table_json(plan, table) for table in tables],
                "statistics": [_statistic_json(statistic) for statistic in query.statistics],
            }
        )
    return described


def _statistic_json(statistic: Statistic) -> dict[str, Any]:
    described = {
        "name": statistic.alias,
        "kind": type(statistic).__name__,
        "of": getattr(statistic, "measure", getattr(statistic, "column", None)),
    }
    if isinstance(statistic, Average):
        return described | {"sum": value_json(statistic.sum), "count": value_json(statistic.count), "unbiased": False}
    if isinstance(statistic, Quantile):
        described |= {"p": fraction_text(statistic.p), "unbiased": False}
    return described | {"mechanism": value_json(statistic.mechanism)}


def _table_json(plan: Plan, table: PlannedTable) -> dict[str, Any]:
    selection = plan.selection(table)
    cells = {"keys": selection.to_json()} if selection else {"public_cells": _public_cells(plan, table)}
    return {
        "name": table_name(plan, table),
        "by": [_group_json(group) for group in table.shape.groups],
        "share": fraction_text(table.shape.share),
        **cells,
    }


def _public_cells(plan: Plan, table: PlannedTable) -> int:
    return plan.cells(table).num_rows if table.shape.groups else 1


def _group_json(group: Group) -> dict[str, Any]:
    expression = group.expression
    if isinstance(expression, Prefix):
        return {"name": group.name, "prefix_of": expression.column, "length": expression.length}
    if isinstance(expression, Case):
        labels = [str(label) for label in expression.labels()]
        return {"name": group.name, "case": labels}
    return {"name": group.name, "column": expression.name}


def table_name(plan: Plan, table: PlannedTable) -> str:
    """A file name for a table: its groups, numbered by query where there are several."""
    groups = "_by_".join(table.shape.names()) or "total"
    safe = "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in groups)
    return safe if len(plan.queries) == 1 else f"q{table.query + 1}_{safe}"


def value_json(value: Any) -> Any:
    """A mechanism or parameter as JSON; fractions as text, so that nothing is rounded."""
    if isinstance(value, Fraction):
        return fraction_text(value)
    if isinstance(value, Function):
        return value.to_json()
    if isinstance(value, By):
        cases = {str(group): fraction_text(number) for group, number in value.values}
        return {"by": value.column.to_json(), "values": cases, "default": value_json(value.default)}
    if is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: value_json(getattr(value, field.name)) for field in fields(value)}
        return {"kind": type(value).__name__, **{name: part for name, part in parts.items() if part is not None}}
    if isinstance(value, dict):
        return {getattr(name, "name", str(name)): value_json(part) for name, part in value.items()}
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def inferred_columns(source: Source, roles: set[str | None]) -> dict[str, Any]:
    """Conditional columns from the types of a Parquet file or frame: text, whole numbers and truth values."""
    import pyarrow as pa
    import pyarrow.parquet

    if isinstance(source, ParquetFiles):
        schema = pyarrow.parquet.read_schema(source.paths[0])
    elif isinstance(source, Frame):
        schema = source.table.schema
    else:
        kind = "CSV" if isinstance(source, CsvFiles) else "a relation"
        raise ParameterError(
            parameter="columns", problem=f"must be declared for {kind}", advice='Give columns={"county": "text"}.'
        )
    found = {}
    for field in schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if field.name in roles:
            continue
        if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            found[field.name] = "text"
        elif pa.types.is_integer(kind):
            found[field.name] = "integer"
        elif pa.types.is_boolean(kind):
            found[field.name] = "boolean"
    return found
