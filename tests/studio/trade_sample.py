"""A small trade file by formula, for tests of states, views and pages: nothing of it is computed from records."""

import math
from typing import Any

from recordwise.policy.meaning import power_gaussian
from recordwise.studio.trade import (
    Budget,
    Candidate,
    CellClass,
    Example,
    PlaceCell,
    Point,
    PointLosses,
    Position,
    RecordClass,
    SampledRecord,
    Trade,
    TradeBaseline,
    TradePlace,
    TradeStatistic,
)

WITHIN = (40.0, 30.0, 20.0, 15.0, 12.0, 9.0, 7.0, 5.0, 4.0)
SIZES = (10.0, 100.0, 1000.0, 10000.0)
CELLS = ("below 10", "10 to 99", "100 to 999", "1,000 or more")
STATES = (("01", "Alabama"), ("06", "California"), ("36", "New York"), ("48", "Texas"), ("56", "Wyoming"))
RECORDS = tuple((number // 5, float(4 ** (number // 5)) * (1 + number % 5)) for number in range(20))
EXAMPLES = (("corner shop", 4.0), ("restaurant", 20.0), ("factory", 400.0))


def sample_trade(**changed: Any) -> Trade:
    """Three statistics with three candidates, nine positions, and everything the page can show."""
    given: dict[str, Any] = {
        "version": 1,
        "title": "Establishments of five states",
        "plan": "plan.toml",
        "plan_digest": "0" * 64,
        "records_digest": "",
        "data": "synthetic",
        "generated": True,
        "about": "establishments",
        "statuses": ("reliable", "use with caution", "not reliable"),
        "limits": (0.165, 0.333),
        "positions": tuple(Position(goal=goal(0, each), within=each) for each in WITHIN),
        "today": 5,
        "main": 0,
        "record_classes": tuple(
            RecordClass(name=name, share=share) for name, share in zip(CELLS, (0.55, 0.35, 0.09, 0.01))
        ),
        "records": tuple(
            SampledRecord(size_class=own, weight=1.0 + at % 3, budget=30.0 + size)
            for at, (own, size) in enumerate(RECORDS)
        ),
        "examples": tuple(Example(name=name, record=f"emp {size:g}", budget=30.0 + size) for name, size in EXAMPLES),
        "firms": (Example(name="ten restaurants in one county", record="10 times emp 20", budget=None),),
        "chances": chances(),
        "statistics": tuple(statistic(number) for number in range(3)),
        "others": PointLosses(records=(0.01,) * 20, examples=(0.01,) * 3, firms=(0.1,), extremes=(0.01,)),
        "places": tuple(
            TradePlace(name=name, cells=tuple(place_cell(number, at, size) for at in range(6)))
            for number, (name, size) in enumerate((("Small", 40.0), ("Middle", 900.0), ("Large", 31000.0)))
        ),
        "draws": 3,
        "budget": Budget(words="of the dataset", noun="releases like this one", extremes=(40000.0,)),
        "baselines": (
            TradeBaseline(
                name="cell suppression",
                statistic=0,
                withheld=(0.9, 0.4, 0.1, 0.02),
                errors=(0.0, 0.0, 0.0, None),
                withheld_of_all=0.6,
            ),
        ),
    }
    return Trade(**(given | changed))


def goal(number: int, within: float) -> str:
    unit = ("employees", "establishments", "thousand dollars")[number]
    return f"county cells of {(100, 8, 4000)[number]:,} {unit} within {within:g}%"


def chances() -> tuple[float, ...]:
    """By bisection, the losses at which the power is 5.5 %, 6.5 %, ... 98.5 %."""
    found = []
    for percent in range(5, 99):
        low, high = 0.0, 40.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if power_gaussian(middle) < (percent + 0.5) / 100 else (low, middle)
        found.append(float(f"{high:.6g}"))
    return tuple(found)


def place_cell(place: int, at: int, size: float) -> PlaceCell:
    return PlaceCell(
        statistic=at % 3, name=("farming", "trade")[at // 3], total=float(round(size * (1 + at) / (1 + place)))
    )


def statistic(number: int) -> TradeStatistic:
    names = ("as in the plan", "Gaussian (as unit splitting)", "logarithm")
    return TradeStatistic(
        key=f"1:{('sum_emp', 'count', 'sum_payann')[number]}",
        label=("employees", "establishments", "annual payroll")[number],
        unit=("", "", "thousand dollars")[number],
        goals=tuple(goal(number, each) for each in WITHIN),
        sizes=tuple(CellClass(name=name, cells=4 ** (6 - at)) for at, name in enumerate(CELLS)),
        tables=(CellClass(name="state", cells=5), CellClass(name="county", cells=300)),
        states=tuple(CellClass(name=name, code=code, cells=60) for code, name in STATES),
        candidates=tuple(
            Candidate(
                name=name,
                about=f"{name}: a sentence about it.",
                points=tuple(point(number, kind, within) for within in WITHIN),
            )
            for kind, name in enumerate(names)
        ),
        today=names[0],
    )


def point(number: int, kind: int, within: float) -> Point:
    sigma = within / 1.96 * (1 + number / 7)
    growth = (2.0, 1.8, 0.3)[kind]

    def loss(size: float) -> float:
        return float(f"{size**growth / (2 * sigma**2):.6g}")

    def ratio(size: float, at: int = 0) -> float:
        return float(f"{sigma * (1 + at / 10) / (size if kind < 2 else size**0.5 * 12):.6g}")

    def shares(error: float) -> tuple[float, ...]:
        good = float(f"{math.exp(-3 * error):.4g}")
        return good, float(f"{(1 - good) / 2:.4g}"), float(f"{(1 - good) / 2:.4g}")

    return Point(
        mechanism=f"{('Gaussian', 'UnitSplit', 'LogTransform')[kind]}(sigma={sigma:.4g})",
        entry={"kind": "Gaussian", "sigma": f"{sigma:.4g}"},
        noise=float(f"{sigma:.6g}"),
        losses=PointLosses(
            records=tuple(loss(size) for _, size in RECORDS),
            examples=tuple(loss(size) for _, size in EXAMPLES),
            firms=(loss(200.0),),
            extremes=(loss(100000.0),),
        ),
        errors=tuple(ratio(size) for size in SIZES),
        statuses=tuple(shares(ratio(size)) for size in SIZES),
        by_table=(shares(ratio(1000.0)), shares(ratio(100.0))),
        by_state=tuple(shares(ratio(100.0, at))[0] for at in range(len(STATES))),
        all_cells=shares(ratio(100.0)),
        drawn=tuple(
            tuple(
                tuple(
                    float(round(place_cell(at, cell, size).total + sigma * math.sin(draw * 7 + at * 3 + cell)))
                    for cell in range(6)
                )
                for at, size in enumerate((40.0, 900.0, 31000.0))
            )
            for draw in range(3)
        ),
    )
