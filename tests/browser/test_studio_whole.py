"""The studio from an empty folder to a plan, with the keyboard alone: every key press is counted."""

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest
from typer.testing import CliRunner

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from browser.kept_pictures import ARTEFACTS
from recordwise.cli.demo import write_inputs
from recordwise.ledger.ledger import Ledger
from recordwise.studio.desk import Desk, Subject
from recordwise.studio.state import StudioState
from recordwise.studio.texts import view
from recordwise.studio.trade import Trade
from studio.serving import running
from studio.small_plan import write_plan

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.slow]
MOST_KEYS = 60


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Records of a small made-up publication, its lists, and last year's sizes."""
    write_inputs(tmp_path, 20_000)
    for each in (*tmp_path.glob("plan*.toml"), tmp_path / "establishments-2026.parquet"):
        each.unlink()
    few = {"places.csv": "county IN ('A001', 'A002', 'B001')", "industries.csv": "industry < '300'"}
    few["sizes.csv"] = few["establishments-2025.parquet"] = " AND ".join(few.values())
    for name, kept in few.items():
        file = str(tmp_path / name)
        how = "read_csv('{}', all_varchar=true)" if name.endswith(".csv") else "read_parquet('{}')"
        duckdb.sql(f"CREATE OR REPLACE TABLE few AS SELECT * FROM {how.format(file)} WHERE {kept}")
        duckdb.sql(f"COPY few TO '{file}'")
    return tmp_path


