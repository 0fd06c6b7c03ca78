"""Queries and plans as a notebook shows them: what is asked, by what, with which noise. Every name is escaped."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from recordwise.plan.average import Average
from recordwise.plan.conditions import condition
from recordwise.policy import By
from recordwise.policy.words import condition_words
from recordwise.showing import Html, element, preview_table

if TYPE_CHECKING:
    from recordwise.plan.plan import Plan
    from recordwise.plan.query import Query, Statistic


def query_html(query: "Query") -> Html:
    """Its tables, its condition and its statistics."""
    tables = [" × ".join(level.names()) or "the grand total" for level in query.tables()]
    only = [] if query.condition is None else [f"Only records with {condition_words(condition(query.condition))}."]
    rows = [_row(statistic) for statistic in query.statistics]
    return element(
        "div",
        element("p", element("b", "recordwise query"), f" by {'; '.join(tables)}. ", *only),
        preview_table(("statistic", "is", "of", "noise"), rows),
    )


def _row(statistic: "Statistic") -> tuple[str, str, str, str]:
    of = getattr(statistic, "measure", getattr(statistic, "column", ""))
    return statistic.alias, type(statistic).__name__, of, _noise(statistic)


def _noise(statistic: "Statistic") -> str:
    if not isinstance(statistic, Average):
        return mechanism_text(statistic.mechanism)
    parts: list[Any] = [statistic.sum, *([] if statistic.count is None else [statistic.count])]
    return ", ".join(map(mechanism_text, parts))


def mechanism_text(mechanism: Any) -> str:
    """As a user would write it, parameters that are not set left out."""
    if not is_dataclass(mechanism):
        return type(mechanism).__name__
    given = {field.name: getattr(mechanism, field.name) for field in fields(mechanism)}
    told = ", ".join(f"{name}={_value_text(value)}" for name, value in given.items() if value not in (None, False))
    return f"{type(mechanism).__name__}({told})"


def _value_text(value: Any) -> str:
    if isinstance(value, By):
        return f"by {value.column.name}"
    if isinstance(value, Fraction):
        return f"{float(value):.6g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_value_text(each)}" for name, each in value.items())
    return str(value)


def plan_html(plan: "Plan") -> Html:
    """Its queries, one below the other, and what they cost together."""
    from recordwise.plan.analysis import plan_policy

    cost = Html(plan_policy(plan)._repr_html_())
    return element("div", *map(query_html, plan.queries), element("p", element("b", "What it costs a record")), cost)
