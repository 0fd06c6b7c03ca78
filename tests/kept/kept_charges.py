"""What plans of many shapes charge: thresholds and mechanisms by groups that tables know, know in part, or do not know.

``PYTHONPATH=tests python tests/kept/kept_charges.py`` writes it. Losses are held against divergences in ``tests/session`` and
``tests/policy``; kept over a grid of shapes, they tell of a rule that one shape does not show.
"""

import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import recordwise as rw
from build import industries, places
from kept.kept_guarantees import digest, told
from kept.leaves import leaves
from recordwise.mechanisms.quantile import Grid
from recordwise.plan import Case, Group, Plan
from recordwise.plan.cost import (
    cell_threshold,
    cells_by_threshold,
    firm_policy,
    is_raised,
    lattice_policy,
    plan_policy,
    value_policy,
)
from recordwise.plan.describe import plan_json, query_names, release_identity, schema_json, used_schema
from recordwise.plan.expressions import Compare, Field
from recordwise.plan.query import Query
from recordwise.plan.schema import Column, Measure, Schema
from recordwise.policy.columns import ConditionColumn
from recordwise.policy.constructors import by

KEPT = Path(__file__).with_suffix(".json")
SCHEMA = Schema.of(
    unit="id",
    firm="firm",
    measures={
        "emp": Measure.of("emp", bound=5000),
        "pay": Measure.of("pay", step="0.5"),
        "net": Measure.of("net", step=2, signed=True),
        "rest": Measure.of("rest", derive="pay - 15 * emp"),
    },
    columns={
        "county": "text",
        "naics": "text",
        "size": Column(name="size", type="integer", null="category"),
        "open": "boolean",
        "since": "date",
    },
    hierarchies=[places(), industries()],
)
RECORDS: list[dict[str, Any]] = [
    {"emp": 0, "pay": 0.5, "net": -2, "county": "01001", "naics": "311", "size": None, "open": True, "since": "2020-05-06"},
    {"emp": 7, "pay": 140.0, "net": 60, "county": "02013", "naics": "3121", "size": 4, "open": False, "since": "1999-12-31"},
    {"emp": 300, "pay": 9000.5, "net": -700, "county": "13001", "naics": "111", "size": 1, "open": True, "since": "2021-01-01"},
    {"emp": 51, "pay": 30.0, "net": 0, "county": "99999", "naics": "999", "size": 4, "open": True, "since": "2020-03-01"},
]  # fmt: skip
COUNTIES, CODES = ["01001", "0103", "02013", "13001"], ["311", "3121", "332", "111"]
STATES, REGIONS, SECTORS = ["01", "02", "13"], ["South", "West"], ["31-33", "11"]
GRID = Grid.log(1, 1000, bits=4)
SIZES = {"county": COUNTIES, "people": [40, 900, 20_000, 3]}
SIZED = rw.Keys.of(SIZES, size={"emp": "people", "count": "people"}, sized_on="public: a list")


def shapes() -> dict[str, Query]:
    start = rw.query()
    codes, crossed = rw.Keys.of({"naics": CODES}), rw.Keys.product(region=REGIONS, naics=CODES)
    return {
        "total": start,
        "county": start.group_by("county", keys={"county": COUNTIES}),
        "naics": start.group_by("naics", keys=codes),
        "one digit": start.group_by(rw.prefix("naics", 1), keys=codes),
        "two digits": start.group_by(rw.prefix("naics", 2), keys=codes),
        "three digits": start.group_by(rw.prefix("naics", 3), keys=codes),
        "state": start.group_by("state", keys={"state": STATES}),
        "sector": start.group_by("sector", keys={"sector": SECTORS}),
        "region and digits": start.levels("region").levels(rw.prefix("naics", [1, 2]), keys=crossed),
        "levels": start.levels((), "state", "county", share=["1/2", "1/3", "1/6"], keys=[{"state": STATES}, {"county": COUNTIES}]),
        "shares": start.levels((), "sector", keys={"sector": SECTORS}).with_shares("1/5", "4/5"),
        "rests": start.levels((), rw.prefix("naics", [1, 2]), keys=codes, all_other="publish"),
        "condition": start.where("emp > 5 AND state <> '02' OR size IS NULL").group_by("county", keys={"county": COUNTIES}),
        "case": start.where("NOT open = TRUE").group_by(
            Group("class", Case(((Compare(Field("emp"), "<", 20), "small"),), "large")), keys={"class": ["small", "large"]}
        ),
        "part": start.where("EXTRACT(YEAR FROM since) >= 2000").group_by(rw.year("since"), keys={"since_year": [2020, 2021]}),
        "selected": start.group_by("county", "size", keys=rw.Keys.select(rho="0.5", delta="1e-6", pieces={"emp": 50, "pay": 9})),
        "listed": start.group_by("size", keys=rw.Keys.select_from({"size": [1, 2, None]}, rho="0.25", threshold=7)),
        "sized": start.group_by("county", keys=SIZED),
    }  # fmt: skip


