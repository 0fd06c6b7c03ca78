"""Parts of the solvers: labels and trees, limits of each choice, curvature, conjugate gradients, and the recursion over places."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from postprocess.oracles import dense
from postprocess.test_post_parts import covariances, crossed
from recordwise.errors import ParameterError
from recordwise.postprocess import Workload
from recordwise.postprocess.linear import Crossing
from recordwise.postprocess.measured import CellsAndSums
from recordwise.postprocess.solvers import crossed as crossing
from recordwise.postprocess.solvers import places as recursion
from recordwise.postprocess.solvers import solve as choice
from recordwise.postprocess.solvers import tree as trees
from recordwise.postprocess.solvers.boxed import (
    LEVELS,
    LOOSE_LEVELS,
    BoxedProblem,
    curvature,
    proximal_weights,
    rows_of,
)
from recordwise.postprocess.solvers.crossed import codes_along, grid_workload, nested_levels
from recordwise.postprocess.solvers.dense import DenseSystem, Round, round_error, solve_boxed, solve_dense
from recordwise.postprocess.solvers.iterative import ACCURACY, Cascade, SparseRows, WithExtras, conjugate_gradients
from recordwise.postprocess.solvers.prices import (
    Curves,
    Demand,
    Spot,
    amounts,
    bisect_corners,
    cell_curves,
    demand_of_children,
    join_curves,
    pieces,
)
from recordwise.postprocess.solvers.solve import BorderedSystem, FactoredSystem, factored_system, fill_count, partition
from recordwise.postprocess.solvers.tree import chains, forest_system, nested_chains, nodes_at
from recordwise.postprocess.solvers.trees import (
    check_levels,
    grid_levels,
    is_nested,
    joint_labels,
    read_trees,
    two_families,
)

# Labels and trees.


@pytest.mark.parametrize("large", [1, 10_000])
def test_combinations_of_labels_are_numbered_in_their_order(large: int) -> None:
    """Few and many possible combinations, of which some occur."""
    one, other = np.array([2, 0, 2, 1, 0]), np.array([1, 3, 1, 0, 0]) * large
    labels, count = joint_labels([one, other], 5)
    pairs = sorted(set(zip(one.tolist(), other.tolist())))
    assert labels.tolist() == [pairs.index(pair) for pair in zip(one.tolist(), other.tolist())]
    assert (count, labels.dtype) == (4, np.int64)
    assert joint_labels([], 3)[0].tolist() == [0, 0, 0]
    assert joint_labels([], 3)[1] == 1


def test_labels_nest_where_equal_fine_ones_have_equal_coarse_ones() -> None:
    fine = np.array([0, 1, 2, 2, 3])
    assert is_nested(fine, np.array([0, 0, 1, 1, 0]))
    assert not is_nested(fine, np.array([0, 0, 1, 0, 0]))
    assert is_nested(fine, fine)
    assert not is_nested(np.zeros(2, np.int64), np.arange(2))


def test_trees_are_read_with_codes_of_their_leaves_and_refused_for_each_reason() -> None:
    leaves, levels = read_trees({"a": {"x": ["q", "p", "q"], "y": [0, 1, 2]}, "b": {"z": [5, 5]}})
    assert leaves == {"a": 3, "b": 2}
    assert {name: (place, codes.tolist()) for name, (place, codes) in levels.items()} == {
        "x": (0, [1, 0, 1]),
        "y": (0, [0, 1, 2]),
        "z": (1, [0, 0]),
    }
    with pytest.raises(ParameterError, match="one label per leaf"):
        read_trees({"a": {"x": [0, 1], "y": [0]}})
    with pytest.raises(ParameterError, match="one label per leaf"):
        read_trees({"a": {"x": []}})
    with pytest.raises(ParameterError, match="uses the level name 'x' twice"):
        read_trees({"a": {"x": [0]}, "b": {"x": [0]}})
    check_levels("g", ["x", "z"], levels)
    check_levels("g", [], levels)
    with pytest.raises(ParameterError, match="names the level 'w', which is in no tree"):
        check_levels("g", ["x", "w"], levels)
    with pytest.raises(ParameterError, match="names two levels of one dimension"):
        check_levels("g", ["x", "z", "y"], levels)


def table(labels: list[int]) -> Any:
    known = sorted(set(labels) - {-1})
    return (np.array(known)[:, None] == np.array(labels)).astype(float)


def test_tables_are_two_families_unless_three_of_them_cross_each_other() -> None:
    """Eight cells by three coordinates: rows of one coordinate cross those of another."""
    cells = np.indices((2, 2, 2)).reshape(3, -1)
    by = {
        name: table((cells[list(kept)].T @ [4, 2, 1][: len(kept)]).tolist())
        for name, kept in {"a": [0], "b": [1], "c": [2], "ab": [0, 1], "abc": [0, 1, 2]}.items()
    }
    by["all"] = table([0] * 8)

    def families(*names: str) -> bool:
        blocks = [by[name] for name in names]
        return two_families(sparse.csr_array(np.vstack(blocks)), [len(block) for block in blocks])

    assert families("abc", "ab", "a", "all")
    assert families("abc", "a", "b", "all")
    assert families("a", "b")
    assert not families("a", "b", "c")
    assert not families("abc", "c", "b", "a")
    assert families("ab", "c", "a")
    # A table in which a cell is in two answers is none; one with cells in no answer is.
    assert not two_families(sparse.csr_array([[1.0, 1, 0], [0, 1, 1]]), [2])
    assert two_families(sparse.csr_array([[1.0, 1, 0], [0, 1, 1]]), [1, 1])
    holes = table([0, 0, -1, -1, 1, 1, -1, -1])
    assert two_families(sparse.csr_array(np.vstack([holes, by["all"]])), [2, 1])
    # Five tables in a ring of which neighbors cross have no two sides.
    ring = np.zeros((5, 10))
    for at in range(5):
        ring[at, [2 * at, 2 * at + 1, (2 * at + 2) % 10]] = 1
    assert not two_families(sparse.csr_array(ring), [1] * 5)
    assert two_families(sparse.csr_array(ring[:4]), [1] * 4)


def test_levels_of_a_grid_are_known_if_all_pairs_are_published() -> None:
    rows, _, tables, axes = crossed(np.random.default_rng(1))
    made = sparse.csr_array(rows)
    found = grid_levels(made, tables, axes)
    assert found is not None
    assert found.tolist() == [list(pair) for pair in product(range(3), repeat=2)]
    ends = np.cumsum([0, *tables])
    left = made[: ends[-2]]
    assert grid_levels(left, tables[:-1], [axis[:-1] for axis in axes]) is None
    assert grid_levels(made, tables, [axes[0][:-1], axes[1]]) is None
    assert grid_levels(made, [*tables[:-1], 2], axes) is None
    assert grid_levels(sparse.csr_array(np.hstack([rows, np.zeros((len(rows), 1))])), tables, axes) is None
    # Two levels of one axis that cross each other.
    mixed = [axes[0][0], np.array([0, 0, 1, 1])[axes[0][0]], np.array([0, 1, 0, 1])[axes[0][0]]]
    other = [axes[1][0]] * 3
    blocks = [table((one * 3 + two).tolist()) for one, two in zip(mixed, other)]
    assert grid_levels(sparse.csr_array(np.vstack(blocks)), [len(block) for block in blocks], [mixed, other]) is None


def test_cells_know_the_sums_they_lie_in_widest_first() -> None:
    rows = sparse.csr_array(np.array([[1.0, 0, 0, 0], [1, 1, 1, 0], [0, 0, 1, 0], [1, 1, 0, 0]]))
    chain, length = chains(rows)
    assert chain is not None
    assert (chain.tolist(), length.tolist()) == ([[1, 3, 0], [1, 3, -1], [1, 2, -1], [-1, -1, -1]], [3, 2, 2, 0])
    assert nested_chains(chain, 4)
    crossing_chain, _ = chains(sparse.csr_array([[1.0, 1, 0], [0, 1, 1]]))
    assert crossing_chain is not None
    assert not nested_chains(crossing_chain, 2)
    codes, own = nodes_at(chain, length, 2)
    assert own.tolist() == [3, 3, 2, -1]
    assert [codes[0] == codes[1], len(set(codes.tolist()))] == [True, 3]
    codes, own = nodes_at(chain, length, 3)
    assert own.tolist() == [0, -1, -1, -1]
    assert len(set(codes.tolist())) == 4


def test_nesting_is_followed_up_to_sixty_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = sparse.csr_array(np.tril(np.ones((4, 4))))
    for most, known in ((4, True), (3, False)):
        monkeypatch.setattr(trees, "MOST_LEVELS", most)
        assert (chains(rows)[0] is not None) == known
        assert (forest_system(rows) is not None) == known
    assert forest_system(sparse.csr_array((0, 3))) is None


# Limits of each choice.


def test_a_dense_system_pays_up_to_a_number_of_multiplications(monkeypatch: pytest.MonkeyPatch) -> None:
    """12 sums of which 3 share no cell: 9^3 / 3 + 3 * 81."""
    monkeypatch.setattr(choice, "DENSE_WORK", 243 + 243)
    assert choice.dense_pays(12, 3)
    monkeypatch.setattr(choice, "DENSE_WORK", 485)
    assert not choice.dense_pays(12, 3)


def test_rows_are_factored_up_to_so_many_pairs_and_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five rows over five cells, each sharing one with the next: 5 + 2 * 4 pairs, four numbers below the diagonal."""
    rows = sparse.csr_array(np.eye(5) + np.eye(5, k=1))
    assert fill_count(sparse.csr_array(abs(rows) @ abs(rows).T)) == 4
    monkeypatch.setattr(choice, "MOST_ENTRIES", 13)
    monkeypatch.setattr(choice, "MOST_FILL", 4)
    found = factored_system(rows)
    assert isinstance(found, FactoredSystem)
    assert found.order.tolist() == [0, 4, 1, 2, 3]
    for name, less in (("MOST_ENTRIES", 12), ("MOST_FILL", 3)):
        with monkeypatch.context() as patched:
            patched.setattr(choice, name, less)
            assert factored_system(rows) is None
    # One row over all others' cells is eliminated last.
    star = sparse.csr_array(np.vstack([np.ones((1, 4)), np.eye(4)]))
    made = factored_system(star)
    assert made is not None
    assert made.order.tolist()[-1] == 0
    # Many rows of one cell are not even multiplied.
    monkeypatch.setattr(choice, "MOST_ENTRIES", 1)
    assert factored_system(sparse.csr_array(np.ones((4, 1)))) is None


