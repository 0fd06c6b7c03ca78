"""The uncertainty principle again: a short run always, a longer one among the slow tests."""

import math
from dataclasses import replace

import numpy as np
import pytest

from experiments.uncertainty import claims, printed, run
from experiments.uncertainty.constructions import constructions, least_cell_error
from experiments.uncertainty.measuring import errors

SMALL = (10, 100, 1000)


def quiet(_):
    pass


@pytest.fixture(scope="module")
def done():
    return run.reproduce(runs=200, seed=4, tell=quiet, sizes=SMALL)


def lines_of(done):
    from experiments.uncertainty.measuring import Line

    return [Line(**row) for row in done.tables["errors"]]


@pytest.mark.costly
def test_a_short_run_agrees_with_every_claim(done):
    assert {claim.statement: claim.why for claim in done.claims if claim.agrees is not True} == {}
    assert len(done.tables["errors"]) == 5 * len(SMALL)


def test_a_construction_that_beat_the_bound_would_be_reported(done):
    """Half of the least possible error of the sum for cells first, and a promise below it."""
    lines = lines_of(done)
    cheat = [
        replace(line, sum_error=line.sum_lower / 2, sum_error_se=0.0, sum_upper=line.sum_lower / 2) for line in lines
    ]
    assert claims.principle(lines).agrees is True
    assert claims.principle(cheat).agrees is False


def test_a_promise_below_the_printed_bound_would_be_reported():
    found = claims.promises()
    assert max(each.as_printed for each in found) > 50
    assert claims.as_printed(found).agrees is True
    assert claims.as_printed([replace(each, sum_upper=each.as_printed / 2) for each in found]).agrees is False
    assert claims.as_printed([replace(each, ours=each.as_printed / 2) for each in found]).agrees is False
    assert claims.as_printed([replace(each, as_printed=0.0) for each in found]).agrees is False


@pytest.mark.parametrize(("error", "epsilon", "delta"), [(1.3, 0.5, 0.0), (0.0, 1.0, 1e-6), (2.0, 0.1, 1e-9)])
def test_the_printed_bound_solves_the_printed_inequality(error, epsilon, delta):
    cells = 10**6
    least = printed.least_sum_error(cells=cells, cell_error=error, epsilon=epsilon, delta=delta)

    def holds(total):
        k = np.geomspace(1e-4, 100 / epsilon, 50_000)
        inner = delta / epsilon + (4 * error + 2 * total + k) / (k * (cells - 1))
        return bool(np.all(np.exp(epsilon * (4 * error + 2 * k)) * inner >= 0.25))

    assert least > 100
    assert holds(least * 1.001)
    assert not holds(least * 0.999)


def test_an_error_off_by_a_tenth_would_be_reported(done):
    """The error of the sum of point first is known to 2 % from 200 draws at 1,000 cells."""
    lines = [replace(line, sum_error=1.1 * line.sum_error) for line in lines_of(done)]
    assert claims.point_first(lines).agrees is False


def test_the_least_cell_error_is_where_the_bound_meets_the_sum():
    each = constructions()[0]
    found = least_cell_error(each, 10_000, 3.0)
    assert each.least_sum_error(10_000, found * 0.999) > 3.0 >= each.least_sum_error(10_000, found * 1.001)
    assert least_cell_error(each, 1, 1e6) == 0.0


def test_errors_are_averaged_over_cells_of_one_kind():
    """Point first on a table of full cells is plain Laplace noise: mean square 2, known to 6.1 standard errors."""
    found = errors(constructions()[0], np.full(500, 1000.0), 100, np.random.default_rng(3))
    assert abs(found.cell - 2.0) < 6.1 * found.cell_se
    assert found.cell_se < 0.05
    assert found.largest > found.cell


@pytest.mark.slow
def test_a_longer_run_agrees_with_every_claim():
    done = run.reproduce(runs=400, seed=20211, tell=quiet)
    assert {claim.statement: claim.why for claim in done.claims if claim.agrees is not True} == {}
    assert math.isclose(done.tables["errors"][0]["cells"], 10)
