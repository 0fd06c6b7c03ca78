"""ReWeighted, Sequential and MaxFit against independent solvers of their definitions."""

import numpy as np
import pytest

from postprocess.oracles import dense, least_value, quadratic, random_answers, scipy_nnls, smallest_deviation
from recordwise.errors import ParameterError
from recordwise.noise import DiscreteGaussian, DiscreteLaplace
from recordwise.postprocess import (
    ContinuousGaussian,
    ContinuousLaplace,
    Workload,
    max_fit,
    nnls,
    reweighted_fit,
    sequential_fit,
)

TABLE = Workload.marginals((3, 4), {"sum": (), "rows": (0,), "columns": (1,), "cells": (0, 1)})
CUBE = Workload.marginals((2, 3, 2), [(), (0, 1), (1, 2), (0, 2), (0, 1, 2)])
NO_CELLS = Workload.marginals((2, 3, 2), [(), (0, 1), (1, 2)])
TREE = Workload.hierarchy(
    {"place": {"nation": np.zeros(7), "state": [0, 0, 1, 1, 1, 2, 2], "county": np.arange(7)}},
    [("nation",), ("state",), ("county",)],
)
WORKLOADS = [TABLE, CUBE, TREE]


def reweighted_by_hand(workload, answers, scale, *, laplace, units):
    """MICRODATA's description, one draw, one query at a time, with the textbook solver."""
    rows, targets, weights = [], [], []
    variance = 2 * scale**2 if laplace else scale**2
    law = (ContinuousLaplace if laplace else ContinuousGaussian)(variance=np.array(variance))
    matrix = dense(workload)
    for place in workload.slices:
        own, values = matrix[place], answers[place]
        order = np.argsort(values, kind="stable")
        count = len(values)
        for j, query in enumerate(order, start=1):
            if law.cdf(values[query]) ** j >= 0.99:
                count = j - 1
                break
        down = max(1.0, float(law.quantile(0.5 ** (1 / max(count, 1)))) / (scale if units == "noise" else 1.0))
        for position, query in enumerate(order):
            rows.append(own[query])
            targets.append(values[query])
            weights.append(1 / (2 * variance * down**2) if position < count else 1 / variance)
        if count:
            low = order[:count]
            rows.append(own[low].sum(axis=0))
            targets.append(values[low].sum())
            weights.append(1 / (2 * count * variance))
    return scipy_nnls(np.array(rows), np.array(targets), np.array(weights))


@pytest.mark.theorem("T-REWEIGHT")
@pytest.mark.parametrize("units", ["counts", "noise"])
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("workload", WORKLOADS)
def test_reweighting_follows_its_description_word_by_word(workload, law, units):
    rng = np.random.default_rng(3)
    exact = workload.answer(rng.integers(0, 3, size=workload.cells) * 20.0)
    draw = rng.laplace if law == "laplace" else rng.normal
    answers = exact + draw(scale=8, size=(40, len(exact)))
    variance = 128.0 if law == "laplace" else 64.0
    fit = reweighted_fit(workload, answers, variance, law, units=units)
    assert np.all(fit.converged)
    for x, row in zip(fit.x, answers):
        theirs = reweighted_by_hand(workload, row, 8.0, laplace=law == "laplace", units=units)
        assert np.max(np.abs(x - theirs)) < 1e-7


def test_only_the_noise_units_are_free_of_scale():
    rng = np.random.default_rng(4)
    answers = rng.laplace(scale=8, size=TABLE.queries)
    for units, free in (("noise", True), ("counts", False)):
        one = reweighted_fit(TABLE, answers, 128.0, units=units).x
        ten = reweighted_fit(TABLE, 10 * answers, 12800.0, units=units).x
        assert np.allclose(10 * one, ten, atol=1e-8) == free


def test_a_law_of_the_user_gives_what_the_built_in_one_gives():
    class Own:
        def cdf(self, x, /):
            return ContinuousLaplace(variance=np.array(128.0)).cdf(x)

        def quantile(self, p, /):
            return ContinuousLaplace(variance=np.array(128.0)).quantile(p)

    answers = np.random.default_rng(5).laplace(scale=8, size=TABLE.queries)
    assert np.array_equal(reweighted_fit(TABLE, answers, 128.0, Own()).x, reweighted_fit(TABLE, answers, 128.0).x)


