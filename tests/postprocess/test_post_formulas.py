"""Bounds of the uncertainty principle at the ends of their parameters, and tables handed down by hand."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from recordwise.errors import ParameterError
from recordwise.postprocess import (
    Tradeoff,
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
from recordwise.postprocess.top_down import Forest, Grid, ease_of, share_out, top_down
from recordwise.postprocess.uncertainty import METHODS, MOST, best, check_real, least_cell_error

GOOD: dict[Any, dict[str, Any]] = {
    sum_error_bound_pure: {"cells": 5, "cell_error": 1.0, "epsilon": 1.0},
    sum_error_bound_approximate: {"cells": 5, "cell_error": 1.0, "epsilon": 1.0, "delta": 0.1},
    sum_error_bound_zcdp: {"cells": 5, "cell_error": 1.0, "rho": 1.0},
    sum_error_bound_policy: {"cells": 5, "cell_error": 1.0, "sizes": [9.0], "losses": [1.0]},
    cell_error_bound_pure: {"cells": 5, "sum_error": 1.0, "epsilon": 1.0},
    cell_error_bound_approximate: {"cells": 5, "sum_error": 1.0, "epsilon": 1.0, "delta": 0.1},
    cell_error_bound_zcdp: {"cells": 5, "sum_error": 1.0, "rho": 1.0},
    point_first_errors: {"cells": 5, "variance": 1.0},
    sum_first_errors_laplace: {"cells": 5, "total_scale": 1.0, "cell_scale": 1.0},
    sum_first_errors_gaussian: {"cells": 5, "total_variance": 1.0, "cell_variance": 1.0},
    bounded_reach: {"epsilon": 1.0, "delta": 0.1},
    hard_table: {"cells": 5, "epsilon": 1.0},
    easy_table: {"cells": 5, "epsilon": 1.0},
}
POSITIVE = (0.0, -1.0, math.inf, math.nan, True, "1", None, 1.1 * MOST)
NOT_NEGATIVE = (-1e-9, math.inf, math.nan, True, "1", 1.1 * MOST)
WRONG: dict[str, tuple[Any, ...]] = {
    "cells": (0, 0.5, -3, math.inf, math.nan, True, "5", 1.1 * MOST),
    "cell_error": NOT_NEGATIVE,
    "sum_error": NOT_NEGATIVE,
    "delta": (-1e-9, 1.0, 2.0, math.nan, True, "0.1", -1.1 * MOST),
}


@pytest.mark.parametrize("ask", GOOD)
def test_each_parameter_without_meaning_is_refused_alone(ask: Any) -> None:
    ask(**GOOD[ask])
    for name in GOOD[ask]:
        if name in ("sizes", "losses"):
            continue
        for wrong in WRONG.get(name, POSITIVE):
            with pytest.raises(ParameterError, match=name):
                ask(**{**GOOD[ask], name: wrong})


def test_the_least_and_the_most_that_parameters_can_be() -> None:
    assert sum_error_bound_pure(cells=1, cell_error=0, epsilon=1) == pytest.approx(0.75 * math.exp(-1))
    assert sum_error_bound_approximate(cells=1, cell_error=0.0, epsilon=1.0, delta=0.0) == pytest.approx(
        0.75 * math.exp(-1)
    )
    assert sum_error_bound_approximate(cells=1, cell_error=0.0, epsilon=1.0, delta=0.99) == 0
    assert cell_error_bound_pure(cells=5, sum_error=100.0, epsilon=1.0) == 0
    assert bounded_reach(epsilon=1.0, delta=0.5) == pytest.approx(1.0)
    with pytest.raises(ParameterError, match="above 0 and at most 1/2"):
        bounded_reach(epsilon=1.0, delta=0.501)
    assert hard_table(cells=1, epsilon=1.0).tolist() == [0]
    check_real("x", np.int64(3))
    check_real("x", MOST)
    check_real("x", -MOST)
    with pytest.raises(ParameterError, match=r"must be a number of at most 1e\+150"):
        check_real("x", -1.1 * MOST)


def test_bounds_by_hand() -> None:
    """Five cells, C of 1, epsilon of 0.5: the best t of 3, 4, 5 has 3/4 (t - 2) exp(-t/2)."""
    pure = max(0.75 * (t - 2) * math.exp(-t / 2) for t in range(3, 20))
    assert sum_error_bound_pure(cells=5, cell_error=1.0, epsilon=0.5) == pytest.approx(5 * pure)
    lost = 0.01 / (math.exp(0.5) - 1)
    less = max((t - 2) * (0.75 * math.exp(-t / 2) - lost) for t in range(3, 20))
    assert sum_error_bound_approximate(cells=5, cell_error=1.0, epsilon=0.5, delta=0.01) == pytest.approx(5 * less)
    root = math.sqrt(math.log(4 / 3))
    zcdp = max((t - 2) * math.exp(-((root + t * math.sqrt(0.02)) ** 2)) for t in range(3, 90))
    assert sum_error_bound_zcdp(cells=5, cell_error=1.0, rho=0.02) == pytest.approx(5 * zcdp)
    policy = max((t - 2) * math.exp(-((root + math.sqrt(loss)) ** 2)) for t, loss in ((7, 0.3), (30, 1.5), (90, 9)))
    found = sum_error_bound_policy(cells=5, cell_error=1.0, sizes=[1, 7, 30, 90], losses=[0.01, 0.3, 1.5, 9])
    assert found == pytest.approx(5 * policy)
    assert sum_error_bound_policy(cells=5, cell_error=9.0, sizes=[1, 18], losses=[0.1, 0.1]) == 0
    assert sum_error_bound_policy(cells=5, cell_error=9.0, sizes=[], losses=[]) == 0
    errors = point_first_errors(cells=7, variance=9.0)
    assert (errors.cell, errors.sum) == (3, 21)
    cut = sum_first_errors_bounded(total_epsilon=0.3, cell_epsilon=1.7, delta=0.02)
    sd = math.sqrt(bounded_variance(epsilon=0.3, delta=0.01))
    assert (cut.cell, cut.sum) == pytest.approx((2 * bounded_reach(epsilon=1.7, delta=0.01) + sd, sd))
    assert bounded_laplace([0.5], epsilon=1.0, delta=0.1).tolist() == [0]
    assert easy_table(cells=3, epsilon=0.7).tolist() == [math.ceil(10 * (1 + math.log(3)) / 0.7)] * 3
    assert hard_table(cells=40, epsilon=0.3).tolist() == [math.ceil(math.log(40) / 0.3)] + [0] * 39


@pytest.mark.parametrize("top", range(1, 14))
@pytest.mark.parametrize("start", [0.0, 0.4, 1.5])
def test_the_best_whole_number_is_found_wherever_it_lies(top: int, start: float) -> None:
    """Of a curve with one top at or above the first number beyond 2 C."""
    at = top + math.floor(2 * start)
    seen = []

    def value(k: float, t: int) -> float:
        seen.append((k, t))
        return 100 - abs(t - at)

    assert best(value, start, 13.0) == 100
    assert all(k == pytest.approx(t - 2 * start) and k > 0 for k, t in seen)


@pytest.mark.parametrize("where", [0.3, 1.0, 5.0, 700.0])
def test_the_least_error_of_cells_is_where_the_bound_meets_the_sum(where: float) -> None:
    found = least_cell_error(lambda c: 10 * where / max(c, 1e-9), 10.0)
    assert found == pytest.approx(where, rel=1e-11)
    assert found <= where
    assert least_cell_error(lambda c: 3 - c, 3.0) == 0


def test_sum_first_is_the_nearest_table_with_the_total_cut_at_zero() -> None:
    found = sum_first([10.0, -3], [[6.0, 8, -1], [1, 2, 3]], total_variance=1.0, cell_variance=5.0)
    assert found == pytest.approx(np.array([[4.0, 6, 0], [0, 0, 0]]))
    assert sum_first(9.0, [1.0, 2], total_variance=1.0, cell_variance=1.0) == pytest.approx([4, 5])


class Steady:
    """Noise of its scale with the sign of the place, whatever the draw."""

    def laplace(self, *, scale: float, size: tuple[int, int]) -> Any:
        return np.tile(scale * np.where(np.arange(size[1]) % 2, 1.0, -1.0), (size[0], 1))


def test_tradeoffs_are_the_roots_of_mean_squares_of_each_method_on_both_tables() -> None:
    found = {(point.table, point.method): point for point in tradeoffs(cells=4, epsilon=0.5, draws=3, rng=Steady())}
    assert len(found) == 2 * len(METHODS)
    assert {table for table, _ in found} == {"hard", "easy"}
    # The sum is off by -4 and the cells by 4, -4, 4, -4: least squares moves each cell by a fifth of -4.
    for table in ("hard", "easy"):
        assert (found[table, "OLS"].sum, found[table, "OLS"].cell) == pytest.approx((3.2, 4.8))
    assert found["easy", "Sequential"].sum == pytest.approx(4)


def test_the_plot_has_the_points_of_each_table_and_the_bound_below_them() -> None:
    points = [Tradeoff(method=m, table=t, cell=c, sum=s) for m, t, c, s in (("A", "hard", 1, 2), ("B", "easy", 5, 4))]
    figure = plot_tradeoffs(points, cells=7, epsilon=0.5)
    assert [axis.get_title() for axis in figure.axes] == [
        f"{each} table, 7 cells, epsilon 0.5" for each in ("hard", "easy")
    ]
    for axis, (cell, total, name) in zip(figure.axes, ((1, 2, "A"), (5, 4, "B"))):
        point, bound = axis.lines
        assert (point.get_xdata()[0], point.get_ydata()[0], point.get_label()) == (cell, total, name)
        reach = bound.get_xdata()
        assert (reach[0], reach[-1]) == pytest.approx((0, 5.5))
        assert bound.get_ydata()[0] == pytest.approx(sum_error_bound_pure(cells=7, cell_error=0.0, epsilon=0.5))
        assert axis.get_xlabel() == "worst cell, root mean squared error"
        assert axis.get_yscale() == "log"
    assert figure.axes[0].get_ylabel() == "sum, root mean squared error"
    assert figure.axes[1].get_legend() is not None
    assert figure.axes[0].get_legend() is None


# Tables handed down.


def test_a_forest_is_handed_down_family_by_family_with_the_errors_of_rests() -> None:
    """A nation of two states; the first has two counties and a rest, the second none; all standard errors differ."""
    rows = np.array([[1.0, 1, 1, 1], [1, 1, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
    forest = Forest.of(sparse.csr_array(rows))
    assert forest is not None
    best_of, sd = np.array([50.0, 70, 30, -10, -5]), np.array([2.0, 3, 4, 5, 6])
    cells, _ = forest.hand_down(best_of, sd)
    states = share_out(best_of[[1, 4]], ease_of(best_of[[1, 4]], sd[[1, 4]]), np.array([50.0]), np.array([0]))
    parts = np.array([30.0, -10, 70 - 30 + 10])
    errors = np.array([4.0, 5, math.sqrt(9 + 16 + 25)])
    inside = share_out(parts, ease_of(parts, errors), states[:1], np.array([0]))
    assert cells == pytest.approx([*inside, states[1]])
    assert cells.sum() == pytest.approx(50)


def test_tables_that_are_not_published_are_sums_of_the_finest_with_the_errors_of_sums() -> None:
    rng = np.random.default_rng(5)
    labels = [np.arange(6), np.repeat([0, 1], 3), np.tile([0, 1, 2], 2), np.zeros(6, np.int64)]
    fine, sd = rng.normal(2, 6, 6), rng.uniform(1, 3, 6)
    sums = [np.bincount(own, fine) for own in labels]
    errors = [np.sqrt(np.bincount(own, sd**2)) for own in labels]
    whole = Grid.of((2, 3), labels)
    assert whole is not None
    known, _ = whole.hand_down(np.concatenate(sums), np.concatenate(errors))
    for kept in ([0], [0, 1], [0, 2], [0, 3], [0, 1, 3]):
        some = Grid.of((2, 3), [labels[k] for k in kept])
        assert some is not None
        found, _ = some.hand_down(np.concatenate([sums[k] for k in kept]), np.concatenate([errors[k] for k in kept]))
        assert found == pytest.approx(known, abs=1e-9)


def test_the_gap_is_the_largest_relative_difference_from_the_tables_above() -> None:
    grid = Grid.of((2, 3), [np.arange(6), np.repeat([0, 1], 3), np.tile([0, 1, 2], 2), np.zeros(6, np.int64)])
    assert grid is not None
    # Levels 0 and 1 of both: one table of 2 by 3 below rows of 6 and 9 and columns of 5, 5 and 5.
    cells = np.array([[[1.0, 2, 3], [4, 3, 2]]])
    above = [np.zeros((1, 1, 1)), np.array([[[5.0, 5, 5]]])]
    for row, gap in (
        (np.array([[[6.0], [9]]]), 0),
        (np.array([[[6.0], [7]]]), 2 / 8),
        (np.array([[[9.0], [10]]]), 3 / 10),
    ):
        assert grid._gap(1, 1, above, [row, cells]) == pytest.approx(gap)
    off = [np.zeros((1, 1, 1)), np.array([[[5.0, 9, 5]]])]
    assert grid._gap(1, 1, off, [np.array([[[6.0], [9]]]), cells]) == pytest.approx(4 / 10)
    assert grid._gap(0, 0, [], [np.ones((1, 1, 1))]) == 0


def test_the_gap_of_a_descent_is_the_residual_of_its_fit() -> None:
    class Given:
        def hand_down(self, best: Any, sd: Any) -> tuple[Any, float]:
            return np.abs(best[..., :2]), 0.25

    workload = Workload.matrix(np.eye(2))
    shape: Any = Given()
    fit = top_down(workload, np.array([[1.0, -2], [3, 4]]), np.ones(2), shape=shape)
    assert (fit.kkt.tolist(), fit.primal.tolist()) == ([0.25, 0.25], [0, 0])
    assert fit.x.tolist() == fit.fitted.tolist() == [[1, 2], [3, 4]]
    assert not fit.converged.any()
