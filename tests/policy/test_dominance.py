"""A budget's yes holds against search, a no comes with a record that proves it, and undecided is rare."""

import itertools
from fractions import Fraction
from math import ceil
from random import Random
from typing import Any

import pytest

from build import few
from random_policies import (
    EMP,
    NET,
    PAY,
    columns_of,
    positive,
    random_function,
    random_part,
    random_policy,
    random_record,
)
from recordwise.errors import ParameterError, RecordError
from recordwise.exact.functions import log, x
from recordwise.exact.numbers import ball, working_precision
from recordwise.policy import (
    Measure,
    Policy,
    Verdict,
    additive,
    among,
    by,
    compare,
    constant,
    gaussian_sum,
    gaussian_transform,
    laplace_transform,
    maximum,
    selection,
    split,
)
from recordwise.policy.constructors import additive_table
from recordwise.policy.evaluate.numpy import canonical_record, terms_ball

BUSINESS = Measure("emp")


def exact(policy: Policy, part: str, record: dict[str, Any]) -> Any:
    terms = policy.rho if part == "rho" else policy.delta_terms
    groups, amounts = canonical_record(terms, record)
    return terms_ball(terms, groups, {name: ball(value) for name, value in amounts.items()})


def surely_above(policy: Policy, budget: Policy, record: dict[str, Any]) -> bool:
    """Whether the record's rho or delta is above the budget, decided in 400 bits."""
    with working_precision(400):
        return any(bool(exact(policy, part, record) > exact(budget, part, record)) for part in ("rho", "delta"))


