"""Policies and budgets in pure epsilon: their algebra, saved form, proofs, groups and meaning."""

import json
import math
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pytest
import quickjs

import recordwise as rw
from recordwise.errors import ParameterError, UnknownFormError
from recordwise.exact.functions import log, x
from recordwise.policy import (
    Measure,
    Policy,
    additive,
    among,
    constant,
    gaussian_sum,
    group_epsilon,
    laplace_sum,
    laplace_transform,
    maximum,
    meaning,
    pieces,
    power_pure,
    pure_budget,
    pure_constant,
    pure_split,
    pure_to_zcdp,
    replacement_loss,
    selection,
    split,
)
from recordwise.policy.evaluate.javascript import policy_javascript
from recordwise.policy.policy import restates

EMP = Measure("emp")
LAPLACE = laplace_sum("emp", scale=10, grid=1)
PARTS: dict[str, tuple[Policy, float]] = {
    "laplace sum": (LAPLACE, 12.0),
    "tanh": (additive("emp", log(1 + x / 10)), math.log(13)),
    "count": (pure_constant("0.3"), 0.3),
    "pieces": (pure_split({"emp": 50}, epsilon="0.2"), 0.6),
    "transform": (laplace_transform("emp", log(x + 1), scale=2, grid=Fraction(1, 1024)), (math.log(121) + 2**-10) / 2),
    "maximum": (maximum([pure_constant(1), pure_constant(2)]), 2.0),
}


@pytest.mark.theorem("T-PURE")
@pytest.mark.parametrize("name", PARTS)
def test_every_part_has_the_pure_loss_of_its_mechanism_in_every_form(name: str) -> None:
    policy, epsilon = PARTS[name]
    pure = policy.pure()
    assert pure.is_pure
    assert not policy.is_pure
    assert pure.loss({"emp": 120}) == pytest.approx(epsilon, rel=1e-12)
    assert policy.epsilon_pure({"emp": [120, 120]}) == pytest.approx(epsilon, rel=1e-9)
    assert (policy * 2 + LAPLACE).epsilon_pure({"emp": 120}) == pytest.approx(2 * epsilon + 12, rel=1e-12)
    assert policy.where(among("state", ["06"])).epsilon_pure({"emp": 120, "state": "36"}) == 0
    # A release may have a smaller zCDP loss than its epsilon alone says, never a larger one.
    assert policy.loss({"emp": 120}) <= pure_to_zcdp(epsilon) * (1 + 1e-9)
    for each in (policy, pure):
        again = Policy.from_json(json.loads(json.dumps(each.to_json())))
        assert again == each
        assert again.unit == each.unit
    found = quickjs.Context()
    found.eval(f"const policy = {policy_javascript(pure)};")
    assert found.eval("policy({emp: 120}).rho") == pytest.approx(epsilon, rel=1e-9)
    ((answer,),) = duckdb.connect().execute(f"SELECT {pure.to_sql()} FROM (SELECT 120 AS emp)").fetchall()
    assert answer == pytest.approx(epsilon, rel=1e-9)
    assert pure.to_latex()
    assert pure.in_words()
    assert pure._repr_html_()


@pytest.mark.parametrize(
    "policy",
    [
        gaussian_sum("emp", sigma=3),
        constant(1),
        split(1, {"emp": 5}),
        LAPLACE * Fraction(1, 2),
        LAPLACE + selection(1, {"emp": 5}, ((1, Fraction(1, 1000)),)),
        maximum([LAPLACE, constant(1)]),
    ],
)
def test_what_has_no_pure_loss_says_so(policy: Policy) -> None:
    assert policy.pure_problem()
    with pytest.raises(ParameterError, match="has no pure epsilon"):
        policy.pure()
    assert pure_budget(100, {"emp": 1}).dominates(policy).answer == "no"


def test_pure_and_zcdp_losses_never_mix() -> None:
    for one, other in ((LAPLACE.pure(), LAPLACE), (pure_budget(1), constant(1))):
        with pytest.raises(ParameterError, match="different units"):
            one + other
        with pytest.raises(ParameterError, match="different units"):
            maximum([one, other])
    assert pure_budget(1) + Policy() == pure_budget(1)
    assert pure_budget(1) != constant(1)
    assert not restates(pure_budget(1), constant(1))
    assert constant(100).dominates(LAPLACE.pure()).answer == "no"
    with pytest.raises(ParameterError):
        Policy(constant(1).rho, selection(1, {}, ((1, Fraction(1, 9)),)).delta_terms, False, "epsilon")


def test_older_versions_refuse_the_saved_form_of_a_pure_policy_and_this_one_refuses_its_misreadings() -> None:
    form = pure_budget(1).to_json()
    # Version 1 is all that earlier versions accept.
    assert form["recordwise_policy"] == 2
    assert "rho" not in form
    for wrong in (form | {"recordwise_policy": 1}, form | {"recordwise_policy": 3}, form | {"rho": form["epsilon"]}):
        with pytest.raises(UnknownFormError):
            Policy.from_json(wrong)
    with pytest.raises(UnknownFormError):
        Policy.from_json(constant(1).to_json() | {"recordwise_policy": 2})


