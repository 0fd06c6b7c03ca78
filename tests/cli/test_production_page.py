"""The page "a year in production" does what it says: its plan, its commands, its script for cron and its task for Airflow."""

import ast
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "production.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def block(kind: str) -> str:
    return next(text for found, text in BLOCKS if found == kind)


@pytest.fixture
def office(tmp_path):
    """The folder of the page, with two years of records and a command ``recordwise``."""
    (tmp_path / "plan.toml").write_text(block("toml"))
    for year, more in ((2025, 0), (2026, 3)):
        table = {"estab_id": [1, 2, 3], "county": ["06037", "17031", "17031"], "emp": [4 + more, 20, 900]}
        pq.write_table(pa.table(table), tmp_path / f"estabs_{year}.parquet")
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "recordwise"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m recordwise "$@"\n')
    command.chmod(0o755)
    return tmp_path


def shell(office, text: str, *words: str) -> subprocess.CompletedProcess:
    path = f"{office / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(["bash", "-c", text, *words], cwd=office, env=environment, capture_output=True, text=True)


@pytest.mark.process
def test_the_script_for_cron_releases_once_and_a_retry_is_no_failure(office) -> None:
    (office / "release.sh").write_text(block("bash"))
    for _ in range(2):
        done = shell(office, "bash release.sh 2026")
        assert done.returncode == 0, done.stderr
    assert json.loads((office / "log-2026.json").read_text())["state"] == "released"
    assert (office / "out" / "2026" / "report.html").exists()


@pytest.mark.process
def test_the_task_for_airflow_runs_the_command_and_skips_what_was_released(office) -> None:
    (call,) = [node for node in ast.walk(ast.parse(block("python"))) if isinstance(node, ast.Call)]
    given = {each.arg: ast.literal_eval(each.value) for each in call.keywords}
    command = given["bash_command"].replace("{{ logical_date.year }}", "2025")
    assert [shell(office, command).returncode for _ in range(2)] == [0, given["skip_on_exit_code"]]


@pytest.mark.costly
def test_the_commands_of_the_page_run_in_order(office, run, monkeypatch) -> None:
    monkeypatch.chdir(office)
    lines = block("").strip().splitlines()
    first = lines[1].replace("2026", "2025")
    for line in (first, *lines):
        done = run(*shlex.split(line)[1:])
        assert done.exit_code == 0, (line, done.stderr)
        assert "corner shop" in done.stdout or "ledger show" not in line
    assert (office / "change" / "2026" / "county.csv").exists()


def test_the_exit_codes_of_the_page_are_those_of_the_command() -> None:
    from recordwise.cli import failing
    from recordwise.cli import failing as interrupts

    listed = [int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)]
    known = (0, failing.UNEXPECTED, failing.BAD_INPUT, failing.BUDGET_REFUSED, failing.ALREADY, interrupts.INTERRUPTED)
    assert listed == list(known)
