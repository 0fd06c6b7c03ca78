"""The policy of every mechanism against the Renyi divergence of what the code draws, added up from its probabilities."""

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

import recordwise as rw
from build import few
from mechanisms.drawn_laws import coarse_grid, divergences, laid
from mechanisms.mechanism_catalogue import EVERY, FAT_TAILED, GAUSSIAN, GROUPED, JOINT, ROOTS, TRANSFORMS, Entry
from recordwise.errors import RecordError
from recordwise.exact.arithmetic import NumpyArithmetic
from recordwise.exact.functions import x
from recordwise.mechanisms.certified_loss import _between, _cumulants, _rise
from recordwise.noise import LatticeLaw

ORDERS = tuple(1 + np.geomspace(1e-4, 999, 20))
FEW_ORDERS = tuple(1 + np.geomspace(1e-4, 30, 7))
TOO_SMALL = 0.98
"""A planted error: the same check must catch a policy that is 2 % too small."""
NUMERICAL = 1e-9
"""What the reference itself may be off by, relatively and absolutely."""
SHIFTS = [1, 2, 3, 7, 20, 45]
WITHOUT = [0, 1, 2, 3, 5, 10, 100, 1000, 123456]
CONTRIBUTIONS = [1, 2, 3, 10, 50, 1000]


@lru_cache(maxsize=4096)
def true_loss(law: LatticeLaw, shift: int, orders: tuple[float, ...]) -> float:
    """The largest D_a/a of noise against itself shifted."""
    grid = np.array(orders)
    return float(np.max(divergences(law, shift, grid) / grid)) if shift else 0.0


def kept(
    entry: Entry, totals: list[int], contributions: list[int], orders: tuple[float, ...], share: float = 1
) -> bool:
    """Whether ``share`` of the policy is at least D_a/a, for all tables of these totals that differ by one of these records."""
    policy = entry.mechanism.policy(entry.measure)
    for contribution in contributions:
        promised = share * policy.loss({"emp": contribution * entry.step})
        for without in totals:
            noisy, law = laid(entry.mechanism, [without, without + contribution], entry.step)
            loss = true_loss(law, abs(int(noisy.points[1] - noisy.points[0])), orders)
            if loss > promised + NUMERICAL * (1 + promised):
                return False
    return True


@pytest.mark.parametrize("entry", GAUSSIAN, ids=str)
def test_gaussian_sums_lose_exactly_their_policy(entry: Entry) -> None:
    shifts = [shift for shift in SHIFTS if shift * entry.step <= (entry.mechanism.to or shift)]
    assert kept(entry, [0, 17], shifts, ORDERS)
    assert not kept(entry, [0, 17], shifts, ORDERS, share=TOO_SMALL)


@pytest.mark.parametrize("entry", FAT_TAILED, ids=str)
@pytest.mark.theorem("T-CERTIFIED")
@pytest.mark.costly
@pytest.mark.sampled
def test_fat_tailed_sums_lose_at_most_their_policy_and_nearly_all_of_it(entry: Entry) -> None:
    coarse = entry.mechanism.coarseness is not None
    shifts, orders = (SHIFTS, ORDERS) if coarse else ([1, 20], FEW_ORDERS)
    assert kept(entry, [0], shifts, orders)
    assert not kept(entry, [0], shifts, orders, share=TOO_SMALL)


def tight_shifts(entry: Entry) -> Iterator[tuple[int, float, float]]:
    """Shifts in data steps with the certified loss and the divergence's own supremum over orders."""
    for shift in (1, 3, 20):
        noisy, law = laid(entry.mechanism, [0, shift], entry.step)
        lattice_shift = int(noisy.points[1] - noisy.points[0])
        true = true_loss(law, lattice_shift, tuple(1 + np.geomspace(1e-4, 1e4, 66)))
        yield shift, entry.mechanism.loss_at_shift(shift * entry.step, step=entry.step), true


