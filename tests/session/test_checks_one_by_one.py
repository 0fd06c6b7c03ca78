"""Checks before a release one by one: who is outside, what a sized release promises, and what would fit a budget that refuses."""

import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import recordwise as rw
from recordwise.errors import BudgetError, OutsideError, ParameterError
from recordwise.ledger.ledger import Ledger
from recordwise.plan import Plan
from recordwise.plan.cost import plan_policy
from recordwise.plan.plan import Sensitive, TableTotals
from recordwise.plan.schema import Schema
from recordwise.plan.statistics import CountUnits, ExactTable
from recordwise.policy import constant, gaussian_sum
from recordwise.policy.constructors import pure_budget
from recordwise.policy.policy import Policy
from recordwise.release.tables import PRIVATE
from recordwise.session import checks
from recordwise.session.checks import Coverage

SCHEMA = Schema.of(unit="id", measures={"emp": 1, "pay": 1}, columns={"naics": "text", "county": "text"})
KEYS = rw.Keys.of({"county": ["1", "2"]})
BY = rw.query().group_by("county", keys=KEYS)
NESTED = {"naics": ["11", "12", "21"]}


def planned(*queries: Any) -> Plan:
    return Plan(schema=SCHEMA, queries=queries)


def found(plan: Plan, counts: list[list[int]]) -> tuple[TableTotals, ...]:
    """Counts of every table that coverage asks for, in its order; of tables without groups one number."""
    made = []
    for table, held in zip(checks.covered_tables(plan), counts, strict=True):
        cells = plan.cells(table) if table.level >= 0 else pa.table({"": [0]})
        exact = ExactTable(cells=len(held), totals={CountUnits(): np.array(held)}, bins={})
        made.append(TableTotals(table=table, cells=cells, exact=Sensitive(exact)))
    return tuple(made)


def numbers(each: Coverage) -> tuple[int, ...]:
    return each.records, each.inside, each.outside, each.in_rests, each.cells, each.empty


def test_records_in_rests_of_coarser_tables_are_inside() -> None:
    """Levels of one and two digits and whole codes: what is in no listed cell is in the rest of the next coarser one."""
    noise = rw.Gaussian(sigma=1)
    asked = rw.query().levels((), rw.prefix("naics", [1, 2]), keys=NESTED, all_other="publish").count(noise)
    plan = planned(asked, rw.query().where("emp > 3").group_by("naics", keys=NESTED).sum("emp", noise))
    tables = checks.covered_tables(plan)
    assert [len(each.shape.groups) for each in tables] == [0, 1, 1, 1, 0, 0]
    assert [each.level for each in tables] == [0, 1, 2, 0, -1, -2]
    assert all(CountUnits() in each.totals for each in tables)
    assert CountUnits() not in plan.tables()[3].totals
    # One digit: 40 and 30 listed, 7 in the rest of the total. Two digits: 20, 0, 25 listed, 18 and 5 in rests of digits.
    held = found(plan, [[80], [40, 30, 7], [20, 0, 25, 18, 5], [9, 0, 1], [80], [15]])
    one, two, other = checks.coverage(plan, held)
    assert numbers(one) == (80, 77, 3, 7, 3, 0)
    assert numbers(two) == (80, 75, 5, 30, 5, 1)
    assert numbers(other) == (15, 10, 5, 0, 3, 1)
    own = checks.without_counts(plan, held)
    assert [each.table for each in own] == list(plan.tables())
    assert checks.public_tables(plan) == tuple(plan.tables()[1:])


@pytest.mark.parametrize(
    ("outside", "share", "many"), [(1, "1/100", False), (2, "1/100", True), (0, "0", False), (1, "0", True)]
)
def test_a_share_of_records_may_be_outside_and_one_more_may_not(outside: int, share: str, many: bool) -> None:
    def table(records: int, inside: int) -> Coverage:
        return Coverage(name="t", table=None, records=records, inside=inside, in_rests=0, cells=1, empty=0)  # type: ignore[arg-type]

    full, other = table(500, 500), table(100, 100 - outside)
    assert checks.too_many_outside((full, other), Fraction(share)) == many
    if not many:
        checks.check_coverage((full, other), Fraction(share))
        return
    with pytest.raises(OutsideError):
        checks.check_coverage((full, other), Fraction(share))


def test_the_share_outside_is_below_1() -> None:
    assert [checks.read_outside(each) for each in (None, "accept", 0, "0.25")] == [None, None, 0, Fraction(1, 4)]
    for wrong in (1, -1, "-0.001", "1.5"):
        with pytest.raises(ParameterError, match="max_outside"):
            checks.read_outside(wrong)
    assert checks.read_outside("0.999") == Fraction(999, 1000)


SIZED = rw.Keys.of({"county": ["1", "2"], "s": [5, 900]}, size={"emp": "s"}, sized_on="public: a table")