@pytest.mark.parametrize(
    ("budget", "policy", "answer"),
    [
        (pure_budget(2), laplace_sum("emp", scale=500, grid=1), "yes"),
        (pure_budget(2), laplace_sum("emp", scale=499, grid=1), "no"),
        (pure_budget("0.3"), pure_constant("0.1") * 3, "yes"),
        (pure_budget("0.3"), pure_constant("0.1") * 4, "no"),
        (pure_budget(1, {"emp": 50}), laplace_sum("emp", scale=50, grid=1), "yes"),
        (pure_budget(1, {"emp": 50}), laplace_sum("emp", scale=49, grid=1), "no"),
        (additive("emp", 2 * log(1 + x / 10)).pure() + pure_budget(1), additive("emp", log(1 + x / 5)), "yes"),
        (additive("emp", log(1 + x / 10)).pure(), laplace_sum("emp", scale=10, grid=1), "no"),
        (pure_budget(8), laplace_transform("emp", log(x + 1), scale=1, grid=Fraction(1, 1024)), "yes"),
        (pure_budget(6), laplace_transform("emp", log(x + 1), scale=1, grid=Fraction(1, 1024)), "no"),
    ],
)
def test_a_pure_budget_is_proved_or_refuted_for_every_record(budget: Policy, policy: Policy, answer: str) -> None:
    found = budget.dominates(policy, bounds={"emp": 1000})
    assert found.answer == answer, found.reason
    if answer == "no":
        assert found.subject == "epsilon"
        record: dict[str, Any] = {"emp": 0} | (found.witness or {})
        assert policy.epsilon_pure(record) > budget.loss(record)


def test_counts_with_a_pure_loss_cost_what_they_cost_before_and_read_the_same() -> None:
    count = rw.GeneralizedGaussian(shape=1, scale=10).policy_of_count()
    loss = rw.GeneralizedGaussian(shape=1, scale=10).policy("emp").loss({"emp": 1})
    assert count.loss({}) == loss
    assert np.all(count.loss({"emp": [1, 2]}) == loss)
    assert repr(count + constant(1)) == repr(constant(Fraction(loss) + 1))
    assert constant(Fraction(loss)).dominates(count)
    assert not constant(Fraction(loss) * Fraction(999, 1000)).dominates(count)
    assert count.dominates(constant(Fraction(loss)))
    assert restates(constant(Fraction(loss)), count)
    assert rw.Gaussian(sigma=10).policy_of_count().pure_problem()


@pytest.mark.theorem("T-PURE")
def test_groups_and_replacements_add_their_epsilons_up() -> None:
    assert group_epsilon([0.1] * 10) == pytest.approx(1)
    assert group_epsilon([0.1] * 10) >= 1
    pure = LAPLACE.pure()
    assert replacement_loss(pure, {"emp": 3}, {"emp": 20}) == pytest.approx(2.3)


@pytest.mark.theorem("T-MEANING")
def test_no_test_is_better_than_randomized_response_which_reaches_the_bound() -> None:
    for epsilon in (0.01, 0.5, 2.0, 5.0, 40.0):
        keep, alarm = 1 / (1 + math.exp(-epsilon)), 0.05
        flip = math.exp(-epsilon) * keep
        # Answer yes on the flipped output always, and on the other with what is left of the false alarms.
        power = keep * min(1, alarm / flip) + (flip * (alarm - flip) / keep if alarm > flip else 0)
        assert power_pure(epsilon) == pytest.approx(power, rel=1e-6, abs=2e-9)
        assert power_pure(epsilon) >= power
    told = meaning(10.0, pure=0.5)
    assert (told.epsilon, told.power, told.pure) == (0.5, power_pure(0.5), 0.5)
    assert meaning(0.001, pure=50.0).epsilon == meaning(0.001).epsilon


def test_a_budget_of_pieces_is_linear_in_the_record() -> None:
    budget = pure_budget("0.1", {"emp": 50})
    assert budget.loss({"emp": [10, 100, 120]}).tolist() == pytest.approx([0.1, 0.2, 0.3])
    assert budget.rho == pieces("0.1", {"emp": 50}).rho
    assert repr(budget) == "Policy(pure epsilon 0.1 * max(1, ceil(emp / 50)))"


def test_no_pure_loss_is_stated_with_a_bad_number() -> None:
    calls: list[Any] = [lambda: pure_budget(0 - 1), lambda: pure_constant(0), lambda: pure_constant(1, rho=0)]
    for call in [*calls, lambda: power_pure(-1.0), lambda: group_epsilon([-1.0])]:
        with pytest.raises(ParameterError):
            call()
