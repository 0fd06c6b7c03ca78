"""Budgets over several measures: a yes stands up to search, a no comes with a record, and undecided is rare."""

from collections import Counter
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest

from policy.several_measures import FOUR, exceeding, number, random_pair, random_sum, surely_above
from recordwise.errors import ParameterError
from recordwise.exact.functions import log, x
from recordwise.policy import (
    Measure,
    Policy,
    additive,
    among,
    by,
    compare,
    constant,
    gaussian_sum,
    gaussian_transform,
    maximum,
    selection,
    split,
)

JOINT = {"emp": 20, "payann": 500, "payqtr1": 125}


def plan() -> Policy:
    """Sums of three measures under joint thresholds, as a plan charges them, and a count."""
    shares = (("emp", 20, "0.5"), ("payann", 500, "0.8"), ("payqtr1", 125, "0.82"))
    sums = (gaussian_sum(name, sigma=at) * (2 * Fraction(rho)) for name, at, rho in shares)
    return sum(sums, constant("0.05"))


def filled(witness: dict[str, Any]) -> dict[str, Any]:
    return {"emp": 0, "pay": 0, "quarter": 0, "net": 0, "state": None, **witness}


@pytest.mark.theorem("T-PARTS")
@pytest.mark.theorem("T-SHARES")
@pytest.mark.theorem("T-BOXES")
@pytest.mark.parametrize("pairs", [60, pytest.param(20_000, marks=pytest.mark.slow)])
@pytest.mark.costly
def test_random_budgets_of_up_to_four_measures_are_decided_and_never_wrongly(pairs: int) -> None:
    rng, search = Random(191), Random(192)
    answers: Counter[tuple[str, str]] = Counter()
    for _ in range(pairs):
        kind, budget, policy = random_pair(rng)
        verdict = budget.dominates(policy, seconds=10)
        answers[kind, verdict.answer] += 1
        if verdict:
            assert exceeding(policy, budget, search, most=4000) is None
        if verdict.answer == "no":
            assert surely_above(policy, budget, filled(verdict.witness or {}))
    total = Counter(answer for _, answer in answers.elements())
    print(dict(answers))
    assert total["undecided"] <= max(1, pairs / 100)
    assert answers["own", "undecided"] == 0
    assert min(total["yes"], total["no"]) > pairs / 5


def test_a_plan_run_twice_under_joint_thresholds_is_refused_with_the_record_that_needs_too_much() -> None:
    budget = split(4, JOINT)
    assert budget.dominates(plan())
    verdict = budget.dominates(plan() * 2)
    assert verdict.answer == "no"
    assert verdict.witness is not None
    assert verdict.witness == JOINT
    assert verdict.reason.endswith("it needs 4.34 of 4")
    assert (budget * Fraction(434, 400)).dominates(plan() * 2)
    assert (budget * Fraction(433, 400)).dominates(plan() * 2).answer == "no"


@pytest.mark.theorem("T-SHARES")
def test_a_joint_budget_that_is_just_enough_is_a_yes_and_a_hair_less_is_a_no() -> None:
    """The shares are 1/6, 1/3 and 1/2 of the joint term, and all of it is needed at every multiple of the thresholds."""
    sums = (split(1, {"emp": 10}), split(2, {"pay": 70}), gaussian_sum("quarter", sigma=1) * (2 * 3 * Fraction(1, 25)))
    plain = sum(sums, Policy())
    joint = split(6, {"emp": 10, "pay": 70, "quarter": 5})
    assert joint.dominates(plain)
    assert joint.dominates(plain + constant(Fraction(1, 10**9))).answer == "no"
    assert joint.dominates(plain * (1 + Fraction(1, 10**9))).answer == "no"


