"""Establishments over the years: entry, exit, growth that is heavier for small ones, and moves to another county."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

COUNTIES = tuple(f"{number:03}" for number in range(1, 61))
ENTER, LEAVE, MOVE = 0.09, 0.08, 0.01
GROWTH = 0.25
SMALL = 20
TAIL = 4
"""Degrees of freedom of the growth of small establishments: its tails are heavier than the normal's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Yearly changes: shares that enter, leave and move, and the sd of the growth of log employment."""

    enter: float = ENTER
    leave: float = LEAVE
    move: float = MOVE
    growth: float = GROWTH


USUAL = Rates()


def first_year(size: int, chance: np.random.Generator) -> dict[str, Any]:
    """Establishments with skewed employment, more of them in some counties than in others."""
    weights = chance.pareto(1.5, len(COUNTIES)) + 0.2
    return {
        "id": np.arange(size),
        "county": chance.choice(len(COUNTIES), size, p=weights / weights.sum()),
        "size": np.exp(chance.normal(1.4, 1.3, size)),
    }


def next_year(units: dict[str, Any], chance: np.random.Generator, rates: Rates = USUAL) -> dict[str, Any]:
    """One year later: some leave, the others grow and some of them move, and new ones enter."""
    stays = chance.random(len(units["id"])) >= rates.leave
    size, county = units["size"][stays], units["county"][stays]
    shocks = np.where(
        size < SMALL, chance.standard_t(TAIL, len(size)) / np.sqrt(TAIL / (TAIL - 2)), chance.normal(size=len(size))
    )
    size = np.maximum(size * np.exp(rates.growth * shocks), 0.5)
    moves = chance.random(len(size)) < rates.move
    county = np.where(moves, chance.integers(0, len(COUNTIES), len(size)), county)
    entered = first_year(int(rates.enter * len(stays)), chance)
    return {
        "id": np.concatenate([units["id"][stays], units["id"].max() + 1 + entered["id"]]),
        "county": np.concatenate([county, entered["county"]]),
        "size": np.concatenate([size, entered["size"]]),
    }


def table_of(units: dict[str, Any]) -> pa.Table:
    """The records of one year."""
    codes = np.array(COUNTIES)[units["county"]]
    return pa.table({"id": units["id"], "county": codes, "emp": np.ceil(units["size"]).astype(np.int64)})
