"""Probabilities, moments and refusals of the laws."""

import math
from decimal import Decimal
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from flint import arb

from noise.reference import exponent, summed, weight
from recordwise.errors import ParameterError, RangeError
from recordwise.exact.functions import log, x
from recordwise.exact.numbers import working_precision
from recordwise.noise import ConcaveLaw, DiscreteGaussian, DiscreteLaplace, GeneralizedGaussian, LatticeLaw, Polylog
from recordwise.noise.probabilities import tail

TIGHT = 1e-13
SUMMABLE = [
    (DiscreteGaussian("0.3"), 40),
    (DiscreteGaussian(3), 100),
    (DiscreteGaussian(60), 1500),
    (DiscreteLaplace("0.5"), 100),
    (DiscreteLaplace(20), 2500),
    (GeneralizedGaussian("0.2", 0.5), 2500),
    (GeneralizedGaussian(1, 1), 150),
    (Polylog("0.5", 4, 3, 2), 6000),
]


@pytest.mark.theorem("T-SUM")
@pytest.mark.parametrize("law, reach", SUMMABLE, ids=[str(law) for law, _ in SUMMABLE])
@pytest.mark.costly
@pytest.mark.sampled
def test_moments_agree_with_sums_taken_term_by_term(law: LatticeLaw, reach: int):
    total = summed(law, 0, reach)
    assert law.variance == pytest.approx(float(summed(law, 2, reach) / total), rel=TIGHT)
    assert law.mean_abs == pytest.approx(float(summed(law, 1, reach) / total), rel=TIGHT)
    assert law.pmf(3) == pytest.approx(float(weight(law, 3) / total), rel=TIGHT)


