"""A release from the command line, interrupted or killed at every stage: no half-written file, true books, a plain word."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import recordwise as rw
from build import PLAN, write_records
from recordwise.cli import app
from recordwise.cli.failing import ALREADY
from recordwise.ledger.ledger import Ledger
from recordwise.release.files import forget
from recordwise.release.verify import verify
from warm_process import Warm

STAGES = ["reading records", "charging the ledger", "drawing noise", "recording the release", "writing files"]
BOOKED = {
    "reading records": [],
    "charging the ledger": [],
    "drawing noise": ["charged", "failed"],
    "recording the release": ["charged", "failed"],
    "writing files": ["charged", "released"],
}
HERE = Path(__file__).parent


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_records(tmp_path / "records.parquet")
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Commands can be interrupted even where the tests run in the background: a shell lets those ignore the signal, and what
    they start ignores it too. A signal that is handled here has its default there."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def command(*words: str, more: tuple[str, ...] = ()) -> list[str]:
    return [sys.executable, *words, "release", "plan.toml", "--out", "out", "--yes", *more]


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}


def run(folder: Path, *words: str, more: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*words, more=more), cwd=folder, env=environment(), capture_output=True, text=True)


def run_warm(warm: Warm, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The same, in a process that has its imports behind it."""
    return warm.run(*command(*words)[1:], folder=folder)


def kinds(folder: Path) -> list[str]:
    ledger = Ledger.existing(folder / "small.ledger")
    found = [event.kind for event in ledger.history()]
    ledger.close()
    return found


def left_over(folder: Path) -> set[str]:
    names = {path.name for path in folder.iterdir()}
    ledger = {f"small.ledger{end}" for end in ("", "-wal", "-shm", ".totals")}
    return names - {"records.parquet", "plan.toml", *ledger}


def is_kept(folder: Path, *, killed: bool = False) -> bool:
    """Whether drawn tables, and nothing else, wait beside the ledger; one that was killed may leave its lock, which is free."""
    names = left_over(folder)
    if killed:
        names = {name for name in names if not re.fullmatch(r"small\.ledger\.drawing-\d+", name)}
    assert all(re.fullmatch(r"small\.ledger\.unfinished-\d+", name) for name in names), names
    return bool(names)


@pytest.mark.parametrize("stage", STAGES)
def test_an_interrupted_release_ends_with_130_leaves_no_file_and_is_in_the_books(folder, warm, stage: str) -> None:
    done = run_warm(warm, folder, str(HERE / "cli_signals.py"), "SIGINT", stage)
    assert done.returncode == 130, done.stderr
    assert "interrupted. No partial files were left behind" in done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    assert is_kept(folder) == (stage == "writing files")
    told = "The release was drawn and is kept in small.ledger.unfinished-2: finish it with --resume.\n"
    assert (told in done.stderr) == (stage == "writing files")
    assert kinds(folder) == ["opened", *BOOKED[stage]]
    assert verify(folder / "small.ledger") == []


def test_an_interrupt_says_that_the_release_is_complete_and_names_no_tables_of_other_processes(folder, warm) -> None:
    script = (
        "import pathlib, signal; from contextlib import contextmanager; from recordwise.cli import main, screen\n"
        "@contextmanager\n"
        "def progress(steps, *, quiet=False):\n"
        "    yield lambda doing: None\n"
        "    pathlib.Path('small.ledger.unfinished-9').mkdir()\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "screen.progress = progress\n"
        "main()"
    )
    done = run_warm(warm, folder, "-c", script)
    assert done.returncode == 130, done.stderr
    assert done.stderr.rstrip().endswith("The release is complete in out.")
    assert verify(folder / "small.ledger", against=[folder / "out"]) == []


def test_an_interrupt_that_a_library_turns_into_an_error_of_its_own_is_still_an_interrupt(folder, warm) -> None:
    """DuckDB raises RuntimeError for a signal that reaches it in the middle of a statement."""
    script = (
        "import os, signal, sys; from recordwise.cli import main; from recordwise.engines.duckdb.connection import Connection\n"
        "def fetch(connection, tree):\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    except KeyboardInterrupt:\n"
        "        raise RuntimeError('Query interrupted') from None\n"
        "Connection.fetch = fetch\n"
        "sys.argv[0] = 'recordwise'\n"
        "main()"
    )
    done = run_warm(warm, folder, "-c", script)
    assert done.returncode == 130, done.stderr
    assert "interrupted. No partial files were left behind" in done.stderr
    assert left_over(folder) == set()
    assert "charged" not in kinds(folder)


