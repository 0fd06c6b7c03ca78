"""Composition, parts, groups and replacements, held against the divergence of what is drawn; each check rejects a wrong formula."""

from fractions import Fraction

import numpy as np
import pytest

from divergences import ROUNDING, both_cells, hockey_stick, published, selected, zcdp
from recordwise.mechanisms import Gaussian, GeneralizedGaussian
from recordwise.mechanisms.key_selection import SelectionLaw
from recordwise.policy import (
    Measure,
    among,
    compare,
    constant,
    delta_at,
    group_loss,
    group_loss_by_cell,
    group_pair,
    maximum,
    replacement_loss,
)
from recordwise.policy.meaning import gdp_delta

NET = Measure("net", Fraction(1), True)
GAUSSIAN = Gaussian(sigma=4)
MECHANISMS = {
    "gaussian": GAUSSIAN,
    "laplace": GeneralizedGaussian(shape=1, scale=5, lattice=1),
    "square root": GeneralizedGaussian(shape="1/2", scale=3, lattice=1),
}
EPSILONS = np.linspace(0, 12, 25)
by_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)


COUNT, PRECISE, COARSE = Gaussian(sigma=2), Gaussian(sigma=3), GeneralizedGaussian(shape=1, scale=9, lattice=1)


def adaptive(with_record):
    """A count, then a sum that is precise where the noisy count is above 0 and coarse elsewhere; a record of size 4, or none."""
    first = published(COUNT, int(with_record), 200)
    precise, coarse = (published(mechanism, 4 * with_record, 200) for mechanism in (PRECISE, COARSE))
    above = np.arange(-200, 201) > 0
    return first[:, None] + np.where(above[:, None], precise[None, :], coarse[None, :])


@pytest.mark.theorem("T-SEQ")
def test_the_joint_law_of_a_query_chosen_by_an_earlier_answer_stays_within_the_budget() -> None:
    count, precise, coarse = COUNT.policy_of_count(), PRECISE.policy("emp"), COARSE.policy("emp")
    budget = count + maximum([precise, coarse])
    assert all(budget.dominates(count + second) for second in (precise, coarse))
    record = {"emp": 4}
    lost, allowed = zcdp(adaptive(True), adaptive(False)), budget.loss(record)
    assert 0.99 * allowed <= lost <= allowed * ROUNDING
    # Formulas that forget the first answer, take the larger loss, or average over the answers are too small.
    chance = np.exp(published(COUNT, 1, 200))[201:].sum()
    averaged = count.loss(record) + chance * precise.loss(record) + (1 - chance) * coarse.loss(record)
    for wrong in (precise.loss(record), maximum([count, precise, coarse]).loss(record), averaged):
        assert lost > wrong * 1.05


@pytest.mark.theorem("T-SEQ")
@by_mechanism
def test_the_same_question_asked_twice_costs_twice(mechanism) -> None:
    once = mechanism.policy("emp")
    twice = [both_cells(*[published(mechanism, 5 * there, 250)] * 2) for there in (1, 0)]
    lost, allowed = zcdp(*twice), (once + once).loss({"emp": 5})
    assert lost <= allowed * ROUNDING
    assert lost > 1.4 * once.loss({"emp": 5})


def two_selections(first, after_hidden, after_shown, pieces, others):
    """A key of one selection, then of a second one whose law depends on whether the first was published."""
    one = selected(first, pieces + others[0])
    hidden, shown = (selected(law, pieces + others[1]) for law in (after_hidden, after_shown))
    return one[:, None] + np.vstack([hidden, np.tile(shown, (len(one) - 1, 1))])


