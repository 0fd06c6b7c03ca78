"""Rounding by hand: what counts as whole, strips of tables, shares of totals, flows between sets, and the nearest whole table."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from recordwise.errors import ParameterError, SolverError
from recordwise.postprocess import Workload, controlled_rounding, save_records, to_integer_records, to_weighted_records
from recordwise.postprocess.rounding import (
    Nesting,
    Sets,
    _Stage,
    apportion,
    balance,
    bounds,
    bounds_of,
    columns_of,
    disjoint_cells,
    nearly_whole,
    round_tables,
    sum_by_index,
    two_nestings,
    verify,
    whole_and_remainder,
)

TABLE = Workload.marginals((2, 3), [(), (0,), (1,), (0, 1)])


def test_a_number_counts_as_whole_within_the_error_of_a_fit() -> None:
    """A millionth, and a part of 1e-10 of large numbers."""
    cases = {3.0: True, 3 + 0.9e-6: True, 3 - 0.9e-6: True, 3 + 1.1e-6: False, 3 - 1.1e-6: False, 3.5: False}
    cases |= {1e6 + 90e-6: True, 1e6 + 110e-6: False, -1e6 - 90e-6: True, -2.5: False}
    values = np.array(list(cases))
    assert nearly_whole(values).tolist() == list(cases.values())
    low, high = bounds_of(np.array([3 + 0.9e-6, 3 - 0.9e-6, 3.2, 2.9, -1.5, 0.0]))
    assert (low.tolist(), high.tolist()) == ([3, 3, 3, 2, -2, 0], [3, 3, 4, 3, -1, 0])
    assert [each.dtype for each in bounds(np.array([1.5]))] == [np.int64, np.int64]
    whole, rest = whole_and_remainder(np.array([2.75, 3 - 0.9e-6, 3 + 0.9e-6, 0.0]))
    assert whole.tolist() == [2, 3, 3, 0]
    assert rest == pytest.approx([0.75, 0, 0, 0], abs=1e-6)
    assert rest.min() == 0


def test_sums_by_place_leave_out_the_root() -> None:
    assert sum_by_index(np.array([5, 7, 11, 13]), np.array([2, -1, 0, 2]), 4).tolist() == [11, 0, 18, 0]


@pytest.mark.parametrize("seed", range(6))
def test_a_rounded_table_is_the_nearest_of_all_that_keep_the_sums(seed: int) -> None:
    """All 64 ways to round six cells up or down are tried."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 3, 6)
    counts = controlled_rounding(TABLE, x)
    allowed = []
    for ups in product((0, 1), repeat=6):
        whole = np.floor(x) + ups
        if np.all(np.abs(TABLE.answer(whole) - TABLE.answer(x)) < 1):
            allowed.append(np.sum((whole - x) ** 2))
    assert np.sum((counts - x) ** 2) == pytest.approx(min(allowed))


def test_tables_and_groups_that_cannot_be_rounded_are_refused() -> None:
    for cells in (5, 7):
        with pytest.raises(ParameterError, match=f"must have 6 cells, not {cells}"):
            controlled_rounding(TABLE, np.ones(cells))
    first, second = two_nestings(TABLE)
    assert {group.name for group in (*first, *second)} == {"sum", "0", "1", "0*1"}
    assert {"0", "1"} not in ({group.name for group in first}, {group.name for group in second})
    half = np.full(6, 0.5)
    verify(TABLE, np.array([1, 0, 1, 0, 1, 0]), half)
    for wrong in ([1, 1, 1, 0, 0, 0], [1, 0, 1, 0, 1, 1], [-1, 1, 1, 1, 0, 1], [1, 0, 0, 0, 0, 0]):
        with pytest.raises(SolverError, match="its vertex is not whole"):
            verify(TABLE, np.array(wrong), half)


def test_domains_are_products_of_values_or_listed_row_by_row() -> None:
    found = columns_of({"a": "xy", "b": [1, 2, 3]}, 6)
    assert [(name, [values[k] for k in places]) for name, (values, places) in found.items()] == [
        ("a", list("xxxyyy")),
        ("b", [1, 2, 3, 1, 2, 3]),
    ]
    rows = columns_of({"a": "xy", "b": [1, 2]}, 2)
    assert [[values[k] for k in places] for values, places in rows.values()] == [list("xy"), [1, 2]]
    # Three values of one column are a product of one.
    assert columns_of({"a": "xyz"}, 3)["a"][1].tolist() == [0, 1, 2]
    for wrong, cells in (({"a": "xy", "b": [1, 2, 3]}, 5), ({"a": "xy", "b": [1]}, 3)):
        with pytest.raises(ParameterError, match=f"combinations, the table {cells} cells"):
            columns_of(wrong, cells)
    for named in ({}, {"a": "x", "weight": "y"}):
        with pytest.raises(ParameterError, match="must name at least one column"):
            columns_of(named, 1)


