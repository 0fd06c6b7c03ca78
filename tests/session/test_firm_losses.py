"""What firms lose together, as engines count it in one statement, is what Python finds firm by firm."""

import numpy as np
import pyarrow as pa
import pytest

import recordwise as rw
from build import employers
from recordwise.engines.owner import DELTA_EDGES, EDGES
from recordwise.plan import Case, Group, Keys, Plan
from recordwise.plan.cost import firm_policy
from recordwise.plan.query import query
from recordwise.plan.sql.grammar import parse_predicate

COUNTIES = Keys.of({"county": ["01", "02", "03"]})


@pytest.fixture(scope="module")
def rows():
    chance = np.random.default_rng(7)
    size = 300
    return {
        "id": np.arange(size),
        "emp": np.minimum(np.floor(chance.pareto(1.1, size) * 4), 5000).astype(int),
        "pay": np.round(chance.pareto(1.3, size) * 10) / 2,
        "county": chance.choice(["01", "02", "03", "99"], size),
        "naics": chance.choice(["1111", "1112", "2111", "2121"], size),
        # Most firms have one unit, as in the real world, and are counted apart.
        "firm": np.where(np.arange(size) < 100, 1000 + np.arange(size), chance.integers(0, 40, size)),
    }


@pytest.fixture(scope="module")
def opened(rows, opens):
    measures = {"emp": 1, "pay": "0.5"}
    with employers(pa.table(rows), measures=measures, firm="firm", **opens.session_options()) as session:
        yield session


def by_firm(session, rows, *queries):
    """The loss of each firm, one by one in Python."""
    firm = firm_policy(Plan(schema=session.schema, queries=queries))
    found = []
    for number in np.unique(rows["firm"]):
        units = {name: column[rows["firm"] == number] for name, column in rows.items()}
        found.append(firm.loss(units))
    return np.array([each.rho for each in found]), np.array([each.delta for each in found])


def counted(values, edges):
    return np.bincount(np.searchsorted(edges, values, side="left"), minlength=len(edges) + 1)


def same_histogram(found, values, edges):
    """Sums in another order may move a firm across an edge that it stands on."""
    low, high = (counted(values * (1 + sign * 1e-9), edges) for sign in (-1, 1))
    risen = np.cumsum(found)
    return np.all(np.cumsum(high) <= risen) and np.all(risen <= np.cumsum(low)) and risen[-1] == len(values)


BY_COUNTY = query().group_by("county", keys=COUNTIES)
LEVELS = query().group_by("county").levels(rw.prefix("naics", (2, 4)), keys=[
    Keys.of({"county": ["01", "02"], "naics2": ["11", "21"]}), Keys.of({"county": ["01"], "naics4": ["1111"]})
])  # fmt: skip
AT = rw.by(rw.policy.ConditionColumn("naics", 2), {"11": 10}, default=100)
SIZES = Group("size", Case(((parse_predicate("emp < 10"), "small"),), "large"))
PLANS = {
    "log and count": (BY_COUNTY.sum("emp", rw.LogTransform(offset=10, sigma=1)).count(rw.Gaussian(rho="0.01")),),
    "levels": (
        LEVELS.sum("emp", rw.UnitSplit(at=AT, rho="0.1")).sum("pay", rw.GeneralizedGaussian(shape=1, scale=20)),
    ),
    "pure": (
        BY_COUNTY.count(rw.GeneralizedGaussian(shape=1, scale=4)).sum("pay", rw.GeneralizedGaussian(shape=1, scale=20)),
    ),
    "clamped, filtered": (BY_COUNTY.where("emp > 3").sum("pay", rw.Clamped(to=10, rho="0.1")),),
    "firms and sizes": (
        query()
        .group_by(SIZES, keys=Keys.of({"size": ["small", "large"]}))
        .count_distinct("firm", rw.Gaussian(rho="0.1")),
        query().sum("pay", rw.RootTransform(degree=2, offset=1, sigma=2)),
    ),
    "quantile": (BY_COUNTY.quantile("emp", p="0.5", grid=rw.mechanisms.Grid.log(1, 5000, bits=5), rho="0.1"),),
    "two filters": (
        BY_COUNTY.where("pay < 30 and naics = '1111'").sum("emp", rw.Gaussian(sigma=40)),
        query().where("emp > 3").count(rw.Gaussian(rho="0.01")),
    ),
    "average": (BY_COUNTY.avg("pay", sum=rw.Gaussian(sigma=40), count=rw.Gaussian(rho="0.01")),),
}


@pytest.mark.theorem("T-CELLS")
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@pytest.mark.costly
def test_firms_are_counted_by_cell_as_python_counts_them(opened, rows, plan):
    found = opened.owner.firm_loss_summary(*plan)
    losses, _ = by_firm(opened, rows, *plan)
    assert found.deltas is None
    assert same_histogram(found.counts, losses, EDGES)
    alone = opened.owner.firm_loss_summary(opened.policy_of(*plan))
    assert np.all(np.cumsum(found.counts) >= np.cumsum(alone.counts))


@pytest.mark.theorem("T-SELECT-GROUP")
def test_selected_keys_give_firms_a_pair(opened, rows):
    selected = query().group_by("county", keys=Keys.select(rho="0.2", delta="1e-4", pieces={"emp": 50}))
    asked = selected.sum("emp", rw.UnitSplit(at=50, rho="0.1"))
    found = opened.owner.firm_loss_summary(asked)
    losses, deltas = by_firm(opened, rows, asked)
    assert same_histogram(found.counts, losses, EDGES)
    assert same_histogram(found.deltas.counts, deltas, DELTA_EDGES)
    assert deltas.max() > 1e-3
    with pytest.raises(rw.errors.GroupLossError, match="give the queries"):
        opened.owner.firm_loss_summary(opened.policy_of(asked))


@pytest.mark.costly
def test_plans_side_by_side_are_counted_in_one_pass(opened, rows):
    view = opened.owner.view(data="synthetic")
    plans = [PLANS["log and count"], PLANS["quantile"], PLANS["levels"]]
    for plan, (rho, delta) in zip(plans, view.firm_loss_bins(plans), strict=True):
        losses, _ = by_firm(opened, rows, *plan)
        assert same_histogram(rho.counts, losses, np.array(rho.edges))
        assert delta.counts[0] == len(losses)


def test_equal_losses_by_two_tables_are_both_counted(opened, rows):
    """The same count of everything twice: every firm loses the same by either."""
    twice = query().count(rw.Gaussian(rho="0.01")), query().where("emp >= 0").count(rw.Gaussian(rho="0.01"))
    found = opened.owner.firm_loss_summary(*twice)
    losses, _ = by_firm(opened, rows, *twice)
    assert same_histogram(found.counts, losses, EDGES)
    units = np.bincount(rows["firm"])
    np.testing.assert_allclose(np.sort(losses), np.sort(2 * 0.01 * units[units > 0] ** 2.0))


def test_a_schema_without_a_firm_says_what_to_declare(rows):
    with (
        employers(pa.table(rows)) as session,
        pytest.raises(rw.errors.ParameterError, match="firm"),
    ):
        session.owner.firm_loss_summary(BY_COUNTY.sum("emp", rw.Gaussian(sigma=9)))
