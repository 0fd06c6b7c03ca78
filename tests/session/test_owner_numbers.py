"""What the owner is told, by hand: units of measures, cells alone in their key, contributors, looks and losses over periods."""

import warnings
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import recordwise as rw
from build import employers
from recordwise.engines.compile.owner import BIN_EDGES
from recordwise.errors import GroupLossError, ParameterError, UnkeptLedgerWarning
from recordwise.plan import Plan
from recordwise.plan.schema import Measure
from recordwise.policy import constant, gaussian_sum
from recordwise.session import owner
from recordwise.session.owner import FOR_OWNER, Looks, OwnerView, history_losses

TABLE = {
    "id": [1, 2, 3, 4, 5, 6, 7],
    "firm": [1, 1, 2, 2, 3, 3, 3],
    "county": ["a", "a", "b", "b", "b", "c", "d"],
    "emp": [7, 3, 10, 10, 0, 5, 1],
    "pay": [2.5, 7.5, 5.0, 2.5, 0.0, 2.5, 10.0],
    "net": [1.5, -2.0, -4.0, 0.5, 2.5, 0.0, 0.0],
}
MEASURES = {"emp": 1, "pay": "2.5", "net": Measure.of("net", step="0.5", signed=True)}
NOISE = rw.Gaussian(sigma=2)
BY = rw.query().group_by("county", keys={"county": ["a", "b", "e"]})


@pytest.fixture(scope="module")
def opened() -> Iterator[rw.Session]:
    with employers(TABLE, "county", measures=MEASURES, firm="firm") as session:
        yield session


@pytest.fixture
def view(opened: rw.Session) -> OwnerView:
    return opened.owner.view(data="synthetic")


def test_values_are_counted_in_units_and_in_steps(view: OwnerView) -> None:
    found = view.value_counts(["pay"])
    assert found is not None
    assert dict(zip(found.columns["pay"].tolist(), found.records.tolist())) == {0: 1, 2.5: 3, 5: 1, 7.5: 1, 10: 1}
    assert sorted(found.steps.column("pay").to_pylist()) == [0, 1, 2, 3, 4]
    whole = view.value_counts(["emp"])
    assert whole is not None
    assert whole.columns["emp"].dtype.kind == "i"


def test_as_many_combinations_as_may_be_are_fetched_and_one_more_is_not(
    view: OwnerView, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, "MOST_VALUES", 5)
    assert view.value_counts(["pay"]) is not None
    monkeypatch.setattr(owner, "MOST_VALUES", 4)
    assert view.value_counts(["pay"]) is None


def test_totals_of_cells_are_in_units_and_signed_ones_have_two_rows(view: OwnerView) -> None:
    parts = rw.LogTransform(offset=9, sigma=1, signed=True)
    (found,) = view.cell_totals(BY.sum("pay", NOISE).sum("net", NOISE).sum("net", parts, alias="parts").count(NOISE))
    assert found.totals["sum_pay"].tolist() == [10, 7.5, 0]
    assert found.totals["sum_net"].tolist() == [-0.5, -1, 0]
    assert found.totals["parts"].tolist() == [[1.5, 3, 0], [2, 4, 0]]
    assert found.totals["count"].tolist() == [2, 3, 0]
    assert "selected_on" not in found.totals


def test_records_alone_in_their_key_are_told_by_their_pieces(view: OwnerView) -> None:
    keys = rw.Keys.select(rho=1, delta="1e-3", pieces={"emp": 3})
    selected = rw.query().group_by("county", keys=keys)
    assert sorted(view.lone_pieces(selected).tolist()) == [1, 2]
    assert view.lone_pieces(BY).tolist() == []


def test_contributors_are_positive_contributions_in_units(view: OwnerView) -> None:
    found = view.contributors(BY.sum("pay", NOISE), "pay")
    assert found.number.tolist() == [2, 2, 0]
    assert found.total.tolist() == [10, 7.5, 0]
    assert found.largest.tolist() == [7.5, 5, 0]
    assert found.second.tolist() == [2.5, 2.5, 0]
    assert found.squares.tolist() == [62.5, 31.25, 0]
    firms = view.contributors(BY.sum("pay", NOISE), "pay", by_firm=True)
    assert (firms.number.tolist(), firms.largest.tolist()) == ([1, 1, 0], [10, 7.5, 0])
    tied = view.contributors(BY.sum("emp", NOISE), "emp")
    assert (tied.largest.tolist(), tied.second.tolist()) == ([7, 10, 0], [3, 10, 0])
    whole = view.contributors(rw.query().sum("pay", NOISE), "pay")
    assert (whole.number.tolist(), whole.total.tolist()) == ([6], [30])


def test_contributors_of_selected_keys_are_those_of_the_cells_that_hold_records(view: OwnerView) -> None:
    keys = rw.Keys.select(rho=1, delta="1e-3")
    found = view.contributors(rw.query().group_by("county", keys=keys).sum("pay", NOISE), "pay")
    assert sorted(found.total.tolist()) == [2.5, 7.5, 10, 10]


