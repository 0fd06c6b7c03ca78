"""Feeds a target through worker processes: an input that kills or hangs its worker is a finding, and the next worker goes on."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fuzz.board import Board
from fuzz.worker import SECONDS, keep

WAITING = 120.0
"""Seconds by the clock after which a worker that uses no processor hangs too; long, because others may use the machine."""
TICKS = os.sysconf("SC_CLK_TCK")
MEMORY_DISK = Path("/dev/shm")
"""Where files are written without waiting for a disk."""


@dataclass
class Summary:
    """What came of one target."""

    target: str
    inputs: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    peak: float = 0.0
    lines: int = 0
    seconds: float = 0.0

    def add(self, told: dict[str, Any]) -> None:
        self.counts.update(told.get("counts", {}))
        self.inputs += sum(told.get("counts", {}).values()) - told.get("counts", {}).get("slow", 0)
        self.slowest = max(self.slowest, told.get("slowest", 0.0))
        self.peak = max(self.peak, told.get("peak", 0.0))
        self.lines = max(self.lines, told.get("lines", 0))

    @property
    def findings(self) -> int:
        return sum(self.counts[kind] for kind in ("wrong", "traceback", "slow", "crash", "hang"))


def fuzz(name: str, inputs: int, *, seed: str, folder: Path, seconds: float = SECONDS) -> Summary:
    """Run ``inputs`` inputs of one target; findings are saved in the folder."""
    summary, began, first = Summary(name), time.monotonic(), 0
    while first < inputs:
        path = folder / f"{name}.board"
        path.unlink(missing_ok=True)
        board = Board(path)
        ended = _watched(name, first, inputs, seed, folder, board, seconds)
        summary.add(board.told())
        if board.finished():
            break
        number, data = board.in_hand()
        # What was counted since the worker last told is not counted at all: the figures are never too high.
        summary.counts[ended] += 1
        summary.inputs += 1
        keep(folder, name, ended, f"{ended} at input {number}", data)
        first = number + 1
    summary.seconds = time.monotonic() - began
    return summary


def _watched(name: str, first: int, last: int, seed: str, folder: Path, board: Board, seconds: float) -> str:
    """Run a worker to its end; how it ended: ``done``, ``crash`` or ``hang``."""
    command = [sys.executable, "-m", "fuzz.worker", name, str(first), str(last), seed, str(folder)]
    log = (folder / f"{name}.log").open("ab")
    scratch = TemporaryDirectory(prefix="recordwise-fuzz-", dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None)
    environment = os.environ | {"TMPDIR": scratch.name}
    worker = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, env=environment)
    seen, since, spent = -1, time.monotonic(), 0.0
    try:
        while worker.poll() is None:
            time.sleep(0.2)
            number, _ = board.in_hand()
            if number != seen:
                seen, since, spent = number, time.monotonic(), _processor(worker.pid)
            elif board.in_hand()[1] and _hangs(_processor(worker.pid) - spent, time.monotonic() - since, seconds):
                os.killpg(worker.pid, signal.SIGKILL)
                worker.wait()
                return "hang"
    finally:
        if worker.poll() is None:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()
        log.close()
        scratch.cleanup()
    return "done" if board.finished() else "crash"


def _hangs(processor: float, clock: float, seconds: float) -> bool:
    # The worker itself notes what ends a little late; beyond twice the limit it is stopped.
    return processor > 2 * seconds or clock > WAITING


def _processor(process: int) -> float:
    """Seconds of processor time a process has used."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS
