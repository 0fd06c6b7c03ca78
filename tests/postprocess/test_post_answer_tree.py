"""The best linear fit of answers that form a tree, against generalized least squares in exact numbers."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from recordwise.errors import ParameterError
from recordwise.postprocess.linear import AnswerTree, Crossing, Largest, rank_of, tree_of
from recordwise.postprocess.solvers.tree import chains


def random_parents(rng, nodes):
    """Each node below an earlier one or a root; some nodes have one child, some many."""
    return np.array([-1, *(int(rng.integers(-1, node)) for node in range(1, nodes))])


def incidence(parent):
    """The answers as sums of the leaves."""
    leaves = sorted(set(range(len(parent))) - set(parent.tolist()))
    rows = np.full((len(parent), len(leaves)), 0, dtype=object)
    for place, leaf in enumerate(leaves):
        node = leaf
        while node != -1:
            rows[node, place] = 1
            node = parent[node]
    return rows


def solved(matrix, right):
    """Gauss and Jordan on fractions."""
    size = len(matrix)
    work = [[*map(Fraction, row), *map(Fraction, other)] for row, other in zip(matrix.tolist(), right.tolist())]
    for column in range(size):
        pivot = next(row for row in range(column, size) if work[row][column] != 0)
        work[column], work[pivot] = work[pivot], work[column]
        work[column] = [value / work[column][column] for value in work[column]]
        for row in range(size):
            if row != column and work[row][column] != 0:
                factor = work[row][column]
                work[row] = [a - factor * b for a, b in zip(work[row], work[column])]
    return np.array([row[size:] for row in work], dtype=object)


def dense_fit(rows, variances):
    """The hat matrix and the variances of the fitted answers, exactly."""
    weighted = rows.T / variances
    inverse = solved(weighted.dot(rows), np.eye(rows.shape[1], dtype=int))
    hat = rows.dot(inverse).dot(weighted)
    return hat, np.diag(rows.dot(inverse).dot(rows.T))


@pytest.mark.theorem("T-FITVAR")
@pytest.mark.parametrize("seed", range(40))
def test_the_fit_and_its_variances_are_exactly_those_of_dense_least_squares(seed):
    rng = np.random.default_rng(seed)
    parent = random_parents(rng, int(rng.integers(1, 14)))
    variances = np.array([Fraction(int(a), int(b)) for a, b in rng.integers(1, 30, (len(parent), 2))], dtype=object)
    answers = np.array([Fraction(int(each)) for each in rng.integers(-50, 50, len(parent))], dtype=object)
    hat, spread = dense_fit(incidence(parent), variances)
    weights = AnswerTree.of(parent).weights(variances)
    assert weights.fitted.tolist() == spread.tolist()
    assert weights.fit(answers).tolist() == hat.dot(answers).tolist()


@pytest.mark.theorem("T-FITVAR")
def test_a_wrong_sign_in_the_downward_pass_would_be_seen():
    parent, variances = np.array([-1, 0, 0]), np.array([Fraction(4), Fraction(1), Fraction(2)], dtype=object)
    up, below = Fraction(12, 7), Fraction(3)
    wrong = 1 + Fraction(1, 3) ** 2 * (below - up)
    _, spread = dense_fit(incidence(parent), variances)
    assert AnswerTree.of(parent).weights(variances).fitted[1] == spread[1] != wrong


def test_several_draws_are_fitted_like_one_and_floats_agree_with_exact_numbers():
    rng = np.random.default_rng(3)
    parent = random_parents(rng, 40)
    variances, draws = rng.uniform(0.5, 9, 40), rng.normal(size=(5, 40))
    weights = AnswerTree.of(parent).weights(variances)
    np.testing.assert_allclose(weights.fit(draws), np.stack([weights.fit(one) for one in draws]), rtol=1e-13)
    exact = AnswerTree.of(parent).weights(np.array([Fraction(each) for each in variances], dtype=object))
    np.testing.assert_allclose(weights.fitted, exact.fitted.astype(float), rtol=1e-12)


def test_a_node_whose_children_are_not_all_of_it_is_cut_from_them():
    """Cells 0, 1 are measured; cell 2 only within the first answer; the fourth answer holds cells 3 and 4 completely."""
    rows = sparse.csr_array(
        np.array(
            [[1, 1, 1, 0, 0], [1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 1, 1], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1.0]]
        )
    )
    tree = tree_of(rows)
    assert tree.connected().tolist() == [False, False, False, True, True, True]
    answers = np.array([10.0, 4, 5, 8, 3, 3])
    fitted = tree.weights(np.ones(6)).fit(answers)
    assert fitted[:3].tolist() == [10, 4, 5]
    np.testing.assert_allclose(fitted[3:], [8 - 2 / 3, 3 + 2 / 3, 3 + 2 / 3])


def test_answers_that_cross_are_no_tree_and_are_fitted_by_the_solver():
    rows = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1], *np.eye(4)], dtype=float)
    assert tree_of(sparse.csr_array(rows)) is None
    rng = np.random.default_rng(4)
    variances, answers = rng.uniform(1, 5, 8), rng.normal(size=(3, 8))
    weights = Crossing.of(sparse.csr_array(rows)).weights(variances)
    inverse = np.linalg.inv(rows.T @ (rows / variances[:, None]))
    np.testing.assert_allclose(weights.fitted, np.diag(rows @ inverse @ rows.T))
    np.testing.assert_allclose(weights.fit(answers), answers @ (rows @ inverse @ rows.T / variances).T, atol=1e-9)


@pytest.mark.theorem("T-FITVAR")
@pytest.mark.parametrize(
    ("draws", "confidence", "rank"), [(400, 0.95, 381), (400, 0.9, 361), (39, 0.95, 38), (40, 0.95, 39)]
)
def test_the_order_statistic_is_found_from_rows_given_a_few_at_a_time(draws, confidence, rank):
    assert rank_of(draws, confidence) == rank
    values = np.random.default_rng(5).normal(size=(draws, 7))
    largest = Largest(7, draws=draws, rank=rank)
    for start in range(0, draws, 9):
        largest.add(values[start : start + 9])
    assert np.array_equal(largest.value(), np.sort(values, axis=0)[rank - 1])


def test_too_few_draws_are_refused_with_the_number_that_is_needed():
    with pytest.raises(ParameterError, match=r"at least 19 for intervals of 0\.95, not 18"):
        rank_of(18, 0.95, given=True)
    with pytest.raises(ParameterError, match=r"confidence must be at most 0\.947368 where intervals are from 18 draws"):
        rank_of(18, 0.95)
    assert rank_of(400, 1e-12) == 1


def test_of_sums_of_the_same_cells_the_later_is_the_wider() -> None:
    """Counties, states, countries and all: the last country has one state, which has one county."""
    counties, states, countries = (
        np.eye(4),
        [[1.0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]],
        [[1.0, 1, 1, 0], [0, 0, 0, 1]],
    )
    rows = sparse.csr_array(np.vstack([counties, states, countries, np.ones((1, 4))]))
    chain, length = chains(rows)
    assert chain is not None
    assert chain.tolist() == [[9, 7, 4, 0], [9, 7, 4, 1], [9, 7, 5, 2], [9, 8, 6, 3]]
    assert length.tolist() == [4] * 4
    made = tree_of(rows)
    assert made is not None
    assert made.parents().tolist() == [4, 4, 5, 6, 7, 7, 8, 9, 9, -1]
