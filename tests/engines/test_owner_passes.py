"""What the owner looks at while planning is the same on every engine, and what Python counts from the records."""

import numpy as np
import pyarrow as pa
import pytest
from sqlglot import exp

from engines.plain_mechanism import Plain
from recordwise.engines.compile.owner import BIN_EDGES, PER_DECADE
from recordwise.mechanisms import Gaussian
from recordwise.plan import Keys, Plan, Schema
from recordwise.plan.query import query
from recordwise.plan.sql.grammar import parse_predicate
from recordwise.policy import constant, gaussian_sum
from recordwise.session.owner import OwnerView

SCHEMA = Schema.of(unit="id", measures={"emp": 1, "pay": "0.5"}, columns={"kind": "text"}, firm="firm")
POLICIES = [gaussian_sum("emp", sigma=7), constant("0.25"), gaussian_sum("emp", sigma=7) + gaussian_sum("pay", sigma=3)]
KINDS = ["a", "b", "nobody"]


def rows():
    chance = np.random.default_rng(3)
    return {
        "id": np.arange(200),
        "emp": (chance.pareto(1.1, 200) * 3).astype(np.int64) % 500,
        "pay": (chance.pareto(1.5, 200) * 9).astype(np.int64) / 2,
        "kind": np.array(["a", "b", "c"])[chance.integers(0, 3, 200)],
        "firm": chance.integers(0, 50, 200),
    }


@pytest.fixture(scope="module")
def data():
    return rows()


@pytest.fixture
def view(opens, data):
    with opens(pa.table(data), SCHEMA) as engine:
        yield OwnerView(engine, SCHEMA)


def binned(losses):
    """Counts by bin; a hundred bins to a factor of ten, everything from 0 to the first edge in the first."""
    places = np.searchsorted(np.array(BIN_EDGES) * (1 + 1e-12), losses, side="left")
    return np.bincount(places, minlength=len(BIN_EDGES) + 1)


def test_values_are_counted_under_a_condition(view, data):
    found = view.value_counts(["emp", "kind"], condition=parse_predicate("emp > 2"))
    seen = dict(zip(zip(found.columns["emp"].tolist(), found.columns["kind"].to_pylist()), found.records))
    wanted: dict[tuple[int, str], int] = {}
    for emp, kind in zip(data["emp"].tolist(), data["kind"].tolist()):
        if emp > 2:
            wanted[emp, kind] = wanted.get((emp, kind), 0) + 1
    assert seen == wanted
    assert view.value_counts(["pay"]).columns["pay"].max() == data["pay"].max()


def test_several_histograms_in_one_pass_equal_the_policies_own_numbers(view, data):
    for policy, summary in zip(POLICIES, view.loss_bins(POLICIES), strict=True):
        np.testing.assert_array_equal(summary.counts, binned(policy.loss(data)))


def test_a_loss_beyond_the_bins_is_counted_in_the_last(view, data):
    (found,) = view.loss_bins([constant(10**16)])
    assert found.counts[-1] == len(data["id"])
    assert BIN_EDGES[PER_DECADE * 9] == 1


@pytest.mark.theorem("T-CELLS")
def test_joint_losses_of_firms_are_those_of_their_sums_by_cell(view, data):
    """Two plans beside each other, with Gaussian noise: the loss is that of the sum in each cell."""
    asked = query().group_by("kind", keys=Keys.of({"kind": KINDS})).sum("emp", Gaussian(sigma=7))
    plans = [(asked,), (asked.sum("pay", Gaussian(sigma=3)),)]
    firms = np.unique(data["firm"])
    losses = np.zeros((2, len(firms)))
    for place, firm in enumerate(firms):
        for kind in ("a", "b", "c"):
            inside = (data["firm"] == firm) & (data["kind"] == kind)
            emp, pay = data["emp"][inside].sum() ** 2 / 98, data["pay"][inside].sum() ** 2 / 18
            losses[:, place] += emp, emp + pay
    for joint, (rho, delta) in zip(losses, view.firm_loss_bins(plans), strict=True):
        # Roots and sums in another order may move a firm across an edge.
        assert np.abs(np.cumsum(rho.counts) - np.cumsum(binned(joint))).max() <= 1
        assert delta.counts[0] == len(firms)


@pytest.mark.parametrize("by_firm", [False, True])
def test_the_two_largest_contributors_of_a_cell_are_found(view, data, by_firm):
    asked = query().group_by("kind", keys=Keys.of({"kind": KINDS})).sum("emp", Plain())
    found = view.contributors(asked, "emp", by_firm=by_firm)
    for place, kind in enumerate(sorted(KINDS)):
        inside = data["kind"] == kind
        amounts = data["emp"][inside]
        if by_firm:
            amounts = np.array([amounts[data["firm"][inside] == f].sum() for f in np.unique(data["firm"][inside])])
        amounts = np.sort(amounts[amounts > 0])[::-1].astype(float)
        assert found.number[place] == len(amounts)
        assert found.total[place] == amounts.sum()
        assert list(amounts[:2]) == [x for x in (found.largest[place], found.second[place]) if x]
        assert found.squares[place] == pytest.approx((amounts**2).sum())


def test_several_values_beside_the_totals_of_their_cells_in_one_pass(view, data):
    asked = query().group_by("kind", keys=Keys.of({"kind": KINDS})).sum("emp", Plain())
    plan = Plan(schema=SCHEMA, queries=(asked,))
    total = exp.cast(exp.column("total0", quoted=True), "double")
    passes = view._engine.owner_passes()
    found = passes.summarize_many_beside_totals(
        plan, plan.tables()[0], [total, exp.Mul(this=total, expression=total.copy())]
    )
    sums = {kind: data["emp"][data["kind"] == kind].sum() for kind in KINDS}
    records = {kind: int((data["kind"] == kind).sum()) for kind in KINDS[:2]}
    held = found.reveal().to_pylist()
    for number, power in ((0, 1), (1, 2)):
        seen = {row[f"bin{number}"]: row["records"] for row in held if row[f"bin{number}"] is not None}
        wanted = np.zeros(len(BIN_EDGES) + 1, int)
        for kind, count in records.items():
            wanted += count * binned(np.array([float(sums[kind]) ** power]))
        assert seen == {int(place): int(wanted[place]) for place in np.flatnonzero(wanted)}
