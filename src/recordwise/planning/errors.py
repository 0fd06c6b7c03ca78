"""The size of a cell's error: each mechanism computes it from the law it draws from."""

from dataclasses import replace
from typing import Any

import numpy as np

from recordwise.errors import ParameterError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import Number
from recordwise.plan.cost import cell_mechanisms
from recordwise.plan.schema import Schema
from recordwise.planning.totals import PlanTotals
from recordwise.planning.whole import Choice, Scope


def ask(mechanism: Any, ability: str) -> Any:
    """A method of a mechanism that planning needs; an error if the mechanism does not have it."""
    found = getattr(mechanism, ability, None)
    if found is None:
        raise ParameterError(
            parameter="mechanism",
            problem=f"{type(mechanism).__name__} has no method '{ability}', which planning needs",
            advice="Derive it from GaussianNoise, FatTailedNoise or TransformedNoise.",
        )
    return found


def error_quantiles(
    mechanism: Any, totals: FloatArray, *, confidence: float = 0.95, step: Number = 1, kept: FloatArray | None = None
) -> FloatArray:
    """The bound on |value - total| that holds with probability ``confidence``, for each exact total, in the measure's units.

    ``kept`` are the totals of the clamped contributions, where the mechanism clamps.

    Args:
        mechanism: The mechanism.
        totals: The exact totals.
        confidence: The probability.
        step: The step of the measure's lattice, in its own units.
        kept: The totals of the clamped contributions, where the mechanism clamps.

    Returns:
        A number for each total.
    """
    found: FloatArray = ask(mechanism, "error_quantiles")(totals, confidence=confidence, step=step, kept=kept)
    return found


def cell_errors(
    scope: Scope, totals: PlanTotals, choice: Choice, name: str, schema: Schema, *, confidence: float
) -> FloatArray:
    """The bound on the error of each cell of a table, each by the mechanism it would really be served with: that of its level's
    share, its band and its threshold."""
    return by_served("error_quantiles", scope, totals, choice, name, schema, confidence=confidence)


def by_served(
    ability: str, scope: Scope, totals: PlanTotals, choice: Choice, name: str, schema: Schema, **given: Any
) -> FloatArray:
    """What the mechanism of each cell says of its total: ``error_quantiles``, or another ability that planning asks for."""
    statistic = replace(totals.asked.statistic, mechanism=choice(totals.asked))
    kept, step = totals.kept.get(name), statistic.step(schema)
    found = np.zeros(len(totals.total))
    for each in cell_mechanisms(scope.plan, totals.table, statistic, totals.cells):
        own = {} if kept is None else {"kept": kept[..., each.run.rows]}
        found[each.run.rows] = ask(each.mechanism, ability)(totals.total[each.run.rows], step=step, **own, **given)
    return found
