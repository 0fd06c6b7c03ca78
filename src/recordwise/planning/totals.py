"""The exact totals of a plan's cells, what clamping mechanisms would keep of them, and the parts of signed ones, in one pass."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from recordwise.exact.arithmetic import FloatArray
from recordwise.mechanisms.base import clamping_bound, has_two_parts
from recordwise.plan.fields import Level
from recordwise.plan.plan import PlannedTable
from recordwise.plan.query import Query
from recordwise.planning.shapes import COUNT, bare, with_statistic
from recordwise.planning.whole import Asked, Choice, Scope
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


def totals_query(query: Query, measure: str, mechanisms: Mapping[str, Any], *, prefix: str = "") -> Query:
    """A query for the plain total and the clamped ones."""
    # Goals about several statistics of one query would ask for its name twice.
    asked = with_statistic(replace(query, name="", title=""), measure, FOR_OWNER, alias=prefix + EXACT)
    if measure == COUNT:
        return asked
    for number, mechanism in enumerate(mechanisms.values()):
        if clamping_bound(mechanism) is not None or has_two_parts(mechanism):
            asked = asked.sum(measure, mechanism, alias=f"{prefix}kept{number}")
    return asked


def read_totals(found: CellTotals, mechanisms: Mapping[str, Any], *, prefix: str = "") -> ExactTotals:
    """What ``totals_query`` found in one table."""
    total = found.totals[prefix + EXACT]
    sign = np.where(total < 0, -1.0, 1.0)
    kept = {
        name: found.totals[f"{prefix}kept{number}"] * (1.0 if has_two_parts(mechanism) else sign)
        for number, (name, mechanism) in enumerate(mechanisms.items())
        if f"{prefix}kept{number}" in found.totals
    }
    return ExactTotals(name=found.name, total=np.abs(total), kept=kept)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class PlanTotals:
    """CONFIDENTIAL where the records are: the totals of one statistic in one table of a plan."""

    asked: Asked
    number: int
    """The number of the table among the levels of its query."""
    level: Level
    table: PlannedTable
    cells: pa.Table
    total: FloatArray
    kept: dict[str, FloatArray]
    """As in ``ExactTotals``, by the name of a candidate."""


def plan_totals(view: OwnerView, scope: Scope, choices: Mapping[str, Choice]) -> tuple[PlanTotals, ...]:
    """The totals of every statistic in every table that is meant, in as few passes as a release would take."""
    asked = scope.asked()
    numbers = list(dict.fromkeys(each.query for each in asked))
    own = {number: [each for each in asked if each.query == number] for number in numbers}
    chosen = {each.place: {name: choice(each) for name, choice in choices.items()} for each in asked}
    queries = []
    for number in numbers:
        query = bare(scope.plan.queries[number])
        for at, each in enumerate(own[number]):
            query = totals_query(query, str(each.measure), chosen[each.place], prefix=f"{at}_")
        queries.append(query)
    found, tables, read = iter(view.cell_totals(*queries)), scope.tables(), []
    for number in numbers:
        for level in range(len(scope.plan.queries[number].tables())):
            cells = next(found)
            for at, each in enumerate(own[number]):
                if level not in each.levels:
                    continue
                exact, table = read_totals(cells, chosen[each.place], prefix=f"{at}_"), tables[number, level]
                read.append(
                    PlanTotals(
                        asked=each,
                        number=level,
                        level=table.shape,
                        table=table,
                        cells=cells.cells,
                        total=exact.total,
                        kept=exact.kept,
                    )
                )
    return tuple(read)