def test_firms_are_joined_only_if_there_are_any() -> None:
    with employers(TABLE, "county", measures=MEASURES) as session:
        own = session.owner.view(data="synthetic")
        with pytest.raises(ParameterError, match="by_firm needs a firm in the schema"):
            own.contributors(BY.sum("pay", NOISE), "pay", by_firm=True)
        assert own.contributors(BY.sum("pay", NOISE), "pay").number.tolist() == [2, 2, 0]


def test_one_table_at_a_time_and_public_keys_alone(opened: rw.Session) -> None:
    schema = opened.schema
    levels = rw.query().levels((), "county", keys={"county": ["a"]}).count(NOISE)
    with pytest.raises(ParameterError, match="query has several levels"):
        owner.one_table(Plan(schema=schema, queries=(levels,)))
    single = Plan(schema=schema, queries=(BY.count(NOISE),))
    assert owner.one_table(single) == single.tables()[0]
    selected = rw.query().group_by("county", keys=rw.Keys.select(rho=1, delta="1e-3")).count(NOISE)
    assert owner.public_plan(schema, [BY.count(NOISE), levels]).queries == (BY.count(NOISE), levels)
    for wrong in ([selected], [BY.count(NOISE), selected]):
        with pytest.raises(ParameterError, match="must have public keys"):
            owner.public_plan(schema, wrong)


def test_the_loss_of_a_selection_is_part_of_what_its_records_really_lose(view: OwnerView) -> None:
    keys = rw.Keys.select(rho=1, delta="1e-3")
    bins = view.realized_bins(rw.query().group_by("county", keys=keys).count(NOISE, alias="n"))
    public = view.realized_bins(rw.query().group_by("county", keys={"county": list("abcd")}).count(NOISE, alias="n"))
    assert list(bins) == list(public) == ["n"]
    edges = np.array(BIN_EDGES)

    def near(summary: Any, loss: float) -> bool:
        upper = summary.quantile(1)
        return bool(loss <= upper * (1 + 1e-9) and upper <= edges[np.searchsorted(edges, loss * (1 + 1e-9)) + 1])

    assert near(bins["n"], 1 + 1 / 8)
    assert near(public["n"], 1 / 8)


def test_rho_is_what_is_left_of_a_policy_without_its_delta(opened: rw.Session) -> None:
    keys = rw.Keys.select(rho=1, delta="1e-3")
    policy = opened.policy_of(rw.query().group_by("county", keys=keys).count(NOISE))
    assert policy.delta_terms
    left = owner.without_delta(policy)
    assert not left.delta_terms
    assert left.rho == policy.rho
    assert FOR_OWNER.policy("emp").loss({}) == 0


def test_cells_that_no_key_names_are_told_by_how_full_they_are(opened: rw.Session) -> None:
    asked = rw.query().group_by("county", keys={"county": ["c", "e"]}).count(NOISE)
    (found,) = opened.owner.unmatched(asked, data="synthetic").values()
    assert found == [(("b",), 3), (("a",), 2), (("d",), 1)]
    (two,) = opened.owner.unmatched(asked, at_most=2, data="synthetic").values()
    assert two == [(("b",), 3), (("a",), 2)]


def test_ten_cells_are_told_unless_others_are_asked_for() -> None:
    table = {"id": list(range(13)), "county": [f"{number:02d}" for number in range(12)] + ["99"], "emp": [1] * 13}
    with employers(table, "county") as session:
        asked = rw.query().group_by("county", keys={"county": ["99"]}).count(NOISE)
        (found,) = session.owner.unmatched(asked, data="synthetic").values()
        assert len(found) == 10


def test_cells_in_the_keys_are_counted_next_to_empty_ones(opened: rw.Session) -> None:
    asked = rw.query().levels((), "county", keys={"county": ["a", "b", "e"]}, all_other="publish").count(NOISE)
    plain, rests = opened.owner.preflight(BY.count(NOISE), asked, data="synthetic")[:2]
    assert (plain.records, plain.inside, plain.outside, plain.cells, plain.empty, plain.in_rests) == (7, 5, 2, 3, 1, 0)
    assert (rests.records, rests.inside, rests.in_rests, rests.cells, rests.empty) == (7, 7, 2, 4, 1)


def test_firms_of_a_policy_alone_need_a_bound_and_no_delta(opened: rw.Session) -> None:
    policy = gaussian_sum("emp", sigma=10)
    with pytest.raises(ParameterError, match="bound must be one of"):
        opened.owner.firm_loss_summary(policy, bound="loose", data="synthetic")
    keys = rw.Keys.select(rho=1, delta="1e-3")
    selected = rw.query().group_by("county", keys=keys).count(NOISE)
    with pytest.raises(GroupLossError, match="has a delta"):
        opened.owner.firm_loss_summary(opened.policy_of(selected), data="synthetic")
    assert opened.owner.firm_loss_summary(selected, data="synthetic").deltas is not None
    assert opened.owner.firm_loss_summary(BY.count(NOISE), data="synthetic").deltas is None


# Looks.


