"""An excess over a budget is found however narrow its place: one region, one step, one magnitude."""

from fractions import Fraction

import numpy as np
import pytest

from recordwise.exact.functions import log, x
from recordwise.policy import (
    ConditionColumn,
    Measure,
    Null,
    Policy,
    additive,
    among,
    compare,
    constant,
    gaussian_sum,
    maximum,
    split,
)
from recordwise.policy.constructors import additive_table
from recordwise.policy.dominance import prove
from recordwise.policy.dominance.boxes import Outcome, Search
from recordwise.policy.dominance.shares import Separable

SIGNED = gaussian_sum(Measure("net", signed=True), sigma=10**6)
WHOLE = gaussian_sum("emp", sigma=10**6)
STARTS_WITH_44 = among(ConditionColumn("naics", 2), ["44"])
PLACES = {
    "below the first number": constant(1).where(compare("size", "<", 1)),
    "above the last number": constant(1).where(compare("size", ">", 3)),
    "at a number": constant(1).where(among("size", [3])),
    "no number": constant(1).where(Null(ConditionColumn("size"))) + constant("0.1").where(compare("size", ">", 3)),
    "a listed text": constant(1).where(among("county", ["a"])),
    "a text that is not listed": constant(1).where(among("county", ["a"], inside=False)),
    "a prefix alone": constant(1).where(STARTS_WITH_44 & among("naics", ["44"])),
    "a prefix and more": constant(1).where(STARTS_WITH_44 & among("naics", ["44"], inside=False)),
    "false": constant(1).where(among("flag", [False])),
    "neither true nor false": constant(1).where(among("flag", [True, False], inside=False)),
    "one step between two bounds off it": WHOLE + constant(1).where(compare("emp", ">", "2.5") & compare("emp", "<", "3.5")),
    "the last step before a bound": WHOLE + constant(1).where(compare("emp", "<", 7) & compare("emp", ">", 5)),
    "nothing": WHOLE + constant(1).where(compare("emp", "<=", 0)),
    "negative": SIGNED + constant(1).where(compare("net", "<", -2)),
    "a little negative": SIGNED + constant(1).where(compare("net", "<", 0) & compare("net", ">", -2)),
    "inside a maximum": maximum([constant("0.1"), constant(1).where(compare("size", ">", 3))]),
    "the second of a maximum": maximum([constant("0.1"), constant("0.2"), constant(1)]),
}  # fmt: skip


@pytest.mark.theorem("T-REGIONS")
@pytest.mark.parametrize("place", PLACES)
def test_a_loss_above_the_budget_is_found_wherever_it_is(place: str) -> None:
    spent, rest = PLACES[place], (SIGNED + WHOLE) * 2
    verdict = (constant("0.5") + rest).dominates(spent)
    assert verdict.answer == "no"
    assert verdict.witness is not None
    assert spent.loss({"size": None, **verdict.witness}) > 0.5
    assert (constant(1) + rest).dominates(spent)


def narrow(spent: Policy, limit: Policy, *, hair: Fraction = Fraction(1, 1000)) -> tuple[Policy, Policy]:
    """A budget that is passed by a hair at the worst number of employees, and one that surely is not."""
    amounts = np.arange(100_000, dtype=np.float64)
    excess = spent.loss({"emp": amounts}) - limit.loss({"emp": amounts})
    most = Fraction(float(excess.max()))
    return limit + constant(most - hair * abs(most)), limit + constant(most + abs(most) / 10)


@pytest.mark.theorem("T-ENVELOPE")
@pytest.mark.parametrize(
    ("spent", "limit"),
    [
        # The maximum of a logarithm less a root lies at 400, between two numbers that are probed.
        (additive("emp", 10 * log(x + 1), bound="pure"), additive("emp", x ** "1/2", bound="pure")),
        # A piece begun costs more than its share: worst at ninety pieces, beyond where growth may be asked to decide.
        (split(1, {"emp": 10}), gaussian_sum("emp", sigma=1) * (Fraction(2, 100) * (1 + Fraction(1, 100)))),
        # eps - 1.01 eps tanh(eps/2) is largest at eps = 1.28, again between two numbers that are probed.
        (
            additive("emp", x ** "1/2" * Fraction(6, 640), bound="pure"),
            additive("emp", x ** "1/2" * Fraction(6, 640), bound="tanh") * Fraction(101, 100),
        ),
    ],
    ids=["log and root", "pieces and squares", "pure and tanh"],
)
def test_an_excess_by_a_hair_at_one_magnitude_is_found_and_a_tenth_more_is_enough(spent: Policy, limit: Policy) -> None:
    passed, kept = narrow(spent, limit)
    verdict = passed.dominates(spent, seconds=60)
    assert verdict.answer == "no"
    assert verdict.witness is not None
    assert passed.loss(verdict.witness) < spent.loss(verdict.witness)
    assert kept.dominates(spent, seconds=60)


@pytest.mark.theorem("T-ENVELOPE")
def test_the_rise_of_what_begins_below_zero_is_not_taken_for_its_value() -> None:
    """ln(x + 0.000001) rises by 13.8 more than it is: against 1.0001 ln(x + 1) it is worst at ten thousand."""
    spent = additive("emp", log(x + Fraction(1, 10**6)), bound="pure")
    limit = additive("emp", log(x + 1), bound="pure") * (1 + Fraction(1, 10**4))
    passed, _ = narrow(spent, limit, hair=Fraction(1, 10**6))
    assert passed.dominates(spent, seconds=60).answer == "no"


@pytest.mark.theorem("T-COVER")
def test_joint_pieces_are_spent_once_and_pay_for_their_own_measures_only() -> None:
    joint = split(1, {"emp": 10, "pay": 10})
    apart = split(1, {"emp": 10}) + split(1, {"pay": 10})
    assert joint.dominates(apart).answer == "no"
    assert (joint * Fraction(3, 2)).dominates(apart).answer == "no"
    assert split(1, {"emp": 10}).dominates(joint).answer == "no"
    assert split(1, {"pay": 1}).dominates(split(1, {"emp": 10})).answer == "no"


@pytest.mark.theorem("T-COVER")
def test_a_table_is_within_the_formula_only_if_each_entry_is_from_its_first_step_on() -> None:
    """The entry for 2 to 100 steps is below the formula at 100 and above it at 2."""
    f = (x / 10) ** "1/2"
    formula = additive("emp", f, bound="tanh")
    level = Fraction(formula.loss({"emp": 100})) * Fraction(9, 10)
    table = additive_table("emp", f, ((1, Fraction(1, 10**6)), (100, level)))
    assert table.loss({"emp": 2}) > formula.loss({"emp": 2})
    assert formula.dominates(table).answer == "no"


@pytest.mark.parametrize("reach", [None, 10])
def test_what_is_neither_proved_nor_refuted_is_no_yes(monkeypatch: pytest.MonkeyPatch, reach: int | None) -> None:
    ends = None if reach is None else {Measure("emp"): reach}
    monkeypatch.setattr(prove, "bound_by_shares", lambda *_: Separable(certain=False, reach=ends, support={}))
    monkeypatch.setattr(Search, "run", lambda *_, **__: Outcome(certain=False))
    budget, spent = gaussian_sum("emp", sigma=1) + constant(1), additive("emp", log(x + 1), bound="tanh")
    verdict = budget.dominates(spent)
    assert verdict.answer == "undecided"
    monkeypatch.setattr(Search, "run", lambda *_, **__: Outcome(certain=True))
    assert budget.dominates(spent).answer == ("undecided" if reach is None else "yes")
