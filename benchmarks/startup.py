"""What a person waits for around a query: imports, the first release of a process, a whole job beside plain DuckDB.

    python -m benchmarks.startup [--rows 8000000] [--repeats 5]

Everything is a process of its own, ours and plain in turns; the median of several runs counts.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.goals import record, table

PEERS = Path(__file__).parent / "peers"
IMPORT = "import recordwise"
FIRST = """
import sys, tempfile
import recordwise as rw
table = {"id": [1, 2, 3], "county": ["001", "001", "003"], "emp": [4, 20, 900]}
asked = rw.query().group_by("county", keys=["001", "003"]).sum("emp", rw.UnitSplit(at=50, rho="0.1"))
columns = {"county": "text"}
with tempfile.TemporaryDirectory() as folder:
    where = {"ledger": folder + "/ledger", "tuned_on": "synthetic"}
    with rw.Session(table, unit="id", measures={"emp": 1}, columns=columns, **where) as session:
        session.run(asked)
"""


def taken(command: Sequence[str | Path]) -> dict[str, float]:
    """One process: seconds by the clock and of the processor."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    # Compiled modules are kept, as for an installed package.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(list(map(str, command)), check=True, capture_output=True, env=environment)
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "seconds": seconds,
        "processor": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    }


def medians(runs: dict[str, Callable[[], dict[str, float]]], repeats: int) -> dict[str, dict[str, float]]:
    """All of them in turns, after one round that nobody counts."""
    rounds = [{name: run() for name, run in runs.items()} for _ in range(repeats + 1)][1:]
    return {
        name: {each: statistics.median(found[name][each] for found in rounds) for each in ("seconds", "processor")}
        for name in runs
    }


def job(peer: str, records: Path, keys: Path) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        return taken([sys.executable, PEERS / f"peer_{peer}.py", records, keys, Path(folder) / "out"])


def compare(records: Path, keys: Path, repeats: int) -> None:
    found = medians(
        {
            "python": lambda: taken([sys.executable, "-c", "pass"]),
            "import": lambda: taken([sys.executable, "-c", IMPORT]),
            "first": lambda: taken([sys.executable, "-c", FIRST]),
            "plain": lambda: job("duckdb", records, keys),
            "ours": lambda: job("recordwise", records, keys),
        },
        repeats,
    )
    for name, each in found.items():
        print(f"{name:10} {each['seconds']:.2f} s by the clock, {each['processor']:.2f} s of processor time")
    record("import", found["import"]["seconds"] - found["python"]["seconds"])
    record("first_run", found["first"]["seconds"])
    for kind in ("seconds", "processor"):
        print(f"whole process / plain DuckDB, {kind}: {found['ours'][kind] / found['plain'][kind]:.2f}")
    record("peers", found["ours"]["seconds"] / found["plain"]["seconds"])


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    chosen = parser.parse_args(arguments)
    from benchmarks.peers.__main__ import write_data

    with tempfile.TemporaryDirectory() as folder:
        compare(*write_data(Path(folder), chosen.rows, python=Path(sys.executable)), chosen.repeats)


if __name__ == "__main__":
    main()
    print(table(only_measured=True))
