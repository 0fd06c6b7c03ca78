"""The uncertainty principle: bounds, constructions, tables, the plot."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from divergences import ROUNDING, hockey_stick, zcdp
from recordwise.errors import ParameterError
from recordwise.mechanisms import Gaussian
from recordwise.noise import DiscreteGaussian
from recordwise.postprocess import (
    Workload,
    bounded_laplace,
    bounded_reach,
    bounded_variance,
    cell_error_bound_approximate,
    cell_error_bound_pure,
    cell_error_bound_zcdp,
    easy_table,
    hard_table,
    plot_tradeoffs,
    point_first,
    point_first_errors,
    sum_error_bound_approximate,
    sum_error_bound_policy,
    sum_error_bound_pure,
    sum_error_bound_zcdp,
    sum_first,
    sum_first_errors_bounded,
    sum_first_errors_gaussian,
    sum_first_errors_laplace,
    tradeoffs,
)

GRID = [
    (cells, error, loss)
    for cells in (1, 216, 10**6)
    for error in (0.0, 0.3, 4.5, 60.0)
    for loss in (0.01, 0.125, 1.0, 4.0)
]


def brute(value, error):
    """The best integer t by trying them all."""
    start = 2 * error
    return max(value(t - start, t) for t in range(math.floor(start) + 1, math.floor(start) + 3000))


@pytest.mark.parametrize(("cells", "error", "loss"), GRID)
def test_bounds_are_the_best_over_all_integers(cells, error, loss):
    pure = brute(lambda k, t: 0.75 * k * cells * math.exp(-loss * t), error)
    assert math.isclose(sum_error_bound_pure(cells=cells, cell_error=error, epsilon=loss), pure, rel_tol=1e-12)
    lost = 1e-6 / math.expm1(loss)
    approximate = brute(lambda k, t: k * cells * (0.75 * math.exp(-loss * t) - lost), error)
    ours = sum_error_bound_approximate(cells=cells, cell_error=error, epsilon=loss, delta=1e-6)
    assert math.isclose(ours, max(0.0, approximate), rel_tol=1e-12)


@pytest.mark.parametrize(("cells", "error", "loss"), GRID)
@pytest.mark.costly
@pytest.mark.sampled
def test_the_zcdp_bound_uses_the_best_order(cells, error, loss):
    orders = 1 + np.logspace(-4, 5, 4000)
    log_share = orders / (orders - 1) * math.log(0.75)
    found = brute(lambda k, t: k * cells * math.exp(float(np.max(log_share - orders * loss * t**2))), error)
    ours = sum_error_bound_zcdp(cells=cells, cell_error=error, rho=loss)
    assert ours >= found * (1 - 1e-12)
    assert ours <= found * 1.01 or ours < 1e-250


MOST_RECORDS, LARGEST_ANSWER = 16, 30


def least_upward_error(epsilon, cell_error):
    """Of all mechanisms on one cell, with answers from 0 to 30, the one that overstates an empty cell least: a linear program.

    Row t holds the law of the answer for t records. Neighboring rows are within a factor e^epsilon, every row's mean squared error
    is at most cell_error^2. The bounds use no table of more than 16 records here, so that more rows would change nothing.
    """
    from scipy import optimize, sparse

    answers = np.arange(LARGEST_ANSWER + 1.0)
    rows, width = MOST_RECORDS + 1, len(answers)
    here = sparse.eye_array((rows - 1) * width, rows * width)
    there = sparse.eye_array((rows - 1) * width, rows * width, k=width)
    factor = math.exp(epsilon)
    errors = sparse.block_diag([sparse.coo_array((answers - t)[None] ** 2) for t in range(rows)])
    masses = sparse.block_diag([sparse.coo_array(np.ones((1, width)))] * rows)
    found = optimize.linprog(
        np.concatenate([answers, np.zeros((rows - 1) * width)]),
        A_ub=sparse.vstack([here - factor * there, there - factor * here, errors]),
        b_ub=np.concatenate([np.zeros(2 * (rows - 1) * width), np.full(rows, cell_error**2)]),
        A_eq=masses,
        b_eq=np.ones(rows),
    )
    assert found.status == 0
    # A pinch of a constant law lifts every probability far above the program's own tolerance, and is perfectly private.
    law = np.maximum(found.x.reshape(rows, width), 0.0) + 1e-6 * np.exp(-answers)
    return np.log(law / law.sum(axis=1, keepdims=True))


def thresholded(sigma, threshold):
    """A lattice Gaussian answer that counts as 0 below a threshold: what the code draws, and a function of it."""
    noise = DiscreteGaussian(sigma)
    rows = []
    for records in range(MOST_RECORDS + 1):
        shown = np.arange(threshold, MOST_RECORDS + 100)
        law = np.full(MOST_RECORDS + 100, -np.inf)
        law[threshold:] = noise.log_pmf(shown - records)
        law[0] = noise.log_cdf(threshold - 1 - records)
        rows.append(law)
    return np.array(rows)


def measured(laws):
    """Of a mechanism given by its laws: the worst error of the cell, and what it says of an empty cell on average."""
    mass, answers = np.exp(laws), np.arange(laws.shape[1])
    squares = [row @ (answers - records) ** 2 for records, row in enumerate(mass)]
    return math.sqrt(max(squares)), float(mass[0] @ answers)


def neighbors(laws):
    """Pairs of laws for tables that differ by a record; answers that none of them gives are left out."""
    given = np.any(laws > -np.inf, axis=0)
    return list(pairwise(laws[:, given]))


LEAST = [(0.25, 5.0), (0.5, 3.0), (1.0, 1.5), (1.0, 3.0), (2.0, 1.0), (2.0, 2.0)]


@pytest.mark.theorem("T-UNCERTAIN")
@pytest.mark.parametrize(("epsilon", "cell_error"), LEAST)
def test_no_mechanism_at_all_overstates_less_than_the_bounds_say(epsilon, cell_error):
    """Epsilon, delta and rho are measured on the laws of the best mechanism there is; d cells of it overstate d times as much."""
    laws = least_upward_error(epsilon, cell_error)
    error, upward = measured(laws)
    pure = max(np.max(np.abs(p - q)) for p, q in neighbors(laws))
    assert upward >= sum_error_bound_pure(cells=1, cell_error=error, epsilon=pure)
    rho = max(zcdp(p, q) for p, q in neighbors(laws))
    assert upward >= sum_error_bound_zcdp(cells=1, cell_error=error, rho=rho)
    for share in (0.3, 0.6, 0.9):
        delta = max(hockey_stick(p, q, share * pure) for p, q in neighbors(laws))
        bound = sum_error_bound_approximate(cells=1, cell_error=error, epsilon=share * pure, delta=delta)
        assert upward >= bound
    assert error <= cell_error * 1.01


@pytest.mark.theorem("T-UNCERTAIN")
@pytest.mark.parametrize("sigma", [1, 2])
@pytest.mark.parametrize("threshold", [1, 2, 4, 6])
def test_lattice_noise_behind_a_threshold_obeys_the_zcdp_bound(sigma, threshold):
    laws = thresholded(sigma, threshold)
    error, upward = measured(laws)
    rho = max(zcdp(p, q) for p, q in neighbors(laws))
    assert rho <= 1 / (2 * sigma**2) * ROUNDING
    assert upward >= sum_error_bound_zcdp(cells=1, cell_error=error, rho=rho)


@pytest.mark.theorem("T-UNCERTAIN")
def test_the_checks_reject_bounds_that_forget_the_cells_error_or_the_square_of_the_group():
    """Without 2 C in the exponent, and with rho t for rho t^2, the formulas promise more than the best mechanisms need."""
    error, upward = measured(least_upward_error(1.0, 3.0))
    forgetful = brute(lambda k, t: 0.75 * k * math.exp(-k), error)
    assert upward < forgetful / 5
    laws = thresholded(1, 6)
    error, upward = measured(laws)
    linear = brute(lambda k, t: k * math.exp(-((math.sqrt(math.log(4 / 3)) + math.sqrt(0.5 * t)) ** 2)), error)
    assert upward < linear / 5


RATES = [(lam, rho, c) for lam in (0.0, 0.5, 4.0) for rho in (1e-4, 0.03, 1.0, 9.0) for c in (0.05, 0.3, 1.0)]


def rate(lam, rho, c):
    """What T-RATE promises of D sqrt(rho)/d."""
    return c * math.exp(-((math.sqrt(math.log(4 / 3)) + 2 * math.sqrt(lam) + c + math.sqrt(rho)) ** 2))


@pytest.mark.theorem("T-RATE")
@pytest.mark.parametrize(("lam", "rho", "c"), RATES)
def test_cells_at_the_noise_of_one_count_cost_the_sum_the_square_of_their_number(lam, rho, c):
    """[A] has d^(2 gamma), gamma < 1, in its lower bound for zCDP: here D/d does not fall as cells are added."""
    shares = [
        sum_error_bound_zcdp(cells=cells, cell_error=math.sqrt(lam / rho), rho=rho) * math.sqrt(rho) / cells
        for cells in (1, 10**3, 10**12)
    ]
    assert min(shares) >= rate(lam, rho, c)
    np.testing.assert_allclose(shares, shares[0], rtol=1e-12)


@pytest.mark.theorem("T-RATE")
def test_lattice_noise_cut_at_zero_obeys_the_rate_and_shows_that_it_must_fall_with_rho():
    """From its law: V is the variance, so C^2 <= V <= 1/(2 rho); an empty table of d cells is overstated by d E max(0, Z)."""
    answers, reached = np.arange(0, 400), []
    for rho in (0.01, 0.1, 1.0, 4.0, 16.0, 36.0):
        mass = np.exp(DiscreteGaussian(math.sqrt(1 / (2 * rho))).log_pmf(answers))
        variance, upward = 2 * float(mass @ answers**2), float(mass @ answers)
        assert variance <= 1 / (2 * rho) * (1 + 1e-12)
        assert upward * math.sqrt(rho) >= max(rate(0.5, rho, c) for c in (0.05, 0.2, 0.5))
        assert variance <= 2 * math.exp(-rho) * (1 + math.exp(-rho)) / -(math.expm1(-rho) ** 3)
        reached.append(math.sqrt(variance * rho))
    # D sqrt(rho)/d is at most this: of the order 1, later next to nothing. A rate without sqrt(rho) in its exponent is too high.
    assert reached[0] > 0.7
    assert reached[-1] < 1e-6 < rate(0.5, 0, 0.2)


@pytest.mark.theorem("T-RATE")
@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-9, 1e-6])
def test_with_a_delta_cells_cost_the_logarithm_of_epsilon_over_delta_however_many_there_are(epsilon, delta):
    """Below (L - 3)/2 the sum is off by d delta; noise that is bounded needs a dozen times that and leaves the sum at 3/epsilon."""
    least = (math.log(0.75 * math.expm1(epsilon) / delta) / epsilon - 3) / 2
    for cells in (10**3, 10**9, 10**15):
        ours = sum_error_bound_approximate(cells=cells, cell_error=least, epsilon=epsilon, delta=delta)
        assert ours >= cells * delta * (1 - 1e-9)
    attained = sum_first_errors_bounded(total_epsilon=epsilon / 2, cell_epsilon=epsilon / 2, delta=delta)
    assert attained.sum <= 3 / epsilon
    assert least < attained.cell < 12 * least
    assert 0.3 < least / (math.log(epsilon / delta) / epsilon) < 0.6


def test_the_point_queries_and_their_sum_have_sensitivities_two_and_root_two():
    """[A] 3.1: Laplace noise of scale 2/epsilon and N(0, 1/rho) on each, errors 8/epsilon^2 and 1/rho for every one of them."""
    for cells in (1, 2, 50):
        workload = Workload.marginals((cells,), {"sum": (), "cells": (0,)})
        moved = workload.answer(np.eye(cells))
        assert np.all(np.sum(np.abs(moved), axis=1) == 2)
        assert np.all(np.sum(moved**2, axis=1) == 2)
    for rho in (Fraction(1, 8), Fraction(2)):
        noise = Gaussian(variance=1 / rho)
        assert math.isclose(2 * noise.loss_at_shift(1), rho, rel_tol=1e-6)
        assert math.isclose(noise.variance(0.0), 1 / rho, rel_tol=0.02)
    for epsilon in (0.5, 2.0):
        law = stats.laplace(scale=2 / epsilon)
        there = np.linspace(-9, 9, 1801)
        assert math.isclose(2 * np.max(np.abs(law.logpdf(there) - law.logpdf(there - 1))), epsilon, rel_tol=1e-9)
        assert math.isclose(law.var(), 8 / epsilon**2)


@pytest.mark.theorem("T-POINT-FIRST")
@pytest.mark.parametrize("cells", [1, 10, 1000, 10**6])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_point_first_obeys_the_bound_and_its_own_promise(cells, epsilon):
    """Its errors on the empty table in closed form: E max(0, z) = b/2, E max(0, z)^2 = b^2."""
    scale = 1 / epsilon
    cell, total = scale, math.sqrt(cells * 0.75 * scale**2 + cells**2 * scale**2 / 4)
    promised = point_first_errors(cells=cells, variance=2 * scale**2)
    assert cell <= promised.cell
    assert total <= promised.sum
    assert total >= sum_error_bound_pure(cells=cells, cell_error=promised.cell, epsilon=epsilon)


def test_point_first_cuts_at_zero():
    assert np.array_equal(point_first([-1.0, 2.0]), [0.0, 2.0])


@pytest.mark.theorem("T-SUM-FIRST")
@pytest.mark.parametrize("seed", range(5))
def test_no_cell_of_sum_first_is_off_by_more_than_its_noises_allow(seed):
    """The deterministic bound 2 max|z| + |e|, for tables of any kind and noise of any size."""
    rng = np.random.default_rng(seed)
    for _ in range(200):
        table = rng.integers(0, 5, size=rng.integers(1, 30)) * rng.choice([0.0, 1.0, 50.0])
        noise, error = rng.laplace(size=(3, len(table))) * rng.choice([0.1, 10.0]), rng.laplace(size=3) * 10
        fitted = sum_first(table.sum() + error, table + noise, total_variance=1.0, cell_variance=3.0)
        off = np.max(np.abs(fitted - table), axis=1)
        assert np.all(off <= 2 * np.max(np.abs(noise), axis=1) + np.abs(error) + 1e-9)
        assert np.allclose(fitted.sum(axis=1), np.maximum(table.sum() + error, 0.0))


@pytest.mark.theorem("T-SUM-FIRST")
def test_the_largest_of_many_noises_is_as_large_as_promised():
    """Laplace: exact moments of the largest of d exponentials. Gaussian: an upper bound, checked by quadrature."""
    from scipy import integrate, stats

    for cells in (1, 7, 300):

        def tail(u, law, d=cells):
            return 1 - (2 * law.cdf(math.sqrt(u)) - 1) ** d

        exact = integrate.quad(tail, 0, 4000, args=(stats.laplace(),), limit=500)[0]
        bound = sum_first_errors_laplace(cells=cells, total_scale=1.0, cell_scale=1.0)
        assert math.isclose(bound.cell, 2 * math.sqrt(exact) + math.sqrt(2), rel_tol=1e-5)
        normal = integrate.quad(tail, 0, 200, args=(stats.norm(),), limit=500)[0]
        assert (
            sum_first_errors_gaussian(cells=cells, total_variance=1.0, cell_variance=1.0).cell
            >= 2 * math.sqrt(normal) + 1
        )


def test_the_sum_error_of_sum_first_does_not_grow_with_the_table():
    errors = [sum_first_errors_laplace(cells=cells, total_scale=2.0, cell_scale=2.0).sum for cells in (1, 100, 10_000)]
    assert len(set(errors)) == 1


@pytest.mark.theorem("T-BOUNDED")
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 4.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.5])
def test_bounded_noise_has_its_delta_exactly_and_its_variance(epsilon, delta):
    """The integral of (p - e^epsilon p')_+ and the second moment by quadrature, on pieces between the kinks of the densities."""
    from scipy import integrate

    reach = bounded_reach(epsilon=epsilon, delta=delta)
    assert reach >= 1
    mass = 2 * -math.expm1(-epsilon * reach) / epsilon

    def density(z):
        return math.exp(-epsilon * abs(z)) / mass if abs(z) <= reach else 0.0

    def over(function, shift):
        kinks = sorted({-reach, reach, 0.0, shift, min(reach, -reach + abs(shift)), max(-reach, reach - abs(shift))})
        return sum(integrate.quad(function, a, b, epsabs=1e-15)[0] for a, b in pairwise(kinks))

    for shift in (1.0, -1.0):
        # A hair is taken off: inside the overlap the two densities differ by exactly the factor, and rounding must not count.
        factor = math.exp(epsilon) * (1 + 1e-13)
        found = over(lambda z, s=shift, f=factor: max(0.0, density(z) - f * density(z - s)), shift)
        assert math.isclose(found, delta, rel_tol=1e-6)
    second = over(lambda z: z * z * density(z), 1.0)
    assert math.isclose(second, bounded_variance(epsilon=epsilon, delta=delta), rel_tol=1e-9)


@pytest.mark.theorem("T-BOUNDED")
def test_bounded_noise_out_of_uniforms_follows_its_law():
    """The distribution function at the drawn points gives the uniforms back: no sampling error to allow for."""
    uniforms = np.linspace(0.0005, 0.9995, 1000)
    drawn = bounded_laplace(uniforms, epsilon=0.7, delta=1e-4)
    reach = bounded_reach(epsilon=0.7, delta=1e-4)
    kept = -math.expm1(-0.7 * reach)
    below = np.where(drawn < 0, (np.exp(0.7 * drawn) - math.exp(-0.7 * reach)) / (2 * kept), 0.0)
    above = np.where(drawn >= 0, 0.5 + -np.expm1(-0.7 * drawn) / (2 * kept), 0.0)
    np.testing.assert_allclose(below + above, uniforms, atol=1e-12)
    assert np.max(np.abs(drawn)) <= reach


@pytest.mark.theorem("T-BOUNDED")
@pytest.mark.parametrize("cells", [1, 50, 2000])
def test_with_bounded_noise_no_cell_is_off_by_more_than_a_bound_without_the_number_of_cells(cells):
    rng = np.random.default_rng(cells)
    promised = sum_first_errors_bounded(total_epsilon=0.5, cell_epsilon=0.5, delta=1e-6)
    reach = bounded_reach(epsilon=0.5, delta=5e-7)
    table = rng.integers(0, 3, size=cells) * rng.choice([0.0, 1.0, 40.0])
    noise = bounded_laplace(rng.random((20, cells)), epsilon=0.5, delta=5e-7)
    error = bounded_laplace(rng.random(20), epsilon=0.5, delta=5e-7)
    fitted = sum_first(table.sum() + error, table + noise, total_variance=1.0, cell_variance=1.0)
    assert np.all(np.abs(fitted - table) <= 2 * reach + np.abs(error)[:, None] + 1e-9)
    assert sum_error_bound_approximate(cells=10**9, cell_error=promised.cell, epsilon=1.0, delta=1e-6) == 0


def test_the_hard_table_is_nearly_empty_and_the_easy_one_full():
    hard, easy = hard_table(cells=100, epsilon=0.5), easy_table(cells=100, epsilon=0.5)
    assert np.count_nonzero(hard) == 1
    assert hard[0] == math.ceil(math.log(100) / 0.5)
    assert np.all(easy == easy[0])


@pytest.mark.costly
def test_a_hard_table_costs_nonnegative_least_squares_its_sum_and_an_easy_one_does_not():
    """The gap is a factor of many; the check is at a factor of two, far outside the spread of 2,000 draws."""
    points = {
        (point.table, point.method): point
        for point in tradeoffs(cells=200, epsilon=1.0, draws=2000, rng=np.random.default_rng(1))
    }
    assert points["hard", "NNLS"].sum > 2 * points["hard", "OLS"].sum
    assert math.isclose(points["easy", "NNLS"].sum, points["easy", "OLS"].sum, rel_tol=1e-6)
    assert points["hard", "Sequential"].sum < 1.2 * points["easy", "Sequential"].sum


def test_the_plot_shows_five_methods_on_two_tables():
    points = tradeoffs(cells=50, epsilon=1.0, draws=50, rng=np.random.default_rng(2))
    figure = plot_tradeoffs(points, cells=50, epsilon=1.0)
    assert len(points) == 10
    for axis in figure.axes:
        assert [line.get_label() for line in axis.lines][:5] == ["OLS", "NNLS", "MaxFit", "Sequential", "ReWeighted"]


@pytest.mark.parametrize(
    "call",
    [
        lambda: sum_error_bound_pure(cells=0, cell_error=1.0, epsilon=1.0),
        lambda: sum_error_bound_pure(cells=5, cell_error=-1.0, epsilon=1.0),
        lambda: sum_error_bound_pure(cells=5, cell_error=1.0, epsilon=0.0),
        lambda: sum_error_bound_approximate(cells=5, cell_error=1.0, epsilon=1.0, delta=1.0),
        lambda: sum_error_bound_zcdp(cells=5, cell_error=math.nan, rho=1.0),
        lambda: hard_table(cells=5, epsilon=-1.0),
        lambda: bounded_reach(epsilon=1.0, delta=0.0),
        lambda: bounded_reach(epsilon=1.0, delta=0.6),
        lambda: bounded_laplace([0.5], epsilon=0.0, delta=0.1),
    ],
)
def test_parameters_without_meaning_are_refused(call):
    with pytest.raises(ParameterError):
        call()


@pytest.mark.process
def test_importing_the_package_loads_no_plotting():
    import subprocess
    import sys

    code = "import sys, recordwise.postprocess; print('matplotlib' in sys.modules, 'numba' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "False False\n"
    )


