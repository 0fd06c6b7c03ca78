"""Ends of fitted intervals where noise is coarse: a fitted value that is off by a rounding must not make its interval miss."""

import numpy as np

from recordwise.release.spread import fit_again


def test_the_interval_of_a_fitted_value_that_is_off_by_a_rounding_holds_the_exact_number():
    """Most draws of coarse noise are 0, so that the interval would be the fitted value itself: 99.99999999999999 for 100."""
    fitted = np.array([np.nextafter(100.0, 0.0), 10_000.0])
    sd, reach = fit_again(lambda drawn: drawn, fitted, lambda draws: np.zeros((draws, 2)), confidence=0.95, draws=40)
    assert sd.tolist() == [0.0, 0.0]
    assert fitted[0] + reach[0] >= 100.0
    assert np.all(reach < 1e-7)


def test_a_small_cell_allows_for_the_roundings_of_the_largest():
    fitted = np.array([3.0, 1e12])
    _, reach = fit_again(lambda drawn: drawn, fitted, lambda draws: np.zeros((draws, 2)), confidence=0.95, draws=40)
    assert reach[0] >= np.spacing(1e12)