@pytest.mark.theorem("T-SUM")
@pytest.mark.parametrize("law, reach", SUMMABLE, ids=[str(law) for law, _ in SUMMABLE])
@pytest.mark.costly
def test_tails_agree_with_sums_taken_term_by_term_on_both_sides_and_far_out(law: LatticeLaw, reach: int):
    total = summed(law, 0, reach)
    tails = {reach + 1: mp.mpf(0)}
    for m in range(reach, 0, -1):
        tails[m] = tails[m + 1] + weight(law, m)
    points = np.array([-reach // 3, -7, -1, 0, 1, 2, 9, reach // 5, reach // 3])
    exact = [tails[k] / total if k >= 1 else 1 - tails[1 - k] / total for k in points.tolist()]
    np.testing.assert_allclose(law.sf(points), [float(v) for v in exact], rtol=1e-12)
    np.testing.assert_allclose(law.cdf(-points), [float(v) for v in exact], rtol=1e-12)
    logs = [mp.log(tails[k] / total) if k >= 1 else mp.log1p(-tails[1 - k] / total) for k in points.tolist()]
    np.testing.assert_allclose(law.log_sf(points), [float(v) for v in logs], rtol=1e-12)
    np.testing.assert_allclose(law.log_cdf(-points), [float(v) for v in logs], rtol=1e-12)
    for k, value in zip(points.tolist(), exact):
        assert law.sf_lower(k) <= value <= law.sf_upper(k)
        assert law.sf_upper(k) <= math.nextafter(math.nextafter(law.sf_lower(k), 2), 2)


def test_log_probabilities_reach_depths_where_the_probability_is_no_float():
    law = DiscreteGaussian(50)
    assert law.sf(10**5) == 0.0 < law.sf_upper(10**5)
    assert law.sf_lower(10**5) == 0.0
    depth = float(-mp.mpf(10**10) / 5000 - mp.log(50 * mp.sqrt(2 * mp.pi)) - mp.log(1 - mp.exp(-mp.mpf(200001) / 5000)))
    assert law.log_sf(10**5) == pytest.approx(depth, rel=1e-12)
    assert law.log_pmf(10**5) == pytest.approx(
        float(-mp.mpf(10**10) / 5000 - mp.log(50 * mp.sqrt(2 * mp.pi))), rel=1e-14
    )


def test_probabilities_take_the_shape_of_their_argument():
    law = DiscreteLaplace(3)
    assert isinstance(law.pmf(2), float)
    assert law.cdf(np.arange(6).reshape(2, 3)).shape == (2, 3)
    assert law.pmf([1, 2]).tolist() == [law.pmf(1), law.pmf(2)]
    with pytest.raises(ParameterError, match="integer"):
        law.pmf(1.5)


@pytest.mark.parametrize("p", ["1e-12", "0.025", "0.2", "0.4999", "0.5", "0.500001", "0.9", "0.999999"])
@pytest.mark.costly
def test_a_quantile_is_the_first_point_that_reaches_its_level(law: LatticeLaw, p: str):
    k = law.quantile(p)
    with working_precision(200):
        assert tail(law.exponent, -k) >= arb(p)
        assert tail(law.exponent, 1 - k) < arb(p)


@pytest.mark.parametrize("p", [0, 1, -0.1, float("nan")])
def test_a_quantile_outside_the_open_unit_interval_is_refused(p):
    with pytest.raises(ParameterError):
        DiscreteGaussian(1).quantile(p)


def test_the_polylog_vectors_come_out_on_a_fine_lattice():
    """MATH.md section 4: F(2), F(3) and variances of the continuous law; the lattice law at step h misses them by O(h^2)."""
    fine = Polylog(10**6, 1, 4, 2)
    for point, value in [(2, 0.8387905082947511), (3, 0.9027118911646812)]:
        between = (fine.cdf(point * 10**6) + fine.cdf(point * 10**6 - 1)) / 2
        assert between == pytest.approx(value, rel=1e-12)
    assert fine.variance / 1e12 == pytest.approx(8.5157, abs=5e-5)
    e = "2.71828182845904523536028747135266249775724709369996"
    assert Polylog(10**6, 1, e, 2).variance / 1e12 == pytest.approx(6.8173, abs=5e-5)
    assert Polylog(10**6, 2, e, 2).variance / 1e12 == pytest.approx(1.15776, abs=5e-6)


def test_continuous_limits_of_the_other_fat_tails_come_out_on_a_fine_lattice():
    assert GeneralizedGaussian(10**6, 0.5).variance / 1e12 == pytest.approx(120, rel=1e-9)
    d, size = 6, 10**6
    assert Polylog(size, d, 1, 1).variance / size**2 == pytest.approx(2 / ((d - 2) * (d - 3)), rel=1e-9)
    assert Polylog(size, d, 1, 1).mean_abs / size == pytest.approx(1 / (d - 2), rel=1e-6)


@pytest.mark.costly
def test_a_tail_too_heavy_for_a_variance_has_none():
    assert Polylog("0.01", 3, 1, 1).variance == math.inf
    assert Polylog("0.01", 3, 1, 1).mean_abs < 1
    assert Polylog("0.01", "3.5", 1, 1).variance < 1


@pytest.mark.theorem("T-CALIBRATE")
@pytest.mark.parametrize("wanted", ["1e-4", "0.5", "2", "12345.678", "4e12"])
@pytest.mark.parametrize(
    "make",
    [
        DiscreteGaussian.for_variance,
        DiscreteLaplace.for_variance,
        lambda v: GeneralizedGaussian.for_variance(v, shape=0.5),
        lambda v: Polylog.for_variance(v, rate=1, offset=4, power=2),
    ],
    ids=["gaussian", "laplace", "generalized", "polylog"],
)
@pytest.mark.costly
@pytest.mark.sampled
def test_a_calibrated_law_has_the_wanted_lattice_variance_and_not_less(make, wanted):
    assert float(wanted) <= make(wanted).variance <= float(wanted) * (1 + 1e-9)


def test_calibration_reproduces_the_integer_scales_of_the_reference_table():
    """MATH.md section 5: variance 2 on the integers."""
    assert float(GeneralizedGaussian.for_variance(2, shape=0.5).scale) == pytest.approx(0.1773, abs=5e-5)
    e = "2.71828182845904523536028747135266249775724709369996"
    assert float(Polylog.for_variance(2, rate=1, offset=e, power=2).scale) == pytest.approx(0.5751, abs=5e-5)


def test_no_scale_is_found_where_no_scale_has_a_variance():
    with pytest.raises(ParameterError, match="infinite at every scale"):
        Polylog.for_variance(2, rate=3, offset=1, power=1)


BAD = [
    (lambda: Polylog(1, 1, 1.2, 2), "offset must be at least"),
    (lambda: Polylog(1, 1, "2.718281828459045", 2), "offset must be at least"),
    (lambda: Polylog(1, 3, 0.9, 1), "offset must be at least"),
    (lambda: Polylog(1, 1, 3, 0.5), "power must be at least 1"),
    (lambda: Polylog(1, 1, 1, 1), "lack a normalizer"),
    (lambda: Polylog(1, 2, 1, 1), "lack a mean"),
    (lambda: GeneralizedGaussian(1, 1.01), "shape must be at most 1"),
    (lambda: GeneralizedGaussian(1, 0), "shape must be above 0"),
    (lambda: DiscreteGaussian(0), "sigma must be above 0"),
    (lambda: DiscreteGaussian(-2), "sigma must be above 0"),
    (lambda: DiscreteGaussian(math.nan), "finite"),
    (lambda: DiscreteLaplace(math.inf), "finite"),
    (lambda: DiscreteLaplace("1e"), "finite"),
    (lambda: DiscreteLaplace(None), "number"),
    (lambda: ConcaveLaw(x**2), "concave"),
    (lambda: ConcaveLaw(log(x**2 + 3) ** 2), "concave"),
    (lambda: ConcaveLaw(log(x + 1)), "normalizer"),
    (lambda: ConcaveLaw(5 * log(log(x + 3) + 1)), "normalizer"),
]


@pytest.mark.parametrize("build, reason", BAD)
def test_bad_parameters_are_refused_with_the_reason(build, reason):
    with pytest.raises(ParameterError, match=reason):
        build()


@pytest.mark.theorem("T-RANGE")
@pytest.mark.parametrize(
    "build",
    [
        lambda: DiscreteGaussian(10**18),
        lambda: DiscreteLaplace(7 * 10**16),
        lambda: GeneralizedGaussian(1, 0.05),
        lambda: Polylog(1, 2.5, 1, 1),
        lambda: Polylog(10**15, 1, 4, 2),
        lambda: ConcaveLaw(2.2 * log(x + 1)),
    ],
)
def test_a_law_that_reaches_two_to_the_62_too_often_is_refused(build):
    with pytest.raises(RangeError, match=r"2\^62"):
        build()


@pytest.mark.theorem("T-RANGE")
def test_the_range_rule_cuts_where_the_probability_crosses_one_in_ten_to_the_thirty():
    def reach(scale: int) -> mp.mpf:
        ratio = mp.exp(-mp.mpf(1) / scale)
        return 2 * ratio ** (2**62) / (1 + ratio)

    scales = [66758 * 10**12 + step * 10**12 for step in range(-300, 301)]
    allowed = [scale for scale in scales if reach(scale) <= mp.mpf(10) ** -30]
    assert DiscreteLaplace(allowed[-1]).scale == allowed[-1]
    with pytest.raises(RangeError):
        DiscreteLaplace(allowed[-1] + 10**12)


def test_scales_from_a_hundredth_to_ten_to_the_fifteen_are_accepted():
    for scale in ("0.01", 1, 10**15):
        for law in (DiscreteGaussian(scale), DiscreteLaplace(scale)):
            assert law.sample(10).shape == (10,)
    assert GeneralizedGaussian(10**15, 0.9).sample(10).shape == (10,)
    assert Polylog("0.01", 3, 1, 1).sample(10).shape == (10,)


@pytest.mark.parametrize("value", ["0.1", 0.1, Decimal("0.1"), Fraction(1, 10)])
def test_a_parameter_is_read_exactly_however_it_is_written(value):
    assert DiscreteGaussian(value) == DiscreteGaussian(Fraction(1, 10))
    assert hash(DiscreteGaussian(value)) == hash(DiscreteGaussian(Fraction(1, 10)))


def test_the_exponent_of_each_law_is_the_function_that_is_drawn(law: LatticeLaw):
    f = exponent(law)
    for k in (1, 7, 1000):
        assert law.log_pmf(k) - law.log_pmf(0) == pytest.approx(float(f(0) - f(k)), rel=1e-9, abs=1e-13)


def test_a_law_prints_its_parameters():
    assert str(Polylog(2, "1.5", 4, 2)) == "Polylog(scale=2, rate=3/2, offset=4, power=2)"
