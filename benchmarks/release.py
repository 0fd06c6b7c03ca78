"""A full release beside plain DuckDB that computes and writes as many columns, in one run: ratios, not seconds.

    python -m benchmarks.release [--rows 8000000]

The job: county x five NAICS levels, a count and three sums, all public cells, 22 columns a table, Parquet written. Ours validates
every record, checks the ledger, charges it, draws exact noise, books and saves. Every measurement is a process of its own; the
smallest of three counts. Processor time is given beside the clock, because it does not depend on who else uses the machine.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MEASURES = {"emp": 50, "payann": 2000, "payqtr1": 500}
LEVELS = (2, 3, 4, 5, 6)
REPEATS = 3
Job = Callable[[str, Path], dict[str, float]]


def query_of(levels: tuple[int, ...]) -> Any:
    import recordwise as rw
    from recordwise.synthetic import public_keys

    prefixes = [rw.prefix("naics", level) for level in levels]
    asked = rw.query().group_by("county", keys=rw.Keys.of(public_keys())).levels(*prefixes)
    asked = asked.count(rw.Gaussian(rho="0.5"))
    for measure, at in MEASURES.items():
        asked = asked.sum(measure, rw.UnitSplit(at=at, rho="0.5"))
    return asked


def open_session(path: str, folder: Path) -> Any:
    import recordwise as rw

    ledger = folder / "bench.ledger"
    roles: dict[str, Any] = {"unit": "estab_id", "firm": "firm_id", "measures": dict.fromkeys(MEASURES, 1)}
    return rw.Session(path, ledger=ledger, tuned_on="synthetic", **roles)


def ours(path: str, folder: Path) -> dict[str, float]:
    """The whole release; the keys are made before the clock starts, as for plain SQL."""
    asked = query_of(LEVELS)
    with Stopwatch() as watch, open_session(path, folder) as session:
        session.run(asked).save(folder / "ours", formats=["parquet"])
    return watch.found


def ours_again(path: str, folder: Path) -> dict[str, float]:
    """The second release of a session: the records are validated already."""
    asked = query_of(LEVELS)
    with open_session(path, folder) as session:
        session.run(asked)
        with Stopwatch() as watch:
            session.run(asked).save(folder / "ours", formats=["parquet"])
    return watch.found


def csv(path: str, folder: Path) -> dict[str, float]:
    """Parquet and CSV of a release, without making it."""
    with open_session(path, folder) as session:
        release = session.run(query_of(LEVELS))
    with Stopwatch() as watch:
        release.save(folder / "with")
    return watch.found


def start(path: str, folder: Path) -> dict[str, float]:
    """Opening a session in a process that has imported recordwise and nothing else."""
    import recordwise as rw

    assert rw
    with Stopwatch() as watch:
        open_session(path, folder)
    return watch.found


def plain(path: str, folder: Path) -> dict[str, float]:
    """Without privacy, and with our own best trick: one pass to the finest cells, from which every level is rolled up."""
    return plain_levels(path, folder, f"SELECT county, naics, {FINEST} FROM read_parquet('{path}') GROUP BY ALL")


def plain_by_hand(path: str, folder: Path) -> dict[str, float]:
    """Without privacy, as most would write it: a pass over the records for each level."""
    return plain_levels(path, folder, None)


FINEST = ", ".join(["COUNT(*) AS n", *(f"SUM({measure}) AS {measure}" for measure in MEASURES)])
ROLLED = ", ".join(f"SUM({name})::BIGINT AS {name}" for name in ("n", *MEASURES))


def plain_levels(path: str, folder: Path, finest: str | None) -> dict[str, float]:
    """Every level at its keys, as many columns written as ours."""
    import duckdb

    from recordwise.synthetic import public_keys

    pairs = public_keys()
    (folder / "plain").mkdir()
    with Stopwatch() as watch:
        connection = duckdb.connect(config={"memory_limit": "700MB"})
        connection.register("pairs", pairs)
        source, sums = (f"read_parquet('{path}')", FINEST) if finest is None else ("finest", ROLLED)
        if finest is not None:
            connection.execute(f"CREATE TEMP TABLE finest AS {finest}")
        for level in LEVELS:
            target = folder / "plain" / f"{level}.parquet"
            made = plain_sql(source, sums, level)
            connection.execute(f"COPY ({made}) TO '{target}' (FORMAT parquet, COMPRESSION zstd)")
    return watch.found


def plain_sql(source: str, sums: str, level: int) -> str:
    names = ("n", *MEASURES)
    totals = ", ".join(f"coalesce(s.{name}, 0) AS {name}" for name in names)
    columns = ", ".join(
        f"{name}, 3.16::DOUBLE AS {name}_sd, 3.16 / nullif(abs({name}), 0) AS {name}_cv, "
        f"{name} - 6.5::DOUBLE AS {name}_low, {name} + 6.5::DOUBLE AS {name}_high"
        for name in names
    )
    return f"""SELECT county, code, {columns} FROM (SELECT k.county, k.code, {totals}
        FROM (SELECT DISTINCT county, left(naics, {level}) AS code FROM pairs) AS k
        LEFT JOIN (SELECT county, left(naics, {level}) AS code, {sums} FROM {source} GROUP BY ALL) AS s
        USING (county, code)) ORDER BY county, code"""


class Stopwatch:
    """Seconds by the clock and of the processor, all threads."""

    def __init__(self) -> None:
        self.found: dict[str, float] = {}

    def __enter__(self) -> "Stopwatch":
        self._began = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        wall, processor = self._began
        self.found = {"seconds": time.perf_counter() - wall, "processor": time.process_time() - processor}


JOBS: dict[str, Job] = {each.__name__: each for each in (ours, ours_again, plain, plain_by_hand, csv, start)}


def in_process(job: str, path: str) -> dict[str, float]:
    """The best of several runs, each in a process and a folder of its own."""
    runs = []
    for _ in range(REPEATS):
        folder = tempfile.mkdtemp()
        command = [sys.executable, "-m", "benchmarks.release", "--job", job, path, folder]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        runs.append(json.loads(done.stdout))
        shutil.rmtree(folder)
    return {name: min(run[name] for run in runs) for name in runs[0]}


def compare(path: str) -> None:
    found = {job: in_process(job, path) for job in JOBS}
    base = found["plain"]
    for job, what in (
        ("ours", "full release, Parquet / plain DuckDB"),
        ("ours_again", "second release of a session / plain DuckDB"),
        ("plain_by_hand", "plain DuckDB, a pass for each level / plain DuckDB"),
        ("csv", "saving with CSV / plain DuckDB"),
    ):
        clock, processor = (found[job][name] / base[name] for name in ("seconds", "processor"))
        print(f"{what:50} {clock:5.2f} by the clock, {processor:5.2f} of processor time")
    print(f"(for orientation: plain DuckDB took {base['seconds']:.2f} s here,", end=" ")
    print(f"opening a session {found['start']['seconds']:.2f} s; goal: below 0.5 s)")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--data", help="a file of establishments made before")
    parser.add_argument("--job", nargs=3)
    chosen = parser.parse_args(arguments)
    if chosen.job:
        job, path, folder = chosen.job
        print(json.dumps(JOBS[job](path, Path(folder))))
        return
    from recordwise.synthetic import write_establishments

    with tempfile.TemporaryDirectory() as directory:
        path = chosen.data or str(Path(directory) / "establishments.parquet")
        if not chosen.data:
            write_establishments(path, chosen.rows)
        compare(path)


if __name__ == "__main__":
    main()
