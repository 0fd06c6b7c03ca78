"""Workloads: what they count, and what is refused."""

import numpy as np
import pytest
from scipy import sparse

from postprocess.oracles import dense, random_workload
from recordwise.errors import ParameterError
from recordwise.postprocess import Workload, max_fit, nnls, ols, reweighted_fit, sequential_fit

METHODS = [ols, nnls, max_fit, sequential_fit, reweighted_fit]
SMALL = Workload.marginals((2, 3), [(), (0,), (0, 1)])


def test_margins_of_a_three_way_table_are_its_sums_over_the_other_axes():
    rng = np.random.default_rng(1)
    table = rng.normal(size=(2, 3, 4))
    workload = Workload.marginals((2, 3, 4), [(), (1,), (0, 2), (0, 1, 2)])
    expected = [table.sum(), table.sum((0, 2)), table.sum(1), table]
    assert np.allclose(workload.answer(table.ravel()), np.concatenate([np.ravel(part) for part in expected]))


def test_levels_of_two_trees_cross():
    state, county = np.array([0, 0, 1, 1, 1]), np.arange(5)
    industry = {"naics2": np.array(["11", "11", "21"]), "naics3": np.array(["111", "112", "211"])}
    workload = Workload.hierarchy(
        {"place": {"nation": np.zeros(5), "state": state, "county": county}, "industry": industry},
        [("nation",), ("state", "naics2"), ("county", "naics3")],
    )
    table = np.arange(15.0).reshape(5, 3)
    by_state = np.array([[table[:2, :2].sum(), table[:2, 2].sum()], [table[2:, :2].sum(), table[2:, 2].sum()]])
    assert np.allclose(workload.answer(table.ravel()), np.concatenate([[table.sum()], by_state.ravel(), table.ravel()]))


def test_listed_cells_count_only_combinations_that_exist():
    place = {"state": np.array([0, 0, 1]), "county": np.arange(3)}
    workload = Workload.hierarchy(
        {"place": place, "sector": {"naics": np.arange(2)}},
        [("state",), ("naics",), ("county", "naics")],
        cells=[[0, 0], [1, 1], [2, 0]],
    )
    assert np.allclose(workload.answer(np.array([1.0, 2.0, 4.0])), [3, 4, 5, 2, 1, 2, 4])


@pytest.mark.parametrize("seed", range(5))
def test_spread_is_the_transpose_of_answer(seed):
    rng = np.random.default_rng(seed)
    for _ in range(20):
        workload = random_workload(rng)
        matrix = dense(workload)
        x, v = rng.normal(size=(3, workload.cells)), rng.normal(size=(3, workload.queries))
        assert np.allclose(workload.answer(x), x @ matrix.T)
        assert np.allclose(workload.spread(v), v @ matrix)
        assert np.allclose(workload.spread_power(v, 2), v @ matrix**2)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("answers", "variances", "named"),
    [
        (np.full(9, np.nan), 1.0, "answers"),
        (np.r_[np.zeros(8), np.inf], 1.0, "answers"),
        (np.zeros(8), 1.0, "answers"),
        (np.zeros((2, 2, 9)), 1.0, "answers"),
        (np.zeros((0, 9)), 1.0, "answers"),
        (np.zeros(9), 0.0, "variances"),
        (np.zeros(9), -1.0, "variances"),
        (np.zeros(9), np.nan, "variances"),
        (np.zeros(9), np.ones(4), "variances"),
    ],
)
def test_bad_answers_and_variances_are_refused_by_name(method, answers, variances, named):
    with pytest.raises(ParameterError) as refused:
        method(SMALL, answers, variances)
    assert refused.value.parameter == named


@pytest.mark.parametrize("method", METHODS)
def test_an_unknown_noise_law_is_refused(method):
    with pytest.raises(ParameterError, match="noise"):
        method(SMALL, np.zeros(9), 1.0, "cauchy")


def test_variances_may_be_given_by_group():
    answers = np.arange(9.0)
    by_group = nnls(SMALL, answers, [1.0, 2.0, 3.0])
    by_query = nnls(SMALL, answers, np.repeat([1.0, 2.0, 3.0], [1, 2, 6]))
    assert np.array_equal(by_group.x, by_query.x)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Workload.marginals((2, 3), []),
        lambda: Workload.marginals((2, 0), [()]),
        lambda: Workload.marginals((), [()]),
        lambda: Workload.marginals((2, 3), [(2,)]),
        lambda: Workload.marginals((2, 3), [(0, 0)]),
        lambda: Workload.marginals((2, 3), [(0,), (0,)]),
        lambda: Workload.matrix(np.zeros((1, 3))),
        lambda: Workload.matrix(np.array([[np.nan, 1.0]])),
        lambda: Workload.matrix(np.eye(3), {"a": 1, "b": 1}),
        lambda: Workload.matrix(np.eye(3), {"a": 3, "b": 0}),
        lambda: Workload.hierarchy({"a": {"x": [0, 1], "y": [0]}}, [("x",)]),
        lambda: Workload.hierarchy({"a": {"x": [0, 1, 1], "y": [0, 0, 1]}}, [("x",)]),
        lambda: Workload.hierarchy({"a": {"x": [0, 1]}, "b": {"x": [0]}}, [("x",)]),
        lambda: Workload.hierarchy({"a": {"x": [0, 1]}}, [("z",)]),
        lambda: Workload.hierarchy({"a": {"x": [0, 0], "y": [0, 1]}}, [("x", "y")]),
        lambda: Workload.hierarchy({"a": {"x": [0, 1]}}, [("x",)], cells=[[2]]),
        lambda: Workload.hierarchy({"a": {"x": [0, 1]}}, [("x",)], cells=[[0], [0]]),
        lambda: Workload.hierarchy({"a": {"x": [0, 1]}}, [("x",)], cells=[[0, 1]]),
        lambda: Workload.hierarchy({"a": {"x": []}}, [("x",)]),
    ],
)
def test_a_workload_that_makes_no_sense_is_refused(build):
    with pytest.raises(ParameterError):
        build()


@pytest.mark.parametrize("method", [sequential_fit, reweighted_fit])
@pytest.mark.parametrize("rows", [[[1.0, 1.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 1.0]]])
def test_overlapping_or_weighted_groups_are_refused_where_counts_must_be_disjoint(method, rows):
    workload = Workload.matrix(sparse.csr_array(rows))
    with pytest.raises(ParameterError, match="overlap or are weighted"):
        method(workload, np.zeros(2), 1.0)


def test_no_dense_matrix_is_built_for_a_large_table():
    workload = Workload.marginals((1000, 300), [(), (0,), (1,), (0, 1)])
    assert workload.answer(np.ones(300_000))[0] == 300_000
    assert all("rows" not in group.__dict__ for group in workload.groups)
