"""Mechanisms made of two: each difference between both is refused by itself, next to a pair that is accepted."""

from fractions import Fraction
from typing import Any

import pytest

import recordwise as rw
from recordwise.errors import ParameterError
from recordwise.mechanisms.combined import Carried, Refined, carried_from, coarsen, refine
from recordwise.mechanisms.gaussian import Tiered

F = Fraction
FINE, MIDDLE, WIDE = (rw.Gaussian(sigma=sigma) for sigma in (2, 3, 5))


def grouped(noise: Any, **changed: Any) -> Any:
    how: dict[str, Any] = {"by": "naics", "groups": ("11", "22"), "default": True, "length": 2} | changed
    values = dict.fromkeys(how["groups"], noise)
    return rw.ByGroup(how["by"], values, default=noise if how["default"] else None, length=how["length"])


def sized(noise: Any, **changed: Any) -> Any:
    how: dict[str, Any] = {"floor": 100, "low": True, "low_below": 400} | changed
    return rw.Sized(noise, floor=how["floor"], low=noise if how["low"] else None, low_below=how["low_below"])


CHANGES: list[tuple[Any, dict[str, Any], str]] = [
    (grouped, {"by": "county"}, "other groups"),
    (grouped, {"groups": ("11", "23")}, "other groups"),
    (grouped, {"groups": ("22", "11")}, "other groups"),
    (grouped, {"groups": ("11",)}, "other groups"),
    (grouped, {"default": False}, "other groups"),
    (grouped, {"length": None}, "other groups"),
    (sized, {"floor": 200}, "another floor"),
    (sized, {"low_below": 800}, "another floor"),
    (sized, {"low": False, "low_below": None}, "another floor"),
]


@pytest.mark.parametrize("build, changed, told", CHANGES, ids=lambda value: getattr(value, "__name__", str(value)))
@pytest.mark.parametrize("made", [refine, coarsen])
def test_mechanisms_by_group_or_size_must_agree_in_everything_but_noise(
    build: Any, changed: dict[str, Any], told: str, made: Any
) -> None:
    before, after = (WIDE, FINE) if made is refine else (FINE, WIDE)
    kind = Refined if made is refine else Tiered
    for own in ({}, changed):
        whole = made(build(before, **own), build(after, **own))
        assert type(whole) is type(build(after))
        assert {type(each) for each in whole.inside()} == {kind}
        assert len(whole.inside()) == len(build(after, **own).inside())
    for first, second in (({}, changed), (changed, {})):
        with pytest.raises(ParameterError, match=told):
            made(build(before, **first), build(after, **second))


@pytest.mark.parametrize("build", [grouped, sized])
def test_parts_of_a_pair_keep_their_places(build: Any) -> None:
    """Groups, floors and the lowest bands are those of both; noise inside is that of each pair."""
    before, after = build(WIDE), build(FINE)
    whole: Any = refine(before, after)
    assert [each.before for each in whole.inside()] == list(before.inside())
    for each in whole.inside():
        assert 1 / F(4) >= each.precision >= 1 / F(4) * F(999, 1000)
    if build is grouped:
        assert (whole.by, whole.length, whole.groups) == ("naics", 2, ("11", "22"))
        assert whole.default is not None
    else:
        assert (whole.floor, whole.low_below) == (100, 400)


CLAMPED, SPLIT = rw.Clamped(to=20, rho="0.1"), rw.UnitSplit(at=20, rho="0.1")
LOUD = [
    (rw.Gaussian(sigma=9), rw.Gaussian(sigma=3)),
    (CLAMPED, rw.Clamped(to=20, rho="0.4")),
    (SPLIT, rw.UnitSplit(at=20, rho="0.4")),
]


@pytest.mark.parametrize("noisy, exact", LOUD, ids=str)
def test_the_rest_is_drawn_and_paid_for(noisy: Any, exact: Any) -> None:
    """A refined answer costs at most what one draw of its accuracy costs; equal noise leaves nothing to draw."""
    made: Any = refine(noisy, exact)
    record = {"emp": 13}
    whole, plain = (each.policy("emp").loss(record) for each in (made, exact))
    assert plain * 0.999 <= whole <= plain * (1 + 1e-12)
    again: Any = refine(
        made,
        rw.Gaussian(sigma=2)
        if isinstance(exact, rw.Gaussian)
        else type(exact)(**({"to": 20} if isinstance(exact, rw.Clamped) else {"at": 20}), rho="0.9"),
    )
    assert type(again.before) is Refined
    assert type(again.more) is type(exact)
    tier: Any = coarsen(exact, noisy)
    assert tier.noise_sigma >= noisy.noise_sigma
    assert tier.noise_sigma <= noisy.noise_sigma * F(1001, 1000)
    for pair in ((noisy, noisy), (exact, noisy)):
        with pytest.raises(ParameterError, match="less noise"):
            refine(*pair)
    for pair in ((noisy, noisy), (noisy, exact)):
        with pytest.raises(ParameterError, match="more noise"):
            coarsen(*pair)


@pytest.mark.parametrize(
    "before, after, told",
    [
        (CLAMPED, rw.Clamped(to=21, rho="0.4"), "another kind"),
        (SPLIT, rw.UnitSplit(at=21, rho="0.4"), "another kind"),
        (SPLIT, rw.Gaussian(sigma=1), "another kind"),
        (rw.Gaussian(sigma=9), rw.RootTransform(degree=2, offset=1, sigma=1), "another kind"),
        (rw.RootTransform(degree=2, offset=1, sigma=2), rw.RootTransform(degree=2, offset=2, sigma=1), "another kind"),
        (rw.RootTransform(degree=2, offset=1, sigma=2), rw.RootTransform(degree=3, offset=1, sigma=1), "another kind"),
        (
            rw.RootTransform(degree=2, offset=1, laplace_scale=2),
            rw.RootTransform(degree=2, offset=1, laplace_scale=1),
            "only Gaussian noise can be refined",
        ),
        (grouped(WIDE), FINE, "another kind"),
        (WIDE, grouped(FINE), "only Gaussian noise can be refined"),
    ],
    ids=str,
)
def test_what_is_refined_by_another_kind_of_noise_is_refused(before: Any, after: Any, told: str) -> None:
    with pytest.raises(ParameterError, match=told):
        refine(before, after)


