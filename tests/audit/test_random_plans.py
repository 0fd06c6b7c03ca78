"""Whatever the schema, the plan and the records: a record loses no more than its policy says, or the plan is refused."""

from collections import Counter
from random import Random

import numpy as np
import pytest
from sqlglot import exp

import recordwise.engines.compile.records as collapse
import recordwise.plan.cost as cost
import recordwise.plan.plan as checking
import recordwise.plan.schema as column_types
from audit import random_plans
from audit.random_plans import asked, opened, outcome, world
from build import few
from recordwise.plan import Keys
from recordwise.plan.cost import Run
from recordwise.policy import By
from recordwise.policy.columns import plain_value

PLANS_IN_A_WORLD = 10
right = cost.cells_by_threshold


def tried(plans, *, seed, **how):
    """Outcomes of random plans, ten on each world."""
    for number in range(plans // PLANS_IN_A_WORLD):
        chance = Random(f"{seed}/{number}")
        drawn = world(chance)
        with opened(drawn, **how) as sessions:
            for _ in range(PLANS_IN_A_WORLD):
                plan = asked(chance, drawn.schema)
                yield drawn, plan, outcome(drawn, sessions, plan)


def check(plans, **how):
    seen = Counter()
    for drawn, plan, found in tried(plans, **how):
        assert found is None or not found.broken, (found, plan, drawn.record)
        seen["refused" if found is None else "shifted" if found.shifted else "untouched"] += 1
    assert sum(seen.values()) == plans
    # Many plans see the record, and wrong types are really drawn: a check of nothing would pass as well.
    assert seen["shifted"] > plans / 3
    assert plans / 50 < seen["refused"] < plans / 2


@pytest.mark.theorem("T-TYPES", "T-PLAN", "T-CELL")
@pytest.mark.parametrize("plans", few([60, 200], 1))
@pytest.mark.costly
def test_no_record_loses_more_than_its_policy_says(plans):
    check(plans, seed="default")


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_no_record_loses_more_than_its_policy_says_in_ten_thousand_plans():
    check(10_000, seed="slow")


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("spark_as_installed")
def test_no_record_loses_more_than_its_policy_says_on_spark(spark_session):
    check(60, seed="spark", engine="spark", spark=spark_session)


def noticed(seed, at_most=400):
    """Whether a violation is found, and not too late."""
    return any(found is not None and found.broken for _, _, found in tried(at_most, seed=seed))


@pytest.mark.costly
def test_rows_of_a_unit_that_are_added_up_where_the_largest_counts_are_noticed(monkeypatch):
    monkeypatch.setitem(collapse._RULES, "max", exp.Sum)
    assert noticed("default")


def accept_every_type(patch):
    """Values are no longer held against the declared type of their column, as before the check was there."""
    for module in (column_types, checking):
        patch.setattr(module, "is_value", lambda value, kind: True)
        patch.setattr(module, "fits", lambda value, kind: True)


@pytest.mark.costly
def test_a_check_of_types_that_is_missing_is_noticed(monkeypatch):
    """SQL casts where the policy does not: pieces of a boolean column split by {1: 20} are those of TRUE."""
    accept_every_type(monkeypatch)
    assert noticed("planted")


def looked_up_by_python(at, groups, cells, hierarchies=()):
    """The bug that was there: thresholds looked up by Python's equality, to which True is 1."""
    if not isinstance(at, By):
        return right(at, groups, cells, hierarchies)
    group = cost._deciding_group(at.column, groups)
    chosen = {plain_value(value): number for value, number in at.values}
    values = [value[: at.column.length] if isinstance(value, str) else value for value in cells[group.name].to_pylist()]
    return tuple(Run(chosen.get(value, at.default), np.array([row])) for row, value in enumerate(values))


@pytest.mark.costly
def test_true_taken_for_one_where_noise_is_chosen_is_noticed(monkeypatch):
    """In sums at public keys without a condition, which no cast of SQL can make wrong."""
    accept_every_type(monkeypatch)
    monkeypatch.setattr(cost, "cells_by_threshold", looked_up_by_python)
    monkeypatch.setattr(random_plans, "HOW_STRANGE", 0.5)
    assert any(found is not None and found.broken for _, plan, found in tried(200, seed="python14") if is_plain(plan))


def is_plain(plan):
    keys = () if plan.query is None else plan.query.key_lists
    return bool(keys) and plan.query.condition is None and all(isinstance(each, Keys) for each in keys)
