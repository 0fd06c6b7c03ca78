"""Totals of a few records by hand: steps that are not 1, signs, missing values in one of two columns, bins, pieces, firms."""

from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import recordwise as rw
from build import exact_totals
from engines.plain_mechanism import Plain
from recordwise.engines import DuckDB
from recordwise.engines import engine as engines
from recordwise.mechanisms.quantile import Grid
from recordwise.plan import Column, Keys, Measure, Plan, Schema, Splitting, prefix
from recordwise.plan.query import query

M = Plain()
SCHEMA = Schema.of(
    unit="id",
    firm="firm",
    measures={"net": Measure.of("net", step="2.5", signed=True), "emp": 3},
    columns={
        "place": Column(name="place", null="category"),
        "size": Column(name="size", type="integer", null="category"),
    },
)
ROWS: dict[str, list[Any]] = {
    "id": [1, 2, 3, 4, 5, 6],
    "firm": ["f", "f", "g", "g", "h", "h"],
    "net": [2.5, -5.0, 0.0, 7.5, -2.5, 10.0],
    "emp": [0, 3, 6, 9, 12, 15],
    "place": ["a1", "a2", None, "b1", "b1", None],
    "size": [1, None, 1, None, 2, None],
}


@pytest.fixture(scope="module")
def engine() -> Any:
    with DuckDB(pa.table(ROWS), SCHEMA) as opened:
        yield opened


def totals(engine: Any, *queries: Any) -> list[list[list[int]]]:
    return [exact_totals(each) for each in engine.totals(Plan(schema=SCHEMA, queries=queries))]


