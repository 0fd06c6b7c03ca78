"""The frontier of the county release: on generated records where the public files are missing, and claims that can fail."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from experiments.frontier import run
from recordwise.planning import Frontier


@pytest.fixture(scope="module")
def found() -> Iterator[Frontier]:
    patched = pytest.MonkeyPatch()
    patched.setattr(run, "GENERATED", 5_000)
    yield run.of_generated()
    patched.undo()


@pytest.mark.costly
def test_without_the_public_files_generated_records_are_used(found, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("RECORDWISE_DATA", str(tmp_path))
    monkeypatch.setattr(run, "of_generated", lambda: found)
    done = run.reproduce(runs=1, seed=1, tell=lambda _: None)
    assert "generator made the data" in done.data
    assert len(done.tables["frontier"]) == len(found.points) + 1
    assert done.claims[0].agrees is True


def test_a_plan_on_the_frontier_does_not_agree_that_it_can_be_better(found) -> None:
    """The best plan at its own loss cannot be had for half of it, nor be more reliable."""
    best = replace(found, today=found.points[6])
    assert [each.agrees for each in run.claims(best)] == [False, False]