@pytest.mark.parametrize(
    "before, after, told",
    [
        (CLAMPED, rw.Clamped(to=21, rho="0.01"), "another kind"),
        (SPLIT, rw.UnitSplit(at=21, rho="0.01"), "another kind"),
        (rw.Gaussian(sigma=1), rw.UnitSplit(at=20, rho="0.01"), "another kind"),
        (refine(WIDE, FINE), WIDE, "Refined in the finer release"),
        (Carried(more=FINE, leave=F(1, 2)), WIDE, "Carried in the finer release"),
        (FINE, Carried(more=WIDE, leave=F(1, 2)), "is Carried, and"),
        (coarsen(FINE, MIDDLE), WIDE, "Tiered in the finer release"),
        (rw.UnitSplit(at=rw.policy.by("naics", {"11": 5}, default=9), rho=1), SPLIT, "differ by group or measure"),
        (rw.UnitSplit(at={"emp": 5, "pay": 9}, rho=1), SPLIT, "differ by group or measure"),
        (
            rw.RootTransform(degree=2, offset=1, sigma=1),
            rw.RootTransform(degree=2, offset=1, sigma=2),
            "RootTransform in the finer release",
        ),
    ],
    ids=str,
)
def test_what_has_no_law_of_the_sum_has_no_tiers(before: Any, after: Any, told: str) -> None:
    with pytest.raises(ParameterError, match=told):
        coarsen(before, after)


HALF = F(1, 2)
START = carried_from(None, rw.Gaussian(sigma=10), carry=HALF, leave=HALF)


@pytest.mark.theorem("T-REVISE")
def test_a_revision_has_more_noise_than_what_it_corrects() -> None:
    for sigma, drawn in (("10.001", "0.1414"), ("20", "17.32")):
        made = carried_from(START, rw.Gaussian(sigma=sigma), carry=F(1), leave=HALF)
        assert float(made.more.noise_sigma or 0) == pytest.approx(float(drawn), rel=1e-3)
        assert made.noise_variance >= F(sigma) ** 2
    for sigma in ("10", "9.999"):
        with pytest.raises(ParameterError, match="more noise than the release that is revised"):
            carried_from(START, rw.Gaussian(sigma=sigma), carry=F(1), leave=HALF)


@pytest.mark.theorem("T-SERIES")
@pytest.mark.parametrize(
    "before, carry, told",
    [
        (rw.Gaussian(sigma=10), HALF, "nobody paid for leaving"),
        (Carried(more=rw.Gaussian(sigma=10)), HALF, "nobody paid for leaving"),
        (START, F(1, 3), "nobody paid for leaving"),
        (rw.UnitSplit(at=5, rho=1), HALF, "other than Gaussian noise"),
        (refine(CLAMPED, rw.Clamped(to=20, rho=1)), HALF, "other than Gaussian noise"),
        (Refined(before=rw.Gaussian(sigma=9), more=CLAMPED), HALF, "other than Gaussian noise"),
        (Refined(before=CLAMPED, more=rw.Gaussian(sigma=9)), HALF, "other than Gaussian noise"),
        (coarsen(FINE, WIDE), HALF, "other than Gaussian noise"),
    ],
    ids=str,
)
def test_noise_is_carried_only_where_leaving_was_paid_for(before: Any, carry: Fraction, told: str) -> None:
    assert carried_from(START, rw.Gaussian(sigma=10), carry=HALF, leave=HALF).before == START
    with pytest.raises(ParameterError, match=told):
        carried_from(before, rw.Gaussian(sigma=50), carry=carry, leave=HALF)


@pytest.mark.parametrize("after", [rw.UnitSplit(at=5, rho=1), CLAMPED, refine(WIDE, FINE)], ids=str)
def test_only_gaussian_noise_as_a_plan_states_it_begins_or_follows(after: Any) -> None:
    for before in (None, START):
        with pytest.raises(ParameterError, match=r"proof for Gaussian\(\.\.\.\) alone"):
            carried_from(before, after, carry=HALF, leave=HALF)


def test_corrections_share_what_their_period_paid() -> None:
    """However often it was corrected; what is carried on is checked against the first payment."""
    once = carried_from(START, rw.Gaussian(sigma=11), carry=F(1), leave=HALF)
    twice = carried_from(once, rw.Gaussian(sigma=12), carry=F(1), leave=HALF)
    for before in (once, twice):
        kept = before.noise_variance
        made = carried_from(before, rw.Gaussian(sigma=30), carry=HALF, leave=HALF)
        drawn = made.more.noise_sigma
        assert drawn is not None
        assert HALF**2 / drawn**2 <= START.going
        least = F(1_000_001, 1_000_000) * HALF**2 / START.going + HALF**2 * kept
        near = rw.Gaussian(sigma=F(round(float(least) ** 0.5 * 10**6) + 2, 10**6))
        assert carried_from(before, near, carry=HALF, leave=HALF).before == before
        under = rw.Gaussian(sigma=F(round(float(least) ** 0.5 * 10**6) - 2, 10**6))
        with pytest.raises(ParameterError, match="less noise than the release before it allows"):
            carried_from(before, under, carry=HALF, leave=HALF)
