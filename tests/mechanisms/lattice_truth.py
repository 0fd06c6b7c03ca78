"""Independent truth for the tests: the lattice Gaussian summed in mpmath, and chi-square with a stated false-alarm rate."""

from fractions import Fraction
from functools import cache
from itertools import accumulate

import mpmath
import numpy as np
from scipy.stats import chi2

FALSE_ALARM = 1e-9


def tail(sigma, start):
    """P(Z >= start), 36 digits."""
    beyond = from_each(sigma, int(60 * sigma) + 60 + -(-abs(start) // 1000) * 1000)
    with mpmath.workdps(40):
        total = beyond[0] + beyond[1]
        return Fraction(mpmath.nstr((beyond[start] if start >= 0 else total - beyond[1 - start]) / total, 36))


@cache
def from_each(sigma, reach):
    """The weights from each k >= 0 on, added up from the smallest."""
    with mpmath.workdps(40):
        spread = mpmath.mpf(sigma.numerator) / sigma.denominator
        weights = [mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * spread**2)) for k in range(reach, -1, -1)]
        return list(accumulate(weights))[::-1]


def chi_square_rejects(observed, probabilities):
    """Whether counts differ from a law at the false-alarm rate; the caller keeps expected counts above 10."""
    expected = np.sum(observed) * np.asarray(probabilities, float)
    assert expected.min() > 10
    statistic = np.sum((np.asarray(observed) - expected) ** 2 / expected)
    return bool(statistic > chi2.isf(FALSE_ALARM, len(expected) - 1))
