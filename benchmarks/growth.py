"""How the cost of a private query grows with rows, cells, levels and statistics: processor seconds, one change at a time.

    python -m benchmarks.growth [--rows 4000000]

From a base of so many rows, one level of 96,000 cells, a count and three sums. Records are validated before the clock starts; the
best of three runs counts.
"""

import argparse
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.queries import LEVELS, MEASURES, plan_of, wide_keys

BASE = 3


def asked(levels: tuple[int, ...], statistics: int, counties: int | None = None) -> Any:
    """A count and the first sums; with ``counties``, at all pairs of so many counties and three-digit industries."""
    import recordwise as rw

    keys = rw.Keys.of(rw.synthetic.public_keys())
    if counties is not None:
        table = wide_keys().table
        known = sorted(set(table["county"].to_pylist()))[:counties]
        keys = rw.Keys.product(county=known, naics=sorted(set(table["naics"].to_pylist())))
    query = rw.query().group_by("county", keys=keys).levels(*(rw.prefix("naics", each) for each in levels))
    query = query.count(rw.Gaussian(rho=1))
    for measure in MEASURES[: statistics - 1]:
        query = query.sum(measure, rw.Gaussian(sigma=100))
    return query


def points(folder: Path, rows: int) -> Iterator[tuple[str, int, str, Any]]:
    """What changes, its size, the file, and the query."""
    from recordwise.synthetic import write_establishments

    for part in (8, 4, 2, 1):
        path = folder / f"{part}.parquet"
        write_establishments(path, rows // part)
        yield "rows", rows // part, str(path), asked((BASE,), 4)
    for counties in (100, 400, 1600, 3000):
        yield "cells", counties * 85, str(path), asked((BASE,), 4, counties)
    for count in range(1, 6):
        yield "levels", count, str(path), asked(LEVELS[-count:], 4)
    for count in range(1, 5):
        yield "statistics", count, str(path), asked((BASE,), count)


def measure(path: str, query: Any) -> tuple[float, float, int]:
    """Seconds of the processor and by the clock, and how many cells there were."""
    import recordwise as rw

    roles: dict[str, Any] = {"unit": "estab_id", "firm": "firm_id", "measures": dict.fromkeys(MEASURES, 1)}
    roles |= {"columns": {"county": "text", "naics": "text"}, "tuned_on": "synthetic", "max_outside": "accept"}
    with rw.Session(path, **roles) as session:
        release = session.run(query)
        found = []
        for _ in range(3):
            began, used = time.perf_counter(), time.process_time()
            session.run(query)
            found.append((time.process_time() - used, time.perf_counter() - began))
    cells = sum(table.data.num_rows for table in release.tables)
    return min(each[0] for each in found), min(each[1] for each in found), cells


def main(arguments: list[str] | None = None) -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=4_000_000)
    chosen = parser.parse_args(arguments)
    assert plan_of((BASE,))
    with tempfile.TemporaryDirectory() as folder:
        for what, size, path, query in points(Path(folder), chosen.rows):
            processor, clock, cells = measure(path, query)
            print(
                f"{what:10} {size:>10,}: {cells:>9,} cells, {processor:.2f} s of processor, {clock:.2f} s by the clock",
                flush=True,
            )


if __name__ == "__main__":
    main()
