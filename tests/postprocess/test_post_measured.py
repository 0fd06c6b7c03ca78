"""Noise laws, single cells, residuals and refusals of fits, each formula written out again beside the code."""

import os
from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats

from postprocess.oracles import dense, scipy_nnls
from recordwise.errors import ParameterError, SolverError
from recordwise.noise import DiscreteGaussian
from recordwise.postprocess import ContinuousGaussian, ContinuousLaplace, Workload, max_fit, nnls, ols, reweighted_fit
from recordwise.postprocess import measured as measuring
from recordwise.postprocess.least_squares import CONFIDENCE, check, least_norm, low_queries, low_sum, reweight
from recordwise.postprocess.measured import (
    TOLERANCE,
    CellsAndSums,
    Fit,
    GivenLaw,
    boxed_residual,
    join_fits,
    law_of,
    least_squares_residual,
    measure,
    natural_residual,
    negativity,
    read_variances,
    single_cells,
)
from recordwise.postprocess.solvers import solve as solving
from recordwise.postprocess.solvers.boxed import BoxedProblem
from recordwise.postprocess.solvers.dense import DenseSystem

TABLE = Workload.marginals((2, 3), {"sum": (), "rows": (0,), "cells": (0, 1)})
ROWS = np.array([[1.0, 1, 0], [0, 2, 0], [0, 0, -3], [0, 5, 0], [1, -1, 4]])
WEIGHTED = Workload.matrix(sparse.csr_array(ROWS), {"first": 2, "second": 3})


# Laws.


@pytest.mark.parametrize(
    ("ours", "law"),
    [
        (ContinuousLaplace, lambda variance: stats.laplace(scale=np.sqrt(variance / 2))),
        (ContinuousGaussian, lambda variance: stats.norm(scale=np.sqrt(variance))),
    ],
)
def test_laws_of_several_variances_are_those_of_the_textbook(ours: Any, law: Any) -> None:
    variance = np.array([0.5, 2.0, 9.0])
    found, known = ours(variance=variance), law(variance)
    for x in (-4.0, -0.3, 0.0, 0.2, 5.0):
        assert found.cdf(np.full(3, x)) == pytest.approx(known.cdf(x), rel=1e-12)
    for p in (0.01, 0.4999, 0.5, 0.6, 0.999):
        assert found.quantile(np.full(3, p)) == pytest.approx(known.ppf(p), rel=1e-9, abs=1e-12)
    assert found.scale == pytest.approx(known.kwds["scale"])


def test_a_lattice_law_is_asked_at_the_whole_number_below_and_another_where_it_stands() -> None:
    lattice = DiscreteGaussian(3)
    found = law_of(lattice, np.array([9.0, 4.0]))
    assert isinstance(found, GivenLaw)
    assert found.cdf(np.array([1.9, -0.1])) == pytest.approx(lattice.cdf(np.array([1, -1])))
    assert found.scale.tolist() == [3, 2]
    asked = np.array([[0.9, 0.1], [0.5, 0.9]])
    assert found.quantile(asked).tolist() == [[float(lattice.quantile(p)) for p in row] for row in asked]
    normal: Any = stats.norm(scale=2)
    normal.quantile = normal.ppf
    assert law_of(normal, np.ones(1)).cdf(np.array([1.9])) == pytest.approx(normal.cdf(1.9))


@pytest.mark.parametrize("noise", ["normal", None, stats.norm()])
def test_what_is_no_law_is_refused(noise: Any) -> None:
    with pytest.raises(ParameterError, match="must be 'laplace', 'gaussian', or a law with cdf and quantile"):
        law_of(noise, np.ones(1))


# Answers and variances.


def test_variances_are_one_for_all_one_for_each_group_or_one_for_each_answer() -> None:
    assert read_variances(TABLE, 4.0).tolist() == [[4.0] * 9]
    assert read_variances(TABLE, [1.0, 2, 3]).tolist() == [[1.0, *[2] * 2, *[3] * 6]]
    assert read_variances(TABLE, np.arange(1.0, 10)).tolist() == [list(range(1, 10))]
    # As many groups as answers: one for each answer, which is the same.
    single = Workload.marginals((1,), {"sum": (), "cells": (0,)})
    assert read_variances(single, [1.0, 2]).tolist() == [[1.0, 2.0]]
    for wrong in ([1.0, 2], np.ones((1, 9)), np.ones((3, 3)), np.ones(10)):
        with pytest.raises(ParameterError, match=r"must be one number, 3 \(groups\) or 9 \(queries\)"):
            read_variances(TABLE, wrong)
    for none in (0.0, -1.0, np.inf, np.nan, [1.0, 0, 1], [1.0, np.inf, 1]):
        with pytest.raises(ParameterError, match="must be finite and positive"):
            read_variances(TABLE, none)


