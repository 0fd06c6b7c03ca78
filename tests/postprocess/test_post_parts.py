"""Parts of sequential and max fits, of workloads, of linear fits and of tables handed down, against brute force and by hand."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from postprocess.oracles import dense, quadratic, smallest_deviation
from recordwise.errors import ParameterError
from recordwise.postprocess import LinearModel, Workload, max_fit, sequential_fit
from recordwise.postprocess import linear as fitting
from recordwise.postprocess import maxfit as fitting_max
from recordwise.postprocess.linear import (
    AnswerTree,
    Crossing,
    Largest,
    _disjoint,
    _others,
    crossing_kin,
    largest_weights,
    rank_of,
    tree_kin,
    tree_of,
)
from recordwise.postprocess.maxfit import Task, cell_bounds, lower_bound, worst
from recordwise.postprocess.measured import CellsAndSums, measure
from recordwise.postprocess.sequential import acyclic, coarser, is_closed, meet, regroup, simplex
from recordwise.postprocess.solvers.solve import prepare
from recordwise.postprocess.top_down import (
    STIFFEST,
    Axis,
    Blocks,
    Forest,
    Grid,
    cross_out,
    ease_of,
    fill_blocks,
    prices,
    share_out,
    top_down,
)
from recordwise.postprocess.workload import Group, check_axes, margin_name

TABLE = Workload.marginals((2, 3), {"sum": (), "rows": (0,), "columns": (1,), "cells": (0, 1)})
CUBE = Workload.marginals((2, 2, 3), {"ab": (0, 1), "bc": (1, 2), "ac": (0, 2), "a": (0,), "cells": (0, 1, 2)})


# Workloads.


def test_a_group_refines_what_unites_its_queries() -> None:
    groups = {group.name: group for group in CUBE.groups}
    finer = {(one, other) for one, other in product(groups, repeat=2) if groups[one].refines(groups[other])}
    assert finer == {(name, name) for name in groups} | {("cells", name) for name in groups} | {
        ("ab", "a"),
        ("ac", "a"),
    }
    assert groups["ab"].parents_in(groups["a"]).tolist() == [0, 0, 1, 1]
    block = Workload.matrix(np.eye(12)).groups[0]
    assert not block.refines(groups["a"])
    assert not groups["cells"].refines(block)
    # Without digits the labels alone decide.
    plain = {name: Group(name=name, size=g.size, cells=g.cells, labels=g.labels) for name, g in groups.items()}
    assert {(a, b) for a, b in product(plain, repeat=2) if plain[a].refines(plain[b])} == finer


def test_groups_know_their_runs_their_single_cells_and_whether_they_overlap() -> None:
    mixed = Workload.hierarchy({"a": {"x": [1, 0, 1, 2]}}, [("x",)]).groups[0]
    order, first = mixed.runs
    assert order is not None
    assert (order.tolist(), first.tolist()) == ([1, 0, 2, 3], [0, 1, 3])
    assert TABLE.groups[1].runs[0] is None
    assert [group.single for group in TABLE.groups] == [False, False, False, True]
    assert not Workload.matrix(np.eye(2)).groups[0].single
    rows = {"apart": [[1.0, 0], [0, 1]], "overlap": [[1.0, 1], [0, 1]], "weighted": [[2.0, 0], [0, 1]]}
    disjoint = {name: Workload.matrix(np.array(each)).groups[0].disjoint for name, each in rows.items()}
    assert disjoint == {"apart": True, "overlap": False, "weighted": False}
    signed = Workload.matrix(np.array([[1.0, -3], [0, 2]]))
    weights = np.array([[1.0, 10], [2, 0]])
    assert signed.spread(weights).tolist() == [[1, 17], [2, -6]]
    assert signed.spread_power(weights, 1).tolist() == [[1, 23], [2, 6]]
    assert signed.spread_power(weights, 2).tolist() == [[1, 49], [2, 18]]
    assert signed.answer(np.array([1.0, 1])).tolist() == [-2, 2]
    assert TABLE.spread_power(np.arange(12.0), 2).tolist() == TABLE.spread(np.arange(12.0)).tolist()
    assert [TABLE.index(name) for name in ("sum", "columns")] == [0, 2]
    with pytest.raises(ParameterError, match="has no group 'else'"):
        TABLE.index("else")
    assert (margin_name([]), margin_name([0]), margin_name(["a", "b"])) == ("sum", "0", "a*b")


@pytest.mark.parametrize("kept", [(0, 0), (2,), (-1,), (0, 1, 2)])
def test_axes_that_are_none_are_refused(kept: tuple[int, ...]) -> None:
    check_axes({"a": (0, 1), "b": ()}, 2)
    with pytest.raises(ParameterError, match="must keep distinct axes below 2"):
        check_axes({"a": kept}, 2)


# Sequential fits.


def test_margins_that_agree_have_a_table_unless_they_form_a_circle() -> None:
    def read(text: str) -> bool:
        return acyclic([frozenset(word) for word in text.split()])

    for text in ("", "a", "ab", "ab bc", "ab bc cd", "abc bcd", "ab ac ad", "ab cd", "abc ab bc ca", "ab ab"):
        assert read(text), text
    for text in ("ab bc ca", "ab bc cd da", "abc bcd cda", "ab bc ca xy", "abx bcx cax"):
        assert not read(text), text


def test_a_stage_is_closed_where_only_shared_margins_restrict_it() -> None:
    groups = {group.name: group for group in CUBE.groups}
    assert is_closed(groups["ab"], [])
    assert is_closed(groups["bc"], [groups["ab"]])
    assert not is_closed(groups["ac"], [groups["ab"], groups["bc"]])
    assert is_closed(groups["cells"], [groups["ab"], groups["bc"], groups["ac"]])
    block = Workload.matrix(np.eye(12)).groups[0]
    assert not is_closed(block, [])
    assert not is_closed(groups["ab"], [block])
    # Without digits, margins that cross are not known to agree.
    plain = [Group(name=name, size=g.size, cells=g.cells, labels=g.labels) for name, g in groups.items()]
    assert not is_closed(plain[1], plain[:1])
    assert is_closed(plain[4], plain[:1])


def test_what_two_groups_have_in_common_is_the_finest_partition_coarser_than_both() -> None:
    groups = {group.name: group for group in CUBE.groups}
    own, theirs = meet(groups["ab"], groups["bc"])
    # Both know b.
    assert own.tolist() in ([0, 1, 0, 1], [1, 0, 1, 0])
    assert len(set(theirs[:3])) == len(set(theirs[3:])) == 1
    assert theirs[0] == own[0]
    assert theirs[3] == own[1]
    assert len(set(meet(groups["ab"], CUBE.groups[3])[0])) == 2
    assert regroup(np.array([[1.0, 2, 4], [8, 16, 32]]), np.array([1, 0, 1]), 2).tolist() == [[2, 5], [16, 40]]
    assert coarser(np.array([0, 1, 2, 2]), np.array([0, 0, 1, 1]))
    assert not coarser(np.array([0, 1, 2, 2]), np.array([0, 0, 1, 0]))


@pytest.mark.parametrize("seed", range(8))
def test_values_with_given_sums_are_the_nearest_that_are_not_negative(seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = np.array([1, 0, 1, 2, 1, 0])
    target, weight = rng.normal(0, 3, (2, 6)), rng.uniform(0.2, 5, (1, 6))
    sums = np.maximum(rng.normal(1, 3, (2, 3)), 0)
    found = simplex(target, weight, labels, sums)
    held = (labels == np.arange(3)[:, None]).astype(float)
    matrix, wide = np.vstack([np.eye(6), held]), np.full(6, 1e6)
    for draw in range(2):
        ends = [np.concatenate([sign * wide, sums[draw]]) for sign in (-1, 1)]
        aim, own = np.concatenate([target[draw], sums[draw]]), np.concatenate([weight[0], np.zeros(3)])
        assert found[draw] == pytest.approx(quadratic(matrix, aim, own, *ends), abs=1e-6)


def test_the_order_of_groups_is_that_of_the_workload_unless_a_priority_says_otherwise() -> None:
    answers = np.array([10.0, 3, 9, 1, 2, 3, 5, 5, 5, 5, 5, 5])
    plain, other = (
        sequential_fit(TABLE, answers, 1.0, priority=p) for p in (None, ["cells", "rows", "columns", "sum"])
    )
    assert plain.fitted[0] == pytest.approx(10)
    # Two rows of 3 and 9 with the sum 10 lose 1 each; the columns then gain 4/3 each.
    assert plain.fitted[1:6] == pytest.approx([2, 8, 7 / 3, 10 / 3, 13 / 3])
    assert other.fitted.tolist() == [30, 15, 15, 10, 10, 10, *[5] * 6]
    assert sequential_fit(TABLE, answers, 1.0, priority=["sum", "rows", "columns", "cells"]).x == pytest.approx(plain.x)


# Max fits.


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("workload", [TABLE, CUBE])
def test_the_bound_of_single_queries_is_below_the_smallest_deviation_and_reaches_it_where_groups_nest(
    workload: Workload, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    answers, variances = rng.normal(0, 5, (2, workload.queries)), rng.uniform(0.3, 4, workload.queries)
    found = lower_bound(measure(workload, answers, variances))
    exact = [smallest_deviation(dense(workload), row, 1 / variances) for row in answers]
    assert np.all(found <= np.array(exact) + 1e-7)
    nested = Workload.marginals((6,), {"sum": (), "cells": (0,)})
    for level in (-3.0, 0.0, 4.0):
        row, own = rng.normal(level, 2, 7), rng.uniform(0.3, 4, 7)
        known = smallest_deviation(dense(nested), row, 1 / own)
        assert lower_bound(measure(nested, row, own)) == pytest.approx([known], abs=1e-6)


def test_bounds_by_hand_from_a_negative_answer_and_from_sums_that_are_too_small_or_too_large() -> None:
    nested = Workload.marginals((2,), {"sum": (), "cells": (0,)})
    cases = {
        # sum, cells, with standard deviations 1, 2 and 3: the least deviation in them.
        (0.0, 0.0, -6.0): 2.0,
        (12.0, 2.0, 4.0): 1.0,
        (0.0, 4.0, 8.0): 2.0,
        (6.0, 2.0, 4.0): 0.0,
        # The first cell ends at 0 at half its deviation, so that only the second and the sum give way.
        (0.0, 1.0, 12.0): 3.0,
    }
    answers = np.array(list(cases))
    assert lower_bound(measure(nested, answers, [1.0, 4, 9])) == pytest.approx(list(cases.values()), abs=1e-12)
    signed = Workload.matrix(np.array([[1.0, -1], [1, 0]]), {"a": 1, "b": 1})
    # A difference may be negative.
    assert lower_bound(measure(signed, np.array([-5.0, 0]), 1.0)).tolist() == [0]
    assert lower_bound(measure(signed, np.array([-5.0, -3]), 1.0)).tolist() == [3]


def test_cells_are_bounded_by_all_their_own_answers() -> None:
    """Cell 0 by 2 x = 6 within 2 and x = 4 within 1, cell 1 by -x = -5 within 0.5, cell 2 by nothing."""
    rows = np.array([[2.0, 0, 0], [1, 0, 0], [0, -1, 0], [1, 1, 1]])
    workload = Workload.matrix(rows)
    measured = measure(workload, np.array([[6.0, 4, -5, 9]]), [4.0, 1, 0.25, 1])
    low, high = cell_bounds(measured, CellsAndSums.of(workload), np.array([1.0]))
    assert (low.tolist(), high.tolist()) == ([[3, 4.5, 0]], [[4, 5.5, np.inf]])
    low, high = cell_bounds(measured, CellsAndSums.of(workload), np.array([4.0]))
    assert (low.tolist(), high.tolist()) == ([[0, 3, 0]], [[7, 7, np.inf]])
    assert worst(measured, np.array([[3.0, 5, 2]])).tolist() == [1]
    assert worst(measured, np.array([[3.0, 4, 2]])).tolist() == [2]
    table = measure(TABLE, np.arange(12.0), np.arange(1.0, 13))
    low, high = cell_bounds(table, CellsAndSums.of(TABLE), np.array([2.0]))
    reach = 2 * np.sqrt(np.arange(7.0, 13))
    assert low[0] == pytest.approx(np.maximum(np.arange(6.0, 12) - reach, 0))
    assert high[0] == pytest.approx(np.arange(6.0, 12) + reach)


@pytest.mark.parametrize("slack", [0, -0.1, 1e6, True, "1", None, np.nan])
def test_a_slack_is_a_positive_number_below_a_million(slack: Any) -> None:
    with pytest.raises(ParameterError, match="must be a positive number"):
        max_fit(TABLE, np.zeros(12), 1.0, slack=slack)
    for good in (1, 0.5, 999_999.0):
        assert max_fit(TABLE, np.zeros(12), 1.0, slack=good).converged


@pytest.mark.parametrize("seed", range(6))
def test_draws_with_too_low_a_bound_are_solved_again_within_the_exact_one(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounds of 0 for all draws: the linear program raises those of the tables that contradict themselves, and no other."""
    rng = np.random.default_rng(seed)
    answers = np.vstack([rng.normal(2, 6, (3, 12)), TABLE.answer(rng.uniform(1, 9, 6))])
    variances = rng.uniform(0.5, 4, 12)
    plain = max_fit(TABLE, answers, variances)
    monkeypatch.setattr(fitting_max, "lower_bound", lambda measured: np.zeros(measured.draws))
    again = max_fit(TABLE, answers, variances)
    assert again.bound == pytest.approx(
        [smallest_deviation(dense(TABLE), row, 1 / variances) for row in answers], abs=1e-6
    )
    assert again.bound[3] == 0
    assert again.x == pytest.approx(plain.x, abs=1e-4)
    assert again.converged.all()
    parts, system = prepare(TABLE)
    task = Task(parts=parts, system=system)
    measured = measure(TABLE, answers, variances)
    exact = again.bound
    assert fitting_max.unproved_draws(measured, task, exact + 1e-3, plain.x).tolist() == []
    below = fitting_max.unproved_draws(measured, task, np.maximum(exact - 0.1, 0), plain.x)
    assert below.tolist() == [at for at in range(4) if exact[at] > 0]


