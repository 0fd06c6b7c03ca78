"""What the server does for its page, asked as the page asks."""

import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

import recordwise as rw
from recordwise.ledger.ledger import Ledger
from recordwise.plan.cost import plan_policy
from recordwise.studio.desk import Desk, Subject
from recordwise.studio.form import plan_digest, records_digest
from recordwise.studio.page import page_html, report_html, static_files
from recordwise.studio.state import Event, StudioState, step
from recordwise.studio.trade import Trade
from studio.serving import Running, SampleSubject, running
from studio.small_plan import write_plan
from studio.trade_sample import sample_trade


def desk_of(folder: Path, trade: Trade) -> Desk:
    return Desk(folder=folder, subject=SampleSubject(folder, trade))


def ready(studio: Running) -> dict[str, Any]:
    until = time.monotonic() + 10
    while time.monotonic() < until:
        about: dict[str, Any] = json.loads(studio.ask("GET", "/about")[1])
        if about["stage"] != "working":
            return about
        time.sleep(0.01)
    raise AssertionError("it is still working")


@pytest.mark.costly
def test_what_was_chosen_is_there_again_after_the_studio_ended(tmp_path: Path) -> None:
    trade = sample_trade()
    state = step(StudioState.first(trade), Event(kind="move", number=2))
    with running(desk_of(tmp_path, trade)) as studio:
        studio.log_in()
        assert ready(studio)["state"] is None
        assert studio.ask("GET", "/trade")[1].decode() == trade.text()
        assert studio.ask("POST", "/keep", {"state": state.to_json()})[0] == 200
        found = json.loads(studio.ask("POST", "/handover", {"state": state.to_json(), "save": False})[1])
        assert found["plan"] == "position 2"
        exact = json.loads(studio.ask("POST", "/exact", {"state": state.to_json()})[1])
        assert (exact["status"], exact["texts"]) == ("done", {"budget": "the budget covers it", "years": "2"})
    with running(desk_of(tmp_path, trade)) as studio:
        studio.log_in()
        assert ready(studio)["state"] == state.to_json()


def test_a_state_of_another_trade_file_is_refused(tmp_path: Path) -> None:
    trade = sample_trade()
    state = StudioState.first(trade).to_json()
    wrong: list[dict[str, Any]] = [
        {},
        state | {"version": 2},
        state | {"now": state["now"] | {"position": 99}},
        state | {"now": state["now"] | {"mechanisms": {}}},
        state | {"now": state["now"] | {"reasons": {"elsewhere": "x"}}},
    ]
    with running(desk_of(tmp_path, trade)) as studio:
        studio.log_in()
        ready(studio)
        for each in wrong:
            assert studio.ask("POST", "/keep", {"state": each})[0] == 422
    assert not (tmp_path / "plan.studio.json").exists()


def test_what_was_chosen_on_confidential_records_is_its_owners(tmp_path: Path) -> None:
    trade = sample_trade(data="confidential", generated=False)
    with running(desk_of(tmp_path, trade)) as studio:
        studio.log_in()
        ready(studio)
        studio.ask("POST", "/keep", {"state": StudioState.first(trade).to_json()})
        kept = tmp_path / "plan.studio.json"
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        kept.unlink()
        (tmp_path / "release.json").touch()
        assert studio.ask("POST", "/keep", {"state": StudioState.first(trade).to_json()})[0] == 422
    assert not kept.exists()


def test_a_problem_is_a_sentence_for_the_page(tmp_path: Path) -> None:
    from recordwise.errors import ParameterError

    class Refusing(SampleSubject):
        def make(self) -> str:
            raise ParameterError(parameter="records", problem="are missing", advice="Name them.")

    desk = Desk(folder=tmp_path, subject=Refusing(tmp_path, sample_trade()))
    with running(desk) as studio:
        studio.log_in()
        about = ready(studio)
        assert (about["stage"], about["problem"]) == ("failed", "records are missing. Name them.")
        assert studio.ask("GET", "/trade")[0] == 422


