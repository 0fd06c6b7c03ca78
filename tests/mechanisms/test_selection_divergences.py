"""The pair (rho, delta) of a selection, held against the divergence of what it publishes; each check rejects a wrong formula."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from divergences import ROUNDING, both_cells, hockey_stick, selected, zcdp
from recordwise.mechanisms import Gaussian
from recordwise.mechanisms.key_selection import SelectionLaw
from recordwise.plan import Keys, Plan, Schema
from recordwise.plan.cost import plan_policy
from recordwise.plan.query import query
from recordwise.policy import delta_at

SCHEMA = Schema.of(unit="id", measures={"emp": 1}, columns={"county": "text"})
LAWS = [SelectionLaw(sigma=Fraction(1), threshold=5), SelectionLaw(sigma=Fraction(7, 2), threshold=15)]
EPSILONS = np.linspace(0, 15, 31)
AT_ANY_EPSILON = 40.0
by_law = pytest.mark.parametrize("law", LAWS, ids=str)


def charged(rho, delta):
    """What a plan charges for its selection, by numbers of pieces, and the law it selects with."""
    keys = Keys.select(rho=rho, delta=delta, pieces={"emp": 50})
    count = Gaussian(rho=1)
    plan = Plan(schema=SCHEMA, queries=(query().group_by("county", keys=keys).count(count),))
    (table,) = plan.tables()
    policy = plan_policy(plan)

    def pair(pieces):
        record = {"emp": 50 * pieces}
        return policy.loss(record) - count.policy_of_count().loss({}), policy.delta(record)

    return pair, plan.selection(table).law


@pytest.mark.theorem("T-SELECT")
@pytest.mark.parametrize(("rho", "delta"), [("0.5", "1e-3"), ("0.05", "0.05"), ("2", "1e-6")])
@pytest.mark.parametrize("pieces", [1, 2, 5])
@pytest.mark.parametrize("others", [0, 1, 4, 30])
def test_what_a_selection_publishes_is_within_the_pair_that_a_plan_charges(rho, delta, pieces, others):
    pair, law = charged(rho, delta)
    loss, chance = pair(pieces)
    with_record, without = selected(law, others + pieces, 150), selected(law, others, 150)
    for epsilon in EPSILONS:
        assert hockey_stick(with_record, without, epsilon) <= (chance + delta_at(loss, epsilon)) * ROUNDING
    if others:
        assert zcdp(with_record, without) <= loss * ROUNDING
    else:
        assert hockey_stick(with_record, without, AT_ANY_EPSILON) == pytest.approx(chance, rel=1e-9)


@pytest.mark.theorem("T-SELECT")
@by_law
def test_the_normal_tail_a_tail_one_piece_off_and_a_loss_linear_in_the_pieces_are_too_small(law):
    for pieces in (2, 3):
        shown = hockey_stick(selected(law, pieces, 150), selected(law, 0, 150), AT_ANY_EPSILON)
        assert shown > 1.05 * norm.sf((law.threshold - pieces) / float(law.sigma))
        assert shown > 1.05 * law.group_loss([pieces - 1]).delta
        beside = zcdp(selected(law, 40 + pieces, 150), selected(law, 40, 150))
        assert beside == pytest.approx(law.group_loss([pieces]).rho, rel=1e-6)
        assert beside > 1.5 * pieces * law.group_loss([1]).rho


@pytest.mark.theorem("T-SELECT")
@by_law
def test_without_its_delta_a_selection_keeps_no_bound_at_all(law):
    """A key that one table can publish and the other cannot: every Renyi divergence is infinite."""
    assert zcdp(selected(law, 1), selected(law, 0)) == np.inf


@pytest.mark.theorem("T-SELECT-GROUP")
@by_law
@pytest.mark.parametrize("pieces", [(2, 1), (3, 3), (1, 4)])
@pytest.mark.parametrize("others", [(0, 0), (0, 5), (6, 0), (2, 3)])
def test_a_group_in_two_keys_is_within_its_pair(law, pieces, others):
    pair = law.group_loss(pieces)
    with_group, without = (
        both_cells(*(selected(law, beside + there * own, 90) for own, beside in zip(pieces, others)))
        for there in (1, 0)
    )
    for epsilon in EPSILONS:
        assert hockey_stick(with_group, without, epsilon) <= (pair.delta + delta_at(pair.rho, epsilon)) * ROUNDING
    if others == (0, 0):
        truth = hockey_stick(with_group, without, AT_ANY_EPSILON)
        assert truth == pytest.approx(pair.delta, rel=1e-9)
        # The larger of the two keys' deltas is too small; so would be the delta of the key with more pieces alone.
        assert truth > max(law.group_loss([own]).delta for own in pieces) * (1 + 1e-4)
    if min(others) > 0:
        assert zcdp(with_group, without) <= pair.rho * ROUNDING


@pytest.mark.theorem("T-SELECT-GROUP")
@by_law
def test_the_records_of_a_group_in_one_key_count_together(law):
    """Two records of two pieces in one key, alone: single deltas, added, are too small; beside others: so are single losses."""
    single = law.group_loss([2])
    assert hockey_stick(selected(law, 4), selected(law, 0), AT_ANY_EPSILON) > 1.5 * 2 * single.delta
    assert zcdp(selected(law, 44, 150), selected(law, 40, 150)) > 1.9 * 2 * single.rho
