"""The parts that laws and stated noise are made of, by hand, by adding terms up, and at their limits."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb
from scipy.stats import binom

from recordwise.errors import ExtremeDrawError, ParameterError, RangeError
from recordwise.exact.arithmetic import NumpyArithmetic
from recordwise.exact.functions import Sum, log, x
from recordwise.exact.numbers import ball, bits_in_force, working_precision
from recordwise.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    GeneralizedGaussian,
    LatticeLaw,
    Polylog,
    Seeded,
    binomial_exact,
    sampler,
)
from recordwise.noise import probabilities as of
from recordwise.noise.laws import (
    AveragedLaw,
    ConcaveLaw,
    Passing,
    add_offset,
    frame,
    halvings,
    integer_list,
    scale_for_variance,
)
from recordwise.noise.randomness import LazyUniform, Secure, bit_source, dyadic, random_words
from recordwise.noise.sampler import Block, Side
from recordwise.noise.stated import (
    StatedCarried,
    StatedGaussian,
    StatedGroups,
    StatedNoise,
    StatedPolylog,
    StatedPower,
    StatedRefined,
    StatedSized,
    StatedSplit,
    fine_lattice,
    stated_noise,
)

F = Fraction
DEGREES = [
    (x, 1, True, math.inf),
    (x**2 / 8, 2, True, math.inf),
    ((x / 3) ** "1/2", F(1, 2), True, math.inf),
    (log(x + 1), 0, False, 1),
    (3 * log(x / 2 + 1) + 2 * log(x**2 + 5), 0, False, 7),
    (log(x + 3) ** 2, 0, False, math.inf),
    (log(x + 3) ** "1/2", 0, False, 0),
    (log(log(x + 3) + 1), 0, False, 0),
    (5 * log(x + 1) + (x / 9) ** "1/4", F(1, 4), False, math.inf),
    (Sum(((F(1), x**2), (F(2), x)), F(-1)), 2, False, math.inf),
    ((x + x**2) ** "3/2", 3, True, math.inf),
]


@pytest.mark.parametrize("function, degree, convex, limit", DEGREES, ids=lambda each: "")
def test_how_fast_exponents_grow(function: Any, degree: Any, convex: bool, limit: float) -> None:
    assert of.degree(function) == degree
    assert of.log_convex(function) == convex
    assert of.log_slope_limit(function) == limit


@pytest.mark.parametrize(
    "function, slope",
    [
        (x**2 / 8, lambda v: v**2 / 4),
        ((x / 3 + 2) ** "1/2", lambda v: v / 6 / (v / 3 + 2) ** 0.5),
        (4 * log(x / 5 + 2), lambda v: 4 * v / 5 / (v / 5 + 2)),
        (2 * log(x + 3) ** 2, lambda v: 4 * math.log(v + 3) * v / (v + 3)),
        (log(log(x + 3) + 1), lambda v: 0.0),
        (log(x + 3) ** "1/2", lambda v: 0.0),
    ],
    ids=["square", "root", "log", "squared log", "log of log", "root of log"],
)
def test_slopes_on_the_scale_of_logarithms(function: Any, slope: Any) -> None:
    for point in (1.0, 7.0, 300.0):
        assert float(of.log_slope_lower(function, arb(point)).mid()) == pytest.approx(slope(point), rel=1e-12)


def added(law: LatticeLaw, moment: int, reach: int = 4000) -> list[float]:
    """P(Z >= k) for every k up to the reach, and E |Z|**moment, term by term."""
    at = np.arange(reach + 1, dtype=float)
    weights = np.exp([-float(law.exponent.increase(NumpyArithmetic(), np.array([each]))[0]) for each in at])
    total = 2 * weights.sum() - weights[0]
    return [*(weights[::-1].cumsum()[::-1] / total).tolist(), 2 * float((at**moment * weights).sum()) / total]


@pytest.mark.parametrize(
    "law", [DiscreteGaussian("2.5"), DiscreteLaplace(7), GeneralizedGaussian("0.4", "0.8")], ids=str
)
def test_tails_moments_and_quantiles_are_those_of_the_sum_of_all_terms(law: LatticeLaw) -> None:
    *tails, second = added(law, 2, 900)
    first = added(law, 1, 900)[-1]
    assert law.variance == pytest.approx(second, rel=1e-10)
    assert law.mean_abs == pytest.approx(first, rel=1e-10)
    several = [1, 2, 3, 9, 14]
    found = of.log_tails(law.exponent, [3, 1, 14, 2, 9, 3])
    assert sorted(found) == several
    for start in several:
        assert float(found[start].exp().mid()) == pytest.approx(tails[start], rel=1e-9)
        assert float(of.tail(law.exponent, start).mid()) == pytest.approx(tails[start], rel=1e-9)
        assert float(of.tail(law.exponent, 1 - start).mid()) == pytest.approx(1 - tails[start], rel=1e-9)
        assert float(of.log_tail(law.exponent, start).mid()) == pytest.approx(math.log(tails[start]), rel=1e-9)
    for level in ("0.49", "0.31", "0.2", "0.01", "1e-4"):
        last = max(m for m, each in enumerate(tails) if each >= float(level))
        assert of.last_at_least(law.exponent, F(level)) == last
        assert law.quantile(F(level)) == -last
        assert law.quantile(1 - F(level)) == last
    assert law.quantile("1/2") == 0


@pytest.mark.parametrize("power, moment, finite", [(3, 1, True), (2, 1, False), (3, 2, False), (4, 2, True)])
def test_a_moment_is_finite_where_the_tail_is_light_enough_and_not_at_its_limit(
    power: Any, moment: int, finite: bool
) -> None:
    assert bool(of.absolute_moment(power * log(x + 1), moment).is_finite()) == finite


def test_a_sum_may_reach_where_steps_are_beyond_every_float() -> None:
    far = 1 << 1100
    with working_precision(128):
        weights = of.Weights(F("3.01") * log(x + 1), reference=1, moment=2)
        assert weights.spread(far) > 1 << 1090
        assert 8 <= of._box_width(weights, 1, far, 8) <= far


@pytest.mark.parametrize("rate", ["3.0001", "3.01"])
def test_a_variance_that_cannot_be_certified_is_refused_at_once(rate: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not after tens of thousands of doublings, nor at one precision after another."""
    precisions, points = [], []
    summed, beyond = of._sum, of.Weights.beyond_upper

    def counted_sum(*given: Any) -> arb:
        precisions.append(bits_in_force())
        return summed(*given)

    def counted_beyond(weights: of.Weights, k: int) -> arb:
        points.append(k)
        return beyond(weights, k)

    monkeypatch.setattr(of, "_sum", counted_sum)
    monkeypatch.setattr(of.Weights, "beyond_upper", counted_beyond)
    with pytest.raises(ParameterError, match="has weights whose sum is not certified finite"):
        Polylog.for_variance(4, rate=rate, offset=1, power=1)
    assert precisions == [128]
    assert len(points) < 40


