"""Where a cubic is below a level, against its own roots."""

import numpy as np
import pytest

from recordwise.mechanisms.accuracy import _cubic


@pytest.mark.parametrize("linear", [-3.0, -0.7, -40.0])
@pytest.mark.parametrize("ratio", [-4.0, -1.4, -1.0001, -0.9, 0.0, 0.3, 0.999, 1.1, 1.3, 1.6, 25.0])
def test_the_ends_of_the_intervals_are_the_roots(linear: float, ratio: float) -> None:
    level = ratio * 2 * (-linear / 3) ** 1.5
    roots = np.roots([1.0, 0.0, linear, -level])
    real = np.sort(roots[np.abs(roots.imag) < 1e-6].real)
    found = _cubic(linear, np.array([level]))
    ends = np.array([each for pair in found for side in pair for each in np.ravel(side)])
    assert ends[0] == -np.inf
    if len(real) == 1:
        np.testing.assert_allclose(found[0][1], real, rtol=1e-9)
    else:
        np.testing.assert_allclose(ends[1:4], real, rtol=1e-6, atol=1e-6)
