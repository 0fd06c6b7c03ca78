"""Several rows of a unit made one record, beside plain DuckDB SQL for the same totals at the same keys, in one run: ratios.

    python -m benchmarks.collapse [--rows 8000000] [--units 1000000]

By hand: a GROUP BY of the units inside a GROUP BY of the states, without a check of any row. Ours collapses the rows in whole
numbers, once, and rolls up the records. ``collapse and totals`` is that alone; ``all`` adds what makes it safe, the validation of
every row and of every record. Every measurement is a process of its own; the best of three counts.
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

REPEATS = 3
STATES = [f"{number:02}" for number in range(50)]
PLAIN = """SELECT state, COUNT(*), SUM(kwh), SUM(customers) FROM (
    SELECT plant, state, SUM(kwh) AS kwh, MAX(customers) AS customers FROM read_parquet('{}') GROUP BY plant, state
) GROUP BY state"""


def write(path: Path, rows: int, units: int) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    plant = np.concatenate([np.arange(units), rng.integers(0, units, rows - units)])
    state = np.array(STATES)[plant % len(STATES)]
    kwh, customers = rng.integers(0, 100_000, rows), rng.integers(0, 5_000, rows)
    order = rng.permutation(rows)
    columns = {"plant": plant[order], "state": state[order], "kwh": kwh, "customers": customers}
    pq.write_table(pa.table(columns), path)


def plan_of() -> Any:
    from recordwise.mechanisms import Gaussian
    from recordwise.plan import Keys, Plan, Schema
    from recordwise.plan.query import query

    schema = Schema.of(
        unit="plant",
        measures={"kwh": 1, "customers": 1},
        columns={"state": "text"},
        collapse={"kwh": "sum", "customers": "max", "state": "same"},
    )
    asked = query().group_by("state", keys=Keys.of({"state": STATES})).count(Gaussian(rho=1))
    asked = asked.sum("kwh", Gaussian(sigma=100)).sum("customers", Gaussian(sigma=100))
    return Plan(schema=schema, queries=(asked,))


def ours(path: str) -> Callable[[], dict[str, float]]:
    from recordwise.engines import DuckDB

    plan = plan_of()

    def run() -> dict[str, float]:
        with DuckDB(path, plan.schema) as engine:
            started = time.perf_counter()
            engine.validate()
            engine.totals(plan)
            whole = time.perf_counter() - started
            started = time.perf_counter()
            engine._collapse(plan.schema, [])
            engine.totals(plan)
            return {"all": whole, "collapse and totals": time.perf_counter() - started}

    return run


def plain(path: str) -> Callable[[], dict[str, float]]:
    import duckdb

    connection = duckdb.connect(config={"memory_limit": "700MB"})

    def run() -> dict[str, float]:
        started = time.perf_counter()
        connection.sql(PLAIN.format(path)).to_arrow_table()
        return {"plain": time.perf_counter() - started}

    return run


def measured(kind: str, path: str) -> dict[str, float]:
    """The best of a few runs in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.collapse", "--measure", kind, path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--units", type=int, default=1_000_000)
    parser.add_argument("--measure", nargs=2)
    given = parser.parse_args()
    if given.measure:
        kind, path = given.measure
        run = {"ours": ours, "plain": plain}[kind](path)
        runs = [run() for _ in range(REPEATS)]
        print(json.dumps({name: min(each[name] for each in runs) for name in runs[0]}))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write(path, given.rows, given.units)
        # In turns, so that a busy machine slows both.
        rounds = [measured("plain", str(path)) | measured("ours", str(path)) for _ in range(REPEATS)]
    best = {name: min(each[name] for each in rounds) for name in rounds[0]}
    record("collapse", best["all"] / best["plain"])
    for name in ("collapse and totals", "all"):
        print(f"{name}: {best[name]:.2f} s, {best[name] / best['plain']:.2f} times plain SQL ({best['plain']:.2f} s)")


if __name__ == "__main__":
    main()
