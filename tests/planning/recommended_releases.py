"""Three goals: the recommended plan, with sized noise and fits, really released many times, and plans made by hand.

Generated establishments by state and two-, three- and four-digit industry with published rests; sizes of cells: a year before,
off by a quarter and by noise. Goals are about the best linear fit of the three levels. Six plans by hand for each goal: noise in
proportion to the size, from half, once or twice the smallest total that counts on; more of the loss for small cells, or a third for
each level; the most noise that meets the goals.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from scipy.special import ndtr

import recordwise as rw
from planning.recommended_goals import HAND_MADE_FLOORS, HAND_MADE_SHARES, Wanted, by_hand, goals, keys, plain, session
from recordwise.noise import Seeded
from recordwise.planning.losses import policy_losses
from recordwise.planning.search.goals import GoalTable, goal_tables, targets_in

RUNS, ROWS, SEED = 200, 20_000, 7
MOST_ABOVE = 1.10
FALSE_ALARM_SDS = 5.0
PLANTED = 1.05
"""Noise that is so much larger than stated must be noticed."""


def losses(opened: rw.Session, queries: Sequence[rw.Query]) -> dict[str, float]:
    """What the records lose."""
    view = opened.owner.view(data="synthetic")
    rho = policy_losses(view, {"": opened.policy_of(*queries)})[""].rho
    return {"median": rho.quantile(0.5), "p99": rho.quantile(0.99), "largest": rho.maximum}


def released(
    opened: rw.Session, wanted: Wanted, queries: Sequence[rw.Query], runs: int, seed: int
) -> list[dict[str, Any]]:
    """For each table and statistic: how often counted cells are within the goal, beside what the published errors say."""
    view = opened.owner.view(data="synthetic")
    scope, targets = targets_in(queries, goals(opened, wanted, queries[0]), opened.schema)
    tables = goal_tables(view, scope, targets, {})
    held: list[list[Any]] = [[] for _ in tables]
    spread: list[Any] = [None] * len(tables)
    for run in range(runs):
        release = opened.run(*queries, rng=Seeded(seed + run)).consistent(method="ols")
        for at, each in enumerate(tables):
            name, data = each.asked.statistic.alias, release.tables[each.part.number].data
            value = np.asarray(data.column(f"{name}_best").to_numpy(), np.float64)[each.counted]
            spread[at] = np.asarray(data.column(f"{name}_best_sd").to_numpy(), np.float64)[each.counted]
            total = each.totals
            held[at].append(np.abs(value - total) <= float(wanted.within) * total)
    return [_row(wanted, each, np.array(own), sd) for each, own, sd in zip(tables, held, spread)]


def _row(wanted: Wanted, table: GoalTable, held: Any, sd: Any) -> dict[str, Any]:
    reach = float(wanted.within) * table.totals
    found, expected = held.mean(axis=1), float((2 * ndtr(reach / sd) - 1).mean())
    larger = float((2 * ndtr(reach / (PLANTED * sd)) - 1).mean())
    error = max(float(found.std(ddof=1) / np.sqrt(len(found))), 1e-12)
    return {
        "goal": wanted.name,
        "table": table.name,
        "cells that count": int(table.counted.sum()),
        "cells that meet the goal": float(np.mean(1.959964 * sd <= reach * (1 + 1e-9))),
        "cells within it, on average": float(found.mean()),
        "expected": expected,
        "standard errors apart": float((found.mean() - expected) / error),
        "with 5 % more noise": float((found.mean() - larger) / error),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What is recommended for a goal, and what the records lose under it and under plans made by hand."""

    name: str
    queries: tuple[rw.Query, ...]
    losses: dict[str, float]
    by_hand: dict[tuple[Any, ...], dict[str, float]]
    """By floor and shares."""


@cache
def compared(wanted: Wanted) -> Compared:
    """Both plans for a goal."""
    with session(ROWS) as opened:
        listed = keys(ROWS, SEED)
        asked = plain(wanted, listed)
        found = rw.planning.recommend(opened, goals(opened, wanted, asked), plan=asked, fitted=True, data="synthetic")
        made = {each: by_hand(opened, wanted, listed, *each) for each in product(HAND_MADE_FLOORS, HAND_MADE_SHARES)}
        return Compared(
            name=found.best.name,
            queries=found.queries(),
            losses=losses(opened, found.queries()),
            by_hand={each: losses(opened, [hand]) for each, hand in made.items()},
        )


def measured(wanted: Wanted, runs: int = RUNS) -> list[dict[str, Any]]:
    """What the releases of the recommended plan show."""
    with session(ROWS) as opened:
        return released(opened, wanted, compared(wanted).queries, runs, SEED)
