"""What an attacker learns about a value: bounds against dense computations, and attacks that reach them."""

from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

import recordwise as rw
from build import keys
from recordwise.errors import ParameterError, RecordError, UnknownFormError
from recordwise.exact.functions import x
from recordwise.mechanisms.inference import ValueNumber, ValuePolicy, joint_loss, joint_reach
from recordwise.noise import Seeded
from recordwise.plan import Plan, Schema
from recordwise.policy import Measure

EMP = Measure("emp")
SCHEMA = Schema.of(
    unit="id",
    measures={"emp": rw.plan.Measure(name="emp", bound=10**6), "pay": 1},
    columns={"county": "text", "naics": "text"},
)
GAUSSIAN = ValueNumber(part=0, measure=EMP, lattice=Fraction(1), sigma=Fraction(4))
LAPLACE = ValueNumber(part=0, measure=EMP, lattice=Fraction(1), exponent=x / 5)
HEAVY = ValueNumber(part=0, measure=EMP, lattice=Fraction(1), exponent=(x / 2 + 1) ** "1/2")
BOUNDS = {"emp": Fraction(10**6)}


def planned(*mechanisms: Any) -> ValuePolicy:
    asked = rw.query().group_by("county", "naics", keys=keys())
    for number, mechanism in enumerate(mechanisms):
        asked = asked.sum("emp", mechanism, alias=f"emp{number}")
    found = Plan(schema=SCHEMA, queries=(asked,)).values()
    assert found is not None
    return found


def masses(number: ValueNumber, reach: int) -> Any:
    return np.asarray(number.law().pmf(np.arange(-reach, reach + 1)))


def best_power(null: Any, other: Any, level: float = 0.05) -> float:
    """Neyman and Pearson's power, from all probabilities: points in the order of their ratio, the last one by chance."""
    null, other = (np.ravel(each)[np.ravel(null + other) > 0] for each in (null, other))
    order = np.argsort(-other / (null + other))
    alarms, powers = np.cumsum(null[order]), np.cumsum(other[order])
    return float(np.interp(level, np.concatenate([[0.0], alarms]), np.concatenate([[0.0], powers])))


@pytest.mark.theorem("T-INFER")
@pytest.mark.parametrize(
    "number, reach", [(GAUSSIAN, 300), (LAPLACE, 500), (HEAVY, 2500)], ids=["gaussian", "laplace", "heavy"]
)
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_a_value_is_in_the_window_as_long_as_the_best_test_misses_it_half_the_time(
    number: ValueNumber, reach: int, confidence: float
) -> None:
    policy, law = ValuePolicy(numbers=(number,), bounds=BOUNDS), masses(number, reach)
    powers = [best_power(law[:-steps], law[steps:], 1 - confidence) for steps in range(1, 80)]
    assert np.all(np.diff(powers) > -1e-12)  # a larger shift is easier to see, by the best test at every level
    hidden = int(np.sum(np.array(powers) <= 0.5))
    inside = policy.window({"emp": 1000}, "emp", confidence=confidence)
    assert (inside.reach, inside.low, inside.high) == (hidden, 1000 - hidden, 1000 + hidden)
    near = policy.window({"emp": 3}, "emp", confidence=confidence)
    assert (near.low, near.high) == (max(0, 3 - hidden), 3 + hidden)
    known = policy.window({"emp": 3}, "emp", confidence=confidence, prior=(2, 5))
    assert (known.low, known.high) == (max(2, 3 - hidden), min(5, 3 + hidden))


def test_one_half_is_no_confidence_and_a_prior_must_hold_the_value() -> None:
    policy = ValuePolicy(numbers=(GAUSSIAN,), bounds=BOUNDS)
    with pytest.raises(ParameterError, match=r"above 0\.5"):
        policy.window({"emp": 3}, "emp", confidence=0.5)
    with pytest.raises(ParameterError, match="outside its prior range"):
        policy.window({"emp": 3}, "emp", prior=(4, 9))
    with pytest.raises(ParameterError, match="outside its public bound"):
        policy.window({"emp": 10**7}, "emp")
    with pytest.raises(ParameterError, match="smallest and the largest"):
        policy.window({"emp": 3}, "emp", prior=5)  # type: ignore[arg-type]
    for record in ({}, {"emp": None}, {"emp": float("nan")}):
        with pytest.raises(RecordError):
            policy.window(record, "emp")


@pytest.mark.parametrize("number", [GAUSSIAN, LAPLACE, HEAVY])
def test_values_far_apart_are_told_without_their_laws(number: ValueNumber) -> None:
    far = ValuePolicy(numbers=(number,), bounds={"emp": Fraction(10**40)}).loss({"emp": 0}, {"emp": 10**30})
    assert far.power() == far.delta_at(0.0)[0] == 1


