"""Least squares against textbook solvers."""

import numpy as np
import pytest

from postprocess.oracles import dense, random_answers, random_variances, random_workload, scipy_nnls
from recordwise.postprocess import Workload, nnls, ols
from recordwise.postprocess.measured import CellsAndSums, measure, sum_rows
from recordwise.postprocess.solvers.dense import DenseSystem, solve_boxed, solve_dense

TABLE = Workload.marginals((9, 24), {"sum": (), "rows": (0,), "columns": (1,), "cells": (0, 1)})


def objective(matrix, x, answers, weights):
    return float(np.sum(weights * (matrix @ x - answers) ** 2))


@pytest.mark.theorem("T-DUAL")
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.costly
@pytest.mark.sampled
def test_nnls_is_as_good_as_the_textbook_method_on_random_problems(seed):
    rng = np.random.default_rng(seed)
    for _ in range(100):
        workload = random_workload(rng)
        answers, variances = random_answers(workload, rng), random_variances(workload, rng)
        fit = nnls(workload, answers, variances)
        matrix = dense(workload)
        theirs = scipy_nnls(matrix, answers, 1 / variances)
        ours, best = (objective(matrix, x, answers, 1 / variances) for x in (fit.x, theirs))
        scale = float(np.sum(answers**2 / variances))
        assert np.all(fit.x >= 0)
        assert fit.converged, (fit.kkt, workload)
        assert ours <= best + 1e-12 * scale
        assert np.allclose(fit.fitted, matrix @ fit.x)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.costly
@pytest.mark.sampled
def test_nnls_finds_the_cells_of_the_textbook_method_where_they_are_determined(seed):
    rng = np.random.default_rng(seed)
    table = rng.poisson(1.0, size=216) * rng.integers(0, 40, size=216)
    answers = TABLE.answer(table.astype(float)) + rng.laplace(scale=8, size=(20, TABLE.queries))
    fit = nnls(TABLE, answers, 128.0)
    theirs = np.array([scipy_nnls(dense(TABLE), row, np.full(TABLE.queries, 1 / 128)) for row in answers])
    assert np.max(np.abs(fit.x - theirs)) < 1e-9
    assert np.max(fit.kkt) < 1e-13


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.costly
@pytest.mark.sampled
def test_ols_is_the_least_norm_solution_on_random_problems(seed):
    rng = np.random.default_rng(100 + seed)
    for _ in range(50):
        workload = random_workload(rng)
        answers, variances = random_answers(workload, rng), random_variances(workload, rng)
        fit = ols(workload, answers, variances)
        root = 1 / np.sqrt(variances)
        matrix = dense(workload)
        best = np.linalg.lstsq(matrix * root[:, None], answers * root, rcond=None)[0]
        assert np.allclose(matrix @ fit.x, matrix @ best, atol=1e-6 * (1 + np.max(np.abs(answers))))
        assert fit.converged


def test_ols_has_the_exact_error_of_theory():
    """The covariance is (A'A)^-1 times the variance; on 9 x 24 at variance 128 the sum has 110.592, a cell in total 23887.9."""
    matrix = dense(TABLE)
    covariance = 128 * np.linalg.inv(matrix.T @ matrix)
    assert np.isclose(np.sum(covariance), 110.592, atol=5e-4)
    assert np.isclose(np.trace(covariance), 23887.9, atol=0.05)
    basis = ols(TABLE, np.eye(TABLE.queries), 128.0)
    assert np.allclose(basis.x.T @ basis.x * 128, covariance, atol=1e-9)


def test_the_compiled_and_the_numpy_method_agree():
    rng = np.random.default_rng(5)
    answers = TABLE.answer(np.zeros(216)) + rng.laplace(scale=8, size=(50, TABLE.queries))
    parts = CellsAndSums.of(TABLE)
    problem = parts.boxed_problem(answers, np.full((1, TABLE.queries), 1 / 128))
    system = DenseSystem.of(sum_rows(TABLE, parts), parts.head)
    ours, plain = solve_dense(problem, system), solve_boxed(problem, system)
    assert np.max(np.abs(ours.x - plain.x)) < 1e-11
    assert np.array_equal(ours.iterations, plain.iterations)


def test_one_draw_is_the_same_alone_and_among_others():
    rng = np.random.default_rng(6)
    answers = rng.laplace(scale=8, size=(400, TABLE.queries))
    together = nnls(TABLE, answers, 128.0)
    alone = nnls(TABLE, answers[251], 128.0)
    assert alone.x.shape == (216,)
    assert np.ndim(alone.kkt) == 0
    assert np.array_equal(alone.x, together.x[251])


def test_a_table_of_one_cell_is_the_weighted_mean_or_zero():
    workload = Workload.marginals((1,), {"sum": (), "cell": (0,)})
    fit = nnls(workload, [[4.0, 1.0], [-4.0, 1.0]], [1.0, 2.0])
    assert np.allclose(fit.x, [[3.0], [0.0]])


@pytest.mark.theorem("T-KKT")
def test_the_residual_sees_a_cell_that_is_off():
    """The residual is computed from the answer, so a wrong answer must show."""
    rng = np.random.default_rng(7)
    measured = measure(TABLE, TABLE.answer(np.full(216, 5.0)) + rng.laplace(scale=8, size=(1, TABLE.queries)), 128.0)
    from recordwise.postprocess.measured import least_squares_residual

    fit = nnls(TABLE, measured.answers, 128.0)
    assert least_squares_residual(measured, fit.x, fit.fitted, nonnegative=True)[0] < 1e-13
    for cell in (int(np.argmax(fit.x[0])), int(np.argmin(fit.x[0]))):
        wrong = fit.x.copy()
        wrong[0, cell] += 1e-3
        assert least_squares_residual(measured, wrong, TABLE.answer(wrong), nonnegative=True)[0] > 1e-8


def test_a_fit_that_misses_its_tolerance_says_so():
    rng = np.random.default_rng(8)
    fit = nnls(TABLE, rng.laplace(scale=8, size=TABLE.queries), 128.0, tolerance=1e-300)
    assert not fit.converged
    assert fit.x.shape == (216,)


@pytest.mark.theorem("T-KKT")
@pytest.mark.parametrize("seed", range(5))
def test_the_distance_to_the_solution_is_within_the_bound_of_the_residual(seed):
    rng = np.random.default_rng(30 + seed)
    matrix, weights = dense(TABLE), np.full(TABLE.queries, 1 / 128)
    answers = TABLE.answer(rng.poisson(3.0, size=216) * 1.0) + rng.laplace(scale=8, size=TABLE.queries)
    best = nnls(TABLE, answers, 128.0).x
    for size in (1e-6, 1e-2, 1.0, 30.0):
        x = np.maximum(best + size * rng.normal(size=216), 0.0)
        gradient, curved = matrix.T @ (weights * (matrix @ x - answers)), np.sum(matrix, axis=0) / 128
        residual = np.minimum(curved * x, gradient)
        reach = np.sqrt(np.sum(residual**2) * 128) + np.sqrt(np.sum((gradient * x)[gradient > curved * x]))
        assert np.sqrt(np.sum((x - best) ** 2) / 128) <= reach * (1 + 1e-9)