def test_a_look_is_at_the_queries_or_at_the_plan_of_the_session(opened: rw.Session) -> None:
    noted: list[Any] = []
    ledger: Any = SimpleNamespace(
        on_disk=True, series=None, look=lambda command, *, plan: noted.append((command, plan))
    )
    plan, other = (Plan(schema=opened.schema, queries=(each,)) for each in (BY.count(NOISE), BY.sum("emp", NOISE)))
    own, others = (owner.plan_digest(each, None) for each in (plan, other))
    assert own != others
    looks = Looks(ledger=ledger, schema=opened.schema, planned=plan)
    looks.enter("owner.view")
    looks.enter("owner.view", other.queries)
    looks.enter("owner.view", (BY.sum("nothing", NOISE),))
    Looks(ledger=ledger, schema=opened.schema).enter("owner.view")
    for data in ("public", "synthetic"):
        looks.enter("owner.view", data=data)
    looks.enter("preflight", data="past")
    assert noted == [
        ("owner.view", own), ("owner.view", others), ("owner.view", own), ("owner.view", None), ("preflight", own),
    ]  # fmt: skip


def test_every_look_of_the_owner_is_noted_unless_records_are_not_confidential(tmp_path: Path) -> None:
    asked, policy = BY.count(NOISE), gaussian_sum("emp", sigma=10)
    with (
        warnings.catch_warnings(),
        employers(TABLE, "county", measures=MEASURES, firm="firm", ledger=tmp_path / "own.ledger") as session,
    ):
        warnings.simplefilter("error")
        looks: dict[str, Any] = {
            "owner.view": session.owner.view,
            "preflight": lambda **how: session.owner.preflight(asked, **how),
            "owner.unmatched": lambda **how: session.owner.unmatched(asked, **how),
            "owner.loss_summary": lambda **how: session.owner.loss_summary(policy, **how),
            "owner.firm_loss_summary": lambda **how: session.owner.firm_loss_summary(asked, **how),
            "owner.realized_loss_summary": lambda **how: session.owner.realized_loss_summary(asked, **how),
        }
        for look in looks.values():
            look(data="synthetic")
        assert session._ledger.looks() == {}
        for look in looks.values():
            look()
        assert session._ledger.looks() == dict.fromkeys(looks, 1)
        session.owner.firm_loss_summary(policy)
        with pytest.raises(ParameterError, match="a table for each charged period: none"):
            session.owner.history_losses({"2026": {"id": [1]}})
        assert session._ledger.looks()["owner.firm_loss_summary"] == 2
        assert session._ledger.looks()["owner.history_losses"] == 1


def test_a_look_that_is_forgotten_is_warned_of(opened: rw.Session) -> None:
    ledger: Any = SimpleNamespace(on_disk=False, series=None, look=lambda command, *, plan: None)
    with pytest.warns(UnkeptLedgerWarning, match="that confidential records were viewed is forgotten"):
        Looks(ledger=ledger, schema=opened.schema).enter("owner.view")


# Losses over periods.


def test_units_of_several_columns_are_told_apart() -> None:
    one = pa.table({"state": [1, 1, 2], "id": [5, 6, 5]})
    two = pa.table({"state": [2, 1, 3], "id": [5, 6, 6]})
    count, places = owner._unit_places([one, two], ["state", "id"])
    assert count == 4
    assert places.tolist() == [0, 1, 2, 2, 1, 3]
    assert owner._unit_places([one, two], ["id"])[0] == 2


def test_losses_add_up_over_periods_by_unit() -> None:
    policies = {"2025": constant("0.5"), "2026": gaussian_sum("emp", sigma=1)}
    records = {"2025": {"id": [1, 2]}, "2026": {"id": [3, 2], "emp": [2, 4]}}
    found = history_losses(policies, records, ["id"])
    assert found.by_period["2025"].tolist() == [0.5, 0.5, 0]
    assert found.by_period["2026"].tolist() == pytest.approx([0, 8, 2], rel=1e-12)
    assert found.total.tolist() == pytest.approx([0.5, 8.5, 2], rel=1e-12)
    assert [found.quantile(share) for share in (0, 0.4, 0.5, 0.6, 1)] == pytest.approx([0.5, 2, 2, 8.5, 8.5], rel=1e-12)
    for wrong, told in (
        ({"2025": records["2025"]}, "a table for each charged period: 2025, 2026"),
        (records | {"2027": {}}, "a table for each charged period"),
        (records | {"2026": {"id": [3]}}, "the table of 2026 lacks emp"),
        (records | {"2025": {"emp": [3]}}, "the table of 2025 lacks id"),
    ):
        with pytest.raises(ParameterError, match=told):
            history_losses(policies, wrong, ["id"])


def test_a_unit_that_stands_twice_in_a_period_loses_for_both() -> None:
    found = history_losses({"2025": constant(Fraction(1, 4))}, {"2025": {"id": [7, 7, 8]}}, ["id"])
    assert found.total.tolist() == [0.5, 0.25]


def test_losses_over_periods_of_a_ledger_without_a_charge_are_refused() -> None:
    for given in ({}, {"2025": pa.table({"id": [1]})}):
        with pytest.raises(ParameterError, match="a table for each charged period: none"):
            history_losses({}, given, ("id",))
