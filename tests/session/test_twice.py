"""Running twice: the same release is recognized and costs nothing; what was drawn and kept is finished, never drawn again."""

import json
import os
import shutil
import stat
import subprocess
import sys

import pytest
import quickjs

import recordwise as rw
from build import COUNTIES, generous, keys, records, session
from recordwise.errors import RELEASED, UNFINISHED, WASTED, AlreadyReleasedError, LedgerError, SourceError
from recordwise.release.page.page import model_js
from recordwise.release.release import Release
from recordwise.release.verify import verify


def asked(rho: str = "0.1", counties=COUNTIES) -> rw.Query:
    query = rw.query().group_by("county", keys=rw.Keys.product(county=counties))
    return query.sum("emp", rw.UnitSplit(at=50, rho=rho))


@pytest.fixture
def place(tmp_path):
    return tmp_path / "small.ledger"


def on(place, **more) -> rw.Session:
    return session(records(100), place, generous(), **more)


def kinds(place) -> list[str]:
    with on(place) as opened:
        return [event.kind for event in opened.history() if event.kind != "opened"]


def waiting(place) -> list:
    return sorted(path for path in place.parent.iterdir() if "unfinished" in path.name)


@pytest.mark.costly
def test_a_release_that_was_saved_is_refused_the_second_time_and_nothing_is_charged(place, tmp_path) -> None:
    with on(place) as opened:
        opened.run(asked(), refuse_repeat=True, keep=True).save(tmp_path / "out")
        opened.unfinished.finish(asked())
    assert waiting(place) == []
    with on(place) as opened, pytest.raises(AlreadyReleasedError) as refused:
        opened.run(asked(), refuse_repeat=True, keep=True)
    assert refused.value.state == RELEASED
    assert kinds(place) == ["charged", "released"]


def test_what_is_charged_makes_a_release_another_one_and_a_title_does_not(place) -> None:
    with on(place) as opened:
        publisher = opened._publisher()
        plans = [opened._plan([query]) for query in (asked(), asked("0.2"), asked(counties=COUNTIES[:3]))]
        plans.append(opened._plan([asked(counties=[*COUNTIES[:2], "99"])]))
        found = [publisher.identity(plan) for plan in plans]
        assert len(set(found)) == 4
    periods = [
        rw.Series(name="s", period="2025"),
        rw.Series(name="s", period="2026"),
        rw.Series(name="s", period="2026", revision=1),
    ]
    for number, series in enumerate(periods):
        with on(place.with_name(f"{number}.ledger"), series=series, dataset="other title") as opened:
            found.append(opened._publisher().identity(plans[0]))
    assert len(set(found)) == 7
    with on(place.with_name("title.ledger"), dataset="another title") as opened:
        assert opened._publisher().identity(plans[0]) == found[0]


def test_what_was_kept_is_finished_with_the_same_numbers_and_no_second_charge(place, tmp_path) -> None:
    with on(place) as opened:
        drawn = opened.run(asked(), refuse_repeat=True, keep=True)
    (kept,) = waiting(place)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept.iterdir()} == {0o600}
    assert {path.name for path in kept.iterdir()} == {"county.parquet", "policy.json", "release.json"}
    with on(place) as opened:
        with pytest.raises(AlreadyReleasedError) as refused:
            opened.run(asked(), refuse_repeat=True, keep=True)
        assert refused.value.state == UNFINISHED
        release = opened.unfinished.resume(asked())
        assert release is not None
        release.save(tmp_path / "out")
        opened.unfinished.finish(asked())
    assert release.table.equals(drawn.table)
    assert (release.digest, release.head) == (drawn.digest, drawn.head)
    assert verify(place, against=[tmp_path / "out"]) == []
    assert (kinds(place), waiting(place)) == (["charged", "released"], [])


