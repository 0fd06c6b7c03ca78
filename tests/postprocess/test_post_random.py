"""Random overlapping workloads, weights over four orders of magnitude, answers far from any table: every max fit is solved."""

import numpy as np
import pytest

from postprocess.oracles import dense, quadratic, random_answers, random_variances, random_workload, smallest_deviation
from recordwise.postprocess import Workload, max_fit, reweighted_fit
from recordwise.postprocess.maxfit import bounded_problem
from recordwise.postprocess.measured import CellsAndSums, boxed_residual, measure
from recordwise.postprocess.solvers.boxed import Solution
from recordwise.postprocess.solvers.dense import DenseSystem
from recordwise.postprocess.solvers.solve import refine, system_of

ONCE_UNSOLVED = [492, 924, 10340, 13066, 13330, 17596, 18678, 19131]
"""The eight of the first 20,000 that proximal weights of one size left with residuals of 2e-8 to 0.7."""


def random_problem(seed):
    rng = np.random.default_rng(seed)
    workload = random_workload(rng)
    return workload, random_answers(workload, rng), random_variances(workload, rng)


def unsolved(seeds):
    return [seed for seed in seeds if not max_fit(*random_problem(seed)).converged]


@pytest.mark.theorem("T-REFINE")
@pytest.mark.parametrize("seed", ONCE_UNSOLVED)
@pytest.mark.costly
def test_what_was_once_left_unsolved_is_the_quadratic_program(seed):
    workload, answers, variances = random_problem(seed)
    fit, matrix = max_fit(workload, answers, variances), dense(workload)
    assert fit.converged
    assert np.isclose(fit.bound, smallest_deviation(matrix, answers, 1 / variances), rtol=1e-6, atol=1e-6)
    reach = (fit.bound + 0.01) * np.sqrt(variances)
    theirs = quadratic(matrix, answers, 1 / variances, answers - reach, answers + reach)
    ours, other = (np.sum((matrix @ x - answers) ** 2 / variances) for x in (fit.x, theirs))
    assert ours <= other * (1 + 1e-8) + 1e-8


@pytest.mark.costly
def test_max_fit_is_solved_on_some_hundred_random_workloads():
    assert unsolved(range(200)) == []


@pytest.mark.slow
def test_max_fit_is_solved_on_thousands_of_random_workloads():
    assert unsolved(range(200, 8200)) == []


@pytest.mark.theorem("T-REFINE")
@pytest.mark.parametrize("held", [False, True])
@pytest.mark.costly
def test_the_second_method_needs_no_good_start_and_never_makes_a_point_worse(held):
    solved = 0
    for seed in range(60):
        workload, answers, variances = random_problem(seed)
        measured, parts = measure(workload, answers, variances), CellsAndSums.of(workload)
        system = system_of(workload, parts)
        assert isinstance(system, DenseSystem)
        wide = np.array([float(max_fit(workload, answers, variances).bound) + 1.0])
        problem = bounded_problem(measured, parts, wide, bound_sums=held)
        start = Solution(
            x=np.zeros((1, workload.cells)), y=np.zeros((1, system.queries)), iterations=np.zeros(1, dtype=np.int64)
        )
        before = boxed_residual(problem, system, start.x, start.y)
        found = refine(problem, system, start)
        after = boxed_residual(problem, system, found.x, found.y)
        assert after <= np.maximum(before, 1e-10)
        solved += bool(after <= 1e-10)
    assert solved == 60


@pytest.mark.parametrize("answer", [-3.0, 0.0, 5.0])
def test_reweighting_a_workload_of_single_totals_is_least_squares(answer):
    """No group has two queries, so that there is nothing to add up."""
    for shape, groups in (((3,), [()]), ((1, 1), [(), (0,)])):
        workload = Workload.marginals(shape, groups)
        fit = reweighted_fit(workload, np.full(workload.queries, answer), 2.0)
        assert fit.converged
        assert np.allclose(fit.fitted, max(answer, 0.0))
