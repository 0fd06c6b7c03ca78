"""Nested sums by prices: the passes alone, before any Newton step, satisfy the optimality conditions."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from postprocess.test_post_forest import random_forest
from recordwise.postprocess import Workload, nnls, sequential_fit
from recordwise.postprocess.measured import CellsAndSums, boxed_residual
from recordwise.postprocess.solvers import solve as solving
from recordwise.postprocess.solvers.boxed import BoxedProblem
from recordwise.postprocess.solvers.dense import solve_boxed
from recordwise.postprocess.solvers.prices import Curves, by_prices, scan, scan_numpy
from recordwise.postprocess.solvers.tree import forest_system


def random_problem(seed: int, *, unmeasured: float = 0.0, capped: float = 0.0, held: float = 0.0):
    """A forest with noisy answers over many magnitudes; held sums are those of a table that keeps the caps."""
    rng = np.random.default_rng(seed)
    made = random_forest(rng, int(rng.integers(5, 40)))
    if len(made) == 0:
        made = np.ones((1, made.shape[1]))
    sums, cells = made.shape
    table = np.where(rng.random(cells) < 0.4, 0.0, np.floor(rng.gamma(0.5, 30.0, cells)))
    precision = np.where(rng.random(cells) < unmeasured, 0.0, 10.0 ** rng.uniform(-3, 1, cells))
    target = np.where(precision > 0, table + rng.normal(size=cells) * 5, 0.0)
    high = np.where(rng.random(cells) < capped, table + rng.integers(0, 3, cells), np.inf)
    exact = made @ table
    fixed = rng.random(sums) < held
    problem = BoxedProblem(
        precision=precision[None],
        target=target[None],
        low=np.zeros((1, cells)),
        high=high[None],
        weight=10.0 ** rng.uniform(-3, 1, (1, sums)),
        answer=(exact + rng.normal(size=sums) * 5)[None],
        floor=np.where(fixed, exact, -np.inf)[None],
        ceiling=np.where(fixed, exact, np.inf)[None],
    )
    system = forest_system(sparse.csr_array(made))
    assert system is not None
    return problem, system


KINDS = {
    "all cells measured": {},
    "some cells unmeasured": {"unmeasured": 0.4},
    "no cell measured": {"unmeasured": 1.0},
    "cells with upper bounds": {"capped": 0.5},
    "sums held": {"held": 0.4},
    "all of it": {"unmeasured": 0.3, "capped": 0.3, "held": 0.3},
}


@pytest.mark.theorem("T-PRICES")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.costly
def test_the_passes_alone_solve_the_problem(kind):
    for seed in range(60):
        problem, system = random_problem(seed, **KINDS[kind])
        found = by_prices(problem, system)
        assert found is not None
        assert boxed_residual(problem, system, found.x, found.y)[0] < 1e-9, seed


@pytest.mark.theorem("T-PRICES")
def test_an_answer_taken_at_twice_its_weight_is_noticed(monkeypatch):
    right = Curves.with_answers
    monkeypatch.setattr(Curves, "with_answers", lambda self, weight, answer: right(self, 2 * weight, answer))
    problems = [random_problem(seed, unmeasured=0.4) for seed in range(20)]
    residuals = [boxed_residual(problem, system, *_point(problem, system))[0] for problem, system in problems]
    assert sum(residual > 1e-3 for residual in residuals) > 15


def _point(problem, system):
    found = by_prices(problem, system)
    return found.x, found.y


@pytest.mark.costly
def test_newton_from_there_takes_no_more_than_a_few_steps_and_from_a_wrong_start_ends_at_the_same_table():
    for seed in range(30):
        problem, system = random_problem(seed, unmeasured=0.3)
        start = by_prices(problem, system)
        found, plain = solve_boxed(problem, system, start), solve_boxed(problem, system)
        assert found.iterations[0] <= 3
        np.testing.assert_allclose(system.sums(found.x), system.sums(plain.x), rtol=1e-7, atol=1e-6)
        wrong = solve_boxed(problem, system, replace(start, y=start.y + 1.0, x=start.x + 1.0))
        np.testing.assert_allclose(system.sums(wrong.x), system.sums(plain.x), rtol=1e-7, atol=1e-6)


def test_bounds_that_are_not_described_are_left_to_newton():
    problem, system = random_problem(1)
    assert by_prices(replace(problem, floor=np.zeros_like(problem.answer)), system) is None
    assert by_prices(replace(problem, low=-np.inf * np.ones_like(problem.low)), system) is None


def test_the_compiled_and_the_numpy_scan_agree():
    rng = np.random.default_rng(5)
    first = np.concatenate([[0], np.cumsum(rng.integers(1, 9, 50))])
    owner = np.repeat(np.arange(50), np.diff(first))
    price = rng.normal(size=first[-1])
    price = price[np.lexsort((price, owner))]
    bend, jump, base = rng.random(first[-1]), rng.random(first[-1]) * (rng.random(first[-1]) < 0.2), rng.random(50)
    for ours, plain in zip(scan(first, price, bend, jump, base), scan_numpy(first, price, bend, jump, base)):
        np.testing.assert_allclose(ours, plain, rtol=1e-12, atol=1e-12)


def nested_release(seed: int, cells: int):
    """Three nested tables with unpublished remainders, as a release with incomplete keys has them."""
    rng = np.random.default_rng(seed)
    middle = np.sort(rng.integers(0, cells // 4, cells))
    middle = np.unique(middle, return_inverse=True)[1]
    count = int(middle.max()) + 1
    fine = np.eye(cells, cells + count + 1)
    coarse = np.zeros((count, cells + count + 1))
    coarse[middle, np.arange(cells)] = 1.0
    coarse[np.arange(count), cells + np.arange(count)] = 1.0
    matrix = np.vstack([fine, coarse, np.ones((1, cells + count + 1))])
    table = np.where(rng.random(cells + count + 1) < 0.5, 0.0, rng.poisson(8.0, cells + count + 1))
    workload = Workload.matrix(sparse.csr_array(matrix), {"fine": cells, "coarse": count, "all": 1})
    return workload, matrix @ table + rng.normal(scale=3, size=len(matrix))


@pytest.mark.parametrize("method", [nnls, sequential_fit])
@pytest.mark.parametrize("seed", range(4))
def test_tables_with_remainders_are_fitted_as_by_dense_systems(monkeypatch, method, seed):
    workload, answers = nested_release(seed, 30)
    options = {"priority": ["all", "coarse", "fine"]} if method is sequential_fit else {}
    dense = method(workload, answers, 9.0, **options)
    monkeypatch.setattr(solving, "DENSE_WORK", -1.0)
    assert solving.system_of(workload, CellsAndSums.of(workload)).local.shape == (1, 1)
    nested = method(workload, answers, 9.0, **options)
    assert nested.converged
    np.testing.assert_allclose(nested.fitted, dense.fitted, rtol=1e-6, atol=1e-6)


@pytest.mark.costly
def test_a_sequential_fit_of_thousands_of_nested_cells_keeps_the_totals_it_fitted_first():
    workload, answers = nested_release(9, 3000)
    fit = sequential_fit(workload, answers, 9.0, priority=["all", "coarse", "fine"])
    assert fit.converged
    assert fit.fitted[-1] == pytest.approx(max(answers[-1], 0.0), rel=1e-9)