@pytest.fixture(params=["in memory", "by the engine"])
def rolled(request: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of rolling up the finest cells."""
    if request.param == "by the engine":
        monkeypatch.setattr(engines, "MOST_CELLS", -1)
    return str(request.param)


def counted(engine: Any, *conditions: str) -> list[int]:
    return [found[0][0] for found in totals(engine, *(query().where(text).count(M) for text in conditions))]


@pytest.mark.parametrize(
    ("operator", "wanted"),
    # Of -5, -2.5, 0, 2.5, 7.5 and 10 against -2.5, -1, 0, 2.5 and 5.
    [("<", [1, 2, 2, 3, 4]), ("<=", [2, 2, 3, 4, 4]), (">", [4, 4, 3, 2, 2]), (">=", [5, 4, 4, 3, 2])],
)
def test_amounts_are_compared_in_their_units_on_and_between_steps(
    engine: Any, operator: str, wanted: list[int]
) -> None:
    assert counted(engine, *(f"net {operator} {each}" for each in ("-2.5", "-1", "0", "2.5", "5"))) == wanted


def test_amounts_equal_what_is_a_step_and_nothing_between(engine: Any) -> None:
    conditions = ("net = 2.5", "net = 2", "net <> 2", "net <> 2.5", "net IN (2.5, -5, 3)", "NOT net IN (3)")
    assert counted(engine, *conditions) == [1, 0, 6, 5, 2, 6]
    huge = 10**30
    far = (f"net < {huge}", f"net > {huge}", f"net > -{huge}", f"net = {huge}", f"net <> {huge}", f"size < {huge}")
    assert counted(engine, *far) == [6, 0, 6, 0, 6, 3]


def test_missing_values_satisfy_no_comparison_and_no_opposite(engine: Any) -> None:
    conditions = ("size = 1", "NOT size = 1", "size <> 1", "size IS NULL", "NOT size IS NULL", "size <> 1.5")
    assert counted(engine, *conditions) == [2, 1, 1, 3, 3, 3]
    both = ("size IS NULL OR place = 'b1'", "size IS NULL AND place = 'b1'", "place IN ('b1', 'a1')")
    assert counted(engine, *both) == [4, 1, 3]


def test_a_cell_with_one_missing_value_is_not_the_one_with_the_other(engine: Any, rolled: str) -> None:
    keys = Keys.of({"place": ["b1", "b1", None, None, "a2"], "size": [None, 2, 1, None, 1]})
    found = query().group_by("place", "size", keys=keys).sum("emp", M).count(M).count_distinct("firm", M)
    answer = engine.totals(Plan(schema=SCHEMA, queries=(found,)))[0]
    cells = list(zip(answer.cells["place"].to_pylist(), answer.cells["size"].to_pylist()))
    wanted = {
        ("b1", None): (3, 1, 1),
        ("b1", 2): (4, 1, 1),
        (None, 1): (2, 1, 1),
        (None, None): (5, 1, 1),
        ("a2", 1): (0, 0, 0),
    }
    assert dict(zip(cells, zip(*exact_totals(answer)))) == wanted, rolled


def test_sums_have_signs_and_two_levels_their_firms(engine: Any, rolled: str) -> None:
    asked = query().levels(prefix("place", [1, 2]), keys=Keys.of({"place": ["a1", "a2", "b1"]}))
    coarse, fine = totals(engine, asked.sum("net", M).count_distinct("firm", M))
    assert coarse == [[-1, 2], [1, 2]], rolled
    assert fine == [[1, -2, 2], [1, 1, 2]]
    some, every = asked.where("net > 0").sum("net", M), asked.sum("net", M)
    assert [each[0] for each in totals(engine, some, every)] == [[1, 3], [1, 0, 3], [-1, 2], [1, -2, 2]]


def test_contributions_are_clamped_on_both_sides_in_steps(engine: Any) -> None:
    class Five(Plain):
        to = Fraction(5)

    class Six(Plain):
        to = Fraction(6)

    (found,) = totals(engine, query().where("net <> 2.5").sum("net", Five()).sum("emp", Six()))
    # net in steps of 2.5 at most 2 either way: -2, 0, 2, -1, 2; emp in steps of 3 at most 2: 1, 2, 2, 2, 2.
    assert found == [[1], [9]]


def test_the_rest_of_a_coarser_cell_holds_who_is_in_no_listed_one(engine: Any, rolled: str) -> None:
    keys = Keys.of({"place": ["a1", "b2"]})
    asked = query().levels(prefix("place", [1, 2]), keys=keys, all_other="publish")
    coarse, fine = totals(engine, asked.sum("emp", M).count(M).count_distinct("firm", M))
    assert coarse == [[1, 7], [2, 2], [1, 2]], rolled
    assert sorted(zip(*fine)) == [(0, 0, 0), (0, 1, 1), (1, 1, 1), (7, 2, 2)]


# Bins.


@pytest.mark.parametrize(
    ("grid", "wanted"),
    [
        (Grid.linear(0, 15, bits=2), {0: 1, 1: 1, 2: 2, 3: 2}),
        (Grid.linear(0, 9, bits=2), {0: 1, 1: 1, 2: 1, 3: 3}),
        (Grid.linear(3, 12, bits=2), {0: 2, 1: 1, 2: 1, 3: 2}),
        (Grid.log(3, 24, bits=2), {0: 2, 1: 1, 2: 2, 3: 1}),
        (Grid.log(6, 12, bits=1), {0: 3, 1: 3}),
    ],
    ids=str,
)
def test_records_are_counted_at_the_first_point_at_or_above_them(
    engine: Any, grid: Grid, wanted: dict[int, int]
) -> None:
    """Of 0, 3, 6, 9, 12 and 15; what is above the last point belongs to it."""
    asked = query().quantile("emp", p="0.5", grid=grid, rho=1)
    (found,) = engine.totals(Plan(schema=SCHEMA, queries=(asked,)))
    ((_, bins),) = found.exact.reveal().bins.items()
    assert bins.position.tolist() == [0] * len(wanted)
    assert dict(zip(bins.point.tolist(), bins.held.tolist())) == wanted


def test_bins_are_counted_by_cell_and_under_a_condition(engine: Any) -> None:
    asked = query().where("emp > 0").group_by("place", keys=Keys.of({"place": ["b1", None, "zz"]}))
    (found,) = engine.totals(
        Plan(schema=SCHEMA, queries=(asked.quantile("emp", p="0.5", grid=Grid.linear(0, 9, bits=2), rho=1),))
    )
    ((_, bins),) = found.exact.reveal().bins.items()
    places = [found.cells["place"].to_pylist()[at] for at in bins.position.tolist()]
    assert sorted(zip(map(str, places), bins.point.tolist(), bins.held.tolist())) == [
        ("None", 2, 1),
        ("None", 3, 1),
        ("b1", 3, 2),
    ]


# Pieces.


def test_a_record_is_cut_by_the_measure_that_needs_most_pieces_and_keeps_its_sign(engine: Any) -> None:
    rows = engine.split_table(Splitting.of({"net": 5, "emp": 6}))
    found = rows.reveal().to_pylist()
    pieces: dict[int, list[tuple[int, int]]] = {}
    for row in found:
        pieces.setdefault(row["id"], []).append((row["net"], row["emp"]))
    assert pieces == {
        1: [(1, 0)],
        2: [(-2, 1)],
        3: [(0, 2)],
        4: [(2, 2), (1, 1)],
        5: [(-1, 2), (0, 2)],
        6: [(2, 2), (2, 2), (0, 1)],
    }


def test_a_measure_without_a_threshold_stays_on_the_first_piece(engine: Any) -> None:
    found = engine.split_table(Splitting.of({"emp": 6}), condition=query().where("emp > 9").condition).reveal()
    rows = list(zip(found["id"].to_pylist(), found["net"].to_pylist(), found["emp"].to_pylist()))
    assert rows == [(5, -1, 2), (5, 0, 2), (6, 4, 2), (6, 0, 2), (6, 0, 1)]
    assert found["place"].to_pylist() == ["b1", "b1", None, None, None]


def test_thresholds_by_group_apply_to_records_of_the_group(engine: Any) -> None:
    splitting = Splitting.of({"emp": rw.by("place", {"b1": 3}, default=15)})
    found = engine.split_table(splitting).reveal()
    counts = {unit: found["id"].to_pylist().count(unit) for unit in ROWS["id"]}
    assert counts == {1: 1, 2: 1, 3: 1, 4: 3, 5: 4, 6: 1}
