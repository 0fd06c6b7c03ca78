"""``recordwise studio --records`` as a process: the look comes first, and exact totals are nowhere."""

import json
import re
import runpy
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

import recordwise as rw
from recordwise.cli import app
from recordwise.ledger.ledger import Ledger
from recordwise.studio.guard import Access
from recordwise.studio.state import StudioState
from recordwise.studio.trade import Trade
from studio.serving import Running
from studio.small_plan import write_plan

pytestmark = [pytest.mark.process, pytest.mark.costly]
ROWS = 600
WAIT = 120.0


@contextmanager
def command(folder: Path, *words: str) -> Iterator[Running]:
    """The studio as a user starts it, and its page as a program."""
    line = [sys.executable, "-m", "recordwise", "studio", "plan.toml", "--no-browser", *words]
    with subprocess.Popen(line, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        found = re.search(r":(\d+)/#token=(\S+)", process.stdout.readline())
        assert found is not None
        access = Access(port=int(found[1]), token=found[2])
        studio = Running(SimpleNamespace(access=access))  # type: ignore[arg-type]
        try:
            studio.log_in()
            yield studio
        finally:
            process.terminate()
            process.wait(20)


def answered(studio: Running, method: str, path: str, body: Any = None) -> Any:
    status, content = studio.ask(method, path, body)
    assert status == 200, content
    return json.loads(content)


def stage(studio: Running) -> dict[str, Any]:
    until = time.monotonic() + WAIT
    while time.monotonic() < until:
        about: dict[str, Any] = answered(studio, "GET", "/about")
        if about["stage"] != "working":
            return about
        time.sleep(0.1)
    raise AssertionError("it is still working")


def looks(folder: Path) -> dict[str, int]:
    ledger = Ledger.existing(folder / "small.ledger")
    found = dict(ledger.looks())
    ledger.close()
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("confidential")
    write_plan(found, rows=ROWS, short=True)
    return found


@pytest.fixture(scope="module")
def handed(folder: Path) -> dict[str, Any]:
    """What the page was given, and what it saved."""
    with command(folder, "--records", "records.parquet") as studio:
        assert stage(studio)["problem"] == ""
        trade = answered(studio, "GET", "/trade")
        state = StudioState.first(Trade.from_json(trade)).to_json()
        answered(studio, "POST", "/keep", {"state": state})
        exact = answered(studio, "POST", "/exact", {"state": state})
        return {"trade": trade, "exact": exact} | answered(studio, "POST", "/handover", {"state": state, "save": True})


def test_a_look_is_entered_before_a_record_is_read_and_not_where_none_can_be(tmp_path: Path) -> None:
    write_plan(tmp_path, rows=5, short=True)
    (tmp_path / "broken.parquet").write_text("no records")
    with command(tmp_path, "--records", "broken.parquet") as studio:
        assert stage(studio)["stage"] == "failed"
    assert not (tmp_path / "small.ledger").exists()
    records = pq.read_table(tmp_path / "records.parquet")
    csv.write_csv(records.drop(["emp"]).append_column("emp", pa.array([-1] * 5)), tmp_path / "wrong.csv")
    with command(tmp_path, "--records", "wrong.csv") as studio:
        assert stage(studio)["stage"] == "failed"
    assert looks(tmp_path) == {"studio": 1}


def test_everything_is_its_owners_and_says_confidential(folder: Path, handed: dict[str, Any]) -> None:
    assert looks(folder) == {"studio": 1}
    names = ["plan.trade.json", *handed["names"].values()]
    assert names[1:] == ["plan-chosen.toml", "plan-chosen.py", "plan-report.html"]
    for each in (*names, "plan.studio.json"):
        assert stat.S_IMODE((folder / each).stat().st_mode) == 0o600, each
    for each in names:
        assert "CONFIDENTIAL" in (folder / each).read_text(), each
    assert handed["trade"]["label"].startswith("CONFIDENTIAL")


def test_the_page_is_given_the_file_and_no_exact_total(folder: Path, handed: dict[str, Any]) -> None:
    assert handed["trade"] == json.loads((folder / "plan.trade.json").read_text())
    places = Trade.from_json(handed["trade"]).places
    assert {cell.total for place in places for cell in place.cells} <= {10.0**power for power in range(12)}
    assert {"example/0/loss", "example/1/loss", "budget", "years"} == set(handed["exact"]["texts"])


def test_the_plan_is_refused_without_a_reason_and_a_release_of_it_says_confidential(
    folder: Path, handed: dict[str, Any]
) -> None:
    run, plan = CliRunner(), folder / handed["names"]["plan"]
    refused = run.invoke(app, ["check", str(plan)])
    assert refused.exit_code != 0
    assert "tuning_reason" in refused.output
    stated = 'tuned_on = "confidential"\n'
    assert stated in plan.read_text()
    plan.write_text(plan.read_text().replace(stated, f'{stated}tuning_reason = "a committee asked"\n'))
    checked = run.invoke(app, ["check", str(plan)])
    assert checked.exit_code == 0, checked.output
    assert "confidential" in checked.output
    released = run.invoke(app, ["release", str(plan), "--out", str(folder / "release"), "--yes"])
    assert released.exit_code == 0, released.output
    form = json.loads((folder / "release" / "release.json").read_text())
    assert (form["tuned_on"], form["looks"]) == ("confidential", {"studio": 1})


def test_the_same_in_python_runs_and_is_refused_a_release(
    folder: Path, handed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    names = runpy.run_path(str(folder / handed["names"]["python"]))
    assert names["file"].tuned_on == "confidential"
    with rw.Session.from_plan(names["file"]) as session, pytest.raises(rw.errors.TuningError):
        session.run(*names["queries"])
