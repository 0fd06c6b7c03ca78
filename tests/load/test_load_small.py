"""The jobs of ``make load`` at a hundredth of their size: they run, and keep their targets."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def done(name: str) -> dict:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "load", "--small", name]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_a_hundred_charges_cost_no_more_at_the_end_than_at_the_start() -> None:
    found = done("queries")
    assert found["median_ms_of_the_last_tenth"] < 3 * found["median_ms_of_the_first_tenth"] + 5


def test_thirty_two_processes_spend_a_budget_exactly() -> None:
    assert done("processes")["charges"] == 32


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cells", "rows"])
def test_a_large_release_keeps_its_targets(name: str) -> None:
    assert done(name)["kept"]
