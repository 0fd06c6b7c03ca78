"""One budget over several tables: no split makes the worst of them better."""

from fractions import Fraction

import numpy as np
import pytest

import recordwise as rw
from recordwise.planning import Goal, recommend

KEYS = rw.Keys.product(county=["01", "02", "03"], naics=["111", "112", "221"])


def goals():
    by = (
        rw.query()
        .group_by("county", keys=KEYS)
        .levels(rw.prefix("naics", 1), rw.prefix("naics", 2), rw.prefix("naics", 3))
    )
    total = rw.query()
    return [
        Goal("emp", by, within="0.05"),
        Goal("pay", by, within="0.1", share="0.6"),
        Goal("emp", total, within="0.02"),
    ]


BUDGETS = {
    "splitting": {"emp": rw.UnitSplit(at=2000, rho=1), "pay": rw.UnitSplit(at=80_000, rho=1)},
    "log": {"emp": rw.LogTransform(offset=500, sigma="0.05"), "pay": rw.LogTransform(offset=20_000, sigma="0.05")},
    "power": {
        "emp": rw.GeneralizedGaussian(shape=1, scale=50),
        "pay": rw.GeneralizedGaussian(shape=1, scale=2000),
    },
}


@pytest.mark.theorem("T-EVEN")
@pytest.mark.parametrize("name", BUDGETS)
def test_all_tables_are_equally_far_from_their_goals(session, name):
    found = recommend(session, goals(), keep_mechanisms=BUDGETS[name], data="synthetic")
    ratios = [each.ratio for each in found.shares]
    # Gaussian noise on whole employees and the six digits of a share leave them a little uneven.
    assert max(ratios) <= min(ratios) * 1.01
    assert sum(each.share for each in found.shares) == 1
    assert len(found.shares) == 7


@pytest.mark.theorem("T-EVEN")
def test_moving_budget_between_any_two_tables_makes_the_worst_worse(session):
    found = recommend(session, goals(), keep_mechanisms=BUDGETS["log"], data="synthetic")
    moved = Fraction(1, 200)

    def at(each, share):
        whole = BUDGETS["log"][each.table.goal.measure]
        return each.table.ratio(whole.at_share(share))

    for giver in found.shares:
        if giver.share > moved:
            assert at(giver, giver.share - moved) > found.worst
    equal = [at(each, Fraction(1, 7)) for each in found.shares]
    assert max(equal) > found.worst * 1.05, "equal shares would be clearly worse here"


def test_a_table_that_nothing_can_help_gets_nearly_everything(session):
    """On the scale of a logarithm an error stops growing at the total itself, so that tables cannot be made even here."""
    total = [Goal("emp", rw.query(), within="0.0001"), Goal("count", rw.query(), within="0.5")]
    found = recommend(session, total, keep_mechanisms={"emp": BUDGETS["log"]["emp"], "count": rw.Gaussian(rho=1)})
    assert found.shares[0].share > Fraction(9, 10)


def test_the_split_is_what_is_charged(session):
    found = recommend(session, goals(), keep_mechanisms=BUDGETS["splitting"], data="synthetic")
    assert found.policy == session.policy_of(*found.queries())
    record = {"emp": 2000, "pay": 80_000}
    assert float(found.policy.loss(record)) == pytest.approx(1, rel=1e-5)


def test_one_table_gets_everything(session):
    found = recommend(session, Goal("emp", rw.query(), within="0.01"), keep_mechanisms=rw.UnitSplit(at=50, rho=1))
    assert [each.share for each in found.shares] == [1]


def test_results_can_be_read_in_several_ways(session):
    found = recommend(session, Goal("emp", rw.query(), within="0.01"), keep_mechanisms=rw.UnitSplit(at=50, rho=1))
    headers, body = found.rows()
    assert len(headers) == len(body[0])
    assert "CONFIDENTIAL" in repr(found)
    assert "CONFIDENTIAL" in found._repr_html_()
    assert found.to_json()["worst"] == found.worst
    assert np.isfinite(found.losses.rho.maximum)