# Linear fits.


PARENT = np.array([-1, 0, 0, 1, 1, -1, 5, 2])
INSIDE = np.array(
    [[1.0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
)
"""The cells of each answer of the tree."""


def covariances(rows: Any, variances: Any) -> Any:
    inverse = np.linalg.inv(rows.T @ (rows / variances[:, None]))
    return rows @ inverse @ rows.T


def test_a_tree_knows_its_parents_and_who_is_alone() -> None:
    tree = AnswerTree.of(PARENT)
    assert tree.parents().tolist() == PARENT.tolist()
    assert tree.connected().all()
    assert AnswerTree.of(np.array([-1, -1, 1])).connected().tolist() == [False, True, True]
    assert tree.in_answer_order(np.arange(8))[tree.order].tolist() == list(range(8))
    assert [len(each.parent) for each in tree.generations] == [3, 3]


@pytest.mark.parametrize("seed", range(5))
def test_questions_to_a_tree_have_the_covariance_of_the_dense_fit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    variances, asked = rng.uniform(0.2, 9, 8), rng.normal(size=(3, 8)) * (rng.random((3, 8)) < 0.6)
    weights = AnswerTree.of(PARENT).weights(variances)
    exact = covariances(INSIDE, variances)
    assert weights.covariance(sparse.csr_array(asked)) == pytest.approx(asked @ exact @ asked.T, rel=1e-9, abs=1e-9)
    assert weights.fitted == pytest.approx(np.diag(exact))
    own, kin = tree_kin(weights)
    hat = exact / variances
    assert own == pytest.approx(np.diag(hat) ** 2)
    pairs = {}
    for each in kin:
        for place, (low, high) in enumerate(zip(each.below, each.above)):
            pairs[int(low), int(high)] = each.rise[place], each.fall[place], each.share[place]
    assert set(pairs) == {(1, 0), (2, 0), (3, 1), (4, 1), (6, 5), (7, 2), (3, 0), (4, 0), (7, 0)}
    for (low, high), found in pairs.items():
        share = exact[low, high] / exact[high, high]
        assert found == pytest.approx((hat[low, high] ** 2, hat[high, low] ** 2, share), rel=1e-9)
    assert largest_weights(weights) == pytest.approx(np.abs(hat).max(axis=1))


def crossed(rng: Any) -> tuple[Any, Any, list[int], list[list[Any]]]:
    """All pairs of levels of two trees of four and three leaves."""
    trees = [
        [np.arange(4), np.array([0, 0, 1, 1]), np.zeros(4, int)],
        [np.arange(3), np.array([0, 0, 1]), np.zeros(3, int)],
    ]
    blocks, axes = [], [[], []]  # type: ignore[var-annotated]
    for one, other in product(*trees):
        own = [np.repeat(one, 3), np.tile(other, 4)]
        label = own[0] * (own[1].max() + 1) + own[1]
        blocks.append((np.arange(label.max() + 1)[:, None] == label).astype(float))
        for axis, code in zip(axes, own):
            axis.append(code)
    rows = np.vstack(blocks)
    return rows, rng.uniform(0.3, 5, len(rows)), [len(block) for block in blocks], axes


@pytest.mark.parametrize("seed", range(3))
def test_questions_to_tables_that_cross_have_the_covariance_of_the_dense_fit(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One by one, a few at a time, and all together with their weights only bounded; with an answer that no other informs."""
    rng = np.random.default_rng(seed)
    rows, variances, tables, axes = crossed(rng)
    exact = covariances(rows, variances)
    answers, asked = rng.normal(size=len(rows)), rng.normal(size=(5, len(rows))) * (rng.random((5, len(rows))) < 0.3)
    model = LinearModel.of(sparse.csr_array(rows), answers, variances, tables=tables, axes=axes)
    assert model.exact
    weights = asked @ exact / variances
    given: list[Any] = []
    found = model.answer(asked, use=given.append)
    assert np.concatenate(given) == pytest.approx(weights, abs=1e-9)
    assert found.weights == pytest.approx(weights, abs=1e-9)
    assert model.influences(asked) == pytest.approx(weights, abs=1e-9)
    assert found.estimates == pytest.approx(weights @ answers, abs=1e-9)
    assert found.largest == pytest.approx(np.abs(weights).max(axis=1))
    assert found.covariance == pytest.approx(asked @ exact @ asked.T, abs=1e-9)
    monkeypatch.setattr(fitting, "MOST_WEIGHTS", 2 * len(rows))
    given.clear()
    parts = model.answer(asked, use=given.append)
    assert [len(each) for each in given] == [2, 2, 1]
    assert parts.weights is None
    assert parts.covariance == pytest.approx(found.covariance, abs=1e-9)
    assert parts.largest == pytest.approx(found.largest)
    monkeypatch.setattr(fitting, "MOST_WEIGHTS", 5 * len(rows))
    assert model.answer(asked, fine=True).largest == pytest.approx(found.largest)
    monkeypatch.setattr(fitting, "MOST_WEIGHTS", 5 * len(rows) - 1)
    together = model.answer(asked, fine=True)
    assert together.covariance == pytest.approx(found.covariance, abs=1e-9)
    bound = np.sqrt(np.diag(found.covariance)) * np.max(np.sqrt(np.diag(exact)) / variances)
    assert together.largest == pytest.approx(bound)
    monkeypatch.setattr(fitting, "MOST_SPREAD", 0)
    assert model.answer(asked, fine=True).largest == pytest.approx(found.largest)
    known = LinearModel(model.answers, model.weights, model.spread, np.arange(float(len(rows))))
    assert known.answer(asked).estimates == pytest.approx(asked @ np.arange(len(rows)))


def test_weights_of_blocks_and_multiples_of_variances_are_those_of_the_dense_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows, variances, tables, axes = crossed(np.random.default_rng(4))
    crossing = Crossing.of(sparse.csr_array(rows), tables, axes)
    exact = covariances(rows, variances)
    for factor in (1.0, 4.0):
        weights = crossing.weights(factor * variances)
        assert weights.fitted == pytest.approx(factor * np.diag(exact))
        found = np.zeros_like(exact)
        monkeypatch.setattr(fitting, "MOST_WEIGHTS", 4 * 5 * len(rows))
        starts = []
        for start, block in weights.blocks():
            starts.append(start)
            found[start : start + len(block)] = block
        assert starts == list(range(0, len(rows), 5))
        assert found == pytest.approx(exact / variances, abs=1e-9)
        asked = sparse.csr_array(np.eye(len(rows))[[0, 5, 20]])
        assert weights.covariance(asked) == pytest.approx(factor * exact[np.ix_([0, 5, 20], [0, 5, 20])], abs=1e-9)
    assert crossing.weights(variances).few == (len(rows) ** 2 <= 20 * len(rows))
    monkeypatch.setattr(fitting, "MOST_WEIGHTS", len(rows) ** 2)
    assert crossing.weights(variances).few
    own, (kin,) = crossing_kin(crossing.weights(variances))
    hat = exact / variances
    assert own == pytest.approx(np.diag(hat) ** 2)
    # Of two answers about the same cells, one contains the other.
    pairs = [(low, high) for low, high in product(range(len(rows)), repeat=2) if (rows[low] <= rows[high]).all()]
    inside = {(low, high) for low, high in pairs if low < high or (low != high and (rows[low] != rows[high]).any())}
    assert set(zip(kin.below.tolist(), kin.above.tolist())) == inside
    assert kin.rise == pytest.approx(hat[kin.below, kin.above] ** 2)
    assert kin.fall == pytest.approx(hat[kin.above, kin.below] ** 2)
    assert kin.share == pytest.approx(exact[kin.below, kin.above] / exact[kin.above, kin.above])
    monkeypatch.setattr(fitting, "MOST_WEIGHTS", len(rows) ** 2 - 1)
    sd = np.sqrt(np.diag(exact))
    bound = np.maximum(sd * np.max(sd / variances), np.diag(exact) / variances)
    assert largest_weights(crossing.weights(variances)) == pytest.approx(bound)


def test_neighbors_without_a_common_cell_are_a_table_and_others_begin_a_new_one() -> None:
    rows = np.array(
        [[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 1, 0], [0, 1, 0, 0], [1, 1, 1, 1.0], [1, 0, 0, 0]]
    )
    assert _disjoint(sparse.csr_array(rows)) == [3, 2, 1, 1]
    assert tree_of(sparse.csr_array(rows)) is None
    assert tree_of(sparse.csr_array((0, 3))) is None
    assert tree_of(sparse.csr_array(2.0 * np.eye(2))) is None
    assert tree_of(sparse.csr_array(np.eye(2))) is not None


def test_the_largest_among_the_others_of_a_family() -> None:
    values, first = np.array([3.0, 5, 1, 2, 4, 4, 1, 0.5, 0.5]), np.array([0, 3, 4, 7])
    assert _others(values, first).tolist() == [5, 3, 5, 0, 4, 4, 4, 0.5, 0.5]


@pytest.mark.parametrize(
    ("draws", "confidence", "rank"), [(19, 0.95, 19), (9, 0.9, 9), (99, 0.99, 99), (20, 0.95, 20), (1, 0.5, 1)]
)
def test_the_rank_of_an_order_statistic_at_the_fewest_draws(draws: int, confidence: float, rank: int) -> None:
    assert rank_of(draws, confidence) == rank
    if draws != 20:
        with pytest.raises(ParameterError, match=f"must be at least {draws} for intervals"):
            rank_of(draws - 1, confidence, given=True)
    largest = Largest(2, draws=draws, rank=rank)
    values = np.random.default_rng(1).normal(size=(draws, 2))
    for row in values:
        largest.add(row[None])
    assert np.array_equal(largest.value(), np.sort(values, axis=0)[rank - 1])


# Tables handed down.


def test_cells_resist_by_their_size_in_standard_errors_up_to_a_hundred() -> None:
    best, sd = np.array([0.0, -5, 10, 300, 2000, 1e9]), np.array([2.0, 2, 5, 3, 10, 10])
    assert ease_of(best, sd) == pytest.approx([4, 4, (5 / 3) ** 2, (3 / 101) ** 2, (10 / 101) ** 2, (10 / 101) ** 2])
    assert STIFFEST == 100


def test_families_share_their_sums_and_those_of_nothing_are_empty() -> None:
    """Two of 3 and 5 with the sum 4 and equal ease lose 2 each; 1 and -9 with the sum 2; a family of 0; one cell alone."""
    target, ease = np.array([3.0, 5, 1, -9, 4, 4, 7]), np.ones(7)
    found = share_out(target, ease, np.array([4.0, 2, 0, 9]), np.array([0, 2, 4, 6]))
    assert found.tolist() == [1, 3, 2, 0, 0, 0, 9]
    # The stiffer cell of two moves half as far.
    assert share_out(np.array([3.0, 5]), np.array([2.0, 1]), np.array([11.0]), np.array([0])).tolist() == [5, 6]
    both = share_out(np.array([[3.0, 5], [0, 8]]), np.ones(2), np.array([[4.0], [2]]), np.array([0]))
    assert both.tolist() == [[1, 3], [0, 2]]
    price = prices(
        target[:4], ease[:4], np.array([4.0, 2]), lambda c: c.reshape(2, 2).sum(axis=1), lambda p: np.repeat(p, 2)
    )
    assert price.tolist() == [-2, 1]


def blocks_of(rng: Any, sides: int) -> Blocks:
    """Blocks of two, one and three rows."""
    cells = rng.gamma(0.7, 3, (6, sides))
    first = np.array([0, 2, 3])
    return Blocks(
        cells + rng.normal(0, 4, cells.shape),
        np.exp(rng.normal(size=cells.shape)),
        cells.sum(axis=1),
        np.add.reduceat(cells, first, axis=0),
        first,
    )


def nearest(blocks: Blocks, place: slice, number: int) -> Any:
    """The nearest nonnegative block with its margins, by a dense quadratic program."""
    target, ease = blocks.target[place], blocks.ease[place]
    height, width = target.shape
    rows, columns = np.kron(np.eye(height), np.ones(width)), np.kron(np.ones(height), np.eye(width))
    held, sums = np.vstack([rows, columns]), np.concatenate([blocks.rows[place], blocks.columns[number]])
    slack, wide = 1e-8 * (1 + sums), np.full(target.size, 1e6)
    aim, own = np.concatenate([target.ravel(), sums]), np.concatenate([1 / ease.ravel(), np.zeros(len(sums))])
    ends = np.concatenate([-wide, sums - slack]), np.concatenate([wide, sums + slack])
    return quadratic(np.vstack([np.eye(target.size), held]), aim, own, *ends).reshape(target.shape)


@pytest.mark.parametrize("seed", range(5))
def test_blocks_are_filled_with_the_nearest_cells_that_have_their_margins(seed: int) -> None:
    blocks = blocks_of(np.random.default_rng(seed), 3)
    known = [nearest(blocks, place, k) for k, place in enumerate((slice(0, 2), slice(2, 3), slice(3, 6)))]
    assert fill_blocks(blocks) == pytest.approx(np.vstack(known), abs=1e-4)


def test_blocks_with_rows_and_columns_of_nothing_stay_empty_there() -> None:
    target = np.array([[3.0, 4, 5], [6, 7, 8], [1, 1, 1], [2, 2, 2]])
    blocks = Blocks(
        target, np.ones((4, 3)), np.array([9.0, 0, 0, 0]), np.array([[4.0, 0, 5], [0, 0, 0]]), np.array([0, 2])
    )
    assert fill_blocks(blocks) == pytest.approx(np.array([[4.0, 0, 5], [0, 0, 0], [0, 0, 0], [0, 0, 0]]), abs=1e-9)


def test_the_curvature_of_blocks_is_that_of_their_matrices_whichever_way_it_is_multiplied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    blocks = blocks_of(np.random.default_rng(3), 4)
    active = np.random.default_rng(4).random((6, 4)) < 0.7
    active[2] = False
    known = []
    for rows in (slice(0, 2), slice(2, 3), slice(3, 6)):
        moves = np.where(active[rows], blocks.ease[rows], 0.0)
        room = np.where(moves.sum(axis=1) > 0, moves.sum(axis=1), 1.0)
        known.append(np.diag(moves.sum(axis=0)) - (moves / room[:, None]).T @ moves)
    for name, size in (("SMALL_SIDE", 16), ("SMALL_SIDE", 3), ("MOST_PRODUCTS", 1), ("MOST_PRODUCTS", 32)):
        with monkeypatch.context() as patched:
            patched.setattr(f"recordwise.postprocess.top_down.{name}", size)
            assert blocks.curvature(active) == pytest.approx(np.array(known), abs=1e-12)
    some, lines = blocks.take(np.array([2, 0]))
    assert lines.tolist() == [3, 4, 5, 0, 1]
    assert some.first.tolist() == [0, 3]
    assert some.rows.tolist() == blocks.rows[[3, 4, 5, 0, 1]].tolist()
    assert some.columns.tolist() == blocks.columns[[2, 0]].tolist()
    assert blocks.block.tolist() == [0, 0, 1, 2, 2, 2]


def test_crossed_blocks_of_different_widths_are_each_the_nearest() -> None:
    """Two draws of a table of three rows and five columns, in blocks of 2 and 1 rows by 2, 1 and 2 columns."""
    rng = np.random.default_rng(6)
    cells = rng.gamma(0.7, 3, (2, 3, 5))
    down, across = np.array([0, 2]), np.array([0, 2, 3])
    target, ease = cells + rng.normal(0, 3, cells.shape), np.exp(rng.normal(size=cells.shape))
    rows, columns = np.add.reduceat(cells, across, axis=2), np.add.reduceat(cells, down, axis=1)
    found = cross_out(target, ease, rows, columns, down, across)
    assert np.add.reduceat(found, across, axis=2) == pytest.approx(rows, abs=1e-8)
    assert np.add.reduceat(found, down, axis=1) == pytest.approx(columns, abs=1e-8)
    for draw, (top, high), (left, wide) in product(range(2), [(0, 2), (2, 1)], [(0, 2), (2, 1), (3, 2)]):
        here = draw, slice(top, top + high), slice(left, left + wide)
        one = Blocks(
            target[here],
            ease[here],
            rows[draw, top : top + high, {0: 0, 2: 1, 3: 2}[left]],
            columns[draw, top // 2, left : left + wide][None],
            np.array([0]),
        )
        assert found[here] == pytest.approx(nearest(one, slice(0, high), 0), abs=1e-4)


def test_axes_sort_leaves_so_that_families_are_together() -> None:
    axis = Axis.of([np.array([1, 0, 1, 0, 2])])
    assert axis is not None
    assert [code.tolist() for code in axis.codes] == [[0] * 5, [0, 0, 1, 1, 2], [0, 1, 2, 3, 4]]
    assert axis.order.tolist() == [0, 2, 1, 3, 4]
    assert axis.first(1).tolist() == [0, 2, 4]
    assert axis.families(1).tolist() == [0]
    assert axis.families(2).tolist() == [0, 2, 4]
    assert axis.level(np.array([7, 3, 7, 3, 9])) == 1
    assert Axis.of([np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])]) is None


def test_grids_are_refused_where_a_table_is_no_cross_of_levels_or_stands_twice() -> None:
    cells = np.arange(6)
    rows = np.repeat([0, 1], 3)
    assert Grid.of((2, 3), [cells, rows]) is not None
    assert Grid.of((2, 3), [cells, rows, rows]) is None
    assert Grid.of((2, 3), [cells, np.array([0, 0, 1, 1, 1, 0])]) is None


def test_a_forest_shares_cells_that_no_answer_tells_apart_and_adds_up_its_roots() -> None:
    """Two roots; the first of three cells with one child of two: its rest is the third cell."""
    rows = sparse.csr_array(np.array([[1.0, 1, 1, 0], [1, 1, 0, 0], [0, 0, 0, 1]]))
    forest = Forest.of(rows)
    assert forest is not None
    cells, gap = forest.hand_down(np.array([[10.0, 6, 4], [10, 6, -14]]), np.ones(3))
    assert gap == 0
    assert cells[0] == pytest.approx([3, 3, 4, 4])
    # The roots add up to less than nothing: all is empty.
    assert cells[1].tolist() == [0, 0, 0, 0]
    for wrong in ([[1.0, 1, 0], [0, 1, 1]], [[2.0, 1, 1]], [[1.0, 0, 0], [0, 1, 0]]):
        assert Forest.of(sparse.csr_array(wrong)) is None
    # The rest of 9 with standard error sqrt(1 + 16) resists less than the child of 1 with 4.
    best, sd = np.array([5.0, 8.0]), np.array([1.0, 4])
    found, _ = Forest.of(sparse.csr_array([[1.0, 1], [1, 0]])).hand_down(best, sd)  # type: ignore[union-attr]
    assert found == pytest.approx([5, 0])


def test_what_is_handed_down_is_a_fit_with_its_gap_and_several_draws_take_the_resistance_of_their_mean() -> None:
    matrix = np.array([[1.0, 1], [1, 0], [0, 1]])
    rows = sparse.csr_array(matrix)
    workload = Workload.matrix(rows, {"all": 1, "cells": 2})
    fit = top_down(workload, np.array([[10.0, 6, 4], [5, 7, -2]]), np.ones(3), shape=Forest.of(rows))
    assert fit.x == pytest.approx(np.array([[6.0, 4], [5, 0]]))
    assert fit.fitted == pytest.approx(np.array([[10.0, 6, 4], [5, 5, 0]]))
    assert (fit.kkt.tolist(), fit.primal.tolist(), fit.iterations.tolist()) == ([0, 0], [0, 0], [0, 0])
    draws = np.array([[10.0, 7, 5], [20, 9, 7]])
    free = top_down(workload, draws, np.array([1.0, 2, 3]), shape=None)
    ease = ease_of(draws.mean(axis=0), np.array([1.0, 2, 3]))
    normal = np.linalg.solve(matrix.T @ (matrix / ease[:, None]), matrix.T @ (draws / ease).T).T
    assert free.x == pytest.approx(normal, abs=1e-8)