def test_records_of_a_table_are_its_positive_cells_or_as_many_as_each_has() -> None:
    domain = {"a": ["x", "y"], "b": [1, 2, 3]}
    weighted = to_weighted_records([0.0, 1e-9, 0, 2, 0, 0.5], domain).to_pydict()
    assert weighted == {"a": ["x", "y", "y"], "b": [2, 1, 3], "weight": [1e-9, 2, 0.5]}
    whole = to_integer_records(TABLE, [0.0, 2, 0, 1, 0, 0], domain).to_pydict()
    assert whole == {"a": ["x", "x", "y"], "b": [2, 2, 1]}
    for wrong, problem in (([-1e-9], "has negative cells"), ([np.inf], "finite cells"), ([[1.0]], "finite cells")):
        with pytest.raises(ParameterError, match=problem):
            to_weighted_records(wrong, {"a": ["x"]})
    assert to_weighted_records([0.0], {"a": ["x"]}).num_rows == 0


@pytest.mark.parametrize("ending", ["csv", "CSV"])
def test_texts_that_a_spreadsheet_would_run_are_written_as_parquet_only(tmp_path: Path, ending: str) -> None:
    for text in ("=1+1", "@x", "+1", "-1"):
        records = pa.table({"n": [1, -2], "text": ["plain", text]})
        with pytest.raises(ParameterError, match="would run some values of 'text' as formulas"):
            save_records(records, tmp_path / f"r.{ending}")
        save_records(records, tmp_path / "r.parquet")
    save_records(pa.table({"n": [1, -2], "text": ["plain", "1=1"]}), tmp_path / f"r.{ending}")
    assert (tmp_path / f"r.{ending}").read_text().splitlines()[1] == '1,"plain"'


# Shares of totals.


def test_what_is_missing_from_a_total_goes_to_the_largest_remainders() -> None:
    """Total 5 of 1.6, 1.3 and 2.1; total 2 of 0.5, 0.5 and 1.0, the earlier first; 2.6 by itself."""
    values = [np.array([1.6, 1.3, 0.5]), np.array([2.1, 0.5, 2.6, 1.0])]
    parents = [np.array([0, 0, 1]), np.array([0, 1, -1, 1])]
    found = apportion(values, parents, np.array([5, 2]))
    assert [each.tolist() for each in found] == [[2, 1, 1], [2, 0, 3, 1]]
    assert [each.tolist() for each in apportion(values, parents, np.array([6, 3]))] == [[2, 2, 1], [2, 1, 3, 1]]


@pytest.mark.parametrize(
    ("total", "whole"),
    [(0, [1, 0, -1]), (3, [1, 0, 2]), (4, [1, 0, 3]), (5, [1, 1, 3]), (6, [1, 1, 4]), (7, [1, 1, 5]), (9, [1, 1, 7])],
)
def test_totals_that_no_rounding_up_or_down_reaches_are_settled_by_the_largest_value(
    total: int, whole: list[int]
) -> None:
    found = apportion([np.array([1.0, 0.4, 3.2])], [np.array([0, 0, 0])], np.array([total]))[0]
    assert found.tolist() == whole


def test_a_total_without_values_stays_what_it_is() -> None:
    assert apportion([np.array([1.5])], [np.array([1])], np.array([4, 2]))[0].tolist() == [2]


# Tables that nest.


def nested(**above: Any) -> dict[int, dict[int, Any]]:
    return {int(name[1:]): {k: np.array(up) for k, up in ups.items()} for name, ups in above.items()}


CHAIN = Nesting(sizes=(4, 2, 1), above=nested(t0={1: [0, 0, 1, 1], 2: [0, 0, 0, 0]}, t1={2: [0, 0]}))
CROSS = Nesting(
    sizes=(4, 2, 2, 1),
    above=nested(t0={1: [0, 0, 1, 1], 2: [0, 1, 0, 1], 3: [0] * 4}, t1={3: [0, 0]}, t2={3: [0, 0]}),
)


def test_tables_that_nest_in_each_other_are_one_strip_and_crossing_ones_are_two() -> None:
    assert CHAIN.chain(0) == [0, 1, 2]
    assert CHAIN.chain(0, {2}) == [0, 2]
    assert CHAIN.strips() == [[0, 1, 2]]
    assert [k for k, _ in CHAIN.below(2)] == [0, 1]
    strips = CROSS.strips()
    assert strips[0][0] == 0
    assert sorted(table for strip in strips for table in strip) == [0, 1, 2, 3]
    assert len(strips) == 2


def test_the_rest_of_a_cell_is_what_no_finer_cell_has() -> None:
    fits = [np.array([1.0, 2, 3, 4]), np.array([5.0, 9]), np.array([20.0])]
    found = disjoint_cells(fits, CHAIN)
    assert {k: each.tolist() for k, each in found.items()} == {0: [1, 2, 3, 4], 1: [2, 2], 2: [6]}
    open_chain = Nesting(sizes=(2, 1), above=nested(t0={1: [0, -1]}))
    assert disjoint_cells([np.array([1.0, 2]), np.array([5.0])], open_chain)[1].tolist() == [4]


