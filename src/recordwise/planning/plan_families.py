"""The families that the tables of a plan are fitted with: the plan's own mechanisms, and the usual ones for its measures."""

from collections.abc import Mapping, Sequence
from typing import Any

from recordwise.plan.plan import Plan
from recordwise.planning.candidates import families
from recordwise.planning.goals import Goal

USUAL_OFFSET = 100
OWN = "as in the plan"


def usual_families(plan: Plan, offset: Any = None) -> dict[str, Any]:
    """The usual families; the offset of transforms may be given for each measure of the plan."""
    if not isinstance(offset, Mapping):
        return families(offset=offset or USUAL_OFFSET)
    names = {each.planned_as for query in plan.queries for each in query.draws() if each.planned_as}
    by_measure = {name: families(offset=offset.get(name, USUAL_OFFSET)) for name in sorted(names)}
    return {kind: {name: own[kind] for name, own in by_measure.items()} for kind in families()}


def own_family(plan: Plan, goals: Sequence[Goal]) -> dict[str, Any]:
    """The plan's own mechanisms as one family, whose noise is set anew."""
    wanted = {goal.statistic for goal in goals}
    found = {each.alias: each.mechanism for query in plan.queries for each in query.draws() if each.alias in wanted}
    return {OWN: found}
