"""A copy of the package in which one bug at a time is put, and the tests run against it in a process of their own.

The copy keeps what Python and numba have compiled, so most runs compile the changed file only. Both look at a file's time and size
to tell that it changed, so every bug gets a time of its own. Machine code does not know which other files it was made from: where
the changed file is compiled by numba, all of it is compiled anew.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from mutants.catalogue import PACKAGE, ROOT, Mutant

SECONDS = 180.0
"""A run that takes longer has noticed: the bug made something endless."""
PATIENCE = 5
"""All tests of a file without a bug may take so many times as long."""
NOT_SPARK = "not spark"
"""Every run would start a Java machine; where the engines share code, DuckDB's tests notice."""
OUTCOMES = {0: "passed", 1: "failed"}
"""By pytest's exit code; the others mean that no test ran."""
FIRST_TIME = 2_000_000_000
"""Of the changed files, in seconds, one more for each; no file of the package is from so late."""


class Bug(Protocol):
    """What can be put into the copy."""

    @property
    def file(self) -> str:
        """Below ``src/recordwise``."""

    def applied(self, text: str) -> str:
        """The file with the bug in it."""


class Bench:
    """One copy, for one run at a time."""

    def __init__(self, folder: Path, *, root: Path = ROOT, seconds: float = SECONDS) -> None:
        self._folder, self._root, self._seconds, self._count = folder, root, seconds, 0
        shutil.copytree(root / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))

    def passes(self, tests: tuple[str, ...]) -> bool:
        """Whether the tests pass on the package as it is."""
        return self._run(tests, compile_anew=False, seconds=PATIENCE * self._seconds) == "passed"

    def outcome(self, mutant: Mutant) -> str:
        """``passed`` (nobody noticed), ``failed``, ``endless``, ``crashed``, or ``broken`` where no test could run."""
        with self.planted(mutant) as compile_anew:
            return self._run(mutant.tests, compile_anew=compile_anew, seconds=self._seconds)

    @contextmanager
    def planted(self, bug: Bug) -> Iterator[bool]:
        """The bug is in the copy; whether numba must compile anew."""
        path = self._folder / PACKAGE / bug.file
        text, times = path.read_bytes(), path.stat()
        path.write_bytes(bug.applied(text.decode()).encode())
        self._count += 1
        os.utime(path, (FIRST_TIME + self._count,) * 2)
        try:
            yield b"njit" in text
        finally:
            path.write_bytes(text)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def _run(self, tests: tuple[str, ...], *, compile_anew: bool, seconds: float) -> str:
        with tempfile.TemporaryDirectory(dir=self._folder, ignore_cleanup_errors=True) as scratch:
            environment = self._environment(scratch, compile_anew=compile_anew)
            # A group of its own, so that what the tests started ends with them.
            process = subprocess.Popen(
                self._command(tests, scratch),
                cwd=self._root,
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            try:
                return OUTCOMES.get(code := process.wait(seconds), "crashed" if code < 0 else "broken")
            except subprocess.TimeoutExpired:
                return "endless"
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _command(self, tests: tuple[str, ...], scratch: str) -> list[str]:
        paths = f"pythonpath={self._folder / 'src'} tests ."
        options = ["-x", "-q", "-n0", "-p", "no:cacheprovider", "--hypothesis-seed=0", "-o", paths, "-k", NOT_SPARK]
        return [sys.executable, "-m", "pytest", *options, f"--basetemp={scratch}/tests", *tests]

    def _environment(self, scratch: str, *, compile_anew: bool) -> dict[str, str]:
        return {**os.environ, **self._ours(scratch, compile_anew=compile_anew)}

    def _ours(self, scratch: str, *, compile_anew: bool) -> dict[str, str]:
        """What is added to the environment of a run."""
        ours = {
            "PYTHONPATH": str(self._folder / "src"),
            # What a bug made fail must not be tried first in the next run of the real tests.
            "HYPOTHESIS_STORAGE_DIRECTORY": f"{scratch}/hypothesis",
        }
        return {**ours, **({"NUMBA_CACHE_DIR": f"{scratch}/numba"} if compile_anew else {})}