def test_the_point_beyond_which_weights_are_negligible_is_the_first_at_a_power_of_two() -> None:
    with working_precision(128):
        for exponent in (x**2 / 8, x / 7, (x / 3) ** "1/4", 5 * log(x + 1), F("3.3") * log(x / 2 + 1)):
            weights = of.Weights(exponent, reference=1, moment=2)
            small = weights.at(1) * arb(2) ** -128
            first = next(at for at in range(2000) if weights.beyond_upper(1 + 2**at) <= small)
            assert of._negligible_from(weights, 1) == 1 + 2**first


def test_a_variance_needs_a_rate_above_three() -> None:
    with pytest.raises(ParameterError, match="infinite"):
        scale_for_variance(lambda scale: 3 * log(x / scale + 1), 4)
    found = scale_for_variance(lambda scale: x / scale, 2)
    assert len(str(found.numerator)) <= 12
    for scale, enough in ((found, True), (found - F(1, 10**11), False)):
        ratio = math.exp(-1 / float(scale))
        assert (2 * ratio / (1 - ratio) ** 2 >= 2 - 1e-13) == enough or not enough
        assert (float(of.absolute_moment(x / scale, 2).mid()) >= 2) == enough


def test_weights_beyond_a_point_have_no_bound_where_they_fall_too_slowly() -> None:
    with working_precision(100):
        assert not of.Weights(log(x + 1), reference=0).beyond_upper(10).is_finite()
        assert of.Weights(3 * log(x + 1), reference=0).beyond_upper(10).is_finite()
        assert not of.Weights(3 * log(x + 1), reference=0, moment=2).beyond_upper(10).is_finite()
        weights = of.Weights(x / 2, reference=4, moment=2)
        assert float(weights.at(6)) == pytest.approx(36 * math.exp(-1))
        assert not weights.beyond_upper(6).is_finite()
        assert float(weights.beyond_upper(8)) == pytest.approx(9 * 64 * math.exp(-2))


