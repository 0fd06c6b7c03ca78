"""Any linear question about tables that nest or cross, against dense least squares (T-ASK)."""

from itertools import product

import numpy as np
import pytest
from scipy import linalg, sparse

from recordwise.postprocess import LinearModel
from recordwise.postprocess.linear import Crossing, largest_weights
from recordwise.postprocess.solvers import places as recursion


def codes_of(columns):
    return np.unique(columns, axis=0, return_inverse=True)[1].ravel().astype(np.int64)


def release(rng, dimensions):
    """Tables of crossed trees: some missing, some without all their cells, products complete or not."""
    trees = []
    for _ in range(dimensions):
        leaves = [()]
        for _ in range(int(rng.integers(1, 4))):
            leaves = [(*leaf, j) for leaf in leaves for j in range(int(rng.integers(1, 4)))]
        trees.append(np.array(leaves))
    cells = np.indices([len(tree) for tree in trees]).reshape(dimensions, -1).T
    cells = cells[(rng.random(len(cells)) < rng.choice([1.0, 0.8, 0.5])) | (np.arange(len(cells)) == 0)]
    full = tuple(tree.shape[1] for tree in trees)
    shapes = [shape for shape in product(*(range(depth + 1) for depth in full)) if shape != full and rng.random() < 0.7]
    blocks, axes = [], [[] for _ in trees]
    for shape in (full, *shapes):
        own = [codes_of(tree[cells[:, k]][:, : shape[k]]) for k, tree in enumerate(trees)]
        for axis, code in zip(axes, own):
            axis.append(code)
        label = codes_of(np.array(own).T)
        block = np.eye(int(label.max()) + 1)[:, label]
        blocks.append(block[rng.random(len(block)) < 0.7] if shape != full and rng.random() < 0.3 else block)
    return np.vstack(blocks), [len(block) for block in blocks], axes


def dense(rows, variances):
    """The covariances of all fitted answers, by orthogonal columns: variances may differ by a hundred thousand."""
    root = np.sqrt(variances)
    basis = np.linalg.qr(rows / root[:, None])[0]
    return (basis @ basis.T) * np.outer(root, root)


def compared(seed):
    """Estimates, variances and questions of one release, each with the dense ones."""
    rng = np.random.default_rng([37, seed])
    rows, tables, axes = release(rng, int(rng.choice([1, 2, 2, 2, 3])))
    sized = 10.0 ** rng.uniform(-2, 3, len(rows))
    variances = sized if rng.random() < 0.5 else rng.uniform(0.5, 3, len(tables)).repeat(tables)
    answers = rng.normal(size=len(rows)) * np.sqrt(variances)
    model = LinearModel.of(sparse.csr_array(rows), answers, variances, tables=tables, axes=axes)
    covariance = dense(rows, variances)
    fitted = covariance @ (answers / variances)
    asked = sparse.random_array((4, len(rows)), density=0.3, rng=rng, data_sampler=rng.normal)
    found, exact = model.answer(asked), asked @ covariance
    yield model.estimate(), fitted, np.sqrt(variances)
    yield model.variances(), np.diag(covariance), variances
    scale = np.sqrt(asked.power(2) @ variances)
    scale[scale == 0] = 1.0
    yield found.estimates, asked @ fitted, scale
    yield found.covariance, asked @ exact.T, np.outer(scale, scale)
    largest = np.abs(exact / variances).max(axis=1)
    yield found.largest, largest, np.maximum(largest, 1.0)
    if len(axes) > 1:
        weights = Crossing.of(sparse.csr_array(rows), tables, axes).weights(variances)
        yield weights.fitted, np.diag(covariance), variances


def check(seed):
    for number, (ours, exact, scale) in enumerate(compared(seed)):
        assert np.max(np.abs(ours - exact) / scale, initial=0.0) < 1e-9, (seed, number)


@pytest.mark.theorem("T-ASK")
@pytest.mark.parametrize("block", range(4))
@pytest.mark.costly
def test_estimates_variances_and_questions_are_those_of_dense_least_squares(block):
    for seed in range(25 * block, 25 * block + 25):
        check(seed)


@pytest.mark.theorem("T-ASK")
def test_an_answer_that_no_other_informs_stays_what_it_is_beside_others_that_cross():
    check(2031)


