"""Nested sums of any depth: recognized, and solved as a general method solves them."""

import numpy as np
import pytest
from scipy import sparse

from postprocess.oracles import scipy_nnls
from recordwise.postprocess import Workload, nnls
from recordwise.postprocess.solvers import solve as solving
from recordwise.postprocess.solvers.tree import TreeSystem, forest_system


def random_forest(rng, cells):
    """Nested sums over permuted cells: intervals cut again and again, some repeated, some cells in none."""
    rows, left = [], [(0, cells - 1)]
    while left:
        start, stop = left.pop()
        if rng.random() < 0.8:
            rows += [np.arange(start, stop)] * (2 if rng.random() < 0.1 else 1)
        if stop - start > 2 and rng.random() < 0.9:
            cut = int(rng.integers(start + 1, stop))
            left += [(start, cut), (cut, stop)]
    rng.shuffle(rows)
    order = rng.permutation(cells)
    made = np.zeros((len(rows), cells))
    for number, each in enumerate(rows):
        made[number, order[each]] = 1.0
    return made[made.sum(axis=1) > 0]


@pytest.mark.theorem("T-ELIMINATION")
@pytest.mark.parametrize("seed", range(40))
def test_a_forest_does_sums_spreads_and_newton_systems_as_its_matrix_does(seed):
    rng = np.random.default_rng(seed)
    made = random_forest(rng, int(rng.integers(3, 40)))
    if len(made) == 0:
        made = np.ones((1, made.shape[1]))
    system = forest_system(sparse.csr_array(made))
    assert system is not None
    x, y = rng.normal(size=(2, made.shape[1])), rng.normal(size=(2, len(made)))
    np.testing.assert_allclose(system.sums(x), x @ made.T, atol=1e-12)
    np.testing.assert_allclose(system.spread(y), y @ made, atol=1e-12)
    response, diagonal = rng.random((1, made.shape[1])) + 0.1, rng.random((1, len(made))) + 0.1
    matrix = (made * response) @ made.T + np.diag(diagonal[0])
    found = system.solver(response, diagonal)(y)
    np.testing.assert_allclose(found, np.linalg.solve(matrix, y.T).T, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    "rows",
    [
        [[1, 1, 0], [0, 1, 1]],
        [[1, 1, 1, 0], [0, 0, 1, 1]],
        [[2, 2, 0], [0, 0, 1]],
        [[1, 1, 1, 1], [1, 1, 0, 0], [0, 1, 1, 0]],
    ],
)
def test_sums_that_cross_or_weigh_are_no_forest(rows):
    assert forest_system(sparse.csr_array(np.array(rows, dtype=float))) is None


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.costly
def test_a_fit_by_the_forest_is_the_textbook_one(monkeypatch, seed):
    """Every sum published, some cells not: as the tables of a release with their rests."""
    monkeypatch.setattr(solving, "DENSE_WORK", -1)
    rng = np.random.default_rng(100 + seed)
    made = np.vstack([random_forest(rng, 30), np.ones((1, 30)), np.eye(30)[rng.random(30) < 0.6]])
    workload = Workload.matrix(sparse.csr_array(made))
    assert isinstance(solving.system_of(workload, solving.CellsAndSums.of(workload)), TreeSystem)
    answers, variances = rng.normal(1.0, 3.0, len(made)), rng.random(len(made)) + 0.5
    fit = nnls(workload, answers, variances)
    assert np.all(fit.converged)
    other = made @ scipy_nnls(made, answers, 1 / variances)
    np.testing.assert_allclose(fit.fitted, other, atol=1e-7)
