"""Quantiles from noisy trees: the loss, the least squares, the interval."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from recordwise.errors import ParameterError
from recordwise.noise import Seeded
from recordwise.quantiles import Grid, TreeQuantile
from recordwise.quantiles.least_squares import consistent_leaves, exact_levels, excess_variance, monotone

FALSE_ALARM = 1e-9


def design(bits):
    """The matrix that counts every node of levels 1..bits from the leaves."""
    size = 2**bits
    rows = []
    for level in range(1, bits + 1):
        width = size >> level
        rows += [np.repeat(np.arange(2**level) == node, width) for node in range(2**level)]
    return np.array(rows, float)


@pytest.mark.theorem("T-QUANTILE")
@pytest.mark.parametrize("bits", [1, 2, 3, 6])
def test_two_passes_give_the_least_squares_leaves(bits):
    matrix = design(bits)
    answers = np.random.default_rng(bits).normal(size=(4, len(matrix)))
    levels, start = [], 0
    for level in range(1, bits + 1):
        levels.append(answers[:, start : start + 2**level])
        start += 2**level
    dense = np.linalg.lstsq(matrix, answers.T, rcond=None)[0].T
    assert np.allclose(consistent_leaves(levels), dense, atol=1e-12)


@pytest.mark.theorem("T-QUANTILE")
@pytest.mark.parametrize("bits", [1, 2, 5, 7])
@pytest.mark.parametrize("p", [0.5, 0.1, 0.97])
def test_the_variance_formula_is_that_of_the_normal_equations(bits, p):
    matrix = design(bits)
    inverse = np.linalg.inv(matrix.T @ matrix)
    wanted = np.tril(np.ones((2**bits, 2**bits))) - p
    assert np.allclose(excess_variance(bits, p), np.einsum("ij,jk,ik->i", wanted, inverse, wanted), rtol=1e-10)


@pytest.mark.theorem("T-QUANTILE")
def test_a_record_moves_one_node_of_each_level_by_one_so_the_loss_is_rho():
    """The exact change of the vector that noise is added to, put into the Gaussian's own loss."""
    mechanism = TreeQuantile(grid=Grid.log(1, 10**6, bits=7), rho="0.3")
    leaves = np.random.default_rng(0).integers(0, 5, size=(1, 128))
    for place in (0, 63, 64, 127):
        more = leaves.copy()
        more[0, place] += 1
        change = [b - a for a, b in zip(exact_levels(leaves), exact_levels(more))]
        squared = sum(int(np.sum(each**2)) for each in change)
        assert squared == 7
        exact = Fraction(squared) / (2 * mechanism.noise_sigma**2)
        assert exact <= Fraction(3, 10)
        assert Fraction(mechanism.policy_of_count().loss({})) >= exact
        assert mechanism.policy_of_count().loss({}) == pytest.approx(0.3, rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-50, 50), min_size=2, max_size=40), st.integers(0, 2**32))
@pytest.mark.theorem("T-MONOTONE")
def test_making_a_curve_monotone_never_moves_it_away_from_a_monotone_truth(noise, seed):
    truth = np.sort(np.random.default_rng(seed).normal(scale=20, size=len(noise)))
    curve = (truth + np.array(noise))[None, :]
    settled = monotone(curve)
    assert np.all(np.diff(settled) >= 0)
    assert np.abs(settled - truth).max() <= np.abs(curve - truth).max() + 1e-9


def heavy_tailed(cells, size, seed):
    values = np.random.default_rng(seed).pareto(1.1, size=(cells, size)) * 100
    return values.astype(np.int64)


def leaves_of(values, grid, step=Fraction(1)):
    found = np.zeros((len(values), grid.size), dtype=np.int64)
    for row, each in enumerate(values):
        np.add.at(found[row], grid.bins(each, step), 1)
    return found


def grid_quantiles(leaves, p):
    upto = np.cumsum(leaves, axis=1)
    return np.argmax(upto >= p * upto[:, -1:], axis=1)


@pytest.mark.theorem("T-INVERT")
@pytest.mark.parametrize("p", [0.5, 0.9, 0.05])
@pytest.mark.parametrize("size", [3, 40, 600])
def test_the_interval_holds_the_quantile_with_at_least_its_level(p, size):
    """1,500 cells at level 0.9: up to 10 % may miss. The count of misses is held against Binomial(1500, 0.1); what misses 0.15
    or more is found out with probability above 0.999, as the interval of the next test is."""
    misses = count_misses(p, size, reach=1.0)
    assert binom.sf(misses - 1, 1500, 0.1) > FALSE_ALARM