@contextmanager
def started(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command as a process, and the address that it prints."""
    command = [sys.executable, "-m", "recordwise", "studio", *words, "--no-browser"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().rpartition(" ")[2].strip()
        finally:
            process.terminate()
            process.wait(20)


@pytest.fixture
def address(folder: Path) -> Iterator[str]:
    """The address that the command prints."""
    with started(folder) as (_, found):
        yield found


class Keys:
    """A keyboard that counts."""

    def __init__(self, page: Any) -> None:
        self.page, self.pressed = page, 0

    def press(self, key: str, times: int = 1) -> None:
        for _ in range(times):
            self.page.keyboard.press(key)
            self.pressed += 1

    def write(self, text: str) -> None:
        for letter in text:
            self.press(letter)

    def reach(self, selector: str) -> None:
        """Tab to an element; every stop on the way is a key press."""
        for _ in range(MOST_KEYS):
            if self.page.evaluate("selector => document.activeElement?.matches(selector) ?? false", selector):
                return
            self.press("Tab")
        raise AssertionError(f"{selector} is not reached by Tab")


def wait_for(page: Any, selector: str, seconds: float) -> None:
    page.wait_for_selector(selector, timeout=seconds * 1000)


def test_from_a_file_to_a_plan_that_is_checked_and_rehearsed(chromium: Any, folder: Path, address: str) -> None:
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    page, complaints = context.new_page(), []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(address)
    wait_for(page, "table.columns", 60)
    keys = Keys(page)
    keys.reach("[data-large=emp]")
    keys.write("100")
    keys.reach("[data-large=payann]")
    keys.write("4000")
    wait_for(page, "#go:not([disabled])", 60)
    page.screenshot(path=ARTEFACTS / "studio-begin.png", full_page=True)
    keys.press("Enter")
    wait_for(page, "#studio:not([hidden])", 300)
    first = page.text_content("#goal")
    page.focus("#bar input[type=range]")
    # Less accurate than the first plan, whose budget is what it needs itself.
    keys.press("ArrowLeft", 3)
    assert page.text_content("#goal") != first
    page.screenshot(path=ARTEFACTS / "studio-begun.png", full_page=True)
    page.focus("#hand-show")
    keys.reach("#hand-save")
    keys.press("Enter")
    wait_for(page, "#hand-told:not(:empty)", 60)
    assert keys.pressed < MOST_KEYS, keys.pressed
    print(f"{keys.pressed} key presses")
    assert "Saved" in page.text_content("#hand-told"), page.text_content("#hand-told")
    assert complaints == []
    context.close()
    from recordwise.cli import app

    plan, run = folder / "plan-chosen.toml", CliRunner()
    checked = run.invoke(app, ["check", str(plan)])
    assert checked.exit_code == 0, checked.output
    rehearsed = run.invoke(app, ["rehearse", str(plan), "--out", str(folder / "rehearsed")])
    assert rehearsed.exit_code == 0, rehearsed.output
    page = chromium.new_page()
    page.goto((folder / "plan-report.html").as_uri())
    wait_for(page, "#studio:not([hidden])", 20)
    page.close()


@pytest.mark.parametrize("made", [True, False], ids=["trade file", "no trade file"])
def test_a_first_picture_is_there_two_seconds_after_the_command(chromium: Any, tmp_path: Path, made: bool) -> None:
    """Without a trade file it is what the plan itself says.

    The clock is printed; processor time of the command is what is held to the goal, since other work may take the processor.
    """
    from recordwise.studio.make import make_trade

    write_inputs(tmp_path, 2000)
    if made:
        make_trade(tmp_path / "plan-2025.toml").save(tmp_path / "plan-2025.trade.json")
    picture, took, used = "#studio:not([hidden])" if made else "#first:not([hidden])", [], []
    for number in range(2):
        start = time.monotonic()
        with started(tmp_path, "plan-2025.toml") as (process, address):
            page = chromium.new_page(viewport={"width": 1280, "height": 900})
            page.goto(address)
            wait_for(page, picture, 60)
            took.append(time.monotonic() - start)
            ticks = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
            used.append(sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"))
            if not made and not number:
                said = Subject(plan=tmp_path / "plan-2025.toml").first_look()
                assert said is not None
                assert page.text_content("[data-key='first-loss/0']") == said["losses"][0]["text"]
                assert page.is_visible("#share")
                page.screenshot(path=ARTEFACTS / "studio-first.png", full_page=True)
            page.close()
    print(f"first picture after {min(took):.2f} s, {min(used):.2f} s of processor time")
    assert min(used) < 2


NATIONAL = """\
source = "records.parquet"
ledger = "national.ledger"
tuned_on = "synthetic"

[dataset]
name = "counties"
title = "Establishments and employment of all counties"

[schema]
unit = "id"
measures.emp = { step = 1, bound = 100_000 }
columns.county = "text"
columns.industry = "text"

[[budget]]
rho = 10

[[budget]]
measure = "emp"
mechanism = { kind = "Gaussian", sigma = 1 }

[hierarchies.place]
file = "places.csv"
levels = ["state", "county"]
source = "public: a list"

[hierarchies.activity]
file = "industries.csv"
levels = ["total", "industry"]
totals = { total = "00" }
source = "public: a list"

[keys.cells]
product = { place = "county", activity = "industry" }

[[queries]]
name = "main"
levels = [{ by = ["state", "county"] }, { by = ["total", "industry"] }]
keys = "cells"
count = { kind = "Gaussian", sigma = 2 }
sum.emp = { kind = "Gaussian", sigma = 20 }

[examples]
"shop" = { emp = 5, county = "01000", industry = "11" }
"factory" = { emp = 500, county = "06010", industry = "31" }
"""


def test_moves_are_fast_for_all_counties(chromium: Any, tmp_path: Path) -> None:
    """51 states, 3,111 counties, 20 industries: 63,000 cells in the finest of four tables."""
    from browser.test_studio_page import MOVES
    from recordwise.studio.make import make_trade

    places = [(f"{state:02}", f"{state:02}{county:03}") for state in range(1, 52) for county in range(61)]
    (tmp_path / "places.csv").write_text("state,county\n" + "".join(f"{one},{other}\n" for one, other in places))
    (tmp_path / "industries.csv").write_text("industry\n" + "".join(f"{code}\n" for code in range(11, 71, 3)))
    (tmp_path / "plan.toml").write_text(NATIONAL.replace('"31"', '"32"'))
    start, used = time.monotonic(), time.process_time()
    trade = make_trade(tmp_path / "plan.toml", rows=1_000_000)
    took = time.monotonic() - start, time.process_time() - used
    trade.save(tmp_path / "plan.trade.json")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    with running(Desk(folder=tmp_path, subject=Subject(plan=tmp_path / "plan.toml"))) as found:
        page = chromium.new_page(viewport={"width": 1280, "height": 900})
        page.goto(found.access.address)
        wait_for(page, "#studio:not([hidden])", 60)
        moves = statistics.quantiles(page.evaluate(MOVES, 100), n=20)
        page.close()
    size = (tmp_path / "plan.trade.json").stat().st_size / 1e6
    print(
        f"trade file of all counties: {took[0]:.1f} s, {took[1]:.1f} s of processor time, {peak:.0f} MB, {size:.2f} MB on disk"
    )
    print(f"moves: p50 {moves[9]:.1f} ms, p95 {moves[18]:.1f} ms")
    assert size < 5
    assert moves[18] < 150


def test_confidential_is_said_in_every_view_and_export(chromium: Any, tmp_path: Path) -> None:
    """The command itself: while it works, on the page at three widths, in print, and in all files that it writes."""
    write_plan(tmp_path, rows=600, short=True)
    for time_of in (1, 2):
        with started(tmp_path, "plan.toml", "--records", "records.parquet") as (_, address):
            page = chromium.new_page(viewport={"width": 1280, "height": 900})
            page.goto(address)
            wait_for(page, "#label:not([hidden])", 60)
            wait_for(page, "#studio:not([hidden])", 120)
            for width in (360, 768, 1280):
                page.set_viewport_size({"width": width, "height": 900})
                assert page.is_visible("#label")
                assert "CONFIDENTIAL" in page.text_content("#label")
            page.emulate_media(media="print")
            assert page.is_visible("#label")
            page.emulate_media(media="screen")
            assert "without noise" not in page.text_content("#places").lower()
            trade = Trade.from_json(json.loads((tmp_path / "plan.trade.json").read_text()))
            assert page.evaluate("window.studio.texts()") == view(trade, StudioState.first(trade))
            if time_of == 1:
                page.click("#hand-save")
                wait_for(page, "#hand-told:not(:empty)", 60)
            page.screenshot(path=ARTEFACTS / "studio-confidential.png", full_page=True)
            page.close()
        ledger = Ledger.existing(tmp_path / "small.ledger")
        # Opening a trade file of these records again is a further look.
        assert dict(ledger.looks()) == {"studio": time_of}
        ledger.close()
    for name in ("plan.trade.json", "plan-chosen.toml", "plan-chosen.py", "plan-report.html"):
        assert "CONFIDENTIAL" in (tmp_path / name).read_text(), name
    page = chromium.new_page()
    page.goto((tmp_path / "plan-report.html").as_uri())
    wait_for(page, "#studio:not([hidden])", 20)
    assert page.is_visible("#label")
    page.close()
