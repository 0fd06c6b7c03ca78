"""A release killed at any moment: the books open and add up, folders are whole or absent, and doing it again works."""

import json
import os
import random
import re
import shutil
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

from build import generous, question, session, write_records
from recordwise.ledger.ledger import Ledger
from recordwise.policy import Policy
from recordwise.release.verify import verify
from warm_process import Warm

FILES = {"datapackage.json", "policy.json", "release.json", "report.html"} | {
    f"county_by_naics{level}.{kind}" for level in (2, 3) for kind in ("csv", "parquet")
}


class Nursery:
    """Children to be killed; see nursery.py."""

    def __init__(self, work: Path, warm: Warm) -> None:
        self.work, self._warm = work, warm

    def child(self, *, after: float | None = None, **job: object) -> dict:
        """How a child ended, how long it lived, and what it did; it is killed after so many seconds if they are given."""
        words = [str(Path(__file__).parent / "nursery.py"), str(self.work), json.dumps(job)]
        with tempfile.TemporaryFile() as seen:
            seen.write(bytes(4))
            seen.flush()
            began = time.monotonic()
            child = self._warm.start(words, folder=self.work, stdout=seen.fileno(), stderr=2)
            if after is not None:
                time.sleep(after)
                child.send_signal(signal.SIGKILL)
            ended = child.wait()
            seconds = time.monotonic() - began
            return {
                "ended": ended,
                "seconds": seconds,
                "events": int.from_bytes(os.pread(seen.fileno(), 4, 0), "little"),
            }


@pytest.fixture
def nursery(tmp_path, warm) -> Nursery:
    write_records(tmp_path / "records.parquet")
    return Nursery(tmp_path, warm)


def released(work: Path) -> list[Path]:
    return sorted(path for path in work.iterdir() if path.is_dir() and not path.name.startswith("."))


def check(work: Path, out: str) -> str:
    """What must hold after a kill; which stage it came in."""
    names = {path.name for path in work.iterdir()} - {path.name for path in released(work)}
    allowed = (
        rf"records\.parquet|small\.ledger(-wal|-shm|-journal|\.totals|\.drawing-\d+)?|\.{re.escape(out)}\.staging-\d+-1"
    )
    assert all(re.fullmatch(allowed, name) for name in names), names
    if not (work / "small.ledger").exists():
        assert not (work / out).exists()
        return "before the ledger"
    folder = [work / out] if (work / out).exists() else []
    if folder:
        assert {path.name for path in folder[0].iterdir()} == FILES
    if verify(work / "small.ledger") != []:
        # Its very first entry was not committed: nothing was ever charged.
        assert "is not a recordwise ledger" in verify(work / "small.ledger")[0]
        assert released(work) == []
        return "before the ledger"
    events = books(work)
    assert verify(work / "small.ledger", against=folder) == []
    used = sum((tight(path) for path in released(work)), Policy())
    assert sum(
        (Policy.from_json(event.body["policy"]) for event in events if event.kind == "charged"), Policy()
    ).dominates(used)
    return "saved" if folder else events[-1].kind


def books(work: Path) -> list:
    ledger = Ledger.existing(work / "small.ledger")
    events = ledger.history()
    ledger.close()
    return events


def tight(folder: Path) -> Policy:
    return Policy.from_json(json.loads((folder / "policy.json").read_text())["tight"])


def again(work: Path, out: str) -> None:
    """The same release once more, to the same name: it works, and sweeps what the killed one left."""
    with session(work / "records.parquet", work / "small.ledger", generous()) as opened:
        opened.run(question()).save(work / out)
    assert not [path for path in work.iterdir() if path.name.startswith(f".{out}.") or ".drawing-" in path.name]


