"""Queries and plans as HTML for notebooks, with every name escaped."""

from typing import TYPE_CHECKING

from recordwise.mechanisms.described import mechanism_text
from recordwise.plan.cost import plan_policy
from recordwise.plan.predicates import condition
from recordwise.plan.statistics import Statistic
from recordwise.policy.render.html import Html, element, preview_table
from recordwise.policy.render.text import condition_words

if TYPE_CHECKING:
    from recordwise.plan.plan import Plan
    from recordwise.plan.query import Query


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