def test_a_release_that_was_kept_and_not_recorded_is_recorded_when_it_is_finished(place, tmp_path, monkeypatch) -> None:
    from recordwise.ledger.ledger import Ledger

    def broken(self, charge, **more):
        raise LedgerError(path="x", problem="cannot be written")

    with monkeypatch.context() as patched, on(place) as opened:
        patched.setattr(Ledger, "record_release", broken)
        with pytest.raises(LedgerError):
            opened.run(asked(), refuse_repeat=True, keep=True)
    assert kinds(place) == ["charged"]
    with on(place) as opened:
        release = opened.unfinished.resume(asked())
        assert release is not None
        release.save(tmp_path / "out")
    assert kinds(place) == ["charged", "released"]
    assert verify(place, against=[tmp_path / "out"]) == []


def test_tables_of_another_charge_are_not_recorded_for_one_that_waits(place, tmp_path, monkeypatch) -> None:
    from recordwise.ledger.ledger import Ledger

    def broken(self, charge, **more):
        raise LedgerError(path="x", problem="cannot be written")

    with monkeypatch.context() as patched, on(place) as opened:
        patched.setattr(Ledger, "record_release", broken)
        for _ in range(2):
            with pytest.raises(LedgerError):
                opened.run(asked(), keep=True)
    first, second = waiting(place)
    shutil.rmtree(second)
    shutil.copytree(first, second)
    with on(place) as opened, pytest.raises(LedgerError, match="did not record the tables"):
        opened.unfinished.resume(asked())
    assert kinds(place) == ["charged", "charged"]


def test_a_charge_without_tables_is_wasted_and_only_a_second_one_pays_for_a_release(place, monkeypatch) -> None:
    def broken(*args, **more):
        raise RuntimeError

    with monkeypatch.context() as patched, on(place) as opened:
        patched.setattr("recordwise.session.publisher.publish_table", broken)
        with pytest.raises(rw.errors.DrawingError):
            opened.run(asked(), refuse_repeat=True, keep=True)
    with on(place) as opened:
        for attempt in (lambda: opened.run(asked(), refuse_repeat=True), lambda: opened.unfinished.resume(asked())):
            with pytest.raises(AlreadyReleasedError) as refused:
                attempt()
            assert refused.value.state == WASTED
        opened.run(asked(), keep=True)
    assert kinds(place) == ["charged", "failed", "charged", "released"]


def test_nothing_is_resumed_that_was_never_charged(place) -> None:
    with on(place) as opened:
        assert opened.unfinished.resume(asked()) is None
        assert not opened.unfinished.waiting(asked())


def test_tables_that_were_changed_or_belong_to_another_charge_are_not_finished(place, tmp_path) -> None:
    with on(place) as opened:
        opened.run(asked(), keep=True)
        (first,) = waiting(place)
        shutil.copytree(first, tmp_path / "copy")
        opened.run(asked(), keep=True)
        second = waiting(place)[-1]
        assert second != first
        shutil.rmtree(second)
        shutil.copytree(tmp_path / "copy", second)
        with pytest.raises(LedgerError, match="did not record the tables"):
            opened.unfinished.resume(asked())
        text = (second / "policy.json").read_text()
        (second / "policy.json").write_text(text.replace("0.1", "0.2").replace("1/10", "1/5"))
        with pytest.raises((LedgerError, SourceError)):
            opened.unfinished.resume(asked())


def test_a_disk_that_keeps_nothing_still_lets_the_release_be_saved(place, tmp_path, monkeypatch) -> None:
    def full(self, folder):
        raise rw.errors.OutputError(folder=str(folder), problem="could not be written")

    monkeypatch.setattr(Release, "write_recoverable", full)
    with on(place) as opened:
        opened.run(asked(), refuse_repeat=True, keep=True).save(tmp_path / "out")
        assert not opened.unfinished.waiting(asked())
    assert verify(place, against=[tmp_path / "out"]) == []


