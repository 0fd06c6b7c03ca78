"""The bound on what the sum of two draws tells (T-TIER), step by step, against sums by definition."""

import math
from fractions import Fraction
from functools import lru_cache

import mpmath as mp
import numpy as np
import pytest

from recordwise.noise import two_draws

PAIRS = [("1/10", "1/10"), ("1/50", "1/30"), ("1/5", "7/10"), ("2/5", "1/4"), ("1/2", "2")]


def log_sums(points, first, second):
    """ln of the sum over j of exp(-j^2/(2a) - (k-j)^2/(2b)), by definition."""
    points = np.asarray(points, np.float64)
    j = np.rint(points * float(first / (first + second)))[:, None] + np.arange(-60, 61)
    return np.logaddexp.reduce(-(j**2) / (2 * float(first)) - (points[:, None] - j) ** 2 / (2 * float(second)), axis=1)


def swing_of(first, second):
    """ln(theta(0)/theta(1/2)), by definition."""
    u = mp.mpf(float(first * second / (first + second)))

    def theta(c):
        return mp.fsum(mp.exp(-((j - c) ** 2) / (2 * u)) for j in range(-40, 41))

    return float(mp.log(theta(mp.mpf(0)) / theta(mp.mpf(1) / 2)))


@lru_cache
def exact_weight(point, first, second):
    middle = round(float(point * first / (first + second)))
    return mp.fsum(
        mp.exp(
            -mp.mpf(j * j) * first.denominator / (2 * first.numerator)
            - mp.mpf((point - j) ** 2) * second.denominator / (2 * second.numerator)
        )
        for j in range(middle - 14, middle + 15)
    )


def exact_cumulant(first, second, shift, order):
    """(a-1) D_a at a = 1 + order, from the terms that matter."""
    reach = 12 * math.ceil(math.sqrt(first + second)) + 2
    middle = round((order + 1) * shift)
    terms = (
        exact_weight(abs(k - shift), first, second) ** (1 + mp.mpf(order))
        / exact_weight(abs(k), first, second) ** mp.mpf(order)
        for k in range(middle - reach, middle + reach + 1)
    )
    whole = exact_weight(0, first, second) + 2 * mp.fsum(exact_weight(k, first, second) for k in range(1, reach + 1))
    return mp.log(mp.fsum(terms) / whole)


@pytest.mark.theorem("T-TIER")
@pytest.mark.parametrize("shift", [1, 2, 5])
@pytest.mark.parametrize("pair", [("200", "200"), ("150", "900"), ("1/10", "1/10"), ("1/3", "40")], ids=str)
def test_what_sums_leave_out_is_below_its_bound_and_not_far_below(pair, shift):
    """Terms outside the window, added up; the first and the last order reach its ends."""
    first, second = map(Fraction, pair)
    total, swing = float(first + second), swing_of(first, second)
    orders = np.array([two_draws.FIRST_ORDER, 0.5, 20.0, two_draws.LAST_ORDER])
    room = shift + math.ceil(math.sqrt(2 * total * (two_draws.DEEP + two_draws.LAST_ORDER * swing)))
    last = math.ceil((two_draws.LAST_ORDER + 1) * shift) + room
    far = np.arange(1, 40 * math.ceil(math.sqrt(total)))
    outside = np.concatenate([-room - far, last + far])
    here, there = log_sums(outside, first, second), log_sums(outside - shift, first, second)
    inside = np.arange(-40 * math.ceil(math.sqrt(total)), 40 * math.ceil(math.sqrt(total)) + 1)
    whole = np.logaddexp.reduce(log_sums(inside, first, second))
    terms = (1 + orders[:, None]) * there - orders[:, None] * here
    truth = np.logaddexp.reduce(terms, axis=1) - whole
    bound = two_draws._left_out(orders, shift, total, swing)
    assert np.all(truth <= bound)
    if swing < 1e-9:
        # Half a tail of 12 sigmas is exp(-3.4) of its bound; the window is up to two shifts and a step too wide.
        wider = 12.5 * (2 * shift + 1) / math.sqrt(total)
        assert bound[0] - truth[0] < 5 + wider
        assert bound[-1] - truth[-1] < 5 + wider


