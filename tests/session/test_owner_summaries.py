"""Confidential summaries for the owner: the losses of the records as they are in the data."""

import numpy as np
import pyarrow as pa
import pytest

import recordwise as rw
from build import employers
from recordwise.errors import GroupLossError, ParameterError
from recordwise.policy import group_loss, selection

COUNTIES = ["01", "02", "03"]
EDGES = [0.001234567, 0.01234567, 0.1234567, 1.234567, 12.34567]


@pytest.fixture(scope="module")
def rows():
    chance = np.random.default_rng(5)
    size = 400
    emp = np.minimum(np.floor(chance.pareto(1.1, size) + 1), 5000).astype(int)
    return {
        "id": np.arange(size),
        "emp": emp,
        "county": chance.choice([*COUNTIES, "99"], size),
        "firm": chance.integers(0, 60, size),
    }


@pytest.fixture(scope="module")
def opened(rows, opens):
    with employers(pa.table(rows), firm="firm", **opens.session_options()) as session:
        yield session


def counted(losses):
    return np.bincount(np.searchsorted(EDGES, losses, side="left"), minlength=len(EDGES) + 1)


def test_losses_of_a_policy_are_counted_as_python_counts_them(opened, rows):
    policy = rw.UnitSplit(at=50, rho=0.01).policy("emp", tight=False) + rw.Gaussian(sigma=300).policy("emp")
    found = opened.owner.loss_summary(policy, edges=EDGES)
    np.testing.assert_array_equal(found.counts, counted(policy.loss(rows)))
    assert found.share_above(1.234567) == np.mean(policy.loss(rows) > 1.234567)


@pytest.mark.parametrize("bound", ["tight", "simple"])
def test_firms_join_the_losses_of_their_units(opened, rows, bound):
    policy = rw.Gaussian(sigma=300).policy("emp")
    losses = np.asarray(policy.loss(rows))
    joint = [group_loss(losses[rows["firm"] == firm], bound=bound) for firm in np.unique(rows["firm"])]
    np.testing.assert_array_equal(
        opened.owner.firm_loss_summary(policy, bound=bound, edges=EDGES).counts, counted(joint)
    )


@pytest.mark.parametrize(
    "mechanism",
    [
        rw.LogTransform(offset=10, sigma=1),
        rw.RootTransform(degree=2, offset=1, sigma=2),
        rw.LogTransform(offset=10, laplace_scale="0.3"),
        rw.Gaussian(sigma=100),
    ],
    ids=lambda mechanism: f"{type(mechanism).__name__}",
)
@pytest.mark.costly
def test_realized_losses_are_those_of_the_mechanism_at_each_records_own_cell(opened, rows, mechanism):
    keys = rw.Keys.product(county=COUNTIES)
    asked = rw.query().group_by("county", keys=keys).sum("emp", mechanism)
    inside = np.isin(rows["county"], COUNTIES)
    totals = {county: int(rows["emp"][rows["county"] == county].sum()) for county in COUNTIES}
    pairs = zip(rows["emp"][inside], rows["county"][inside])
    exact = [mechanism.realized_loss(totals[county] - int(emp), int(emp)) for emp, county in pairs]
    exact += [0.0] * int(np.sum(~inside))
    # The summary adds one grid step to what really changed, so compare away from the edges.
    found = opened.owner.realized_loss_summary(asked, edges=EDGES)
    assert found.counts.sum() == len(inside)
    np.testing.assert_array_equal(found.counts, counted(np.array(exact) * (1 + 1e-4)))


def test_realized_losses_never_exceed_the_policy(opened):
    asked = (
        rw.query()
        .group_by("county", keys=rw.Keys.product(county=COUNTIES))
        .sum("emp", rw.LogTransform(offset=10, sigma=1))
    )
    realized, promised = (
        opened.owner.realized_loss_summary(asked, edges=EDGES),
        opened.owner.loss_summary(opened.policy_of(asked), edges=EDGES),
    )
    assert realized.quantile(0.9) <= promised.quantile(0.9)