def test_a_revision_is_another_release_that_names_what_it_revises(place, tmp_path) -> None:
    def of(revision: int) -> rw.Series:
        return rw.Series(name="patterns", period="2026", revision=revision)

    with on(place, series=of(1)) as opened, pytest.raises(rw.errors.ParameterError, match="nothing to revise"):
        opened.run(asked(), refuse_repeat=True)
    releases = []
    for revision in (0, 1):
        with on(place, series=of(revision)) as opened:
            releases.append(opened.run(asked(), refuse_repeat=True))
            releases[-1].save(tmp_path / f"out{revision}")
    first, second = (release.to_json()["series"] for release in releases)
    assert (first["revision"], first["revises"]) == (0, [])
    assert second["revises"] == [{"revision": 0, "date": first["date"], "digest": releases[0].digest}]
    assert second["periods"][0]["policy"] == (releases[0].policy * 2).to_json()
    assert verify(place, against=[tmp_path / "out0", tmp_path / "out1"]) == []


def test_keys_with_levels_and_selections_have_an_identity(place) -> None:
    levels = rw.query().group_by("county", keys=keys()).levels(rw.prefix("naics", 2), rw.prefix("naics", 3))
    chosen = rw.query().group_by("county", keys=rw.Keys.select(rho="0.5", delta="1e-6"))
    domain = rw.Keys.select_from(rw.Keys.product(county=COUNTIES), rho="0.5", threshold=5)
    smaller = rw.Keys.select_from(rw.Keys.product(county=COUNTIES[:3]), rho="0.5", threshold=5)
    queries = [levels, chosen, rw.query().group_by("county", keys=domain), rw.query().group_by("county", keys=smaller)]
    with on(place) as opened:
        publisher = opened._publisher()
        found = {publisher.identity(opened._plan([each.count(rw.Gaussian(rho="0.1"))])) for each in queries}
    assert len(found) == 4


@pytest.mark.costly
def test_the_page_of_a_series_adds_up_its_periods_and_that_of_a_single_release_does_not(place, tmp_path) -> None:
    for period in ("2025", "2026"):
        with on(place, series=rw.Series(name="patterns", period=period)) as opened:
            opened.run(asked()).save(tmp_path / period)
    page = (tmp_path / "2026" / "report.html").read_text()
    assert "all published periods" in page
    assert "2026 (this period)" in page
    assert page.count('class="own"') >= 3
    assert "2026" not in (tmp_path / "2025" / "report.html").read_text().partition("<main>")[2].partition("</main>")[0]
    with on(place.with_name("alone.ledger")) as opened:
        opened.run(asked()).save(tmp_path / "alone")
    assert "all published periods" not in (tmp_path / "alone" / "report.html").read_text()
    rw.read(tmp_path / "2026").save(tmp_path / "again")
    assert (tmp_path / "again" / "report.html").read_text() == page


def test_the_script_of_the_page_adds_up_the_periods(place, tmp_path) -> None:
    for period in ("2025", "2026"):
        with on(place, series=rw.Series(name="patterns", period=period)) as opened:
            release = opened.run(asked())
    losses = release.to_json()["series"]["periods"]
    model = model_js(
        release.policy, release.parts, None, None, [rw.Policy.from_json(each["policy"]) for each in losses]
    )
    script = f"const model = {model}; JSON.stringify(model.periods.map(period => period({{emp: 120}})))"
    printed = quickjs.Context().eval(script)
    assert json.loads(printed) == pytest.approx([float(release.policy.loss({"emp": 120}))] * 2)


