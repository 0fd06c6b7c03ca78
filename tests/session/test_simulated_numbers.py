"""Simulated releases: their exact numbers by hand, with clamps, signs, steps, quantiles and selected keys."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import recordwise as rw
from build import employers
from recordwise.mechanisms.quantile import Grid
from recordwise.noise import Seeded
from recordwise.plan.schema import Measure
from recordwise.session.simulated import Simulation

TABLE = {
    "id": [1, 2, 3, 4, 5, 6],
    "county": ["b", "a", "b", "a", "b", "c"],
    "emp": [7, 1, 100, 3, 7, 0],
    "pay": [10.0, 2.5, 50.0, 7.5, 2.5, 0.0],
    "net": [1.5, -2.0, -4.0, 0.5, 2.5, 0.0],
}
MEASURES = {"emp": 1, "pay": "2.5", "net": Measure.of("net", step="0.5", signed=True)}
NOISE = rw.Gaussian(sigma=2)
CLAMPED = rw.Clamped(to=10, rho=1)
BY = rw.query().group_by("county", keys={"county": ["a", "b", "d"]})


@pytest.fixture(scope="module")
def opened() -> Iterator[rw.Session]:
    with employers(TABLE, "county", measures=MEASURES) as session:
        yield session


@pytest.fixture
def simulated(opened: rw.Session) -> Callable[..., Simulation]:
    return opened.owner.view(data="synthetic").simulation


def numbers(found: dict[str, Any]) -> dict[str, list[float]]:
    return {name: each.tolist() for name, each in found.items()}


def test_sums_are_told_with_and_without_their_clamps(simulated: Any) -> None:
    (table,) = simulated(BY.sum("emp", CLAMPED).sum("pay", NOISE).count(NOISE, alias="n")).tables()
    assert numbers(table.kept) == {"sum_emp": [4, 24, 0], "sum_pay": [10, 62.5, 0], "n": [2, 3, 0]}
    assert numbers(table.exact) == {"sum_emp": [4, 114, 0], "sum_pay": [10, 62.5, 0], "n": [2, 3, 0]}
    assert table.cells.to_pydict() == {"county": ["a", "b", "d"]}


def test_each_query_finds_its_own_unclamped_sums_at_each_level(simulated: Any) -> None:
    plain = BY.count(NOISE, alias="n")
    levels = rw.query().levels((), "county", keys={"county": ["a", "b", "d"]})
    found = simulated(plain, levels.sum("emp", CLAMPED), plain, BY.sum("pay", rw.Clamped(to=5, rho=1))).tables()
    assert [numbers(each.kept) for each in found] == [
        {"n": [2, 3, 0]}, {"sum_emp": [28]}, {"sum_emp": [4, 24, 0]}, {"n": [2, 3, 0]}, {"sum_pay": [7.5, 12.5, 0]},
    ]  # fmt: skip
    assert [numbers(each.exact) for each in found] == [
        {"n": [2, 3, 0]}, {"sum_emp": [118]}, {"sum_emp": [4, 114, 0]}, {"n": [2, 3, 0]}, {"sum_pay": [10, 62.5, 0]},
    ]  # fmt: skip


def test_both_parts_of_a_signed_sum_are_one_number_in_its_own_units(simulated: Any) -> None:
    asked = BY.sum("net", NOISE).sum("net", rw.LogTransform(offset=9, sigma=1, signed=True), alias="parts")
    (table,) = simulated(asked).tables()
    assert numbers(table.kept) == {"sum_net": [-1.5, 0, 0], "parts": [-1.5, 0, 0]}


def test_averages_are_ratios_and_nothing_is_divided_by_nothing(simulated: Any) -> None:
    (table,) = simulated(BY.avg("pay", sum=NOISE, count=NOISE, alias="mean")).tables()
    np.testing.assert_array_equal(table.exact["mean"], [5, 62.5 / 3, np.nan])
    assert numbers({name: table.kept[name] for name in ("mean_sum", "mean_count")}) == {
        "mean_sum": [10, 62.5, 0],
        "mean_count": [2, 3, 0],
    }


def test_quantiles_are_those_of_the_records_and_of_the_grid(simulated: Any) -> None:
    """Points at 0, 25, 50 and 75; a value counts at the one that is nearest above."""
    asked = BY.quantile("pay", p="0.5", grid=Grid.linear(0, 75, bits=2), rho=1, alias="half")
    (table,) = simulated(asked.quantile("pay", p="0.9", grid=Grid.linear(0, 75, bits=2), rho=1, alias="most")).tables()
    np.testing.assert_array_equal(table.exact["half"], [2.5, 10, np.nan])
    np.testing.assert_array_equal(table.exact["most"], [7.5, 50, np.nan])
    np.testing.assert_array_equal(table.kept["half"], [25, 25, np.nan])
    np.testing.assert_array_equal(table.kept["most"], [25, 50, np.nan])


def test_quantiles_of_selected_keys_are_not_listed(simulated: Any) -> None:
    grid = Grid.linear(0, 75, bits=2)
    keys = rw.Keys.select(rho=1, delta="1e-3")
    (table,) = simulated(rw.query().group_by("county", keys=keys).quantile("pay", p="0.5", grid=grid, rho=1)).tables()
    assert (table.exact, table.kept) == ({}, {})


def test_contributions_are_in_the_order_of_cells_and_amounts(simulated: Any) -> None:
    made = simulated(BY.sum("pay", NOISE).sum("emp", NOISE))
    (table,) = made.plan.tables()
    found = made.contributions(table, "pay")
    assert found.position.tolist() == [0, 0, 1, 1, 1]
    assert found.amount.tolist() == [2.5, 7.5, 2.5, 10, 50]
    assert found.times.tolist() == [1, 1, 1, 1, 1]
    assert made.contributions(table, "emp").times.tolist() == [1, 1, 2, 1]


def test_selected_keys_have_exact_numbers_of_the_cells_that_hold_records(simulated: Any) -> None:
    keys = rw.Keys.select(rho=1, delta="1e-3")
    (table,) = simulated(rw.query().group_by("county", keys=keys).sum("emp", CLAMPED)).tables()
    kept = dict(zip(table.cells.column("county").to_pylist(), table.kept["sum_emp"].tolist()))
    exact = dict(zip(table.cells.column("county").to_pylist(), table.exact["sum_emp"].tolist()))
    assert kept == {"a": 4, "b": 24, "c": 0}
    assert exact == {"a": 4, "b": 114, "c": 0}


def test_a_grand_total_has_one_unclamped_number(simulated: Any) -> None:
    (table,) = simulated(rw.query().sum("emp", CLAMPED)).tables()
    assert numbers(table.exact) == {"sum_emp": [118]}
    assert numbers(table.kept) == {"sum_emp": [28]}


def test_equal_seeds_draw_equal_releases_that_are_not_private_and_different_ones_do_not(simulated: Any) -> None:
    made = simulated(BY.sum("emp", CLAMPED).count(NOISE, alias="n"))
    one, again, other = (made.draw(Seeded(seed)) for seed in (1, 1, 2))
    assert one.tables[0].data == again.tables[0].data
    assert one.digest == again.digest != other.digest
    assert not one.private
    assert one.head.length == 0
    assert one.published.confidence == 0.95


def test_intervals_of_a_simulation_have_its_confidence(simulated: Any, opened: rw.Session) -> None:
    plan = simulated(BY.count(NOISE, alias="n")).plan
    widths = {}
    for how in ({}, {"confidence": 0.95}, {"confidence": 0.5}):
        data = Simulation(opened._engine, plan, **how).draw(Seeded(1)).tables[0].data  # type: ignore[arg-type]
        widths[str(how)] = data.column("n_high")[0].as_py() - data.column("n")[0].as_py()
    assert list(widths.values()) == [4, 4, 1]


@pytest.mark.parametrize("seed", [1, 2])
def test_a_draw_is_the_clamped_total_plus_noise(simulated: Any, seed: int) -> None:
    made = simulated(BY.sum("emp", rw.Clamped(to=10, rho=100_000)))
    assert made.draw(Seeded(seed)).tables[0].data.column("sum_emp").to_pylist() == [4, 24, 0]


def test_selected_keys_are_drawn_afresh(simulated: Any) -> None:
    """Noise of a loss of 1000 a piece is next to none: keys of two records are kept, one of one record is not."""
    asked = rw.query().group_by("county", keys=rw.Keys.select(rho=1000, delta="1e-6")).count(NOISE, alias="n")
    made = simulated(asked).draw(Seeded(1)).tables[0]
    assert sorted(made.data.column("county").to_pylist()) == ["a", "b"]
    assert "n" in made.variables