def test_the_page_loads_its_own_files_only() -> None:
    names = set(static_files())
    for text in (page_html(), *(each.content for each in static_files().values())):
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in text
        assert "eval(" not in text
        assert "innerHTML" not in text
    loaded = [part.partition('"')[0] for part in page_html().split("/static/")[1:]]
    assert set(loaded) <= names


def test_the_report_holds_everything_and_text_cannot_leave_its_element() -> None:
    hostile = "</script><img src=x onerror=alert(1)>"
    trade = sample_trade(title=hostile)
    state = step(StudioState.first(trade), Event(kind="reason", key="position", text=hostile))
    html = report_html(trade, state, {"plan": hostile, "python": "", "commands": []})
    assert hostile not in html
    assert "/static/" not in html
    assert "import {" not in html
    assert "unsafe" not in html
    assert html.count("<script") == 2


def test_a_trade_file_is_made_again_only_if_something_changed(tmp_path: Path) -> None:
    plan, trade = tmp_path / "plan.toml", sample_trade()
    plan.write_text("a plan")
    digest = hashlib.sha256(b"a plan").hexdigest()
    subject = Subject(plan=plan)
    assert subject.made_before() is None
    file = sample_trade(plan_digest=digest).save(subject.trade_file)
    assert subject.made_before() == subject.make() == file.read_text()
    records = tmp_path / "records.parquet"
    assert Subject(plan=plan, records=records).made_before() is None
    records.touch()
    os.utime(records, (file.stat().st_mtime + 1,) * 2)
    assert subject.made_before() is None, "a list may have changed"
    records.unlink()
    plan.write_text("another plan")
    assert subject.made_before() is None
    file.write_text("[" * 100_000)
    assert subject.made_before() is None
    assert trade.plan_digest != digest


@pytest.mark.process
def test_a_first_picture_needs_little_of_the_package() -> None:
    """What is served first imports neither numpy nor the policy page."""
    code = (
        "import sys; from recordwise.studio import desk, guard, page, server, worker; page.static_files(); "
        "print([each for each in ('numpy', 'duckdb', 'recordwise.release', 'recordwise.planning') if each in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_what_the_plan_itself_says_is_there_before_any_record(tmp_path: Path) -> None:
    write_plan(tmp_path, rows=5)
    (tmp_path / "records.parquet").unlink()
    found = Subject(plan=tmp_path / "plan.toml").first_look()
    assert found is not None
    file = rw.load_plan(tmp_path / "plan.toml")
    policy = plan_policy(file.plan)
    assert [each["value"] for each in found["losses"]] == [policy.loss(dict(each)) for each in file.examples.values()]
    # Employees of county by industry have a quarter of the loss of all four tables: 95% of such noise is within 32 of 100.
    assert found["errors"]["table"] == "county by industry"
    reach = rw.Gaussian(sigma=8).at_share(Fraction(1, 4)).error_quantiles(np.array([100.0]))[0]
    assert [each["value"] for each in found["errors"]["rows"] if each["name"].startswith("100 ")] == [reach / 100]
    assert {each["name"] for each in found["tables"]} >= {"main_county_by_industry", "states"}


def test_a_trade_file_of_confidential_records_is_a_look_each_time(tmp_path: Path) -> None:
    write_plan(tmp_path, rows=5, short=True)
    plan = tmp_path / "plan.toml"
    records = tmp_path / "records.parquet"
    known = {"plan_digest": plan_digest(plan, {}), "data": "confidential", "generated": False}
    known |= {"records_digest": records_digest(records)}
    subject = Subject(plan=plan, records=records)
    subject.trade_file.write_text(json.dumps(known))
    for times in (1, 2):
        assert json.loads(subject.make()) == known
        ledger = Ledger.existing(tmp_path / "small.ledger")
        assert dict(ledger.looks()) == {"studio": times}
        ledger.close()
    elsewhere = tmp_path / "other" / "records.parquet"
    elsewhere.parent.mkdir()
    shutil.copy2(records, elsewhere)
    assert Subject(plan=plan, records=elsewhere).made_before() is None, "older records are other ones all the same"
    assert subject.made_before() is not None