@pytest.mark.theorem("T-INFER")
@pytest.mark.parametrize("pair", [(GAUSSIAN, GAUSSIAN), (GAUSSIAN, HEAVY), (LAPLACE, HEAVY)])
@pytest.mark.costly
def test_the_distance_of_two_values_in_two_tables_is_that_of_the_joint_law(
    pair: tuple[ValueNumber, ValueNumber],
) -> None:
    reach = 700
    for steps in (2, 7, 12):
        (p, p_moved), (q, q_moved) = ((law[steps:], law[:-steps]) for law in (masses(each, reach) for each in pair))
        exact = float(np.abs(np.multiply.outer(p, q) - np.multiply.outer(p_moved, q_moved)).sum() / 2)
        found = float(joint_loss([(each, float(steps)) for each in pair]).delta_at(0.0)[0])
        assert exact - 1e-9 <= found <= exact + 2e-3

    def dense(steps: int) -> float:
        one, two = (masses(each, reach) for each in pair)
        return best_power(np.multiply.outer(one[:-steps], two[:-steps]), np.multiply.outer(one[steps:], two[steps:]))

    hidden = int(joint_reach(pair, 0.95))
    assert dense(hidden) <= 0.5 < dense(hidden + 1) + 2e-3


@pytest.mark.theorem("T-INFER")
@pytest.mark.parametrize("value", [0, 10, 4000])
@pytest.mark.parametrize("rest", [0, 30, 4000])
def test_no_other_records_make_a_test_behind_a_transform_better_than_none(rest: int, value: int) -> None:
    """Dense on a fine grid of the logarithm, where each end of the window is tested beside the rest of a cell."""
    window = planned(rw.LogTransform(offset=100, sigma="0.1")).window({"emp": value}, "emp")
    assert window.high is not None
    seen = np.linspace(3, 10, 200_001)

    def given(size: float) -> Any:
        return np.exp(-((seen - np.log(size + rest + 100)) ** 2) / (2 * 0.1**2))

    def power(tested: float) -> float:
        null, other = given(tested), given(value)
        kept = null > 1e-200
        return best_power(null[kept] / null.sum(), other[kept] / other.sum())

    assert power(float(window.high)) <= 0.5
    assert window.low in (0, value) or power(float(window.low)) <= 0.5
    if rest == 0:
        # Within a step of the grid of the logarithm (T-GRID) and one of the value.
        assert power(float(window.high + 1) * 1.01) > 0.5


def test_two_tables_tell_more_than_one_and_a_test_between_two_values_has_its_power() -> None:
    one, two = (planned(*[rw.Gaussian(sigma=16)] * times) for times in (1, 2))
    alone, both = (each.window({"emp": 5000}, "emp").reach for each in (one, two))
    assert (alone, both) == (26, 18)  # 1.645 * 16, over sqrt 2
    powers = [each.loss({"emp": 40}, {"emp": 60}).power() for each in (one, two)]
    normal = NormalDist()
    for power, sigma in zip(powers, (16, 16 / 2**0.5)):
        assert power == pytest.approx(normal.cdf(20 / sigma - normal.inv_cdf(0.95)), abs=2e-2)


def test_windows_are_open_at_a_clamp_and_closed_at_zero() -> None:
    clamped = planned(rw.Clamped(to=100, rho=50))
    high = clamped.window({"emp": 100}, "emp")
    assert (high.high, high.reach) == (None, None)
    assert high.low > 50
    assert clamped.window({"emp": 3}, "emp").low == 0


def test_a_law_that_is_not_stated_is_not_guessed() -> None:
    asked = rw.query().group_by("county", "naics", keys=keys()).sum("emp", rw.Gaussian(sigma=9))
    asked = asked.quantile("pay", p="0.5", grid=rw.mechanisms.Grid.log(1, 10**6, bits=6), rho="0.05").sum(
        "pay", rw.Gaussian(sigma=9)
    )
    found = Plan(schema=SCHEMA, queries=(asked,)).values()
    assert found is not None
    assert set(found.bounds) == {"emp"}
    with pytest.raises(ParameterError, match="no law"):
        found.window({"emp": 1, "pay": 2}, "pay")
    with pytest.raises(ParameterError, match="no law"):
        found.loss({"emp": 1, "pay": 2}, {"emp": 1, "pay": 3})
    sized = (
        rw.query()
        .where("emp > 10")
        .group_by("county", keys=rw.Keys.of({"county": ["01"]}))
        .sum("emp", rw.Gaussian(sigma=9))
    )
    assert Plan(schema=SCHEMA, queries=(sized,)).values() is None


