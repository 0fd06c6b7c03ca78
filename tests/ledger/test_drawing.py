"""A draw that is under way is told from one that was lost, whatever ended the process that drew."""

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from recordwise.errors import DRAWING, RELEASED, UNFINISHED, WASTED, AlreadyReleasedError, LedgerError
from recordwise.ledger import entries
from recordwise.ledger.entries import drawing, is_drawn_now, remove_dead
from session.test_twice import asked, kinds, on

DRAWS = """
import sys, time
from pathlib import Path
from recordwise.release.release import Release
from recordwise.session import publisher
from session.test_twice import asked, on

place, keep = Path(sys.argv[1]), sys.argv[2] == "keep"
if keep:
    whole = Release.write_recoverable
    def slow(self, folder):
        whole(self, folder)
        print("drawing", flush=True)
        time.sleep(600)
    Release.write_recoverable = slow
else:
    def slow(*args, **more):
        print("drawing", flush=True)
        time.sleep(600)
    publisher.publish_table = slow
with on(place) as opened:
    opened.run(asked(), refuse_repeat=True, keep=True)
"""


@pytest.fixture
def place(tmp_path):
    return tmp_path / "small.ledger"


@contextmanager
def another_process(place: Path, keep: str = "no") -> Iterator[None]:
    """A process that has charged the release and is drawing it, or has just kept its tables; killed in the end."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    line = [sys.executable, "-c", DRAWS, str(place), keep]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=environment) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "drawing\n"
            yield
        finally:
            child.send_signal(signal.SIGKILL)


def refusals(place: Path) -> set[str]:
    """How a second run and a resumed one are refused."""
    found = set()
    with on(place) as opened:
        for attempt in (
            lambda: opened.run(asked(), refuse_repeat=True, keep=True),
            lambda: opened.unfinished.resume(asked()),
        ):
            with pytest.raises(AlreadyReleasedError) as refused:
                attempt()
            found.add(refused.value.state)
    assert "--again" not in str(refused.value) or found != {DRAWING}
    return found


@pytest.mark.process
def test_a_release_that_another_process_draws_is_not_called_lost_until_that_process_is_killed(place):
    with another_process(place):
        assert refusals(place) == {DRAWING}
    assert refusals(place) == {WASTED}
    assert kinds(place) == ["charged"]
    assert [path.name for path in place.parent.iterdir() if "drawing" in path.name] == []


@pytest.mark.process
def test_a_process_killed_after_it_kept_its_tables_leaves_them_to_be_finished(place, tmp_path):
    with another_process(place, "keep"):
        pass
    with on(place) as opened:
        with pytest.raises(AlreadyReleasedError) as refused:
            opened.run(asked(), refuse_repeat=True, keep=True)
        assert refused.value.state == UNFINISHED
        release = opened.unfinished.resume(asked())
        assert release is not None
        release.save(tmp_path / "out")
        opened.unfinished.finish(asked())
    assert refusals(place) == {RELEASED}
    assert kinds(place) == ["charged", "released"]


def test_the_lock_is_held_while_noise_is_drawn_and_is_gone_afterwards(place, monkeypatch):
    from recordwise.session import publisher

    seen, whole = [], publisher.publish_table

    def looked(*args, **more):
        seen.append([path.name for path in place.parent.iterdir() if ".drawing-" in path.name])
        return whole(*args, **more)

    monkeypatch.setattr(publisher, "publish_table", looked)
    with on(place) as opened:
        opened.run(asked(), refuse_repeat=True, keep=True)
    assert len(seen) == 1
    assert len(seen[0]) == 1
    assert not any(".drawing-" in path.name for path in place.parent.iterdir())


def test_a_lock_that_somebody_else_keeps_is_waited_for_only_so_long(place, monkeypatch):
    """As where the ledger was replaced by a copy while a process drew: the charge is refused, and nothing is spent."""
    monkeypatch.setattr(entries, "LONGEST_LOOK", 0.05)
    told = r"another process draws its noise.* Nothing was spent"
    with drawing(os.path.realpath(place), 3), on(place) as opened, pytest.raises(LedgerError, match=told):
        opened.run(asked(), refuse_repeat=True, keep=True)
    assert kinds(place) == []
    with on(place) as opened:
        opened.run(asked(), refuse_repeat=True, keep=True)
    assert kinds(place) == ["charged", "released"]


def test_tables_left_by_another_ledger_of_this_name_are_refused_before_the_charge(place):
    left = entries.tables_of(os.path.realpath(place), 3)
    left.mkdir(parents=True)
    with on(place) as opened:
        with pytest.raises(LedgerError, match=r"unfinished-3 next to it.*Nothing was spent"):
            opened.run(asked(), refuse_repeat=True, keep=True)
        assert kinds(place) == []
        left.rmdir()
        opened.run(asked(), refuse_repeat=True, keep=True)
    assert kinds(place) == ["charged", "released"]


FORKS = """
import os, signal, sys
from recordwise.ledger.entries import drawing, is_drawn_now, remove_dead