def test_each_cell_lies_in_the_finest_table_of_a_chain_that_has_it() -> None:
    nesting = Nesting(sizes=(3, 2, 1), above=nested(t0={1: [1, -1, -1], 2: [0, 0, -1]}, t1={2: [0, 0]}))
    stage = _Stage([np.zeros(3), np.array([1.5, 2]), np.zeros(1)], nesting, {2: np.array([7])})
    at, cell = stage.finest_in(0, [1, 2])
    assert (at.tolist(), cell.tolist()) == ([0, 1, -1], [1, 0, -1])
    made = stage.sets([1, 2], {0: np.zeros(3), 1: np.zeros(2)})
    assert made.parent.tolist() == [2, 2, -1]
    assert made.ends == (2, 3)
    assert (made.lower.tolist(), made.upper.tolist()) == ([1, 2, 7], [2, 2, 7])
    assert made.fixed.tolist() == [False, False, True]
    assert made.place.tolist() == [1, 2, -1, 0, 1]
    assert made.sums(np.array([1, 10, 100, 1000, 10000])).tolist() == [1000, 10001, 11011]
    kept, lower, upper = made.within(np.array([1, 10, 100, 0, 0]), 3)
    assert (lower.tolist(), upper.tolist()) == ([-2, -1, 7], [5, 5, 7])
    assert kept.tolist() == [0, 1, 7]


@pytest.mark.parametrize("rests", [False, True])
def test_rounded_tables_of_a_chain_add_up_and_move_by_less_than_one(rests: bool) -> None:
    fine = np.array([1.3, 2.4, 0.2, 7.9])
    more = np.array([0.4, 0.7]) if rests else np.zeros(2)
    middle = np.array([fine[:2].sum(), fine[2:].sum()]) + more
    top = np.array([middle.sum() + (0.9 if rests else 0.0)])
    found = round_tables([fine, middle, top], CHAIN, rests=rests)
    for ours, fit in zip(found, (fine, middle, top)):
        assert np.all(np.abs(ours - fit) < 1)
    left = [found[1][0] - found[0][:2].sum(), found[1][1] - found[0][2:].sum(), found[2][0] - found[1].sum()]
    assert min(left) >= 0
    assert max(left) <= (1 if rests else 0)


# Flows.


def one_family(place: list[int], sums: list[int], *, fixed: bool = False) -> Sets:
    """Sets that do not lie in each other, each with its sum."""
    count, held = len(sums), np.array(sums, np.int64)
    return Sets(
        parent=np.full(count, -1),
        ends=(count,),
        lower=held,
        upper=held,
        fixed=np.full(count, fixed),
        place=np.array(place),
    )


def test_items_are_moved_until_rows_and_columns_are_within_their_bounds() -> None:
    """Four items of one half in a square: each row and column has one."""
    values = np.full(4, 0.5)
    rows, columns = one_family([0, 0, 1, 1], [1, 1]), one_family([0, 1, 0, 1], [1, 1])
    for start in ([1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1], [1, 0, 1, 0]):
        found = balance(values, np.array(start), rows, columns)
        assert found.reshape(2, 2).sum(axis=0).tolist() == [1, 1]
        assert found.reshape(2, 2).sum(axis=1).tolist() == [1, 1]
        assert set(found.tolist()) <= {0, 1}


def test_items_near_the_middle_are_moved_first() -> None:
    """A row of 0.9, 0.6 and 0.5 was rounded to three and may have two: the last is moved, being nearest to both."""
    values = np.array([0.9, 0.6, 0.5])
    rows, columns = one_family([0, 0, 0], [2]), one_family([-1, -1, -1], [])
    assert balance(values, np.array([1, 1, 1]), rows, columns).tolist() == [1, 1, 0]
    assert balance(values, np.array([0, 0, 0]), rows, columns).tolist() == [1, 1, 0]
    # A whole item stays though it could be changed.
    assert balance(np.array([1.0, 0.6, 0.5]), np.array([1, 1, 1]), rows, columns).tolist() == [1, 1, 0]
    # What an item gains counts, not how large it is: 1.1 was rounded up to 2, and 9.5 is as far from 9 as from 10.
    pair, none = one_family([0, 0], [11]), one_family([-1, -1], [])
    assert balance(np.array([9.5, 1.1]), np.array([10, 2]), pair, none).tolist() == [10, 1]
    assert balance(np.array([9.5, 1.1]), np.array([9, 1]), pair, none).tolist() == [10, 1]
    # Where rounding up or down is not enough, items move by more.
    for fixed in (False, True):
        far = one_family([0, 0, 0], [5], fixed=fixed)
        assert balance(values, np.array([1, 1, 0]), far, columns).sum() == (5 if fixed else 4)
