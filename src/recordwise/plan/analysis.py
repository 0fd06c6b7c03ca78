"""The policy of a plan, before any data is opened: sequential over queries, levels and statistics, parallel over cells.

Cells of one table are a partition (T-KEYS), so a record pays for its own cell only; tables add up (T-PLAN).
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa

from recordwise.errors import PlanError
from recordwise.plan.column_types import policy_problems
from recordwise.plan.conditions import condition
from recordwise.plan.levels import Level
from recordwise.plan.mechanism import count_policy, shared, threshold_of
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.plan.query import Drawable, Query
from recordwise.plan.schema import Schema
from recordwise.plan.statistics import Sum
from recordwise.plan.thresholds import Run, cell_threshold, cells_by_threshold, is_raised
from recordwise.policy import By, Measure, Policy


def plan_policy(plan: Plan, *, tight: bool = True) -> Policy:
    """The composed policy: the tight one, which is charged, or with ``tight=False`` the one printed in the papers."""
    total = Policy()
    for query in plan.queries:
        total += query_policy(query, plan.schema, tight=tight)
    return total


def query_policy(query: Query, schema: Schema, *, tight: bool = True) -> Policy:
    """The policy of one query, limited to the records its condition selects."""
    total = Policy()
    for level in query.tables():
        selection = query.selection_of(level)
        total += selection.policy(schema) if selection else Policy()
        for statistic in query.draws():
            total += statistic_policy(statistic, level, schema, tight=tight)
    total = total if query.condition is None else total.where(condition(query.condition))
    return check_policy(total, schema)


def check_policy(policy: Policy, schema: Schema) -> Policy:
    """The policy itself, unless a condition of it does not fit the schema: it would not say what an engine selects."""
    problems = policy_problems(policy, schema)
    if problems:
        raise PlanError(problems=tuple(problems))
    return policy


def statistic_policy(statistic: Drawable, level: Level, schema: Schema, *, tight: bool) -> Policy:
    """What one statistic of one table costs a record of that table."""
    mechanism = shared(statistic.mechanism, level.share)
    if not isinstance(statistic, Sum):
        return count_policy(mechanism)
    measure = policy_measure(statistic.measure, schema)
    at = threshold_of(mechanism, measure)
    if not tight or not isinstance(at, By):
        return mechanism.policy(measure, tight=tight)  # type: ignore[no-any-return]
    return mechanism.resolved(cell_threshold(at, level.groups)).policy(measure, tight=True)  # type: ignore[no-any-return]


def policy_measure(name: str, schema: Schema) -> Measure:
    """A measure of the schema in the policy language."""
    declared = schema.measure(name)
    return Measure(name, declared.step if declared else Fraction(1))


@dataclass(frozen=True, slots=True)
class CellMechanism:
    """The mechanism that draws for some cells of a table."""

    mechanism: Any
    run: Run


def cell_mechanisms(plan: Plan, table: PlannedTable, statistic: Drawable, cells: pa.Table) -> tuple[CellMechanism, ...]:
    """Which mechanism serves which cells: the level's share taken, group thresholds resolved as in the policy (T-CELL)."""
    mechanism, groups = shared(statistic.mechanism, table.shape.share), table.shape.groups
    every = cells_by_threshold(Fraction(1), groups, cells)
    at = threshold_of(mechanism, policy_measure(statistic.measure, plan.schema)) if isinstance(statistic, Sum) else None
    if not isinstance(at, By):
        return tuple(CellMechanism(at_one_threshold(mechanism, at), run) for run in every)
    runs = cells_by_threshold(cell_threshold(at, groups), groups, cells)
    if any(run.at is None for run in runs):
        raise PlanError(
            problems=(f"public cells of {statistic.alias} have no threshold by '{at.column.name}': give a default",)
        )
    return tuple(CellMechanism(mechanism.resolved(run.at), run) for run in runs)


def at_one_threshold(mechanism: Any, at: Fraction | None) -> Any:
    """The mechanism that draws where one threshold holds for all: of joint splitting, that of the measure summed."""
    return mechanism if at is None else mechanism.resolved(at)


def possible_mechanisms(plan: Plan, table: PlannedTable, statistic: Drawable) -> tuple[Any, ...]:
    """Every mechanism that can serve a cell of a table, whichever cells it will have."""
    mechanism = shared(statistic.mechanism, table.shape.share)
    at = threshold_of(mechanism, policy_measure(statistic.measure, plan.schema)) if isinstance(statistic, Sum) else None
    if not isinstance(at, By):
        return (at_one_threshold(mechanism, at),)
    of_cell = cell_threshold(at, table.shape.groups)
    if not isinstance(of_cell, By):
        return (mechanism.resolved(of_cell),)
    thresholds = [number for _, number in of_cell.values] + ([of_cell.default] if of_cell.default else [])
    return tuple(mechanism.resolved(number) for number in dict.fromkeys(thresholds))


def plan_warnings(plan: Plan) -> tuple[str, ...]:
    """What the owner should know before running: groups that get the noise of another group's larger threshold."""
    found = []
    for query in plan.queries:
        for level in query.tables():
            for statistic in query.draws():
                if not isinstance(statistic, Sum):
                    continue
                at = threshold_of(statistic.mechanism, policy_measure(statistic.measure, plan.schema))
                if isinstance(at, By) and is_raised(at, level.groups):
                    where = " x ".join(level.names()) or "the grand total"
                    found.append(
                        f"{statistic.alias} by {where}: cells can mix groups of '{at.column.name}', so their noise follows the "
                        "largest threshold that can fall into them"
                    )
    return tuple(dict.fromkeys(found))
