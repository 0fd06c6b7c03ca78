"""Turns exact totals into noisy columns: the only place where values computed from records are combined with noise."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from recordwise.noise.randomness import BitSource
from recordwise.plan.cost import CellMechanism, Run, cell_mechanisms, possible_mechanisms
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.plan.schema import Schema
from recordwise.plan.statistics import Drawable, ExactTable, Statistic
from recordwise.plan.statistics.answers import NoisyColumn
from recordwise.plan.statistics.base import published

SELECTED_ON = "selected_on: this noisy count decided that the row is published, so it is too large on average"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A statistic that noise is drawn for, with the mechanism of every cell."""

    statistic: Drawable
    served: tuple[CellMechanism, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedTable:
    """Everything that is drawn and published for one table, in order."""

    schema: Schema
    drawn: tuple[Prepared, ...]
    asked: tuple[Statistic, ...]
    """The statistics of the query."""
    confidence: float


def dry_run(plan: Plan, table: PlannedTable, *, confidence: float) -> None:
    """Run each mechanism on a cell with total 0, so that any refusal comes before budget is spent."""
    query = plan.queries[table.query]
    confidence = query.confidence_of_parts(confidence)
    for statistic in query.draws():
        for mechanism in possible_mechanisms(plan, table, statistic):
            statistic.dry_run(mechanism, plan.schema, confidence=confidence)


def prepare_table(plan: Plan, table: PlannedTable, cells: pa.Table, *, confidence: float) -> PreparedTable:
    """Assign mechanisms to cells; totals are drawn before bins."""
    query = plan.queries[table.query]
    drawn = sorted(query.draws(), key=lambda statistic: bool(statistic.bins()))
    return PreparedTable(
        schema=plan.schema,
        drawn=tuple(Prepared(statistic=each, served=_served(plan, table, cells, each)) for each in drawn),
        asked=query.statistics,
        confidence=confidence,
    )


def _served(plan: Plan, table: PlannedTable, cells: pa.Table, statistic: Drawable) -> tuple[CellMechanism, ...]:
    served = cell_mechanisms(plan, table, statistic, cells)
    if served:
        return served
    # A selection may keep no cell at all; even an empty table has its columns.
    nothing = Run(None, np.empty(0, dtype=np.int64))
    return (CellMechanism(possible_mechanisms(plan, table, statistic)[0], nothing),)


def draw_table(prepared: PreparedTable, exact: ExactTable, rng: BitSource) -> Callable[[], tuple[NoisyColumn, ...]]:
    """Add noise, once, to each statistic of one table. What is returned computes every variable from it, at any time."""
    schema, confidence = prepared.schema, prepared.confidence
    answers = {
        each.statistic.alias: each.statistic.draw(
            exact, each.served, schema, rng, asked=prepared.asked, confidence=confidence
        )
        for each in prepared.drawn
    }
    statistics = [each.statistic for each in prepared.drawn]
    return partial(published, prepared.asked, statistics, answers, confidence=confidence)