@pytest.mark.parametrize("responding", [0.3, 0.95])
def test_a_factored_system_solves_whether_cells_that_do_not_respond_are_left_out_or_not(responding: float) -> None:
    rng = np.random.default_rng(2)
    rows = np.where(rng.random((6, 40)) < 0.3, rng.normal(size=(6, 40)), 0.0)
    system = FactoredSystem(rows=sparse.csr_array(rows), order=np.array([3, 1, 0, 5, 2, 4]))
    response = rng.random((2, 40)) * (np.arange(40) < 40 * responding)
    diagonal, right = rng.uniform(0.5, 2, (2, 6)), rng.normal(size=(4, 6))
    found = system.solver(response, diagonal)(right)
    for k in range(4):
        matrix = (rows * response[k % 2]) @ rows.T + np.diag(diagonal[k % 2])
        assert found[k] == pytest.approx(np.linalg.solve(matrix, right[k]), rel=1e-9)
    assert system.powers(2).sums(np.ones((1, 40)))[0] == pytest.approx((rows**2).sum(axis=1))
    assert system.powers(1).spread(np.ones((1, 6)))[0] == pytest.approx(np.abs(rows).sum(axis=0))


def test_a_block_that_is_a_partition_is_rolled_up() -> None:
    def group(rows: Any) -> Any:
        return partition(Workload.matrix(np.array(rows)).groups[0])

    assert group([[1.0, 0, 1], [0, 1, 0]]).labels.tolist() == [0, 1, 0]
    for rows in ([[1.0, 0, 0], [0, 1, 0]], [[1.0, 1, 0], [0, 1, 1]], [[2.0, 0], [0, 1]]):
        assert group(rows).labels is None
    own = Workload.marginals((2,), [(0,)]).groups[0]
    assert partition(own) is own


