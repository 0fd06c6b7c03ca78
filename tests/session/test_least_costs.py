"""Shares with the least largest cost, where algebra knows them."""

from typing import Any

import numpy as np
import pytest

from recordwise.session import split
from recordwise.session.split import GAP, Split, least_product, least_split, product_of

NEEDS = np.array([1.0, 4.0, 15.0])


def apart(shares: Any) -> Any:
    """Tables that are not fitted: the best shares are in proportion to what each needs, and cost their sum."""
    return NEEDS / shares


@pytest.mark.parametrize("start", [[1 / 3, 1 / 3, 1 / 3], [0.98, 0.01, 0.01], [0.0, 0.0, 1.0]])
def test_shares_are_in_proportion_to_what_each_needs(start: list[float]) -> None:
    found = least_split(apart, np.array(start), 1e-3)
    assert found.shares.sum() == pytest.approx(1, abs=1e-9)
    assert found.cost == pytest.approx(max(apart(found.shares)), rel=1e-12)
    assert 20 * (1 - 1e-9) <= found.cost <= 20 * (1 + GAP)
    np.testing.assert_allclose(found.shares, NEEDS / 20, rtol=5e-3)


def test_no_share_is_below_the_least() -> None:
    found = least_split(apart, np.full(3, 1 / 3), 0.2)
    np.testing.assert_allclose(found.shares, [0.2, 0.2, 0.6], rtol=1e-3)
    assert found.cost == pytest.approx(25, rel=2e-3)
    assert min(found.shares) >= 0.2 - 1e-9


def test_a_cost_of_several_shares_is_made_small_by_what_it_has_in_common() -> None:
    """One cost that both shares make smaller, and one that the second alone does."""

    def costs(shares: Any) -> Any:
        return np.array([3 / (shares[0] + 2 * shares[1]), 1 / shares[1]])

    found = least_split(costs, np.array([0.9, 0.1]), 1e-3)
    assert found.cost <= 1.5 * (1 + 2 * GAP)


def watched(costs: Any) -> tuple[Any, list[Any]]:
    """The costs, and the shares that they were asked for."""
    asked: list[Any] = []

    def counted(shares: Any) -> Any:
        asked.append(shares)
        return costs(shares)

    return counted, asked


def test_the_search_ends_where_no_others_can_be_better() -> None:
    costs, asked = watched(apart)
    found = least_split(costs, 3 * NEEDS, 1e-3)
    assert len(asked) == 3
    np.testing.assert_allclose(asked[0], NEEDS / 20, rtol=1e-12)
    np.testing.assert_allclose(found.shares, NEEDS / 20, rtol=1e-12)


def test_tangents_that_promised_too_much_are_followed_half_of_the_way() -> None:
    """One over the cost is the root of a product: its tangent at an end promises most at the other end."""
    costs, asked = watched(lambda shares: np.array([1 / np.sqrt(shares[0] * shares[1])]))
    found = least_split(costs, np.array([0.9, 0.1]), 1e-3)
    assert 2 * (1 - 1e-9) <= found.cost <= 2 * (1 + GAP)
    points = asked[::2]
    np.testing.assert_allclose(points[1], [0.001, 0.999], rtol=1e-6)
    assert np.abs(np.sum(points, axis=1) - 1).max() < 1e-9
    slopes = [split._tangents(costs, point)[1] for point in points[:2]]
    highest, _ = split._highest(np.concatenate(slopes), 1e-3)
    np.testing.assert_allclose(points[2], (highest + points[0]) / 2, rtol=1e-6)


def test_known_tangents_are_where_the_search_begins() -> None:
    costs, asked = watched(apart)
    known = least_split(apart, np.full(3, 1 / 3), 1e-3)
    again = least_split(costs, np.array([0.98, 0.01, 0.01]), 1e-3, [known.tangents])
    np.testing.assert_allclose(asked[0], known.shares, rtol=2e-2)
    assert again.cost <= 20 * (1 + GAP)
    assert len(again.tangents) > len(known.tangents)


def test_tangents_touch_the_inverse_of_each_cost_and_lie_above_it() -> None:
    point = np.array([0.2, 0.3, 0.5])
    now, slopes = split._tangents(apart, point)
    assert now.tolist() == apart(point).tolist()
    np.testing.assert_allclose(slopes @ point, 1 / now, rtol=1e-9)
    np.testing.assert_allclose(slopes, np.diag(1 / NEEDS), atol=1e-6)


def test_a_cost_that_no_share_but_the_largest_makes_smaller_falls_with_that() -> None:
    _, slopes = split._tangents(lambda shares: np.array([1 / shares[1]]), np.array([0.4, 0.6]))
    np.testing.assert_allclose(slopes, [[0, 1]], atol=1e-9)
    _, slopes = split._tangents(lambda shares: np.array([shares[0] ** 2]), np.array([0.4, 0.6]))
    assert slopes[0, 0] == 0


def test_the_highest_point_of_the_lowest_tangent() -> None:
    shares, height = split._highest(np.diag([4.0, 1.0]), 0.01)
    np.testing.assert_allclose(shares, [0.2, 0.8], rtol=1e-9)
    assert height == pytest.approx(0.8, rel=1e-9)
    shares, height = split._highest(np.diag([400.0, 100.0]), 0.3)
    np.testing.assert_allclose(shares, [0.3, 0.7], rtol=1e-9)
    assert height == pytest.approx(70, rel=1e-9)
    found = Split(shares=shares, cost=1.0, tangents=np.diag([4.0, 1.0]))
    assert found.bound(np.array([0.5, 0.5])) == 2.0


def test_products_of_shares_along_axes() -> None:
    one, other = np.array([0.25, 0.75]), np.array([0.5, 0.3, 0.2])
    assert product_of([one, other]).tolist() == [
        0.25 * 0.5, 0.25 * 0.3, 0.25 * 0.2, 0.75 * 0.5, 0.75 * 0.3, 0.75 * 0.2,
    ]  # fmt: skip
    assert product_of([]).tolist() == [1]
    assert product_of([one]).tolist() == one.tolist()


def test_shares_of_axes_are_found_where_products_are_best() -> None:
    """What each table needs is a product itself: that of 1 and 3 with 2, 3 and 5."""
    one, other = np.array([0.25, 0.75]), np.array([0.2, 0.3, 0.5])
    needs = product_of([one, other])
    best = least_split(lambda shares: needs / shares, np.full(6, 1 / 6), 1e-4)
    for found, wanted in zip(least_product(best, [2, 3], 1e-3), (one, other), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-2)
        assert found.sum() == pytest.approx(1, abs=1e-9)


def test_products_settle_for_what_both_axes_can_do() -> None:
    """Only the tables of the first levels and of the second levels need anything: each gets half, along both axes."""
    needs = np.array([1.0, 1e-6, 1e-6, 1.0])
    best = least_split(lambda shares: needs / shares, np.full(4, 1 / 4), 1e-4)
    first, second = least_product(best, [2, 2], 0.05)
    np.testing.assert_allclose(first, [0.5, 0.5], rtol=0.05)
    np.testing.assert_allclose(second, [0.5, 0.5], rtol=0.05)
    assert min(*first, *second) >= 0.05
    uneven = Split(shares=np.array([0.01, 0.01, 0.01, 0.97]), cost=1.0, tangents=np.array([[0, 0, 0, 1.0]]))
    for found in least_product(uneven, [2, 2], 0.05):
        np.testing.assert_allclose(found, [0.05, 0.95], rtol=1e-9)
