"""A million cells to weighted and whole records: seconds of processor time, and memory at the peak."""

import resource
import time

import numpy as np
import pyarrow as pa

import recordwise as rw
from recordwise.noise import Seeded

SIDE = 1000


def release(side: int = SIDE) -> rw.Release:
    """A square of places by kinds with both margins and the total: a million cells and 2,001 sums."""
    chance = np.random.default_rng(1)
    rows = side * side * 5
    place, kind = (np.minimum(chance.pareto(1.0, rows) * 20, side - 1).astype(np.int64) for _ in range(2))
    table = pa.table({"id": np.arange(rows), "place": place, "kind": kind})
    keys = rw.Keys.product(place=list(range(side)), kind=list(range(side)))
    asked = rw.query().levels((), "place", keys=keys).levels((), "kind").count(rw.Gaussian(rho="0.2"))
    with rw.Session(table, unit="id", tuned_on="synthetic") as session:
        return session.run(asked, rng=Seeded(1))


def main(side: int = SIDE) -> None:
    made = release(side)
    for whole in (False, True):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        start, cpu = time.perf_counter(), time.process_time()
        records = made.records(weighted=not whole, whole=whole, complete=True)
        spent, taken = time.process_time() - cpu, time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        worst = max(records.about.get("largest_change", {"": 0.0}).values())
        print(
            f"  {side * side:,} cells to {records.data.num_rows:,} {records.about['kind']} records: {taken:.1f} s ({spent:.1f} s "
            f"of processor time), peak {peak:,.0f} MB (before {before:,.0f} MB), KKT {records.about['kkt']:.0e}, "
            f"no sum moved by more than {worst:.2f}"
        )


if __name__ == "__main__":
    main()