def hard_records(rng: Random, count: int) -> list[dict[str, Any]]:
    """Random records, some of them made enormous in one measure or in all."""
    records = [random_record(rng) for _ in range(count)]
    for record in records[: count // 3]:
        for name in rng.choice([("emp",), ("pay",), ("net",), ("emp", "pay", "net")]):
            record[name] = 2 ** rng.randint(20, 300) + rng.choice([0, 1, 3])
    return records


def attack(policy: Policy, budget: Policy, rng: Random, count: int = 200) -> dict[str, Any] | None:
    """A record that refutes a yes, if search finds one: the columns find suspects, exact numbers judge them."""
    records = hard_records(rng, count)
    columns = columns_of(records)
    suspects = set()
    for one, other in ((policy.loss, budget.loss), (policy.delta, budget.delta)):
        spent, limit = one(columns), other(columns)
        # No loss is stated too low, so that one of zero is zero.
        with_margin = (spent > 0) & (spent >= limit * (1 - 1e-9))
        suspects |= {row for row in range(count) if with_margin[row]}
    return next((records[row] for row in suspects if surely_above(policy, budget, records[row])), None)


def related_pair(rng: Random) -> tuple[Policy, Policy]:
    """A budget and a policy that are near one another, so that all three answers occur."""
    parts = [random_part(rng) for _ in range(rng.randint(1, 3))]
    kind = rng.randrange(4)
    budget = sum(parts, Policy())
    if kind == 0:
        return budget, random_policy(rng, 2)
    if kind == 1:
        kept = [part for part in parts if rng.random() < 0.7]
        return budget + constant(positive(rng)), sum(kept, constant(positive(rng)))
    plain = [Policy(part.rho, {}, False) for part in parts]
    factors = [rng.choice(["0.5", "0.9", "1", "1.01"]) for _ in plain]
    policy = sum((part * factor for part, factor in zip(plain, factors)), Policy())
    if kind == 2:
        return sum(plain, constant(positive(rng) / 100)), policy
    return maximum([sum(plain, Policy()), constant(positive(rng))]), policy


@pytest.mark.parametrize("pairs", few([200, 5000], 1))
@pytest.mark.costly
def test_no_yes_is_refuted_by_search_and_every_no_has_a_witness(pairs: int) -> None:
    rng = Random(11)
    counts = {"yes": 0, "no": 0, "undecided": 0}
    for _ in range(pairs):
        budget, policy = related_pair(rng)
        verdict = budget.dominates(policy, seconds=0.1)
        counts[verdict.answer] += 1
        if verdict:
            assert attack(policy, budget, rng) is None
        if verdict.answer == "no":
            assert verdict.witness is not None
            assert surely_above(policy, budget, filled(verdict.witness))
    assert counts["yes"] > pairs // 3
    assert counts["no"] > pairs // 3
    assert counts["undecided"] < pairs // 20


def filled(witness: dict[str, Any]) -> dict[str, Any]:
    """A witness names the columns both policies look at; the others are arbitrary."""
    return {**random_record(Random(0)), **witness}


@pytest.mark.theorem("T-ENVELOPE")
@pytest.mark.costly
def test_random_concave_functions_are_compared_at_every_magnitude() -> None:
    rng = Random(12)
    answers = []
    for _ in range(250):
        measure = rng.choice([EMP, PAY, NET])
        kind = rng.choice(["pure", "tanh"])
        f, g = random_function(rng), random_function(rng)
        limit = additive(measure, f, bound="pure") * positive(rng) + constant(positive(rng))
        spent = additive(measure, g, bound=kind) * positive(rng)
        if rng.random() < 0.5:
            condition = compare(measure.name, ">=", measure.step * 2 ** rng.randint(1, 40))
            limit, spent = limit.where(condition), spent.where(condition)
        verdict = limit.dominates(spent, seconds=0.1)
        answers.append(verdict.answer)
        points = [measure.step * (2**e + d) for e in range(0, 1200, 29) for d in (0, 1)]
        above = [point for point in points if surely_above(spent, limit, {measure.name: point})]
        if verdict:
            assert not above
        if verdict.answer == "no":
            assert surely_above(spent, limit, verdict.witness or {})
    assert answers.count("undecided") < 25


@pytest.mark.theorem("T-COVER")
def test_a_split_budget_covers_the_gaussian_sum_it_pays_for() -> None:
    rho, at = Fraction(1, 10), 50
    tight = gaussian_sum("emp", sigma=50)
    budget = split(rho, {"emp": at})
    assert budget.dominates(tight * (rho * 2))
    assert budget.dominates(tight * (rho * 2 + Fraction(1, 1000))).answer == "no"


@pytest.mark.theorem("T-COVER")
def test_finer_splitting_covers_coarser_splitting_at_the_proved_ratio() -> None:
    for coarse, fine in itertools.product([10, 30, 70], [3, 7, 10]):
        ratio = ceil(coarse / fine) ** 2
        assert split(ratio, {"emp": coarse}).dominates(split(1, {"emp": fine}))
        assert split(1, {"emp": min(coarse, fine)}).dominates(split(1, {"emp": max(coarse, fine)}))
        assert split(ratio - Fraction(1, 100), {"emp": coarse}).dominates(split(1, {"emp": fine})).answer == "no"


@pytest.mark.costly
def test_spending_exactly_the_budget_is_a_yes_and_a_hair_more_is_a_no() -> None:
    rng = Random(13)
    for _ in range(200):
        policy = random_policy(rng)
        assert policy.dominates(policy)
        hair = constant(Fraction(1, 10**15))
        verdict = policy.dominates(policy + hair)
        assert verdict.answer == "no"
        assert surely_above(policy + hair, policy, filled(verdict.witness or {}))


def test_a_sum_of_parts_that_add_up_to_the_budget_is_a_yes() -> None:
    part = split("1/3", {"emp": 7}) + gaussian_sum("emp", sigma=3)
    assert (part * 3).dominates(part + part + part)
    assert (part * 3).dominates(sum([part] * 4, Policy())).answer == "no"


def test_unbounded_values_decide_where_growth_differs() -> None:
    quadratic, flat = gaussian_sum("emp", sigma=1000000), constant(10**9)
    verdict = flat.dominates(quadratic)
    assert verdict.answer == "no"
    assert verdict.witness is not None
    assert verdict.witness["emp"] > 10**9
    slow = gaussian_transform("emp", log(x + 1), sigma=1, grid="0.01")
    assert (quadratic + constant(1000)).dominates(slow)
    assert (slow * 1000 + constant(10**6)).dominates(quadratic).answer == "no"


@pytest.mark.theorem("T-ENVELOPE")
def test_a_logarithm_that_starts_below_zero_is_not_underestimated_at_infinity() -> None:
    steep = additive("emp", log(x + Fraction(1, 10**9)), bound="pure")
    flat = additive("emp", log(x + 1), bound="pure")
    far = compare("emp", ">", 2**30)
    assert (flat * "1.01").where(far).dominates(steep.where(far)).answer == "no"
    assert (flat * 2 + constant(21)).dominates(steep)


@pytest.mark.theorem("T-REGIONS")
def test_a_budget_by_group_is_compared_group_by_group() -> None:
    budget = split(1, {"emp": by("industry", {"Mining": 100, "Retail": 10}, default=50)})
    same = split(1, {"emp": 100}).where(among("industry", ["Mining"]))
    assert budget.dominates(same)
    wrong = split(1, {"emp": 10}).where(among("industry", ["Mining"]))
    verdict = budget.dominates(wrong)
    assert verdict.answer == "no"
    assert verdict.witness is not None
    assert verdict.witness["industry"] == "Mining"


@pytest.mark.theorem("T-REGIONS")
def test_a_witness_lies_in_the_region_it_was_found_in() -> None:
    budget = constant(10**6)
    policy = gaussian_sum("emp", sigma=1).where(compare("emp", ">=", 2**20))
    verdict = budget.dominates(policy)
    assert verdict.answer == "no"
    assert verdict.witness is not None
    assert verdict.witness["emp"] >= 2**20
    assert policy.loss(verdict.witness) > 10**6


def test_truth_values_and_numbers_are_different_groups() -> None:
    one, true = constant(1).where(among("flag", [1])), constant(1).where(among("flag", [True]))
    assert one != true
    assert len((one + true).rho) == 2
    assert one.dominates(true).answer == "no"
    assert one.loss({"flag": True}) == 0
    assert true.loss({"flag": True}) == 1
    assert list(true.loss({"flag": [True, 1, False]})) == [1, 0, 0]


def test_no_promise_is_within_no_promise_and_nothing_else() -> None:
    budget = split(1, {"emp": by("industry", {"Mining": 10})})
    half = split("1/2", {"emp": by("industry", {"Mining": 10})})
    assert budget.dominates(half + half)
    assert budget.dominates(half + constant("1/2").where(among("industry", ["Mining"])))
    assert budget.dominates(half + constant("1/2"))
    assert constant(10**9).dominates(budget).answer == "no"


@pytest.mark.parametrize("with_delta", [True, False])
def test_a_budget_without_delta_refuses_a_selection(with_delta: bool) -> None:
    deltas = ((1, Fraction(1, 10**6)), (5, Fraction(1, 100)))
    choice = selection(2, {"emp": 50}, deltas)
    budget = constant(10**9) + split(10**6, {"emp": 50})
    verdict = (budget + choice if with_delta else budget).dominates(choice)
    assert verdict.answer == ("yes" if with_delta else "no")
    if not with_delta:
        assert "delta" in verdict.reason


def test_the_certified_table_is_within_the_bound_from_epsilon_alone() -> None:
    f = (x / 10) ** "1/2"
    table = additive_table("emp", f, ((1, Fraction(1, 100)), (2, Fraction(1, 50)), (10, Fraction(1, 10))))
    assert additive("emp", f, bound="tanh").dominates(table)
    assert additive("emp", f, bound="pure").dominates(table)
    wrong = additive_table("emp", f, ((1, Fraction(1)), (2, Fraction(2))))
    assert additive("emp", f, bound="tanh").dominates(wrong).answer == "no"


def test_too_many_combinations_and_too_little_time_are_undecided_not_yes() -> None:
    many, fewer = (
        sum((constant(1).where(among(f"c{column}", list(map(str, range(size))))) for column in range(8)), Policy())
        for size in (20, 19)
    )
    verdict = many.dominates(fewer)
    assert verdict.answer == "undecided"
    assert not verdict
    assert "refusal" in verdict.reason
    f = laplace_transform("emp", log(x + 1), scale=1, grid="0.001")
    assert (f + constant(1)).dominates(f * "1.1", seconds=0.0).answer == "undecided"


def test_a_measure_with_two_steps_cannot_be_compared() -> None:
    with pytest.raises(ParameterError, match="emp"):
        gaussian_sum("emp", sigma=1).dominates(gaussian_sum(Measure("emp", Fraction(1, 10)), sigma=1))


def test_a_verdict_counts_as_true_only_when_it_is_a_yes() -> None:
    assert Verdict(answer="yes", reason="")
    assert not Verdict(answer="no", reason="")
    assert not Verdict(answer="undecided", reason="")


def test_the_witness_of_no_promise_is_a_record_the_policy_cannot_answer_for() -> None:
    policy = split(1, {"emp": by("industry", {"Mining": 10})})
    verdict = constant(10**9).dominates(policy.where(among("industry", ["Retail"])))
    assert verdict.answer == "no"
    with pytest.raises(RecordError):
        policy.loss(verdict.witness)


@pytest.mark.theorem("T-REGIONS")
@pytest.mark.parametrize(("low", "high"), [(1, 3), (0, Fraction(1, 10)), (-5, -4), (Fraction(1, 3), Fraction(1, 2))])
def test_the_numbers_between_two_literals_are_looked_at(low: Fraction, high: Fraction) -> None:
    """No literal lies inside, none outside: only a number strictly between the two has a loss above the budget."""
    between = constant(1).where(compare("size", ">", low) & compare("size", "<", high))
    verdict = constant("0.5").dominates(between)
    assert verdict.answer == "no"
    assert low < verdict.witness["size"] < high
    assert constant(1).dominates(between)
    inside = constant(1).where(compare("emp", ">", 1) & compare("emp", "<", 3))
    assert constant("0.5").dominates(inside + gaussian_sum("emp", sigma=10**6)).witness == {"emp": 2}


@pytest.mark.theorem("T-ENVELOPE")
def test_a_gain_whose_growth_is_not_known_is_not_taken_for_none() -> None:
    """x**0.9 + ln(ln(x+3) + 1) has no gauge; it passes 10**8 sqrt(x) at 10**20, beyond every point that is probed."""
    spent = additive("emp", x ** "9/10" + log(log(x + 3) + 1), bound="pure")
    limit = additive("emp", x ** "1/2" * 10**8, bound="pure")
    assert not any(surely_above(spent, limit, {"emp": 2**exponent}) for exponent in range(64))
    verdict = limit.dominates(spent)
    assert verdict.answer == "no"
    assert verdict.witness["emp"] > 10**19
    assert surely_above(spent, limit, verdict.witness)
    unknown = additive("emp", log(log(x + 3) + 1), bound="pure")
    assert not constant(1).dominates(unknown)


def test_every_part_of_a_maximum_that_is_spent_must_be_covered():
    """Whichever comes first: a small constant is covered, and a sum or a part for some groups only is not."""
    covered = constant(1)
    for other in (gaussian_sum("emp", sigma=1), constant(3), split(2, {"emp": 10})):
        for parts in ((covered, other), (other, covered)):
            assert constant(2).dominates(maximum(parts)).answer == "no"
            both = maximum(parts) + gaussian_sum("pay", sigma=5)
            assert (constant(2) + gaussian_sum("pay", sigma=5)).dominates(both).answer == "no"
    assert constant(2).dominates(maximum([covered, constant("3/2")]))


def test_more_combinations_of_maxima_than_are_tried_are_undecided_not_covered() -> None:
    """Seven maxima of two constants: of 128 combinations only those tried last, with the first maximum at its top, exceed."""
    maxima = [maximum([constant(Fraction(1, 10 + k)), constant(Fraction(9, 10 + k))]) for k in range(7)]
    spent = sum(maxima, Policy())
    most = sum((Fraction(9, 10 + k) for k in range(7)), Fraction(0))
    for short in (Fraction(1, 100), *(Fraction(8, 10 + k) for k in range(7))):
        assert surely_above(spent, constant(most - short), {})
        assert not constant(most - short).dominates(spent)
    six = sum(maxima[:6], Policy())
    assert constant(most).dominates(six)
