"""Processes that start warm: one process imports what a release imports, and forks a child for each script it is asked to run.

A child has an id, signals, a working folder, an environment and an exit code of its own, like any process; it only need not wait
for imports. Tests of how a process starts begin a process themselves. Old libraries start threads when they are imported, which no
forked process has: beside those a child starts Python anew.
"""

import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MOST = 1 << 20
TASKS = Path("/proc/self/task")


@dataclass(frozen=True)
class Child:
    """A running script; its exit code is negative if a signal ended it."""

    pid: int
    _answers: socket.socket

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self) -> int:
        """Until it has ended. Its id is nobody else's before."""
        self._answers.send(b"wait")
        return int(json.loads(self._answers.recv(MOST))["ended"])


class Warm:
    """The process that forks. One script runs at a time.

    Args:
        environment: Added to the environment of the process itself, as a loader needs it (``LD_PRELOAD``).
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._asked, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | dict(environment or {}),
            )
        ready = self._asked.recv(MOST)
        assert ready == b"ready", "the warm process did not start"

    def start(
        self,
        words: Sequence[str],
        *,
        folder: Path,
        stdout: int,
        stderr: int,
        environment: Mapping[str, str] | None = None,
    ) -> Child:
        """Run ``-m module``, ``-c code`` or a file, with what follows it as arguments."""
        job = {"words": [str(word) for word in words], "folder": str(folder), "environment": dict(environment or {})}
        socket.send_fds(self._asked, [json.dumps(job).encode()], [stdout, stderr])
        return Child(int(json.loads(self._asked.recv(MOST))["pid"]), self._asked)

    def run(
        self, *words: Any, folder: Path, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a script to its end; what it printed and how it ended."""
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            ended = self.start(
                words, folder=folder, stdout=out.fileno(), stderr=err.fileno(), environment=environment
            ).wait()
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(list(words), ended, out.read(), err.read())

    def close(self) -> None:
        self._asked.close()
        assert self._process.wait() == 0


def serve(asked: socket.socket) -> None:
    """Fork a child for each job; only a child leaves this loop, with its job, or all at the end."""
    preload()
    alone = not TASKS.is_dir() or len(os.listdir(TASKS)) == 1
    asked.send(b"ready")
    while True:
        text, handles, _, _ = socket.recv_fds(asked, MOST, 2)
        if not text:
            return
        job = json.loads(text)
        child = os.fork()
        if not child:
            asked.close()
            begin(job, handles, warm=alone)
            return
        for handle in handles:
            os.close(handle)
        asked.send(json.dumps({"pid": child}).encode())
        asked.recv(MOST)
        _, status = os.waitpid(child, 0)
        asked.send(json.dumps({"ended": os.waitstatus_to_exitcode(status)}).encode())


def begin(job: dict[str, Any], handles: Sequence[int], *, warm: bool) -> None:
    """Become the process that was asked for."""
    for place, handle in zip((1, 2), handles):
        os.dup2(handle, place)
        os.close(handle)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(job["folder"])
    os.environ.update(job["environment"])
    if not warm:
        os.execv(sys.executable, [sys.executable, *job["words"]])
    first, *rest = job["words"]
    if first == "-m":
        sys.argv = rest
        sys.path.insert(0, job["folder"])
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv = ["-c", *rest[1:]]
        sys.path.insert(0, "")
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = [first, *rest]
        sys.path.insert(0, str(Path(first).parent))
        runpy.run_path(first, run_name="__main__")


def preload() -> None:
    """Import what a release imports. A child makes one and tells, because this process must start no thread before it forks."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            release_once()
            os.write(write, json.dumps(sorted(sys.modules)).encode())
        finally:
            os._exit(0)
    os.close(write)
    with open(read) as told:
        names = json.load(told)
    os.waitpid(child, 0)
    for name in names:
        with suppress(Exception):
            importlib.import_module(name)
    assert threading.active_count() == 1, "a thread was started"
    gc.collect()
    gc.freeze()


def release_once() -> None:
    """A release by the command line, with its files, and the check of its ledger."""
    from build import PLAN, write_records
    from recordwise.cli import app

    with tempfile.TemporaryDirectory() as folder:
        plan, out, ledger = (Path(folder) / name for name in ("plan.toml", "out", "small.ledger"))
        write_records(plan.with_name("records.parquet"))
        plan.write_text(PLAN)
        app(["release", str(plan), "--out", str(out), "--yes"], standalone_mode=False)
        app(["ledger", "verify", str(ledger), "--against", str(out), "--json"], standalone_mode=False)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