def test_elimination_along_a_dimension_is_chosen_within_its_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six places in two states by four kinds, all pairs of levels: along places 3 inner nodes, along kinds 1."""
    place = {"nation": np.zeros(6), "state": [0, 0, 0, 1, 1, 1], "county": np.arange(6)}
    kind = {"all": np.zeros(4), "kind": np.arange(4)}
    workload = Workload.hierarchy({"place": place, "kind": kind}, list(product(place, kind)))
    monkeypatch.setattr(crossing, "LEAST_LOCAL", 0)
    assert crossing.work_along(workload, 0) == 3 * 4**3
    assert crossing.work_along(workload, 1) == 1 * 6**3
    assert crossing.best_dimension(workload) == 0
    for name, limit, along, known in (
        ("MOST_WORK", 192, 0, True),
        ("MOST_WORK", 191, 0, False),
        ("MOST_ENTRIES", 2 * 3 * 16, 0, True),
        ("MOST_ENTRIES", 2 * 3 * 16 - 1, 0, False),
        ("LEAST_LOCAL", 4, 0, True),
        ("LEAST_LOCAL", 5, 0, False),
        ("LEAST_LOCAL", 8, 1, True),
        ("LEAST_LOCAL", 9, 1, False),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(crossing, name, limit)
            assert (crossing.work_along(workload, along) is not None) == known, (name, limit)
    assert [codes.tolist() for codes in codes_along(workload, 1)[:2]] == [[0] * 4, [0, 1, 2, 3]]
    levels = nested_levels([np.array([0, 0, 1, 1]), np.zeros(4, np.int64), np.arange(4)])
    assert [level.tolist() for level in levels or []] == [[0, 1, 2, 3], [0, 0, 1, 1], [0] * 4]
    assert nested_levels([np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])]) is None
    line = Workload.marginals((4,), [(), (0,)])
    assert crossing.best_dimension(line) is None
    flat = grid_workload((2, 3), {"cells": np.arange(6), "rows": np.repeat([0, 1], 3), "all": np.zeros(6, np.int64)})
    assert flat is not None
    assert [dict(group.level_of) for group in flat.groups] == [{0: "level0", 1: "level1"}, {0: "level0"}, {}]
    assert grid_workload((2, 3), {"cells": np.arange(6), "odd": np.array([0, 1, 0, 1, 0, 1])}) is None


def test_work_along_a_tree_is_limited_by_multiplications_and_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five leaves by margins of 1 and 4 queries: ten nodes of 5 local queries."""
    workload = Workload.marginals((5, 4), {"rows": (0,), "cells": (0, 1)})
    used = [0, 1]
    assert trees.work_along(workload, used, 0) == 10 * 5**3
    assert trees.work_along(workload, used, 1) == 8 * 5**3
    for name, limit, known in (
        ("MOST_WORK", 1250, True),
        ("MOST_WORK", 1249, False),
        ("MOST_ENTRIES", 250, True),
        ("MOST_ENTRIES", 249, False),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(trees, name, limit)
            assert (trees.work_along(workload, used, 0) is not None) == known


# The boxed problem.


def problem_of(rng: Any, rows: Any, *, unmeasured: bool, held: bool) -> BoxedProblem:
    queries, cells = rows.shape
    exact = np.abs(rows) @ np.arange(1.0, cells + 1)
    return BoxedProblem(
        precision=np.where(np.arange(cells) < (2 if unmeasured else 0), 0.0, rng.uniform(0.5, 2, cells))[None],
        target=np.arange(1.0, cells + 1) + rng.normal(0, 2, (2, cells)),
        low=np.zeros((1, cells)),
        high=np.full((1, cells), np.inf),
        weight=rng.uniform(0.5, 2, (1, queries)),
        answer=exact + rng.normal(0, 2, (2, queries)),
        floor=np.where(held & (np.arange(queries) == 0), exact, -np.inf)[None],
        ceiling=np.where(held & (np.arange(queries) == 0), exact, np.inf)[None],
    )


@pytest.mark.parametrize(("unmeasured", "held"), list(product([False, True], repeat=2)))
def test_proximal_terms_are_scaled_by_the_curvature_of_cells_and_queries(unmeasured: bool, held: bool) -> None:
    rng = np.random.default_rng(3)
    rows = np.abs(rng.normal(size=(3, 5))) * (rng.random((3, 5)) < 0.8)
    problem = problem_of(rng, rows, unmeasured=unmeasured, held=held)
    system = DenseSystem.of(sparse.csr_array(rows))
    cells, queries = curvature(problem, system)
    if not unmeasured and not held:
        assert (cells.tolist(), queries.tolist()) == ([[1] * 5], [[1] * 3])
    else:
        free = np.isinf(problem.floor[0])
        exact = problem.precision[0] + (problem.weight[0] * free) @ rows**2
        exact = np.where(exact > 0, exact, 1)
        assert cells[0] == pytest.approx(exact)
        assert queries[0] == pytest.approx(
            rows**2 @ (1 / np.where(problem.precision[0] > 0, problem.precision[0], exact))
        )
    assert proximal_weights(problem) == (LOOSE_LEVELS if unmeasured else LEVELS)
    assert problem.bounded.tolist() == [[float(held), 0, 0]]
    assert problem.draws == 2
    assert problem.take(np.array([1])).target.tolist() == problem.target[[1]].tolist()
    assert problem.take(np.array([1])).weight is problem.weight
    assert rows_of(np.arange(6.0).reshape(3, 2), np.array([2, 0])).tolist() == [[4, 5], [0, 1]]
    for solved in (solve_boxed(problem, system), solve_dense(problem, system)):
        for draw in range(2):
            # The optimum: gradients are 0 inside and not below 0 at 0; held sums have their value.
            x, y = solved.x[draw], solved.y[draw]
            gradient = problem.precision[0] * (x - problem.target[draw]) - y @ rows
            assert np.all(x >= 0)
            assert np.minimum(x, gradient) == pytest.approx(np.zeros(5), abs=1e-7)
            wanted = np.where(problem.bounded[0] > 0, problem.floor[0], problem.answer[draw] - y / problem.weight[0])
            assert rows @ x == pytest.approx(wanted, abs=1e-6)


def test_a_round_says_how_much_its_proximal_terms_distort() -> None:
    rng = np.random.default_rng(4)
    rows = np.array([[1.0, -2, 0], [0, 1, 3]])
    problem = problem_of(rng, rows, unmeasured=True, held=True).take(np.array([0]))
    system = DenseSystem.of(sparse.csr_array(rows))
    precision, proximal = rng.uniform(0.5, 2, (1, 3)), np.array([[0.3, 0.0]])
    center, before, y = rng.normal(size=(1, 2)), rng.normal(size=(1, 3)), rng.normal(size=(1, 2))
    stage = Round(problem=problem, system=system, precision=precision, target=before, proximal=proximal, center=center)
    point = stage.at(y)
    measured = np.array([[False, False, True]])
    dual = 0.3 * abs(y[0, 0] - center[0, 0]) / (1 + abs(problem.floor[0, 0]))
    pull = np.abs(y[0]) @ np.abs(rows) + np.sqrt(precision[0])
    moved = precision[0, :2] * np.abs(point.x[0, :2] - before[0, :2]) / pull[:2]
    assert round_error(stage, point, before, measured) == pytest.approx([max(dual, *moved)])


def test_a_bordered_system_knows_its_size_powers_and_draws() -> None:
    base = DenseSystem.of(sparse.csr_array([[1.0, -2, 0]]))
    member = np.array([[[1.0, 0, 1]], [[0, 1, 0]]])
    made = BorderedSystem(base=base, member=member)
    assert (made.queries, made.exact) == (2, True)
    assert made.powers(2).sums(np.ones((2, 3))).tolist() == [[5, 2], [5, 1]]
    assert made.take(np.array([1])).member.tolist() == [[[0, 1, 0]]]


# Conjugate gradients.


def test_conjugate_gradients_solve_to_their_accuracy_and_exactly_for_one_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    rows = np.where(rng.random((6, 12)) < 0.4, rng.uniform(0.5, 2, (6, 12)), 0.0)
    response, diagonal, right = rng.random(12), rng.uniform(0.1, 2, 6), rng.normal(size=6)
    member = (rng.random((2, 12)) < 0.5).astype(float)
    base = SparseRows(rows=sparse.csr_array(rows))
    both = WithExtras(base=base, member=member)
    assert (both.queries, both.cells, base.queries, base.cells) == (8, 12, 6, 12)
    monkeypatch.setattr("recordwise.postprocess.solvers.iterative.ACCURACY", 1e-12)
    for operator, matrix, d, r in (
        (base, rows, diagonal, right),
        (both, np.vstack([rows, member]), np.append(diagonal, [0.5, 0.7]), np.append(right, [1.0, -2])),
    ):
        whole = (matrix * response) @ matrix.T + np.diag(d)
        assert conjugate_gradients(operator, response, d, r) == pytest.approx(np.linalg.solve(whole, r), rel=1e-8)
        x, y = rng.normal(size=12), rng.normal(size=len(matrix))
        assert operator.sums(x) == pytest.approx(matrix @ x)
        assert operator.spread(y) == pytest.approx(y @ matrix)
        scale = operator.precondition(response, d)(np.ones(len(matrix)))
        assert scale == pytest.approx(1 / np.diag(whole))
    assert both.powers(2).sums(np.ones(12)) == pytest.approx(np.append((rows**2).sum(axis=1), member.sum(axis=1)))
    assert ACCURACY == 1e-2


@pytest.mark.parametrize("seed", range(3))
def test_one_chain_of_partitions_is_preconditioned_by_its_own_inverse(seed: int) -> None:
    rng = np.random.default_rng(seed)
    place = {"nation": np.zeros(9), "state": [2, 0, 0, 1, 1, 1, 0, 2, 3], "county": np.arange(9)}
    workload = Workload.hierarchy(
        {"place": place, "kind": {"kind": np.arange(2)}}, [("nation",), ("state",), ("county",), ("county", "kind")]
    )
    parts = CellsAndSums.of(workload)
    operator = choice.operator_of(workload, parts)
    assert isinstance(operator, Cascade)
    assert len(operator.chains) == 1
    matrix = dense(workload)[parts.sums]
    response, diagonal, right = rng.random(18), rng.uniform(0.1, 2, len(matrix)), rng.normal(size=len(matrix))
    whole = (matrix * response) @ matrix.T + np.diag(diagonal)
    assert operator.precondition(response, diagonal)(right) == pytest.approx(np.linalg.solve(whole, right), rel=1e-9)
    assert operator.cells == 18
    # Two chains that cross: each alone.
    other = Workload.marginals((3, 4), {"rows": (0,), "columns": (1,), "sum": (), "cells": (0, 1)})
    own = CellsAndSums.of(other)
    cascade = choice.operator_of(other, own)
    assert isinstance(cascade, Cascade)
    rows = dense(other)[own.sums]
    kept = [[cascade.groups[k].name for k, _ in chain] for chain in cascade.chains]
    assert sorted(map(sorted, kept)) == [["columns", "sum"], ["rows"]]
    x, y = rng.normal(size=12), rng.normal(size=len(rows))
    assert cascade.sums(x) == pytest.approx(rows @ x)
    assert cascade.spread(y) == pytest.approx(y @ rows)


# Prices.


def test_curves_of_cells_begin_at_their_lower_bound_and_end_at_their_upper_one() -> None:
    """Precisions of 2, 4, 0 and 1; the second ends at 5, the last is fixed at 1."""
    found = cell_curves(
        np.array([2.0, 4, 0, 1]), np.array([3.0, 1, 0, 9]), np.array([0.0, 1, 0, 1]), np.array([np.inf, 5, np.inf, 1])
    )
    assert found.first.tolist() == [0, 1, 3, 4, 5]
    assert found.price.tolist() == [-6, 0, 16, 0, -8]
    assert found.amount.tolist() == [0, 1, 5, 0, 1]
    assert found.ray.tolist() == [0.5, 0, np.inf, 0]
    assert (found.node.tolist(), found.last.tolist()) == ([0, 1, 1, 2, 3], [0, 2, 3, 4])
    slope, jump = pieces(found)
    assert (slope.tolist(), jump.tolist()) == ([0.5, 0.25, 0, 0, 0], [0] * 5)


def taken(curves: Curves, price: float) -> Any:
    """The amounts at a price that is no corner."""
    count = len(curves.ray)
    return amounts(curves, Demand(price=np.full(count, price), share=np.zeros(count), excess=np.zeros(count)))


@pytest.mark.parametrize("price", [-7.0, -5.5, -1.0, 0.5, 3.0, 20.0])
def test_amounts_of_children_add_up_at_every_price(price: float) -> None:
    children = cell_curves(
        np.array([2.0, 4, 1, 0.5, 3]),
        np.array([3.0, 1, -1, 2, 0]),
        np.array([0.0, 1, 0, 0, 0]),
        np.array([np.inf, 5, 2, np.inf, 4]),
    )
    parent = np.array([1, 0, 1, 1, 0])
    joined = join_curves(children, parent, 2)
    own, together = taken(children, price), taken(joined, price)
    assert together == pytest.approx(np.bincount(parent, own))
    # An answer of 6 with weight 0.5: what is taken at a price is taken at that price plus what the answer leaves.
    answered = joined.with_answers(np.array([0.5, 0.0]), np.array([6.0, 0]))
    moved = price + 0.5 * (together[0] - 6)
    assert taken(answered, moved)[0] == pytest.approx(together[0])
    assert taken(answered, price)[1] == pytest.approx(together[1])
    fixed = joined.fixed(np.array([False, True]), np.array([0.0, 7]))
    assert taken(fixed, price) == pytest.approx([together[0], 7])
    assert joined.fixed(np.zeros(2, bool), np.zeros(2)) is joined


def test_vertical_pieces_are_shared_and_endless_ones_divided() -> None:
    """Two cells that were not measured take anything at price 0; one of them up to 3 only."""
    cells = cell_curves(np.zeros(3), np.zeros(3), np.zeros(3), np.array([3.0, np.inf, np.inf]))
    slope, jump = pieces(cells)
    assert (jump.tolist(), slope.tolist()) == ([3, 0, 0, 0], [0, 0, 0, 0])
    joined = join_curves(cells, np.zeros(3, np.int64), 1)
    assert (joined.price.tolist(), joined.amount.tolist(), joined.ray.tolist()) == ([0, 0], [0, 3], [np.inf])
    asked = Demand(price=np.zeros(1), share=np.array([0.5]), excess=np.array([8.0]))
    below = demand_of_children(cells, np.zeros(3, np.int64), asked)
    assert (below.excess.tolist(), below.share.tolist()) == ([0, 4, 4], [0.5] * 3)
    assert amounts(cells, below).tolist() == [1.5, 4, 4]
    answered = joined.with_answers(np.array([0.25]), np.array([2.0]))
    assert (answered.price.tolist(), answered.ray.tolist()) == ([-0.5, 0.25], [4.0])


def test_corners_are_found_on_either_side_of_equal_ones() -> None:
    values, first = np.array([1.0, 2, 2, 5, 0, 7]), np.array([0, 4, 5, 6])
    assert bisect_corners(values, first, np.array([2.0, 0, 6]), past_equal=True).tolist() == [3, 5, 5]
    assert bisect_corners(values, first, np.array([2.0, 0, 6]), past_equal=False).tolist() == [1, 4, 5]
    spot = Spot.of(values, first, np.array([2.0, -1, 9]))
    assert (spot.below.tolist(), spot.at.tolist(), spot.then.tolist()) == ([1, 4, 5], [2, 4, 5], [3, 4, 5])
    assert (spot.before.tolist(), spot.beyond.tolist()) == ([False, True, False], [False, False, True])
    part = Spot.of(values, first, np.array([2.75, 0.0, 0]))
    assert (part.part.tolist(), part.between(10 * values).tolist()) == ([0.25, 0, 0], [27.5, 0, 70])


# Places.


@pytest.mark.parametrize("small", [128, 0])
@pytest.mark.parametrize("seed", range(2))
def test_every_pass_over_places_is_that_of_its_matrix(small: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums, their transpose, the fit before it is refined, variances and covariances, by numpy and by triangular solves."""
    monkeypatch.setattr(recursion, "SMALL", small)
    rng = np.random.default_rng(seed)
    rows, variances, tables, axes = crossed(rng)
    made = Crossing.of(sparse.csr_array(rows), tables, axes)
    assert made.places is not None
    assert made.places.inner
    fit = made.places.factor(variances)
    order = rows[made.places.cells].argmax(axis=1)
    weights, values, answers = (
        rng.normal(size=(2, len(rows))),
        rng.normal(size=(2, 12)),
        rng.normal(size=(2, len(rows))),
    )
    assert fit._spread(weights) == pytest.approx(weights @ rows[:, order])
    assert fit._sums(values) == pytest.approx(values @ rows[:, order].T)
    exact = covariances(rows, variances)
    known = answers @ (exact / variances).T
    assert fit._sums(fit._cells(answers)) == pytest.approx(known, abs=1e-9)
    assert fit.fit(answers) == pytest.approx(known, abs=1e-9)
    assert fit.fit(answers[0]) == pytest.approx(known[0], abs=1e-9)
    assert fit.fitted() == pytest.approx(np.diag(exact))
    asked = rng.normal(size=(3, 12)) * (rng.random((3, 12)) < 0.6)
    inverse = np.linalg.inv(rows.T @ (rows / variances[:, None]))[np.ix_(order, order)]
    assert fit.covariance(sparse.csr_array(asked)) == pytest.approx(asked @ inverse @ asked.T, abs=1e-9)


def test_variances_far_apart_are_fitted_to_the_last_digits_by_one_refinement() -> None:
    rng = np.random.default_rng(9)
    rows, _, tables, axes = crossed(rng)
    variances = 10.0 ** rng.uniform(-5, 5, len(rows))
    answers = rng.normal(size=len(rows)) * np.sqrt(variances)
    root = np.sqrt(variances)
    basis = np.linalg.qr(rows / root[:, None])[0]
    known = (basis @ (basis.T @ (answers / root))) * root
    found = Crossing.of(sparse.csr_array(rows), tables, axes).weights(variances).fit(answers)
    assert np.max(np.abs(found - known) / root) < 1e-9


def test_the_cheapest_recursion_is_taken_and_none_where_all_take_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, _, tables, axes = crossed(np.random.default_rng(1))
    found = Crossing.of(sparse.csr_array(rows), tables, axes).places
    assert found is not None
    sizes = [each.classes.stop - each.classes.start for level in found.inner for each in level]
    assert found.work == 10 * sum(size**3 for size in sizes)
    assert found.held == 2 * sum(size**2 for size in sizes)
    for name, least in (("MOST_WORK", found.work), ("MOST_HELD", found.held)):
        with monkeypatch.context() as patched:
            patched.setattr(recursion, name, least)
            again = Crossing.of(sparse.csr_array(rows), tables, axes).places
            assert again is not None
            assert again.work == found.work
            patched.setattr(recursion, name, 0)
            assert Crossing.of(sparse.csr_array(rows), tables, axes).places is None