@pytest.mark.theorem("T-SEQ")
@pytest.mark.parametrize("others", [(0, 0), (0, 3), (2, 0), (1, 2)])
def test_deltas_that_depend_on_earlier_answers_stay_within_the_worst_sum(others) -> None:
    """A record of two pieces: alone or beside others in a key of a first selection, and of a second one chosen by the first."""
    laws = tuple(SelectionLaw(sigma=Fraction(2), threshold=threshold) for threshold in (7, 7, 5))
    single = [law.group_loss([2]) for law in laws]
    rho = single[0].rho + max(single[1].rho, single[2].rho)
    delta = single[0].delta + max(single[1].delta, single[2].delta)
    with_record, without = (two_selections(laws[0], laws[1], laws[2], pieces, others) for pieces in (2, 0))
    for epsilon in EPSILONS:
        assert hockey_stick(with_record, without, epsilon) <= (delta + delta_at(rho, epsilon)) * ROUNDING
    if others == (0, 0):
        # The larger of the two deltas on the way that is taken is too small.
        assert hockey_stick(with_record, without, 30.0) > 1.9 * max(single[0].delta, single[1].delta)
    if others == (2, 0):
        # So is the mean of the second delta over what the first selection shows without the record.
        shown = 1 - np.exp(selected(laws[0], 2)[0])
        mean = shown * single[2].delta + (1 - shown) * single[1].delta
        assert hockey_stick(with_record, without, 30.0) > 1.05 * mean


@pytest.mark.theorem("T-SEQ")
def test_conditioning_on_the_good_event_would_exceed_the_bound_that_mixtures_keep() -> None:
    """Randomized response of epsilon 1, then a second answer with delta 1/2 after one first answer and 0 after the other."""
    first = np.log(np.array([np.e, 1.0]) / (1 + np.e))
    kept = np.log([0.5, 1.0])

    def given(law):
        return law + kept - np.logaddexp.reduce(law + kept)

    assert np.max(np.abs(first - first[::-1])) == pytest.approx(1.0)
    tilted = np.max(np.abs(given(first) - given(first[::-1])))
    assert tilted == pytest.approx(1.3106, abs=1e-4)
    assert zcdp(given(first), given(first[::-1])) > 1.001 * zcdp(first, first[::-1])


@pytest.mark.theorem("T-PAR")
@by_mechanism
@pytest.mark.costly
def test_a_record_costs_the_part_it_is_in_and_no_other(mechanism) -> None:
    """Two cells by group, each with its own noise, published together; records of either group and of none."""
    other = Gaussian(sigma=7)
    policy = mechanism.policy("emp").where(among("g", ["a"])) + other.policy("emp").where(among("g", ["b"]))
    losses = {}
    for group in "abc":
        cells = [
            both_cells(
                published(mechanism, 40 + 5 * there * (group == "a"), 250),
                published(other, 60 + 5 * there * (group == "b"), 250),
            )
            for there in (True, False)
        ]
        losses[group] = zcdp(*cells)
        allowed = policy.loss({"g": group, "emp": 5})
        assert 0.75 * allowed <= losses[group] <= allowed * ROUNDING + 1e-11
    # The loss of the other part would be too small for one of the two.
    assert any(losses[one] > 1.05 * policy.loss({"g": other, "emp": 5}) for one, other in ("ab", "ba"))
    assert losses["c"] < 1e-11


@pytest.mark.theorem("T-PAR")
def test_parts_that_overlap_cost_more_than_the_larger_of_the_two() -> None:
    """Why the parts must be a partition: a record in both pays both, which the sum of `where` says and a maximum does not."""
    other = Gaussian(sigma=6)
    parts = [
        GAUSSIAN.policy("emp").where(compare("emp", ">", 3)),
        other.policy("emp").where(compare("emp", ">", 4)),
    ]
    both = [both_cells(published(GAUSSIAN, 5 * there, 250), published(other, 5 * there, 250)) for there in (1, 0)]
    lost = zcdp(*both)
    assert lost <= (parts[0] + parts[1]).loss({"emp": 5}) * ROUNDING
    assert lost > maximum(parts).loss({"emp": 5}) * 1.05


