"""The solvers for large workloads give what the dense one gives."""

import numpy as np
import pytest
from scipy import sparse

from postprocess.oracles import dense
from recordwise.postprocess import Workload, max_fit, nnls, ols, reweighted_fit, sequential_fit
from recordwise.postprocess.measured import CellsAndSums, sum_rows
from recordwise.postprocess.solvers import solve
from recordwise.postprocess.solvers import solve as choice
from recordwise.postprocess.solvers import tree as tree_module
from recordwise.postprocess.solvers.dense import DenseSystem
from recordwise.postprocess.solvers.iterative import Cascade, IterativeSystem, SparseRows
from recordwise.postprocess.solvers.kernel import fill
from recordwise.postprocess.solvers.solve import FactoredSystem
from recordwise.postprocess.solvers.tree import TreeSystem, eliminate, eliminate_numpy

PLACE = {"nation": np.zeros(9), "state": [2, 0, 0, 1, 1, 1, 0, 2, 3], "county": np.arange(9)}
MARGINS = Workload.hierarchy(
    {"age": {"age": np.arange(3)}, "place": PLACE, "sex": {"sex": np.arange(2)}},
    [
        ("nation",),
        ("sex", "nation"),
        ("state",),
        ("age", "state"),
        ("county", "sex"),
        ("age",),
        ("county", "age", "sex"),
    ],
)
PLAIN = Workload.hierarchy({"place": PLACE}, [("nation",), ("state",), ("county",)])
CROSSED = Workload.hierarchy(
    {"place": PLACE, "sector": {"naics2": [0, 0, 1, 1, 2], "naics3": np.arange(5)}},
    [
        (),
        ("state",),
        ("county",),
        ("naics2",),
        ("naics3",),
        ("state", "naics2"),
        ("county", "naics2"),
        ("county", "naics3"),
    ],
    cells=np.argwhere(np.random.default_rng(0).random((9, 5)) < 0.7),
)
ROWS = Workload.matrix(
    np.vstack(
        [np.random.default_rng(1).random((12, 8)) * (np.random.default_rng(2).random((12, 8)) < 0.4) + 0.01, np.eye(8)]
    )
)
COARSER = dense(CROSSED)[: CROSSED.queries - CROSSED.cells]
INCOMPLETE = Workload.matrix(
    np.vstack([np.eye(CROSSED.cells, CROSSED.cells + len(COARSER)), np.hstack([COARSER, np.eye(len(COARSER))])]),
    {"cells": CROSSED.cells} | {group.name: group.size for group in CROSSED.groups[:-1]},
)
"""The same tables with incomplete keys: every coarser cell has a remainder of its own."""


@pytest.fixture
def no_dense(monkeypatch):
    """Pretend that nothing is small."""
    monkeypatch.setattr(choice, "DENSE_WORK", -1.0)


def answers_of(workload, seed, draws=3):
    rng = np.random.default_rng(seed)
    exact = workload.answer(rng.poisson(1.5, size=workload.cells) * rng.integers(0, 20, size=workload.cells) * 1.0)
    return exact + rng.laplace(scale=4, size=(draws, len(exact)))


@pytest.mark.parametrize(
    ("workload", "kind"),
    [
        (MARGINS, TreeSystem),
        (PLAIN, TreeSystem),
        (CROSSED, IterativeSystem),
        (INCOMPLETE, FactoredSystem),
        (ROWS, FactoredSystem),
    ],
)
@pytest.mark.costly
def test_each_family_gets_its_own_system(no_dense, workload, kind):
    assert isinstance(choice.system_of(workload, CellsAndSums.of(workload)), kind)


@pytest.mark.parametrize("workload", [MARGINS, PLAIN, CROSSED, INCOMPLETE, ROWS])
def test_operators_count_what_the_matrix_counts(no_dense, workload):
    rng = np.random.default_rng(3)
    parts = CellsAndSums.of(workload)
    system = choice.system_of(workload, parts)
    matrix = dense(workload)[parts.sums]
    x, y = rng.normal(size=(2, workload.cells)), rng.normal(size=(2, len(parts.sums)))
    assert np.allclose(system.sums(x), x @ matrix.T)
    assert np.allclose(system.spread(y), y @ matrix)
    assert np.allclose(system.powers(2).sums(x), x @ (matrix**2).T)


@pytest.mark.theorem("T-ELIMINATION")
@pytest.mark.parametrize("workload", [MARGINS, PLAIN, INCOMPLETE, ROWS])
@pytest.mark.costly
def test_elimination_solves_the_newton_system(no_dense, workload):
    rng = np.random.default_rng(4)
    parts = CellsAndSums.of(workload)
    tree, plain = choice.system_of(workload, parts), DenseSystem.of(sum_rows(workload, parts), parts.head)
    response = rng.random((3, workload.cells)) * (rng.random((3, workload.cells)) < 0.4)
    diagonal, right = 10.0 ** rng.uniform(-3, 3, size=(3, plain.queries)), rng.normal(size=(3, plain.queries))
    ours, theirs = tree.solver(response, diagonal)(right), plain.solver(response, diagonal)(right)
    assert np.allclose(ours, theirs, rtol=1e-9, atol=1e-9 * np.max(np.abs(theirs)))


