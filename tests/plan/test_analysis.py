"""The policy of a plan before any data: tables add up, conditions limit it, mixed cells follow their largest threshold."""

from dataclasses import dataclass, replace
from fractions import Fraction

import pyarrow as pa
import pytest

from recordwise.errors import PlanError
from recordwise.mechanisms import Clamped
from recordwise.mechanisms.base import Mechanism
from recordwise.plan import Column, Field, Group, Keys, Plan, Prefix, Schema, prefix
from recordwise.plan.cost import cell_mechanisms, cell_threshold, cells_by_threshold, plan_policy
from recordwise.plan.describe import plan_warnings
from recordwise.plan.expressions import Compare, DatePart, Not, finer
from recordwise.plan.expressions import condition as policy_condition
from recordwise.plan.query import query
from recordwise.plan.statistics import Sum, SumSteps
from recordwise.policy import By, by, constant, gaussian_sum, split
from recordwise.policy import ConditionColumn as PolicyColumn
from recordwise.policy.columns import literal
from recordwise.policy.conditions import holds

SCHEMA = Schema.of(
    unit="id",
    measures={"emp": 1, "pay": "0.01"},
    columns={"county": "text", "naics": "text", "kind": Column(name="kind", null="category")},
)
KEYS = Keys.of({"county": ["01", "01", "02"], "naics": ["3111", "4411", "3111"]})


@dataclass(frozen=True)
class Split(Mechanism):
    """Unit splitting of a plain sum: tight rho (x/T)^2, as printed rho pieces^2."""

    at: object
    rho: Fraction = Fraction(1, 10)

    def threshold(self, measure):
        return self.at

    def resolved(self, at):
        return replace(self, at=at)

    def shared(self, share):
        return replace(self, rho=self.rho * share)

    def policy(self, measure, *, tight=True):
        if not tight:
            return split(self.rho, {measure: self.at})
        if not isinstance(self.at, By):
            return gaussian_sum(measure, sigma=1) * (2 * self.rho / self.at**2)
        total = constant(0)
        for condition, at in self.at.cases():
            total += (gaussian_sum(measure, sigma=1) * (2 * self.rho / at**2)).where(condition)
        return total


@dataclass(frozen=True)
class Constant(Mechanism):
    rho: Fraction

    def policy(self, measure, *, tight=True):
        raise AssertionError("a count has no measure")

    def policy_of_count(self):
        return constant(self.rho)

    def shared(self, share):
        return replace(self, rho=self.rho * share)


COUNT, SUM = Constant(Fraction(1, 20)), Split(Fraction(50))


def plan_of(*queries):
    return Plan(schema=SCHEMA, queries=queries)


@pytest.mark.theorem("T-PLAN")
def test_statistics_levels_and_queries_add_up():
    asked = query().group_by("county", keys=KEYS).levels(prefix("naics", [2, 3, 4])).count(COUNT).sum("emp", SUM)
    policy = plan_policy(plan_of(asked, query().count(COUNT)))
    assert policy.loss({"emp": 100}) == pytest.approx(0.05 + 0.1 * 4 + 0.05, rel=1e-12)
    printed = plan_policy(plan_of(asked), tight=False)
    assert printed.loss({"emp": 101}) == pytest.approx(0.05 + 0.1 * 9, rel=1e-12)


def test_levels_with_shares_cost_no_more_than_one_level_with_the_whole_budget():
    one = query().group_by("county", prefix("naics", 4), keys=KEYS).count(COUNT).sum("emp", SUM)
    many = (
        query()
        .group_by("county", keys=KEYS)
        .levels(prefix("naics", [2, 3, 4]), share=["0.2", "0.3", "0.5"])
        .count(COUNT)
        .sum("emp", SUM)
    )
    assert plan_policy(plan_of(one)) == plan_policy(plan_of(many))


@pytest.mark.theorem("T-WHERE")
def test_a_condition_limits_the_policy_to_the_records_it_selects():
    asked = query().where("county = '01' AND NOT (emp < 5 OR kind <> 'x')").count(COUNT)
    policy = plan_policy(plan_of(asked))
    for record, inside in [
        ({"county": "01", "emp": 5, "kind": "x"}, True),
        ({"county": "02", "emp": 5, "kind": "x"}, False),
        ({"county": "01", "emp": 4, "kind": "x"}, False),
        ({"county": "01", "emp": 5, "kind": "y"}, False),
        ({"county": "01", "emp": 5, "kind": None}, False),
    ]:
        assert (policy.loss(record) > 0) == inside, record


