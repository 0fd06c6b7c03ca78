"""A release's parts as shown on its page and in release.json."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from recordwise.plan.describe import table_name
from recordwise.plan.parts import Part
from recordwise.plan.plan import Plan
from recordwise.plan.statistics.base import OTHER
from recordwise.policy.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePart:
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


def page_parts(plan: Plan) -> tuple[PagePart, ...]:
    """Return the parts of a plan as its page shows them."""
    return tuple(_page_part(part, table_name(plan, part.table)) for part in plan.parts())


def external_part(name: str, policy: Policy) -> PagePart:
    """An external mechanism on split rows."""
    return PagePart(table=name, statistic=name, kind=OTHER, noise="an external mechanism", policy=policy)


def _page_part(part: Part, table: str) -> PagePart:
    statistic, stays = part.statistic, part.stays
    if statistic is None:
        noise = "Gaussian noise on the number that decides whether a cell is listed"
        return PagePart(
            table=table, statistic=part.alias, kind=OTHER, noise=noise, policy=part.record_policy(), stays=stays
        )
    measure = None if statistic.of is None else part.schema.measure(statistic.of)
    return PagePart(
        table=table,
        statistic=part.alias,
        kind=statistic.contribution,
        noise=statistic.mechanism.words,
        policy=part.record_policy(),
        measure=measure.name if measure else None,
        step=statistic.step(part.schema),
        mechanisms=part.mechanisms,
        stays=stays,
        cut_down=any(mechanism.to is not None for mechanism in part.mechanisms),
    )
