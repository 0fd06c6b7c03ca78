"""Independent truth for the tests: the lattice Gaussian summed in mpmath, and chi-square with a stated false-alarm rate."""

from fractions import Fraction

import mpmath
import numpy as np
from scipy.stats import chi2

FALSE_ALARM = 1e-9


def tail(sigma, start):
    """P(Z >= start), 36 digits."""
    with mpmath.workdps(40):
        spread = mpmath.mpf(sigma.numerator) / sigma.denominator
        reach = int(60 * spread) + 60 + abs(start)
        weight = lambda k: mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * spread**2))  # noqa: E731
        total = sum(weight(k) for k in range(-reach, reach + 1))
        return Fraction(mpmath.nstr(sum(weight(k) for k in range(start, reach + 1)) / total, 36))


def chi_square_rejects(observed, probabilities):
    """Whether counts differ from a law at the false-alarm rate; the caller keeps expected counts above 10."""
    expected = np.sum(observed) * np.asarray(probabilities, float)
    assert expected.min() > 10
    statistic = np.sum((np.asarray(observed) - expected) ** 2 / expected)
    return bool(statistic > chi2.isf(FALSE_ALARM, len(expected) - 1))
