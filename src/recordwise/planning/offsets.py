"""The mechanism of a family that suits some tables best: for a transform, at the offset where the ranking record loses least."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from recordwise.errors import ParameterError
from recordwise.planning.candidates import best_offset
from recordwise.planning.fitness import FamilyFitness, Fitted, InfeasibleError, fit
from recordwise.planning.goals import GoalTable
from recordwise.planning.losses import Losses
from recordwise.planning.ranks import QUANTILES, loss_at
from recordwise.planning.shapes import COUNT
from recordwise.policy.measure import Measure
from recordwise.session.owner import OwnerView


def ranked(families: Sequence[FamilyFitness], rank_by: str) -> tuple[FamilyFitness, ...]:
    """Best first; ties in the chosen rank are broken by the others."""
    order = [rank_by, *(name for name in QUANTILES if name != rank_by)]
    return tuple(sorted(families, key=lambda each: [loss_at(each.losses.rho, name) for name in order]))


def ranking_size(view: OwnerView, measure: str, rank_by: str) -> float:
    """The record whose loss ranks the families: policies grow with the measure, so it has the loss of the given rank."""
    if measure == COUNT:
        return 1.0
    counted = view.value_counts([measure])
    if counted is None:
        raise ParameterError(parameter="measure", problem=f"'{measure}' has too many distinct values for planning")
    sizes = Losses.of(np.abs(np.asarray(counted.columns[measure], np.float64)), counted.records)
    declared = view.schema.measure(measure)
    return max(loss_at(sizes, rank_by), float(declared.step if declared else 1))


def best_mechanism(tables: Sequence[GoalTable], name: str, mechanism: Any, size: float) -> tuple[Fitted, ...]:
    """The family's mechanism with the most noise for each table; a transform has one offset for all of them."""
    goal = tables[0].goal
    if not hasattr(mechanism, "with_offset") or goal.measure == COUNT:
        return tuple(fit(table, name, mechanism) for table in tables)
    measure = Measure(goal.measure, Fraction(tables[0].step))

    def cost(offset: Fraction) -> float:
        try:
            found = [fit(table, name, mechanism.with_offset(offset)) for table in tables]
        except InfeasibleError:
            return float("inf")
        record = {measure.name: np.array([size])}
        return float(sum(each.mechanism.policy(measure).loss(record)[0] for each in found))

    total = max(table.deciding() for table in tables)
    chosen = mechanism.with_offset(best_offset(cost, total=total, step=tables[0].step))
    return tuple(fit(table, name, chosen) for table in tables)
