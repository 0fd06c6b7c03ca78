"""Says in words whom a loss hardly protects, and what would have to give for a smaller one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from recordwise.exact.text import figure, share_text
from recordwise.planning.amounts import amount, has_amount
from recordwise.planning.fitness import Fitted, InfeasibleError, fit
from recordwise.planning.losses import Losses
from recordwise.policy.meaning import power_gaussian

HARDLY = 5.0
"""Above this loss a membership test is nearly always right."""
GOOD = 1.0
PARTS = ((0.5, "Half"), (0.25, "A quarter"), (0.1, "A tenth"))


def hardly_protected(losses: Losses) -> str | None:
    """Which part of the records a plan hardly protects; None if fewer than a tenth."""
    for part, word in PARTS:
        if losses.quantile(1 - part) > HARDLY:
            detected = share_text(power_gaussian(HARDLY), 0)
            return (
                f"{word} of the records lose more than {figure(HARDLY)}: hardly protected. Under Gaussian noise a membership test "
                f"with a 5% false-positive rate detects such a record with a probability of more than {detected}."
            )
    return None


def what_would_have_to_give(
    losses: Losses, fitted: Sequence[Fitted], costs: Mapping[str, float], *, sized: bool
) -> Iterator[str]:
    """How the loss of those who are hardly protected would come down to 1: a looser goal, fewer cells, sizes, fewer statistics."""
    part = next(each for each, _ in PARTS if losses.quantile(1 - each) > HARDLY)
    loss = losses.quantile(1 - part)
    factor = np.sqrt(loss / GOOD)
    widths = sorted({float(each.table.goal.within) for each in fitted})
    wider = ", ".join(f"{figure(each * factor)} instead of {figure(each)}" for each in widths)
    yield f"A looser goal: errors {figure(factor)} times as large (within {wider}) bring that loss to about {figure(GOOD)}."
    fewer = _with_fewer_cells(fitted)
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


def _with_fewer_cells(fitted: Sequence[Fitted]) -> float | None:
    """By how much the loss falls where it falls least, if half of the cells of each table may miss the goal."""
    found = []
    for each in fitted:
        half = replace(each.table, may_miss=max(each.table.may_miss, len(each.table.totals) // 2))
        if not has_amount(each.mechanism):
            return None
        try:
            found.append((amount(fit(half, "", each.mechanism).mechanism) / _alone(each)) ** 2)
        except InfeasibleError:
            return None
    return min(found, default=None)


def _alone(each: Fitted) -> float:
    """The noise that the table could have by itself, with the cells that must meet the goal now."""
    return amount(fit(each.table, "", each.mechanism).mechanism)
