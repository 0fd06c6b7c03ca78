"""Generated records by hand: draws from public lists, usual sizes, shares of zeros, signs and missing values, rows of a unit."""

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import recordwise as rw
from recordwise.errors import ParameterError
from recordwise.plan.expressions import DatePart, Field, Prefix
from recordwise.plan.plan import Plan
from recordwise.plan.schema import Column, Schema
from recordwise.planning.simulate.generate import (
    CODES,
    MOST_RECORDS,
    Coded,
    Listed,
    Maker,
    _by_rule,
    _literals,
    _values,
    _weights,
    day_list,
    derived_size,
    mean_size,
    prefix_list,
    usual_rows,
    usual_sizes,
    write_records,
)

A, B = Field("a"), Field("b")


def listed(weights: list[float], **columns: list[Any]) -> Listed:
    return Listed({Field(name): Coded.of(pa.array(each)) for name, each in columns.items()}, np.array(weights, float))


def column(coded: Coded) -> list[Any]:
    return coded.column().to_pylist()


# Draws from lists.


def test_values_are_drawn_by_their_weights() -> None:
    own = listed([1.0, 2.0, 1.0], a=["x", "y", "z"])
    found = own.drawn({}, np.array([0.0, 0.25, 0.26, 0.75, 0.76, 1.0]))
    assert column(found[A]) == ["x", "x", "y", "y", "z", "z"]
    assert own.drawn(found, np.array([0.5] * 6)) == {}


def test_unknown_columns_are_drawn_among_the_rows_that_agree_with_the_known_ones() -> None:
    own = listed([1.0, 3.0, 1.0, 1.0], a=["x", "x", "y", None], b=["1", "2", "3", "4"])
    known = {A: Coded.of(pa.array(["x", "x", "x", "y", None, "q"]))}
    found = own.drawn(known, np.array([0.0, 0.24, 0.26, 0.9, 0.5, 0.9]))
    # A value that is not listed falls back to a draw from all rows.
    assert column(found[B]) == ["1", "1", "2", "3", "4", "4"]
    assert set(found) == {B}


def test_two_known_columns_must_both_agree() -> None:
    own = listed([1.0] * 4, a=["x", "x", "y", "y"], b=["1", "2", "1", "2"], c=["p", "q", "r", "s"])
    known = {A: Coded.of(pa.array(["x", "y", "y", "x"])), B: Coded.of(pa.array(["2", "1", "2", "9"]))}
    found = own.drawn(known, np.array([0.1, 0.9, 0.1, 0.99]))
    assert column(found[Field("c")]) == ["q", "r", "s", "s"]


def test_a_list_is_touched_where_it_knows_more_about_what_is_known() -> None:
    own = listed([1.0], a=["x"], b=["1"])
    one = Coded.of(pa.array(["x"]))
    assert not own.touches({})
    assert own.touches({A: one})
    assert not own.touches({A: one, B: one})
    assert not own.touches({Field("c"): one})


def test_weights_are_public_sizes_or_ranks_to_a_power() -> None:
    assert _weights(3, np.array([5.0, 0.0, 2.0]), 1).tolist() == [5.0, 0.0, 2.0]
    for sizes in (None, np.zeros(4)):
        found = np.sort(_weights(4, sizes, 1))[::-1]
        np.testing.assert_allclose(found, [1.0, 2**-0.7, 3**-0.7, 4**-0.7])


def test_codes_of_prefixes_are_the_listed_ones_and_those_that_only_a_prefix_names() -> None:
    two, one = Prefix("c", 2), Prefix("c", 1)
    whole = Listed({Field("c"): Coded.of(pa.array(["111", "121"]))}, np.ones(2))
    short = Listed({two: Coded.of(pa.array(["11", "31"])), one: Coded.of(pa.array(["1", "9"]))}, np.ones(2))
    found = prefix_list("c", [one, two], [whole, short])
    assert column(found.columns[Field("c")]) == ["111", "121", "31", "9"]
    assert column(found.columns[two]) == ["11", "12", "31", "9"]
    assert column(found.columns[one]) == ["1", "1", "3", "9"]
    assert found.weights.tolist() == [1.0] * 4


def test_days_are_those_of_the_years_that_keys_name() -> None:
    year, month = DatePart("day", "year"), DatePart("day", "month")
    keys = Listed({year: Coded.of(pa.array([2020, 2021, None]))}, np.ones(3))
    found = day_list("day", [year, month], [keys])
    days = column(found.columns[Field("day")])
    assert (len(days), str(days[0]), str(days[-1])) == (366 + 365, "2020-01-01", "2021-12-31")
    assert column(found.columns[month])[31] == 2
    usual = column(day_list("day", [month], []).columns[Field("day")])
    assert (str(usual[0]), str(usual[-1])) == ("2015-01-01", "2024-12-31")
    far = Listed({year: Coded.of(pa.array([1800, 2000]))}, np.ones(2))
    assert str(column(day_list("day", [year], [far]).columns[Field("day")])[0]) == "1880-01-01"


# Usual sizes.


