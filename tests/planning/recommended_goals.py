"""Generated establishments by state and industry, sizes of the year before, three goals, and a plan made by hand for each."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import recordwise as rw
from build import employers
from recordwise.planning.search.goals import goal_tables, targets_in
from recordwise.planning.search.shares import FittedRatios
from recordwise.synthetic import establishments

CHANGE, NOISE = 0.25, 20.0
"""The spread of the logarithm of a cell's yearly change, and the noise of last year's table in employees."""
PAY_OF_AN_EMPLOYEE = 45
"""Thousand dollars: what is publicly known of pay is employment times this."""
LEVELS = [2, 3, 4]
HAND_MADE_SHARES = (("0.2", "0.3", "0.5"), ("1/3", "1/3", "1/3"))
"""More of the loss where cells are small, or the same for each level."""
HAND_MADE_FLOORS = (Fraction(1, 2), Fraction(1), Fraction(2))
"""Where noise stops to follow the size, in parts of the smallest total that counts."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wanted:
    """A goal for the statistics of a query."""

    name: str
    statistics: tuple[str, ...]
    within: str
    share: str
    at_least: Mapping[str, int]


GOALS = (
    Wanted(name="employment, 10 %", statistics=("emp",), within="0.1", share="0.9", at_least={"emp": 200}),
    Wanted(
        name="establishments and employment, 15 %",
        statistics=("n", "emp"),
        within="0.15",
        share="0.9",
        at_least={"n": 40, "emp": 400},
    ),
    Wanted(
        name="establishments, employment and payroll, 20 %",
        statistics=("n", "emp", "payann"),
        within="0.2",
        share="0.8",
        at_least={"n": 20, "emp": 200, "payann": 9000},
    ),
)


def session(rows: int) -> rw.Session:
    """The generator's establishments."""
    return employers(
        establishments(rows, seed=1),
        "county",
        "naics",
        unit="estab_id",
        measures={"emp": 1, "payann": 1},
        max_outside="accept",
    )


def keys(rows: int, seed: int) -> rw.Keys:
    """The states and four-digit industries of the establishments, with what was known of their sizes a year before."""
    table = establishments(rows, seed=1)
    state = pc.utf8_slice_codeunits(pc.cast(table["county"], pa.string()), 0, 2)
    code = pc.utf8_slice_codeunits(pc.cast(table["naics"], pa.string()), 0, 4)
    held = pa.table({"county2": state, "naics": code, "emp": table["emp"]}).group_by(["county2", "naics"])
    cells = held.aggregate([("emp", "sum"), ([], "count_all")]).sort_by(
        [("county2", "ascending"), ("naics", "ascending")]
    )
    rng = np.random.default_rng(seed)
    change = np.exp(rng.normal(0, CHANGE, cells.num_rows))
    emp = np.maximum(cells["emp_sum"].to_numpy() * change + rng.normal(0, NOISE, cells.num_rows), 0)
    count = np.maximum(cells["count_all"].to_numpy() * change + rng.normal(0, 2, cells.num_rows), 0)
    frame = pa.table(
        {
            "county2": cells["county2"],
            "naics": cells["naics"],
            "size_emp": np.round(emp),
            "size_n": np.round(count),
            "size_payann": np.round(emp * PAY_OF_AN_EMPLOYEE),
        }
    )
    size = {"emp": "size_emp", "count": "size_n", "payann": "size_payann"}
    return rw.Keys.of(frame, size=size, sized_on="public: tables of the year before, made up here")


def query(wanted: Wanted, listed: rw.Keys, mechanisms: Mapping[str, Any], share: Any = None) -> rw.Query:
    """State by industry at three levels, with published rests."""
    found = rw.query().group_by(rw.prefix("county", 2))
    found = found.levels(rw.prefix("naics", LEVELS), keys=listed, all_other="publish", share=share)
    for name in wanted.statistics:
        own = mechanisms[name]
        found = found.count(own, alias="n") if name == "n" else found.sum(name, own, alias=name)
    return found


def plain(wanted: Wanted, listed: rw.Keys) -> rw.Query:
    """The plan before anything is recommended."""
    start = {"n": rw.Gaussian(rho="0.1"), "emp": rw.UnitSplit(at=20, rho=1), "payann": rw.UnitSplit(at=900, rho=1)}
    return query(wanted, listed, start)


def by_hand(opened: rw.Session, wanted: Wanted, listed: rw.Keys, floor: Fraction, shares: tuple[str, ...]) -> rw.Query:
    """Noise in proportion to the size of a cell, from a floor on; stated shares of the loss for the levels; and for each statistic
    the most noise at which the fitted tables meet its goal."""
    start = {name: rw.Sized(rw.Gaussian(sigma="0.05"), floor=floor * least) for name, least in wanted.at_least.items()}
    made = query(wanted, listed, start, shares)
    view = opened.owner.view(data="synthetic")
    scope, targets = targets_in(made, goals(opened, wanted, made), opened.schema)
    tables = goal_tables(view, scope, targets, {})
    ratios = dict(zip(tables, FittedRatios(view, tables, complete=False).at(scope.plan.queries[0])))
    worst = {
        name: max(ratio for table, ratio in ratios.items() if table.asked.statistic.alias == name) for name in start
    }
    sigmas = {name: Fraction(int(1e6 * 0.05 / ratio), 10**6) for name, ratio in worst.items()}
    found = {name: rw.Sized(rw.Gaussian(sigma=sigma), floor=start[name].floor) for name, sigma in sigmas.items()}
    return query(wanted, listed, found, shares)


def goals(opened: rw.Session, wanted: Wanted, asked: rw.Query) -> Any:
    """The goal of each statistic."""
    least = dict(wanted.at_least)
    return rw.planning.plan_goals(opened, asked, within=wanted.within, share=wanted.share, at_least=least)
