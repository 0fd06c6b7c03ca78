"""Certified sums against independent closed forms and long-hand sums."""

from fractions import Fraction
from typing import Any

import mpmath as mp
import pytest
from flint import arb

from recordwise.errors import ParameterError
from recordwise.exact.functions import log, x
from recordwise.exact.numbers import working_precision
from recordwise.noise import probabilities as sums
from recordwise.noise.probabilities import DIRECT_TERMS, Weights, drop, range_sum, tail_sum


def holds(enclosure: arb, value: mp.mpf, digits: int) -> bool:
    """Whether the ball is that narrow and holds the value, itself known to 45 digits."""
    fuzzy = arb(mp.nstr(value, 48)) * (1 + arb(0, "1e-45"))
    return bool(enclosure.overlaps(fuzzy)) and enclosure.rel_accuracy_bits() >= digits * 3.3219


@pytest.mark.theorem("T-SUM")
@pytest.mark.parametrize("scale", ["0.01", "1", "50", "1000000", "1000000000000000"])
def test_geometric_sums_agree_with_their_closed_forms(scale):
    function = x / Fraction(scale)
    with mp.workdps(150):
        q = mp.exp(-1 / mp.mpf(scale))
        closed = [1 / (1 - q), 1 / (1 - q) ** 2, (1 + q) / (1 - q) ** 3]
    for moment, exact in enumerate(closed):
        assert holds(tail_sum(function, 1, moment=moment), exact, 23)


@pytest.mark.theorem("T-SUM")
@pytest.mark.parametrize("sigma", ["0.3", "1", "12", "30", "1000", "1000000000000"])
def test_gaussian_sums_agree_with_the_theta_function(sigma):
    s = mp.mpf(sigma)
    nome = mp.exp(-1 / (2 * s**2))
    theta = mp.jtheta(3, 0, nome) if s < 5 else s * mp.sqrt(2 * mp.pi) * mp.jtheta(3, 0, mp.exp(-2 * mp.pi**2 * s**2))
    assert holds(tail_sum(x**2 / (2 * Fraction(sigma) ** 2), 1), (theta - 1) / (2 * nome), 23)


@pytest.mark.theorem("T-SUM")
@pytest.mark.parametrize("start", [1, 40, 5000, 10**9, 10**17])
@pytest.mark.parametrize(
    "power, moment", [(Fraction(5), 0), (Fraction(5), 1), (Fraction(7, 2), 2), (Fraction(31, 10), 0)]
)
@pytest.mark.costly
@pytest.mark.sampled
def test_power_law_sums_agree_with_the_hurwitz_zeta_function(start, power, moment):
    with mp.workdps(120):
        size, d = 1000, mp.mpf(power.numerator) / power.denominator
        zeta = [mp.zeta(d - j, size + start) for j in range(moment + 1)]
        shifted = mp.fsum(mp.binomial(moment, j) * (-size) ** (moment - j) * zeta[j] for j in range(moment + 1))
        exact = (size + start) ** d * shifted
    assert holds(tail_sum(power * log(x / size + 1), start, moment=moment), exact, 23)


@pytest.mark.theorem("T-SUM")
@pytest.mark.parametrize(
    "function, reference",
    [
        ((x / 20) ** Fraction(1, 2), lambda k: mp.sqrt(k / mp.mpf(20))),
        ((x * 50) ** Fraction(1, 4), lambda k: mp.root(50 * k, 4)),
        (log(x / 9 + 6) ** Fraction(5, 2), lambda k: mp.log(k / mp.mpf(9) + 6) ** 2.5),
        (x**2 / 800, lambda k: k**2 / mp.mpf(800)),
        (x / 100 + (x + 1) ** Fraction(1, 2), lambda k: k / mp.mpf(100) + mp.sqrt(k + 1)),
    ],
)
@pytest.mark.parametrize("moment", [0, 2])
@pytest.mark.costly
@pytest.mark.sampled
def test_ranges_agree_with_sums_taken_term_by_term(function, reference, moment):
    for start, end in [(1, 2), (1, DIRECT_TERMS + 40), (3, 2500), (700, 3000)]:
        exact = mp.fsum(mp.mpf(k) ** moment * mp.exp(reference(start) - reference(k)) for k in range(start, end))
        assert holds(range_sum(function, start, end, moment=moment), exact, 23)


@pytest.mark.theorem("T-SUM")
@pytest.mark.parametrize("function", [(x / 20) ** Fraction(1, 2), log(x / 9 + 6) ** 2, x**2 / 10**7, x / 3000])
def test_more_bits_narrow_the_same_sum_and_a_tail_is_a_range_and_a_tail(function):
    rough, fine = tail_sum(function, 5), tail_sum(function, 5, bits=400)
    assert rough.overlaps(fine)
    assert fine.rel_accuracy_bits() >= 400
    joined = range_sum(function, 5, 1000) + drop(function, 5, 1000).exp() * tail_sum(function, 1000)
    assert joined.overlaps(fine)


@pytest.mark.costly
def test_a_sum_that_does_not_converge_is_refused():
    with pytest.raises(ParameterError, match="not certified finite"):
        tail_sum(log(x + 1), 1)


@pytest.mark.theorem("T-SUM")
@pytest.mark.parametrize("radius", [1, 2])
def test_the_formula_owns_up_to_its_remainder_however_coarse_it_is(radius: int):
    with working_precision(128):
        weights = Weights(x / 50, reference=100)
        exact = sum((weights.at(k) for k in range(100, 400)), arb(0))
        found = sums._euler_maclaurin(weights, 100, 400, radius)
        assert found.overlaps(exact)
        assert not found.mid().overlaps(exact)


@pytest.mark.theorem("T-SUM")
def test_what_lies_beyond_an_early_cut_is_owned_up_to(monkeypatch):
    monkeypatch.setattr(sums, "_negligible_from", lambda weights, start: start + 30)
    with working_precision(128):
        exact = 1 / (1 - (-arb(1) / 5).exp())
        assert sums._sum(Weights(x / 5, reference=7), 7, None).overlaps(exact)


def ends(ball: Any) -> tuple[Any, Any]:
    """A ball, exactly."""
    return ball.mid().man_exp(), ball.rad().man_exp()


@pytest.mark.parametrize("moment", [0, 2])
def test_weights_at_many_points_are_the_very_balls_of_each(law, moment):
    points = [1, 2, 3, 50, 51, 10**6]
    with working_precision(192):
        weights = Weights(law.exponent, reference=1, moment=moment)
        assert list(map(ends, weights.at_each(points))) == [ends(weights.at(k)) for k in points]