def test_what_a_sized_release_promises_depends_on_its_sizes_and_its_ledger() -> None:
    sized = rw.query().group_by("county", keys=SIZED).sum("emp", rw.Sized(rw.Gaussian(sigma="0.1"), floor=50))
    plain = rw.query().group_by("county", keys=SIZED).sum("emp", rw.Gaussian(sigma=5))
    ledger: Any = SimpleNamespace(series=None, amendments=lambda: (), budget=constant(1), history=list)
    assert checks.promise(planned(plain), ledger) == ""
    assert checks.promise(planned(BY.count(rw.Gaussian(sigma=1))), ledger) == ""
    assert checks.promise(planned(sized), ledger) == checks.FROM_ELSEWHERE
    assert list(checks.size_sources(planned(sized))) == ["public: a table"]
    assert checks.size_sources(planned(plain)) == {}
    assert SIZED.sizes is not None
    ours = rw.Keys(SIZED.domain, sizes=replace(SIZED.sizes, sized_on=("release abc",)))
    plan = planned(rw.query().group_by("county", keys=ours).sum("emp", rw.Sized(rw.Gaussian(sigma="0.1"), floor=50)))
    events = [
        SimpleNamespace(kind="opened", sequence=1, body={"budget": {}}),
        SimpleNamespace(kind="charged", sequence=2, body={}),
        SimpleNamespace(kind="released", sequence=3, body={"digest": "abc", "charge": 2, "mark": PRIVATE}),
    ]
    known: Any = SimpleNamespace(series=None, amendments=lambda: (), budget=constant(1), history=lambda: events)
    assert checks.promise(plan, known) == checks.WITHIN_BUDGET
    known.series = "s"
    assert checks.promise(plan, known) == checks.WITHIN_BUDGETS
    known.amendments = lambda: (1,)
    assert checks.promise(plan, known) == checks.SINCE_AMENDED
    assert checks.promise(plan, ledger) == checks.NOTHING_PROMISED
    checks.check_release_sizes(plan, known)
    for refusing, advice in ((ledger, "publish on the ledger"), (SimpleNamespace(budget=None), "Declare a budget")):
        with pytest.raises(rw.errors.KeysError, match=advice):
            checks.check_release_sizes(plan, refusing)


def refused(plan: Plan, budget: Policy, *, reserve: int = 0, spent: Policy | None = None) -> BudgetError:
    ledger = Ledger(None, dataset="d", budget=budget, reserve=reserve)
    if spent is not None:
        ledger.charge(spent, query="before")
    with pytest.raises(BudgetError) as caught:
        ledger.check(plan_policy(plan), query="plan")
    return checks.explain_refusal(caught.value, plan, ledger)


def test_a_refusal_by_a_hair_says_by_how_much() -> None:
    """At six digits, what is needed and what is left would be the same number."""
    plan = planned(BY.count(rw.Gaussian(rho="0.1")).sum("emp", rw.Gaussian(sigma=10_000)))
    found = refused(plan, constant("0.1"))
    assert "it needs loss 0.1 and 5e-09 less is left" in str(found)
    closer = refused(planned(BY.count(rw.Gaussian(sigma=1))), constant("0.49999999999999999999"))
    assert "it needs loss 0.5 and slightly less is left" in str(closer)
    assert "it needs loss 0.1 and 0.09 is left" in str(
        refused(planned(BY.count(rw.Gaussian(rho="0.1"))), constant("0.09"))
    )


def test_the_way_to_a_larger_budget_is_that_of_the_period_in_force() -> None:
    """A series has a budget for each period: what an earlier one was charged does not make it necessary to amend this one."""
    for period, way in (("2026", "ledger amend"), ("2027", "[[budget]] in the plan: nothing was charged to it yet")):
        events = [SimpleNamespace(kind="charged", body={"period": "2026"})]
        ledger: Any = SimpleNamespace(history=lambda events=events: events, period=period)
        assert way in checks._larger_budget(ledger)


def test_a_refusal_names_what_needs_most_and_ways_that_fit() -> None:
    """The sum costs emp^2/200 and the count 1/2; the budget allows two fifths of both."""
    asked = (
        BY.count(rw.Gaussian(sigma=1))
        .sum("emp", rw.Gaussian(sigma=10))
        .sum("pay", rw.Gaussian(sigma=30), alias="wages")
    )
    plan = planned(asked)
    budget = plan_policy(plan) * Fraction(2, 5)
    found = refused(plan, budget)
    assert found.witness is not None
    lines = [*found.ways]
    assert lines[0] == "What would fit, each alone:"
    factor = f"{0.4**-0.5:.2f}"
    assert lines[1] == f"- all noise {factor} times as large, at 0.4 of the loss that the plan asks for:"
    assert lines[2] == "    # query 1"
    sigmas = [float(line.partition("sigma = ")[2].split()[0].strip(",}")) for line in lines[3:6]]
    assert sigmas == pytest.approx([each * 0.4**-0.5 for each in (1, 10, 30)], rel=1e-3)
    assert sigmas >= [each * 0.4**-0.5 for each in (1, 10, 30)]
    assert lines[6:] == ["- a larger [[budget]] in the plan: nothing was charged to it yet"]


