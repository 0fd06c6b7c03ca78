"""Find what would cost less: another family of noise for every example of a plan, or a looser goal.

With no larger error in a small, a middle and a large cell; from public totals alone, no record is read.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from recordwise.errors import RecordwiseError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.text import figure, share_text
from recordwise.mechanisms.base import Mechanism
from recordwise.plan.plan import Plan, PlannedTable
from recordwise.plan.schema import policy_measure
from recordwise.plan.statistics import Drawable
from recordwise.plan.statistics.base import SUM
from recordwise.planning.losses import HARDLY, PARTS, Losses
from recordwise.planning.result import loss_figure
from recordwise.planning.search.fits import Calibrated, InfeasibleError, fit
from recordwise.planning.search.goals import amount, families, has_amount, two_digits

CLEARLY = 0.9
"""So much less, at least, must every example lose."""
ROUNDED = 1.001
"""Errors that differ by less are equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cheaper:
    """A mechanism with no larger error that costs every example record less."""

    variable: str
    now: str
    instead: str
    losses: Mapping[str, tuple[float, float]]
    """By example: what it loses now, and would lose."""

    def text(self) -> str:
        """In words."""
        told = ", ".join(
            f"{name} {loss_figure(then)} instead of {loss_figure(now)}" for name, (now, then) in self.losses.items()
        )
        return (
            f"{self.variable}: {self.instead} has no larger error than {self.now} and costs every example less: {told}."
        )


def cheaper_families(
    plan: Plan,
    totals: Callable[[PlannedTable, Any], FloatArray],
    examples: Mapping[str, Mapping[str, Any]],
    *,
    pure: bool = False,
) -> Iterator[Cheaper]:
    """Yield, for each sum whose noise follows no sizes, the family that costs all examples less, if there is one.

    Args:
        plan: The plan.
        totals: The totals of a small, a middle and a large cell of a table.
        examples: Example records by name; without any nothing is said.
        pure: Whether losses are in pure epsilon, as under a pure budget.
    """
    for number, query in enumerate(plan.queries):
        *others, finest = [each for each in plan.tables() if each.query == number]
        for part in query.draws() if examples and plan.selection(finest) is None else ():
            plain = part.contribution == SUM and not part.mechanism.is_sized and part.mechanism.to is None
            if plain and not policy_measure(str(part.of), plan.schema).signed:
                try:
                    found = _cheaper(
                        plan, finest, part, totals(finest, part), examples, several=bool(others), pure=pure
                    )
                except RecordwiseError:
                    # Thresholds that differ by group, or an example without the measure.
                    continue
                if found is not None:
                    yield found


def _cheaper(
    plan: Plan,
    table: PlannedTable,
    part: Drawable,
    totals: FloatArray,
    examples: Mapping[str, Mapping[str, Any]],
    *,
    several: bool,
    pure: bool,
) -> Cheaper | None:
    own, step, measure = (
        part.mechanism.at_share(table.shape.share),
        part.step(plan.schema),
        policy_measure(str(part.of), plan.schema),
    )

    def losses(mechanism: Mechanism) -> FloatArray:
        policy = mechanism.policy(measure).pure() if pure else mechanism.policy(measure)
        return np.array([float(policy.loss(record)) for record in examples.values()])

    given, now = own.variance_of(totals, step=step), losses(own)
    best: tuple[float, Mechanism, FloatArray] | None = None
    for family in families(offset=two_digits(float(totals[1]))).values():
        # Fat tails get fatter where a loss is split over levels.
        made = None if several and not has_amount(family) else _with_variance(family, given, totals, step)
        if made is None or (pure and made.policy(measure).pure_problem() is not None):
            continue
        then = losses(made)
        if np.all(then <= CLEARLY * now) and (best is None or np.prod(then) < best[0]):
            best = float(np.prod(then)), made, then
    if best is None:
        return None
    pairs = {name: (float(one), float(two)) for name, one, two in zip(examples, now, best[2])}
    return Cheaper(variable=part.alias, now=own.text(), instead=best[1].text(), losses=pairs)


def _with_variance(family: Mechanism, given: FloatArray, totals: FloatArray, step: Fraction) -> Mechanism | None:
    """Return a mechanism of a family whose variance is in no cell larger than the given one; None if there is none."""
    at = int(np.argmin(given))
    try:
        made = family.recalibrated(variance=Fraction(float(given[at])), at_total=Fraction(float(totals[at])))
        fits = bool(np.all(made.variance_of(totals, step=step) <= ROUNDED * given))
    except RecordwiseError:
        return None
    return made if fits else None


# What would have to give for a smaller loss.


GOOD = 1.0


def what_would_have_to_give(
    losses: Losses, calibrated: Sequence[Calibrated], costs: Mapping[str, float], *, sized: bool
) -> Iterator[str]:
    """Yield ways to reduce the largest losses to 1.

    A looser goal, fewer cells, sizes, fewer statistics.
    """
    part = next(each for each, _ in PARTS if losses.quantile(1 - each) > HARDLY)
    loss = losses.quantile(1 - part)
    factor = np.sqrt(loss / GOOD)
    widths = sorted({float(each.table.goal.within) for each in calibrated})
    wider = ", ".join(f"{figure(each * factor)} instead of {figure(each)}" for each in widths)
    yield f"A looser goal: errors {figure(factor)} times as large (within {wider}) bring that loss to about {figure(GOOD)}."
    fewer = _with_fewer_cells(calibrated)
    if fewer is not None and fewer > 1.05:
        yield f"Fewer cells: if only half of them had to meet the goal, the loss would be about {figure(fewer)} times smaller."
    if not sized:
        yield (
            "Sized noise: where something public is known about the size of each cell (Keys.of(..., size=...)), noise in "
            "proportion to it usually costs the least."
        )
    if len(costs) > 1:
        most, share = max(costs.items(), key=lambda each: each[1])[0], max(costs.values()) / sum(costs.values())
        yield f"Fewer statistics or levels: {most} alone takes {share_text(share, 0)} of it."


def _with_fewer_cells(calibrated: Sequence[Calibrated]) -> float | None:
    """Return the least loss reduction if half of the cells may miss."""
    found = []
    for each in calibrated:
        half = replace(each.table, may_miss=max(each.table.may_miss, len(each.table.totals) // 2))
        if not has_amount(each.mechanism):
            return None
        try:
            found.append((amount(fit(half, "", each.mechanism).mechanism) / _alone(each)) ** 2)
        except InfeasibleError:
            return None
    return min(found, default=None)


def _alone(each: Calibrated) -> float:
    """Return the noise that the table could have alone."""
    return amount(fit(each.table, "", each.mechanism).mechanism)