@pytest.mark.theorem("T-TIER")
@pytest.mark.parametrize("order", [1e-4, 0.3, 7.0, 300.0])
@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_sums_are_the_divergence_and_what_is_allowed_for_rounding(pair, order):
    """The excess over mpmath's sums is the allowance, within a tenth: 2^-49 of the largest exponents, and 1e-10 of the order."""
    first, second = map(Fraction, pair)
    swing, total = swing_of(first, second), float(first + second)
    for shift in (1, 3):
        with mp.workdps(40):
            truth = exact_cumulant(first, second, shift, order)
            found = two_draws._cumulants(first, second, shift, swing, np.array([order]))
            excess = float(mp.mpf(float(found[0])) - truth)
        reach = 301 * shift + shift + math.ceil(math.sqrt(2 * total * (72 + 300 * swing)))
        ends = np.array([-reach + 301 * shift, reach])
        there = np.abs(log_sums(ends - shift, first, second) - log_sums([0], first, second)).max()
        loss = np.abs(log_sums(ends - shift, first, second) - log_sums(ends, first, second)).max()
        allowed = 2.0**-49 * (there + order * loss) + 1e-10 * (1 + order)
        assert excess == pytest.approx(allowed, rel=0.1)


@pytest.mark.theorem("T-TIER")
@pytest.mark.parametrize("pair", [*PAIRS, ("1/3", "1/3"), ("1/4", "1/2")], ids=str)
def test_the_factor_is_the_largest_of_all_shifts_and_orders(pair):
    """Above what any order gives, and by less than two thousandths."""
    first, second = map(Fraction, pair)
    points = np.arange(-40, 460)
    logs = log_sums(points, first, second)
    whole = np.logaddexp.reduce(logs[np.abs(points) <= 40])
    truth = 0.0
    for shift in range(1, 8):
        there, here = logs[:-shift], logs[shift:]
        for order in np.geomspace(1e-3, 50, 60):
            sums = np.logaddexp.reduce(there + order * (there - here)) - whole
            truth = max(truth, sums / (order * (order + 1)) * 2 * float(first + second) / shift**2)
    factor = float(two_draws.loss_factor(first, second))
    assert truth * (1 - 1e-9) <= factor <= truth * 1.002


@pytest.mark.parametrize("u", ["1/300", "1/40", "159/1000", "4/25", "1/4", "1", "3"])
def test_the_swing_of_theta_is_that_of_its_definition(u):
    """Just above it, on both sides of where the series changes."""
    value = Fraction(u)
    with mp.workdps(40):
        exact = mp.mpf(value.numerator) / value.denominator
        sums = [
            mp.fsum(mp.exp(-((j - c) ** 2) / (2 * exact)) for j in range(-60, 61)) for c in (mp.mpf(0), mp.mpf("0.5"))
        ]
        truth = mp.log(sums[0] / sums[1])
        found = mp.mpf(two_draws._log_swing_upper(value))
        assert truth <= found <= truth * (1 + mp.mpf(2) ** -50)


def exact_swing(u):
    """ln(theta(0)/theta(1/2)) to the digits of mpmath."""
    theta = [mp.fsum(mp.exp(-((j - c) ** 2) / (2 * u)) for j in range(-20, 21)) for c in (mp.mpf(0), mp.mpf("0.5"))]
    return mp.log(theta[0] / theta[1])


def with_swing(wanted, near):
    """The u whose swing is the wanted one within 1e-100."""
    found = mp.findroot(lambda u: exact_swing(u) - wanted, (mp.mpf(near), mp.mpf(near) + mp.mpf("1e-12")))
    return Fraction(int(found * mp.mpf(10) ** 105), 10**105)


