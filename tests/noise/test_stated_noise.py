"""Noise as a release states it is the noise of its mechanism: the same laws at every share, size and step."""

from fractions import Fraction
from typing import Any

import pytest

import recordwise as rw
from recordwise.mechanisms.base import parameter_json
from recordwise.mechanisms.registry import mechanism_from_json
from recordwise.noise.stated import READERS, stated_noise

LAPLACE = rw.GeneralizedGaussian(shape=1, scale="0.1")
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
]
SHARES = [Fraction(1), Fraction(1, 3), Fraction(8, 1105)]
SIZES = [Fraction(100), Fraction(200), Fraction(400)]


def laws(noise: Any) -> list[Any]:
    """What fits ask of a mechanism or of what a release states."""
    served = [noise.at_share(share) for share in SHARES]
    if noise.is_sized:
        served = [each.at_size(size) for each in served for size in SIZES]
    return [
        (each.drawn_law(step), each.offers("noise_sigma"), each.draws_laplace)
        for each in served
        for step in (Fraction(1), Fraction(1, 4))
    ]


@pytest.mark.parametrize("mechanism", KINDS, ids=repr)
def test_the_laws_are_those_of_the_mechanism(mechanism: Any) -> None:
    form = parameter_json(mechanism)
    stated, read = stated_noise(form), mechanism_from_json(form)
    assert stated is not None
    assert read is not None
    assert laws(stated) == laws(read) == laws(mechanism)
    for name in ("signed", "group_numbers", "variance_varies", "is_sized"):
        assert getattr(stated, name) == getattr(read, name)
    assert len(stated.inside()) == len(read.inside())


def test_every_kind_that_is_read_is_compared() -> None:
    assert {type(each).__name__ for each in KINDS} == set(READERS)


@pytest.mark.parametrize(
    "mechanism",
    [
        rw.RootTransform(degree=2, sigma=3),
        rw.Polylog(power=2, rate=2, offset=10, scale=5),
        rw.Sized(rw.RootTransform(degree=2, sigma=3), floor=100),
        rw.UnitSplit(at={"emp": 50, "pay": 70}, rho="0.1"),
        rw.UnitSplit(at=rw.by("naics", {"11": 20}, 50), rho="0.1"),
    ],
    ids=repr,
)
def test_other_noise_is_read_by_its_mechanism(mechanism: Any) -> None:
    assert stated_noise(parameter_json(mechanism)) is None