def test_the_order_of_texts_is_kept_out_of_the_policy_on_the_safe_side():
    policy = plan_policy(plan_of(query().where("county < '02'").count(COUNT)))
    assert policy.loss({"county": "01"}) == policy.loss({"county": "99"}) > 0


BY = by("naics", {"3111": 500, "3112": 20, "4411": 50}, default=10)
LOW = by("naics", {"4411": 5}, default=10)
BY3 = by(PolicyColumn("naics", 3), {"311": 500, "441": 50}, default=10)
BY_YEAR = by(PolicyColumn("opened", part="year"), {2004: 500, 2005: 50}, default=10)


@pytest.mark.theorem("T-CELL")
@pytest.mark.parametrize(
    "at, groups, expected",
    [
        (BY, (Group("naics", Field("naics")),), BY),
        (BY3, (Group("n", Prefix("naics", 3)),), BY3),
        (BY3, (Group("n", Prefix("naics", 4)),), BY3),
        (BY3, (Group("naics", Field("naics")),), BY3),
        (BY3, (Group("n", Prefix("naics", 2)),), by(PolicyColumn("naics", 2), {"31": 500, "44": 50}, default=10)),
        (BY, (Group("n", Prefix("naics", 3)),), by(PolicyColumn("naics", 3), {"311": 500, "441": 50}, default=10)),
        (BY, (Group("county", Field("county")),), Fraction(500)),
        (BY, (), Fraction(500)),
        (BY_YEAR, (Group("opened", Field("opened")),), Fraction(500)),
        (BY_YEAR, (Group("year", DatePart("opened", "year")),), Fraction(500)),
        (
            by("naics", {"4411": 5}, default=10),
            (Group("n", Prefix("naics", 2)),),
            by(PolicyColumn("naics", 2), {"44": 10}, default=10),
        ),
    ],
)
def test_a_cell_takes_the_largest_threshold_that_can_fall_into_it(at, groups, expected):
    assert cell_threshold(at, groups) == expected


@pytest.mark.theorem("T-CELL")
@pytest.mark.costly
def test_a_mixed_cell_costs_the_tight_loss_of_its_own_noise_and_the_printed_loss_of_the_records_threshold():
    asked = query().group_by("county", keys=KEYS).sum("emp", Split(BY))
    plan = plan_of(asked)
    small = {"emp": 40, "naics": "3112"}
    assert plan_policy(plan).loss(small) == pytest.approx(0.1 * (40 / 500) ** 2, rel=1e-12)
    assert plan_policy(plan, tight=False).loss(small) == pytest.approx(0.1 * 2**2, rel=1e-12)
    declared, warning = plan_warnings(plan)
    assert "declared by its package" in declared
    assert "largest threshold" in warning
    determined = plan_of(query().group_by("naics", keys=KEYS).sum("emp", Split(BY)))
    assert plan_warnings(determined) == (declared,)
    assert plan_policy(determined).loss(small) == pytest.approx(0.1 * (40 / 20) ** 2, rel=1e-12)


@pytest.mark.theorem("T-CELL")
def test_the_mechanism_of_each_cell_has_the_threshold_the_policy_was_made_with():
    asked = query().levels(prefix("naics", [2, 4]), keys=KEYS).sum("emp", Split(BY)).count(COUNT)
    plan = plan_of(asked)
    coarse, fine = plan.tables()
    total = asked.statistics[0]
    found = cell_mechanisms(plan, coarse, total, plan.cells(coarse))
    assert plan.cells(coarse).to_pydict() == {"naics2": ["31", "44"]}
    assert {run.mechanism.at: run.run.rows.tolist() for run in found} == {500: [0], 50: [1]}
    assert all(run.mechanism.rho == Fraction(1, 20) for run in found)
    fine_runs = cell_mechanisms(plan, fine, total, pa.table({"naics4": ["3111", "3112", "99"]}))
    assert {run.mechanism.at: run.run.rows.tolist() for run in fine_runs} == {500: [0], 20: [1], 10: [2]}
    (counted,) = cell_mechanisms(plan, fine, asked.statistics[1], plan.cells(fine))
    assert counted.run.rows.tolist() == [0, 1]


