"""The jobs of ``make load`` at a hundredth of their size: they run, and keep their targets."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def done(name: str) -> Any:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "load", "--small", name]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.stdout, run.stderr
    found = json.loads(run.stdout)
    assert run.returncode == (0 if found["kept"] else 1)
    return found


@pytest.mark.process
def test_a_hundred_charges_cost_no_more_at_the_end_than_at_the_start() -> None:
    """Processor time, because the machine may be busy with something else; the sum has grown to its few dozen terms by then."""
    found = done("queries")
    assert found["processor_ms_of_the_last_tenth"] < 3 * found["processor_ms_of_the_first_tenth"] + 3


@pytest.mark.process
def test_thirty_two_processes_spend_a_budget_exactly() -> None:
    found = done("processes")
    assert found["charges"] == 32
    assert found["kept"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cells", "rows"])
def test_a_large_release_keeps_its_targets(name: str) -> None:
    assert done(name)["kept"]