def test_answers_are_one_draw_or_several_and_weights_the_inverse_variances() -> None:
    one, two = measure(TABLE, np.arange(9.0), 4.0), measure(TABLE, np.arange(18.0).reshape(2, 9), 4.0)
    assert (one.one, two.one, one.draws, two.draws) == (True, False, 1, 2)
    assert one.weights.tolist() == [[0.25] * 9]
    assert two.take(np.array([1])).answers.tolist() == [list(range(9, 18))]
    for wrong in (np.zeros(8), np.zeros((2, 8)), np.zeros((1, 1, 9)), np.zeros((0, 9)), 3.0):
        with pytest.raises(ParameterError, match=r"must have shape \(9,\) or \(draws, 9\)"):
            measure(TABLE, wrong, 1.0)
    for wrong in (np.nan, np.inf):
        with pytest.raises(ParameterError, match="has 2 values that are not finite numbers"):
            measure(TABLE, [wrong, wrong, 0, 0, 0, 0, 0, 0, 0], 1.0)


def test_single_cells_are_found_with_their_coefficients() -> None:
    alone, cell, coefficient = single_cells(WEIGHTED.groups[0])
    assert (alone.tolist(), cell.tolist(), coefficient.tolist()) == ([1], [1], [2])
    alone, cell, coefficient = single_cells(WEIGHTED.groups[1])
    assert (alone.tolist(), cell.tolist(), coefficient.tolist()) == ([0, 1], [2, 1], [-3, 5])
    halves = Workload.hierarchy({"a": {"x": [1, 0, 1, 2]}}, [("x",)])
    alone, cell, coefficient = single_cells(halves.groups[0])
    assert (alone.tolist(), cell.tolist(), coefficient.tolist()) == ([0, 2], [1, 3], [1, 1])
    parts = CellsAndSums.of(WEIGHTED)
    assert (parts.single.tolist(), parts.cell.tolist(), parts.coefficient.tolist()) == (
        [1, 2, 3],
        [1, 2, 1],
        [2, -3, 5],
    )
    assert (sorted(parts.sums.tolist()), parts.order) == ([0, 4], None)
    whole = CellsAndSums.of(TABLE)
    assert whole.order is not None
    # The two rows are disjoint, and more than the one sum: they come first.
    assert (whole.sums.tolist(), whole.head) == ([1, 2, 0], 2)


def test_cells_that_are_measured_twice_and_with_factors_are_pulled_to_their_weighted_mean() -> None:
    """Cell 1 by 2 x = 6 and 5 x = 20 with weights 1 and 3, cell 2 by -3 x = 9, cell 0 by nothing."""
    answers, weights = np.array([[7.0, 6, 9, 20, 8]]), np.array([[1.0, 1, 2, 3, 5]])
    problem = CellsAndSums.of(WEIGHTED).boxed_problem(answers, weights)
    assert problem.precision.tolist() == [[0, 4 + 3 * 25, 2 * 9]]
    assert problem.target == pytest.approx(np.array([[0, (2 * 6 + 3 * 5 * 20) / 79, -3]]))
    assert (problem.low.tolist(), problem.high.tolist()) == ([[0] * 3], [[np.inf] * 3])
    assert (problem.weight.tolist(), problem.answer.tolist()) == ([[1, 5]], [[7, 8]])
    assert (problem.floor.tolist(), problem.ceiling.tolist()) == ([[-np.inf] * 2], [[np.inf] * 2])
    assert (problem.draws, problem.bounded.tolist()) == (1, [[0, 0]])


# Residuals.


