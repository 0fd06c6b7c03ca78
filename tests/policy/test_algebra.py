"""Policies are values: a normal form, a commutative sum, parallel composition, monotone losses."""

import copy
import pickle
import sys
from fractions import Fraction
from random import Random

import numpy as np
import pytest

from random_policies import (
    EMP,
    NET,
    PAY,
    columns_of,
    random_condition,
    random_function,
    random_part,
    random_policy,
    random_record,
)
from recordwise.errors import ParameterError
from recordwise.exact.functions import log, x
from recordwise.policy import (
    Measure,
    Policy,
    additive,
    among,
    by,
    complement,
    constant,
    gaussian_sum,
    gaussian_transform,
    maximum,
    selection,
    split,
)


def parts(seed: int, count: int = 3) -> list[Policy]:
    rng = Random(seed)
    return [random_policy(rng, 3) for _ in range(count)]


@pytest.mark.parametrize("seed", range(60))
def test_composition_is_associative_and_commutative_as_values_not_only_as_numbers(seed: int) -> None:
    a, b, c = parts(seed)
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert hash((a + b) + c) == hash(a + (b + c))
    assert a + Policy() == a
    assert sum([a, b, c]) == a + b + c
    assert ((a + b) + c).to_json() == (c + (b + a)).to_json()


def test_a_query_asked_twice_costs_twice():
    for policy in (
        constant("1/3"),
        gaussian_sum("emp", sigma=7),
        split(2, {"emp": 50}),
        split(1, {"emp": 50}) + constant(1),
    ):
        assert policy + policy == policy * 2
        assert (policy + policy).loss({"emp": 120}) == 2 * policy.loss({"emp": 120})


@pytest.mark.costly
def test_the_loss_of_a_sum_is_the_sum_of_the_losses() -> None:
    rng = Random(1)
    for _ in range(100):
        a, b = random_policy(rng), random_policy(rng)
        columns = columns_of([random_record(rng) for _ in range(20)])
        assert (a + b).loss(columns) == pytest.approx(a.loss(columns) + b.loss(columns), rel=1e-12)
        assert (a * 3).loss(columns) == pytest.approx(3 * a.loss(columns), rel=1e-12)


def test_ten_thousand_additions_of_the_same_few_queries_stay_a_few_terms() -> None:
    queries = [
        split("0.1", {"emp": 50}),
        gaussian_sum("emp", sigma="10.37"),
        constant("1/7").where(among("state", ["06", "36"])),
        additive("pay", log(x + 3) ** 2),
    ]
    total = Policy()
    for count in range(10_000):
        total += queries[count % 4]
    assert len(total.rho) == 4
    assert total == sum((query * 2500 for query in queries), Policy())


def calls_of_addition(total: Policy, query: Policy) -> int:
    """How many functions are called when a query is added."""
    events: list[str] = []
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, argument: events.append(event))
    try:
        total + query
    finally:
        sys.setprofile(before)
    return sum(event in ("call", "c_call") for event in events)


def test_an_addition_costs_no_more_after_ten_thousand_others() -> None:
    """Calls of functions are counted: with every charge kept there would be thousands of times as many."""
    queries = [split("0.1", {"emp": 50}), gaussian_sum("emp", sigma="10.37")]
    few = sum(queries, Policy())
    many = sum((query * 5000 for query in queries), Policy())
    for number in range(5000):
        many += queries[number % 2]
    kept = sum((constant(1).where(among("state", [str(number)])) for number in range(100)), few)
    for query in queries:
        usual = calls_of_addition(few, query)
        assert 0 < calls_of_addition(many, query) <= 2 * usual
        # Charges that cannot be added up are kept, and are noticed.
        assert calls_of_addition(kept, query) > 4 * usual
    assert len(pickle.dumps(many)) <= 2 * len(pickle.dumps(few))


def test_a_sum_of_many_long_fractions_is_saved_and_read_back() -> None:
    rng = Random(2)
    total = Policy()
    for _ in range(300):
        total += gaussian_sum("emp", sigma=Fraction(rng.randrange(10**17, 10**18), 10**15))
    assert len(total.rho) == 1
    assert max(total.rho.values()).denominator > 10**5000
    assert Policy.from_json(total.to_json()) == total
    assert "emp" in total.to_latex()
    assert "emp" in total.in_words()
    assert "emp" in repr(total)


@pytest.mark.theorem("T-PAR")
@pytest.mark.costly
def test_a_condition_and_its_complement_share_a_policy_out_among_all_records() -> None:
    rng = Random(3)
    for _ in range(100):
        policy, condition = random_policy(rng), random_condition(rng)
        whole = policy.where(condition) + policy.where(complement(condition))
        records = [random_record(rng) for _ in range(20)]
        for record in records:
            assert whole.loss(record) == pytest.approx(policy.loss(record), rel=1e-15)
        assert whole.loss(columns_of(records)) == pytest.approx(policy.loss(columns_of(records)), rel=1e-12)


def test_parallel_parts_cost_a_record_its_own_part() -> None:
    groups = ["a", "b", "c"]
    policies = [constant(k + 1).where(among("g", [group])) for k, group in enumerate(groups)]
    together = sum(policies, Policy())
    assert list(together.loss({"g": [*groups, "d", None]})) == pytest.approx([1, 2, 3, 0, 0])


