"""The search for noise and shares by hand: splits of trees, rounded shares, evened errors, reliable cells and scaled losses."""

import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import recordwise as rw
from planning.small_table import opened, shape
from recordwise.errors import ParameterError
from recordwise.plan.plan import Plan
from recordwise.plan.schema import Schema
from recordwise.planning import Goal
from recordwise.planning.losses import Losses, RecordSample
from recordwise.planning.scope import (
    bare,
    by_measure,
    describes_plan,
    level_shares,
    named,
    part_name,
    read_queries,
    scope_of,
)
from recordwise.planning.search import fits as fits_of
from recordwise.planning.search.cheaper import _with_variance, what_would_have_to_give
from recordwise.planning.search.convex import LevelTree, _must, _pieces, _worst, convex_shares, fitted_shares, split_at
from recordwise.planning.search.fits import (
    QueryCost,
    StatisticFit,
    _share_goals,
    fit,
    in_proportion,
    ranking_size,
    read_fits,
    reads_complete,
)
from recordwise.planning.search.goals import (
    CLAMPS,
    _own,
    amount,
    best_offset,
    by_band,
    can_be_scaled,
    families,
    has_amount,
    has_width,
    mechanism_for,
    noise_size,
    read_goals,
    share_power,
    sized_family,
    tables_of,
    two_digits,
    usual_families,
    with_noise_size,
    with_width,
)
from recordwise.planning.search.reliable import (
    CLASSES,
    Curve,
    ScaledLosses,
    _factor,
    class_names,
    has_widths,
    reliability,
)
from recordwise.planning.search.shares import (
    LevelRatios,
    _axes,
    _fraction,
    _learnt,
    _least_ratio,
    _logits,
    _rescaled,
    _room,
    best_split,
    can_be_fitted,
    checked_sigma,
    crosses,
    exact_shares,
)
from recordwise.postprocess.linear import AnswerTree
from recordwise.session.shares import with_axis_shares

KEYS = rw.Keys.product(county=["01001", "01003", "02001"])


def levels(*shares: Any) -> Any:
    return rw.query().levels(rw.prefix("county", [2, 5]), keys=KEYS)


def crossed() -> Any:
    keys = rw.Keys.product(county=["01001", "01003"], naics=["111", "112"])
    return rw.query().levels(rw.prefix("county", [2, 5])).levels(rw.prefix("naics", [1, 3]), keys=keys)


# Trees of levels.


def tree(reach: list[float], may_miss: tuple[int, int] = (0, 0), variance: float = 1.0) -> LevelTree:
    """A total over three cells."""
    return LevelTree(
        tree=AnswerTree.of(np.array([-1, 0, 0, 0])),
        level=np.array([0, 1, 1, 1]),
        variance=np.full(4, variance),
        reach=np.array(reach, float),
        may_miss=may_miss,
    )


def dense(shares: tuple[float, float], variance: float = 1.0) -> np.ndarray:
    """The variances of the fitted answers by normal equations."""
    rows = np.vstack([np.ones((1, 3)), np.eye(3)])
    weight = np.array([shares[0], *[shares[1]] * 3]) / variance
    return np.diag(rows @ np.linalg.inv(rows.T @ (rows * weight[:, None])) @ rows.T)


def test_ratios_are_the_variances_of_the_fit_over_the_squares_of_what_is_allowed() -> None:
    own = tree([2.0, 1.0, 3.0, 5.0], variance=7.0)
    found = own.squared_ratios(np.array([0.3, 0.7]))
    np.testing.assert_allclose(found, dense((0.3, 0.7), 7.0) / np.array([2.0, 1.0, 3.0, 5.0]) ** 2)
    assert own.tables == 2


def test_a_split_tells_the_worst_ratio_of_each_table_without_those_that_may_miss() -> None:
    shares = np.array([0.3, 0.7])
    squared = np.sqrt(dense((0.3, 0.7)) / np.array([2.0, 1.0, 3.0, 5.0]) ** 2)
    for may_miss, place in (((0, 0), 1), ((0, 1), 2), ((0, 2), 3)):
        found = split_at([tree([2.0, 1.0, 3.0, 5.0], may_miss)], shares, 0.5)
        assert found.ratios == pytest.approx((squared[0], squared[place]))
        assert (found.gap, found.worst) == (0.5, max(found.ratios))
    none = split_at([tree([math.inf, 1.0, math.inf, 5.0])], shares, 0.0)
    assert none.ratios == pytest.approx((0.0, squared[1]))
    both = split_at([tree([2.0, 1.0, 3.0, 5.0]), tree([2.0, 1.0, 3.0, 5.0])], np.array([0.15, 0.35, 0.3, 0.2]), 0.0)
    assert both.ratios[:2] == pytest.approx(
        np.sqrt(2) * np.array(split_at([tree([2.0, 1.0, 3.0, 5.0])], shares, 0.0).ratios)
    )