# Binomial counts.


@pytest.mark.parametrize("n, threshold", [(1, 1), (7, 2), (40, 3), (5000, 9)])
def test_counts_are_accepted_in_proportion_to_their_binomial_chance(n: int, threshold: int) -> None:
    law = DiscreteGaussian(3)
    passing = Passing(law=law, threshold=threshold, n=n)
    chance = float(law.sf(threshold))
    center, shift = frame(passing)
    mean = (n + 1) * chance
    assert mean - 1 <= center <= mean + 1e-5
    counts = binom(n, chance)
    for count in range(max(0, center - 3), min(n, center + 4) + 1):
        for block in (0, 1, 3):
            exact = counts.pmf(count) / (2 * counts.pmf(center) * 2.0**-block)
            assert float(passing.acceptance(count, center, block)) == pytest.approx(exact, rel=1e-6)
    assert float(passing.acceptance(-1, center, 0)) == float(passing.acceptance(n + 1, center, 0)) == 0
    for width, halves in ((1 << shift, True), (1 << shift >> 1, False)):
        if not width:
            continue
        above = counts.pmf(center + width) <= counts.pmf(center) / 2
        below = center == 0 or counts.pmf(center - 1 - width) <= counts.pmf(center - 1) / 2
        assert (above and below) == halves


def test_counts_of_draws_below_0_are_what_the_others_leave_and_bad_numbers_are_refused() -> None:
    law = DiscreteLaplace(2)
    assert binomial_exact(0, law, 3, Seeded(1)) == 0
    assert binomial_exact(0, law, -3, Seeded(1)) == 0
    assert binomial_exact(50, law, 400, Seeded(1)) == 0
    assert binomial_exact(50, law, -400, Seeded(1)) == 50
    assert binomial_exact(900, law, 0, Seeded(4)) == 900 - binomial_exact(900, law, 1, Seeded(4))
    assert binomial_exact(900, law, -2, Seeded(4)) == 900 - binomial_exact(900, law, 3, Seeded(4))
    for bad in (-1, True, 2.0):
        with pytest.raises(ParameterError):
            binomial_exact(bad, law, 1)  # type: ignore[arg-type]


class Scripted:
    """Hands out the given words, then fails."""

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def fill(self, words: Any) -> None:
        for place in range(words.size):
            words[place] = self.left.pop(0)


def test_zeros_before_the_first_one_are_counted_across_words() -> None:
    assert halvings(Scripted(1 << 63)) == 0
    assert halvings(Scripted(1)) == 63
    assert halvings(Scripted(0, 1 << 62)) == 65
    assert halvings(Scripted(0, 0, 3)) == 128 + 62


def test_a_lazy_uniform_starts_with_no_bits_and_takes_whole_words() -> None:
    uniform = LazyUniform(Scripted(3 << 62, 5))
    assert (uniform.low, uniform.high) == (0, 1)
    uniform.extend()
    with working_precision(200):
        assert (uniform.low, uniform.high) == (arb("0.75"), arb("0.75") + dyadic(1, 64))
        uniform.extend()
        assert uniform.low == arb("0.75") + dyadic(5, 128)
    assert LazyUniform(Scripted(), bits=1, count=1).below(lambda: arb("0.5")) is False
    assert LazyUniform(Scripted(), bits=0, count=1).below(lambda: arb("0.5")) is True
    assert [float(dyadic(3, 2)), float(dyadic(3, -2))] == [0.75, 12]


