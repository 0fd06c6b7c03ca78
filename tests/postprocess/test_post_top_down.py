"""Totals handed down to nonnegative cells: sums, signs, nearest cells, continuity, and no order that matters."""

import numpy as np
import pytest
from scipy import sparse

from postprocess.oracles import quadratic
from recordwise.postprocess import Workload
from recordwise.postprocess.top_down import Forest, Grid, ease_of, share_out, top_down


def nested_labels(rng, leaves, sizes):
    """Labels of the leaves at every level from one root on, in no particular order."""
    own = rng.permutation(leaves)
    found = [own]
    for size in sizes:
        own = np.sort(rng.integers(0, size, int(found[-1].max()) + 1))[found[-1]]
        own = np.unique(own, return_inverse=True)[1]
        found.append(own)
    return [*found, np.zeros(leaves, dtype=np.int64)][::-1]


class Case:
    """A random grid with estimates of all its tables, of which some are not published."""

    def __init__(self, seed, missing=0):
        rng = np.random.default_rng(seed)
        self.shape = int(rng.integers(1, 9)), int(rng.integers(1, 9))
        axes = [nested_labels(rng, size, [4, 2]) for size in self.shape]
        pairs = [(i, j) for i in range(3, -1, -1) for j in range(3, -1, -1)]
        kept = [pairs[0], *(pair for pair in pairs[1:] if rng.random() >= missing)]
        self.labels, seen = [], set()
        for i, j in kept:
            joint = axes[0][i][:, None] * 1000 + axes[1][j]
            own = np.unique(joint, return_inverse=True)[1].ravel()
            if own.tobytes() not in seen:
                seen.add(own.tobytes())
                self.labels.append(own)
        x = np.exp(rng.normal(1, 2, self.shape)) * (rng.random(self.shape) < 0.6)
        x += rng.normal(size=self.shape) * 5
        self.best = np.concatenate([np.bincount(own, weights=x.ravel()) for own in self.labels])
        self.sd = np.exp(rng.normal(1.5, 0.4, len(self.best)))
        self.rows = np.zeros((len(self.best), x.size))
        start = 0
        for own in self.labels:
            self.rows[start + own, np.arange(x.size)] = 1
            start += int(own.max()) + 1

    def cells(self, best=None):
        grid = Grid.of(self.shape, self.labels)
        cells, gap = grid.hand_down(self.best if best is None else best, self.sd)
        assert gap < 1e-9
        return cells


@pytest.mark.theorem("T-DOWN")
def test_a_family_gets_the_nearest_nonnegative_cells_with_its_sum():
    rng = np.random.default_rng(4)
    for _ in range(200):
        length = rng.integers(1, 6, 3)
        first = np.cumsum(length) - length
        target, ease = rng.normal(0, 3, length.sum()), np.exp(rng.normal(size=length.sum()))
        sums = np.maximum(rng.normal(2, 3, 3), 0)
        found = share_out(target, ease, sums, first)
        rows = np.repeat(np.eye(3), length, axis=1)
        weights = np.concatenate([1 / ease, np.zeros(3)])
        wide = np.full(len(target), 1e6)
        matrix, aim = np.vstack([np.eye(len(target)), rows]), np.concatenate([target, sums])
        dense = quadratic(matrix, aim, weights, np.concatenate([-wide, sums]), np.concatenate([wide, sums]))
        np.testing.assert_allclose(found, dense, atol=1e-7)
        np.testing.assert_allclose(rows @ found, sums, atol=1e-12)


@pytest.mark.theorem("T-BLOCKS")
@pytest.mark.parametrize("seed", range(12))
def test_every_block_gets_the_nearest_nonnegative_cells_with_its_margins(seed):
    """The finest table, with the tables above it handed down already, against a dense quadratic program."""
    case = Case(seed)
    cells = case.cells()
    size = cells.size
    finest = np.argmax([own.max() for own in case.labels])
    assert finest == 0
    held = case.rows[size:]
    sums = held @ cells
    ease = ease_of(case.best[:size], case.sd[:size])[case.labels[0]]
    weights = np.concatenate([1 / ease, np.zeros(len(held))])
    wide = np.full(size, 1e7)
    matrix, aim = np.vstack([np.eye(size), held]), np.concatenate([case.best[case.labels[0]], sums])
    slack = 1e-7 * (1 + sums)
    dense = quadratic(matrix, aim, weights, np.concatenate([-wide, sums - slack]), np.concatenate([wide, sums + slack]))
    np.testing.assert_allclose(cells, dense, atol=2e-5 * (1 + cells.max()))


@pytest.mark.theorem("T-DOWN", "T-BLOCKS")
@pytest.mark.parametrize("missing", [0, 0.4])
@pytest.mark.costly
def test_cells_are_nonnegative_and_coarse_totals_are_those_estimated(missing):
    for seed in range(60):
        case = Case(100 + seed, missing)
        cells = case.cells()
        assert cells.min() >= 0
        np.testing.assert_allclose(cells.sum(), max(case.rows[0] @ cells, case.best[: cells.size].sum(), 0), rtol=1e-9)
        # A table without negative estimates, all of whose coarser ones have none, stays as it is.
        start = 0
        for own in case.labels:
            part = slice(start, start + int(own.max()) + 1)
            start = part.stop
            coarser = [k for k, other in enumerate(case.labels) if np.array_equal(_inside(own, other), other)]
            if all((case.best[_place(case, k)] >= 0).all() for k in coarser) and missing == 0:
                np.testing.assert_allclose(case.rows[part] @ cells, case.best[part], atol=1e-8 * (1 + cells.max()))