def test_the_worst_cells_of_a_table_need_not_meet_the_goal() -> None:
    shares = np.array([0.5, 0.5])
    assert _must(tree([2.0, 1.0, 3.0, 5.0]), shares).tolist() == [True, True, True, True]
    assert _must(tree([2.0, 1.0, 3.0, 5.0], (0, 1)), shares).tolist() == [True, False, True, True]
    assert _must(tree([2.0, 1.0, 3.0, 5.0], (1, 2)), shares).tolist() == [False, False, False, True]
    assert _must(tree([math.inf, 1.0, 3.0, math.inf], (0, 1)), shares).tolist() == [False, False, True, False]


@pytest.mark.parametrize("may_miss", [(0, 0), (0, 1), (0, 2)])
def test_the_best_split_is_that_of_a_fine_grid(may_miss: tuple[int, int]) -> None:
    own = tree([2.0, 1.0, 1.5, 5.0], may_miss)
    grid = np.linspace(0.005, 0.995, 199)
    worst = [split_at([own], np.array([each, 1 - each]), 0.0).worst for each in grid]
    found = fitted_shares([own])
    assert found.worst <= min(worst) * 1.001
    assert found.shares.sum() == pytest.approx(1.0)


def test_shares_for_several_statistics_minimize_their_sum_or_the_largest() -> None:
    """Needs a/w1 and b/w2 of two tables: the sum is least at shares in proportion to the roots, the largest where all are equal."""
    start = np.array([0.5, 0.5])
    one, two = np.array([1.0, 0.0]), np.array([0.0, 4.0])
    assert convex_shares([one, two], np.array([1.0, 1.0]), start) == pytest.approx([1 / 3, 2 / 3], abs=0.01)
    assert convex_shares([one, two], np.array([4.0, 1.0]), start) == pytest.approx([0.5, 0.5], abs=0.01)
    assert convex_shares([one, two], None, start) == pytest.approx([0.2, 0.8], abs=0.005)
    assert _worst(np.array([1.0, 6.0]), np.array([0.5, 0.75])) == 8.0
    values, slopes = _pieces(np.array([1.0, 6.0]), start)(np.array([0.5, 0.75]))
    assert (values.tolist(), slopes.tolist()) == ([2.0, 8.0], [[-4.0, 0.0], [0.0, pytest.approx(-6 / 0.5625)]])
    already = np.array([1 / 3, 2 / 3])
    assert convex_shares([one, two], np.array([1.0, 1.0]), already) is already


# Shares of tables.


def test_shares_are_rounded_up_to_six_decimals_and_the_largest_pays() -> None:
    found = exact_shares(np.array([0.2500001, 0.6999998, 0.0500001]))
    assert found == [Fraction(250_001, 10**6), Fraction(699_998, 10**6), Fraction(50_001, 10**6)]
    assert exact_shares(np.array([1e-9, 1 - 1e-9])) == [Fraction(1, 10**6), Fraction(999_999, 10**6)]
    assert exact_shares(np.array([1.0])) == [Fraction(1)]
    assert exact_shares(np.array([0.25, 0.75])) == [Fraction(1, 4), Fraction(3, 4)]


def test_logarithms_of_shares_along_axes_are_those_of_their_sums() -> None:
    grid = np.array([[0.1, 0.2, 0.1], [0.2, 0.3, 0.1]])
    logits = _logits(grid.ravel(), [2, 3])
    assert np.exp(logits) == pytest.approx([0.4, 0.6, 0.3, 0.5, 0.2])
    first, second = _axes(logits, [2, 3])
    assert (first.tolist(), second.tolist()) == (pytest.approx([0.4, 0.6]), pytest.approx([0.3, 0.5, 0.2]))
    (least,) = _axes(np.array([0.0, -99.0]), [2])
    assert least[1] == pytest.approx(math.exp(-12) / (1 + math.exp(-12)))


def test_the_cheapest_split_is_found_along_one_axis_and_over_crossing_ones() -> None:
    need = np.array([1.0, 9.0])
    found = best_split(levels(), lambda shares: float((need / shares).sum()))
    assert level_shares(found) == pytest.approx([0.25, 0.75], abs=0.01)
    wanted = np.array([1.0, 4.0, 9.0, 1.0])
    found = best_split(crossed(), lambda shares: float((wanted / shares).sum()))
    assert level_shares(found) == pytest.approx(np.sqrt(wanted) / np.sqrt(wanted).sum(), abs=0.02)
    flat = crossed()
    assert best_split(flat, lambda shares: 1.0) is flat
    single = rw.query().group_by("county", keys=KEYS)
    assert best_split(single, lambda shares: 1.0) is single
    assert (crosses(crossed()), crosses(levels()), crosses(single)) == (True, False, False)


