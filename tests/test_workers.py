"""Forked processes that run tests: every test once, what fails is said, and a process that dies takes no other test with it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

CONFTEST = """
import os
from pathlib import Path
import pytest
from workers import Workers

RAN = Path(__file__).parent / "ran"

def pytest_configure(config):
    config.pluginmanager.register(Workers(config, 2, lambda item: item.path))

@pytest.fixture(autouse=True)
def ran(request):
    with RAN.open("a") as file:
        file.write(f"{os.getpid()} {request.node.name}\\n")

@pytest.fixture(scope="module")
def shared():
    with RAN.open("a") as file:
        file.write(f"{os.getpid()} shared\\n")
    yield
    with RAN.open("a") as file:
        file.write(f"{os.getpid()} given back\\n")
"""


def suite(folder: Path, *words: str, **files: str) -> tuple[subprocess.CompletedProcess[str], list[list[str]]]:
    """Run files of tests with two workers; what was printed, and who ran what."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text("[pytest]\n")
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", *words, str(folder)]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env={"PYTHONPATH": str(Path(__file__).parent)}, timeout=120
    )
    ran = [line.split(" ", 1) for line in (folder / "ran").read_text().splitlines()]
    return done, ran


def test_every_test_runs_once_and_those_of_a_file_share_their_fixtures(tmp_path):
    files = {f"test_{name}": f"def test_{name}1(shared): pass\ndef test_{name}2(shared): pass\n" for name in "abcd"}
    done, ran = suite(tmp_path, **files)
    assert done.returncode == 0, done.stdout
    assert "8 passed" in done.stdout
    names = [name for _, name in ran]
    assert sorted(name for name in names if name.startswith("test")) == sorted(
        f"test_{n}{i}" for n in "abcd" for i in "12"
    )
    assert names.count("shared") == names.count("given back") == 4
    by_file = {name[5]: set() for name in names if name.startswith("test")}
    for pid, name in ran:
        if name.startswith("test"):
            by_file[name[5]].add(pid)
    assert all(len(pids) == 1 for pids in by_file.values())


def test_what_fails_or_is_skipped_is_said_with_what_it_printed(tmp_path):
    fails = "def test_wrong():\n    print('seven of nine')\n    assert 1 + 1 == 3\n"
    skipped = "import pytest\ndef test_left_out(): pytest.skip('on Tuesdays')\n"
    done, _ = suite(tmp_path, "-rs", test_fails=fails, test_skipped=skipped, test_fine="def test_fine(): pass\n")
    assert done.returncode == 1
    assert "1 failed, 1 passed, 1 skipped" in done.stdout
    assert "assert (1 + 1) == 3" in done.stdout
    assert "seven of nine" in done.stdout
    assert "on Tuesdays" in done.stdout


def test_a_process_that_dies_fails_its_test_and_no_other(tmp_path):
    killed = "import os\ndef test_before(): pass\ndef test_killed(): os.kill(os.getpid(), 9)\ndef test_after(): pass\n"
    done, ran = suite(tmp_path, test_killed=killed, test_fine="def test_fine(): pass\n")
    assert done.returncode == 1
    assert "1 failed, 3 passed" in done.stdout
    assert re.search(r"FAILED .*test_killed.py::test_killed", done.stdout)
    assert "signal 9 ended the process" in done.stdout
    assert len({pid for pid, name in ran if name in ("test_before", "test_after")}) == 2


def test_the_first_failure_ends_the_run_if_that_is_asked(tmp_path):
    files = {f"test_{number:02}": f"def test_{number}(): assert {number} != 0\n" for number in range(40)}
    done, ran = suite(tmp_path, "-x", **files)
    assert done.returncode == 1
    assert "1 failed" in done.stdout
    assert len(ran) < 40


def test_nothing_is_forked_beside_other_threads(tmp_path):
    threaded = "import threading, time\nthreading.Thread(target=time.sleep, args=(20,), daemon=True).start()\n"
    (tmp_path / "ran").touch()
    done, ran = suite(tmp_path, test_a=threaded + "def test_a(): pass\n", test_b="def test_b(): pass\n")
    assert done.returncode == 2
    assert "threads run after collecting" in done.stdout
    assert not ran
