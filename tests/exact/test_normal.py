"""The normal distribution function in floats, beside balls that contain it."""

import numpy as np
from flint import arb

from recordwise.exact.arithmetic import normal_cdf
from recordwise.exact.numbers import working_precision


def test_it_is_within_a_relative_millionth_of_a_millionth():
    z = np.concatenate([np.linspace(-37.0, 9.0, 2001), -np.geomspace(1e-12, 37.0, 501), [-0.0, 1e-300, 1e-9]])
    with working_precision(128):
        exact = [(arb(float(each)) * -arb(0.5).sqrt()).erfc() / 2 for each in z]
        off = [abs(float((arb(float(found)) - true) / true)) for found, true in zip(normal_cdf(z), exact)]
    assert max(off) < 1e-12


def test_its_ends_and_shapes():
    assert normal_cdf(np.array([-np.inf, np.inf])).tolist() == [0.0, 1.0]
    assert normal_cdf(np.empty((0, 3))).shape == (0, 3)
    assert normal_cdf(np.zeros((2, 3))).tolist() == [[0.5] * 3] * 2