@pytest.mark.slow
@pytest.mark.theorem("T-ASK")
@pytest.mark.parametrize("block", range(20))
def test_two_thousand_releases_are_fitted_as_dense_least_squares_do(block):
    for seed in range(100 * block, 100 * block + 100):
        check(1000 + seed)


@pytest.mark.theorem("T-ASK")
@pytest.mark.parametrize("seed", range(8))
def test_every_tree_of_places_gives_the_same_fit(seed):
    rng = np.random.default_rng([38, seed])
    rows, tables, axes = release(rng, 2)
    variances = rng.uniform(0.5, 9, len(rows))
    covariance, answers = dense(rows, variances), rng.normal(size=(2, len(rows)))
    starts = np.cumsum([0, *tables])
    labels = [
        np.where(block.any(axis=0), np.arange(len(block)) @ block + start, -1).astype(np.int64)
        for block, start in zip(np.split(rows, starts[1:-1]), starts)
    ]
    every = np.arange(rows.shape[1])
    chains = [(axes[0], axes[1]), (axes[1], axes[0]), ([every, *axes[0][1:]], None), ([every, *axes[1][1:]], None)]
    for chain, kinds in chains:
        found = recursion._places(labels, chain, kinds, len(rows))
        if found is None:
            assert kinds is not None
            continue
        fit = found.factor(variances)
        np.testing.assert_allclose(fit.fitted(), np.diag(covariance), rtol=1e-10)
        np.testing.assert_allclose(fit.fit(answers), answers @ (covariance / variances).T, atol=1e-10)


@pytest.mark.theorem("T-ASK")
def test_a_product_of_trees_has_products_of_variances_and_with_a_table_missing_it_has_not():
    rng = np.random.default_rng(5)
    places, kinds = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1]]), np.array([[1, 1, 1]])
    first, second = np.vstack([np.eye(4), places[1:], places[:1]]), np.vstack([np.eye(3), kinds])
    one, two = rng.uniform(1, 5, 3).repeat([4, 2, 1]), rng.uniform(1, 5, 2).repeat([3, 1])
    rows, variances = np.kron(first, second), np.kron(one, two)
    product_of_both = np.kron(np.diag(dense(first, one)), np.diag(dense(second, two)))
    found = Crossing.of(sparse.csr_array(rows)).weights(variances).fitted
    np.testing.assert_allclose(found, product_of_both, rtol=1e-12)
    left = np.arange(len(rows)) != len(rows) - 1
    without = Crossing.of(sparse.csr_array(rows[left])).weights(variances[left]).fitted
    assert np.max(without / product_of_both[left]) > 1.01


def test_multiples_of_the_same_variances_share_one_factorization():
    rng = np.random.default_rng(6)
    rows, tables, axes = release(rng, 2)
    crossing, variances = Crossing.of(sparse.csr_array(rows), tables, axes), rng.uniform(1, 4, len(rows))
    first = crossing.weights(variances)
    again = crossing.weights(9 * variances)
    assert again.fit == first.fit
    np.testing.assert_allclose(again.fitted, 9 * first.fitted)
    other = crossing.weights(variances + np.eye(len(rows))[0])
    assert other.fit != first.fit


@pytest.mark.theorem("T-HALFSTEP")
def test_the_bound_of_the_largest_weight_is_above_it_where_two_hierarchies_cross(monkeypatch):
    rng = np.random.default_rng(7)
    for _ in range(15):
        rows, tables, axes = release(rng, 2)
        variances = 10.0 ** rng.uniform(-1, 2, len(rows))
        weights = Crossing.of(sparse.csr_array(rows), tables, axes).weights(variances)
        exact = np.abs(dense(rows, variances) / variances).max(axis=1)
        np.testing.assert_allclose(largest_weights(weights), exact, atol=1e-9)
        with monkeypatch.context() as patched:
            patched.setattr("recordwise.postprocess.linear.MOST_WEIGHTS", 1)
            assert np.all(largest_weights(weights) >= exact - 1e-9)


def two_trees(pairs, sizes=(3, 3)):
    """Tables of 3 x 3 cells by all, two and three codes of each axis: rows, tables and axes, the finest first."""
    codes = [[np.zeros(3, np.int64), np.array([0, 0, 1]), np.arange(3)] for _ in sizes]
    rows, tables, axes = [], [], [[], []]
    for pair in pairs:
        own = [np.repeat(codes[0][pair[0]], 3), np.tile(codes[1][pair[1]], 3)]
        label = own[0] * (own[1].max() + 1) + own[1]
        rows.append((np.arange(label.max() + 1)[:, None] == label).astype(float))
        tables.append(len(rows[-1]))
        for axis, code in zip(axes, own):
            axis.append(code)
    return np.vstack(rows), tables, axes