def test_sources_of_bits_are_given_or_secure() -> None:
    assert type(bit_source(None)) is Secure
    own = Seeded(1)
    assert bit_source(own) is own
    for bad in (7, "seed", np.random.default_rng(1)):
        with pytest.raises(ParameterError, match="rng"):
            bit_source(bad)  # type: ignore[arg-type]
    assert len(random_words(own, 5)) == 5
    assert len(set(random_words(Secure(), 100).tolist())) == 100
    assert random_words(Seeded(7), 3).tolist() == random_words(Seeded(7), 3).tolist()


# Draws.


def test_integers_are_integers_alone() -> None:
    assert integer_list(np.int8(3)) == [3]
    assert integer_list([[1, 2], [3, 4]]) == [1, 2, 3, 4]  # type: ignore[list-item]
    for bad in (True, 1.0, [1, True], [1, 2.5], "3"):
        with pytest.raises(ParameterError):
            integer_list(bad)  # type: ignore[arg-type]


def test_draws_above_a_threshold_start_at_it_and_every_side_of_0_is_served() -> None:
    law = DiscreteGaussian(2)
    for threshold in (-3, 0, 1, 2, 9):
        drawn = law.sample_above(threshold, 400, Seeded(3))
        assert (len(drawn), int(drawn.min())) == (400, threshold)
    assert len(law.sample_above(3, 0, Seeded(1))) == 0
    with pytest.raises(ParameterError, match="threshold"):
        law.sample_above(2**62 + 1, 1)
    with pytest.raises(ParameterError, match="threshold"):
        law.sample_above(-(2**62) - 1, 1)
    held = sampler.Draws(values=np.array([5, 0, 2**62]), extremes={})
    assert add_offset(held, 7).tolist() == [12, 7, 2**62 + 7]
    with pytest.raises(ExtremeDrawError):
        add_offset(sampler.Draws(values=np.array([5, 2**63 - 4]), extremes={}), 7)
    with pytest.raises(ExtremeDrawError):
        add_offset(sampler.Draws(values=np.array([5, 0]), extremes={1: 2**70}), 7)


def test_the_average_of_two_laws_has_the_sum_of_weighted_variances() -> None:
    first, second = DiscreteGaussian(3), DiscreteGaussian(8)
    made = AveragedLaw(((first, 0.75), (second, -0.5)))
    assert made.variance == pytest.approx(0.5625 * first.variance + 0.25 * second.variance)
    source = Seeded(11)
    expected = 0.75 * first.draw(9, source).values - 0.5 * second.draw(9, source).values
    assert made.draw(9, Seeded(11)).values.tolist() == expected.tolist()


@pytest.mark.parametrize(
    "make",
    [
        lambda: GeneralizedGaussian(3, "1.0001"),
        lambda: GeneralizedGaussian(3, 0),
        lambda: Polylog(1, 1, 3, "0.99"),
        lambda: Polylog(1, 1, "2.7182818284", 2),
        lambda: Polylog(1, 2, 1, 1),
        lambda: Polylog(1, 3, "0.99", 1),
        lambda: ConcaveLaw(x**2),
        lambda: GeneralizedGaussian.for_variance(3, shape="1.0001"),
        lambda: Polylog.for_variance(2, rate=1, offset=2, power=2),
        lambda: Side(exponent=x, inflection=0, first=1),
    ],
)
def test_what_is_no_law_is_refused(make: Any) -> None:
    with pytest.raises((ParameterError, ValueError)):
        make()


def test_laws_at_the_limits_of_their_parameters() -> None:
    assert GeneralizedGaussian(3, 1).shape == 1
    with pytest.raises(RangeError):
        Polylog(1, "2.01", 1, 1)
    assert Polylog(1, 1, "2.7182818285", 2).power == 2
    assert Side(exponent=x, inflection=0, first=3, signed=False).copies(3) == 1
    assert [Side(exponent=x, inflection=0).copies(start) for start in (0, 1, 2)] == [1, 2, 2]
    assert [DiscreteGaussian(sigma).inflection for sigma in ("0.7", 1, "9.9")] == [0, 1, 9]
    assert DiscreteLaplace(9).inflection == 0


