"""The terms of releases that follow others, one by one: each is refused alone, and its nearest neighbor is not."""

import json
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import recordwise as rw
from recordwise.errors import ParameterError
from recordwise.ledger.chain import Event
from recordwise.mechanisms.quantile import Grid
from recordwise.noise.randomness import KEY_BYTES
from recordwise.plan import Group, Plan
from recordwise.plan.describe import plan_json
from recordwise.plan.expressions import DatePart, Field, Prefix
from recordwise.plan.plan import Sensitive, TableTotals
from recordwise.plan.schema import Measure, Schema
from recordwise.plan.statistics.totals import ExactTable
from recordwise.policy import constant
from recordwise.policy.series import CARRY, REVISE, START, Head, Series
from recordwise.session import carried, checks, stages
from recordwise.session.session import stage_of
from recordwise.session.stages import Following

SCHEMA = Schema.of(
    unit="id",
    firm="firm",
    measures={"emp": 1, "net": Measure.of("net", signed=True), "rest": Measure.of("rest", derive="2 * emp")},
    columns={"county": "text", "size": "integer", "since": "date"},
)
NOISE = rw.Gaussian(sigma=5)
BY = rw.query().group_by("county", keys={"county": ["01", "02", "03"]})


def planned(*queries: Any) -> Plan:
    return Plan(schema=SCHEMA, queries=queries)


def series(**changed: Any) -> Series:
    return Series(**({"name": "s", "period": "2025", "carry": Fraction(1, 2)} | changed))


TERMS: dict[str, tuple[str, Series | None, bool, str | None]] = {
    "no series": (CARRY, None, True, "needs a series"),
    "no budget": (CARRY, series(), False, "needs a budget that was declared"),
    "nothing carried": (CARRY, series(carry=None), True, "needs the part of the noise"),
    "nothing carried at the start": (START, series(carry=None), True, "needs the part of the noise"),
    "nothing carried by a revision": (REVISE, series(carry=None, revision=1), True, None),
    "a revision that carries": (CARRY, series(revision=1), True, "this is a revision"),
    "a revision that starts": (START, series(revision=1), True, None),
    "no revision": (REVISE, series(), True, "needs the number of the revision"),
    "a revision": (REVISE, series(revision=1), True, None),
    "carried": (CARRY, series(), True, None),
}


@pytest.mark.parametrize("name", TERMS)
def test_terms_of_a_series(name: str) -> None:
    kind, own, budget, told = TERMS[name]
    ledger: Any = SimpleNamespace(budget=constant(1) if budget else None)
    if told is None:
        carried._check_terms(kind, own, ledger)
        return
    with pytest.raises(ParameterError, match=told):
        carried._check_terms(kind, own, ledger)


@pytest.mark.parametrize(
    ("kind", "name", "period", "revision", "own", "told"),
    [
        (CARRY, "s", "2024", 0, series(), None),
        (CARRY, "t", "2024", 0, series(), "another series"),
        (CARRY, "s", "2025", 0, series(), "not of an earlier period"),
        (CARRY, "s", "2026", 0, series(), "not of an earlier period"),
        (REVISE, "s", "2025", 0, series(revision=1), None),
        (REVISE, "s", "2025", 1, series(revision=2), None),
        (REVISE, "s", "2025", 0, series(revision=2), "not the revision before"),
        (REVISE, "s", "2025", 1, series(revision=1), "not the revision before"),
        (REVISE, "s", "2024", 0, series(revision=1), "not the revision before"),
    ],
)
def test_the_release_that_is_followed_is_the_one_before(
    kind: str, name: str, period: str, revision: int, own: Series, told: str | None
) -> None:
    stated = SimpleNamespace(name=name, period=period, revision=revision)
    earlier: Any = SimpleNamespace(published=SimpleNamespace(series=stated))
    if told is None:
        carried._check_period(earlier, own, kind)
        return
    with pytest.raises(ParameterError, match=told):
        carried._check_period(earlier, own, kind)