@pytest.mark.theorem("T-INVERT")
def test_an_interval_of_less_reach_is_caught():
    misses = count_misses(0.5, 600, reach=0.05)
    assert binom.sf(misses - 1, 1500, 0.1) < FALSE_ALARM


def count_misses(p, size, reach):
    mechanism = TreeQuantile(grid=Grid.log(1, 10**7, bits=8), rho=0.5)
    leaves = leaves_of(heavy_tailed(1500, size, seed=size), mechanism.grid)
    truth = grid_quantiles(leaves, p)
    noisy = mechanism.release(leaves, rng=Seeded(size + int(100 * p)))
    # A level whose bound is the wanted share of that of 0.9: sqrt(2 ln(2/a)) scales with it.
    level = 0.9 if reach == 1.0 else 1 - 2 * (0.05 ** (reach**2))
    found = mechanism.estimate(noisy, p=p, level=level)
    assert np.all((found.low < found.value) & (found.value <= found.high))
    return int(np.sum((truth <= found.low) | (truth > found.high)))


def test_with_next_to_no_noise_the_estimate_is_the_quantile_on_the_grid():
    grid = Grid.log(1, 10**7, bits=10)
    mechanism = TreeQuantile(grid=grid, rho=10**9)
    leaves = leaves_of(heavy_tailed(50, 501, seed=1), grid)
    for p in (0.01, 0.25, 0.5, 0.999):
        found = mechanism.estimate(mechanism.release(leaves, rng=Seeded(2)), p=p)
        assert np.array_equal(found.value, grid_quantiles(leaves, p))
        assert np.all(found.high == found.value)


def test_a_larger_share_never_gets_a_smaller_point():
    """Even in cells without records, where the noisy number of records is negative half of the time."""
    mechanism = TreeQuantile(grid=GRID_OF_NOISE, rho=0.1)
    noisy = mechanism.release(np.zeros((300, GRID_OF_NOISE.size), dtype=np.int64), rng=Seeded(4))
    found = np.array([mechanism.estimate(noisy, p=p).value for p in (0.01, 0.2, 0.5, 0.8, 0.99)])
    assert np.all(np.diff(found, axis=0) >= 0)


GRID_OF_NOISE = Grid.log(1, 10**6, bits=6)


@pytest.mark.slow
def test_the_error_falls_with_the_sample_and_the_budget():
    """Median of 400 heavy-tailed cells: the mean number of grid points off falls at least threefold when records or sigma change
    fourfold at this size; on average over 400 cells the ratio has a standard error of a few percent."""
    grid = Grid.log(1, 10**7, bits=10)

    def error(size, rho):
        leaves = leaves_of(heavy_tailed(400, size, seed=size), grid)
        mechanism = TreeQuantile(grid=grid, rho=rho)
        found = mechanism.estimate(mechanism.release(leaves, rng=Seeded(size)), p=0.5)
        return np.mean(np.abs(found.value - grid_quantiles(leaves, 0.5)))

    assert error(8000, 0.1) < error(2000, 0.1) / 3
    assert error(2000, 1.6) < error(2000, 0.1) / 3


def test_grid_points_are_certified_floors_and_values_belong_to_the_first_point_not_below():
    grid = Grid.log(1, 10**6, bits=4)
    points = grid.steps(Fraction(1))
    assert points[0] == 1
    assert points[-1] == 10**6
    assert points[5] == 100  # 10**(6 * 5/15)
    assert grid.steps(Fraction(1, 100))[0] == 100
    values = np.array([0, 1, 2, 100, 101, 10**6, 10**9])
    assert grid.bins(values, Fraction(1)).tolist() == [0, 0, 1, 5, 6, 15, 15]
    assert Grid.linear(0, 15, bits=4).steps(Fraction(1)) == tuple(range(16))


@pytest.mark.parametrize(
    "build",
    [
        lambda: Grid.log(0, 10),
        lambda: Grid.log(10, 1),
        lambda: Grid.linear(-1, 10),
        lambda: Grid.linear(10**7, 10**7 + 1),
        lambda: Grid.log(1, 10, bits=13),
        lambda: Grid.log(1, 10, bits=0),
        lambda: TreeQuantile(grid="log", rho=1),
        lambda: TreeQuantile(grid=Grid.log(1, 10), rho=0),
    ],
)
def test_grids_and_trees_that_make_no_sense_are_refused(build):
    with pytest.raises(ParameterError):
        build()