# Tables of draws.


CUTS = {
    "narrow": (DiscreteGaussian("0.8"), 0),
    "gaussian": (DiscreteGaussian(5000), 0),
    "laplace": (DiscreteLaplace(10**9), 0),
    "fat": (GeneralizedGaussian(50, "1/2"), 0),
    "tail": (DiscreteGaussian(5000), 9000),
    "polylog": (Polylog(50, 5, 1, 1), 3),
}
KEPT_CUTS = {
    "narrow": (6, 0, 0, 6),
    "gaussian": (998, 4533, 9, 34181),
    "laplace": (999, 22888, 29, 24977080319),
    "fat": (993, 2196, 11, 40280),
    "tail": (995, 3905, 9, 35975),
    "polylog": (998, 1123, 11, 22420),
}
"""Blocks, the sum of their shifts, the largest of them, and where the tail starts."""


@pytest.mark.parametrize("name", CUTS)
def test_tables_are_cut_as_they_were(name: str) -> None:
    """Any cut draws the same law; another one draws other numbers from a seed, and takes longer."""
    law, first = CUTS[name]
    side = Side(exponent=law.exponent, inflection=law.inflection, first=first, signed=first == 0)
    made = sampler.table_for(side)
    shifts = [block.shift for block in made.blocks]
    assert (len(made.blocks), sum(shifts), max(shifts), made.tail_start) == KEPT_CUTS[name]


def test_blocks_have_their_ends_and_their_middle() -> None:
    assert [
        (b.last, b.middle) for b in (Block(start=5, shift=0), Block(start=5, shift=1), Block(start=8, shift=4))
    ] == [
        (5, 5),
        (6, 5),
        (23, 15),
    ]


@pytest.mark.parametrize("convex", [True, False])
def test_lines_enclose_what_they_are_drawn_for_and_touch_it(convex: bool) -> None:
    def curve(offset: int) -> arb:
        share = F(offset - 16, 16)
        height = (1 - share / 2) ** 2 if convex else 1 - share**2 / 4
        return ball(height * 3 * 2**30)

    block = Block(start=16, shift=4)
    with working_precision(120):
        found = sampler.lines_for(curve, block, convex=convex)
        exact = [float(curve(offset)) for offset in range(16, 32)]
    lower = [found.lower - found.lower_fall * place / 16 for place in range(16)]
    upper = [found.upper - found.upper_fall * place / 16 for place in range(16)]
    assert all(low <= value <= high for low, value, high in zip(lower, exact, upper))
    assert found.quick == math.floor(exact[-1])
    close = [min(value - low, high - value) for low, value, high in zip(lower, exact, upper)]
    for place in (0, 7, 8, 15):
        assert close[place] <= 4


def test_lines_of_a_single_point_are_level_and_of_a_steep_block_start_at_its_end() -> None:
    with working_precision(120):
        single = sampler.lines_for(lambda _: arb("1000.5"), Block(start=3, shift=0), convex=True)
        assert (single.quick, single.lower, single.lower_fall, single.upper, single.upper_fall) == (
            1000,
            1000,
            0,
            1001,
            0,
        )
        certain = sampler.lines_for(lambda _: arb(2**32), Block(start=3, shift=0), convex=True)
        assert (certain.quick, certain.upper) == (2**32 - 1, 2**32)
        steep = sampler.lines_for(lambda offset: arb(2**32 >> (offset > 5)), Block(start=4, shift=2), convex=True)
        assert (steep.quick, steep.lower, steep.lower_fall) == (2**31, 2**31, 0)
        less = sampler.lines_for(
            lambda offset: arb(2**32 - (offset > 5) * (2**30 - 1)), Block(start=4, shift=2), convex=True
        )
        assert less.lower_fall == 2**32 - 4


# Stated noise.


GAUSS = StatedGaussian(rho=F(1, 8), at=F(3))