@pytest.mark.theorem("T-BOXES")
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.costly
@pytest.mark.sampled
def test_small_universes_are_decided_as_by_trying_every_record(seed: int) -> None:
    """Bounds make the universe finite: every record of two or three measures is tried."""
    rng = Random(500 + seed)
    for _ in range(25):
        measures = rng.sample(FOUR, rng.choice([2, 2, 3]))
        limit = 60 if len(measures) == 2 else 14
        budget, policy = (random_small(rng, measures, limit) for _ in range(2))
        rows = np.array(list(product(range(limit + 1), repeat=len(measures))))
        steps = [float(measure.step) for measure in measures]
        records = {measure.name: rows[:, place] * steps[place] for place, measure in enumerate(measures)}
        most = (policy.loss(records) / budget.loss(records)).max()
        bounds = {measure.name: measure.step * limit for measure in measures}
        for factor in (most * (1 + 1e-9), most * (1 - 1e-9), most * 0.9):
            scaled = budget * Fraction(factor)
            verdict = scaled.dominates(policy, bounds=bounds, seconds=20)
            assert verdict.answer == ("yes" if factor > most else "no")
            if verdict.witness is not None:
                assert surely_above(policy, scaled, filled(verdict.witness))
                assert all(abs(verdict.witness.get(name, 0)) <= bounds[name] for name in bounds)


def random_small(rng: Random, measures: list[Measure], limit: int) -> Policy:
    """Pieces, squares and logarithms whose steps lie inside a small universe."""
    total = constant(number(rng))
    for _ in range(rng.randint(1, 3)):
        chosen = rng.sample(measures, rng.randint(1, len(measures)))
        at = {measure: measure.step * rng.randint(1, limit) for measure in chosen}
        measure = chosen[0]
        total += rng.choice(
            [
                split(number(rng), at),
                split(number(rng), at),
                gaussian_sum(measure, sigma=at[measure]),
                gaussian_transform(measure, log(x / at[measure] + 1), sigma=number(rng), grid="0.01"),
            ]
        )
    return total


def test_a_bound_of_a_measure_is_where_the_search_ends() -> None:
    flat, quadratic = constant(2), gaussian_sum("emp", sigma=10) + gaussian_sum("pay", sigma=10)
    assert flat.dominates(quadratic).answer == "no"
    assert flat.dominates(quadratic, bounds={"emp": 10, "pay": 17})
    verdict = flat.dominates(quadratic, bounds={"emp": 10, "pay": 18})
    assert verdict.answer == "no"
    assert verdict.witness == {"emp": 10, "pay": 18}
    assert flat.dominates(quadratic, bounds={"emp": 10}).answer == "no"
    with pytest.raises(ParameterError, match="emp"):
        flat.dominates(quadratic, bounds={"emp": -1})


def test_a_region_beyond_the_bound_is_not_looked_at() -> None:
    large = gaussian_sum("emp", sigma=1).where(compare("emp", ">", 100))
    assert constant(1).dominates(large, bounds={"emp": 100})
    assert constant(1).dominates(large, bounds={"emp": 101}).witness == {"emp": 101}


@pytest.mark.theorem("T-PARTS")
def test_a_measure_that_only_the_budget_looks_at_does_not_help_it() -> None:
    budget = split(3, {"emp": 10, "pay": 10}) + gaussian_sum("pay", sigma=1)
    assert budget.dominates(split(3, {"emp": 10}))
    verdict = budget.dominates(split(3, {"emp": 9}))
    assert verdict.answer == "no"
    assert verdict.witness is not None
    assert verdict.witness["pay"] == 0


def test_maxima_of_budgets_help_where_no_single_one_is_enough() -> None:
    """Each of the two covers one measure; only their maximum covers half of the sum of both."""
    budget = maximum([gaussian_sum("emp", sigma=1), gaussian_sum("pay", sigma=1)])
    both = gaussian_sum("emp", sigma=1) + gaussian_sum("pay", sigma=1)
    assert budget.dominates(both * Fraction(49, 100))
    assert budget.dominates(both * Fraction(51, 100)).answer == "no"


def test_one_measure_is_decided_where_each_of_two_budgets_is_needed_somewhere() -> None:
    """The constant up to 50, the square beyond: no mean of the two is enough, and at 51 the square must be 16."""
    square, pieces = gaussian_sum("emp", sigma=1) * 2, split(4, {"emp": 50})
    assert maximum([constant(4), square * Fraction(16, 51**2)]).dominates(pieces)
    verdict = maximum([constant(4), square * Fraction(16, 51**2) * Fraction(999, 1000)]).dominates(pieces)
    assert verdict.witness == {"emp": 51}