def killed(nursery: Nursery, moments: list[dict], *, fresh_every: int) -> Counter:
    """Kill one child at each moment, checking after each; how many kills came in which stage."""
    stages: Counter = Counter()
    for number, moment in enumerate(moments):
        out = f"out{number}"
        if number % fresh_every == 0:
            start_anew(nursery.work)
        ended = nursery.child(out=out, **moment)["ended"]
        assert ended in (0, -signal.SIGKILL)
        stages[check(nursery.work, out)] += 1
        if not (nursery.work / out).exists():
            again(nursery.work, out)
    assert verify(nursery.work / "small.ledger", against=released(nursery.work)) == []
    assert len(released(nursery.work)) == (len(moments) - 1) % fresh_every + 1
    return stages


def start_anew(work: Path) -> None:
    """No ledger, no releases: a kill may come while the ledger is made."""
    for folder in released(work):
        shutil.rmtree(folder)
    for file in work.glob("small.ledger*"):
        file.unlink()


def lifetime(nursery: Nursery) -> float:
    """How long an undisturbed release takes here; the longer of two."""
    found = [nursery.child(out=f"whole{number}") for number in range(2)]
    assert [one["ended"] for one in found] == [0, 0]
    for number in range(2):
        assert check(nursery.work, f"whole{number}") == "saved"
    return max(one["seconds"] for one in found)


def random_moments(nursery: Nursery, count: int) -> list[dict]:
    longest, chance = lifetime(nursery), random.Random(20240917)
    return [{"after": chance.uniform(0, longest)} for _ in range(count)]


def test_a_release_killed_at_four_random_moments_leaves_whole_books_and_whole_folders(nursery) -> None:
    killed(nursery, random_moments(nursery, 4), fresh_every=3)


@pytest.mark.slow
def test_a_release_killed_at_two_hundred_random_moments_leaves_whole_books_and_whole_folders(nursery) -> None:
    stages = killed(nursery, random_moments(nursery, 200), fresh_every=20)
    assert stages["opened"] > 0
    assert stages["charged"] + stages["released"] > 0


@pytest.mark.slow
def test_a_release_killed_at_each_thing_it_does_to_a_file_leaves_whole_books_and_whole_folders(nursery) -> None:
    events = nursery.child(out="out0")["events"]
    assert events > 10
    stages = killed(nursery, [{"event": event} for event in range(1, events + 1)], fresh_every=1)
    assert stages["before the ledger"] > 0
    assert stages["released"] > 5


@pytest.mark.parametrize("stage", ["reading records", "charging the ledger", "drawing noise", "recording the release"])
def test_a_release_killed_at_a_stage_has_charged_if_noise_could_have_been_drawn(tmp_path, warm, stage: str) -> None:
    write_records(tmp_path / "records.parquet")
    script = f"""
import os, signal
from pathlib import Path
from build import generous, question, session
work = Path({str(tmp_path)!r})
with session(work / "records.parquet", work / "small.ledger", generous()) as opened:
    opened.run(question(), progress=lambda stage: stage == {stage!r} and os.kill(os.getpid(), signal.SIGKILL))
"""
    done = warm.run("-c", script, folder=tmp_path)
    assert done.returncode == -signal.SIGKILL
    charged = stage in ("drawing noise", "recording the release")
    assert [event.kind for event in books(tmp_path)] == ["opened"] + ["charged"] * charged
    assert verify(tmp_path / "small.ledger") == []
    again(tmp_path, "out")
    assert check(tmp_path, "out") == "saved"


@pytest.mark.costly
def test_the_checks_catch_a_half_written_folder_an_unpaid_one_and_a_stray_file(nursery) -> None:
    work = nursery.work
    assert nursery.child(out="out")["ended"] == 0
    assert check(work, "out") == "saved"
    shutil.copytree(work / "out", work / "copy")
    with pytest.raises(AssertionError):
        check(work, "out")
    shutil.rmtree(work / "copy")
    (work / ".half.parquet").touch()
    with pytest.raises(AssertionError):
        check(work, "out")
    (work / ".half.parquet").unlink()
    (work / "out" / "county_by_naics3.csv").unlink()
    with pytest.raises(AssertionError):
        check(work, "out")