def test_stated_gaussian_noise_by_hand() -> None:
    assert GAUSS.draws() == ((F(6), F(1), 1),)
    assert StatedGaussian().draws()[0][0] ** 2 >= F(1, 2)
    assert StatedGaussian(sigma=F(5)).draws() == ((F(5), F(1), 1),)
    assert GAUSS.at_share(F(1)) is GAUSS
    assert GAUSS.at_share(F(1, 4)) == StatedGaussian(rho=F(1, 32), at=F(3))
    assert StatedGaussian(sigma=F(5)).at_share(F(1, 4)) == StatedGaussian(sigma=F(10))
    assert GAUSS.at_size(F(7)) == StatedGaussian(rho=F(1, 8), at=F(21))
    assert StatedGaussian(sigma=F(5)).at_size(F(7)) == StatedGaussian(sigma=F(35))
    assert GAUSS.drawn_law("1/4") == (DiscreteGaussian(24), F(1, 4))
    assert (GAUSS.variance, GAUSS.precisions()) == (36, (F(1, 36),))
    assert [
        GAUSS.offers("noise_sigma"),
        GAUSS.offers("noise_scale"),
        StatedPower(shape=F(1), scale=F(2)).offers("noise_sigma"),
    ] == [
        True,
        False,
        False,
    ]
    assert GAUSS.inside() == (GAUSS,)
    assert StatedSplit().at_share(F(1, 2)) == StatedSplit() == StatedSplit().at_size(F(3))
    assert StatedSplit().drawn_law(1) is None
    traits = [(each.signed, each.group_numbers, each.variance_varies, each.is_sized, each.is_gaussian, each.draws_laplace)
              for each in (GAUSS, StatedSplit(), StatedNoise())]  # fmt: skip
    assert traits == [(False, None, False, False, True, False)] * 2 + [(False, None, False, False, False, False)]


def test_stated_averages_by_hand() -> None:
    made = StatedRefined(before=StatedGaussian(sigma=F(3)), more=StatedGaussian(sigma=F(6)))
    assert made.draws() == ((F(3), F(4, 5), 1), (F(6), F(1, 5), 1))
    assert made.precisions() == (F(1, 9), F(1, 36))
    assert made.variance == F(36, 5)
    assert made.at_share(F(1, 4)).draws() == ((F(6), F(4, 5), 1), (F(12), F(1, 5), 1))
    assert made.at_size(F(2)).draws() == ((F(6), F(4, 5), 1), (F(12), F(1, 5), 1))
    law, lattice = made.drawn_law("1/2") or (None, None)
    assert lattice == F(1, 2)
    assert law == AveragedLaw(((DiscreteGaussian(6), 0.8), (DiscreteGaussian(12), 0.2)))


def test_stated_noise_that_is_carried_by_hand() -> None:
    first = StatedCarried(more=StatedGaussian(sigma=F(5)), before=None, carry=F(3, 4))
    assert first.draws() == ((F(5), F(1), 4),)
    again = StatedCarried(more=StatedGaussian(sigma=F(4)), before=first, carry=F(3, 5))
    assert again.draws() == ((F(5), F(3, 5), 4), (F(4), F(1), 5))
    assert again.variance == 25
    assert again.keeps_variance
    assert not first.keeps_variance
    assert not StatedCarried(more=StatedGaussian(sigma=F(41, 10)), before=first, carry=F(3, 5)).keeps_variance
    assert StatedCarried(more=StatedGaussian(sigma=F(3)), before=first, carry=F(3, 5)).keeps_variance
    assert StatedCarried(more=StatedGaussian(sigma=F(4)), before=first, carry=F(0)).draws() == ((F(4), F(1), 1),)
    assert again.at_share(F(1, 4)).draws() == ((F(10), F(3, 5), 4), (F(8), F(1), 5))
    law, lattice = again.drawn_law(2) or (None, None)
    assert lattice == 2
    assert law == AveragedLaw(((DiscreteGaussian(10), 0.15), (DiscreteGaussian(10), 0.2)))


