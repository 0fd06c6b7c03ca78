"""Bounds on x f'(x) read off the expression."""

import math
from fractions import Fraction

import mpmath as mp
import pytest
from flint import arb

from recordwise.exact.functions import log, x
from recordwise.noise.probabilities import Weights, log_slope_limit, log_slope_lower

CASES = [
    (x / 3, lambda t: t / 3, math.inf),
    (x**2 / 50, lambda t: t**2 / 50, math.inf),
    (9 * (x / 7) ** Fraction(1, 3), lambda t: 9 * mp.cbrt(t / 7), math.inf),
    ((x + 2) ** Fraction(1, 2) + log(x + 1), lambda t: mp.sqrt(t + 2) + mp.log(t + 1), math.inf),
    (2 * log(x / 5 + 3) ** 2, lambda t: 2 * mp.log(t / 5 + 3) ** 2, math.inf),
    (5 * log(x / 10 + 1), lambda t: 5 * mp.log(t / 10 + 1), Fraction(5)),
    (3 * log((x + 1) ** Fraction(1, 2) + 2), lambda t: 3 * mp.log(mp.sqrt(t + 1) + 2), Fraction(3, 2)),
    (4 * log(x + 1) + log(log(x + 2) + 1), lambda t: 4 * mp.log(t + 1) + mp.log(mp.log(t + 2) + 1), Fraction(4)),
    (4 * log(x + 1) + log(x + 2) ** Fraction(1, 2), lambda t: 4 * mp.log(t + 1) + mp.sqrt(mp.log(t + 2)), Fraction(4)),
]


@pytest.mark.theorem("T-GROWTH")
@pytest.mark.parametrize("function, reference, limit", CASES)
def test_the_slope_bound_holds_at_every_later_point_and_tends_to_the_limit(function, reference, limit):
    for start in (1, 10, 1000, 10**6):
        bound = log_slope_lower(function, arb(start))
        for factor in (1, 1.1, 2, 17, 10**3, 10**9):
            at = mp.mpf(start) * factor
            assert bound.lower() <= float(at * mp.diff(reference, at)) * (1 + 1e-12)
    assert log_slope_limit(function) == limit
    far = log_slope_lower(function, arb(10) ** 300)
    assert far > 100 if limit == math.inf else abs(float(far) - limit) < 1e-6


@pytest.mark.theorem("T-GROWTH")
@pytest.mark.parametrize("moment", [0, 2])
@pytest.mark.parametrize("function, reference, limit", CASES[:6])
@pytest.mark.costly
@pytest.mark.sampled
def test_the_bound_on_what_lies_beyond_a_point_holds_and_is_not_wild(function, reference, limit, moment):
    start = 300
    bound = Weights(function, reference=start, moment=moment).beyond_upper(start)
    exact = mp.nsum(lambda k: k**moment * mp.exp(reference(start) - reference(k)), [start, start + 20_000])
    assert float(bound) > exact
    assert float(bound) < 30 * exact


def test_an_expression_without_a_certificate_gets_no_slope():
    assert log_slope_lower(log(log(x + 2) + 1), arb(1000)) == 0
    assert log_slope_limit(log(x + log(x + 2) + 1)) == 0
    assert not Weights(log(x + 1), reference=1).beyond_upper(5).is_finite()
