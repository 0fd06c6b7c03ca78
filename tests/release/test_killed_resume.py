"""A command killed at any thing it does to a file, and run again: one charge, one noise, and what was kept is finished."""

import json
import shutil
import signal
from pathlib import Path

import pytest

from recordwise.ledger.ledger import Ledger
from recordwise.release.formats.parquet import read_tables
from recordwise.release.verify import verify
from release.test_killed import Nursery, nursery  # noqa: F401

PLAN = """\
dataset = "small"
source = "records.parquet"
ledger = "small.ledger"
tuned_on = "synthetic"
max_outside = "accept"

[schema]
unit = "id"
measures.emp = 1
columns.county = "text"

[keys.counties]
rows = { county = ["01", "02", "03", "04"] }

[[queries]]
group_by = ["county"]
keys = "counties"
sum.emp = { kind = "UnitSplit", at = 50, rho = 0.1 }
"""
RELEASED_BEFORE = 4


def command(work: Path) -> dict:
    (work / "plan.toml").write_text(PLAN)
    return {
        "out": "",
        "words": ["release", str(work / "plan.toml"), "--out", str(work / "out"), "--yes", "--resume", "--json"],
    }


def charges(work: Path) -> list[int]:
    if not (work / "small.ledger").exists() or verify(work / "small.ledger") != []:
        return []
    ledger = Ledger.existing(work / "small.ledger")
    found = [event.sequence for event in ledger.history() if event.kind == "charged"]
    ledger.close()
    return found


def kept(work: Path) -> Path | None:
    found = sorted(path for path in work.iterdir() if path.name.startswith("small.ledger.unfinished-"))
    return found[0] if found else None


def drawn(folder: Path) -> dict:
    return {name: table.to_pydict() for name, table in read_tables(folder).items()}


def finished(children: Nursery, work: Path) -> str:
    """What must hold after a kill and one more run; what the run did."""
    waiting, paid, whole = kept(work), charges(work), (work / "out").exists()
    numbers = None if waiting is None else drawn(waiting)
    assert len(paid) <= 1
    ended = children.child(**command(work))["ended"]
    after = charges(work)
    assert len(after) == 1
    if waiting is not None:
        # What was said to be kept is not lost, and not drawn again.
        assert ended == 0
        assert drawn(work / "out") == numbers
    if ended == 0:
        assert after == paid or not paid
        assert verify(work / "small.ledger", against=[work / "out"]) == []
        assert kept(work) is None
        assert not [path for path in work.iterdir() if ".staging-" in path.name and "out" in path.name]
        return "resumed" if waiting is not None else "made"
    assert ended == RELEASED_BEFORE
    assert after == paid
    assert (work / "out").exists() == whole
    return "complete" if whole else "wasted"


def clean(work: Path) -> None:
    for path in work.iterdir():
        if path.name not in ("records.parquet", "plan.toml"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def killed_at(children: Nursery, work: Path, event: int) -> None:
    ended = children.child(**command(work), event=event)["ended"]
    assert ended in (0, RELEASED_BEFORE, -signal.SIGKILL)


@pytest.mark.slow
def test_a_command_killed_at_each_thing_it_does_to_a_file_pays_once_and_draws_once(nursery) -> None:  # noqa: F811
    work = nursery.work
    events = nursery.child(**command(work))["events"]
    assert events > 10
    seen = set()
    for event in range(1, events + 1):
        clean(work)
        killed_at(nursery, work, event)
        seen.add(finished(nursery, work))
    assert seen == {"made", "resumed", "complete", "wasted"}


def kept_and_unsaved(children: Nursery, work: Path) -> int:
    """Kill a release between its kept tables and its folder; at which event that was."""
    events = children.child(**command(work))["events"]
    for event in range(events, 0, -1):
        clean(work)
        killed_at(children, work, event)
        if kept(work) is not None and not (work / "out").exists():
            return event
    raise AssertionError("no such moment")


@pytest.mark.slow
def test_a_resumed_release_killed_at_each_thing_it_does_to_a_file_pays_nothing_and_draws_nothing(
    nursery,  # noqa: F811
    tmp_path_factory,
) -> None:
    work = nursery.work
    kept_and_unsaved(nursery, work)
    waiting = kept(work)
    assert waiting is not None
    numbers, copy = drawn(waiting), tmp_path_factory.mktemp("copy")
    shutil.copytree(work, copy, dirs_exist_ok=True)
    events = nursery.child(**command(work))["events"]
    for event in range(1, events + 1):
        clean(work)
        shutil.copytree(copy, work, dirs_exist_ok=True)
        killed_at(nursery, work, event)
        finished(nursery, work)
        assert drawn(work / "out") == numbers
        assert len(charges(work)) == 1


@pytest.mark.costly
def test_a_command_killed_before_its_folder_is_finished_by_the_next_with_the_same_numbers(nursery) -> None:  # noqa: F811
    work = nursery.work
    kept_and_unsaved(nursery, work)
    assert finished(nursery, work) == "resumed"
    assert json.loads((work / "out" / "release.json").read_text())["mark"] == "private"
    assert nursery.child(**command(work))["ended"] == RELEASED_BEFORE