@pytest.mark.theorem("T-CERTIFIED")
@pytest.mark.parametrize("entry", [e for e in FAT_TAILED if e.mechanism.coarseness is not None], ids=str)
@pytest.mark.costly
def test_the_certified_loss_is_within_one_percent_at_every_shift(entry: Entry) -> None:
    for shift, certified, true in tight_shifts(entry):
        assert true <= certified * (1 + NUMERICAL), shift
        assert certified <= 1.01 * true, shift


@pytest.mark.theorem("T-CERTIFIED")
@pytest.mark.parametrize(("shift", "times_kl", "near"), [(1, 49.4, 526), (100, 1.916, 40), (500, 1.006, 6)])
@pytest.mark.costly
def test_the_loss_of_a_small_record_sits_at_a_high_order_not_at_order_one(
    shift: int, times_kl: float, near: int
) -> None:
    """Square-root noise of a thousand lattice steps a scale: an audit, or a policy, at order 1 would see a part of it only."""
    mechanism = rw.GeneralizedGaussian(shape="1/2", scale=1000, lattice=1)
    _, law = laid(mechanism, [0, shift], Fraction(1))
    points = np.arange(-900_000, (shift + 1) // 2)
    weights = law.pmf(0) * np.exp(-np.sqrt(np.abs(points) / 1000))
    assert weights[::100_000] == pytest.approx(law.pmf(points[::100_000]), rel=1e-9)
    ratios = np.sqrt(np.abs(points - shift) / 1000) - np.sqrt(np.abs(points) / 1000)
    orders = 1 + np.geomspace(1e-4, 4 * near, 60)
    # The sum over half the points that T-CERTIFIED (1) makes of a divergence; the terms are not negative.
    losses = [
        np.log1p(np.sum(weights * np.expm1((a - 1) * ratios) * -np.expm1(-a * ratios))) / (a - 1) / a for a in orders
    ]
    assert max(losses) / losses[0] == pytest.approx(times_kl, rel=3e-3)
    assert 0.75 * near < orders[np.argmax(losses)] < 1.33 * near
    assert max(losses) <= mechanism.loss_at_shift(shift) * (1 + NUMERICAL) <= 1.01 * max(losses)


@pytest.mark.parametrize("entry", TRANSFORMS, ids=str)
@pytest.mark.parametrize("noise, data, highest", [(3, 1, 999.0), (32, 2, 60.0)])
@pytest.mark.theorem("T-TRANSFORM")
@pytest.mark.costly
@pytest.mark.sampled
def test_transforms_keep_their_policy_on_any_grid_however_coarse(
    entry: Entry, noise: int, data: int, highest: float
) -> None:
    contributions = CONTRIBUTIONS if highest < 100 else CONTRIBUTIONS[:4]
    with coarse_grid(noise, data):
        assert kept(entry, WITHOUT, contributions, tuple(1 + np.geomspace(1e-4, highest, 12)))


@pytest.mark.parametrize("entry", TRANSFORMS, ids=str)
@pytest.mark.theorem("T-TRANSFORM")
@pytest.mark.costly
def test_transforms_lose_nearly_all_of_their_policy_where_a_record_is_alone(entry: Entry) -> None:
    orders = tuple(1 + np.geomspace(1e-4, 3, 6))
    with coarse_grid(1024, 256):
        assert kept(entry, [0, 1, 7], [1, 5], orders)
        assert not kept(entry, [0, 1, 7], [1, 5], orders, share=TOO_SMALL)


@pytest.mark.parametrize("close", few([6, 1], 1))
@pytest.mark.parametrize("entry", EVERY, ids=str)
@pytest.mark.costly
def test_the_realized_loss_never_exceeds_the_policy(entry: Entry, close: int) -> None:
    """At every sixth amount up to 60 and at powers beyond; the slow one at every amount."""
    contributions = np.unique(
        np.concatenate([np.arange(0, 60, close), [1], np.geomspace(60, 10**9, 24 // close + 1).astype(np.int64)])
    )
    policy = entry.mechanism.policy(entry.measure)
    for contribution in contributions.tolist():
        size = contribution * entry.step
        charged = policy.loss({"emp": size})
        for without in (0, 1, 12345, 10**12):
            assert entry.mechanism.realized_loss(without * entry.step, size, step=entry.step) <= charged


@pytest.mark.parametrize("entry", [e for e in EVERY if not isinstance(e.mechanism, rw.Clamped)], ids=str)
def test_the_loss_at_a_shift_never_exceeds_the_policy_of_such_a_record(entry: Entry) -> None:
    policy = entry.mechanism.policy(entry.measure)
    for steps in (0, 1, 2, 49, 51, 53, 127, 1001, 98765, 10**8 + 1):
        size = steps * entry.step
        assert entry.mechanism.loss_at_shift(size, step=entry.step) <= policy.loss({"emp": size})


@pytest.mark.parametrize("entry", EVERY, ids=str)
def test_policies_never_fall_as_the_record_grows(entry: Entry) -> None:
    sizes = np.unique(np.geomspace(1, 10**8, 400).astype(np.int64)) * float(entry.step)
    losses = entry.mechanism.policy(entry.measure).loss({"emp": sizes})
    assert np.all(np.diff(losses) >= 0)


@pytest.mark.parametrize("entry", FAT_TAILED, ids=str)
def test_the_tight_table_is_strictly_below_both_closed_forms_for_small_records(entry: Entry) -> None:
    """Laplace noise included: it is the additive mechanism whose eps*tanh(eps/2) is furthest from the truth at one scale."""
    sizes = [steps * entry.step for steps in (1, 2, 5, 20)]
    tight, pure = (entry.mechanism.policy(entry.measure, tight=flag) for flag in (True, False))
    closed = entry.mechanism.closed_policy(entry.measure)
    for size in sizes:
        assert tight.loss({"emp": size}) < closed.loss({"emp": size}) < pure.loss({"emp": size})


def test_joint_splitting_is_charged_by_pieces_and_tightly_by_the_measure_summed() -> None:
    record = {"emp": 120, "payann": 9000}
    assert JOINT.policy("emp", tight=False).loss(record) == pytest.approx(0.1 * 5**2, rel=1e-12)
    assert JOINT.policy("emp").loss(record) == pytest.approx(0.1 * (120 / 50) ** 2, rel=1e-12)


def test_group_thresholds_charge_each_group_by_its_own() -> None:
    policy = GROUPED.policy("emp")
    for industry, at in (("Mining", 500), ("Retail", 50), ("Farming", 100)):
        loss = policy.loss({"emp": 250, "industry": industry})
        assert loss == pytest.approx(0.1 * (250 / at) ** 2, rel=1e-12)


def test_a_group_without_a_threshold_has_no_promise() -> None:
    """Its records are in no public cell; for one that is there after all the policy has no number, least of all 0."""
    policy = rw.UnitSplit(at=rw.by("industry", {"Mining": 500}), rho=0.1).policy("emp")
    assert policy.loss({"emp": 250, "industry": "Mining"}) == pytest.approx(0.1 * 0.25, rel=1e-12)
    with pytest.raises(RecordError, match="not covered by this policy"):
        policy.loss({"emp": 250, "industry": "Retail"})
    assert not rw.policy.constant(100).dominates(policy)


def test_the_rise_of_an_exponent_is_bounded_from_above_where_rounding_could_lower_it() -> None:
    """f(high) - f(low) in float64 is below the true difference for about half of all points; the bound never is, and the tangent
    at ``low`` is no help for the long shifts here, where it is far too large."""
    exponent = (x / 3) ** Fraction(1, 2)
    low = np.arange(10**6, 10**6 + 400, dtype=np.float64)
    high = low + 10**9
    bound = _rise(exponent, low, high)
    plain = exponent.increase(NumpyArithmetic(), high) - exponent.increase(NumpyArithmetic(), low)
    with mpmath.workdps(40):
        true = [mpmath.sqrt(mpmath.mpf(h) / 3) - mpmath.sqrt(mpmath.mpf(k) / 3) for k, h in zip(low, high)]
    assert any(float_value < exact for float_value, exact in zip(plain, true))
    assert all(value >= exact for value, exact in zip(bound, true))
    assert np.all(bound <= plain * (1 + 1e-11))
    # An error of the size allowed to f, 2**-42 of both values, is covered in full.
    here, there = (exponent.increase(NumpyArithmetic(), k) for k in (low, high))
    assert np.all(bound >= there * (1 + 2.0**-42) - here * (1 - 2.0**-42) - 1e-15 * there)


@pytest.mark.costly
def test_cumulants_are_rounded_up_by_more_than_their_sums_can_lose() -> None:
    """The same sums at 40 digits, times the certificate's allowance: a bound without it would be below half of them."""
    generator = np.random.default_rng(5)
    mass, loss = generator.random(300) / 300, generator.random(300) * 2
    orders = 1 + np.append(np.geomspace(1e-4, 50, 40), 400.0)
    (found,) = _cumulants(mass[None], loss[None], orders)
    with mpmath.workdps(40):
        for order, value in zip(orders.tolist(), found.tolist()):
            a = mpmath.mpf(order)
            terms = [
                m * mpmath.expm1((a - 1) * k) * -mpmath.expm1(-a * k) for m, k in zip(mass.tolist(), loss.tolist())
            ]
            exact = mpmath.log1p(mpmath.fsum(terms))
            assert exact * (1 + mpmath.mpf("0.9e-10")) <= value <= exact * (1 + mpmath.mpf("1.1e-10"))


def test_the_loss_between_two_orders_is_bounded_by_their_chord() -> None:
    """K(a) = (a-1) D_a with a corner near 6 has its largest K/(a(a-1)) near 11, which no order of the list sees."""

    def cumulant(a: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.maximum(0.05 * (a - 1), 2 * (a - 6) + 0.25)

    orders = np.array([1.5, 3.0, 20.0])
    inside = np.linspace(1.0001, 20, 100_000)
    true = float((cumulant(inside) / (inside * (inside - 1))).max())
    at_orders = float((cumulant(orders) / (orders * (orders - 1))).max())
    bound = _between(orders, cumulant(orders))
    assert at_orders < 0.95 * true < true <= bound


@pytest.mark.parametrize("entry", [e for e in ROOTS if e.mechanism.sigma], ids=str)
def test_a_share_of_a_transform_costs_at_most_that_share(entry: Entry) -> None:
    for share in (Fraction(1, 3), Fraction(1, 10)):
        part = entry.mechanism.shared(share).policy(entry.measure)
        whole = entry.mechanism.policy(entry.measure)
        for size in (1, 2, 10, 10**6):
            assert part.loss({"emp": size}) <= float(share) * whole.loss({"emp": size})


@pytest.mark.theorem("T-P-RULE")
def test_changing_a_value_by_a_fifth_costs_the_same_at_every_size() -> None:
    mechanism = rw.LogTransform(offset=1, sigma="0.2")
    bound = np.log(1.2) ** 2 / (2 * 0.2**2)
    grid = float(mechanism.grid())
    for value in (5, 50, 5000, 5 * 10**8):
        for others in (0, 10, 10**6):
            noisy, law = laid(mechanism, [others + value, others + value * 6 // 5])
            shift = int(noisy.points[1] - noisy.points[0])
            cost = (shift * grid) ** 2 / (2 * 0.2**2)
            assert cost <= bound * (1 + 4 * grid)
            assert law == rw.noise.DiscreteGaussian(Fraction(1, 5) / mechanism.grid())
