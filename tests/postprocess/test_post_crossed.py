"""Two trees crossed on a full grid: the elimination along one of them gives what the dense solver gives."""

import numpy as np
import pytest

from postprocess.oracles import dense
from recordwise.postprocess import Workload, nnls, ols
from recordwise.postprocess.measured import CellsAndSums, sum_rows
from recordwise.postprocess.solvers import crossed
from recordwise.postprocess.solvers import solve as choice
from recordwise.postprocess.solvers.crossed import CrossedSystem, grid_workload
from recordwise.postprocess.solvers.dense import DenseSystem
from recordwise.postprocess.solvers.tree import TreeSystem

PLACE = {"nation": np.zeros(9), "state": [2, 0, 0, 1, 1, 1, 0, 2, 3], "county": np.arange(9)}
"""The last state has one county only."""
SECTOR = {"all": np.zeros(6), "naics2": [0, 0, 1, 1, 2, 0], "naics3": np.arange(6)}
EVERY = [(place, sector) for place in PLACE for sector in SECTOR]
SOME = [("county", "naics3"), ("state", "naics2"), ("county",), ("nation", "naics3"), ()]
WORKLOADS = {
    "every level": Workload.hierarchy({"place": PLACE, "sector": SECTOR}, EVERY),
    "some levels": Workload.hierarchy({"place": PLACE, "sector": SECTOR}, SOME),
    "the other way": Workload.hierarchy({"sector": SECTOR, "place": PLACE}, EVERY),
    "two margins": Workload.marginals((7, 4), {"rows": (0,), "columns": (1,), "cells": (0, 1)}),
}


@pytest.fixture(autouse=True)
def no_other(monkeypatch):
    """Pretend that nothing is small."""
    monkeypatch.setattr(choice, "DENSE_WORK", -1.0)
    monkeypatch.setattr(crossed, "LEAST_LOCAL", 0)


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_operator_counts_what_the_matrix_counts(name):
    workload, rng = WORKLOADS[name], np.random.default_rng(3)
    parts = CellsAndSums.of(workload)
    system = choice.system_of(workload, parts)
    assert isinstance(system, CrossedSystem)
    matrix = dense(workload)[parts.sums]
    x, y = rng.normal(size=(2, workload.cells)), rng.normal(size=(2, len(parts.sums)))
    assert np.allclose(system.sums(x), x @ matrix.T)
    assert np.allclose(system.spread(y), y @ matrix)


@pytest.mark.theorem("T-ELIMINATION")
@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.costly
def test_elimination_solves_the_newton_system(name):
    """With cells and whole leaves that do not respond, and sums from precise to hardly measured."""
    workload, rng = WORKLOADS[name], np.random.default_rng(4)
    parts = CellsAndSums.of(workload)
    ours, plain = choice.system_of(workload, parts), DenseSystem.of(sum_rows(workload, parts), parts.head)
    response = 10.0 ** rng.uniform(-2, 2, (3, workload.cells)) * (rng.random((3, workload.cells)) < 0.4)
    response[1, : workload.cells // 2] = 0.0
    diagonal, right = 10.0 ** rng.uniform(-3, 3, size=(3, plain.queries)), rng.normal(size=(3, plain.queries))
    found, known = ours.solver(response, diagonal)(right), plain.solver(response, diagonal)(right)
    assert np.allclose(found, known, rtol=1e-9, atol=1e-9 * np.max(np.abs(known)))
    shared = ours.solver(response[:1], diagonal[:1])(right)
    assert np.allclose(shared, plain.solver(response[:1], diagonal[:1])(right), rtol=1e-9, atol=1e-9)


def test_the_compiled_and_the_numpy_products_agree():
    rng = np.random.default_rng(5)
    ends, bounds = np.array([0, 2, 3, 7]), np.array([0, 3, 4, 6])
    weights, values, found, known = (
        rng.random((7, 3)),
        rng.normal(size=(7, 6)),
        np.zeros((3, 6, 6)),
        np.zeros((3, 6, 6)),
    )
    crossed.add_products(ends, bounds, weights, values, found)
    crossed.add_products_numpy(ends, bounds, weights, values, known)
    assert np.allclose(found, known, atol=1e-14)
    assert np.count_nonzero(known) == 3 * (9 + 1 + 4)


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("method", [ols, nnls])
def test_fits_are_those_of_the_dense_solver(name, method, monkeypatch):
    workload, rng = WORKLOADS[name], np.random.default_rng(6)
    exact = workload.answer(rng.poisson(1.5, size=workload.cells) * rng.integers(0, 20, size=workload.cells) * 1.0)
    answers = exact + rng.laplace(scale=4, size=(3, len(exact)))
    variances = rng.uniform(1, 50, len(exact))
    large = method(workload, answers, variances)
    assert np.all(large.converged)
    again = Workload(cells=workload.cells, groups=workload.groups)
    monkeypatch.setattr(choice, "DENSE_WORK", np.inf)
    assert np.max(np.abs(method(again, answers, variances).x - large.x)) < 1e-8


def test_levels_that_cross_on_one_side_are_left_to_others():
    crossing = [
        np.repeat([0, 1, 2], 2),
        np.tile([0, 1], 3),
        np.arange(6),
    ]
    columns = [np.zeros(2, np.int64), np.arange(2)]
    labels = {
        f"{a}{b}": (one[:, None] * (other.max() + 1) + other).ravel()
        for a, one in enumerate(crossing)
        for b, other in enumerate(columns)
    }
    assert grid_workload((6, 2), labels) is None
    nested = {name: own for name, own in labels.items() if not name.startswith("1")}
    assert grid_workload((6, 2), nested) is not None


def test_tables_of_a_grid_are_recognized_whatever_the_order_of_their_cells():
    rng, workload = np.random.default_rng(8), WORKLOADS["every level"]
    labels = {group.name: rng.permutation(group.size)[group.labels] for group in workload.groups}
    found = grid_workload((9, 6), labels)
    assert found is not None
    x = rng.normal(size=found.cells)
    for group in found.groups:
        assert np.allclose(np.bincount(labels[group.name], weights=x), group.rows @ x)
    parts = CellsAndSums.of(found)
    system, matrix = choice.system_of(found, parts), dense(found)[parts.sums]
    assert isinstance(system, CrossedSystem)
    assert np.allclose(system.sums(x[None]), x @ matrix.T)
    first = next(iter(labels))
    assert grid_workload((9, 6), labels | {first: np.where(np.arange(54) == 7, 1, 0)}) is None


def test_few_local_queries_are_left_to_plain_elimination(monkeypatch):
    monkeypatch.setattr(crossed, "LEAST_LOCAL", 32)
    workload = WORKLOADS["every level"]
    assert isinstance(choice.system_of(workload, CellsAndSums.of(workload)), TreeSystem)
    monkeypatch.setattr(crossed, "LEAST_LOCAL", 0)
    monkeypatch.setattr(crossed, "MOST_WORK", 1.0)
    assert isinstance(choice.system_of(workload, CellsAndSums.of(workload)), TreeSystem)
