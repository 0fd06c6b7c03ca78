"""What a session is opened and asked with: each term alone, its default, and what it says when it is wrong."""

import inspect
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import recordwise as rw
from build import PLAN, employers, write_records
from recordwise.errors import LedgerError, ParameterError
from recordwise.ledger.chain import Event
from recordwise.noise import Seeded
from recordwise.plan.file.read import load_plan
from recordwise.policy import constant
from recordwise.policy.series import CARRY, REVISE, START, Series
from recordwise.session.publisher import published_series, revised_releases
from recordwise.session.session import Session, amended_ledger, plan_arguments, plan_ledger, planned_stage, stage_of
from recordwise.session.stages import Coarsening, Following, Refining

TABLE = {"id": [1, 2, 3], "county": ["01", "01", "02"], "emp": [4, 20, 900]}
ASKED = rw.query().group_by("county", keys=["01", "02"]).count(rw.Gaussian(rho=1))


def test_what_is_not_said_is_the_careful_choice() -> None:
    def defaults(function: Any) -> dict[str, Any]:
        known = inspect.signature(function).parameters.values()
        return {each.name: each.default for each in known if each.default is not inspect.Parameter.empty}

    careful = {"confidence": 0.95, "refuse_repeat": False, "keep": False, "fixed_in_advance": False}
    assert careful.items() <= defaults(Session.run).items()
    assert defaults(Session.sql)["confidence"] == 0.95
    assert defaults(Session.policy_of) == {"tight": True}
    assert defaults(Session.run_external)["seeded"] is False
    assert defaults(Session)["reserve"] == 0
    assert defaults(stage_of)["fixed_in_advance"] is False
    assert defaults(plan_ledger) == {"create": False}


# Stages.


def release(**more: Any) -> Any:
    """Nothing but a release by its kind."""
    made = object.__new__(rw.Release)
    for name, value in more.items():
        object.__setattr__(made, name, value)
    return made


def test_a_release_is_made_with_one_other_or_with_none() -> None:
    one, plain = release(), Series(name="s", period="2026")
    carried = Series(name="s", period="2026", carry="0.5")
    assert stage_of(None) is None
    assert stage_of(plain) is None
    assert stage_of(carried) == Following(kind=START)
    assert stage_of(None, refine=one) == Refining(release=one)
    assert stage_of(None, refine=one, fixed_in_advance=True) == Refining(release=one, fixed_in_advance=True)
    assert stage_of(None, tier_of=one) == Coarsening(release=one)
    assert stage_of(carried, carry=one) == Following(kind=CARRY, release=one)
    assert stage_of(plain, revise=one) == Following(kind=REVISE, release=one)
    pairs = {"county": {"01": "11"}}
    assert stage_of(carried, carry=one, crosswalk=pairs) == Following(kind=CARRY, release=one, crosswalk=pairs)


@pytest.mark.parametrize(
    "series, given, told",
    [
        (None, ("refine", "tier_of"), "refine and tier_of together"),
        (None, ("carry", "revise"), "carry and revise together"),
        ("0.5", ("refine",), "refine and carried noise together"),
        ("0.5", ("tier_of",), "tier_of and carried noise together"),
    ],
)
def test_two_stages_at_once_have_no_proof(series: str | None, given: tuple[str, ...], told: str) -> None:
    own = None if series is None else Series(name="s", period="2026", carry=series)
    with pytest.raises(ParameterError, match=told):
        stage_of(own, **dict.fromkeys(given, release()))


@pytest.mark.parametrize("given", [{}, {"revise": True}, {"refine": True}])
def test_a_crosswalk_alone_is_refused(given: dict[str, Any]) -> None:
    made: dict[str, Any] = {name: release() for name in given}
    with pytest.raises(ParameterError, match="crosswalk is for noise that is carried on"):
        stage_of(None, crosswalk={"county": {"01": "11"}}, **made)


def test_the_records_of_before_are_needed_to_carry_and_to_revise() -> None:
    with (
        employers(TABLE, "county", series=Series(name="s", period="2026", revision=1)) as session,
        pytest.raises(ParameterError, match="revise needs the records that the earlier release was made from"),
    ):
        session.run(ASKED, revise=release())