def test_a_residual_is_the_largest_gradient_relative_to_what_cancels() -> None:
    """Written out cell by cell: the gradient, or the curvature times the cell where that is less and no cell may be negative."""
    rng = np.random.default_rng(1)
    answers, weights, x = rng.normal(size=(2, 5)), rng.uniform(0.5, 3, (1, 5)), rng.normal(size=(2, 3))
    measured = measure(WEIGHTED, answers, 1 / weights[0])
    for nonnegative in (False, True):
        found = least_squares_residual(measured, x, x @ ROWS.T, nonnegative=nonnegative)
        for draw in range(2):
            worst = 0.0
            for cell in range(3):
                gradient = sum(weights[0, q] * ROWS[q, cell] * (ROWS[q] @ x[draw] - answers[draw, q]) for q in range(5))
                curved = sum(weights[0, q] * ROWS[q, cell] ** 2 for q in range(5))
                size = np.sqrt(curved) + sum(weights[0, q] * abs(ROWS[q, cell] * answers[draw, q]) for q in range(5))
                off = min(curved * x[draw, cell], gradient) if nonnegative else gradient
                worst = max(worst, abs(off) / size)
            assert found[draw] == pytest.approx(worst, rel=1e-12)
    unseen = Workload.matrix(sparse.csr_array([[1.0, 0]]))
    zero = natural_residual(
        unseen, np.ones((1, 2)), np.zeros((1, 1)), np.ones((1, 1)), np.ones((1, 1)), nonnegative=True
    )
    assert zero.tolist() == [0]
    below = negativity(measured, np.array([[1.0, -2, 3], [0, 0, -0.5]]))
    curved = weights @ ROWS**2
    assert below == pytest.approx([2 * np.sqrt(curved[0, 1]), 0.5 * np.sqrt(curved[0, 2])])
    assert negativity(measured, np.ones((1, 3))).tolist() == [0]


def test_a_boxed_residual_is_zero_at_the_solution_and_as_large_as_what_is_off_beside_it() -> None:
    """One cell of precision 4 and target 3 within 0 and 2, one sum of it of weight 1 and answer 5 held within 0 and 9."""
    problem = BoxedProblem(
        precision=np.array([[4.0]]),
        target=np.array([[3.0]]),
        low=np.array([[0.0]]),
        high=np.array([[2.0]]),
        weight=np.array([[0.5]]),
        answer=np.array([[5.0]]),
        floor=np.array([[0.0]]),
        ceiling=np.array([[9.0]]),
    )
    system = DenseSystem.of(sparse.csr_array([[-2.0]]))
    # x = 0.5: the gradient is 4 (0.5 - 3) + 2 y, and without its bounds x would be 3 - y / 2. The sum is -1; the answer 5 - 2 y.
    for y in (0.3, 1.0, 4.0, 8.0):
        x = 0.5
        cells = abs(x - min(max(3 - y / 2, 0), 2)) / (0.5 + 3 + 2 * y / 4)
        wanted = min(max(5 - y / 0.5, 0), 9)
        sums = abs(-2 * x - wanted) / (1 + wanted + 2 * x)
        found = boxed_residual(problem, system, np.array([[x]]), np.array([[y]]))
        assert found == pytest.approx([max(cells, sums)], rel=1e-12)


@pytest.mark.parametrize(("kkt", "primal", "good"), [(1, 1, True), (1.1, 1, False), (1, 1.1, False), (0, 0, True)])
def test_a_fit_has_converged_if_both_residuals_are_within_the_tolerance(kkt: float, primal: float, good: bool) -> None:
    for tolerance in (TOLERANCE, 1e-3):
        parts = {"x": np.zeros(1), "fitted": np.zeros(1), "iterations": np.zeros(1, np.int64)}
        fit = Fit(**parts, kkt=np.array(kkt * tolerance), primal=np.array(primal * tolerance), tolerance=tolerance)
        assert bool(fit.converged) == good
    assert TOLERANCE == 1e-8