def test_taking_the_complement_twice_gives_the_condition_back() -> None:
    rng = Random(4)
    for _ in range(500):
        condition = random_condition(rng)
        record = random_record(rng)
        policy = constant(1)
        once, twice = policy.where(complement(condition)), policy.where(complement(complement(condition)))
        assert once.loss(record) + policy.where(condition).loss(record) == 1
        assert twice.loss(record) == policy.where(condition).loss(record)


@pytest.mark.costly
def test_losses_never_fall_when_a_contribution_grows() -> None:
    rng = Random(5)
    grid = sorted({*range(60), *(round(1.3**k) for k in range(100)), 2**53, 2**60})
    for _ in range(150):
        policy = random_part(rng) + random_part(rng)
        for measure in (EMP, PAY, NET):
            rows = len(grid)
            table = {"emp": [3] * rows, "pay": [1.5] * rows, "net": [-4] * rows, "state": ["06"] * rows}
            table[measure.name] = [float(measure.step * steps) if measure == PAY else steps for steps in grid]
            losses = policy.loss(table)
            assert np.all(np.diff(losses) >= -1e-12 * losses[1:])
            assert np.all(policy.delta(table)[1:] >= policy.delta(table)[:-1])


def test_a_signed_measure_costs_the_same_on_both_sides() -> None:
    rng = Random(6)
    for _ in range(50):
        policy = additive(NET, random_function(rng)) + split(1, {NET: 7})
        assert policy.loss({"net": [-9, 9]})[0] == policy.loss({"net": [-9, 9]})[1]


@pytest.mark.costly
def test_the_maximum_is_the_largest_of_its_parts_everywhere() -> None:
    rng = Random(7)
    for _ in range(100):
        inner = [Policy(random_policy(rng, 2).rho, {}, False) for _ in range(3)]
        columns = columns_of([random_record(rng) for _ in range(20)])
        largest = np.maximum.reduce([policy.loss(columns) for policy in inner])
        assert maximum(inner).loss(columns) == pytest.approx(largest, rel=1e-12)
    assert maximum([constant(1), constant(1)]) == constant(1)
    assert maximum([constant(1), constant(2)]) == maximum([constant(2), constant(1)])


@pytest.mark.costly
def test_the_minimum_is_found_by_no_search_to_be_lower() -> None:
    rng = Random(8)
    for _ in range(100):
        policy = Policy(random_policy(rng, 3).rho, {}, False)
        least = policy.minimum()
        records = [random_record(rng) for _ in range(50)]
        zero = [{**record, "emp": 0, "pay": 0, "net": 0} for record in records]
        assert min(policy.loss(columns_of(records + zero))) >= least * (1 - 1e-12)
    assert (split(2, {"emp": 5}) + gaussian_sum("emp", sigma=1)).minimum() == 2.0
    assert split(2, {"emp": by("g", {"a": 5})}).minimum() == 2.0
    assert gaussian_transform("emp", log(x + 1), sigma=1, grid="0.1").minimum() == 0.0


def test_scaling_by_zero_is_the_empty_policy_and_a_selection_is_only_repeated_whole() -> None:
    choice = selection(1, {"emp": 5}, ((1, Fraction(1, 100)),))
    assert choice * 0 == Policy()
    assert (choice * 2).delta({"emp": 1}) == pytest.approx(0.02)
    with pytest.raises(ParameterError, match="factor"):
        choice * "1/2"
    with pytest.raises(ParameterError, match="maximum"):
        maximum([choice, constant(1)])
    with pytest.raises(ParameterError, match="factor"):
        constant(1) * -1


def test_policies_survive_copying_and_pickling() -> None:
    rng = Random(9)
    for _ in range(20):
        policy = random_policy(rng)
        assert pickle.loads(pickle.dumps(policy)) == policy
        assert copy.deepcopy(policy) == policy


def test_two_steps_for_one_measure_are_refused_in_one_policy() -> None:
    with pytest.raises(ParameterError, match="emp"):
        gaussian_sum("emp", sigma=1) + gaussian_sum(Measure("emp", Fraction(1, 2)), sigma=1)


@pytest.mark.costly
def test_every_policy_can_be_read_as_latex_and_as_words() -> None:
    rng = Random(10)
    for _ in range(200):
        policy = random_policy(rng)
        latex, words = policy.to_latex(), policy.in_words()
        assert latex.count("{") - latex.count(r"\{") == latex.count("}") - latex.count(r"\}")
        assert words.endswith(".")
        assert "<script" not in policy._repr_html_()
    assert constant("0.1").to_latex() == "0.1"
    assert "sum of these parts" in constant("0.1").in_words()
    assert "0" in Policy().in_words()


def test_selections_that_differ_in_delta_alone_are_different_policies() -> None:
    one, other = (selection(2, {"emp": 50}, ((1, Fraction(1, divisor)),)) for divisor in (100, 1000))
    assert one.rho == other.rho
    assert one != other
    assert len({one, other}) == 2
