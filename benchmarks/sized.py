"""Losses where noise follows public sizes, beside one plain aggregate scan of the same records by the same cells: ratios.

python -m benchmarks.sized [--rows 8000000] [--cells 279000]
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.goals import record

ROUNDS = 5
PLAIN = "SELECT county, naics, count(*) AS n, sum(emp) AS emp FROM read_parquet('{path}') GROUP BY ALL"


def sized_keys(cells: int) -> Any:
    """Cells of county x industry with made-up sizes from a few to hundreds of thousands."""
    import numpy as np

    import recordwise as rw
    from recordwise.synthetic import public_keys

    listed = public_keys().slice(0, cells)
    sizes = np.random.default_rng(1).lognormal(4, 2, listed.num_rows)
    return rw.Keys.of(listed.append_column("last", [sizes]), size="last", sized_on="public: made up")


def measure(path: str, cells: int) -> None:
    import duckdb

    import recordwise as rw

    by = rw.query().group_by("county", "naics", keys=sized_keys(cells))
    columns = {"county": "text", "naics": "text"}
    with rw.Session(path, unit="estab_id", measures={"emp": 1}, columns=columns) as session:
        session.validate()
        sized = session.policy_of(by.sum("emp", rw.Sized(rw.Gaussian(sigma="0.05"), floor=100)))
        connection = duckdb.connect(config={"memory_limit": "700MB"})
        actions: dict[str, Callable[[], object]] = {
            "plain scan": lambda: connection.sql(PLAIN.format(path=path)).to_arrow_table(),
            "losses of all records": lambda: session.owner.loss_summary(sized),
        }
        # In turn, so that whatever else the machine does slows both alike.
        clock: dict[str, list[float]] = {name: [] for name in actions}
        processor: dict[str, list[float]] = {name: [] for name in actions}
        for _ in range(ROUNDS):
            for name, action in actions.items():
                started, used = time.perf_counter(), time.process_time()
                action()
                clock[name].append(time.perf_counter() - started)
                processor[name].append(time.process_time() - used)
    for what, times in (("by the clock", clock), ("processor time", processor)):
        ratio = min(times["losses of all records"]) / min(times["plain scan"])
        print(f"losses of sized cells / one plain scan, {what:16} {ratio:6.2f}   (goal 1.3)")
    record("sized", min(processor["losses of all records"]) / min(processor["plain scan"]))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--cells", type=int, default=279_000)
    chosen = parser.parse_args(arguments)
    from recordwise.synthetic import write_establishments

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "establishments.parquet"
        write_establishments(path, chosen.rows)
        measure(str(path), chosen.cells)


if __name__ == "__main__":
    main()
