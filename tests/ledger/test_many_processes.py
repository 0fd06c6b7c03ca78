"""Many processes on one ledger: the total never exceeds the budget, and no charge is lost."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from recordwise.ledger.ledger import Ledger
from recordwise.policy import constant
from recordwise.release.verify import verify


@pytest.mark.process
def test_thirty_two_processes_spend_a_budget_to_the_last_charge_and_not_beyond(tmp_path) -> None:
    script, path = Path(__file__).parent / "chargers.py", tmp_path / "shared.ledger"
    command = [sys.executable, str(script), str(path), "32", "1/150", "1"]
    environment = {"PYTHONPATH": ":".join(sys.path)}
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)
    assert found["codes"] == [0] * 32
    assert len(found["counts"]) == 32
    assert sum(found["counts"]) == 150
    assert sum(count > 0 for count in found["counts"]) > 1
    ledger = Ledger.existing(path)
    events = ledger.history()
    assert ledger.spent() == constant(1)
    ledger.close()
    assert [event.kind for event in events].count("opened") == 1
    assert [event.kind for event in events].count("charged") == 150
    assert [event.kind for event in events].count("released") == 150
    assert verify(path) == []
