"""The exact totals of a plan's cells, what clamping mechanisms would keep of them, and the parts of signed ones, in one pass."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from recordwise.exact.arithmetic import FloatArray
from recordwise.mechanisms.base import clamping_bound, has_two_parts
from recordwise.plan.query import Query
from recordwise.planning.shapes import COUNT, with_statistic
from recordwise.session.owner import FOR_OWNER, CellTotals, OwnerView

EXACT = "exact"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ExactTotals:
    """CONFIDENTIAL where the records are: the totals of one table, without their signs, on which no noise depends."""

    name: str
    total: FloatArray
    kept: dict[str, FloatArray]
    """By the name of a clamping mechanism: the totals of what it keeps, below 0 where their sign is another. By the name of a
    transform of a signed measure: the positive and the negative part of each total, in two rows."""


def totals_query(query: Query, measure: str, mechanisms: Mapping[str, Any]) -> Query:
    """A query for the plain total and the clamped ones."""
    asked = with_statistic(query, measure, FOR_OWNER, alias=EXACT)
    if measure == COUNT:
        return asked
    for number, mechanism in enumerate(mechanisms.values()):
        if clamping_bound(mechanism) is not None or has_two_parts(mechanism):
            asked = asked.sum(measure, mechanism, alias=f"kept{number}")
    return asked


def read_totals(found: CellTotals, mechanisms: Mapping[str, Any]) -> ExactTotals:
    """What ``totals_query`` found in one table."""
    total = found.totals[EXACT]
    sign = np.where(total < 0, -1.0, 1.0)
    kept = {
        name: found.totals[f"kept{number}"] * (1.0 if has_two_parts(mechanism) else sign)
        for number, (name, mechanism) in enumerate(mechanisms.items())
        if f"kept{number}" in found.totals
    }
    return ExactTotals(name=found.name, total=np.abs(total), kept=kept)


def exact_totals(view: OwnerView, query: Query, measure: str, mechanisms: Mapping[str, Any]) -> ExactTotals:
    """The totals of the only table of a query."""
    (found,) = view.cell_totals(totals_query(query, measure, mechanisms))
    return read_totals(found, mechanisms)