def needing(noise: dict[int, int]) -> StatisticFit:
    """A statistic of which some tables allow that much noise; its prototype has a sigma of 2."""
    needed: Any = tuple(
        SimpleNamespace(table=SimpleNamespace(part=SimpleNamespace(number=number)), mechanism=rw.Gaussian(sigma=sigma))
        for number, sigma in noise.items()
    )
    target: Any = None
    return StatisticFit(family="", target=target, prototype=rw.Gaussian(sigma=2), tables=(), needed=needed)


def cost_of(query: Any, fits: list[StatisticFit], losses: list[list[float]], rank_by: str) -> QueryCost:
    """The cost of a query, from the loss of each record and statistic at a sigma of 1: the same at both levels."""
    sample, cost = object.__new__(RecordSample), object.__new__(QueryCost)
    sample._rank_by, sample.weights = rank_by, np.ones(len(losses))
    cost.query, cost.fits, cost._losses = query, fits, {}
    cost._places = {each: range(2 * place, 2 * place + 2) for place, each in enumerate(fits)}
    cost.measured(sample, np.repeat(np.array(losses), 2, axis=1) / 4)
    return cost


def test_shares_of_several_statistics_are_best_for_the_record_of_the_rank() -> None:
    """At shares u and v, half of the records lose 1/u + 0.04/v and half lose more, 0.04/u + 1.5/v.

    One statistic allows a noise of 100, the other of 1; so the former lose 10,000 and 0.04 at a sigma of 1, the others 400 and 1.5.
    """
    fits = [needing({0: 100}), needing({1: 1})]
    cost = cost_of(levels(), fits, [[400.0, 1.5], [10_000.0, 0.04]], "median")
    assert cost.cost(fits)(np.array([0.5, 0.5])) == pytest.approx(2 + 0.08)
    found = cost._cheapest(fits)
    assert level_shares(found) == pytest.approx([5 / 6, 1 / 6], abs=0.005)
    assert cost.cost(fits)(level_shares(found)) == pytest.approx(1.44, rel=1e-4)
    # Where the others always lose more, their shares are best for the largest loss.
    cost = cost_of(levels(), fits, [[400.0, 1.5], [400.0, 0.04]], "maximum")
    assert level_shares(cost._cheapest(fits)) == pytest.approx(np.array([0.2, 1.5**0.5]) / (0.2 + 1.5**0.5), abs=0.005)