@pytest.mark.theorem("T-CELLS")
@by_mechanism
def test_a_group_loses_what_its_shift_of_every_cell_costs(mechanism) -> None:
    """Units of 3 and 4 in one cell and of 5 in another. The largest unit of each cell, or a record's policy each, is too little."""
    with_group, without = (
        both_cells(published(mechanism, 20 + 7 * there, 250), published(mechanism, 9 + 5 * there, 250))
        for there in (1, 0)
    )
    lost = zcdp(with_group, without)
    allowed = group_loss_by_cell([7, 5], mechanism.loss_at_shift)
    assert 0.93 * allowed <= lost <= allowed * ROUNDING
    assert lost > 1.05 * group_loss_by_cell([4, 5], mechanism.loss_at_shift)
    assert allowed <= group_loss([mechanism.loss_at_shift(size) for size in (3, 4, 5)]) * ROUNDING


@pytest.mark.theorem("T-CELLS")
def test_ten_units_of_a_firm_in_one_cell_of_a_count_cost_a_hundred_times_one() -> None:
    count = Gaussian(sigma=4)
    lost = zcdp(published(count, 30, 300), published(count, 20, 300))
    one = count.policy_of_count().loss({})
    assert lost == pytest.approx(100 * one, rel=1e-9)
    assert lost <= group_loss_by_cell([10], count.loss_at_shift) * ROUNDING
    assert lost > 9 * group_loss_by_cell([1] * 10, count.loss_at_shift)


@pytest.mark.theorem("T-REPLACE")
@by_mechanism
@pytest.mark.parametrize(("before", "after"), [(6, -6), (6, 2), (0, 6), (3, -5)])
@pytest.mark.costly
@pytest.mark.sampled
def test_replacing_a_record_in_its_cell_or_by_one_of_another_cell_stays_within_the_bound(
    mechanism, before, after
) -> None:
    allowed = replacement_loss(mechanism.policy(NET), {"net": before}, {"net": after})
    same = zcdp(published(mechanism, 10 + before, 250), published(mechanism, 10 + after, 250))
    assert same <= mechanism.loss_at_shift(before - after) * ROUNDING
    assert mechanism.loss_at_shift(before - after) <= allowed * ROUNDING
    moved = [
        both_cells(published(mechanism, 10 + before * there, 250), published(mechanism, 4 + after * (1 - there), 250))
        for there in (1, 0)
    ]
    assert zcdp(*moved) <= allowed * ROUNDING


@pytest.mark.theorem("T-REPLACE")
def test_factor_two_of_the_papers_one_sided_lemma_is_exceeded_and_four_is_attained() -> None:
    lost = zcdp(published(GAUSSIAN, 6, 300), published(GAUSSIAN, -6, 300))
    once = GAUSSIAN.policy(NET).loss({"net": 6})
    assert lost > 3.9 * once
    assert lost == pytest.approx(replacement_loss(GAUSSIAN.policy(NET), {"net": 6}, {"net": -6}), rel=1e-9)


SELECTION = SelectionLaw(sigma=Fraction(1), threshold=5)


def in_one_key(records):
    """What so many records of one piece change, alone in their key or beside others; and their joint bound from pairs alone."""
    single = SELECTION.group_loss([1])
    laws = [(selected(SELECTION, others + records), selected(SELECTION, others)) for others in (0, 1, 2, 4)]
    return laws, group_pair([(single.rho, single.delta)] * records)


@pytest.mark.theorem("T-GROUP")
@pytest.mark.parametrize(("records", "delta"), [(1, 1.353e-4), (2, 5.724e-3), (3, 9.064e-2), (4, 0.56525)])
def test_what_several_records_lose_by_a_selection_is_within_the_bound_from_their_pairs(records, delta) -> None:
    laws, bound = in_one_key(records)
    assert bound.rho == pytest.approx(records**2 / 2, rel=1e-12)
    assert bound.delta == pytest.approx(delta, rel=1e-3)
    for with_group, without in laws:
        for epsilon in EPSILONS:
            assert hockey_stick(with_group, without, epsilon) <= bound.delta_at(epsilon) * ROUNDING