def test_the_owner_sees_what_units_lost_over_the_periods_and_the_look_is_noted(place) -> None:
    frames = {"2025": {"id": [1, 2], "emp": [10, 120]}, "2026": {"id": [2, 3], "emp": [60, 5]}}
    for period in frames:
        with on(place, series=rw.Series(name="patterns", period=period)) as opened:
            policy = opened.run(asked()).policy
    with on(place, series=rw.Series(name="patterns", period="2026")) as opened:
        found = opened.owner.history_losses(frames)
        assert opened.history()[-1].kind == "looked"
        with pytest.raises(rw.errors.ParameterError, match="2025, 2026"):
            opened.owner.history_losses({"2026": frames["2026"]})
        with pytest.raises(rw.errors.ParameterError, match="lacks emp"):
            opened.owner.history_losses(frames | {"2025": {"id": [1]}})
    losses = [[float(policy.loss({"emp": emp})) for emp in sizes] for sizes in ((10, 120), (60, 5))]
    assert found.total.tolist() == pytest.approx([losses[0][0], losses[0][1] + losses[1][0], losses[1][1]])
    assert found.quantile(1) == found.total.max()
    assert repr(found) == "<HistoryLosses: CONFIDENTIAL>"


def test_a_corrected_title_or_label_is_no_second_release(place) -> None:
    with on(place) as opened:
        opened.run(asked().named("small", title="Emploment"), refuse_repeat=True)
    with on(place, words=rw.Labels(labels={"emp": "employees"})) as opened, pytest.raises(AlreadyReleasedError):
        opened.run(asked().named("small", title="Employment"), refuse_repeat=True)
    assert kinds(place) == ["charged", "released"]


ELSEWHERE = """
import sys
import numpy as np
import recordwise as rw
from session.test_twice import on
from pathlib import Path

letters = np.array([f"{number:02}" for number in range(20)])
domain = rw.Domain(
    columns=("county",),
    size=len(letters),
    keys=lambda positions: {"county": letters[positions]},
    positions=lambda cells: np.array([int(each) for each in cells["county"].to_pylist()]),
)
keys = rw.Keys.select_from(domain, rho="0.5", threshold=5)
query = rw.query().group_by("county", keys=keys).count(rw.Gaussian(rho="0.1"))
with on(Path(sys.argv[1])) as session:
    if len(sys.argv) > 2:
        print(session.unfinished.resume(query) is not None)
    else:
        try:
            session.run(query, refuse_repeat=True, keep=True)
            print("drawn")
        except rw.errors.AlreadyReleasedError as refused:
            print(refused.state)
"""


@pytest.mark.process
def test_another_process_recognizes_a_domain_given_by_functions(place, warm) -> None:
    """Each is a process of its own; the first has other addresses and other hashes of texts than the two that are forked."""
    line = ["-c", ELSEWHERE, str(place)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    found = [subprocess.run([sys.executable, *line], check=True, capture_output=True, text=True, env=environment)]
    found += [warm.run(*line, *more, folder=place.parent) for more in ([], ["resume"])]
    assert [each.stdout.strip() for each in found] == ["drawn", UNFINISHED, "True"], found[-1].stderr
    assert kinds(place) == ["charged", "released"]


def test_what_no_other_process_could_recognize_is_refused_before_the_charge_unless_it_may_run_twice(place) -> None:
    domain = rw.Domain(
        columns=("county",),
        size=2**40,
        keys=lambda positions: {"county": [f"{each:02}" for each in positions.tolist()]},
        positions=lambda cells: [int(each) for each in cells["county"].to_pylist()],
    )
    keys = rw.Keys.select_from(domain, rho="0.5", threshold=60)
    query = rw.query().group_by("county", keys=keys).count(rw.Gaussian(rho="0.1"))
    with on(place) as opened:
        for more in ({"refuse_repeat": True}, {"keep": True}):
            with pytest.raises(rw.errors.ParameterError, match="recognized by other processes"):
                opened.run(query, **more)
        with pytest.raises(rw.errors.ParameterError, match="run without refuse_repeat and keep"):
            opened.unfinished.resume(query)
        assert [event.kind for event in opened.history()] == ["opened"]
        opened.run(query)
    assert kinds(place) == ["charged", "released"]
