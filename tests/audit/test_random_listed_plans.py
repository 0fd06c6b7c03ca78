"""Whatever the code list, its levels and the sizes of cells: a record loses no more than its policy says, or a plan is refused."""

from collections import Counter
from random import Random

import numpy as np
import pytest

import recordwise.plan.cost as cost
import recordwise.plan.cost as held_columns
from audit.random_listed_plans import asked, world
from audit.random_plans import opened, outcome
from build import few
from recordwise.policy.conditions import among

PLANS_IN_A_WORLD = 10
right = vars(cost)["bands_of_cells"]


def tried(plans, *, seed, **how):
    for number in range(plans // PLANS_IN_A_WORLD):
        chance = Random(f"{seed}/{number}")
        drawn = world(chance)
        with opened(drawn, **how) as sessions:
            for _ in range(PLANS_IN_A_WORLD):
                plan = asked(chance, drawn)
                yield drawn, plan, outcome(drawn, sessions, plan)


def check(plans, **how):
    seen = Counter()
    for drawn, plan, found in tried(plans, **how):
        assert found is None or not found.broken, (found, plan, drawn.record)
        seen["refused" if found is None else "shifted" if found.shifted else "untouched"] += 1
    assert sum(seen.values()) == plans
    # Many plans see the record, and what must be refused is really drawn: a check of nothing would pass as well.
    assert seen["shifted"] > plans / 5
    assert plans / 50 < seen["refused"] < plans / 2


@pytest.mark.theorem("T-HIERARCHY", "T-SIZE")
@pytest.mark.parametrize("plans", few([40, 80], 1))
@pytest.mark.costly
def test_no_record_loses_more_than_its_policy_says(plans):
    check(plans, seed="listed")


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_no_record_loses_more_than_its_policy_says_in_three_thousand_plans():
    check(3_000, seed="slow and listed")


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("spark_as_installed")
def test_no_record_loses_more_than_its_policy_says_on_spark(spark_session):
    check(50, seed="spark and listed", engine="spark", spark=spark_session)


def noticed(at_most=200):
    """Whether a violation is found, and not too late."""
    return any(found is not None and found.broken for _, _, found in tried(at_most, seed="listed"))


@pytest.mark.costly
def test_a_code_that_is_missing_where_a_condition_is_stated_by_codes_is_noticed(monkeypatch):
    monkeypatch.setattr(held_columns, "among", lambda column, codes: among(column, codes[:-1]))
    assert noticed()


@pytest.mark.costly
def test_noise_of_the_next_smaller_band_is_noticed(monkeypatch):
    monkeypatch.setattr(cost, "bands_of_cells", lambda *given: np.maximum(right(*given) - 1, 0))
    assert noticed()