held = drawing(sys.argv[1], 1)
held.__enter__()
ready, told = os.pipe()
child = os.fork()
if child == 0:
    # Still within the block, as a child that is forked during a draw is.
    held.__exit__(None, None, None)
    os.write(told, b"x")
    signal.pause()
os.read(ready, 1)
print(is_drawn_now(sys.argv[1], 1))
held.__exit__(None, None, None)
open(sys.argv[1] + ".drawing-1", "w").close()
print(is_drawn_now(sys.argv[1], 1), flush=True)
os.kill(child, signal.SIGKILL)
"""


@pytest.mark.process
def test_a_forked_child_neither_holds_the_lock_of_its_parent_nor_removes_it(tmp_path):
    line = [sys.executable, "-c", FORKS, str(tmp_path / "x.ledger")]
    assert subprocess.run(line, check=True, capture_output=True, text=True).stdout == "True\nFalse\n"


ORPHAN = """
import os, signal, sys, time
from recordwise.ledger.entries import drawing

ready, alive = os.pipe()
with drawing(sys.argv[1], 1):
    if (child := os.fork()) == 0:
        os.write(alive, b".")
        time.sleep(600)
    # The child lets go of the lock before it runs on.
    os.read(ready, 1)
    print(child, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.process
def test_a_child_that_outlives_a_killed_process_does_not_hold_its_lock(tmp_path):
    ledger = str(tmp_path / "x.ledger")
    with subprocess.Popen([sys.executable, "-c", ORPHAN, ledger], stdout=subprocess.PIPE, text=True) as ended:
        assert ended.stdout is not None
        child = int(ended.stdout.readline())
        try:
            ended.wait()
            assert Path(f"{ledger}.drawing-1").exists()
            assert not is_drawn_now(ledger, 1)
        finally:
            os.kill(child, signal.SIGKILL)


def test_what_a_dead_process_left_is_removed_by_whoever_looks(tmp_path):
    left = tmp_path / "x.ledger.drawing-7"
    left.write_text("")
    assert not is_drawn_now(str(tmp_path / "x.ledger"), 7)
    assert not left.exists()


def test_the_next_release_removes_the_locks_of_the_dead_and_leaves_those_of_the_living(place):
    left, other = (place.with_name(f"{place.name}.drawing-{name}") for name in ("7", "x"))
    left.write_text("")
    other.write_text("")
    with drawing(str(place), 8), on(place) as opened:
        opened.run(asked(), keep=True)
        assert is_drawn_now(str(place), 8)
    assert [path for path in place.parent.iterdir() if ".drawing-" in path.name] == [other]


def test_a_lock_that_was_taken_for_a_dead_one_before_it_was_locked_is_made_again(place, monkeypatch):
    """Another process looks between the making of the file and its locking: a lock without a name would be seen by nobody."""
    plain, looked = fcntl.flock, []

    def flock(handle, how):
        if how == fcntl.LOCK_EX | fcntl.LOCK_NB and len(looked) < 3:
            with monkeypatch.context() as others:
                others.setattr(fcntl, "flock", plain)
                looked.append(remove_dead(str(place)))
        return plain(handle, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    with drawing(str(place), 8):
        assert len(looked) == 3
        assert is_drawn_now(str(place), 8)
        assert Path(f"{place}.drawing-8").exists()
    assert not Path(f"{place}.drawing-8").exists()
