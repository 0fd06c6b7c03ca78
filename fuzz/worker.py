"""One process that feeds a target, within limits of memory; what it is doing is told in shared memory, in case it dies of it.

python -m fuzz.worker TARGET FIRST LAST SEED FOLDER
"""

import json
import os
import resource
import sys
import time
import traceback
from collections import Counter
from hashlib import sha256
from pathlib import Path
from random import Random

from fuzz.board import Board
from fuzz.guidance import Guidance
from fuzz.target import Target, WrongError, clear_refusal
from fuzz.targets import FRESH, TARGETS
from recordwise.errors import RecordwiseError

MEMORY = 3 << 30
SECONDS = 5.0


def outcome(target: Target, data: bytes) -> tuple[str, str]:
    """How an input ended, and for a finding its place: refused, accepted, wrong, or a traceback."""
    try:
        return target.check(data), ""
    except RecordwiseError as error:
        try:
            clear_refusal(error)
        except WrongError as unclear:
            return "wrong", str(unclear)
        return "refused", ""
    except WrongError as error:
        return "wrong", str(error)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        # The deepest frame of ours tells findings apart.
        own = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames if "/recordwise/" in frame.filename]
        return "traceback", f"{type(error).__name__} in {own[-1] if own else frames[-1].name}"


def keep(folder: Path, name: str, kind: str, place: str, data: bytes) -> None:
    """Save a finding once for each place it comes from; the input by its digest."""
    label = f"{name}-{kind}-{sha256(place.encode()).hexdigest()[:10]}"
    if not (folder / f"{label}.json").exists():
        (folder / f"{label}.input").write_bytes(data)
        (folder / f"{label}.json").write_text(json.dumps({"target": name, "kind": kind, "place": place}))


def reserved() -> int:
    """Bytes of addresses that libraries took when they were imported; old ones take 40 GB and hardly use them."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmData:")[2].split()[0]) * 1024


def run(name: str, first: int, last: int, seed: str, folder: Path) -> None:
    target = TARGETS[name]()
    guidance, counts = Guidance(target.seeds()), Counter[str]()
    board = Board(folder / f"{name}.board")
    most = reserved() + MEMORY
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    slowest = 0.0
    for number in range(first, last):
        rng = Random(f"{seed}/{name}/{number}")
        fresh = rng.random() < FRESH[name]
        data = target.fresh(rng) if fresh else target.mutate(rng, guidance.pick(rng), guidance.pick(rng))
        board.begin(number, data)
        began = time.process_time()
        with guidance.watching(data, number):
            kind, place = outcome(target, data)
        took = time.process_time() - began
        slowest = max(slowest, took)
        if took > SECONDS:
            keep(folder, name, "slow", f"{took:.0f} s", data)
            counts["slow"] += 1
        if place:
            keep(folder, name, kind, place, data)
        counts[kind] += 1
        if place or number % 256 == 255 or number == last - 1:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            told = {"next": number + 1, "counts": counts, "slowest": slowest, "peak": peak}
            board.tell(told | {"lines": len(guidance.lines), "pool": len(guidance.pool)})
    board.done()


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], Path(sys.argv[5]))
