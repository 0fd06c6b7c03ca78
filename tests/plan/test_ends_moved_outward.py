"""Ends of intervals are moved outward by all that roundings can be worth, on either side."""

import numpy as np
import pytest

from recordwise.plan.statistics.base import ROUNDINGS, outward


@pytest.mark.parametrize("size", [0.0, 1.0, 1e9, 1e15])
@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (0.0, 1e-3), (1e6, 1e6 + 1), (-5e8, -4e8)])
def test_both_ends_allow_for_roundings_of_the_size_and_of_themselves(low: float, high: float, size: float) -> None:
    lower, upper = outward(np.array([low]), np.array([high]), np.array([size]))
    assert lower[0] <= low - ROUNDINGS * size - ROUNDINGS * abs(low)
    assert upper[0] >= high + ROUNDINGS * size + ROUNDINGS * abs(high)
    width = high - low + 2 * ROUNDINGS * (size + max(abs(low), abs(high)))
    assert max(low - lower[0], upper[0] - high) <= 0.02 * width + ROUNDINGS * (size + max(abs(low), abs(high)))
