"""Noisy answers and their intervals, number by number: every statistic, over groups with noise of their own.

``PYTHONPATH=tests python tests/kept/kept_answers.py`` writes them. Coverage and laws are held in ``tests/mechanisms`` and
``tests/session``; kept, the numbers tell of a change too small for those.
"""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import recordwise as rw
from kept.leaves import leaves
from recordwise.mechanisms.base import NoisyCurve
from recordwise.mechanisms.quantile import Grid
from recordwise.noise import Seeded
from recordwise.plan import Plan
from recordwise.plan.plan import PlannedTable
from recordwise.plan.query import Query
from recordwise.plan.schema import Measure, Schema
from recordwise.plan.statistics import BinCounts, ExactTable
from recordwise.plan.statistics import base as answers
from recordwise.plan.statistics.base import Side
from recordwise.release.draw import draw_table, prepare_table, publish_table

KEPT = Path(__file__).with_suffix(".json")
COUNTIES = [f"{number:02}" for number in range(1, 13)]
SCHEMA = Schema.of(
    unit="id",
    firm="firm",
    measures={
        "emp": Measure.of("emp", bound=40_000),
        "pay": Measure.of("pay", step="0.5"),
        "net": Measure.of("net", step=2, signed=True),
    },
    columns={"county": "text"},
)
EMP = [0, 0, 1, 3, 9, 30, 100, 400, 2000, 9000, 50_000, 400_000]
GAUSS = rw.Gaussian(sigma=3)
BY_GROUP = rw.ByGroup(
    "county",
    {
        "01": rw.Gaussian(sigma=40),
        "05": rw.LogTransform(offset=30, sigma="0.3"),
        "09": rw.RootTransform(degree=2, offset=100, sigma=2),
        "12": rw.GeneralizedGaussian(shape=1, scale=200),
    },
    default=rw.LogTransform(offset=900, sigma="0.05"),
)


def by_county() -> Query:
    return rw.query().group_by("county", keys={"county": COUNTIES})


def asked() -> dict[str, Query]:
    """Additive noise, transforms, parts of both signs, groups of all of them; combinations, ratios, averages, quantiles."""
    grid = Grid.log(1, 4000, bits=4)
    plain = by_county().count(GAUSS, alias="n").sum("emp", rw.Gaussian(sigma=20)).sum("pay", rw.Gaussian(sigma=300))
    curved = by_county().count(rw.Gaussian(sigma="1.5")).sum("emp", rw.LogTransform(offset=200, sigma="0.1"))
    signed = by_county().sum("net", rw.LogTransform(offset=90, sigma="0.2", signed=True), alias="net")
    return {
        "plain": plain.combine("2 * sum_emp - sum_pay", alias="mixed")
        .combine("sum_emp + 3 * n", alias="whole")
        .ratio("sum_pay", "sum_emp", alias="each")
        .ratio("sum_emp - n", "sum_emp + n", alias="shared")
        .ratio("mixed", "2 * n", alias="named")
        .avg("emp", sum=rw.Gaussian(sigma=20))
        .avg("pay", sum=rw.Gaussian(sigma=50), count=rw.Gaussian(sigma=2), alias="own")
        .with_median("n", "sum_pay"),
        "curved": curved.sum("pay", rw.RootTransform(degree=2, offset=500, sigma=3))
        .ratio("sum_pay", "sum_emp")
        .ratio("3 * sum_pay", "2 * sum_emp", alias="scaled")
        .ratio("sum_emp", "count")
        .combine("sum_pay - 4 * sum_emp", alias="apart")
        .with_median("sum_emp"),
        "signed": signed.sum("emp", rw.Clamped(to=1000, rho="0.01")).combine("2 * net - sum_emp", alias="both"),
        "groups": by_county().count(GAUSS).sum("emp", BY_GROUP).sum("pay", rw.UnitSplit(at=600, rho="0.2"))
        .ratio("sum_emp", "count").ratio("sum_pay", "sum_emp").avg("emp", sum=BY_GROUP),
        "quantiles": by_county().quantile("emp", p="0.5", grid=grid, rho=1).quantile("emp", p="0.9", grid=grid, rho=1)
        .quantile("pay", p="0.25", grid=Grid.linear(0, 80_000, bits=3), rho="0.2").count_distinct("firm", GAUSS),
    }  # fmt: skip