def statistics() -> dict[str, Any]:
    """From a shape to a query."""
    digits = by(ConditionColumn("naics", 2), {"31": 20, "33": 5}, 9)
    plain, parts = rw.Gaussian(sigma=3), rw.LogTransform(offset=9, sigma=1, signed=True)
    sized, laplace = rw.Sized(rw.Gaussian(sigma="0.2"), floor=10), rw.GeneralizedGaussian(shape=1, scale=2)
    return {
        "counts": lambda q: q.count(rw.Gaussian(sigma=3)).count_distinct("firm", rw.Gaussian(rho="0.1")),
        "sums": lambda q: q.sum("emp", plain).sum("net", rw.Gaussian(rho="0.3", at=40)).sum("rest", rw.Gaussian(sigma=70)),
        "clamped": lambda q: q.sum("emp", rw.Clamped(to=30, rho=1)).sum("net", rw.Clamped(to=40, rho="0.5")),
        "split": lambda q: q.sum("emp", rw.UnitSplit(at=50, rho="0.2")).sum("pay", rw.UnitSplit(at={"emp": 20, "pay": 9}, rho=1)),
        "by digits": lambda q: q.sum("emp", rw.UnitSplit(at=digits, rho="0.2")),
        "by code": lambda q: q.sum("emp", rw.UnitSplit(at=by("naics", {"311": 20, "332": 5}), rho="0.2")),
        "by state": lambda q: q.sum("emp", rw.UnitSplit(at=by("state", {"01": 20, "02": 5}, 7), rho="0.2")),
        "by county": lambda q: q.sum("emp", rw.UnitSplit(at=by("county", {"01001": 20, "02013": 50}, 7), rho="0.2")),
        "curved": lambda q: q.sum("emp", rw.LogTransform(offset=30, sigma="0.2")).sum("net", parts),
        "fat": lambda q: q.sum("pay", rw.GeneralizedGaussian(shape="0.5", scale=30)).count(laplace),
        "groups": lambda q: q.sum("emp", rw.ByGroup("naics", {"311": rw.Gaussian(sigma=3)}, default=rw.Gaussian(sigma=7))),
        "groups of states": lambda q: q.sum("emp", rw.ByGroup("state", {"01": plain, "02": rw.UnitSplit(at=5, rho=1)})),
        "sized": lambda q: q.sum("emp", rw.Sized(rw.Gaussian(sigma="0.1"), floor=100)).count(sized),
        "computed": lambda q: q.count(plain).avg("emp", sum=rw.Gaussian(sigma=9)).sum("pay", plain).ratio("pay", "count"),
        "quantiles": lambda q: q.quantile("emp", p="0.5", grid=GRID, rho="0.3").quantile("emp", p="0.9", grid=GRID, rho="0.3"),
    }  # fmt: skip


def losses(policy: Any) -> list[Any]:
    return leaves([[told(policy.loss, each), told(policy.delta, each)] for each in RECORDS])


def of_plan(plan: Plan) -> dict[str, Any]:
    policy = plan_policy(plan)
    lattice, values = lattice_policy(plan), value_policy(plan)
    firms = firm_policy(plan)
    pair = {name: [each[name] for each in RECORDS[:2]] for name in RECORDS[0]}
    return {
        "losses": losses(policy),
        "in papers": losses(plan_policy(plan, tight=False)),
        "policy": digest(json.dumps(policy.to_json())),
        "firms": leaves(told(firms.loss, pair)),
        "lattice": "none" if lattice is None else digest(json.dumps(lattice.to_json())),
        "values": "none" if values is None else [len(values.numbers), leaves(dict(values.bounds))],
        "described": digest(json.dumps(plan_json(plan))),
        "identity": release_identity(plan, [], policy, None).digest[:14],
        "names": [query_names(plan), *leaves(schema_json(used_schema(plan)))],
    }  # fmt: skip


def of_charges(shape: str) -> Iterator[tuple[str, Any]]:
    """Every statistic in one shape."""
    query = shapes()[shape]
    for name, add in statistics().items():
        made = told(lambda add=add: Plan(schema=SCHEMA, queries=(add(query),)))
        yield name, "refused" if made == "refused" else told(of_plan, made)


THRESHOLDS = {
    "digits": by(ConditionColumn("naics", 2), {"31": 20, "33": 5}, 9),
    "digits alone": by(ConditionColumn("naics", 2), {"31": 20, "33": 5}),
    "codes": by("naics", {"311": 20, "332": 5, "3121": 30}, 9),
    "states": by("state", {"01": 20, "02": 50}, 7),
    "regions": by("region", {"South": 3, "West": 4}),
    "counties": by("county", {"01001": 20, "02013": 50}, 7),
    "sizes": by("size", {1: 20, 4: 50}, 7),
}


def of_thresholds() -> Iterator[tuple[str, Any]]:
    """The threshold of each cell, where its groups tell it and where the largest must serve."""
    for shape, query in shapes().items():
        plan = told(lambda query=query: Plan(schema=SCHEMA, queries=(query.count(rw.Gaussian(sigma=1)),)))
        if plan == "refused" or shape in ("selected", "listed"):
            continue
        for number, table in enumerate(plan.tables()):
            for name, at in THRESHOLDS.items():
                groups = table.shape.groups
                found = cell_threshold(at, groups, SCHEMA.hierarchies)
                runs = (
                    told(cells_by_threshold, found, groups, plan.cells(table), SCHEMA.hierarchies)
                    if table.rest is None
                    else "refused"
                )
                held = "refused" if runs == "refused" else [[str(run.at), run.rows.tolist()] for run in runs]
                shown = (
                    [str(found)]
                    if isinstance(found, Fraction)
                    else [repr(found.column), *leaves(list(found.values)), str(found.default)]
                )
                yield f"{shape}, {number}, {name}", [*shown, str(is_raised(at, groups, SCHEMA.hierarchies)), held]


SUBJECTS: dict[str, Callable[[], Iterator[tuple[str, Any]]]] = {
    **{f"charges, {shape}": partial(of_charges, shape) for shape in shapes()},
    "thresholds": of_thresholds,
}


def main() -> None:
    from kept.kept_rooms import written

    KEPT.write_text(written({subject: dict(ask()) for subject, ask in SUBJECTS.items()}), encoding="utf-8")


if __name__ == "__main__":
    main()