# Series.


def entry(sequence: int, kind: str, time: str = "2026-05-06T07:08:09", **body: Any) -> Event:
    return Event(sequence=sequence, time=time, kind=kind, body=body, digest="")


EVENTS = [
    entry(1, "charged", period="2025"),
    entry(2, "released", charge=1, digest="before"),
    entry(3, "charged", period="2026"),
    entry(4, "charged", period="2026"),
    entry(5, "released", "2026-01-02T03:04:05", charge=3, digest="first"),
    entry(6, "charged", period="2026", revision=1),
    entry(7, "released", charge=6, digest="second"),
    entry(8, "failed", charge=4, digest="never"),
    entry(9, "charged", period="2027", revision=1),
    entry(10, "released", charge=9, digest="after"),
    entry(11, "noted", period="2026", charge=3),
]


def ledger(revision: int, period: str = "2026") -> Any:
    return SimpleNamespace(
        series=Series(name="s", period=period, revision=revision), history=lambda: EVENTS, budget=None
    )


def test_a_revision_replaces_the_releases_of_the_revision_before() -> None:
    assert revised_releases(SimpleNamespace(series=None)) == ()  # type: ignore[arg-type]
    assert revised_releases(ledger(0)) == ()
    (first,) = revised_releases(ledger(1))
    assert (first.revision, first.date, first.digest) == (0, "2026-01-02", "first")
    (second,) = revised_releases(ledger(2))
    assert (second.revision, second.date, second.digest) == (1, "2026-05-06", "second")
    assert [each.digest for each in revised_releases(ledger(1, "2025"))] == ["before"]
    for revision, period in ((3, "2026"), (1, "2027"), (1, "2028")):
        told = f"{revision} of {period} has nothing to revise: no release of revision {revision - 1} "
        with pytest.raises(ParameterError, match=told):
            revised_releases(ledger(revision, period))


def test_a_release_says_its_period_and_day_and_nothing_outside_a_series() -> None:
    charge: Any = SimpleNamespace(time="2026-07-08T09:10:11")
    assert published_series(SimpleNamespace(series=None), charge) is None  # type: ignore[arg-type]
    own = SimpleNamespace(series=Series(name="s", period="2026", revision=2), history=list)
    found = published_series(own, charge, revised_releases(ledger(2)))  # type: ignore[arg-type]
    assert found is not None
    assert (found.name, found.period, found.revision, found.date) == ("s", "2026", 2, "2026-07-08")
    assert [each.digest for each in found.revises] == ["second"]


# Opening.


def test_one_budget_is_stated_and_a_series_gets_that_of_the_session() -> None:
    one, two = constant(1), constant(2)
    with employers(TABLE, "county", series=Series(name="s", period="2026"), budget=one) as session:
        assert session.series is not None
        assert (session.budget, session.series.every_period) == (one, one)
    with employers(TABLE, "county", series=Series(name="s", period="2026", every_period=one), budget=one) as session:
        assert session.budget == one
    with employers(TABLE, "county", series=Series(name="s", period="2026", every_period=two)) as session:
        assert session.budget == two
    with employers(TABLE, "county", budget=one) as session:
        assert (session.budget, session.series) == (one, None)
    with pytest.raises(ParameterError, match="budget is stated by the series too, and differs"):
        employers(TABLE, "county", series=Series(name="s", period="2026", every_period=two), budget=one)


def test_what_remains_is_never_below_0_and_infinite_without_a_budget() -> None:
    with employers(TABLE, "county") as session:
        assert session.remaining({}) == float("inf")
    with employers(TABLE, "county", budget=constant(3)) as session:
        assert session.remaining({}) == 3
        session.run(ASKED, rng=Seeded(1))
        assert session.remaining({}) == pytest.approx(2, rel=1e-9)
    with employers(TABLE, "county", budget=constant(3), reserve=1) as session:
        session.run(ASKED, rng=Seeded(1))
        assert session.remaining({}) == pytest.approx(1, rel=1e-9)


