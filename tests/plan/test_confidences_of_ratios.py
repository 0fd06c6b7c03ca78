"""A ratio on the scale of a transform has an interval at every confidence: one that failed would fail after the charge."""

import math

import numpy as np
import pytest

import recordwise as rw
from build import COUNTIES, generous, records, session
from recordwise.mechanisms.base import OUTSIDE
from recordwise.plan.statistics.base import Side, _corners, _radius, radii


@pytest.mark.parametrize("confidence", [0.5, 0.99, 0.999, 1 - OUTSIDE, 0.9990000001, 0.9999999])
@pytest.mark.costly
def test_a_ratio_of_curved_answers_is_published_at_any_confidence(confidence: float) -> None:
    asked = rw.query().group_by("county", keys={"county": COUNTIES}).count(rw.Gaussian(sigma=1))
    asked = asked.sum("emp", rw.LogTransform(offset=30, sigma="0.05")).ratio("sum_emp", "count", alias="each")
    with session(records(60), budget=generous()) as opened:
        released = opened.run(asked, confidence=confidence)
    (table,) = released.tables
    assert len(table.data["each_low"].drop_null()) == len(COUNTIES)


@pytest.mark.parametrize("bend", [0.0, 0.01, 0.5])
def test_where_no_chance_to_miss_is_left_no_radius_is_long_enough(bend: float) -> None:
    for confidence in (1 - OUTSIDE, 1.0, float(np.nextafter(1 - OUTSIDE, 0))):
        assert _radius(bend, confidence) > 3
        assert radii(np.array([bend]), confidence).tolist() == [math.inf]


@pytest.mark.parametrize(
    ("low", "high", "ends"),
    [
        (0.5, 0.75, (0.125, 0.375)),
        (-0.5, 0.75, (-0.25, 0.375)),
        (-0.75, -0.5, (-0.375, -0.125)),
        (0.0, 0.0, (0.0, 0.0)),
    ],
)
def test_corners_of_small_numerators(low: float, high: float, ends: tuple[float, float]) -> None:
    """A denominator between 2 and 4; what is below 0 is smallest over the smaller one."""
    one, nothing = np.ones(1), np.full(1, math.nan)
    top = Side(value=one, low=low * one, high=high * one, reach=nothing)
    bottom = Side(value=3 * one, low=2 * one, high=4 * one, reach=nothing)
    found = _corners(top, bottom, 0.5)
    assert [float(end[0]) for end in found] == pytest.approx(ends, rel=1e-12, abs=1e-15)
    assert found[0][0] <= ends[0] <= ends[1] <= found[1][0]
