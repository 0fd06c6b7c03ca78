"""Keys found in the data: who is kept with which chance, what that costs a record and a group."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

from mechanisms.lattice_truth import FALSE_ALARM, tail
from recordwise.errors import GroupLossError, ParameterError, PlanError
from recordwise.mechanisms import Gaussian
from recordwise.mechanisms.base import Mechanism
from recordwise.mechanisms.key_selection import SelectionLaw
from recordwise.noise import Seeded
from recordwise.plan import Keys, Plan, Schema
from recordwise.plan.cost import plan_policy
from recordwise.plan.plan import FoundTotals, Sensitive
from recordwise.plan.query import query
from recordwise.plan.statistics import ExactTable
from recordwise.policy import By, ConditionColumn, Policy, by, constant, group_loss
from recordwise.release.draw import select_cells

LAWS = [
    SelectionLaw.for_delta(rho=rho, delta=delta) for rho, delta in [("0.1", "1e-6"), ("1", "1e-9"), ("0.01", "0.1")]
]
SCHEMA = Schema.of(unit="id", measures={"emp": 1}, columns={"county": "text", "cell": "integer"})
REPEATS = 20_000


@pytest.mark.theorem("T-SELECT")
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.costly
def test_the_keep_probability_of_every_count_is_the_lattice_tail(law):
    for count in range(61):
        truth = tail(law.sigma, law.threshold - count)
        assert law.keep_probability(count) == pytest.approx(float(truth), rel=1e-14, abs=0)


@pytest.mark.theorem("T-SELECT")
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("delta", ["0.3", "1e-2", "1e-6", "1e-12"])
def test_the_threshold_is_the_smallest_that_keeps_the_promise(law, delta):
    found = SelectionLaw.for_delta(rho=1 / (2 * law.sigma**2), delta=delta)
    assert tail(found.sigma, found.threshold - 1) <= Fraction(delta)
    assert tail(found.sigma, found.threshold - 2) > Fraction(delta)


def found_counts(keys, counts):
    """A table of cells that hold the given numbers of rows, as an engine would hand it over."""
    plan = Plan(schema=SCHEMA, queries=(query().group_by("cell", keys=keys).count(Gaussian(rho=1)),))
    (table,) = plan.tables()
    cells = pa.table({"cell": np.arange(len(counts))})
    (counted,) = table.totals
    exact = ExactTable(cells=len(counts), totals={counted: np.asarray(counts)}, bins={})
    return plan, FoundTotals(table=table, cells=Sensitive(cells), exact=Sensitive(exact))


def opened(found):
    """As a session opens what an engine found."""
    return found.table, found.cells.reveal(), found.exact.reveal()


def kept_by_count(law_drawn, counts, seed):
    keys = Keys.select(rho=1 / (2 * law_drawn.sigma**2), delta="1e-3")
    plan, found = found_counts(keys, np.repeat(counts, REPEATS))
    chosen, _, _ = select_cells(plan, *opened(found), Seeded(seed), confidence=0.95)
    return np.bincount(chosen["cell"].to_numpy() // REPEATS, minlength=len(counts))


def rejects(kept, counts, law):
    """Exact two-sided binomial tests, one for each count, together at the false-alarm rate."""
    limit = FALSE_ALARM / (2 * len(counts))
    chances = np.array([law.keep_probability(int(count)) for count in counts])
    return bool(np.any((binom.cdf(kept, REPEATS, chances) < limit) | (binom.sf(kept - 1, REPEATS, chances) < limit)))


@pytest.mark.theorem("T-SELECT")
@pytest.mark.costly
def test_selected_cells_follow_the_law_for_every_count_and_a_sigma_five_percent_off_is_caught():
    """20,000 cells of each count. A sigma 5 % off moves the chance one sigma below the threshold by 0.012, 4.6 standard errors at
    each of about ten counts and more than 8 at the largest: the exact tests reject it with probability above 0.999."""
    counts = np.arange(1, 61)
    law = SelectionLaw.for_delta(rho="0.02", delta="1e-3")
    kept = kept_by_count(law, counts, seed=7)
    assert not rejects(kept, counts, law)
    wrong = SelectionLaw(sigma=law.sigma * Fraction(105, 100), threshold=law.threshold)
    assert rejects(kept, counts, wrong)
    assert rejects(kept, counts, SelectionLaw(sigma=law.sigma, threshold=law.threshold + 1))


def selection_policy(**given):
    asked = query().group_by("county", keys=Keys.select(**given)).count(Gaussian(rho=1))
    return plan_policy(Plan(schema=SCHEMA, queries=(asked,)))


@pytest.mark.theorem("T-SELECT")
@pytest.mark.parametrize(("rho", "delta"), [("0.1", "1e-6"), ("0.005", "1e-8"), ("2", "1e-3")])
@pytest.mark.costly
def test_the_published_delta_is_never_below_the_lattice_tail_and_reaches_one(rho, delta):
    policy = selection_policy(rho=rho, delta=delta, pieces={"emp": 50})
    law = SelectionLaw.for_delta(rho=rho, delta=delta)
    last = law.threshold + int(6 * law.sigma) + 2
    counts = sorted({1, 2, 3, law.threshold, *np.linspace(1, last, 60).astype(int).tolist()})
    for count in counts:
        published = Fraction(policy.delta({"emp": 50 * count}))
        assert published >= tail(law.sigma, law.threshold - count)
    assert policy.delta({"emp": 0}) == policy.delta({"emp": 50}) == float(law.noise.sf_upper(law.threshold - 1))
    assert policy.delta({"emp": 50 * last}) == 1.0
    losses = policy.delta({"emp": np.arange(0, 50 * last, 25)})
    assert np.all(np.diff(losses) >= 0)
    assert len(law.deltas()) <= 256


def test_the_normal_tail_would_promise_too_much():
    """Why the lattice tail is summed: the normal one is several times too small."""
    from scipy.stats import norm

    law = SelectionLaw(sigma=Fraction(1), threshold=5)
    assert law.keep_probability(1) > 4 * norm.sf(4)


def test_the_loss_of_a_selection_is_the_squared_number_of_pieces():
    policy = selection_policy(rho="0.1", delta="1e-6", pieces={"emp": 50})
    sigma = SelectionLaw.for_delta(rho="0.1", delta="1e-6").sigma
    for emp, pieces in [(0, 1), (50, 1), (51, 2), (1000, 20)]:
        exact = pieces**2 / (2 * sigma**2) + Fraction(1) / (2 * Gaussian(rho=1).noise_sigma ** 2)
        assert 0 <= Fraction(policy.loss({"emp": emp})) - exact <= exact / 2**45
    assert selection_policy(rho="0.1", delta="1e-6").loss({}) == pytest.approx(1.1, rel=1e-12)


@pytest.mark.theorem("T-SELECT-GROUP")
def test_the_loss_of_a_group_is_analysed_directly_and_single_deltas_do_not_bound_it():
    """Two one-piece records in one empty key, sigma 1, threshold 5: single deltas add up to 2.7e-4, the truth is 4.6e-3."""
    law = SelectionLaw(sigma=Fraction(1), threshold=5)
    together = law.group_loss([2])
    assert together.rho == 2.0
    assert Fraction(together.delta) >= tail(law.sigma, 3)
    assert together.delta == pytest.approx(float(tail(law.sigma, 3)), rel=1e-12)
    assert together.delta > 16 * 2 * law.keep_probability(1)
    with pytest.raises(GroupLossError):
        group_loss([0.5, 0.5], deltas=[law.keep_probability(1)] * 2)


@pytest.mark.theorem("T-SELECT-GROUP")
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("pieces", [[1], [1, 1, 1], [3, 0, 7], [40, 2], [200, 200]])
def test_a_group_loss_is_rounded_up_from_the_direct_formula(law, pieces):
    found = law.group_loss(pieces)
    hidden = Fraction(1)
    for count in pieces:
        hidden *= 1 - (tail(law.sigma, law.threshold - count) if count else 0)
    assert found.delta >= 1 - hidden
    assert found.delta == pytest.approx(float(1 - hidden), rel=1e-12)
    assert Fraction(found.rho) >= sum(count**2 for count in pieces) / (2 * law.sigma**2)


def test_a_group_of_negative_pieces_is_refused():
    with pytest.raises(ParameterError, match="negative"):
        LAWS[0].group_loss([1, -1])


@pytest.mark.parametrize("delta", [0, 1, -1, 2])
def test_a_delta_that_is_no_chance_is_refused(delta):
    with pytest.raises(ParameterError, match="delta"):
        Keys.select(rho=0.1, delta=delta)


def test_a_budget_without_delta_refuses_a_selection_from_the_data_and_admits_one_from_a_domain():
    policy = selection_policy(rho="0.1", delta="1e-6")
    verdict = constant(100).dominates(policy)
    assert not verdict
    assert "delta" in verdict.reason
    assert (constant(100) + Policy({}, policy.delta_terms)).dominates(policy)
    asked = query().group_by("county", keys=Keys.select_from({"county": ["A"]}, rho="0.1", threshold=3))
    public = plan_policy(Plan(schema=SCHEMA, queries=(asked.count(Gaussian(rho=1)),)))
    assert constant("1.100001").dominates(public)


def test_levels_select_on_their_own_and_share_rho_and_delta():
    keys = Keys.select(rho="0.1", delta="1e-6")
    asked = query().levels("county", "cell", share=["1/4", "3/4"], keys=keys).count_distinct("id", SharedGaussian())
    plan = Plan(schema=SCHEMA, queries=(asked,))
    first, second = (plan.selection(table) for table in plan.tables())
    assert (first.rho, first.delta) == (Fraction(1, 40), Fraction(1, 4_000_000))
    assert (second.rho, second.delta) == (Fraction(3, 40), Fraction(3, 4_000_000))
    policy = plan_policy(plan)
    assert policy.loss({}) == pytest.approx(0.1 + 1, rel=1e-12)
    assert policy.delta({}) <= 1e-6
    assert policy.delta({}) == float_sum(first.law, second.law)


class SharedGaussian(Mechanism):
    """A mechanism of rho 1 that can be shared."""

    def __init__(self, rho=Fraction(1)):
        self.rho = rho

    def policy(self, measure, *, tight=True):
        return constant(self.rho)

    def policy_of_count(self):
        return constant(self.rho)

    def shared(self, share):
        return SharedGaussian(self.rho * share)


def float_sum(*laws):
    exact = sum(Fraction(float(law.noise.sf_upper(law.threshold - 1))) for law in laws)
    near = float(exact)
    return near if Fraction(near) >= exact else np.nextafter(near, np.inf)


def test_thresholds_by_group_select_on_the_records_own_pieces():
    at = by("county", {"A": 10, "B": 100}, default=50)
    policy = selection_policy(rho="0.1", delta="1e-6", pieces={"emp": at})
    law = SelectionLaw.for_delta(rho="0.1", delta="1e-6")
    for county, pieces in [("A", 10), ("B", 1), ("C", 2)]:
        record = {"emp": 100, "county": county}
        assert policy.delta(record) == float(law.noise.sf_upper(law.threshold - pieces))
        assert policy.loss(record) == pytest.approx(pieces**2 * 0.1 + 1, rel=1e-12)


def test_a_threshold_that_is_not_defined_for_every_group_is_refused_before_reading():
    partial = By(ConditionColumn("county"), (("A", Fraction(10)),), None)
    with pytest.raises(PlanError, match="default"):
        selection_policy(rho="0.1", delta="1e-6", pieces={"emp": partial})
    with pytest.raises(PlanError, match="not a measure"):
        selection_policy(rho="0.1", delta="1e-6", pieces={"pay": 5})
    with pytest.raises(PlanError, match="not a multiple of its step"):
        selection_policy(rho="0.1", delta="1e-6", pieces={"emp": "0.5"})


def test_a_saved_selection_policy_reads_back_as_the_same_policy():
    for given in ({}, {"pieces": {"emp": 50}}, {"pieces": {"emp": by("county", {"A": 10}, default=50)}}):
        policy = selection_policy(rho="0.1", delta="1e-6", **given)
        assert Policy.from_json(policy.to_json()) == policy
        assert "delta" in policy.to_javascript()
        assert policy.in_words()


def test_the_table_of_deltas_goes_on_until_a_key_is_nearly_sure_to_be_kept():
    for rho, delta in (("0.1", "1e-6"), (2, "1e-10")):
        law = SelectionLaw.for_delta(rho=rho, delta=delta)
        assert 1 - 2e-6 < law.deltas()[-1][1] <= 1