def test_a_charge_that_is_the_whole_budget_fits_once() -> None:
    exact = rw.query().group_by("county", keys=["01", "02"]).count(rw.Gaussian(sigma=1))
    with employers(TABLE, "county", budget=constant("0.5")) as session:
        session.run(exact, rng=Seeded(1))
        assert session.remaining({}) == 0
        with pytest.raises(rw.errors.BudgetError):
            session.run(exact, rng=Seeded(1))
    with (
        employers(TABLE, "county", budget=constant(Fraction(499_999, 1_000_000))) as session,
        pytest.raises(rw.errors.BudgetError),
    ):
        session.run(exact, rng=Seeded(1))


def test_a_session_says_how_many_charges_there_were() -> None:
    with employers(TABLE, "county") as session:
        for number, told in enumerate(("0 charges", "1 charge", "2 charges")):
            assert f"ledger in memory: {told}; no budget" in repr(session)
            if number < 2:
                session.run(ASKED, rng=Seeded(1))
    assert repr(session) == "<Session: 'table', closed>"


def test_columns_of_rows_that_collapse_are_those_with_a_rule() -> None:
    table = pa.table({"id": [1, 1], "county": ["01", "01"], "naics": ["11", "12"], "emp": [4, 20]})
    roles: dict[str, Any] = {"unit": "id", "measures": {"emp": 1}, "tuned_on": "synthetic"}
    with rw.Session(table, collapse={"emp": "sum", "county": "same"}, **roles) as session:
        assert session.schema.column_names() == ("county",)
    with rw.Session(table, **roles) as session:
        assert session.schema.column_names() == ("county", "naics")
    with rw.Session(table, **(roles | {"unit": ["id", "naics"]})) as session:
        assert session.schema.column_names() == ("id", "county", "naics")


def test_a_table_is_named_like_its_file(tmp_path: Path) -> None:
    path = write_records(tmp_path / "small.parquet", 20)
    for source in (path, str(path)):
        with employers(source) as session:
            assert session.dataset == "small"
    with employers(path, dataset="own") as session:
        assert session.dataset == "own"
    with employers(TABLE, "county") as session:
        assert session.dataset == "table"


# Plan files.


def planned(tmp_path: Path, text: str = PLAN) -> Any:
    write_records(tmp_path / "records.parquet", 50)
    (tmp_path / "plan.toml").write_text(text)
    return load_plan(tmp_path / "plan.toml")


def test_a_plan_leaves_its_ledger_and_budget_alone_where_asked(tmp_path: Path) -> None:
    file = planned(tmp_path)
    own, without = (plan_arguments(file, with_ledger=each) for each in (True, False))
    assert (own["ledger"], own["budget"], own["reserve"]) == (file.ledger, file.budget, 0)
    assert (without["ledger"], without["budget"], without["series"], without["reserve"]) == (None, None, None, 0)
    assert (file.max_outside, own["max_outside"]) == (None, "accept")
    assert own["collapse"] is None


def test_the_ledger_of_a_plan_is_made_only_where_asked(tmp_path: Path) -> None:
    file = planned(tmp_path)
    with plan_ledger(file) as ledger:
        assert not ledger.on_disk
    assert not file.ledger.exists()
    with plan_ledger(file, create=True) as ledger:
        assert ledger.on_disk
    assert file.ledger.exists()
    with plan_ledger(file) as ledger:
        assert ledger.on_disk


def test_nothing_is_amended_where_nothing_is(tmp_path: Path) -> None:
    file = planned(tmp_path)
    with pytest.raises(LedgerError, match="Nothing is to be amended"), amended_ledger(file, "a reason"):
        pass
    assert planned_stage(file) is None


def test_records_declared_public_are_opened_without_the_ledger(tmp_path: Path) -> None:
    file = planned(tmp_path)
    for data in ("public", "synthetic"):
        with Session.from_plan(file, data=data) as session:
            assert session.budget is None
    assert not file.ledger.exists()
    with Session.from_plan(file) as session:
        assert session.budget == file.budget
        assert session._planned is file.plan
    assert file.ledger.exists()