GRID = Grid.log(1, 100, bits=3)
UNPROVED: dict[str, tuple[Any, str]] = {
    "selected": (rw.query().group_by("county", keys=rw.Keys.select(rho=1, delta="1e-6")).count(NOISE), "keys are selected"),
    "rests": (
        rw.query().levels((), "county", keys={"county": ["01"]}, all_other="publish").count(NOISE),
        "all other cells are published",
    ),
    "quantiles": (BY.count(NOISE).quantile("emp", p="0.5", grid=GRID, rho=1), "no proof for quantiles"),
    "firms": (BY.count_distinct("firm", NOISE), "only counts of units and sums"),
    "two parts": (BY.sum("net", rw.LogTransform(offset=9, sigma=1, signed=True)), "only counts of units and sums"),
    "signed": (BY.sum("net", NOISE), "may add to what comes by another"),
    "derived": (BY.sum("rest", NOISE), "may add to what comes by another"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNPROVED)
def test_what_has_no_proof_is_refused_next_to_what_has_one(name: str) -> None:
    asked, told = UNPROVED[name]
    proved = BY.count(NOISE).sum("emp", NOISE).count_distinct("id", NOISE)
    carried.check_carriable(planned(proved), CARRY)
    for plan in (planned(asked), planned(proved, asked)):
        with pytest.raises(ParameterError, match=told):
            carried.check_carriable(plan, CARRY)


def test_cells_are_found_in_an_earlier_list_by_their_later_codes() -> None:
    now = pa.table({"a": ["x", "y", "z"], "b": [1, 2, 3]})
    before = pa.table({"b": [3, 1, 9, 2], "a": ["z", "x", "x", "old"], "more": [0, 0, 0, 0]})
    assert carried._places(now, before, {}).tolist() == [1, -1, 0]
    assert carried._places(now, before, {"a": {"old": "y"}}).tolist() == [1, 3, 0]
    assert carried._places(pa.table({}), pa.table({}), {}).tolist() == [0]
    same = pa.table({"a": ["x", "y"]})
    assert carried._all_listed(same, same, {})
    assert not carried._all_listed(same, pa.table({"a": ["x", "old"]}), {})
    assert carried._all_listed(same, pa.table({"a": ["old", "x"]}), {"a": {"old": "y"}})
    assert not carried._all_listed(same, pa.table({"a": ["old", "x", "w"]}), {"a": {"old": "y"}})
    assert not carried._all_listed(same, pa.table({"a": ["old", "w"]}), {"a": {"old": "y"}})
    assert not carried._all_listed(same, pa.table({"a": ["old", "x"]}), {"b": {"old": "y"}})


def test_cells_that_follow_no_earlier_one_are_listed_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(
        BY.count(NOISE), rw.query().group_by("size", keys={"size": [1, 2]}).count(NOISE), rw.query().count(NOISE)
    )
    before = planned(
        rw.query().group_by("county", keys={"county": ["01", "77"]}).count(NOISE),
        rw.query().group_by("size", keys={"size": [2]}).count(NOISE),
        rw.query().count(NOISE),
    )
    found = carried._fresh_cells(plan, before, {})
    assert found is not None
    assert sorted(map(sorted, found.values())) == [[("02",), ("03",)], [("1",)]]
    renamed = carried._fresh_cells(plan, before, {"county": {"77": "02"}})
    assert renamed is not None
    assert sorted(map(sorted, renamed.values())) == [[("03",)], [("1",)]]
    for most, known in ((3, True), (2, False), (1, False)):
        monkeypatch.setattr(carried, "MOST_FRESH", most)
        assert (carried._fresh_cells(plan, before, {}) is not None) == known


def test_a_crosswalk_names_columns_of_codes_in_their_types() -> None:
    plan = planned(
        BY.count(NOISE),
        rw.query().group_by("size", keys={"size": [1, 2]}).count(NOISE),
        rw.query().group_by(rw.prefix("county", 1), keys={"county1": ["0"]}).count(NOISE),
        rw.query().group_by(Group("own", Field("county")), keys={"own": ["01"]}).count(NOISE),
    )

    def read(crosswalk: dict[str, Any], of: Plan = plan) -> Any:
        return carried._renaming(of, Following(kind=CARRY, crosswalk=crosswalk))

    plain = planned(*plan.queries[:3])
    assert read({}, plain) == {}
    assert read({"county": {"01": "11"}, "size": [("7", "1"), (8, 2)]}, plain) == {
        "county": {"01": "11", "11": None},
        "size": {7: 1, 8: 2, 1: None, 2: None},
    }
    assert read({"county1": [["9", "0"]]}, plain) == {"county1": {"9": "0", "0": None}}
    for wrong, told in (
        ({"countx": {"1": "2"}}, "names 'countx'"),
        ({"county": {}}, "must be pairs"),
        ({"county": [("1", "2", "3")]}, "must be pairs"),
        ({"county": [("1", None)]}, "must be pairs"),
        ({"county": ["12"]}, "must be pairs"),
        ({"county": None}, "must be pairs"),
        ({"county": [3]}, "must be pairs"),
        ({"size": [("x", "1")]}, "no whole number"),
    ):
        with pytest.raises(ParameterError, match=told):
            read(wrong, plain)
    for name in ("own", "county"):
        with pytest.raises(ParameterError, match=f"names '{name}'"):
            read({name: {"1": "2"}})
    usual = [Group("a", Field("county")), Group("b", Prefix("county", 2)), Group("c", DatePart("since", "year"))]
    assert [carried._usual_name(each) for each in usual] == ["county", "county2", None]


def test_the_mechanisms_of_a_saved_query_are_known_by_what_they_were_drawn_for() -> None:
    form = {
        "where": "emp > 1",
        "tables": [{"name": "t", "by": [], "sized_on": "x", "sizes": "y", "share": "1"}],
        "statistics": [
            {"name": "n", "kind": "Count", "mechanism": {"kind": "Gaussian", "sigma": "5"}},
            {"name": "a", "kind": "Average", "sum": {"kind": "A"}, "count": {"kind": "B"}},
            {"name": "b", "kind": "Average", "sum": {"kind": "C"}, "count": None},
            {"name": "r", "kind": "Ratio", "of": "n", "to": "a"},
        ],
    }
    assert stages.known_mechanisms(form) == {
        "n": {"kind": "Gaussian", "sigma": "5"},
        "a_sum": {"kind": "A"},
        "a_count": {"kind": "B"},
        "b_sum": {"kind": "C"},
    }
    where, tables, statistics = stages.bare_form(form)
    assert where == "emp > 1"
    assert tables == [{"name": "t", "by": [], "share": "1"}]
    assert statistics == [
        {"name": "n", "kind": "Count"},
        {"name": "a", "kind": "Average"},
        {"name": "b", "kind": "Average", "count": None},
        {"name": "r", "kind": "Ratio", "of": "n", "to": "a"},
    ]
    assert stages.bare_form({}) == [None, [], []]


def test_the_charge_of_a_release_is_the_one_that_the_ledger_closed_with_its_digest(monkeypatch) -> None:
    monkeypatch.setattr(stages, "digest_of", lambda tables, policy: policy)
    forms = [{"b": 1, "a": 2}]
    events = [
        Event(sequence=1, time="", kind="opened", body={}, digest="d1"),
        Event(sequence=2, time="", kind="charged", body={"details": [{"a": 2, "b": 1}]}, digest="d2"),
        Event(sequence=3, time="", kind="charged", body={"details": [{"a": 3}]}, digest="d3"),
        Event(sequence=4, time="", kind="released", body={"digest": "x", "charge": 2, "mark": "m"}, digest="d4"),
        Event(sequence=5, time="", kind="released", body={"digest": "y", "charge": 3, "mark": "m"}, digest="d5"),
    ]
    published = SimpleNamespace(plan_forms=forms, added=())
    named: dict[str, Any] = {"digest": "x", "policy": "x", "privacy_label": "m"}
    earlier: Any = SimpleNamespace(**named, tables=(), published=published, head=Head(length=9, digest="h"))

    def ledger(on_disk: bool = True) -> Any:
        return SimpleNamespace(history=lambda: events, on_disk=on_disk)

    found = stages.charge_of_release(earlier, ledger())
    assert (found.sequence, found.head) == (2, Head(length=2, digest="d2"))
    for changed, own, told in (
        ({}, ledger(on_disk=False), "must be a file"),
        ({"digest": "z"}, ledger(), "was not charged to this ledger"),
        ({"privacy_label": "n"}, ledger(), "another privacy label"),
        ({"policy": "w"}, ledger(), "other tables than those that were released"),
        ({"digest": "y", "policy": "y"}, ledger(), "other mechanisms than the ledger"),
    ):
        other = SimpleNamespace(**(earlier.__dict__ | changed))
        for kind in ("refine", "carry"):
            with pytest.raises(ParameterError, match=f"{kind}.*{told}"):
                stages.charge_of_release(other, own, kind=kind)  # type: ignore[arg-type]


def test_what_a_plan_was_drawn_with_before_is_matched_cell_by_cell() -> None:
    """A statistic with an earlier answer in two of three cells follows it there and is drawn afresh in the third."""
    plan = planned(BY.count(NOISE))
    (table,) = plan.tables()
    cells = plan.cells(table)
    assert carried._places(cells, pa.table({"county": ["03", "01"]}), {}).tolist() == [1, -1, 0]
    tables = [SimpleNamespace(name="county", keys=("county",), data=pa.table({"county": ["01", "02", "03"]}))]
    assert carried._cells_agree(plan, SimpleNamespace(tables=tables))  # type: ignore[arg-type]
    for wrong in (
        replace_table(tables[0], name="other"),
        replace_table(tables[0], keys=("size",)),
        replace_table(tables[0], data=pa.table({"county": ["01", "02", "04"]})),
        replace_table(tables[0], data=pa.table({"county": ["01", "02"]})),
    ):
        assert not carried._cells_agree(plan, SimpleNamespace(tables=[wrong]))  # type: ignore[arg-type]


def replace_table(table: Any, **changed: Any) -> Any:
    return SimpleNamespace(**(table.__dict__ | changed))


def test_totals_are_noted_for_their_owner_alone_and_checked_by_period(tmp_path: Path) -> None:
    ledger: Any = SimpleNamespace(on_disk=True, series=None, real_path=str(tmp_path / "own.ledger"))
    charge: Any = SimpleNamespace(sequence=3, head=SimpleNamespace(digest="abc"))
    plan = planned(BY.count(NOISE))
    (table,) = plan.tables()

    def totals(*values: int) -> list[TableTotals]:
        exact = ExactTable(cells=3, totals={table.totals[0]: np.array(values)}, bins={})  # type: ignore[dict-item]
        return [TableTotals(table=table, cells=plan.cells(table), exact=Sensitive(exact))]

    described = plan_json(plan)
    checks.note_totals(ledger, charge, described, totals(1, 2, 3))
    path = checks.totals_file(ledger)
    assert path.stat().st_mode & 0o777 == 0o600
    (line,) = path.read_text().splitlines()
    assert len(json.loads(line)["key"]) == 2 * KEY_BYTES
    checks.check_totals(ledger, charge, described, totals(1, 2, 3))
    for kind, advice in (("refine", "Refine it on the records"), ("carry", "Give the old records")):
        with pytest.raises(ParameterError, match=f"{kind}.*other records.*{advice}"):
            checks.check_totals(ledger, charge, described, totals(1, 2, 4), kind=kind)
    with pytest.raises(ParameterError, match="other records"):
        checks.check_totals(ledger, charge, described, totals(1, 2, 3), series=series())
    other: Any = SimpleNamespace(sequence=4, head=SimpleNamespace(digest="abc"))
    with pytest.raises(ParameterError, match="has no digest of its totals"):
        checks.check_totals(ledger, other, described, totals(1, 2, 3))
    memory = SimpleNamespace(**(ledger.__dict__ | {"on_disk": False}))
    before = path.read_bytes()
    checks.note_totals(memory, charge, described, totals(1, 2, 3))  # type: ignore[arg-type]
    assert path.read_bytes() == before
    checks.note_totals(ledger, charge, described, totals(4, 5, 6))
    checks.check_totals(ledger, charge, described, totals(4, 5, 6))
    assert len(path.read_text().splitlines()) == 2


@pytest.mark.parametrize("kind", ["refine", "carry", "revise", "tier_of"])
def test_the_name_of_a_folder_is_no_release(kind: str) -> None:
    earlier: Any = {kind: "out/2026"}
    with pytest.raises(ParameterError, match=f"{kind} must be a release.*rw.read"):
        stage_of(None, **earlier)
