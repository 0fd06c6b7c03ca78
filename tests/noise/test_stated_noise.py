"""Noise as a release states it is the noise of its mechanism: the same laws at every share, size and step."""

from fractions import Fraction
from typing import Any

import pytest

import recordwise as rw
from recordwise.errors import ParameterError, RangeError
from recordwise.exact.functions import x
from recordwise.mechanisms.base import parameter_json
from recordwise.mechanisms.combined import Carried, Refined
from recordwise.mechanisms.gaussian import Tiered
from recordwise.mechanisms.registry import mechanism_from_json
from recordwise.noise.stated import READERS, stated_noise

LAPLACE = rw.GeneralizedGaussian(shape=1, scale="0.1")
REFINED = Refined(before=rw.Gaussian(sigma=3), more=rw.Gaussian(sigma="1.7"))
CARRIED = Carried(more=rw.Gaussian(sigma=3), before=rw.Gaussian(sigma=5), carry="4/5", leave="4/5")
TIER = Tiered(before=rw.Gaussian(sigma=3), more=rw.Gaussian(sigma="1.7"))
KINDS = [
    rw.Gaussian(sigma="0.3"),
    rw.Gaussian(rho="0.1"),
    rw.Gaussian(rho="0.1", at=50),
    rw.UnitSplit(at=50, rho="0.07"),
    rw.Clamped(to=70, rho="0.03"),
    LAPLACE,
    rw.GeneralizedGaussian(shape="0.5", scale=3),
    rw.GeneralizedGaussian(shape="0.7", scale=3, lattice="0.25"),
    rw.Sized(rw.Gaussian(sigma="0.05"), floor=100),
    rw.Sized(rw.UnitSplit(at="0.5", rho="0.1"), floor=100),
    rw.Sized(LAPLACE, floor="6.25"),
    rw.Sized(rw.Gaussian(sigma="0.05"), floor=100, low=LAPLACE),
    rw.Sized(rw.Gaussian(sigma="0.05"), floor=100, low=LAPLACE, low_below=300),
    rw.Polylog(power=2, rate=2, offset=10, scale=5),
    rw.Polylog(power="3/2", rate=9, offset=2, scale=5, lattice="0.25"),
    rw.Sized(rw.Polylog(power=2, rate=2, offset=10, scale="0.1"), floor=100),
    rw.UnitSplit(at={"emp": 50, "pay": 70}, rho="0.1"),
    rw.UnitSplit(at=rw.by("naics", {"11": 20}, 50), rho="0.1"),
    rw.ByGroup("naics", {"11": rw.Gaussian(sigma=3), "12": LAPLACE}, default=rw.UnitSplit(at=9, rho=1), length=2),
    rw.ByGroup("code", {7: rw.Gaussian(sigma=3)}),
    REFINED,
    Refined(before=REFINED, more=rw.Gaussian(sigma="0.3")),
    Refined(before=rw.UnitSplit(at=50, rho="0.1"), more=rw.UnitSplit(at=50, rho="0.3")),
    Refined(before=rw.Clamped(to=50, rho="0.1"), more=rw.Clamped(to=50, rho="0.3")),
    rw.Sized(REFINED, floor=100),
    CARRIED,
    Carried(more=rw.Gaussian(sigma=4), before=CARRIED, carry="4/5"),
    Carried(more=rw.Gaussian(sigma=4), before=REFINED, carry=1),
    Carried(more=rw.Gaussian(sigma=4), leave="1/2"),
    TIER,
    Tiered(before=rw.UnitSplit(at=50, rho="0.3"), more=rw.Gaussian(sigma="0.7")),
    rw.Sized(TIER, floor=100),
]
SHARES = [Fraction(1), Fraction(1, 3), Fraction(8, 1105)]
SIZES = [Fraction(100), Fraction(200), Fraction(400)]


def drawn(noise: Any, step: Fraction) -> Any:
    try:
        return noise.drawn_law(step)
    except (ParameterError, RangeError):
        return None


def laws(noise: Any) -> list[Any]:
    """What fits ask of a mechanism or of what a release states."""
    if noise.group_numbers is not None:
        return [noise.by, noise.length, noise.groups, *(laws(each) for each in noise.inside())]
    served = [noise.at_share(share) for share in SHARES]
    if noise.is_sized:
        served = [each.at_size(size) for each in served for size in SIZES]
    return [
        (drawn(each, step), each.offers("noise_sigma"), each.draws_laplace)
        for each in served
        for step in (Fraction(1), Fraction(1, 4))
    ]


@pytest.mark.parametrize("mechanism", KINDS, ids=repr)
@pytest.mark.costly
def test_the_laws_are_those_of_the_mechanism(mechanism: Any) -> None:
    form = parameter_json(mechanism)
    stated, read = stated_noise(form), mechanism_from_json(form)
    assert stated is not None
    assert read is not None
    assert laws(stated) == laws(read) == laws(mechanism)
    for name in ("signed", "variance_varies", "is_sized"):
        assert getattr(stated, name) == getattr(read, name)
    assert (stated.group_numbers is None) == (read.group_numbers is None)
    assert len(stated.inside()) == len(read.inside())
    assert getattr(stated, "keeps_variance", False) == getattr(read, "keeps_variance", False)
    # A part of a standard deviation of 7, of noise with heavy tails alone.
    parts = [
        [own.lattice_part(7.0) for own in each.inside() if hasattr(own, "lattice_part")] for each in (stated, read)
    ]
    assert parts[0] == parts[1]


def test_every_kind_that_is_read_is_compared() -> None:
    assert {type(each).__name__ for each in KINDS} == set(READERS)


@pytest.mark.parametrize(
    "mechanism",
    [
        rw.RootTransform(degree=2, sigma=3),
        rw.LogTransform(offset=9, laplace_scale="0.1"),
        rw.mechanisms.Additive((x / 50) ** 0.5),
        rw.Sized(rw.RootTransform(degree=2, sigma=3), floor=100),
        rw.ByGroup("naics", {"11": rw.Gaussian(sigma=3)}, default=rw.RootTransform(degree=2, sigma=3)),
        Refined(before=rw.LogTransform(offset=9, sigma="0.3"), more=rw.LogTransform(offset=9, sigma="0.1")),
    ],
    ids=repr,
)
def test_transforms_and_laws_of_ones_own_are_read_by_their_mechanism(mechanism: Any) -> None:
    assert stated_noise(parameter_json(mechanism)) is None
