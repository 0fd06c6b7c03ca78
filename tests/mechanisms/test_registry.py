"""Every mechanism describes itself: in JSON and back, as text, and with its noise set anew."""

import json
from fractions import Fraction

import pytest

import recordwise as rw
from mechanisms.mechanism_catalogue import EVERY
from recordwise.exact.functions import log, x
from recordwise.mechanisms.base import parameter_json
from recordwise.mechanisms.registry import mechanism_from_json, mechanism_kinds
from recordwise.policy import ConditionColumn

GROUPS = rw.by(ConditionColumn("naics", 2), {"44": 20, "72": Fraction(1, 3)}, default=50)
MECHANISMS = [
    rw.Gaussian(rho="0.1", at=50),
    rw.Gaussian(sigma=Fraction(1, 3)),
    rw.Clamped(to=100, rho="0.02"),
    rw.UnitSplit(at=50, rho="0.1"),
    rw.UnitSplit(at={"emp": 50, "pay": GROUPS}, rho="0.1"),
    rw.UnitSplit(at=rw.by("kind", {1: 20, 2: 30}), rho="0.1"),
    rw.GeneralizedGaussian(shape="0.5", scale=2, lattice="0.5"),
    rw.Polylog(power=2, rate=1, offset=3, scale=Fraction(10, 3)),
    rw.mechanisms.Additive((x / 50) ** 0.5 + log(x / 10 + 1)),
    rw.RootTransform(degree="5/2", offset=10, laplace_scale="0.3"),
    rw.LogTransform(offset=2000, sigma="0.5", signed=True),
    rw.Sized(rw.Gaussian(sigma="0.05"), floor=100, low=rw.GeneralizedGaussian(shape="0.5", scale="0.1"), low_below=400),
    rw.mechanisms.Transform(2 * x**0.5, (x / 2) ** 2, offset=40, sigma=4),
    rw.ByGroup(
        "kind", {1: rw.UnitSplit(at={"emp": 5}, rho="0.1"), 2: rw.Gaussian(sigma=3)}, default=rw.Gaussian(sigma=2)
    ),
]


def test_every_kind_is_among_the_examples():
    assert {type(each).__name__ for each in MECHANISMS} == set(mechanism_kinds())


def test_every_kind_that_draws_by_itself_is_in_the_contract_suite():
    """The catalog is where policies are compared with the divergence of what is drawn."""
    assert {type(each.mechanism).__name__ for each in EVERY} == set(mechanism_kinds()) - {"Sized", "ByGroup"}


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_a_description_is_read_back_exactly(mechanism):
    assert mechanism_from_json(json.loads(json.dumps(parameter_json(mechanism)))) == mechanism


def test_a_kind_that_is_not_known_is_not_guessed():
    assert mechanism_from_json({"kind": "Cauchy", "scale": "1"}) is None


def test_a_repr_is_what_one_would_write():
    assert repr(rw.UnitSplit(at=50, rho="0.1")) == "UnitSplit(at=50, rho=0.1)"
    assert repr(rw.Gaussian(rho=0.05)) == "Gaussian(rho=0.05)"
    assert repr(rw.UnitSplit(at={"emp": 50}, rho=1)) == "UnitSplit(at={emp: 50}, rho=1)"
    assert (
        repr(rw.GeneralizedGaussian(shape=0.5, scale=2, lattice=1))
        == "GeneralizedGaussian(shape=0.5, scale=2, lattice=1)"
    )
    assert repr(rw.LogTransform(offset=100, sigma=0.3)) == "LogTransform(offset=100, sigma=0.3)"


@pytest.mark.parametrize(
    "mechanism",
    [each for each in MECHANISMS if not isinstance(each, rw.Gaussian | rw.UnitSplit | rw.Sized | rw.ByGroup)],
    ids=repr,
)
@pytest.mark.costly
@pytest.mark.sampled
def test_noise_set_anew_keeps_the_shape(mechanism):
    """Only the noise parameters differ, and they meet the goal."""
    found = (
        mechanism.recalibrated(rho="0.2")
        if isinstance(mechanism, rw.Clamped)
        else mechanism.recalibrated(rho="0.2", at=50)
    )
    assert type(found) is type(mechanism)
    shape = {each.stored for each in mechanism.parameters if each.role == "shape"} - {"f"}
    assert {name: getattr(found, name) for name in shape} == {name: getattr(mechanism, name) for name in shape}
    assert found.loss_at_shift(50) <= 0.2 * (1 + 1e-9)