def _inside(own, other):
    parent = np.zeros(int(own.max()) + 1, dtype=np.int64)
    parent[own] = other
    return parent[own]


def _place(case, k):
    ends = np.cumsum([0, *(int(own.max()) + 1 for own in case.labels)])
    return slice(ends[k], ends[k + 1])


@pytest.mark.theorem("T-BLOCKS")
@pytest.mark.costly
def test_neither_the_order_of_codes_nor_that_of_trees_or_tables_matters():
    for seed in range(25):
        case = Case(300 + seed, 0.3)
        rng = np.random.default_rng(seed)
        cells = case.cells().reshape(case.shape)
        down, across = (rng.permutation(size) for size in case.shape)
        turned = [own.reshape(case.shape)[np.ix_(down, across)].T.ravel() for own in case.labels]
        order = [0, *(1 + rng.permutation(len(turned) - 1))]
        other = Grid.of(case.shape[::-1], [turned[k] for k in order])
        place = np.concatenate([np.arange(len(case.best))[_place(case, k)] for k in order])
        found, _ = other.hand_down(case.best[place], case.sd[place])
        expected = cells[np.ix_(down, across)].T
        np.testing.assert_allclose(found.reshape(expected.shape), expected, atol=1e-8 * (1 + cells.max()))


@pytest.mark.theorem("T-DOWN", "T-BLOCKS")
@pytest.mark.costly
def test_a_small_change_of_the_estimates_is_a_small_change_of_the_cells():
    """Along a line on which cells leave and enter, ten times smaller steps make about ten times smaller moves."""
    for seed in range(10):
        case = Case(500 + seed)
        rng = np.random.default_rng(seed)
        way = case.rows @ rng.normal(size=case.rows.shape[1]) * 5
        largest = []
        for steps in (40, 400):
            draws = case.best + np.linspace(0, 1, steps + 1)[:, None] * way
            largest.append(np.abs(np.diff(case.cells(draws), axis=0)).max())
        assert largest[1] < 0.3 * largest[0]


def test_several_draws_are_what_each_is_alone():
    case = Case(7)
    draws = case.best + np.random.default_rng(1).normal(size=(3, len(case.best)))
    together = case.cells(draws)
    for draw, cells in zip(draws, together):
        np.testing.assert_allclose(case.cells(draw), cells, atol=1e-9 * (1 + cells.max()))


@pytest.mark.theorem("T-DOWN")
def test_in_a_tree_a_rest_takes_part_as_a_cell_of_its_own():
    """Two counties of a state of which more may exist: the rest is what the state has beyond them."""
    rows = sparse.csr_array([[1.0, 1, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1.0]])
    forest = Forest.of(rows)
    best, sd = np.array([100.0, 80.0, -30.0, 40.0]), np.full(4, 10.0)
    cells, gap = forest.hand_down(best, sd)
    assert gap == 0
    np.testing.assert_allclose(rows @ cells, [100, cells[0], 0, 40])
    assert 70 < cells[0] <= 80
    assert cells[2] == pytest.approx(100 - cells[0])
    # No rest: the county that is left has everything.
    tight = Forest.of(sparse.csr_array([[1.0, 1], [1, 0], [0, 1.0]]))
    np.testing.assert_allclose(tight.hand_down(np.array([50.0, 80, -30]), np.full(3, 10.0))[0], [50, 0])


def test_trees_are_handed_down_as_grids_with_one_column():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        labels = [np.unique(own, return_inverse=True)[1] for own in nested_labels(rng, 12, [5, 2])[::-1]]
        size = [int(own.max()) + 1 for own in labels]
        kept = [k for k in range(len(labels)) if k == 0 or size[k] < size[k - 1]]
        labels = [labels[k] for k in kept]
        x = rng.normal(3, 8, 12)
        best = np.concatenate([np.bincount(own, weights=x) for own in labels])
        sd = np.exp(rng.normal(1, 0.3, len(best)))
        rows = sparse.csr_array(
            np.vstack([np.equal.outer(np.arange(own.max() + 1), own) for own in labels]).astype(float)
        )
        ours, _ = Forest.of(rows).hand_down(best, sd)
        grid, _ = Grid.of((12, 1), labels).hand_down(best, sd)
        np.testing.assert_allclose(ours, grid, atol=1e-9 * (1 + np.abs(x).max()))


def test_what_crosses_otherwise_is_fitted_at_once_with_the_same_resistance():
    rows = sparse.csr_array([[1.0, 1, 0], [0, 1, 1.0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
    assert Forest.of(rows) is None
    workload = Workload.matrix(rows, {"pairs": 2, "cells": 3})
    best, sd = np.array([900.0, -20, 905, -5, -15]), np.full(5, 10.0)
    fit = top_down(workload, best, sd, shape=None)
    assert fit.x.min() >= 0
    assert fit.converged
    assert abs(fit.x[0] - 902) < 4