EVERY = [(i, j) for i in (2, 1, 0) for j in (2, 1, 0)]


@pytest.mark.theorem("T-UNIMODULAR")
def test_a_weight_is_above_one_where_three_tables_cross_each_other_and_the_bound_is_above_it(monkeypatch):
    rows, tables, axes = two_trees([(2, 2), (2, 0), (0, 2), (1, 1), (0, 0)])
    exact = [0, 1, 2, 4, 7, 8, 12, 15, 19]
    """The cells 11, 12, 13, 22, 32, 33, column 1, the block and the total."""
    variances = np.where(np.isin(np.arange(len(rows)), exact), 1e-4, 1e4)
    crossing = Crossing.of(sparse.csr_array(rows), tables, axes)
    weights = np.abs(dense(rows, variances) / variances)
    assert weights[10, 1] == pytest.approx(2, abs=1e-3)
    assert not crossing.at_most_one(variances)
    monkeypatch.setattr("recordwise.postprocess.linear.MOST_WEIGHTS", 1)
    assert np.all(largest_weights(crossing.weights(variances)) >= weights.max(axis=1) - 1e-9)


@pytest.mark.theorem("T-UNIMODULAR")
@pytest.mark.parametrize("pairs", [EVERY[:6], [(2, 2), (2, 0), (0, 2), (0, 0)], [(2, 2), (1, 2), (2, 1), (0, 1)]])
def test_two_families_of_nested_tables_have_no_square_determinant_above_one(pairs):
    """Every set of rows is tried by the weights that it has if all others are noise."""
    rows, tables, axes = two_trees(pairs)
    crossing, rng = Crossing.of(sparse.csr_array(rows), tables, axes), np.random.default_rng(3)
    assert crossing.at_most_one(np.ones(len(rows)))
    for _ in range(200):
        order = np.exp(rng.normal(0, 6, len(rows)))
        _, _, chosen = linalg.qr((rows * order[:, None]).T, pivoting=True, mode="economic")
        found = rows @ np.linalg.inv(rows[chosen[:9]])
        np.testing.assert_allclose(found, np.clip(np.rint(found), -1, 1), atol=1e-9)


@pytest.mark.theorem("T-UNIMODULAR")
def test_products_of_variances_over_all_pairs_of_levels_weigh_at_most_one_and_others_are_not_called_so():
    rng = np.random.default_rng(4)
    rows, tables, axes = two_trees(EVERY)
    crossing = Crossing.of(sparse.csr_array(rows), tables, axes)
    for _ in range(20):
        one, two = np.exp(rng.normal(0, 3, (2, 3)))
        variances = np.concatenate([np.full(n, one[i] * two[j]) for n, (i, j) in zip(tables, EVERY)])
        assert crossing.at_most_one(variances)
        assert np.abs(dense(rows, variances) / variances).max() <= 1 + 1e-9
        assert not crossing.at_most_one(
            variances * np.where(np.arange(len(rows)) < tables[0], 2.0, 1.0) ** rng.uniform(1, 2, len(rows))
        )
        assert not crossing.at_most_one(np.concatenate([variances[: tables[0]] * 2, variances[tables[0] :]]))
    missing = two_trees(EVERY[:-1])
    assert not Crossing.of(sparse.csr_array(missing[0]), *missing[1:]).at_most_one(np.ones(len(missing[0])))


def test_what_takes_too_much_is_fitted_with_the_variances_of_the_answers_as_bounds(monkeypatch):
    rng = np.random.default_rng(8)
    rows, tables, axes = release(rng, 2)
    monkeypatch.setattr(recursion, "MOST_WORK", -1.0)
    monkeypatch.setattr("recordwise.postprocess.linear.MOST_CELLS", 0)
    variances, answers = rng.uniform(1, 4, len(rows)), rng.normal(size=len(rows))
    weights = Crossing.of(sparse.csr_array(rows), tables, axes).weights(variances)
    covariance = dense(rows, variances)
    assert not weights.exact
    assert np.all(weights.fitted >= np.diag(covariance) - 1e-9)
    np.testing.assert_allclose(weights.fit(answers), covariance @ (answers / variances), atol=1e-7)