TRANSFORM = rw.LogTransform(offset=10, sigma=1)


def workload():
    """Two statistics in all and by county, and a sum with a condition."""
    keys = rw.Keys.product(county=COUNTIES)
    both = [each.count(rw.Gaussian(rho="0.01")) for each in (rw.query(), rw.query().group_by("county", keys=keys))]
    large = rw.query().where("emp > 2").group_by("county", keys=keys).sum("emp", rw.Gaussian(sigma=300))
    return *(each.sum("emp", TRANSFORM) for each in both), large


def realized_by_hand(rows, members):
    """What a group of records changes in each answer of the workload."""
    shift, counties = rw.Gaussian(rho="0.01").loss_at_shift, rows["county"]
    lost = 0.0
    for county in (None, *COUNTIES):
        here = np.full(len(counties), True) if county is None else counties == county
        own = here & members
        total, change = int(rows["emp"][here].sum()), int(rows["emp"][own].sum())
        lost += shift(int(own.sum()))
        lost += TRANSFORM.realized_loss(total - change, change) if change else 0.0
        if county is not None:
            lost += rw.Gaussian(sigma=300).loss_at_shift(int(rows["emp"][own & (rows["emp"] > 2)].sum()))
    return lost


@pytest.mark.costly
def test_realized_losses_of_a_workload_add_up_over_its_tables_for_records_and_firms(opened, rows):
    asked = workload()
    each = [realized_by_hand(rows, rows["id"] == unit) for unit in rows["id"]]
    found = opened.owner.realized_loss_summary(*asked, edges=EDGES)
    np.testing.assert_array_equal(found.counts, counted(np.array(each) * (1 + 1e-5)))
    firms = [realized_by_hand(rows, rows["firm"] == firm) for firm in np.unique(rows["firm"])]
    found = opened.owner.realized_loss_summary(*asked, firms=True, edges=EDGES)
    np.testing.assert_array_equal(found.counts, counted(np.array(firms) * (1 + 1e-5)))


@pytest.mark.costly
def test_no_quantile_of_realized_losses_is_above_that_of_the_policy(opened):
    asked = workload()
    pairs = [
        (opened.owner.realized_loss_summary(*asked), opened.owner.loss_summary(opened.policy_of(*asked))),
        (opened.owner.realized_loss_summary(*asked, firms=True), opened.owner.firm_loss_summary(*asked)),
    ]
    for realized, promised in pairs:
        assert realized.counts.sum() == promised.counts.sum()
        assert np.all(np.cumsum(realized.counts) >= np.cumsum(promised.counts))


def test_a_summary_prints_nothing_but_a_warning(opened):
    assert repr(opened.owner.loss_summary(rw.policy.constant(1), edges=EDGES)) == "<LossSummary: CONFIDENTIAL>"


def test_summaries_cost_nothing_and_each_is_a_look(opened):
    before = opened.history()
    opened.owner.loss_summary(rw.policy.constant(1))
    opened.owner.loss_summary(rw.policy.constant(1), data="synthetic")
    added = [event for event in opened.history()[len(before) :] if event.kind != "opened"]
    assert [(event.kind, event.body) for event in added] == [("looked", {"command": "owner.loss_summary"})]
    assert opened.spent() == rw.policy.constant(0)


def test_what_has_no_bound_is_refused(opened):
    with pytest.raises(GroupLossError):
        opened.owner.firm_loss_summary(selection(3, {"emp": 50}, ((1, 0.001), (2, 0.1))))
    selected = rw.query().group_by("county", keys=rw.Keys.select(rho=1, delta="1e-6"))
    with pytest.raises(ParameterError, match="public keys"):
        opened.owner.realized_loss_summary(selected.count(rw.Gaussian(rho=1)))
