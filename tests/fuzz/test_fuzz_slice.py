"""A bounded slice of ``make fuzz``: no traceback, no hang, no crash, no wrong answer; and proof that each would be found."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from fuzz.runner import Summary, fuzz

ROOT = Path(__file__).parents[2]
EACH_KIND_ONCE = "244"
SLICE = {"policy": 500, "sql": 120, "plan": 75, "ledger": 100, "csv": 12, "parquet": 20}


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are processes of their own."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *sys.path]))


@pytest.mark.parametrize("name", SLICE)
@pytest.mark.process
def test_hostile_inputs_are_refused_in_our_own_words_or_answered_truly(tmp_path: Path, name: str) -> None:
    found = fuzz(name, SLICE[name], seed="slice", folder=tmp_path)
    notes = [path.read_text() for path in tmp_path.glob("*.json")]
    assert notes == []
    assert found.findings == 0
    assert found.inputs == SLICE[name]
    assert found.counts["accepted"] > 0
    assert found.counts["refused"] > 0


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Summary, list[str]]:
    folder = tmp_path_factory.mktemp("planted")
    patch = pytest.MonkeyPatch()
    patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *sys.path]))
    found = fuzz("planted", 7, seed=EACH_KIND_ONCE, folder=folder, seconds=0.5)
    patch.undo()
    return found, sorted(path.name.split("-")[1] for path in folder.glob("*.json"))


@pytest.mark.parametrize("kind", ["crash", "hang", "traceback", "wrong"])
@pytest.mark.process
def test_a_planted_hole_of_each_kind_is_found(planted: Any, kind: str) -> None:
    found, saved = planted
    assert found.counts[kind] > 0
    assert kind in saved
    assert found.inputs == 7


@pytest.mark.process
def test_memory_beyond_the_limit_is_an_error_of_the_worker_and_not_of_the_machine(planted: Any) -> None:
    found, _ = planted
    assert found.peak < 3_000