@pytest.mark.theorem("T-SHARES")
def test_what_a_condition_makes_of_a_joint_budget_is_counted() -> None:
    """From 50 employees on the budget is at least 100, whatever the other measure."""
    slow = gaussian_transform("net", log(x / 7 + 1), sigma=7, grid="0.001")
    budget = split(1, {"emp": 5, "net": 1000})
    assert budget.dominates((slow + constant(2)).where(compare("emp", ">=", 50)))
    assert budget.dominates((slow + constant(2)).where(compare("emp", ">=", 5))).answer == "no"


@pytest.mark.theorem("T-SHARES")
@pytest.mark.costly
def test_a_part_that_needs_next_to_nothing_of_a_budget_still_gets_some() -> None:
    """The linear program gives payroll no share of the first budget, and without one very large payrolls are not covered."""
    budget = split(790, {"net": 7, "pay": 1200}) + split(5134, {"emp": 5, "net": 30}) + split(790, {"net": 1000})
    policy = split("0.07", {"emp": 5, "net": 30, "pay": 50}) + split("0.01", {"emp": 20, "pay": 1200, "quarter": 300})
    policy += split("1.3", {"emp": 50, "net": 1000, "pay": 50, "quarter": 125}) + gaussian_sum("net", sigma=50)
    assert (budget + split(16, {"quarter": 300})).dominates(policy)
    assert (budget + split(5, {"quarter": 300})).dominates(policy).answer == "no"


@pytest.mark.theorem("T-REGIONS")
def test_joint_thresholds_by_group_are_compared_in_each_group() -> None:
    at = {"emp": by("state", {"06": 10, "36": 40}, default=20), "pay": 100}
    budget = split(2, at)
    plain = gaussian_sum("emp", sigma=20) + gaussian_sum("pay", sigma=100)
    verdict = budget.dominates(plain)
    assert verdict.answer == "no"
    assert verdict.witness is not None
    assert verdict.witness["state"] == "36"
    assert budget.dominates(plain.where(among("state", ["36"], inside=False)))


def test_a_selection_over_several_measures_is_compared_with_another() -> None:
    loose = ((1, Fraction(1, 100)), (3, Fraction(1, 10)))
    tight = ((1, Fraction(1, 200)), (2, Fraction(1, 100)), (4, Fraction(1, 10)))
    at = {"emp": 10, "pay": 100}
    budget, spent = (Policy({}, selection(1, at, deltas).delta_terms, False) for deltas in (loose, tight))
    assert budget.dominates(spent)
    verdict = spent.dominates(budget)
    assert verdict.answer == "no"
    assert budget.delta(verdict.witness) > spent.delta(verdict.witness)


def test_what_cannot_be_decided_says_what_to_change() -> None:
    """ln(ln(x + 3) + 1) passes every constant, but not at a number that can be written down."""
    slow = additive("emp", log(log(x + 3) + 1), bound="pure") + additive("pay", log(log(x + 3) + 1), bound="pure")
    verdict = constant(100).dominates(slow, seconds=1)
    assert verdict.answer == "undecided"
    assert "state it in the terms that the queries charge" in verdict.reason


def test_an_excess_beyond_every_search_is_no_yes() -> None:
    """The first record above the budget has 10**32 employees or dollars."""
    wide = gaussian_sum("emp", sigma=10**31) + gaussian_sum("pay", sigma=10**31)
    assert not constant(10).dominates(wide, seconds=2)
    assert constant(10).dominates(wide, bounds={"emp": 10**31, "pay": 10**31})


@pytest.mark.costly
def test_multiples_of_a_plan_are_always_decided() -> None:
    rng = Random(77)
    for _ in range(100):
        policy = random_sum(rng, list(FOUR), most=8)
        for factor in ("0.25", "0.9999", "1", "1.0001", "40"):
            answer = (policy * factor).dominates(policy, seconds=10).answer
            assert answer == ("yes" if Fraction(factor) >= 1 else "no")