def test_stated_noise_with_heavy_tails_by_hand() -> None:
    power = StatedPower(shape=F(1, 2), scale=F(3))
    assert power.at_share(F(1, 4)).scale == 48
    assert power.at_size(F(5)).scale == 15
    assert (power.draws_laplace, StatedPower(shape=F(1), scale=F(3)).draws_laplace) == (False, True)
    assert power.drawn_law(1) == (GeneralizedGaussian(1536, "1/2"), F(1, 512))
    coarse = StatedPower(shape=F(1, 2), scale=F(3), lattice=F(1, 4))
    assert coarse.drawn_law(1) == (GeneralizedGaussian(12, "1/2"), F(1, 4))
    assert coarse.lattice_part(7.0) == 0.25 / 7
    assert power.lattice_part(7.0) == pytest.approx(2 / math.sqrt(GeneralizedGaussian(1000, "1/2").variance))
    poly = StatedPolylog(power=F(2), rate=F(3), offset=F(4), scale=F(5), lattice=F(1, 2))
    assert (poly.at_share(F(1, 3)).rate, poly.at_size(F(2)).scale) == (1, 10)
    assert poly.drawn_law(1) == (Polylog(10, 3, 4, 2), F(1, 2))
    for scale, parts in ((1000, 1), (999, 2), (500, 2), (499, 4), (3, 512), ("0.1", 16384)):
        assert fine_lattice(F(1), F(scale)) == F(1, parts)
    assert fine_lattice(F(1, 4), F(250)) == F(1, 4)


def test_stated_noise_by_size_by_hand() -> None:
    low = StatedGaussian(sigma=F(9))
    made = StatedSized(noise=StatedGaussian(sigma=F(1, 20)), low=low, low_below=F(200))
    assert made.inside() == (StatedGaussian(sigma=F(1, 20)), low)
    assert made.at_size(F(200)) == StatedGaussian(sigma=F(10))
    assert made.at_size(F(199)) == StatedGaussian(sigma=F(9 * 199))
    half = made.at_share(F(1, 4))
    assert half.inside() == (StatedGaussian(sigma=F(1, 10)), StatedGaussian(sigma=F(18)))
    alone = StatedSized(noise=StatedGaussian(sigma=F(1, 20)), low=None, low_below=F(200))
    assert alone.inside() == (StatedGaussian(sigma=F(1, 20)),)
    assert alone.at_size(F(100)) == StatedGaussian(sigma=F(5))
    assert alone.at_share(F(1, 4)).low is None


