"""Runs of pytest that start warm: one process imports the libraries, and forks a child for each run.

A child imports the package itself, so it may be another copy in each run. It is the head of a group of its own, so that what the
tests started ends with it, and it has so much processor time: a limit by the clock would be reached whenever the machine is busy.
"""

import gc
import importlib
import json
import os
import pkgutil
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mutants.catalogue import ROOT

MOST = 1 << 21
PATIENCE = 8
"""A run may take so many times its processor time by the clock, and then it waits for something that never comes."""
OURS = ("recordwise", "mutants", "tests", "conftest", "__main__")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One run of pytest."""

    words: tuple[str, ...]
    source: str
    """The folder that holds the package."""
    seconds: float
    """Of processor time; the children of the run are counted when they end."""
    environment: dict[str, str] = field(default_factory=dict)
    plugin: str | None = None
    """``module:function``, called in the child; what it returns is a plugin of pytest."""
    options: dict[str, str] = field(default_factory=dict)
    """Given to that function."""


class Forked:
    """The process that forks, for one run at a time."""

    def __init__(self, root: Path = ROOT) -> None:
        self._asked, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (self._asked, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MOST)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "mutants.forked", str(theirs.fileno()), *(["warm"] if root == ROOT else [])],
                cwd=root,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=os.environ | {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"},
            )
        assert self._asked.recv(MOST) == b"ready", "the process that forks did not start"

    def run(self, job: Job) -> int | None:
        """Pytest's exit code, negative if a signal ended it, none if it took too long."""
        self._asked.settimeout(None)
        self._asked.send(json.dumps(asdict(job)).encode())
        child = int(self._asked.recv(MOST))
        self._asked.settimeout(PATIENCE * job.seconds)
        try:
            ended = int(self._asked.recv(MOST))
            return None if ended == -signal.SIGXCPU else ended
        except TimeoutError:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            self._asked.settimeout(None)
            self._asked.recv(MOST)
            return None

    def close(self) -> None:
        self._asked.close()
        self._process.wait()


def serve(asked: socket.socket, *, warm: bool) -> None:
    """Fork a child for each job, until nobody asks any more."""
    import pytest  # noqa: F401

    if warm:
        preload()
    asked.send(b"ready")
    while text := asked.recv(MOST):
        child = os.fork()
        if not child:
            asked.close()
            os._exit(begin(Job(**json.loads(text))))
        with suppress(PermissionError):
            os.setpgid(child, child)
        asked.send(str(child).encode())
        _, status = os.waitpid(child, 0)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        asked.send(str(os.waitstatus_to_exitcode(status)).encode())


def begin(job: Job) -> int:
    """Become the run that was asked for."""
    import pytest

    with suppress(PermissionError):
        os.setpgid(0, 0)
    seconds = max(1, round(job.seconds))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    os.environ.update(job.environment)
    sys.path.insert(0, job.source)
    plugins: list[Any] = []
    if job.plugin:
        module, _, name = job.plugin.partition(":")
        plugins = [getattr(importlib.import_module(module), name)(**job.options)]
    return int(pytest.main(list(job.words), plugins=plugins))


def preload() -> None:
    """Import what the package and its tests import of others. A child finds out what, so nothing of ours is imported here."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(write, json.dumps(libraries()).encode())
        finally:
            os._exit(0)
    os.close(write)
    with open(read) as told:
        names = json.load(told)
    os.waitpid(child, 0)
    for name in names:
        with suppress(Exception):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()


def libraries() -> Sequence[str]:
    """The modules of others that are loaded once every module of the package is."""
    with suppress(ImportError):
        import recordwise

        for each in pkgutil.walk_packages(recordwise.__path__, "recordwise."):
            if not each.name.endswith("__main__"):
                with suppress(Exception):
                    importlib.import_module(each.name)
    for name in ("pytest", "hypothesis", "numpy.random", "scipy.stats", "mpmath", "numba"):
        with suppress(Exception):
            importlib.import_module(name)
    return [name for name in sys.modules if name.partition(".")[0] not in OURS and "pyspark" not in name]


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), warm="warm" in sys.argv)
    # Libraries that are thrown away here would complain about each other.
    os._exit(0)
