"""The loss of another value in the same cells, and the band made of it."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import recordwise as rw
from recordwise.errors import GroupLossError
from recordwise.plan.statistics.base import COUNT, OTHER, SUM
from recordwise.policy import power_zcdp, replacement_loss
from recordwise.release.page.value_change import BAND_LOSS, band, change_upper, has_band
from recordwise.release.tables import PagePart
from report_releases import by_industry, keys, opened, private_keys, random_records

ADDITIVE: dict[str, Any] = {
    "Gaussian": rw.Gaussian(sigma=30),
    "UnitSplit": rw.UnitSplit(at=50, rho="0.1"),
    "GeneralizedGaussian": rw.GeneralizedGaussian(shape="0.5", variance=1000),
    "Polylog": rw.Polylog(power=2, rate=1, offset=3, variance=400),
}
TRANSFORMS: dict[str, Any] = {
    "log": (rw.LogTransform(offset=1000, sigma="0.2"), lambda t: math.log(t + 1000), 0.2),
    "root": (rw.RootTransform(degree=4, offset=1, sigma="0.3"), lambda t: (t + 1) ** 0.25, 0.3),
}
PAIRS = [(0, 1), (5, 6), (50, 80), (4800, 5200), (100_000, 100), (1, 1_000_000)]


def part(mechanism: Any, kind: str = SUM) -> PagePart:
    return PagePart(
        table="t",
        statistic="s",
        kind=kind,
        noise="",
        policy=mechanism.policy("emp"),
        measure="emp",
        mechanisms=(mechanism,),
    )


@pytest.mark.theorem("T-VALUE")
@pytest.mark.parametrize("name", ADDITIVE)
def test_a_sum_with_additive_noise_sees_the_difference_of_the_two_values_only(name: str) -> None:
    mechanism = ADDITIVE[name]
    for x, y in PAIRS[:4]:
        found = change_upper([part(mechanism)], {"emp": x}, {"emp": y})
        assert mechanism.loss_at_shift(abs(x - y)) <= found
        assert found == pytest.approx(mechanism.policy("emp").loss({"emp": abs(x - y)}), rel=1e-12)


@pytest.mark.theorem("T-VALUE")
@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_transform_never_loses_more_whatever_else_is_in_the_cell_and_about_as_much_if_nothing_is(name: str) -> None:
    mechanism, function, sigma = TRANSFORMS[name]
    for x, y in PAIRS:
        found = change_upper([part(mechanism)], {"emp": x}, {"emp": y})
        for rest in (0, 1, 10, 1000, 10**6):
            apart = function(rest + x) - function(rest + y)
            assert apart**2 / (2 * sigma**2) <= found
        alone = (function(x) - function(y)) ** 2 / (2 * sigma**2)
        assert found <= alone * 1.01 + 1e-6


@pytest.mark.theorem("T-VALUE")
def test_laplace_noise_on_a_transform_never_loses_more_than_the_pure_loss_of_the_change() -> None:
    mechanism = rw.LogTransform(offset=1000, laplace_scale="0.2")
    for x, y in PAIRS:
        pure = abs(math.log1p(x / 1000) - math.log1p(y / 1000)) / 0.2
        found = change_upper([part(mechanism)], {"emp": x}, {"emp": y})
        assert pure - 1 + math.exp(-pure) <= found <= pure + 1e-3


def test_counts_do_not_see_a_change_of_value_and_other_statistics_cost_four_times_the_larger_loss() -> None:
    gaussian = rw.UnitSplit(at=50, rho="0.1")
    assert change_upper([part(gaussian, COUNT)], {"emp": 1}, {"emp": 10**6}) == 0
    found = change_upper([part(gaussian, OTHER)], {"emp": 10}, {"emp": 20})
    larger = gaussian.policy("emp").loss({"emp": 20})
    assert found == pytest.approx(4 * larger, rel=1e-12)
    assert found >= replacement_loss(gaussian.policy("emp"), {"emp": 10}, {"emp": 20})


@pytest.mark.theorem("T-VALUE")
@pytest.mark.costly
def test_the_change_grows_with_the_interval_at_either_end() -> None:
    parts = by_industry().parts
    rng = np.random.default_rng(7)
    for record in random_records(rng, 20):
        low, *_, high = sorted(rng.integers(0, 10**6, 4).tolist())
        inner = sorted(rng.integers(low, high + 1, 2).tolist())
        wide, narrow = (
            change_upper(parts, record | {"emp": a}, record | {"emp": b}) for a, b in ((low, high), tuple(inner))
        )
        assert narrow <= wide


def test_the_two_ends_of_a_band_cannot_be_told_apart_and_one_step_wider_at_either_end_they_may() -> None:
    parts = by_industry().parts
    for record in random_records(np.random.default_rng(8), 4):
        for name, step in (("emp", Fraction(1)), ("pay", Fraction(1, 100)), ("head", Fraction(1))):
            low, high = band(parts, record, name, step, 2**53)
            assert low <= Fraction(str(record[name])) <= high
            assert change_upper(parts, record | {name: low}, record | {name: high}) <= BAND_LOSS
            assert change_upper(parts, record | {name: low}, record | {name: high + step}) > BAND_LOSS
            if low > 0:
                assert change_upper(parts, record | {name: low - step}, record | {name: high}) > BAND_LOSS


def test_a_band_widens_on_one_side_where_the_other_is_closed() -> None:
    split = PagePart(table="t", statistic="s", kind=OTHER, noise="", policy=rw.policy.split("0.1", {"emp": 50}))
    assert band([split], {"emp": 50}, "emp", Fraction(1), 2**53) == (0, 50)


def test_a_giant_has_a_band_though_its_presence_is_no_secret() -> None:
    parts = [part(rw.UnitSplit(at=200, rho="0.1"))]
    assert parts[0].policy.loss({"emp": 5000}) > 50
    low, high = band(parts, {"emp": 5000}, "emp", Fraction(1), 2**53)
    assert (low, high) == (4702, 5297)  # sqrt(2 * 0.8869) sigmas of 447.2 are 595.6


def test_at_the_loss_of_the_band_the_best_test_is_right_at_most_every_second_time() -> None:
    assert power_zcdp(BAND_LOSS) <= 0.5 < power_zcdp(BAND_LOSS + 1e-4)


def test_no_band_is_claimed_where_keys_have_a_delta_or_another_size_may_mean_another_cell() -> None:
    with opened() as session:
        sorted_by_size = rw.query().where("emp > 10").group_by("county", keys=keys()).count(rw.Gaussian(rho="0.1"))
        moving = session.run(sorted_by_size.sum("emp", rw.UnitSplit(at=50, rho="0.1"))).parts
    for parts in (private_keys().parts, moving, ()):
        assert not has_band(parts)
        with pytest.raises(GroupLossError):
            change_upper(parts, {"emp": 1}, {"emp": 2})


def test_the_parts_of_a_release_add_up_to_its_policy() -> None:
    for release in (by_industry(), private_keys()):
        total = rw.Policy()
        for each in release.parts:
            total += each.policy
        assert total == release.policy
