"""What an attacker learns about a value: bounds against dense computations, and attacks that reach them."""

from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

import recordwise as rw
from build import keys
from recordwise.errors import ParameterError, UnknownFormError
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


def best_guess(number: ValueNumber, values: int, width: int, reach: int) -> float:
    """How often the best window of ``width`` of so many equally likely values is right, from all probabilities."""
    law = masses(number, reach)
    seen = np.arange(-reach // 2, values + reach // 2)
    given = law[(seen[:, None] - np.arange(values)) + reach]
    sums = np.cumsum(np.concatenate([np.zeros((len(seen), 1)), given], axis=1), axis=1)
    return float((sums[:, width:] - sums[:, :-width]).max(axis=1).sum() / values)


@pytest.mark.theorem("T-INFER")
@pytest.mark.parametrize(
    "number, reach", [(GAUSSIAN, 300), (LAPLACE, 500), (HEAVY, 2500)], ids=["gaussian", "laplace", "heavy"]
)
@pytest.mark.parametrize("values", [41, 90])
def test_the_window_is_the_narrowest_that_the_best_guess_names_rightly(
    number: ValueNumber, reach: int, values: int
) -> None:
    policy = ValuePolicy(numbers=(number,), bounds=BOUNDS)
    found = policy.window({"emp": 1000 + values // 2}, "emp", prior=(1000, 1000 + values - 1))
    assert found.high is not None
    width = int(found.high - found.low) + 1
    assert best_guess(number, values, width, reach) >= 0.95 - 1e-3
    assert best_guess(number, values, width - 1, reach) < 0.95


@pytest.mark.theorem("T-INFER")
@pytest.mark.parametrize("pair", [(GAUSSIAN, GAUSSIAN), (GAUSSIAN, HEAVY), (LAPLACE, HEAVY)])
def test_the_distance_of_two_values_in_two_tables_is_that_of_the_joint_law(
    pair: tuple[ValueNumber, ValueNumber],
) -> None:
    reach = 700
    for steps in (2, 7, 12):
        (p, p_moved), (q, q_moved) = ((law[steps:], law[:-steps]) for law in (masses(each, reach) for each in pair))
        exact = float(np.abs(np.multiply.outer(p, q) - np.multiply.outer(p_moved, q_moved)).sum() / 2)
        found = float(joint_loss([(each, float(steps)) for each in pair]).delta_at(0.0)[0])
        assert exact - 1e-9 <= found <= exact + 2e-3
        assert joint_reach(pair, found + 1e-6) >= steps > joint_reach(pair, exact - 2e-3) - 1


@pytest.mark.theorem("T-INFER")
@pytest.mark.parametrize("rest", [0, 30, 4000])
def test_no_other_records_make_a_guess_behind_a_transform_better_than_none(rest: int) -> None:
    """Dense: every window that is closer than the level, on a range of values, beside the rest of a cell."""
    level, values, sigma, offset = 0.8, 400, 0.1, 100.0
    policy = planned(rw.LogTransform(offset=100, sigma="0.1"))
    centers = np.log(np.arange(values) + rest + offset)
    seen = np.linspace(centers[0] - 0.6, centers[-1] + 0.6, 4000)
    given = (
        np.exp(-((seen[:, None] - centers) ** 2) / (2 * sigma**2)) / (sigma * np.sqrt(2 * np.pi)) * (seen[1] - seen[0])
    )
    sums = np.cumsum(np.concatenate([np.zeros((len(seen), 1)), given], axis=1), axis=1)
    hidden = policy._hidden({"emp": 0}, "emp", Fraction(1), level)
    ends, end = [], 1
    for start in range(values):
        while end < values and hidden(start, end):
            end += 1
        ends.append(min(end - 1, values - 1) if end < values else values)
    best = (
        np.max([sums[:, max(stop, start + 1)] - sums[:, start] for start, stop in enumerate(ends)], axis=0).sum()
        / values
    )
    last = values - ends.index(values)
    assert best <= level + (1 - level) * last / values + 1e-3
    if rest == 0:
        assert best >= level + (1 - level) * last / values - 0.02


def test_two_tables_tell_more_than_one_and_a_test_between_two_values_has_its_power() -> None:
    one, two = (planned(*[rw.Gaussian(sigma=16)] * times) for times in (1, 2))
    alone, both = (each.window({"emp": 5000}, "emp").reach for each in (one, two))
    assert (alone, both) == (31, 22)  # 1.96 * 16, over sqrt 2
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


DRAWS, REST = 10_000, 300
ATTACKED: dict[str, tuple[Any, ...]] = {
    "Gaussian": (rw.Gaussian(sigma=16),),
    "UnitSplit in two tables": (rw.UnitSplit(at=50, rho="0.5"), rw.UnitSplit(at=50, rho=1)),
    "Polylog": (rw.Polylog(power=2, rate=1, offset=3, variance=400),),
    "LogTransform": (rw.LogTransform(offset=100, sigma="0.1"),),
    "Sized": (rw.Sized(rw.Gaussian(sigma="0.05"), floor=100).at_size(Fraction(900)),),
}


@pytest.mark.slow
@pytest.mark.theorem("T-INFER")
@pytest.mark.parametrize("name", ATTACKED)
def test_an_attacker_who_sees_what_is_drawn_names_the_window_as_often_as_stated_and_a_narrower_one_less(
    name: str,
) -> None:
    """False alarm 1e-5 for each of the two comparisons: 4.3 standard errors of a share of .95 among 10,000."""
    mechanisms = ATTACKED[name]
    policy = planned(*mechanisms)
    rng = np.random.default_rng(3)
    values = rng.integers(2000, 6000, DRAWS)
    rest = 0 if name == "LogTransform" else REST
    seen = [each.release(values + rest, rng=Seeded(at)).values() for at, each in enumerate(mechanisms)]
    if name == "LogTransform":
        guess = np.exp(seen[0]) - 100
    else:
        weights = [1 / float(each.noise_sigma or 1) ** 2 for each in mechanisms]
        guess = sum(weight * (each - rest) for weight, each in zip(weights, seen)) / sum(weights)
    windows = [policy.window({"emp": round(float(each))}, "emp") for each in guess[:DRAWS]] if rest == 0 else []
    reach = policy.window({"emp": 4000}, "emp").reach
    low = np.array([float(each.low) for each in windows]) if windows else np.round(guess) - float(reach or 0)
    high = np.array([float(each.high or 0) for each in windows]) if windows else np.round(guess) + float(reach or 0)
    margin = 4.3 * np.sqrt(0.95 * 0.05 / DRAWS)
    right = np.mean((low <= values) & (values <= high))
    # Rounding to the data's step leaves up to one step: a share of the noise below .02 here.
    assert 0.95 - margin <= right <= 0.95 + 0.02 + margin
    narrow = 0.9 * (high - low) / 2
    assert np.mean(np.abs(values - (low + high) / 2) <= narrow) < 0.95 - margin