def test_public_cells_without_a_threshold_are_refused():
    asked = query().group_by("naics", keys=KEYS).sum("emp", Split(by("naics", {"3111": 5})))
    plan = plan_of(asked)
    (table,) = plan.tables()
    with pytest.raises(PlanError, match="no threshold"):
        cell_mechanisms(plan, table, asked.statistics[0], plan.cells(table))


def test_a_mechanism_that_cannot_be_shared_is_refused_for_levels_only():
    class Rigid(Mechanism):
        def policy(self, measure, *, tight=True):
            return gaussian_sum(measure, sigma=3)

    one = query().group_by("county", keys=KEYS).sum("emp", Rigid())
    assert plan_policy(plan_of(one)).loss({"emp": 3}) == pytest.approx(0.5)
    with pytest.raises(PlanError, match="cannot be shared"):
        plan_policy(plan_of(query().levels(prefix("naics", [2, 3]), keys=KEYS).sum("emp", Rigid())))


def test_a_count_under_any_mechanism_costs_its_policy_at_one():
    class Squared(Mechanism):
        def policy(self, measure, *, tight=True):
            return gaussian_sum(measure, sigma=2)

    assert plan_policy(plan_of(query().count(Squared()))).loss({}) == pytest.approx(1 / 8)


@pytest.mark.theorem("T-CELL")
@pytest.mark.parametrize(
    "at, group, values",
    [
        (by("naics", {"31": 5, "": 7}, default=9), Group("naics", Field("naics")), ["31", "", "312", None]),
        (by(PolicyColumn("naics", 2), {"31": 5}, default=9), Group("n", Prefix("naics", 3)), ["311", "31", "3", "44"]),
        (by("size", {1: 5, 0: 7}, default=9), Group("size", Field("size")), [0, 1, 2, None]),
        (by("open", {True: 5}, default=9), Group("open", Field("open")), [True, False, None]),
    ],
)
def test_a_cell_draws_at_the_threshold_of_the_case_its_records_fall_into(at, group, values):
    """The partition the policy is written on and the look-up noise is drawn by agree for every type of column, NULL included."""
    runs = cells_by_threshold(cell_threshold(at, (group,)), (group,), pa.table({group.name: values}))
    drawn = {values[row]: run.at for run in runs for row in run.rows.tolist()}
    for value in values:
        record = {at.column.name: None if value is None else literal(value)}
        (promised,) = [threshold for condition, threshold in at.cases() if holds(condition, record)]
        assert drawn[value] == promised


@pytest.mark.theorem("T-WHERE")
@pytest.mark.parametrize("operator", ["=", "<>", "<", "<=", ">", ">="])
@pytest.mark.parametrize("negated", [False, True])
def test_a_comparison_and_its_contrary_select_the_numbers_they_say(operator, negated):
    compare = Compare(Field("emp"), operator, Fraction(5))
    found = policy_condition(Not(compare) if negated else compare)
    for number in (4, 5, 6):
        truth = {
            "=": number == 5,
            "<>": number != 5,
            "<": number < 5,
            "<=": number <= 5,
            ">": number > 5,
            ">=": number >= 5,
        }
        assert holds(found, {"emp": Fraction(number)}) == (truth[operator] != negated)
    assert not holds(found, {"emp": None})


def test_a_shorter_prefix_is_found_from_a_longer_one_and_not_the_other_way_round():
    assert finer(Prefix("naics", 3), Prefix("naics", 2))
    assert finer(Field("naics"), Prefix("naics", 2))
    assert not finer(Prefix("naics", 2), Prefix("naics", 3))
    assert not finer(Prefix("naics", 2), Field("naics"))
    assert not finer(Prefix("county", 3), Prefix("naics", 2))


def test_a_clamp_is_counted_in_the_steps_of_its_measure():
    schema = Schema.of(unit="id", measures={"pay": "0.01"})
    (total,) = Sum(alias="s", measure="pay", mechanism=Clamped(to=2, rho=1)).totals(schema)
    assert total == SumSteps("pay", 200)
