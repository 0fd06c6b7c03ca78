"""The parts of a plan: made once, and the one list that every policy, the page and the noise of a release are views of."""

from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import recordwise as rw
from build import employers
from recordwise.plan.cost import firm_policy, lattice_policy, plan_parts, plan_policy, statistic_policy
from recordwise.plan.plan import Plan
from recordwise.plan.query import Query
from recordwise.plan.schema import Column, Measure, Schema
from recordwise.policy.loss_law import LatticePolicy
from recordwise.policy.policy import compose
from recordwise.release.draw import prepare_table
from recordwise.release.page.view import _meaning as meaning_of
from recordwise.release.tables import page_parts

SCHEMA = Schema(
    unit="id",
    measures=(Measure(name="emp", step=1), Measure(name="pay", step=1)),
    columns=(Column(name="county", type="text"), Column(name="state", type="text")),
)
COUNTIES = rw.Keys.of({"state": ["a", "a", "b"], "county": ["1", "2", "3"]})
RECORDS = pa.table(
    {"id": [1, 2, 3], "state": ["a", "a", "b"], "county": ["1", "2", "3"], "emp": [4, 20, 900], "pay": [7, 0, 50]}
)


def asked() -> tuple[Query, Query]:
    """Statistics of which no two cost the same, in three tables; an average brings a sum of its own."""
    by_level = rw.query().levels("state", "county", share=["1/4", "3/4"], keys=COUNTIES)
    by_level = by_level.count(rw.Gaussian(rho="0.05")).sum("emp", rw.UnitSplit(at=50, rho="0.1"))
    by_level = by_level.avg("pay", sum=rw.Gaussian(sigma=30))
    whole = rw.query().where("emp > 5").count(rw.Gaussian(rho="0.3"), alias="larger").sum("pay", rw.Gaussian(sigma=70))
    return by_level, whole


def plan() -> Plan:
    return Plan(schema=SCHEMA, queries=asked())


@pytest.fixture
def another_order_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each walk over the statistics of a query finds them in an order of its own."""
    honest, chance = Query.draws, Random(1)
    monkeypatch.setattr(Query, "draws", lambda query: tuple(chance.sample(found := honest(query), len(found))))


def views(release: Any) -> tuple[Any, ...]:
    """What a release says about each part, by the part; lists without names as what belongs together in them."""
    assert release.lattice is not None
    return (
        {(part.table, part.statistic): part for part in release.parts},
        {(part.sigma, part.times): part.policy.to_json() for part in release.lattice.parts},
        sorted(str([part.policy.to_json(), part.condition, part.cells, part.joint]) for part in release.firms.parts),
    )


def released() -> Any:
    with employers(RECORDS, "county", "state", measures={"emp": 1, "pay": 1}) as session:
        return session.run(*asked())


def test_each_statistic_of_each_table_is_a_part_and_no_two_cost_the_same() -> None:
    parts = plan().parts()
    assert [(part.table.query, part.table.level, part.alias) for part in parts] == [
        *((0, level, alias) for level in (0, 1) for alias in ("count", "sum_emp", "avg_pay_sum")),
        *((1, 0, alias) for alias in ("larger", "sum_pay")),
    ]
    assert len({str(part.record_policy().to_json()) for part in parts}) == len(parts)


def test_a_plan_makes_its_parts_once_and_finds_those_of_a_table() -> None:
    own = plan()
    assert all(one is other for one, other in zip(own.parts(), own.parts(), strict=True))
    for table in own.tables():
        assert own.parts(table) == tuple(part for part in own.parts() if part.table is table)
        assert own.drawn(table) == tuple((part, part.statistic) for part in own.parts(table))


def test_the_policies_of_a_plan_are_those_of_its_parts() -> None:
    own = plan()
    for tight in (True, False):
        costs = [
            statistic_policy(part.query, statistic, part.table.shape, SCHEMA, tight=tight).where(part.condition)
            for part, statistic in own.drawn()
        ]
        assert plan_policy(own, tight=tight) == compose(costs)
    lattice = lattice_policy(own)
    assert lattice is not None
    assert firm_policy(own).policy() == lattice.policy() == compose([part.policy for part in page_parts(own)])


def test_the_selection_of_keys_is_a_part_before_the_statistics_of_its_table() -> None:
    keys = rw.Keys.select(rho="0.1", delta="1e-6")
    own = Plan(schema=SCHEMA, queries=(rw.query().group_by("county", keys=keys).count(rw.Gaussian(rho="0.2")),))
    selected, counted = own.parts()
    assert (selected.statistic, selected.selection, selected.mechanisms) == (None, own.selection(own.tables()[0]), ())
    assert selected.mechanisms_of(pa.table({"county": ["1"]})) == ()
    assert selected.policy.delta_terms
    assert not counted.policy.delta_terms
    assert own.drawn() == ((counted, counted.statistic),)
    assert lattice_policy(own) is None
    assert [part.statistic for part in page_parts(own)] == [selected.alias, "count"]


@pytest.mark.usefixtures("another_order_each_time")
def test_what_is_charged_for_a_statistic_is_what_is_drawn_for_it_whatever_the_order_of_a_walk() -> None:
    own = plan()
    charged = {(part.table.query, part.table.level, part.alias): part for part in own.parts()}
    assert [part.alias for part in plan_parts(own)] != [part.alias for part in own.parts()]
    for table in own.tables():
        for each in prepare_table(own, table, own.cells(table), confidence=0.95).drawn:
            part = charged[table.query, table.level, each.statistic.alias]
            assert part.statistic is each.statistic
            assert {cells.mechanism for cells in each.served} == set(part.mechanisms)
            paid = statistic_policy(part.query, each.statistic, table.shape, SCHEMA, tight=True)
            assert paid == part.policy == part.of_firms().policy


@pytest.mark.costly
def test_a_release_says_the_same_of_each_part_whatever_the_order_of_a_walk(
    another_order_each_time: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lists that are made by two walks and matched by position give a statistic the policy or the noise of another."""
    shuffled = views(released())
    monkeypatch.undo()
    assert shuffled == views(released())


def test_noise_that_is_saved_in_another_order_than_the_parts_says_nothing_about_them() -> None:
    release = released()
    assert release.lattice is not None
    assert meaning_of(release) is not None
    turned = LatticePolicy(parts=release.lattice.parts[::-1])
    assert turned.policy() == release.lattice.policy()
    assert meaning_of(replace(release, lattice=turned)) is None
