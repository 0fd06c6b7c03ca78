"""The three files of the worked example: farms, a public list of counties, and last year's cows by county.

    python farms.py

Written into the current folder. Farms are made up; there is no randomness that changes from run to run.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv


def write(out: Path, count: int = 3_000) -> None:
    """Write farms.csv, counties.csv and last-year.csv."""
    rng = np.random.default_rng(8)
    counties = [f"{state}{number:03}" for state in ("36", "50") for number in range(1, 24, 2)]
    chosen = np.floor(len(counties) * rng.random(count) ** 2).astype(np.int64)
    cows = np.floor(15 * (rng.pareto(1.3, count) + 1)).astype(np.int64)
    table = {"farm_id": np.arange(1, count + 1), "county": [counties[each] for each in chosen], "cows": cows}
    pyarrow.csv.write_csv(pa.table(table), out / "farms.csv")
    states = [each[:2] for each in counties]
    pyarrow.csv.write_csv(pa.table({"state": states, "county": counties}), out / "counties.csv")
    totals = np.bincount(chosen, weights=cows, minlength=len(counties))
    last = np.round(totals * rng.uniform(0.9, 1.1, len(counties)), -1).astype(np.int64)
    pyarrow.csv.write_csv(pa.table({"county": counties, "cows": last}), out / "last-year.csv")


if __name__ == "__main__":
    write(Path())
