"""What answers weigh in the fits of others, and how a fit's variance moves with a total, against dense matrices."""

import math
from itertools import product
from statistics import NormalDist

import numpy as np
import pytest
from scipy import sparse

from recordwise.postprocess.linear import AnswerTree, Crossing, largest_weights, moved_variance

CROSSED = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 1, 1], [1, 1, 0, 0], *np.eye(4)])


def trees():
    """Random trees, with single children, and a chain of four."""
    rng = np.random.default_rng(3)
    for _ in range(40):
        nodes = int(rng.integers(1, 15))
        yield np.array([-1, *(int(rng.integers(-1, node)) for node in range(1, nodes))])
    yield np.array([-1, 0, 1, 2])


def incidence(parent):
    leaves = sorted(set(range(len(parent))) - set(parent.tolist()))
    rows = np.zeros((len(parent), len(leaves)))
    for place, leaf in enumerate(leaves):
        node = leaf
        while node != -1:
            rows[node, place] = 1
            node = parent[node]
    return rows


def cases():
    """The rows of answers, their variances and the passes that fit them: of trees, and of tables that cross."""
    rng = np.random.default_rng(8)
    for parent in trees():
        variances = rng.uniform(0.2, 9, len(parent))
        yield incidence(parent), variances, AnswerTree.of(parent).weights(variances)
    for _ in range(3):
        variances = rng.uniform(0.2, 9, len(CROSSED))
        yield CROSSED, variances, Crossing.of(sparse.csr_array(CROSSED)).weights(variances)


def dense(rows, variances):
    """The weights of all answers in all fits, and the covariances of the fits."""
    inverse = np.linalg.inv(rows.T @ (rows / variances[:, None]))
    return rows @ inverse @ rows.T / variances, rows @ inverse @ rows.T


@pytest.mark.theorem("T-HALFSTEP")
def test_the_largest_weight_is_that_of_the_dense_fit():
    for rows, variances, weights in cases():
        hat, _ = dense(rows, variances)
        np.testing.assert_allclose(largest_weights(weights), np.abs(hat).max(axis=1), rtol=1e-9, atol=1e-12)


def growing(answers, totals):
    """Variances that grow with the total, each answer by a factor of its own."""
    return (1 + np.arange(20)[answers][: len(totals)]) * (2 + np.maximum(totals, 0) ** 1.5)


def contains(outer, inner):
    return np.all(outer >= inner)


@pytest.mark.theorem("T-MOVED")
def test_a_moved_variance_is_the_dense_one_with_what_contains_a_cell_and_what_it_contains_moved():
    rng = np.random.default_rng(2)
    for rows, used, weights in cases():
        hat, covariance = dense(rows, used)
        value, totals = rng.uniform(0, 50, len(rows)), rng.uniform(0, 90, len(rows))
        moved = moved_variance(weights, value=value, used=used, fitted=np.diag(covariance), variances=growing)
        by_hand = np.empty(len(rows))
        for n, own in enumerate(rows):
            spread = used.copy()
            for m, other in enumerate(rows):
                part = 1.0 if contains(other, own) else covariance[m, n] / covariance[n, n]
                if contains(other, own) or contains(own, other):
                    at = value[m] + part * (totals[n] - value[n])
                    spread[m] = growing(np.array([m]), np.array([at]))[0]
            by_hand[n] = hat[n] ** 2 @ spread
        np.testing.assert_allclose(moved.at(totals), by_hand, rtol=1e-9)


def test_a_large_table_that_crosses_moves_as_the_cells_own_answers_do(monkeypatch):
    monkeypatch.setattr("recordwise.postprocess.linear.MOST_WEIGHTS", 1)
    weights = Crossing.of(sparse.csr_array(CROSSED)).weights(np.ones(len(CROSSED)))
    value, fitted = np.arange(10.0), np.full(10, 0.25)
    moved = moved_variance(weights, value=value, used=np.ones(10), fitted=fitted, variances=growing)
    every = slice(None)
    np.testing.assert_allclose(moved.at(value + 7), fitted * growing(every, value + 7) / growing(every, value))


def test_answers_that_no_other_says_anything_about_are_found_where_tables_cross():
    """The first answer has a cell of its own; without it the second does; the others share all their cells."""
    rows = np.array(
        [
            [1, 1, 0, 0, 0, 0],
            [0, 1, 1, 0, 0, 0],
            [0, 0, 1, 1, 0, 0],
            [0, 0, 1, 1, 0, 0],
            [0, 0, 0, 0, 0, 0],
            [0, 0, 0, 0, 1, 1],
            [0, 0, 0, 0, 1, 0],
            [0, 0, 0, 0, 0, 1],
        ]
    )
    weights = Crossing.of(sparse.csr_array(rows.astype(float))).weights(np.ones(8))
    assert weights.untouched().tolist() == [True, True, False, False, True, False, False, False]
    answers = np.arange(8.0)
    np.testing.assert_allclose(weights.fit(answers)[[0, 1, 4]], answers[[0, 1, 4]], atol=1e-9)


def lattice(parameter):
    points = np.arange(-math.ceil(7 * parameter) - 2, math.ceil(7 * parameter) + 3)
    chance = np.exp(-(points**2) / (2 * parameter**2))
    return points, chance / chance.sum()


def held(weights, parameters, confidence, half):
    """The probability that a weighted sum of lattice noises stays within its reach."""
    values, chances, variance = np.zeros(1), np.ones(1), 0.0
    for weight, parameter in zip(weights, parameters):
        points, chance = lattice(parameter)
        values = np.add.outer(values, weight * points).ravel()
        chances = np.multiply.outer(chances, chance).ravel()
        variance += weight**2 * float(chance @ points**2)
    reach = NormalDist().inv_cdf((1 + confidence) / 2) * math.sqrt(variance) + half * max(weights) / 2
    return float(chances[np.abs(values) <= reach + 1e-9].sum())


PARAMETERS = (0.525, 0.7, 0.9, 1.07, 1.4, 2.2, 2.83)
RATIOS = (0.0, 0.1, 0.25, 1 / 3, 0.45, 0.5, 0.62, 2 / 3, 0.8, 0.999, 1.0)


@pytest.mark.theorem("T-HALFSTEP")
@pytest.mark.parametrize("confidence", [0.8, 0.9, 0.95, 0.99])
def test_half_a_step_of_the_largest_weight_covers_sums_of_two_and_three_lattice_noises(confidence):
    """Summed exactly, nothing drawn. 0.525 is where the standard deviation is half a step."""
    for first, second, ratio in product(PARAMETERS, PARAMETERS, RATIOS):
        assert held((1.0, ratio), (first, second), confidence, 1.0) >= confidence
    for parameter, ratio, other in product((0.525, 0.9, 1.07), (0.3, 0.5, 1.0), (0.3, 0.7, 1.0)):
        assert held((1.0, ratio, other), (parameter,) * 3, confidence, 1.0) >= confidence


@pytest.mark.theorem("T-HALFSTEP")
def test_without_half_a_step_a_sum_is_missed():
    """Of chains of one, two and three cells at some sigma: the worst is more than five points off, with half a step none is."""
    sigmas = np.arange(0.55, 3, 0.02)
    for cells in (1, 2, 3):
        found = [held((1.0,) * cells, (sigma,) * cells, 0.95, 0.0) for sigma in sigmas]
        assert min(found) < 0.92
        assert min(held((1.0,) * cells, (sigma,) * cells, 0.95, 1.0) for sigma in sigmas) >= 0.95
