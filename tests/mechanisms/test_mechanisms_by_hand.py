"""Mechanisms scaled, shared, resized and refused, with pencil and paper."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import recordwise as rw
from recordwise.errors import ParameterError, PlanError
from recordwise.exact.functions import log, x
from recordwise.mechanisms import fat_tailed, gaussian, transformed
from recordwise.mechanisms.combined import Refined, refine
from recordwise.mechanisms.sized import as_grouped
from recordwise.mechanisms.transformed import Root, root_of
from recordwise.noise import Seeded
from recordwise.policy import Measure, constant, gaussian_sum, maximum

F = Fraction
G = rw.Gaussian
LAPLACE = rw.GeneralizedGaussian(shape=1, scale=F(1, 4))


def test_sized_noise_by_hand() -> None:
    plain = rw.Sized(G(sigma="0.05"), floor=100)
    assert plain.edges(99.0) == (100,)
    assert plain.edges(400.0) == (100, 200, 400)
    assert plain.edges(399.0) == (100, 200)
    assert len(plain.edges(1e300)) == 31
    assert plain.at_size(F(400)) == G(sigma=20)
    assert plain.inside() == (G(sigma="0.05"),)
    assert plain.policy("emp") == gaussian_sum("emp", sigma=5)
    assert plain.policy_of_count() == G(sigma=5).policy_of_count()
    assert plain.shared(F(1, 4)) == rw.Sized(G(sigma="0.1"), floor=100)
    assert (plain.low, plain.low_below, plain.signed, plain.loss_of_sum, plain.is_sized) == (
        None,
        None,
        False,
        True,
        True,
    )
    assert float(plain.variance(0.0)) == pytest.approx(float(G(sigma=5).variance(0.0)))
    assert plain.loss_at_shift(10) == pytest.approx(2)
    assert plain.realized_loss(3, 10) == pytest.approx(2)
    assert plain.recalibrated(sigma=40) == rw.Sized(G(sigma="0.4"), floor=100)
    assert plain.recalibrated(variance=900, at_total=500) == rw.Sized(G(sigma="3/40"), floor=100)
    low = rw.Sized(G(sigma="0.05"), floor=100, low=LAPLACE)
    assert low.at_size(F(199)) == LAPLACE.resized(F(199))
    assert low.at_size(F(200)) == G(sigma=10)
    assert low.inside() == (G(sigma="0.05"), LAPLACE)
    assert low._costliest() == [LAPLACE.resized(F(100)), G(sigma=10)]
    assert low.policy("emp") == maximum([LAPLACE.resized(F(100)).policy("emp"), gaussian_sum("emp", sigma=10)])
    further = rw.Sized(G(sigma="0.05"), floor=100, low=LAPLACE, low_below=300)
    assert further.at_size(F(299)) == LAPLACE.resized(F(299))
    assert further.at_size(F(300)) == G(sigma=15)
    assert further._costliest() == [LAPLACE.resized(F(100)), G(sigma=20)]
    assert further.shared(F(1, 2)).low_below == 300


@pytest.mark.parametrize(
    "make",
    [
        lambda: rw.Sized(G(sigma=1), floor=0),
        lambda: rw.Sized(G(sigma=1), floor=F(2) ** 201),
        lambda: rw.Sized(G(sigma=1), floor=100, low_below=300),
        lambda: rw.Sized(G(sigma=1), floor=100, low=LAPLACE, low_below=0),
        lambda: rw.Sized(rw.Clamped(to=5, rho=1), floor=100),
        lambda: rw.Sized(G(sigma=1), floor=100, low=rw.Clamped(to=5, rho=1)),
        lambda: rw.Sized(G(sigma=1), floor=100, low=rw.LogTransform(offset=1, sigma="0.2")),
        lambda: rw.Sized("x", floor=100),  # type: ignore[arg-type]
        lambda: rw.ByGroup("a", {}),
        lambda: rw.ByGroup("a", [("x", G(sigma=1)), ("x", G(sigma=2))]),
        lambda: rw.ByGroup("a", "xy"),  # type: ignore[arg-type]
        lambda: rw.ByGroup("a", {"x": G(sigma=1)}, length=0),
        lambda: rw.ByGroup("a", {"x": rw.Sized(G(sigma=1), floor=9)}),
        lambda: rw.ByGroup("a", {"x": rw.ByGroup("b", {"y": G(sigma=1)})}),
        lambda: rw.ByGroup("a", {"x": rw.UnitSplit(at=rw.by("c", {"u": 3}, 5), rho=1)}),
        lambda: rw.ByGroup("a", {"x": rw.Clamped(to=5, rho=1), "y": rw.Clamped(to=6, rho=1)}),
        lambda: rw.ByGroup("a", {"x": rw.Clamped(to=5, rho=1)}, default=G(sigma=1)),
        lambda: rw.ByGroup("a", {"x": G(sigma=1)}, default=rw.LogTransform(offset=1, sigma="0.2", signed=True)),
        lambda: rw.ByGroup("a", {"x": 3}),  # type: ignore[dict-item]
        lambda: gaussian.read_share(F(11, 10)),
        lambda: gaussian.read_share(0),
        lambda: G(),
        lambda: G(rho=1, sigma=1),
        lambda: G(sigma=1, at=3),
        lambda: G(rho=1).policy("emp"),
        lambda: rw.Clamped(to=0, rho=1),
        lambda: rw.Clamped(to="1/3", rho=1).policy("emp"),
        lambda: rw.UnitSplit(at={}, rho=1),
        lambda: rw.UnitSplit(at={"emp": 5, "pay": 6}, variance=3),
        lambda: rw.UnitSplit(at={"emp": 5}, rho=1).threshold("pay"),
        lambda: rw.UnitSplit(at={"emp": 5}, rho=1).noise_sigma,
        lambda: rw.UnitSplit(at={"emp": 5}, rho=1).with_sigma(F(3)),
        lambda: rw.UnitSplit(at={"emp": 5}, rho=1).resized(F(3)),
        lambda: rw.GeneralizedGaussian(shape="1.01", scale=1),
        lambda: rw.GeneralizedGaussian(shape="0.5", scale=1, lattice="0.3").lattice(1),
        lambda: rw.Polylog(power="0.9", rate=5, offset=3, scale=1),
        lambda: rw.Polylog(power=1, rate=5, offset="0.9", scale=1),
        lambda: rw.Polylog(power=1, rate=2, offset=1, scale=1),
        lambda: rw.Polylog(power=1, rate=3, offset=1, variance=2),
        lambda: rw.Polylog(power=1, rate=6, offset=1, scale=1).shared(F(1, 2)),
        lambda: rw.Polylog(power=2, rate=1, offset="2.7182", scale=1),
        lambda: rw.mechanisms.Additive(x**2),
        lambda: rw.mechanisms.Additive("x"),  # type: ignore[arg-type]
        lambda: rw.LogTransform(offset=0, sigma=1),
        lambda: rw.LogTransform(offset=1, sigma=1, laplace_scale=1),
        lambda: rw.LogTransform(offset=1, sigma=1, noise="laplace"),
        lambda: rw.LogTransform(offset=1, variance=3, at_total=9, noise="other"),  # type: ignore[arg-type]
        lambda: rw.LogTransform(offset=1, variance=3),
        lambda: rw.LogTransform(offset=1, sigma=1).policy(Measure("net", signed=True)),
        lambda: rw.LogTransform(offset=1, sigma=1, signed=True).policy("emp"),
        lambda: rw.LogTransform(offset=1, sigma=1).release([-1]),
        lambda: rw.LogTransform(offset=1, sigma=1, signed=True).release([1, 2, 3]),
        lambda: rw.LogTransform(offset=1, sigma=1).variance(-1.0),
        lambda: rw.LogTransform(offset=1, laplace_scale="0.4").shared(F(1, 2)),
        lambda: rw.Clamped(to=5, rho=1).resized(F(2)),
    ],
)
def test_what_makes_no_sense_is_refused(make: Any) -> None:
    with pytest.raises((ParameterError, PlanError)):
        make()


def test_neighbors_of_what_is_refused_are_accepted() -> None:
    assert gaussian.read_share(1) == 1
    assert rw.Polylog(power=1, rate="6.02", offset=1, scale=1).shared(F(1, 2)).rate == F(301, 100)
    assert rw.Polylog(power=2, rate=1, offset=math.e, scale=1).offset > F(math.e)
    assert rw.LogTransform(offset=1, laplace_scale="0.24").shared(F(1, 2)).laplace_scale == F(12, 25)
    assert rw.GeneralizedGaussian(shape=1, scale=1).shape == 1
    assert rw.ByGroup("a", {"x": rw.Clamped(to=5, rho=1), "y": rw.Clamped(to=5, rho=2)}).to == 5


def test_mechanisms_by_group_by_hand() -> None:
    made = rw.ByGroup("a", {"x": G(sigma=4), "y": G(sigma=8)}, default=G(sigma=2))
    assert made.inside() == (G(sigma=4), G(sigma=8), G(sigma=2))
    assert [made.policy("emp").loss({"emp": 8, "a": each}) for each in ("x", "y", "z")] == [2, 0.5, 8]
    assert [made.policy_of_count().loss({"a": each}) for each in ("x", "y", "z")] == pytest.approx(
        [1 / 32, 1 / 128, 1 / 8]
    )
    assert made.with_amount(F(1)).inside() == (G(sigma=1), G(sigma=2), G(sigma="0.5"))
    assert made.shared(F(1, 4)).inside() == (G(sigma=8), G(sigma=16), G(sigma=4))
    numbers = made.group_numbers
    assert (numbers.values, numbers.default) == ((("x", 1), ("y", 2)), 3)
    alone = rw.ByGroup("a", {"x": G(sigma=4)})
    assert alone.group_numbers.default is None
    assert alone.inside() == (G(sigma=4),)
    assert as_grouped(alone) is alone
    assert as_grouped(G(sigma=4)) is None
    assert (made.groups, made.signed, made.to, made.loss_of_sum) == (("x", "y"), False, None, True)


def test_gaussian_noise_by_hand() -> None:
    assert G(rho="0.02").noise_sigma == 5
    assert G(rho="0.5", at=7).noise_sigma == 7
    assert G(variance=9) == G(sigma=3)
    assert G(rho="0.5", at=7).shared(F(1, 4)) == G(rho="0.125", at=7)
    assert G(rho="0.5", at=7).resized(F(3)) == G(rho="0.5", at=21)
    assert G(rho="0.5").resized(F(3)) == G(rho="0.5", at=3)
    assert G(sigma=3).resized(F(3)) == G(sigma=9)
    assert G(sigma=3).with_sigma(F("3.14159265")) == G(sigma="3.14159")
    assert G(sigma=3).policy_of_count() == constant(F(1, 18))
    assert [gaussian.near_gaussian(F(each), F(1)) for each in (999, 1000)] == [False, True]
    assert G(sigma=1000).policy_of_count().near_gaussian
    assert not G(sigma=999).policy_of_count().near_gaussian
    assert G(sigma=10).policy(Measure("pay", F(1, 100))).near_gaussian
    assert G(sigma=6).noise_steps("1/2") == 12
    assert G(sigma=3).loss_at_shift(-6) == 2
    clamped = rw.Clamped(to=20, rho="0.5")
    assert clamped.noise_sigma == 20
    assert clamped.with_sigma(F(10)) == rw.Clamped(to=20, rho=2)
    assert clamped.shared(F(1, 2)).rho == F(1, 4)
    assert [clamped.policy("emp").loss({"emp": each}) for each in (10, 20, 30)] == [0.125, 0.5, 0.5]
    assert clamped.policy("emp", tight=False) == constant(F(1, 2))
    split = rw.UnitSplit(at=10, rho="0.5")
    assert split.noise_sigma == 10
    assert split.with_sigma(F(5)) == rw.UnitSplit(at=10, rho=2)
    assert split.resized(F(3)) == rw.UnitSplit(at=30, rho="0.5")
    assert [split.policy("emp", tight=tight).loss({"emp": 25}) for tight in (True, False)] == [3.125, 4.5]
    joint = rw.UnitSplit(at={"emp": 10, "pay": 100}, rho="0.5")
    assert joint.policy("emp", tight=False).loss({"emp": 25, "pay": 450}) == 12.5
    assert joint.policy("emp").loss({"emp": 25, "pay": 450}) == 3.125
    grouped = rw.UnitSplit(at=rw.by("a", {"x": 5}, 10), rho="0.5")
    assert [grouped.policy("emp").loss({"emp": 10, "a": each}) for each in ("x", "y")] == [2, 0.5]
    curve = G(sigma=3).noisy_curve(G(sigma=3).release([4, 5], step="1/2", rng=Seeded(1)))
    assert (curve.sigma.tolist(), curve.half.tolist(), curve.zero.tolist(), curve.bend.tolist()) == (
        [3, 3],
        [0.25, 0.25],
        [0, 0],
        [0, 0],
    )


def test_the_most_noise_that_meets_a_goal_just_meets_it() -> None:
    for step, reach in (("1", 12.0), ("1/2", 12.25), ("1", 3.9)):
        made = G(sigma=1).most_noise(100.0, reach, confidence=0.9, step=step)
        assert made is not None
        at = np.array([100.0])
        assert made.meets(at, np.array([reach]), confidence=0.9, step=step).all()
        more = G(sigma=made.noise_sigma * F(100_001, 100_000))
        assert not more.meets(at, np.array([reach]), confidence=0.9, step=step).all()
    log_ = rw.LogTransform(offset=5, sigma=1).most_noise(100.0, 20.0, confidence=0.9)
    assert log_ is not None
    chance = float(log_.chances(np.array([100.0]), np.array([20.0]))[0])
    assert 0.9 <= chance < 0.90001
    fat = rw.GeneralizedGaussian(shape=1, scale=1).most_noise(100.0, 20.0, confidence=0.9)
    assert fat is not None
    assert float(fat.error_quantiles(np.array([100.0]), confidence=0.9)[0]) == pytest.approx(20, rel=2e-3)
    assert float(fat.error_quantiles(np.array([100.0]), confidence=0.9)[0]) <= 20


def test_fat_tailed_noise_by_hand() -> None:
    half = rw.GeneralizedGaussian(shape="1/2", scale=3)
    assert half.shared(F(1, 2)).scale == 12
    assert half.resized(F(5)).width == 15
    assert half.with_scale_times(F(1, 7)).width == F(428571, 10**6)
    assert half.lattice() == F(1, 512)
    assert half.lattice("1/4") == F(1, 512)
    assert rw.GeneralizedGaussian(shape="1/2", scale=3000).lattice() == 1
    assert rw.GeneralizedGaussian(shape="1/2", scale=3, lattice="1/4").lattice("1/2") == F(1, 4)
    assert half.epsilon_at_shift(-12) == pytest.approx(2)
    assert [fat_tailed.laplace_scale(each) for each in (x / 7, x, x ** "1/2")] == [7, 1, None]
    assert (half.draws_laplace, LAPLACE.draws_laplace) == (False, True)
    laplace = rw.GeneralizedGaussian(shape=1, scale=3000)
    expected = 0.5 - (1 / 3000) / math.sinh(1 / 3000) * (1 - math.exp(-0.5))
    assert laplace.policy("emp").loss({"emp": 1500}) == pytest.approx(expected)
    assert laplace.loss_at_shift(-1500) == pytest.approx(expected)
    assert half.closed_policy("emp").loss({"emp": 12}) == pytest.approx(2 * math.tanh(1))
    assert half.policy("emp", tight=False).loss({"emp": 12}) == pytest.approx(2)
    polylog = rw.Polylog(power=2, rate=3, offset=4, scale=5)
    assert polylog.shared(F(1, 3)).rate == 1
    assert polylog.function == 3 * log(x / 5 + 4) ** 2
    own = rw.mechanisms.Additive((x / 40) ** "1/2")
    assert own.width == 64
    assert own.resized(F(4)).f == (x / 160) ** "1/2"
    assert own.with_scale_times(F(4)).f == (x / 160) ** "1/2"
    assert own.shared(F(1, 2)).f == (x / 40) ** "1/2" / 2
    assert rw.mechanisms.Additive((x / 40) ** "1/2", scale=2).f == (x / 80) ** "1/2"
    noisy = rw.GeneralizedGaussian(shape="1/2", scale=3, lattice="1/4").release([7, 9], step="1/2", rng=Seeded(2))
    assert (noisy.grid, noisy.step, noisy.private) == (F(1, 4), F(1, 2), False)
    spread = rw.GeneralizedGaussian(shape=1, scale=3000).variance(0.0)
    assert float(spread) == pytest.approx(2 * 3000**2, rel=1e-6)


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
def test_points_of_roots_are_the_nearest(degree: int) -> None:
    root = Root(F(2, 3), F(5, 7), degree)
    grid = F(1, 64)
    for total, point in zip(range(40), root.nearest(range(40), F(1, 2), grid)):
        value = (F(2, 3) * F(total, 2) + F(5, 7)) / grid**degree
        assert (point - F(1, 2)) ** degree <= value < (point + F(1, 2)) ** degree
    function = (2 * x / 3 + F(5, 7)) ** F(1, degree) if degree > 1 else 2 * x / 3 + F(5, 7)
    assert root_of(function) == root
    assert transformed.nearest_points(function, [3, 8], F(1, 2), grid) == root.nearest([3, 8], F(1, 2), grid)
    found = transformed.to_grid(function, np.array([[3, 8], [10**15, 0]]), F(1, 2), grid)
    assert found.tolist() == [root.nearest([3, 8], F(1, 2), grid), root.nearest([10**15, 0], F(1, 2), grid)]


def test_transforms_by_hand() -> None:
    assert root_of(log(x + 1)) is None
    assert root_of(x) == Root(F(1), F(0), 1)
    assert root_of((x + 1) ** "2/3") is None
    made = rw.LogTransform(offset=8, sigma="1/4")
    grid = made.grid()
    assert grid <= F(1, 4 * 2**20) < 2 * grid
    coarse = rw.LogTransform(offset=2**40, sigma="1/4").grid()
    assert coarse <= F(1, 2**40) / 4096 < 2 * coarse * (1 + F(1, 10**9))
    assert transformed.nearest_point(log(x + 8), F(0), F(1, 1000)) == round(1000 * math.log(8))
    assert made.noise_steps(1) == F(1, 4) / grid
    assert rw.LogTransform(offset=8, laplace_scale="1/4").noise_steps(1) is None
    expected = (math.log(1.5) + float(grid)) ** 2 * 8
    assert made.policy("emp").loss({"emp": 4}) == pytest.approx(expected)
    assert made.loss_at_shift(-4) == pytest.approx(expected)
    assert made.realized_loss(8, 4) == pytest.approx(8 * math.log(20 / 16) ** 2, rel=1e-5)
    shared = made.shared(F(1, 4))
    assert float(shared.sigma or 0) == pytest.approx(0.5 * (1 + 1 / 4096))
    assert made.with_noise_scale(F(1, 3)) == rw.LogTransform(offset=8, sigma="1/3")
    assert made.recalibrated(sigma=1) == rw.LogTransform(offset=8, sigma=1)
    assert float(made.variance(10.0)) == pytest.approx(18**2 * math.expm1(1 / 16))
    signed = rw.LogTransform(offset=8, sigma="1/4", signed=True)
    assert float(signed.variance(np.array([10.0, 2.0]))) == pytest.approx((18**2 + 10**2) * math.expm1(1 / 16))
    assert abs(float(made.bias(10.0))) < 1e-5
    noisy = made.release([10, 100], rng=Seeded(1))
    told = made.estimate(noisy, confidence=0.9)
    points = np.asarray(noisy.points, float) * float(noisy.grid)
    np.testing.assert_allclose(told.value, np.exp(points - 1 / 32) - 8)
    np.testing.assert_allclose(told.median_unbiased, np.exp(points) - 8)
    reach = 1.6448536269514722 / 4
    np.testing.assert_allclose(told.low, np.maximum(np.exp(points - reach) - 8, 0), atol=0.2)
    np.testing.assert_allclose(told.high, np.exp(points + reach) - 8, atol=0.2)
    assert np.all(told.low <= np.exp(points - reach) - 8 + 1e-5)
    assert np.all(told.high >= np.exp(points + reach) - 8 - 1e-5)
    curve = made.noisy_curve(noisy)
    assert curve is not None
    np.testing.assert_allclose(curve.back(points), np.exp(points) - 8)
    assert curve.zero[0] == pytest.approx(math.log(8))
    assert signed.noisy_curve(noisy) is None
    assert rw.LogTransform(offset=8, laplace_scale="1/4").noisy_curve(noisy) is None


def test_a_further_draw_has_what_is_missing_and_no_less_variance() -> None:
    made = refine(G(sigma=5), G(sigma=4))
    assert isinstance(made, Refined)
    assert made.more == G(sigma="6.66667")
    assert float(made.noise_sigma or 0) == pytest.approx(4, rel=1e-6)
    split = refine(rw.UnitSplit(at=10, rho="0.1"), rw.UnitSplit(at=10, rho="0.3"))
    assert isinstance(split, Refined)
    assert split.more == rw.UnitSplit(at=10, rho="0.2")
    clamped = refine(rw.Clamped(to=10, rho="0.1"), rw.Clamped(to=10, rho="0.4"))
    assert isinstance(clamped, Refined)
    assert clamped.more == rw.Clamped(to=10, rho="0.3")
    again = refine(made, G(sigma=3))
    assert isinstance(again, Refined)
    assert float(again.more.noise_sigma or 0) == pytest.approx(1 / math.sqrt(1 / 9 - 1 / 16), rel=1e-5)
    bent = refine(rw.LogTransform(offset=3, sigma="0.5"), rw.LogTransform(offset=3, sigma="0.4"))
    assert isinstance(bent, Refined)
    assert bent.more == rw.LogTransform(offset=3, sigma="0.666667")
    sized = refine(rw.Sized(G(sigma=5), floor=9), rw.Sized(G(sigma=4), floor=9))
    assert isinstance(sized, rw.Sized)
    assert (sized.mechanism, sized.floor, sized.low) == (made, 9, None)
    grouped = refine(
        rw.ByGroup("a", {"x": G(sigma=5)}, default=G(sigma=5)), rw.ByGroup("a", {"x": G(sigma=4)}, default=G(sigma=4))
    )
    assert grouped.inside() == (made, made)
    for before, after in (
        (G(sigma=5), G(sigma=5)),
        (G(sigma=5), G(sigma=6)),
        (rw.UnitSplit(at=10, rho="0.1"), rw.UnitSplit(at=10, rho="0.1")),
        (rw.UnitSplit(at=10, rho="0.1"), rw.UnitSplit(at=11, rho="0.3")),
        (rw.Clamped(to=10, rho="0.1"), rw.Clamped(to=11, rho="0.3")),
        (rw.LogTransform(offset=3, sigma="0.5"), rw.LogTransform(offset=4, sigma="0.4")),
        (rw.LogTransform(offset=3, laplace_scale="0.4"), rw.LogTransform(offset=3, laplace_scale="0.3")),
        (G(sigma=5), rw.UnitSplit(at=10, rho="0.3")),
        (LAPLACE, LAPLACE.resized(F(1, 2))),
        (rw.Sized(G(sigma=5), floor=9), rw.Sized(G(sigma=4), floor=8)),
        (rw.Sized(G(sigma=5), floor=9), rw.Sized(G(sigma=4), floor=9, low=G(sigma=4))),
        (rw.ByGroup("a", {"x": G(sigma=5)}), rw.ByGroup("a", {"y": G(sigma=4)})),
        (rw.ByGroup("a", {"x": G(sigma=5)}), rw.ByGroup("b", {"x": G(sigma=4)})),
        (rw.ByGroup("a", {"x": G(sigma=5)}), rw.ByGroup("a", {"x": G(sigma=4)}, default=G(sigma=4))),
    ):
        with pytest.raises(ParameterError):
            refine(before, after)


def test_what_was_not_given_is_as_if_it_were_the_usual() -> None:
    for made in (
        G(sigma=3),
        rw.Clamped(to=20, rho=1),
        rw.GeneralizedGaussian(shape=1, scale=9),
        rw.LogTransform(offset=8, sigma="0.2"),
    ):
        at, reach = np.array([50.0]), np.array([9.0])
        kept: Any = np.array([45.0]) if made.to is not None else None
        for found, usual in (
            (made.error_quantiles(at, kept=kept), made.error_quantiles(at, confidence=0.95, step=1, kept=kept)),
            (
                made.meets(at, reach, confidence=0.5, kept=kept),
                made.meets(at, reach, confidence=0.5, step=1, kept=kept),
            ),
            (made.variance(at), made.variance(at, step=1)),
            (made.bias(at), made.bias(at, step=1)),
            (made.loss_at_shift(4), made.loss_at_shift(4, step=1)),
            (made.realized_loss(4, 4), made.realized_loss(4, 4, step=1)),
            (made.policy("emp").loss({"emp": 7}), made.policy("emp", tight=True).loss({"emp": 7})),
            (made.release([5], rng=Seeded(3)).values(), made.release([5], step=1, rng=Seeded(3)).values()),
            (made.most_noise(50.0, 9.0, confidence=0.5), made.most_noise(50.0, 9.0, confidence=0.5, step=1, kept=None)),
        ):
            assert str(found) == str(usual)
        noisy = made.release([5], rng=Seeded(3))
        assert made.estimate(noisy).low.tolist() == made.estimate(noisy, confidence=0.95).low.tolist()
    assert Refined(before=G(sigma=1), more=G(sigma=1)).weight == F(1, 2)
