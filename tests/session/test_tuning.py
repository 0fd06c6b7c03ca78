"""A release says what it was tuned on; whoever looked at the confidential records first needs a reason; nobody spends unnoticed."""

import json
import warnings

import pytest

import recordwise as rw
from build import COUNTIES, keys, records, session
from recordwise.errors import LedgerError, TuningError, UnkeptLedgerWarning
from recordwise.planning import Goal, compare, evaluate, frontier, recommend, recommend_within
from recordwise.policy import constant
from recordwise.release.verify import verify


def shape():
    return rw.query().group_by("county", keys=rw.Keys.product(county=COUNTIES))


def asked():
    return shape().count(rw.Gaussian(rho="0.1"), alias="n")


def goal():
    return Goal("emp", shape(), within="0.5", share="0.5")


GAUSSIAN = {"Gaussian": rw.Gaussian(sigma=1)}
LOOKS = {
    "owner view": lambda opened, **_: opened.owner.view(),
    "loss summary": lambda opened, **_: opened.owner.loss_summary(constant(1)),
    "firm loss summary": lambda opened, **_: opened.owner.firm_loss_summary(constant(1)),
    "realized loss summary": lambda opened, **_: opened.owner.realized_loss_summary(asked()),
    "compare": lambda opened, **how: compare(opened, GAUSSIAN, measure="emp", query=shape(), **how),
    "sweep": lambda opened, **how: compare(opened, measure="emp", query=shape(), thresholds=[5], rhos=[1], **how),
    "fitness": lambda opened, **how: recommend(opened, goal(), candidates=GAUSSIAN, keep_offsets=True, **how),
    "recommend": lambda opened, **how: recommend(opened, goal(), candidates=GAUSSIAN, **how),
    "allocate": lambda opened, **how: recommend(opened, goal(), keep_mechanisms=rw.UnitSplit(at=50, rho=1), **how),
    "frontier": lambda opened, **how: frontier(opened, asked(), candidates=GAUSSIAN, losses=[0.1], **how),
    "recommend_within": lambda opened, **how: recommend_within(opened, asked(), median=1, candidates=GAUSSIAN, **how),
    "evaluate": lambda opened, **how: evaluate(opened, asked(), draws=1, **how),
}
TAKES_DATA = [name for name in LOOKS if not name.endswith(("view", "summary"))]
RELEASES = {
    "run": lambda opened: opened.run(asked()),
    "sql": lambda opened: opened.sql(
        "SELECT county, COUNT(*) AS n FROM t GROUP BY county", mechanisms={"*": rw.Gaussian(rho="0.1")}, keys=keys()
    ),
    "run_external": lambda opened: opened.run_external(lambda table: 0, split={"emp": 50}, rho=1),
}


@pytest.mark.parametrize("release", RELEASES)
def test_no_release_is_made_before_somebody_says_what_it_was_tuned_on(release) -> None:
    with session(records(), tuned_on=None) as opened:
        assert opened.policy_of(asked()).loss({}) > 0
        opened.validate()
        with pytest.raises(TuningError, match=r"tuned_on is not stated. Nothing was read.*tuned_on='public'"):
            RELEASES[release](opened)
        assert opened.spent() == constant(0)


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.costly
def test_whatever_looks_at_confidential_records_marks_the_session(look) -> None:
    with session(records(), tuned_on="public") as opened:
        LOOKS[look](opened)
        for release in RELEASES.values():
            with pytest.raises(
                TuningError, match=r"records were viewed.*Nothing was read.*give a reason as tuning_reason"
            ):
                release(opened)
        assert opened.spent() == constant(0)
        opened.tuning_reason = "the board agreed"
        stated = opened.run(asked()).to_json()
    assert (stated["tuned_on"], stated["accept_tuning"]) == ("public", "the board agreed")
    assert stated["looked_at_records"] is True


@pytest.mark.parametrize("look", TAKES_DATA)
@pytest.mark.costly
def test_records_that_are_not_confidential_may_be_looked_at(look) -> None:
    with session(records(), tuned_on="synthetic") as opened:
        LOOKS[look](opened, data="synthetic")
        assert opened.run(asked()).to_json()["looked_at_records"] is False