@pytest.mark.theorem("T-GROUP")
def test_sums_of_deltas_the_two_record_number_and_the_gaussian_delta_do_not_bound_a_group() -> None:
    alone = {records: in_one_key(records)[0][0] for records in (1, 2, 3)}
    lost = {records: hockey_stick(with_group, without, 30.0) for records, (with_group, without) in alone.items()}
    assert lost[2] > 16 * 2 * lost[1]
    assert lost[3] == pytest.approx(0.0586, abs=5e-5)
    assert lost[3] > 10 * group_pair([(0.5, lost[1])] * 2).delta
    gaussian = min(lost[1] + np.exp(epsilon) * lost[1] + gdp_delta(1.0, epsilon) for epsilon in np.arange(1, 6, 0.01))
    assert gaussian == pytest.approx(0.00426, abs=5e-6)
    assert lost[2] > 1.03 * gaussian


@pytest.mark.theorem("T-GROUP")
@pytest.mark.parametrize("pieces", [(1, 2), (2, 1), (1, 1, 2), (3, 1)])
def test_unequal_records_in_one_key_or_in_several_are_within_the_bound_from_their_pairs(pieces) -> None:
    law = SelectionLaw(sigma=Fraction(3, 2), threshold=9)
    single = [law.group_loss([count]) for count in pieces]
    bound = group_pair([(each.rho, each.delta) for each in single])
    assert bound == group_pair([(each.rho, each.delta) for each in reversed(single)])
    together = [(selected(law, others + sum(pieces)), selected(law, others)) for others in (0, 2)]
    apart = [both_cells(selected(law, pieces[0]), selected(law, 2 + sum(pieces[1:])))]
    apart.append(both_cells(selected(law, 0), selected(law, 2)))
    for with_group, without in (*together, tuple(apart)):
        for epsilon in EPSILONS:
            assert hockey_stick(with_group, without, epsilon) <= bound.delta_at(epsilon) * ROUNDING


@pytest.mark.theorem("T-GROUP")
def test_no_three_laws_with_a_loss_each_lose_more_than_the_square_of_the_sum_of_roots() -> None:
    """Random laws on five points: the triangle inequality itself, which the sum of the two losses does not obey."""
    rng = np.random.default_rng(3)
    orders = 1 + np.geomspace(1e-3, 400, 200)[:, None]

    def losses(p, q):
        both = [np.logaddexp.reduce(orders * a + (1 - orders) * b, axis=1) for a, b in ((p, q), (q, p))]
        return np.maximum(*both) / (orders * (orders - 1))[:, 0]

    worst = 0.0
    for _ in range(500):
        laws = [law - np.logaddexp.reduce(law) for law in rng.normal(size=(3, 5)) * rng.uniform(0.1, 3)]
        left, right = losses(laws[0], laws[1]).max(), losses(laws[1], laws[2]).max()
        whole = losses(laws[0], laws[2])
        # Two hundred orders find a supremum to a tenth of a per cent.
        assert np.all(whole <= 1.001 * group_loss([left, right]))
        worst = max(worst, float(whole.max()) / (left + right))
    assert worst > 1.2


def test_a_pair_from_no_record_a_certain_delta_and_an_endless_loss() -> None:
    assert (group_pair([]).rho, group_pair([]).delta) == (0.0, 0.0)
    assert group_pair([(1.0, 1.0), (1.0, 0.0)]).delta == 1.0
    assert group_pair([(np.inf, 0.0), (1.0, 1e-3)]).delta == 1.0
    assert group_pair([(0.5, 0.0)] * 3) == group_pair([(0.5, 0)] * 3)
    assert group_pair([(0.5, 0.0)] * 3).delta == 0.0
    assert group_pair([(0.0, 1e-3), (0.0, 1e-4)]).delta == pytest.approx(1.1e-3, rel=1e-12)
    assert group_pair([(1.0, 1e-3)] * 40).delta == 1.0
    assert constant(1).loss({}) == group_pair([(1.0, 0.0)]).rho