FORMS: list[tuple[dict[str, Any], Any]] = [
    ({"kind": "Gaussian", "sigma": "3"}, StatedGaussian(sigma=F(3))),
    ({"kind": "Gaussian", "rho": "1/8", "at": 3}, GAUSS),
    ({"kind": "UnitSplit", "rho": "1", "at": {"by": "a"}}, StatedSplit()),
    ({"kind": "Clamped", "to": "20", "rho": "1/8"}, StatedGaussian(rho=F(1, 8), at=F(20))),
    ({"kind": "Clamped", "to": {"by": "a"}, "rho": "1/8"}, None),
    ({"kind": "GeneralizedGaussian", "shape": "1/2", "scale": "3"}, StatedPower(shape=F(1, 2), scale=F(3))),
    (
        {"kind": "GeneralizedGaussian", "shape": "1/2", "scale": "3", "coarse_lattice": "1/4"},
        StatedPower(shape=F(1, 2), scale=F(3), lattice=F(1, 4)),
    ),
    ({"kind": "GeneralizedGaussian", "shape": [1], "scale": "3"}, None),
    (
        {"kind": "Polylog", "power": 2, "rate": 3, "offset": 4, "scale": 5},
        StatedPolylog(power=F(2), rate=F(3), offset=F(4), scale=F(5)),
    ),
    ({"kind": "Polylog", "power": [2], "rate": 3, "offset": 4, "scale": 5}, None),
    (
        {"kind": "Sized", "floor": 100, "mechanism": {"kind": "Gaussian", "sigma": "3"}},
        StatedSized(noise=StatedGaussian(sigma=F(3)), low=None, low_below=F(200)),
    ),
    (
        {"kind": "Sized", "floor": 100, "low_below": 300, "mechanism": {"kind": "Gaussian", "sigma": "3"},
         "low": {"kind": "Gaussian", "sigma": "4"}},
        StatedSized(noise=StatedGaussian(sigma=F(3)), low=StatedGaussian(sigma=F(4)), low_below=F(300)),
    ),
    ({"kind": "Sized", "floor": 100, "mechanism": {"kind": "Other"}}, None),
    ({"kind": "Sized", "floor": 100, "mechanism": {"kind": "Gaussian"}, "low": {"kind": "Other"}}, None),
    ({"kind": "Sized", "floor": [1], "mechanism": {"kind": "Gaussian"}}, None),
    (
        {"kind": "Refined", "before": {"kind": "Gaussian", "sigma": 1}, "more": {"kind": "Gaussian", "sigma": 2}},
        StatedRefined(before=StatedGaussian(sigma=F(1)), more=StatedGaussian(sigma=F(2))),
    ),
    ({"kind": "Refined", "before": {"kind": "Gaussian", "at": [1]}, "more": {"kind": "Gaussian", "sigma": 2}}, None),
    ({"kind": "Refined", "before": {"kind": "Gaussian", "sigma": 2}, "more": {"kind": "Gaussian", "at": [1]}}, None),
    (
        {"kind": "Carried", "more": {"kind": "Gaussian", "sigma": 1}, "before": None},
        StatedCarried(more=StatedGaussian(sigma=F(1)), before=None, carry=F(0)),
    ),
    (
        {"kind": "Carried", "more": {"kind": "Gaussian", "sigma": 1}, "before": {"kind": "Gaussian", "sigma": 2}, "carry": "3/5"},
        StatedCarried(more=StatedGaussian(sigma=F(1)), before=StatedGaussian(sigma=F(2)), carry=F(3, 5)),
    ),
    ({"kind": "Carried", "more": {"kind": "Gaussian", "sigma": 1}, "before": {"kind": "Other"}}, None),
    (
        {"kind": "ByGroup", "by": "naics", "length": 2, "values": [["11", {"kind": "Gaussian", "sigma": 1}]],
         "default": {"kind": "Gaussian", "sigma": 2}},
        StatedGroups(by="naics", length=2, groups=("11",), noises=(StatedGaussian(sigma=F(1)), StatedGaussian(sigma=F(2)))),
    ),
    (
        {"kind": "ByGroup", "by": "code", "values": [[{"number": "7/2"}, {"kind": "Gaussian", "sigma": 1}]]},
        StatedGroups(by="code", length=None, groups=(F(7, 2),), noises=(StatedGaussian(sigma=F(1)),)),
    ),
    ({"kind": "ByGroup", "by": "code", "values": [["7", {"kind": "Other"}]]}, None),
    ({"kind": "Other"}, None),
]  # fmt: skip


@pytest.mark.parametrize("form, expected", FORMS, ids=str)
def test_saved_noise_is_read_as_it_was_stated(form: dict[str, Any], expected: Any) -> None:
    found = stated_noise(form)
    assert found == expected
    if isinstance(found, StatedGroups):
        assert (found.group_numbers, found.inside()) == (found.groups, found.noises)


def test_what_states_no_noise_is_refused() -> None:
    for bad in ("Gaussian", None, [1]):
        with pytest.raises(ParameterError, match="table of its kind"):
            stated_noise(bad)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="sigma"):
        stated_noise({"kind": "Gaussian", "sigma": "0"})


def test_the_remainder_of_a_sum_is_that_of_its_formula() -> None:
    with working_precision(100):
        for radius in (12, 30):
            order, factor = of._order(radius)
            exact = 8 * math.factorial(order) / (2 * math.pi * radius) ** order
            assert order % 2 == 0
            assert float(factor) == pytest.approx(exact, rel=1e-9)
            before = 8 * math.factorial(order - 2) / (2 * math.pi * radius) ** (order - 2)
            assert order == 6 * radius or exact < 2.0**-116 <= before
        weights = of.Weights(x / 100, reference=40, moment=2)
        points = np.linspace(40, 400, 20001)
        # Within 10 of x the largest weight is at x + 10, before the peak at 200.
        near = np.where(points < 190, points + 10, np.where(points > 210, points - 10, 200.0))
        values = near**2 * np.exp((40 - near) / 100)
        exact = float(((values[1:] + values[:-1]) / 2 * np.diff(points)).sum())
        assert exact <= float(of._sup_integral(weights, 40, 400, 10)) <= 20 * exact