def test_a_reserve_a_statistic_or_a_query_may_be_left_out() -> None:
    count, total = BY.count(rw.Gaussian(sigma=1)), BY.sum("emp", rw.Gaussian(sigma=10))
    plan = planned(BY.count(rw.Gaussian(sigma=1)).sum("emp", rw.Gaussian(sigma=10)))
    budget = plan_policy(plan) * Fraction(3, 2)
    ways = refused(plan, budget, reserve=1).ways
    assert "- the plan without a reserve: reserve = { revisions = 0 }" in ways
    assert not any("revisions" in line for line in refused(plan, plan_policy(plan) * Fraction(9, 10), reserve=1).ways)
    # Only the sum is beyond its budget.
    narrow = constant(2) + gaussian_sum("emp", sigma=20)
    found = refused(plan, narrow)
    assert "- the plan without sum_emp" in found.ways
    assert "sum_emp in table county" in found.most
    two = refused(planned(count.named("small"), total.named("large")), narrow)
    assert "- the plan without query large" in two.ways
    assert "    # query small" in two.ways
    third = refused(planned(count, total), narrow)
    assert "- the plan without query 2" in third.ways
    assert "    # query 2" in third.ways
    again = refused(plan, narrow + plan_policy(plan), spent=plan_policy(plan))
    assert again.ways[-1] == "- a larger budget, which the page then says: recordwise ledger amend PLAN --reason TEXT"
    alone = refused(planned(total), gaussian_sum("emp", sigma=20))
    assert alone.most == ""
    assert not any("the plan without" in line for line in alone.ways)


def test_what_needs_another_statistic_is_not_left_alone() -> None:
    asked = BY.count(rw.Gaussian(sigma=1)).sum("emp", rw.Gaussian(sigma=10)).ratio("sum_emp", "count", alias="each")
    left = [name for name, _ in checks._without_one(planned(asked))]
    assert left == ["each"]
    both = BY.count(rw.Gaussian(sigma=1)).sum("emp", rw.Gaussian(sigma=10))
    assert [name for name, _ in checks._without_one(planned(both))] == ["count", "sum_emp"]
    assert list(checks._without_one(planned(BY.count(rw.Gaussian(sigma=1))))) == []


def test_gaussian_noise_under_a_pure_budget_is_told_its_laplace_noise() -> None:
    asked = (
        BY.count(rw.Gaussian(sigma=2)).sum("emp", rw.Gaussian(sigma=10)).sum("pay", rw.Clamped(to=9, rho=1), alias="c")
    )
    plan = planned(asked.sum("pay", rw.GeneralizedGaussian(shape=1, scale=9), alias="pure"))
    ledger = Ledger(None, dataset="d", budget=pure_budget(1))
    refusal = BudgetError(query="q", witness=None, needed=math.nan, left=math.nan, reason="x")
    found = checks.explain_refusal(refusal, plan, ledger)
    assert found.most == "Without a pure epsilon: count, sum_emp, c."
    assert [*found.ways][2:] == [
        f'- count: {{ kind = "GeneralizedGaussian", shape = 1, scale = {2 / 2**0.5:.2f} }}',
        f'- sum_emp: {{ kind = "GeneralizedGaussian", shape = 1, scale = {10 / 2**0.5:.2f} }}',
    ]
    pure = planned(BY.sum("pay", rw.GeneralizedGaussian(shape=1, scale=9)))
    for given, own in ((pure, ledger), (plan, Ledger(None, dataset="d", budget=constant(1)))):
        assert "pure epsilon" not in str(checks.explain_refusal(refusal, given, own))


def test_a_refusal_without_a_proof_says_what_was_charged_before_and_what_may_fit() -> None:
    plan = planned(BY.count(rw.Gaussian(sigma=1)))
    ledger = Ledger(None, dataset="d", budget=constant(1))
    refusal = BudgetError(query="q", witness=None, needed=math.nan, left=math.nan, reason="x")
    found = checks.explain_refusal(refusal, plan, ledger)
    assert (found.witness, found.reason, found.most) == (None, "x", "")
    assert found.ways[-1] == "- a larger [[budget]] in the plan: nothing was charged to it yet"
    ledger.charge(constant(Fraction(1, 2)), query="before")
    found = checks.explain_refusal(refusal, plan, ledger)
    assert found.summary == (
        "the budget does not cover q: it could not be proved to fit (x). "
        "The budget was charged before, for this release or another. Nothing was spent."
    )
    assert found.ways == (
        "What may fit:",
        "- more noise, or fewer statistics",
        "- a larger budget, which the page then says: recordwise ledger amend PLAN --reason TEXT",
    )
