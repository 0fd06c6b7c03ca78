"""Thresholds by thousands of groups: the work grows with the number of groups, not with its square."""

import cProfile
import pstats
from collections.abc import Callable
from functools import partial
from typing import Any

import duckdb
import numpy as np
import pytest

from recordwise.policy import Policy, among, by, split

MORE = 4


def thresholds(groups: int) -> dict[str, int]:
    return {f"c{number:05d}": 50 + number for number in range(groups)}


def by_county(groups: int) -> Policy:
    return split("0.1", {"emp": by("county", thresholds(groups), default=10)})


def records(groups: int) -> dict[str, Any]:
    rows = np.arange(1000)
    county = np.array([f"c{row % (groups + 3):05d}" for row in rows], dtype=object)
    return {"emp": (rows * 7) % 400, "county": county, "naics": np.array(["11", "22"] * 500, dtype=object)}


def calls(run: Callable[[], Any]) -> int:
    """How many functions are called: the same on every machine, however busy it is."""
    profile = cProfile.Profile()
    profile.runcall(run)
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


WORK: dict[str, Callable[[int, Policy], Any]] = {
    "build": lambda groups, policy: by_county(groups),
    "restrict": lambda groups, policy: policy.where(among("naics", ["11"])),
    "save and read": lambda groups, policy: Policy.from_json(policy.to_json()),
    "losses of a table": lambda groups, policy: policy.loss(records(groups)),
    "dominance": lambda groups, policy: (policy * 2).dominates(policy.where(among("naics", ["11"])), seconds=60),
}


@pytest.mark.parametrize("work", WORK)
@pytest.mark.costly
def test_the_work_grows_with_the_number_of_groups_and_not_with_its_square(work: str) -> None:
    few, many = 250, 250 * MORE
    run = WORK[work]
    # The first run also loads modules, and what was read once is known.
    counts = [calls(partial(run, groups, by_county_once[groups])) for groups in (few, few, many, many)]
    assert counts[3] <= 1.3 * MORE * counts[1]


by_county_once = {groups: by_county(groups) for groups in (250, 250 * MORE)}


def test_losses_with_many_groups_are_those_of_each_group_alone() -> None:
    policy, table = by_county(500), records(500)
    limits = thresholds(500)
    alone = [
        split("0.1", {"emp": limits.get(county, 10)}).loss({"emp": int(size)})
        for size, county in zip(table["emp"], table["county"])
    ]
    assert np.allclose(policy.loss(table), alone, rtol=1e-12, atol=0)


@pytest.mark.costly
def test_sql_of_many_groups_is_read_by_an_engine() -> None:
    policy, table = by_county(120), records(120)
    rows = ", ".join(f"({size}, '{county}')" for size, county in zip(table["emp"], table["county"]))
    found = duckdb.sql(f'SELECT {policy.to_sql()} AS loss FROM (VALUES {rows}) AS t("emp", "county")').fetchall()
    assert np.allclose([loss for (loss,) in found], policy.loss(table), rtol=1e-12, atol=0)
