"""Tables as records, weighted and whole."""

from itertools import product

import numpy as np
import pytest
from pyarrow import csv, parquet

from recordwise.errors import ParameterError
from recordwise.postprocess import (
    Workload,
    controlled_rounding,
    nnls,
    save_records,
    to_integer_records,
    to_weighted_records,
)

TABLE = Workload.marginals((3, 4), [(), (0,), (1,), (0, 1)])
DOMAIN = {"region": ["north", "east", "west"], "sector": [11, 21, 31, 42]}
CROSSED = Workload.hierarchy(
    {
        "place": {"nation": np.zeros(8), "state": np.arange(8) // 3, "county": np.arange(8)},
        "sector": {"naics2": np.arange(6) // 2, "naics3": np.arange(6)},
    },
    [("nation",), ("state",), ("county",), ("naics2",), ("naics3",), ("county", "naics3")],
)


def test_weighted_records_hold_every_positive_cell_once():
    x = np.arange(12) / 2
    records = to_weighted_records(x, DOMAIN).to_pylist()
    assert len(records) == 11
    assert records[0] == {"region": "north", "sector": 21, "weight": 0.5}
    assert sum(record["weight"] for record in records if record["region"] == "west") == x[8:].sum()


def test_listed_cells_are_read_row_by_row():
    records = to_weighted_records([0.0, 2.5], {"county": ["a", "b"], "naics": ["11", "21"]}).to_pylist()
    assert records == [{"county": "b", "naics": "21", "weight": 2.5}]


@pytest.mark.parametrize(("ending", "read"), [("parquet", parquet.read_table), ("csv", csv.read_csv)])
def test_saved_records_come_back(tmp_path, ending, read):
    records = to_weighted_records(np.arange(12) / 2, DOMAIN)
    path = tmp_path / f"records.{ending}"
    save_records(records, path)
    assert read(path).to_pylist() == records.to_pylist()


def test_an_unknown_ending_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="parquet"):
        save_records(to_weighted_records([1.0], {"a": [1]}), tmp_path / "records.xlsx")


@pytest.mark.theorem("T-ROUND")
@pytest.mark.parametrize("workload", [TABLE, CROSSED])
@pytest.mark.parametrize("seed", range(10))
def test_rounding_moves_no_cell_and_no_sum_by_one_or_more(workload, seed):
    rng = np.random.default_rng(seed)
    x = rng.gamma(0.5, 3.0, size=workload.cells) * (rng.random(workload.cells) < 0.7)
    if seed % 2:
        noisy = workload.answer(np.floor(x)) + rng.laplace(scale=3, size=workload.queries)
        x = nnls(workload, noisy, 18.0).x
    counts = controlled_rounding(workload, x)
    assert counts.dtype == np.int64
    assert np.all(counts >= 0)
    assert np.all(np.abs(workload.answer(counts * 1.0) - workload.answer(x)) < 1)


def test_whole_tables_are_left_alone():
    x = np.arange(12.0)
    assert np.array_equal(controlled_rounding(TABLE, x + 1e-9), x)


def test_rounding_takes_the_nearest_whole_table_where_sums_allow_it():
    free = Workload.marginals((3, 4), [(0, 1)])
    x = np.arange(12) * 0.29
    assert np.array_equal(controlled_rounding(free, x), np.rint(x))


def test_integer_records_repeat_each_cell_by_its_count():
    x = np.zeros(12)
    x[[1, 5]] = [2.0, 1.0]
    records = to_integer_records(TABLE, x, DOMAIN).to_pylist()
    assert records == [{"region": "north", "sector": 21}] * 2 + [{"region": "east", "sector": 21}]


def test_three_families_are_refused_with_the_reason():
    workload = Workload.marginals((2, 2, 2), [(0,), (1,), (2,), (0, 1, 2)])
    with pytest.raises(ParameterError, match="two families of nested groups"):
        to_integer_records(workload, np.full(8, 0.5), {"a": [0, 1], "b": [0, 1], "c": [0, 1]})


def test_three_families_can_have_no_rounding_at_all():
    """Why they are refused: seven halves in a ring, neighbors on a common line of sum 1, so that exactly one of two is kept."""
    ring = [(0, 0, 0), (0, 0, 1), (1, 0, 1), (1, 0, 2), (1, 1, 2), (1, 1, 0), (0, 1, 0)]
    workload = Workload.marginals((2, 2, 3), [(0, 1), (0, 2), (1, 2), (0, 1, 2)])
    x = np.zeros((2, 2, 3))
    for cell in ring:
        x[cell] = 0.5
    for kept in product((0, 1), repeat=7):
        table = np.zeros((2, 2, 3))
        for cell, count in zip(ring, kept):
            table[cell] = count
        assert np.any(np.abs(workload.answer(table.ravel()) - workload.answer(x.ravel())) >= 1)
    with pytest.raises(ParameterError, match="two families"):
        controlled_rounding(workload, x.ravel())


def test_weighted_rows_are_refused():
    with pytest.raises(ParameterError, match="not a partition"):
        controlled_rounding(Workload.matrix(np.eye(2)), np.array([0.5, 0.5]))


@pytest.mark.parametrize(
    ("x", "domain"),
    [
        ([-1.0], {"a": [0]}),
        ([np.nan], {"a": [0]}),
        ([[1.0]], {"a": [0]}),
        ([1.0, 2.0], {"a": [0]}),
        ([1.0], {}),
        ([1.0], {"weight": [0]}),
    ],
)
def test_tables_and_domains_that_do_not_fit_are_refused(x, domain):
    with pytest.raises(ParameterError):
        to_weighted_records(x, domain)