def test_windows_read_back_are_the_same_and_other_forms_are_refused() -> None:
    policy = planned(
        rw.Polylog(power=2, rate=1, offset=3, variance=400), rw.LogTransform(offset=10, laplace_scale="0.1")
    )
    again = ValuePolicy.from_json(policy.to_json())
    assert again == policy
    assert again.reaches("emp") == policy.reaches("emp")
    forms: tuple[Any, ...] = (
        None,
        [],
        {"numbers": [{}], "bounds": {}},
        {"numbers": [{**policy.to_json()["numbers"][0], "exponent": "z"}], "bounds": {}},
    )
    for form in forms:
        with pytest.raises(UnknownFormError):
            ValuePolicy.from_json(form)


DRAWS, OWN_DRAWS, REST = 10_000, 100_000, 300
ATTACKED: dict[str, tuple[Any, ...]] = {
    "Gaussian": (rw.Gaussian(sigma=16),),
    "UnitSplit in two tables": (rw.UnitSplit(at=50, rho="0.5"), rw.UnitSplit(at=50, rho=1)),
    "Polylog": (rw.Polylog(power=2, rate=1, offset=3, variance=400),),
    "LogTransform": (rw.LogTransform(offset=100, sigma="0.1"),),
    "Sized": (rw.Sized(rw.Gaussian(sigma="0.05"), floor=100).at_size(Fraction(900)),),
}


class Attacker:
    """Knows the rest of the cell, suspects a value, and names the values that are not rejected against it at 5 %."""

    def __init__(self, name: str, suspected: int) -> None:
        self.mechanisms, self.suspected = ATTACKED[name], suspected
        self.rest = 0 if name == "LogTransform" else REST
        self.seed = 0

    def draw(self, value: int, times: int) -> list[Any]:
        self.seed += 1
        totals = np.full(times, value + self.rest)
        return [
            each.release(totals, rng=Seeded(10 * self.seed + at)).values() for at, each in enumerate(self.mechanisms)
        ]

    def height(self, at: int, seen: Any, value: int) -> Any:
        """-ln of the probability of what is seen, up to a constant."""
        mechanism = self.mechanisms[at]
        if isinstance(mechanism, rw.LogTransform):
            return (seen - np.log(value + 100)) ** 2 / (2 * 0.1**2)
        away = np.abs(seen - self.rest - value)
        if isinstance(mechanism, rw.Polylog):
            return np.log(away / float(mechanism.scale) + 3) ** 2
        return away**2 / (2 * float(mechanism.noise_sigma) ** 2)

    def against(self, tested: int, seen: list[Any]) -> Any:
        """What speaks for the suspected value instead of the tested one; ties are broken by chance."""
        ties = np.random.default_rng(self.seed).uniform(0, 1e-9, len(seen[0]))
        return ties + sum(
            self.height(at, each, tested) - self.height(at, each, self.suspected) for at, each in enumerate(seen)
        )

    def leaves_out(self, tested: int, seen: list[Any]) -> float:
        """How often a tested value is not named, right in 95 % if it is the true one."""
        limit = np.quantile(self.against(tested, self.draw(tested, OWN_DRAWS)), 0.95)
        return float(np.mean(self.against(tested, seen) > limit))

    def errs(self, tested: int, seen: list[Any]) -> float:
        """How often a tested value that is the true one is not named by whoever leaves it out half the time."""
        limit = np.median(self.against(tested, self.draw(self.suspected, OWN_DRAWS)))
        return float(np.mean(self.against(tested, seen) > limit))


@pytest.mark.theorem("T-INFER")
@pytest.mark.parametrize("value", [10, 4000], ids=["near the bottom", "inside"])
@pytest.mark.parametrize("name", ATTACKED)
def test_an_attacker_who_sees_what_is_drawn_names_the_window_and_a_narrower_one_is_wrong_too_often(
    name: str, value: int
) -> None:
    """False alarm 1e-5 for each comparison: 4.3 standard errors of a share among 10,000, with the attacker's own draws."""
    window = planned(*ATTACKED[name]).window({"emp": value}, "emp")
    assert window.high is not None
    attacker = Attacker(name, value)
    half, twentieth = (4.5 * np.sqrt(share * (1 - share) / DRAWS) for share in (0.5, 0.05))
    sides = [float(window.high) - value, *([float(window.low) - value] if window.low > 0 else [])]
    assert len(sides) == (1 if value == 10 else 2)
    seen = attacker.draw(value, DRAWS)
    for side in sides:
        end, beyond, narrow = (value + round(share * side) for share in (1, 1.1, 0.9))
        beyond += int(np.sign(side))
        assert attacker.leaves_out(end, seen) <= 0.5 + half  # a bound: no one leaves it out more often,
        assert attacker.leaves_out(beyond, seen) > 0.5 + half  # and it is reached, within a tenth;
        alarms = attacker.errs(end, attacker.draw(end, DRAWS))
        assert alarms == pytest.approx(0.05, abs=twentieth + 0.012)  # a step of the lattice and of a transform's grid
        assert attacker.errs(narrow, attacker.draw(narrow, DRAWS)) > 0.05 + twentieth
