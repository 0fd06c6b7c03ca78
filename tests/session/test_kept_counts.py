"""Counts that decided about their own key: the ends of their intervals to the last bit of a tail."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from recordwise.errors import ParameterError
from recordwise.mechanisms import key_selection
from recordwise.mechanisms.key_selection import SelectionLaw, distinct_below, truncated_deviations, truncated_intervals
from recordwise.noise import Seeded

LAW = SelectionLaw(sigma=Fraction(9, 4), threshold=13)


def test_one_piece_alone_is_kept_with_probability_delta_at_most() -> None:
    for rho, delta in (("0.1", "1e-6"), (2, "0.01")):
        law = SelectionLaw.for_delta(rho=rho, delta=delta)
        assert (
            law.keep_probability(1)
            <= float(delta)
            < SelectionLaw(sigma=law.sigma, threshold=law.threshold - 1).keep_probability(1)
        )
    for wrong in (0, 1, -1, "1.5"):
        with pytest.raises(ParameterError, match="delta must lie between 0 and 1"):
            SelectionLaw.for_delta(rho=1, delta=wrong)


def ends(value: int, alpha: float, half: int) -> tuple[int, int]:
    low, high = key_selection._invert_tests(LAW, np.array([value]), alpha, 0, half)
    return int(low[0]), int(high[0])


@pytest.mark.parametrize("count", [9, 12])
def test_a_count_that_is_rejected_by_less_than_rounding_stays_in_the_interval(count: int) -> None:
    """One part in a thousand million of a tail is taken for rounding, and no more."""
    tail = float(key_selection._at_least(LAW, np.array([18]), np.array([count]))[0])
    assert ends(18, tail * (1 + 9e-10), 10)[0] == count
    assert ends(18, tail * (1 + 1.1e-9), 10)[0] == count + 1
    above = float(1 - key_selection._at_least(LAW, np.array([19]), np.array([count + 10]))[0])
    assert ends(18, above * (1 + 9e-10), 40)[1] == count + 10
    assert ends(18, above * (1 + 1.1e-9), 40)[1] == count + 9


def test_an_interval_ends_no_later_than_that_of_plain_noise() -> None:
    """Beyond the half width of the noise nothing is tried."""
    assert ends(14, 1e-30, 3)[1] == 17
    assert ends(14, 1e-30, 4)[1] == 18
    assert ends(14, 1e-30, 4)[0] == 0


@pytest.mark.parametrize("least", [0, 1, 3])
def test_no_end_is_below_the_least_count(least: int) -> None:
    low, high = truncated_intervals(LAW, np.array([13, 14]), confidence=0.95, least=least)
    assert low.tolist() == [least, least]
    far = SelectionLaw(sigma=Fraction(1), threshold=-60)
    low, high = truncated_intervals(far, np.array([-50, 0]), confidence=0.95, least=least)
    assert low.tolist() == [least, least]
    assert high.tolist() == [least, max(least, 2)]


def test_one_step_more_is_taken_where_a_tail_is_as_large_as_it_may_be() -> None:
    beyond = float(LAW.noise.sf_upper(5))
    assert key_selection._extra_steps(LAW, 4, beyond * (1 + 2e-9)) == 0
    assert key_selection._extra_steps(LAW, 4, beyond * (1 + 1.1e-9)) == 0
    assert key_selection._extra_steps(LAW, 4, beyond * (1 + 9e-10)) == 1


def test_the_smallest_count_for_which_a_test_holds() -> None:
    def smallest(least: Any, first: list[int], last: list[int]) -> list[int]:
        found = key_selection._smallest(lambda counts: counts >= np.array(least), np.array(first), np.array(last))
        return found.tolist()

    assert smallest([3, 0, 99, 7, 5], [0, 0, 0, 7, 6], [10, 10, 10, 7, 2]) == [3, 0, 10, 7, 6]
    assert smallest([4, 5], [0, 0], [5, 5]) == [4, 5]


def test_deviations_are_those_of_the_noise_from_eighteen_sigmas_on() -> None:
    law = SelectionLaw(sigma=Fraction(1), threshold=10)
    plain = math.sqrt(law.noise.variance)
    found = truncated_deviations(law, np.array([10, 28, 29]), least=1)
    assert found[0] < 0.5 * plain
    assert found[1:] == pytest.approx([plain, plain], rel=1e-9)
    (median,) = truncated_deviations(law, np.array([11]), least=11)
    weights = np.exp(-(np.arange(-1.0, 30) ** 2) / 2)
    mean = np.average(np.arange(31), weights=weights)
    assert median == pytest.approx(math.sqrt(np.average((np.arange(31) - mean) ** 2, weights=weights)), rel=1e-9)


def test_all_none_and_half_of_the_places_are_drawn_and_no_more() -> None:
    assert distinct_below(5, 5, Seeded(1)).tolist() == [0, 1, 2, 3, 4]
    assert distinct_below(5, 0, Seeded(1)).tolist() == []
    assert distinct_below(0, 0, Seeded(1)).tolist() == []
    assert distinct_below(1, 1, Seeded(1)).tolist() == [0]
    most = distinct_below(5, 4, Seeded(1)).tolist()
    assert (len(most), most == sorted(set(most))) == (4, True)
    half = distinct_below(4, 2, Seeded(1))
    assert len(set(half.tolist())) == 2
    assert set(half.tolist()) <= {0, 1, 2, 3}
    for bound, count in ((4, 5), (4, -1), (2**62 + 1, 1)):
        with pytest.raises(ParameterError, match="count"):
            distinct_below(bound, count, Seeded(1))
    assert 0 <= distinct_below(2**62, 1, Seeded(1))[0] < 2**62


def test_a_group_of_no_pieces_loses_nothing_and_negative_ones_are_refused() -> None:
    nothing = LAW.group_loss([0, 0])
    assert (nothing.rho, nothing.delta) == (0, 0)
    assert LAW.group_loss([0, 1]) == LAW.group_loss([1])
    some = LAW.group_loss([2, 1])
    assert some.rho == pytest.approx(5 / (2 * 2.25**2), rel=1e-12)
    chances = [float(LAW.noise.sf(13 - pieces)) for pieces in (2, 1)]
    assert some.delta == pytest.approx(1 - (1 - chances[0]) * (1 - chances[1]), rel=1e-9)
    with pytest.raises(ParameterError, match="pieces must not be negative"):
        LAW.group_loss([1, -1])