def exact_of(table: PlannedTable) -> ExactTable:
    """The same amounts in every plan: what a total is decides which of them it gets."""
    size = np.array(EMP, dtype=np.int64)
    chosen = {"CountUnits()": size // 7, "CountFirms()": size // 9}
    amounts = {"emp": size, "pay": 70 * size + 5, "net": 11 * size}
    totals = {}
    for each in table.totals:
        values = chosen.get(repr(each), amounts.get(getattr(each, "measure", ""), size))
        negative = getattr(each, "part", None) == "negative"
        cap = getattr(each, "at_most", None)
        totals[each] = np.minimum(values, 20 * cap) if cap else values[::-1].copy() if negative else values
    place, point = np.repeat(np.arange(12), 3), np.tile([0, 3, 6], 12)
    held = BinCounts(position=place, point=point, held=np.arange(36) ** 2 % 50)
    return ExactTable(cells=len(size), totals=totals, bins=dict.fromkeys(table.bins, held))  # type: ignore[arg-type]


def of_columns() -> Iterator[tuple[str, Any]]:
    """Every published column of every statistic, at two confidences."""
    for name, query in asked().items():
        plan = Plan(schema=SCHEMA, queries=(query,))
        for number, table in enumerate(plan.tables()):
            for confidence in (0.9, 0.6):
                prepared = prepare_table(plan, table, plan.cells(table), confidence=confidence)
                for column in draw_table(prepared, exact_of(table), Seeded(number + 1))():
                    for part, values in column.columns().items():
                        yield f"{name}, {number}, {confidence}, {part}", leaves(values.to_pylist())
                    yield f"{name}, {number}, {confidence}, {column.alias}, flag", str(column.flag)[:12]


def of_selections() -> Iterator[tuple[str, Any]]:
    """Cells that noise lists, among those found and those of a public domain, with their bins."""
    grid = Grid.log(1, 4000, bits=4)
    domain = {"county": [*COUNTIES[3:], "77", "78", "79"]}
    for name, keys in {
        "found": rw.Keys.select(rho="0.05", delta="1e-3", pieces={"emp": 50}),
        "rows": rw.Keys.select(rho="0.05", delta="1e-3"),
        "domain": rw.Keys.select_from(domain, rho="0.01", threshold=9),
        "all": rw.Keys.select_from(domain, rho="0.01", threshold=-99),
    }.items():
        query = rw.query().group_by("county", keys=keys).sum("emp", rw.Gaussian(sigma=9))
        plan = Plan(schema=SCHEMA, queries=(query.quantile("emp", p="0.5", grid=grid, rho=1),))
        (table,) = plan.tables()
        cells = pa.table({"county": COUNTIES})
        for confidence in (0.9, 0.6):
            made = publish_table(plan, table, cells, exact_of(table), None, Seeded(5), confidence=confidence)()
            yield f"{name}, {confidence}", [made.name, list(made.keys), list(made.variables)]
            for column in made.data.column_names:
                yield f"{name}, {confidence}, {column}", leaves(made.data[column].to_pylist())


def side(value: list[float], half: list[float], reach: list[float], **more: Any) -> Side:
    middle, width = np.array(value), np.array(half)
    return Side(value=middle, low=middle - width, high=middle + width, reach=np.array(reach), **more)


def of_ratios() -> Iterator[tuple[str, Any]]:
    """Intervals where the denominator is known well, hardly and exactly, where answers are shared, and where scales bend."""
    nan = float("nan")
    top = [30.0, -30.0, 0.0, 5.0, 1e7, 12.0, 7.0, -2.0]
    bottom = [100.0, 40.0, 9.0, 2.0, 30.0, 11.0, 14.0, -3.0]
    for name, (half, reach) in {
        "near": (2.0, 2.0),
        "far": (6.0, 5.0),
        "other": (4.0, nan),
        "known": (0.0, 0.0),
    }.items():
        for which, (half2, reach2) in {"near": (1.0, 1.0), "other": (3.0, nan), "known": (0.0, 0.0)}.items():
            one, two = side(top, [half] * 8, [reach] * 8), side(bottom, [half2] * 8, [reach2] * 8)
            for shared in (0.0, 1.5):
                low, high = answers.ratio_interval(one, two, least=0.5, shared=shared)
                yield f"{name}, {which}, {shared}", leaves([low, high])
    at_edge = side([8.0, 8.0], [4.0, 4.0], [4.0, 4.0])
    yield "steepest", leaves(answers.ratio_interval(at_edge, side([8.0, 8.001], [5.0, 5.0], [4.0, 4.0]), least=1.0))
    yield "reach", [answers.gaussian_reach(Fraction(7, 2), Fraction(1, 2), confidence=each) for each in (0.5, 0.95)]
    lows = [-12.3456, 0.0, 3.14159, 1e20, -1e-9, 2.0, 5e-324]
    highs = [-12.1, 1e-7, 4.0, 3e20, 1e-9, 2.0, 1.0]
    yield "rounded", leaves(answers._round_outward(np.array(lows), np.array(highs)))
    with np.errstate(over="ignore", invalid="ignore"):
        for bend, other, zero in (
            (0.02, 0.0, -5.0),
            (0.1, 0.3, 0.0),
            (0.0, 0.05, 1.0),
            (0.0, 0.0, 0.0),
            (0.9, 0.1, 0.0),
        ):
            first = curve([3.0, 5.0, 9.0, 2.0], bend, zero)
            second = curve([4.0, 6.5, 2.0, 1.2], other, zero)
            for confidence in (0.9, 0.5):
                found = answers.curved_interval(first, second, confidence=confidence)
                yield f"curved, {bend}, {other}, {confidence}", leaves(list(found))
                one = side([20.0] * 4, [3.0] * 4, [nan] * 4, curve=first)
                two = side([50.0] * 4, [9.0] * 4, [nan] * 4, curve=second)
                yield (
                    f"bent, {bend}, {other}, {confidence}",
                    leaves(answers.ratio_interval(one, two, least=1.0, confidence=confidence)),
                )
    bends = np.array([0.0, 0.001, 0.002, 0.0021, 0.05, 0.5999, 0.6, 0.6001])
    yield "radii", leaves([answers.radii(bends, confidence) for confidence in (0.5, 0.9, 0.99, 0.999)])


def curve(points: list[float], bend: float, zero: float) -> NoisyCurve:
    here = np.array(points)
    return NoisyCurve(
        point=here,
        sigma=np.full(4, 0.3),
        half=np.full(4, 0.01),
        zero=np.full(4, zero),
        bend=np.full(4, bend),
        back=lambda at: np.expm1(at) if bend else at,
    )


SUBJECTS = {"columns": of_columns, "selections": of_selections, "ratios": of_ratios}


def main() -> None:
    from kept.kept_rooms import written

    KEPT.write_text(written({subject: dict(ask()) for subject, ask in SUBJECTS.items()}), encoding="utf-8")


if __name__ == "__main__":
    main()