@pytest.mark.theorem("T-SUM-FIRST", "T-BOUNDED")
@pytest.mark.parametrize(("total", "cell"), [(0.3, 1.7), (1.7, 0.3)])
@pytest.mark.parametrize("cells", [1, 7, 400])
def test_bounds_on_errors_are_those_of_their_formulas_where_total_and_cells_have_different_noise(
    total: float, cell: float, cells: int
) -> None:
    """Each written out again: C = 2 (the root of E max|z|^2 or the reach) + the sd of the total, D = that sd."""
    harmonic, squares = sum(1 / k for k in range(1, cells + 1)), sum(1 / k**2 for k in range(1, cells + 1))
    found = sum_first_errors_laplace(cells=cells, total_scale=total, cell_scale=cell)
    sd = math.sqrt(2) * total
    assert (found.cell, found.sum) == pytest.approx((2 * cell * math.sqrt(harmonic**2 + squares) + sd, sd))
    normal = sum_first_errors_gaussian(cells=cells, total_variance=total, cell_variance=cell)
    largest = math.sqrt(2 * cell * (math.log(2 * cells) + 1))
    assert (normal.cell, normal.sum) == pytest.approx((2 * largest + math.sqrt(total), math.sqrt(total)))
    delta = 1e-6
    reach, ends = (math.log(1 + (math.exp(epsilon) - 1) / delta) / epsilon for epsilon in (cell, total))
    kept = 1 - math.exp(-total * ends)
    grid = (np.arange(200_000) + 0.5) / 200_000 * ends
    variance = float(np.mean(grid**2 * np.exp(-total * grid)) * ends * total / kept)
    cut = sum_first_errors_bounded(total_epsilon=total, cell_epsilon=cell, delta=delta)
    assert (cut.cell, cut.sum) == pytest.approx((2 * reach + math.sqrt(variance), math.sqrt(variance)), rel=1e-6)