def plan_of(query: Any, **schema: Any) -> Plan:
    given: dict[str, Any] = {"unit": "id", "measures": {"emp": 1}, "columns": {}} | schema
    return Plan(schema=Schema.of(**given), queries=(query,))


def sized(**columns: list[float]) -> Any:
    return rw.Keys.of(
        {"county": ["a", "b"], **columns}, size={name: name for name in columns}, sized_on="public: a list"
    )


def test_a_usual_record_is_the_public_total_per_record() -> None:
    keys = sized(emp=[100.0, 300.0], count=[10.0, 30.0])
    asked = rw.query().group_by("county", keys=keys).count(rw.Gaussian(rho=1)).sum("emp", rw.Gaussian(sigma=1))
    plan = plan_of(asked, columns={"county": "text"})
    assert mean_size(plan, "emp") == 10.0
    assert mean_size(plan, "pay") is None
    assert usual_sizes(plan, {"big": {"emp": 5000}}) == {"emp": 10.0}
    empty = plan_of(
        rw.query().group_by("county", keys=sized(emp=[0.0, 0.0], count=[1.0, 1.0])).count(rw.Gaussian(rho=1)),
        columns={"county": "text"},
    )
    assert mean_size(empty, "emp") is None


def test_otherwise_it_is_the_lower_half_of_the_examples_a_fifth_of_a_threshold_or_follows_from_the_bound() -> None:
    asked = rw.query().sum("emp", rw.UnitSplit(at=50, rho="0.1"))
    plan = plan_of(asked)
    made = {"a": {"emp": 4}, "b": {"emp": -9}, "c": {"emp": 100}, "d": {"emp": 0}, "e": {"other": 1}}
    # Of three that are not 0 the first two: their geometric mean.
    assert usual_sizes(plan, made)["emp"] == pytest.approx(6.0)
    assert usual_sizes(plan, {"a": {"emp": 4}, "b": {"emp": 100}})["emp"] == pytest.approx(4.0)
    assert usual_sizes(plan, {})["emp"] == 10.0
    tiny = plan_of(rw.query().sum("emp", rw.UnitSplit(at=2, rho="0.1")))
    assert usual_sizes(tiny, {})["emp"] == 1.0
    clamped = plan_of(rw.query().sum("emp", rw.Clamped(to=200, rho="0.1")))
    assert usual_sizes(clamped, {})["emp"] == 40.0
    offset = plan_of(rw.query().sum("emp", rw.LogTransform(offset=300, sigma="0.1")))
    assert usual_sizes(offset, {})["emp"] == 60.0
    nothing = rw.query().sum("emp", rw.Gaussian(sigma=3))
    assert usual_sizes(plan_of(nothing), {})["emp"] == 10.0
    bounded = plan_of(nothing, measures={"emp": rw.Measure.of("emp", step=4, bound=400)})
    assert usual_sizes(bounded, {})["emp"] == 40.0
    assert usual_sizes(bounded, {"a": {"emp": 1000}})["emp"] == 400.0
    steps = plan_of(nothing, measures={"emp": 5})
    assert usual_sizes(steps, {})["emp"] == 50.0


def test_a_derived_measure_has_the_size_that_follows_from_others() -> None:
    net = rw.Measure.of("net", derive="2 * emp - pay")
    plan = plan_of(rw.query().count(rw.Gaussian(rho=1)), measures={"emp": 1, "pay": 1, "net": net})
    usual = {"emp": 10.0, "pay": 50.0}
    assert derived_size("emp", plan, usual) == 10.0
    assert derived_size("net", plan, usual) == 30.0
    assert derived_size("net", plan, {"emp": 10.0, "pay": 20.0}) == 1.0
    assert derived_size("count", plan, usual) == 1.0


# Records.


WIDE = {"emp": 1, "net": rw.Measure.of("net", signed=True), "gap": rw.Measure.of("gap", null="zero", step="0.5")}


def test_zeros_signs_and_missing_values_are_as_frequent_as_said() -> None:
    """Of 40,000 records: 5 %, 30 % and 2 %, each within 5 standard deviations, which chance leaves once in 1.7 million times."""
    plan = plan_of(rw.query().sum("emp", rw.UnitSplit(at=5000, rho="0.1")), measures=WIDE)
    rows, made = 40_000, {"one": {"net": 1000}}
    table = Maker(plan, made, rows, 3).table(0, rows)
    emp, net = table.column("emp").to_numpy(), table.column("net").to_numpy()
    assert table.column("id").to_numpy().tolist() != list(range(rows))
    assert len(set(table.column("id").to_pylist())) == rows

    def near(share: float, expected: float) -> bool:
        return abs(share - expected) < 5 * (expected * (1 - expected) / rows) ** 0.5

    assert near(float(np.mean(emp == 0)), 0.05)
    # Signs are drawn beside zeros.
    assert near(float(np.mean(net < 0)), 0.3 * float(np.mean(net != 0)))
    assert near(table.column("gap").null_count / rows, 0.02)
    assert set((table.column("gap").drop_null().to_numpy() * 2 % 1).tolist()) == {0.0}
    # Lognormal around 1,000 with a spread of 1.5, and alike in two measures.
    held = (emp > 0) & (net != 0)
    logs = np.log(emp[held]), np.log(np.abs(net[held]))
    assert np.median(logs[0]) == pytest.approx(np.log(1000), abs=0.05)
    assert np.std(logs[0]) == pytest.approx(1.5, abs=0.05)
    assert np.corrcoef(*logs)[0, 1] == pytest.approx(0.9, abs=0.03)
    assert table.slice(100, 50).equals(Maker(plan, made, rows, 3).table(100, 50))
    assert not table.slice(0, 50).equals(Maker(plan, made, rows, 4).table(0, 50))


