"""Private queries with derived sums and with ratios, beside plain DuckDB SQL for the same totals: ratios, not seconds.

    python -m benchmarks.derived [--rows 4000000]

Every measurement is a process of its own; the smallest of three times counts. The goal is 1.3.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.goals import record

LEVEL = 3
REPEATS = 3
ROUNDS = 3
SUMS = {
    "sums": "SUM(payann) AS pay, SUM(emp) AS emp",
    "derived": "SUM(payann - 45 * emp) AS rest, SUM(emp) AS emp",
    "ratio": "SUM(payann) AS pay, SUM(emp) AS emp, SUM(payann) / SUM(emp) AS mean",
}


def query_of(kind: str) -> Any:
    from recordwise.mechanisms import Gaussian
    from recordwise.plan import Keys, Prefix
    from recordwise.plan.query import query
    from recordwise.synthetic import public_keys

    asked = query().group_by("county", keys=Keys.of(public_keys())).levels(Prefix("naics", LEVEL))
    asked = asked.sum("rest" if kind == "derived" else "payann", Gaussian(sigma=1000)).sum("emp", Gaussian(sigma=100))
    if kind == "derived":
        return asked.combine("rest + 45 * emp", alias="pay")
    return asked.ratio("payann", "emp", alias="mean") if kind == "ratio" else asked


def ours(path: str, kind: str) -> Callable[[], object]:
    """The whole private query: budget check, exact pass, charge, noise, estimates and intervals."""
    from recordwise.plan import Measure
    from recordwise.session import Session

    rest = Measure.of("rest", derive="payann - 45 * emp")
    session = Session(
        path,
        unit="estab_id",
        measures={"emp": 1, "payann": 1, "rest": rest},
        columns={"county": "text", "naics": "text"},
        tuned_on="synthetic",
    )
    session.validate()
    asked = query_of(kind)
    return lambda: session.run(asked)


def plain(path: str, kind: str) -> Callable[[], object]:
    """What somebody would write by hand: a group-by and a join with the keys."""
    import duckdb

    from recordwise.synthetic import public_keys

    connection = duckdb.connect(config={"memory_limit": "700MB"})
    connection.register("pairs", public_keys())
    names = [part.rsplit(" AS ", 1)[1] for part in SUMS[kind].split(", ")]
    statement = f"""SELECT k.county, k.code, {", ".join(f"coalesce(s.{name}, 0) AS {name}" for name in names)}
        FROM (SELECT DISTINCT county, left(naics, {LEVEL}) AS code FROM pairs) AS k
        LEFT JOIN (SELECT county, left(naics, {LEVEL}) AS code, {SUMS[kind]} FROM read_parquet('{path}') GROUP BY ALL) AS s
        USING (county, code) ORDER BY ALL"""
    return lambda: connection.sql(statement).to_arrow_table()


def measure(side: str, kind: str, path: str) -> None:
    """One process: the best wall time and the best processor time."""
    run = {"ours": ours, "plain": plain}[side](path, kind)
    walls, processors = [], []
    for _ in range(REPEATS):
        started, used = time.perf_counter(), time.process_time()
        run()
        walls.append(time.perf_counter() - started)
        processors.append(time.process_time() - used)
    print(json.dumps({"seconds": min(walls), "processor": min(processors)}))


def in_process(side: str, kind: str, path: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.derived", "--measure", side, kind, path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def compare(path: str) -> None:
    """Each kind, ours beside plain, in turns, so that a busy machine slows both."""
    pairs = [(side, kind) for kind in SUMS for side in ("ours", "plain")]
    rounds = [{pair: in_process(*pair, path) for pair in pairs} for _ in range(ROUNDS)]
    best = {pair: {each: min(one[pair][each] for one in rounds) for each in ("seconds", "processor")} for pair in pairs}
    for kind in SUMS:
        wall, processor = (best["ours", kind][each] / best["plain", kind][each] for each in ("seconds", "processor"))
        record(f"statistics_{kind}", wall)
        print(f"{kind:8} private query / plain SQL  wall {wall:.2f}, processor {processor:.2f}  (goal 1.3)")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--measure", nargs=3)
    asked = parser.parse_args()
    if asked.measure:
        measure(*asked.measure)
        return
    from recordwise.synthetic import establishments

    with tempfile.TemporaryDirectory() as folder:
        import pyarrow.parquet as pq

        path = Path(folder) / "establishments.parquet"
        pq.write_table(establishments(asked.rows), path)
        compare(str(path))


if __name__ == "__main__":
    main()