@pytest.mark.parametrize("reason", [None, "", "  ", True])
def test_what_is_no_reason_is_none(reason) -> None:
    untold = session(records(), tuned_on="confidential", tuning_reason=reason)
    with untold as opened, pytest.raises(TuningError, match="was tuned on the confidential table"):
        opened.run(asked())


@pytest.mark.costly
def test_a_look_is_known_to_every_later_session_on_the_same_ledger_and_stands_in_the_report(tmp_path) -> None:
    path = tmp_path / "l"
    with session(records(), path) as other, session(records(), path) as opened:
        opened.run(asked())
        other.owner.view()
        with pytest.raises(TuningError):
            opened.run(asked())
    with session(records(), path) as later, pytest.raises(TuningError):
        later.run(asked())
    with session(records(), path, tuning_reason="only <to> check") as accepted:
        accepted.run(asked()).save(tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text()
    assert "records had been viewed before (1 look: owner.view 1), accepted because: only &lt;to&gt; check" in page
    assert json.loads((tmp_path / "out" / "release.json").read_text())["looked_at_records"] is True
    assert verify(path, against=[tmp_path / "out"]) == []


def test_a_release_states_the_looks_before_its_charge_and_no_other(tmp_path, monkeypatch) -> None:
    """Whoever looks while noise is drawn comes too late for this release, so that anybody can verify what it says."""
    from recordwise.session import publisher

    path, drawn = tmp_path / "l", vars(publisher)["publish_table"]
    with session(records(), path) as other, session(records(), path, tuning_reason="agreed") as opened:
        other.owner.preflight(asked())

        def looking(*given, **more):
            other.owner.view()
            return drawn(*given, **more)

        monkeypatch.setattr(publisher, "publish_table", looking)
        opened.run(asked()).save(tmp_path / "out")
        assert opened._ledger.looks() == {"preflight": 1, "owner.view": 1}
    assert json.loads((tmp_path / "out" / "release.json").read_text())["looks"] == {"preflight": 1}
    assert verify(path, against=[tmp_path / "out"]) == []


@pytest.mark.parametrize("look", LOOKS)
def test_a_look_is_entered_before_a_record_is_read_and_says_which_and_for_what(look, tmp_path, monkeypatch) -> None:
    """One entry for each command, with the digest that a charge for the same plan states, or none where there is no plan yet."""
    with session(records(), tmp_path / "l", tuning_reason="agreed") as opened:
        with monkeypatch.context() as patched:
            patched.setattr(opened._engine, "totals", fails)
            patched.setattr(opened._engine, "owner_passes", fails)
            for name in ("summarize", "summarize_firms"):
                patched.setattr(opened._engine, name, fails)
            try:
                LOOKS[look](opened)
            except InterruptedError:
                pass
            else:
                assert look == "owner view"
        (entry,) = (event for event in opened.history() if event.kind == "looked")
        assert entry.body["command"].split(" ")[0].split(".")[0] in ("owner", "plan")
        assert set(entry.body) <= {"command", "plan"}
        if "plan" in entry.body:
            opened.run(asked())
            (charge,) = (event for event in opened.history() if event.kind == "charged")
            assert charge.body["release"] == entry.body["plan"]
    assert ("plan" in entry.body) == (look in ("frontier", "recommend_within", "evaluate", "realized loss summary"))


def fails(*given, **more):
    raise InterruptedError


def test_nobody_looks_where_the_ledger_cannot_note_it(tmp_path) -> None:
    with session(records(), tmp_path / "l") as opened:
        (tmp_path / "l").unlink()
        for look in ("owner view", "loss summary", "firm loss summary", "realized loss summary"):
            with pytest.raises(LedgerError, match="Nothing was viewed"):
                LOOKS[look](opened)


@pytest.mark.costly
def test_a_session_without_a_ledger_file_says_so_once_and_before_anything_is_read() -> None:
    with session(records()) as opened:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            opened.policy_of(asked())
            with pytest.raises(UnkeptLedgerWarning, match="another session can spend the same budget again"):
                opened.run(asked())
        assert opened.spent() == constant(0)
    for release in RELEASES.values():
        with session(records()) as opened, warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            release(opened)
            opened.run(asked())
        assert [each.category for each in told] == [UnkeptLedgerWarning]


def test_a_session_with_a_ledger_file_says_nothing(tmp_path) -> None:
    with session(records(), tmp_path / "l") as opened, warnings.catch_warnings():
        warnings.simplefilter("error")
        opened.run(asked())
