"""The table that a plan publishes, without its mechanisms: a query with groups, and the measure that is summed."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from recordwise.errors import ParameterError
from recordwise.exact.numbers import Number
from recordwise.plan.query import Query
from recordwise.session.owner import OwnerView

COUNT = "count"
"""The pseudo-measure that stands for the number of records."""


def bare(query: Query) -> Query:
    """A query's groups, levels, keys and condition without its statistics."""
    if not isinstance(query, Query):
        raise ParameterError(
            parameter="query",
            problem="must be a query with groups",
            advice='Use rw.query().group_by("county", keys=keys).',
        )
    return replace(query, statistics=())


def with_statistic(query: Query, measure: str, mechanism: Any, alias: str | None = None) -> Query:
    """The query with one statistic: a sum, or a count for the measure 'count'."""
    if measure == COUNT:
        return query.count(mechanism, alias=alias or COUNT)
    return query.sum(measure, mechanism, alias=alias)


def check_measure(measure: str, view: OwnerView) -> None:
    if measure != COUNT and view.schema.measure(measure) is None:
        known = ", ".join((*view.schema.measure_names(), COUNT))
        raise ParameterError(
            parameter="measure", problem=f"'{measure}' is not a measure", advice=f"Use one of {known}."
        )


def step_of(measure: str, view: OwnerView) -> Number:
    declared = view.schema.measure(measure)
    return declared.step if declared else Fraction(1)


def named(mechanisms: Mapping[str, Any]) -> dict[str, Any]:
    """Mechanisms by name; an error if there is none."""
    found = dict(mechanisms)
    if not found:
        raise ParameterError(parameter="mechanisms", problem="must name at least one mechanism")
    for name, mechanism in found.items():
        if not hasattr(mechanism, "policy"):
            raise ParameterError(parameter=f"mechanisms['{name}']", problem="is not a mechanism")
    return found
