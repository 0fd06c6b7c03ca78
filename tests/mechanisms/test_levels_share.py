"""A level gets a share of the loss: what mechanisms promise when a plan divides one budget among several tables."""

from fractions import Fraction

import pyarrow as pa
import pytest

import recordwise as rw
from build import employers
from recordwise.errors import ParameterError
from recordwise.exact.functions import log, x
from recordwise.policy import constant, split

SHARES = (Fraction(1, 2), Fraction(1, 3), Fraction(1, 6))
NOMINAL = {
    "gaussian": (rw.Gaussian(rho="0.1", at=50), split("0.1", {"emp": 50})),
    "clamped": (rw.Clamped(to=50, rho="0.1"), constant("0.1")),
    "unit split": (rw.UnitSplit(at=50, rho="0.1"), split("0.1", {"emp": 50})),
    "unit split by group": (
        rw.UnitSplit(at=rw.by("naics", {"21": 50, "44": 20}, default=5), rho="0.1"),
        split("0.1", {"emp": rw.by("naics", {"21": 50, "44": 20}, default=5)}),
    ),
    "sigma": (rw.Gaussian(sigma=7), rw.Gaussian(sigma=7).policy("emp")),
}
TRANSFORMS = {
    "log": rw.LogTransform(offset=100, sigma="0.2"),
    "root": rw.RootTransform(degree=4, offset=1, sigma="0.1"),
    "own": rw.mechanisms.Transform(x**0.5, x**2, offset=3, sigma=1),
}
PURE = {
    "log with Laplace noise": rw.LogTransform(offset=100, laplace_scale="0.05"),
    "root with Laplace noise": rw.RootTransform(degree=2, offset=1, laplace_scale="0.1"),
    "generalized Gaussian": rw.GeneralizedGaussian(shape="1/2", scale=3),
    "generalized Gaussian of another shape": rw.GeneralizedGaussian(shape="0.7", scale=3),
    "polylog": rw.Polylog(power=2, rate=1, offset=4, scale=2),
    "own": rw.mechanisms.Additive((x / 50) ** 0.5),
}


@pytest.mark.parametrize("kind", NOMINAL)
def test_levels_together_never_cost_more_than_the_loss_that_was_divided(kind):
    mechanism, nominal = NOMINAL[kind]
    together = sum(mechanism.shared(share).policy("emp") for share in SHARES)
    assert nominal.dominates(together)
    assert not (nominal * "0.999").dominates(together)


@pytest.mark.parametrize("kind", TRANSFORMS)
@pytest.mark.parametrize("size", [1, 50, 10_000])
def test_a_transform_pays_its_share_up_to_the_grid(kind, size):
    mechanism = TRANSFORMS[kind]
    whole = mechanism.policy("emp").loss({"emp": size})
    for share in SHARES:
        ratio = mechanism.shared(share).policy("emp").loss({"emp": size}) / (whole * float(share))
        assert 1 - 1 / 2000 < ratio < 1 + 1 / 2000


@pytest.mark.parametrize("kind", PURE)
@pytest.mark.parametrize("size", [1, 50, 10_000])
def test_pure_losses_of_levels_are_their_shares(kind, size):
    mechanism = PURE[kind]
    whole = mechanism.policy("emp", tight=False).epsilon_pure({"emp": size})
    for share in SHARES:
        part = mechanism.shared(share).policy("emp", tight=False).epsilon_pure({"emp": size})
        assert abs(part / (whole * float(share)) - 1) < 1 / 1000


def test_a_scale_that_cannot_be_exact_is_rounded_towards_less_loss():
    mechanism = rw.GeneralizedGaussian(shape="0.7", scale=3)
    for share in SHARES:
        # scale' >= scale * share**(-1/0.7), compared without roots: (scale'/scale)**7 >= share**-10.
        assert (mechanism.shared(share).scale / mechanism.scale) ** 7 >= share**-10


@pytest.mark.parametrize(
    "mechanism",
    [
        rw.Polylog(power=1, rate=5, offset=4, scale=1),
        rw.mechanisms.Additive(5 * log(x + 3)),
        rw.LogTransform(offset=1, laplace_scale="0.4"),
        # These leave a law that could be drawn, but without a variance.
        rw.Polylog(power=1, rate="8.9", offset=1, scale=1, lattice=1),
        rw.mechanisms.Additive("8.9" * log(x + 1), lattice=1),
        rw.LogTransform(offset=1, laplace_scale="0.17"),
    ],
)
@pytest.mark.costly
def test_a_share_that_leaves_no_legal_law_or_no_variance_is_refused(mechanism):
    with pytest.raises(ParameterError, match=r"cannot be shared|must be below 1"):
        mechanism.shared(Fraction(1, 3))


def test_a_level_without_a_variance_is_refused_with_the_plan():
    """Nothing is read and nothing is charged: the policy cannot even be written down."""
    records = pa.table({"id": ["a", "b"], "county": ["1", "2"], "state": ["1", "1"], "emp": [3, 4]})
    keys = [rw.Keys.of({"county": ["1", "2"]}), rw.Keys.of({"state": ["1"]})]
    with employers(records, "county", "state", tuned_on="public") as session:
        query = (
            rw.query()
            .levels("county", "state", keys=keys)
            .sum("emp", rw.Polylog(power=1, rate="5.8", offset=1, scale=1, lattice=1))
        )
        for attempt in (session.policy_of, session.run):
            with pytest.raises(ParameterError, match="Use a rate above 6"):
                attempt(query)
        assert "charged" not in [event.kind for event in session.history()]


def test_a_level_that_only_the_parts_of_an_average_cannot_serve_is_refused_before_the_charge():
    records = pa.table({"id": ["a", "b"], "emp": [3, 4]})
    confidence = 1 - 2.0**-52
    with employers(records, columns={}, tuned_on="public") as session:
        query = rw.query().avg("emp", sum=rw.Gaussian(sigma=3), count=rw.Gaussian(rho=1))
        with pytest.raises(ParameterError):
            session.run(query, confidence=confidence)
        assert "charged" not in [event.kind for event in session.history()]