def test_the_compiled_and_the_numpy_elimination_agree():
    rng = np.random.default_rng(5)
    rows = (rng.random((6, 7, 20)) < 0.3).astype(float)
    beta = rows @ rows.transpose(0, 2, 1)
    omega = rng.random((6, 7)) * (rng.random((6, 7)) < 0.8)
    (back, reduced), (plain_back, plain) = eliminate(beta.copy(), omega), eliminate_numpy(beta.copy(), omega)
    vector = rng.normal(size=(6, 7))
    assert np.allclose(reduced, plain, atol=1e-12)
    assert np.allclose(back(vector), plain_back(vector), atol=1e-12)


@pytest.mark.parametrize("workload", [MARGINS, PLAIN, CROSSED, INCOMPLETE])
@pytest.mark.parametrize("method", [ols, nnls, max_fit, sequential_fit, reweighted_fit])
def test_large_methods_find_the_same_table(monkeypatch, workload, method):
    answers = answers_of(workload, 6)
    small = method(workload, answers, 32.0)
    monkeypatch.setattr(choice, "DENSE_WORK", -1.0)
    large = method(workload, answers, 32.0)
    assert np.all(large.converged)
    assert np.max(np.abs(small.x - large.x)) < 1e-7


def test_conjugate_gradients_alone_solve_a_tree_too(monkeypatch):
    answers = answers_of(MARGINS, 7)
    small = nnls(MARGINS, answers, 32.0)
    monkeypatch.setattr(choice, "DENSE_WORK", -1.0)
    monkeypatch.setattr(tree_module, "MOST_WORK", -1.0)
    large = nnls(MARGINS, answers, 32.0)
    assert np.all(large.converged)
    assert np.max(np.abs(small.x - large.x)) < 1e-9


def test_the_fill_of_an_order_is_that_of_its_factor():
    """Without cancellation, a Cholesky factor has a number wherever elimination connects two sums."""
    rng = np.random.default_rng(11)
    for size in (1, 2, 9, 40):
        below = np.tril((rng.random((size, size)) < 3 / size) * rng.uniform(0.5, 1, (size, size)), -1)
        matrix = sparse.csr_array(below + below.T + 2 * size * np.eye(size))
        factor = np.linalg.cholesky(matrix.toarray())
        count = int(np.sum(np.tril(factor, -1) != 0))
        assert fill(matrix.indptr, matrix.indices, 10**6) == count
        assert fill(matrix.indptr, matrix.indices, count - 1) == count


@pytest.mark.parametrize("most", ["MOST_FILL", "MOST_ENTRIES"])
def test_rows_too_dense_to_factor_are_solved_by_conjugate_gradients(no_dense, monkeypatch, most):
    monkeypatch.setattr(solve, most, 0)
    assert isinstance(choice.system_of(ROWS, CellsAndSums.of(ROWS)), IterativeSystem)
    answers = answers_of(ROWS, 8)
    large = nnls(ROWS, answers, 2.0)
    assert np.all(large.kkt < 1e-10)


@pytest.mark.costly
def test_a_large_tree_is_solved_to_the_last_digits():
    leaf = np.arange(200_000)
    tree = {"nation": leaf * 0, "state": leaf // 4000, "county": leaf // 80, "tract": leaf // 10, "block": leaf}
    workload = Workload.hierarchy({"place": tree}, [("nation",), ("state",), ("county",), ("tract",), ("block",)])
    assert isinstance(choice.system_of(workload, CellsAndSums.of(workload)), TreeSystem)
    rng = np.random.default_rng(9)
    answers = workload.answer(rng.poisson(0.3, size=len(leaf)) * 1.0) + rng.normal(scale=3, size=(2, workload.queries))
    fit = nnls(workload, answers, 9.0)
    assert np.all(fit.kkt < 1e-12)


def test_rows_of_a_matrix_that_are_partitions_are_rolled_up() -> None:
    labels = [np.arange(12), np.arange(12) // 4, np.arange(12) % 3, np.zeros(12, np.int64)]
    blocks = [sparse.csr_array((np.ones(12), (label, np.arange(12)))) for label in labels]
    workload = Workload.matrix(sparse.vstack(blocks), {str(k): block.shape[0] for k, block in enumerate(blocks)})
    parts = CellsAndSums.of(workload)
    operator, rows = choice.operator_of(workload, parts), sum_rows(workload, parts)
    assert isinstance(operator, Cascade)
    x, y = np.arange(12.0), np.arange(float(rows.shape[0]))
    assert np.allclose(operator.sums(x), rows @ x)
    assert np.allclose(operator.spread(y), rows.T @ y)
    weighted = Workload.matrix(sparse.vstack([*blocks, 2.0 * blocks[1]]))
    assert isinstance(choice.operator_of(weighted, CellsAndSums.of(weighted)), SparseRows)