@pytest.mark.parametrize("cells", [10, 1000, 10**6])
@pytest.mark.parametrize("sum_error", [0.0, 0.5, 3.0, 100.0])
def test_the_bound_holds_in_both_directions(cells, sum_error):
    kinds = [
        (cell_error_bound_pure, sum_error_bound_pure, {"epsilon": 0.5}),
        (cell_error_bound_approximate, sum_error_bound_approximate, {"epsilon": 0.5, "delta": 1e-9}),
        (cell_error_bound_zcdp, sum_error_bound_zcdp, {"rho": 0.1}),
    ]
    for least_cell, least_sum, privacy in kinds:
        if sum_error == 0 and least_cell is not cell_error_bound_approximate:
            continue  # No error of cells is large enough for an exact sum.
        found = least_cell(cells=cells, sum_error=sum_error, **privacy)
        assert found >= 0
        if found:
            assert least_sum(cells=cells, cell_error=found, **privacy) >= sum_error
        assert least_sum(cells=cells, cell_error=found * (1 + 1e-6) + 1e-9, **privacy) <= sum_error * (1 + 1e-9)


def test_a_record_that_holds_a_whole_total_gives_at_least_the_bound_of_many():
    sizes = np.arange(1, 400)
    many = sum_error_bound_zcdp(cells=50, cell_error=3.0, rho=0.01)
    assert sum_error_bound_policy(cells=50, cell_error=3.0, sizes=sizes, losses=0.01 * sizes**2) == pytest.approx(many)
    slow = sum_error_bound_policy(cells=50, cell_error=3.0, sizes=sizes, losses=0.01 * np.log1p(sizes) ** 2)
    assert slow > 10 * many
