"""The parts of a release: each statistic of each table with its policy and its noise. They contain public facts only."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from recordwise.mechanisms.base import clamping_bound, noise_words
from recordwise.plan.cost import possible_mechanisms
from recordwise.plan.expressions import Case, leaves, operand_name
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.plan.statistics import Drawable
from recordwise.plan.statistics.base import OTHER
from recordwise.policy.firms import FirmPolicy
from recordwise.policy.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One statistic of one table, or the selection of a table's keys."""

    table: str
    statistic: str
    kind: str
    """``count``: the record changes it by 1 or not at all; ``sum``: by its value; ``other``: neither rule applies."""
    noise: str
    """A description in words."""
    policy: Policy
    measure: str | None = None
    step: Fraction = Fraction(1)
    mechanisms: tuple[Any, ...] = ()
    """The mechanisms of its cells, or their saved form; their variance gives the size of the noise at a total."""
    stays: bool = True
    """Whether a record keeps its cell whatever its measures are."""
    cut_down: bool = False
    """Whether large records were only partly counted."""


def plan_parts(plan: Plan, names: Sequence[str], firms: FirmPolicy) -> tuple[Part, ...]:
    """The parts of a plan, table by table; ``names`` are those of its tables, in order, and ``firms`` has what each part costs."""
    found: list[Part] = []
    costs = iter([part.whole() for part in firms.parts])
    for table, name in zip(plan.tables(), names, strict=True):
        stays = not _looks_at_measures(plan, table)
        selection = plan.selection(table)
        if selection is not None:
            told = "Gaussian noise on the number that decides whether a cell is listed"
            found.append(
                Part(table=name, statistic=selection.alias, kind=OTHER, noise=told, policy=next(costs), stays=stays)
            )
        for statistic in plan.queries[table.query].draws():
            found.append(_part(plan, table, name, statistic, policy=next(costs), stays=stays))
    return tuple(found)


def external_part(name: str, policy: Policy) -> Part:
    """An external mechanism on split rows."""
    return Part(table=name, statistic=name, kind=OTHER, noise="an external mechanism", policy=policy)


def _part(plan: Plan, table: PlannedTable, name: str, statistic: Drawable, *, policy: Policy, stays: bool) -> Part:
    measure = None if statistic.of is None else plan.schema.measure(statistic.of)
    served = possible_mechanisms(plan, table, statistic)
    return Part(
        table=name,
        statistic=statistic.alias,
        kind=statistic.contribution,
        noise=noise_words(statistic.mechanism),
        policy=policy,
        measure=measure.name if measure else None,
        step=statistic.step(plan.schema),
        mechanisms=served,
        stays=stays,
        cut_down=any(clamping_bound(mechanism) is not None for mechanism in served),
    )


def _looks_at_measures(plan: Plan, table: PlannedTable) -> bool:
    """Whether a condition or a group of the table depends on a measure, so that a different value may mean a different cell."""
    measures = set(plan.schema.measure_names())
    predicates = [] if table.condition is None else [table.condition]
    names: set[str] = set()
    for group in table.shape.groups:
        if isinstance(group.expression, Case):
            predicates += [test for test, _ in group.expression.branches]
        else:
            names.add(operand_name(group.expression))
    names |= {operand_name(leaf.operand) for predicate in predicates for leaf in leaves(predicate)}
    return bool(measures & names)