def test_a_measure_never_exceeds_its_bound() -> None:
    measures = {"emp": rw.Measure.of("emp", step=2, bound=30)}
    plan = plan_of(rw.query().sum("emp", rw.Gaussian(sigma=1)), measures=measures)
    emp = Maker(plan, {"a": {"emp": 25}}, 500, 1).table(0, 500).column("emp").to_numpy()
    assert emp.max() == 30
    assert set((emp % 2).tolist()) == {0}


def test_steps_of_three_halves_are_stored_in_units() -> None:
    plan = plan_of(rw.query().sum("emp", rw.Gaussian(sigma=1)), measures={"emp": rw.Measure.of("emp", step="3/2")})
    (measure,) = plan.schema.record_measures()
    assert Maker(plan, {}, 10, 1)._stored(measure, np.array([2, 5]), 0).to_pylist() == [3.0, 7.5]


def test_rows_of_a_unit_collapse_to_its_record() -> None:
    steps, place = np.array([7, 7, 7, -7, -7, 0, 9]), np.array([0, 1, 2, 0, 1, 0, 0])
    times = np.array([3, 3, 3, 2, 2, 1, 1])
    found = _by_rule("sum", steps, place, times, np.full(7, 0.5))
    assert found.tolist() == [3, 2, 2, -4, -3, 0, 9]
    found = _by_rule("max", steps, place, times, np.full(7, 0.5))
    assert found.tolist() == [7, 3, 3, -7, -7, 0, 9]
    assert _by_rule("any", steps, place, times, np.full(7, 0.5)).tolist() == steps.tolist()


def test_columns_that_no_list_names_have_the_constants_they_are_compared_with_and_others() -> None:
    asked = rw.query().where("kind = 'x' and size = 7 and flag is not null").count(rw.Gaussian(rho=1))
    columns = {"kind": "text", "size": "integer", "flag": "boolean", "free": "text"}
    plan = plan_of(asked, columns=columns)
    known = {each.name: each for each in plan.schema.columns}
    kinds = _values(known["kind"], plan).to_pylist()
    assert (len(kinds), kinds.count("x")) == (2 * len(CODES), len(CODES))
    assert _values(known["size"], plan).to_pylist() == [7, 0, 1, 2, 3, 4, 5, 6, 8, 9]
    assert _values(known["flag"], plan).to_pylist() == [True, False]
    assert _values(known["free"], plan).to_pylist() == list(CODES)
    assert list(_literals("kind", plan)) == ["x"]
    assert list(_literals("size", plan)) == [Fraction(7)]
    assert list(_literals("flag", plan)) == []


def test_a_category_that_may_be_missing_is_so_in_two_of_a_hundred_records() -> None:
    columns = {"kind": Column(name="kind", type="text", null="category")}
    plan = plan_of(rw.query().count(rw.Gaussian(rho=1)), columns=columns)
    maker = Maker(plan, {}, 10, 1)
    (kind,) = plan.schema.columns
    chance = np.array([0.0, 0.0199, 0.02, 0.5, 0.999])
    found = column(maker._alone(kind, chance))
    assert [each is None for each in found] == [True, True, False, False, False]
    assert found[3] == CODES[100]


def test_ten_records_are_made_for_each_cell_from_ten_thousand_to_a_million() -> None:
    def rows(cells: int) -> int:
        keys = rw.Keys.of({"county": [f"{at:06d}" for at in range(cells)]})
        return usual_rows(
            plan_of(rw.query().group_by("county", keys=keys).count(rw.Gaussian(rho=1)), columns={"county": "text"})
        )

    assert [rows(each) for each in (1, 1000, 1001, 2500)] == [10_000, 10_000, 10_010, 25_000]
    assert usual_rows(plan_of(rw.query().count(rw.Gaussian(rho=1)))) == 10_000


@pytest.mark.parametrize(
    "rows, accepted", [(0, False), (1, True), (True, False), (1.5, False), (MOST_RECORDS + 1, False)]
)
def test_the_number_of_records_to_write_is_a_whole_one_from_1_on(tmp_path: Any, rows: Any, accepted: bool) -> None:
    file: Any = SimpleNamespace(plan=plan_of(rw.query().sum("emp", rw.Gaussian(sigma=1))), examples={})
    if accepted:
        assert write_records(file, tmp_path / "made.parquet", rows) == rows
        return
    with pytest.raises(ParameterError, match="must be a whole number from 1 to"):
        write_records(file, tmp_path / "made.parquet", rows)
    assert not (tmp_path / "made.parquet").exists()