@pytest.mark.parametrize(("exact", "name"), [(DiscreteLaplace(200), "laplace"), (DiscreteGaussian(200), "gaussian")])
def test_a_lattice_law_of_many_steps_gives_nearly_what_the_continuous_one_gives(exact, name):
    """At 200 steps a scale the two laws differ by a step or so, and the fits by as little."""
    answers = np.rint(np.random.default_rng(15).laplace(scale=200, size=(5, TABLE.queries)))
    fine = reweighted_fit(TABLE, answers, float(exact.variance), exact)
    smooth = reweighted_fit(TABLE, answers, float(exact.variance), name)
    assert np.all(fine.converged)
    assert np.max(np.abs(fine.x - smooth.x)) < 5


@pytest.mark.theorem("T-ACYCLIC")
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("workload", [TABLE, CUBE, TREE, NO_CELLS])
@pytest.mark.costly
@pytest.mark.sampled
def test_no_table_with_the_earlier_answers_improves_a_sequential_stage(workload, seed):
    """The certificate of each stage: its gradient has its minimum over all tables with the held answers at the fitted ones."""
    rng = np.random.default_rng(seed)
    order = list(range(len(workload.groups)))
    if seed % 2:
        rng.shuffle(order)
    matrix = dense(workload)
    for _ in range(6):
        answers = random_answers(workload, rng)
        variances = np.repeat(rng.uniform(0.5, 2, size=len(order)), [group.size for group in workload.groups])
        fit = sequential_fit(workload, answers, variances, priority=[workload.groups[k].name for k in order])
        assert np.all(fit.x >= 0)
        assert fit.converged, (fit.kkt, fit.primal)
        held = np.zeros((0, workload.cells))
        for place in order:
            rows, where = matrix[workload.slices[place]], workload.slices[place]
            off, size = fit.fitted[where] - answers[where], 1 + np.abs(answers[where])
            gradient = np.where(np.abs(off) > 1e-9 * size, off, 0.0) / variances[where]
            lowest = least_value(gradient @ rows, held, held @ fit.x)
            assert gradient @ fit.fitted[where] <= lowest + 1e-8 * np.sum(size**2 / variances[where])
            held = np.vstack([held, rows])


def test_the_first_group_keeps_its_own_noise():
    rng = np.random.default_rng(6)
    answers = rng.laplace(scale=8, size=(200, TABLE.queries))
    fit = sequential_fit(TABLE, answers, 128.0)
    assert np.allclose(fit.fitted[:, 0], np.maximum(answers[:, 0], 0.0), atol=1e-9)


def test_a_priority_that_is_not_a_list_of_all_groups_is_refused():
    for priority in (["sum"], ["sum", "rows", "columns", "nothing"], ["sum", "sum", "rows", "cells"]):
        with pytest.raises(ParameterError):
            sequential_fit(TABLE, np.zeros(TABLE.queries), 1.0, priority=priority)


@pytest.mark.theorem("T-MAXFIT")
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("workload", WORKLOADS)
def test_max_fit_is_the_quadratic_program_within_the_smallest_deviation(workload, seed):
    rng = np.random.default_rng(50 + seed)
    matrix = dense(workload)
    for _ in range(5):
        answers = random_answers(workload, rng)
        variances = rng.uniform(0.5, 4, size=workload.queries)
        fit = max_fit(workload, answers, variances)
        bound = smallest_deviation(matrix, answers, 1 / variances)
        assert np.isclose(fit.bound, bound, atol=1e-6 * (1 + bound))
        reach = (fit.bound + 0.01) * np.sqrt(variances)
        theirs = quadratic(matrix, answers, 1 / variances, answers - reach, answers + reach)
        assert fit.converged, (fit.kkt, fit.primal)
        assert np.max(np.abs(fit.x - theirs)) < 1e-5 * (1 + np.max(np.abs(answers)))


def test_max_fit_is_nnls_when_the_slack_is_wide():
    rng = np.random.default_rng(9)
    answers = rng.laplace(scale=8, size=(30, TABLE.queries))
    assert np.allclose(max_fit(TABLE, answers, 128.0, slack=50.0).x, nnls(TABLE, answers, 128.0).x, atol=1e-9)


@pytest.mark.parametrize("slack", [0.0, -1.0, np.nan])
def test_max_fit_needs_a_positive_slack(slack):
    with pytest.raises(ParameterError):
        max_fit(TABLE, np.zeros(TABLE.queries), 1.0, slack=slack)


@pytest.mark.parametrize(("name", "value"), [("confidence", 0.0), ("confidence", 1.0), ("units", "dozens")])
def test_reweighting_refuses_bad_parameters(name, value):
    with pytest.raises(ParameterError):
        reweighted_fit(TABLE, np.zeros(TABLE.queries), 1.0, **{name: value})