@pytest.mark.parametrize("near", ["0.1605", "0.1595"])
def test_twice_what_a_series_leaves_out_is_added_to_the_swing(near):
    """Seen where the swing is next to a float: below 1e-66 on either side of where the series change."""
    with mp.workdps(110):
        u = mp.mpf(near)
        edge = float(exact_swing(u))
        top = mp.fsum(mp.exp(-(j**2) / (2 * u)) for j in range(-20, 21))
        if Fraction(near) >= two_draws.SELF_DUAL:
            # By the Fourier series, in which theta has the mean 1; its seventh term is left out at either place.
            top /= mp.sqrt(2 * mp.pi * u)
            left_out = 2 * mp.exp(-2 * mp.pi**2 * u * 49) * (1 / top + mp.exp(exact_swing(u)) / top)
        else:
            left_out = 2 * mp.exp(-49 / (2 * u)) / top
        assert 1e-69 < left_out < 1e-66
        above, below = with_swing(edge + left_out / 1000, near), with_swing(edge - left_out * 19 / 20, near)
    # A series alone would say the edge, which the first swing exceeds; the second needs all that is added.
    assert two_draws._log_swing_upper(above) == math.nextafter(edge, 1)
    assert two_draws._log_swing_upper(below) == math.nextafter(edge, 1)


@pytest.mark.parametrize("pair", [*PAIRS, ("1/3", "40"), ("1/6", "4"), ("3", "10")], ids=str)
def test_weights_are_those_of_the_convolution(pair):
    first, second = map(Fraction, pair)
    points = np.arange(-40.0, 41.0)
    found, truth = two_draws.log_weights(points, first, second), log_sums(points, first, second)
    np.testing.assert_allclose(found - found[40], truth - truth[40], rtol=1e-13, atol=1e-12)


def test_a_chord_is_highest_between_its_ends_or_at_one_of_them():
    """Against thirty thousand places, between which a value changes by less than 1e-4 of it."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        orders = np.sort(rng.uniform(0.01, 5.0, 4))
        cumulants = np.sort(rng.uniform(-0.2, 3.0, 4))
        places = np.linspace(orders[0], orders[-1], 30_001)
        values = np.interp(places, orders, cumulants) / (places * (places + 1))
        assert two_draws._highest(orders, cumulants) == pytest.approx(values.max(), rel=1e-4)
        assert two_draws._highest(orders, cumulants) >= values.max() * (1 - 1e-12)


@pytest.mark.parametrize(
    ("pair", "same"),
    [(("1", "1999"), False), (("1", "1999.0001"), True), (("1/1200", "1/1200"), True), (("30", "30"), True)],
    ids=str,
)
def test_sums_are_not_taken_where_they_are_long_or_tell_nothing(pair, same):
    """Beyond a variance of 2000, for a swing of theta that cannot be seen, and for one that fills the window."""
    first, second = map(Fraction, pair)
    swing = two_draws._log_swing_upper(first * second / (first + second))
    assert math.isinf(two_draws._summed(first, second, 1, swing)) == same


@pytest.mark.theorem("T-TIER")
@pytest.mark.parametrize("pair", [("1/2", "40"), ("1/2", "35")], ids=str)
def test_more_than_six_steps_are_bounded_by_the_swing_alone(pair):
    """Where it is the largest: 1 + 2 v r/7^2, rounded up to a billionth."""
    first, second = map(Fraction, pair)
    found = 1 + 2 * float(first + second) * swing_of(first, second) / 49
    assert found < float(two_draws.loss_factor(first, second)) <= found + 3e-9


@pytest.mark.theorem("T-TIER")
@pytest.mark.parametrize("parts", [100, 200])
def test_beyond_the_last_order_a_part_of_the_swing_is_added(parts):
    """With equal variances and a shift of 2 the sum is a Gaussian's but for that: 1 + 2 v r/(301 s^2)."""
    variance = Fraction(1, parts)
    swing = swing_of(variance, variance)
    wanted = 1 + 4 / parts * swing / (301 * 4)
    assert two_draws._summed(variance, variance, 2, swing) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_wide_noise_stays_within_the_normal_quantile_and_half_a_step(confidence):
    quantile = float(mp.sqrt(2) * mp.erfinv(mp.mpf(confidence)))
    for variance in (10**6 + 2, 10**10):
        reach = two_draws.half_width(Fraction(variance, 2), Fraction(variance, 2), confidence)
        assert reach == math.ceil(quantile * math.sqrt(variance) + 0.5)
    near = two_draws.half_width(Fraction(10**6, 2) - 1, Fraction(10**6, 2) + 1, confidence)
    assert near == pytest.approx(quantile * 1000, abs=1)