def test_a_search_for_shares_of_several_statistics_starts_where_each_record_of_the_rank_loses_least(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Losses a/u + b/v, in the order of a + b: that of a, of b or of the larger would be another."""
    fits, needs = [needing({0: 100}), needing({1: 1})], np.array([[0.5, 0.03], [0.4, 0.85], [0.1, 0.9]])
    cost = cost_of(levels(), fits, (needs * [10_000, 1]).tolist(), "balanced")
    roots = np.sqrt(needs[[2, 1]])
    wanted = roots / roots.sum(axis=1, keepdims=True)
    between = with_axis_shares(levels(), [[Fraction(37, 100), Fraction(63, 100)]])
    given: list[Any] = []

    def searched(query: Any, cost: Any, *, starts: Any) -> Any:
        given.extend(starts)
        return found

    monkeypatch.setattr(fits_of, "best_split", searched)
    found = cost.query
    own = level_shares(cost._cheapest(fits))
    assert np.array(given) == pytest.approx(wanted, abs=0.005)
    # Without a better split the better start is taken, else what was found.
    at = cost.cost(fits)
    assert at(level_shares(between)) < at(wanted[1]) < at(np.array([0.5, 0.5])) < at(wanted[0])
    assert own == pytest.approx(wanted[1], abs=0.005)
    found = between
    assert cost._cheapest(fits) is between


def test_shares_of_one_statistic_are_in_proportion_to_the_squares_of_its_needs() -> None:
    """Noise of 2 and of 1 leave it with one sigma for all at shares of 1 to 4; the query that has these shares stays as it is."""
    fits = [needing({0: 2, 1: 1})]
    cost = cost_of(levels(), fits, [[3.0], [1.0], [2.0]], "median")
    assert cost.cost(fits)(np.array([0.5, 0.5])) == pytest.approx(2 * 2)
    assert cost.cost(fits)(np.array([0.2, 0.8])) == pytest.approx(2 / 0.8)
    found = cost._cheapest(fits)
    assert level_shares(found) == pytest.approx([0.2, 0.8], abs=2e-4)
    exact = with_axis_shares(levels(), [[Fraction(1, 5), Fraction(4, 5)]])
    assert cost_of(exact, fits, [[3.0], [1.0], [2.0]], "median")._cheapest(fits) is exact


def test_sigmas_are_those_of_gaussian_noise_that_does_not_clamp() -> None:
    assert checked_sigma(rw.Gaussian(sigma=7)) == 7
    for other in (
        rw.Clamped(to=5, rho=1),
        rw.GeneralizedGaussian(shape=1, scale=3),
        rw.LogTransform(offset=5, sigma="0.1"),
    ):
        with pytest.raises(ParameterError, match="needs Gaussian noise"):
            checked_sigma(other)
        assert not can_be_fitted(other)
    assert can_be_fitted(rw.UnitSplit(at=5, rho=1))
    assert can_be_fitted(rw.Sized(rw.Gaussian(sigma="0.1"), floor=10))
    assert not can_be_fitted(rw.ByGroup("k", {"a": rw.Gaussian(sigma=1), "b": rw.Gaussian(sigma=2)}))


def test_a_goal_leaves_room_beyond_half_a_step() -> None:
    goal: Any = SimpleNamespace(within=Fraction(1, 10))
    part: Any = SimpleNamespace(total=np.array([100.0, 10.0, 5.0, 0.0]), step=Fraction(2))
    counted = np.array([True, True, True, False])
    assert _room(goal, part, counted, 2).tolist() == pytest.approx([9.0, 2e-6, 2e-6, 2e-6])
    with pytest.raises(ParameterError, match="less than half a step"):
        _room(goal, part, counted, 1)
    assert _room(goal, part, np.array([True, False, False, False]), 0)[0] == 9.0


class Ratios:
    """Errors over goals that fall with the root of the share."""

    def __init__(self, *need: float) -> None:
        self.need, self.asked = np.array(need), 0

    def at(self, query: Any) -> list[float]:
        return np.sqrt(self.need / level_shares(query)).tolist()

    def best(self, query: Any) -> Any:
        self.asked += 1
        return self.need / self.need.sum()


def test_a_query_gets_the_shares_at_which_its_worst_table_is_best() -> None:
    ratios: LevelRatios = Ratios(1.0, 3.0)
    assert level_shares(_least_ratio(levels(), ratios)) == pytest.approx([0.25, 0.75])
    even = Ratios(2.0, 2.0)
    query = levels()
    assert _least_ratio(query, even) is query
    alone = Ratios(1.0)
    single = rw.query().group_by("county", keys=KEYS)
    assert _least_ratio(single, alone) is single
    assert alone.asked == 0


def test_shares_move_to_make_errors_equal_by_their_exponents() -> None:
    """Errors c/w^p: at shares where all are equal the sum is 1; steps are at most a factor e before that."""
    shares, exponents = np.array([0.5, 0.5]), np.array([0.5, 0.5])
    found = _rescaled(shares, np.array([1.0, 2.0]), exponents)
    assert found == pytest.approx([0.2, 0.8])
    assert _rescaled(shares, np.array([3.0, 3.0]), exponents) == pytest.approx([0.5, 0.5])
    far = _rescaled(shares, np.array([1.0, 1e6]), exponents)
    assert far[1] / far[0] == pytest.approx(math.exp(math.log(2) + 1), rel=1e-6)
    now, before = (
        (np.array([0.4, 0.4, 0.2]), np.array([1.0, 1.0, 9.0])),
        (np.array([0.2, 0.4, 0.4]), np.array([2.0, 5.0, 1.0])),
    )
    learnt = _learnt(np.array([0.5, 0.5, 0.5]), *now, *before)
    # The first fell by half as its share doubled; the second did not move; the third rose more than any power allows.
    assert learnt == pytest.approx([1.0, 0.5, math.log(9) / math.log(2)])
    steep = _learnt(np.ones(1), np.array([0.2]), np.array([1e9]), np.array([0.4]), np.ones(1))
    flat = _learnt(np.ones(1), np.array([0.2]), np.ones(1), np.array([0.4]), np.ones(1))
    assert (steep.tolist(), flat.tolist()) == ([4.0], [0.1])
    assert (_fraction(0.1), _fraction(1.0), _fraction(1.5)) == (Fraction(1, 10), 1, 1)


# Reliable cells and losses at other noise.


def goal_table(totals: list[float], name: str = "t") -> Any:
    return SimpleNamespace(totals=np.array(totals), name=name)


def test_a_cell_is_reliable_with_the_probability_that_its_value_reaches_its_error_over_the_limit() -> None:
    one, two = goal_table([0.5, 5.0, 10.0], "one"), goal_table([99.0, 1e9], "two")
    errors = [np.array([1.0, 2.0, 1.0]), np.array([20.0, 5.0])]
    found = reliability([one, two], errors, 0.2)
    chances = [norm.cdf(t / s - 5) for t, s in ((0.5, 1), (5.0, 2), (10.0, 1), (99.0, 20), (1e9, 5))]
    assert found.share == pytest.approx(np.mean(chances))
    assert found.by_table == pytest.approx({"one": np.mean(chances[:3]), "two": np.mean(chances[3:])})
    assert len(found.by_class) == CLASSES + 1
    assert found.by_class[0] == pytest.approx(chances[0])
    assert found.by_class[1] == pytest.approx(chances[1])
    assert found.by_class[2] == pytest.approx(np.mean(chances[2:4]))
    assert math.isnan(found.by_class[3])
    assert found.by_class[7] == pytest.approx(1.0)
    assert class_names()[:3] == ["below 1", "1 to 9", "10 to 99"]
    assert class_names()[-1].endswith("or more")
    assert len(class_names()) == 8


def test_losses_at_other_noise_are_those_of_scaled_sizes() -> None:
    """On a curve of the loss x^1.5: noise divided by the root of 4 is that of twice the size; below the first point, too."""
    places = np.log(np.array([1.0, 10.0, 100.0]))
    curve = Curve(
        sizes=np.log(np.array([2.0, 20.0, 0.01])), weights=np.array([1.0, 3.0, 1.0]), knots=(places, 1.5 * places)
    )
    assert curve.at(1.0) == pytest.approx([2**1.5, 3 * 20**1.5, 0.01**1.5])
    assert curve.at(4.0) == pytest.approx([4**1.5, 3 * 40**1.5, 0.02**1.5])
    whole = ScaledLosses(rest=np.array([1.0]), proportional=np.array([2.0]), curves=(), is_fixed=False)
    assert whole.at(3.0).tolist() == [7.0]


def test_the_largest_factor_that_is_allowed_is_found_to_a_thousandth() -> None:
    losses = ScaledLosses(rest=np.zeros(1), proportional=np.ones(1), curves=(), is_fixed=False)
    for most in (5.0, 1e-3, 3e8):
        found = _factor(losses, most.__ge__)
        assert found is not None
        assert most / 1.0011 <= found <= most
    assert _factor(losses, lambda factor: False) is None
    # Factors are tried up to the first power of 8 beyond a thousand million.
    assert _factor(losses, lambda factor: True) == pytest.approx(8.0**10, rel=2e-3)
    rough = _factor(losses, lambda factor: factor <= 5.0, close=2.0)
    assert rough is not None
    assert 2.5 <= rough <= 5.0
    fixed = ScaledLosses(rest=np.zeros(1), proportional=np.ones(1), curves=(), is_fixed=True)
    assert _factor(fixed, lambda factor: factor <= 1.0) == 1.0
    assert _factor(fixed, lambda factor: factor < 1.0) is None


# Amounts of noise, families and goals.


GAUSSIAN, LAPLACE = rw.Gaussian(sigma=7), rw.GeneralizedGaussian(shape=1, scale=3)
LOG = rw.LogTransform(offset=10, sigma="0.25")
SIZED = rw.Sized(rw.Gaussian(sigma="0.1"), floor=10)
FAT_SIZED = rw.Sized(rw.GeneralizedGaussian(shape="0.5", scale="0.02"), floor=10)


def test_noise_has_an_amount_or_a_width_or_neither() -> None:
    coarse = rw.LogTransform(offset=10, laplace_scale="0.1")
    every = (GAUSSIAN, LAPLACE, LOG, SIZED, FAT_SIZED, coarse)
    assert [has_amount(each) for each in every] == [True, False, True, True, False, False]
    assert [has_width(each) for each in every] == [False, True, False, False, False, False]
    assert [can_be_scaled(each) for each in every] == [True, True, True, True, False, False]
    assert [has_widths(each) for each in every] == [False, False, False, False, True, False]
    assert [share_power(each) for each in every] == [0.5, 1.0, 0.5, 0.5, 2.0, None]
    assert (amount(GAUSSIAN), amount(LOG), amount(SIZED)) == (7.0, 0.25, 0.1)
    assert (noise_size(LAPLACE), noise_size(GAUSSIAN)) == (float(LAPLACE.width), 7.0)
    assert float(with_noise_size(GAUSSIAN, 3.5).noise_sigma) == pytest.approx(3.5)  # type: ignore[arg-type]
    scaled: Any = with_noise_size(LAPLACE, 2 * float(LAPLACE.width))
    assert float(scaled.scale) == pytest.approx(6.0)
    scaled = with_width(LAPLACE, 3 * float(LAPLACE.width))
    assert float(scaled.scale) == pytest.approx(9.0)
    wider: Any = with_width(FAT_SIZED, 2 * float(FAT_SIZED.inside()[0].width))
    assert float(wider.inside()[0].scale) == pytest.approx(0.04)


def test_cells_are_served_by_the_band_of_their_size() -> None:
    sizes = np.array([5.0, 10.0, 19.0, 20.0, 1000.0, 0.0])
    edges = [float(each) for each in SIZED.edges(1000.0)]
    found = list(by_band(SIZED, sizes))
    assert sum(len(rows) for _, rows in found) == len(sizes)
    for mechanism, rows in found:
        for row in rows.tolist():
            band = max([edge for edge in edges if edge <= sizes[row]], default=edges[0])
            assert float(mechanism.noise_sigma) == pytest.approx(0.1 * band, rel=1e-9)
    ((plain, every),) = by_band(GAUSSIAN, None)
    assert (plain, every) == (GAUSSIAN, slice(None))
    with pytest.raises(ParameterError, match="keys have no sizes"):
        list(by_band(SIZED, None))


def test_families_have_clamps_on_request() -> None:
    assert (CLAMPS[0], CLAMPS[1], CLAMPS[-1], len(CLAMPS)) == (10, 30, 300_000, 10)
    assert len(families(clamps=True)) == len(families()) + 10
    assert len(families(clamps=[5])) == len(families()) + 1
    assert families(clamps=[5])["clamped at 5"].to == 5
    assert len(families(clamps=False)) == len(families())
    with pytest.raises(ParameterError, match="must be a list of bounds"):
        families(clamps="10")  # type: ignore[arg-type]
    assert all(each.offset == 70 for each in families(offset=70).values() if each.offers("with_offset"))
    assert {each.offset for each in families().values() if each.offers("with_offset")} == {100}
    assert list(sized_family("x", Fraction(10), low=None)) == ["x"]
    assert list(sized_family("x", Fraction(10), low=LAPLACE)) == ["x", "x, fat-tailed below"]
    assert [two_digits(each) for each in (123.4, 0.0456, 9.96)] == [120, Fraction("0.046"), 10]
    plan = Plan(
        schema=Schema.of(unit="id", measures={"emp": 1}, columns={}), queries=(rw.query().sum("emp", GAUSSIAN),)
    )
    assert all(each.offset == 40 for each in usual_families(plan, 40).values() if each.offers("with_offset"))
    by = usual_families(plan, {"emp": 40})
    assert {each["emp"].offset for each in by.values() if each["emp"].offers("with_offset")} == {40}


def test_the_best_offset_has_two_digits_between_a_step_and_ten_times_the_total() -> None:
    def cost(target: float) -> Any:
        return lambda offset: (math.log(float(offset)) - math.log(target)) ** 2

    assert float(best_offset(cost(300.0), total=1000.0, step=1)) == pytest.approx(300.0, rel=0.06)
    assert float(best_offset(cost(1e9), total=1000.0, step=1)) == pytest.approx(10_000.0, rel=0.1)
    assert float(best_offset(cost(1e-9), total=1000.0, step=5)) == pytest.approx(5.0, rel=0.1)
    assert float(best_offset(cost(1e9), total=0.0, step=5)) == pytest.approx(50.0, rel=0.1)


def test_numbers_of_goals_are_by_name_measure_or_for_all() -> None:
    asked: Any = SimpleNamespace(statistic=SimpleNamespace(alias="jobs"), measure="emp")
    assert _own(3, asked, "within") == 3
    assert _own({"jobs": 1, "emp": 2}, asked, "within") == 1
    assert _own({"emp": 2}, asked, "within") == 2
    assert _own({"pay": 2}, asked, "at_least") == 0
    with pytest.raises(ParameterError, match="has no number for 'jobs'"):
        _own({"pay": 2}, asked, "within")
    goal: Any = SimpleNamespace(statistic="jobs", measure="emp")
    assert mechanism_for(GAUSSIAN, goal) is GAUSSIAN
    assert mechanism_for({"emp": LOG, "jobs": GAUSSIAN}, goal) is GAUSSIAN
    assert mechanism_for({"emp": LOG}, goal) is LOG
    with pytest.raises(ParameterError, match="has no mechanism for 'jobs'"):
        mechanism_for({"pay": LOG}, goal)


def test_goals_state_what_they_are_about() -> None:
    goal = Goal("emp", levels(), within="0.1", share="0.9", at_least={"emp": 20, "count": 5}, confidence=0.9)
    assert (goal.levels, goal.at_least, goal.others_at_least) == ((0, 1), 20, (("count", 5),))
    assert goal.words() == (
        "emp: error at most 0.1 of the total with 90% in 90% of the cells of at least 20 with count of at least 5"
    )
    plain = Goal("emp", levels(), within="0.1")
    assert (plain.confidence, plain.share, plain.at_least, plain.statistic) == (0.95, 1, 0, None)
    assert plain.words() == "emp: error at most 0.1 of the total with 95% in every cell"
    assert Goal("emp", levels(), within="0.1", share=1).share == 1
    for wrong in ("1.0001", 0, -1):
        with pytest.raises(ParameterError, match="share"):
            Goal("emp", levels(), within="0.1", share=wrong)
    again = goal.with_query(levels())
    assert (again.at_least, again.others_at_least, again.share, again.confidence) == (
        20,
        (("count", 5),),
        goal.share,
        0.9,
    )
    assert len(goal.queries()) == 2
    assert len(read_goals(plain)) == 1
    for nothing in ([], [3]):
        with pytest.raises(ParameterError, match="must be a Goal or a sequence of Goals"):
            read_goals(nothing)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def table() -> Any:
    with opened() as session:
        view = session.owner.view(data="synthetic")
        (found,) = tables_of(view, [Goal("emp", shape(), within="0.1", share="0.8", at_least=50)], {})
        yield found, view


def test_the_deciding_total_and_ratio_leave_out_those_that_may_miss(table: Any) -> None:
    own, view = table
    totals = np.sort(own.totals)
    assert own.may_miss == int(0.2 * len(totals))
    assert own.deciding() == totals[own.may_miss]
    ratios = np.arange(len(totals), dtype=float)
    assert own.worst(ratios[::-1]) == len(totals) - 1 - own.may_miss
    assert np.all(own.totals >= 50)
    for name in ("median", "p99", "maximum"):
        size = ranking_size(view, "emp", name)
        assert size >= 1
    assert ranking_size(view, "count", "median") == 1.0
    best = fit(own, "g", rw.Gaussian(sigma=1))
    reach = 0.1 * best.deciding
    assert float(best.mechanism.noise_sigma) == pytest.approx(reach / norm.ppf(0.975), rel=0.05)
    assert best.deciding == own.deciding()
    assert best.share_met >= 0.8
    assert in_proportion(best, rw.Gaussian(sigma=1)) is best


def test_best_shares_may_state_one_goal_that_counts_from_some_total_on() -> None:
    def own(*pairs: tuple[str, str]) -> Any:
        goals = [SimpleNamespace(at_least=Fraction(a), within=Fraction(b)) for a, b in pairs]
        return [SimpleNamespace(target=SimpleNamespace(goal=each)) for each in goals]

    assert _share_goals(own(("20", "0.1"), ("20", "0.1"))) == [(), ((Fraction(20), Fraction(1, 10)),)]
    assert _share_goals(own(("20", "0.1"), ("30", "0.1"))) == [()]
    assert _share_goals(own(("0", "0.1"))) == [()]


def test_fits_are_meant_where_keys_are_complete_unless_said_otherwise() -> None:
    assert read_fits(None, None, None) == (False, False)
    assert read_fits(None, None, True) == (True, True)
    assert read_fits(None, False, True) == (False, True)
    assert read_fits(None, True, None) == (True, False)
    assert (reads_complete(None, True), reads_complete(None, False)) == (True, False)


def test_a_family_with_no_larger_variance_in_any_cell_is_made_or_none() -> None:
    totals = np.array([10.0, 100.0, 1000.0])
    made = _with_variance(rw.Gaussian(sigma=1), np.array([100.0, 25.0, 400.0]), totals, Fraction(1))
    assert made is not None
    assert float(made.noise_sigma) == pytest.approx(5.0, rel=1e-3)  # type: ignore[arg-type]
    grown = _with_variance(rw.LogTransform(offset=10, sigma=1), np.array([100.0, 100.0, 100.0]), totals, Fraction(1))
    assert grown is None


def test_ways_to_a_smaller_loss_depend_on_how_many_lose_much() -> None:
    losses = Losses.of(np.array([1.0, 9.0]), np.array([70.0, 30.0]))
    ways = list(what_would_have_to_give(losses, [], {"emp": 3.0, "n": 1.0}, sized=False))
    assert ways[0].startswith("A looser goal: errors 3 times as large")
    assert any(each.startswith("Sized noise") for each in ways)
    assert ways[-1] == "Fewer statistics or levels: emp alone takes 75% of it."
    alone = list(what_would_have_to_give(losses, [], {"emp": 3.0}, sized=True))
    assert len(alone) == 1


# What a plan is about.


def test_plans_are_read_from_queries_and_nothing_else() -> None:
    one = levels().sum("emp", GAUSSIAN)
    assert read_queries(one) == (one,)
    assert read_queries([one, one]) == (one, one)
    for wrong in ([], [3], 3):
        with pytest.raises(ParameterError, match="must be a query, several queries or a plan"):
            read_queries(wrong)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="must be a query with groups"):
        bare(3)  # type: ignore[arg-type]
    assert bare(one).statistics == ()
    assert (describes_plan(one), describes_plan([one]), describes_plan(3)) == (True, True, False)
    assert named({"a": GAUSSIAN}) == {"a": GAUSSIAN}
    with pytest.raises(ParameterError, match="at least one mechanism"):
        named({})
    with pytest.raises(ParameterError, match="is not a mechanism"):
        named({"a": GAUSSIAN, "b": 3})  # type: ignore[dict-item]
    assert part_name("n", one.tables()[0]) == "n by county2"
    assert part_name("n", rw.query().tables()[0]) == "n in total"


def test_tables_and_statistics_are_chosen_by_name_number_or_measure() -> None:
    schema = Schema.of(unit="id", measures={"emp": 1, "pay": 1}, columns={"county": "text"})
    first = levels().named("places").sum("emp", GAUSSIAN, alias="jobs").count(GAUSSIAN)
    second = rw.query().group_by("county", keys=KEYS).sum("pay", GAUSSIAN)
    both = [first, second]

    def chosen(**how: Any) -> list[tuple[int, str, tuple[int, ...]]]:
        return [(each.query, each.statistic.alias, each.levels) for each in scope_of(both, schema, **how).drawn]

    assert chosen() == [(0, "jobs", (0, 1)), (0, "count", (0, 1)), (1, "sum_pay", (0,))]
    assert chosen(tables=["2"]) == [(1, "sum_pay", (0,))]
    assert chosen(tables=["places"], statistics=["emp"]) == [(0, "jobs", (0, 1))]
    assert chosen(statistics=["jobs", "pay"]) == [(0, "jobs", (0, 1)), (1, "sum_pay", (0,))]
    assert chosen(tables=["places_county5"]) == [(0, "jobs", (1,)), (0, "count", (1,))]
    assert scope_of(both, schema).is_whole
    assert not scope_of(both, schema, tables=["2"]).is_whole
    assert not scope_of(both, schema, statistics=["pay"]).is_whole
    for how, problem in (
        ({"tables": ["3"]}, "is not a table of the plan"),
        ({"statistics": ["none"]}, "is not a statistic of the plan"),
        ({"tables": ["2"], "statistics": ["emp"]}, "has no count and no sum"),
        ({"measure": "age"}, "'age' is not a measure"),
    ):
        with pytest.raises(ParameterError, match=problem):
            chosen(**how)
    (only,) = {each.measure for each in scope_of(both, schema, measure="pay").drawn}
    assert only == "pay"
    kept = scope_of(both, schema, tables=["places_county5"]).queries(lambda asked: rw.Gaussian(sigma=2))
    assert [len(each.tables()) for each in kept] == [1]
    # Half of the loss is that of the other level, so that noise is larger by the root of 2.
    assert [float(each.mechanism.noise_sigma) for each in kept[0].draws()] == pytest.approx(
        [math.sqrt(8)] * 2, rel=1e-6
    )
    whole = scope_of(both, schema).queries(lambda asked: rw.Gaussian(sigma=2))
    assert [len(each.tables()) for each in whole] == [2, 1]
    assert {float(each.mechanism.noise_sigma) for query in whole for each in query.draws()} == {2.0}


def test_totals_that_cells_must_reach_are_by_measure_and_the_larger_of_two() -> None:
    query = levels().sum("emp", GAUSSIAN, alias="jobs").count(GAUSSIAN, alias="n")
    assert by_measure({"jobs": 5, "emp": 9, "n": 3}, [query]) == {"emp": 9, "count": 3}
    assert by_measure({"emp": 9, "jobs": 5}, [query]) == {"emp": 9}
    assert by_measure({"other": 2}, [query]) == {"other": 2}