@pytest.mark.process
def test_an_interrupt_in_code_that_a_library_made_from_text_ends_with_130(folder) -> None:
    """Python counts an interrupt that leaves such code as never handled, and would end ``-m`` by the signal (SciPy's imports)."""
    script = (
        "import signal; from contextlib import contextmanager; from recordwise.cli import main, screen\n"
        "@contextmanager\n"
        "def progress(steps, *, quiet=False):\n"
        "    yield lambda doing: exec('signal.raise_signal(signal.SIGINT)')\n"
        "screen.progress = progress\n"
        "main()"
    )
    (folder / "from_text.py").write_text(script)
    done = run(folder, "-m", "from_text")
    assert done.returncode == 130, done.stderr
    assert "interrupted. No partial files were left behind" in done.stderr
    assert "charged" not in kinds(folder)


@pytest.mark.parametrize("stage", STAGES)
def test_a_release_killed_at_a_stage_of_the_command_can_be_made_again(folder, warm, stage: str, monkeypatch) -> None:
    done = run_warm(warm, folder, str(HERE / "cli_signals.py"), "SIGKILL", stage)
    assert done.returncode == -signal.SIGKILL
    kept = is_kept(folder, killed=True)
    assert kept == (stage == "writing files")
    charged = [kind for kind in BOOKED[stage] if kind != "failed"]
    assert kinds(folder) == ["opened", *charged]
    monkeypatch.chdir(folder)
    same = ["release", "plan.toml", "--out", "out", "--yes"]
    if charged:
        assert CliRunner().invoke(app, same).exit_code == ALREADY
    again = CliRunner().invoke(app, [*same, "--resume" if kept else "--again"])
    assert again.exit_code == 0, again.stderr
    assert kinds(folder) == ["opened", *charged, *([] if kept else ["charged", "released"])]
    assert left_over(folder) == {"out"}
    assert verify(folder / "small.ledger", against=[folder / "out"]) == []


def test_an_interrupt_between_keeping_and_recording_leaves_a_release_that_is_finished(
    folder, warm, monkeypatch
) -> None:
    """The tables are drawn and on the disk: counted as failed, they could neither be published nor be told from a foreign draw."""
    script = (
        "import os, signal, sys; from recordwise.cli import main; from recordwise.session.publisher import Publisher\n"
        "keep = Publisher._keep\n"
        "def kept(*given):\n"
        "    assert keep(*given)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "Publisher._keep = kept\n"
        "sys.argv[0] = 'recordwise'\n"
        "main()"
    )
    done = run_warm(warm, folder, "-c", script)
    assert done.returncode == 130, done.stderr
    assert is_kept(folder)
    assert kinds(folder) == ["opened", "charged"]
    monkeypatch.chdir(folder)
    resumed = CliRunner().invoke(app, ["release", "plan.toml", "--out", "out", "--yes", "--resume"])
    assert resumed.exit_code == 0, resumed.stderr
    assert kinds(folder) == ["opened", "charged", "released"]
    assert verify(folder / "small.ledger", against=[folder / "out"]) == []


@pytest.mark.parametrize("stage", STAGES)
def test_a_release_is_made_although_nobody_reads_its_progress_any_more(folder, warm, stage: str) -> None:
    script = (
        "import os, sys; from recordwise.cli import main, screen\n"
        "show = screen._Lines.show\n"
        "def shown(lines, doing, share):\n"
        f"    if doing == {stage!r}:\n"
        "        reading, writing = os.pipe()\n"
        "        os.close(reading)\n"
        "        os.dup2(writing, 2)\n"
        "    show(lines, doing, share)\n"
        "screen._Lines.show = shown\n"
        "sys.argv[0] = 'recordwise'\n"
        "main()"
    )
    done = run_warm(warm, folder, "-c", script)
    assert done.returncode == 0
    assert "Published in out" in done.stdout
    assert kinds(folder) == ["opened", "charged", "released"]
    assert verify(folder / "small.ledger", against=[folder / "out"]) == []


