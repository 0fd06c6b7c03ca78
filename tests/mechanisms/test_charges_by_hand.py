"""What mechanisms charge and draw, in numbers small enough to check by hand."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb

import recordwise as rw
from recordwise.errors import RecordError
from recordwise.exact import functions
from recordwise.exact.arithmetic import BallArithmetic, NumpyArithmetic
from recordwise.exact.numbers import working_precision
from recordwise.mechanisms import base, fat_tailed, transformed
from recordwise.mechanisms import base as ends
from recordwise.mechanisms import certified_loss as tight
from recordwise.mechanisms.certified_loss import Nodes, certified_loss
from recordwise.mechanisms.gaussian import near_gaussian
from recordwise.mechanisms.transformed import Reading
from recordwise.noise import GeneralizedGaussian, LatticeLaw, Polylog
from recordwise.policy import constant, discrete_laplace_zcdp

HALF = Fraction(1, 2)


def test_a_count_costs_its_rho_and_one_over_twice_the_variance() -> None:
    assert rw.Gaussian(rho=2).policy_of_count().loss({}) == 2
    assert rw.Gaussian(sigma=2).policy_of_count().loss({}) == 1 / 8
    assert rw.Gaussian(sigma=2).policy("emp").loss({"emp": 6}) == 36 / 8
    assert rw.Gaussian(sigma=3).shared("1/4").noise_sigma == 6


def test_a_split_sum_costs_rho_at_its_threshold_and_the_square_beyond() -> None:
    mechanism = rw.UnitSplit(at=10, rho=HALF)
    assert mechanism.noise_sigma == 10
    assert mechanism.policy("emp").loss({"emp": 30}) == 4.5
    assert mechanism.shared("1/4").rho == Fraction(1, 8)
    joint = rw.UnitSplit(at={"emp": 10, "pay": 100}, rho=HALF)
    assert joint.policy("emp", tight=False).loss({"emp": 1, "pay": 1000}) == 50
    assert joint.policy("emp").loss({"emp": 10}) == 0.5


def test_a_group_without_a_threshold_is_not_told_a_loss() -> None:
    policy = rw.UnitSplit(at=rw.by("industry", {"Mining": 10}), rho=HALF).policy("emp")
    assert policy.loss({"industry": "Mining", "emp": 10}) == 0.5
    with pytest.raises(RecordError):
        policy.loss({"industry": "Retail", "emp": 10})
    with pytest.raises(RecordError):
        policy.loss({"industry": ["Mining", None], "emp": [10, 10]})


@pytest.mark.theorem("T-CLAMP")
def test_a_clamped_sum_costs_a_record_what_is_left_of_it() -> None:
    mechanism = rw.Clamped(to=10, rho=HALF)
    assert [mechanism.policy("emp").loss({"emp": size}) for size in (0, 5, 10, 11, 10**6)] == [0, 0.125, 0.5, 0.5, 0.5]
    assert mechanism.policy("emp").loss({"emp": [0, 5, 10, 11, 10**6]}) == pytest.approx([0, 0.125, 0.5, 0.5, 0.5])
    assert mechanism.policy("emp", tight=False) == constant(HALF)
    assert mechanism.shared("1/4").policy("emp").loss({"emp": 99}) == 0.125
    signed = rw.policy.Measure("net", signed=True)
    assert mechanism.policy(signed).loss({"net": -5}) == 0.125
    assert [mechanism.realized_loss(7, size) for size in (0, 5, 11)] == [0, 0.125, 0.5]


@pytest.mark.theorem("T-CLAMP")
def test_a_budget_of_one_constant_covers_a_clamped_sum_and_nothing_less_does() -> None:
    spent = rw.Clamped(to=10, rho=HALF).policy("emp")
    assert constant(HALF).dominates(spent)
    assert rw.Clamped(to=20, rho=2).policy("emp").dominates(spent)
    short = constant("0.499").dominates(spent)
    assert short.answer == "no"
    assert spent.loss(short.witness or {}) > 0.499
    assert not rw.Clamped(to=9, rho="0.405").policy("emp").dominates(spent)
    assert not spent.dominates(rw.Gaussian(sigma=10).policy("emp"))


@pytest.mark.theorem("T-LAPLACE")
@pytest.mark.parametrize("scale", [1, 40, 50, 10**6])
def test_laplace_noise_is_charged_by_its_closed_form_at_every_scale(scale: int) -> None:
    """At 40 steps and more it was charged a third too much: the table had one entry, and eps*tanh(eps/2) held beyond it."""
    mechanism = rw.GeneralizedGaussian(shape=1, scale=scale)
    own = rw.mechanisms.Additive(functions.x / scale)
    per_step = int(1 / mechanism.lattice())
    for size in (1, 3, scale, 2 * scale, 1000 * scale):
        exact = discrete_laplace_zcdp(scale * per_step, size * per_step)
        for charged in (mechanism.policy("emp").loss({"emp": size}), mechanism.loss_at_shift(size)):
            assert exact <= charged * (1 + 1e-12) <= exact * (1 + 1e-9)
        assert own.policy("emp") == mechanism.policy("emp") or own.lattice() != mechanism.lattice()


@pytest.mark.parametrize(
    ("sigma", "lattice", "near"),
    [(1000, 1, True), (999, 1, False), (10, "0.01", True), ("9.99", "0.01", False), (5000, 10, False)],
)
def test_gaussian_dp_numbers_need_a_thousand_lattice_steps_whatever_the_unit(
    sigma: Any, lattice: Any, near: bool
) -> None:
    assert near_gaussian(Fraction(sigma), Fraction(lattice)) == near


def test_totals_are_brought_to_the_lattice_their_noise_is_drawn_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (fat_tailed, base):
        monkeypatch.setattr(module, "noised", lambda points, law, source: points)
    mechanism = rw.GeneralizedGaussian(scale=10, shape=HALF)
    assert mechanism.lattice() < Fraction(1, 50)
    assert mechanism.release([7, 12]).values().tolist() == [7, 12]


def divergences(law: LatticeLaw, shift: int, orders: Any) -> Any:
    """D_a/a of a lattice law against itself shifted, term by term."""
    f = np.asarray(law.exponent.increase(NumpyArithmetic(), np.abs(np.arange(-20_000, 20_001)).astype(np.float64)))
    log_p = -f - np.log(np.exp(-f).sum())
    here, there = log_p[shift:], log_p[:-shift]
    return np.array([np.logaddexp.reduce(a * here + (1 - a) * there) / (a - 1) / a for a in orders])


@pytest.mark.theorem("T-CERTIFIED")
@pytest.mark.parametrize("shift", [1, 4, 60])
@pytest.mark.parametrize("law", [GeneralizedGaussian(3, HALF), Polylog(5, 4, 3, 2)], ids=str)
@pytest.mark.costly
@pytest.mark.sampled
def test_the_certified_loss_is_never_below_any_order_and_at_most_two_percent_above(law: LatticeLaw, shift: int) -> None:
    found = certified_loss(Nodes.of(law, law.exponent), law.exponent, shift)
    truth = divergences(law, shift, 1 + np.geomspace(1e-3, 300, 400)).max()
    assert truth * (1 - 1e-9) <= found <= truth * 1.02


@pytest.mark.theorem("T-CERTIFIED")
@pytest.mark.parametrize("shift", [1, 100, 3000])
def test_the_certified_loss_of_laplace_noise_is_not_below_the_exact_one(shift: int) -> None:
    """All of the log-ratios on one side are the same, so that every bit of mass a block leaves out is missed."""
    law = GeneralizedGaussian(1000, 1)
    found = certified_loss(Nodes.of(law, law.exponent), law.exponent, shift)
    assert discrete_laplace_zcdp(1000, shift) <= found <= 1.02 * discrete_laplace_zcdp(1000, shift)


@pytest.mark.theorem("T-CERTIFIED")
@pytest.mark.parametrize("order", [1 + 1e-6, 1.1, 1.5, 2, 8])
@pytest.mark.parametrize("first, last", [(3.0, 2.0), (5.0, 2.0), (8.0, 0.5), (12.0, 6.0), (1.0, 0.0)])
def test_a_stretch_between_two_nodes_is_bounded_where_the_laws_are_their_chords(first, last, order) -> None:
    """The extreme case of (4): the mass is spread evenly and the log-ratio falls evenly, so that only phi itself can bend."""
    width, mass = 1000, 0.25
    part = np.arange(width) / width
    bends = tight.Bends(np.array([0.0, 1e9]), np.zeros(2), np.zeros(2))
    nodes = Nodes(np.array([0.0, width]), np.array([mass, 0.0]), np.array([mass * part.mean(), 0.0]), bends)
    ends = np.array([[first, last]])
    weight, loss = tight._side(nodes, 0, ends, np.ones((1, 2), np.bool_), np.zeros((1, 1)))

    def phi(x: Any) -> Any:
        return np.expm1((order - 1) * x) * -np.expm1(-order * x)

    exact = mass * phi(first + (last - first) * part).mean()
    assert exact <= (weight * phi(loss)).sum()


@pytest.mark.theorem("T-CERTIFIED")
@pytest.mark.parametrize("shift", [1, 1000])
def test_a_rise_that_drowns_in_rounding_is_still_bounded_from_above(shift: int) -> None:
    function = (functions.x / 10**9) ** HALF
    starts = np.unique(np.floor(np.geomspace(1, 2.0**50, 400)))
    found = tight._rise(function, starts, starts + shift)
    with working_precision(256):
        for start, bound in zip(starts.tolist(), found.tolist()):
            rise = [function.increase(BallArithmetic(), arb(int(start) + more)) for more in (0, shift)]
            assert arb(bound) >= (rise[1] - rise[0]).lower()


def test_the_grid_is_the_largest_power_of_two_fine_against_noise_and_data() -> None:
    x = functions.x
    assert transformed.grid_step(x, Fraction(1), Fraction(2**30)) == Fraction(1, 4096)
    assert transformed.grid_step(x, Fraction(3), Fraction(2**30)) == Fraction(2, 4096)
    assert transformed.grid_step(x, Fraction(5, 7), Fraction(2**30)) == Fraction(1, 8192)
    assert transformed.grid_step(x, Fraction(2**30), Fraction(3)) == Fraction(2, 2**20)
    assert transformed.grid_step(x, Fraction(2**30), Fraction(5, 7)) == Fraction(1, 2**21)


@pytest.mark.theorem("T-GRID")
def test_a_transform_is_charged_for_the_grid_it_is_laid_on() -> None:
    policy = rw.policy.gaussian_transform("emp", functions.x, sigma=1, grid="1/4")
    assert policy.loss({"emp": 3}) == pytest.approx(3.25**2 / 2, rel=1e-12)
    assert policy.loss({"emp": 0}) == 0
    laplace = rw.policy.laplace_transform("emp", functions.x, scale=2, grid="1/4")
    assert laplace.epsilon_pure({"emp": 3}) == pytest.approx(3.25 / 2, rel=1e-12)


def test_ends_are_rounded_away_from_each_other() -> None:
    numbers = np.geomspace(0.011, 9.7e9, 500)
    for last in (-2, 0, 3):
        exponents = np.full(len(ends.POWERS), last)
        low, high = (ends.rounded(numbers, exponents, up=up) for up in (False, True))
        assert np.all((low <= numbers) & (numbers <= high))
        assert np.all(high - low <= 10.0**last * (1 + 1e-3))


def test_noise_on_a_transform_has_its_sigma_or_scale_in_steps_of_the_grid() -> None:
    step = Fraction(1, 1024)
    assert rw.LogTransform(offset=10, sigma=HALF)._law(step).sigma == 512
    assert rw.LogTransform(offset=10, laplace_scale=HALF)._law(step).scale == 512


def test_the_interval_of_a_transform_allows_for_the_rounding_of_its_exact_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Half a grid step beyond the quantile of the noise."""
    reached: list[float] = []
    fields = Reading.fields
    monkeypatch.setattr(Reading, "fields", lambda self, v, reach: (reached.append(reach), fields(self, v, reach))[1])
    mechanism = rw.LogTransform(offset=10, sigma=HALF)
    step = mechanism.grid()
    mechanism.estimate(mechanism.release([5], rng=rw.noise.Seeded(1)), confidence=0.9)
    assert reached == [(mechanism._law(step).quantile(Fraction(95, 100)) + 0.5) * float(step)]
