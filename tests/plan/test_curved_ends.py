"""Ends of curved intervals of ratios, where both scales are those of the totals: Fieller's roots, moved outward."""

import math
from statistics import NormalDist
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from recordwise.mechanisms.base import OUTSIDE, NoisyCurve
from recordwise.plan.statistics.base import BENDS, STEEPEST_BEND, curved_interval, radii


def straight(point: float, sigma: float, bend: float, *, half: float = 0.0, zero: float = 0.0) -> NoisyCurve:
    one = np.ones(1)
    return NoisyCurve(
        point=point * one, sigma=sigma * one, half=half * one, zero=zero * one, bend=bend * one, back=lambda at: at
    )


def roots(top: float, bottom: float, width: float, depth: float) -> tuple[Any, Any]:
    """The r with (top - r bottom)^2 = width^2 + r^2 depth^2."""
    n, d, w, e = map(mp.mpf, (top, bottom, width, depth))
    square = mp.sqrt((n * d) ** 2 - (d**2 - e**2) * (n**2 - w**2))
    return (n * d - square) / (d**2 - e**2), (n * d + square) / (d**2 - e**2)


@pytest.mark.theorem("T-CURVE")
@pytest.mark.parametrize("half", [0.0, 0.5])
@pytest.mark.parametrize(
    ("top", "bottom", "sigma", "bends"),
    [
        (50.0, 40.0, 3.0, (0.05, 0.02)),
        (50.0, 40.0, 3.0, (0.0, 0.02)),
        (-50.0, 40.0, 3.0, (0.0, 0.02)),
        (10.0, 40.0, 3.0, (0.0, 0.02)),
        (4e6, 5e6, 1e-4, (0.05, 0.02)),
        (-4e6, 5e6, 1e-4, (0.0, 0.02)),
    ],
)
def test_ends_are_fiellers_roots_moved_outward(
    top: float, bottom: float, sigma: float, bends: tuple[float, float], half: float
) -> None:
    """By a millionth of the width and 2^-42 of the larger end: half of it at least, and no more than twice."""
    first, second = straight(top, sigma, bends[0], half=half * sigma), straight(bottom, 2 * sigma, bends[1])
    low, high, where = curved_interval(first, second, confidence=0.9)
    assert where.tolist() == [True]
    radius = float(radii(STEEPEST_BEND * np.array([max(bends)]), 0.9)[0])
    with mp.workdps(40):
        least, most = roots(top, bottom, sigma * radius + half * sigma, 2 * sigma * radius)
        outward = (most - least) / 10**6 + max(abs(least), abs(most)) / 2**42
        for moved in (least - mp.mpf(float(low[0])), mp.mpf(float(high[0])) - most):
            assert outward / 2 <= moved <= 2 * outward


@pytest.mark.parametrize(("point", "applies"), [(19.0, False), (21.0, True)])
def test_the_denominator_must_be_two_reaches_above_0(point: float, applies: bool) -> None:
    """Which is where its own scale has 0."""
    radius = float(radii(STEEPEST_BEND * np.array([0.02]), 0.9)[0])
    top, reach = straight(50.0, 1.0, 0.0), 2.0 * radius + 1.5
    for zero in (0.0, -30.0, 12.0):
        bottom = straight(zero + 2 * reach * point / 20, 2.0, 0.02, half=1.5, zero=zero)
        if bottom.point[0] - reach > 0:
            assert curved_interval(top, bottom, confidence=0.9)[2].tolist() == [applies]


def test_a_curved_total_is_never_below_0() -> None:
    """Other totals may be."""
    for bend, below in ((0.05, False), (0.0, True)):
        low, high, where = curved_interval(straight(1.0, 3.0, bend), straight(40.0, 1.0, 0.05), confidence=0.9)
        assert where.tolist() == [True]
        assert (low[0] < 0) == below
        assert bend == 0 or low.tolist() == [0.0]
        assert high[0] > 0


def test_without_a_bend_and_with_too_much_of_it_nothing_applies() -> None:
    most = 0.6 / STEEPEST_BEND
    for bends, applies in (((0.0, 0.0), False), ((0.0, most * 0.999), True), ((most * 1.001, 0.0), False)):
        top, bottom = straight(50.0, 1.0, bends[0]), straight(50.0, 1.0, bends[1])
        assert curved_interval(top, bottom, confidence=0.5)[2].tolist() == [applies]


def test_radii_grow_with_the_bend_and_end_at_three_sigmas() -> None:
    """Straight lines have the normal quantile; bends between two listed ones have the radius of the larger."""
    some = np.array([0.0, BENDS[1], BENDS[1] * 1.01, BENDS[2], BENDS[2] * 1.01])
    found = radii(some, 0.9)
    assert found[0] == pytest.approx(NormalDist().inv_cdf(0.95 + OUTSIDE / 2), rel=1e-12)
    assert found[0] < found[1] < found[2] == found[3] < found[4]
    assert np.all(radii(np.array([0.0, 0.1]), 0.99) < 3)
    for confidence in (0.9975, 0.9999):
        assert np.all(np.isinf(radii(np.array([0.0, 0.1]), confidence)))
    assert math.isinf(radii(np.array([0.601]), 0.5)[0])
