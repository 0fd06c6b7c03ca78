"""A ratio on the scale of a transform has an interval at every confidence: one that failed would fail after the charge."""

import math

import numpy as np
import pytest

import recordwise as rw
from build import COUNTIES, generous, records, session
from recordwise.mechanisms.base import OUTSIDE
from recordwise.plan.statistics.base import _radius, radii


@pytest.mark.parametrize("confidence", [0.5, 0.99, 0.999, 1 - OUTSIDE, 0.9990000001, 0.9999999])
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