@pytest.mark.parametrize("method", [ols, nnls, max_fit, reweighted_fit])
@pytest.mark.parametrize("processors", [1, 3])
def test_draws_in_parts_are_fitted_as_each_alone(method: Any, processors: int, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = np.random.default_rng(3).normal(2, 4, (7, TABLE.queries))
    alone = [method(TABLE, row, 16.0) for row in answers]
    monkeypatch.setattr(os, "cpu_count", lambda: processors)
    for name, size in (("CHUNK_DRAWS", 3), ("CHUNK_CELLS", 2 * TABLE.cells), ("CHUNK_CELLS", 1)):
        with monkeypatch.context() as patched:
            patched.setattr(measuring, name, size)
            together = method(TABLE, answers, 16.0, tolerance=1e-7)
        assert together.x == pytest.approx(np.array([each.x for each in alone]), abs=1e-9)
        assert together.fitted.shape == (7, 9)
        assert together.iterations.shape == together.kkt.shape == together.primal.shape == (7,)
        assert together.tolerance == 1e-7
    assert alone[0].x.shape == (6,)
    assert alone[0].kkt.shape == ()
    assert alone[0].tolerance == TOLERANCE


def test_parts_of_draws_are_as_many_as_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = measure(TABLE, np.zeros((7, 9)), 1.0)
    monkeypatch.setattr(os, "cpu_count", lambda: None)

    def sizes(draws: int, cells: int) -> list[int]:
        seen: list[int] = []

        def fit(some: Any) -> Fit:
            seen.append(some.draws)
            none = np.zeros(some.draws)
            return Fit(x=none, fitted=none, kkt=none, primal=none, iterations=none.astype(np.int64))

        monkeypatch.setattr(measuring, "CHUNK_DRAWS", draws)
        monkeypatch.setattr(measuring, "CHUNK_CELLS", cells)
        measuring.fit_draws(measured, fit)
        return seen

    assert sizes(125, 400_000) == [7]
    assert sizes(3, 400_000) == [3, 3, 1]
    assert sizes(125, 12) == [2, 2, 2, 1]
    assert sizes(125, 1) == [1] * 7


def test_a_fit_that_is_no_number_is_refused() -> None:
    measured, none = measure(TABLE, np.zeros((1, 9)), 1.0), np.zeros(1)
    bad = Fit(x=np.array([np.nan]), fitted=none, kkt=none, primal=none, iterations=none.astype(np.int64))
    with pytest.raises(SolverError, match="differ by more than the digits"):
        join_fits(measured, [bad])


# Least squares.


def test_a_table_that_answers_leave_open_is_the_shortest_that_fits_best(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = Workload.matrix(sparse.csr_array([[1.0, 1, 0, 0], [0, 1, 1, 0], [1, 0, -1, 0], [0, 0, 0, 2]]))
    answers, variances = np.array([[3.0, 1, 4, 6], [0, 2, 1, 1]]), np.array([1.0, 4, 9, 0.25])
    root = 1 / np.sqrt(variances)
    known = answers * root @ np.linalg.pinv(dense(workload) * root[:, None]).T
    assert ols(workload, answers, variances).x == pytest.approx(known, abs=1e-9)
    measured = measure(workload, answers, variances)
    assert least_norm(measured) == pytest.approx(known, abs=1e-9)
    monkeypatch.setattr("recordwise.postprocess.least_squares.DENSE_ENTRIES", 15)
    assert least_norm(measured) == pytest.approx(known, abs=1e-8)


@pytest.mark.parametrize("work", [-1.0, np.inf])
def test_least_squares_without_the_sign_is_the_textbook_one_whatever_the_system(
    work: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solving, "DENSE_WORK", work)
    rng = np.random.default_rng(5)
    kinds = [
        Workload.marginals((2, 3), {"sum": (), "rows": (0,), "cells": (0, 1)}),
        Workload.marginals((3, 4), {"rows": (0,), "columns": (1,), "cells": (0, 1)}),
        Workload.matrix(sparse.csr_array(np.vstack([ROWS, np.eye(3)]))),
    ]
    for workload in kinds:
        answers, variances = rng.normal(0, 9, (3, workload.queries)), rng.uniform(0.5, 4, workload.queries)
        matrix, root = dense(workload), 1 / np.sqrt(variances)
        known = np.linalg.lstsq(matrix * root[:, None], (answers * root).T)[0].T
        found = ols(workload, answers, variances)
        assert found.x == pytest.approx(known, abs=1e-7)
        assert found.fitted == pytest.approx(known @ matrix.T, abs=1e-7)
        assert (found.primal == 0).all()
        assert (found.kkt < 1e-8).all()


# Reweighting.


def test_low_answers_are_those_before_the_first_that_is_surely_no_zero() -> None:
    """Laplace noise of scale 1: the j-th smallest is no zero if F(a)^j is at least the confidence."""
    law = ContinuousLaplace(variance=np.full(4, 2.0))
    answers = np.array([[0.5, 9.0, -1.0, 8.0], [0.5, 0.1, -1.0, 0.2], [9.0, 9.0, 9.0, 9.0]])
    cdf = stats.laplace.cdf
    assert cdf(0.5) ** 2 < 0.99 <= cdf(8.0) ** 3
    low, divisor = low_queries(answers, law, 0.99, "counts")
    assert low.tolist() == [[True, False, True, False], [True] * 4, [False] * 4]
    # The largest of two, four and one zeros is below its median half of the time.
    medians = [stats.laplace.ppf(0.5 ** (1 / count)) for count in (2, 4, 1)]
    assert divisor.ravel() == pytest.approx(
        [2 * max(1.0, each) ** 2 if each > 0 else 2.0 for each in np.repeat(medians, 4)]
    )
    for confidence in (cdf(8.0) ** 3 * (1 + 1e-12), cdf(8.0) ** 3):
        some = low_queries(answers[:1], law, confidence, "counts")[0]
        assert some[0, 3] == (confidence > cdf(8.0) ** 3)
    # In units of the noise, what is twice as large with twice the noise has the same weights.
    wide = ContinuousLaplace(variance=np.full(4, 200.0))
    ours, theirs = low_queries(answers, law, 0.9, "noise"), low_queries(10 * answers, wide, 0.9, "noise")
    assert np.array_equal(ours[0], theirs[0])
    assert ours[1] == pytest.approx(theirs[1])
    counted = low_queries(10 * answers, wide, 0.9, "counts")[1]
    assert counted[1, 0] == pytest.approx(2 * (10 * medians[1]) ** 2)
    alone = low_queries(np.array([[0.1], [5.0]]), ContinuousLaplace(variance=np.ones(1)), 0.9, "counts")
    assert (alone[0].tolist(), alone[1].tolist()) == ([[False], [False]], [[1.0]])


def test_the_sum_of_low_answers_has_half_the_weight_of_their_variance() -> None:
    measured = measure(TABLE, np.arange(18.0).reshape(2, 9), [1.0, 2.0, 4.0])
    low = np.array([[True, True, False, False, False, True], [False] * 6])
    extra = low_sum(measured, 2, low)
    assert extra.answer.tolist() == [3 + 4 + 8, 0]
    assert extra.weight == pytest.approx([0.5 / 12, 0])
    assert extra.place == slice(3, 9)
    # The rows of two cells each: a row that is low gives its three cells.
    rows = low_sum(measured, 1, np.array([[False, True], [True, False]]))
    assert rows.member.tolist() == [[0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0]]
    flags = [np.zeros((2, 1), bool), np.zeros((2, 2), bool), low]
    weights, extras = reweight(measured, [(each, np.full((2, 1), 8.0)) for each in flags])
    assert [each.group.name for each in extras] == ["rows", "cells"]
    assert weights[0].tolist() == [1, 0.5, 0.5, *(0.25 / 8 if each else 0.25 for each in low[0])]
    assert weights[1].tolist() == [1, 0.5, 0.5, *[0.25] * 6]


@pytest.mark.parametrize("work", [-1.0, np.inf])
@pytest.mark.parametrize("seed", range(3))
def test_a_reweighted_fit_is_least_squares_with_its_weights_and_sums(
    work: float, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each draw against a textbook method, with the rows of its own low sums below the matrix."""
    monkeypatch.setattr(solving, "DENSE_WORK", work)
    rng = np.random.default_rng(seed)
    workload = Workload.marginals((3, 4), {"rows": (0,), "columns": (1,), "cells": (0, 1)})
    answers = workload.answer(rng.integers(0, 2, 12) * 40.0) + rng.laplace(scale=3, size=(2, workload.queries))
    answers[1] += 100 * (seed == 1)
    variances = np.repeat([18.0, 18, 9], [3, 4, 12])
    found = reweighted_fit(workload, answers, variances)
    measured = measure(workload, answers, variances)
    laws = [law_of("laplace", variances[place]) for place in workload.slices]
    low = [low_queries(answers[:, p], law, CONFIDENCE, "counts") for p, law in zip(workload.slices, laws)]
    weights, extras = reweight(measured, low)
    for draw in range(2):
        rows = [dense(workload), *(extra.member[draw][None] for extra in extras)]
        aims = np.concatenate([answers[draw], [extra.answer[draw] for extra in extras]])
        own = np.concatenate([weights[draw], [extra.weight[draw] for extra in extras]])
        known = scipy_nnls(np.vstack(rows), aims, own)
        assert found.x[draw] == pytest.approx(known, abs=1e-6)
    assert found.converged.all()


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.1, 1.5])
def test_a_confidence_at_or_beyond_its_ends_is_refused(confidence: float) -> None:
    with pytest.raises(ParameterError, match="must lie between 0 and 1"):
        check(TABLE, confidence, "counts")
    with pytest.raises(ParameterError, match="must be 'counts' or 'noise'"):
        check(TABLE, 0.5, "dozens")
    check(TABLE, 1e-9, "counts")
    check(TABLE, 1 - 1e-9, "noise")
    assert CONFIDENCE == 0.99
