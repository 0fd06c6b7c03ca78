"""A budget for a plan that has none: what the plan costs, once, in the terms that a plan file states budgets in."""

from collections.abc import Sequence
from typing import Any

from recordwise.mechanisms.calibration import decimal
from recordwise.plan.key_selection import SelectKeys
from recordwise.plan.query import Query
from recordwise.plan.schema import Schema
from recordwise.plan.statistics.base import SUM, Drawable, mechanism_entry


def proposed_budget(queries: Sequence[Query], schema: Schema) -> list[dict[str, Any]]:
    """The parts of a budget: what each sum costs by its mechanism, and one constant for everything that costs all records alike.

    Levels share the loss of their query, so that each statistic is counted once; sized noise counts as that of the smallest cells.
    """
    sums = [{"measure": each.of, "mechanism": mechanism_entry(each.mechanism)} for each in _drawn(queries, sums=True)]
    costs = [float(each.cost(each.mechanism, schema, tight=True).loss({})) for each in _drawn(queries, sums=False)]
    constant = [{"rho": decimal(sum(costs), up=True)}] if costs else []
    return [*constant, *sums, *_selections(queries)]


def _drawn(queries: Sequence[Query], *, sums: bool) -> list[Drawable]:
    return [each for query in queries for each in query.draws() if (each.contribution == SUM) == sums]


def _selections(queries: Sequence[Query]) -> list[dict[str, Any]]:
    """Private keys cost too, once for each query that selects some."""
    found: list[dict[str, Any]] = []
    for query in queries:
        for keys in query.key_lists:
            if isinstance(keys, SelectKeys):
                pieces = {"pieces": dict(keys.splitting.thresholds)} if keys.splitting else {}
                found.append({"select": {"rho": keys.rho, "delta": keys.delta, **pieces}})
    return found