def test_a_callback_that_fails_after_the_charge_does_not_lose_the_release(folder) -> None:
    told: list[str] = []

    def tell(doing: str) -> None:
        told.append(doing)
        if "charged" in kinds(folder):
            raise RuntimeError("the window is closed")

    file = rw.load_plan(folder / "plan.toml")
    with rw.Session.from_plan(file) as session:
        session.run(*file.plan.queries, progress=tell)
    assert told == STAGES[:-1]
    assert kinds(folder) == ["opened", "charged", "released"]


@pytest.mark.process
def test_a_charged_release_whose_report_cannot_be_written_says_that_it_is_complete(folder: Path) -> None:
    """Standard output cannot write a letter of the folder's name, or is closed."""
    begun = [sys.executable, "-m", "recordwise", "release", "plan.toml", "--yes", "--out"]
    letters = environment() | {"PYTHONIOENCODING": "latin-1"}
    done = subprocess.run([*begun, "таблицы"], cwd=folder, env=letters, capture_output=True)
    told = done.stderr.decode(errors="replace").splitlines()[-1]
    assert (done.returncode, "is complete and charged" in told, "(UnicodeEncodeError)" in told) == (2, True, True)
    closed = ["sh", "-c", 'exec "$@" >&-', "sh", *begun, "closed", "--again", "--json"]
    done = subprocess.run(closed, cwd=folder, env=environment(), stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (0, b"")
    assert verify(folder / "small.ledger", against=[folder / "таблицы", folder / "closed"]) == []


@pytest.mark.process
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_report_that_cannot_be_printed_does_not_hide_that_the_release_is_made(folder, more: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        words = command("-m", "recordwise", more=more)
        done = subprocess.run(words, cwd=folder, env=environment(), stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 2
        told = "recordwise: The release in out is complete and charged. Its report could not be printed (No space left on device)."
        assert done.stderr.splitlines()[-1] == told
        checked = [sys.executable, "-m", "recordwise", "check", "plan.toml", *more]
        done = subprocess.run(checked, cwd=folder, env=environment(), stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 2
        assert done.stderr == "recordwise: a file: No space left on device\n"
    assert verify(folder / "small.ledger", against=[folder / "out"]) == []


def test_an_interrupt_while_kept_tables_are_removed_leaves_none(tmp_path, monkeypatch) -> None:
    (tmp_path / "small.ledger.unfinished-2").mkdir()
    remove, signals = shutil.rmtree, [KeyboardInterrupt()]

    def interrupted(path: Path, **options: bool) -> None:
        if signals:
            raise signals.pop()
        remove(path, **options)

    monkeypatch.setattr(shutil, "rmtree", interrupted)
    ledger, charge = SimpleNamespace(real_path=str(tmp_path / "small.ledger")), SimpleNamespace(sequence=2)
    with pytest.raises(KeyboardInterrupt):
        forget(ledger, charge)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def interrupted_after(folder: Path, seconds: float) -> int:
    """Send the signal some time after the command said it began to read."""
    process = subprocess.Popen(
        command("-m", "recordwise", more=("--again",)), cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    process.stderr.readline()
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    told = process.stderr.read()
    process.stderr.close()
    assert "Traceback" not in told
    return process.wait()


def interrupted_at_random(folder: Path, moments: int) -> list[int]:
    chance, codes = random.Random(7), []
    for _ in range(moments):
        codes.append(interrupted_after(folder, chance.uniform(0, 0.6)))
        saved = (folder / "out").exists()
        # The last: Python itself ends so when the signal comes while it shuts down, all work done.
        assert codes[-1] in ((0, 130, -signal.SIGINT) if saved else (130,))
        assert all(name == "out" or name.startswith("small.ledger.unfinished-") for name in left_over(folder)), (
            left_over(folder)
        )
        if saved:
            assert verify(folder / "small.ledger", against=[folder / "out"]) == []
            (folder / "out").rename(folder.parent / f"kept-{len(codes)}")
        assert verify(folder / "small.ledger") == []
    return codes


@pytest.mark.process
def test_a_release_interrupted_at_three_random_moments_keeps_true_books(folder) -> None:
    interrupted_at_random(folder, 3)


@pytest.mark.slow
def test_a_release_interrupted_at_forty_random_moments_keeps_true_books(folder) -> None:
    assert 130 in interrupted_at_random(folder, 40)


BUSY = (
    "import threading\n"
    "start = threading.Thread.start\n"
    "def late(thread):\n"
    "    start(thread)\n"
    "    time.sleep(0.2)\n"
    "threading.Thread.start = late\n"
)
"""As on a busy machine: the interrupt is repeated while Python still reports that the first one was lost."""


@pytest.mark.process
@pytest.mark.parametrize("machine", ["", BUSY], ids=["idle", "busy"])
def test_an_interrupt_in_a_callback_of_python_is_not_lost(machine) -> None:
    code = (
        f"import os, signal, sys, time\n{machine}"
        "from recordwise.cli.failing import ends_well\n"
        "from recordwise.cli.failing import run\n"
        "class Last:\n"
        "    def __del__(self):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        time.sleep(1)\n"
        "@ends_well\n"
        "def command():\n"
        "    Last()\n"
        "    time.sleep(30)\n"
        "import typer\n"
        "app = typer.Typer()\n"
        "app.command()(command)\n"
        "run(app)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=25)
    assert done.returncode == 130
    assert "ignored" not in done.stderr
    assert "Traceback" not in done.stderr


HELD = """
import importlib._bootstrap, operator, signal, threading, time
from collections import deque
from functools import partial
from itertools import chain, repeat
from types import SimpleNamespace
import typer
from recordwise.cli.failing import ends_well, run

own = importlib._bootstrap._imp
both = map(operator.call, [own.acquire_lock, partial(signal.raise_signal, signal.SIGINT)])
acquire = chain([partial(deque(maxlen=0).extend, both)], repeat(own.acquire_lock))
interrupted = SimpleNamespace(**vars(own) | {"acquire_lock": partial(next, map(operator.call, acquire))})

@ends_well
def command():
    try:
        importlib._bootstrap._imp = interrupted
        import colorsys
        time.sleep(30)
    except KeyboardInterrupt:
        importlib._bootstrap._imp = own
        other = threading.Thread(target=__import__, args=["stringprep"], daemon=True)
        other.start()
        other.join(10)
        print("held" if other.is_alive() else "free", flush=True)
        raise

app = typer.Typer()
app.command()(command)
run(app)
"""


@pytest.mark.process
def test_an_interrupt_while_python_imports_leaves_its_lock_free() -> None:
    """The signal arrives when Python has taken the lock of all imports and not yet begun what frees it."""
    done = subprocess.run([sys.executable, "-c", HELD], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (130, "free\n"), done.stderr


@pytest.mark.process
def test_an_interrupted_command_that_prints_json_says_nothing_on_standard_output(folder) -> None:
    done = run(folder, str(HERE / "cli_signals.py"), "SIGINT", "drawing noise", more=("--json",))
    assert (done.returncode, done.stdout) == (130, "")


def test_a_folder_taken_while_the_release_was_made_leaves_it_to_be_resumed(folder, warm) -> None:
    script = (
        "import os, sys; from contextlib import contextmanager; from recordwise.cli import main, screen\n"
        "@contextmanager\n"
        "def progress(steps, *, quiet=False):\n"
        "    yield lambda doing: os.mkdir('out') if doing == 'writing files' else None\n"
        "screen.progress = progress\n"
        "sys.argv[0] = 'recordwise'\n"
        "main()"
    )
    done = run_warm(warm, folder, "-c", script)
    assert done.returncode == 2
    assert "out already exists" in done.stderr
    assert "kept next to the ledger: run the same command with --resume" in done.stderr
    assert list((folder / "out").iterdir()) == []
    assert kinds(folder) == ["opened", "charged", "released"]
    (folder / "out").rmdir()
    resumed = warm.run(*command("-m", "recordwise", more=("--resume",))[1:], folder=folder)
    assert resumed.returncode == 0, resumed.stderr
    assert kinds(folder) == ["opened", "charged", "released"]
    assert verify(folder / "small.ledger", against=[folder / "out"]) == []
    assert json.loads((folder / "out" / "release.json").read_text())["mark"] == "private"
